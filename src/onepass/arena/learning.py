"""Learning in an arena: an arm's rows are projected on its directions, widen them, update the root, and may be cut.

For rows X of one arm, with z = Q x, e = x - Q^T z (a new direction e / ||e|| unless x lies in the span):

    v = R^T z,  q = ||v||^2 = x^T A^-1 x,  s = sqrt(1 + q),   R <- R - (R v) v^T / (s (s + 1)),   Q b <- Q b + r z

What the state holds, and what is cut when: arena.py.

One-pass Huber regression without a ball, of arms that are never cut, is ridge regression on other rewards: with c = 1
/ (sqrt(a) sigma), the row c x with the reward c (x^T theta + a sigma clip((r - x^T theta) / sigma, -tau, tau)) moves A
and b as Wang et al.'s update moves V and V theta. For a = 1 that is c times the reward, winsorized about what was
predicted, for other a it is not. On sketches the two differ, and the update is the better one (one_pass_huber.py).
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from onepass.arena.arena import FREQUENT_DIRECTIONS, NEVER, NONE, SPLITTING, Winsor, release, reserve
from onepass.design.frequent_directions import first_below, nothing
from onepass.design.projector_splitting import TOLERANCE
from onepass.estimator.heavy_tails import Noise
from onepass.estimator.one_pass_huber import clipped
from onepass.features.factors import fill_product
from onepass.foundation.generic import compiled, generic
from onepass.foundation.linalg import IN_SPAN, dot, rounding, svd

OUTSIDE = 1e5  # roundings of ||x|| below which a row is in the span: products of factors leave thousands of them
IN_SINGLE = 6e-5  # the same share of ||x|| in single precision
CHUNK = 32  # rows of an arm that are projected by one matrix product


class Scratch(NamedTuple):
    """Where one arm is worked on: its Q, R, Q b, cross, and o; z, v, u (limit,) and a chunk of rows."""

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
def new_scratch(arena, limit):
    """Room for arms of up to `limit` directions."""
    kind, dim, k = arena.basis, arena.basis.shape[1], arena.cross.shape[1]
    return Scratch(
        np.zeros((limit, dim), kind.dtype), np.zeros((limit, limit), kind.dtype), np.zeros(limit, kind.dtype),
        np.zeros((limit, k), kind.dtype), np.zeros(dim, kind.dtype), np.zeros(limit, kind.dtype),
        np.zeros(limit, kind.dtype), np.zeros(limit, kind.dtype), np.zeros((CHUNK, dim), kind.dtype),
    )  # fmt: skip


@compiled
def rank_one(work, used):
    """R R^T = A^-1 becomes (A + z z^T)^-1 (see linalg.update_root); u = A^-1 z as it was. Returns q = z^T A^-1 z."""
    root, z, v, u = work.root, work.z, work.v, work.u
    for j in range(used):
        v[j] = 0.0
    for i in range(used):
        for j in range(used):
            v[j] += z[i] * root[i, j]
    q = 0.0
    for j in range(used):
        q += v[j] * v[j]
    s = np.sqrt(1.0 + q)
    scale = root.dtype.type(1.0 / (s * (s + 1.0)))
    for i in range(used):
        total = root.dtype.type(0.0)
        for j in range(used):
            total += root[i, j] * v[j]
        u[i] = total
        total *= scale
        for j in range(used):
            root[i, j] -= total * v[j]
    return q


@partial(generic, default=True)
def weighed(rule, arena, record, work, used, t, reward):
    """What the t-th row of an arm and its reward are multiplied by and replaced with: ridge takes them as they are."""
    return 1.0, reward


@weighed.for_state(Winsor)
def winsorized(rule, arena, record, work, used, t, reward):
    mean, square = 0.0, 0.0
    for j in range(used):
        along, held = 0.0, 0.0
        for i in range(used):
            along += work.z[i] * work.root[i, j]
            held += work.moment[i] * work.root[i, j]
        mean += along * held
        square += along * along
    noise = Noise(rule.nu, 0.0, arena.size[record], arena.mean[record])
    dim, width = arena.basis.shape[1], np.sqrt(square)
    sigma, _, z, noise = clipped(rule.tail, rule.practice, noise, t, dim, width, reward - mean)
    arena.size[record], arena.mean[record] = noise.size, noise.mean
    scale = 1.0 / (np.sqrt(rule.tail.step) * sigma)
    if scale == 0.0:
        return 0.0, 0.0
    return scale, (mean + rule.tail.step * sigma * z) * scale


@compiled
def new_direction(work, used, base, row, residual):
    """Take off the residual what lies along directions base .. used - 1, fill their z; its length (0.0: in span)."""
    basis, z = work.basis, work.z
    for i in range(base, used):
        along = dot(basis[i], row)
        z[i] = along
        for j in range(row.size):
            residual[j] -= along * basis[i, j]
    norm, length = np.sqrt(dot(row, row)), np.sqrt(dot(residual, residual))
    least = min(OUTSIDE * np.finfo(basis.dtype).eps, IN_SINGLE) * norm
    if length <= least:
        return 0.0
    if length < 1e-2 * norm:  # cancellation: project once more
        again = dot(basis[:used], residual)
        back = dot(again, basis[:used])
        for i in range(used):
            z[i] += again[i]
        for j in range(row.size):
            residual[j] -= back[j]
        length = np.sqrt(dot(residual, residual))
        if length <= least:
            return 0.0
    return float(length)


@compiled
def cut_down(cut, work, used, ridge, mass, shed):
    """The design's own rule for too many directions. Returns used, ridge, shed, log_det, and what was cut that is no
    more than rounding to projector splitting; work has the new Q, R, Qb, o.

    Eigenvalues of A_hat on the span are 1 / singular^2 of R, so s = 1 / singular^2 - ridge are those of the sketch.
    """
    dim, eps = work.basis.shape[1], np.finfo(work.basis.dtype).eps
    core = np.ascontiguousarray(work.root[:used, :used]).astype(np.float64)
    vectors, singular, _ = svd(core)
    spectrum = np.empty(used)  # descending
    for i in range(used):
        spectrum[i] = max(1.0 / singular[used - 1 - i] ** 2 - ridge, 0.0)
    held, lost, dust = 0.0, 0.0, 0.0
    if cut.kind == FREQUENT_DIRECTIONS:
        least = max(nothing(work.basis.dtype) * spectrum[0], IN_SPAN * eps * ridge)
        place = first_below(spectrum, cut.size, least)
        keep = (place if place > 0 else cut.size) - 1
        lost = spectrum[keep]
        fresh = cut.reg + cut.compensation * (shed + lost)
    else:
        keep = min(cut.size, used)
        for i in range(keep):
            held += spectrum[i] + ridge - cut.reg
        for i in range(keep, used):
            lost += spectrum[i]
        if shed == 0.0 and 1.0 - np.sqrt(ridge / (ridge + lost)) <= TOLERANCE * eps:
            dust, lost = lost, 0.0
        fresh = cut.reg
        if cut.compensation > 0.0 and shed + lost > 0.0 and dim > keep:
            fresh += max(mass - held, 0.0) / (dim - keep)
    turn = np.empty((used, used), work.basis.dtype)  # row i: direction i in coordinates of Q
    for i in range(used):
        for j in range(used):
            turn[i, j] = vectors[j, used - 1 - i]
    moment = dot(turn, work.moment[:used])
    rotated, cross = dot(turn[:keep], work.basis[:used]), dot(turn[:keep], work.cross[:used])
    if keep < used:
        rest = dot(dot(moment[keep:], turn[keep:]), work.basis[:used])
        for j in range(dim):
            work.outside[j] += rest[j]
    log_det = (dim - keep) * np.log(fresh)
    for i in range(keep):
        if cut.kind == FREQUENT_DIRECTIONS:
            value = max(spectrum[i] - lost, 0.0) + fresh
        else:
            value = max(spectrum[i] + ridge, fresh)
        log_det += np.log(value)
        for j in range(used):
            work.root[i, j] = 0.0
        work.root[i, i] = 1.0 / np.sqrt(value)
        work.moment[i] = moment[i]
        for j in range(dim):
            work.basis[i, j] = rotated[i, j]
        for j in range(cross.shape[1]):
            work.cross[i, j] = cross[i, j]
    return keep, fresh, shed + lost, log_det, dust


@compiled
def error_bound(arena, record):
    """The certificate of one arm, as the design's own, with the rounding of its root (see `joined` in dyadic.py)."""
    cut, mass = arena.cut, arena.mass[record]
    if cut.kind == NEVER:
        return 0.0
    if cut.kind == SPLITTING and arena.shed[record] > 0.0:
        return np.inf
    lost = max(cut.compensation, 1.0 - cut.compensation) * arena.shed[record] + arena.dust[record]
    eps = np.finfo(arena.basis.dtype).eps
    left_out = 2.0 * min(OUTSIDE * eps, IN_SINGLE) * mass
    return lost + left_out + rounding(eps, mass, cut.reg) * np.sqrt(1.0 + mass / cut.reg)


