"""Storage of the models of all arms in shared arrays, which grow with the rows learned, not with arms x rank.

Every arm keeps A_a = reg I + sum of x x^T on the span of its own rows only, as `onepass.design.subspace` does:

    A_a^-1 = (I - Q^T Q) / ridge + Q^T R R^T Q,      theta_a = Q^T w + o / ridge,      w = R R^T Q b

An arm has m slots, which are rows of the shared arrays. Slot i holds row i of Q (m, dim), whose rows are orthonormal,
row i of R, and the numbers (Q b)_i and w_i, where b = sum of r x is the moment of the rewards r. An arm with n rows has
at most min(n, rank of its rows) slots beside those of its prior. An arm without data has no slots, and is scored by its
prior. o is the part of b outside the span of Q. It is 0 until directions are cut, and then takes one more slot. To
score every arm for one context x takes one product of the arena with x, then O(m^2) for each arm:

    x^T theta = w^T p + o^T x / ridge,   p = Q x,   x^T A^-1 x = (||x||^2 - ||p||^2) / ridge + ||R^T p||^2

The arena only allots slots. An arm learns a row by the functions of design/subspace.py. Its directions are cut by the
rule that the design declares (design/truncation.py), and its rewards are weighed by the rule of the estimator. A row
costs O(m dim + m^2).

Arms are truncated by the spectrum of A. This holds for projector splitting too, with or without compensation. It is the
truncation of Shustova et al. for the symmetric root: I - sqrt(reg) A^-1/2 has U = V, so one factor is stored instead of
two, and its largest singular values belong to the largest eigenvalues of X^T X. The integrator of Shustova et al.
approximates this truncation by one step of a power iteration.

The slots of an arm are a linked list, so slots never move. Slots are allotted before learning, and unused ones are
taken back afterwards, in an order that does not depend on threads. Arms share no data. Results therefore do not depend
on the number of threads.

This module holds the state and its slots. An arm learns in learning.py and is scored in scoring.py. packed_store.py is
the store that bandits use.
"""

from typing import NamedTuple

import numpy as np

from onepass.design.truncation import Prior, Sums
from onepass.foundation.generic import compiled

NONE = -1  # no slot, no record


class ArenaState(NamedTuple):
    """State of the models of many arms, in shared arrays: some have one entry per slot, some one entry per arm.

    A slot holds one direction of one arm. An arm has the design A = ridge I + sum of x x^T over its rows x, whose
    inverse is (I - Q^T Q) / ridge + Q^T R R^T Q. The rows of Q are the arm's directions, and R is a square root. b is
    the sum of reward times row, and o the part of b outside the directions.

    For each slot:

    - basis (slots, dim): a direction, which is a row of Q, or the vector o of an arm.
    - root (slots, hold): a row of R.
    - moment, weight (slots,): the direction's coordinates of b and of w = R R^T Q b.
    - cross (slots, k): the direction's coordinates of the sum of x z^T, for k shared features z of a hybrid model.
    - link (slots,): the next slot of the same list.

    For each arm id (NONE stands for no slot):

    - first (arms,): the arm's first slot; NONE if the id is vacant or the arm has no slot.
    - used, n_slots, outside (arms,): number of directions, number of slots held, and the slot of o.
    - rows (arms,): number of rows learned.
    - ridge, log_det (arms,): the ridge and log det A.
    - mass, shed, weighted, dust (arms,): totals of what the arm's sketch has cut off (design/truncation.py, `Sums`).
    - memory (arms, m): numbers that the estimator keeps for the arm.

    Scalars: `free` is the first slot of the list of free slots, `top` the number of slots ever used, and `prior` the
    design of an arm without rows.
    """

    basis: np.ndarray
    root: np.ndarray
    moment: np.ndarray
    weight: np.ndarray
    cross: np.ndarray
    link: np.ndarray
    first: np.ndarray
    used: np.ndarray
    n_slots: np.ndarray
    outside: np.ndarray
    rows: np.ndarray
    ridge: np.ndarray
    log_det: np.ndarray
    mass: np.ndarray
    shed: np.ndarray
    weighted: np.ndarray
    dust: np.ndarray
    memory: np.ndarray
    free: int
    top: int
    prior: Prior


