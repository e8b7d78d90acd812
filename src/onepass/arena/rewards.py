"""Sums of rewards that an arm keeps, and their changes when a row is learned or directions are truncated.

The sums depend on `arm_rule`. For (), ridge regression, they are the moment b = sum of r x with theta = A^-1 b, and o
is the part of b outside the span. For NewtonSteps they are theta itself, and o is the ridge times the part of theta
outside the span.

Both kinds keep one coordinate for each slot, and o in one more slot once directions were truncated. The mean is w^T Q x
+ o^T x / ridge for both (arena.py), so scoring does not depend on the kind.

Common arguments: `arm_rule` is () or a rule of estimator/arm_update_rules.py; memory (m,) holds numbers of the
estimator for the arm; `work` is a learning.Scratch; `used` is the number of directions in it; `t` is the number of the
row, from 1.
"""

from functools import partial
from typing import Any

import numpy as np

from onepass.design.subspace import Subspace
from onepass.estimator.arm_update_rules import (
    NewtonSteps,
    RidgeSums,
    arm_step,
    pull_to_undo,
    radius_of_steps,
    record_cut,
    row_factor,
    unit_of_steps,
)
from onepass.estimator.newton import step_along
from onepass.estimator.radii import Constants, Facts, radius_by
from onepass.foundation.cholesky_updates import shift_root, update_root_within
from onepass.foundation.generic import compiled, generic
from onepass.foundation.linalg import dot


@partial(generic, default=True)
def add_row(
    arm_rule: Any, memory: np.ndarray, space: Subspace, work: Any, used: int, t: int, reward: float
) -> tuple[float, float, float]:
    """Add the t-th row x of an arm to its design A, and return (w x^T A^-1 x, w, pull) with A as it was before.

    The row has coordinates work.z in the `used` directions of the arm's subspace `space`. w is its weight. `pull` is
    the length of the step along A^-1 x with which `add_reward` then learns the reward. `arm_rule` is the estimator's
    update rule, `memory` (m,) holds the numbers that it keeps for the arm, and `work` are the arm's scratch arrays.
    work.u becomes A^-1 x.
    """
    return update_root_within(space.root, work.z[:used], work.v, work.u), 1.0, reward


@compiled
def undo_row(pull: float, row: np.ndarray, space: Subspace, work: Any, used: int) -> None:
    """Subtract `pull` A^-1 x from the parameter theta, for a row x (dim,) that the arm has learned before.

    `work` are the scratch arrays of the arm, `space` is its subspace, and `used` the number of its directions.
    """
    inside = np.zeros(used, work.u.dtype)
    for i in range(used):
        inside[i] = dot(work.basis[i], row)
    root = np.ascontiguousarray(space.root[:used, :used])
    solved = dot(root, dot(inside, root))
    step_along(work.moment[:used], solved, -pull)
    outside = row - dot(inside, work.basis[:used])
    step_along(work.outside, outside, -pull)


@add_row.for_state(NewtonSteps)
def add_row_by_step(
    arm_rule: NewtonSteps, memory: np.ndarray, space: Subspace, work: Any, used: int, t: int, reward: float
) -> tuple[float, float, float]:
    root, z, v, u = space.root, work.z[:used], work.v, work.u
    mean, square, given = 0.0, 0.0, pull_to_undo(arm_rule.rule, memory)
    if given != 0.0:
        undo_row(given, memory[memory.size - work.outside.size :].astype(work.outside.dtype), space, work, used)
    for j in range(used):
        v[j] = 0.0
    for i in range(used):
        mean += work.moment[i] * z[i]
        for j in range(used):
            v[j] += z[i] * root[i, j]
    for j in range(used):
        square += v[j] * v[j]
    for i in range(used):
        total = root.dtype.type(0.0)
        for j in range(used):
            total += root[i, j] * v[j]
        u[i] = total
    weight, pull = arm_step(arm_rule.rule, memory, space.basis.shape[1], mean, square, t, reward)
    kept = row_factor(arm_rule.rule, memory)
    if kept != 0.0:
        row = dot(np.ascontiguousarray(z), work.basis[:used])
        for j in range(row.size):
            memory[memory.size - row.size + j] = kept * row[j]
    if weight * square > 0.0:
        shift_root(root, v[:used], u[:used], square, weight)
    return weight * square, weight, pull


@partial(generic, default=True)
def add_reward(arm_rule: Any, work: Any, used: int, pull: float) -> None:
    """Add a reward to the arm's sum of reward times row, for ridge regression: b += pull x.

    `work` are the arm's scratch arrays, which hold b and x as coordinates on the arm's `used` directions.
    """
    for i in range(used):
        work.moment[i] += pull * work.z[i]


@add_reward.for_state(NewtonSteps)
def add_reward_by_step(arm_rule: NewtonSteps, work: Any, used: int, pull: float) -> None:
    """Move the arm's parameter by a Newton step, theta += pull A^-1 x.

    `work` are the arm's scratch arrays, which hold theta and A^-1 x as coordinates on the arm's `used` directions.
    """
    step_along(work.moment[:used], work.u[:used], pull)


