"""One seed of a recommender study: every step is scored, then learned.

The metrics of a step are means over its (user, step) evaluations. The metrics of the whole are means over steps, as in
Shustova et al. Standard errors sqrt(sum w^2 (value - mean)^2) are over all evaluations, with the weights
w = 1 / (steps x evaluations of the step). In the rows, cumulative_reward is the sum of Hit@10 over steps,
cumulative_regret is the number of steps less this sum, and microseconds_per_round is the time to decide, per step.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onepass import UCB, Factors
from onepass.lab.policy import Policy
from onepass.lab.recommender.interactions import UNKNOWN, Interactions, Problem, Step, metrics
from onepass.lab.recommender.measure import measure_call
from onepass.lab.recommender.policies import (
    CBRAP,
    ItemModelsPolicy,
    LinUCBFull,
    Popularity,
    Recommender,
    RecommenderPolicy,
    Visitors,
)
from onepass.lab.seeds import FIRST_TUNING_SEED

K = 10
NAMES = tuple(
    f"{name}_at_{K}{suffix}" for suffix in ("", "_unseen") for name in ("hit", "ndcg", "mrr")
)  # columns of an evaluation; "unseen" lists leave out the arms of the user's warm-up


@dataclass
class Model:
    """Model that learns the interactions of a problem, shared by policies that differ only in exploration.

    Exploration does not affect learning here.

    - problem, model: the problem, and the bandit that learns it.
    - batch: largest number of rows of an arm in one call of `learn`, None for no limit.
    - seconds: time of learning so far.
    - train_seconds: time of learning before the first step.
    - peak: peak memory in bytes.
    """

    problem: Problem
    model: Any
    batch: int | None
    seconds: float = 0.0
    train_seconds: float = 0.0
    peak: int = 0

    def learn(self, log: Interactions, rewards: np.ndarray, everyone: Interactions) -> None:
        """Learn the interactions `log`, whose rewards are `rewards` (n,).

        A model that needs no features learns the interactions `everyone` of all users instead, each with reward 1.
        """
        items = everyone.items
        if isinstance(self.model, RecommenderPolicy):
            contexts: Any = Visitors(everyone.users, everyone.times)
            _, seconds, peak = measure_call(self.model, self.model.learn, contexts, np.ones(len(items)), arm=items)
            self.seconds, self.peak = self.seconds + seconds, max(self.peak, peak)
            return
        for users, arms, paid in _batches(log, items, rewards, self.model, self.batch):
            left = np.where((users == UNKNOWN)[:, None], 0.0, self.problem.users[users])
            contexts = Factors(left, self.problem.arms[arms])
            _, seconds, peak = measure_call(self.model, self.model.learn, contexts, paid, arm=arms)
            self.seconds += seconds
            self.peak = max(self.peak, peak)


class RecommenderTrial:
    """Trial of all policies on the same interactions; the first part is learned when the trial is made.

    `make(factors, arms)` returns a `Problem` with these numbers of features and arms; None takes the numbers of the
    study. `rewards(log)` returns the rewards (n,) of interactions.
    """

    def __init__(
        self,
        make: Callable[[int | None, int | None], Problem],
        rewards: Callable[[Interactions], np.ndarray],
        policies: Sequence[Policy],
        seed: int,
    ) -> None:
        self.rewards, self.policies, self.seed = rewards, policies, seed
        problems: dict[tuple[int | None, int | None], Problem] = {}
        known: dict[str, Model] = {}
        self.models: list[Model] = []
        for policy in policies:
            own = (
                policy.overrides if isinstance(policy, Recommender) else {"factors": None, "arms": None, "batch": None}
            )
            key = own["factors"], own["arms"]
            if key not in problems:
                problems[key] = make(*key)
            problem, params = problems[key], {**policy.params, **own, "exploration": None}
            name = repr((policy.name, params))
            if name not in known:
                width = problem.users.shape[1]
                model = Model(problem, policy.build(dim=(width, width), seed=seed), own["batch"])
                model.learn(problem.warm, rewards(problem.warm), problem.warm)
                model.train_seconds = model.seconds
                known[name] = model
            self.models.append(known[name])
        self.points: list[list[dict[str, Any]]] = [[] for _ in policies]

    def step(self, start: int, rounds: int) -> None:
        for number in range(start, start + rounds):
            for policy, model, points in zip(self.policies, self.models, self.points):
                if number < len(model.problem.steps):
                    points += evaluate(policy, model, model.problem.steps[number], number + 1)
            for model in {id(model): model for model in self.models}.values():
                if number < len(model.problem.steps):
                    log = model.problem.steps[number]
                    model.learn(log.log, self.rewards(log.log), log.everyone)

    def rows(self) -> list[dict[str, Any]]:
        """Return rows of results for every policy: means over all steps for known and for new users, and every step.

        Known users have features, new users have none. The rows of single steps are those of known users. A trial of
        tuning has only the mean over all steps for known users.
        """
        rows = []
        for policy, model, points in zip(self.policies, self.models, self.points):
            known, cold = ([point for point in points if point["users"] == users] for users in ("known", "cold"))
            wholes, steps = ([known], []) if self.seed >= FIRST_TUNING_SEED else ([known, cold], known)
            rows += [self.row(policy, model, "all", points) for points in wholes if points]
            rows += [self.row(policy, model, point["name"], [point]) for point in steps]
        return rows

    def curves(self) -> list[dict[str, Any]]:
        return [
            self.row(policy, model, point["name"], [point])
            for policy, model, points in zip(self.policies, self.models, self.points)
            for point in points
        ]

    def row(self, policy: Policy, model: Model, month: str, points: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Return one row of results of a policy and its model, averaged over the steps in `points`.

        `points` are dictionaries that `evaluate` returns, and `month` is the name of the row.
        """
        values = [point["values"] for point in points]
        weights = np.concatenate([np.full(len(own), 1 / (len(own) * len(values))) for own in values])
        table = np.concatenate(values)
        means = weights @ table
        errors = np.sqrt((weights**2) @ (table - means) ** 2)
        seconds, hits = sum(point["seconds"] for point in points), len(values) * float(means[0])
        return {
            **policy.columns(),
            "seed": self.seed,
            "month": month,
            "users": points[0]["users"],
            "round": points[-1]["round"],
            "rounds": len(values),
            "evaluations": len(table),
            "cumulative_regret": len(values) - hits,
            "cumulative_reward": hits,
            "microseconds_per_round": 1e6 * seconds / len(values),
            "memory_bytes": max(point["memory_bytes"] for point in points),
            "error_bound": points[-1]["error_bound"],
            **dict(zip(NAMES, means.tolist())),
            **{f"{name}_error": error for name, error in zip(NAMES, errors.tolist())},
            f"hit_at_{K}_pooled": float(table[:, 0].mean()),
            "coverage": sum(point["coverage"] for point in points) / len(points),
            "train_seconds": model.train_seconds,
            "decide_seconds_per_user": seconds / max(1, sum(point["lists"] for point in points)),
            "peak_memory_bytes": max(model.peak, *(point["peak"] for point in points)),
            "context_dim": model.problem.users.shape[1] ** 2,
            "arms": len(model.problem.arms),
            "size": policy.params.get("rank", policy.params.get("size")),
            "batch": model.batch,
        }


