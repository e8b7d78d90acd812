"""Detector of growing values with a guaranteed rate of false alarms, made of two e-detectors on ranks.

For the t-th value z_t, with n values before it, a detector computes

    p_t = (|{i : z_i > z_t}| + U_t (1 + |{i : z_i = z_t}|)) / (n + 1)       U_t uniform, i over the n values before
    e_t = (1 - p_t + p_t log p_t) / (p_t log(p_t)^2)                        the mixture of all k p^(k - 1), 0 < k < 1
    M_t = e_t (M_{t-1} + 1),   an alarm once either M_t >= 4 every          (Shiryaev and Roberts)

A detector holds at most `length` values; then it starts again without values. Until it holds some hundreds again it is
blind, because values that have just grown are compared only with each other. Therefore there are two, and the second
starts length / 2 values after the first. From then on, one of the two always holds at least length / 2 values.

Guarantee. While z_1, z_2, ... are exchangeable, ranks within a stretch of values are independent and uniform, and
independent of the ranks within stretches that share no value with it. So the p_t of one detector are independent and
uniform, whatever the distribution of z (Vovk, Gammerman and Shafer 2005), E[e_t | its own past] = 1, and its M_t - t is
a martingale (Shin, Ramdas and Rinaldo 2023): M_t is a nonnegative submartingale with E M_t <= t. By Doob's maximal
inequality it has reached L by value n with probability n / L at most. The ranks of one detector say something about
later ranks of the other, so both M together are not martingales, and the level is split without that: either has
reached L by value n with probability 2 n / L at most, and the first alarm T has, with L = 4 every,

    E T = sum over n >= 0 of P(T > n) >= sum over n <= L / 2 of (1 - 2 n / L) >= L / 4 = every.

So false alarms are at least `every` values apart on average. If values shrink, as residuals do while a model learns,
p_t are larger and alarms come later. Only growth is detected.

The change is estimated to have begun when max(C_{t-1}, 1) e_t was last below 1, as in CUSUM. A value costs O(log n)
comparisons and one insertion, twice.
"""

from bisect import bisect_left, bisect_right, insort
from math import log

import numpy as np

from onepass.foundation import check

LENGTH = 4096  # values that a detector holds at most
CERTAIN = 1e-3  # of log p: nearer to p = 1 the mixture is 1/2 to three digits


class _RankSum:
    """One Shiryaev-Roberts sum M_t on ranks.

    `sum` is M_t, the evidence that values have grown. `since` is the number of values since the change is estimated to
    have begun, the latest included, and `most` is C_t of CUSUM, from which it is estimated. `length` is the number of
    values after which the ranks start again.
    """

    def __init__(self, length: int) -> None:
        self._values, self._length = list[float](), length
        self.sum, self.most, self.since = 0.0, 0.0, 0

    def add(self, value: float, uniform: float) -> None:
        held = self._values
        above = len(held) - bisect_right(held, value)
        equal = len(held) - above - bisect_left(held, value)
        e = e_value((above + uniform * (1 + equal)) / (len(held) + 1))
        self.sum = e * (self.sum + 1.0)
        self.since = self.since + 1 if self.most >= 1.0 else 1
        self.most = e * max(self.most, 1.0)
        insort(held, value)
        if len(held) == self._length:
            held.clear()


class EDetector:
    """Detector that raises an alarm when values grow.

    `every` is the smallest average number of values between two false alarms, above 1 (default 100,000). `length` is
    the largest number of values that each of the two detectors holds, at least 2 (default 4,096). `seed` is the seed of
    the random numbers that break ties, at least 0 (default 0). Raises ValueError outside these ranges.

    >>> detector = EDetector(every=1000.0)
    >>> any(detector.add(z) for z in np.random.default_rng(0).random(200)), detector.add(0.5)
    (False, False)
    >>> next(t for t in range(100) if detector.add(2.0 + t)) < 5  # all larger than any before
    True
    """

    def __init__(self, *, every: float = 1e5, length: int = LENGTH, seed: int = 0) -> None:
        self.every: float = check.positive("every", every)
        if self.every <= 1.0:
            raise ValueError(f"every must be above 1, got {check.quote(every)}")
        self.length: int = check.integer("length", length, 2)
        self._rng = np.random.default_rng(check.integer("seed", seed, 0, None))
        self.begin()

    def begin(self) -> None:
        """Forget all values and start again."""
        self._first, self._second = _RankSum(self.length), _RankSum(self.length)
        self._count, self.since = 0, 0

    def add(self, value: float) -> bool:
        """Add a value, and return True if it raises an alarm.

        After an alarm, the attribute `since` is the estimated number of values since the change, this one included.
        """
        self._first.add(value, self._rng.random())
        if self._count >= self.length // 2:
            self._second.add(value, self._rng.random())
        self._count += 1
        surer = max(self._first, self._second, key=lambda one: one.sum)
        self.since = surer.since
        return surer.sum >= 4.0 * self.every


def e_value(p: float) -> float:
    """Return the e-value of a p-value: a measure of evidence whose mean is 1 if p is uniform.

    It is the mixture of k p^(k - 1) over k from 0 to 1.
    """
    if p <= 0.0:
        return float("inf")
    size = -log(p)
    if size < CERTAIN:
        return 0.5
    return (1.0 - p - p * size) / (p * size * size)
