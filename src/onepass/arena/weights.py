"""The parts of the scores of an arm in an arena: theta, A^-1 x and A^-1 B y, vectors (dim,), and A^-1 itself.

    theta = Q^T w + o / ridge     A^-1 x = (x - Q^T Q x) / ridge + Q^T R R^T Q x     A^-1 B y = Q^T R R^T (Q B) y

One pass over the arm's own directions each, O(m dim^2) for A^-1; scoring.py makes none of these. What the state holds:
arena.py.
"""

import numpy as np

from onepass.arena.arena import NONE, ArenaState
from onepass.arena.moving import taken_out
from onepass.design.subspace import solve_in
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import dot


@compiled
def parameter(arena: ArenaState, record: int) -> np.ndarray:
    """theta of an arm; that of the prior, 0, for NONE."""
    out = np.zeros(arena.basis.shape[1], arena.basis.dtype)
    if record == NONE:
        return out
    slot = arena.first[record]
    for _ in range(arena.used[record]):
        for j in range(out.size):
            out[j] += arena.weight[slot] * arena.basis[slot, j]
        slot = arena.link[slot]
    slot = arena.outside[record]
    if slot != NONE:
        for j in range(out.size):
            out[j] += arena.basis[slot, j] / arena.ridge[record]
    return out


@compiled
def add_inside(arena: ArenaState, record: int, coordinates: np.ndarray, out: np.ndarray) -> None:
    """out += Q^T R R^T c, for coordinates c (used,) in the order of the arm's slots."""
    used, slot = coordinates.size, arena.first[record]
    inside = np.zeros(used)
    for i in range(used):
        for j in range(used):
            inside[j] += coordinates[i] * arena.root[slot, j]
        slot = arena.link[slot]
    slot = arena.first[record]
    for _ in range(used):
        along = 0.0
        for j in range(used):
            along += arena.root[slot, j] * inside[j]
        for j in range(out.size):
            out[j] += along * arena.basis[slot, j]
        slot = arena.link[slot]


@compiled
def solve(arena: ArenaState, record: int, row: np.ndarray) -> np.ndarray:
    """A^-1 x; by the prior for NONE. What x has outside the span is projected twice, so that no rounding is left."""
    if record == NONE:
        return solve_in(arena.prior.space, row)
    used, out = arena.used[record], row.copy()
    coordinates = np.zeros(used)
    for _ in range(2):
        slot = arena.first[record]
        for i in range(used):
            along = float(dot(arena.basis[slot], out))
            coordinates[i] += along
            for j in range(out.size):
                out[j] -= along * arena.basis[slot, j]
            slot = arena.link[slot]
    for j in range(out.size):
        out[j] = out[j] / arena.ridge[record] if used < out.size else 0.0
    add_inside(arena, record, coordinates, out)
    return out


@compiled
def coupled(arena: ArenaState, record: int, y: np.ndarray) -> np.ndarray:
    """A^-1 B y of a hybrid model, B = sum of x z^T over the arm's rows; 0 for NONE."""
    out = np.zeros(arena.basis.shape[1], arena.basis.dtype)
    if record != NONE:
        coordinates, slot = np.zeros(arena.used[record]), arena.first[record]
        for i in range(coordinates.size):
            coordinates[i] = dot(arena.cross[slot], y)
            slot = arena.link[slot]
        add_inside(arena, record, coordinates, out)
    return out


@compiled
def models(arena: ArenaState, records: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """theta (K, dim) and A^-1 (K, dim, dim) of arms; of the prior for NONE."""
    kind, dim = arena.basis.dtype, arena.basis.shape[1]
    thetas, inverses = np.empty((records.size, dim), kind), np.empty((records.size, dim, dim), kind)
    for a in range(records.size):
        arm = taken_out(arena, records[a])
        inside = dot(arm.root.T, arm.basis)
        thetas[a] = parameter(arena, records[a])
        inverses[a] = dot(inside.T, inside)
        if arm.moment.size < dim:
            covered = dot(arm.basis.T, arm.basis)
            for i in range(dim):
                for j in range(dim):
                    inverses[a, i, j] -= covered[i, j] / arm.ridge
                inverses[a, i, i] += 1.0 / arm.ridge
    return thetas, inverses
