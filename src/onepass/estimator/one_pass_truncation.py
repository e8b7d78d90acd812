"""One-pass truncation, the estimator of CRTM (Xue, Wang, Wan, Yi and Zhang 2023) in the linear case.

    y = r if ||x||_{V^-1} |r| <= (u / log(4T / delta))^(1/(1+eps)) T^p,  else 0
    V <- V + x x^T / 2,   theta <- theta + V^-1 (y - x^T theta) x,   then into the ball ||theta|| <= S

delta = 1 / (8T). u bounds E|r|^(1+eps): a moment of the rewards, not of their noise. The paper was not at hand: this is
a reading of it (its generalized-linear loss with the identity link, whose curvature is 1), with the norm taken in V
before the row, as the truncation comes before the update. The public abstract says no more than "truncation" and
"online". No radius is known to us, so `Theory` is refused.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.design.contract import solve
from onepass.design.design import Design
from onepass.estimator.contract import update
from onepass.estimator.estimator import Estimator, begun, checked_design
from onepass.estimator.heavy_tails import Tail, checked_tail, moment, power
from onepass.estimator.newton import into_ball, squared_step
from onepass.foundation import check
from onepass.foundation.linalg import dot
from onepass.foundation.registry import savable


class OnePassTruncationState(NamedTuple):
    """design: V; theta (dim,); rows learned; bound u; clip: times the threshold."""

    design: Any
    theta: np.ndarray
    rows: int
    tail: Tail
    bound: float
    clip: float


@update.for_state(OnePassTruncationState)
def update_truncation(state, row, reward):
    theta, tail, t = state.theta, state.tail, state.rows + 1
    horizon, delta = moment(tail, t)
    threshold = (state.bound / np.log(4.0 * horizon / delta)) ** (1.0 / (1.0 + tail.epsilon))
    direction = solve(state.design, row)
    kept = np.sqrt(max(float(dot(row, direction)), 0.0)) * abs(reward) <= state.clip * threshold * horizon ** power(
        tail.epsilon
    )
    design = squared_step(state.design, theta, row, direction, reward if kept else 0.0, 0.5)
    into_ball(design, theta, tail.parameter_bound)
    return OnePassTruncationState(design, theta, t, tail, state.bound, state.clip)


@savable
class OnePassTruncation(Estimator):
    """One-pass truncation on `design`.

    design: any; it is copied.
    epsilon: moments of rewards of order 1 + epsilon are finite; above 0, at most 1 (default 1.0).
    moment: u >= E|r|^(1 + epsilon), in that power of the unit of rewards, above 0 (default 1.0).
    horizon: rows to come in all, at least 1; default None: any time.
    clip: factor of the threshold, above 0 (default 1.0, the paper's).
    parameter_bound: S, above 0: the ball ||theta|| <= S; default None: no ball.
    ValueError outside those ranges.
    """

    has_radius = False

    def __init__(
        self,
        design: Design,
        *,
        epsilon: float = 1.0,
        moment: float = 1.0,
        horizon: int | None = None,
        clip: float = 1.0,
        parameter_bound: float | None = None,
    ):
        self.design = checked_design(design)
        self._tail = checked_tail(self.design, epsilon, horizon, 2.0, parameter_bound, None)
        self._bound, self._clip = check.positive("moment", moment), check.positive("clip", clip)
        self._options = {
            "epsilon": self._tail.epsilon, "moment": self._bound, "horizon": horizon, "clip": self._clip,
            "parameter_bound": parameter_bound,
        }  # fmt: skip

    def begin(self) -> OnePassTruncationState:
        return OnePassTruncationState(*begun(self.design), 0, self._tail, self._bound, self._clip)

    def consistent(self, state: OnePassTruncationState) -> bool:
        return (
            state.theta.shape == (self.design.dim,)
            and (state.tail, state.bound, state.clip) == (self._tail, self._bound, self._clip)
            and state.rows >= 0
            and self.design.consistent(state.design)
        )
