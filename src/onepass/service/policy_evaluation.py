"""Value of policies on a window of the log: each row once, in the order in which rewards were joined.

A row with context x and arm a has the weight

    w = policy(a | x) / q(a | x),      q: probabilities of what was shown, exactly as logged

A recipe learns as it goes: every decision is weighed by a model that learned only the rows before it, so its estimate
is unbiased. A policy that learns, such as the loop itself, has no single value, so its limits at any time are those of
the average value. A model that does not learn must have learned nothing from the window. If a decision has several
slots, only the first is evaluated.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from onepass.evaluation.comparison import (
    Difference,
    PolicyWeights,
    WeightLimits,
    logging_policy_weights,
    summarize_comparison,
)
from onepass.evaluation.estimators import get_estimator
from onepass.evaluation.evaluate import Evaluation
from onepass.evaluation.policies import policy_changes
from onepass.evaluation.reward_range import Range
from onepass.evaluation.sample import Sample
from onepass.evaluation.streaming import summarize_statistics
from onepass.evaluation.sufficient_stats import PolicyStatistics
from onepass.evaluation.weight_bound import WeightBound
from onepass.log.records import CENSORED, Decision, Join
from onepass.log.replay import Fold, group_joins
from onepass.log.replay_decide import first_eligible
from onepass.log.store import Store
from onepass.log.verification import repeat_decision

HELD = 20_000  # decisions that wait for their joins; older ones are looked up
BLOCK = 256  # rows that are summed up together
ASKED = ("ips", "snips")
FAILURES = (ValueError, ArithmeticError, OSError)


class Window(NamedTuple):
    """Part of a log to evaluate: decisions with since < seq <= until; `until` None means the end of the log."""

    since: int = 0
    until: int | None = None


class Row(NamedTuple):
    """Decision with its reward, for the evaluation of policies.

    `place` is the index of the arm shown, and `shown` (K,) holds the probabilities with which each arm was shown.
    """

    place: int
    reward: float
    shown: np.ndarray


class Policy(Protocol):
    """Policy that is evaluated: it gives probabilities to the arms of a logged decision."""

    def probabilities(self, decision: Decision) -> np.ndarray:
        """Return the probabilities (K,) of the arms that a decision offered."""
        ...

    def learn(self, joins: list[Join]) -> None:
        """Learn the final rewards (joins) of decisions whose probabilities were asked for before."""
        ...


class FixedPolicy:
    """Policy that learns nothing.

    `choose` is a function that returns probabilities (K,) for a decision. `changes` is True if the policy is not the
    same function of the context in all decisions, as with the logged policy (default False).
    """

    def __init__(self, choose: Callable[[Decision], np.ndarray], changes: bool = False) -> None:
        self._choose, self.changes = choose, changes

    def probabilities(self, decision: Decision) -> np.ndarray:
        """Return the probabilities (K,) of the arms that a decision offered."""
        return self._choose(decision)

    def learn(self, joins: list[Join]) -> None:
        """Ignore the rewards, since the policy does not learn."""


class LearningPolicy:
    """Policy that learns the log while it is evaluated. `fold` is its untrained model (`log.replay.Fold`)."""

    changes = True

    def __init__(self, fold: Fold) -> None:
        self._fold = fold

    def probabilities(self, decision: Decision) -> np.ndarray:
        """Return the probabilities (K,) of the arms that a decision offered."""
        self._fold.add_decision(decision)
        return bandit_probabilities(self._fold.bandit, decision)

    def learn(self, joins: list[Join]) -> None:
        """Learn the final rewards (joins) of decisions whose probabilities were asked for before."""
        self._fold.learn(joins)


def bandit_probabilities(bandit: Any, decision: Decision) -> np.ndarray:
    """Return a bandit's probabilities (K,) of the arms of a logged decision.

    Raises ValueError for a decision logged without its context.
    """
    if decision.contexts is None:
        raise ValueError(f"decision {decision.id} was logged without what was offered")
    found: np.ndarray = repeat_decision(bandit, decision).probabilities
    return found


def eligible_arms(decision: Decision) -> list[int]:
    """Return the indices of the arms that a decision might have chosen."""
    return first_eligible(decision.eligible, decision.offered, len(shown_probabilities(decision)), len(decision.places))


def uniform_over(places: list[int], count: int) -> np.ndarray:
    """Return probabilities (count,) that are equal for the arms with the indices `places`, and 0 for others."""
    p = np.zeros(count)
    p[places] = 1.0 / len(places)
    return p


def uniform(decision: Decision) -> np.ndarray:
    """Return equal probabilities for all eligible arms, and 0 for others (K,)."""
    return uniform_over(eligible_arms(decision), len(shown_probabilities(decision)))


def baseline(decision: Decision) -> np.ndarray:
    """Return probability 1 for the first eligible arm, and 0 for others (K,)."""
    return uniform_over(eligible_arms(decision)[:1], len(shown_probabilities(decision)))


def constant_policy(arm: str) -> Callable[[Decision], np.ndarray]:
    """Make the policy that always shows one arm, or draws uniformly if it is not offered."""

    def choose(decision: Decision) -> np.ndarray:
        names = decision.offered or []
        places = [place for place in eligible_arms(decision) if place < len(names) and names[place] == arm]
        return uniform_over(places or eligible_arms(decision), len(shown_probabilities(decision)))

    return choose


def shown_probabilities(decision: Decision) -> np.ndarray:
    """Return the probabilities (K,) with which the first slot was shown; raise ValueError if they are not known."""
    if decision.showing is not None:
        return np.array(decision.showing)
    if decision.probabilities is None:
        raise ValueError(f"decision {decision.id} was logged without probabilities")
    p = np.array(decision.probabilities)
    return p if decision.shown is None else uniform_over(decision.shown[:1], len(p))


def joined_groups(store: Store, loop: str, window: Window, most: int = HELD) -> Iterator[list[tuple[Decision, Join]]]:
    """Yield the decisions in a window of a log with their final rewards, one list for each call that learned some.

    `most` is the largest number of decisions held in memory while they wait (default 20,000). Of more, the
    oldest are read from the log again.
    """
    held, due, whole = dict[str, Decision](), dict[str, Decision](), True

    def joins() -> Iterator[Join]:
        nonlocal whole
        for record in store.read(window.since, None, ("decision", "join"), loop):
            inside = window.until is None or record.seq <= window.until
            if isinstance(record, Join):
                decision = held.pop(record.id, None)
                if decision is None and not whole:
                    decision = find_decision(store, loop, record.id, window)
                if decision is not None and not record.again:
                    due[record.id] = decision
                    yield record
            elif inside:
                held[record.id] = record
                if len(held) > most:
                    whole = False
                    del held[next(iter(held))]
            if not inside and not held and whole:
                return

    for group in group_joins(joins()):
        yield [(due.pop(join.id), join) for join in group]


def read_changes(store: Store, loop: str, since: int) -> dict[str, float]:
    """Return by how much corrections changed the first slot's reward after it was learned, by decision id.

    Only corrections of censored rewards after the sequence number `since` are counted.
    """
    changes: dict[str, float] = {}
    for record in store.read(since, None, ("join",), loop):
        if isinstance(record, Join) and record.how == CENSORED:
            changes[record.id] = changes.get(record.id, 0.0) + (record.rewards[0] or 0.0)
    return changes


def find_decision(store: Store, loop: str, identity: str, window: Window) -> Decision | None:
    """Return the decision with an id, or None if it is not in the part `window` of the log."""
    found = next((one for one in store.find(loop, identity) if isinstance(one, Decision)), None)
    inside = found is not None and window.since < found.seq and (window.until is None or found.seq <= window.until)
    return found if inside else None


@dataclass
class PolicyTally:
    """Importance weights of a policy, and the sums from which its value is estimated.

    - tally: sums over the decisions.
    - weights: importance weights, in arrays.
    - waiting: (weight, largest weight, probability of arms never shown) of decisions whose rewards are not added yet.
    - first: bound of the first weight, or None.
    - bound: bound of all weights so far.
    - why: reason of a failure, or "".
    """

    tally: PolicyStatistics
    weights: list[np.ndarray] = field(default_factory=list)
    waiting: list[tuple[float, float, float]] = field(default_factory=list)
    first: float | None = None
    bound: WeightBound = field(default_factory=lambda: WeightBound(None))
    why: str = ""

    def see(self, row: Row, p: np.ndarray) -> None:
        """Add a decision: `row` says which arm was shown, and `p` (K,) are the evaluated policy's probabilities."""
        chance = row.shown > 0.0
        top = float((p[chance] / row.shown[chance]).max())
        self.bound.max_weight = max(self.bound.max_weight, top)
        self.bound.ceiling = self.bound.ceiling or 1.0 / float(row.shown[chance].min())
        self.waiting.append((float(p[row.place] / row.shown[row.place]), top, float(p[~chance].sum())))

    def add(self, rewards: np.ndarray) -> None:
        """Add the rows that wait for rewards to the sums, with their rewards (n,)."""
        weights, tops, missing = (np.array(column) for column in zip(*self.waiting, strict=True))
        nothing = np.zeros(len(weights))
        sample = Sample(weights, rewards, nothing, nothing, np.zeros(len(weights), bool))
        self.tally.add(sample, tops, float(missing.sum()), self.bound.ceiling)
        self.weights.append(weights)
        self.first = max(float(tops[0]), 1.0) if self.first is None else self.first
        self.waiting = []

    def policy_weights(self) -> PolicyWeights:
        """Return the policy's importance weights for a comparison with another policy.

        They exclude fixed-sample limits, because the policy that wrote the log may have learned.
        """
        weights = np.concatenate(self.weights)
        return PolicyWeights(
            weights, WeightLimits(self.bound.value, self.first), self.tally.unsupported / len(weights), True
        )


