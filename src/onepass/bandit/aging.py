"""How a bandit grows older: what it has learned counts less, tick by tick (clock.py); readers may ask for later times.

A model is of the tick in which it last learned. Deciding changes nothing: who reads at a later tick reads a copy that
has forgotten up to there, kept until something is learned or another tick is asked for.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Self

from onepass.bandit.clock import Clock
from onepass.foundation.check import shown


class Aging(ABC):
    """What both bandits do about time."""

    rounds: int
    sharing: Any
    _clock: Clock | None
    _tick: int | None  # up to which was forgotten; None where no time was told yet
    _passed: int  # rounds by this clock: arms that are imported bring none
    _recalled: float  # weights of all rows learned
    _later: Any  # (tick, a bandit that has forgotten up to there), for readers, until something is learned

    @property
    def half_life(self) -> Any:
        """After how many rounds, or after which time (a timedelta), a row counts half; None: nothing is forgotten."""
        return None if self._clock is None else self._clock.said

    @property
    def timed(self) -> bool:
        """Whether `learn` and what reads must be told the time."""
        return self._clock is not None and self._clock.timed

    @property
    def _rounds(self) -> int:
        """Rows learned, as a rule of exploration counts them: those that still count."""
        return self.rounds if self._clock is None else int(self._recalled)

    def _at(self, time: Any) -> Self:
        """This bandit at that time: itself, or one for readers that has forgotten up to there."""
        clock = self._untimed(time)
        if not clock.timed:
            return self
        tick, held = clock.told(time), self._tick
        if held is None or tick <= held:
            return self
        known = self._later
        if known is None or known[0] != tick:
            twin = self._twin()
            twin.sharing = self.sharing
            twin._forget(tick - held, True)
            known = self._later = tick, twin
        return known[1]

    def _untimed(self, time: Any) -> Clock:
        """The clock. ValueError for a time where none is asked for."""
        if time is not None and not self.timed:
            raise ValueError(f"time must be None unless half_life is a timedelta, got {shown(time)}")
        assert self._clock is not None
        return self._clock

    @abstractmethod
    def _twin(self) -> Self:
        """A bandit with the same attributes."""

    @abstractmethod
    def _forget(self, ticks: int, copied: bool) -> None:
        """Let the models be so many ticks older, in place, or (copied) in arrays of their own."""

    def _go_to(self, tick: int) -> None:
        """Forget up to a tick; an earlier one counts as the present one."""
        held = tick if self._tick is None else self._tick
        if tick > held:
            self._forget(tick - held, False)
        self._tick, self._later = max(tick, held), None

    def _spans(self, count: int, time: Any) -> Iterator[slice]:
        """Rows about to be learned, `count` in all, tick by tick; the models are of that tick."""
        clock, start = self._untimed(time), 0
        if clock.timed:
            self._go_to(clock.told(time))
        while start < count:
            end = count if clock.timed else min(count, start + clock.rounds_left(self._passed))
            yield slice(start, end)
            self._recalled += end - start
            self._passed += end - start
            if not clock.timed:
                self._go_to(clock.tick(self._passed))
            start = end

    def _together(self, others: list[Any]) -> None:
        """Bring bandits that are merged to one time. ValueError where they have none in common."""
        if self._clock is None:
            return
        if not self._clock.timed:
            raise ValueError(
                "half_life must be a timedelta for bandits that are merged: one in rounds counts the rows of one bandit"
            )
        ticks = [one._tick for one in (self, *others) if one._tick is not None]
        for one in (self, *others):
            if ticks:
                one._go_to(max(ticks))
                one._settle()

    @abstractmethod
    def _settle(self) -> None:
        """Let nothing wait to be forgotten."""
