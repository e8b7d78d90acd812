"""The base class of estimators, which checks arguments, holds a design, and makes initial states."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from onepass.design.design import Design
from onepass.exploration.confidence_width import Theory
from onepass.foundation import state as states
from onepass.foundation.check import quote


class ArmLearning(NamedTuple):
    """Rule by which an estimator learns the models of very many arms, which share a few arrays (arena/arena.py).

    `rule` is () for ridge regression on the rows as they are. `arm_update_rules.NewtonSteps(rule)` means Newton steps,
    whose sizes `arm_step` computes for that rule. `memory` is how many numbers the rule keeps for each arm.
    """

    rule: Any
    memory: int


class Estimator(ABC):
    """Base class of estimators, which learn a parameter on a design.

    Pass an estimator to `op.Bandit(estimator, exploration)`, which calls it. An estimator of your own derives from
    `Estimator`; a subclass of a subclass is not supported. In its constructor set `design`, and `options`, a dict of
    all other arguments as plain data. Implement `begin`.

    Set these class attributes where the defaults are wrong:

    - takes_nu: True if `learn` may be given the noise scale of a row; default False.
    - has_radius: True if a theoretical confidence radius is known; default True.
    - no_radius: words that say in which case none is known.
    - repeats_arms: True if an arm is played several times in a row; default False.
    - family: the reward family (families.py); the default None means that x^T theta is the mean reward.
    """

    design: Design
    options: dict[str, Any]  # what the constructor was given beside the design, as plain data
    takes_nu = False  # whether `learn` may be told the noise scale of a row
    has_radius = True  # whether a theoretical radius is known
    no_radius = "without theory="  # in which case it is not
    repeats_arms = False  # whether an arm is played several times in a row
    family: Any = (
        None  # of rewards (families.py), as `contract.link` says it of the state; None: any, x^T theta is the mean
    )

    @abstractmethod
    def begin(self) -> Any:
        """Return a state that has learned nothing, with a copy of the design's present state."""

    def arm_learning(self) -> ArmLearning | None:
        """Return the rule by which an arm learns a row. Default: None.

        With a rule, and a design with a rule of `Design.truncation`, a bandit with a model for each arm keeps the
        numbers of all arms in a few shared arrays. Else every arm has a state of its own, as `begin` returns it.
        """
        return None

    def consistent(self, state: Any) -> bool:
        """Return True if a loaded `state` can belong to this estimator.

        The default compares all shapes with those of a new state. Override it to check counters and settings too.
        """
        with states.abstract():
            return states.has_same_shapes(state, self.begin(), ("design.",)) and self.design.consistent(state.design)

    @property
    def horizon(self) -> int:
        """Total number of rows that will be learned, as given to the estimator. 0 if any number may come."""
        return self.options.get("horizon") or 0

    def params(self) -> dict[str, Any]:
        """Return the arguments of the constructor, by name."""
        return {"design": self.design, **self.options}

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self.options.items() if value is not None)
        return f"{type(self).__name__}({self.design!r}{options})"


def check_radius(theory: Theory | None, estimator: Estimator) -> None:
    """Raise ValueError if an exploration rule asks for a theoretical radius that this estimator cannot give.

    `theory` is the `Theory` of the rule, or None if the rule asks for no radius. The estimator cannot give a radius if
    none is proved for it, or if it has a `theory` of its own with other bounds.
    """
    if theory is None:
        return
    kind, own = type(estimator).__name__, estimator.options.get("theory")
    if not estimator.has_radius:
        raise ValueError(
            f"exploration must be a number for {kind}: it has no theoretical radius (here, {estimator.no_radius})"
        )
    bounds = (theory.parameter_bound, theory.row_bound, theory.delta)
    if own is not None and (own.parameter_bound, own.row_bound, own.delta) != bounds:
        raise ValueError(
            f"exploration must have the parameter_bound, row_bound and delta of {kind}'s theory={quote(own)}, "
            f"got {list(bounds)}"
        )


def check_design(design: Any, kind: Any = Design) -> Any:
    """Return `design`, or raise ValueError unless it is an instance of `kind`."""
    if not isinstance(design, kind):
        raise ValueError(
            f"design must be {'a design such as' if kind is Design else 'an'} Exact(dim=20), got {quote(design)}"
        )
    return design


def init_design_and_theta(design: Design) -> tuple[Any, np.ndarray]:
    """Return a copy of the design's state, and a zero vector theta of its width and dtype."""
    return design.initial_state(), states.zeros(design.dim, dtype=design.dtype)
