"""Outcomes beside the reward, learned with the inverse matrices that the mixture keeps for the reward.

    theta_jm <- theta_jm + P_m phi (y_j - phi^T theta_jm)           a row whose reward has just been learned
    theta_jm <- theta_jm + P_m phi (y_j - expected_j)               an outcome that comes after its reward
    theta_jm <- theta_jm + P_m phi (y_j - phi^T theta_jm) / (1 + h)  an outcome that comes before its reward
    mean_j = sum_m w_jm phi^T theta_jm,    w_jm ~ exp(-TRUST l_jm),  l_jm as in mixture.py, of the outcome's errors

With b_j = sum of y_j phi this is theta_jm = P_m b_j: ridge regression on the design of the reward. The models are those
on standardized columns whose inverse forgets nothing ("linear", "linear 1", "linear 10", "linear 100" and "constant").
The mixture clips rewards and weighs models by their errors on them. Outcomes have their own weights, and are not
clipped. For each outcome, a model of an arm with n features stores n numbers and takes n steps to predict. It takes n^2
/ 2 steps to learn all outcomes together. After a change alarm, the parameters of outcomes stay. When the views are
rebuilt, the first rows are learned again from a buffer. For rows that are wide and sparse there is no such model, and
the mean outcome of each arm is used.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.foundation.generic import compiled
from onepass.foundation.state import zeros
from onepass.model.averaged.mixture import CONSTANT, MODELS, NEVER, SIZE, STANDARD, TINY, TRUST, Mixture
from onepass.model.averaged.new_columns import beside, wider_theta
from onepass.model.averaged.regression import length
from onepass.model.averaged.view import View, seen, width
from onepass.model.contract import AHEAD, JOINED, REVISED

LINEAR = (1, 7, 8, 9, 10)  # of MODELS: standardized columns, or a constant alone, without drift
ALONE = 10  # the constant
KNOWN = 1e-6  # of 1 - h, at least: rounding
FAINT = 1e-3  # weight of a model below which it is not asked


class OutcomeHeads(NamedTuple):
    """Linear parameters of J outcomes beside the reward, for every arm and every linear model.

    The data of an arm are at an index of the arrays, called its slot.

    - theta (slots, J, T): parameters of every arm, model after model.
    - noise, volume (J, M): sums of errors from which the weights of the M models are computed (mixture.py).
    - number, total (slots, J): number of values of an arm, and their sum.
    - rows (R, d), slots (R,), amounts (R, J), filled (1,): buffer of rows, the slots of their arms, the outcomes
      learned, and the number of rows in use; only while feature maps are being rebuilt.
    """

    theta: np.ndarray
    noise: np.ndarray
    volume: np.ndarray
    number: np.ndarray
    total: np.ndarray
    rows: np.ndarray
    slots: np.ndarray
    amounts: np.ndarray
    filled: np.ndarray


@compiled
def linear_features(view: View, x: np.ndarray) -> np.ndarray:
    """Return the features of the columns of a row x, and the constant, in float32; `view` is the feature map.

    Kernel features are left out.
    """
    dim, z = width(view), seen(view, x)
    phi = np.empty(dim + 1, np.float32)
    for j in range(dim):
        phi[j] = z[j] * view.numbers[1]
    phi[dim] = 1.0 / np.sqrt(x.size + 1.0)
    return phi


@compiled
def features_of(phi: np.ndarray, alone: bool, constant: float) -> np.ndarray:
    """Return the features of one linear model, given the features `phi` of a row, the last of which is constant.

    The result is a copy of `phi`, or only its last entry if `alone` is True. If `constant` is above 0, it replaces the
    last entry.
    """
    own = phi[phi.size - 1 :].copy() if alone else phi.copy()
    if constant > 0.0:
        own[own.size - 1] = constant
    return own


@compiled
def weights_of(heads: OutcomeHeads, j: int, used: np.ndarray) -> np.ndarray:
    """Return the weights (M,) by which the models' predictions of outcome number j are averaged.

    `heads` are the parameters of outcomes. `used` (M,) is True for models that exist.
    """
    w, n, smallest, least = np.zeros(used.size), 0.0, np.inf, np.inf
    for a in range(heads.number.shape[0]):
        n += heads.number[a, j]
    for m in range(used.size):
        if used[m]:
            smallest = min(smallest, heads.noise[j, m] + TINY)
    for m in range(used.size):
        if used[m]:
            w[m] = 0.5 * n * np.log((heads.noise[j, m] + TINY) / smallest) + 0.5 * heads.volume[j, m]
            least = min(least, w[m])
    for m in range(used.size):
        w[m] = np.exp(-TRUST * (w[m] - least)) if used[m] else 0.0
    return w / max(w.sum(), TINY)


@compiled
def level_of(heads: OutcomeHeads, j: int) -> float:
    """Return the prediction of outcome number j for an unknown arm: the mean over known arms of their mean values.

    `heads` are the parameters of outcomes.
    """
    total, arms = 0.0, 0.0
    for a in range(heads.number.shape[0]):
        if heads.number[a, j] > 0.0:
            total += heads.total[a, j] / heads.number[a, j]
            arms += 1.0
    return total / arms if arms > 0.0 else 0.0


@compiled
def ask_heads(
    state: Mixture, heads: OutcomeHeads, rows: np.ndarray, slots: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return predicted outcomes (J, K) of arms, and the root mean square errors (J,) of predictions so far.

    `state` is the `Mixture`. `heads` are the parameters of outcomes. `slots` (K,) are the indices of the arms' models.
    `rows` is (K, d), or (1, d) if all arms have the same row.
    """
    count, arms = heads.theta.shape[1], heads.number.shape[0]
    out, used = np.zeros((count, slots.size)), np.zeros(len(LINEAR), np.bool_)
    for k in range(len(LINEAR)):
        used[k] = state.plan[LINEAR[k], SIZE] > 0
    w, levels, sizes, some = np.zeros((count, used.size)), np.zeros(count), np.zeros(count), used.any()
    for j in range(count):
        w[j], n = weights_of(heads, j, used), 0.0
        levels[j] = level_of(heads, j)
        for a in range(arms):
            n += heads.number[a, j]
        sizes[j] = np.sqrt((w[j] * heads.noise[j]).sum() / max(n, 1.0))
    for i in range(rows.shape[0]):
        phi = linear_features(state.views[STANDARD], rows[i]) if some else np.empty(0, np.float32)
        first, last = (0, slots.size) if rows.shape[0] == 1 else (i, i + 1)
        for a in range(first, last):
            slot = slots[a]
            for j in range(count):
                if slot == NEVER or slot >= arms or heads.number[slot, j] == 0.0:
                    out[j, a] = levels[j]
                elif not some:
                    out[j, a] = heads.total[slot, j] / heads.number[slot, j]
        t = 0
        for k in range(used.size):
            if used[k]:
                own = features_of(phi, LINEAR[k] == ALONE, state.settings[LINEAR[k], CONSTANT])
                for a in range(first, last):
                    slot = slots[a]
                    if slot != NEVER and slot < arms:
                        for j in range(count):
                            if heads.number[slot, j] > 0.0 and w[j, k] > FAINT:
                                out[j, a] += w[j, k] * inner(heads.theta[slot, j, t : t + own.size], own)
                t += own.size
    return out, sizes


