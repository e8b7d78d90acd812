"""Which of several policies is better than the present one, by a log of it: paired differences, limits at any time.

    D_i = (w_i - u_i) r_i,      w, u: weights of the candidate and of the present policy (1, if it wrote the log)

E[D | past] is the difference of their values at that decision; limits of its average so far are far narrower than those
of either value, for what both share cancels. They are those of running averages (running.py), not of bets on one value
that stays: the policy that wrote a log has mostly learned on the way, and then there is none.

    1 + D / (largest u) >= 0  for the lower limit,    1 - D / (largest w) >= 0  for the upper one,    0 <= r <= 1
    w (1 - r) + r >= 0  for the upper one where u = 1:  its mean is 1 - E[D] whatever the largest w, for E[w] = 1

A candidate is better when its lower limit is above 0; m candidates have alpha / m each, so that with probability
1 - alpha none is called better that is not, whenever one looks.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from onepass.evaluation.diagnosis import Diagnosis, diagnosed
from onepass.evaluation.evaluate import BLOCK, Bound, open_fraction
from onepass.evaluation.log import Log
from onepass.evaluation.policies import policy_of
from onepass.evaluation.ranges import Interval, Range, checked_range
from onepass.evaluation.running import RunningAverages


@dataclass(frozen=True)
class Difference:
    """name of the candidate; gain: the mean of D; limits of it at all times; better: whether the lower one is above 0
    and the log was not refused; diagnosis of the candidate's weights."""

    name: str
    gain: float
    limits: Interval
    better: bool
    diagnosis: Diagnosis


@dataclass(frozen=True)
class Comparison:
    """differences: one a candidate, in their order; best: the name of the better candidate with the highest lower
    limit, None where no one is better; level: of all limits together."""

    differences: tuple[Difference, ...]
    best: str | None
    level: float

    def __str__(self) -> str:
        lines = [f"best: {self.best or 'the present policy'} (level {self.level:g})"]
        for one in self.differences:
            why = "" if one.diagnosis.verdict == "ok" else f"  {one.diagnosis.verdict}: {one.diagnosis.reasons[0]}"
            lines.append(f"{one.name:<20}{one.gain:+12.6g}  {one.limits.lower:+.6g} to {one.limits.upper:+.6g}{why}")
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
    Returns a `Comparison`. ValueError without candidates, and as `evaluate`. Cost O(n) a candidate.
    """
    if not candidates:
        raise ValueError("candidates must hold at least one policy by name")
    rewards, alpha = checked_range(reward_range), 1.0 - open_fraction("level", level)
    base, _, base_bound = weighed(log, present, weight_bound) if present is not None else (np.ones(len(log)), 0.0, 1.0)
    each = {name: weighed(log, policy, weight_bound) for name, policy in candidates.items()}
    weights, missing, bounds = ({name: one[part] for name, one in each.items()} for part in range(3))
    return summary_of(weights, base, log.rewards, rewards, alpha, bounds, base_bound, missing)  # type: ignore[arg-type]


def summary_of(
    candidates: Mapping[str, np.ndarray],
    base: np.ndarray,
    earned: np.ndarray,
    rewards: Range,
    alpha: float,
    bounds: Mapping[str, float],
    base_bound: float,
    missing: Mapping[str, float],
) -> Comparison:
    """Weights (n,) of candidates against those of the present policy, rewards (n,), their largest weights, and masses
    without support where they are known."""
    found = []
    r = (earned - rewards.least) / rewards.span  # E[w] = E[u] = 1: a constant off all rewards changes no difference
    for name, weights in candidates.items():
        diagnosis = diagnosed(weights, missing.get(name, float("nan")))
        gains = (weights - base) * r
        limits = limits_of(gains, weights, base, r, base_bound, bounds[name], alpha / len(candidates))
        limits = Interval(limits.lower * rewards.span, limits.upper * rewards.span)
        better = diagnosis.verdict != "refused" and limits.lower > 0.0
        found.append(Difference(name, float(gains.mean()) * rewards.span, limits, better, diagnosis))
    best = max((one for one in found if one.better), key=lambda one: one.limits.lower, default=None)
    return Comparison(tuple(found), None if best is None else best.name, 1.0 - alpha)


def limits_of(
    gains: np.ndarray, weights: np.ndarray, base: np.ndarray, r: np.ndarray, most_u: float, most_w: float, alpha: float
) -> Interval:
    """Of the average of differences (n,), rewards in [0, 1]; the largest weights of the present policy and of the
    candidate."""
    own = bool(np.all(base == 1.0))
    averages, scale = RunningAverages(3), most_w if np.isfinite(most_w) else max(float(weights.max()), 1.0)
    averages.add(np.column_stack([1.0 + gains / most_u, 1.0 - gains / scale, weights * (1.0 - r) + r]))
    lower = (averages.lower(0, alpha / 2.0) - 1.0) * most_u
    if not own:
        return Interval(lower, (1.0 - averages.lower(1, alpha / 2.0)) * scale)
    above = [(1.0 - averages.lower(2, alpha / 4.0))]
    if np.isfinite(most_w):
        above.append((1.0 - averages.lower(1, alpha / 4.0)) * scale)
    return Interval(lower, min(above))


def weighed(log: Log, policy: Any, weight_bound: float | None) -> tuple[np.ndarray, float, float]:
    """Weights (n,) of a policy, its mass without support, and the largest weight that there can be."""
    chooses, bound, out, missing = policy_of(policy, log), Bound(weight_bound), np.empty(len(log)), 0.0
    for place, block in enumerate(log.blocks(BLOCK)):
        start = place * BLOCK
        p = chooses(block, start)
        w = p[np.arange(len(block)), block.arms] / block.propensities
        out[start : start + len(block)] = w
        bound.see(block, p, w)
        missing += float((p * ~block.support).sum())
    return out, missing / max(len(log), 1), bound.value
