"""Copies of an arena for readers, each brought up to date by the arms that have changed since it was.

A reader keeps a copy as long as it likes. One that nobody has any more is used again: the slots of the arms that have
changed are copied, O(m dim) an arm, and the links of all slots, 8 bytes each. Where all copies are in use, or the arena
has grown, a whole one is made.
"""

import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np

from onepass.arena.arena import NONE, PER_ARM, PER_SLOT, ArenaState
from onepass.foundation.generic import compiled

SPARE = 1  # copies without a reader that are kept


class Reader:
    """Whoever has a copy: as long as this lives, the copy is not written to."""

    __slots__ = ("__weakref__",)


class Copy:
    """state: of the arena as it was; stale: records that have changed since; reader: who has it, if anybody."""

    __slots__ = ("reader", "stale", "state")

    def __init__(self, state: ArenaState, reader: Reader) -> None:
        self.state, self.reader = state, weakref.ref(reader)
        self.stale: set[int] = set()


class Copies:
    """All copies of one arena."""

    __slots__ = ("_copies",)

    def __init__(self) -> None:
        self._copies: list[Copy] = []

    def changed(self, records: Iterable[int]) -> None:
        """These arms have changed: to be said after every change."""
        for copy in self._copies:
            copy.stale.update(records)

    def current(self, arena: ArenaState) -> tuple[ArenaState, Reader]:
        """A copy that is up to date, and its reader, who keeps it so."""
        reader = Reader()
        free = [copy for copy in self._copies if copy.reader() is None]
        fitting = [copy for copy in free if _as_long(copy.state, arena)]
        if fitting:
            chosen = min(fitting, key=lambda copy: len(copy.stale))
            chosen.state = caught_up(chosen.state, arena, np.fromiter(chosen.stale, np.int64, len(chosen.stale)))
            chosen.stale, chosen.reader = set(), weakref.ref(reader)
        else:
            chosen = Copy(whole(arena), reader)
            self._copies.append(chosen)
        dropped = [copy for copy in free if copy is not chosen][SPARE:]
        self._copies = [copy for copy in self._copies if copy not in dropped and _as_long(copy.state, arena)]
        return chosen.state, reader


def _as_long(copy: ArenaState, arena: ArenaState) -> bool:
    return copy.link.size == arena.link.size and copy.first.size == arena.first.size


def whole(arena: ArenaState) -> ArenaState:
    """A copy of all slots in use, with the same spare room."""
    copies: dict[str, Any] = {}
    for name in (*PER_SLOT, *PER_ARM):
        array = getattr(arena, name)
        used = arena.top if name in PER_SLOT else len(array)
        copies[name] = np.empty_like(array)
        copies[name][:used] = array[:used]
    return arena._replace(**copies)


def caught_up(copy: ArenaState, arena: ArenaState, records: np.ndarray) -> ArenaState:
    """The copy with these arms as they are in the arena."""
    copy.link[: arena.top] = arena.link[: arena.top]
    copy_arms(copy, arena, records)
    return copy._replace(free=arena.free, top=arena.top)


@compiled
def copy_slot(copy: ArenaState, arena: ArenaState, slot: int) -> None:
    """One slot; its link is copied with all others."""
    for j in range(arena.basis.shape[1]):
        copy.basis[slot, j] = arena.basis[slot, j]
    for j in range(arena.root.shape[1]):
        copy.root[slot, j] = arena.root[slot, j]
    for j in range(arena.cross.shape[1]):
        copy.cross[slot, j] = arena.cross[slot, j]
    copy.moment[slot], copy.weight[slot] = arena.moment[slot], arena.weight[slot]


@compiled
def copy_arms(copy: ArenaState, arena: ArenaState, records: np.ndarray) -> None:
    """All that some arms have: their numbers and their slots."""
    for record in records:
        copy.first[record], copy.outside[record] = arena.first[record], arena.outside[record]
        copy.used[record], copy.held[record] = arena.used[record], arena.held[record]
        copy.rows[record] = arena.rows[record]
        copy.ridge[record], copy.log_det[record] = arena.ridge[record], arena.log_det[record]
        copy.mass[record], copy.shed[record] = arena.mass[record], arena.shed[record]
        copy.weighted[record], copy.dust[record] = arena.weighted[record], arena.dust[record]
        for j in range(arena.memory.shape[1]):
            copy.memory[record, j] = arena.memory[record, j]
        if arena.rows[record] < 0:  # vacant
            continue
        slot = arena.first[record]
        for _ in range(arena.used[record]):
            copy_slot(copy, arena, slot)
            slot = arena.link[slot]
        if arena.outside[record] != NONE:
            copy_slot(copy, arena, arena.outside[record])