PER_SLOT = ("basis", "root", "moment", "weight", "cross", "link")
PER_ARM = (
    "first", "used", "n_slots", "outside", "rows", "ridge", "log_det", "mass", "shed", "weighted", "dust", "memory",
)  # fmt: skip


@compiled
def with_slots(arena: ArenaState, free: int, top: int) -> ArenaState:
    """Return the arena with other values of `free`, the first free slot, and `top`, the number of slots ever used.

    A slot holds one direction of one arm.
    """
    return ArenaState(
        basis=arena.basis,
        root=arena.root,
        moment=arena.moment,
        weight=arena.weight,
        cross=arena.cross,
        link=arena.link,
        first=arena.first,
        used=arena.used,
        n_slots=arena.n_slots,
        outside=arena.outside,
        rows=arena.rows,
        ridge=arena.ridge,
        log_det=arena.log_det,
        mass=arena.mass,
        shed=arena.shed,
        weighted=arena.weighted,
        dust=arena.dust,
        memory=arena.memory,
        free=free,
        top=top,
        prior=arena.prior,
    )


@compiled
def sums_of(arena: ArenaState, arm_id: int) -> Sums:
    """Return the running totals of what an arm's sketch has cut off, as `Sums` (design/truncation.py)."""
    return Sums(
        mass=arena.mass[arm_id], shed=arena.shed[arm_id], weighted=arena.weighted[arm_id], dust=arena.dust[arm_id]
    )


@compiled
def set_sums(arena: ArenaState, arm_id: int, sums: Sums) -> None:
    """Write `sums`, the running totals of what the sketch of one arm has cut off, into the arena's arrays."""
    arena.mass[arm_id], arena.shed[arm_id] = sums.mass, sums.shed
    arena.weighted[arm_id], arena.dust[arm_id] = sums.weighted, sums.dust


@compiled
def reset_arm(arena: ArenaState, arm_id: int) -> None:
    """Clear the entries of an arm, so that it has no directions and no rows."""
    arena.first[arm_id], arena.outside[arm_id] = NONE, NONE
    arena.used[arm_id], arena.n_slots[arm_id], arena.rows[arm_id] = 0, 0, 0
    arena.ridge[arm_id], arena.log_det[arm_id] = arena.prior.space.ridge, arena.prior.space.log_det
    set_sums(arena, arm_id, arena.prior.sums)
    for j in range(arena.memory.shape[1]):
        arena.memory[arm_id, j] = 0.0


@compiled
def init_arm(arena: ArenaState, arm_id: int) -> tuple[int, int]:
    """Give a new arm the slots of the initial design, and return the arena's new fields `free` and `top`.

    A slot holds one direction of one arm. `free` is the first free slot, and `top` the number of slots ever used. The
    arrays must have room above `top` for the directions of the initial design.
    """
    reset_arm(arena, arm_id)
    space, free, top = arena.prior.space, arena.free, arena.top
    for i in range(space.used - 1, -1, -1):
        if free != NONE:
            slot, free = free, arena.link[free]
        else:
            slot, top = top, top + 1
        arena.link[slot] = arena.first[arm_id]
        arena.first[arm_id] = slot
        arena.moment[slot], arena.weight[slot] = 0.0, 0.0
        for j in range(space.basis.shape[1]):
            arena.basis[slot, j] = space.basis[i, j]
        for j in range(arena.root.shape[1]):
            arena.root[slot, j] = space.root[i, j] if j < space.used else 0.0
        for j in range(arena.cross.shape[1]):
            arena.cross[slot, j] = 0.0
    arena.used[arm_id], arena.n_slots[arm_id] = space.used, space.used
    return free, top


@compiled
def count_slots_needed(arena: ArenaState, arm_id: int, rows: int) -> tuple[int, bool]:
    """Return how many directions an arm may have after `rows` more rows, and True if the vector o then needs a slot.

    o is the part of the sum of reward times row that lies outside the arm's directions.
    """
    hold, dim = arena.root.shape[1], arena.basis.shape[1]
    reach = arena.used[arm_id] + rows
    loses = reach > hold and dim > hold
    return min(reach, hold), loses and arena.outside[arm_id] == NONE


