"""The online Newton step for the squared loss: recursive least squares on any design.

A row x with reward r changes A and theta by

    A <- A + x x^T / a,   theta <- theta + A^-1 (r - x^T theta) x

With a = 1 and an exact design this is ridge regression, theta = A^-1 b with b = sum of r x. On a sketch A_hat the two
differ, and the steps are better: each step corrects the error of the present theta, while in A_hat^-1 b the moment b
belongs to rows that A_hat has lost. docs/sketches.md compares both.

The confidence radius for a = 1 is derived as follows. Let e = theta - theta_*, let eta be the noise, q = x^T A^-1 x
before the row, and V = e^T A e. Then V changes by

    a row    V <- V + eta^2 - (r - x^T theta)^2 / (1 + q)                     exactly
    a cut    V <- e^T A' e <= V + rise (S + ||theta||)^2                      where A' <= A + rise I; theta stays

Plain Frequent Directions has rise 0, so a cut can only shrink V. If the noise is R-sub-Gaussian, the first line gives E
exp(dV / 2R^2) <= sqrt(1 + q) for the change dV by a row. So exp(V / 2R^2) / prod sqrt(1 + q), with the contributions of
cuts subtracted from V, is a supermartingale. By Ville's inequality, with probability 1 - delta in all rounds, for
||theta_*|| <= S,

    V <= reg S^2 + (S sqrt(sum of rise) + sqrt(sum of rise ||theta||^2))^2 + R^2 (sum of log(1 + q) + 2 log(1 / delta))

On an exact design the last sum is log(det A / det(reg I)), so the radius is never above that of OFUL. The radius of
ridge regression on sketches has the additional factor 1 + shed / reg (radii.py), because a cut removes from A what b
still contains. For projector splitting in a shared design no bound of the rise is known, and the radius is a heuristic
once it has truncated.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.design import contract
from onepass.design.contract import solve
from onepass.design.design import Design
from onepass.design.potential_growth import has_known_growth, potential_growth
from onepass.design.truncation import UNKNOWN
from onepass.estimator.arm_update_rules import NewtonSteps, RidgeSums, arm_step, radius_of_steps, record_cut
from onepass.estimator.contract import forget, merge, radius, update
from onepass.estimator.estimator import ArmLearning, Estimator, check_design, init_design_and_theta
from onepass.estimator.newton import forget_rows, step_on_squared_loss
from onepass.estimator.radii import Constants
from onepass.foundation import check
from onepass.foundation import state as states
from onepass.foundation.check import quote
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import dot
from onepass.foundation.registry import savable


class OnlineNewtonSettings(NamedTuple):
    """Settings of the online Newton step.

    `step` is a number that divides the weight of a row, and `reg` the design's eigenvalue on directions that its first
    rows do not span.
    """

    step: float
    reg: float


class Energy(NamedTuple):
    """Sums from which a bound of the estimate's squared error in the norm of the design A is computed.

    - gained: sum of log(1 + x^T A^-1 x) over rows x, including the rows that A begins with.
    - rise: sum over truncations of the least r >= 0 with A after <= A before + r I.
    - lift: sum over truncations of r ||theta||^2.
    """

    gained: float
    rise: float
    lift: float


class OnlineNewtonState(NamedTuple):
    """State of the online Newton step, with the design A = reg I + sum of x x^T / a over rows x and the step a.

    `design` is A, theta (dim,) is the estimate, and `energy` holds sums that bound the error of theta.
    """

    design: Any
    theta: np.ndarray
    energy: Energy
    settings: OnlineNewtonSettings


class OnlineNewtonRule(NamedTuple):
    """Update rule by which every arm of many takes online Newton steps; `step` divides the weight of a row."""

    step: float


@compiled
def energy_radius(energy: Energy, reg: float, noise: float, parameter_bound: float, delta: float) -> float:
    """Return the confidence radius of the estimate theta in the norm of the design, from the sums in `energy`.

    It is sqrt(reg S^2 + (S sqrt(rise) + sqrt(lift))^2 + R^2 (gained + 2 log(1 / delta))) with the fields of `energy`. S
    is `parameter_bound`, a bound of the norm of the true parameter, and R is `noise`, the sub-Gaussian constant of the
    noise. `reg` is the regularization of the design, and `delta` the probability that the radius fails.
    """
    rows = noise * noise * (energy.gained + 2.0 * np.log(1.0 / delta))
    cuts = parameter_bound * np.sqrt(energy.rise) + np.sqrt(energy.lift)
    return np.sqrt(rows + reg * parameter_bound * parameter_bound + cuts * cuts)


@update.for_state(OnlineNewtonState)
def update_newton(state: OnlineNewtonState, row: np.ndarray, reward: float) -> OnlineNewtonState:
    direction, before, energy = solve(state.design, row), potential_growth(state.design), state.energy
    gained = energy.gained + np.log1p(max(float(dot(row, direction)), 0.0))
    design = step_on_squared_loss(state.design, state.theta, row, direction, reward, 1.0 / state.settings.step)
    after, rise, lift = potential_growth(design), energy.rise, energy.lift
    if after == np.inf:
        gained = UNKNOWN
    elif after > before:
        rise += after - before
        lift += (after - before) * float(dot(state.theta, state.theta))
    energy = Energy(gained=gained, rise=rise, lift=lift)
    return OnlineNewtonState(design=design, theta=state.theta, energy=energy, settings=state.settings)


@radius.for_state(OnlineNewtonState)
def radius_of_newton(
    state: OnlineNewtonState, rounds: int, noise: float, parameter_bound: float, row_bound: float, delta: float
) -> float:
    if state.settings.step != 1.0 or potential_growth(state.design) == np.inf or state.energy.gained >= UNKNOWN:
        return np.inf
    return energy_radius(state.energy, state.settings.reg, noise, parameter_bound, delta)


@arm_step.for_state(OnlineNewtonRule)
def step_by_newton(
    rule: OnlineNewtonRule, memory: np.ndarray, dim: int, mean: float, square: float, t: int, reward: float
) -> tuple[float, float]:
    """Return the weight w and the step size p of the t-th row x of an arm: A += w x x^T and theta += p A^-1 x.

    `mean` is x^T theta and `square` is x^T A^-1 x. memory (3,) holds the arm's `Energy`.
    """
    weight = 1.0 / rule.step
    memory[0] += np.log1p(square)
    return weight, (reward - mean) / (1.0 + weight * square)


@record_cut.for_state(OnlineNewtonRule)
def record_cut_of_newton(rule: OnlineNewtonRule, memory: np.ndarray, rise: float, square: float) -> None:
    memory[1] += rise
    memory[2] += rise * square


@radius_of_steps.for_state(OnlineNewtonRule)
def radius_of_arm(rule: OnlineNewtonRule, memory: np.ndarray, gained: float, reg: float, constants: Constants) -> float:
    if rule.step != 1.0:
        return np.inf
    energy = Energy(gained=gained, rise=0.0, lift=0.0)
    if memory.size > 0:
        energy = Energy(gained=gained + memory[0], rise=memory[1], lift=memory[2])
    return energy_radius(energy, reg, constants.noise, constants.parameter_bound, constants.delta)


@forget.for_state(OnlineNewtonState)
def forget_newton(state: OnlineNewtonState, factor: float) -> OnlineNewtonState:
    """Return the state in which past rows count `factor` times.

    No confidence radius is known afterwards, because its proof does not cover discounted rows.
    """
    design, energy = forget_rows(state.design, state.theta, factor), state.energy
    energy = Energy(gained=UNKNOWN, rise=energy.rise, lift=energy.lift)
    return OnlineNewtonState(design=design, theta=state.theta, energy=energy, settings=state.settings)


@merge.register(OnlineNewtonState)
def merge_newton(state: OnlineNewtonState, other: OnlineNewtonState, start: OnlineNewtonState) -> OnlineNewtonState:
    """Merge two states, which is possible only with step 1 on an exact design.

    There A theta is the sum of reward times row, which adds up. `start` is the state from which both began, and is
    counted once. Raises TypeError for another step or design, because then the state depends on the order of rows.
    """
    if state.settings.step != 1.0 or contract.error_bound(state.design) > 0.0:
        raise TypeError(
            "merge is defined for OnlineNewton with step=1 on an exact design, where A theta is a sum over rows; "
            "else use Ridge, or learn the rows again, one stream after the other"
        )
    moment = sum(sign * contract.matrix(s.design) @ s.theta for sign, s in ((1.0, state), (1.0, other), (-1.0, start)))
    before = contract.log_det(state.design)
    design = contract.merge(state.design, contract.subtract_start(other.design, start.design))
    theta = contract.solve(design, moment.astype(state.theta.dtype))
    energy = state.energy._replace(gained=state.energy.gained + contract.log_det(design) - before)
    return OnlineNewtonState(design=design, theta=theta, energy=energy, settings=state.settings)


@savable
class OnlineNewton(Estimator):
    """Recursive least squares: every row moves theta by A^-1 x times its prediction error.

    On an exact design this is ridge regression. On a sketch it is not, and is often better (docs/sketches.md). With
    step 1 a confidence radius is proved (`Theory`) for the designs `Exact`, `FrequentDirections` and `Dyadic`.

    Parameters
    ----------
    design : Design
        Any design. It is copied.
    step : float, default 1.0
        The weight of a row is divided by this number a, above 0. With 1.0 and an exact design it is ridge regression.
        For other values no radius is proved.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Examples
    --------
    >>> import onepass as op
    >>> bandit = op.Bandit(op.OnlineNewton(op.FrequentDirections(dim=300, size=20, reg=0.1)), op.UCB(0.1))
    """

    design: Design

    def __init__(self, design: Design, *, step: float = 1.0) -> None:
        self.design = check_design(design)
        self.options: dict[str, Any] = {"step": check.positive("step", step)}

    @property
    def has_radius(self) -> bool:  # type: ignore[override]
        """True if a theorem gives a confidence radius, as for step 1 if the design's growth by truncation is known."""
        return self.options["step"] == 1.0 and has_known_growth(self.design)

    @property
    def no_radius(self) -> str:  # type: ignore[override]
        """Words that say in which case no confidence radius is known."""
        return f"with step={self.options['step']!r} on {quote(self.design)}"

    def begin(self) -> OnlineNewtonState:
        (design, theta), known = init_design_and_theta(self.design), Energy(gained=0.0, rise=0.0, lift=0.0)
        reg = float(self.design.reg)
        if self.design.has_learned and not states.is_abstract():
            space = contract.prior(design).space
            reg, known = space.ridge, known._replace(gained=space.log_det - self.design.dim * np.log(space.ridge))
        settings = OnlineNewtonSettings(step=self.options["step"], reg=reg)
        return OnlineNewtonState(design=design, theta=theta, energy=known, settings=settings)

    def arm_learning(self) -> ArmLearning:
        """Return Newton steps, or ridge regression if both give the same result.

        They give the same result if arms are never truncated and the step is 1. Arms of ridge regression can be merged.

        Returns
        -------
        ArmLearning
            The update rule of an arm and the memory it needs.
        """
        cutting, rule = self.design.truncation(), OnlineNewtonRule(step=self.options["step"])
        if rule.step == 1.0 and cutting is not None and cutting.hold >= self.design.dim:
            return ArmLearning(rule=RidgeSums(rule=rule), memory=0)
        return ArmLearning(rule=NewtonSteps(rule=rule), memory=3)

    def consistent(self, state: OnlineNewtonState) -> bool:
        return (
            state.theta.shape == (self.design.dim,)
            and state.settings.step == self.options["step"]
            and state.settings.reg > 0.0
            and min(state.energy) >= 0.0
            and self.design.consistent(state.design)
        )
