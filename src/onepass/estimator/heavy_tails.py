"""Parts shared by the estimators for heavy-tailed rewards: scales of the noise, weights of rows, and clipping.

The noise eta has a moment of order 1 + eps of at most nu^(1+eps). Rows have d entries and length at most L, and T rows
are learned in all. reg is the ridge, a the step parameter of one_pass_huber.py, and sigma_min the smallest noise scale.
Wang et al. define

    E|eta|^(1+eps) <= nu^(1+eps), eps in (0, 1];  p = (1 - eps) / (2 (1 + eps))
    kappa = d log(1 + L^2 T / (sigma_min^2 reg a d)),  tau_0 = sqrt(2 kappa) log(3T)^p / log(2T^2 / delta)^(1/(1+eps))

A residual is clipped at a threshold proportional to tau_0. If no horizon T was given, the present round t replaces it.
This is our own choice, and no theorem covers it.

delta is 1 / (8T), as in the theorem of Wang et al., unless `Theory` gives one. The delta of `Theory` is divided by the
number of failure events in the estimator's theorem, so that the radius holds with probability 1 - Theory's delta.
Thresholds and radius use the same delta.

The matrix is V = reg I + sum of x x^T / (a rho^2). In the theorem, rho is the noise scale sigma of the row. In
practice, rho is 1 unless a row comes with its own noise scale, and widths are multiplied by nu, the size of the noise.
Rows that are not clipped then give ridge regression. Both forms are equal except for reg, which in practice counts nu^2
times as much. So results do not depend on the unit of the rewards.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.design.design import Design
from onepass.estimator.noise_scale import Noise, noise_level, outlier_scale
from onepass.exploration.confidence_width import Theory
from onepass.foundation import check
from onepass.foundation.check import quote
from onepass.foundation.generic import compiled

# chosen on validation seeds over six tails, and on 0/1 rewards of six data sets (docs/heavy_tails_settings.md)
EXPLORATION, CLIP, FLOOR, STEP = 1.5, 0.02, 3.0, 1.0


class Tail(NamedTuple):
    """Constants of an estimator for heavy-tailed noise.

    - epsilon: moments of order 1 + epsilon are finite.
    - horizon: T, the total number of rows; 0 if it is unknown.
    - parameter_bound, row_bound: bounds S >= ||theta_*|| and L >= ||x||.
    - delta: probability of failure in the threshold tau_0 of residuals; 0 means 1 / (8T).
    - reg: regularization of the design.
    - step: the factor a, which divides the weight of a row.
    - sigma_min: smallest noise scale; 0 means 1 / sqrt(T).
    """

    epsilon: float
    horizon: int
    parameter_bound: float
    row_bound: float
    delta: float
    reg: float
    step: float
    sigma_min: float


class Practice(NamedTuple):
    """Settings that replace the constants of proofs.

    - radius: confidence radius in the lower bound of a row's scale; 0 for no bound, negative for the theorem's radius.
    - clip: factor of the threshold at which residuals are clipped.
    - floor: smallest threshold, in standard deviations of the prediction error.
    """

    radius: float
    clip: float
    floor: float


class Clipping(NamedTuple):
    """Settings of Huber regression: `tail` has the noise's constants, and `practice` replaces constants of proofs."""

    tail: Tail
    practice: Practice


class Truncation(NamedTuple):
    """Settings of estimators that truncate rewards.

    `tail` has the constants of the noise, `bound` is the bound of the rewards' moment of order 1 + epsilon, and `clip`
    is the factor of the truncation threshold.
    """

    tail: Tail
    bound: float
    clip: float


class Scales(NamedTuple):
    """Numbers of round t on which thresholds of residuals and confidence radii depend.

    The symbols are defined at the top of this module.

    - horizon: T, the total number of rows, or t if it is unknown.
    - growth: t^p, the factor by which thresholds grow with the round.
    - tau: tau_0, to which the thresholds of residuals are proportional.
    - logarithm: log(2 T^2 / delta), with the failure probability delta.
    - kappa: the term of the thresholds and radii that grows with the dimension d.
    - sigma_min: smallest noise scale of a row.
    """

    horizon: float
    growth: float
    tau: float
    logarithm: float
    kappa: float
    sigma_min: float


@compiled
def power(epsilon: float) -> float:
    """Return the exponent p = (1 - epsilon) / (2 (1 + epsilon)) by which thresholds grow with the round."""
    return (1.0 - epsilon) / (2.0 * (1.0 + epsilon))