@compiled
def reserve_slots(arena: ArenaState, arm_ids: np.ndarray, counts: np.ndarray) -> tuple[int, int]:
    """Reserve the slots that `counts` (n,) more rows of n arms may need, and return the new fields `free` and `top`.

    A slot holds one direction of one arm. `free` is the first free slot, and `top` the number of slots ever used. The
    arrays must have room above `top`.
    """
    free, top, link = arena.free, arena.top, arena.link
    for g in range(arm_ids.size):
        arm_id = arm_ids[g]
        wanted, loses = count_slots_needed(arena, arm_id, counts[g])
        missing = wanted - arena.n_slots[arm_id] + (1 if loses else 0)
        last = arena.first[arm_id]
        for _ in range(arena.n_slots[arm_id] - 1):
            last = link[last]
        for i in range(missing):
            if free != NONE:
                slot, free = free, link[free]
            else:
                slot, top = top, top + 1
            link[slot] = NONE
            if loses and i == missing - 1:
                arena.outside[arm_id] = slot
                arena.basis[slot].fill(0.0)
            else:
                if last == NONE:
                    arena.first[arm_id] = slot
                else:
                    link[last] = slot
                last = slot
                arena.n_slots[arm_id] += 1
    return free, top


@compiled
def release_slots(arena: ArenaState, arm_ids: np.ndarray, free: int) -> int:
    """Release the slots of these arms that were reserved but not used, and return the first free slot.

    A slot holds one direction of one arm; slots are reserved before an arm learns.
    """
    link = arena.link
    for g in range(arm_ids.size):
        arm_id = arm_ids[g]
        used, slot = arena.used[arm_id], arena.first[arm_id]
        for i in range(arena.n_slots[arm_id]):
            following = link[slot]
            if i >= used:
                link[slot], free = free, slot
            if i == used - 1:
                link[slot] = NONE
            slot = following
        arena.n_slots[arm_id] = used
        if used == 0:
            arena.first[arm_id] = NONE
        if arena.outside[arm_id] != NONE and arena.shed[arm_id] == 0.0:
            slot = arena.outside[arm_id]
            link[slot], free = free, slot
            arena.outside[arm_id] = NONE
    return free


@compiled
def delete_arm(arena: ArenaState, arm_id: int) -> int:
    """Delete an arm, release its slots, and return the first free slot; a slot holds one direction of one arm."""
    arena.used[arm_id], arena.shed[arm_id] = 0, 0.0
    free = release_slots(arena, np.full(1, arm_id), arena.free)
    reset_arm(arena, arm_id)
    arena.rows[arm_id] = NONE
    return free


@compiled
def is_consistent(arena: ArenaState) -> bool | np.bool:
    """Return True if every slot below `top` is in exactly one list and all counts match.

    A slot holds one direction of one arm. A file passes this check before compiled code follows its links.
    """
    slots, arm_ids, known = arena.link.size, arena.first.size, arena.prior.space.used
    if not 0 <= arena.top <= slots:
        return False
    seen = np.zeros(slots, np.bool_)
    for arm_id in range(arm_ids):
        slot, n_slots, used = arena.first[arm_id], arena.n_slots[arm_id], arena.used[arm_id]
        if not (0 <= used == n_slots <= arena.root.shape[1] and (arena.rows[arm_id] + known >= used or n_slots == 0)):
            return False
        for _ in range(n_slots):
            if not 0 <= slot < arena.top or seen[slot]:
                return False
            seen[slot], slot = True, arena.link[slot]
        if slot != NONE:
            return False
        slot = arena.outside[arm_id]
        if slot != NONE:
            if not 0 <= slot < arena.top or seen[slot]:
                return False
            seen[slot] = True
        if not (arena.ridge[arm_id] > 0.0 and arena.shed[arm_id] >= 0.0):
            return False
    slot = arena.free
    while slot != NONE:
        if not 0 <= slot < arena.top or seen[slot]:
            return False
        seen[slot], slot = True, arena.link[slot]
    return np.all(seen[: arena.top])
