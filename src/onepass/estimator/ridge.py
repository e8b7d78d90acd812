"""Ridge regression on a design: theta = A^-1 b, b = sum of reward * x (Wen, Yin et al. eq. 2 and 5).

With a sketched design A_hat, b stays exact, so the only error is the design's own.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.design import contract
from onepass.design.contract import append, append_rows, solve
from onepass.design.design import Design
from onepass.estimator.contract import forget, merge, parameter, radius, update, update_rows
from onepass.estimator.estimator import ArmLearning, Estimator, check_design, init_design_and_theta
from onepass.estimator.radii import confidence_radius, has_radius
from onepass.foundation.check import quote
from onepass.foundation.linalg import dot
from onepass.foundation.registry import savable


class RidgeState(NamedTuple):
    """State of ridge regression: the state of any design, and the moment b (dim,), the sum of reward times row."""

    design: Any
    moment: np.ndarray


@update.for_state(RidgeState)
def update_ridge(state: RidgeState, row: np.ndarray, reward: float) -> RidgeState:
    for j in range(row.size):
        state.moment[j] += reward * row[j]
    return RidgeState(design=append(state.design, row), moment=state.moment)


@update_rows.for_state(RidgeState)
def update_ridge_rows(state: RidgeState, rows: np.ndarray, rewards: np.ndarray) -> RidgeState:
    gain = dot(rewards, rows)
    for j in range(gain.size):
        state.moment[j] += gain[j]
    return RidgeState(design=append_rows(state.design, rows), moment=state.moment)


@parameter.for_state(RidgeState)
def parameter_of_ridge(state: RidgeState) -> np.ndarray:
    return solve(state.design, state.moment)


@forget.for_state(RidgeState)
def forget_ridge(state: RidgeState, factor: float) -> RidgeState:
    for j in range(state.moment.size):
        state.moment[j] *= factor
    return RidgeState(design=contract.decay(state.design, factor), moment=state.moment)


@merge.register(RidgeState)
def merge_ridge(state: RidgeState, other: RidgeState, start: RidgeState) -> RidgeState:
    """Merge two states: add their designs and sums of reward times row, and subtract those of their common `start`."""
    design = contract.merge(state.design, contract.subtract_start(other.design, start.design))
    return RidgeState(design=design, moment=state.moment + other.moment - start.moment)


@radius.for_state(RidgeState)
def radius_of_ridge(
    state: RidgeState, rounds: int, noise: float, parameter_bound: float, row_bound: float, delta: float
) -> float:
    return confidence_radius(state.design, rounds, noise, parameter_bound, row_bound, delta)


@savable
class Ridge(Estimator):
    """Ridge regression, theta = A^-1 sum of r x, over the rows x and rewards r.

    The penalty is the `reg` of the design, for example ``Ridge(Exact(dim=20, reg=1.0))``.

    Parameters
    ----------
    design : Design
        Any design. It is copied. Rows that it holds count as learned, with rewards of 0.

    Raises
    ------
    ValueError
        If `design` is not a design.
    """

    design: Design

    def __init__(self, design: Design) -> None:
        self.design = check_design(design)
        self.options: dict[str, Any] = {}

    @property
    def has_radius(self) -> bool:  # type: ignore[override]
        """True if a confidence radius is known for the design."""
        return has_radius(self.design)

    @property
    def no_radius(self) -> str:  # type: ignore[override]
        """Words that say in which case no confidence radius is known."""
        return f"on {quote(self.design)}"

    def begin(self) -> RidgeState:
        design, moment = init_design_and_theta(self.design)
        return RidgeState(design=design, moment=moment)

    def arm_learning(self) -> ArmLearning:
        """Return the rule by which one model per arm is learned: ridge regression on rows and rewards as they are.

        Returns
        -------
        ArmLearning
            The update rule of an arm. It keeps no numbers for the arm besides those of the model.
        """
        return ArmLearning(rule=(), memory=0)

    def consistent(self, state: RidgeState) -> bool:
        return state.moment.shape == (self.design.dim,) and self.design.consistent(state.design)
