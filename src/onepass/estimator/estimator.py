"""The public face of an estimator: checks arguments, holds a design, begins states."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from onepass.design.design import Design
from onepass.exploration.confidence_width import Theory
from onepass.foundation import state as states
from onepass.foundation.check import quote


class ArmLearning(NamedTuple):
    """The way in which the arms of an arena learn for an estimator.

    rule: () is ridge regression on the rows as they are. `arm_update_rules.NewtonSteps(rule)` means Newton steps, with
    weights and pulls by that rule. memory: count of numbers that the rule keeps for each arm.
    """

    rule: Any
    memory: int


class Estimator(ABC):
    """A parameter learned on a design. Members are final, set `design` and `options`, and make the first state."""

    design: Design
    options: dict[str, Any]  # what the constructor was given beside the design, as plain data
    takes_nu = False  # whether `learn` may be told the noise scale of a row
    has_radius = True  # whether a theoretical radius is known
    repeats_arms = False  # whether an arm is played several times in a row
    family: Any = (
        None  # of rewards (families.py), as `contract.link` says it of the state; None: any, x^T theta is the mean
    )

    @abstractmethod
    def begin(self) -> Any:
        """Return a state of its own; the design given is copied and stays as it is."""

    def arm_learning(self) -> ArmLearning | None:
        """Return the way arms of an arena learn; None: an arm is a whole state of this estimator instead."""
        return None

    def consistent(self, state: Any) -> bool:
        """Return whether shapes and counters of a loaded `state` fit together; here: the shapes as they begin."""
        with states.abstract():
            return states.has_same_shapes(state, self.begin(), ("design.",)) and self.design.consistent(state.design)

    @property
    def horizon(self) -> int:
        """Rows to come in all, 0 for any time."""
        return self.options.get("horizon") or 0

    def params(self) -> dict[str, Any]:
        """Return the arguments of the constructor."""
        return {"design": self.design, **self.options}

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self.options.items() if value is not None)
        return f"{type(self).__name__}({self.design!r}{options})"


def check_radius(theory: Theory | None, estimator: Estimator) -> None:
    """ValueError where a rule asks for a theoretical radius that the estimator has not, or learns by others."""
    if theory is None:
        return
    kind, own = type(estimator).__name__, estimator.options.get("theory")
    if not estimator.has_radius:
        raise ValueError(
            f"exploration must be a number for {kind}: it has no theoretical radius (here, without theory=)"
        )
    bounds = (theory.parameter_bound, theory.row_bound, theory.delta)
    if own is not None and (own.parameter_bound, own.row_bound, own.delta) != bounds:
        raise ValueError(
            f"exploration must have the parameter_bound, row_bound and delta of {kind}'s theory={quote(own)}, "
            f"got {list(bounds)}"
        )


def check_design(design: Any, kind: Any = Design) -> Any:
    """`design` itself; ValueError if it is none of that kind."""
    if not isinstance(design, kind):
        raise ValueError(
            f"design must be {'a design such as' if kind is Design else 'an'} Exact(dim=20), got {quote(design)}"
        )
    return design


def init_design_and_theta(design: Design) -> tuple[Any, np.ndarray]:
    """Return a state of the design to start from, and a zero vector of its width and dtype."""
    return design.initial_state(), states.zeros(design.dim, dtype=design.dtype)
