"""Copies of single arms of an arena, which can be written into another arena bit for bit or merged with an arm there.

Merging two arms adds what each has learned since they began with a common model:

    A = A_1 + A_2 - A_start,   b = b_1 + b_2 - b_start

Here "start" is the model both arms began with, by default the prior. What the second arm has learned since is expressed
as rows in its own directions (`design/exact.increments`). The first arm learns these rows, without rewards, and is
truncated by the design's rule if needed. Then the coordinates of b_2 are added, and its part outside the directions is
added to o, the part of the moment outside the span (arena.py). The totals of what both arms have truncated are added,
and so are the bounds of their errors (design/truncation.py). A sketch must have started without rows, because rows
cannot be subtracted from it.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.arena.arena import NONE, ArenaState, delete_arm, set_sums, sums_of
from onepass.arena.learning import Scratch, extend_span, truncate_arm
from onepass.design.exact import increments, invert_root
from onepass.design.subspace import Subspace, raise_log_det, solve_in
from onepass.design.truncation import MergedRule, Sums, add_dust, add_mass, add_sums, ridge_after
from onepass.estimator.estimator import Estimator
from onepass.foundation import state as states
from onepass.foundation.cholesky_updates import update_root_within
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import ROUNDINGS, dot, fill


class PackedArm(NamedTuple):
    """Arm of an arena, copied out of its shared arrays.

    - basis (n, dim): orthonormal directions of the arm's design.
    - root (n, n): square root of the inverse Gram matrix in these directions.
    - moment, weight (n,): sum of reward times row, and parameters, in these directions.
    - cross (n, k): sum of x z^T over rows x and the k shared features z of a hybrid model, in these directions.
    - outside (1, dim): the part of the moment outside the directions, (0, dim) if it is 0.
    - rows: number of rows learned.
    - ridge, log_det, sums: the ridge and log det A of the design A, and the totals of what was cut off.
    - memory (m,): numbers that the estimator keeps for the arm.
    """

    basis: np.ndarray
    root: np.ndarray
    moment: np.ndarray
    weight: np.ndarray
    cross: np.ndarray
    outside: np.ndarray
    rows: int
    ridge: float
    log_det: float
    sums: Sums
    memory: np.ndarray

    def parameter(self) -> np.ndarray:
        return self.weight @ self.basis + self.outside.sum(axis=0) / float(self.ridge)

    def solve(self, row: np.ndarray) -> np.ndarray:
        return solve_in(Subspace(self.basis, self.root, len(self.moment), self.ridge, self.log_det, 0.0), row)

    def inverse(self) -> np.ndarray:
        inside, dim = self.root.T @ self.basis, self.basis.shape[1]
        out = inside.T @ inside
        if len(self.moment) < dim:
            out += (np.eye(dim, dtype=out.dtype) - self.basis.T @ self.basis) / float(self.ridge)
        return out

    def solve_cross(self, y: np.ndarray) -> np.ndarray:
        return self.solve(self.cross @ y @ self.basis)

    def schur_complement(self) -> tuple[np.ndarray, np.ndarray]:
        return schur_complement(self)

    def flip_sign(self) -> "PackedArm":
        return self._replace(moment=-self.moment, weight=-self.weight, cross=-self.cross, outside=-self.outside)

    def add_to_moment(self, change: np.ndarray) -> "PackedArm":
        inside = (self.basis * change).sum(axis=1)
        moment = self.moment + inside
        weight = (self.root * (self.root * moment[:, None]).sum(axis=0)).sum(axis=1)  # R R^T Q b
        outside = self.outside
        if len(outside):
            outside = outside + (change - (self.basis * inside[:, None]).sum(axis=0))
        return self._replace(moment=moment, weight=weight, outside=outside)

    def merge(self, other: "PackedArm", start: "PackedArm", estimator: Estimator) -> "PackedArm":
        cutting: Any = estimator.design.truncation()
        return merge_arms(cutting.rule, cutting.limit, min(cutting.hold, self.basis.shape[1]), self, other, start)

    def fits(self, begun: "PackedArm", estimator: Estimator) -> bool:
        used, dim, cutting = len(self.moment), begun.basis.shape[1], estimator.design.truncation()
        return (
            cutting is not None
            and self.basis.shape == (used, dim)
            and self.root.shape == (used, used)
            and self.weight.shape == (used,)
            and self.cross.shape == (used, begun.cross.shape[1])
            and self.outside.shape == (1 if self.sums.shed > 0.0 else 0, dim)
            and self.memory.shape == begun.memory.shape
            and used <= min(cutting.hold, dim)
            and self.rows >= 0
            and self.ridge > 0.0
            and min(self.sums) >= 0.0
        )


def make_prior_arm(arena: ArenaState) -> PackedArm:
    """Return an arm without rows, as a `PackedArm` with the initial design of the arena."""
    (space, sums), kind = states.copy(arena.prior), arena.basis.dtype
    used, dim, k = space.used, arena.basis.shape[1], arena.cross.shape[1]
    return PackedArm(
        basis=space.basis,
        root=space.root,
        moment=states.zeros(used, dtype=kind),
        weight=states.zeros(used, dtype=kind),
        cross=states.zeros(used, k, dtype=kind),
        outside=states.zeros(0, dim, dtype=kind),
        rows=0,
        ridge=space.ridge,
        log_det=space.log_det,
        sums=sums,
        memory=states.zeros(arena.memory.shape[1]),
    )


@compiled
def make_arrays(
    arena: ArenaState, used: int, outside: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Allocate the arrays basis, root, moment, weight, cross and outside of a `PackedArm` with `used` directions.

    `outside` is the number of rows of the last array: 1 if a part of the moment lies outside the directions, else 0.
    """
    kind, dim = arena.basis.dtype, arena.basis.shape[1]
    return (
        np.zeros((used, dim), kind),
        np.zeros((used, used), kind),
        np.zeros(used, kind),
        np.zeros(used, kind),
        np.zeros((used, arena.cross.shape[1]), kind),
        np.zeros((outside, dim), kind),
    )


