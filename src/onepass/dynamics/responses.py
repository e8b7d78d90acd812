"""Regression with vector responses y in R^n on rows z in R^D: y = Theta z + noise, one design for all n columns.

    V <- V + z z^T / (a rho^2)
    theta_i <- theta_i + V^-1 clip(y_i - z^T theta_i, -tau_i sigma_i, tau_i sigma_i) z / rho^2

theta_i is row i of Theta. One-pass Huber regression (Wang et al. algorithm 1, estimator/one_pass_huber.py) chooses the
weight 1 / (a rho^2) from the row and from the given noise scale, never from a response. The weight is therefore the
same for every coordinate of the response, and n independent estimators would keep n equal copies of V. Here there is
one copy of V. A step takes one solve, one append, and n clipped updates in O(n D). tau_i and sigma_i are the threshold
and the noise scale of coordinate i (estimator/heavy_tails.py).

If `nu` is not given, each coordinate has its own running estimate of the noise scale.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from onepass.design.contract import append, append_rows, log_det, matrix, solve, spectrum
from onepass.design.solved_append import append_solved, solve_in_halves
from onepass.estimator import contract
from onepass.estimator.adaptive_huber import AdaptiveHuberState
from onepass.estimator.heads import solve_heads
from onepass.estimator.heavy_tails import Clipping, normalize_row, rho_bound, scales, with_bounds
from onepass.estimator.newton import project_by_spectrum, step_along
from onepass.estimator.noise_scale import (
    Noise,
    median_steps,
    noise_level,
    outlier_scale,
    pack_noise,
    reset_noise,
    unpack_noise,
    update_noise_by,
)
from onepass.estimator.one_pass_huber import DELTAS, confidence, must_undo_first
from onepass.estimator.radii import confidence_radius
from onepass.foundation.generic import compiled, generic
from onepass.foundation.linalg import dot, norm_limit

FIRST_RESIDUAL = 8  # in the noise of a coordinate


class HuberResponses(NamedTuple):
    """State of one-pass Huber regression for responses with n coordinates, on rows with D features.

    - design: the matrix V = reg I + weighted sum of z z^T over rows z.
    - theta (n, D): the estimates.
    - rows: number of rows learned.
    - nu: noise scale of every row, 0 if it is estimated.
    - noise (n, 9): running noise scale of every coordinate (`noise_scale.pack_noise`).
    - starts (n, D): row of each coordinate's first residual.
    - settings: constants of the loss (estimator/heavy_tails.py).
    """

    design: Any
    theta: np.ndarray
    rows: int
    nu: float
    noise: np.ndarray
    starts: np.ndarray
    settings: Clipping


class RidgeResponses(NamedTuple):
    """State of ridge regression for n responses.

    `design` is V = reg I + sum of z z^T over rows z (D,), moment (n, D) is the sum of y z^T over responses y (n,), and
    `rows` counts the rows learned.
    """

    design: Any
    moment: np.ndarray
    rows: int


class AdaptiveResponses(NamedTuple):
    """State of adaptive Huber regression, as `columns`: an estimator's state for every coordinate of the response.

    All of them have learned the same rows.
    """

    columns: tuple[AdaptiveHuberState, ...]


@generic
def update(state: Any, row: np.ndarray, response: np.ndarray, nu: float) -> Any:
    """Return the state after a row (D,) and its response (n,).

    `nu` is the noise scale of this row, or 0 if none is given.
    """
    raise TypeError(f"update is not defined for {type(state).__name__}; register it with update.for_state(...)")


@partial(generic, default=True)
def update_rows(state: Any, rows: np.ndarray, responses: np.ndarray, nus: np.ndarray) -> Any:
    """Return the state after rows (t, D) with responses (t, n), one row after the other.

    nus (t,) are the rows' noise scales, 0 if none is given.
    """
    for i in range(rows.shape[0]):
        state = update(state, rows[i], responses[i], float(nus[i]))
    return state


@partial(generic, default=True)
def coefficients(state: Any) -> np.ndarray:
    """Return the present estimate Theta (n, D), with one row for each of n responses."""
    return state.theta.copy()


@partial(generic, default=True)
def precision(state: Any) -> np.ndarray:
    """Return the design matrix V, (D, D), in whose norm the radius is measured."""
    return matrix(state.design)


@partial(generic, default=True)
def count(state: Any) -> int:
    """Return the number of rows that the estimator has learned."""
    return state.rows


@partial(generic, default=True)
def log_det_of_precision(state: Any) -> float:
    """Return log det V of the design matrix V."""
    return log_det(state.design)


@generic
def noise_scales(state: Any, squares: np.ndarray) -> np.ndarray:
    """Return the size of the noise (n,) of every coordinate; squares (n,) are the sums of squared responses."""
    raise TypeError(f"noise_scales is not defined for {type(state).__name__}; use noise_scales.for_state(...)")


@generic
def radius(state: Any, noise: float, parameter_bound: float, row_bound: float, delta: float) -> float:
    """Return a bound on ||theta_i - theta_i*||_V for all n coordinates in all rounds, with probability 1 - delta.

    theta_i is the estimate for coordinate i of the response, theta_i* the true parameter, and V the design. `noise`
    bounds the noise, `parameter_bound` every ||theta_i*||, and `row_bound` the norms of rows.
    """
    raise TypeError(f"radius is not defined for {type(state).__name__}; register it with radius.for_state(...)")


@compiled
def undo_first(state: HuberResponses, i: int) -> None:
    """Subtract from the estimate of response coordinate i what it learned from its first row, which was an outlier.

    The coordinate's running noise scale starts again.
    """
    before = unpack_noise(state.nu, state.noise[i])
    step_along(state.theta[i], solve(state.design, state.starts[i]), -before.first)
    pack_noise(reset_noise(before), state.noise[i])


@compiled
def project_rows(design: Any, theta: np.ndarray, bound: float) -> None:
    """Project every row of theta (n, D) onto the ball of radius `bound`, in the norm of the design, in place.

    It takes one decomposition for all rows.
    """
    values, vectors, rest = spectrum(design)
    for i in range(theta.shape[0]):
        project_by_spectrum(values, vectors, rest, theta[i], bound)


@compiled
def told_noise(nu: float, told: float) -> Noise:
    """Return a noise estimate with the constant scale `nu`, 1 if `nu` is 0; `told` is the next row's scale, or 0."""
    return Noise(
        nu=nu if nu > 0.0 else 1.0,
        next=told,
        size=0.0,
        mean=0.0,
        square=0.0,
        unusual=0.0,
        usual=0.0,
        votes=0.0,
        second=0.0,
        more=0.0,
        first=0.0,
    )


