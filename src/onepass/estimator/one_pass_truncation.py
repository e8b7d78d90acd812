"""One-pass truncation, the estimator of CRTM (Xue, Wang, Wan, Yi and Zhang 2023) in the linear case.

A reward r that is too large for its row x is replaced by 0 before the step:

    y = r if ||x||_{V^-1} |r| <= (u / log(4T / delta))^(1/(1+eps)) T^p,  else 0
    V <- V + x x^T / 2,   theta <- theta + V^-1 (y - x^T theta) x,   then into the ball ||theta|| <= S

T is the horizon, p is (1 - eps) / (2 (1 + eps)), and delta is 1 / (8T). u bounds E|r|^(1+eps), a moment of the rewards
and not of their noise. The paper was not available. This implementation takes its generalized linear loss with the
identity link, whose curvature is 1, and computes the norm by V before the row. No confidence radius is known to us, so
`Theory` is refused.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.design.contract import solve
from onepass.design.design import Design
from onepass.estimator.contract import forget, update
from onepass.estimator.estimator import Estimator, check_design, init_design_and_theta
from onepass.estimator.heavy_tails import Truncation, horizon_and_delta, make_tail, power
from onepass.estimator.newton import forget_rows, project_onto_ball, step_on_squared_loss
from onepass.foundation import check
from onepass.foundation.linalg import dot
from onepass.foundation.registry import savable


class OnePassTruncationState(NamedTuple):
    """State of one-pass truncation: `design`, the estimate theta (dim,), and the number `rows` of rows learned.

    `settings` holds the constants. `settings.bound` bounds the rewards' moment of order 1 + epsilon.
    """

    design: Any
    theta: np.ndarray
    rows: int
    settings: Truncation


@update.for_state(OnePassTruncationState)
def update_truncation(state: OnePassTruncationState, row: np.ndarray, reward: float) -> OnePassTruncationState:
    theta, settings, t = state.theta, state.settings, state.rows + 1
    tail = settings.tail
    horizon, delta = horizon_and_delta(tail, t)
    threshold = (settings.bound / np.log(4.0 * horizon / delta)) ** (1.0 / (1.0 + tail.epsilon))
    direction = solve(state.design, row)
    kept = np.sqrt(max(float(dot(row, direction)), 0.0)) * abs(reward) <= settings.clip * threshold * horizon ** power(
        tail.epsilon
    )
    design = step_on_squared_loss(state.design, theta, row, direction, reward if kept else 0.0, 0.5)
    project_onto_ball(design, theta, tail.parameter_bound)
    return OnePassTruncationState(design=design, theta=theta, rows=t, settings=settings)


@forget.for_state(OnePassTruncationState)
def forget_truncation(state: OnePassTruncationState, factor: float) -> OnePassTruncationState:
    design = forget_rows(state.design, state.theta, factor)
    project_onto_ball(design, state.theta, state.settings.tail.parameter_bound)
    rows = int(factor * state.rows)
    return OnePassTruncationState(design=design, theta=state.theta, rows=rows, settings=state.settings)


@savable
class OnePassTruncation(Estimator):
    """Linear regression in one pass, in which rewards beyond a threshold count as 0 (*truncation*).

    The reward r of a row x counts as 0 if ||x||_{V^-1} |r| exceeds

        clip (moment / log(4 T / delta))^(1 / (1 + epsilon)) T^((1 - epsilon) / (2 (1 + epsilon)))

    with the design V, the horizon T and delta = 1 / (8 T). It is the estimator of CRTM (Xue, Wang, Wan, Yi and Zhang
    2023) in the linear case.

    Parameters
    ----------
    design : Design
        Any design. It is copied.
    epsilon : float, default 1.0
        Rewards r have a finite moment E|r|^(1 + epsilon). Above 0 and at most 1.
    moment : float, default 1.0
        An upper bound of E|r|^(1 + epsilon), above 0.
    horizon : int, optional
        Total number of rows to come, at least 1. By default the estimator works for any number of rows.
    clip : float, default 1.0
        Factor of the threshold, above 0. CRTM has 1.0.
    parameter_bound : float, optional
        The estimate is kept in the ball ||theta|| <= S, with this number S above 0. By default there is no ball.

    Raises
    ------
    ValueError
        If an argument is outside its range.
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
    ) -> None:
        self.design: Design = check_design(design)
        tail = make_tail(self.design, epsilon, horizon, 2.0, parameter_bound, None)
        bound, clip = check.positive("moment", moment), check.positive("clip", clip)
        self._settings = Truncation(tail=tail, bound=bound, clip=clip)
        self.options: dict[str, Any] = {
            "epsilon": tail.epsilon,
            "moment": bound,
            "horizon": horizon,
            "clip": clip,
            "parameter_bound": parameter_bound,
        }

    def begin(self) -> OnePassTruncationState:
        design, theta = init_design_and_theta(self.design)
        return OnePassTruncationState(design=design, theta=theta, rows=0, settings=self._settings)

    def consistent(self, state: OnePassTruncationState) -> bool:
        return (
            state.theta.shape == (self.design.dim,)
            and state.settings == self._settings
            and state.rows >= 0
            and self.design.consistent(state.design)
        )