@compiled
def copy_arm(arena: ArenaState, arm_id: int) -> PackedArm:
    """Copy an arm out of the arena, and return it as a `PackedArm`."""
    used, place = arena.used[arm_id], arena.outside[arm_id]
    basis, root, moment, weight, cross, outside = make_arrays(arena, used, 0 if place == NONE else 1)
    slot = arena.first[arm_id]
    for i in range(used):
        moment[i], weight[i] = arena.moment[slot], arena.weight[slot]
        for j in range(basis.shape[1]):
            basis[i, j] = arena.basis[slot, j]
        for j in range(used):
            root[i, j] = arena.root[slot, j]
        for j in range(cross.shape[1]):
            cross[i, j] = arena.cross[slot, j]
        slot = arena.link[slot]
    for j in range(outside.shape[1] if place != NONE else 0):
        outside[0, j] = arena.basis[place, j]
    return PackedArm(
        basis=basis,
        root=root,
        moment=moment,
        weight=weight,
        cross=cross,
        outside=outside,
        rows=arena.rows[arm_id],
        ridge=arena.ridge[arm_id],
        log_det=arena.log_det[arm_id],
        sums=sums_of(arena, arm_id),
        memory=arena.memory[arm_id].copy(),
    )


@compiled
def write_arm(arena: ArenaState, arm_id: int, arm: PackedArm) -> tuple[int, int]:
    """Write an arm into the arena, and return the first free slot and the number of slots ever used.

    A slot holds one direction of one arm. The arm's former slots are released first. The arrays must have room for more
    slots.
    """
    used, last, free, top = arm.moment.size, NONE, delete_arm(arena, arm_id), arena.top
    arena.first[arm_id], arena.outside[arm_id] = NONE, NONE
    for i in range(used + arm.outside.shape[0]):
        if free != NONE:
            slot, free = free, arena.link[free]
        else:
            slot, top = top, top + 1
        arena.link[slot] = NONE
        if i == used:
            arena.outside[arm_id] = slot
            for j in range(arm.outside.shape[1]):
                arena.basis[slot, j] = arm.outside[0, j]
            continue
        if last == NONE:
            arena.first[arm_id] = slot
        else:
            arena.link[last] = slot
        last = slot
        arena.moment[slot], arena.weight[slot] = arm.moment[i], arm.weight[i]
        for j in range(arm.basis.shape[1]):
            arena.basis[slot, j] = arm.basis[i, j]
        for j in range(arena.root.shape[1]):
            arena.root[slot, j] = arm.root[i, j] if j < used else 0.0
        for j in range(arm.cross.shape[1]):
            arena.cross[slot, j] = arm.cross[i, j]
    arena.used[arm_id], arena.n_slots[arm_id], arena.rows[arm_id] = used, used, arm.rows
    arena.ridge[arm_id], arena.log_det[arm_id] = arm.ridge, arm.log_det
    set_sums(arena, arm_id, arm.sums)
    for j in range(arm.memory.size):
        arena.memory[arm_id, j] = arm.memory[j]
    return free, top


