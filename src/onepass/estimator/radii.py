"""Confidence radii of ridge regression: beta with ||theta_* - theta||_A <= beta, for every design that has one.

    R sqrt(log(det A / det(reg I)) + 2 log(1 / delta)) + H sqrt(ridge)        OFUL (Abbasi-Yadkori et al. 2011)

For Frequent Directions, the radii of Wen, Yin et al. are used (`sketch_radius`). For dyadic blocks over another sketch,
the radius follows from the error bound alone (`error_radius`). `noise` is R (sub-Gaussian), `parameter_bound` is H >=
||theta_*||, `row_bound` is L >= ||x||, and `rounds` is the number of rows learned. A shared design and an arm of an
arena use the same function, `radius_by`, with the truncation rule of their design.

All radii of sketches come from one inequality. Let A = reg I + X^T X be exact, A_hat the sketch, and eta the noise.
Then theta = A_hat^-1 X^T r, and

    ||theta_* - theta||_A_hat <= ||X^T eta||_(A_hat^-1) + ||(A_hat - X^T X) theta_*||_(A_hat^-1)
    ||X^T eta||_(A_hat^-1)    <= sqrt(c) R sqrt(log(det A / det(reg I)) + 2 log(1 / delta))      if A <= c A_hat

where the second line holds in all rounds together with probability 1 - delta (Abbasi-Yadkori et al. 2011, theorem 1).
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from onepass.design.contract import error_bound, log_det, sums
from onepass.design.design import Design
from onepass.design.dyadic import SKETCHED, DyadicState
from onepass.design.dyadic_sketches import DyadicSketchesState, is_one_block
from onepass.design.exact import ExactRule, ExactState
from onepass.design.frequent_directions import FrequentDirectionsRule, FrequentDirectionsState
from onepass.design.projector_splitting import ProjectorSplittingRule, ProjectorSplittingState
from onepass.design.sketch import SketchState
from onepass.design.truncation import Sums, init_sums
from onepass.foundation.generic import compiled, generic, is_registered


class Facts(NamedTuple):
    """Size of a model, from which the confidence radius is computed.

    - dim: width of a row.
    - directions: number of directions that the model may hold, at most dim.
    - ridge: eigenvalue of the design A outside these directions.
    - log_det: log det A.
    - sums: totals of rows and of what was cut off.
    - rounds: number of rows learned.
    """

    directions: int
    dim: int
    ridge: float
    log_det: float
    sums: Sums
    rounds: int


class Constants(NamedTuple):
    """Constants of a confidence radius.

    `noise` is R, the sub-Gaussian constant of the noise; `parameter_bound` is H >= ||theta_*||; `row_bound` is L >=
    ||x||; `delta` is the probability of failure.
    """

    noise: float
    parameter_bound: float
    row_bound: float
    delta: float


@partial(generic, default=True)
def radius_by(rule: Any, facts: Facts, constants: Constants) -> float:
    """Return the confidence radius of a design whose sketch truncates by `rule`; infinite if none is known.

    `facts` are numbers of the design, and `constants` those of the noise and of the parameter.
    """
    return np.inf


@partial(generic, default=True)
def confidence_radius(
    design: Any, rounds: int, noise: float, parameter_bound: float, row_bound: float, delta: float
) -> float:
    """Return beta for which ||theta_* - theta||_A <= beta with probability 1 - delta; infinite if none is known.

    theta_* is the true parameter, theta the ridge estimate, and `design` the state of the design A. `rounds` is the
    number of rows learned, `noise` the sub-Gaussian constant of the noise, `parameter_bound` a bound of ||theta_*||,
    and `row_bound` a bound of the rows' norms.
    """
    return np.inf


@compiled
def determinant_radius(reg: float, facts: Facts, constants: Constants) -> float:
    """Return OFUL's confidence radius, computed from log det A of the design A, or from log det(reg I) if larger.

    `facts` holds log det A, the number of columns and the ridge of the design. `constants` holds the noise scale, the
    bound on the parameter's norm, and delta.
    """
    gain = max(facts.log_det - facts.dim * np.log(reg), 0.0)
    spread = np.sqrt(gain + 2.0 * np.log(1.0 / constants.delta))
    return constants.noise * spread + constants.parameter_bound * np.sqrt(facts.ridge)


@compiled
def sketch_radius(reg: float, compensation: float, facts: Facts, constants: Constants) -> float:
    """Return the confidence radius of ridge regression on a Frequent Directions sketch (Wen, Yin et al.).

    Without compensation (SOFUL and DBSLinUCB-FD) it is theorem 2, with full compensation (CBSCFD and DBSLinUCB-RFD)
    theorem 6. In between it is ours. Let s be the sum of all cuts (shed), c the compensation, and S the sketch. From
    0 <= X^T X - S^T S <= s I and A_hat = (reg + c s) I + S^T S follow

        A <= A_hat + (1 - c) s I <= (1 + (1 - c) s / (reg + c s)) A_hat,
        ||A_hat - X^T X|| <= max(reg + c s, (1 - c) s - reg),
        log(det A / det(reg I)) <= d log(1 + s / reg) + m log(1 + T L^2 / (m (reg + s)))

    d is the width of a row, T the number of rows, and L a bound of their norms. `facts.sums.shed` is their sigma, the
    sum of all cuts. `facts.sums.weighted` is the sum of j * cut (design/truncation.py), at most the mass that the cuts
    took from the trace. `facts.directions` is their m, the largest number of directions that all blocks together may
    span. They count 2 l of the active block, where l is its size; lemma 6 proves this for blocks without a buffer.
    Blocks with a buffer hold up to 3 l.
    """
    noise, bound, m, shed = constants.noise, constants.parameter_bound, facts.directions, facts.sums.shed
    mass = facts.rounds * constants.row_bound**2
    grown = mass / (m * reg)
    if compensation == 1.0:
        grown += (shed - facts.sums.weighted / m) / reg
    elif compensation > 0.0:
        grown = mass / (m * (reg + shed))
    inside = 2.0 * np.log(1.0 / constants.delta) + facts.dim * np.log1p(shed / reg) + m * np.log1p(grown)
    if compensation == 1.0:
        return noise * np.sqrt(inside) + bound * np.sqrt(reg + shed)
    if compensation == 0.0:
        return noise * np.sqrt(inside * (1.0 + shed / reg)) + bound * (reg + shed) / np.sqrt(reg)
    ridge, short = reg + compensation * shed, (1.0 - compensation) * shed
    return noise * np.sqrt(inside * (1.0 + short / ridge)) + bound * max(ridge, short - reg) / np.sqrt(ridge)


@compiled
def error_radius(reg: float, error: float, facts: Facts, constants: Constants) -> float:
    """Return the confidence radius beta of any sketch with ||A - A_hat|| <= error and A_hat >= ridge I.

    A <= (1 + error / ridge) A_hat, so that

        log(det A / det(reg I)) <= log(det A_hat / det(reg I)) + d log(1 + error / ridge),
        beta = R sqrt((1 + error / ridge) (log(det A / det(reg I)) + 2 log(1 / delta)))
               + H (reg + error) / sqrt(ridge)

    The logarithm is also at most d log(1 + T L^2 / (d reg)). The radius is infinite if no bound of the error is known.
    `facts` holds d (dim) and T (rounds); `constants` holds R (noise), H (parameter_bound), L (row_bound) and delta.
    """
    share, dim = error / facts.ridge, facts.dim
    most = dim * np.log1p(facts.rounds * constants.row_bound**2 / (dim * reg))
    gain = min(max(facts.log_det - dim * np.log(reg), 0.0) + dim * np.log1p(share), most)
    spread = np.sqrt((1.0 + share) * (gain + 2.0 * np.log(1.0 / constants.delta)))
    return constants.noise * spread + constants.parameter_bound * (reg + error) / np.sqrt(facts.ridge)


@radius_by.for_state(ExactRule)
def radius_of_exact(rule: ExactRule, facts: Facts, constants: Constants) -> float:
    return determinant_radius(rule.reg, facts, constants)


@radius_by.for_state(ProjectorSplittingRule)
def radius_of_splitting(rule: ProjectorSplittingRule, facts: Facts, constants: Constants) -> float:
    """Return the confidence radius on a projector splitting: proved until it truncates, a heuristic afterwards.

    `facts` are numbers of the design, and `constants` those of the noise and of theta.
    """
    return determinant_radius(rule.reg, facts, constants)


@radius_by.for_state(FrequentDirectionsRule)
def radius_of_frequent_directions(rule: FrequentDirectionsRule, facts: Facts, constants: Constants) -> float:
    return sketch_radius(rule.reg, rule.compensation, facts, constants)


@compiled
def facts_of_subspace(design: Any, rounds: int) -> Facts:
    """Return the facts of a design whose state has a `space`, after `rounds` rewards."""
    capacity, dim = design.space.basis.shape
    return Facts(
        directions=capacity,
        dim=dim,
        ridge=design.space.ridge,
        log_det=design.space.log_det,
        sums=design.sums,
        rounds=rounds,
    )


@confidence_radius.for_state(SketchState)
def confidence_of_rule_sketch(
    design: SketchState, rounds: int, noise: float, parameter_bound: float, row_bound: float, delta: float
) -> float:
    return radius_by(
        design.settings.rule,
        facts_of_subspace(design, rounds),
        Constants(noise=noise, parameter_bound=parameter_bound, row_bound=row_bound, delta=delta),
    )


@confidence_radius.for_state(ExactState)
def confidence_of_exact(
    design: ExactState, rounds: int, noise: float, parameter_bound: float, row_bound: float, delta: float
) -> float:
    dim, ridge = design.root.shape[0], design.settings.reg
    facts = Facts(directions=dim, dim=dim, ridge=ridge, log_det=design.log_det, sums=init_sums(), rounds=rounds)
    return radius_by(
        design.settings,
        facts,
        Constants(noise=noise, parameter_bound=parameter_bound, row_bound=row_bound, delta=delta),
    )


@confidence_radius.for_state(ProjectorSplittingState)
def confidence_of_splitting(
    design: ProjectorSplittingState, rounds: int, noise: float, parameter_bound: float, row_bound: float, delta: float
) -> float:
    rank, dim = design.settings.rank, design.left.shape[1]
    facts = Facts(
        directions=rank, dim=dim, ridge=design.ridge, log_det=log_det(design), sums=design.sums, rounds=rounds
    )
    return radius_by(
        design.settings,
        facts,
        Constants(noise=noise, parameter_bound=parameter_bound, row_bound=row_bound, delta=delta),
    )


@confidence_radius.for_state(FrequentDirectionsState)
def confidence_of_frequent_directions(
    design: FrequentDirectionsState, rounds: int, noise: float, parameter_bound: float, row_bound: float, delta: float
) -> float:
    return radius_by(
        design.settings,
        facts_of_subspace(design, rounds),
        Constants(noise=noise, parameter_bound=parameter_bound, row_bound=row_bound, delta=delta),
    )


@confidence_radius.for_state(DyadicState)
def confidence_of_dyadic(
    design: DyadicState, rounds: int, noise: float, parameter_bound: float, row_bound: float, delta: float
) -> float:
    """Return the confidence radius beta of ridge regression on a dyadic sketch; infinite if none is known.

    `rounds` is the number of rows learned, `noise` the sub-Gaussian constant of the noise, `parameter_bound` a bound of
    the parameter's norm, `row_bound` a bound of the rows' norms, and `delta` the probability that the radius fails. The
    radius needs the number of directions of the sketch: those of the closed blocks and of the active block, at most
    dim; or dim, once rows are stored exactly.
    """
    block, dim = design.block, max(design.whole.basis.shape[1], design.dense.root.shape[0])
    held, capacity = dim, max(2 * block.settings.size, block.space.basis.shape[0])
    if design.phase == SKETCHED:
        held = min(dim, design.spectrum.size + capacity)
    facts = Facts(
        directions=held, dim=dim, ridge=design.whole.ridge, log_det=log_det(design), sums=sums(design), rounds=rounds
    )
    return radius_by(
        block.settings, facts, Constants(noise=noise, parameter_bound=parameter_bound, row_bound=row_bound, delta=delta)
    )


@confidence_radius.for_state(DyadicSketchesState)
def confidence_of_dyadic_sketches(
    design: DyadicSketchesState, rounds: int, noise: float, parameter_bound: float, row_bound: float, delta: float
) -> float:
    """Return the confidence radius beta of ridge regression on dyadic blocks over a sketch, from their error bound.

    `rounds` is the number of rows learned, `noise` the sub-Gaussian constant of the noise, `parameter_bound` a bound of
    the parameter's norm, `row_bound` a bound of the rows' norms, and `delta` the probability that the radius fails.
    """
    reg = design.settings.reg
    facts = Facts(
        directions=design.held,
        dim=design.whole.basis.shape[1],
        ridge=reg if is_one_block(design) else design.whole.ridge,
        log_det=log_det(design),
        sums=init_sums(),
        rounds=rounds,
    )
    return error_radius(
        reg,
        error_bound(design),
        facts,
        Constants(noise=noise, parameter_bound=parameter_bound, row_bound=row_bound, delta=delta),
    )


def has_radius(design: Design) -> bool:
    """Return True if a confidence radius is registered for a design, and its error bound holds with certainty."""
    state = design.abstract_state
    if isinstance(state, SketchState):
        return is_registered(radius_by, state.settings.rule)
    return design.error_is_certain and is_registered(confidence_radius, state)
