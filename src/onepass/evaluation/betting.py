"""A confidence sequence for a policy's value by betting (Karampatziakis, Mineiro and Ramdas 2021).

    wealth_t(v) = prod over i <= t of 1 + a_i (w_i - 1) + b_i (w_i r_i - v),      limits: {v: wealth_t(v) < 1 / alpha}

with bets (a_i, b_i) made before row i. If v is the value, E[w | past] = 1 and E[w r | past] = v, so wealth_t(v) is a
martingale, for any logger, one that learns too, and at any time it passes 1 / alpha with probability alpha at most
(Ville). So the limits hold for all t at once: look as often as you like, stop when you like. The bet is ours: with
g = (w - 1, w r - v),

    (a, b) = (sum g g^T + I)^-1 sum g over the past,    shrunk until no row could cost more than half of the wealth

Rewards are scaled to [0, 1]; W bounds all weights that there can be, or those of each row, if told before its arm was
drawn. State: the wealth on a grid of v and six sums. Cost O(grid) a row: a product; logarithms after several rows. Bets
change with every row at first, later every n / 64 rows: still before the rows they are for.
"""

from typing import NamedTuple

import numpy as np

from onepass.evaluation.ranges import Interval, Range
from onepass.foundation.generic import compiled

POINTS = 600  # of the grid
LEAST = 1e-5  # of the range of rewards: the grid's smallest step
SPENT = 0.5  # of the wealth: the most that a row can cost
PER_BET = 64  # bets change after one row in so many of all
TOGETHER = 16  # rows whose factors are multiplied before a logarithm: W^16 stays below 1e308 for W up to 1e19
FORGOTTEN = 46.0  # log wealth beyond which a value is refuted for good: at every level up to 1 - 1e-20


class Bets(NamedTuple):
    """grid (G,): values v in [0, 1]; wealth (G,): logarithms; peak (G,): their largest so far; product (G,): of the
    factors since then, and best (G,): its largest; bets (G, 2); sums (6,): n, sum u, sum u^2, sum y, sum u y, sum y^2
    of u = w - 1, y = w r; bound: W so far; left: rows until the bets change; held: rows in the product; first, last:
    outside of them all values are refuted for good."""

    grid: np.ndarray
    wealth: np.ndarray
    peak: np.ndarray
    product: np.ndarray
    best: np.ndarray
    bets: np.ndarray
    sums: np.ndarray
    bound: float
    left: int
    held: int
    first: int
    last: int


