"""Evaluate policies for lists, where every slot has its own distribution and its own reward.

The weight of slot j is that of the slot alone, or that of all slots above as well:

    value = sum over slots j of mean over lists of w_j r_j
    slot    w_j = policy(a_j | x, j) / p_j                       McInerney et al. 2020 call it independent
    prefix  w_j = product over i <= j of policy(a_i | ...) / p_i      where a reward depends on the slots above it

If lists are drawn without replacement, p_j is conditional on the slots above, and the policy's probability must be,
too. "slot" is unbiased under two conditions: a reward depends on its own slot alone, and the policy's choice for a slot
does not depend on the slots above, or fills them as the logger did. "prefix" needs neither condition, but its weights
are products and vary more.

The slots of one list are not independent. So the standard deviation is computed from whole lists, and the limits of the
single slots, each at its part of alpha, are added. A list that lacks a slot counts in it with reward 0 and weight 1 (or
the weight of its prefix), because the share of such lists is uncertain as well.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from onepass.evaluation.anytime import AnytimeLimits
from onepass.evaluation.evaluate import BLOCK, Evaluation, open_fraction, summarize_sample
from onepass.evaluation.log import Log
from onepass.evaluation.policies import has_arm, make_policy, policy_changes, refuse_missing_arm
from onepass.evaluation.reward_range import Interval, Range, make_range
from onepass.evaluation.sample import make_sample
from onepass.evaluation.weight_bound import WeightBound
from onepass.foundation import check


@dataclass(frozen=True)
class SlateEvaluation:
    """Evaluation of a policy on a log of lists.

    Parameters
    ----------
    lists : int
        Number of lists.
    slots : tuple of Evaluation
        Evaluation of each slot by IPS and SNIPS, among the lists that have it. Their limits hold together at `level`.
    shares : tuple of float
        Share of lists that have the slot.
    value : float or None
        Value of a list, the sum of its slots by IPS. None if the evaluation of a slot was refused (see
        `Evaluation`).
    deviation : float
        Standard error of the value, over lists; NaN for a single list.
    limits : Interval
        Limits of the value at any time, at `level`.
    level : float
        Confidence level.
    """

    lists: int
    slots: tuple[Evaluation, ...]
    shares: tuple[float, ...]
    value: float | None
    deviation: float
    limits: Interval
    level: float

    def __str__(self) -> str:
        told = "refused" if self.value is None else f"{self.value:.6g} +- {self.deviation:.2g}"
        lines = [f"{self.lists:,} lists: {told}, {self.limits.lower:.6g} to {self.limits.upper:.6g}"]
        for place, one in enumerate(self.slots):
            lines.append(f"slot {place}: {one}".replace("\n", "\n    "))
        return "\n".join(lines)


def evaluate_slates(
    log: Log,
    policy: Any,
    *,
    weights: str = "slot",
    reward_range: tuple[float, float] = (0.0, 1.0),
    level: float = 0.95,
    weight_bound: float | None = None,
) -> SlateEvaluation:
    """Estimate what a policy would have earned per list.

    Parameters
    ----------
    log : Log
        Log with `slots`. The rows of a list are consecutive, in rising order of slots.
    policy : policy
        Policy as for `evaluate`. Its probabilities of a row are conditional on the slots above.
    weights : str, default "slot"
        "slot" takes the weight of the slot itself. "prefix" multiplies it by the weights of the slots above, which is
        right if rewards depend on those slots (docs/evaluation.md).
    reward_range : tuple of float, default (0.0, 1.0)
        Least and largest possible reward of a slot.
    level : float, default 0.95
        Confidence level of all limits together, above 0 and below 1.
    weight_bound : float, default None
        Largest possible weight of a slot, at least 1. None computes it from the log, as `evaluate` does. If it is not
        known, anytime limits are those of the average value.

    Returns
    -------
    SlateEvaluation
        Value of a list, and evaluations of the slots.

    Raises
    ------
    ValueError
        If the log has no slots, or `evaluate` would refuse the arguments.
    """
    weights = check.choice("weights", weights, ("slot", "prefix"))
    if log.slots is None or len(log) == 0:
        raise ValueError("log must have at least one row, and its slots")
    if not has_arm(policy, log):
        refuse_missing_arm(policy)
    rewards, alpha = make_range(reward_range), 1.0 - open_fraction("level", level)
    lists = np.concatenate([[0], np.cumsum(np.diff(log.slots) <= 0)])
    count, chooses, w = int(lists[-1]) + 1, make_policy(policy, log), np.empty(len(log))
    bounds = [WeightBound(weight_bound) for _ in range(int(log.slots.max()) + 1)]
    missing, max_weights = np.zeros(len(log)), np.full(len(log), np.nan)
    for place, block in enumerate(log.blocks(BLOCK)):
        rows = slice(place * BLOCK, place * BLOCK + len(block))
        p = chooses(block, rows.start)
        w[rows] = p[np.arange(len(block)), block.arms] / block.propensities
        missing[rows] = (p * ~(log if log.distributions is None else block).support).sum(axis=1)
        for slot in np.unique(log.slots[rows]):
            own = np.flatnonzero(log.slots[rows] == slot)
            most = bounds[slot].update(block[own], p[own], w[rows][own])
            if most is not None:
                max_weights[rows.start + own] = most
    if weights == "prefix":
        for row in np.flatnonzero(np.diff(lists) == 0) + 1:
            w[row] *= w[row - 1]
            max_weights[row] *= max_weights[row - 1]
    last = np.flatnonzero(np.diff(lists, append=count))  # the row of each list that stands lowest
    found, shares, limits, part, moves = [], [], [], alpha / len(bounds), policy_changes(policy)
    for slot, bound in enumerate(bounds):
        own = log.slots == slot
        if not own.any():
            raise ValueError(f"slots must be 0, 1, ..., and there is no row of slot {slot}")
        if weights == "prefix":
            bound.known = not np.isnan(max_weights[own]).any()
            bound.max_weight, bound.ceiling = float(np.nanmax(max_weights[own] if bound.known else w[own])), None
            bound.given = bound.max_weight if bound.given is not None else None
        most = max_weights[own] if bound.known else None
        sample, share = make_sample(w[own], log.rewards[own]), float(missing[own].mean())
        one = summarize_sample(sample, most, rewards, ("ips", "snips"), part, bound, share, 0, 0, moves)
        found.append(one)
        shares.append(float(own.sum()) / count)
        if own.sum() == count:
            limits.append(one.limits)
            continue
        every, earned, each = np.ones(count), np.zeros(count), np.ones(count)
        if weights == "prefix":
            every, each = w[last].copy(), max_weights[last].copy()
        every[lists[own]], earned[lists[own]], each[lists[own]] = w[own], log.rewards[own], max_weights[own]
        whole = AnytimeLimits(Range(min(rewards.least, 0.0), max(rewards.largest, 0.0)), part, moves, False)
        whole.add(make_sample(every, earned), None if np.isnan(each).any() else each, bound.ceiling)
        limits.append(whole.limits())
    sums = np.bincount(lists, weights=w * log.rewards, minlength=count)
    refused = any(one.verdict == "refused" for one in found)
    return SlateEvaluation(
        lists=count,
        slots=tuple(found),
        shares=tuple(shares),
        value=None if refused else float(sums.mean()),
        deviation=float(sums.std() / np.sqrt(count)) if count > 1 else float("nan"),
        limits=Interval(sum(one.lower for one in limits), sum(one.upper for one in limits)),
        level=1.0 - alpha,
    )
