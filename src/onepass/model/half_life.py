"""Clock by which a bandit forgets, with a half-life in rounds, or in seconds if times are given to its methods."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from math import ceil, floor
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
    """Clock with a half-life above 0, in rounds (rows that the bandit learns) or in seconds.

    `unit` is "rounds" or "seconds". A half-life is divided into ticks, within which weights stay the same
    (estimator/half_life.py). Raises ValueError for other values.
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
        """The half-life as the user gave it, which is a number of rounds or a timedelta."""
        return timedelta(seconds=self.half_life) if self.timed else self.half_life

    def tick(self, position: float) -> int:
        """Return the number of the tick that contains a round or a time in seconds.

        A half-life has a fixed number of ticks.
        """
        return floor(position * TICKS / self.half_life)

    def rounds_left(self, rounds: int) -> int:
        """Return how many more rows, at least one, have the same weight as row number `rounds`.

        A half-life is divided into a fixed number of ticks, within which weights stay the same.
        """
        tick = self.tick(rounds)
        last = max(rounds, ceil((tick + 1) * self.half_life / TICKS) - 1)
        while last > rounds and self.tick(last) > tick:  # rounding
            last -= 1
        return last + 1 - rounds

    def tick_of_time(self, time: Any) -> int:
        """Return the number of the tick that contains a time; raise ValueError if the time is missing or invalid.

        A tick is one of the equal parts into which a half-life is divided.
        """
        if time is None:
            raise ValueError("time must be given where half_life is a timedelta: Unix seconds, or a datetime")
        if isinstance(time, datetime) and time.tzinfo is None:
            raise ValueError(f"time must be a datetime with a time zone, or Unix seconds, got {quote(time)}")
        seconds = time.timestamp() if isinstance(time, datetime) else check.real("time", time)
        if abs(seconds * TICKS / self.half_life) > check.MOST:  # no file takes such a tick
            raise ValueError(
                f"time must be Unix seconds, within {check.MOST // TICKS:.1e} half-lives of 1970, got {quote(time)}"
            )
        return self.tick(seconds)


def make_clock(half_life: Any) -> Clock | None:
    """Make the clock of a half-life, which is a number of rounds or a timedelta; None gives no clock.

    Raises ValueError for other values.
    """
    if half_life is None or isinstance(half_life, Clock):
        return half_life
    if isinstance(half_life, timedelta):
        return Clock(half_life.total_seconds(), SECONDS)
    return Clock(half_life)


def check_forgets(estimator: Estimator) -> None:
    """Raise ValueError if an estimator or its design has no function for forgetting."""
    initial = estimator.begin()
    for function, state in ((forget, initial), (designs.decay, initial.design)):
        if not is_registered(function, state):
            kind = type(state).__name__.removesuffix("State")
            raise ValueError(f"half_life must be None for {kind}, which does not say how it forgets")


class ForgettingClock:
    """State of a model's forgetting: the time up to which old rows were discounted.

    Parameters
    ----------
    clock : Clock or None
        Clock of the half-life; None if nothing is forgotten.
    tick : int or None
        Tick of the clock up to which rows were discounted; None if no time was given yet.
    passed : int
        Number of rows learned. Imported arms add none.
    weight : float
        Sum of the present weights of all rows learned.
    """

    def __init__(self, clock: Clock | None) -> None:
        self.clock, self.passed, self.weight = clock, 0, 0.0
        self.tick: int | None = None if clock is not None and clock.timed else 0

    def copy(self) -> "ForgettingClock":
        """Return an independent copy of the clock."""
        twin = ForgettingClock(self.clock)
        twin.tick, twin.passed, twin.weight = self.tick, self.passed, self.weight
        return twin

    def rounds(self, rounds: int) -> int:
        """Return the sum of the weights of `rounds` learned rows, rounded down; `rounds` itself without a clock.

        Exploration rules use it in place of the number of rows.
        """
        return rounds if self.clock is None else int(self.weight)

    def ticks_to(self, time: Any) -> int:
        """Return how many ticks a time is after the last one learned; 0 for an earlier time.

        A tick is one of the equal parts into which a half-life is divided. Raises ValueError if a time is given but not
        needed, or needed but not given.
        """
        clock = self._clock_for(time)
        return max(clock.tick_of_time(time) - self.tick, 0) if clock.timed and self.tick is not None else 0

    def check_time(self, time: Any) -> None:
        """Raise ValueError if rows cannot be learned at this time: it is missing, not needed, or no time."""
        if time is not None or self.clock is not None:
            clock = self._clock_for(time)
            if clock.timed:
                clock.tick_of_time(time)

    def _clock_for(self, time: Any) -> Clock:
        if self.clock is None or (time is not None and not self.clock.timed):
            raise ValueError(f"time must be None unless half_life is a timedelta, got {quote(time)}")
        return self.clock

    def add_ticks(self, ticks: int) -> None:
        """Record that the model's rows were discounted by `ticks` more ticks, equal parts of the half-life."""
        self.tick, self.weight = (self.tick or 0) + ticks, self.weight * decay_factor(ticks)

    def spans(self, count: int, time: Any, forget: Callable[[int], None]) -> Iterator[slice]:
        """Yield slices of `count` rows that are about to be learned, each within one tick of the half-life clock.

        Between two slices, `forget` is called with the number of ticks by which the model's rows must be discounted.
        """
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
        """Call `forget` with the number of ticks until `tick`, so that the model discounts its rows.

        A tick is one of the equal parts into which a half-life is divided. Nothing is done for an earlier tick.
        """
        if self.tick is None:
            self.tick = tick
        elif tick > self.tick:
            forget(tick - self.tick)

    def extra(self) -> dict[str, Any]:
        """Return the clock's state as plain data for a file; {} without a clock.

        The entries "tick", "passed" and "recalled" hold the attributes `tick`, `passed` and `weight`.
        """
        return {} if self.clock is None else {"tick": self.tick, "passed": self.passed, "recalled": self.weight}

    def restore(self, extra: dict[str, Any]) -> None:
        """Restore the clock's state from the dictionary that the method `extra` returned.

        Raises ValueError unless the weight is at least 0, the number of rows an integer of at least 0, and the tick an
        integer or None.
        """
        if self.clock is None:
            return
        tick, self.weight = extra["tick"], check.real("recalled", extra["recalled"])
        if self.weight < 0.0:
            raise ValueError(f"the clock's weight is {self.weight}, expected at least 0")
        self.tick = tick if tick is None else check.integer("tick", tick, -check.MOST)
        self.passed = check.integer("passed", extra["passed"], 0)


@contextmanager
def restore_if_refused(model: Any) -> Iterator[None]:
    """Return a context in which a model with a half-life in time is merged; after an error it is as it was before.

    Merging lets the model forget up to the latest time first (`synchronize`).
    """
    held = model.copy() if model.needs_time else None
    try:
        yield
    except BaseException:
        if held is not None:
            vars(model).update(vars(held))
        raise


def synchronize(ages: list[ForgettingClock], forgets: list[Callable[[int], None]]) -> None:
    """Bring the clocks of models that are to be merged to the latest tick; raise ValueError if they count rounds.

    A tick is one of the equal parts into which a half-life is divided. Each function in `forgets` lets one model
    discount its rows by a number of ticks.
    """
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
