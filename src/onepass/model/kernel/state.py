"""State of a kernel bandit's posterior over a table of points: the fixed arms, or all distinct points played so far.

    mean(x) = k(x)^T (K + reg I)^-1 y        variance(x) = (k(x, x) - k(x)^T (K + reg I)^-1 k(x)) / reg

One state serves the exact and the budgeted posterior (exact.py, budgeted.py). They differ in what `rows` and `root`
hold, not in how a play changes the table. With c the posterior covariance between the played point and all points,

    gain = c / (reg + c_played)    mean += gain (y - mean_played)    variance -= gain c / reg

Rewards may be centred by their running mean at no cost: the mean is linear in y, so it is enough to keep `ones`, the
means if all rewards were 1.
"""

from typing import NamedTuple

import numpy as np

from onepass.foundation.generic import compiled
from onepass.foundation.linalg import dot
from onepass.foundation.state import zeros

ROOM = 8  # rows at the beginning, and beside the growth of those there are
GROWTH = 1.25  # of capacities
ABREAST = 4  # rows that are summed at once
EQUAL = 10.0  # roundings of their mean, below which a deviation of rewards is none
USED, ROUNDS, CENTRE, SCATTER, LOG_DET, STALE = range(6)
"""The tally: rows in use, plays, mean of the rewards and sum of squares about it, log det of (K + reg I) / reg,
sum of variances of the plays, since the dictionary was drawn, whose point did not join it (BKB)."""


class KernelState(NamedTuple):
    """State of a kernel posterior over a table of points.

    - points (capacity, dim): the table, of which the first `size` rows count.
    - plays, sums, prior (capacity,): number of plays, sum of rewards and k(x, x) of each point.
    - means, ones, variances (capacity,): posterior means, means if all rewards were 1, and variances.
    - rows (row_capacity, capacity), root (row_capacity, row_capacity): matrices of the posterior (exact.py,
      budgeted.py).
    - members (row_capacity,): table index of each row's point.
    - copies (2, capacity): for an incremental dictionary, how many plays of a point are in it, and with what chance
      each; (0, capacity) for others.
    - tally: counters (n_rows, n_learned and others), in an array so that a play is one compiled call that nothing can
      interrupt half-way.
    """

    points: np.ndarray
    plays: np.ndarray
    sums: np.ndarray
    prior: np.ndarray
    means: np.ndarray
    ones: np.ndarray
    variances: np.ndarray
    rows: np.ndarray
    root: np.ndarray
    members: np.ndarray
    copies: np.ndarray
    size: int
    tally: np.ndarray

    @property
    def n_rows(self) -> int:
        """Number of rows in use of the posterior's matrices."""
        return int(self.tally[USED])

    @property
    def n_learned(self) -> int:
        """Number of plays that the posterior has learned."""
        return int(self.tally[ROUNDS])


class Posterior(NamedTuple):
    """Posterior of the mean reward f(x) at n points x.

    Parameters
    ----------
    means : array of shape (n,)
        Means, in units of rewards.
    variances : array of shape (n,)
        Variances divided by reg: deviations^2 / reg.
    deviations : array of shape (n,)
        Standard deviations of f, in units of rewards.
    """

    means: np.ndarray
    variances: np.ndarray
    deviations: np.ndarray


def init_state(points: np.ndarray, prior: np.ndarray, reg: float, copies: int) -> KernelState:
    """Return the state before the first play, for points (m, dim) with prior variances `prior` (m,).

    `reg` is the variance of the noise, and `copies` the number of rows of the field `copies`, 0 or 2.
    """
    size = len(points)
    return KernelState(
        points=points,
        plays=zeros(size),
        sums=zeros(size),
        prior=prior,
        means=zeros(size),
        ones=zeros(size),
        variances=prior / reg,
        rows=zeros(ROOM, size),
        root=zeros(ROOM, ROOM),
        members=zeros(ROOM, dtype=np.int64),
        copies=zeros(copies, size),
        size=size,
        tally=zeros(6),
    )


