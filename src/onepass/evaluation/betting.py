"""A confidence sequence for a policy's value by betting (Karampatziakis, Mineiro and Ramdas 2021).

    wealth_t(v) = prod over i <= t of 1 + a_i (w_i - 1) + b_i (w_i r_i - v),      limits: {v: wealth_t(v) < 1 / alpha}

with bets (a_i, b_i) made before row i. If v is the value, E[w | past] = 1 and E[w r | past] = v, so wealth_t(v) is a
martingale, for any logger, one that learns too, and at any time it passes 1 / alpha with probability alpha at most
(Ville). So the limits hold for all t at once: look as often as you like, stop when you like. The bet is ours: with
g = (w - 1, w r - v),

    (a, b) = (sum g g^T + I)^-1 sum g over the past,    shrunk until no row could cost more than half of the wealth

Rewards are scaled to [0, 1]; W bounds all weights that there can be. State: the wealth on a grid of v and six sums.
Cost O(grid) a row. Bets change with every row at first, later every n / 64 rows: still before the rows they are for.
"""

from typing import NamedTuple

import numpy as np

from onepass.evaluation.ranges import Interval, Range
from onepass.foundation.generic import compiled

POINTS = 600  # of the grid
LEAST = 1e-5  # of the range of rewards: the grid's smallest step
SPENT = 0.5  # of the wealth: the most that a row can cost
PER_BET = 64  # bets change after one row in so many of all


class Bets(NamedTuple):
    """grid (G,): values v in [0, 1]; wealth (G,): logarithms; peak (G,): their largest so far; bets (G, 2); sums (6,):
    n, sum u, sum u^2, sum y, sum u y, sum y^2 of u = w - 1, y = w r; left: rows until the bets change."""

    grid: np.ndarray
    wealth: np.ndarray
    peak: np.ndarray
    bets: np.ndarray
    sums: np.ndarray
    left: int


def grid_of(points: int, center: float | None = None) -> np.ndarray:
    """Values in [0, 1], finer towards both ends, or towards the center."""
    half = np.concatenate([[0.0], np.geomspace(LEAST, 1.0, points // 2)])
    if center is not None:
        return np.unique(np.concatenate([center * (1.0 - half), center + (1.0 - center) * half]))
    return np.unique(np.concatenate([half / 2.0, 1.0 - half / 2.0]))


def begun(points: int = POINTS, center: float | None = None) -> Bets:
    """Before the first row."""
    grid = grid_of(points, center)
    nothing = np.zeros(len(grid))
    return Bets(grid, nothing, nothing.copy(), np.zeros((len(grid), 2)), np.zeros(6), 0)


@compiled
def place_bets(state, bound):
    """The bets from the sums, for every v; in place."""
    n, u, uu, y, uy, yy = state.sums
    for i in range(state.grid.size):
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
def bet(state, weights, rewards, bound):
    """The state after rows: weights (n,) up to `bound`, rewards (n,) in [0, 1]."""
    left = state.left
    for t in range(weights.size):
        if left == 0:
            place_bets(state, bound)
            left = max(int(state.sums[0]) // PER_BET, 1)
        u, y = weights[t] - 1.0, weights[t] * rewards[t]
        for i in range(state.grid.size):
            state.wealth[i] += np.log1p(state.bets[i, 0] * u + state.bets[i, 1] * (y - state.grid[i]))
            state.peak[i] = max(state.peak[i], state.wealth[i])
        state.sums[0] += 1.0
        state.sums[1] += u
        state.sums[2] += u * u
        state.sums[3] += y
        state.sums[4] += u * y
        state.sums[5] += y * y
        left -= 1
    return Bets(state.grid, state.wealth, state.peak, state.bets, state.sums, left)


class BettingSequence:
    """Limits of a value that hold at every time at once, whatever the logger learns.

    rewards: their range; bound: the largest weight that there can be, at least 1; points: of the grid (default 600);
    center: the value near which limits matter most, None (default): the ends of the range.
    """

    def __init__(self, rewards: Range, bound: float, points: int = POINTS, center: float | None = None):
        self.rewards, self.bound = rewards, max(float(bound), 1.0)
        self._state = begun(points, None if center is None else (center - rewards.least) / rewards.span)

    def add(self, weights: np.ndarray, rewards: np.ndarray) -> None:
        """Learn rows, in their order. ValueError for a weight above the bound, on which the limits rest."""
        if weights.size and weights.max() > self.bound * (1.0 + 1e-12):
            raise ValueError(f"weights must be at most the bound {self.bound:g}, got {weights.max():g}")
        scaled = (rewards - self.rewards.least) / self.rewards.span
        self._state = bet(self._state, weights, scaled, self.bound)

    def interval(self, alpha: float = 0.05) -> Interval:
        """The values that no bet has refuted so far, with one step of the grid on either side."""
        kept = np.flatnonzero(self._state.peak < np.log(1.0 / alpha))
        grid, span = self._state.grid, self.rewards.span
        if kept.size == 0:  # every value is refuted: the weights cannot be right
            return Interval(float("nan"), float("nan"))
        low, high = grid[max(kept[0] - 1, 0)], grid[min(kept[-1] + 1, len(grid) - 1)]
        return self.rewards.within(self.rewards.least + span * low, self.rewards.least + span * high)