class Verdict(NamedTuple):
    """Result of the evaluation of one policy.

    - found: estimates of the policy's value, None after a failure.
    - gain: gain over what was shown, with limits, None after a failure.
    - why: reason of a failure, or "".
    """

    found: Evaluation | None
    gain: Difference | None
    why: str = ""


def evaluate_policies(
    store: Store,
    loop: str,
    policies: Mapping[str, Policy],
    window: Window,
    rewards: tuple[float, float],
    level: float,
    report_progress: Callable[[int], object],
) -> dict[str, Verdict]:
    """Evaluate policies on a window of a log.

    - policies: policies by name.
    - rewards: (least, largest) possible reward.
    - level: confidence level of all limits.
    - report_progress: called often with the number of rows; it may raise an error to stop.

    Raises ValueError for a window without rewards, or with rewards out of range.
    """
    span, alpha = Range(*rewards), 1.0 - level
    asked = tuple(get_estimator(name) for name in ASKED)
    kept = {
        name: PolicyTally(PolicyStatistics(span, asked, alpha, policy_changes(policy)))
        for name, policy in policies.items()
    }
    earned, waiting, count = list[np.ndarray](), list[float](), 0

    def flush() -> None:
        for one in kept.values():
            if not one.why:
                one.add(np.array(waiting))
        earned.append(np.array(waiting))
        waiting.clear()

    changes = read_changes(store, loop, window.since)
    for group in joined_groups(store, loop, window):
        for decision, join in group:
            reward = join.rewards[0]
            if reward is not None and join.id in changes:
                reward = min(max(reward + changes[join.id], span.least), span.largest)
            row = None if reward is None else make_row(decision, reward, span)
            for name, policy in policies.items():
                run_guarded(kept[name], partial(weigh_decision, kept[name], policy, decision, row))
            if row is not None:
                waiting.append(row.reward)
        for name, policy in policies.items():
            run_guarded(kept[name], partial(policy.learn, [join for _, join in group]))
        count += len(group)
        if len(waiting) >= BLOCK:
            flush()
        report_progress(count)
    if waiting:
        flush()
    if not earned:
        raise ValueError("the window has no decision with its reward: name an earlier place, or wait for deadlines")
    return make_verdicts(kept, np.concatenate(earned), span, alpha)