@compiled
def inner(theta: np.ndarray, phi: np.ndarray) -> float:
    """Return the inner product theta^T phi."""
    total = np.float32(0.0)
    for i in range(phi.size):
        total += theta[i] * phi[i]
    return float(total)


@compiled
def product(inverse: np.ndarray, phi: np.ndarray) -> np.ndarray:
    """Return P phi, for a symmetric matrix P given by the rows of its lower triangle, `inverse` (n (n + 1) / 2,)."""
    u, place = np.zeros(phi.size, np.float32), 0
    for j in range(phi.size):
        total, own, row = np.float32(0.0), phi[j], inverse[place : place + j]
        for k in range(j):
            total += row[k] * phi[k]
        for k in range(j):
            u[k] += row[k] * own
        u[j] += total + inverse[place + j] * own
        place += j + 1
    return u


@compiled
def add_heads(
    state: Mixture, heads: OutcomeHeads, row: np.ndarray, slot: int, values: np.ndarray, expected: np.ndarray, mode: int
) -> None:
    """Update the parameters `heads` of outcomes, in place, by the outcomes of a row.

    - state: the averaged models, whose inverse matrices and feature maps are used.
    - row (d,), slot: the row, and the index of its arm's models.
    - values (J,): outcomes, NaN for a missing one.
    - expected (J,): for REVISED, the values learned earlier.
    - mode: JOINED if the outcomes come with the reward, AHEAD if before it, REVISED if they replace earlier ones.
    """
    if heads.theta.shape[2] == 0:  # no such model
        return
    phi, t, p, k = linear_features(state.views[STANDARD], row), 0, 0, 0
    for m in range(state.plan.shape[0]):
        n = state.plan[m, SIZE]
        if k < len(LINEAR) and m == LINEAR[k]:
            if n > 0:
                own = features_of(phi, m == ALONE, state.settings[m, CONSTANT])
                u = product(state.inverse[slot, p : p + length(n)], own)
                h = max(inner(u, own), 0.0)
                left = max(1.0 - h, KNOWN)  # 1 / (1 + h) of h before the row
                for j in range(values.size):
                    if not np.isnan(values[j]):
                        theta = heads.theta[slot, j, t : t + n]
                        e = values[j] - (expected[j] if mode == REVISED else inner(theta, own))
                        gain = np.float32(e / (1.0 + h) if mode == AHEAD else e)
                        for i in range(n):
                            theta[i] += gain * u[i]
                        if mode == JOINED:
                            heads.noise[j, k] += e * e * left
                            heads.volume[j, k] -= np.log(left)
                t += n
            k += 1
        p += length(n)