@compiled
def gather(arena, record, work):
    """Copy an arm into the scratch: its slots (held,)."""
    slots = np.empty(arena.held[record], np.int64)
    slot, used = arena.first[record], arena.used[record]
    for i in range(slots.size):
        slots[i] = slot
        slot = arena.link[slot]
    for i in range(used):
        slot = slots[i]
        work.moment[i] = arena.moment[slot]
        for j in range(arena.basis.shape[1]):
            work.basis[i, j] = arena.basis[slot, j]
        for j in range(used):
            work.root[i, j] = arena.root[slot, j]
        for j in range(arena.cross.shape[1]):
            work.cross[i, j] = arena.cross[slot, j]
    slot = arena.outside[record]
    for j in range(arena.basis.shape[1]):
        work.outside[j] = arena.basis[slot, j] if slot != NONE else 0.0
    return slots


@compiled
def scatter(arena, record, work, slots, used, kept):
    """Copy an arm back; its first `kept` directions have not changed. w = R R^T Q b."""
    inside = np.zeros(used)
    for i in range(used):
        for j in range(used):
            inside[j] += work.root[i, j] * work.moment[i]
    for i in range(used):
        slot, weight = slots[i], 0.0
        for j in range(used):
            weight += work.root[i, j] * inside[j]
            arena.root[slot, j] = work.root[i, j]
        arena.weight[slot], arena.moment[slot] = weight, work.moment[i]
        for j in range(arena.cross.shape[1]):
            arena.cross[slot, j] = work.cross[i, j]
        if i >= kept:
            for j in range(arena.basis.shape[1]):
                arena.basis[slot, j] = work.basis[i, j]
    slot = arena.outside[record]
    if slot != NONE:
        for j in range(arena.basis.shape[1]):
            arena.basis[slot, j] = work.outside[j]


