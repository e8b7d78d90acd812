"""Rounds of a shared model in compiled code: compute statistics of the rows, choose, learn.

    means = Z theta,   widths^2 = diag(Z A^-1 Z^T),   draws: means + beta L e, L L^T = Z A^-1 Z^T, or means + beta Z R e

Means are scores x^T theta. If rewards have a link mu (estimator/families.py), a rule that only compares arms receives
the scores. A rule that uses differences of means receives mu of them (`on_rule_scale`). Reward residuals are r - mu(x^T
theta).

A rule that uses draws receives the means under M draws of theta, theta + d and theta - d in turn. A draw for K rows
needs either K normals and the root L (K solves), or as many normals as there are features and a product with the root
R. The cheaper way is taken.

For contexts given as factors x = vec(u v^T), the K rows of a user u lie in d_a dimensions: x = E^T v with E (d_a, dim)
made from u alone. So K > d_a arms are scored by E theta and E A^-1 E^T, with d_a solves and then d_a^2 for an arm.
"""

from typing import Any

import numpy as np

from onepass.design import contract
from onepass.estimator.contract import (
    link,
    noise_unit,
    parameter,
    radius,
    required_row,
    set_next_noise,
    update,
    update_rows,
)
from onepass.estimator.families import mean, to_reward_scale
from onepass.exploration.contract import (
    ArmStatistics,
    draws,
    needs_residual,
    needs_reward_scale,
    needs_widths,
    score,
    strength,
)
from onepass.exploration.residual_scale import Tally, count_deviation, residual
from onepass.exploration.sampling import sample_action
from onepass.exploration.slots import NOT_FINITE, NOT_OFFERED, fill_slots, restrict_first_slot
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import dot, semidefinite_root

DRAWS_AT_ONCE = 1_000_000  # random numbers that `play` holds
AGAIN = -1  # any arm


@compiled
def multiplier(estimator: Any, rule: Any, rounds: int) -> float:
    """Return the multiplier beta of widths: the rule's number times the theoretical radius or the estimator's unit.

    The radius, after `rounds` rows learned, is used if the rule asks for it. Otherwise the estimator's noise unit is
    used, or 1 if that is not known.
    """
    asked = strength(rule)
    if asked.theory.size == 0:
        nu = noise_unit(estimator)
        return asked.scale * (nu if nu > 0.0 else 1.0)
    constants = asked.theory
    return asked.scale * radius(estimator, rounds, constants[0], constants[1], constants[2], constants[3])


@compiled
def sample_means(rule: Any, means: np.ndarray, beta: float, shifts: np.ndarray) -> np.ndarray:
    """Return the means (M, K) of K arms under M draws of the parameter, in pairs mean +- beta shift.

    `rule` is the exploration rule, which says how many draws M it uses. `shifts` (pairs, K) holds the products of the
    rows with random directions, and `beta` is their multiplier.
    """
    pairs, count = shifts.shape[0], min(draws(rule), 2 * shifts.shape[0])
    samples = np.empty((count, means.size))
    for m in range(count):
        sign = beta if m < pairs else -beta
        for a in range(means.size):
            samples[m, a] = means[a] + sign * shifts[m % pairs, a]
    return samples


@compiled
def row_statistics(
    estimator: Any, rule: Any, rounds: int, tally: Tally, rows: np.ndarray, normals: np.ndarray, joint: bool
) -> ArmStatistics:
    """Return the statistics of K arms that an exploration rule needs, for the arms' rows (K, features).

    - estimator: state of the estimator that all arms share.
    - rule: the exploration rule.
    - rounds: number of rewards learned.
    - tally: sums of squared residuals.
    - normals (pairs, size): standard normal numbers, one row for each pair of draws.
    - joint: True draws the means of the arms jointly, with size = K; False draws the parameter, with size = features.
    """
    design = estimator.design
    means, widths = dot(rows, parameter(estimator)).astype(np.float64), np.zeros(rows.shape[0])
    if needs_widths(rule):
        widths = contract.inverse_quadratic(design, rows)
        for a in range(widths.size):
            widths[a] = np.sqrt(max(widths[a], 0.0))
    beta, samples = multiplier(estimator, rule, rounds), np.empty((0, rows.shape[0]))
    if draws(rule) > 0:
        if joint:
            shifts = dot(normals, semidefinite_root(contract.inverse_gram(design, rows)).T)
        else:
            shifts = dot(contract.roots(design, normals.astype(rows.dtype)), rows.T).astype(np.float64)
        samples = sample_means(rule, means, beta, shifts)
    betas = np.full(means.size, beta)
    return ArmStatistics(
        means=means, widths=widths, samples=samples, beta=betas, residual=residual(tally), rounds=rounds
    )


