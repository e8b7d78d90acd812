"""Recommender studies (Shustova et al.): models learn the warm-up, then every month is scored before it is learned.

A round is a step (a month or a week). The metrics of a step are means over its (user, step) evaluations, those of the
whole the means of the steps, as in Shustova et al.; standard errors sqrt(sum w^2 (value - mean)^2) are over all
evaluations, with the weights w = 1 / (steps x evaluations of the step). cumulative_reward is the sum of Hit@10 over
steps, cumulative_regret what is missing to one hit for everyone, microseconds_per_round the time to decide, per step.

Users without features ("cold") are left out and get rows of their own: there every model takes them for the mean user
of the warm-up; the row of `Popularity` is the other way to serve them. Models learn from known users alone.
"""

import copy
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from onepass import UCB, Bandit, Disjoint, LinUCB, Outer, OuterProduct, ProjectorSplitting, Recommendation, Ridge
from onepass.experiment.definition import Policy, Trial
from onepass.experiment.interactions import Interactions, Problem, Step, load, metrics, prepare, warm_up
from onepass.experiment.tuning import FIRST_SEED

EXPLORATIONS = (-1.0, -0.3, -0.1, -0.03, 0.0, 0.1, 1.0, 10.0)
REGS = (0.1, 1.0, 10.0, 1e2, 1e3, 1e4, 1e5)
K = 10
NAMES = tuple(
    f"{name}_at_{K}{suffix}" for suffix in ("", "_unseen") for name in ("hit", "ndcg", "mrr")
)  # of the columns of an evaluation; unseen: arms of the user's warm-up are not recommended


@dataclass(frozen=True)
class Recommender(Policy):
    """A policy for recommender studies, and where it differs from the study: None is the study's own.

    factors: features of users and arms; arms: only so many, the most frequent; batch: so many rows of an arm at most
    are learned in one call, 1 is row by row.
    """

    factors: int | None = None
    arms: int | None = None
    batch: int | None = None

    @property
    def own(self) -> dict[str, int | None]:
        return {"factors": self.factors, "arms": self.arms, "batch": self.batch}

    def columns(self) -> dict[str, Any]:
        columns = super().columns()
        return {**columns, "params": {**columns["params"], **{k: v for k, v in self.own.items() if v is not None}}}


@dataclass(frozen=True)
class RecommenderStudy:
    """A recommender's problem from `interactions()`; rounds: how many steps are scored, those that exist at most.

    factors: r', contexts have r'^2 dimensions; unit: "month" or "week"; reward: "rating" (rating / 5) or "liked"
    (1 for 4 stars and more, else 0); leaking: features, users and arms from all data, the test included.
    Tuning (seeds from 1000) sees the warm-up alone: its first 80% are learned, the rest is scored in steps.
    """

    name: str
    description: str
    interactions: Callable[[], Interactions]
    factors: int
    policies: tuple[Policy, ...]
    rounds: int
    seeds: int = 1
    unit: str = "month"
    reward: str = "rating"
    leaking: bool = False
    figure: str = "recommender"
    grid: Mapping[str, Sequence[float]] = field(default_factory=lambda: {"exploration": EXPLORATIONS, "reg": REGS})

    def problem(self, seed: int, factors: int | None = None, arms: int | None = None) -> Problem:
        """What a seed is about: the test part, or for the seeds of tuning the end of the warm-up."""
        interactions = self.interactions()
        if seed >= FIRST_SEED:
            interactions = interactions.part(slice(warm_up(interactions)))
        return prepare(interactions, factors or self.factors, self.unit, arms, self.leaking)

    def rewards(self, log: Interactions) -> np.ndarray:
        return log.ratings / 5 if self.reward == "rating" else (log.ratings >= 4).astype(np.float64)

    def trial(self, policies: Sequence[Policy], seed: int) -> Trial:
        return RecommenderTrial(self, policies, seed)

    def warm_up(self, policy: Policy) -> None:
        width = (policy.factors if isinstance(policy, Recommender) else None) or self.factors
        rng = np.random.default_rng(0)
        users, arms = rng.standard_normal((4, width)), rng.standard_normal((20, width))
        model = policy.build(dim=(width, width), seed=0)
        for batch in (1, 40):
            who, what = rng.integers(4, size=batch), rng.integers(20, size=batch)
            model.learn(Outer(users[who], arms[what]), np.ones(batch), arm=what)
        model.recommend(Outer(users, arms), K, arms=range(20), exclude=[{0}] * 4)

    def step_size(self, rounds: int) -> int:
        return 1