def pad_array(array: np.ndarray, *shape: int) -> np.ndarray:
    """Return an array of the given shape that holds `array` in its leading corner, and zeros elsewhere."""
    out = np.zeros(shape, array.dtype)
    out[tuple(slice(n) for n in array.shape)] = array
    return out


def ensure_capacity(state: KernelState) -> KernelState:
    """Return the posterior's state with room for one more point, in arrays of twice the size if they are full."""
    if state.n_rows < len(state.members):
        return state
    capacity = int(GROWTH * state.n_rows) + ROOM
    return state._replace(
        rows=pad_array(state.rows, capacity, state.rows.shape[1]),
        root=pad_array(state.root, capacity, capacity),
        members=pad_array(state.members, capacity),
    )


def append_point(state: KernelState, point: np.ndarray, prior: float, reg: float) -> KernelState:
    """Return the state with the point x (dim,) added to its table.

    `prior` is the prior variance k(x, x), and `reg` the variance of the noise. The point gets the variance prior / reg
    and the mean 0, as before the first play. The caller then fills the point's column of `rows`, and replaces its mean
    and variance by the posterior's.
    """
    size, capacity = state.size, len(state.plays)
    if size == capacity:
        capacity = int(GROWTH * size) + ROOM
        state = state._replace(
            points=pad_array(state.points, capacity, state.points.shape[1]),
            plays=pad_array(state.plays, capacity),
            sums=pad_array(state.sums, capacity),
            prior=pad_array(state.prior, capacity),
            means=pad_array(state.means, capacity),
            ones=pad_array(state.ones, capacity),
            variances=pad_array(state.variances, capacity),
            rows=pad_array(state.rows, len(state.rows), capacity),
            copies=pad_array(state.copies, len(state.copies), capacity),
        )
    state.points[size], state.prior[size], state.variances[size] = point, prior, prior / reg
    return state._replace(size=size + 1)


@compiled
def record_play(state: KernelState, covariance: np.ndarray, own: float, place: int, reward: float, reg: float) -> None:
    """Update means and variances of all stored points by a reward of the point with index `place`, in place.

    `state` is the `KernelState` of the posterior. `covariance` is the point's posterior covariance with all points,
    `own` its variance, and `reg` the variance of the noise.
    """
    gap, lack = reward - state.means[place], 1.0 - state.ones[place]
    scale = 1.0 / (reg + own)
    for a in range(state.size):
        c = covariance[a]
        gain = c * scale
        state.means[a] += gain * gap
        state.ones[a] += gain * lack
        state.variances[a] = max(state.variances[a] - gain * c / reg, 0.0)
    state.plays[place] += 1.0
    state.sums[place] += reward
    state.tally[LOG_DET] += np.log1p(own / reg)
    count_reward(state.tally, reward)


@compiled
def count_reward(tally: np.ndarray, reward: float) -> None:
    """Count one more reward in the statistics `tally`, in place: number, mean and sum of squares about the mean."""
    tally[ROUNDS] += 1.0
    gap = reward - tally[CENTRE]
    tally[CENTRE] += gap / tally[ROUNDS]
    tally[SCATTER] += gap * (reward - tally[CENTRE])


def reward_units(state: KernelState, normalize: bool) -> tuple[float, float]:
    """Return the centre and scale by which rewards are normalized: 0 and 1 unless `normalize` is True."""
    if not normalize or state.n_learned == 0:
        return 0.0, 1.0
    centre, deviation = float(state.tally[CENTRE]), float(np.sqrt(state.tally[SCATTER] / state.n_learned))
    least = EQUAL * np.finfo(float).eps * max(abs(centre), np.finfo(float).tiny)
    return centre, deviation if deviation > least else 1.0