@compiled
def step_rows_along(theta: np.ndarray, direction: np.ndarray, pulls: np.ndarray) -> float:
    """Add pulls_i * direction to row i of theta (n, D) in place, for every i.

    A row whose numbers would become too large stays as it is. Returns the largest ||theta_i||^2 of the rows that moved.
    """
    most, largest = norm_limit(theta), 0.0
    for i in range(theta.shape[0]):
        square, pull = 0.0, pulls[i]
        for j in range(theta.shape[1]):
            entry = theta[i, j] + pull * direction[j]
            square += entry * entry
        if square <= most * most:
            largest = max(largest, square)
            for j in range(theta.shape[1]):
                theta[i, j] += pull * direction[j]
    return largest


@compiled
def clip_residuals(
    state: HuberResponses, row: np.ndarray, response: np.ndarray, residuals: np.ndarray, leverage: float, nu: float
) -> tuple[float, float]:
    """Clip the residuals (n,) of a row in place, and return the row's scale rho and normalized width w.

    `estimator.heavy_tails.normalize_row` defines both. `leverage` is x^T V^-1 x for the row x and the design V. `nu` is
    the row's own noise scale, 0 without one. The noise scale of every coordinate is updated with the `response` (n,) of
    the row.
    """
    (tail, practice), t, width, least = state.settings, state.rows + 1, np.sqrt(leverage), 0.0
    s, told = scales(tail, t, row.size), told_noise(state.nu, nu)
    if practice.radius != 0.0:
        beta = practice.radius if practice.radius > 0.0 else confidence(tail, t - 1, row.size)
        least = rho_bound(tail, practice, s, beta, width)
    rho, w, reach = normalize_row(tail, practice, s, told, told, False, width, least)
    unusual, rise, fall = -1.0, 1.0, 1.0
    for i in range(residuals.size):
        mark = reach
        if practice.radius >= 0.0:
            before = unpack_noise(state.nu, state.noise[i])
            if before.unusual != unusual:
                unusual = before.unusual
                rise, fall = median_steps(unusual)
            after, common = update_noise_by(before, float(response[i]), float(residuals[i]), leverage, t, rise, fall)
            pack_noise(after, state.noise[i])
            if before.first == 0.0 and after.first != 0.0:
                for j in range(row.size):
                    state.starts[i, j] = row[j] / (rho * rho)
            if common:
                mark = np.inf
            elif state.nu == 0.0 and w > 0.0:
                mark = reach * outlier_scale(after)
        residuals[i] = min(max(residuals[i], -mark), mark)
    return rho, w


