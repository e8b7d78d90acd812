"""Compiled plays of a budgeted kernel bandit, on the present dictionary or with a point that joins it.

    z(x) = L^-1 k_S(x), L L^T = K_S        V = reg I + sum of z z^T over all plays = (R R^T)^-1        rows: z

S is the dictionary of m played points, and k_S and K_S are their kernel values. When a point joins S, z gets one more
coordinate, and V one more row and column. A play is a rank-one step. With A arms, both take O(A m).
"""

import numpy as np

from onepass.foundation.cholesky_updates import shift_root
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import dot
from onepass.model.kernel.state import LOG_DET, STALE, USED, KernelState, combine_rows, combine_rows_twice, record_play


@compiled
def residual_variance(state: KernelState, place: int) -> float:
    """Return the variance of the stored point with index `place` that the dictionary's points do not explain.

    It is k(x, x) - z^T z, where z holds the features that the dictionary defines; 0 for points of the dictionary.
    `state` is the `KernelState` of the posterior.
    """
    used, rest = int(state.tally[USED]), state.prior[place]
    for i in range(used):
        if state.members[i] == place:
            return 0.0
    for i in range(used):
        rest -= state.rows[i, place] * state.rows[i, place]
    return rest


@compiled
def update_posterior(state: KernelState, place: int, reward: float, rest: float, reg: float) -> None:
    """Update the posterior by a reward of the stored point with index `place`; the dictionary stays the same.

    `state` is the `KernelState` of the posterior, changed in place. `rest` is the point's `residual_variance`, and
    `reg` the variance of the noise.
    """
    used = int(state.tally[USED])
    root, z = state.root[:used], np.empty(used)
    for i in range(used):
        z[i] = state.rows[i, place]
    v = dot(z, root)
    q, u = float(dot(v, v)), dot(root, v)
    covariance = combine_rows(u, state.rows)
    for a in range(covariance.size):
        covariance[a] *= reg
    record_play(state, covariance, reg * q, place, reward, reg)
    state.variances[place] = rest / reg + q / (1.0 + q)
    if q > 0.0:
        shift_root(root, v, u, q, 1.0)


@compiled
def add_to_dictionary(state: KernelState, row: np.ndarray, place: int, reward: float, rest: float, reg: float) -> None:
    """Add the stored point with index `place` to the dictionary, and learn its reward, in place.

    Every point y has features z(y), by which the dictionary represents it. They gain the coordinate g(y) = (k(x, y) -
    z(x)^T z(y)) / sqrt(rest) for the new point x, which is 0 for points of the dictionary. `row` holds k(x, y) for all
    stored points, and `rest` is the point's `residual_variance`. The matrix V = reg I + sum of z z^T over the plays
    gains a row and a column: w = sum of z g over the plays, and reg + sum of g^2. With s = reg + sum of g^2 - w^T V^-1
    w, the root R of V^-1 becomes (R, -V^-1 w / sqrt(s); 0, 1 / sqrt(s)). If all played points are in the dictionary, g
    is 0 at all of them, so w = 0 and s = reg. There must be room for one more point.
    """
    used, size = int(state.tally[USED]), state.size
    z, known = np.empty(used), np.zeros(size, np.bool_)
    for i in range(used):
        z[i] = state.rows[i, place]
        known[state.members[i]] = True
    scale, total, weighted, others = 1.0 / np.sqrt(rest), 0.0, np.zeros(used), False
    for a in range(size):
        if state.plays[a] > 0.0 and not known[a]:
            column, others = state.rows[:used, a].copy(), True
            own = (row[a] - (float(dot(z, column)) if used > 0 else 0.0)) * scale
            total += state.plays[a] * own * own
            for i in range(used):
                weighted[i] += state.plays[a] * own * column[i]
    root, across = state.root[:used], np.zeros(used)
    if others and used > 0:
        across = dot(root, dot(weighted, root))
    s = reg + max(total - (float(dot(weighted, across)) if used > 0 else 0.0), 0.0)
    state.root[:used, used] = -across / np.sqrt(s)
    state.root[used, used] = 1.0 / np.sqrt(s)
    longer = state.root[: used + 1]
    v = dot(np.append(z, np.sqrt(rest)), longer)
    q, u = float(dot(v, v)), dot(longer, v)
    z_rows, covariance = combine_rows_twice(z, u, state.rows)
    new = state.rows[used]
    for a in range(size):
        new[a] = 0.0 if known[a] else (row[a] - z_rows[a]) * scale
    for a in range(size):
        covariance[a] = reg * (covariance[a] + u[used] * new[a])
    if others:
        part = new[:size] - combine_rows(across, state.rows)[:size]
        paid, ones = float(dot(state.sums[:size], part)), float(dot(state.plays[:size], part))
        for a in range(size):
            state.variances[a] = max(state.variances[a] + part[a] * part[a] / s - new[a] * new[a] / reg, 0.0)
            state.means[a] += part[a] * paid / s
            state.ones[a] += part[a] * ones / s
    state.members[used] = place
    state.tally[USED] += 1.0
    state.tally[LOG_DET] += np.log(s / reg)
    record_play(state, covariance, reg * q, place, reward, reg)
    state.variances[place] = q / (1.0 + q)
    shift_root(longer, v, u, q, 1.0)


@compiled
def count_play(state: KernelState, stale: float, place: int, copies: float, chance: float) -> None:
    """Update the counters of a dictionary model after a reward of the stored point with index `place` was learned.

    - stale: amount added to the sum that decides when the dictionary is drawn again.
    - copies, chance: number of the point's plays in an incremental dictionary, and the probability with which each is
      in it.
    """
    state.tally[STALE] += stale
    if state.copies.shape[0] > 0:
        state.copies[0, place], state.copies[1, place] = copies, chance


@compiled
def play_outside_dictionary(
    state: KernelState, least: float, stale: float, place: int, reward: float, reg: float, copies: float, chance: float
) -> float:
    """Learn a reward of the stored point with index `place` without adding the point to the dictionary, and return 0.

    This is done only if the `residual_variance` of the point is from 0 to `least`. Otherwise nothing is learned, and
    the function returns the residual variance, so that the caller can add the point to the dictionary. `stale` is
    added to the sum that decides when the dictionary is drawn again. `copies` and `chance` are the point's number of
    copies and its probability in an incremental dictionary, and `reg` is the variance of the noise.
    """
    rest = residual_variance(state, place)
    if rest < 0.0 or rest > least:
        return rest
    update_posterior(state, place, reward, rest, reg)
    count_play(state, stale, place, copies, chance)
    return 0.0


@compiled
def play_and_join(
    state: KernelState,
    row: np.ndarray,
    rest: float,
    stale: float,
    place: int,
    reward: float,
    reg: float,
    copies: float,
    chance: float,
) -> None:
    """Add the stored point with index `place` to the dictionary, and learn its reward.

    `row` holds the kernel between the point and all stored points, and `rest` is the point's `residual_variance`. An
    empty `row` means that the dictionary's points explain it already, so it does not join. `stale` is added to the sum
    that decides when the dictionary is drawn again. `copies` and `chance` are the point's number of copies and its
    probability in an incremental dictionary, and `reg` is the variance of the noise.
    """
    if row.size > 0:
        add_to_dictionary(state, row, place, reward, rest, reg)
    else:
        update_posterior(state, place, reward, 0.0, reg)
    count_play(state, stale, place, copies, chance)
