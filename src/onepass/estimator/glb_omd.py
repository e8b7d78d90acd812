"""GLB-OMD: generalized linear rewards by one step of online mirror descent a row (Zhang, Xu, Zhao and Sugiyama 2025).

A row x with reward r changes the estimate theta and the matrix H as follows, with step size eta:

    z = x^T theta,  u = H^-1 x,  q = x^T u,  c = eta mu'(z)
    theta <- theta + eta (r - mu(z)) u / (1 + c q),   then to the nearest of ||theta|| <= S in the norm of H + c x x^T
    H <- H + mu'(x^T theta) x x^T                      the slope at the new theta; H = reg I at first

Here mu is the mean function of the reward family, R its constant (families.py), and S bounds ||theta_*||. The step
minimizes, over the ball, the second-order expansion of the loss at theta plus ||theta' - theta||_H^2 / (2 eta). The
theorem has eta = 1 + R S and a ball. In practice eta = 1 without a ball is better (docs/clicks/compared.md). A row
costs one solve, on any design.

With `implicit`, the step minimizes the loss itself in place of its expansion, so that no step overshoots. The only
unknown is s = x^T theta', with s = z + eta q (r - mu(s)). A step by the expansion may be far too long if mu' is small,
as at a rare click or a large count.

With `clip`, the residual r - mu(z) is clipped at +-clip sqrt(1 / q + mu'(z)), which equals clip sqrt(mu'(z)) sqrt(1 +
w^2) / w for w^2 = mu'(z) q. This is a few standard deviations of a reward while little is known about x, and more as x
becomes known (as in one_pass_huber.py). So one reward, however large, moves x^T theta by at most eta clip times the
width sqrt(q) of x.

The confidence radius is beta^2 = reg ||theta_*||^2 + 2 eta s ln(1 / delta) + k eta^2 s G / v + g (S + ||theta_*||)^2,
where G is the sum of ln(1 + w q) over all rows with their weights w = mu'. On exact designs G = log det H - log det reg
I. tests/estimator/test_generalized_radius.py defines s, k, v and g, and derives the radius, for sketches as well. It
needs a family whose mu' is log-concave (families.py).
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.design.contract import append, solve, spectrum
from onepass.design.design import Design
from onepass.design.potential_growth import potential_growth
from onepass.design.truncation import UNKNOWN
from onepass.estimator.arm_update_rules import NewtonSteps, arm_step
from onepass.estimator.contract import forget, link, radius, update
from onepass.estimator.estimator import ArmLearning, Estimator, check_design, init_design_and_theta
from onepass.estimator.families import (
    check_radius_conditions,
    concordance,
    dispersion,
    family_argument,
    family_of,
    max_slope,
    mean,
    slope,
)
from onepass.estimator.newton import assign_if_finite, forget_rows, project_onto_ball, step_along
from onepass.exploration.confidence_width import Theory
from onepass.foundation import check
from onepass.foundation.check import quote
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import dot
from onepass.foundation.registry import savable

HALVINGS = 200  # at most, of an interval in which one unknown is sought: more than any float has digits and exponents
DIGITS = 1e-14  # of the interval, relative: below it the unknown is known


class GLBOMDSettings(NamedTuple):
    """Settings of GLB-OMD.

    - family: reward family.
    - step: step size eta.
    - bound: radius S of the ball for theta; infinite if there is none.
    - implicit: 1 if a step minimizes the loss itself, 0 if it minimizes a quadratic approximation of the loss.
    - clip: limit of a step, in widths; infinite if there is none.
    - reg: regularization of the design.
    """

    family: Any
    step: float
    bound: float
    implicit: int
    clip: float
    reg: float


class GLBOMDRule(NamedTuple):
    """Update rule by which every arm of many takes GLB-OMD steps with `settings`; theta is not restricted to a ball."""

    settings: GLBOMDSettings


class GLBOMDState(NamedTuple):
    """State of GLB-OMD, with the design H = reg I + sum of w x x^T over rows x.

    The weight w is the derivative of the mean function at x^T theta. `design` is H, theta (dim,) is the estimate, and
    `gain` is the sum of ln(1 + w x^T H^-1 x), on which the confidence radius depends.
    """

    design: Any
    theta: np.ndarray
    gain: float
    settings: GLBOMDSettings


@compiled
def solve_implicit(family: Any, z: float, target: float, reach: float) -> float:
    """Return the solution s of s = z + reach (target - mu(s)), where mu is the family's mean function.

    It lies between z and z + reach (target - mu(z)), and is found by Newton's method, with a bisection if a step leaves
    the remaining interval or does not shrink by half.
    """
    low, high = z, z + reach * (target - mean(family, z))
    if low > high:
        low, high = high, low
    s, last = z, np.inf
    for _ in range(HALVINGS):
        away = s - z - reach * (target - mean(family, s))
        if away > 0.0:
            high = min(s, high)
        else:
            low = max(s, low)
        step = away / (1.0 + reach * slope(family, s))
        if abs(step) <= DIGITS * abs(s) or not high - low > DIGITS * (abs(low) + abs(high)):
            break
        s -= step
        if not low < s < high or abs(step) > 0.5 * last:
            s = 0.5 * (low + high)
        last = abs(step)
    return s


@compiled
def pull(settings: GLBOMDSettings, z: float, q: float, reward: float) -> float:
    """Return the number p by which theta moves for a reward of the row x: theta += p H^-1 x, with the design H.

    z is x^T theta, and q is x^T H^-1 x.
    """
    family, eta, middle = settings.family, settings.step, mean(settings.family, z)
    residual = reward - middle
    if settings.clip < np.inf and q > 0.0:
        most = settings.clip * np.sqrt(1.0 / q + slope(family, z))
        residual = min(max(residual, -most), most)
    if settings.implicit == 1 and q > 0.0:
        return eta * (middle + residual - mean(family, solve_implicit(family, z, middle + residual, eta * q)))
    return eta * residual / (1.0 + eta * slope(family, z) * q)


@compiled
def project_onto_tilted_ball(design: Any, theta: np.ndarray, row: np.ndarray, weight: float, bound: float) -> None:
    """Project theta onto ||theta|| <= bound in the norm of M = A + weight x x^T, in place; A is the design, x the row.

    The projection is theta' = (M + mu I)^-1 M theta with the mu at which ||theta'|| = bound. It is computed in the
    eigenvectors of A, where x x^T is a rank-one change (Sherman and Morrison). mu is found by bisection.
    """
    if not float(dot(theta, theta)) > bound * bound:
        return
    values, vectors, rest = spectrum(design)
    k, along = values.size, weight * float(dot(row, theta))
    inside, inner = dot(vectors, theta).astype(np.float64), dot(vectors, row).astype(np.float64)
    outside, outer = dot(inside.astype(theta.dtype), vectors), dot(inner.astype(theta.dtype), vectors)
    tt, tx, xx = 0.0, 0.0, 0.0  # products of what theta and x have outside
    for j in range(theta.size):
        outside[j], outer[j] = theta[j] - outside[j], row[j] - outer[j]
    for j in range(theta.size):
        tt, tx, xx = tt + outside[j] * outside[j], tx + outside[j] * outer[j], xx + outer[j] * outer[j]
    for i in range(k):  # M theta = A theta + weight (x^T theta) x
        inside[i] = values[i] * inside[i] + along * inner[i]
    ss, sx = rest * rest * tt + 2.0 * rest * along * tx + along * along * xx, rest * tx + along * xx
    low, high, shift, share = 0.0, 0.0, float(rest) + weight * float(dot(row, row)), 0.0
    for _ in range(2 * HALVINGS):
        cross, square = sx / (rest + shift), xx / (rest + shift)
        for i in range(k):
            cross, square = (
                cross + inner[i] * inside[i] / (values[i] + shift),
                square + inner[i] * inner[i] / (values[i] + shift),
            )
        share = weight * cross / (1.0 + weight * square)
        length = (ss - 2.0 * share * sx + share * share * xx) / (rest + shift) ** 2
        for i in range(k):
            length += ((inside[i] - share * inner[i]) / (values[i] + shift)) ** 2
        if length > bound * bound:
            low = shift
        else:
            high = shift
        if high > 0.0 and not high - low > DIGITS * high:
            break
        shift = 0.5 * (low + high) if high > 0.0 else 4.0 * shift
    for i in range(k):
        inside[i] = (inside[i] - share * inner[i]) / (values[i] + shift)
    found = dot(inside.astype(theta.dtype), vectors)
    for j in range(theta.size):
        found[j] += (rest * outside[j] + (along - share) * outer[j]) / (rest + shift)
    assign_if_finite(theta, found)


@update.for_state(GLBOMDState)
def update_glb_omd(state: GLBOMDState, row: np.ndarray, reward: float) -> GLBOMDState:
    theta, settings, scaled = state.theta, state.settings, np.empty_like(row)
    direction = solve(state.design, row)
    q, z = max(float(dot(row, direction)), 0.0), float(dot(row, theta))
    step_along(theta, direction, pull(settings, z, q, reward))
    if settings.bound < np.inf:
        project_onto_tilted_ball(state.design, theta, row, settings.step * slope(settings.family, z), settings.bound)
    weight = slope(settings.family, float(dot(row, theta)))
    for j in range(row.size):
        scaled[j] = np.sqrt(weight) * row[j]
    return GLBOMDState(
        design=append(state.design, scaled), theta=theta, gain=state.gain + np.log1p(weight * q), settings=settings
    )


@arm_step.for_state(GLBOMDRule)
def step_by_glb_omd(
    rule: GLBOMDRule, memory: np.ndarray, dim: int, z: float, q: float, t: int, reward: float
) -> tuple[float, float]:
    """Return the weight w and the step size p of a row x in an arm: A += w x x^T and theta += p A^-1 x.

    w is the derivative of the mean function after the step. z is x^T theta, q is x^T A^-1 x, and t the number of the
    row in its arm. The rule keeps no numbers for an arm, so `memory` is empty.
    """
    step = pull(rule.settings, z, q, reward)
    return slope(rule.settings.family, z + step * q), step


@link.for_state(GLBOMDState)
def link_of_glb_omd(state: GLBOMDState) -> Any:
    return state.settings.family


@forget.for_state(GLBOMDState)
def forget_glb_omd(state: GLBOMDState, factor: float) -> GLBOMDState:
    """Return the state in which past rows count `factor` times, with theta projected into its ball ||theta|| <= S.

    Afterwards no confidence radius is known, as for every estimator that takes steps (online_newton.py).
    """
    design = forget_rows(state.design, state.theta, factor)
    project_onto_ball(design, state.theta, state.settings.bound)
    return GLBOMDState(design=design, theta=state.theta, gain=UNKNOWN, settings=state.settings)


# ---- the radius ----


@radius.for_state(GLBOMDState)
def radius_of_glb_omd(
    state: GLBOMDState, rounds: int, noise: float, parameter_bound: float, row_bound: float, delta: float
) -> float:
    s, both = state.settings, state.settings.bound + parameter_bound
    curved, spread = concordance(s.family), dispersion(s.family, noise)
    if not (parameter_bound <= s.bound < np.inf) or s.implicit == 1 or s.clip < np.inf or state.gain >= UNKNOWN:
        return np.inf
    left = 1.0 - s.step * curved * max_slope(s.family, row_bound * s.bound) * row_bound**3 * both / s.reg
    if s.step < 1.0 + 0.5 * curved * row_bound * both or not left > 0.0:
        return np.inf
    exponent = 0.5 * curved**2 * s.step * spread / left * row_bound**2 / s.reg
    excess = np.expm1(exponent) / exponent if exponent > 0.0 else 1.0
    learned = 2.0 * np.log(1.0 / delta) + excess * s.step / left * state.gain
    return np.sqrt(
        s.reg * parameter_bound**2 + s.step * spread * learned + potential_growth(state.design) * both * both
    )


def least_reg(family: Any, theory: Theory) -> float:
    """Return the regularization above which the confidence radius is proved, 2 S L^3 R eta max mu'.

    S and L are the theory's bounds on the norms of the parameter and of rows. eta = 1 + R L S is the step size, and mu'
    the derivative of the family's mean function, with |mu''| <= R mu'. For the identity the result is 0.
    """
    curved, length, bound = concordance(family), theory.row_bound, theory.parameter_bound
    eta = 1.0 + curved * length * bound
    return float(eta * curved * length**3 * 2.0 * bound * max_slope(family, length * bound))


@savable
class OnePassGLM(Estimator):
    """Generalized linear regression in one pass: the mean reward of a row x is mu(x^T theta), and no history is kept.

    mu is the mean function of the family, and mu' and mu'' are its derivatives. For clicks mu(z) = 1 / (1 + exp(-z)). A
    row takes one solve and one append of the design.

    Parameters
    ----------
    design : Design
        Any design. It is copied. Its reg is in units of mu' ||x||^2. For clicks, choose about a fifth of the reg that
        suits ridge regression.
    family : {"logistic", "poisson", "identity"} or NamedTuple, default "logistic"
        The family of rewards: "logistic" for clicks (0 to 1), "poisson" for counts (from 0), "identity" for any
        rewards. A family of your own is a NamedTuple as in onepass/estimator/families.py.
    step : float, optional
        The step size eta, above 0. Defaults to 1.0. With `theory` it is 1 + R L S, where L is the theory's `row_bound`
        and S its `parameter_bound`. R is a constant of the family for which |mu''| <= R mu': 1 for clicks and counts, 0
        for "identity".
    parameter_bound : float, optional
        The estimate is kept in the ball ||theta|| <= S, with this number S above 0. By default there is no ball.
        `theory` has a bound of its own.
    implicit : bool, optional
        If True, a step minimizes the loss itself, so it cannot overshoot. If False, a step minimizes a quadratic
        approximation of the loss, as in the proof. Defaults to True without a ball and to False with one.
    clip : float, optional
        Above 0. A reward of a row x moves x^T theta by at most step * clip times the width sqrt(x^T A^-1 x), where A is
        the matrix of the design. By default steps are not clipped. Use it for counts with outliers. Clicks have no
        outliers: with a clip of at least 1 / sqrt(reg), no click is ever clipped.
    theory : Theory, optional
        Use the step size and the ball of the theorem, for which a confidence radius is proved. The theorem needs a reg
        above 2 S L^3 R eta max mu', with S, L, R and eta as in `step`. For clicks and L = 1 this is (1 + S) S / 2.
        Twice that is a good choice. By default the theorem is not used, and no radius is proved.

    Raises
    ------
    ValueError
        If an argument is outside its range, or `step`, `parameter_bound`, `implicit` or `clip` is given beside
        `theory`.
    """

    design: Design
    family: Any

    def __init__(
        self,
        design: Design,
        *,
        family: Any = "logistic",
        step: float | None = None,
        parameter_bound: float | None = None,
        implicit: bool | None = None,
        clip: float | None = None,
        theory: Theory | None = None,
    ) -> None:
        self.design, self.family = check_design(design), family_of(family)
        if theory is not None and not isinstance(theory, Theory):
            raise ValueError(f"theory must be a onepass.Theory or None, got {quote(theory)}")
        given = {"step": step, "parameter_bound": parameter_bound, "implicit": implicit, "clip": clip}
        for name, value in given.items():
            if theory is not None and value is not None:
                raise ValueError(f"{name} must be None beside theory, which has its own, got {quote(value)}")
        eta, bound = 1.0 if step is None else check.positive("step", step), np.inf
        if parameter_bound is not None:
            bound = check.positive("parameter_bound", parameter_bound)
        if implicit is None:
            solves = bound == np.inf and theory is None
        else:
            solves = check.choice("implicit", implicit, (False, True))
        if theory is not None:
            check_radius_conditions(self.family)
            bound = theory.parameter_bound
            eta, least = 1.0 + concordance(self.family) * theory.row_bound * bound, least_reg(self.family, theory)
            if not self.design.reg > least:
                raise ValueError(
                    f"design must have a reg above {least:g} beside theory={quote(theory)}, got {quote(self.design)}"
                )
        self.has_radius: bool = theory is not None and not design.has_learned
        self._settings = GLBOMDSettings(
            family=self.family,
            step=eta,
            bound=bound,
            implicit=int(solves),
            clip=np.inf if clip is None else check.positive("clip", clip),
            reg=float(self.design.reg),
        )
        self.options: dict[str, Any] = {"family": family_argument(self.family), **given, "theory": theory}

    def begin(self) -> GLBOMDState:
        design, theta = init_design_and_theta(self.design)
        return GLBOMDState(design=design, theta=theta, gain=0.0, settings=self._settings)

    def arm_learning(self) -> ArmLearning | None:
        """Return the update rule of arms, which takes the same steps as a shared model, unless there is a ball.

        Returns
        -------
        ArmLearning or None
            The update rule of an arm; None if theta is restricted to a ball.
        """
        if self._settings.bound < np.inf:
            return None
        return ArmLearning(rule=NewtonSteps(rule=GLBOMDRule(settings=self._settings)), memory=0)

    def consistent(self, state: GLBOMDState) -> bool:
        return (
            state.theta.shape == (self.design.dim,)
            and state.settings == self._settings
            and state.gain >= 0.0
            and self.design.consistent(state.design)
        )
