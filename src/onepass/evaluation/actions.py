"""Evaluate policies of actions in an interval, such as prices, from recorded decisions with densities.

    K(t) = 1 / |B| on B, the positions within `bandwidth` of the policy's, inside [0, 1]
    w = K(t) / p(t),   p(t) = 64 P(cell of t)         t: position of the action, its place in the interval from 0 to 1
                                                      P: the logger's probabilities of the 64 cells, in the record
    IPS = mean w r,    DR = mean w (r - q) + integral of K q       q: expected rewards by position, from the record

The estimated value is that of a policy with a little noise, whose action is uniform on B. Estimates of it are unbiased,
and the largest weight is known, since p is constant on cells. So anytime limits are those of any other log. Source:
Kallus and Zhou (2018), Majzoubi et al. (2020).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from onepass.bandit.decision import Decision
from onepass.evaluation.estimators import ESTIMATORS
from onepass.evaluation.evaluate import DEFAULT_ESTIMATORS, Evaluation, open_fraction, summarize_sample
from onepass.evaluation.reward_range import check_rewards, make_range
from onepass.evaluation.sample import make_sample
from onepass.evaluation.weight_bound import WeightBound
from onepass.foundation import check
from onepass.foundation.check import quote
from onepass.model.interval.interval import CELLS, Interval, interval_of

BANDWIDTH = 1.0 / 32.0  # two cells to either side
EPSILON = float(np.finfo(float).eps)  # smallest bandwidth: the two ends of a range around an action still differ
EDGES = np.arange(CELLS + 1) / CELLS


def evaluate_actions(
    decisions: Sequence[Decision],
    rewards: Any,
    policy: Callable[[dict[str, float]], float] | Any,
    *,
    bandwidth: float = BANDWIDTH,
    reward_range: tuple[float, float] = (0.0, 1.0),
    estimators: Iterable[str] = DEFAULT_ESTIMATORS,
    level: float = 0.95,
    average: bool = False,
) -> Evaluation:
    """Estimate what a policy of prices or other actions would have earned, from decisions over a `onepass.Interval`.

    Parameters
    ----------
    decisions : sequence of Decision
        Recorded decisions (n,) in their order, each over a `onepass.Interval`, a range of actions.
    rewards : array of shape (n,)
        Their rewards.
    policy : callable or array of shape (n,)
        Function of the terms of a context, for example {"age": 34.0, "country=de": 1.0}, that returns an action. Or the
        action of every row.
    bandwidth : float, default 0.03125
        A decision counts if its action is within this distance of the policy's action. The distance is a share of the
        length of the interval on its scale, at least 2.2e-16 and at most 1. A small one has less bias, a large one less
        variance.
    reward_range : tuple of float, default (0.0, 1.0)
        Least and largest possible reward. Limits rest on it.
    estimators : iterable of str, default ("ips", "snips", "dm", "dr")
        Names of estimators, from `onepass.evaluation.ESTIMATORS`. The reward model is the means that the decisions
        hold.
    level : float, default 0.95
        Confidence level of all limits, above 0 and below 1.
    average : bool, default False
        True if anytime limits are to be limits of the average value so far, for a world that changes.

    Returns
    -------
    Evaluation
        Diagnosis, estimates and limits.

    Raises
    ------
    ValueError
        If there is no decision, one is not over an interval, the policy's action is outside of it, or a reward is
        outside of the range.

    Examples
    --------
    >>> import onepass as op
    >>> from onepass.evaluation import evaluate_actions
    >>> bandit = op.ContextualBandit(exploration=op.Thompson(0.5, uniform_share=0.5), seed=0)
    >>> actions = op.Interval(0.0, 1.0)
    >>> decisions = [bandit.decide(None, actions) for _ in range(1000)]
    >>> found = evaluate_actions(decisions, [one.arm for one in decisions], lambda customer: 0.7)
    >>> 0.6 < found.value < 0.8 and found.limits.lower < 0.7 < found.limits.upper
    True
    """
    names, limits, alpha = tuple(estimators), make_range(reward_range), 1.0 - open_fraction("level", level)
    for name in names:
        check.choice("estimators", name, ESTIMATORS)
    h = check.positive("bandwidth", bandwidth)
    if not EPSILON <= h <= 1.0:
        raise ValueError(
            f"bandwidth must be at least {EPSILON:.2g} and at most 1, a share of the interval, got {quote(bandwidth)}"
        )
    given = [one for part in decisions for one in part.split()]
    if not given:
        raise ValueError("decisions must have at least one decision")
    paid = check.finite("rewards", check.array("rewards", rewards, np.dtype(np.float64), (1,)))
    if len(paid) != len(given):
        raise ValueError(f"rewards must have one entry per decision ({len(given)}), got {len(paid)}")
    check_rewards(paid, limits, 0)
    wanted = None if callable(policy) else check.array("policy", policy, np.dtype(np.float64), (1,))
    if wanted is not None and len(wanted) != len(given):
        raise ValueError(f"policy must have one action per decision ({len(given)}), got {len(wanted)}")
    columns, bounds = np.empty((len(given), 4)), WeightBound(None)
    for i, one in enumerate(given):
        action, interval, terms = _read(one)
        target = interval.position(policy(terms) if wanted is None else float(wanted[i]))
        low, high = max(target - h, 0.0), min(target + h, 1.0)
        position = interval.position(action)
        shares = np.clip(np.minimum(EDGES[1:], high) - np.maximum(EDGES[:-1], low), 0.0, None) / (high - low)
        p = one.probabilities * CELLS * (high - low)
        predicted = np.clip(one.means, *limits)
        with np.errstate(divide="ignore"):
            most = float((1.0 / p)[shares > 0.0].max())
        inside = low <= position <= high and shares[one.index] > 0.0
        weight = 1.0 / p[one.index] if inside else 0.0
        columns[i] = weight, predicted[one.index], shares @ predicted, max(most, 1.0)
        if i == 0 and one.probabilities.min() > 0.0:
            bounds.ceiling = max(1.0 / (float(one.probabilities.min()) * CELLS * h), 1.0)
    largest = columns[:, 3]
    missing = float(np.isinf(largest).mean())
    known = bool(np.isfinite(largest).all()) and bounds.ceiling is not None
    bounds.known, bounds.max_weight = known, float(largest.max() if known else columns[:, 0].max(initial=1.0))
    sample = make_sample(columns[:, 0], paid, columns[:, 1], columns[:, 2])
    return summarize_sample(
        sample, largest if known else None, limits, names, alpha, bounds, missing, 0, 0, bool(average)
    )


def _read(decision: Decision) -> tuple[float, Interval, dict[str, float]]:
    """Return the action, the `Interval` of possible actions, and the context of a decision as numbers by name."""
    kept = decision.context
    arms = kept.get("arms") if isinstance(kept, dict) else None
    if not arms or len(arms) != 1 or len(decision.probabilities) != CELLS:
        raise ValueError(f"decision {quote(decision.id)} must be one over an interval of actions")
    return *interval_of(arms[0], decision.id), kept["context"]