@update.for_state(HuberResponses)
def update_huber(state: HuberResponses, row: np.ndarray, response: np.ndarray, nu: float) -> HuberResponses:
    """Return the state after one row (D,) and its response (n,).

    `nu` is the row's noise scale, or 0 if none is given. The cost is one solve, one append and O(n D), plus a
    decomposition of the design if an estimate leaves the ball that it is restricted to.
    """
    theta, (tail, practice), n = state.theta, state.settings, response.size
    if practice.radius >= 0.0 and state.nu == 0.0 and tail.parameter_bound == np.inf:
        for i in range(n):
            if state.noise[i, FIRST_RESIDUAL] != 0.0 and must_undo_first(practice, unpack_noise(0.0, state.noise[i])):
                undo_first(state, i)
    half, direction = solve_in_halves(state.design, row)
    leverage, pulls = max(float(dot(row, direction)), 0.0), np.empty_like(response)
    for i in range(n):
        total = theta.dtype.type(0)
        for j in range(row.size):
            total += theta[i, j] * row[j]
        pulls[i] = response[i] - total
    rho, w = clip_residuals(state, row, response, pulls, leverage, nu)
    gain, weight = 1.0 / (rho * rho * (1.0 + w * w)), 1.0 / (tail.step * rho * rho)
    for i in range(n):
        pulls[i] *= gain
    largest = step_rows_along(theta, direction, pulls)
    design = append_solved(state.design, row, half, direction, weight)
    if largest > tail.parameter_bound * tail.parameter_bound:
        project_rows(design, theta, tail.parameter_bound)
    return HuberResponses(
        design=design,
        theta=theta,
        rows=state.rows + 1,
        nu=state.nu,
        noise=state.noise,
        starts=state.starts,
        settings=state.settings,
    )


@radius.for_state(HuberResponses)
def radius_of_huber(
    state: HuberResponses, noise: float, parameter_bound: float, row_bound: float, delta: float
) -> float:
    """Return the radius of the confidence ellipsoid, which holds for all n coordinates of the response at once.

    Each coordinate has the radius of one-pass Huber regression (Wang et al., lemma 1) at the level delta / (4 n).
    `parameter_bound` bounds the parameter's norm and `row_bound` the rows' norm; `noise` is not used.
    """
    n, dim = state.theta.shape
    tail = with_bounds(state.settings.tail, parameter_bound, row_bound, delta / (DELTAS * n))
    return confidence(tail, state.rows, dim)


@noise_scales.for_state(HuberResponses)
def noise_scales_of_huber(state: HuberResponses, squares: np.ndarray) -> np.ndarray:
    out = np.empty(squares.size)
    for i in range(out.size):
        out[i] = noise_level(unpack_noise(state.nu, state.noise[i]))
    return out


@update.for_state(RidgeResponses)
def update_ridge(state: RidgeResponses, row: np.ndarray, response: np.ndarray, nu: float) -> RidgeResponses:
    for i in range(response.size):
        for j in range(row.size):
            state.moment[i, j] += response[i] * row[j]
    return RidgeResponses(design=append(state.design, row), moment=state.moment, rows=state.rows + 1)


