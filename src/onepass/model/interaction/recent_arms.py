"""The arms whose own effect, beside that of their features, is stored: those learned most recently."""

from typing import Any, NamedTuple

import numpy as np

from onepass.foundation.state import object_array
from onepass.model.interaction.interactions import NAMELESS, NEW, InteractionState, reset_arm


class SavedArms(NamedTuple):
    """Names of the stored arms, the one learned longest ago first, and the index of each arm in the model's arrays."""

    names: np.ndarray
    places: np.ndarray

    def fits(self, recent: int) -> bool:
        """Return True if these can be the arms of a model that stores `recent` arms."""
        places, names = self.places.tolist(), self.names.tolist()
        return len(names) == len(set(names)) == len(places) <= recent and sorted(places) == list(range(len(places)))


class RecentArms:
    """Indices of the most recently learned arms, at most `size`. A further arm replaces the one learned longest ago."""

    def __init__(self, size: int, saved: SavedArms | None = None) -> None:
        self._size = size
        pairs = () if saved is None else zip(saved.names.tolist(), saved.places.tolist(), strict=True)
        self._places: dict[Any, int] = dict(pairs)

    @property
    def names(self) -> tuple[Any, ...]:
        """Names of the arms that have an index, the one learned longest ago first."""
        return tuple(self._places)

    def places(self, names: list[Any] | None, count: int) -> np.ndarray:
        """Return the indices (count,) of arms: NEW for names without an index, NAMELESS if arms have no names."""
        if names is None:
            return np.full(count, NAMELESS)
        held = self._places
        return np.array([held.get(name, NEW) for name in names], np.int64)

    def assign(self, name: tuple[Any] | None, *each: InteractionState) -> int:
        """Return the index of an arm that is about to learn, and give it an index if it has none.

        `name` is (name,), or None for an arm without a name. `each` are the model states whose arrays have these
        indices.
        """
        if name is None:
            return NAMELESS
        place = self._places.pop(name[0], None)
        if place is None:
            place = len(self._places)
            if place == self._size:
                place = self._places.pop(next(iter(self._places)))
                for state in each:
                    reset_arm(state, place)
        self._places[name[0]] = place
        return place

    def remove(self, name: Any, *each: InteractionState) -> None:
        """Forget an arm. The arm with the last index gets the index that becomes free.

        `each` are the model states whose arrays have these indices; they are changed in place.
        """
        place, last = self._places.pop(name), len(self._places)
        for other, held in self._places.items():
            if held == last:
                self._places[other] = place
                for state in each:
                    state.own[place] = state.own[last]
        for state in each:
            reset_arm(state, last)

    def to_arrays(self) -> SavedArms:
        """Return the names and the indices of the stored arms as arrays for a file."""
        return SavedArms(names=object_array(list(self._places)), places=np.array(list(self._places.values()), np.int64))
