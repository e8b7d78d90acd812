"""A confidence sequence for a policy's value with a reward model (Waudby-Smith, Wu, Ramdas, Karampatziakis and Mineiro
2022).

    x_t = w (r - q) + v >= -k,    y = x / (k + 1),    k = W, the largest weight that there can be
    lower_t = (sum l y - log(1 / alpha) - sum psi(l) (y - m)^2) / (sum l / (k + 1)),     psi(l) = -log(1 - l) - l
    l_t = min(1/2, sqrt(2 log(1 / alpha) / (s^2_{t-1} t log(t + 1)))),  m_t: mean of y before row t, up to 1 / (k + 1)

and the upper limit is that of 1 - r, mirrored. Rewards in [0, 1] after scaling. q and l are made before their row
(reward_models.py fits on past rows only), so the limits hold at every time at once, for a logger that learns too.

The source caps the model by k / w for a k below W; on Open Bandit and simulated logs every such k gave wider limits
(docs/evaluation.md), so there is none. Cost O(n).
"""

import numpy as np

from onepass.evaluation.ranges import Interval, Range
from onepass.evaluation.sample import Sample

MOST = 0.5  # of a bet: the source's c
PRIOR_VARIANCE, PRIOR_MEAN = 0.25, 0.5  # of numbers in [0, 1] of which nothing is known


def doubly_robust_sequence(sample: Sample, rewards: Range, bound: float, alpha: float = 0.05) -> Interval:
    """The narrowest limits so far of a value, which hold at every time at once, whatever the logger learns.

    sample: with a model fitted on the past, within the range; rewards: their range; bound: W, at least every weight;
    alpha: how often they may ever fail, above 0 and below 1 (default 0.05).
    """
    ends, k = [], max(float(bound), 1.0)
    for sign in (1.0, -1.0):
        edge = rewards.least if sign > 0.0 else rewards.largest
        r, q, v = (
            sign * (column - edge) / rewards.span for column in (sample.rewards, sample.predicted, sample.values)
        )
        x = sample.weights * (r - q) + v
        ends.append(edge + sign * rewards.span * max(float(lower_limits(x, k, alpha / 2).max()), 0.0))
    return rewards.within(*ends)


def lower_limits(x: np.ndarray, k: float, alpha: float) -> np.ndarray:
    """The running lower limits (n,) of the mean of x >= -k, which is in [0, 1]."""
    y, n = x / (k + 1.0), np.arange(1, len(x) + 1)
    means = (PRIOR_MEAN / (k + 1.0) + np.cumsum(y)) / (n + 1)
    before = np.minimum(np.concatenate([[PRIOR_MEAN / (k + 1.0)], means[:-1]]), 1.0 / (k + 1.0))
    spread = (PRIOR_VARIANCE + np.cumsum((y - means) ** 2)) / (n + 1)
    spread = np.concatenate([[PRIOR_VARIANCE], spread[:-1]])
    log = np.log(1.0 / alpha)
    bets = np.minimum(MOST, np.sqrt(2.0 * log / (spread * n * np.log(n + 1.0))))
    psi = -np.log1p(-bets) - bets
    return (np.cumsum(bets * y) - log - np.cumsum(psi * (y - before) ** 2)) / (np.cumsum(bets) / (k + 1.0))
