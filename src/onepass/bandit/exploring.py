"""A bandit's rule of exploration, which may be another one at any time."""

from abc import ABC, abstractmethod

from onepass.bandit.deciding import Rule, rule_of
from onepass.exploration.exploration import Exploration
from onepass.foundation.sharing import writing


class Exploring(ABC):
    """What bandits do about it."""

    _explores: Rule

    @property
    def exploration(self) -> Exploration:
        """How arms are chosen. It may be changed at any time; ValueError for one that does not fit the model."""
        return self._explores.exploration

    @exploration.setter
    @writing
    def exploration(self, exploration: Exploration | None) -> None:
        self._explore(exploration)

    def _explore(self, exploration: Exploration | None) -> None:
        found = rule_of(exploration)
        self._permits(found.exploration)
        self._explores = found

    @abstractmethod
    def _permits(self, exploration: Exploration) -> None:
        """ValueError for a rule that asks for what the model does not have."""
