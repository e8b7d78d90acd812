"""The public face of a rule: checks arguments, and gives the rule as compiled loops read it."""

from abc import ABC, abstractmethod
from dataclasses import fields
from typing import Any

from onepass.exploration.confidence_width import Theory
from onepass.foundation import check
from onepass.foundation.registry import to_plain


class Exploration(ABC):
    """The exploration of a bandit: a frozen dataclass that gives a rule (contract.py).

    A class of your own is decorated with `onepass.extend.savable`, so that bandits with it can be saved.
    """

    @abstractmethod
    def rule(self) -> Any:
        """Return the rule, a NamedTuple with a field `uniform_share`, for compiled code."""

    @property
    def theory(self) -> Theory | None:
        """The theorem that its multiplier of widths is taken from, if any."""
        found = getattr(self, "exploration", None)
        return found if isinstance(found, Theory) else None

    def params(self) -> dict[str, Any]:
        """Return the arguments of the constructor, as plain data."""
        return {field.name: to_plain(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]


def check_share(uniform_share: float) -> float:
    """`uniform_share` as every rule takes it: from 0 to 1."""
    return check.fraction("uniform_share", uniform_share)
