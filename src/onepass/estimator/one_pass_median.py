"""Mean of medians in one pass, the estimator of CRMM (Xue, Wang, Wan, Yi and Zhang 2023) in the linear case.

In an epoch the following happens, with horizon T and failure probability delta:

    an arm x is played r = ceil(16 log(4T / delta)) times;  y = the median of the r rewards
    V <- V + x x^T / 2,   theta <- theta + V^-1 (y - x^T theta) x,   then into the ball ||theta|| <= S

There is one estimator and one update for each epoch. The noise must be symmetric: its median is then 0, however heavy
its tails are. The paper was not available. This implementation agrees with its public abstract, which names O(log T)
rewards and one estimator for each epoch. No confidence radius is known to us, so `Theory` is refused.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.design.contract import solve
from onepass.design.design import Design
from onepass.estimator.contract import forget, required_row, update
from onepass.estimator.epochs import Epoch, add_play, required_index, reset_epoch
from onepass.estimator.estimator import Estimator, check_design, init_design_and_theta
from onepass.estimator.heavy_tails import Tail, make_tail, repetitions
from onepass.estimator.newton import forget_rows, project_onto_ball, step_on_squared_loss
from onepass.foundation.registry import savable


class OnePassMedianState(NamedTuple):
    """State of the one-pass median.

    `design` is V = reg I + weighted sum of x x^T over rows x, theta (dim,) is the estimate, and `epoch` holds the
    rewards of the arm that is being played several times in a row.
    """

    design: Any
    theta: np.ndarray
    epoch: Epoch
    settings: Tail


@update.for_state(OnePassMedianState)
def update_median(state: OnePassMedianState, row: np.ndarray, reward: float) -> OnePassMedianState:
    design, theta, epoch = state.design, state.theta, add_play(state.epoch, row, reward)
    if epoch.played == epoch.rewards.size:
        design = step_on_squared_loss(design, theta, row, solve(design, row), np.median(epoch.rewards), 0.5)
        project_onto_ball(design, theta, state.settings.parameter_bound)
        epoch = reset_epoch(epoch)
    return OnePassMedianState(design=design, theta=theta, epoch=epoch, settings=state.settings)


@forget.for_state(OnePassMedianState)
def forget_median(state: OnePassMedianState, factor: float) -> OnePassMedianState:
    """Return the state in which past rows count `factor` times.

    Rewards of the arm that is being played are not learned yet, and stay.
    """
    design = forget_rows(state.design, state.theta, factor)
    project_onto_ball(design, state.theta, state.settings.parameter_bound)
    return OnePassMedianState(design=design, theta=state.theta, epoch=state.epoch, settings=state.settings)


@required_row.for_state(OnePassMedianState)
def required_row_of_median(state: OnePassMedianState, rows: np.ndarray) -> int:
    return required_index(state.epoch, rows)


@savable
class OnePassMedian(Estimator):
    """Linear regression on medians: a chosen arm is played `repeats` times in a row, and the median reward is learned.

    Parameters
    ----------
    design : Design
        Any design. It is copied.
    horizon : int, optional
        T, the total number of rows to come, at least 1. Without it `repeats` is required.
    repeats : int, optional
        Number of plays of an arm in a row, at least 1. Defaults to ceil(16 log(4T / delta)) with delta = 1 / (8T).
    parameter_bound : float, optional
        The estimate is kept in the ball ||theta|| <= S, with this number S above 0. By default there is no ball.

    Raises
    ------
    ValueError
        If an argument is outside its range, or neither `horizon` nor `repeats` is given.
    """

    has_radius = False
    repeats_arms = True

    def __init__(
        self,
        design: Design,
        *,
        horizon: int | None = None,
        repeats: int | None = None,
        parameter_bound: float | None = None,
    ) -> None:
        self.design: Design = check_design(design)
        self._tail = make_tail(self.design, 1.0, horizon, 2.0, parameter_bound, None)
        self._repeats = repetitions(repeats, self._tail, 16.0, 4.0)
        self.options: dict[str, Any] = {"horizon": horizon, "repeats": repeats, "parameter_bound": parameter_bound}

    def begin(self) -> OnePassMedianState:
        design, theta = init_design_and_theta(self.design)
        epoch = Epoch(row=np.zeros_like(theta), rewards=np.zeros(self._repeats, theta.dtype), played=0)
        return OnePassMedianState(design=design, theta=theta, epoch=epoch, settings=self._tail)

    def consistent(self, state: OnePassMedianState) -> bool:
        return (
            state.theta.shape == state.epoch.row.shape == (self.design.dim,)
            and state.epoch.rewards.shape == (self._repeats,)
            and 0 <= state.epoch.played < self._repeats
            and state.settings == self._tail
            and self.design.consistent(state.design)
        )
