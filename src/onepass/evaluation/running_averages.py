"""Limits of running averages that hold at every time, even if the world changes or a policy learns.

For values x_i and predictions c_i of them, the lower limit of the running mean mu_t is found as follows:

    mu_t = (1/t) sum over i <= t of E[x_i | past],     x_i >= 0,     c_i in [0, 1] fixed before x_i
    lower limit: the mu where W(sum x - t mu, sum (x - c)^2) = 1 / alpha
    W = (W_1 + W_30 + W_1000) / 3        W_c: the mixture W of gamma_mixture.py with its constant c

Small c suit few rows, and large c many rows. For every l in [0, 1), E exp(l (x - mu) + (l + log(1 - l)) (x - c)^2) <= 1
if x - c >= -1, where mu is the present mean of x. So every mixture of these products is a supermartingale, and ever
exceeds 1 / alpha with probability alpha at most (Fan, Grama and Liu 2015; Howard, Ramdas, McAuliffe and Sekhon 2021).
Betting (betting.py) has narrower limits, but only for a fixed value, which a policy that learns does not have. A
sequence has a state of four numbers, and a row costs O(1).
"""

import math

import numpy as np
import scipy

from onepass.evaluation.gamma_mixture import log_wealth

BELIEVED = 0.5  # rewards before the first row, of one row: the first c
STEPS = 1e-9  # how exactly a limit is found, on the scale of x
MIXED = (1.0, 30.0, 1000.0)  # c of each third


class RunningAverages:
    """Running averages of several numbers that arrive row by row, with confidence limits.

    `count` is the number of averages. `sums` (2, count) are the sums over the `rows` rows so far of x and of (x - c)^2,
    where c is a prediction of x made before.
    """

    rows: int

    def __init__(self, count: int, sums: np.ndarray | None = None, rows: int = 0) -> None:
        self.rows, self._sums = rows, np.zeros((2, count)) if sums is None else sums

    def add(self, x: np.ndarray) -> None:
        """Add rows x (n, count) in their order.

        All numbers are at least 0. For narrow limits, most numbers of an average should be at most 1.
        """
        columns = np.ascontiguousarray(x.T)
        away = np.cumsum(columns, axis=1)
        away -= columns
        away += self._sums[0][:, None] + BELIEVED
        away /= self.rows + np.arange(1, len(x) + 1)
        np.subtract(columns, np.minimum(away, 1.0, out=away), out=away)  # x - c
        self._sums = self._sums + np.stack([columns.sum(axis=1), np.einsum("ij,ij->i", away, away)])
        self.rows += len(x)

    def concat(self, other: "RunningAverages") -> "RunningAverages":
        """Return the averages of these rows followed by the rows of `other`, which began without rows."""
        return RunningAverages(self._sums.shape[1], self._sums + other._sums, self.rows + other.rows)

    @property
    def means(self) -> np.ndarray:
        """Averages (count,) of the numbers so far, 0 before the first row."""
        return self._sums[0] / max(self.rows, 1)

    @property
    def sums(self) -> np.ndarray:
        """Sums (2, count) of the numbers x and of (x - c)^2, where c is a prediction of x made before.

        Together with `rows` they are the whole state.
        """
        return self._sums

    def lower(self, which: int, alpha: float) -> float:
        """Return a lower limit, at least 0, of the average with index `which`.

        The limit is for the average of the numbers' expectations, given the past. The probability that this average is
        ever below the limit is at most `alpha`.
        """
        (total, v), wanted = self._sums[:, which].tolist(), -math.log(alpha)

        def excess(mu: float) -> float:
            return mixture_log_wealth(total - self.rows * mu, v) - wanted

        if self.rows == 0 or excess(0.0) <= 0.0:
            return 0.0
        return float(scipy.optimize.brentq(excess, 0.0, total / self.rows, xtol=STEPS))


def mixture_log_wealth(s: float, v: float) -> float:
    """Return the log wealth of a mixture of bets, for the sum s of the terms bet on and the sum v of their squares."""
    each = [log_wealth(s, v, c) for c in MIXED]
    most = max(each)
    return most + math.log(sum(math.exp(one - most) for one in each) / len(each)) if most > -math.inf else most
