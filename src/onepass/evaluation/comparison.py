"""Which of several policies is better than the present one, by a log of it: paired differences, limits at any time.

    D_i = (w_i - u_i) r_i,      w, u: weights of the candidate and of the present policy (1, if it wrote the log)

E[D | past] is the difference of their values at that decision; limits of its average so far are far narrower than those
of either value, for what both share cancels. They are those of running averages (running.py), not of bets on one value
that stays: the policy that wrote a log has mostly learned on the way, and then there is none. With 0 <= r <= 1 the
lower limit is the larger of two, each at half of its alpha (and the upper one is the lower one of the exchanged pair):

    w r + u (1 - r) >= 0    has mean 1 + E[D] at most, however large weights are, and if the log has no support, too
    1 + D / M >= 0          has mean 1 + E[D] / M for u <= M: narrower for rare rewards, where M was known before

M is the bound that is given, or that of an even logger and a policy that does not learn. Else it doubles from the bound
of the first row until it covers the largest one: the first scale has .8 of the alpha, the ones above share the rest by
halves. For u = 1 both limits are one.

A candidate is better when its lower limit is above 0, neither side is refused, and the largest weight of the present
policy is known; m candidates have alpha / m each, so that with probability 1 - alpha none is called better that is not,
whenever one looks.

    fixed sample    S(w) - S(u) +- z deviations,    S(w) = sum w r / sum w        of one look at a planned end

of clicks with half a success and half a failure more a side, so that few clicks, or few rows without one, do not feign
a small variance; for two arms of an experiment that is the textbook's interval of two proportions. It needs one logging
policy that did not learn, a number of rows that was fixed before, and enough of both: it holds asymptotically.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from onepass.evaluation import intervals
from onepass.evaluation.diagnosis import Diagnosis, diagnose
from onepass.evaluation.evaluate import BLOCK, open_fraction
from onepass.evaluation.log import Log
from onepass.evaluation.policies import make_policy, policy_changes
from onepass.evaluation.reward_range import Interval, Range, check_rewards, make_range
from onepass.evaluation.running_averages import RunningAverages
from onepass.evaluation.weight_bound import WeightBound

FIRST = 0.8  # of an alpha: the part of the first scale of weights, the ones above it share the rest by halves
HALF = 0.5  # of a success and of a failure, that clicks have more
ROUNDED = 1e-12  # of a bound: what rounding may add to a weight
CONDITIONS = (
    "fixed sample: for one look, at a number of decisions that was planned before, of one logging policy that did not "
    "learn; asymptotic"
)


class WeightLimits(NamedTuple):
    """largest: no weight can have been larger; first: the bound of the first row, where what was drawn before may have
    a part in the bounds of rows, None where it has none."""

    largest: float
    first: float | None


class PolicyWeights(NamedTuple):
    """weights (n,) of a policy on a log; bounds of them, None where they are not known; unsupported: the policy's mean
    mass on arms that the logger never chose, NaN where that is not known; changes: whether it is another policy from
    row to row."""

    weights: np.ndarray
    bounds: WeightLimits | None
    unsupported: float
    changes: bool


@dataclass(frozen=True)
class Difference:
    """name of the candidate; gain: the mean of D; limits of it at all times; fixed_sample: limits for one look at a
    planned end, of a logging policy that did not learn, None where a side was refused or learns; better: whether the
    lower limit at all times is above 0, the bound of the present policy's weights known, and neither side refused;
    diagnosis of the candidate's weights."""

    name: str
    gain: float
    limits: Interval
    fixed_sample: Interval | None
    better: bool
    diagnosis: Diagnosis


