"""The arms whose own appeal is kept, beside that of their features: the ones learned last."""

from typing import Any, NamedTuple

import numpy as np

from onepass.foundation.state import object_array
from onepass.model.interaction.interactions import NAMELESS, NEW, InteractionState, reset_arm


class SavedArms(NamedTuple):
    """names of arms, the one learned longest ago first, and their places."""

    names: np.ndarray
    places: np.ndarray

    def fits(self, recent: int) -> bool:
        """Return whether these can be the arms of a model that keeps `recent` of them."""
        places, names = self.places.tolist(), self.names.tolist()
        return len(names) == len(set(names)) == len(places) <= recent and sorted(places) == list(range(len(places)))


class RecentArms:
    """Places of the arms learned last, at most `size`; an arm more takes the place of the one learned longest ago."""

    def __init__(self, size: int, saved: SavedArms | None = None) -> None:
        self._size = size
        pairs = () if saved is None else zip(saved.names.tolist(), saved.places.tolist(), strict=True)
        self._places: dict[Any, int] = dict(pairs)

    @property
    def names(self) -> tuple[Any, ...]:
        """The arms that have a place, the one learned longest ago first."""
        return tuple(self._places)

    def places(self, names: list[Any] | None, count: int) -> np.ndarray:
        """Return the places of `count` arms: NEW for names without one, NAMELESS where there are no names."""
        if names is None:
            return np.full(count, NAMELESS)
        held = self._places
        return np.array([held.get(name, NEW) for name in names], np.int64)

    def assign(self, name: tuple[Any] | None, state: InteractionState) -> int:
        """Give a place to an arm, (name,), that is learned now, and return it; None: it has no name."""
        if name is None:
            return NAMELESS
        place = self._places.pop(name[0], None)
        if place is None:
            place = len(self._places)
            if place == self._size:
                place = self._places.pop(next(iter(self._places)))
                reset_arm(state, place)
        self._places[name[0]] = place
        return place

    def remove(self, name: Any, state: InteractionState) -> None:
        """Forget an arm; the one in the last place, whose numbers move there, has its place."""
        place, last = self._places.pop(name), len(self._places)
        for other, held in self._places.items():
            if held == last:
                self._places[other] = place
                state.own[place] = state.own[last]
        reset_arm(state, last)

    def to_arrays(self) -> SavedArms:
        """Return them as arrays."""
        return SavedArms(names=object_array(list(self._places)), places=np.array(list(self._places.values()), np.int64))
