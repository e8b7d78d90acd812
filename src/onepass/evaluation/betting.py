"""A confidence sequence for a policy's value by betting (Karampatziakis, Mineiro and Ramdas 2021).

For every possible value v, a wealth is computed from the weights w_i and the rewards r_i, and v is excluded once it is
large:

    wealth_t(v) = prod over i <= t of 1 + a_i (w_i - 1) + b_i (w_i r_i - v),      limits: {v: wealth_t(v) < 1 / alpha}

with bets (a_i, b_i) chosen before row i. If v is the policy's value, E[w | past] = 1 and E[w r | past] = v. Then
wealth_t(v) is a martingale for any logger, also for one that learns, and it ever exceeds 1 / alpha with probability
alpha at most (Ville). So the limits hold for all t at once: you may look as often as you like, and stop when you like.
The bets are our own. With g = (w - 1, w r - v) they are

    (a, b) = (sum g g^T + I)^-1 sum g over the past,    shrunk until no row could cost more than half of the wealth

The range of values is divided into cells [low, high]. All values of a cell share the bets of its middle. The logarithm
of the wealth is concave in v, so inside the cell it is at least the line between its values at both ends. Limits
therefore hold for every value, not only for those of a grid.

    a cell is halved once  n^2 (high - low)^2 > FINE sum of squares of w r - v that w - 1 does not explain

So cells that contain remaining values are a fraction of a standard error wide. A new end of a cell gets the wealth of
the line, a lower bound of what its bets had earned. Rewards are scaled to [0, 1]. W bounds all possible weights, or the
weight of each row if the bound is known before its arm is drawn. A row costs O(cells), some 30 of them: products, and
logarithms after several rows. Bets change with every row at first, later every n / 64 rows, and always before the rows
that they are for.
"""

from typing import NamedTuple

import numpy as np

from onepass.evaluation.reward_range import Interval, Range
from onepass.foundation.generic import compiled

CELLS = 64  # before the first row
MOST = 256  # cells that there can be by halving
LEAST = 1e-5  # of the range of rewards: the smallest cell before the first row
SPENT = 0.5  # of the wealth: the most that a row can cost
PER_BET = 64  # bets change after one row in so many of all
FEWEST, TOGETHER = 8, 32  # rows multiplied before a logarithm: W^32 stays below 1e308 for W up to 1e9
FORGOTTEN = 46.0  # log wealth beyond which values at either end are refuted for good: at every level up to 1 - 1e-20
NEAR = 10.0  # log wealth beyond which a cell is halved no more: levels up to 1 - 5e-5 have narrow limits
FINE = 0.25  # of halving: what shared bets cost is below 1 / 32 of a unit of log wealth


class Bets(NamedTuple):
    """State of bets against every possible value of a policy; the values are divided into C cells.

    A bet multiplies a wealth that starts at 1; a value is refuted once the wealth is large. Values outside of all cells
    are refuted for good. Arrays have one entry per cell, except `ends` and `sums`.

    Parameters
    ----------
    ends : (C + 1,) ends of neighboring cells.
    below, above : logarithms of the wealth at the lower and upper end of each cell.
    peak : largest value so far of the smaller of `below` and `above`.
    under, over : products of the latest factors at the lower and upper end, which are not yet part of the wealth.
    a, b : sizes of the bets on the importance weight w and on the weighted reward.
    rest : sum of squares that a regression on w - 1 leaves, over the square of the factor that shrinks the bets.
    sums : (6,) n, sum u, sum u^2, sum y, sum u y, sum y^2 over n rows, with u = w - 1, y = w r and the reward r.
    bound : largest possible weight so far.
    left : number of rows until the bets change.
    held : number of rows in `under` and `over`.
    """

    ends: np.ndarray
    below: np.ndarray
    above: np.ndarray
    peak: np.ndarray
    under: np.ndarray
    over: np.ndarray
    a: np.ndarray
    b: np.ndarray
    rest: np.ndarray
    sums: np.ndarray
    bound: float
    left: int
    held: int


