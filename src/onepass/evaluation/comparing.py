"""Which of several policies is better than the present one, by a log of it: paired differences, limits at any time.

    D_i = (w_i - u_i) r_i,      w, u: weights of the candidate and of the present policy (1, if it wrote the log)

E[D] is the difference of their values; limits of it are far narrower than those of either, for what both share cancels.
A candidate is better when its lower limit is above 0; m candidates have alpha / m each, so that with probability
1 - alpha none is called better that is not, whenever one looks.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from onepass.evaluation.betting import BettingSequence
from onepass.evaluation.diagnosis import Diagnosis, diagnosed
from onepass.evaluation.evaluate import BLOCK, Bound, open_fraction
from onepass.evaluation.log import Log
from onepass.evaluation.policies import policy_of
from onepass.evaluation.ranges import Interval, Range, checked_range


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
    Returns a `Comparison`. ValueError without candidates, and as `evaluate`. Cost O(600 n) a candidate.
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
    r = earned - rewards.least  # E[w] = E[u] = 1: a constant off all rewards changes no difference
    for name, weights in candidates.items():
        diagnosis = diagnosed(weights, missing.get(name, float("nan")))
        gains = (weights - base) * r
        sequence = BettingSequence(Range(-base_bound * rewards.span, bounds[name] * rewards.span), 1.0, center=0.0)
        sequence.add(np.ones(len(gains)), gains)
        limits = sequence.interval(alpha / len(candidates))
        better = diagnosis.verdict != "refused" and limits.lower > 0.0
        found.append(Difference(name, float(gains.mean()), limits, better, diagnosis))
    best = max((one for one in found if one.better), key=lambda one: one.limits.lower, default=None)
    return Comparison(tuple(found), None if best is None else best.name, 1.0 - alpha)


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