def grid_of(points: int, center: float | None = None) -> np.ndarray:
    """Values in [0, 1], finer towards both ends, or towards the center."""
    half = np.concatenate([[0.0], np.geomspace(LEAST, 1.0, points // 2)])
    if center is not None:
        return np.unique(np.concatenate([center * (1.0 - half), center + (1.0 - center) * half]))
    return np.unique(np.concatenate([half / 2.0, 1.0 - half / 2.0]))


def begun(points: int = POINTS, center: float | None = None, bound: float = 1.0) -> Bets:
    """Before the first row."""
    grid = grid_of(points, center)
    size = len(grid)
    one, zero = np.ones(size), np.zeros(size)
    return Bets(grid, zero, zero.copy(), one, one.copy(), np.zeros((size, 2)), np.zeros(6), bound, 0, 0, 0, size)


@compiled
def place_bets(state, bound, first, last):
    """The bets from the sums, for every v between first and last; in place."""
    n, u, uu, y, uy, yy = state.sums
    for i in range(first, last):
        v = state.grid[i]
        first, second = u, y - n * v
        cross, square = uy - v * u, yy - 2.0 * v * y + n * v * v
        det = (uu + 1.0) * (square + 1.0) - cross * cross
        a = ((square + 1.0) * first - cross * second) / det
        b = ((uu + 1.0) * second - cross * first) / det
        # the worst rows: weight 0, and weight W with reward 0 or 1
        cost = max(a + b * v, max(b * v - a * (bound - 1.0), b * (v - bound) - a * (bound - 1.0)))
        shrink = SPENT / cost if cost > SPENT else 1.0
        state.bets[i, 0], state.bets[i, 1] = a * shrink, b * shrink


@compiled
def fold(state, first, last):
    """The product becomes part of the wealth; in place."""
    for i in range(first, last):
        state.peak[i] = max(state.peak[i], state.wealth[i] + np.log(state.best[i]))
        state.wealth[i] += np.log(state.product[i])
        state.product[i] = 1.0
        state.best[i] = 1.0


@compiled
def bet(state, weights, rewards, tops):
    """The state after rows: weights (n,) up to `tops` (n,), which are known before, rewards (n,) in [0, 1]."""
    bound, left, held, first, last = state.bound, state.left, state.held, state.first, state.last
    grid, bets, product, best, sums = state.grid, state.bets, state.product, state.best, state.sums
    for t in range(weights.size):
        if left == 0 or tops[t] > bound:
            bound = max(bound, tops[t])
            fold(state, first, last)
            held = 0
            while first < last and state.peak[first] > FORGOTTEN:
                first += 1
            while first < last and state.peak[last - 1] > FORGOTTEN:
                last -= 1
            place_bets(state, bound, first, last)
            left = max(int(sums[0]) // PER_BET, 1)
        u, y = weights[t] - 1.0, weights[t] * rewards[t]
        for i in range(first, last):
            made = product[i] * (1.0 + bets[i, 0] * u + bets[i, 1] * (y - grid[i]))
            product[i] = made
            best[i] = made if made > best[i] else best[i]
        held += 1
        if held == TOGETHER:
            fold(state, first, last)
            held = 0
        sums[0] += 1.0
        sums[1] += u
        sums[2] += u * u
        sums[3] += y
        sums[4] += u * y
        sums[5] += y * y
        left -= 1
    return Bets(grid, state.wealth, state.peak, product, best, bets, sums, bound, left, held, first, last)


class BettingSequence:
    """Limits of a value that hold at every time at once, whatever the logger learns.

    rewards: their range; bound: the largest weight that there can be, at least 1; points: of the grid (default 600);
    center: the value near which limits matter most, None (default): the ends of the range.
    """

    def __init__(self, rewards: Range, bound: float, points: int = POINTS, center: float | None = None) -> None:
        self.rewards = rewards
        near = None if center is None else (center - rewards.least) / rewards.span
        self._state = begun(points, near, max(float(bound), 1.0))

    @property
    def bound(self) -> float:
        """The largest weight that there can have been so far."""
        return self._state.bound

    def add(self, weights: np.ndarray, rewards: np.ndarray, tops: np.ndarray | None = None) -> None:
        """Learn rows, in their order: weights (n,), rewards (n,).

        tops: (n,) the largest weight that each row could have had, known before its arm was drawn: the bound rises to
        them; None (default): the bound. ValueError for a weight above, on which the limits rest.
        """
        tops = np.full(len(weights), self.bound) if tops is None else np.maximum(tops, self.bound)
        above = np.flatnonzero(weights > tops * (1.0 + 1e-12))
        if above.size:
            raise ValueError(f"weights must be at most the bound {tops[above[0]]:g}, got {weights[above[0]]:g}")
        scaled = (rewards - self.rewards.least) / self.rewards.span
        self._state = bet(self._state, weights, scaled, tops)

    def then(self, other: "BettingSequence") -> "BettingSequence":
        """The rows of this sequence, then those of `other`, whose bets knew nothing of these: wealths multiply.

        Limits hold, as bets were made before their rows; they are wider than those of one sequence, which need not
        begin anew. ValueError for other ranges or grids.
        """
        one, two = self._state, other._state
        if self.rewards != other.rewards or not np.array_equal(one.grid, two.grid):
            raise ValueError("other must be a sequence over the same range of rewards, on the same grid")
        gained, left = (s.wealth + np.log(s.product) for s in (one, two))
        peak, later = (np.maximum(s.peak, s.wealth + np.log(s.best)) for s in (one, two))
        found, size = BettingSequence(self.rewards, max(one.bound, two.bound)), len(one.grid)
        found._state = begun()._replace(
            grid=one.grid,
            wealth=gained + left,
            peak=np.maximum(peak, gained + later),
            product=np.ones(size),
            best=np.ones(size),
            bets=np.zeros((size, 2)),
            sums=one.sums + two.sums,
            bound=max(one.bound, two.bound),
            first=max(one.first, two.first),
            last=min(one.last, two.last),
        )
        return found

    def interval(self, alpha: float = 0.05) -> Interval:
        """The values that no bet has refuted so far, with one step of the grid on either side; alpha: how often they
        may ever fail, at least 1e-20 (default 0.05)."""
        s = self._state
        kept = np.flatnonzero(np.maximum(s.peak, s.wealth + np.log(s.best)) < np.log(1.0 / alpha))
        grid, span = s.grid, self.rewards.span
        if kept.size == 0:  # every value is refuted: the weights cannot be right
            return Interval(float("nan"), float("nan"))
        low, high = grid[max(kept[0] - 1, 0)], grid[min(kept[-1] + 1, len(grid) - 1)]
        return self.rewards.within(self.rewards.least + span * low, self.rewards.least + span * high)
