"""Conversion of records (dictionaries, lists of them, and frames) to rows of numbers.

Every term of a record has a column of the row, called its place:

    row[place(name)] = value        for every term of the record (flatten.py): country=de: 1, age: 34

The first `size - hashed` names that `learn` meets get a place each, in order, for ever. Any other name shares one of
the last `hashed` places, by a hash of the name and the seed. A decision learns no names, so a new name has a shared
place until it is learned. A term for a missing value is left out until it has been learned. The same stream gives the
same places on every machine.

A record of n terms costs O(n): it becomes a list of (place, value), and dense rows only in `transform`.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple, Self, final

import numpy as np

from onepass.features.bands import Bands, band_name, with_bands
from onepass.features.flatten import (
    LARGEST,
    check_terms,
    flatten_record,
    flatten_value,
    is_missing,
    is_number,
    term_name,
    to_records,
)
from onepass.features.sparse_rows import SparseRows
from onepass.features.standardization import float_array, is_bounded, mean_and_scale, standardize_values
from onepass.foundation import check, files
from onepass.foundation.registry import savable
from onepass.foundation.rw_lock import reading, writing
from onepass.foundation.state import object_array

DIGEST = 8  # bytes of a hash
FOUND = 65_536  # terms whose places are looked up at once, at most: some 10 MB
FEW = 2  # records up to which keys are not worth comparing
TEXT, NUMBERS = {str}, {float, int, bool}
NO_NUMBERS = np.zeros(0)
BANDS = 256  # of a number, at most
NOWHERE = -1  # the place of a term that has none
LEAST = 16  # places that a dictionary grows by
MOST = 2**24  # places: more names than anybody explains
FAR = 3.0  # deviations at which a standardized number is clipped: of a normal one 3 in 1,000 are


class Learned(NamedTuple):
    """Everything that a `Records` object has learned, as arrays.

    names: the names with a column of their own.
    moments (n, 3): count, mean and sum of squares about the mean of each name that is a number.
    holders: the first name learned in each shared column where one was learned.
    held: the indices of these shared columns.
    shared: for each of them, the number of times that another name was learned there.
    """

    names: np.ndarray
    moments: np.ndarray
    holders: np.ndarray
    held: np.ndarray
    shared: np.ndarray


class Space:
    """Lookup tables for one path of nested keys: columns of strings and of numbers, and tables of inner records."""

    __slots__ = ("inner", "numbers", "path", "strings")

    def __init__(self, path: str) -> None:
        self.path: str = path
        self.strings: dict[str, dict[str, int]] = {}
        self.numbers: dict[str, int] = {}
        self.inner: dict[str, Space] = {}


@final
@savable
class Records(files.Owner):
    """Conversion of dictionaries, lists of dictionaries, and polars or pandas frames to rows of numbers.

    A dictionary becomes named numbers, its terms, such as "age": 34 and "country=de": 1 (`onepass.features.flatten`).
    The first names that are learned get a column each. All later names share the last `hashed` columns, and a hash of
    the name determines which one.

    Parameters
    ----------
    size : int, default 256
        Width of the rows, from 2 to 2^24.
    hashed : int, optional
        Number of columns shared by names without a column of their own, from 1 to `size` - 1. Defaults to an eighth of
        `size`, at least 1.
    standardize : bool, default False
        Replace a number by (number - mean) / deviation of the numbers learned so far, clipped to [-3, 3]. A missing
        number then counts as the mean. The result is 0 as long as all numbers of this name have been the same, and if
        the name has no column of its own. By default numbers stay as they are.
    bands : int, default 0
        Largest number of bands of a name with numbers, from 0 to 256. A *band* is a further column, for one value of
        the number. The first values learned get bands, as long as half of all columns are free. A value between two
        bands counts partly for each. A name has no bands while fewer than three different values were learned. It loses
        its bands for good if it has more than `bands` different values within its first 8 * bands rows. Lists of
        numbers and times have no bands. With 0 there are none at all.
    seed : int, default 0
        Seed of the hash, at least 0.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> import onepass as op
    >>> records = op.Records(size=8, hashed=2)
    >>> _ = records.learn([{"country": "de", "age": 34.0}, {"country": "fr", "age": None}])
    >>> records.transform({"country": "fr", "age": 20.0})
    array([ 0., 20.,  1.,  0.,  0.,  0.,  0.,  0.])
    >>> records.feature_names()[:4]
    ('country=de', 'age', 'country=fr', 'age?')
    """

    def __init__(
        self, *, size: int = 256, hashed: int | None = None, standardize: bool = False, bands: int = 0, seed: int = 0
    ) -> None:
        self.size: int = check.integer("size", size, 2, MOST)
        share = max(self.size // 8, 1) if hashed is None else hashed  # an eighth: what is rare rarely collides there
        self.hashed: int = check.integer("hashed", share, 1, self.size - 1)
        self.standardize: bool = bool(check.choice("standardize", standardize, (False, True)))
        self.bands: int = check.integer("bands", bands, 0, BANDS)
        self.seed: int = check.integer("seed", seed, 0)
        self._room = self.size - self.hashed
        self._key = self.seed.to_bytes(8, "little")
        self._begin([], [], {}, {})

    def _begin(
        self, names: list[str], moments: list[list[float]], holders: dict[int, str], shared: dict[int, int]
    ) -> None:
        self._known = {name: place for place, name in enumerate(names)}
        self._moments, self._holders, self._shared = moments, holders, shared
        self._means, self._scales = np.zeros(len(names)), np.ones(len(names))
        for place, name in enumerate(names):
            if is_number(name):
                self._means[place], self._scales[place] = mean_and_scale(moments[place])
        self._numeric = [is_number(name) for name in names]
        self._bands = Bands(self.bands, names)
        self._clear_lookup()

    # ---- what it knows ----

    @property
    def n_names(self) -> int:
        """Number of names that have a column of their own."""
        return len(self._known)

    @property
    def collisions(self) -> int:
        """Number of times that a name was learned in a column that it shares with an earlier name."""
        return sum(self._shared.values())

    @property
    def has_learned(self) -> bool:
        """True once a record has been learned."""
        return bool(self._known)

    @reading
    def feature_names(self) -> tuple[str, ...]:
        """Return a name for every column.

        Returns
        -------
        tuple of str
            The name in each column, or `free#j` if it has none yet. Shared columns are `hash#j`, followed by
            the first name learned there, and by dots if other names share the column.
        """
        names = [*self._known, *(f"free#{place}" for place in range(self.n_names, self._room))]
        for place in range(self.hashed):
            dots = ", ..." if self._shared.get(place) else ""
            held = f" ({self._holders[place]}{dots})" if place in self._holders else ""
            names.append(f"hash#{place}{held}")
        return tuple(names)

    @reading
    def means(self) -> np.ndarray:
        """Return the mean of the numbers learned in every column.

        Returns
        -------
        array of shape (size,)
            The means. They are 0 for columns that hold no numbers, for columns that names share by hashing, and for
            columns that have no name yet.
        """
        out = np.zeros(self.size)
        out[: self.n_names] = self._means[: self.n_names]
        return out

    # ---- rows ----

    @reading
    def transform(self, records: Any) -> np.ndarray:
        """Turn records into dense rows in float64.

        Terms in the same shared column add up. Nothing changes.

        Parameters
        ----------
        records : dict, list of dict, or polars or pandas frame
            One record or several.

        Returns
        -------
        array of shape (size,) or (n, size)
            One row for a single dictionary, n rows otherwise.

        Raises
        ------
        ValueError
            If a value is NaN, infinite or of a kind without terms. The message names the key.
        """
        single, rows = to_records(records)
        starts, places, values = self._pairs(rows)
        out = np.zeros((len(rows), self.size))
        np.add.at(out, (np.repeat(np.arange(len(rows)), np.diff(starts)), places), values)
        return out[0] if single else out

    @reading
    def pairs(self, records: Any) -> SparseRows:
        """Turn records into sparse rows: column indices, called places, and values.

        ``scipy.sparse.csr_array((values, places, starts), shape=(n, size))`` makes a matrix of them.

        Parameters
        ----------
        records : dict, list of dict, or polars or pandas frame
            One record or several.

        Returns
        -------
        SparseRows
            The n rows of `transform`; a shared column may occur twice in a row.

        Raises
        ------
        ValueError
            If a value is NaN, infinite or of a kind without terms. The message names the key.
        """
        return self._pairs(to_records(records)[1])

    @reading
    def pairs_of_terms(self, every: list[dict[str, float]]) -> SparseRows:
        """Turn the terms of records into sparse rows: column indices, called places, and values.

        Parameters
        ----------
        every : list of dict
            Numbers by name, one dictionary per record, as `onepass.features.flatten.flatten_record` gives them.

        Returns
        -------
        SparseRows
            One row per record, as `pairs` gives them.

        Raises
        ------
        ValueError
            If a dictionary holds anything but finite numbers by name.
        """
        starts, places, values = [0], [], []
        for terms in every:
            for name, value in check_terms(terms).items():
                place = self._place(name)
                if place != NOWHERE:
                    places.append(place)
                    values.append(value)
            starts.append(len(places))
        return self._standardize_rows(
            SparseRows(np.array(starts, np.int64), np.array(places, np.int64), np.array(values, np.float64))
        )

    def _standardize_rows(self, found: SparseRows) -> SparseRows:
        """Add bands to the numbers of sparse rows, and standardize the numbers."""
        if self._bands.count:
            knots = self._bands.knots(self.n_names, self._spacious(), lambda name: self._room + self._hash(name))
            scaling = (self._means, self._scales, FAR) if self.standardize else (NO_NUMBERS, NO_NUMBERS, np.inf)
            return SparseRows(*with_bands(*found, knots, *scaling))
        if self.standardize:
            standardize_values(found.places, found.values, self._means, self._scales, FAR)
        return found

    def _spacious(self) -> bool:
        """Return True if fewer than half of the columns of single names are taken, so that a number may get bands.

        A band is a further column of a number with few values.
        """
        return 2 * len(self._known) < self._room

    def _pairs(self, rows: list[Any]) -> SparseRows:
        found = self._columns(rows) if len(rows) > FEW else None
        if found is None:
            starts, places, values = [0], [], []  # type: ignore[var-annotated]
            for row in rows:
                self._append_pairs(row, self._space, places, values)
                starts.append(len(places))
            found = SparseRows(np.array(starts, np.int64), np.array(places, np.int64), float_array(values))
        if not is_bounded(found.values, LARGEST):
            for row in rows:
                flatten_record(row)  # says which one
        return self._standardize_rows(found)

    def _columns(self, rows: list[Any]) -> SparseRows | None:
        """Return sparse rows of records with equal keys, computed key by key.

        Return None if the keys differ, or if a string or a number has no column yet. Key by key is several times faster
        than record by record.
        """
        strings, numbers, places, values = self._space.strings, self._space.numbers, [], []
        try:
            keys = list(rows[0])
            if not keys or set(map(len, rows)) != {len(keys)}:
                return None
            once = [1.0] * len(rows)
            for key in keys:
                column = [row[key] for row in rows]
                kinds = set(map(type, column))
                if kinds == TEXT:
                    known = strings[key]
                    places.append([known[value] for value in column])
                    values.append(once)
                elif kinds <= NUMBERS:
                    places.append([numbers[key]] * len(rows))
                    values.append(column)
                else:
                    return None
        except (KeyError, TypeError, IndexError):
            return None
        starts = np.arange(0, len(keys) * len(rows) + 1, len(keys))
        return SparseRows(starts, np.array(places, np.int64).T.ravel(), float_array(values).T.ravel())

    def _append_pairs(self, record: Any, space: Space, places: list[int], values: list[Any]) -> None:
        """Append the columns of a record's terms to `places`, and their values to `values`.

        `space` has the lookup tables for the keys of the record, which may be nested in another one. Common values are
        found there, others by the names of their terms.
        """
        strings, numbers = space.strings, space.numbers
        try:
            items = record.items()
        except AttributeError:
            raise ValueError(f"a record must be a dictionary, got {check.quote(record)}") from None
        for key, value in items:
            kind = type(value)
            try:
                if kind is str:
                    places.append(strings[key][value])
                    values.append(1.0)
                    continue
                if kind is float or kind is int or kind is bool:
                    places.append(numbers[key])
                    values.append(value)
                    continue
                if kind is dict:
                    self._append_pairs(value, space.inner[key], places, values)
                    continue
                if kind is list and value and type(value[0]) is str:
                    known = strings[key]
                    found = [known[one] for one in dict.fromkeys(value)]
                    places.extend(found)
                    values.extend([1.0] * len(found))
                    continue
            except (KeyError, TypeError):  # not known yet, or no name
                pass
            self._append_value(space, key, value, places, values)

    def _append_value(self, space: Space, key: Any, value: Any, places: list[int], values: list[Any]) -> None:
        """Append the columns and values of the terms of one `value`, stored under `key`, to the two lists.

        They are found by the names of the terms. `space` stores the columns for the next lookup.
        """
        if isinstance(value, Mapping):
            inner = Space(f"{term_name(space.path, key)}.")
            if any(name.startswith(inner.path) for name in self._known):
                space.inner[key] = inner
            self._append_pairs(value, inner, places, values)
            return
        own = term_name(space.path, key)
        for name, number in flatten_value(space.path, key, value):
            place = self._place(name)
            if place == NOWHERE:
                continue
            self._found += 1
            if name == own:
                space.numbers[key] = place
            elif isinstance(value, str | list) and name.startswith(f"{own}="):
                space.strings.setdefault(key, {})[name[len(own) + 1 :]] = place
            if self._found > FOUND:
                self._clear_lookup()
            places.append(place)
            values.append(number)

    def _clear_lookup(self) -> None:
        """Clear the lookup tables, because places change or there are too many entries."""
        self._space, self._found = Space(""), 0

    def _place(self, name: str) -> int:
        """Return the place of a term's name, or NOWHERE if the term is to be left out."""
        place = self._known.get(name)
        if place is None:
            return NOWHERE if self._silent(name) else self._room + self._hash(name)
        return place

    def _silent(self, name: str) -> bool:
        """Return True if a term without its own place is to be left out.

        Such a term is a missing value, or a number if numbers are standardized, because its mean and deviation are not
        known.
        """
        return is_missing(name) or (self.standardize and is_number(name))

    def _hash(self, name: str) -> int:
        digest = hashlib.blake2b(name.encode(errors="surrogatepass"), key=self._key, digest_size=DIGEST).digest()
        return int.from_bytes(digest, "little") % self.hashed

    # ---- learning ----

    @writing
    def learn(self, records: Any) -> Self:
        """Give columns to new names, and update the statistics of numbers.

        If one record is invalid, no record of the call is learned.

        Parameters
        ----------
        records : dict, list of dict, or polars or pandas frame
            Records as `transform` takes them.

        Returns
        -------
        Records
            The object itself.

        Raises
        ------
        ValueError
            If a value is NaN, infinite or of a kind without terms. The message names the key.
        """
        self._learn([flatten_record(record) for record in to_records(records)[1]])
        return self

    @writing
    def learn_terms(self, found: dict[str, float]) -> tuple[np.ndarray, np.ndarray]:
        """Learn the terms of one record, and return its sparse row after that: columns and values.

        Parameters
        ----------
        found : dict
            Finite numbers by name, as `onepass.features.flatten.flatten_record` gives them.

        Returns
        -------
        places : array of shape (t,)
            Columns of the record's terms.
        values : array of shape (t,)
            Value in each of these columns.

        Raises
        ------
        ValueError
            If `found` holds anything but finite numbers by name.
        """
        check_terms(found)
        places, values, known, numeric = [], [], self._known, self._numeric
        for name, value in found.items():
            place = known.get(name)
            if place is None or numeric[place]:
                place = self._learn_term(name, value)
                if place >= self._room and self._silent(name):
                    continue
            places.append(place)
            values.append(value)
        row = np.array(places, np.int64), np.array(values, np.float64)
        if self._bands.count:
            return self._standardize_rows(SparseRows(np.array([0, len(places)]), *row))[1:]
        if self.standardize:
            standardize_values(*row, self._means, self._scales, FAR)
        return row

    def take_rescaled(self) -> list[tuple[int, float]]:
        """Return the columns of numbers that were rescaled since the last call, and clear the list.

        A number is rescaled when it gets or loses its bands (`onepass.features.bands`). Models divide their weights by
        the factor.

        Returns
        -------
        list of (int, float)
            Column of each number, and the factor by which its values were multiplied.
        """
        return self._bands.take_rescaled()

    def _learn(self, every: list[dict[str, float]]) -> None:
        for found in every:
            for name, value in found.items():
                self._learn_term(name, value)

    def _learn_term(self, name: str, value: float) -> int:
        """Learn a term and return its place."""
        place = self._known.get(name)
        if place is None:
            if len(self._known) == self._room:
                place = self._hash(name)
                self._share(place, name)
                return self._room + place
            place = self._add_name(name)
        if self._numeric[place]:
            moment = self._moments[place]
            if place in self._bands.open:
                self._learn_band(place, name, value, moment[0])
            moment[0] += 1.0
            before = value - moment[1]
            moment[1] += before / moment[0]
            moment[2] = min(moment[2] + before * (value - moment[1]), LARGEST)
            self._means[place], self._scales[place] = mean_and_scale(moment)
        return place

    def _learn_band(self, place: int, name: str, value: float, rows: float) -> None:
        """Give the `value` of the number `name` a band if it should get one.

        `place` is the number's column, and `rows` the number of rows with this number so far.
        """
        knot = self._bands.next_knot(place, value, rows, self._spacious())
        if knot is not None and len(self._known) < self._room:
            self._bands.add_knot(place, knot, self._add_name(band_name(name, knot)))

    def _add_name(self, name: str) -> int:
        """Give a name its own place, and return the place."""
        place = self._known[name] = len(self._known)
        self._clear_lookup()
        self._numeric.append(is_number(name))
        self._bands.begin(name, place)
        self._moments.append([0.0, 0.0, 0.0])
        if place >= len(self._means):
            more = np.zeros(max(place, LEAST))
            self._means, self._scales = np.append(self._means, more), np.append(self._scales, 1.0 + more)
        return place

    def _share(self, place: int, name: str) -> None:
        if self._holders.setdefault(place, name) != name:
            self._shared[place] = self._shared.get(place, 0) + 1

    # ---- files ----

    @property
    def params(self) -> dict[str, Any]:
        """Arguments of the constructor, as plain data."""
        return {
            "size": self.size,
            "hashed": self.hashed,
            "standardize": self.standardize,
            "bands": self.bands,
            "seed": self.seed,
        }

    def contents(self) -> files.Contents:
        learned = Learned(
            names=object_array(list(self._known)),
            moments=np.array(self._moments, np.float64).reshape(-1, 3),
            holders=object_array(list(self._holders.values())),
            held=np.array(list(self._holders), np.int64),
            shared=np.array([self._shared.get(place, 0) for place in self._holders], np.int64),
        )
        return files.Contents(self.params, {}, learned)

    @classmethod
    def from_contents(cls, params: dict[str, Any], extra: dict[str, Any], held: files.StateSource) -> Self:
        """Rebuild the object from its saved arguments `params`, further data `extra` and arrays `held`.

        Raises ValueError if they do not belong together.
        """
        found = cls(**params)
        none = np.zeros(0, np.int64)
        begun = Learned(
            names=object_array([]), moments=np.zeros((0, 3)), holders=object_array([]), held=none, shared=none
        )
        learned = held.take(begun, found._fits)
        if learned is not None:
            held_by = dict(zip(learned.held.tolist(), learned.holders.tolist(), strict=True))
            others = dict(zip(learned.held.tolist(), learned.shared.tolist(), strict=True))
            found._begin(learned.names.tolist(), learned.moments.tolist(), held_by, others)
        return found

    def _fits(self, learned: Learned) -> bool:
        names, moments, holders, places, shared = learned
        strings = all(type(name) is str for name in names) and len(set(names)) == len(names)
        whole = moments.shape == (len(names), 3) and bool(np.isfinite(moments).all() and (moments[:, ::2] >= 0).all())
        one_each = len(holders) == len(places) == len(shared) == len(set(places.tolist()))
        there = bool((shared >= 0).all() and (places >= 0).all() and (places < self.hashed).all())
        held = one_each and there and all(type(name) is str for name in holders)
        return strings and whole and held and len(names) <= self._room

    @reading
    def memory_usage(self) -> int:
        """Return the bytes of the names, and of the counts kept for them.

        Returns
        -------
        int
            Number of bytes.
        """
        names = (*self._known, *self._holders.values())
        return sum(len(name.encode(errors="surrogatepass")) for name in names) + 8 * (
            5 * self.n_names + 2 * len(self._holders)
        )  # numbers of 8

    def __repr__(self) -> str:
        return (
            f"Records(size={self.size}, hashed={self.hashed}, standardize={self.standardize}, bands={self.bands}, "
            f"seed={self.seed}) of {self.n_names} names"
        )
