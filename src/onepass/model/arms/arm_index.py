"""The names of a bandit's arms, and where each has its model.

Arms are any hashable. They appear when they are added or learned from, and keep the order of appearance. An arm that
has never learned has the record NONE.
"""

import threading
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from onepass.arena.arena import NONE
from onepass.foundation.check import shown
from onepass.foundation.forks import open_at_fork
from onepass.model.names import distinct, hashable

NAMING = open_at_fork(threading.RLock())  # of all bandits: held for a moment


class ArmIndex:
    """Names and their records; the last request is kept, since the same arms are mostly offered again and again."""

    def __init__(self, records: Mapping[Hashable, int] | Iterable[tuple[Hashable, int]] = ()) -> None:
        self._records: dict[Hashable, int] = dict(records)
        self._kept: tuple[Any, list[Any], np.ndarray] | None = None  # what was asked for, its names and records

    def copy(self) -> "ArmIndex":
        """The same names and records."""
        return ArmIndex(self._records)

    def __len__(self) -> int:
        return len(self._records)

    @property
    def names(self) -> tuple[Any, ...]:
        """All known arms, in the order in which they appeared."""
        return tuple(self._records)

    @property
    def records(self) -> np.ndarray:
        """The record of every known arm."""
        return np.fromiter(self._records.values(), np.int64, len(self._records))

    def add(self, arm: Hashable) -> None:
        """Make an arm known; ValueError if it is known already or not hashable."""
        hashable([arm])
        if arm in self._records:
            raise ValueError(f"arm must be a new one, but {shown(arm)} is known already")
        self.meet([arm])

    def meet(self, names: Iterable[Any]) -> None:
        """Make arms known that are not yet."""
        with NAMING:
            for name in names:
                self._records.setdefault(name, NONE)
            self._kept = None

    def remove(self, arm: Hashable) -> None:
        """Forget a known arm."""
        del self._records[arm]
        self._kept = None

    def known(self, arm: Hashable) -> int:
        """The record of an arm; ValueError if it is not known."""
        hashable([arm])
        if arm not in self._records:
            raise ValueError(f"arm {shown(arm)} is not known; known are {len(self)} arms, see bandit.arms")
        return self._records[arm]

    def record(self, arm: Hashable) -> int:
        """The record of an arm; NONE if it is not known."""
        return self._records.get(arm, NONE)

    def unlearned(self, arm: Hashable) -> None:
        """ValueError for an arm that has learned already."""
        hashable([arm])
        if self.record(arm) != NONE:
            raise ValueError(
                f"arm must not have learned yet, but {shown(arm)} has: remove it first, or merge whole bandits"
            )

    def settle(self, arm: Hashable, record: int) -> None:
        """The arm has learned, and its model is at this record."""
        self._records[arm], self._kept = record, None

    def request(self, arms: Any) -> tuple[list[Any], np.ndarray]:
        """Names and records of the arms that are offered, None: all known ones. Nothing changes.

        ValueError where none is known or named, for names that are not hashable, and for a name that is there twice.
        """
        kept = self._kept
        if kept is not None and (arms is None or isinstance(arms, tuple)) and kept[0] is arms:
            return kept[1], kept[2]
        if arms is None:
            names = list(self._records)
            if not names:
                raise ValueError("arms must be given, for no arm is known yet; name them, add_arm or learn first")
            records = np.fromiter(self._records.values(), np.int64, len(names))
        else:
            names = distinct(arms)
            if not names:
                raise ValueError("arms must name at least one arm, got none")
            get = self._records.get
            records = np.array([get(name, NONE) for name in names], np.int64)
        if arms is None or isinstance(arms, tuple):
            with NAMING:
                if arms is not None or len(names) == len(self):  # no other thread has added one meanwhile
                    self._kept = (arms, names, records)
        return names, records
