"""Policies under a name: a function that makes a bandit, with its parameters."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Any

import numpy as np

import onepass

REGS = (0.02, 0.2, 2.0, 20.0, 200.0)
ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # memory address in the repr of an object


@dataclass(frozen=True)
class Policy:
    """Bandit or learner with its parameters, under the label that tables show.

    The recipe is the function or class that makes the bandit. A study calls ``recipe(**where, **params)``. The study
    chooses `where`, so leave these arguments out of `params`:

    - bandits with rows: `dim` and `seed`;
    - kernel bandits: `arms`, `kernel` and `seed`;
    - learners: `seed` and `majority` (the more frequent label), each only if the recipe has this parameter;
    - sketches, in a study of matrices: `dim`.

    docs/experiments.md says what a bandit must be able to do.

    Parameters
    ----------
    label : str
        Name in tables and pictures.
    recipe : str or callable
        Name in `onepass` or `onepass.learner`, or a function or class that makes the bandit.
    params : dict of str -> object
        Keyword arguments of the recipe. The default is an empty dict.
    group : str, default ""
        Common name of several labels, for example one recipe at several sizes. An empty string stands for the label.
    tuned : bool, default True
        False if the parameters should not change, for example the constants of a paper. Tuning then skips the policy.
    """

    label: str
    recipe: str | Callable[..., Any]
    params: Mapping[str, Any] = field(default_factory=dict)
    group: str = ""
    tuned: bool = True

    @property
    def name(self) -> str:
        """Name of the function or class that makes the bandit."""
        return self.recipe if isinstance(self.recipe, str) else self.recipe.__name__

    def build(self, **where: Any) -> Any:
        """Return a new bandit, learner or sketch with the policy's parameters.

        Parameters
        ----------
        **where : object
            Keyword arguments that depend on the problem: `dim`, or `arms` and `kernel`; for bandits also `seed`.

        Returns
        -------
        object
            The bandit, learner or sketch.
        """
        return self.make(**where, **self.params)

    @property
    def make(self) -> Callable[..., Any]:
        """Function or class that makes the bandit."""
        if not isinstance(self.recipe, str):
            return self.recipe
        place = onepass.learner if self.recipe in onepass.learner.__all__ else onepass
        return getattr(place, self.recipe)

    def accepts(self, name: str) -> bool:
        """Return True if the recipe has a parameter of this name.

        Parameters
        ----------
        name : str
            Name of a parameter.

        Returns
        -------
        bool
            True if `build` accepts it.
        """
        return name in signature(self.make).parameters

    def with_params(self, **params: Any) -> "Policy":
        """Return a copy of the policy with some parameters changed.

        Parameters
        ----------
        **params : object
            Changed parameters.

        Returns
        -------
        Policy
            Copy with the same label. Its group is that of the policy, or the label if it has none.
        """
        return replace(self, params={**self.params, **params}, group=self.group or self.label)

    @property
    def compile_key(self) -> tuple[Any, ...]:
        """Key (the recipe, and its bool or str parameters) that is equal for policies with the same compiled code."""
        options = ((name, value) for name, value in self.params.items() if isinstance(value, bool | str))
        return (self.recipe, *sorted(options))

    def columns(self) -> dict[str, Any]:
        """Return the columns that identify the policy in a row of results.

        Returns
        -------
        dict of str -> object
            Label ("policy"), "group", name of the recipe ("recipe") and parameters ("params"), as plain data: an object
            that JSON cannot hold is given as its text.
        """
        return {
            "policy": self.label,
            "group": self.group or self.label,
            "recipe": self.name,
            "params": to_plain(dict(self.params)),
        }


def to_plain(value: Any) -> Any:
    """Return a parameter of a policy as data that JSON can hold; an object of another kind becomes its text."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): to_plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(one) for one in value]
    return value if value is None or isinstance(value, str | int | float) else ADDRESS.sub("", repr(value))


def policy_variant(group: Policy, note: str, **params: object) -> Policy:
    """Return a copy of a policy with the parameters `params` changed.

    The text `note` is appended to its label, and the old label becomes its group.
    """
    changed = group.with_params(**params)
    return Policy(f"{group.label} {note}", changed.recipe, changed.params, group.label)


def policies_over_reg(group: Iterable[Policy]) -> tuple[Policy, ...]:
    """Return every policy in `group` at every ridge penalty in `REGS`."""
    return tuple(policy_variant(policy, f"reg={reg:g}", reg=reg) for policy in group for reg in REGS)
