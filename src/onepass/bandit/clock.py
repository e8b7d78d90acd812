"""The clock by which a bandit forgets: a half-life in rounds, or in seconds with times told to `learn` and `decide`."""

from datetime import datetime, timedelta
from math import ceil, floor, isfinite
from typing import Any

from onepass.arena.separate import Separate
from onepass.bandit.merging import corrected
from onepass.bandit.models import Learned
from onepass.design import contract as designs
from onepass.estimator.contract import forget
from onepass.estimator.estimator import Estimator
from onepass.estimator.half_life import TICKS, remembered
from onepass.foundation import check
from onepass.foundation.check import shown
from onepass.foundation.generic import defined
from onepass.foundation.registry import savable

ROUNDS, SECONDS = "rounds", "seconds"


@savable
class Clock:
    """half_life: rounds (rows that the bandit learns) or seconds, above 0; unit: which of the two.

    ValueError for other values. Ticks are those of half_life.py.
    """

    def __init__(self, half_life: float, unit: str = ROUNDS) -> None:
        self.half_life: float = check.positive("half_life", half_life, "rounds, a timedelta, or None to forget nothing")
        self.unit: Any = check.choice("unit", unit, (ROUNDS, SECONDS))

    @property
    def params(self) -> dict[str, Any]:
        """What the constructor was given."""
        return {"half_life": self.half_life, "unit": self.unit}

    @property
    def timed(self) -> bool:
        """Whether times have to be told."""
        return self.unit == SECONDS

    @property
    def said(self) -> float | timedelta:
        """The half-life as a user gives it."""
        return timedelta(seconds=self.half_life) if self.timed else self.half_life

    def tick(self, position: float) -> int:
        """The tick of a round or of a time in seconds."""
        return floor(position * TICKS / self.half_life)

    def rounds_left(self, rounds: int) -> int:
        """Rows that are learned in the present tick, `rounds` of them learned already: at least one."""
        tick = self.tick(rounds)
        last = max(rounds, ceil((tick + 1) * self.half_life / TICKS) - 1)
        while last > rounds and self.tick(last) > tick:  # rounding
            last -= 1
        return last + 1 - rounds

    def told(self, time: Any) -> int:
        """The tick of a time as a user tells it; ValueError for none, and for what is no time."""
        if time is None:
            raise ValueError("time must be given where half_life is a timedelta: Unix seconds, or a datetime")
        if isinstance(time, datetime):
            if time.tzinfo is None:
                raise ValueError(f"time must be a datetime with a time zone, or Unix seconds, got {shown(time)}")
            return self.tick(time.timestamp())
        seconds = check.real("time", time)
        if not isfinite(seconds * TICKS / self.half_life):
            raise ValueError(f"time must be Unix seconds, got {shown(time)}")
        return self.tick(seconds)


def clock_of(half_life: Any) -> Clock | None:
    """The clock of a half-life: rounds, a timedelta, or None for none. ValueError for other values."""
    if half_life is None or isinstance(half_life, Clock):
        return half_life
    if isinstance(half_life, timedelta):
        return Clock(half_life.total_seconds(), SECONDS)
    return Clock(half_life)


def stood(extra: dict[str, Any]) -> tuple[int | None, int, float]:
    """Where the clock of a file stood: tick, rounds, and the weights of all rows; ValueError for what cannot be."""
    tick, recalled = extra["tick"], check.real("recalled", extra["recalled"])
    if recalled < 0.0:
        raise ValueError("the clock does not fit")
    return (
        tick if tick is None else check.integer("tick", tick, -check.MOST),
        check.integer("passed", extra["passed"], 0),
        recalled,
    )


def forgets(estimator: Estimator) -> None:
    """ValueError for an estimator, or a design, that does not know how to forget."""
    begun = estimator.begin()
    for function, state in ((forget, begun), (designs.decay, begun.design)):
        if not defined(function, state):
            kind = type(state).__name__.removesuffix("State")
            raise ValueError(f"half_life must be None for {kind}, which does not say how it forgets")


def aged(learned: Learned, ticks: int) -> Learned:
    """Models per arm so many ticks later, in place. Arms alone: each when it is next asked for.

    Hybrid: a row's weight g stands in A_a and B_a, so what arm a has given to the shared design is g Z^T Z - g^2 B_a^T
    (reg I + g B_aa)^-1 B_a and not g times as much as it was. Where the shared design is exact it gets the difference,
    f T_a - T_a' with T = B^T A^-1 B before and after: O(dim^3) an arm and tick. On sketches it stays out, which is as
    if arms decayed towards what they were, not towards their prior.
    """
    store, factor = learned.store, remembered(ticks)
    assert isinstance(store, Separate)
    if learned.shared == ():
        store.age(ticks)
        return learned
    exact = defined(designs.adjusted, learned.shared.design)
    before = [store.eliminated(arm) for arm in store.arms()] if exact else []
    shared = forget(learned.shared, factor)
    store.age(ticks)
    if before:
        store.catch_up()
        terms = [tuple(factor * term for term in one) for one in before]
        terms += [tuple(-term for term in store.eliminated(arm)) for arm in store.arms()]
        shared = corrected(shared, terms)
    return learned._replace(shared=shared)
