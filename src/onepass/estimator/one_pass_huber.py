"""One-pass Huber regression by online mirror descent, the estimator of Hvt-UCB (Wang et al. 2025).

For the t-th row x with reward r, the scales rho and tau determine the weight of the row and the clipping of its
residual:

    rho = max(nu_t, sigma_min, sqrt(2 beta / (tau_0 sqrt(a) t^p)) ||x||_{V^-1}),   w = ||x / rho||_{V^-1} / sqrt(a)
    tau = tau_0 t^p sqrt(1 + w^2) / w,                V <- V + x x^T / (a rho^2)
    theta <- theta + V^-1 clip(r - x^T theta, -tau sigma, tau sigma) x / rho^2,   then into the ball ||theta|| <= S

This is algorithm 1 of Wang et al. The scales are explained in heavy_tails.py, and the step in newton.py. In the theorem
sigma = rho. In practice rho = 1 unless a row comes with its own noise scale, so V is in units of rows, and widths are
multiplied by nu. sigma is the size of typical noise. nu and sigma are running estimates unless nu is given
(noise_scale.py). One reward, unless it is a usual one in the sense of noise_scale.py, moves theta by at most sqrt(a)
max(tau_0 t^p, floor w) sigma / rho in the norm of V, however large it is.

On an exact V, while theta has not left the ball, theta is ridge regression with weights 1 / (a rho^2) on the modified
rewards x^T theta + a clip(...). For a = 1 these are winsorized rewards, at most tau sigma away from the prediction.
Without outliers it is ridge regression on the rewards themselves. For a = 4 the modified rewards lie four times as far
from the prediction.

On a sketch the step is better than ridge regression V_hat^-1 b (online_newton.py explains why). For d = 500 and plain
Frequent Directions of 20 rows, with a decaying spectrum, the regret was 251 with steps, 885 with ridge regression, and
177 on the exact design.

The arms of an arena, where there is no ball, take the same step (`Winsor`).
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.design.contract import solve
from onepass.design.design import Design
from onepass.estimator.arm_update_rules import NewtonSteps, arm_step, pull_to_undo, row_factor, unit_of_steps
from onepass.estimator.contract import forget, noise_unit, radius, set_next_noise, update
from onepass.estimator.estimator import ArmLearning, Estimator, check_design, init_design_and_theta
from onepass.estimator.heavy_tails import (
    STEP,
    Clipping,
    Practice,
    Tail,
    make_practice,
    make_tail,
    normalize_row,
    rho_bound,
    scales,
    with_bounds,
)
from onepass.estimator.newton import forget_rows, newton_step, project_onto_ball, step_along
from onepass.estimator.noise_scale import (
    MEMORY,
    Noise,
    first_was_outlier,
    make_noise,
    noise_level,
    pack_noise,
    reset_noise,
    unpack_noise,
    update_noise,
    with_nu,
)
from onepass.exploration.confidence_width import Theory
from onepass.foundation import check
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import dot
from onepass.foundation.registry import savable

SHARES = 2.0**40  # of the largest: 8 million arms have room in an integer, and 12 digits are kept
DELTAS = 4  # Wang et al.'s lemma 1 holds with probability 1 - 4 delta


class OnePassHuberState(NamedTuple):
    """State of one-pass Huber regression.

    - design: the matrix V = reg I + weighted sum of x x^T over rows x.
    - theta (dim,): the estimate.
    - rows: number of rows learned.
    - noise: running noise scale; its field nu is a setting.
    - start (dim,): the first row with a residual, scaled, kept so that it can be undone if the residual was an outlier.
    - settings: constants of the loss.
    """

    design: Any
    theta: np.ndarray
    rows: int
    noise: Noise
    start: np.ndarray
    settings: Clipping


class Winsor(NamedTuple):
    """Update rule of one-pass Huber regression for the models of very many arms, which share a few arrays.

    `nu` is the noise scale of every row, or 0 if it is estimated. `tail` has the constants of the noise and of the
    proof (`Tail`), and `practice` the settings that replace them in practice (`Practice`).
    """

    nu: float
    tail: Tail
    practice: Practice


@compiled
def confidence(tail: Tail, t: int, dim: int) -> float:
    """Return the radius beta of the confidence ellipsoid after t rows (Wang et al., equation 10).

    `tail` holds the constants, and `dim` is the width of a row, on which tau_0 depends. beta = 107 log(2 T^2 / delta)
    tau_0 t^p + sqrt(reg (2 + 4 S^2)), with T the horizon (or t), delta the probability of failure, tau_0 t^p the
    threshold of the Huber loss, reg the ridge penalty, and S a bound of the parameter's norm.
    """
    s = scales(tail, t, dim)
    return 107.0 * s.logarithm * s.tau * s.growth + np.sqrt(tail.reg * (2.0 + 4.0 * tail.parameter_bound**2))


@compiled
def clip_residual(
    tail: Tail, practice: Practice, noise: Noise, t: int, dim: int, width: float, reward: float, mean: float
) -> tuple[float, float, float, Noise]:
    """Return the scale rho, the normalized width w and the clipped residual of the t-th row, and the noise estimate.

    For the row x, `width` is sqrt(x^T V^-1 x) for the design V, and `mean` is x^T theta, both before the row. `reward`
    is the row's reward, and `noise` the noise estimate before the row. w is width / rho, up to a constant factor, and
    `normalize_row` defines both; `tail` and `practice` hold the constants.
    """
    residual = reward - mean
    known, common = update_noise(noise, reward, residual, width * width, t)
    s, least = scales(tail, t, dim), 0.0
    if practice.radius != 0.0:
        beta = practice.radius if practice.radius > 0.0 else confidence(tail, t - 1, dim)
        least = rho_bound(tail, practice, s, beta, width)
    rho, w, mark = normalize_row(tail, practice, s, noise, known, common, width, least)
    return rho, w, min(max(residual, -mark), mark), known


@compiled
def must_undo_first(practice: Practice, noise: Noise) -> bool:
    """Return True if what was learned from the first residual must be undone, because it was an outlier.

    With the constants of the theorem, which `practice` marks by a negative radius, nothing is undone.
    """
    return practice.radius >= 0.0 and first_was_outlier(noise)


@update.for_state(OnePassHuberState)
def update_huber(state: OnePassHuberState, row: np.ndarray, reward: float) -> OnePassHuberState:
    theta, settings, start, before, t = state.theta, state.settings, state.start, state.noise, state.rows + 1
    tail = settings.tail
    if tail.parameter_bound == np.inf and must_undo_first(settings.practice, before):
        step_along(theta, solve(state.design, start), -before.first)
        before = reset_noise(before)
    direction = solve(state.design, row)
    width, mean = np.sqrt(max(float(dot(row, direction)), 0.0)), float(dot(row, theta))
    rho, w, residual, noise = clip_residual(tail, settings.practice, before, t, theta.size, width, float(reward), mean)
    pull, weight = residual / (rho * rho * (1.0 + w * w)), 1.0 / (tail.step * rho * rho)
    design = newton_step(state.design, theta, row, direction, pull, weight)
    project_onto_ball(design, theta, tail.parameter_bound)
    if before.first == 0.0 and noise.first != 0.0:
        for j in range(row.size):
            start[j] = row[j] / (rho * rho)
    return OnePassHuberState(design=design, theta=theta, rows=t, noise=noise, start=start, settings=settings)


@noise_unit.for_state(OnePassHuberState)
def unit_of_huber(state: OnePassHuberState) -> float:
    return 1.0 if state.settings.practice.radius < 0.0 else noise_level(state.noise)


@arm_step.for_state(Winsor)
def step_by_winsor(
    rule: Winsor, memory: np.ndarray, dim: int, mean: float, square: float, t: int, reward: float
) -> tuple[float, float]:
    """Return the weight w and the step size p of the t-th row x of an arm: A += w x x^T and theta += p A^-1 x.

    `mean` is x^T theta and `square` is x^T A^-1 x. memory (10 + dim,) holds the running noise estimate, and the first
    row with a residual and the factor of this row.
    """
    before = unpack_noise(rule.nu, memory)
    rho, w, residual, noise = clip_residual(rule.tail, rule.practice, before, t, dim, np.sqrt(square), reward, mean)
    pack_noise(noise, memory)
    memory[MEMORY] = 1.0 / (rho * rho) if before.first == 0.0 and noise.first != 0.0 else 0.0
    return 1.0 / (rule.tail.step * rho * rho), residual / (rho * rho * (1.0 + w * w))


@row_factor.for_state(Winsor)
def row_factor_of_winsor(rule: Winsor, memory: np.ndarray) -> float:
    return memory[MEMORY]


@pull_to_undo.for_state(Winsor)
def pull_to_undo_of_winsor(rule: Winsor, memory: np.ndarray) -> float:
    before = unpack_noise(rule.nu, memory)
    if not must_undo_first(rule.practice, before):
        return 0.0
    pack_noise(reset_noise(before), memory)
    return before.first


@unit_of_steps.for_state(Winsor)
def unit_of_winsors(rule: Winsor, memory: np.ndarray, rows: np.ndarray) -> float:
    """Return the noise scale pooled over all arms: the root mean square over the rows of all arms.

    An arm with few rows then knows the noise as well. Squares are added as integer multiples of a fraction of the
    largest, so that the sum does not depend on the order of the arms.

    `rule` holds the settings of the arms' steps. memory (K, m) has the numbers kept for each arm, and rows (K,) the
    number of rows that each arm has learned.
    """
    if rule.practice.radius < 0.0:
        return 1.0
    if rule.nu > 0.0:
        return rule.nu
    learned, shares, largest = 0, 0, 0.0
    for a in range(rows.size):
        if rows[a] > 0:
            learned += rows[a]
            largest = max(largest, rows[a] * memory[a, 2])
    if not largest > 0.0:
        return 0.0
    for a in range(rows.size):
        if rows[a] > 0:
            shares += int(SHARES * (rows[a] * memory[a, 2] / largest))
    return np.sqrt(largest / learned * (shares / SHARES))


@forget.for_state(OnePassHuberState)
def forget_huber(state: OnePassHuberState, factor: float) -> OnePassHuberState:
    """Return the state in which past rows count `factor` times; the noise scale then follows new rows faster, too."""
    design, start = forget_rows(state.design, state.theta, factor), state.start
    project_onto_ball(design, state.theta, state.settings.tail.parameter_bound)
    for j in range(start.size):
        start[j] *= factor
    return OnePassHuberState(
        design=design,
        theta=state.theta,
        rows=int(factor * state.rows),
        noise=state.noise,
        start=start,
        settings=state.settings,
    )


@radius.for_state(OnePassHuberState)
def radius_of_huber(
    state: OnePassHuberState, rounds: int, noise: float, parameter_bound: float, row_bound: float, delta: float
) -> float:
    return confidence(
        with_bounds(state.settings.tail, parameter_bound, row_bound, delta / DELTAS), state.rows, state.theta.size
    )


@set_next_noise.for_state(OnePassHuberState)
def expect_nu(state: OnePassHuberState, nu: float) -> OnePassHuberState:
    return OnePassHuberState(
        design=state.design,
        theta=state.theta,
        rows=state.rows,
        noise=with_nu(state.noise, nu),
        start=state.start,
        settings=state.settings,
    )


@savable
class OnePassHuber(Estimator):
    """Huber regression in one pass: prediction errors beyond a threshold are clipped, and no history is kept.

    With w the standard error of the row x in units of the noise, a prediction error beyond +-tau times the size of the
    noise is clipped. The threshold is tau = max(clip tau_0 t^p / w, floor) sqrt(1 + w^2) after t rows, with p = (1 -
    epsilon) / (2 (1 + epsilon)). tau_0 is given in Notes. docs/how/heavy_tails.md explains the method.

    Parameters
    ----------
    design : Design
        Any design. It is copied.
    epsilon : float, default 1.0
        The noise eta has a finite moment E|eta|^(1 + epsilon). Above 0 and at most 1, which means a finite variance.
    nu : float, optional
        Size of the noise in units of rewards, above 0. Without `theory`, give the typical size of the noise eta. With
        `theory`, give a bound of (E|eta|^(1 + epsilon))^(1 / (1 + epsilon)). By default nu is estimated by running
        robust statistics; nothing is proved about this estimate. `learn` accepts a separate value for each row.
    horizon : int, optional
        Total number of rows to come, at least 1. By default the estimator works for any number of rows.
    radius : float, default 0.0
        Wang et al. give a row the weight 1 / rho^2, and keep rho above a bound that grows with the confidence radius
        beta. 0.0 leaves the bound out. A number above 0 applies it with this number in place of beta. The bound also
        lowers the weight of clean early rows.
    clip : float, optional
        Factor of the threshold, above 0. If it is infinite, nothing is clipped. Defaults to 0.02, and to 1.0 if
        `theory` is given.
    floor : float, optional
        Least threshold, at least 0, in units of sqrt(1 + w^2) times the size of the noise, which is the standard
        deviation of reward minus prediction. Defaults to 3.0, because Gaussian noise hardly ever exceeds it. Defaults
        to 0.0 if `theory` is given.
    step : float, optional
        The weight of a row is divided by this number a, above 0. Defaults to 1.0: without clipping this is ridge
        regression, and it was better in measurements. Defaults to 4.0, as in Wang et al., if `theory` is given.
    sigma_min : float, optional
        Smallest noise scale of a row in Wang et al.'s algorithm 1, above 0, in units of rewards, and in practice of nu.
        Defaults to 1 / sqrt(T), the choice of their theorem 1.
    parameter_bound : float, optional
        The estimate is kept in the ball ||theta|| <= S, with this number S above 0. By default there is no ball.
        `theory` has a bound of its own.
    theory : Theory, optional
        Use the constants of Wang et al. instead of `radius`, `clip` and `floor`, and the ball of
        `theory.parameter_bound`. The confidence radius then holds in all T rounds with probability 1 - theory.delta.
        The delta of Wang et al. is theory.delta / 4, so their choice of 1 / (8T) means theory.delta = 1 / (2T).

    Raises
    ------
    ValueError
        If an argument is outside its range, or `parameter_bound` is given beside `theory`.

    Notes
    -----
    The method is that of Wang et al. 2025, "Heavy-Tailed Linear Bandits: Huber Regression with One-Pass Update". Their
    constant is tau_0 = sqrt(2 kappa) log(3T)^p / log(2T^2 / delta)^(1 / (1 + epsilon)) with kappa = d log(1 + L^2 T /
    (sigma_min^2 reg a d)), where d is the length of a row, L a bound of its norm, and T the horizon or else t.

    A bandit multiplies its exploration by nu, so rewards in other units give the same decisions. The confidence radius
    is proved if `horizon` and `nu` are given, `clip` is 1, `floor` is 0, `step` is 4 and the design is exact. A row
    takes a constant number of operations of the design. With an infinite `clip`, step 2 and nu 1 it is
    the estimator of Wang et al. for sub-Gaussian noise (section 4.1).
    """

    takes_nu = True

    def __init__(
        self,
        design: Design,
        *,
        epsilon: float = 1.0,
        nu: float | None = None,
        horizon: int | None = None,
        radius: float = 0.0,
        clip: float | None = None,
        floor: float | None = None,
        step: float | None = None,
        sigma_min: float | None = None,
        parameter_bound: float | None = None,
        theory: Theory | None = None,
    ) -> None:
        self.design: Design = check_design(design)
        a = (4.0 if theory is not None else STEP) if step is None else check.positive("step", step)
        self._tail = make_tail(self.design, epsilon, horizon, a, parameter_bound, theory, DELTAS, sigma_min)
        self.has_radius: bool = theory is not None
        self._noise, self._practice = make_noise(nu), make_practice(radius, clip, floor, theory)
        self._settings = Clipping(tail=self._tail, practice=self._practice)
        self.options: dict[str, Any] = {
            "epsilon": self._tail.epsilon,
            "nu": nu,
            "horizon": horizon,
            "radius": radius,
            "clip": clip,
            "floor": floor,
            "step": step,
            "sigma_min": sigma_min,
            "parameter_bound": parameter_bound,
            "theory": theory,
        }

    def arm_learning(self) -> ArmLearning | None:
        """Return the rule by which one model per arm is learned: Newton steps, as in a shared model.

        Returns
        -------
        ArmLearning or None
            The update rule of an arm; None if theta is restricted to a ball.
        """
        if self._tail.parameter_bound < np.inf:
            return None
        rule = Winsor(nu=self._noise.nu, tail=self._tail, practice=self._practice)
        return ArmLearning(rule=NewtonSteps(rule=rule), memory=MEMORY + 1 + self.design.dim)

    def begin(self) -> OnePassHuberState:
        design, theta = init_design_and_theta(self.design)
        return OnePassHuberState(
            design=design, theta=theta, rows=0, noise=self._noise, start=np.zeros_like(theta), settings=self._settings
        )

    def consistent(self, state: OnePassHuberState) -> bool:
        return (
            state.theta.shape == state.start.shape == (self.design.dim,)
            and (state.settings, state.noise.nu) == (self._settings, self._noise.nu)
            and state.rows >= 0
            and self.design.consistent(state.design)
        )