@update_rows.for_state(RidgeResponses)
def update_ridge_rows(
    state: RidgeResponses, rows: np.ndarray, responses: np.ndarray, nus: np.ndarray
) -> RidgeResponses:
    gain = dot(np.ascontiguousarray(responses.T), rows)
    for i in range(gain.shape[0]):
        for j in range(gain.shape[1]):
            state.moment[i, j] += gain[i, j]
    return RidgeResponses(design=append_rows(state.design, rows), moment=state.moment, rows=state.rows + rows.shape[0])


@coefficients.for_state(RidgeResponses)
def coefficients_of_ridge(state: RidgeResponses) -> np.ndarray:
    return solve_heads(state.design, state.moment)


@radius.for_state(RidgeResponses)
def radius_of_ridge(
    state: RidgeResponses, noise: float, parameter_bound: float, row_bound: float, delta: float
) -> float:
    """Return the confidence radius of ridge regression for each of n coordinates, at failure probability delta / n.

    `noise` is the sub-Gaussian constant of the noise, `parameter_bound` bounds the parameter's norm and `row_bound` the
    rows' norm.
    """
    return confidence_radius(state.design, state.rows, noise, parameter_bound, row_bound, delta / state.moment.shape[0])


@noise_scales.for_state(RidgeResponses)
def noise_scales_of_ridge(state: RidgeResponses, squares: np.ndarray) -> np.ndarray:
    """Return the root mean square of the residuals of every coordinate (n,).

    squares (n,) are the sums of squared responses. The sum of squared residuals plus reg ||theta||^2 is squares -
    moment^T theta, where moment is the sum of response times row.
    """
    out, theta = np.empty(squares.size), coefficients_of_ridge(state)
    for i in range(out.size):
        rest = squares[i]
        for j in range(theta.shape[1]):
            rest -= float(theta[i, j]) * float(state.moment[i, j])
        out[i] = np.sqrt(max(rest, 0.0) / max(state.rows, 1))
    return out


@update.register(AdaptiveResponses)
def update_adaptive(state: AdaptiveResponses, row: np.ndarray, response: np.ndarray, nu: float) -> AdaptiveResponses:
    columns = state.columns
    if nu > 0.0:
        columns = tuple(contract.set_next_noise(column, nu) for column in columns)
    return AdaptiveResponses(tuple(contract.update(column, row, float(y)) for column, y in zip(columns, response)))


@update_rows.register(AdaptiveResponses)
def update_adaptive_rows(
    state: AdaptiveResponses, rows: np.ndarray, responses: np.ndarray, nus: np.ndarray
) -> AdaptiveResponses:
    """Return the state after rows (t, D) with responses (t, n); the loss is minimized after every row.

    nus (t,) are the rows' noise scales, 0 if none is given.
    """
    for row, response, nu in zip(rows, responses, nus):
        state = update_adaptive(state, row, response, float(nu))
    return state


@coefficients.register(AdaptiveResponses)
def coefficients_of_adaptive(state: AdaptiveResponses) -> np.ndarray:
    return np.stack([column.theta for column in state.columns])


@count.register(AdaptiveResponses)
def count_of_adaptive(state: AdaptiveResponses) -> int:
    return int(state.columns[0].history.used)


@log_det_of_precision.register(AdaptiveResponses)
def log_det_of_adaptive(state: AdaptiveResponses) -> float:
    return float(log_det(state.columns[0].design))


@noise_scales.register(AdaptiveResponses)
def noise_scales_of_adaptive(state: AdaptiveResponses, squares: np.ndarray) -> np.ndarray:
    return np.array([contract.noise_unit(column) for column in state.columns])


@precision.register(AdaptiveResponses)
def precision_of_adaptive(state: AdaptiveResponses) -> np.ndarray:
    return matrix(state.columns[0].design)


@radius.register(AdaptiveResponses)
def radius_of_adaptive(
    state: AdaptiveResponses, noise: float, parameter_bound: float, row_bound: float, delta: float
) -> float:
    """Return the confidence radius of every coordinate of the next state, by the theorem of HEAVY-OFUL.

    `parameter_bound` bounds the parameter's norm and `row_bound` the rows' norm; `noise` is not used. With probability
    1 - `delta`, all n coordinates are within the radius at once, delta / n for each.
    """
    first, n = state.columns[0], len(state.columns)
    return contract.radius(first, first.history.used, noise, parameter_bound, row_bound, delta / n)
