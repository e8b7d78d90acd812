"""Evaluation of many policies in one pass over a log, in memory that does not grow with it.

The weights of rows are computed for each block:

    w = policy(a | x) / p        block by block

A policy keeps sums and sequences (sufficient_stats.py), but no rows. If the log tells the largest possible weight of
each row (weight_bound.py), the bound of the sequences rises with the rows, as in `evaluate`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from onepass.evaluation import intervals
from onepass.evaluation.estimators import ESTIMATORS, Estimator, get_estimator
from onepass.evaluation.evaluate import (
    BLOCK,
    DEFAULT_ESTIMATORS,
    PREFERRED,
    Estimate,
    Evaluation,
    moment_intervals,
    open_fraction,
)
from onepass.evaluation.log import Log
from onepass.evaluation.policies import has_arm, make_policy, policy_changes, refuse_missing_arm
from onepass.evaluation.reward_models import ProgressivePredictor, make_reward_model
from onepass.evaluation.reward_range import Range, check_rewards, make_range
from onepass.evaluation.sample import Sample
from onepass.evaluation.sufficient_stats import PolicyStatistics, TermStatistics
from onepass.evaluation.support import add_padded
from onepass.evaluation.weight_bound import WeightBound
from onepass.foundation import check


def evaluate_many(
    log: Log | Iterable[Log],
    policies: Mapping[str, Any],
    *,
    reward_range: tuple[float, float] = (0.0, 1.0),
    estimators: Iterable[str | tuple[str, float]] = DEFAULT_ESTIMATORS,
    model: Any = None,
    level: float = 0.95,
    weight_bound: float | None = None,
    average: bool = False,
    progress: Callable[[int], object] | None = None,
) -> dict[str, Evaluation]:
    """Estimate what each policy would have earned per decision, in one pass over a log.

    Memory: some kilobytes a policy and one block of at most 10,000 rows.

    Parameters
    ----------
    log : Log or iterable of Log
        A log, or its blocks in their order.
    policies : dict of str to policy
        Policies by name, as for `evaluate`. For a stream: functions, bandits or arrays (K,).
    reward_range : tuple of float, default (0.0, 1.0)
        Least and largest possible reward. Limits rest on it.
    estimators : iterable of str or (str, float), default ("ips", "snips", "dm", "dr")
        Names of `onepass.evaluation.ESTIMATORS`, or (name, knob). Choosing a knob would need all rows.
    model : regressor, default None
        Reward model as for `evaluate`, shared by all policies. It predicts a block from the blocks before, and the
        first block in 5 parts, each from the parts before.
    level : float, default 0.95
        Confidence level of all limits, above 0 and below 1.
    weight_bound : float, default None
        Largest possible weight, as for `evaluate`.
    average : bool, default False
        True for limits of the average value so far, as for `evaluate`.
    progress : callable, default None
        Called with the number of rows after each block.

    Returns
    -------
    dict of str to Evaluation
        Evaluations by name. Their attribute `sample` is None, because rows are not kept.

    Raises
    ------
    ValueError
        If there is no policy or no row, or `evaluate` would refuse the arguments.
    """
    swept = sweep(
        log, policies, reward_range=reward_range, estimators=estimators, model=model, level=level,
        weight_bound=weight_bound, average=average, progress=progress,
    )  # fmt: skip
    return swept.evaluations()


class SweepResult(NamedTuple):
    """Result of one pass over a log, or over a part of it.

    Parameters
    ----------
    tallies : statistics of every policy, by name.
    bounds : largest possible weight of every policy, by name.
    masses : every policy's summed probability (K,) of each arm, if the logger's distributions are not known.
    chosen : number of times that each arm was chosen.
    rows : number of rows.
    armless : policies that always choose an arm that no row of the part has, by name.
    """

    tallies: dict[str, PolicyStatistics]
    bounds: dict[str, WeightBound]
    masses: dict[str, np.ndarray]
    chosen: np.ndarray
    rows: int
    armless: dict[str, Any]

    def concat(self, other: "SweepResult") -> "SweepResult":
        """Return the result for this part of a log followed by the part of `other`."""
        masses = {
            name: add_padded(self.masses.get(name, np.zeros(0)), other.masses.get(name, np.zeros(0)))
            for name in self.masses.keys() | other.masses.keys()
        }
        return SweepResult(
            {name: one.concat(other.tallies[name]) for name, one in self.tallies.items()},
            {name: one.concat(other.bounds[name]) for name, one in self.bounds.items()},
            masses,
            add_padded(self.chosen, other.chosen),
            self.rows + other.rows,
            {name: policy for name, policy in self.armless.items() if name in other.armless},
        )

    def evaluations(self) -> dict[str, Evaluation]:
        """Return the evaluation of every policy, by name.

        Raises ValueError if there was no row, or if no row has the arm of a policy.
        """
        if self.rows == 0:
            raise ValueError("log must have at least one row")
        for policy in self.armless.values():
            refuse_missing_arm(policy)
        found = {}
        for name, tally in self.tallies.items():
            whole, mass = copy(tally), self.masses.get(name, np.zeros(0))
            whole.unsupported += float(mass[add_padded(self.chosen, np.zeros(len(mass)))[: len(mass)] == 0].sum())
            found[name] = summarize_statistics(whole, self.bounds[name])
        return found


def sweep(
    log: Log | Iterable[Log],
    policies: Mapping[str, Any],
    *,
    reward_range: tuple[float, float] = (0.0, 1.0),
    estimators: Iterable[str | tuple[str, float]] = DEFAULT_ESTIMATORS,
    model: Any = None,
    level: float = 0.95,
    weight_bound: float | None = None,
    average: bool = False,
    progress: Callable[[int], object] | None = None,
) -> SweepResult:
    """Make one pass over a log, or a part of it, and return the statistics of all policies.

    `policies` maps names to policies. `reward_range` is the least and the largest possible reward, `level` the
    confidence level of limits, and `weight_bound` the largest possible weight. `model` is the reward model,
    `estimators` are names of estimators, and `average` is True for limits of the average value so far. `progress` is
    called with the number of rows after each block.
    """
    if not policies:
        raise ValueError("policies must hold at least one policy by name")
    rewards, alpha = make_range(reward_range), 1.0 - open_fraction("level", level)
    asked = tuple(_parse_estimator(each) for each in estimators)
    changing = {name: bool(average) or policy_changes(policy) for name, policy in policies.items()}
    tallies = {name: PolicyStatistics(rewards, asked, alpha, moves) for name, moves in changing.items()}
    bounds = {name: WeightBound(weight_bound) for name in policies}
    ahead = ProgressivePredictor(make_reward_model(model)) if any(one.models for one in asked) else None
    choices = {name: make_policy(policy, log) for name, policy in policies.items()} if isinstance(log, Log) else {}
    chosen, masses, start, armless = np.zeros(0), {}, 0, dict(policies)  # type: ignore[var-annotated]
    for block in _nonempty_blocks(log):
        check_rewards(block.rewards, rewards, start)
        rows = np.arange(len(block))
        q, known = (None, np.zeros(len(block), bool)) if ahead is None else ahead.predict(block)
        q = None if q is None else np.clip(q, rewards.least, rewards.largest)
        predicted = np.zeros(len(block)) if q is None else q[rows, block.arms]
        closed = None if block.distributions is None else block.distributions == 0.0
        closed = closed if closed is not None and closed.any() else None
        chosen = add_padded(chosen, np.bincount(block.arms, minlength=block.n_arms))
        armless = {name: policy for name, policy in armless.items() if not has_arm(policy, block)}
        for name, policy in policies.items():
            chooses = choices[name] if choices else make_policy(policy, block)
            p = chooses(block, start)
            w = p[rows, block.arms] / block.propensities
            values = np.zeros(len(block)) if q is None else np.einsum("ij,ij->i", p, q)
            missing, max_weights = 0.0 if closed is None else float(p[closed].sum()), bounds[name].update(block, p, w)
            sample = Sample(w, block.rewards, predicted, values, known)
            tallies[name].add(sample, max_weights, missing, bounds[name].ceiling)
            if block.distributions is None:
                masses[name] = add_padded(masses.get(name, np.zeros(0)), p.sum(axis=0))
        start += len(block)
        if progress is not None:
            progress(start)
    return SweepResult(tallies, bounds, masses, chosen, start, armless)


def _nonempty_blocks(log: Log | Iterable[Log]) -> Iterator[Log]:
    """Yield blocks of at most 10,000 rows, leaving out empty ones."""
    for part in (log,) if isinstance(log, Log) else log:
        yield from part.blocks(BLOCK) if len(part) > BLOCK else (part,) if len(part) else ()


def _parse_estimator(asked: str | tuple[str, float]) -> Estimator:
    """Return an estimator by name, or by name and knob."""
    name, knob = (asked, None) if isinstance(asked, str) else asked
    return get_estimator(check.choice("estimators", name, ESTIMATORS), knob)


def summarize_statistics(tally: PolicyStatistics, bound: WeightBound) -> Evaluation:
    """Return the diagnosis, estimates and limits of a policy from its statistics `tally`.

    `bound` gives the largest possible weight.
    """
    diagnosis = tally.diagnosis()
    estimates = {
        one.name: _estimate(one, terms, tally.rewards, tally.alpha)
        for one, terms in zip(tally.estimators, tally.terms, strict=True)
    }
    best = next((name for name in PREFERRED if name in estimates), next(iter(estimates), None))
    refused = diagnosis.verdict == "refused" or best is None
    return Evaluation(
        diagnosis=diagnosis,
        value=None if refused or best is None else estimates[best].value,
        limits=tally.anytime.limits(),
        estimates=estimates,
        intervals={**moment_intervals(tally.moments, tally.rewards, tally.alpha), **tally.anytime.intervals()},
        logged=tally.logged / tally.moments.rows,
        level=1.0 - tally.alpha,
        bound=bound.value,
        bound_known=bound.known,
        sample=None,
    )


def _estimate(one: Estimator, terms: TermStatistics, rewards: Range, alpha: float) -> Estimate:
    """Compute value, deviation and limits of estimator `one` from the sums `terms`.

    The limits are those of the normal distribution at level 1 - alpha, and `rewards` is the range of rewards.
    """
    value, deviation = terms.estimate(one)
    knob = one.knob if np.isfinite(one.knob) else None
    return Estimate(one.name, value, deviation, knob, intervals.normal_interval(value, deviation, rewards, alpha))