def evaluate(policy: Policy, model: Model, step: Step, number: int) -> list[dict[str, Any]]:
    """Return measurements of the recommendations of a policy in one step, which are made before the step is learned.

    The result has a dictionary for users with features ("users" is "known"), and one for users without ("cold"), if
    there are any. "values" (n, 6) are Hit, NDCG and MRR for each user, over all arms and over arms that are new to the
    user. Other entries are "coverage", seconds and memory. `model` is the model of the policy, and `number` the number
    of the step.
    """
    problem, bandit = model.problem, _with_exploration(model.model, policy.params.get("exploration"))
    mean = (0.0 if isinstance(bandit, ItemModelsPolicy) else 1.0) * problem.users.mean(axis=0, keepdims=True)
    strangers = np.array([UNKNOWN])
    known = step.users, problem.users[step.users], step.relevant, [problem.seen[user] for user in step.users]
    found = []
    for users, (people, left, relevant, seen) in (
        ("known", known),
        ("cold", (strangers, mean, step.cold, [set[int]()])),
    ):
        if relevant:
            names = range(len(problem.arms))
            contexts: Any = Factors(left, problem.arms)
            if isinstance(bandit, RecommenderPolicy):
                contexts = Visitors(people, np.zeros(len(people)))
            kept, seconds, peak = measure_call(bandit, bandit.recommend, contexts, K, arms=names)
            unseen = bandit.recommend(contexts, K, arms=names, exclude=seen) if any(seen) else kept
            lists = [each.arms * (1 if users == "known" else len(relevant)) for each in (kept, unseen)]
            values = [[*metrics(a, items), *metrics(b, items)] for a, b, items in zip(*lists, relevant)]
            found.append(
                {
                    "name": step.name,
                    "round": number,
                    "users": users,
                    "values": np.array(values),
                    "coverage": len({arm for own in kept.arms for arm in own}) / len(problem.arms),
                    "seconds": seconds,
                    "lists": len(kept.arms),
                    "peak": peak,
                    "memory_bytes": bandit.memory_usage(),
                    "error_bound": bandit.error_bound(),
                }
            )
    return found


def _with_exploration(model: Any, exploration: float | None) -> Any:
    """Return the trained model with another exploration, or the model itself if `exploration` is None."""
    if exploration is None:
        return model
    if not isinstance(model, CBRAP | ItemModelsPolicy | LinUCBFull):
        return model.with_exploration(UCB(exploration))
    twin = copy.copy(model)
    twin.bandit = _with_exploration(model.bandit, exploration)
    return twin


def _batches(
    log: Interactions, items: np.ndarray, rewards: np.ndarray, model: Any, batch: int | None
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return users (n,), arms (n,) and rewards (n,) of every call of `learn`, in time order.

    `log` are the interactions of users with features, and `rewards` their rewards. `items` are the arms of the
    interactions of all users, of which some models learn more. A call has at most `batch` rows per arm; None means no
    limit.
    """
    if isinstance(model, Popularity):
        return [(np.zeros(len(items), np.int64), items, np.ones(len(items)))]
    if isinstance(model, ItemModelsPolicy):
        others = np.bincount(items, minlength=1 + log.items.max(initial=0)).astype(np.int64)
        np.subtract.at(others, log.items, 1)
        strange = np.repeat(np.arange(len(others)), others)
        users, arms = np.append(log.users, np.full(len(strange), UNKNOWN)), np.append(log.items, strange)
        paid = np.append(rewards, np.full(len(strange), rewards.mean() if len(rewards) else 1.0))
        return [(users, arms, paid)] if len(arms) else []
    if len(log.items) == 0:
        return []
    if batch is None:
        return [(log.users, log.items, rewards)]
    order = np.argsort(log.items, kind="stable")
    firsts = np.searchsorted(log.items[order], log.items[order])
    turn = np.empty(len(order), np.int64)
    turn[order] = (np.arange(len(order)) - firsts) // batch
    order = np.argsort(turn, kind="stable")
    cuts = np.flatnonzero(np.diff(turn[order])) + 1
    return [(log.users[own], log.items[own], rewards[own]) for own in np.split(order, cuts)]
