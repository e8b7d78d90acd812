"""The confidence sequence of Vowpal Wabbit: a gamma-exponential mixture (Howard, Ramdas, McAuliffe and Sekhon 2021).

It is here for comparison with the sequences of this package.

    x = w r,  x_t its mean so far with half a success,  v = sum (x_i - x_{i-1})^2,  s = sum x - t mu
    log W(s, v) = s + v + c log c - (v + c) log(s + v + c) + log G(v + c, s + v + c) - log G(c, c),    c = 1

G is the lower incomplete gamma function. The lower limit is the mu where W = 2 / alpha. The upper limit is the mirrored
lower limit of 1 - r. Rows with reward 0 and a large weight widen it, so it is wide if rewards are rare. The limits hold
at every time. The cost is O(n).
"""

import math
from functools import cache

import numpy as np
import scipy

from onepass.evaluation.reward_range import Interval, Range
from onepass.evaluation.sample import Sample

MIXING = 1.0  # c: of the source
SMALLEST = 1e-290  # of the regularized function, whose digits are all right above


def log_wealth(s: float, v: float, c: float = MIXING) -> float:
    """Return the log wealth of a bettor whose bets are a gamma-exponential mixture, for the sum s and the variance v.

    s is the sum of the terms that were bet on, and v that of their squares. A larger parameter `c`, above 0, puts more
    weight on small bets.
    """
    a, x = v + c, s + v + c
    return -math.inf if x <= 0.0 else s + v - a * math.log(x) + _log_lower_gamma(a, x) + _constant(c)


@cache
def _constant(c: float) -> float:
    """Return the constant c log c - log G(c, c) of the log wealth."""
    return c * math.log(c) - _log_lower_gamma(c, c)


def _log_lower_gamma(a: float, x: float) -> float:
    """Return log G(a, x), the logarithm of the lower incomplete gamma function.

    If G is too small for a float, an upper bound takes its place: the first term of its series, divided by 1 - x / (a +
    1).
    """
    part = float(scipy.special.gammainc(a, x))
    if part > SMALLEST:
        return math.lgamma(a) + math.log(part)
    return a * math.log(x) - x - math.log(a) - math.log1p(-x / (a + 1.0))


def lower_limit(weights: np.ndarray, rewards: np.ndarray, alpha: float) -> float:
    """Return the lower limit of a policy's value from weights (n,) and rewards (n,) in [0, 1].

    `alpha` is the probability that the limit is above the value.
    """
    x, n = weights * rewards, len(weights)
    before = (np.concatenate([[0.0], np.cumsum(x)[:-1]]) + 0.5) / np.arange(1, n + 1)
    v, total = float(((x - np.minimum(before, 1.0)) ** 2).sum()), float(x.sum())
    wanted = np.log(2.0 / alpha)

    def excess(mu: float) -> float:
        return log_wealth(total - n * mu, v) - wanted

    if excess(0.0) <= 0.0:
        return 0.0
    return float(scipy.optimize.brentq(excess, 0.0, total / n))


def gamma_mixture(sample: Sample, rewards: Range, alpha: float) -> Interval:
    """Return confidence limits of a policy's value, which fail at any time with probability at most `alpha`.

    `sample` holds weights and rewards, and `rewards` is the range of possible rewards.
    """
    scaled = (sample.rewards - rewards.least) / rewards.span
    low, high = (lower_limit(sample.weights, r, alpha) for r in (scaled, 1.0 - scaled))
    return rewards.clip(rewards.least + rewards.span * low, rewards.least + rewards.span * (1.0 - high))
