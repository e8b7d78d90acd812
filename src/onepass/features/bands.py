"""Bands for numbers that take few values: a weight for each value, with linear interpolation between them.

A value x between two knots has weights in two bands:

    x_k <= x <= x_{k+1}:    band k has 1 - f,  band k + 1 has f,    f = (x - x_k) / (x_{k+1} - x_k)

The knots x_k are the first values that are learned, and never move. A value beyond the outermost knot counts as that
knot. The bands of a number add up to 1, so they give a piecewise linear function beside the straight line of the number
itself. Ten prices are then like ten category names with an order. When a decision meets a value that would become a new
knot, the value is put into a shared column, like a new name, so that it counts as little known.

With fewer than MANY knots the straight line is enough, and there are no bands. If a number shows more values than there
are bands within EARLY rows for each band, it hardly ever repeats a value, and it is treated as a straight line from
then on. If there are bands, the number itself is multiplied by LINE. Otherwise a learner could settle at one end of a
line that is too steep. `take_rescaled` reports which numbers have been multiplied, so that weights can be divided by
the factor.

Band columns have names that no key and no string has: `price[=4.0]` for a band, `price[=]` for a straight line.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from onepass.features.flatten import is_number
from onepass.foundation.generic import compiled

MANY = 3  # knots from which on there are bands
EARLY = 8  # rows a band
LINE = 0.35  # of the number beside its bands
PART = re.compile(r"((?:\\.|[^\\=?])*)\[=([^\]]*)\]", re.DOTALL)  # the name of a number, and a knot
VECTOR = re.compile(r".*(\]|(?<!\\)@(day|week|year)\.(sin|cos))", re.DOTALL)  # of a list, or of a point on a circle
NONE = -1


class Knots(NamedTuple):
    """Values at which the bands of all numbers are, as arrays for compiled code. A place is the index of a column.

    A number with few values has *bands*, a further column for each value; the values are called knots. The knots of the
    number at place p are knots[starts[p] : starts[p + 1]], in order, and `places` holds the places of their bands.
    unseen[p] is the place for values that would become a knot, or NONE if there is none.
    """

    starts: np.ndarray
    knots: np.ndarray
    places: np.ndarray
    unseen: np.ndarray


class Bands:
    """Bands of numbers that take few values: a band is a further column of features, for one value of the number.

    `most` is the largest number of bands for one number; 0 switches bands off. `names` lists the feature names so far,
    in the order of their columns.
    """

    def __init__(self, most: int, names: Sequence[str]) -> None:
        self._most = most
        self._held: dict[int, dict[float, int]] = {}
        self._straight: set[int] = set()
        self._names: dict[int, str] = {}
        self._knots: Knots | None = None
        self._rescaled: list[tuple[int, float]] = []
        self.count = 0  # of numbers that have bands now
        self.open: set[int] = set()  # places of numbers that have bands, or may get some
        places = {name: place for place, name in enumerate(names)}
        for name, place in places.items():
            self.begin(name, place)
            number, knot = part_of(name)
            of = places.get(number, NONE)
            if of in self._held:
                self._take(of, knot, place)

    def begin(self, name: str, place: int) -> None:
        """Register a new feature name with the index `place` of its column.

        The name may get bands if it is a number that belongs to no vector and no time.
        """
        self._knots = None
        if self._most and is_number(name) and VECTOR.fullmatch(name) is None:
            self._held[place], self._names[place] = {}, name
            self.open.add(place)

    def next_knot(self, place: int, value: float, rows: float, free: bool) -> float | None:
        """Return the value that gets a new band, None if nothing changes, or NaN if the number loses all its bands.

        It loses them if there is no room for the new value within the first 8 * `most` rows of the number.

        `place` is the index of the number's column, and `value` the value that is learned. `rows` is the number of rows
        in which the number was learned before. `free` is True if there is room for more bands.
        """
        held = self._held[place]
        if value in held:
            return None
        if free and len(held) < self._most:
            return value
        return np.nan if rows < EARLY * self._most else None

    def add_knot(self, of: int, knot: float, place: int) -> None:
        """Add a band to a number, or remove all bands of the number if `knot` is NaN.

        `of` is the column of the number, `knot` the value at which the new band is, and `place` the band's column.
        """
        banded = self._has_bands(of)
        self._take(of, knot, place)
        if self._has_bands(of) != banded:
            self._rescaled.append((of, 1.0 / LINE if banded else LINE))
        self._knots = None

    def take_rescaled(self) -> list[tuple[int, float]]:
        """Return the columns of numbers that were rescaled since the last call, with their factors; clear the list."""
        if not self._rescaled:
            return []
        found, self._rescaled = self._rescaled, []
        return found

    def _has_bands(self, place: int) -> bool:
        return len(self._held[place]) >= MANY and place not in self._straight

    def _take(self, of: int, knot: float, place: int) -> None:
        self.count -= self._has_bands(of)
        if np.isnan(knot):
            self._straight.add(of)
            self.open.discard(of)
        else:
            self._held[of][knot] = place
        self.count += self._has_bands(of)

    def knots(self, count: int, free: bool, unseen: Callable[[str], int]) -> Knots:
        """Return the values at which bands are (knots), as arrays for compiled code.

        `count` is the number of columns, `free` is True if there is room for more bands, and `unseen` maps a name
        without a column to the column that it shares with others.
        """
        if self._knots is None:
            knots, places = list[float](), list[int]()
            sizes, new = np.zeros(count + 1, np.int64), np.full(count, NONE)
            for place, mine in sorted(self._held.items()):
                if not self._has_bands(place):
                    continue
                knots += sorted(mine)
                places += [mine[knot] for knot in sorted(mine)]
                sizes[place + 1] = len(mine)
                if free and len(mine) < self._most:
                    new[place] = unseen(band_name(self._names[place], np.inf))
            known = np.array(knots, np.float64), np.array(places, np.int64)
            self._knots = Knots(np.cumsum(sizes), *known, new)
        return self._knots


def band_name(number: str, knot: float) -> str:
    """Return the name of a band, a column for one value `knot` of a number.

    NaN gives the name of a number that has lost its bands.
    """
    return f"{number}[=]" if np.isnan(knot) else f"{number}[={knot!r}]"


def part_of(name: str) -> tuple[str, float]:
    """Return the name of the number and the value of a band, from the band's name.

    The value is NaN for a number that has lost its bands. The name is "" if `name` is not the name of a band.
    """
    found = PART.fullmatch(name)
    if found is None or not found[1]:
        return "", np.nan
    try:
        knot = float(found[2] or "nan")
    except ValueError:
        return "", np.nan
    return ("" if np.isinf(knot) else found[1]), knot


@compiled
def with_bands(
    starts: np.ndarray,
    places: np.ndarray,
    values: np.ndarray,
    known: Knots,
    means: np.ndarray,
    scales: np.ndarray,
    far: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return sparse rows (starts, places, values) with bands added and numbers standardized.

    A row consists of columns (places) and values. A number becomes (number - mean) scale, clipped to [-far, far];
    `means` and `scales` are by column. `known` holds the values at which bands are, as `Knots`.
    """
    begins, size = np.zeros(starts.size, np.int64), 0
    where, what = np.empty(3 * places.size, np.int64), np.empty(3 * places.size)
    for i in range(starts.size - 1):
        for j in range(starts[i], starts[i + 1]):
            place, value = places[j], values[j]
            z = value
            if place < means.size:
                z = min(max((value - means[place]) * scales[place], -far), far)
            plain = place + 1 >= known.starts.size or known.starts[place] == known.starts[place + 1]
            where[size], what[size] = place, z if plain else LINE * z
            size += 1
            if plain:
                continue
            first, last = known.starts[place], known.starts[place + 1] - 1
            while first + 1 < last:  # knots[first] <= value < knots[last], but for values outside
                middle = (first + last) // 2
                if known.knots[middle] <= value:
                    first = middle
                else:
                    last = middle
            low, high = known.knots[first], known.knots[last]
            share = 0.0 if value <= low else 1.0 if value >= high else (value - low) / (high - low)
            if value != low and value != high and known.unseen[place] != NONE:
                where[size], what[size] = known.unseen[place], 1.0
                size += 1
                continue
            if share < 1.0:
                where[size], what[size] = known.places[first], 1.0 - share
                size += 1
            if share > 0.0:
                where[size], what[size] = known.places[last], share
                size += 1
        begins[i + 1] = size
    return begins, where[:size].copy(), what[:size].copy()
