"""The arms of one request as records, and those whose own appeal is kept: the ones learned last."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from onepass.bandit.crossing import NAMELESS, NEW, Crossing, anew
from onepass.bandit.names import distinct, hashable, named
from onepass.features.terms import rows_of, terms
from onepass.foundation import check
from onepass.foundation.check import shown
from onepass.foundation.state import objects

NAME = "arm"  # the only feature of an arm that is but a name


def arms_of(arms: Any) -> tuple[list[Any] | None, list[Any]]:
    """Names, None where there are none, and records; ValueError for arms of no such kind, twice the same, or none."""
    if isinstance(arms, Mapping):
        names, records = list(arms), list(arms.values())
        hashable(names)  # and each equal to itself
    elif hasattr(arms, "iter_rows") or hasattr(arms, "isna") or (isinstance(arms, list) and arms and is_record(arms)):
        names, records = None, rows_of(arms)[1]
    else:
        names = distinct(arms)
        records = [{NAME: name if isinstance(name, str) else repr(name)} for name in names]
    if not records:
        raise ValueError(f"arms must have at least one arm, got {shown(arms)}")
    return names, records


def is_record(arms: list[Any]) -> bool:
    """Whether a list holds records."""
    return isinstance(arms[0], Mapping)


def rows_to_learn(contexts: Any, rewards: Any, arm: Any) -> list[tuple[Any, Any, Any, float]]:
    """The terms of request and arm, the arm's name (None without one), and the reward, of one request or of n.

    contexts, rewards, arm: as `CrossedBandit.learn` takes records. ValueError as there.
    """
    if arm is None:
        raise ValueError(
            "contexts must be decisions, or records beside arm, which says what was chosen: a name, {name: features}, "
            f"or [features] without a name; got {shown(contexts)}"
        )
    records = rows_of(contexts)[1]
    paid = check.finite("rewards", check.array("rewards", rewards, np.dtype(np.float64), (0, 1)))
    each = [arm] if paid.ndim == 0 else named(arm, len(records), "arm")
    if len(records) != paid.size or not records:
        raise ValueError(f"rewards must have one entry per record of contexts ({len(records)}), got {paid.size}")
    return [
        (terms(record), *arm_to_learn(one), value)
        for record, one, value in zip(records, each, paid.reshape(-1).tolist(), strict=True)
    ]


def arm_to_learn(arm: Any) -> tuple[Any, Any]:
    """The terms of one arm, and its name, (name,), None without one; ValueError for several arms and for none."""
    names, records = arms_of(arm if isinstance(arm, Mapping | list) else [arm])
    if len(records) != 1:
        raise ValueError(f"arm must be one arm: a name, {{name: features}} or [features], got {shown(arm)}")
    return terms(records[0]), None if names is None else (names[0],)


class Kept(NamedTuple):
    """names of arms, the one learned longest ago first, and their places."""

    names: np.ndarray
    places: np.ndarray

    def fits(self, recent: int) -> bool:
        """Whether these can be the arms of a bandit that keeps `recent` of them."""
        places, names = self.places.tolist(), self.names.tolist()
        return (
            len(names) == len(set(names)) == len(places)
            and sorted(places) == list(range(len(places)))
            and (len(places) <= recent)
        )


class Owned:
    """Places of the arms learned last, at most `recent`; an arm more takes the place of the one learned longest ago."""

    def __init__(self, recent: int):
        self._recent = recent
        self._places: dict[Any, int] = {}

    def places(self, names: list[Any] | None, count: int) -> np.ndarray:
        """The places of `count` arms: NEW for names without one, NAMELESS where there are no names."""
        if names is None:
            return np.full(count, NAMELESS)
        held = self._places
        return np.array([held.get(name, NEW) for name in names], np.int64)

    def learned(self, name: tuple[Any] | None, state: Crossing) -> int:
        """The place of an arm, (name,), that is learned now; None: it has no name."""
        if name is None:
            return NAMELESS
        place = self._places.pop(name[0], None)
        if place is None:
            place = len(self._places)
            if place == self._recent:
                place = self._places.pop(next(iter(self._places)))
                anew(state, place)
        self._places[name[0]] = place
        return place

    @property
    def names(self) -> tuple[Any, ...]:
        """Of the arms that have a place, the one learned longest ago first."""
        return tuple(self._places)

    def forget(self, name: Any, state: Crossing) -> None:
        """An arm's place is that of the arm in the last place from now on, whose numbers move there."""
        place, last = self._places.pop(name), len(self._places)
        for other, held in self._places.items():
            if held == last:
                self._places[other] = place
                state.own[place] = state.own[last]
        anew(state, last)

    def kept(self) -> Kept:
        """As arrays."""
        return Kept(names=objects(list(self._places)), places=np.array(list(self._places.values()), np.int64))

    @classmethod
    def of(cls, recent: int, kept: Kept) -> "Owned":
        """The inverse of `kept`."""
        found = cls(recent)
        found._places = dict(zip(kept.names.tolist(), kept.places.tolist(), strict=True))
        return found
