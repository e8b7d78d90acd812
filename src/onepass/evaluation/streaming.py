"""Many policies on one pass over a log, in memory that does not grow with it.

    w = policy(a | x) / p        block by block; a policy leaves sums and sequences behind (tally.py), no rows

Where the log tells the largest weight that each row could have had (bounds.py), the bound of the sequences rises along
it, as in `evaluate`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from onepass.evaluation import intervals
from onepass.evaluation.bounds import Bound
from onepass.evaluation.estimators import NAMES, Estimator, estimator
from onepass.evaluation.evaluate import BLOCK, USUAL, VALUED, Estimate, Evaluation, fixed, open_fraction
from onepass.evaluation.log import Log
from onepass.evaluation.policies import changes, policy_of
from onepass.evaluation.ranges import Range, checked_range, checked_rewards
from onepass.evaluation.reward_models import Ahead, model_of
from onepass.evaluation.sample import Sample
from onepass.evaluation.tally import Tally, Terms
from onepass.foundation import check


def evaluate_many(
    log: Log | Iterable[Log],
    policies: Mapping[str, Any],
    *,
    reward_range: tuple[float, float] = (0.0, 1.0),
    estimators: Iterable[str | tuple[str, float]] = USUAL,
    model: Any = None,
    level: float = 0.95,
    weight_bound: float | None = None,
    average: bool = False,
    progress: Callable[[int], object] | None = None,
) -> dict[str, Evaluation]:
    """The values of policies: what each would have earned a decision, by one pass over the log of another one.

    log: a `Log`, or its blocks in their order; policies: by name, as for `evaluate`; of a stream, functions, bandits or
        arrays (K,).
    reward_range: (least, largest) reward that there can be (default (0.0, 1.0)); limits rest on it.
    estimators: names of `onepass.evaluation.NAMES` (default "ips", "snips", "dm", "dr"), or (name, knob): knobs are
        given, for choosing them would need all rows.
    model: of rewards, as for `evaluate`, shared by all policies; it predicts a block from the blocks before, and
        the first one in 5 parts, each from those before.
    level: of all limits, above 0 and below 1 (default 0.95).
    weight_bound, average: as for `evaluate` (defaults None and False).
    progress: called with the number of rows after each block; None (default): nothing.
    Returns `Evaluation` by name, their `sample` None. ValueError as `evaluate`. Memory: some kilobytes a policy and one
    block of at most 10,000 rows.
    """
    swept = sweep(
        log, policies, reward_range=reward_range, estimators=estimators, model=model, level=level,
        weight_bound=weight_bound, average=average, progress=progress,
    )  # fmt: skip
    return swept.evaluations()


class Swept(NamedTuple):
    """What one pass over a log, or a part of one, leaves behind: of every policy its tally, its largest weight,
    and its mass on every arm where distributions are not known; chosen: how often each arm was; rows."""

    tallies: dict[str, Tally]
    bounds: dict[str, Bound]
    masses: dict[str, np.ndarray]
    chosen: np.ndarray
    rows: int

    def then(self, other: "Swept") -> "Swept":
        """Of this part of a log, then of another one."""
        masses = {
            name: grown(self.masses.get(name, np.zeros(0)), other.masses.get(name, np.zeros(0)))
            for name in self.masses.keys() | other.masses.keys()
        }
        return Swept(
            {name: one.then(other.tallies[name]) for name, one in self.tallies.items()},
            {name: one.then(other.bounds[name]) for name, one in self.bounds.items()},
            masses,
            grown(self.chosen, other.chosen),
            self.rows + other.rows,
        )

    def evaluations(self) -> dict[str, Evaluation]:
        """All numbers, by policy. ValueError where there was no row."""
        if self.rows == 0:
            raise ValueError("log must have at least one row")
        found = {}
        for name, tally in self.tallies.items():
            whole, mass = copy(tally), self.masses.get(name, np.zeros(0))
            whole.unsupported += float(mass[grown(self.chosen, np.zeros(len(mass)))[: len(mass)] == 0].sum())
            found[name] = summary(whole, self.bounds[name])
        return found


def sweep(
    log: Log | Iterable[Log],
    policies: Mapping[str, Any],
    *,
    reward_range: tuple[float, float] = (0.0, 1.0),
    estimators: Iterable[str | tuple[str, float]] = USUAL,
    model: Any = None,
    level: float = 0.95,
    weight_bound: float | None = None,
    average: bool = False,
    progress: Callable[[int], object] | None = None,
) -> Swept:
    """One pass over a log, or a part of one; log, policies, reward_range, estimators, model, level, weight_bound,
    average, progress and errors as of `evaluate_many`."""
    if not policies:
        raise ValueError("policies must hold at least one policy by name")
    rewards, alpha = checked_range(reward_range), 1.0 - open_fraction("level", level)
    asked = tuple(one_of(each) for each in estimators)
    changing = {name: bool(average) or changes(policy) for name, policy in policies.items()}
    tallies = {name: Tally(rewards, asked, alpha, moves) for name, moves in changing.items()}
    bounds = {name: Bound(weight_bound) for name in policies}
    ahead = Ahead(model_of(model)) if any(one.models for one in asked) else None
    choices = {name: policy_of(policy, log) for name, policy in policies.items()} if isinstance(log, Log) else {}
    chosen, masses, start = np.zeros(0), {}, 0  # type: ignore[var-annotated]
    for block in blocks_of(log):
        checked_rewards(block.rewards, rewards, start)
        rows = np.arange(len(block))
        q, known = (None, np.zeros(len(block), bool)) if ahead is None else ahead.predict(block)
        q = None if q is None else np.clip(q, rewards.least, rewards.largest)
        predicted = np.zeros(len(block)) if q is None else q[rows, block.arms]
        closed = None if block.distributions is None else block.distributions == 0.0
        closed = closed if closed is not None and closed.any() else None
        chosen = grown(chosen, np.bincount(block.arms, minlength=block.n_arms))
        for name, policy in policies.items():
            chooses = choices[name] if choices else policy_of(policy, block)
            p = chooses(block, start)
            w = p[rows, block.arms] / block.propensities
            values = np.zeros(len(block)) if q is None else np.einsum("ij,ij->i", p, q)
            missing, tops = 0.0 if closed is None else float(p[closed].sum()), bounds[name].see(block, p, w)
            sample = Sample(w, block.rewards, predicted, values, known)
            tallies[name].add(sample, tops, missing, bounds[name].ceiling)
            if block.distributions is None:
                masses[name] = grown(masses.get(name, np.zeros(0)), p.sum(axis=0))
        start += len(block)
        if progress is not None:
            progress(start)
    return Swept(tallies, bounds, masses, chosen, start)


def blocks_of(log: Log | Iterable[Log]) -> Iterator[Log]:
    """Blocks of at most 10,000 rows, none of them empty."""
    for part in (log,) if isinstance(log, Log) else log:
        yield from part.blocks(BLOCK) if len(part) > BLOCK else (part,) if len(part) else ()


def one_of(asked: str | tuple[str, float]) -> Estimator:
    """An estimator by name, or by name and knob."""
    name, knob = (asked, None) if isinstance(asked, str) else asked
    return estimator(check.choice("estimators", name, NAMES), knob)


def grown(sums: np.ndarray, more: np.ndarray) -> np.ndarray:
    """Their sum, over as many arms as the longer one has."""
    out = np.zeros(max(len(sums), len(more)))
    out[: len(sums)] += sums
    out[: len(more)] += more
    return out


def summary(tally: Tally, bound: Bound) -> Evaluation:
    """All numbers of a tally."""
    diagnosis = tally.diagnosis()
    estimates = {
        one.name: of_terms(one, terms, tally.rewards, tally.alpha)
        for one, terms in zip(tally.estimators, tally.terms, strict=True)
    }
    best = next((name for name in VALUED if name in estimates), next(iter(estimates), None))
    refused = diagnosis.verdict == "refused" or best is None
    return Evaluation(
        diagnosis=diagnosis,
        value=None if refused or best is None else estimates[best].value,
        limits=tally.anytime.limits(),
        estimates=estimates,
        intervals={**fixed(tally.moments, tally.rewards, tally.alpha), **tally.anytime.intervals()},
        logged=tally.logged / tally.moments.rows,
        level=1.0 - tally.alpha,
        bound=bound.value,
        bound_known=bound.known,
        sample=None,
    )


def of_terms(one: Estimator, terms: Terms, rewards: Range, alpha: float) -> Estimate:
    """The numbers of an estimator."""
    value, deviation = terms.estimate(one)
    knob = one.knob if np.isfinite(one.knob) else None
    return Estimate(one.name, value, deviation, knob, intervals.around(value, deviation, rewards, alpha))