@compiled
def rows_since(arm: PackedArm, start: PackedArm) -> np.ndarray:
    """Return rows (n, dim) that an arm may have learned since it began as the arm `start`.

    The Gram matrix of these rows is the difference between the designs A of the two arms.
    """
    used, ridge = arm.moment.size, arm.ridge
    if used == 0:
        return arm.basis
    inverse = np.zeros_like(arm.root)
    if start.moment.size == 0:
        for i in range(used):
            inverse[i, i] = np.sqrt(ridge)
    else:
        across = dot(arm.basis, start.basis.T)
        inside = dot(across, dot(start.root, across.T))
        shadow = dot(across, across.T)
        for i in range(used):
            for j in range(used):
                inside[i, j] += ((1.0 if i == j else 0.0) - shadow[i, j]) / np.sqrt(ridge)
        inverse = invert_root(inside)
    rows, sizes = increments(arm.root, inverse)
    kept = 0
    for i in range(used):
        if sizes[i] > 0.0:
            for j in range(used):
                rows[kept, j] = rows[i, j]
            kept += 1
    return dot(rows[:kept], arm.basis)


@compiled
def full_moment(arm: PackedArm) -> np.ndarray:
    """Return the arm's moment b (dim,), the sum of reward times row."""
    b = dot(arm.moment, arm.basis)
    for i in range(arm.outside.shape[0]):
        for j in range(b.size):
            b[j] += arm.outside[i, j]
    return b


@compiled
def scratch_from_arm(arm: PackedArm, limit: int) -> tuple[Scratch, Subspace]:
    """Copy an arm into scratch arrays that hold up to `limit` directions; return the arrays and the arm's subspace."""
    kind, dim, k = arm.basis.dtype, arm.basis.shape[1], arm.cross.shape[1]
    work = Scratch(
        basis=np.zeros((limit, dim), kind),
        root=np.zeros((limit, limit), kind),
        moment=np.zeros(limit, kind),
        cross=np.zeros((limit, k), kind),
        outside=np.zeros(dim, kind),
        z=np.zeros(limit, kind),
        v=np.zeros(limit, kind),
        u=np.zeros(limit, kind),
        chunk=np.zeros((0, dim), kind),
    )
    used = arm.moment.size
    fill(work.basis[:used], arm.basis)
    fill(work.root[:used, :used], arm.root)
    fill(work.cross[:used], arm.cross)
    for i in range(used):
        work.moment[i] = arm.moment[i]
    for i in range(arm.outside.shape[0]):
        for j in range(dim):
            work.outside[j] = arm.outside[i, j]
    space = Subspace(
        basis=work.basis, root=work.root, used=used, ridge=arm.ridge, log_det=arm.log_det, left=0.0
    )  # fmt: skip
    return work, space


@compiled
def arm_from_scratch(work: Scratch, space: Subspace, rows: int, sums: Sums, memory: np.ndarray) -> PackedArm:
    """Return the arm held in the scratch arrays `work`, with its parameter computed.

    `space` is its subspace, and `rows`, `sums` and `memory` become the fields of these names.
    """
    used = space.used
    root, moment = work.root[:used, :used].copy(), work.moment[:used].copy()
    outside = np.zeros((1 if sums.shed > 0.0 else 0, work.outside.size), work.outside.dtype)
    for i in range(outside.shape[0]):
        for j in range(outside.shape[1]):
            outside[i, j] = work.outside[j]
    return PackedArm(
        basis=work.basis[:used].copy(),
        root=root,
        moment=moment,
        weight=dot(root, dot(moment, root)),
        cross=work.cross[:used].copy(),
        outside=outside,
        rows=rows,
        ridge=space.ridge,
        log_det=space.log_det,
        sums=add_dust(sums, space.left),
        memory=memory.copy(),
    )