@compiled
def learn_heads(
    state: Mixture, heads: OutcomeHeads, row: np.ndarray, slot: int, values: np.ndarray, expected: np.ndarray, mode: int
) -> None:
    """Learn the outcomes `values` (J,) of a row, and count them in the arm's mean outcomes.

    `heads` are the parameters of outcomes, changed in place, and `slot` is the arm's index. `expected` (J,) are the
    values learned before, if the outcomes are corrected. `mode` says if they come with the reward (JOINED), before
    it (AHEAD), or replace earlier ones (REVISED).
    """
    add_heads(state, heads, row, slot, values, expected, mode)
    for j in range(values.size):
        if not np.isnan(values[j]):
            if mode == REVISED:
                heads.total[slot, j] += values[j] - expected[j]
            else:
                heads.total[slot, j] += values[j]
                heads.number[slot, j] += 1.0


@compiled
def replay_buffer(state: Mixture, heads: OutcomeHeads) -> None:
    """Update the parameters `heads` of outcomes, in place, by all rows in their buffer."""
    for i in range(heads.filled[0]):
        slot = heads.slots[i]
        if slot != NEVER and state.last[slot] != NEVER:
            add_heads(state, heads, heads.rows[i], slot, heads.amounts[i], np.zeros(heads.amounts.shape[1]), REVISED)


def init_heads(count: int, dim: int, room: int) -> OutcomeHeads:
    """Return the parameters of `count` outcomes that have learned nothing; the buffer has room for `room` rows.

    `dim` is the number of columns of a row.
    """
    return OutcomeHeads(
        theta=zeros(0, count, 0, dtype=np.float32),
        noise=zeros(count, len(LINEAR)),
        volume=zeros(count, len(LINEAR)),
        number=zeros(0, count),
        total=zeros(0, count),
        rows=zeros(room, dim),
        slots=zeros(room, dtype=np.int64),
        amounts=zeros(room, count),
        filled=zeros(1, dtype=np.int64),
    )


def theta_size(state: Mixture) -> int:
    """Return the number of parameters for one outcome and one arm."""
    return int(state.plan[list(LINEAR), SIZE].sum())