@compiled
def horizon_and_delta(tail: Tail, t: int) -> tuple[float, float]:
    """Return the horizon T and the failure probability delta that apply in round t >= 1.

    `tail` holds both if they were given. Otherwise the horizon is t, and delta is 1 / (8T).
    """
    horizon = float(tail.horizon) if tail.horizon > 0 else float(max(t, 1))
    return horizon, tail.delta if tail.delta > 0.0 else 1.0 / (8.0 * horizon)


@compiled
def scales(tail: Tail, t: int, dim: int) -> Scales:
    """Return the `Scales` of round t >= 1, on which thresholds of residuals and confidence radii depend.

    The growth t^p of round 0 is 1, where Wang et al. have 0.
    """
    horizon, delta = horizon_and_delta(tail, t)
    p, logarithm = power(tail.epsilon), np.log(2.0 * horizon * horizon / delta)
    sigma_min = tail.sigma_min if tail.sigma_min > 0.0 else 1.0 / np.sqrt(horizon)
    spread = tail.row_bound * np.sqrt(horizon) / sigma_min
    kappa = dim * np.log1p(spread * spread / (tail.reg * tail.step * dim))
    tau = np.sqrt(2.0 * kappa) * np.log(3.0 * horizon) ** p / logarithm ** (1.0 / (1.0 + tail.epsilon))
    growth = float(max(t, 1)) ** p
    return Scales(horizon=horizon, growth=growth, tau=tau, logarithm=logarithm, kappa=kappa, sigma_min=sigma_min)


@compiled
def with_bounds(tail: Tail, parameter_bound: float, row_bound: float, delta: float) -> Tail:
    """Return the constants `tail` with other bounds of the parameter and of rows, and another failure probability.

    The three replace the fields `parameter_bound`, `row_bound` and `delta`.
    """
    return Tail(
        epsilon=tail.epsilon,
        horizon=tail.horizon,
        parameter_bound=parameter_bound,
        row_bound=row_bound,
        delta=delta,
        reg=tail.reg,
        step=tail.step,
        sigma_min=tail.sigma_min,
    )


@compiled
def rho_bound(tail: Tail, practice: Practice, s: Scales, beta: float, width: float) -> float:
    """Return the smallest scale rho that a row x may have (Wang et al.); the row has the weight 1 / rho^2.

    It is sqrt(2 beta / (c tau_0 sqrt(a) t^p)) width, where `width` is sqrt(x^T V^-1 x) for the design V, and `beta` a
    confidence radius. a is the `step` of `Tail`, c the `clip` of `Practice`, and tau_0 and t^p are in the `Scales` s.
    """
    return np.sqrt(2.0 * beta / (practice.clip * s.tau * s.growth * np.sqrt(tail.step))) * width


@compiled
def normalize_row(
    tail: Tail, practice: Practice, s: Scales, noise: Noise, known: Noise, common: bool, width: float, least: float
) -> tuple[float, float, float]:
    """Return three numbers of a row x: the scale rho, the normalized width w, and the limit of the residual.

    The limit, at which the residual is clipped, is tau sigma with tau = max(clip tau_0 t^p sqrt(1 + w^2) / w, floor
    sqrt(1 + w^2)). It is infinite if w = 0, and outside the theorem also for a common reward. The arguments are:

    - tail: its `step` is a in w = width / (rho sqrt(a)).
    - practice: its `clip` and `floor` are in tau. A negative `radius` selects the theorem.
    - s: its `tau`, `growth` and `sigma_min` are tau_0, t^p and sigma_min.
    - noise: noise estimate before the row. Its `next` is the row's own noise scale, 0 if there is none.
    - known: noise estimate after the row's reward, from which the noise level nu is computed.
    - common: True if many earlier rewards equal the row's reward.
    - width: sqrt(x^T V^-1 x) for the design V.
    - least: lower bound of rho.

    In the theorem sigma = rho = max(own scale, or nu without one, sigma_min, least). Otherwise rho = max(own scale /
    nu, sigma_min, least), with 1 in place of the ratio if there is no own scale. Then sigma is the row's own scale if
    it has one, else the constant `nu` of `noise`, else the running estimate. It is multiplied by rho / ratio.
    """
    nu = noise_level(known)
    if practice.radius < 0.0:
        rho = max(noise.next if noise.next > 0.0 else nu, s.sigma_min, least)
        sigma = rho
    else:
        share = noise.next / nu if noise.next > 0.0 and nu > 0.0 else 1.0
        rho = max(share, s.sigma_min, least)
        sigma = noise.next if noise.next > 0.0 else noise.nu if noise.nu > 0.0 else outlier_scale(known)
        sigma *= rho / share
    w = width / (rho * np.sqrt(tail.step))
    if w == 0.0 or (common and practice.radius >= 0.0):
        return rho, w, np.inf
    wide = np.sqrt(1.0 + w * w)
    return rho, w, max(practice.clip * s.tau * s.growth * wide / w, practice.floor * wide) * sigma