@compiled
def fill_chunk(chunk, rows, right, chosen):
    """The rows chosen; where right (n, d_a) is not empty, rows (n, d_u) are left factors: products are formed."""
    for a in range(chosen.size):
        row = rows[chosen[a]]
        if right.shape[1] > 0:
            fill_product(chunk[a], row, right[chosen[a]])
        else:
            for j in range(row.size):
                chunk[a, j] = row[j]


@compiled
def learn_arm(arena, record, rows, right, rewards, extra, chosen, work, increments, targets):
    """One arm learns rows[chosen], in order. Hybrid (extra (n, k)): increments and targets for the shared model.

    A row x with z of the shared features leaves there sqrt(w) (z - B^T A^-1 x) and sqrt(w) (r - b^T A^-1 x),
    w = 1 / (1 + x^T A^-1 x), B = sum of x z^T: block elimination of the arm (Li et al. 2010, algorithm 2), row by row.
    """
    cut, dim, k = arena.cut, arena.basis.shape[1], arena.cross.shape[1]
    slots = gather(arena, record, work)
    used, kept = arena.used[record], arena.used[record]
    ridge, mass, shed, log_det = arena.ridge[record], arena.mass[record], arena.shed[record], arena.log_det[record]
    done, dust = 0, 0.0
    while done < chosen.size:
        count, base = min(CHUNK, chosen.size - done), used
        fill_chunk(work.chunk, rows, right, chosen[done : done + count])
        batch = work.chunk[:count]
        inside = dot(batch, work.basis[:base].T)
        residuals = dot(inside, work.basis[:base]) if base < dim else np.zeros((count, dim), rows.dtype)
        if base < dim:
            for a in range(count):
                for j in range(dim):
                    residuals[a, j] = batch[a, j] - residuals[a, j]
        a = 0
        while a < count:
            row, reward, index = batch[a], float(rewards[chosen[done + a]]), chosen[done + a]
            for i in range(base):
                work.z[i] = inside[a, i]
            if base < dim:
                length = new_direction(work, used, base, row, residuals[a])
                if length > 0.0 and used < dim:
                    for j in range(dim):
                        work.basis[used, j] = residuals[a, j] / length
                    for i in range(used + 1):
                        work.root[used, i], work.root[i, used] = 0.0, 0.0
                    work.root[used, used] = 1.0 / np.sqrt(ridge)
                    work.z[used], work.moment[used] = length, 0.0
                    for j in range(k):
                        work.cross[used, j] = 0.0
                    if shed > 0.0:
                        along = dot(work.basis[used], work.outside)
                        work.moment[used] = along
                        for j in range(dim):
                            work.outside[j] -= along * work.basis[used, j]
                    used += 1
            scale, reward = weighed(arena.rule, arena, record, work, used, arena.rows[record] + done + a + 1, reward)
            if scale != 1.0:
                for i in range(used):
                    work.z[i] *= scale
            q = rank_one(work, used)
            log_det += np.log1p(q)
            if k > 0:
                weight, target = 1.0 / np.sqrt(1.0 + q), reward
                for j in range(k):
                    increments[index, j] = extra[index, j] * weight
                for i in range(used):
                    target -= work.u[i] * work.moment[i]
                    along = work.u[i] * rows.dtype.type(weight)
                    for j in range(k):
                        increments[index, j] -= along * work.cross[i, j]
                        work.cross[i, j] += work.z[i] * extra[index, j]
                targets[index] = target * weight
            for i in range(used):
                work.moment[i] += reward * work.z[i]
            mass += float(dot(row, row)) * scale * scale
            a += 1
            if used == cut.limit:
                used, ridge, shed, log_det, lost = cut_down(cut, work, used, ridge, mass, shed)
                kept, dust = 0, dust + lost
                break
            if used >= base + 8:
                break  # project the rest of the chunk again, by one product
        done += a
    if used > cut.hold:
        used, ridge, shed, log_det, lost = cut_down(cut, work, used, ridge, mass, shed)
        kept, dust = 0, dust + lost
    scatter(arena, record, work, slots, used, kept)
    arena.used[record], arena.ridge[record], arena.mass[record] = used, ridge, mass
    arena.shed[record], arena.log_det[record] = shed, log_det
    arena.dust[record] += dust
    arena.rows[record] += chosen.size


