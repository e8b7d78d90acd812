"""Settings as points of a cube, in which a kernel measures how far apart they are.

    Real, Integer    (x - low) / (high - low), of logarithms where they are `log`        one coordinate
    Category         1 / sqrt(2) at the choice and 0 elsewhere: distance 1 of any two    one coordinate a choice

A setting that is not active, since another one has not the value that it needs, is left out of the settings, and lies
at the middle of its range (a category: at 0): points that differ only in what plays no part are one point. Integers are
rounded before they become coordinates, so that the kernel sees what is tried.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast, final

import numpy as np

from onepass.foundation import check
from onepass.foundation.check import shown
from onepass.foundation.registry import savable

Settings = dict[str, Any]
MIDDLE = 0.5  # of the unit interval
APART = 0.5**0.5  # at the coordinate of a choice: two choices are at distance 1
LISTED = 10_000  # settings that a space may have to be gone through one by one
PLAIN = (str, int, float, bool, type(None))  # what a file holds of a choice


class Dimension(ABC):
    """One setting: `Real`, `Integer` or `Category`. `when`: what other settings must be for this one to play a part."""

    when: Any

    @property
    @abstractmethod
    def width(self) -> int:
        """Coordinates."""

    @property
    @abstractmethod
    def count(self) -> float:
        """How many values there are, inf of a `Real`."""

    @abstractmethod
    def value(self, share: float) -> Any:
        """The value at a share in [0, 1] of the range."""

    @abstractmethod
    def share(self, value: Any) -> float:
        """The inverse of `value`, the middle of what leads there."""

    @abstractmethod
    def places(self, shares: np.ndarray) -> np.ndarray:
        """The coordinates (n, width) of the values at shares (n,)."""

    @abstractmethod
    def checked(self, name: str, value: Any) -> Any:
        """A value of the setting `name`, if it is one; ValueError if not."""

    def idle(self) -> np.ndarray:
        """The coordinates (width,) where it plays no part."""
        return np.full(self.width, MIDDLE)

    @property
    def params(self) -> dict[str, Any]:
        """What the constructor was given, as plain data."""
        return dict(vars(self))


def _needs(when: Any) -> list[list[Any]]:
    """`when` as a list of [name, values]: plain data, whatever it was given as."""
    several = isinstance(when, tuple | list)
    pairs: list[Any] = list(when.items()) if isinstance(when, Mapping) else list(when) if several else []
    if not (several or when is None or isinstance(when, Mapping)) or not all(
        isinstance(pair, tuple | list) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs
    ):
        raise ValueError(f'when must be a dictionary such as {{"model": ("svm",)}}, got {shown(when)}')
    return [[name, list(values) if isinstance(values, tuple | list | set) else [values]] for name, values in pairs]


def _logged(log: Any) -> bool:
    return bool(check.choice("log", log, (False, True)))


@final
@savable
@dataclass(frozen=True)
class Real(Dimension):
    """A number from low to high.

    low, high: finite, low < high; above 0 where log. log: equal ratios are equally far apart (default False).
    when: other settings and their values with which this one plays a part, {"model": ("svm",)} (default None: always).
    ValueError for anything else.
    """

    low: float
    high: float
    log: bool = False
    when: Any = None

    def __post_init__(self) -> None:
        low, high = check.real("low", self.low), check.real("high", self.high)
        if low >= high:
            raise ValueError(f"low must be below high, got {low} and {high}")
        if _logged(self.log) and low <= 0.0:
            raise ValueError(f"low must be above 0 where log=True, got {low}")
        for name, value in (("low", low), ("high", high), ("when", _needs(self.when))):
            object.__setattr__(self, name, value)

    @property
    def width(self) -> int:
        return 1

    @property
    def count(self) -> float:
        return math.inf

    def value(self, share: float) -> float:
        if self.log:
            found = math.exp(math.log(self.low) + share * (math.log(self.high) - math.log(self.low)))
        else:
            found = self.low + share * (self.high - self.low)
        return min(max(found, self.low), self.high)

    def share(self, value: float) -> float:
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def places(self, shares: np.ndarray) -> np.ndarray:
        return shares[:, None]

    def checked(self, name: str, value: Any) -> float:
        number = check.real(name, value)
        if not self.low <= number <= self.high:
            raise ValueError(f"{name} must be from {self.low} to {self.high}, got {shown(value)}")
        return number


@final
@savable
@dataclass(frozen=True)
class Integer(Dimension):
    """An integer from low to high, both included.

    low, high: integers, low < high; at least 1 where log. log: equal ratios are equally far apart (default False).
    when: other settings and their values with which this one plays a part, {"model": ("svm",)} (default None: always).
    ValueError for anything else.
    """

    low: int
    high: int
    log: bool = False
    when: Any = None

    def __post_init__(self) -> None:
        low = check.integer("low", self.low, 1 if _logged(self.log) else -check.MOST)
        high = check.integer("high", self.high, low + 1)
        for name, value in (("low", low), ("high", high), ("when", _needs(self.when))):
            object.__setattr__(self, name, value)

    def _edges(self) -> tuple[float, float]:
        """Every integer has the same share of the range between them, of logarithms where `log`."""
        low, high = self.low - MIDDLE, self.high + MIDDLE
        return (math.log(low), math.log(high)) if self.log else (low, high)

    @property
    def width(self) -> int:
        return 1

    @property
    def count(self) -> float:
        return self.high - self.low + 1

    def value(self, share: float) -> int:
        low, high = self._edges()
        found = low + share * (high - low)
        return min(max(round(math.exp(found) if self.log else found), self.low), self.high)

    def share(self, value: int) -> float:
        low, high = self._edges()
        return ((math.log(value) if self.log else value) - low) / (high - low)

    def places(self, shares: np.ndarray) -> np.ndarray:
        low, high = self._edges()
        found = low + shares * (high - low)
        values = np.clip(np.round(np.exp(found) if self.log else found), self.low, self.high)
        return (((np.log(values) if self.log else values) - low) / (high - low))[:, None]

    def checked(self, name: str, value: Any) -> int:
        return check.integer(name, value, self.low, self.high)


@final
@savable
@dataclass(frozen=True)
class Category(Dimension):
    """One of several choices, none nearer to another one than the rest.

    choices: at least two, all different: strings, numbers, truth values or None.
    when: other settings and their values with which this one plays a part, {"model": ("svm",)} (default None: always).
    ValueError for anything else.
    """

    choices: Any
    when: Any = None

    def __post_init__(self) -> None:
        several = isinstance(self.choices, tuple | list)
        choices = list(self.choices) if several else []
        keys = {(type(choice), choice) for choice in choices if isinstance(choice, PLAIN)}
        if len(choices) < 2 or len(keys) < len(choices):
            raise ValueError(
                "choices must be at least two different strings, numbers, truth values or None, "
                f"got {shown(self.choices)}"
            )
        object.__setattr__(self, "choices", choices)
        object.__setattr__(self, "when", _needs(self.when))

    @property
    def width(self) -> int:
        return len(self.choices)

    @property
    def count(self) -> float:
        return len(self.choices)

    def value(self, share: float) -> Any:
        return self.choices[min(int(share * len(self.choices)), len(self.choices) - 1)]

    def share(self, value: Any) -> float:
        return (self._index(value) + MIDDLE) / len(self.choices)

    def _index(self, value: Any) -> int:
        return next(i for i, choice in enumerate(self.choices) if type(choice) is type(value) and choice == value)

    def places(self, shares: np.ndarray) -> np.ndarray:
        count = len(self.choices)
        return APART * np.eye(count)[np.minimum((shares * count).astype(np.int64), count - 1)]

    def checked(self, name: str, value: Any) -> Any:
        if not any(type(choice) is type(value) and choice == value for choice in self.choices):
            raise ValueError(f"{name} must be one of {shown(self.choices)}, got {shown(value)}")
        return value

    def idle(self) -> np.ndarray:
        return np.zeros(self.width)


@final
class Space:
    """Several settings by their names; a setting that depends on another one comes after it.

    settings: {name: `Real`, `Integer` or `Category`}, at least one. ValueError for anything else.
    """

    def __init__(self, settings: Mapping[str, Dimension]) -> None:
        given = list(settings.items()) if isinstance(settings, Mapping) else []
        if not given or not all(isinstance(name, str) and isinstance(one, Dimension) for name, one in given):
            raise ValueError(f'settings must be a dictionary such as {{"x": Real(0.0, 1.0)}}, got {shown(settings)}')
        self.dimensions: dict[str, Dimension] = dict(given)
        before: dict[str, Dimension] = {}
        for name, one in given:
            for parent, values in one.when:
                if parent not in before:
                    raise ValueError(f"when of {name} names {shown(parent)}, which is no setting before it")
                if isinstance(before[parent], Real):
                    raise ValueError(f"when of {name} names {shown(parent)}, which must be an Integer or a Category")
                for value in values:
                    before[parent].checked(f"when of {name}", value)
            before[name] = one
        self.owners = np.repeat(np.arange(len(before)), [one.width for one in before.values()])

    @property
    def names(self) -> list[str]:
        """Of the settings, in their order."""
        return list(self.dimensions)

    @property
    def count(self) -> float:
        """Settings at most, inf where one is `Real`."""
        return math.prod(one.count for one in self.dimensions.values())

    def _active(self, one: Dimension, settings: Settings) -> bool:
        """Whether a dimension plays a part beside the settings so far."""
        return all(
            parent in settings and any(type(v) is type(settings[parent]) and v == settings[parent] for v in values)
            for parent, values in one.when
        )

    def settings(self, shares: np.ndarray) -> Settings:
        """The settings at shares (names,) of their ranges; those that are not active are left out."""
        found: Settings = {}
        for share, (name, one) in zip(shares.tolist(), self.dimensions.items(), strict=True):
            if self._active(one, found):
                found[name] = one.value(share)
        return found

    def shares(self, settings: Settings, idle: float = MIDDLE) -> np.ndarray:
        """The inverse of `settings`, shape (names,), `idle` where a setting is not active."""
        dimensions = self.dimensions.items()
        return np.array([one.share(settings[name]) if name in settings else idle for name, one in dimensions])

    def rows(self, shares: np.ndarray) -> np.ndarray:
        """The points that settings at shares (n, names) are for a kernel, (n, coordinates)."""
        found: list[np.ndarray] = []
        playing: dict[str, np.ndarray] = {}
        places: dict[str, np.ndarray] = {}
        for i, (name, one) in enumerate(self.dimensions.items()):
            plays = np.ones(len(shares), np.bool_)
            for parent, values in one.when:
                wanted = self.dimensions[parent].places(np.array([self.dimensions[parent].share(v) for v in values]))
                met = (places[parent][:, None] == wanted[None]).all(axis=2).any(axis=1)
                plays &= playing[parent] & met
            playing[name], places[name] = plays, one.places(shares[:, i])
            found.append(np.where(plays[:, None], places[name], one.idle()))
        return np.concatenate(found, axis=1)

    def checked(self, settings: Any) -> Settings:
        """Settings from outside, in order; ValueError unless they are exactly those that are active, each in range."""
        if not isinstance(settings, Mapping):
            raise ValueError(f"settings must be a dictionary, got {shown(settings)}")
        found: Settings = {}
        for name, one in self.dimensions.items():
            if self._active(one, found):
                if name not in settings:
                    raise ValueError(f"settings must have {name}, got {shown(settings)}")
                found[name] = one.checked(name, settings[name])
        if len(found) != len(settings):
            unknown = next(name for name in settings if name not in found)
            raise ValueError(f"settings must not have {shown(unknown)}, which plays no part in {shown(settings)}")
        return found

    def all(self) -> list[Settings]:
        """All settings of a finite space, each once; at most `LISTED` candidates are gone through."""
        found: list[Settings] = [{}]
        for name, one in self.dimensions.items():
            count = int(one.count)
            values = [one.value((i + MIDDLE) / count) for i in range(count)]
            found = [
                settings | {name: value} if self._active(one, settings) else settings
                for settings in found
                for value in (values if self._active(one, settings) else [cast(Any, None)])
            ]
        return found
