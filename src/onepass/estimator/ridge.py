"""Ridge regression on a design: theta = A^-1 b, b = sum of reward * x (P0 eq. 2 and 5).

With a sketched design A_hat, b stays exact, so the only error is the design's own.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass import state as states
from onepass.design.contract import append, append_rows, solve
from onepass.design.design import Design
from onepass.estimator.contract import parameter, update, update_rows
from onepass.linalg import dot


class RidgeState(NamedTuple):
    """design: any design's state; moment (dim,): b."""

    design: Any
    moment: np.ndarray


@update.for_state(RidgeState)
def update_ridge(state, row, reward):
    for j in range(row.size):
        state.moment[j] += reward * row[j]
    return RidgeState(append(state.design, row), state.moment)


@update_rows.for_state(RidgeState)
def update_ridge_rows(state, rows, rewards):
    gain = dot(rewards, rows)
    for j in range(gain.size):
        state.moment[j] += gain[j]
    return RidgeState(append_rows(state.design, rows), state.moment)


@parameter.for_state(RidgeState)
def parameter_of_ridge(state):
    return solve(state.design, state.moment)


class Ridge:
    """Ridge regression on `design`, e.g. ``Ridge(Exact(dim=20, reg=1.0))``; regularization lives in the design."""

    def __init__(self, design: Design):
        if not isinstance(design, Design):
            raise ValueError(f"design must be a design such as Exact(dim=20), got {design!r}")
        self.design = design

    def begin(self) -> RidgeState:
        """A state of its own; the design given is copied and stays as it is."""
        return RidgeState(states.copy(self.design.state), np.zeros(self.design.dim, self.design.dtype))

    def params(self) -> dict[str, Any]:
        """What the constructor was given, as plain data."""
        return {"design": {"kind": type(self.design).__name__, **self.design.params}}

    def consistent(self, s: RidgeState) -> bool:
        """Whether shapes of a loaded state fit together."""
        return s.moment.shape == (self.design.dim,) and self.design.consistent(s.design)

    def __repr__(self) -> str:
        return f"Ridge({self.design!r})"
