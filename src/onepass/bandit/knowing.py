"""Bandits that know their arms by name."""

from collections.abc import Hashable
from typing import Any

from onepass.bandit.roster import Roster
from onepass.foundation.sharing import reading, writing


class Knowing:
    """What they say of them."""

    _roster: Roster

    @property
    @reading
    def arms(self) -> tuple[Any, ...]:
        """All known arms, in the order in which they appeared."""
        return self.roster.names

    @property
    def roster(self) -> Roster:
        """Names of arms, and where each has its model: not to be written to, and no part of a stable interface."""
        return self._roster

    @writing
    def add_arm(self, arm: Hashable) -> None:
        """Make an arm known before it is learned from; ValueError if it is known already or not hashable."""
        self.roster.add(arm)

    def _offered(self, contexts: Any, arms: Any) -> list[Any]:
        return self.roster.request(arms)[0]

    def _known_by(self, arm: Any) -> Any:
        return arm