def make_tail(
    design: Design,
    epsilon: Any,
    horizon: Any,
    step: float,
    parameter_bound: Any,
    theory: Theory | None,
    deltas: int = 1,
    sigma_min: Any = None,
) -> Tail:
    """Return the checked constants of an estimator for heavy-tailed noise.

    `step` is the number that divides the weight of a row, and `deltas` how many failure probabilities the estimator's
    theorem spends. A `parameter_bound` of None means no ball, a `horizon` of None any number of rows, a `sigma_min` of
    None 1 / sqrt(T). Raises ValueError if epsilon is outside (0, 1], the horizon below 1, `sigma_min` not above 0 or
    the ball empty, or if a ball is given although `theory` has its own.
    """
    epsilon = check.positive("epsilon", epsilon, "moments of order 1 + epsilon are finite, epsilon in (0, 1]")
    if epsilon > 1.0:
        raise ValueError(f"epsilon must be above 0 and at most 1, got {quote(epsilon)}; for a finite variance it is 1")
    if theory is not None and not isinstance(theory, Theory):
        raise ValueError(f"theory must be a onepass.Theory or None, got {quote(theory)}")
    horizon = 0 if horizon is None else check.integer("horizon", horizon, 1)
    bound = np.inf if theory is None else theory.parameter_bound
    if parameter_bound is not None:
        if theory is not None:
            raise ValueError(
                f"parameter_bound must be None beside theory, which has its own, got {quote(parameter_bound)}"
            )
        bound = check.positive("parameter_bound", parameter_bound)
    row_bound, delta = (1.0, 0.0) if theory is None else (theory.row_bound, theory.delta / deltas)
    return Tail(
        epsilon=epsilon,
        horizon=horizon,
        parameter_bound=bound,
        row_bound=row_bound,
        delta=delta,
        reg=design.reg,
        step=step,
        sigma_min=0.0 if sigma_min is None else check.positive("sigma_min", sigma_min),
    )


def make_practice(radius: Any, clip: Any, floor: Any, theory: Theory | None) -> Practice:
    """Return the settings `radius`, `clip` and `floor` as a `Practice`, which explains them.

    None for `clip` or `floor` takes the default: clip = 0.02 and floor = 3 without a `theory`, clip = 1 and floor = 0
    with one. `radius` has no default here. With a theory the result has the radius -1, which stands for the radius of
    the theorem. An infinite clip never clips.

    Raises ValueError for a radius or floor below 0, or a clip that is not positive.
    """
    if clip is None:
        clip = CLIP if theory is None else 1.0
    elif clip != np.inf:
        clip = check.positive("clip", clip)
    floor = (FLOOR if theory is None else 0.0) if floor is None else check.real("floor", floor)
    radius = check.real("radius", radius)
    for name, value in (("radius", radius), ("floor", floor)):
        if value < 0.0:
            raise ValueError(f"{name} must be at least 0, got {quote(value)}")
    return Practice(radius=-1.0 if theory is not None else radius, clip=clip, floor=floor)


def repetitions(repeats: Any, tail: Tail, factor: float, inside: float) -> int:
    """Return how often an arm is played in a row: `repeats`, or ceil(factor log(inside T / delta)) if it is None.

    Raises ValueError if it is below 1, or if it is None and there is no horizon T.
    """
    if repeats is not None:
        return check.integer("repeats", repeats, 1)
    if tail.horizon == 0:
        raise ValueError("horizon must be given, for the number of repeats follows from it; or give repeats")
    horizon, delta = horizon_and_delta(tail, 1)
    return int(np.ceil(factor * np.log(inside * horizon / delta)))
