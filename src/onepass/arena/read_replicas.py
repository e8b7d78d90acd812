"""Replicas of an arena for readers, each updated with the arms that have changed since its last use.

A reader may keep a replica as long as it likes. A replica without a reader is reused. The slots of changed arms are
then copied, at cost O(m dim) for an arm with m slots, and the links of all slots, 8 bytes each. If all replicas are in
use, or the arena has grown, a full copy is made.
"""

import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np

from onepass.arena.arena import NONE, PER_ARM, PER_SLOT, ArenaState
from onepass.foundation.generic import compiled

SPARE = 1  # copies without a reader that are kept


class Reader:
    """Token of a reader of a copy of the arena, which is not written to while the token is alive."""

    __slots__ = ("__weakref__",)


class Replica:
    """Copy of the arena's state, with the set of arm ids changed since it was made, and a reference to its reader."""

    __slots__ = ("reader", "stale", "state")

    def __init__(self, state: ArenaState, reader: Reader) -> None:
        self.state, self.reader = state, weakref.ref(reader)
        self.stale: set[int] = set()


class Replicas:
    """Copies of one arena for readers, each of which never changes while its reader is alive."""

    __slots__ = ("_replicas",)

    def __init__(self) -> None:
        self._replicas: list[Replica] = []

    def mark_changed(self, arm_ids: Iterable[int]) -> None:
        """Mark arms as changed, so that copies are updated before their next use; must be called after every change."""
        for replica in self._replicas:
            replica.stale.update(arm_ids)

    def acquire(self, arena: ArenaState) -> tuple[ArenaState, Reader]:
        """Return an up-to-date copy of the arena, and the token of its reader."""
        reader = Reader()
        free = [replica for replica in self._replicas if replica.reader() is None]
        usable = [replica for replica in free if _has_same_size(replica.state, arena)]
        if usable:
            chosen = min(usable, key=lambda replica: len(replica.stale))
            chosen.state = update_copy(chosen.state, arena, np.fromiter(chosen.stale, np.int64, len(chosen.stale)))
            chosen.stale, chosen.reader = set(), weakref.ref(reader)
        else:
            chosen = Replica(copy_arena(arena), reader)
            self._replicas.append(chosen)
        dropped = [replica for replica in free if replica is not chosen][SPARE:]
        self._replicas = [
            replica for replica in self._replicas if replica not in dropped and _has_same_size(replica.state, arena)
        ]
        return chosen.state, reader


def _has_same_size(copy: ArenaState, arena: ArenaState) -> bool:
    return copy.link.size == arena.link.size and copy.first.size == arena.first.size


def copy_arena(arena: ArenaState) -> ArenaState:
    """Return a copy of the arena with all stored arms, and with the same spare capacity."""
    copies: dict[str, Any] = {}
    for name in (*PER_SLOT, *PER_ARM):
        array = getattr(arena, name)
        used = arena.top if name in PER_SLOT else len(array)
        copies[name] = np.empty_like(array)
        copies[name][:used] = array[:used]
    return arena._replace(**copies)


def update_copy(copy: ArenaState, arena: ArenaState, arm_ids: np.ndarray) -> ArenaState:
    """Copy the present models of the arms `arm_ids` into an earlier copy of the arena, and return this copy."""
    copy.link[: arena.top] = arena.link[: arena.top]
    copy_arms(copy, arena, arm_ids)
    return copy._replace(free=arena.free, top=arena.top)


@compiled
def copy_slot(copy: ArenaState, arena: ArenaState, slot: int) -> None:
    """Copy one slot, which holds one direction of one arm, from the arena into a copy of the arena.

    The index of the next slot is not copied.
    """
    for j in range(arena.basis.shape[1]):
        copy.basis[slot, j] = arena.basis[slot, j]
    for j in range(arena.root.shape[1]):
        copy.root[slot, j] = arena.root[slot, j]
    for j in range(arena.cross.shape[1]):
        copy.cross[slot, j] = arena.cross[slot, j]
    copy.moment[slot], copy.weight[slot] = arena.moment[slot], arena.weight[slot]


@compiled
def copy_arms(copy: ArenaState, arena: ArenaState, arm_ids: np.ndarray) -> None:
    """Copy all that the arena holds about the arms `arm_ids`, their directions included, into a copy of the arena."""
    for arm_id in arm_ids:
        copy.first[arm_id], copy.outside[arm_id] = arena.first[arm_id], arena.outside[arm_id]
        copy.used[arm_id], copy.n_slots[arm_id] = arena.used[arm_id], arena.n_slots[arm_id]
        copy.rows[arm_id] = arena.rows[arm_id]
        copy.ridge[arm_id], copy.log_det[arm_id] = arena.ridge[arm_id], arena.log_det[arm_id]
        copy.mass[arm_id], copy.shed[arm_id] = arena.mass[arm_id], arena.shed[arm_id]
        copy.weighted[arm_id], copy.dust[arm_id] = arena.weighted[arm_id], arena.dust[arm_id]
        for j in range(arena.memory.shape[1]):
            copy.memory[arm_id, j] = arena.memory[arm_id, j]
        if arena.rows[arm_id] < 0:  # vacant
            continue
        slot = arena.first[arm_id]
        for _ in range(arena.used[arm_id]):
            copy_slot(copy, arena, slot)
            slot = arena.link[slot]
        if arena.outside[arm_id] != NONE:
            copy_slot(copy, arena, arena.outside[arm_id])