@compiled
def in_reward_units(
    means: np.ndarray, ones: np.ndarray, variances: np.ndarray, centre: float, scale: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return posterior means and widths in units of rewards, computed from the posterior of normalized rewards.

    Rewards were normalized by `centre` and `scale`. `ones` are the means if all rewards were 1. The width is scale *
    sqrt(variance).
    """
    found, widths = np.empty(means.size), np.empty(means.size)
    for a in range(means.size):
        found[a] = centre + means[a] - centre * ones[a]
        widths[a] = scale * np.sqrt(variances[a])
    return found, widths


@compiled
def combine_rows(weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return weights^T rows (capacity,), for weights (used,) and the first `used` rows of (row_capacity, capacity)."""
    if weights.size == 0:
        return np.zeros(rows.shape[1])
    return dot(weights, rows[: weights.size])


@compiled
def combine_rows_twice(first: np.ndarray, second: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return first^T rows and second^T rows, each (capacity,), computed in one pass.

    `first` and `second` (used,) are weights of the first `used` rows of `rows` (row_capacity, capacity). One pass takes
    half the time of two if the rows are larger than a cache.
    """
    one, other = np.zeros(rows.shape[1]), np.zeros(rows.shape[1])
    whole = first.size - first.size % ABREAST
    for i in range(0, whole, ABREAST):
        p, q, r, s = rows[i], rows[i + 1], rows[i + 2], rows[i + 3]
        p1, q1, r1, s1 = first[i], first[i + 1], first[i + 2], first[i + 3]
        p2, q2, r2, s2 = second[i], second[i + 1], second[i + 2], second[i + 3]
        for a in range(one.size):
            one[a] += p1 * p[a] + q1 * q[a] + r1 * r[a] + s1 * s[a]
            other[a] += p2 * p[a] + q2 * q[a] + r2 * r[a] + s2 * s[a]
    for i in range(whole, first.size):
        p, p1, p2 = rows[i], first[i], second[i]
        for a in range(one.size):
            one[a] += p1 * p[a]
            other[a] += p2 * p[a]
    return one, other


class Plays(NamedTuple):
    """Indices (n,) of stored points, and rewards (n,), of the latest plays, to which a kernel will be fitted."""

    places: np.ndarray
    rewards: np.ndarray

    def append(self, place: int, reward: float, most: int) -> "Plays":
        """Return the plays with one more, of the stored point with index `place`; only the latest `most` remain."""
        return Plays(np.append(self.places, place)[-most:], np.append(self.rewards, reward)[-most:])


NO_PLAYS = Plays(np.empty(0, np.int64), np.empty(0))


class SavedKernelModel(NamedTuple):
    """File contents of a kernel model: the state, and the fields of `Plays`."""

    state: KernelState
    places: np.ndarray
    rewards: np.ndarray


def consistent(held: SavedKernelModel, fixed: bool, fit_after: int) -> bool:
    """Return True if shapes and counters of a loaded model agree.

    If `fixed`, the table has no room for more points; `fit_after` is the largest number of plays that are held
    for the first fit of the kernel.
    """
    s = held.state
    capacity, rows = len(s.plays), len(s.members)
    columns = (s.sums, s.prior, s.means, s.ones, s.variances)
    return (
        s.points.shape[:1] == (capacity,)
        and all(column.shape == (capacity,) for column in columns)
        and s.rows.shape == (rows, capacity)
        and s.root.shape == (rows, rows)
        and s.copies.shape in ((0, capacity), (2, capacity))
        and bool(((s.copies >= 0.0) & np.isfinite(s.copies)).all())
        and s.tally.shape == (6,)
        and bool(np.isfinite(s.tally).all())
        and 0 <= s.n_rows <= min(rows, s.size)
        and (s.size == capacity if fixed else s.size <= capacity)
        and bool(((s.members >= 0) & (s.members < max(s.size, 1))).all())
        and held.places.shape == held.rewards.shape
        and len(held.places) <= fit_after
        and bool(((held.places >= 0) & (held.places < max(s.size, 1))).all())
    )
