"""One arena for the models of all arms: it grows with what was learned, not with arms x rank.

Every arm keeps A_a = reg I + sum of x x^T on the span of its own rows only, as `onepass.design.subspace` does:

    A_a^-1 = (I - Q^T Q) / ridge + Q^T R R^T Q,      theta_a = Q^T w + o / ridge,      w = R R^T Q b

Q (m, dim) are m slots of the arena, orthonormal; slot i also holds row i of R, (Q b)_i and w_i. An arm with n rows has
at most min(n, rank of its rows) slots; an arm without data has none, and is scored by its prior. o is the part of the
moment b outside the span: nothing until directions were cut, then one more slot. Scoring every arm for one context x is
one product of the arena with x, then O(m^2) an arm:   x^T theta = w^T p + o^T x / ridge,   p = Q x,
x^T A^-1 x = (||x||^2 - ||p||^2) / ridge + ||R^T p||^2.

A row costs O(m dim + m^2). Where a design would have more directions than it keeps, its own rule cuts them:
Exact never; Frequent Directions at 2 size (subtract the size-th eigenvalue or the first negligible one after it, keep
those above); projector splitting down to
rank at the end of each batch, by eigenvalues of A. That is Shustova et al.'s truncation for the symmetric root: I -
sqrt(reg) A^-1/2 is symmetric, so U and V of Shustova et al. coincide and one factor is stored instead of two; its
largest singular values belong to the largest eigenvalues of X^T X (Shustova et al.'s integrator approximates this
truncation by one step of a power iteration).

Slots are linked lists, so nothing ever moves; learning allots slots before and takes back the unused ones after, in an
order that does not depend on threads, and arms share nothing: neither do results.

Here: the state and its slots; arena_learning.py: the update of an arm; arena_scoring.py: means and widths.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.estimator.heavy_tails import Practice, Tail
from onepass.foundation.generic import compiled

NEVER, FREQUENT_DIRECTIONS, SPLITTING = 0, 1, 2
NONE = -1  # no slot, no record


class Cut(NamedTuple):
    """When and how directions are cut: at `limit` of them, and at the end of a batch above `hold`; size: l or r."""

    kind: int
    size: int
    hold: int
    limit: int
    compensation: float
    reg: float


class Winsor(NamedTuple):
    """One-pass Huber regression for every arm (see arena_learning.py); nu: of every row, 0 if it is estimated."""

    nu: float
    tail: Tail
    practice: Practice


class ArenaState(NamedTuple):
    """basis (slots, dim), root (slots, hold), moment, weight, link (slots,); cross (slots, k): Q sum of x z^T (hybrid).

    Of every arm that has learned, (records,): first slot (NONE: the record is vacant, or has no slot yet), directions
    used, slots held, the slot of o, rows learned, ridge, mass = trace of X^T X, shed = sum of cuts, dust = sum of what
    projector splitting cut that was no more than rounding, log_det of A_a.
    free: first slot of the list of free ones; top: slots ever in use. rule: what is learned, () for ridge, or Winsor;
    size, mean (records,): what Winsor knows of every arm's noise (heavy_tails.Noise).
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
    dust: np.ndarray
    log_det: np.ndarray
    size: np.ndarray
    mean: np.ndarray
    cut: Cut
    free: int
    top: int
    rule: Any


PER_SLOT = ("basis", "root", "moment", "weight", "cross", "link")
PER_ARM = ("first", "used", "held", "outside", "rows", "ridge", "mass", "shed", "dust", "log_det", "size", "mean")


@compiled
def new_record(arena, record):
    """An arm without rows: A = reg I."""
    arena.first[record], arena.outside[record] = NONE, NONE
    arena.used[record], arena.held[record], arena.rows[record] = 0, 0, 0
    arena.ridge[record], arena.mass[record], arena.shed[record] = arena.cut.reg, 0.0, 0.0
    arena.dust[record], arena.log_det[record] = 0.0, arena.basis.shape[1] * np.log(arena.cut.reg)
    arena.size[record], arena.mean[record] = 0.0, 0.0


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
