"""Adaptive Huber regression over the whole history, the estimator of HEAVY-OFUL (Huang, Zhong, Wang and Yang 2023).

The estimate minimizes a sum of Huber losses f_s of standardized residuals, and H is the weighted Gram matrix:

    theta = argmin over ||theta|| <= S of  reg / 2 ||theta||^2 + sum over s <= t of f_s((r_s - x_s^T theta) / sigma_s)
    f_s: z^2 / 2 up to tau_s, then tau_s |z| - tau_s^2 / 2;     H <- H + x x^T / sigma^2

In the notation of one-pass Huber regression (one_pass_huber.py), sigma_s is rho, tau_s is tau sigma / rho, a is 1, and
H stands for V. kappa and tau_0 are defined in heavy_tails.py.

The theorem needs lower bounds (guards) of rho: ||x|| / c_0 and sqrt(L S ||x||) / (2 c_1 kappa)^(1/4), with norms in
H^-1. In practice there is no guard, or the guard of Wang et al., which they say serves here too. The second guard keeps
the loss quadratic if there is no noise: (2 c_1 kappa)^(1/2) = tau_0 / (4 sqrt(3)), so |x^T (theta - theta_*)| / rho <=
2 L S / rho <= tau / (2 sqrt(3)) for all theta in the ball. The confidence radius of the theorem is

    beta_t = 3 sqrt(reg) S + 24 t^p sqrt(2 kappa) (log 3T)^p log(2 T^2 / delta)^(eps / (1 + eps))

Every round solves the problem by steps theta <- theta - H^-1 gradient, from the last theta. H bounds the Hessian from
above, so every step lowers the loss. If no residual is clipped, the first step is exact. A step costs O(t d), and the
memory is O(t d). A sketched H would not bound the Hessian, so only exact designs are accepted.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.design.contract import append, decay, solve
from onepass.design.exact import Exact
from onepass.estimator.contract import forget, noise_unit, radius, set_next_noise, update, update_rows
from onepass.estimator.estimator import Estimator, check_design, init_design_and_theta
from onepass.estimator.heavy_tails import (
    Clipping,
    Practice,
    Scales,
    Tail,
    make_practice,
    make_tail,
    normalize_row,
    power,
    rho_bound,
    scales,
    with_bounds,
)
from onepass.estimator.history import History, append_row, init_history, rescale
from onepass.estimator.newton import project_onto_ball, step_along
from onepass.estimator.noise_scale import (
    Noise,
    first_was_outlier,
    make_noise,
    noise_level,
    outlier_scale,
    reset_noise,
    update_noise,
    with_nu,
)
from onepass.exploration.confidence_width import Theory
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import dot
from onepass.foundation.registry import savable

STEPS = 1000  # at most, a round
# of the theorem: 2 for the noise (their lemma C.2), 1 for how often it is clipped (C.12), as Wang et al. cite them
DELTAS = 3


class AdaptiveHuberState(NamedTuple):
    """State of adaptive Huber regression.

    - design: the matrix H = reg I + weighted sum of x x^T over rows x.
    - theta (dim,): the estimate.
    - history: rows x / rho with values r / rho, and thresholds tau sigma / rho up to which the loss is quadratic.
    - noise: running noise scale (noise_scale.py).
    - settings: constants of the loss.
    """

    design: Any
    theta: np.ndarray
    history: History
    noise: Noise
    settings: Clipping


@compiled
def guard_of(tail: Tail, practice: Practice, s: Scales, width: float) -> float:
    """Return the smallest scale rho that a row x may have, if its width sqrt(x^T H^-1 x) is `width`.

    A row counts with the weight 1 / rho^2 in the design H. With the constants of the theorem, the result is the larger
    of HEAVY-OFUL's two bounds, otherwise Wang et al.'s bound with the practical radius. `tail` holds the constants of
    the noise, `practice` the practical settings, and `s` the numbers of the round.
    """
    if practice.radius >= 0.0:
        return rho_bound(tail, practice, s, practice.radius, width)
    one = 1.0 + tail.epsilon
    c0 = 1.0 / np.sqrt(23.0 * s.logarithm)
    c1 = np.log(3.0 * s.horizon) ** ((1.0 - tail.epsilon) / one) / (48.0 * s.logarithm ** (2.0 / one))
    return max(width / c0, np.sqrt(tail.row_bound * tail.parameter_bound * width) / (2.0 * c1 * s.kappa) ** 0.25)


@compiled
def append_to_state(state: AdaptiveHuberState, row: np.ndarray, reward: float) -> AdaptiveHuberState:
    """Return the state with one more row in the design and in the history; the estimate theta is not changed."""
    design, theta, (tail, practice) = state.design, state.theta, state.settings
    t, before = state.history.used + 1, state.noise
    if practice.radius >= 0.0 and first_was_outlier(
        before
    ):  # rows so far could not be clipped: none may count for more than now
        for i in range(t - 1):
            state.history.marks[i] = min(state.history.marks[i], practice.floor * outlier_scale(before))
        before = reset_noise(before)
    leverage = max(float(dot(row, solve(design, row))), 0.0)
    s, width = scales(tail, t, theta.size), np.sqrt(leverage)
    noise, common = update_noise(before, float(reward), float(reward) - float(dot(row, theta)), leverage, t)
    least = guard_of(tail, practice, s, width)
    rho, _, mark = normalize_row(tail, practice, s, before, noise, common, width, least)
    scaled = np.empty_like(row)
    for j in range(row.size):
        scaled[j] = row[j] / rho
    history = append_row(state.history, scaled, reward / rho, mark / rho)
    return AdaptiveHuberState(
        design=append(design, scaled), theta=theta, history=history, noise=noise, settings=state.settings
    )


@noise_unit.for_state(AdaptiveHuberState)
def unit_of_adaptive(state: AdaptiveHuberState) -> float:
    return 1.0 if state.settings.practice.radius < 0.0 else noise_level(state.noise)


@compiled
def minimize(state: AdaptiveHuberState) -> None:
    """Move the estimate theta, in place, to within nu / sqrt(T) of the loss's minimizer, in the norm of the design.

    nu is the size of the noise (`noise_unit`), and T the horizon or, without one, the number of rows. The theorem of
    the radius assumes rewards in units of nu and requires 1 / sqrt(T) there, which is the same. The search starts from
    the present theta.
    """
    history, theta, tail = state.history, state.theta, state.settings.tail
    used = history.used
    rows, values, marks = history.rows[:used], history.values[:used], history.marks[:used]
    horizon = float(tail.horizon) if tail.horizon > 0 else float(used)
    near, before = noise_unit(state) ** 2 / horizon, np.empty_like(theta)
    for _ in range(STEPS):
        pulls = dot(rows, theta)
        for i in range(used):
            pulls[i] = min(max(values[i] - pulls[i], -marks[i]), marks[i])
        slope = dot(pulls, rows)
        for j in range(theta.size):
            slope[j] -= tail.reg * theta[j]
            before[j] = theta[j]
        step = solve(state.design, slope)
        square = float(dot(step, slope))
        if not step_along(theta, step, 1.0):
            break
        if project_onto_ball(state.design, theta, tail.parameter_bound):
            for j in range(theta.size):
                step[j] = theta[j] - before[j]
            square = float(dot(step, slope))
        if square <= near:
            break


@update.for_state(AdaptiveHuberState)
def update_adaptive(state: AdaptiveHuberState, row: np.ndarray, reward: float) -> AdaptiveHuberState:
    state = append_to_state(state, row, reward)
    minimize(state)
    return state


@update_rows.for_state(AdaptiveHuberState)
def update_adaptive_rows(state: AdaptiveHuberState, rows: np.ndarray, rewards: np.ndarray) -> AdaptiveHuberState:
    """Return the state after rows (n, dim) and rewards (n,), for which the loss is minimized once, at the end."""
    for i in range(rows.shape[0]):
        state = append_to_state(state, rows[i], float(rewards[i]))
    if rows.shape[0] > 0:
        minimize(state)
    return state


@forget.for_state(AdaptiveHuberState)
def forget_adaptive(state: AdaptiveHuberState, factor: float) -> AdaptiveHuberState:
    """Return the state in which the loss of every past row is multiplied by `factor`; all rows stay in the history."""
    rescale(state.history, np.sqrt(factor))
    state = AdaptiveHuberState(
        design=decay(state.design, factor),
        theta=state.theta,
        history=state.history,
        noise=state.noise,
        settings=state.settings,
    )
    minimize(state)
    return state


@radius.for_state(AdaptiveHuberState)
def radius_of_adaptive(
    state: AdaptiveHuberState, rounds: int, noise: float, parameter_bound: float, row_bound: float, delta: float
) -> float:
    tail = with_bounds(state.settings.tail, parameter_bound, row_bound, delta / DELTAS)
    s = scales(tail, state.history.used, state.theta.size)
    logs = np.log(3.0 * s.horizon) ** power(tail.epsilon) * s.logarithm ** (tail.epsilon / (1.0 + tail.epsilon))
    return 3.0 * np.sqrt(tail.reg) * parameter_bound + 24.0 * s.growth * np.sqrt(2.0 * s.kappa) * logs


@set_next_noise.for_state(AdaptiveHuberState)
def expect_nu(state: AdaptiveHuberState, nu: float) -> AdaptiveHuberState:
    return AdaptiveHuberState(
        design=state.design,
        theta=state.theta,
        history=state.history,
        noise=with_nu(state.noise, nu),
        settings=state.settings,
    )


@savable
class AdaptiveHuber(Estimator):
    """Adaptive Huber regression on an `Exact` design, for comparison with `OnePassHuber`.

    It keeps all rows, and minimizes the sum of their Huber losses again after every row or batch. `OnePassHuber` says
    more about the parameters.

    Parameters
    ----------
    design : Exact
        An `Exact` design. It is copied.
    epsilon : float, default 1.0
        The noise eta has a finite moment E|eta|^(1 + epsilon). Above 0 and at most 1.
    nu : float, optional
        Size of the noise in units of rewards, above 0. By default it is estimated.
    horizon : int, optional
        Total number of rows to come, at least 1. By default the estimator works for any number of rows.
    radius : float, default 0.0
        Confidence radius, at least 0, in the lower bound of a row's noise scale. 0.0 leaves the bound out.
    clip : float, optional
        Factor of the threshold of prediction errors, above 0. Defaults to 0.02, and to 1.0 if `theory` is given.
    floor : float, optional
        Least threshold, at least 0, in standard deviations of the prediction error. Defaults to 3.0, and to 0.0 if
        `theory` is given.
    parameter_bound : float, optional
        The estimate is kept in the ball ||theta|| <= S, with this number S above 0. By default there is no ball.
        `theory` has a bound of its own.
    theory : Theory, optional
        Use the constants of the theorem instead of `radius`, `clip` and `floor`, and the ball of
        `theory.parameter_bound`.

    Raises
    ------
    ValueError
        If the design is not `Exact`, or an argument is outside the range that `OnePassHuber` gives for it.

    Notes
    -----
    Round t takes O(t dim) memory and time. With `theory`, the confidence radius is proved for the exact minimizer. It
    holds with probability 1 - theory.delta if `horizon` and `nu` are given, `clip` is 1 and `floor` is 0. The delta of
    the theorem is theory.delta / 3.
    """

    takes_nu = True

    def __init__(
        self,
        design: Exact,
        *,
        epsilon: float = 1.0,
        nu: float | None = None,
        horizon: int | None = None,
        radius: float = 0.0,
        clip: float | None = None,
        floor: float | None = None,
        parameter_bound: float | None = None,
        theory: Theory | None = None,
    ) -> None:
        self.design: Exact = check_design(design, Exact)
        tail = make_tail(self.design, epsilon, horizon, 1.0, parameter_bound, theory, DELTAS)
        self.has_radius: bool = theory is not None
        self._noise = make_noise(nu)
        self._settings = Clipping(tail=tail, practice=make_practice(radius, clip, floor, theory))
        self.options: dict[str, Any] = {
            "epsilon": tail.epsilon,
            "nu": nu,
            "horizon": horizon,
            "radius": radius,
            "clip": clip,
            "floor": floor,
            "parameter_bound": parameter_bound,
            "theory": theory,
        }

    def begin(self) -> AdaptiveHuberState:
        design, theta = init_design_and_theta(self.design)
        return AdaptiveHuberState(
            design=design,
            theta=theta,
            history=init_history(theta),
            noise=self._noise,
            settings=self._settings,
        )

    def consistent(self, state: AdaptiveHuberState) -> bool:
        return (
            state.theta.shape == (self.design.dim,)
            and (state.settings, state.noise.nu) == (self._settings, self._noise.nu)
            and state.history.is_consistent(self.design.dim)
            and self.design.consistent(state.design)
        )
