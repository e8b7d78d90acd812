"""The clock by which a bandit forgets: a half-life in rounds, or in seconds with times told to `learn` and `decide`."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from math import ceil, floor, isfinite
from typing import Any

from onepass.design import contract as designs
from onepass.estimator.contract import forget
from onepass.estimator.estimator import Estimator
from onepass.estimator.half_life import TICKS, decay_factor
from onepass.foundation import check
from onepass.foundation.check import quote
from onepass.foundation.generic import is_registered
from onepass.foundation.registry import savable

ROUNDS, SECONDS = "rounds", "seconds"


@savable
class Clock:
    """half_life: rounds (rows that the bandit learns) or seconds, above 0; unit: which of the two.

    ValueError for other values. Ticks are those of half_life.py.
    """

    def __init__(self, half_life: float, unit: str = ROUNDS) -> None:
        self.half_life: float = check.positive("half_life", half_life, "rounds, a timedelta, or None to forget nothing")
        self.unit: Any = unit
        self.timed: bool = check.choice("unit", unit, (ROUNDS, SECONDS)) == SECONDS  # whether times have to be told

    @property
    def params(self) -> dict[str, Any]:
        """Return the arguments of the constructor."""
        return {"half_life": self.half_life, "unit": self.unit}

    @property
    def value(self) -> float | timedelta:
        """The half-life as a user gives it."""
        return timedelta(seconds=self.half_life) if self.timed else self.half_life

    def tick(self, position: float) -> int:
        """Return the tick of a round or of a time in seconds."""
        return floor(position * TICKS / self.half_life)

    def rounds_left(self, rounds: int) -> int:
        """Rows that are learned in the present tick, `rounds` of them learned already: at least one."""
        tick = self.tick(rounds)
        last = max(rounds, ceil((tick + 1) * self.half_life / TICKS) - 1)
        while last > rounds and self.tick(last) > tick:  # rounding
            last -= 1
        return last + 1 - rounds

    def tick_of_time(self, time: Any) -> int:
        """Return the tick of a time that a user gave; ValueError if it is missing or no time."""
        if time is None:
            raise ValueError("time must be given where half_life is a timedelta: Unix seconds, or a datetime")
        if isinstance(time, datetime):
            if time.tzinfo is None:
                raise ValueError(f"time must be a datetime with a time zone, or Unix seconds, got {quote(time)}")
            return self.tick(time.timestamp())
        seconds = check.real("time", time)
        if not isfinite(seconds * TICKS / self.half_life):
            raise ValueError(f"time must be Unix seconds, got {quote(time)}")
        return self.tick(seconds)


def make_clock(half_life: Any) -> Clock | None:
    """Make the clock of a half-life: rounds, a timedelta, or None for no clock. ValueError for other values."""
    if half_life is None or isinstance(half_life, Clock):
        return half_life
    if isinstance(half_life, timedelta):
        return Clock(half_life.total_seconds(), SECONDS)
    return Clock(half_life)


def check_forgets(estimator: Estimator) -> None:
    """ValueError for an estimator, or a design, that does not know how to forget."""
    initial = estimator.begin()
    for function, state in ((forget, initial), (designs.decay, initial.design)):
        if not is_registered(function, state):
            kind = type(state).__name__.removesuffix("State")
            raise ValueError(f"half_life must be None for {kind}, which does not say how it forgets")


class ForgettingClock:
    """The extent to which a model has forgotten.

    Parameters
    ----------
    clock : Clock or None
        None if nothing is forgotten.
    tick : int or None
        Tick up to which the model has forgotten; None if no time was given yet.
    passed : int
        Number of rows learned by this clock. Imported arms add none.
    weight : float
        Sum of the present weights of all rows learned.
    """

    def __init__(self, clock: Clock | None) -> None:
        self.clock, self.passed, self.weight = clock, 0, 0.0
        self.tick: int | None = None if clock is not None and clock.timed else 0

    def copy(self) -> "ForgettingClock":
        """Return an independent copy."""
        twin = ForgettingClock(self.clock)
        twin.tick, twin.passed, twin.weight = self.tick, self.passed, self.weight
        return twin

    def rounds(self, rounds: int) -> int:
        """Return the rows that a rule of exploration counts: of `rounds` learned, those that still count."""
        return rounds if self.clock is None else int(self.weight)

    def ticks_to(self, time: Any) -> int:
        """Return how many ticks a time is later than the model; 0 for an earlier time, which counts as the present.

        ValueError for a time where none is asked for, and for none where one is.
        """
        clock = self._clock_for(time)
        return max(clock.tick_of_time(time) - self.tick, 0) if clock.timed and self.tick is not None else 0

    def _clock_for(self, time: Any) -> Clock:
        if self.clock is None or (time is not None and not self.clock.timed):
            raise ValueError(f"time must be None unless half_life is a timedelta, got {quote(time)}")
        return self.clock

    def add_ticks(self, ticks: int) -> None:
        """Note that the model has forgotten so many ticks more."""
        self.tick, self.weight = (self.tick or 0) + ticks, self.weight * decay_factor(ticks)

    def spans(self, count: int, time: Any, forget: Callable[[int], None]) -> Iterator[slice]:
        """Return rows about to be learned, `count` in all, tick by tick; forget: makes the model ticks older."""
        clock, start = self._clock_for(time), 0
        if clock.timed:
            self.go_to(clock.tick_of_time(time), forget)
        while start < count:
            end = count if clock.timed else min(count, start + clock.rounds_left(self.passed))
            yield slice(start, end)
            self.weight += end - start
            self.passed += end - start
            if not clock.timed:
                self.go_to(clock.tick(self.passed), forget)
            start = end

    def go_to(self, tick: int, forget: Callable[[int], None]) -> None:
        """Forget up to a tick; an earlier one counts as the present one."""
        if self.tick is None:
            self.tick = tick
        elif tick > self.tick:
            forget(tick - self.tick)

    def extra(self) -> dict[str, Any]:
        """Return what a file holds of it: {} without a clock."""
        return {} if self.clock is None else {"tick": self.tick, "passed": self.passed, "recalled": self.weight}

    def restore(self, extra: dict[str, Any]) -> None:
        """Take what a file holds; ValueError for what cannot be."""
        if self.clock is None:
            return
        tick, self.weight = extra["tick"], check.real("recalled", extra["recalled"])
        if self.weight < 0.0:
            raise ValueError(f"the clock's weight is {self.weight}, expected at least 0")
        self.tick = tick if tick is None else check.integer("tick", tick, -check.MOST)
        self.passed = check.integer("passed", extra["passed"], 0)


def synchronize(ages: list[ForgettingClock], forgets: list[Callable[[int], None]]) -> None:
    """Bring models that are merged to one time. ValueError where they have none in common."""
    if ages[0].clock is None:
        return
    if not ages[0].clock.timed:
        raise ValueError(
            "half_life must be a timedelta for bandits that are merged: one in rounds counts the rows of one bandit"
        )
    ticks = [age.tick for age in ages if age.tick is not None]
    for age, older in zip(ages, forgets, strict=True):
        if ticks:
            age.go_to(max(ticks), older)
