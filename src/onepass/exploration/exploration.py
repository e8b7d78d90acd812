"""The base class of exploration rules, which checks arguments and makes the rule for compiled code."""

from abc import ABC, abstractmethod
from dataclasses import fields
from typing import Any

from onepass.exploration.confidence_width import Theory
from onepass.foundation import check
from onepass.foundation.registry import to_plain


class Exploration(ABC):
    """Base class of exploration rules: a subclass is a frozen dataclass of the rule's parameters.

    Decorate a class of your own with `onepass.extend.savable`, so that bandits with it can be saved.
    """

    @abstractmethod
    def rule(self) -> Any:
        """Return the rule for compiled code.

        Returns
        -------
        NamedTuple
            A tuple of numbers with a field `uniform_share`. Functions of `onepass.exploration.contract`, such as
            `action_probabilities`, are registered for its type.
        """

    @property
    def theory(self) -> Theory | None:
        """The `Theory` that determines the multiplier of widths; None if the multiplier is a number."""
        found = getattr(self, "exploration", None)
        return found if isinstance(found, Theory) else None

    def params(self) -> dict[str, Any]:
        """Return the arguments of the constructor as plain data.

        Returns
        -------
        dict
            The value of every argument by its name.
        """
        return {field.name: to_plain(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]


def check_share(uniform_share: float) -> float:
    """Return `uniform_share`, or raise ValueError unless it is from 0 to 1."""
    return check.fraction("uniform_share", uniform_share)