@partial(compiled, nogil=True)
def learn_arms(arena, records, starts, order, rows, right, rewards, extra, begin, end, increments, targets):
    """Arms records[begin:end] learn: arm g the rows order[starts[g]:starts[g + 1]]. Touches no other arm.

    rows (n, dim), right (n, 0); or factors rows (n, d_u), right (n, d_a).
    """
    limit = 0
    for g in range(begin, end):
        limit = max(limit, arena.used[records[g]] + starts[g + 1] - starts[g])
    work = new_scratch(arena, min(limit, min(arena.cut.limit, arena.basis.shape[1])))
    for g in range(begin, end):
        chosen = order[starts[g] : starts[g + 1]]
        learn_arm(arena, records[g], rows, right, rewards, extra, chosen, work, increments, targets)


@compiled
def learn_one(arena, record, row, reward):
    """A single row (1, dim) of one arm: reserve, learn, release; the new (free, top)."""
    records, empty = np.full(1, record), np.empty((1, 0), row.dtype)
    free, top = reserve(arena, records, np.ones(1, np.int64))
    learn_arms(
        arena, records, np.arange(2), np.zeros(1, np.int64), row, empty, np.full(1, reward, row.dtype), empty, 0, 1,
        empty, np.empty(0),
    )  # fmt: skip
    return release(arena, records, free), top
