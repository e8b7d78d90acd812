"""Comparison of policies with the present one on its log: paired differences, with limits at any time.

The paired difference of row i is

    D_i = (w_i - u_i) r_i,      w, u: weights of the candidate and of the present policy (1, if it wrote the log)

E[D | past] is the difference of their values at that decision. Limits of its average so far are far narrower than
limits of either value, because shared parts cancel. They are limits of running averages (running_averages.py), not of
bets on one fixed value: the policy that wrote a log has usually learned on the way, so no such value exists. With 0 <=
r <= 1 the lower limit is the larger of two limits, each at half of its alpha. The upper limit is the lower limit of the
exchanged pair.

    w r + u (1 - r) >= 0    has mean 1 + E[D] at most, however large weights are, and if the log has no support, too
    1 + D / M >= 0          has mean 1 + E[D] / M for u <= M: narrower for rare rewards, where M was known before

M is the given bound of the weights, or it follows from a uniform logger and a policy that does not learn. Otherwise M
doubles, from the bound of the first row, until it covers the largest bound. The first value of M has .8 of the alpha,
the next has half of the rest, and so on. For u = 1 both limits are the same.

A candidate is better if its lower limit is above 0, neither side is refused, and the largest weight of the present
policy is known. m candidates have alpha / m each. So with probability 1 - alpha, no candidate is ever called better
that is not better, whenever one looks. Limits for a finished experiment of a planned size are in fixed_sample.py.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from onepass.evaluation.diagnosis import Diagnosis, diagnose
from onepass.evaluation.evaluate import BLOCK, open_fraction
from onepass.evaluation.fixed_sample import (
    LOGGER_CHANGED,
    LoggerChange,
    adjusted_gain,
    cross_predict,
    gain_interval,
    logger_change,
)
from onepass.evaluation.log import Log
from onepass.evaluation.policies import has_arm, make_policy, policy_changes, refuse_missing_arm, resolve_policy
from onepass.evaluation.reward_range import Interval, Range, check_rewards, make_range
from onepass.evaluation.running_averages import RunningAverages
from onepass.evaluation.support import Support
from onepass.evaluation.weight_bound import WeightBound
from onepass.foundation import check
from onepass.foundation.html import make_html

FIRST = 0.8  # of an alpha: the part of the first scale of weights, the ones above it share the rest by halves
ROUNDED = 1e-12  # of a bound: what rounding may add to a weight
CONDITIONS = (
    "fixed sample: for one look, at a number of decisions that was planned before, of one logging policy that did not "
    "learn; asymptotic"
)


class WeightLimits(NamedTuple):
    """Bounds of a policy's importance weights on a log.

    Parameters
    ----------
    largest : largest possible weight of any row.
    first : largest possible weight of the first row, if the logger learned, because bounds of later rows then depend on
        earlier draws. None if all bounds were known beforehand.
    """

    largest: float
    first: float | None


class PolicyWeights(NamedTuple):
    """Importance weights of a policy on a log.

    Parameters
    ----------
    weights : (n,) importance weights.
    bounds : bounds of the weights, None if not known.
    unsupported : mean probability that the policy gives to arms that the logger never chose, NaN if not known.
    changes : True if the policy changes from row to row.
    values : predicted values (n,) of the policy, None without a model.
    """

    weights: np.ndarray
    bounds: WeightLimits | None
    unsupported: float
    changes: bool
    values: np.ndarray | None = None


@dataclass(frozen=True)
class Difference:
    """Difference between a candidate and the present policy.

    Parameters
    ----------
    name : str
        Name of the candidate.
    gain : float
        Estimated gain over the present policy, in units of rewards per decision.
    limits : Interval
        Limits of the gain that hold at every time.
    fixed_sample : Interval or None
        Limits for one look at a planned end, of a logging policy that did not learn. None if a side is refused or
        learns, or if the log shows that its logger changed.
    better : bool
        True if the lower limit at all times is above 0, the present policy's weights are bounded, and no side is
        refused.
    diagnosis : Diagnosis
        Diagnosis of the candidate's weights.
    adjusted : Interval or None
        Fixed-sample limits of `adjusted_gain`. None without a model, or if `fixed_sample` is None.
    adjusted_gain : float or None
        Gain with regression adjustment for contexts. None where `adjusted` is.
    """

    name: str
    gain: float
    limits: Interval
    fixed_sample: Interval | None
    better: bool
    diagnosis: Diagnosis
    adjusted: Interval | None = None
    adjusted_gain: float | None = None


@dataclass(frozen=True)
class Comparison:
    """Comparison of candidates with the present policy.

    Parameters
    ----------
    differences : tuple of Difference
        One difference per candidate, in their order.
    best : str or None
        Name of the better candidate with the highest lower limit. None if no candidate is certainly better.
    level : float
        Confidence level of all limits together.
    present : Diagnosis
        Diagnosis of the present policy's weights.
    bound_known : bool
        True if the largest possible weight of the present policy is known. If not, no candidate is called better.
    rows : int
        Number of decisions, including rows of a frame that were left out because of invalid cells.
    planned : int or None
        Number of decisions that was planned before the test began. None if it was not given.
    logger_changed : bool
        True if the log shows that the logger changed while the log was written. Then there are no fixed-sample limits.
    """

    differences: tuple[Difference, ...]
    best: str | None
    level: float
    present: Diagnosis
    bound_known: bool
    rows: int = 0
    planned: int | None = None
    logger_changed: bool = False

    def _answer(self) -> str:
        none = "none is certainly better than the present policy"
        return f"{none if self.best is None else f'best: {self.best}'} (level {self.level:g})"

    def _notes(self) -> list[str]:
        """Return sentences on the assumptions behind the numbers."""
        notes = []
        if self.present.verdict != "ok":
            notes.append(f"the present policy is {self.present.verdict}: {self.present.reasons[0]}")
        if not self.bound_known:
            notes.append("how large weights of the present policy can be is not known: give weight_bound")
        if self.logger_changed:
            notes.append(LOGGER_CHANGED)
        if any(one.fixed_sample is not None for one in self.differences):
            notes.append(CONDITIONS)
            if self.planned is not None and self.planned != self.rows:
                notes.append(f"{self.planned:,} decisions were planned, and there are {self.rows:,}: rely on the limits"
                             " at any time")  # fmt: skip
            elif self.planned is not None:
                notes.append(f"all {self.planned:,} planned decisions are there")
        return notes

    def _repr_html_(self) -> str:
        head = ["candidate", "gain", "limits at any time", "fixed sample", "verdict"]
        adjusted = any(one.adjusted is not None for one in self.differences)
        rows = []
        for one in self.differences:
            why = "better" if one.better else "; ".join((one.diagnosis.verdict, *one.diagnosis.reasons[:1]))
            rows.append([one.name, one.gain, _format_ends(one.limits), _format_ends(one.fixed_sample), why])
            if adjusted:
                rows[-1].append("-" if one.adjusted_gain is None else one.adjusted_gain)
                rows[-1].append(_format_ends(one.adjusted))
        return make_html(self._answer(), head + ["adjusted gain", "adjusted"] * adjusted, rows, self._notes())

    def plot(self, axes: Any = None) -> Any:
        """Draw the gains with their limits, and write the numbers beside them.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, default None
            Axes to draw on. None makes a figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.

        Raises
        ------
        ModuleNotFoundError
            If matplotlib is not installed.
        """
        from onepass.evaluation.plots import draw_differences

        return draw_differences(self, axes)

    def __str__(self) -> str:
        adjusted = any(one.adjusted is not None for one in self.differences)
        lines = [self._answer()]
        lines.append(f"{'candidate':<20}{'gain':>12}  {'limits at any time':<26}  fixed sample")
        for one in self.differences:
            why = "" if one.diagnosis.verdict == "ok" else f"  {one.diagnosis.verdict}: {one.diagnosis.reasons[0]}"
            fixed = _format_ends(one.fixed_sample)
            lines.append(f"{one.name:<20}{one.gain:+12.6g}  {_format_ends(one.limits):<26}  {fixed}{why}")
            if adjusted and one.adjusted_gain is not None:
                name = "  with covariates"
                lines.append(f"{name:<20}{one.adjusted_gain:+12.6g}  {'':<26}  {_format_ends(one.adjusted)}")
        lines += self._notes()
        return "\n".join(lines)


def _format_ends(limits: Interval | None) -> str:
    """Format the limits of a gain as text."""
    return "-" if limits is None else f"{limits.lower:+.5g} to {limits.upper:+.5g}"


def compare(
    log: Log | Iterable[Log],
    candidates: Mapping[str, Any] | Sequence[str],
    *,
    present: Any = None,
    reward_range: tuple[float, float] = (0.0, 1.0),
    level: float = 0.95,
    weight_bound: float | None = None,
    model: Any = None,
    planned: int | None = None,
) -> Comparison:
    """Compare candidates with the present policy on one log.

    A candidate costs O(n). The result has limits that hold at every time, and fixed-sample limits for a test of
    planned size.

    Parameters
    ----------
    log : Log or iterable of Log
        Log of decisions, or its blocks in their order. Of a block only a few numbers per decision stay in memory. With
        blocks, a policy must be an arm, a function, a bandit, an object with `action_probabilities`, or an array of
        shape (K,).
    candidates : dict of str to policy, or sequence of str
        Policies by name, as for `evaluate`. Or names of arms, each a policy that always chooses this arm.
    present : policy, default None
        Policy to beat. None means the policy that wrote the log.
    reward_range : tuple of float, default (0.0, 1.0)
        Least and largest possible reward.
    level : float, default 0.95
        Probability, above 0 and below 1, that every candidate that is called better is better.
    weight_bound : float, default None
        Largest possible weight, at least 1. None computes it from the log, as `evaluate` does. If it is not known for
        the weights of `present`, no candidate is called better.
    model : regressor, default None
        Reward model for regression adjustment of fixed-sample limits: a scikit-learn regressor, or `RidgeModel()`. None
        means no adjustment. Each row is predicted by a model that was fitted on other rows, so `log` must be a `Log`.
    planned : int, default None
        Number of decisions that was planned before the test began (`sample_size`). The result says whether the log has
        this number.

    Returns
    -------
    Comparison
        Differences of all candidates, and the best one.

    Raises
    ------
    ValueError
        If there are no candidates, no decisions, a weight exceeds `weight_bound`, or `evaluate` would refuse the
        arguments. Also if there are blocks and a `model`.
    """
    if not candidates:
        raise ValueError("candidates must hold at least one policy by name")
    policies = candidates if isinstance(candidates, Mapping) else {str(name): name for name in candidates}
    rewards, alpha = make_range(reward_range), 1.0 - open_fraction("level", level)
    planned = None if planned is None else check.integer("planned", planned, 1)
    if isinstance(log, Log):
        if len(log) == 0:
            raise ValueError("log must have at least one row")
        predicted = None if model is None else cross_predict(log, model)
        chosen = None if predicted is None else predicted[np.arange(len(log)), log.arms]
        base = logging_policy_weights(len(log))._replace(values=chosen)
        if present is not None:
            base = policy_weights(log, present, weight_bound, predicted)
        each = {name: policy_weights(log, policy, weight_bound, predicted) for name, policy in policies.items()}
        earned, changed, dirty = log.rewards, logger_change(log), 0 if log.dirty is None else len(log.dirty)
    elif model is not None:
        raise ValueError("log must be a Log for an adjustment by a model, not its blocks")
    else:
        chosen, dirty = None, 0
        base, each, earned, changed = _block_weights(log, policies, present, weight_bound)
    found = summarize_comparison(each, base, earned, rewards, alpha, chosen, changed)
    return replace(found, rows=len(earned) + dirty, planned=planned, logger_changed=changed)


def _block_weights(
    blocks: Iterable[Log], policies: Mapping[str, Any], present: Any, weight_bound: float | None
) -> tuple[PolicyWeights, dict[str, PolicyWeights], np.ndarray, bool]:
    """Read the blocks of a log once.

    Returns the weights of the present policy and of each policy by name, the rewards (n,), and True if the logger
    changed.
    """
    found, base = dict[str, _BlockWeights](), None
    rewards, change = list[np.ndarray](), LoggerChange()
    for block in blocks:
        if not rewards:  # files are loaded once
            found = {name: _BlockWeights(resolve_policy(one, block), weight_bound) for name, one in policies.items()}
            base = None if present is None else _BlockWeights(resolve_policy(present, block), weight_bound)
        rewards.append(block.rewards)
        change.add(block)
        for one in (*found.values(), *([] if base is None else [base])):
            one.add(block, make_policy(one.policy, block)(block, 0))
    if not rewards:
        raise ValueError("log must have at least one row")
    earned = np.concatenate(rewards)
    weights = logging_policy_weights(len(earned)) if base is None else base.result()
    return weights, {name: one.result() for name, one in found.items()}, earned, change.has_changed


def logging_policy_weights(rows: int) -> PolicyWeights:
    """Return the weights of the policy that wrote a log of `rows` rows: 1 in each row."""
    return PolicyWeights(np.ones(rows), WeightLimits(1.0, None), 0.0, False)


def summarize_comparison(
    candidates: Mapping[str, PolicyWeights],
    base: PolicyWeights,
    earned: np.ndarray,
    rewards: Range,
    alpha: float,
    predicted: np.ndarray | None = None,
    logger_changed: bool = False,
) -> Comparison:
    """Return the comparison of candidates with the present policy `base`, by weights and rewards `earned` (n,).

    `predicted` (n,) are rewards of the chosen arms as a model predicts them. If `logger_changed`, there are no limits
    for a fixed sample. `rewards` is the range of possible rewards, and `alpha` the error probability of all limits
    together. Raises ValueError if a reward is out of range.
    """
    found = []
    r = (check_rewards(earned, rewards) - rewards.least) / rewards.span  # a constant off all changes no difference
    present, known = diagnose(base.weights, base.unsupported), base.bounds is not None
    for name, one in candidates.items():
        diagnosis, part = diagnose(one.weights, one.unsupported), alpha / len(candidates)
        believed = "refused" not in (diagnosis.verdict, present.verdict)
        still = believed and not (one.changes or base.changes or logger_changed)
        limits = _unscale(
            Interval(lower_gain(one, base, r, part / 2.0), -lower_gain(base, one, r, part / 2.0)), rewards
        )
        fixed = _unscale(gain_interval(one.weights, base.weights, r, part), rewards) if still else None
        gain = float(((one.weights - base.weights) * r).mean()) * rewards.span
        ahead, adjusted = None, None
        if still and predicted is not None and one.values is not None and base.values is not None:
            others, rest = base.values / rewards.span, (earned - predicted) / rewards.span
            ahead, narrow = adjusted_gain(one.weights, base.weights, one.values / rewards.span, others, rest, part)
            ahead, adjusted = ahead * rewards.span, _unscale(narrow, rewards)
        better = believed and known and limits.lower > 0.0
        found.append(Difference(name, gain, limits, fixed, better, diagnosis, adjusted, ahead))
    best = max((one for one in found if one.better), key=lambda one: one.limits.lower, default=None)
    return Comparison(tuple(found), None if best is None else best.name, 1.0 - alpha, present, known, len(earned))


def _unscale(limits: Interval, rewards: Range) -> Interval:
    """Return limits of a gain in units of rewards, from limits for rewards scaled to [0, 1]."""
    return Interval(limits.lower * rewards.span, limits.upper * rewards.span)


def lower_gain(one: PolicyWeights, base: PolicyWeights, r: np.ndarray, alpha: float) -> float:
    """Return a lower limit of a candidate's average gain over the present policy, for rewards r (n,) in [0, 1].

    The gain is the average of E[(w - u) r | past], where `one` holds the candidate's weights w and `base` the present
    policy's weights u. The probability that the gain is ever below the limit is at most `alpha`.
    """
    w, u = one.weights, base.weights
    either, bounds = w * r + u * (1.0 - r), base.bounds
    if bounds is None or (bounds == (1.0, None) and bool((u == 1.0).all())):
        return _lower_mean(either, alpha) - 1.0
    scale, share = weight_scale(bounds)
    lost = 0.0 if np.isnan(base.unsupported) else base.unsupported
    bounded = (_lower_mean(np.maximum(1.0 + (w - u) * r / scale, 0.0), share * alpha / 2.0) - 1.0) * scale - lost
    return max(_lower_mean(either, alpha / 2.0) - 1.0, bounded)


def weight_scale(bounds: WeightLimits) -> tuple[float, float]:
    """Return a bound of all weights, and the share of the error probability that is spent on it, at most 1.

    If `bounds` were not all known beforehand, the bound is taken from a grid of doublings of the first one.
    """
    if bounds.first is None:
        return bounds.largest, 1.0
    doublings = max(int(np.ceil(np.log2(bounds.largest / bounds.first))), 0)
    return bounds.first * 2.0**doublings, FIRST if doublings == 0 else (1.0 - FIRST) * 0.5**doublings


def _lower_mean(x: np.ndarray, alpha: float) -> float:
    """Return a lower limit of the average expectation of x (n,), where x is at least 0.

    Each expectation is given the entries before. With probability 1 - `alpha` no limit, after any number n of entries,
    exceeds the average.
    """
    averages = RunningAverages(1)
    averages.add(x[:, None])
    return averages.lower(0, alpha)


def policy_weights(
    log: Log, policy: Any, weight_bound: float | None, predicted: np.ndarray | None = None
) -> PolicyWeights:
    """Compute the weights of a policy on a log and, from predicted rewards `predicted` (n, K), its values.

    With `predicted` None no values are computed. Raises ValueError if a weight exceeds `weight_bound`, unless that is
    None.
    """
    chooses, found = make_policy(policy, log), _BlockWeights(policy, weight_bound)
    for place, block in enumerate(log.blocks(BLOCK)):
        start = place * BLOCK
        found.add(block, chooses(block, start), None if predicted is None else predicted[start : start + len(block)])
    return found.result()


class _BlockWeights:
    """Importance weights of a policy on the blocks of a log.

    `policy` is the policy, and `weight_bound` its largest possible weight, None to take it from the log.
    """

    def __init__(self, policy: Any, weight_bound: float | None) -> None:
        self.policy, self._bound = policy, WeightBound(weight_bound)
        self._weights, self._max_weights, self._values = list[np.ndarray](), list[np.ndarray](), list[np.ndarray]()
        self._support, self._has_distributions, self._has_arm = Support(), False, False

    def add(self, block: Log, p: np.ndarray, predicted: np.ndarray | None = None) -> None:
        """Add a block with the policy's probabilities p (n, K), and the rewards `predicted` (n, K) if there are any."""
        weights = p[np.arange(len(block)), block.arms] / block.propensities
        most = self._bound.update(block, p, weights)
        self._weights.append(weights)
        self._max_weights.append(np.ones(len(block)) if most is None else most)
        self._support.add(block, p)
        self._has_distributions = self._has_distributions or block.distributions is not None
        self._has_arm = self._has_arm or has_arm(self.policy, block)
        if predicted is not None:
            self._values.append((p * predicted).sum(axis=1))

    def result(self) -> PolicyWeights:
        """Return the weights of all blocks.

        Raises ValueError if a weight exceeds the bound that was given, or no block has the arm of the policy.
        """
        if not self._has_arm:
            refuse_missing_arm(self.policy)
        weights, changes = np.concatenate(self._weights), policy_changes(self.policy)
        learns = changes or self._has_distributions  # an even logger does not
        bounds = _make_weight_limits(weights, np.concatenate(self._max_weights), self._bound, learns)
        values = np.concatenate(self._values) if self._values else None
        return PolicyWeights(weights, bounds, self._support.mass / len(weights), changes, values)


def _make_weight_limits(
    weights: np.ndarray, max_weights: np.ndarray, bound: WeightBound, learns: bool
) -> WeightLimits | None:
    """Return the bounds of weights (n,): the given `bound`, or the rows' bounds (n,) if the log tells them, else None.

    `learns` is True if bounds may depend on earlier draws, not only on contexts.
    """
    if bound.given is None:
        largest = max(float(max_weights.max(initial=1.0)), 1.0)
        return WeightLimits(largest, max(float(max_weights[0]), 1.0) if learns else None) if bound.known else None
    above = np.flatnonzero(weights > bound.given * (1.0 + ROUNDED))
    if above.size:
        raise ValueError(
            f"weight_bound must be at least every weight, got {bound.given:g}, and row {above[0]} has "
            f"{weights[above[0]]:g}: raise it, or leave it out"
        )
    return WeightLimits(bound.given, None)