def weigh_decision(kept: PolicyTally, policy: Policy, decision: Decision, row: Row | None) -> None:
    """Compute a policy's probabilities for a decision, and add its importance weight to the policy's sums `kept`.

    If `row` is None, because the decision has no reward, nothing is added.
    """
    p = policy.probabilities(decision)
    if row is not None:
        kept.see(row, p)


def run_guarded(kept: PolicyTally, what: Callable[[], object]) -> None:
    """Call the function `what`, which works for the policy with the sums `kept`, unless the policy has failed before.

    An error is not raised, but stored as the reason of the policy's failure.
    """
    if not kept.why:
        try:
            what()
        except FAILURES as error:
            kept.why = str(error)


def make_row(decision: Decision, reward: float, span: Range) -> Row:
    """Return the `Row` of a decision and its reward; raise ValueError if the reward is outside of `span`."""
    if not span.least <= reward <= span.largest:
        raise ValueError(
            f"decision {decision.id} was rewarded {reward:g}, which reward.range does not allow now: name a later "
            "window"
        )
    place = decision.places[0] if decision.shown is None else decision.shown[0]
    return Row(place, reward, shown_probabilities(decision))


def make_verdicts(kept: Mapping[str, PolicyTally], earned: np.ndarray, span: Range, alpha: float) -> dict[str, Verdict]:
    """Return the result for every policy, by name.

    `kept` holds the sums of each policy, `earned` (n,) the rewards, `span` the range of rewards, and `alpha` is the
    error probability of all limits together.
    """
    good = {name: one.policy_weights() for name, one in kept.items() if not one.why}
    compared = summarize_comparison(good, logging_policy_weights(len(earned)), earned, span, alpha) if good else None
    gains = {} if compared is None else {one.name: one for one in compared.differences}
    return {
        name: Verdict(None, None, one.why)
        if one.why
        else Verdict(summarize_statistics(one.tally, one.bound), gains[name])
        for name, one in kept.items()
    }
