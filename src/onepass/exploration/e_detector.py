"""A detector of change with a stated rate of false alarms: an e-detector on the ranks of what is watched.

    p_t = (|{i : z_i > z_t}| + U_t (1 + |{i : z_i = z_t}|)) / (n + 1)       U_t uniform, i over the n values before
    e_t = (1 - p_t + p_t log p_t) / (p_t log(p_t)^2)                        the mixture of all k p^(k - 1), 0 < k < 1
    M_t = e_t (M_{t-1} + 1),   an alarm once M_t >= every                    (Shiryaev and Roberts)

Guarantee. While z_1, z_2, ... are exchangeable the p_t are independent and uniform (Vovk, Gammerman and Shafer 2005),
whatever the distribution of z, so E[e_t | past] = 1 and M_t - t is a martingale: at the alarm E[t] >= E[M_t] >= every.
False alarms are at least `every` values apart on average (Shin, Ramdas and Rinaldo 2023). Where values shrink, as
residuals do while a model learns, p_t are larger and alarms come later. Only values that grow are found.

When the change began: where max(C_{t-1}, 1) e_t last was below 1, as by CUSUM. LENGTH values at most are held; then the
ranks begin anew, which keeps the guarantee. Cost O(log n) comparisons a value and one insertion.
"""

from bisect import bisect_left, bisect_right, insort
from math import log

import numpy as np

from onepass.foundation import check

LENGTH = 4096  # values held
CERTAIN = 1e-3  # of log p: nearer to p = 1 the mixture is 1/2 to three digits


class EDetector:
    """every: values between two false alarms, on average, at least; above 1 (default 100,000). seed: of U, at least 0
    (default 0). ValueError outside those ranges.

    >>> detector = EDetector(every=1000.0)
    >>> any(detector.add(z) for z in np.random.default_rng(0).random(200)), detector.add(0.5)
    (False, False)
    >>> next(t for t in range(100) if detector.add(2.0 + t)) < 5  # all larger than any before
    True
    """

    def __init__(self, *, every: float = 1e5, seed: int = 0) -> None:
        self.every: float = check.positive("every", every)
        if self.every <= 1.0:
            raise ValueError(f"every must be above 1, got {check.shown(every)}")
        self._rng = np.random.default_rng(check.integer("seed", seed, 0, None))
        self.begin()

    def begin(self) -> None:
        """Know of no values."""
        self._values: list[float] = []
        self._sum, self._most, self.since = 0.0, 0.0, 0

    def add(self, value: float) -> bool:
        """Whether this value raises an alarm; `since`: how many values ago the change began, this one included."""
        held = self._values
        above = len(held) - bisect_right(held, value)
        equal = len(held) - above - bisect_left(held, value)
        e = betted((above + self._rng.random() * (1 + equal)) / (len(held) + 1))
        self._sum = e * (self._sum + 1.0)
        self.since = self.since + 1 if self._most >= 1.0 else 1
        self._most = e * max(self._most, 1.0)
        insort(held, value)
        if len(held) == LENGTH:
            held.clear()
        return self._sum >= self.every


def betted(p: float) -> float:
    """The mixture of k p^(k - 1) over k from 0 to 1: its mean over uniform p is 1."""
    if p <= 0.0:
        return float("inf")
    size = -log(p)
    if size < CERTAIN:
        return 0.5
    return (1.0 - p - p * size) / (p * size * size)
