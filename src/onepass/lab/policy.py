"""Policies by name: a recipe with its parameters, and the same at several settings."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Any

import onepass

REGS = (0.02, 0.2, 2.0, 20.0, 200.0)


@dataclass(frozen=True)
class Policy:
    """A recipe of `onepass` (or a design, in a matrix study) with its parameters, under the name that tables show.

    group: what several labels have in common, say one recipe at several sizes; the label unless told otherwise.
    tuned: False for a policy whose parameters are the point of it (defaults, a paper's constants): tuning skips it.
    """

    label: str
    recipe: str | Callable[..., Any]
    params: Mapping[str, Any] = field(default_factory=dict)
    group: str = ""
    tuned: bool = True

    @property
    def name(self) -> str:
        return self.recipe if isinstance(self.recipe, str) else self.recipe.__name__

    def build(self, **where: Any) -> Any:
        """The bandit or design itself; `where` is what the problem decides: dim, or arms and kernel; bandits: seed."""
        return self.make(**where, **self.params)

    @property
    def make(self) -> Callable[..., Any]:
        return getattr(onepass, self.recipe) if isinstance(self.recipe, str) else self.recipe

    def accepts(self, name: str) -> bool:
        """Whether the recipe has a parameter of that name."""
        return name in signature(self.make).parameters

    def but(self, **params: Any) -> "Policy":
        """The same policy with some parameters changed."""
        return replace(self, params={**self.params, **params}, group=self.group or self.label)

    @property
    def kind(self) -> tuple[Any, ...]:
        """What decides which code is compiled: the recipe and every parameter that is not a number."""
        options = ((name, value) for name, value in self.params.items() if isinstance(value, bool | str))
        return (self.recipe, *sorted(options))

    def columns(self) -> dict[str, Any]:
        """What identifies the policy in a row of results."""
        return {
            "policy": self.label,
            "group": self.group or self.label,
            "recipe": self.name,
            "params": dict(self.params),
        }


def at(group: Policy, note: str, **params: object) -> Policy:
    """One of several settings of a policy: its label says which."""
    changed = group.but(**params)
    return Policy(f"{group.label} {note}", changed.recipe, changed.params, group.label)


def over_reg(group: Iterable[Policy]) -> tuple[Policy, ...]:
    """Every policy at every one of `REGS`."""
    return tuple(at(policy, f"reg={reg:g}", reg=reg) for policy in group for reg in REGS)