def init_bets(cells: int = CELLS, bound: float = 1.0) -> Bets:
    """Return the state of bets before the first row, with about `cells` cells of values in [0, 1].

    Cells are finer near 0 and near 1. `bound` is the largest possible weight.
    """
    half = np.concatenate([[0.0], np.geomspace(LEAST, 0.5, cells // 2)])
    return _make_bets(np.concatenate([half, 1.0 - half[-2::-1]]), bound, np.zeros(6))


def _make_bets(ends: np.ndarray, bound: float, sums: np.ndarray) -> Bets:
    """Return the state of bets with a wealth of 1 in each of the cells between neighboring `ends` (C + 1,).

    `bound` is the largest possible weight, and `sums` (6,) holds the sums over earlier rows that `Bets` names.
    """
    zeros, ones = np.zeros((5, len(ends) - 1)), np.ones((3, len(ends) - 1))
    return Bets(ends, zeros[0], zeros[1], zeros[2], ones[0], ones[1], zeros[3], zeros[4], ones[2], sums, bound, 0, 0)


@compiled
def _place_bets(
    sums: np.ndarray, bound: float, ends: np.ndarray, a: np.ndarray, b: np.ndarray, rest: np.ndarray
) -> None:
    """Compute new bets for every interval of values, and write them into a, b and rest.

    - sums (6,): sums over earlier rows of 1, u, u^2, y, u y and y^2, with u = weight - 1 and y = weight * reward.
    - bound: the largest possible weight.
    - ends (m + 1,): ends of the m intervals.
    - a, b (m,): bets on the weight and on the reward.
    - rest (m,): for the value v in the middle of each interval, the sum of squares of y - v that a regression on u
      leaves, divided by the square of the factor that shrinks the bets. It decides when intervals are halved.
    """
    n, u, uu, y, uy, yy = sums
    for i in range(a.size):
        low, high = ends[i], ends[i + 1]
        v = 0.5 * (low + high)
        total, cross = y - n * v, uy - v * u
        left = yy - 2.0 * v * y + n * v * v + 1.0 - cross * cross / (uu + 1.0)
        on_reward = (total - cross * u / (uu + 1.0)) / left
        on_weight = (u - cross * on_reward) / (uu + 1.0)
        # the worst rows at either end: weight 0, and weight W with reward 0 or 1
        most, least = max(on_reward * low, on_reward * high), on_weight * (bound - 1.0)
        cost = max(on_weight + most, max(most - least, most - on_reward * bound - least))
        shrink = SPENT / cost if cost > SPENT else 1.0
        a[i], b[i], rest[i] = on_weight * shrink, on_reward * shrink, left / (shrink * shrink)


@compiled
def _fold(below: np.ndarray, above: np.ndarray, peak: np.ndarray, under: np.ndarray, over: np.ndarray) -> None:
    """Multiply the wealth at the cells' ends by the products `under` and `over`, and reset these to 1, in place.

    `below` and `above` are the logarithms of the wealth at the lower and upper end of each cell. `peak` is the largest
    value so far of the smaller of the two.
    """
    for i in range(peak.size):
        below[i] += np.log(under[i])
        above[i] += np.log(over[i])
        peak[i] = max(peak[i], min(below[i], above[i]))
        under[i] = 1.0
        over[i] = 1.0


@compiled
def _choose_halves(
    rows: float, ends: np.ndarray, peak: np.ndarray, rest: np.ndarray, halved: np.ndarray
) -> tuple[int, int, int]:
    """Mark the cells to halve in `halved` (C,), in place, and count the cells that stay.

    Cells at either end whose values are all refuted do not stay. `ends` (C + 1,) are the ends of the cells. `peak` and
    `rest` (C,) are those of `Bets`, and `rows` is the number of rows. Returns the index of the first cell that stays,
    the index after the last one, and the number of cells after halving.
    """
    first, last = 0, peak.size
    while first < last and peak[first] > FORGOTTEN:
        first += 1
    while first < last and peak[last - 1] > FORGOTTEN:
        last -= 1
    size = last - first
    for i in range(first, last):
        wide = rows * (ends[i + 1] - ends[i])
        middle = 0.5 * (ends[i] + ends[i + 1])
        halved[i] = wide * wide > FINE * rest[i] and peak[i] <= NEAR and ends[i] < middle < ends[i + 1]
    for i in range(first, last):
        size += halved[i]
    if size > MOST:
        halved[:] = False
        size = last - first
    return first, last, size


@compiled
def _refine(state: Bets) -> Bets:
    """Return the state of bets without the cells at either end that are refuted, and with coarse cells halved."""
    halved = np.zeros(state.peak.size, np.bool_)
    first, last, size = _choose_halves(state.sums[0], state.ends, state.peak, state.rest, halved)
    if size == state.peak.size and not halved.any():
        return state
    ends, below, above, peak = np.empty(size + 1), np.empty(size), np.empty(size), np.empty(size)
    place = 0
    for i in range(first, last):
        ends[place], peak[place] = state.ends[i], state.peak[i]
        below[place], above[place] = state.below[i], state.above[i]
        if halved[i]:
            between = 0.5 * (below[place] + above[place])
            ends[place + 1], peak[place + 1] = 0.5 * (state.ends[i] + state.ends[i + 1]), peak[place]
            below[place + 1], above[place + 1], above[place] = between, above[place], between
            place += 1
        place += 1
    ends[size] = state.ends[last]
    ones, zeros = np.ones((3, size)), np.zeros((2, size))
    return Bets(
        ends, below, above, peak, ones[0], ones[1], zeros[0], zeros[1], ones[2], state.sums, state.bound, 0, 0
    )  # fmt: skip


@compiled
def _multiply(
    ends: np.ndarray,
    under: np.ndarray,
    over: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    sums: np.ndarray,
    weights: np.ndarray,
    rewards: np.ndarray,
) -> None:
    """Multiply the factors of new rows into the products `under` and `over`, and add the rows to `sums`, in place.

    `ends` are the ends of the cells, `a` and `b` the bets of the cells, and `weights` and `rewards` belong to the rows.
    """
    for t in range(weights.size):
        u, y = weights[t] - 1.0, weights[t] * rewards[t]
        for i in range(a.size):
            both = 1.0 + a[i] * u + b[i] * y
            under[i] *= both - b[i] * ends[i]
            over[i] *= both - b[i] * ends[i + 1]
        sums[0] += 1.0
        sums[1] += u
        sums[2] += u * u
        sums[3] += y
        sums[4] += u * y
        sums[5] += y * y


@compiled
def _bet(state: Bets, weights: np.ndarray, rewards: np.ndarray, max_weights: np.ndarray) -> Bets:
    """Return the state of bets after rows with `weights` (n,) and rewards (n,) in [0, 1].

    `max_weights` (n,) are the largest possible weights of the rows.
    """
    bound, left, held, t = state.bound, state.left, state.held, 0
    while t < weights.size:
        together = max(FEWEST, min(int(state.sums[0]) // PER_BET, TOGETHER))
        if held >= together:
            _fold(state.below, state.above, state.peak, state.under, state.over)
            held = 0
            if left < together:  # bets change soon
                ends, state = state.ends, _refine(state)
                left = left if state.ends is ends else 0
        if left == 0 or max_weights[t] > bound:
            bound = max(bound, max_weights[t])
            _place_bets(state.sums, bound, state.ends, state.a, state.b, state.rest)
            left = max(int(state.sums[0]) // PER_BET, 1)
        end = min(weights.size, t + min(left, together - held))
        stop = t + 1
        while stop < end and max_weights[stop] <= bound:
            stop += 1
        part = slice(t, stop)
        _multiply(state.ends, state.under, state.over, state.a, state.b, state.sums, weights[part], rewards[part])
        left, held, t = left - (stop - t), held + (stop - t), stop
    return Bets(
        state.ends, state.below, state.above, state.peak, state.under, state.over, state.a, state.b, state.rest,
        state.sums, bound, left, held,
    )  # fmt: skip


class BettingSequence:
    """Confidence sequence for the value of a policy that does not change, although the logger may learn.

    A row is a logged decision, and the value is the policy's mean reward. A confidence sequence is a pair of limits
    after every row, which hold after all rows together. This one bets against every possible value. A value is refuted
    when the bets against it have won enough. `interval` takes the level `alpha`.

    Parameters
    ----------
    rewards : Range
        Range of the rewards.
    bound : float
        Largest possible weight, at least 1, such as 1 / (least probability that the logger gives to any arm). The
        weight of a row is the policy's probability of the arm divided by the logger's. `max_weights` of `add` may raise
        the bound.
    cells : int, default 64
        Number of cells into which the range of values is divided at the start, at least 4. The values of a cell share
        their bets.
    """

    def __init__(self, rewards: Range, bound: float, cells: int = CELLS) -> None:
        self.rewards = rewards
        self._state = init_bets(cells, max(float(bound), 1.0))

    @property
    def bound(self) -> float:
        """Largest possible importance weight of the rows so far."""
        return self._state.bound

    def add(self, weights: np.ndarray, rewards: np.ndarray, max_weights: np.ndarray | None = None) -> None:
        """Add rows in their order.

        Parameters
        ----------
        weights : ndarray of shape (n,)
            Importance weights.
        rewards : ndarray of shape (n,)
            Rewards, within the range.
        max_weights : ndarray of shape (n,), default None
            Largest possible weight of each row, known before its arm was drawn. The bound rises to these numbers. None
            takes `bound`.

        Raises
        ------
        ValueError
            If a weight exceeds its bound, because the limits would not hold.
        """
        max_weights = np.full(len(weights), self.bound) if max_weights is None else np.maximum(max_weights, self.bound)
        above = np.flatnonzero(weights > max_weights * (1.0 + 1e-12))
        if above.size:
            raise ValueError(f"weights must be at most the bound {max_weights[above[0]]:g}, got {weights[above[0]]:g}")
        scaled = (rewards - self.rewards.least) / self.rewards.span
        self._state = _bet(self._state, weights, scaled, max_weights)

    def concat(self, other: "BettingSequence") -> "BettingSequence":
        """Return the sequence of these rows followed by the rows of `other`; the wealth of both is multiplied.

        The limits hold because all bets were made before their rows. They are wider than the limits of one sequence
        over all rows.

        Parameters
        ----------
        other : BettingSequence
            Sequence of the rows that follow, over the same range of rewards.

        Returns
        -------
        BettingSequence
            New sequence of all rows.

        Raises
        ------
        ValueError
            If the ranges of rewards differ.
        """
        if self.rewards != other.rewards:
            raise ValueError(f"other must have the range of rewards {tuple(self.rewards)}, got {tuple(other.rewards)}")
        ends = _merge_ends(self._state, other._state)
        one, two = _resample(self._state, ends), _resample(other._state, ends)
        sums, bound = one.sums + two.sums, max(one.bound, two.bound)
        found = BettingSequence(self.rewards, bound)
        found._state = _make_bets(ends, bound, sums)._replace(
            below=one.below + two.below,
            above=one.above + two.above,
            peak=np.maximum(one.peak, np.minimum(one.below, one.above) + two.peak),
        )
        return found

    def interval(self, alpha: float = 0.05) -> Interval:
        """Return the values that no bet has refuted so far.

        Parameters
        ----------
        alpha : float, default 0.05
            Probability with which the limits may ever fail, at least 1e-20.

        Returns
        -------
        Interval
            Limits of the value. Both are NaN if every value is refuted: then the mean of the weights is not 1.
        """
        s, least, span, wanted = self._state, self.rewards.least, self.rewards.span, float(np.log(1.0 / alpha))
        below, above = s.below + np.log(s.under), s.above + np.log(s.over)
        kept = np.flatnonzero(np.maximum(s.peak, np.minimum(below, above)) < wanted)
        if kept.size == 0:
            return Interval(float("nan"), float("nan"))
        first, last = kept[0], kept[-1]
        lower = _interpolate(s.ends[first], s.ends[first + 1], below[first], above[first], wanted)
        upper = _interpolate(s.ends[last + 1], s.ends[last], above[last], below[last], wanted)
        return self.rewards.clip(least + span * lower, least + span * upper)


def _interpolate(end: float, other: float, outer: float, inner: float, wanted: float) -> float:
    """Return the value between two ends of a cell where the line from wealth `outer` to `inner` falls to `wanted`.

    The wealth is `outer` at `end`, and `inner` at the other end, `other`. Returns `end` if `outer` is below `wanted`.
    """
    return end if outer < wanted else end + (other - end) * (outer - wanted) / (outer - inner)


def _merge_ends(one: Bets, two: Bets) -> np.ndarray:
    """Return the sorted ends (m,) of the cells of both sequences where they overlap; a single end if they do not."""
    least, largest = max(one.ends[0], two.ends[0]), min(one.ends[-1], two.ends[-1])
    every = np.unique(np.concatenate([one.ends, two.ends]))
    return every[(every >= least) & (every <= largest)] if least < largest else every[:1]


def _resample(state: Bets, ends: np.ndarray) -> Bets:
    """Return the state of bets on finer cells with these `ends`, with log wealth interpolated in the old cells.

    The products `under` and `over` are multiplied into the wealth first.
    """
    at = np.searchsorted(state.ends, ends[:-1], side="right") - 1
    below, above = (state.below + np.log(state.under))[at], (state.above + np.log(state.over))[at]
    slope = (above - below) / (state.ends[at + 1] - state.ends[at])
    return state._replace(
        below=below + slope * (ends[:-1] - state.ends[at]),
        above=below + slope * (ends[1:] - state.ends[at]),
        peak=np.maximum(state.peak[at], np.minimum(below, above)),
    )