def resize_heads(heads: OutcomeHeads, state: Mixture, remade: bool) -> OutcomeHeads:
    """Return the parameters of outcomes with room for all arms of the averaged models `state`.

    If `remade` is True, feature maps were rebuilt, and the parameters are learned again from the buffer.
    """
    slots, before = len(state.last), len(heads.theta)
    if slots > before:
        more = {name: np.zeros((slots, getattr(heads, name).shape[1])) for name in ("number", "total")}
        for name, array in more.items():
            array[:before] = getattr(heads, name)
        theta = np.zeros((slots, *heads.theta.shape[1:]), np.float32)
        theta[:before] = heads.theta
        heads = heads._replace(theta=theta, **more)
    if remade:
        heads = heads._replace(theta=np.zeros((slots, heads.theta.shape[1], theta_size(state)), np.float32))
        replay_buffer(state, heads)
        if len(state.rows) == 0:  # views stay
            heads = heads._replace(
                rows=heads.rows[:0].copy(), slots=heads.slots[:0].copy(), amounts=heads.amounts[:0].copy(),
                filled=np.zeros(1, np.int64),
            )  # fmt: skip
    return heads


def keep_amounts(heads: OutcomeHeads, row: np.ndarray, slot: int, amounts: np.ndarray, revised: bool) -> None:
    """Store the outcomes `amounts` (J,) of a row in the buffer of `heads`, as a new row if there is room.

    If `revised` is True, the row may be in the buffer already: the amounts are added to the newest equal row of the arm
    at index `slot`, if there is one.
    """
    room, filled = len(heads.rows), int(heads.filled[0])
    if room == 0:
        return
    if revised:
        for i in np.flatnonzero(heads.slots[:filled] == slot)[::-1]:
            if np.array_equal(heads.rows[i], row):
                heads.amounts[i] += amounts
                return
    if filled < room:
        heads.rows[filled], heads.slots[filled], heads.amounts[filled] = row, slot, amounts
        heads.filled[0] = filled + 1


def erase_heads(heads: OutcomeHeads, slot: int) -> None:
    """Forget the outcomes of the arm at index `slot` in the parameters `heads`."""
    if slot < len(heads.theta):
        for array in (heads.theta, heads.number, heads.total):
            array[slot] = 0.0
    heads.slots[heads.slots == slot] = NEVER


def widen_heads(heads: OutcomeHeads, state: Mixture, fills: np.ndarray) -> OutcomeHeads:
    """Return the outcome heads after new columns were added to the rows.

    `state` is the state of the averaged models without these columns, and `fills` are the values that earlier rows have
    in the new columns (new_columns.py).
    """
    before = state.rows.shape[1]
    grown, parts, t = np.float32(np.sqrt((before + len(fills) + 1.0) / (before + 1.0))), [], 0
    for m in LINEAR:
        n = int(state.plan[m, SIZE])
        if n:
            constant = np.float32(1.0) if state.settings[m, CONSTANT] > 0.0 else grown
            flat = heads.theta[:, :, t : t + n].reshape(-1, n)
            wide = wider_theta(flat, 0 if m == ALONE else len(fills), constant)
            parts.append(wide.reshape(*heads.theta.shape[:2], -1))
        t += n
    theta = np.ascontiguousarray(np.concatenate(parts, axis=2)) if parts else heads.theta
    return heads._replace(theta=theta, rows=beside(heads.rows, np.tile(fills, (len(heads.rows), 1))))


def heads_fit(heads: OutcomeHeads, state: Any, begun: OutcomeHeads) -> bool:
    """Return True if the loaded arrays `heads` are consistent with each other and with the averaged models `state`.

    `begun` are parameters of the right shape that have learned nothing.
    """
    count, slots = begun.theta.shape[1], len(heads.theta)
    size = 0 if state == () else theta_size(state)
    room = len(heads.rows)
    return bool(
        heads.theta.shape == (slots, count, heads.theta.shape[2])
        and heads.theta.shape[2] in ((size,) if slots else (0, size))
        and slots <= (0 if state == () else len(state.last))
        and heads.noise.shape == heads.volume.shape == begun.noise.shape
        and heads.number.shape == heads.total.shape == (slots, count)
        and heads.rows.shape[1] == begun.rows.shape[1]
        and heads.slots.shape == (room,)
        and heads.amounts.shape == (room, count)
        and heads.filled.shape == (1,)
        and 0 <= heads.filled[0] <= room
        and ((heads.slots >= NEVER) & (heads.slots < max(slots, 1))).all()
        and (heads.number >= 0.0).all()
    )


assert all(MODELS[m][0] == STANDARD and MODELS[m][2] == 0.0 for m in LINEAR)