@partial(generic, default=True)
def new_coordinate(arm_rule: Any, along: float, ridge: float) -> float:
    """Return the moment's coordinate for a new direction, or the coordinate of theta with Newton steps.

    `along` is the component, in that direction, of the part of the moment that lies outside the arm's directions.
    `arm_rule` is the rule by which the arm learns, and `ridge` the ridge of its design.
    """
    return along


@new_coordinate.for_state(NewtonSteps)
def new_coordinate_by_step(arm_rule: NewtonSteps, along: float, ridge: float) -> float:
    return along / ridge


@partial(generic, default=True)
def add_lost_part(
    arm_rule: Any, memory: np.ndarray, work: Any, lost: np.ndarray, before: float, space: Subspace, rise: float
) -> None:
    """Add the part `lost` (dim,) of the moment, which a truncation removed from the arm's directions, to the vector o.

    o is the part of the moment outside the directions. `work` are the scratch arrays of the arm, and `memory` holds the
    numbers that the estimator stores for the arm. `lost` is empty if nothing was lost. `before` is the ridge before the
    truncation and `space` the subspace after it. `rise` bounds how far A grew, in the sense A' <= A + rise I.
    """
    for j in range(lost.size):
        work.outside[j] += lost[j]


@add_lost_part.for_state(NewtonSteps)
def add_lost_part_by_step(
    arm_rule: NewtonSteps, memory: np.ndarray, work: Any, lost: np.ndarray, before: float, space: Subspace, rise: float
) -> None:
    scale, ridge, square = work.outside.dtype.type(space.ridge / before), work.outside.dtype.type(space.ridge), 0.0
    for j in range(work.outside.size):
        work.outside[j] *= scale
    for j in range(lost.size):
        work.outside[j] += ridge * lost[j]
    for i in range(space.used):
        square += float(work.moment[i]) * float(work.moment[i])
    for j in range(work.outside.size):
        part = float(work.outside[j]) / space.ridge
        square += part * part
    record_cut(arm_rule.rule, memory, rise, square)


@partial(generic, default=True)
def slot_coordinate(arm_rule: Any, moment: float, weight: float) -> float:
    """Return the number that is stored for a direction of an arm: a coordinate of b, or of theta with Newton steps.

    `arm_rule` is the rule by which the arm learns, and b the sum of reward times row. `moment` is the coordinate of b,
    and `weight` that of theta.
    """
    return moment


@slot_coordinate.for_state(NewtonSteps)
def slot_coordinate_by_step(arm_rule: NewtonSteps, moment: float, weight: float) -> float:
    return weight


@partial(generic, default=True)
def theta_coordinate(arm_rule: Any, solved: float, kept: float) -> float:
    """Return the coordinate of an arm's parameter theta on a direction.

    `arm_rule` is the rule by which the arm learns. `solved` is the coordinate of A^-1 b, for the design A and the sum b
    of reward times row, and `kept` the number that `slot_coordinate` returned for the direction.
    """
    return solved


@theta_coordinate.for_state(NewtonSteps)
def theta_coordinate_by_step(arm_rule: NewtonSteps, solved: float, kept: float) -> float:
    return kept


@partial(generic, default=True)
def unit_of_arms(arm_rule: Any, memory: np.ndarray, rows: np.ndarray) -> float:
    """Return the noise unit (`estimator.contract.noise_unit`) of all arms of an arena together.

    `arm_rule` is the rule by which arms learn. memory (n, m) holds the numbers that the estimator keeps for each of n
    arms, and rows (n,) the numbers of rows learned. Default: 1.
    """
    return 1.0


@unit_of_arms.for_state(NewtonSteps)
def unit_of_arms_by_steps(arm_rule: NewtonSteps, memory: np.ndarray, rows: np.ndarray) -> float:
    return unit_of_steps(arm_rule.rule, memory, rows)


@partial(generic, default=True)
def radius_of_arm(
    arm_rule: Any, memory: np.ndarray, rule: Any, facts: Facts, constants: Constants, prior: Subspace
) -> float:
    """Return the confidence radius of an arm's own model.

    `arm_rule` is the rule by which the arm learns, `memory` (m,) holds the numbers that it keeps for the arm, and
    `prior` is the subspace that the arm began with. `rule` is the design's truncation rule, and `facts` holds the size
    of the model. `constants` are what the radius takes as known: noise, bounds of parameter and rows, and delta. The
    default is the radius of ridge regression on the design.
    """
    return radius_by(rule, facts, constants)


@radius_of_arm.for_state(NewtonSteps)
def radius_by_steps(
    arm_rule: NewtonSteps, memory: np.ndarray, rule: Any, facts: Facts, constants: Constants, prior: Subspace
) -> float:
    gained = prior.log_det - facts.dim * np.log(prior.ridge)
    return radius_of_steps(arm_rule.rule, memory, gained, prior.ridge, constants)


@radius_of_arm.for_state(RidgeSums)
def radius_of_sums(
    arm_rule: RidgeSums, memory: np.ndarray, rule: Any, facts: Facts, constants: Constants, prior: Subspace
) -> float:
    return radius_of_steps(
        arm_rule.rule, memory, facts.log_det - facts.dim * np.log(prior.ridge), prior.ridge, constants
    )