@dataclass(frozen=True)
class Comparison:
    """differences: one a candidate, in their order; best: the name of the better candidate with the highest lower
    limit, None where none is certainly better; level: of all limits together; present: the diagnosis of the present
    policy's weights; bound_known: whether it is known how large these can be (if not, none is called better)."""

    differences: tuple[Difference, ...]
    best: str | None
    level: float
    present: Diagnosis
    bound_known: bool

    def __str__(self) -> str:
        none = "none is certainly better than the present policy"
        lines = [f"{none if self.best is None else f'best: {self.best}'} (level {self.level:g})"]
        lines.append(f"{'candidate':<20}{'gain':>12}  {'limits at any time':<26}  fixed sample")
        for one in self.differences:
            why = "" if one.diagnosis.verdict == "ok" else f"  {one.diagnosis.verdict}: {one.diagnosis.reasons[0]}"
            ends = f"{one.limits.lower:+.5g} to {one.limits.upper:+.5g}"
            fixed = "-" if one.fixed_sample is None else "{:+.5g} to {:+.5g}".format(*one.fixed_sample)
            lines.append(f"{one.name:<20}{one.gain:+12.6g}  {ends:<26}  {fixed}{why}")
        if self.present.verdict != "ok":
            lines.append(f"the present policy is {self.present.verdict}: {self.present.reasons[0]}")
        if not self.bound_known:
            lines.append("how large weights of the present policy can be is not known: give weight_bound")
        if any(one.fixed_sample is not None for one in self.differences):
            lines.append(CONDITIONS)
        return "\n".join(lines)


def compare(
    log: Log,
    candidates: dict[str, Any],
    *,
    present: Any = None,
    reward_range: tuple[float, float] = (0.0, 1.0),
    level: float = 0.95,
    weight_bound: float | None = None,
) -> Comparison:
    """Candidates against the present policy, all on one log.

    log: a `Log`; candidates: policies by name, as for `evaluate`; present: the policy to beat, None (default): the one
    that wrote the log; reward_range, weight_bound: as for `evaluate`; level: with which no candidate is called better
    that is not, above 0 and below 1 (default 0.95).
    Returns a `Comparison`. ValueError without candidates, for a weight above `weight_bound`, and as `evaluate`. Cost
    O(n) a candidate.
    """
    if not candidates:
        raise ValueError("candidates must hold at least one policy by name")
    rewards, alpha = make_range(reward_range), 1.0 - open_fraction("level", level)
    base = logging_policy_weights(len(log)) if present is None else policy_weights(log, present, weight_bound)
    each = {name: policy_weights(log, policy, weight_bound) for name, policy in candidates.items()}
    return summarize_comparison(each, base, log.rewards, rewards, alpha)


def logging_policy_weights(rows: int) -> PolicyWeights:
    """Weights of the policy that wrote a log."""
    return PolicyWeights(np.ones(rows), WeightLimits(1.0, None), 0.0, False)


def summarize_comparison(
    candidates: Mapping[str, PolicyWeights], base: PolicyWeights, earned: np.ndarray, rewards: Range, alpha: float
) -> Comparison:
    """Candidates against the present policy, by their weights and rewards (n,). ValueError for rewards out of range."""
    found = []
    r = (check_rewards(earned, rewards) - rewards.least) / rewards.span  # a constant off all changes no difference
    present, known = diagnose(base.weights, base.unsupported), base.bounds is not None
    for name, one in candidates.items():
        diagnosis, part = diagnose(one.weights, one.unsupported), alpha / len(candidates)
        believed = "refused" not in (diagnosis.verdict, present.verdict)
        still = believed and not (one.changes or base.changes)
        limits = _unscale(
            Interval(lower_gain(one, base, r, part / 2.0), -lower_gain(base, one, r, part / 2.0)), rewards
        )
        fixed = _unscale(gain_interval(one.weights, base.weights, r, part), rewards) if still else None
        gain = float(((one.weights - base.weights) * r).mean()) * rewards.span
        found.append(Difference(name, gain, limits, fixed, believed and known and limits.lower > 0.0, diagnosis))
    best = max((one for one in found if one.better), key=lambda one: one.limits.lower, default=None)
    return Comparison(tuple(found), None if best is None else best.name, 1.0 - alpha, present, known)


def _unscale(limits: Interval, rewards: Range) -> Interval:
    """Limits of a gain in units of rewards."""
    return Interval(limits.lower * rewards.span, limits.upper * rewards.span)