@compiled
def add_moment_of(work: Scratch, space: Subspace, arm: PackedArm, sign: float, shed: float) -> None:
    """Add to an arm in scratch arrays the moment b, the sum of reward times row, of another arm, times `sign`.

    `work` are the scratch arrays, `space` is the subspace of the arm in them, and `arm` is the other arm. Only the
    part of b in this subspace is added to the moment in `work`. The products of the arm's rows with shared features
    (`cross`) are projected and added likewise. If `shed`, the amount that truncations have cut off, is above 0, the
    rest of b is added to the vector `work.outside`, and otherwise it is left out.
    """
    used, b = space.used, full_moment(arm)
    basis = work.basis[:used]
    along = dot(basis, b)
    rest = dot(along, basis)
    for i in range(used):
        work.moment[i] += sign * along[i]
    if work.cross.shape[1] > 0 and arm.moment.size > 0:
        cross = dot(dot(basis, arm.basis.T), arm.cross)
        for i in range(used):
            for j in range(cross.shape[1]):
                work.cross[i, j] += sign * cross[i, j]
    if shed > 0.0 and used < b.size:
        for j in range(b.size):
            work.outside[j] += sign * (b[j] - rest[j])


@compiled
def merge_arms(rule: Any, limit: int, hold: int, arm: PackedArm, other: PackedArm, start: PackedArm) -> PackedArm:
    """Return one arm that has learned the rows of `arm` and `other`, each row once.

    Both arms began as copies of `start`. `rule`, the truncation rule of the design, truncates at `limit` directions
    while the rows are learned, and to `hold` directions at the end.
    """
    rows, dim = rows_since(other, start), arm.basis.shape[1]
    work, space = scratch_from_arm(arm, min(arm.moment.size + rows.shape[0], min(limit, dim)))
    sums = arm.sums
    for a in range(rows.shape[0]):
        row, base = rows[a], space.used
        inside = dot(work.basis[:base], row)
        residual = dot(inside, work.basis[:base])
        for j in range(dim):
            residual[j] = row[j] - residual[j]
        space = extend_span((), work, space, base, row, inside, residual, sums.shed)
        space = raise_log_det(space, update_root_within(space.root, work.z[: space.used], work.v, work.u))
        sums = add_mass(sums, float(dot(row, row)))
        if space.used == limit:
            space, sums = truncate_arm(rule, (), arm.memory, work, space, sums)
    if space.used > hold:
        space, sums = truncate_arm(rule, (), arm.memory, work, space, sums)
    most = ROUNDINGS * float(np.finfo(work.basis.dtype).eps) * other.ridge  # `increments` takes less for nothing
    sums = Sums(
        mass=arm.sums.mass - start.sums.mass,
        shed=sums.shed - start.sums.shed,
        weighted=sums.weighted - start.sums.weighted,
        dust=max(sums.dust - start.sums.dust, 0.0) + most,
    )
    both = add_sums(sums, other.sums)
    if ridge_after(rule, space.ridge, both) != space.ridge:
        space, sums = truncate_arm(MergedRule(rule=rule, other=other.sums), (), arm.memory, work, space, sums)
    add_moment_of(work, space, other, 1.0, both.shed)
    add_moment_of(work, space, start, -1.0, both.shed)
    return arm_from_scratch(work, space, arm.rows + other.rows - start.rows, both, arm.memory)


@compiled
def schur_complement(arm: PackedArm) -> tuple[np.ndarray, np.ndarray]:
    """Return B^T A^-1 B (k, k) and B^T A^-1 b (k,) of an arm that was never truncated, in a hybrid model.

    A is the arm's design, B the sum of x z^T over its rows x and shared features z, and b the sum of reward times row.
    """
    half = dot(arm.root.T, arm.cross)
    return dot(half.T, half), dot(arm.weight, arm.cross)
