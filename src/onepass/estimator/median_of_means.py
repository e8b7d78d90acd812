"""Median of means, the estimator of MENU (Shao, Yu, King and Lyu 2018).

    epoch: an arm x is played r = ceil(24 log(eT / delta)) times, with rewards y_1, ..., y_r;  A <- A + x x^T once
    b_j <- b_j + y_j x,   theta_j = A^-1 b_j                      for j = 1, ..., r
    theta = theta_k for the k with the smallest  median over j of ||theta_k - theta_j||_A

T is the horizon, and delta the error probability. After n epochs the confidence radius is 3 (9 d v)^(1/(1+eps)) n^p + 3
sqrt(reg) S, where v bounds the noise moment E|eta|^(1+eps), p is (1 - eps) / (2 (1 + eps)), and S bounds ||theta_*||.
It holds in all epochs with probability 1 - delta because of the number r of repeats, and does not hold with fewer. An
epoch takes O(r^2 d) time, and the memory is O(r d). With r = 1 the estimate is ridge regression.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.design import contract
from onepass.design.contract import append, decay, solve
from onepass.design.design import Design
from onepass.estimator.contract import forget, merge, radius, required_row, update
from onepass.estimator.epochs import Epoch, add_play, required_index, reset_epoch
from onepass.estimator.estimator import Estimator, check_design, init_design_and_theta
from onepass.estimator.heavy_tails import Tail, make_tail, power, repetitions
from onepass.estimator.newton import assign_if_finite
from onepass.exploration.confidence_width import Theory
from onepass.foundation import check
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import dot
from onepass.foundation.registry import savable


class MedianOfMeansSettings(NamedTuple):
    """Settings of the median of means: `tail` has the constants of the noise.

    `bound` is v, the bound on the moment E|eta|^(1+eps) of the noise eta.
    """

    tail: Tail
    bound: float


class MedianOfMeansState(NamedTuple):
    """State of the median of means.

    - design: the matrix A = reg I + sum of x x^T over the rows x of finished epochs.
    - theta (dim,): the estimate.
    - moments (r, dim): for each j = 1..r, the sum over arms of the reward at the arm's j-th play times its row.
    - epoch: the rewards of the arm that is being played r times in a row.
    - epochs: number of finished epochs.
    """

    design: Any
    theta: np.ndarray
    moments: np.ndarray
    epoch: Epoch
    epochs: int
    settings: MedianOfMeansSettings


@compiled
def central_estimate(design: Any, moments: np.ndarray) -> np.ndarray:
    """Return the one of r estimates, shape (dim,), whose median distance to the others, in the norm of A, is smallest.

    A is the design, and the estimates are A^-1 b_j for the rows b_j of `moments`. Squared distances are (b_k - b_j)^T
    A^-1 (b_k - b_j), computed from the differences between the b_j and their mean.
    """
    count, dim = moments.shape
    centre, centred = np.zeros(dim, moments.dtype), np.empty_like(moments)
    for j in range(dim):
        total = moments.dtype.type(0)
        for k in range(count):
            total += moments[k, j] / count
        centre[j] = total
        for k in range(count):
            centred[k, j] = moments[k, j] - centre[j]
    solved = np.empty_like(moments)
    for k in range(count):
        own = solve(design, centred[k])
        for j in range(dim):
            solved[k, j] = own[j]
    gram = dot(centred, solved.T)
    chosen, least, distances = 0, np.inf, np.empty(max(count - 1, 1))
    for k in range(count):
        place = 0
        for j in range(count):
            if j != k:
                distances[place] = np.sqrt(max(gram[k, k] + gram[j, j] - gram[k, j] - gram[j, k], 0.0))
                place += 1
        middle = np.median(distances[:place]) if place > 0 else 0.0
        if middle < least:
            chosen, least = k, middle
    return solve(design, moments[chosen])


@update.for_state(MedianOfMeansState)
def update_means(state: MedianOfMeansState, row: np.ndarray, reward: float) -> MedianOfMeansState:
    design, theta, moments, epochs = state.design, state.theta, state.moments, state.epochs
    epoch = add_play(state.epoch, row, reward)
    if epoch.played == epoch.rewards.size:
        design, epochs = append(design, row), epochs + 1
        for k in range(moments.shape[0]):
            for j in range(row.size):
                moments[k, j] += epoch.rewards[k] * row[j]
        assign_if_finite(theta, central_estimate(design, moments))
        epoch = reset_epoch(epoch)
    return MedianOfMeansState(
        design=design, theta=theta, moments=moments, epoch=epoch, epochs=epochs, settings=state.settings
    )


@forget.for_state(MedianOfMeansState)
def forget_means(state: MedianOfMeansState, factor: float) -> MedianOfMeansState:
    """Return the state in which past rows count `factor` times.

    Rewards of the arm that is being played are not learned yet, and stay.
    """
    design, moments = decay(state.design, factor), state.moments
    for k in range(moments.shape[0]):
        for j in range(moments.shape[1]):
            moments[k, j] *= factor
    assign_if_finite(state.theta, central_estimate(design, moments))
    return MedianOfMeansState(
        design=design,
        theta=state.theta,
        moments=moments,
        epoch=state.epoch,
        epochs=state.epochs,
        settings=state.settings,
    )


@radius.for_state(MedianOfMeansState)
def radius_of_means(
    state: MedianOfMeansState, rounds: int, noise: float, parameter_bound: float, row_bound: float, delta: float
) -> float:
    tail, bound = state.settings
    spread = (9.0 * state.theta.size * bound) ** (1.0 / (1.0 + tail.epsilon))
    growth = float(max(state.epochs, 1)) ** power(tail.epsilon)
    return 3.0 * spread * growth + 3.0 * np.sqrt(tail.reg) * parameter_bound


@merge.register(MedianOfMeansState)
def merge_means(state: MedianOfMeansState, other: MedianOfMeansState, start: MedianOfMeansState) -> MedianOfMeansState:
    """Merge two states by adding their designs and their sums of reward times row.

    What both had learned at `start` counts once. Raises ValueError if the other state is in the middle of repeated
    plays.
    """
    if other.epoch.played or start.epoch.played:
        raise ValueError("other must have finished its epoch: an arm whose rewards are not complete cannot be merged")
    design = contract.merge(state.design, contract.subtract_start(other.design, start.design))
    moments, epochs = state.moments + other.moments - start.moments, state.epochs + other.epochs - start.epochs
    theta = state.theta.copy()
    assign_if_finite(theta, central_estimate(design, moments))
    return state._replace(design=design, theta=theta, moments=moments, epochs=epochs)


@required_row.for_state(MedianOfMeansState)
def required_row_of_means(state: MedianOfMeansState, rows: np.ndarray) -> int:
    return required_index(state.epoch, rows)


@savable
class MedianOfMeans(Estimator):
    """Median of means: every chosen arm is played `repeats` times in a row.

    The k-th plays of all arms make the k-th group. Each group has a ridge regression of its own. The estimate is the
    one whose median distance to the others is smallest.

    Parameters
    ----------
    design : Design
        Any design. It is copied.
    epsilon : float, default 1.0
        The noise eta has a finite moment E|eta|^(1 + epsilon). Above 0 and at most 1.
    moment : float, default 1.0
        An upper bound of E|eta|^(1 + epsilon), above 0. Only the confidence radius uses it.
    horizon : int, optional
        T, the total number of rows to come, at least 1. Without it `repeats` is required.
    repeats : int, optional
        Number of plays of an arm in a row, at least 1. Defaults to ceil(24 log(e T / delta)), with T the `horizon`.
        With fewer plays no radius is proved.
    theory : Theory, optional
        The default of `repeats` uses its delta, the probability of failure. Without a theory delta is 1 / (8T). An
        exploration by `Theory` requires it.

    Raises
    ------
    ValueError
        If an argument is outside its range, or neither `horizon` nor `repeats` is given.
    """

    repeats_arms = True

    def __init__(
        self,
        design: Design,
        *,
        epsilon: float = 1.0,
        moment: float = 1.0,
        horizon: int | None = None,
        repeats: int | None = None,
        theory: Theory | None = None,
    ) -> None:
        self.design: Design = check_design(design)
        tail = make_tail(self.design, epsilon, horizon, 1.0, None, theory)
        self.has_radius: bool = theory is not None
        self._settings = MedianOfMeansSettings(tail=tail, bound=check.positive("moment", moment))
        self._repeats = repetitions(repeats, tail, 24.0, float(np.e))
        self.options: dict[str, Any] = {
            "epsilon": tail.epsilon,
            "moment": self._settings.bound,
            "horizon": horizon,
            "repeats": repeats,
            "theory": theory,
        }

    def begin(self) -> MedianOfMeansState:
        design, theta = init_design_and_theta(self.design)
        moments = np.zeros((self._repeats, theta.size), theta.dtype)
        epoch = Epoch(row=np.zeros_like(theta), rewards=np.zeros(self._repeats, theta.dtype), played=0)
        return MedianOfMeansState(
            design=design, theta=theta, moments=moments, epoch=epoch, epochs=0, settings=self._settings
        )

    def consistent(self, state: MedianOfMeansState) -> bool:
        return (
            state.theta.shape == state.epoch.row.shape == (self.design.dim,)
            and state.moments.shape == (self._repeats, self.design.dim)
            and state.epoch.rewards.shape == (self._repeats,)
            and 0 <= state.epoch.played < self._repeats
            and state.epochs >= 0
            and state.settings == self._settings
            and self.design.consistent(state.design)
        )
