"""Learning in an arena (arena.py): an arm is copied out of its slots, learns, and is written back.

An arm learns like any inverse on a subspace (design/subspace.py), except for three things. A chunk of rows is projected
on the arm's directions by one matrix product. The moment b is stored as its coordinates Q b, and its part outside the
span as o. Estimators with Newton steps store theta in the same way, in place of b (rewards.py). In a hybrid model, B =
sum of x z^T is stored in the same way, too.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.arena.arena import NONE, ArenaState, release_slots, reserve_slots, set_sums, sums_of
from onepass.arena.rewards import add_lost_part, add_reward, add_row, new_coordinate, slot_coordinate, theta_coordinate
from onepass.design.subspace import Subspace, add_direction, raise_log_det, record_omission, with_spectrum
from onepass.design.truncation import Sums, add_dust, add_mass, certificate, plan_truncation, truncation_rise
from onepass.features.outer_product import fill_product
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import dot, fill, inverse_root_error, reorthogonalize

CHUNK = 32  # rows of an arm that are projected by one matrix product
AGAIN = 8  # new directions after which the rest of a chunk is projected once more


class Scratch(NamedTuple):
    """Scratch arrays in which one arm learns, with room for `limit` directions.

    `basis` holds the directions Q, `root` the root R, `moment` the coordinates of b = sum of reward times row (or of
    theta) on the directions, `cross` those of the sum of x z^T in a hybrid model, and `outside` the part o of b outside
    the directions. `z`, `v` and `u` (limit,) are work vectors, and `chunk` holds rows that are projected together.
    """

    basis: np.ndarray
    root: np.ndarray
    moment: np.ndarray
    cross: np.ndarray
    outside: np.ndarray
    z: np.ndarray
    v: np.ndarray
    u: np.ndarray
    chunk: np.ndarray


@compiled
def make_scratch(arena: ArenaState, limit: int, count: int) -> Scratch:
    """Make scratch arrays for up to `limit` directions and batches of up to `count` rows."""
    kind, dim, k = arena.basis.dtype, arena.basis.shape[1], arena.cross.shape[1]
    return Scratch(
        basis=np.empty((limit, dim), kind),
        root=np.empty((limit, limit), kind),
        moment=np.empty(limit, kind),
        cross=np.empty((limit, k), kind),
        outside=np.empty(dim, kind),
        z=np.empty(limit, kind),
        v=np.empty(limit, kind),
        u=np.empty(limit, kind),
        chunk=np.empty((min(CHUNK, count), dim), kind),
    )


@compiled
def gather(arena: ArenaState, arm_rule: Any, arm_id: int, work: Scratch) -> tuple[Subspace, np.ndarray]:
    """Copy the arm with the id `arm_id` into the scratch arrays `work`, and return its subspace and its slots' indices.

    A slot is a row of the arena that holds one direction of one arm. `arm_rule` is the rule by which the arm learns.
    """
    slots = np.empty(arena.n_slots[arm_id], np.int64)
    slot, used = arena.first[arm_id], arena.used[arm_id]
    for i in range(slots.size):
        slots[i] = slot
        slot = arena.link[slot]
    for i in range(used):
        slot = slots[i]
        work.moment[i] = slot_coordinate(arm_rule, arena.moment[slot], arena.weight[slot])
        for j in range(arena.basis.shape[1]):
            work.basis[i, j] = arena.basis[slot, j]
        for j in range(used):
            work.root[i, j] = arena.root[slot, j]
        for j in range(arena.cross.shape[1]):
            work.cross[i, j] = arena.cross[slot, j]
    slot = arena.outside[arm_id]
    for j in range(arena.basis.shape[1]):
        work.outside[j] = arena.basis[slot, j] if slot != NONE else 0.0
    space = Subspace(
        basis=work.basis, root=work.root, used=used, ridge=arena.ridge[arm_id], log_det=arena.log_det[arm_id], left=0.0
    )
    return space, slots


@compiled
def scatter(
    arena: ArenaState, arm_rule: Any, arm_id: int, work: Scratch, space: Subspace, slots: np.ndarray, kept: int
) -> None:
    """Copy an arm from the scratch arrays `work` into its slots (used,) of the arena, and store its parameter there.

    `arm_rule` is the estimator's rule for arms, which computes the parameter. The arm's first `kept` directions are
    unchanged, so they are not copied; `space` is its subspace now.
    """
    used, inside = space.used, np.zeros(space.used)
    for i in range(used):
        for j in range(used):
            inside[j] += work.root[i, j] * work.moment[i]
    for i in range(used):
        slot, weight = slots[i], 0.0
        for j in range(used):
            weight += work.root[i, j] * inside[j]
        for j in range(used):
            arena.root[slot, j] = work.root[i, j]
        arena.weight[slot], arena.moment[slot] = theta_coordinate(arm_rule, weight, work.moment[i]), work.moment[i]
        for j in range(arena.cross.shape[1]):
            arena.cross[slot, j] = work.cross[i, j]
        if i >= kept:
            for j in range(arena.basis.shape[1]):
                arena.basis[slot, j] = work.basis[i, j]
    slot = arena.outside[arm_id]
    if slot != NONE:
        for j in range(arena.basis.shape[1]):
            arena.basis[slot, j] = work.outside[j]
    arena.used[arm_id], arena.ridge[arm_id], arena.log_det[arm_id] = used, space.ridge, space.log_det


@compiled
def fill_chunk(chunk: np.ndarray, rows: np.ndarray, right: np.ndarray, chosen: np.ndarray) -> None:
    """Copy the rows with indices `chosen` into the array `chunk`.

    If `right` (n, d_a) is not empty, `rows` (n, d_u) holds left factors, and the outer products of left and right
    factors are written.
    """
    for a in range(chosen.size):
        row = rows[chosen[a]]
        if right.shape[1] > 0:
            fill_product(chunk[a], row, right[chosen[a]])
        else:
            for j in range(row.size):
                chunk[a, j] = row[j]


@compiled
def extend_span(
    arm_rule: Any,
    work: Scratch,
    space: Subspace,
    base: int,
    row: np.ndarray,
    inside: np.ndarray,
    residual: np.ndarray,
    shed: float,
) -> Subspace:
    """Add the direction of a row to an arm's directions, and return the subspace; work.z becomes the row's coordinates.

    `inside` and `residual` are the row's coordinates along the first `base` directions, and the rest of the row outside
    them; the other directions are taken out of `residual` here. If anything was truncated before (`shed` > 0), the part
    along the new direction is taken out of o, the part of the moment outside the directions, and gives the moment's
    coordinate there. `work` are the scratch arrays of the arm, and `arm_rule` is the rule by which it learns.
    """
    used, dim, z = space.used, row.size, work.z
    for i in range(base):
        z[i] = inside[i]
    if base == dim:
        return space
    for i in range(base, used):
        along = dot(space.basis[i], row)
        z[i] = along
        for j in range(dim):
            residual[j] -= along * space.basis[i, j]
    length = reorthogonalize(space.basis[:used], row, z[:used], residual)
    if length <= 0.0:
        return record_omission(space, z[:used], -length)
    space = add_direction(space, residual, length)
    z[used], work.moment[used] = length, 0.0
    for j in range(work.cross.shape[1]):
        work.cross[used, j] = 0.0
    if shed > 0.0:
        along = dot(space.basis[used], work.outside)
        work.moment[used] = new_coordinate(arm_rule, along, space.ridge)
        for j in range(dim):
            work.outside[j] -= along * space.basis[used, j]
    return space


@compiled
def truncate_arm(
    rule: Any, arm_rule: Any, memory: np.ndarray, work: Scratch, space: Subspace, sums: Sums
) -> tuple[Subspace, Sums]:
    """Truncate the arm in the scratch arrays `work`, and return its subspace and its totals afterwards.

    `rule` is the truncation rule of the design, and `arm_rule` the rule by which the arm learns. `memory` (m,) holds
    the numbers that the estimator keeps for the arm, and `sums` the totals of what was cut off before. The part of the
    moment along lost directions is added to o, the part of the moment outside the directions.
    """
    used, before = space.used, space.ridge
    kept, ridge, sums, turn, spectrum = plan_truncation(space, rule, sums)
    keep, moment = kept.size, dot(turn, work.moment[:used])
    rise, lost = truncation_rise(kept, ridge, spectrum, before), work.outside[:0]
    if keep < used:
        lost = dot(dot(moment[keep:], turn[keep:]), space.basis[:used])
    if work.cross.shape[1] > 0:
        fill(work.cross[:keep], dot(turn[:keep], work.cross[:used]))
    for i in range(keep):
        work.moment[i] = moment[i]
    space = with_spectrum(space, turn[:keep], kept, ridge)
    add_lost_part(arm_rule, memory, work, lost, before, space, rise)
    return space, sums


@compiled
def eliminate_row(work: Scratch, used: int, q: float, extra: np.ndarray, reward: float, increment: np.ndarray) -> float:
    """Fill `increment` (k,) with a row for the shared part of a hybrid model, and return its target.

    The arm learns a row x with shared features z = `extra` (k,) and reward r. Before this row it has the design A, the
    moment b = sum of reward times row, and the cross matrix B = sum of x z^T. What is left for the shared part is the
    row sqrt(w) (z - B^T A^-1 x) with the target sqrt(w) (r - b^T A^-1 x), where w = 1 / (1 + x^T A^-1 x). This is block
    elimination of the arm (Li et al. 2010, algorithm 2), row by row. On entry work.u is A^-1 x, q is x^T A^-1 x, and
    `used` is the number of the arm's directions. The function adds x z^T to B, and changes neither A nor b.
    """
    weight, target = 1.0 / np.sqrt(1.0 + q), reward
    for j in range(extra.size):
        increment[j] = extra[j] * weight
    for i in range(used):
        target -= work.u[i] * work.moment[i]
        along = work.u.dtype.type(work.u[i] * weight)
        for j in range(extra.size):
            increment[j] -= along * work.cross[i, j]
            work.cross[i, j] += work.z[i] * extra[j]
    return target * weight


@compiled
def learn_arm(
    arena: ArenaState, rule: Any, limit: int, arm_rule: Any, arm_id: int, rows: np.ndarray, right: np.ndarray,
    rewards: np.ndarray, extra: np.ndarray, chosen: np.ndarray, work: Scratch, increments: np.ndarray,
    targets: np.ndarray,
) -> None:  # fmt: skip
    """Learn the rows with indices `chosen` in one arm, in order.

    rows (n, dim), right (n, 0) and rewards (n,) belong to all arms. Contexts may also be outer products of rows (n,
    d_u) and right (n, d_a). `arm_rule` is the estimator's update rule. The arm is truncated by `rule` when it holds
    `limit` directions, and `work` are the arrays in which it learns. In a hybrid model, extra (n, k) holds the features
    of the shared part, and increments (n, k) and targets (n,) receive the rows and targets that this part has to learn.
    """
    dim, k, hold = arena.basis.shape[1], arena.cross.shape[1], arena.root.shape[1]
    space, slots = gather(arena, arm_rule, arm_id, work)
    sums, memory = sums_of(arena, arm_id), arena.memory[arm_id]
    kept, done = space.used, 0
    while done < chosen.size:
        count, base = min(CHUNK, chosen.size - done), space.used
        fill_chunk(work.chunk, rows, right, chosen[done : done + count])
        batch = work.chunk[:count]
        inside = dot(batch, work.basis[:base].T)
        residuals = dot(inside, work.basis[:base]) if base < dim else batch
        if base < dim:
            for a in range(count):
                for j in range(dim):
                    residuals[a, j] = batch[a, j] - residuals[a, j]
        for a in range(count):
            row, index = batch[a], chosen[done]
            space = extend_span(arm_rule, work, space, base, row, inside[a], residuals[a], sums.shed)
            used = space.used
            done += 1
            reward = float(rewards[index])
            q, weight, pull = add_row(arm_rule, memory, space, work, used, arena.rows[arm_id] + done, reward)
            space = raise_log_det(space, q)
            if k > 0:
                targets[index] = eliminate_row(work, used, q, extra[index], reward, increments[index])
            add_reward(arm_rule, work, used, pull)
            sums = add_mass(sums, float(dot(row, row)) * weight)
            if used == limit:
                space, sums = truncate_arm(rule, arm_rule, memory, work, space, sums)
                kept = 0
                break
            if used >= base + AGAIN:
                break
    if space.used > hold:
        space, sums = truncate_arm(rule, arm_rule, memory, work, space, sums)
        kept = 0
    scatter(arena, arm_rule, arm_id, work, space, slots, kept)
    set_sums(arena, arm_id, add_dust(sums, space.left))
    arena.rows[arm_id] += chosen.size


@compiled
def learn_arms(
    arena: ArenaState, rule: Any, limit: int, arm_rule: Any, arm_ids: np.ndarray, starts: np.ndarray,
    order: np.ndarray, rows: np.ndarray, right: np.ndarray, rewards: np.ndarray, extra: np.ndarray, begin: int,
    end: int, increments: np.ndarray, targets: np.ndarray,
) -> None:  # fmt: skip
    """Learn rows in the arms arm_ids[g] for g = begin, ..., end - 1, and change `arena` in place.

    Arm arm_ids[g] learns rows order[starts[g]:starts[g + 1]], with the update rule `arm_rule` of its estimator, such as
    `Winsor`. No other arm is touched. Contexts are rows (n, dim) with right (n, 0), or outer products of rows (n, d_u)
    and right (n, d_a). An arm is truncated by `rule` when it holds `limit` directions. In a hybrid model, extra (n, k)
    holds the features of the shared part, and increments (n, k) and targets (n,) receive the rows and targets that this
    part has to learn.
    """
    reach, most = 0, 0
    for g in range(begin, end):
        count = starts[g + 1] - starts[g]
        reach, most = max(reach, arena.used[arm_ids[g]] + count), max(most, count)
    work = make_scratch(arena, min(reach, min(limit, arena.basis.shape[1])), most)
    for g in range(begin, end):
        chosen = order[starts[g] : starts[g + 1]]
        learn_arm(
            arena, rule, limit, arm_rule, arm_ids[g], rows, right, rewards, extra, chosen, work, increments, targets
        )


@compiled
def learn_one(
    arena: ArenaState, rule: Any, limit: int, arm_rule: Any, arm_id: int, row: np.ndarray, reward: float
) -> tuple[int, int]:
    """Learn a row (1, dim) with its reward in one arm, and return the arena's first free slot and its slots ever used.

    `arm_rule` is the estimator's update rule. The arm is truncated by `rule` when it holds `limit` directions.
    """
    arm_ids, empty = np.full(1, arm_id), np.empty((1, 0), row.dtype)
    free, top = reserve_slots(arena, arm_ids, np.ones(1, np.int64))
    learn_arms(
        arena, rule, limit, arm_rule, arm_ids, np.arange(2), np.zeros(1, np.int64), row, empty,
        np.full(1, reward, row.dtype), empty, 0, 1, empty, np.empty(0),
    )  # fmt: skip
    return release_slots(arena, arm_ids, free), top


@compiled
def error_bound(arena: ArenaState, rule: Any, count: int) -> float:
    """Return the largest bound of ||A - A_hat||_2 over the first `count` arms.

    A is the design of an arm, and A_hat its sketch, truncated by `rule`. The bound allows for rounding errors.
    """
    bound, eps = 0.0, float(np.finfo(arena.basis.dtype).eps)
    for arm_id in range(count):
        sums = sums_of(arena, arm_id)
        bound = max(bound, certificate(rule, sums, inverse_root_error(eps, sums.mass, arena.prior.space.ridge)))
    return bound
