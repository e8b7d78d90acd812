"""One arena for the models of all arms: it grows with what was learned, not with arms x rank.

Every arm keeps A_a = reg I + sum of x x^T on the span of its own rows only, as `onepass.design.subspace` does:

    A_a^-1 = (I - Q^T Q) / ridge + Q^T R R^T Q,      theta_a = Q^T w + o / ridge,      w = R R^T Q b

Q (m, dim) are m slots of the arena, orthonormal; slot i also holds row i of R, (Q b)_i and w_i. An arm with n rows has
at most min(n, rank of its rows) slots; an arm without data has none, and is scored by its prior. o is the part of the
moment b outside the span: nothing until directions were cut, then one more slot. Scoring every arm for one context x is
one product of the arena with x, then O(m^2) an arm:   x^T theta = w^T p + o^T x / ridge,   p = Q x,
x^T A^-1 x = (||x||^2 - ||p||^2) / ridge + ||R^T p||^2.

A row costs O(m dim + m^2). Where a design would have more directions than it keeps, its own rule cuts them:
Exact never; Frequent Directions at 2 size (subtract the size-th eigenvalue, keep size - 1); projector splitting down to
rank at the end of each batch, by eigenvalues of A. That is P3's truncation for the symmetric root: I - sqrt(reg) A^-1/2
is symmetric, so U and V of P3 coincide and one factor is stored instead of two; its largest singular values belong to
the largest eigenvalues of X^T X (P3's integrator approximates this truncation by one step of a power iteration).

Slots are linked lists, so nothing ever moves; learning allots slots before and takes back the unused ones after, in an
order that does not depend on threads, and arms share nothing: neither do results.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from onepass.design.frequent_directions import sketched_radius
from onepass.features.factors import contract
from onepass.generic import compiled
from onepass.linalg import dot, squared_norms, svd

NEVER, FREQUENT_DIRECTIONS, SPLITTING = 0, 1, 2
NONE = -1  # no slot, no record
CHUNK = 32  # rows of an arm that are projected by one matrix product
TOLERANCE = 5e3  # roundings below which what is cut counts as nothing


class Cut(NamedTuple):
    """When and how directions are cut: at `limit` of them, and at the end of a batch above `hold`; size: l or r."""

    kind: int
    size: int
    hold: int
    limit: int
    compensation: float
    reg: float


class ArenaState(NamedTuple):
    """basis (slots, dim), root (slots, hold), moment, weight, link (slots,); cross (slots, k): Q sum of x z^T (hybrid).

    Of every arm that has learned, (records,): first slot (NONE: the record is vacant, or has no slot yet), directions
    used, slots held, the slot of o, rows learned, ridge, mass = trace of X^T X, shed = sum of cuts, log_det of A_a.
    free: first slot of the list of free ones; top: slots ever in use.
    """

    basis: np.ndarray
    root: np.ndarray
    moment: np.ndarray
    weight: np.ndarray
    cross: np.ndarray
    link: np.ndarray
    first: np.ndarray
    used: np.ndarray
    held: np.ndarray
    outside: np.ndarray
    rows: np.ndarray
    ridge: np.ndarray
    mass: np.ndarray
    shed: np.ndarray
    log_det: np.ndarray
    cut: Cut
    free: int
    top: int


PER_SLOT = ("basis", "root", "moment", "weight", "cross", "link")
PER_ARM = ("first", "used", "held", "outside", "rows", "ridge", "mass", "shed", "log_det")


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
def new_record(arena, record):
    """An arm without rows: A = reg I."""
    arena.first[record], arena.outside[record] = NONE, NONE
    arena.used[record], arena.held[record], arena.rows[record] = 0, 0, 0
    arena.ridge[record], arena.mass[record], arena.shed[record] = arena.cut.reg, 0.0, 0.0
    arena.log_det[record] = arena.basis.shape[1] * np.log(arena.cut.reg)


@compiled
def slots_wanted(arena, record, rows):
    """How many slots the arm may need for `rows` more rows: (directions, whether o needs one)."""
    dim, cut = arena.basis.shape[1], arena.cut
    reach = arena.used[record] + rows
    loses = cut.kind != NEVER and reach > cut.hold and dim > cut.hold
    return min(reach, min(cut.hold, dim)), loses and arena.outside[record] == NONE


@compiled
def reserve(arena, records, counts):
    """Give every arm the slots that `counts` more rows may need: the new (free, top). There is room above `top`."""
    free, top, link = arena.free, arena.top, arena.link
    for g in range(records.size):
        record = records[g]
        wanted, loses = slots_wanted(arena, record, counts[g])
        missing = wanted - arena.held[record] + (1 if loses else 0)
        last = arena.first[record]
        for _ in range(arena.held[record] - 1):
            last = link[last]
        for i in range(missing):
            if free != NONE:
                slot, free = free, link[free]
            else:
                slot, top = top, top + 1
            link[slot] = NONE
            if loses and i == missing - 1:
                arena.outside[record] = slot
                arena.basis[slot].fill(0.0)
            else:
                if last == NONE:
                    arena.first[record] = slot
                else:
                    link[last] = slot
                last = slot
                arena.held[record] += 1
    return free, top


@compiled
def release(arena, records, free):
    """Take back slots that were reserved and found no direction, or no loss: the new head of the free list."""
    link = arena.link
    for g in range(records.size):
        record = records[g]
        used, slot = arena.used[record], arena.first[record]
        for i in range(arena.held[record]):
            following = link[slot]
            if i >= used:
                link[slot], free = free, slot
            if i == used - 1:
                link[slot] = NONE
            slot = following
        arena.held[record] = used
        if used == 0:
            arena.first[record] = NONE
        if arena.outside[record] != NONE and arena.shed[record] == 0.0:
            slot = arena.outside[record]
            link[slot], free = free, slot
            arena.outside[record] = NONE
    return free


@compiled
def vacate(arena, record):
    """Forget an arm: all its slots become free; the new head of the free list."""
    arena.used[record], arena.shed[record] = 0, 0.0
    free = release(arena, np.full(1, record), arena.free)
    new_record(arena, record)
    arena.rows[record] = NONE
    return free


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
    rounding = min(1e5 * np.finfo(basis.dtype).eps, 6e-5)
    if length <= rounding * norm:
        return 0.0
    if length < 1e-2 * norm:  # cancellation: project once more
        again = dot(basis[:used], residual)
        back = dot(again, basis[:used])
        for i in range(used):
            z[i] += again[i]
        for j in range(row.size):
            residual[j] -= back[j]
        length = np.sqrt(dot(residual, residual))
        if length <= rounding * norm:
            return 0.0
    return float(length)


@compiled
def cut_down(cut, work, used, ridge, mass, shed):
    """The design's own rule for too many directions. Returns used, ridge, shed, log_det; work has the new Q, R, Qb, o.

    Eigenvalues of A_hat on the span are 1 / singular^2 of R, so s = 1 / singular^2 - ridge are those of the sketch.
    """
    dim = work.basis.shape[1]
    core = np.ascontiguousarray(work.root[:used, :used]).astype(np.float64)
    vectors, singular, _ = svd(core)
    spectrum = np.empty(used)  # descending
    for i in range(used):
        spectrum[i] = max(1.0 / singular[used - 1 - i] ** 2 - ridge, 0.0)
    held, lost = 0.0, 0.0
    if cut.kind == FREQUENT_DIRECTIONS:
        keep = cut.size - 1
        lost = spectrum[cut.size - 1]
        fresh = cut.reg + cut.compensation * (shed + lost)
    else:
        keep = min(cut.size, used)
        for i in range(keep):
            held += spectrum[i] + ridge - cut.reg
        for i in range(keep, used):
            lost += spectrum[i]
        if shed == 0.0 and 1.0 - np.sqrt(ridge / (ridge + lost)) <= TOLERANCE * np.finfo(work.basis.dtype).eps:
            lost = 0.0
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
    return keep, fresh, shed + lost, log_det


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
    width = right.shape[1]
    for a in range(chosen.size):
        i = chosen[a]
        for j in range(rows.shape[1]):
            if width == 0:
                chunk[a, j] = rows[i, j]
            for k in range(width):
                chunk[a, j * width + k] = rows[i, j] * right[i, k]


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
    done = 0
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
            row, reward, index = batch[a], rewards[chosen[done + a]], chosen[done + a]
            for i in range(base):
                work.z[i] = inside[a, i]
            if base < dim:
                length = new_direction(work, used, base, row, residuals[a])
                if length > 0.0 and used < dim:
                    scale = rows.dtype.type(1.0 / length)
                    for j in range(dim):
                        work.basis[used, j] = residuals[a, j] * scale
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
            mass += float(dot(row, row))
            a += 1
            if used == cut.limit:
                used, ridge, shed, log_det = cut_down(cut, work, used, ridge, mass, shed)
                kept = 0
                break
            if used >= base + 8:
                break  # project the rest of the chunk again, by one product
        done += a
    if used > cut.hold:
        used, ridge, shed, log_det = cut_down(cut, work, used, ridge, mass, shed)
        kept = 0
    scatter(arena, record, work, slots, used, kept)
    arena.used[record], arena.ridge[record], arena.mass[record] = used, ridge, mass
    arena.shed[record], arena.log_det[record] = shed, log_det
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


@compiled
def project(arena, records, rows):
    """Q x for every slot of the arms asked for, (slots,): one product when most slots are wanted, else one by one."""
    wanted = 0
    for a in range(records.size):
        if records[a] != NONE:
            wanted += arena.used[records[a]]
    if rows.shape[0] == 1 and 2 * wanted > arena.top:
        return dot(arena.basis[: arena.top], rows[0])
    out = np.empty(arena.top, arena.basis.dtype)
    for a in range(records.size):
        if records[a] != NONE:
            row, slot = rows[a if rows.shape[0] > 1 else 0], arena.first[records[a]]
            for _ in range(arena.used[records[a]]):
                out[slot] = dot(arena.basis[slot], row)
                slot = arena.link[slot]
            slot = arena.outside[records[a]]
            if slot != NONE:
                out[slot] = dot(arena.basis[slot], row)
    return out


@compiled
def residual_square(arena, record, row):
    """||x - Q^T Q x||^2 without cancellation."""
    out, slot = row.copy(), arena.first[record]
    for _ in range(arena.used[record]):
        along = dot(arena.basis[slot], out)
        for j in range(row.size):
            out[j] -= along * arena.basis[slot, j]
        slot = arena.link[slot]
    return float(dot(out, out))


@compiled
def score_arms(arena, records, squares, projected, rows, extra, means, widths):
    """Fill means and widths^2 (K,) from squares (K,) = ||x||^2 and projected (slots,) = Q x; extra (K, k) becomes
    z - B^T A^-1 x. rows (K or 1, dim) are looked at only where ||x||^2 - ||Q x||^2 has lost digits (may be empty).
    """
    hold, k, dim = arena.root.shape[1], arena.cross.shape[1], arena.basis.shape[1]
    inside = np.empty(hold)
    rounding = 64.0 * np.finfo(arena.basis.dtype).eps
    close = min(1e9 * rounding, 0.1)
    for a in range(records.size):
        record = records[a]
        square = float(squares[a if squares.size > 1 else 0])
        if record == NONE:
            means[a], widths[a] = 0.0, square / arena.cut.reg
            continue
        used, slot, ridge = arena.used[record], arena.first[record], arena.ridge[record]
        mean, covered, total = 0.0, 0.0, 0.0
        for j in range(used):
            inside[j] = 0.0
        for _ in range(used):
            value = float(projected[slot])
            mean += arena.weight[slot] * value
            covered += value * value
            for j in range(used):
                inside[j] += value * arena.root[slot, j]
            slot = arena.link[slot]
        for j in range(used):
            total += inside[j] * inside[j]
        left = 0.0
        if used < dim:
            left = max(square - covered, 0.0)
            if left < 1e-6 * square and total * ridge < close * square:
                if rows.size > 0:
                    left = residual_square(arena, record, rows[a if rows.shape[0] > 1 else 0])
                elif left < rounding * square:
                    left = 0.0
        if arena.outside[record] != NONE:
            mean += float(projected[arena.outside[record]]) / ridge
        means[a], widths[a] = mean, left / ridge + total
        if k > 0:
            slot = arena.first[record]
            for _ in range(used):
                along = 0.0
                for j in range(used):
                    along += arena.root[slot, j] * inside[j]
                for j in range(k):
                    extra[a, j] -= along * arena.cross[slot, j]
                slot = arena.link[slot]


@compiled
def evaluate_arms(arena, records, rows, extra):
    """Means (K,), x^T A^-1 x (K,) for arms `records` (NONE: never learned) with a row each, or one (1, dim) for all;
    in a hybrid model extra (K, k) = z is turned into z - B^T A^-1 x in place.
    """
    squares = np.empty(rows.shape[0])
    for a in range(rows.shape[0]):
        squares[a] = float(dot(rows[a], rows[a]))
    means, widths = np.empty(records.size), np.empty(records.size)
    score_arms(arena, records, squares, project(arena, records, rows), rows, extra, means, widths)
    return means, widths


@compiled
def evaluate_users(arena, records, rows):
    """Means (n, K) and x^T A^-1 x (n, K) when each of n rows is the context of every arm."""
    means, widths = np.empty((rows.shape[0], records.size)), np.empty((rows.shape[0], records.size))
    empty, block = np.empty((0, 0), rows.dtype), max(1, 4_000_000 // max(arena.top, 1))
    for start in range(0, rows.shape[0], block):
        users = rows[start : start + block]
        projected = dot(users, arena.basis[: arena.top].T)
        for i in range(users.shape[0]):
            square = np.full(1, float(dot(users[i], users[i])))
            score_arms(
                arena, records, square, projected[i], users[i : i + 1], empty, means[start + i], widths[start + i]
            )
    return means, widths


@compiled
def project_product(arena, records, user, right):
    """Q vec(u v_a^T) for every slot of the arms asked for, (slots,), for one user: one pass over the arena."""
    out, row = np.empty(arena.top, arena.basis.dtype), np.empty((1, arena.basis.shape[1]), arena.basis.dtype)
    pair, left, one = np.empty((1, right.shape[1]), right.dtype), user.reshape(1, user.size), np.zeros(1, np.int64)
    for a in range(records.size):
        if records[a] != NONE:
            for k in range(right.shape[1]):
                pair[0, k] = right[a, k]
            fill_chunk(row, left, pair, one)
            slot = arena.first[records[a]]
            for _ in range(arena.used[records[a]]):
                out[slot] = dot(arena.basis[slot], row[0])
                slot = arena.link[slot]
            slot = arena.outside[records[a]]
            if slot != NONE:
                out[slot] = dot(arena.basis[slot], row[0])
    return out


@compiled
def contract_arms(arena, records, right):
    """Q v_a of every slot of the arms asked for, (slots, d_u), with each direction read as a d_u x d_a matrix."""
    reduced = np.zeros((arena.top, arena.basis.shape[1] // right.shape[1]), arena.basis.dtype)
    for a in range(records.size):
        if records[a] != NONE:
            slot = arena.first[records[a]]
            for _ in range(arena.used[records[a]]):
                contract(arena.basis[slot], right[a], reduced[slot])
                slot = arena.link[slot]
            slot = arena.outside[records[a]]
            if slot != NONE:
                contract(arena.basis[slot], right[a], reduced[slot])
    return reduced


@compiled
def evaluate_factors(arena, records, left, right):
    """Means (n, K), x^T A^-1 x (n, K) for contexts vec(u v_a^T): left (n, d_u), right (K, d_a), d_u d_a = dim.

    Few users: one pass over the arena each. Many: Q vec(u v^T) = (Q v) u, so that every arm's directions are contracted
    with its v once, for all users.
    """
    means, widths = np.empty((left.shape[0], records.size)), np.empty((left.shape[0], records.size))
    empty, block = np.empty((0, 0), left.dtype), max(1, 4_000_000 // max(arena.top, 1))
    sizes, norms, few = squared_norms(right), squared_norms(left), left.shape[0] <= 2
    reduced = empty if few else contract_arms(arena, records, right)
    for start in range(0, left.shape[0], block):
        users = left[start : start + block]
        projected = empty if few else dot(users, reduced.T)
        for i in range(users.shape[0]):
            here = project_product(arena, records, users[i], right) if few else projected[i]
            score_arms(
                arena, records, norms[start + i] * sizes, here, empty, empty, means[start + i], widths[start + i]
            )
    return means, widths


@compiled
def orderly(arena):
    """Whether the lists of slots are what they must be: every slot below `top` in exactly one place, every count right.

    A file is checked by this before compiled code follows its links.
    """
    slots, records = arena.link.size, arena.first.size
    if not 0 <= arena.top <= slots:
        return False
    seen = np.zeros(slots, np.bool_)
    for record in range(records):
        slot, held, used = arena.first[record], arena.held[record], arena.used[record]
        if not (0 <= used == held <= arena.root.shape[1] and (arena.rows[record] >= used or held == 0)):
            return False
        for _ in range(held):
            if not 0 <= slot < arena.top or seen[slot]:
                return False
            seen[slot], slot = True, arena.link[slot]
        if slot != NONE:
            return False
        slot = arena.outside[record]
        if slot != NONE:
            if not 0 <= slot < arena.top or seen[slot]:
                return False
            seen[slot] = True
        if not (arena.ridge[record] > 0.0 and arena.shed[record] >= 0.0):
            return False
    slot = arena.free
    while slot != NONE:
        if not 0 <= slot < arena.top or seen[slot]:
            return False
        seen[slot], slot = True, arena.link[slot]
    return np.all(seen[: arena.top])


@compiled
def radius(arena, record, noise, parameter_bound, row_bound, delta):
    """The confidence radius of one arm's own model (see the design's file); of the prior for NONE."""
    cut, dim = arena.cut, arena.basis.shape[1]
    rows = arena.rows[record] if record != NONE else 0
    shed = arena.shed[record] if record != NONE else 0.0
    if cut.kind == FREQUENT_DIRECTIONS:
        return sketched_radius(
            dim, cut.reg, shed, cut.size * shed, cut.size, cut.compensation, rows, noise, parameter_bound, row_bound,
            delta,
        )  # fmt: skip
    gain = max(arena.log_det[record] - dim * np.log(cut.reg), 0.0) if record != NONE else 0.0
    ridge = arena.ridge[record] if record != NONE else cut.reg
    return noise * np.sqrt(gain + 2.0 * np.log(1.0 / delta)) + parameter_bound * np.sqrt(ridge)
