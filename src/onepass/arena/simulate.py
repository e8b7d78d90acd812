"""Simulation of recorded rounds on an arena in compiled code: score, choose and learn, as `decide` and `learn` do."""

from typing import Any

import numpy as np

from onepass.arena.arena import NONE, ArenaState, init_arm, with_slots
from onepass.arena.learning import learn_one
from onepass.arena.scoring import evaluate_arms, exploration_scales
from onepass.exploration.contract import ArmStatistics, draws, needs_residual, score, strength
from onepass.exploration.residual_scale import Tally, count_deviation, residual
from onepass.exploration.sampling import sample_action
from onepass.foundation.generic import compiled

NOT_FINITE = -1  # in place of an arm


@compiled
def arm_statistics(
    arena: ArenaState, cutting: Any, limit: int, arm_rule: Any, rule: Any, rounds: int, tally: Tally,
    arm_ids: np.ndarray, rows: np.ndarray, normals: np.ndarray,
) -> ArmStatistics:  # fmt: skip
    """Return the means, widths and draws of the arms with ids arm_ids (K,) that an exploration rule needs.

    rows (K, dim) has one row for each arm, or is (1, dim) for all arms. `rule` is the exploration rule, and
    normals (pairs, K) holds standard normal draws, one row for each pair of opposite draws of theta.
    `rounds` is the number of rewards learned, and `tally` the sums of squared residuals so far.
    `cutting` is the rule by which an arm is truncated as soon as it holds `limit` directions, and `arm_rule` the rule
    by which it learns rewards.
    """
    count = arm_ids.size
    means, widths = evaluate_arms(arena, arm_ids, rows, np.empty((count, 0), rows.dtype))
    asked = strength(rule)
    beta = exploration_scales(arena, cutting, limit, arm_rule, arm_ids, asked.theory)
    for a in range(count):
        widths[a] = np.sqrt(max(widths[a], 0.0))
        beta[a] *= asked.scale
    pairs = normals.shape[0]
    samples = np.empty((min(draws(rule), 2 * pairs), count))
    for m in range(samples.shape[0]):
        for a in range(count):
            shift = beta[a] * (normals[m % pairs, a] * widths[a])
            samples[m, a] = means[a] + shift if m < pairs else means[a] - shift
    return ArmStatistics(
        means=means, widths=widths, samples=samples, beta=beta, residual=residual(tally), rounds=rounds
    )


@compiled
def play_rounds(
    arena: ArenaState, cutting: Any, limit: int, arm_rule: Any, rule: Any, rounds: int, tally: Tally,
    arm_ids: np.ndarray, fresh: np.ndarray, contexts: np.ndarray, rewards: np.ndarray, normals: np.ndarray,
    lots: np.ndarray, scored: np.ndarray,
) -> tuple[ArenaState, Tally, np.ndarray, int]:  # fmt: skip
    """Play T recorded rounds: score the arms, choose one, and learn its reward.

    `contexts` (T, K or 1, dim) holds the rows of the arms and `rewards` (T, K) the reward of every arm. `rule` is the
    exploration rule. Its random numbers are normals (T, pairs, K), with two draws for each pair, and uniforms `lots`
    (T, 2). `cutting` is the rule by which an arm is truncated as soon as it holds `limit` directions, and `arm_rule`
    the rule by which it learns rewards (rewards.py). `rounds` is the number of rewards learned before, and `tally` the
    sums of squared residuals so far. `fresh` holds ids for arms without a model; `arm_ids` (K,) is updated in place.
    scored (T, 3) receives the predicted reward and the score of the chosen arm, and the largest score; with (0, 3)
    nothing is stored. The arena must have room for everything that may be learned.

    Returns the arena, the new `tally`, the chosen arms (T,), and the number of ids of `fresh` used. The arms are -1
    from the first round with a score that is not finite.
    """
    arms, among, taken = np.full(contexts.shape[0], NOT_FINITE), np.ones(arm_ids.size, np.bool_), 0
    for t in range(contexts.shape[0]):
        rows = contexts[t]
        seen = arm_statistics(arena, cutting, limit, arm_rule, rule, rounds + t, tally, arm_ids, rows, normals[t])
        scores = score(rule, seen)
        arm, _ = sample_action(rule, seen, scores, among, lots[t])
        if arm < 0:
            break
        arms[t] = arm
        if scored.size > 0:
            scored[t, 0], scored[t, 1], scored[t, 2] = seen.means[arm], scores[arm], scores.max()
        if arm_ids[arm] == NONE:
            arm_ids[arm], taken = fresh[taken], taken + 1
            free, top = init_arm(arena, arm_ids[arm])
            arena = with_slots(arena, free, top)
        if needs_residual(rule):
            tally = count_deviation(tally, float(rewards[t, arm]) - seen.means[arm])
        place = arm if rows.shape[0] > 1 else 0
        row = rows[place : place + 1]
        free, top = learn_one(arena, cutting, limit, arm_rule, arm_ids[arm], row, rewards[t, arm])
        arena = with_slots(arena, free, top)
    return arena, tally, arms, taken


def count_slots_for_rounds(arena: ArenaState, rounds: int, arms: int) -> int:
    """Return an upper bound on the slots that `rounds` rounds of `arms` arms may need.

    A slot holds one direction of one arm. The bound is two slots for each row, but at most what all arms can hold, plus
    two.
    """
    known, hold = arena.prior.space.used, arena.root.shape[1]
    return arms * known + min(2 * rounds, arms * (hold + 1)) + 2