@compiled
def contract_left(user: np.ndarray, theta: np.ndarray, width: int) -> np.ndarray:
    """Return M^T u (d_a,) for the user's factor u (d_u,), where M (d_u, d_a) is theta read as a matrix.

    `width` is d_a.
    """
    inner = np.zeros(width, theta.dtype)
    for i in range(user.size):
        for j in range(width):
            inner[j] += user[i] * theta[i * width + j]
    return inner


@compiled
def outer_statistics(
    estimator: Any, rule: Any, rounds: int, tally: Tally, user: np.ndarray, right: np.ndarray, normals: np.ndarray,
    joint: bool,
) -> ArmStatistics:  # fmt: skip
    """Return the statistics of K arms that an exploration rule needs, for the arms' rows vec(user v^T).

    The rows are never formed: `user` (d_u,) is one factor, and the rows of right (K, d_a) are the other factors v.
    `row_statistics` describes the other arguments, but size is d_a if `joint` is True.
    """
    theta, design, width = parameter(estimator), estimator.design, right.shape[1]
    inner = contract_left(user, theta, width)
    means, widths = dot(right, inner).astype(np.float64), np.zeros(right.shape[0])
    beta, samples = multiplier(estimator, rule, rounds), np.empty((0, right.shape[0]))
    if needs_widths(rule) or (draws(rule) > 0 and joint):
        core = np.zeros((width, width), right.dtype)
        for j in range(width):
            row = np.zeros(theta.size, right.dtype)
            for i in range(user.size):
                row[i * width + j] = user[i]
            solved = contract.solve(design, row)
            for i in range(user.size):
                for k in range(width):
                    core[j, k] += user[i] * solved[i * width + k]
        if needs_widths(rule):
            half = dot(right, core)
            for a in range(widths.size):
                widths[a] = np.sqrt(max(float(dot(half[a], right[a])), 0.0))
        if draws(rule) > 0 and joint:
            drawn = dot(normals, semidefinite_root(core).T)
            samples = sample_means(rule, means, beta, dot(drawn, right.T.astype(np.float64)))
    if draws(rule) > 0 and not joint:
        drawn, each = np.empty((normals.shape[0], width)), contract.roots(design, normals.astype(right.dtype))
        for m in range(normals.shape[0]):
            inner = contract_left(user, each[m], width)
            for j in range(width):
                drawn[m, j] = inner[j]
        samples = sample_means(rule, means, beta, dot(drawn, right.T.astype(np.float64)))
    betas = np.full(means.size, beta)
    return ArmStatistics(
        means=means, widths=widths, samples=samples, beta=betas, residual=residual(tally), rounds=rounds
    )


@compiled
def on_rule_scale(family: Any, rule: Any, seen: ArmStatistics) -> ArmStatistics:
    """Convert the statistics `seen` of scores x^T theta to the scale that the rule needs: scores or rewards.

    `family` is the reward family, whose link function maps scores to mean rewards.
    """
    if needs_reward_scale(rule):
        return to_reward_scale(family, seen)
    return seen


