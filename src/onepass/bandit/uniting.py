"""How a bandit learns what another one has learned: one order of steps, whatever the models (merging.py)."""

from abc import ABC, abstractmethod
from typing import Any, Self

from onepass.bandit.aging import Aging
from onepass.bandit.ledger import Ledger
from onepass.bandit.merging import Side, agree, comparable
from onepass.exploration.residuals import Tally, pooled
from onepass.foundation.interrupts import deferred
from onepass.foundation.sharing import writing


class Uniting(Aging, ABC):
    """What bandits that can be merged share."""

    _learned: Any
    _tally: Tally
    _rewarded: Ledger
    rounds: int

    def _merged_with(self, other: Any, since: Any) -> Self:
        """`merge`: other and since are copied first, so that no bandit is written while it waits for another one."""
        for name, one in (("other", other), ("since", since)):
            if one is not None or name == "other":
                comparable(self, one, name)
        return self._merge(other.copy(), None if since is None else since.copy())

    @writing
    def _merge(self, other: Any, since: Any) -> Self:
        for name, one in (("other", other), ("since", since)):
            if one is not None:
                agree(self._side(), one._side(), name)
        self._together([other] if since is None else [other, since])
        union = self._union(other, since)
        with deferred():
            self._learned = self._united(other, union)
            self._count_in(other, since)
        return self

    def _count_in(self, other: Any, since: Any) -> None:
        """Count the rows, residuals and decisions that another one has learned, beyond those of `since`."""
        self.rounds += other.rounds - (0 if since is None else since.rounds)
        self._tally = pooled(self._tally, other._tally, None if since is None else since._tally)
        self._rewarded.join(other._rewarded)
        self._recalled = max(self._recalled + other._recalled - (0.0 if since is None else since._recalled), 0.0)

    @abstractmethod
    def _side(self) -> Side:
        """What the other one must share."""

    @abstractmethod
    def _union(self, other: Any, since: Any) -> Any:
        """What both have learned, `since` counted once; this one has not changed. Errors as of `merge`."""

    @abstractmethod
    def _united(self, other: Any, union: Any) -> Any:
        """The models after that; no errors."""