@dataclass
class Model:
    """A model with its problem: shared by the policies that differ in exploration alone, which learning never sees."""

    problem: Problem
    model: Any
    batch: int | None
    seconds: float = 0.0
    train_seconds: float = 0.0
    peak: int = 0

    def learn(self, study: RecommenderStudy, log: Interactions, items: np.ndarray) -> None:
        """Learn a log of known users; of `items`, (m,), everyone's, popularity alone makes use."""
        for users, arms, rewards in batches(log, items, study.rewards(log), self.model, self.batch):
            contexts = Outer(self.problem.users[users], self.problem.arms[arms])
            _, seconds, peak = measured(self.model, self.model.learn, contexts, rewards, arm=arms)
            self.seconds += seconds
            self.peak = max(self.peak, peak)


class RecommenderTrial:
    """All policies before the same interactions; the warm-up is learned when the trial is made."""

    def __init__(self, study: RecommenderStudy, policies: Sequence[Policy], seed: int) -> None:
        self.study, self.policies, self.seed = study, policies, seed
        problems: dict[tuple[int | None, int | None], Problem] = {}
        known: dict[str, Model] = {}
        self.models: list[Model] = []
        for policy in policies:
            own = policy.own if isinstance(policy, Recommender) else {"factors": None, "arms": None, "batch": None}
            key = own["factors"], own["arms"]
            if key not in problems:
                problems[key] = study.problem(seed, *key)
            problem, params = problems[key], {**policy.params, **own, "exploration": None}
            name = repr((policy.name, params))
            if name not in known:
                width = problem.users.shape[1]
                model = Model(problem, policy.build(dim=(width, width), seed=seed), own["batch"])
                model.learn(study, problem.warm, problem.warm.items)
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
                    model.learn(self.study, log.log, log.items)

    def rows(self) -> list[dict[str, Any]]:
        """The whole (month "all") for known and for cold users, then every step of known ones; tuning: the first."""
        rows = []
        for policy, model, points in zip(self.policies, self.models, self.points):
            known, cold = ([point for point in points if point["users"] == users] for users in ("known", "cold"))
            wholes, steps = ([known], []) if self.seed >= FIRST_SEED else ([known, cold], known)
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
        """One row from one or many steps of a policy."""
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
    """The lists of one step and what they are worth: a point for known and a point for cold users, where any came."""
    problem, bandit = model.problem, explored(model.model, policy.params.get("exploration"))
    mean = problem.users.mean(axis=0, keepdims=True)
    known = problem.users[step.users], step.relevant, [problem.seen[user] for user in step.users]
    found = []
    for users, (left, relevant, seen) in (("known", known), ("cold", (mean, step.cold, [set[int]()]))):
        if relevant:
            contexts, names = Outer(left, problem.arms), range(len(problem.arms))
            kept, seconds, peak = measured(bandit, bandit.recommend, contexts, K, arms=names)
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


def explored(model: Any, exploration: float | None) -> Any:
    """The same learned model seen with another exploration; what has none is returned as it is."""
    if exploration is None:
        return model
    twin = copy.copy(model)
    if isinstance(twin, CBRAP):
        twin.bandit = explored(model.bandit, exploration)
    else:
        twin._set(UCB(exploration), model.seed, model.name, model._dtype)
    return twin