@compiled
def decide_rows(
    estimator: Any, rule: Any, rounds: int, tally: Tally, rows: np.ndarray, normals: np.ndarray, joint: bool,
    eligible: np.ndarray, uniforms: np.ndarray, greedy: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Choose arms for k slots from rows (K, features) of K arms. k is the number of pairs in `uniforms`.

    Returns the arms (k,), their distributions (k, K), and scores, means and widths (K,). `rounds`, `joint`, `tally` and
    the random numbers `normals` have the meaning that they have in `row_statistics`, and `uniforms`, `eligible` and
    `greedy` are the arguments of `exploration.slots.fill_slots`.
    """
    seen = row_statistics(estimator, rule, rounds, tally, rows, normals, joint)
    view = on_rule_scale(link(estimator), rule, seen)
    scores = score(rule, view)
    again = required_row(estimator, rows)
    if again >= 0:  # an arm that the estimator plays several times in a row: it alone may have the first slot
        eligible = restrict_first_slot(eligible, again, uniforms.size // 2)
    arms, p = fill_slots(rule, view, scores, eligible, uniforms, greedy)
    if again == NOT_OFFERED and arms[0] >= 0:
        arms[0] = again
    return arms, p, scores, seen.means, seen.widths


@compiled
def decide_outer(
    estimator: Any, rule: Any, rounds: int, tally: Tally, user: np.ndarray, right: np.ndarray, normals: np.ndarray,
    joint: bool, eligible: np.ndarray, uniforms: np.ndarray, greedy: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Choose arms for k slots, for arms with the rows vec(user v^T).

    `user` (d_u,) is the user's factor, and right (K, d_a) holds the arms' factors v. Returns the arms (k,), their
    distributions (k, K), and scores, means and widths (K,). `decide_rows` describes the other arguments.
    """
    seen = outer_statistics(estimator, rule, rounds, tally, user, right, normals, joint)
    view = on_rule_scale(link(estimator), rule, seen)
    scores = score(rule, view)
    arms, p = fill_slots(rule, view, scores, eligible, uniforms, greedy)
    return arms, p, scores, seen.means, seen.widths


@compiled
def learn_rows(
    estimator: Any, counts: bool, tally: Tally, rows: np.ndarray, rewards: np.ndarray, nus: np.ndarray
) -> tuple[Any, Tally]:
    """Return the estimator's state and the tally after rows (n, features), rewards (n,) and noise scales.

    The scales `nus` are (n,), or (0,) if there are none.

    If `counts` is True, the rewards' deviations from the means before the batch are added to the tally.
    """
    if counts:
        means = dot(rows, parameter(estimator))
        for i in range(rows.shape[0]):
            tally = count_deviation(tally, float(rewards[i]) - mean(link(estimator), float(means[i])))
    if nus.size == 0 and rows.shape[0] > 1:
        return update_rows(estimator, rows, rewards), tally
    for i in range(rows.shape[0]):
        if nus.size > 0:
            estimator = set_next_noise(estimator, nus[i])
        estimator = update(estimator, rows[i], float(rewards[i]))
    return estimator, tally


@compiled
def play_rounds(
    estimator: Any, rule: Any, rounds: int, tally: Tally, contexts: np.ndarray, rewards: np.ndarray, nus: np.ndarray,
    normals: np.ndarray, joint: bool, uniforms: np.ndarray, scored: np.ndarray,
) -> tuple[Any, Tally, np.ndarray]:  # fmt: skip
    """Play T recorded rounds: score the arms, choose one, and learn its reward.

    `contexts` is (T, K, features), `rewards` (T, K), and `nus`, the noise scales, (T, K) or (0, 0). The random numbers
    are normals (T, pairs, size), with `joint` and size as in `row_statistics`, and `uniforms` (T, 2). `rule` is the
    exploration rule, `rounds` the number of rewards learned before, and `tally` the sums of squared residuals so far.
    scored (T, 3) receives the mean and the score of the chosen arm and the largest score; with (0, 3) nothing is
    stored.

    Returns the estimator, the new `tally`, and the chosen arms (T,). The arms are -1 from the first round with a
    score that is not finite, and -2 from the first round in which a required arm was not offered.
    """
    arms, eligible = np.full(contexts.shape[0], NOT_FINITE), np.ones(contexts.shape[1], np.bool_)
    for t in range(contexts.shape[0]):
        rows = contexts[t]
        seen = row_statistics(estimator, rule, rounds + t, tally, rows, normals[t], joint)
        view = on_rule_scale(link(estimator), rule, seen)
        scores = score(rule, view)
        arm, _ = sample_action(rule, view, scores, eligible, uniforms[t])
        again = required_row(estimator, rows)
        if again != AGAIN and arm >= 0:
            arm = again
        if arm < 0:
            arms[t:] = arm
            break
        arms[t] = arm
        if scored.size > 0:
            scored[t, 0], scored[t, 1], scored[t, 2] = seen.means[arm], scores[arm], scores.max()
        if nus.size > 0:
            estimator = set_next_noise(estimator, nus[t, arm])
        if needs_residual(rule):
            tally = count_deviation(tally, float(rewards[t, arm]) - mean(link(estimator), float(seen.means[arm])))
        estimator = update(estimator, rows[arm], rewards[t, arm])
    return estimator, tally, arms