def lower_gain(one: PolicyWeights, base: PolicyWeights, r: np.ndarray, alpha: float) -> float:
    """The limit below which the average of E[(w - u) r | past] is, ever, with probability `alpha` at most; r (n,) in
    [0, 1]."""
    w, u = one.weights, base.weights
    either, bounds = w * r + u * (1.0 - r), base.bounds
    if bounds is None or (bounds == (1.0, None) and bool((u == 1.0).all())):
        return _lower_mean(either, alpha) - 1.0
    scale, share = weight_scale(bounds)
    lost = 0.0 if np.isnan(base.unsupported) else base.unsupported
    bounded = (_lower_mean(np.maximum(1.0 + (w - u) * r / scale, 0.0), share * alpha / 2.0) - 1.0) * scale - lost
    return max(_lower_mean(either, alpha / 2.0) - 1.0, bounded)


def weight_scale(bounds: WeightLimits) -> tuple[float, float]:
    """A scale that covers all weights, of a grid that was known before, and the part of an alpha that it has."""
    if bounds.first is None:
        return bounds.largest, 1.0
    doublings = max(int(np.ceil(np.log2(bounds.largest / bounds.first))), 0)
    return bounds.first * 2.0**doublings, FIRST if doublings == 0 else (1.0 - FIRST) * 0.5**doublings


def _lower_mean(x: np.ndarray, alpha: float) -> float:
    """The limit below which the average of expectations of x (n,), at least 0, is, ever, with probability `alpha` at
    most."""
    averages = RunningAverages(1)
    averages.add(x[:, None])
    return averages.lower(0, alpha)


def gain_interval(w: np.ndarray, u: np.ndarray, r: np.ndarray, alpha: float) -> Interval:
    """Limits of the difference of self-normalized values for one look at a planned end; r (n,) in [0, 1]."""
    more = HALF if bool(((r == 0.0) | (r == 1.0)).all()) else 0.0
    (one, terms, rest), (two, others, left) = _self_normalize(w, r, more), _self_normalize(u, r, more)
    return intervals.normal_interval(
        one - two, float(np.sqrt(((terms - others) ** 2).sum() + rest + left)), Range(-1.0, 1.0), alpha
    )


def _self_normalize(w: np.ndarray, r: np.ndarray, more: float) -> tuple[float, np.ndarray, float]:
    """S(w) with `more` successes and failures of the weight of an effective row; terms (n,), the sum of whose squares
    is its variance, but for the last number, which is that of these."""
    row = float((w @ w) / w.sum())
    total = float(w.sum()) + 2.0 * more * row
    value = (float(w @ r) + more * row) / total
    return value, w * (r - value) / total, more * ((1.0 - value) ** 2 + value**2) * (row / total) ** 2


def policy_weights(log: Log, policy: Any, weight_bound: float | None) -> PolicyWeights:
    """Weights of a policy on a log. ValueError for one above `weight_bound`."""
    chooses, bound, out, missing = make_policy(policy, log), WeightBound(weight_bound), np.empty(len(log)), 0.0
    max_weights, whole = np.ones(len(log)), None if log.distributions is not None else log.support
    for place, block in enumerate(log.blocks(BLOCK)):
        start = place * BLOCK
        rows = slice(start, start + len(block))
        p = chooses(block, start)
        out[rows] = p[np.arange(len(block)), block.arms] / block.propensities
        most = bound.update(block, p, out[rows])
        max_weights[rows] = 1.0 if most is None else most
        missing += float((p * ~(block.support if whole is None else whole)).sum())
    learns = policy_changes(policy) or log.distributions is not None  # an even logger does not
    bounds = _make_weight_limits(out, max_weights, bound, learns)
    return PolicyWeights(out, bounds, missing / max(len(log), 1), policy_changes(policy))


def _make_weight_limits(
    weights: np.ndarray, max_weights: np.ndarray, bound: WeightBound, learns: bool
) -> WeightLimits | None:
    """Bounds of weights (n,): the one that was given, or those of each row (n,) where the log tells them. learns:
    whether they may depend on what was drawn before, not on contexts alone."""
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