def batches(
    log: Interactions, items: np.ndarray, rewards: np.ndarray, model: Any, batch: int | None
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Users, arms and rewards of every call of `learn`: at most `batch` rows of an arm in one, in time order."""
    if isinstance(model, Popularity):
        return [(np.zeros(len(items), np.int64), items, np.ones(len(items)))]
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


def measured(model: Any, work: Callable[..., Any], *args: Any, **options: Any) -> tuple[Any, float, int]:
    """The result of work(*args), its seconds, and the bytes of the model and of all that the work took beside it.

    The peak of the process's resident memory is reset before (Linux; elsewhere only the model itself is counted). It
    does not see what is taken from memory that earlier policies have left free: run one policy alone for that.
    """
    held, counted = model.memory_usage(), True
    try:
        Path("/proc/self/clear_refs").write_text("5")
        before = resident("VmRSS")
    except OSError:
        counted = False
    began = perf_counter()
    result = work(*args, **options)
    seconds = perf_counter() - began
    grown = max(0, resident("VmHWM") - before) if counted else 0
    return result, seconds, max(held + grown, model.memory_usage())


def resident(field: str) -> int:
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return 1024 * int(line.split()[1])


def PSILinUCBFull(*, dim: Any, rank: int, reg: float = 1.0, exploration: float = 0.1, seed: int = 0) -> Bandit:
    """PSI-LinUCB per arm on the products, d_u d_a dimensions, as Shustova et al. have it: nothing is reduced."""
    left, right = dim if isinstance(dim, tuple) else (dim, 1)
    product = OuterProduct(left=left, right=right, reduce=False)
    design = ProjectorSplitting(dim=product.dim, rank=rank, reg=reg)
    return Bandit(Disjoint(Ridge(design)), UCB(exploration), features=product, seed=seed, name="PSILinUCB")


def PSILinUCBSplit(*, dim: Any, rank: int, reg: float = 1.0, exploration: float = 0.1, seed: int = 0) -> Bandit:
    """PSI-LinUCB per arm by Shustova et al.'s own integrator (two factors, one design an arm), in the r' dimensions of
    users.
    """
    left, right = dim if isinstance(dim, tuple) else (dim, 1)
    model = Disjoint(Ridge(ProjectorSplitting(dim=left, rank=min(rank, left), reg=reg)), compact=False)
    return Bandit(model, UCB(exploration), features=OuterProduct(left=left, right=right), seed=seed, name="PSILinUCB")


class CBRAP:
    """Exact models per arm on z = R vec(u v^T), R (size, d_u d_a) of N(0, 1 / size).

    The products are never formed: z = M_a u; the maps M_a (K, size, d_u), R contracted with v_a, count as memory.
    """

    def __init__(self, *, dim: Any, size: int, reg: float = 1.0, exploration: float = 0.1, seed: int = 0) -> None:
        left, right = dim if isinstance(dim, tuple) else (dim, 1)
        self.directions = np.random.default_rng(seed).standard_normal((size, left, right)) / size**0.5
        self.bandit = LinUCB(dim=size, reg=reg, exploration=exploration, parameters="disjoint", seed=seed)
        self.maps = np.empty((0, size, left))

    def learn(self, contexts: Outer, rewards: np.ndarray, arm: np.ndarray) -> None:
        rows = np.empty((len(rewards), len(self.directions)))
        for name in np.unique(arm):
            own = np.flatnonzero(arm == name)
            rows[own] = contexts.left[own] @ (self.directions @ contexts.right[own[0]]).T
        self.bandit.learn(rows, rewards, arm=arm)

    def recommend(self, contexts: Outer, k: int, arms: Any, exclude: Any = None) -> Recommendation:
        if len(self.maps) != len(contexts.right):
            self.maps = np.ascontiguousarray(np.moveaxis(self.directions @ contexts.right.T, 2, 0))
        arms, size, left = self.maps.shape
        found = Recommendation([], [])
        for start in range(0, len(contexts.left), 16):
            part = slice(start, start + 16)
            rows = (contexts.left[part] @ self.maps.reshape(-1, left).T).reshape(-1, arms, size)
            best = self.bandit.recommend(rows, k, arms=range(arms), exclude=exclude and exclude[part])
            found.arms.extend(best.arms)
            found.scores.extend(best.scores)
        return found

    def memory_usage(self) -> int:
        return self.bandit.memory_usage() + self.directions.nbytes + self.maps.nbytes

    def error_bound(self) -> float:
        return float("inf")


class Popularity:
    """The arms that everyone, cold users too, interacted with most often so far; ties go to the first arm."""

    def __init__(self, *, dim: Any, seed: int = 0) -> None:
        self.counts = np.zeros(0, np.int64)

    def learn(self, contexts: Outer, rewards: np.ndarray, arm: np.ndarray) -> None:
        counts = np.bincount(arm, minlength=len(self.counts))
        counts[: len(self.counts)] += self.counts
        self.counts = counts

    def recommend(
        self, contexts: Outer, k: int, arms: Sequence[int], exclude: Sequence[Collection[int]] | None = None
    ) -> Recommendation:
        counts = np.zeros(max(len(arms), len(self.counts)))
        counts[: len(self.counts)] = self.counts
        return ranked(counts, len(contexts.left), k, exclude)

    def memory_usage(self) -> int:
        return self.counts.nbytes

    def error_bound(self) -> float:
        return float("inf")


class Random:
    """Any arms, others for every user."""

    def __init__(self, *, dim: Any, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)

    def learn(self, contexts: Outer, rewards: np.ndarray, arm: np.ndarray) -> None:
        pass

    def recommend(
        self, contexts: Outer, k: int, arms: Sequence[int], exclude: Sequence[Collection[int]] | None = None
    ) -> Recommendation:
        found = Recommendation([], [])
        for i in range(len(contexts.left)):
            one = ranked(self.rng.random(len(arms)), 1, k, exclude and exclude[i : i + 1])
            found.arms.extend(one.arms)
            found.scores.extend(one.scores)
        return found

    def memory_usage(self) -> int:
        return 0

    def error_bound(self) -> float:
        return float("inf")


def ranked(scores: np.ndarray, users: int, k: int, exclude: Sequence[Collection[int]] | None = None) -> Recommendation:
    """The k best arms by the same scores (K,) for every user, without those excluded; ties go to the first arm."""
    order = np.argsort(-scores, kind="stable")
    most = k + max((len(own) for own in exclude), default=0) if exclude else k
    first = order[:most].tolist()
    arms = [[arm for arm in first if arm not in own][:k] for own in exclude or [()] * users]
    return Recommendation(arms, [scores[own] for own in arms])


def data(name: str) -> Callable[[], Interactions]:
    return lambda: load(name)
