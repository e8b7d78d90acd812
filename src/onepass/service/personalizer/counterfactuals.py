"""Counterfactual estimates of policies from the log of a loop.

    w = policy(shown) / probability with which it was shown,      rewards: those that were joined

The policies are the logger itself, the first action, a uniformly random action, and explorations of this package. A
policy that learns is asked for its probabilities before it learns the join, as if it had served and learned this log.

Confidence limits hold at any time, whatever the logger learned (`onepass.evaluation`).
"""

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from onepass.evaluation.evaluate import Evaluation, summarize_sample
from onepass.evaluation.events import event_rows
from onepass.evaluation.moments import Moments, compute_moments
from onepass.evaluation.reward_range import Range
from onepass.evaluation.sample import make_sample
from onepass.evaluation.weight_bound import WeightBound
from onepass.log.import_export import outcomes_from_join
from onepass.log.records import SECOND, Decision, Event, Join
from onepass.log.replay import Fold, is_same_batch
from onepass.log.replay_decide import first_eligible
from onepass.log.verification import repeat_decision
from onepass.service.loop import Loop
from onepass.service.promotion import replay_start

BUCKET = 300 * SECOND  # microseconds: of the finest time series that there is
LEVEL = 0.05  # of all limits: one in 20 may be wrong
WAITING = 100_000  # decisions that wait for their join at most: later ones push them out


class PolicyRun:
    """Importance weights and rewards of one policy, one for each decision of the log.

    - name, arguments, source: name, arguments and origin of the policy, for the answer.
    - learns: model of a policy that learns while it is evaluated, else None.
    - missing: sum of the policy's probabilities for arms that the logging policy never shows.
    """

    def __init__(self, name: str, arguments: str, source: str, learns: Any = None) -> None:
        self.name, self.arguments, self.source = name, arguments, source
        self.learns: Fold | None = learns
        self.weights, self.rewards, self.times = list[float](), list[float](), list[int]()
        self.tops = list[float]()
        self.missing, self.bound = 0.0, WeightBound(None)

    def add(self, chances: np.ndarray, logged: np.ndarray, place: int, reward: float, time: int) -> None:
        """Add a decision of the log with its reward.

        - chances, logged: probabilities (K,) of the evaluated policy and of the logging policy.
        - place: index of the arm shown.
        - time: time of the decision in microseconds.
        """
        open_arms = logged > 0.0
        self.tops.append(float((chances[open_arms] / logged[open_arms]).max()))
        self.bound.max_weight = max(self.bound.max_weight, self.tops[-1])
        self.bound.ceiling = self.bound.ceiling or 1.0 / float(logged[open_arms].min())
        self.missing += float(chances[~open_arms].sum())
        self.weights.append(float(chances[place] / logged[place]))
        self.rewards.append(reward)
        self.times.append(time)

    def evaluate(self, least: float, largest: float) -> Evaluation:
        """Evaluate the policy on its rows. Rewards are expected in [`least`, `largest`]."""
        w, r = np.array(self.weights), np.array(self.rewards)
        range = Range(min(least, float(r.min())), max(largest, float(r.max())))
        changes = self.learns is not None or self.source == "Online"  # has no one value, but an average
        sample, tops, missing = make_sample(w, r), np.array(self.tops), self.missing / len(r)
        return summarize_sample(sample, tops, range, ("snips",), LEVEL, self.bound, missing, 0, 0, changes)

    def buckets(self) -> dict[int, Moments]:
        """Return the sums of weights and rewards (`Moments`) of every five minutes.

        A key is the number of five-minute intervals since 1970 (Unix time), rounded down.
        """
        numbers, w, r = np.array(self.times) // BUCKET, np.array(self.weights), np.array(self.rewards)
        return {int(one): compute_moments(w[numbers == one], r[numbers == one]) for one in np.unique(numbers)}


class PendingWeights:
    """Decision whose reward has not come yet, with the probabilities (K,) of its arms for each policy, `chances`."""

    def __init__(self, decision: Decision, chances: list[np.ndarray]) -> None:
        self.decision, self.chances = decision, chances


def weigh_policies(loop: Loop, policies: list[PolicyRun], begin: int, end: int) -> int:
    """Add the decisions in a span of time that have rewards to each of `policies`; return the number of decisions.

    The span includes its ends `begin` and `end`, in microseconds. Decisions of several slots are left out. Raises
    ValueError if the service ends meanwhile, or if the logging policy's probabilities are not known.
    """
    waiting, count, batch = dict[str, PendingWeights](), 0, list[Join]()
    whole = replay_start(loop.store, loop.name)
    for record in read_records(loop):
        if batch and not (isinstance(record, Join) and is_same_batch(batch[-1], record)):
            learn_joins(policies, batch)
            batch = []
        if isinstance(record, Decision):
            for one in policies:
                if one.learns is not None:
                    one.learns.add_decision(record)
            if begin <= record.time <= end and len(record.places) == 1:
                waiting[record.id] = PendingWeights(record, [policy_probabilities(one, record) for one in policies])
                if len(waiting) > WAITING:
                    del waiting[next(iter(waiting))]
            continue
        if record.seq > whole:
            batch.append(record)
        asked = waiting.pop(record.id, None)
        if asked is not None:
            place, reward, logged = make_row(asked.decision, record)
            for one, found in zip(policies, asked.chances, strict=True):
                one.add(found if found.size else logged, logged, place, reward, asked.decision.time)
            count += 1
    return count


def read_records(loop: Loop) -> Iterator[Any]:
    """Yield the decisions and the records of their final rewards (joins) of a loop, while it runs."""
    for record in loop.store.read(kinds=("decision", "join"), loop=loop.name):
        if not loop.writer.is_alive():
            raise ValueError("the service ended before this was done")
        yield record


def learn_joins(policies: list[PolicyRun], joins: list[Join]) -> None:
    """Let the policies that learn learn a batch of final rewards (joins)."""
    for one in policies:
        if one.learns is not None:
            one.learns.learn(joins)


def policy_probabilities(policy: PolicyRun, record: Decision) -> np.ndarray:
    """Return the probabilities (K,) of a policy for a decision, or an empty array for the policy that logged it."""
    names = record.offered or []
    allowed = first_eligible(record.eligible, names, len(names), len(record.places))
    if policy.learns is not None:
        return np.asarray(repeat_decision(policy.learns.bandit, record).probabilities, float)
    out = np.zeros(len(names))
    if policy.source == "Baseline":
        out[record.baseline[0] if record.baseline else allowed[0]] = 1.0
    elif policy.source == "Random":
        out[allowed] = 1.0 / len(allowed)
    else:
        return np.zeros(0)
    return out


def make_row(decision: Decision, join: Join) -> tuple[int, float, np.ndarray]:
    """Return (index of the arm shown, reward, logged probabilities of shape (K,)) of a decision with final rewards.

    Raises ValueError if the decision was logged without probabilities.
    """
    event = Event(msgspec.structs.replace(decision, deferred=False), tuple(outcomes_from_join(join)))
    found = next(event_rows(event, lambda _: 0.0, 0.0))
    if found[3] is None:
        raise ValueError(f"decision {decision.id} was logged without its probabilities")
    return found[0], found[1], np.asarray(found[3], float)
