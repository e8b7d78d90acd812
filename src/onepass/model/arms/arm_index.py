"""Index of a bandit's arms: their names, and the ids under which a store holds their models.

A name is any hashable. Arms appear when they are added or learned from, and keep the order of appearance. An arm that
has never learned has the id NONE.
"""

import threading
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from onepass.arena.arena import NONE
from onepass.foundation.check import quote
from onepass.foundation.forks import open_at_fork
from onepass.model.names import check_hashable, distinct_names

INDEX_LOCK = open_at_fork(threading.RLock())  # of all bandits: held for a moment


class ArmIndex:
    """Names of arms, with the id of each arm's model.

    The latest request is cached, because the same arms are usually offered again and again.
    """

    def __init__(self, arm_ids: Mapping[Hashable, int] | Iterable[tuple[Hashable, int]] = ()) -> None:
        self._arm_ids: dict[Hashable, int] = dict(arm_ids)
        self._last_request: tuple[Any, list[Any], np.ndarray] | None = None  # what was asked for, its names and records

    def copy(self) -> "ArmIndex":
        """Return a copy with the same names and ids."""
        return ArmIndex(self._arm_ids)

    def __len__(self) -> int:
        return len(self._arm_ids)

    @property
    def names(self) -> tuple[Any, ...]:
        """All known arms, in the order in which they appeared."""
        return tuple(self._arm_ids)

    @property
    def arm_ids(self) -> np.ndarray:
        """Id of every known arm, as an array (K,); NONE for arms that have not learned."""
        return np.fromiter(self._arm_ids.values(), np.int64, len(self._arm_ids))

    def add(self, arm: Hashable) -> None:
        """Add an arm; raise ValueError if it is known already or not hashable."""
        check_hashable([arm])
        if arm in self._arm_ids:
            raise ValueError(f"arm must be a new one, but {quote(arm)} is known already")
        self.add_names([arm])

    def add_names(self, names: Iterable[Any]) -> None:
        """Add the arms in `names` that are not known yet."""
        with INDEX_LOCK:
            for name in names:
                self._arm_ids.setdefault(name, NONE)
            self._last_request = None

    def remove(self, arm: Hashable) -> None:
        """Forget the arm with this name, which must be known."""
        del self._arm_ids[arm]
        self._last_request = None

    def lookup(self, arm: Hashable) -> int:
        """Return the id of an arm's model; raise ValueError if the arm is not known."""
        check_hashable([arm])
        if arm not in self._arm_ids:
            raise ValueError(f"arm {quote(arm)} is not known; known are {len(self)} arms, see bandit.arms")
        return self._arm_ids[arm]

    def find(self, arm: Hashable) -> int:
        """Return the id of an arm's model, or NONE if the arm is not known."""
        return self._arm_ids.get(arm, NONE)

    def check_untrained(self, arm: Hashable) -> None:
        """Raise ValueError if the arm with this name has learned already."""
        check_hashable([arm])
        if self.find(arm) != NONE:
            raise ValueError(
                f"arm must not have learned yet, but {quote(arm)} has: remove it first, or merge whole bandits"
            )

    def assign(self, arm: Hashable, arm_id: int) -> None:
        """Record that an arm has learned, and that its model has the id `arm_id`."""
        self._arm_ids[arm], self._last_request = arm_id, None

    def request(self, arms: Any) -> tuple[list[Any], np.ndarray]:
        """Return the names and ids (K,) of the arms on offer; None offers all known arms.

        An arm that is not known has the id NONE, and is not added to the index.

        Raises ValueError if there are no arms, if a name is not hashable, or if a name appears twice.
        """
        last = self._last_request
        if last is not None and (arms is None or isinstance(arms, tuple)) and last[0] is arms:
            return last[1], last[2]
        if arms is None:
            names = list(self._arm_ids)
            if not names:
                raise ValueError("arms must be given, for no arm is known yet; name them, add_arm or learn first")
            arm_ids = np.fromiter(self._arm_ids.values(), np.int64, len(names))
        else:
            names = distinct_names(arms)
            if not names:
                raise ValueError("arms must name at least one arm, got none")
            get = self._arm_ids.get
            arm_ids = np.array([get(name, NONE) for name in names], np.int64)
        if arms is None or isinstance(arms, tuple):
            with INDEX_LOCK:
                if arms is not None or len(names) == len(self):  # no other thread has added one meanwhile
                    self._last_request = (arms, names, arm_ids)
        return names, arm_ids
