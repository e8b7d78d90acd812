"""Parts that estimators for heavy-tailed rewards share: the scales of Wang et al., and a row's weight and reach.

    E|eta|^(1+eps) <= nu^(1+eps), eps in (0, 1];  p = (1 - eps) / (2 (1 + eps))
    kappa = d log(1 + L^2 T / (sigma_min^2 reg a d)),  tau_0 = sqrt(2 kappa) log(3T)^p / log(2T^2 / delta)^(1/(1+eps))

Anywhere a horizon T is asked for and none was given, the present round t stands in its place (the papers need T;
anytime use is ours, and no theorem covers it). delta is 1 / (8T), as in Wang et al.'s theorem, unless `Theory` gives
one: then Theory's delta over the number of deltas that the estimator's theorem spends, so that the radius holds with
probability 1 - Theory's delta. Thresholds, guards and radius take one and the same.

In practice the matrix is in units of rows alone, V = reg I + sum of x x^T / (a rho^2), and widths are multiplied by nu,
the size of the noise: where no row is told its own noise rho is 1, and what is not clipped is ridge regression. In the
theorem rho is sigma itself and widths are multiplied by 1. The two are the same but for reg, which is nu^2 times as
large in practice, so that units of rewards cancel.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.design.design import Design
from onepass.estimator.noise_scale import Noise, noise_level, outlier_scale
from onepass.exploration.confidence_width import Theory
from onepass.foundation import check
from onepass.foundation.check import quote
from onepass.foundation.generic import compiled

# chosen on validation seeds over six tails, and on 0/1 rewards of six data sets (docs/heavy_tails.md)
EXPLORATION, CLIP, FLOOR, STEP = 1.5, 0.02, 3.0, 1.0


class Tail(NamedTuple):
    """epsilon; horizon T (0: any time); parameter_bound S, row_bound L; delta as in tau_0 (0: 1 / (8T)); reg; step."""

    epsilon: float
    horizon: int
    parameter_bound: float
    row_bound: float
    delta: float
    reg: float
    step: float


class Practice(NamedTuple):
    """Settings in place of constants from proofs.

    Radius of the guard (0: none, negative: the theorem's beta), clip (times tau_0), floor (least tau, in predictive
    deviations).
    """

    radius: float
    clip: float
    floor: float


class Clipping(NamedTuple):
    """Settings of Huber regression."""

    tail: Tail
    practice: Practice


class Truncation(NamedTuple):
    """Settings of what truncates: bound of the moment of order 1 + epsilon; clip: times the threshold."""

    tail: Tail
    bound: float
    clip: float


class Scales(NamedTuple):
    """Scales of round t: T, growth t^p, tau_0, the logarithm log(2 T^2 / delta), kappa."""

    horizon: float
    growth: float
    tau: float
    logarithm: float
    kappa: float


@compiled
def power(epsilon: float) -> float:
    """Return p = (1 - eps) / (2 (1 + eps))."""
    return (1.0 - epsilon) / (2.0 * (1.0 + epsilon))


@compiled
def horizon_and_delta(tail: Tail, t: int) -> tuple[float, float]:
    """T and delta in round t >= 1."""
    horizon = float(tail.horizon) if tail.horizon > 0 else float(max(t, 1))
    return horizon, tail.delta if tail.delta > 0.0 else 1.0 / (8.0 * horizon)


@compiled
def scales(tail: Tail, t: int, dim: int) -> Scales:
    """Return the scales of round t >= 1, with sigma_min = 1 / sqrt(T); growth of round 0 is 1, not Wang et al.'s 0."""
    horizon, delta = horizon_and_delta(tail, t)
    p, logarithm = power(tail.epsilon), np.log(2.0 * horizon * horizon / delta)
    spread = tail.row_bound * horizon
    kappa = dim * np.log1p(spread * spread / (tail.reg * tail.step * dim))
    tau = np.sqrt(2.0 * kappa) * np.log(3.0 * horizon) ** p / logarithm ** (1.0 / (1.0 + tail.epsilon))
    return Scales(horizon=horizon, growth=float(max(t, 1)) ** p, tau=tau, logarithm=logarithm, kappa=kappa)


@compiled
def with_bounds(tail: Tail, parameter_bound: float, row_bound: float, delta: float) -> Tail:
    """Return the tail with the constants of a rule; delta as in tau_0."""
    return Tail(
        epsilon=tail.epsilon,
        horizon=tail.horizon,
        parameter_bound=parameter_bound,
        row_bound=row_bound,
        delta=delta,
        reg=tail.reg,
        step=tail.step,
    )


@compiled
def rho_bound(tail: Tail, practice: Practice, s: Scales, beta: float, width: float) -> float:
    """Wang et al.'s bound of rho from below: sqrt(2 beta / (tau_0 sqrt(a) t^p)) ||x||_{V^-1}."""
    return np.sqrt(2.0 * beta / (practice.clip * s.tau * s.growth * np.sqrt(tail.step))) * width


@compiled
def normalize_row(
    tail: Tail, practice: Practice, s: Scales, noise: Noise, known: Noise, common: bool, width: float, least: float
) -> tuple[float, float, float]:
    """Return rho >= least, w = width / (rho sqrt(a)) and the mark of a row of width ||x||_{V^-1}.

    `noise` is the noise as it was told, `known` the noise that knows the row's reward, which may be common.

    Residuals are clipped at the mark, tau sigma with tau = max(clip tau_0 t^p sqrt(1 + w^2) / w, floor sqrt(1 + w^2)).
    In the theorem sigma = rho = max(nu, sigma_min, least). In practice sigma is what the row was told, nu as given, or
    the running one, and rho = max(told / nu, sigma_min, least), 1 where nothing was told; a common reward is not
    clipped.
    """
    shortest, nu = 1.0 / np.sqrt(s.horizon), noise_level(known)
    if practice.radius < 0.0:
        rho = max(noise.next if noise.next > 0.0 else nu, shortest, least)
        sigma = rho
    else:
        share = noise.next / nu if noise.next > 0.0 and nu > 0.0 else 1.0
        rho = max(share, shortest, least)
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
) -> Tail:
    """deltas: how many the theorem spends; None: no ball, any time.

    ValueError for epsilon outside (0, 1], a horizon below 1, a ball that is empty or beside theory, which has its own.
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
        reg=design.params["reg"],
        step=step,
    )


def make_practice(radius: Any, clip: Any, floor: Any, theory: Theory | None) -> Practice:
    """Return the checked settings of practice.

    Raises ValueError for a radius or floor below 0, or a clip that is not positive.

    None selects the default, which depends on the presence of a theory: with one, clip = 1 and floor = 0.
    """
    clip = (CLIP if theory is None else 1.0) if clip is None else check.positive("clip", clip)
    floor = (FLOOR if theory is None else 0.0) if floor is None else check.real("floor", floor)
    radius = check.real("radius", radius)
    for name, value in (("radius", radius), ("floor", floor)):
        if value < 0.0:
            raise ValueError(f"{name} must be at least 0, got {quote(value)}")
    return Practice(radius=-1.0 if theory is not None else radius, clip=clip, floor=floor)


def repetitions(repeats: Any, tail: Tail, factor: float, inside: float) -> int:
    """`repeats`, or ceil(factor log(inside T / delta)) for None; ValueError below 1, or for None without a horizon."""
    if repeats is not None:
        return check.integer("repeats", repeats, 1)
    if tail.horizon == 0:
        raise ValueError("horizon must be given, for the number of repeats follows from it; or give repeats")
    horizon, delta = horizon_and_delta(tail, 1)
    return int(np.ceil(factor * np.log(inside * horizon / delta)))
