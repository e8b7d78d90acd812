"""State and updates of several models side by side, weighted by how well they have predicted, with a change alarm.

Model m has the residuals e with squared widths h. Its loss l_m and weight w_m, and the mean and the width of arm a, are

    l_m = n/2 log(S_m) + H_m / 2,   S_m = sum of e^2 / (1 + h),   H_m = sum of log(1 + h)
    w_m ~ pi_m exp(-TRUST l_m),   0 if below FEW times the largest;   v: w, but 0 if below BELIEVED times the largest
    mean_a = mu + sum_m w_m phi_m^T (theta_ma - mu tau_ma) + tail_a,   sigma = sum_m w_m sqrt(S_m / n)
    width_a^2 = sum_m v_m stretch_m^2 / (1 / h_ma + ANYWHERE n_a / ||phi||^2),   h_ma = phi^T P_ma phi

The loss l is minus the log marginal likelihood of a Gaussian linear model with unknown noise. The weights w are
exponential weights of a tenth of it (TRUST), because no model is right. The prior weight pi_m is 1, or HUMBLE for the
models that explain little: columns with heavy penalties, and a constant alone. They are for rewards that are mostly
noise. With full weight, a constant could win early. It explores nothing, so the rows that would show that the context
matters would never come.

mu is the mean of unknown arms (rewards.py), which may change. Therefore tau is learned beside theta, on the constant
target 1 by the same gain. Up to clipping, means are then those of a model whose prior mean has always been the present
mu. tail_a is the mean of what clipping removed from an arm's rewards, as far as such rewards recur (rare_rewards.py).

Here n is the number of rewards, phi_m are the features of model m, theta_ma its parameter for arm a, P_ma its inverse
matrix (regression.py), and stretch_m its factor of widths. Every model learns from every reward of the arm that was
played. The term ANYWHERE n_a reduces a width as if each of the arm's n_a rows had told a little about every direction,
so an arm with many rows is not explored again in every direction that these rows lack. Widths are multiplied by sigma,
but at least by SHARE D, with the unit D of rewards (rewards.py), because an untried arm is unknown even if all
residuals are 0.

After 1, 2, 4, ..., 256 rows the feature maps, called views (view.py), are rebuilt from all rows so far, which are then
learned again, a slice with every new row (remake.py); after that they stay the same. For rows of more than 300 columns
the views use coordinates on a span (span.py), and one more model is linear in all columns, on a sketch of each arm
(sketches.py). If over 90% of the entries are zeros, the sketch is the only model.

The change alarm is a CUSUM, g <- max(0, g + min(e^2 / ((1 + h) sigma^2), 20) - 2), with the residuals of the best model
without drift. g stays 0 while recent rewards are not clearly worse than all rewards. If g exceeds `alarm_threshold`,
everything except the views is forgotten. Models with drift are not used for the alarm, because their errors become
small again soon after a change.
"""

from typing import NamedTuple

import numpy as np

from onepass.foundation.generic import compiled
from onepass.foundation.state import lazy_zeros, zeros
from onepass.model.averaged.rare_rewards import (
    REPEATS_OFTEN,
    SIZES,
    add_cut,
    has_many_repeats,
    has_paid,
    note_size,
    says_little,
    tail_of,
)
from onepass.model.averaged.regression import begin, guess, learn, length, look, unknown
from onepass.model.averaged.rewards import (
    ALIKE,
    FAR,
    MIDDLE,
    REPEATS,
    SEEN,
    SPREAD,
    Rewards,
    has_many_values,
    no_rewards,
    note_early,
    note_reward,
    prior,
    worse,
)
from onepass.model.averaged.sketches import (
    Sketches,
    ask_dense,
    ask_sketch,
    begin_sketch,
    bytes_of_sketch,
    learn_sketch,
    middle_of,
    no_sketches,
    sketches_fit,
    sparse_row,
)
from onepass.model.averaged.span import WIDE
from onepass.model.averaged.view import SPARSE, View, embed_from, embedded, no_view, scale_row, view_fits, width

TRUST = 0.1  # of the evidence: 1 settles too early on one model (docs/recommended_defaults.md)
HUMBLE = 0.1  # prior weight of the models without kernel that were added for noise; .3: better in noise, worse without
BELIEVED = 0.3  # of the largest weight: models from which widths are taken
PRECISION = 1e-4  # of D: residuals below it are none
FEW = 0.05  # of the largest weight: models below are not asked; .01 to .1 are alike, and asking costs a product an arm
ANYWHERE = 0.01  # of a row, that it says of every direction: .005 to .02 are alike, and without widths stay too long
SHARE = 0.1  # of D, that a width counts: with 0 an arm that is right may stay untried, .2 explores for nothing
EXPECTED = 2.0  # twice what e^2 / ((1 + h) sigma^2) is on average
SURPRISE = 20.0  # the most that one reward adds to the suspicion
SETTLED = 100  # rows before which there is no alarm
TINY = 1e-300  # above 0, where all rewards were 0
NEVER = -1  # the slot of an arm that has not learned, and the round in which it did
STANDARD, RAW, RANKED = range(3)
CONSTANT_ALONE, COLUMNS, KERNEL = range(3)
# view; kernel, columns and constant, or less; drift; reg, None: the user's; stretch of widths; weight before data;
# rewards that the penalty of the intercept counts as, 0: the view's constant feature
MODELS = (
    (STANDARD, KERNEL, 0.0, None, 1.0, 1.0, 0.0),
    (STANDARD, COLUMNS, 0.0, None, 1.0, 1.0, 0.0),
    (RAW, KERNEL, 0.0, None, 1.0, 1.0, 0.0),
    (STANDARD, COLUMNS, 1e-4, 1.0, 1.0, 1.0, 4.0),  # 1: .06 more mistakes where the truth turns
    (STANDARD, COLUMNS, 1e-3, 1.0, 1.0, 1.0, 1.0),
    (RAW, COLUMNS, 0.0, None, 3.0, 1.0, 0.0),
    (RANKED, KERNEL, 0.0, None, 1.0, 1.0, 0.0),
    (STANDARD, COLUMNS, 0.0, 1.0, 1.0, HUMBLE, 1.0),
    (STANDARD, COLUMNS, 0.0, 10.0, 1.0, HUMBLE, 1.0),
    (STANDARD, COLUMNS, 0.0, 100.0, 1.0, HUMBLE, 1.0),
    (STANDARD, CONSTANT_ALONE, 0.0, 1.0, 1.0, HUMBLE, 1.0),
    (STANDARD, COLUMNS, 0.0, None, 1.0, 1.0, 0.0),
)
NAMES = (
    "kernel", "linear", "raw kernel", "drifting linear", "fast linear", "raw linear", "ranked kernel",
    "linear 1", "linear 10", "linear 100", "constant", "sketch",
)  # fmt: skip
SEES, START, SIZE = range(3)  # columns of `Mixture.plan`
REG, DRIFT, STRETCH, CONSTANT, WEIGHT = range(5)  # and of `Mixture.settings`
NOISE, VOLUME = range(2)  # rows of `Mixture.scores`
CLOCK, KNOWN, ALARMS = range(3)  # entries of `Mixture.counts`
FEW_COLUMNS = 256  # up to here sparse rows are mostly names, better served by all models
LINEAR_MODEL = 1  # there unless rows are sparse
SPARSE_MODEL = 5  # the one where rows are sparse; elsewhere it says little that others do not
SKETCH_MODEL = 11  # linear in all columns of wide rows that are not sparse
RANKED_MODEL = 6  # the first to go where memory is short


class Mixture(NamedTuple):
    """State of M ridge regressions for every arm, whose predictions are averaged with weights by how well they predict.

    The data of an arm are at an index of the arrays, called its slot. A view is a feature map: it maps a row to
    features.

    - views: the three feature maps.
    - plan (M, 3): each model's view, its first feature there, and its number of features (0 if the model is not used).
    - settings (M, 5): ridge penalty, rate of forgetting, factor of widths, value of the constant feature (0: the view's
      value), and prior weight of each model.
    - scores (2, M): sums of e^2 / (1 + h) and of log(1 + h), over prediction errors e and squared widths h.
    - theta, tau (slots, T): parameters of an arm, all models one after the other, for the rewards and for a target that
      is always 1.
    - inverse (slots, P): lower triangles of the inverse Gram matrices of an arm, all models one after the other.
    - early (slots, 9): an arm's first five rewards, their count, the number of equal first rewards (-1 once two
      differ), the first value that came twice in a row (until then the last reward), and how often it came since.
    - last (slots,): round in which the arm last learned, or -1 if it has learned nothing.
    - learned (slots,): number of rows learned.
    - tails (slots, 3, 12): statistics of clipped rewards by size.
    - rewards: statistics of all rewards.
    - counts (3,): number of rows learned, number of rows since the last alarm, number of alarms.
    - suspicion (1,): statistic of the alarm.
    - rows (R, d), arms (R,), gains (R,): the first rows, the slots of their arms and their rewards; `rows` is (0, d)
      once the feature maps stay fixed.
    - sketches: used in place of theta and inverse by the model that is linear in all columns of wide rows.
    """

    views: tuple[View, View, View]
    plan: np.ndarray
    settings: np.ndarray
    scores: np.ndarray
    theta: np.ndarray
    tau: np.ndarray
    inverse: np.ndarray
    early: np.ndarray
    last: np.ndarray
    learned: np.ndarray
    tails: np.ndarray
    rewards: Rewards
    counts: np.ndarray
    suspicion: np.ndarray
    rows: np.ndarray
    arms: np.ndarray
    gains: np.ndarray
    sketches: Sketches


@compiled
def asked(plan: np.ndarray, sketched: bool, m: int) -> bool:
    """Return True if model m is used. `sketched` is True if arms have sketches.

    `plan` (M, 3) holds each model's feature map, first feature and number of features.
    """
    return plan[m, SIZE] > 0 or (sketched and m == model_of_sketches(plan))


@compiled
def model_of_sketches(plan: np.ndarray) -> int:
    """Return the index of the model that uses sketches if rows are wide: one for rows mostly zeros, one for others.

    `plan` (M, 3) holds each model's feature map, first feature and number of features.
    """
    return SKETCH_MODEL if plan[LINEAR_MODEL, SIZE] > 0 else SPARSE_MODEL


@compiled
def raw_weights(state: Mixture) -> tuple[np.ndarray, float, float]:
    """Return the weights (M,) of the models before they are normalized, the least loss, and the least error.

    `state` is the `Mixture`. The error of a model is its sum of e^2 / (1 + h) in `scores`. Its loss is n log(error /
    least error) / 2 after n rows, plus half its sum of log(1 + h). Its weight is its prior weight times exp(-c (loss -
    least loss)) with a constant c. Weights below 0.05 times the largest one are set to 0.
    """
    n, smallest, least = max(float(state.counts[KNOWN]), 1.0), np.inf, np.inf
    plan, sketched, losses = state.plan, state.sketches.root.shape[1] > 0, np.zeros(state.plan.shape[0])
    tiny = tiny_of(state)
    for m in range(losses.size):
        if asked(plan, sketched, m):
            smallest = min(smallest, state.scores[NOISE, m] + tiny)
    for m in range(losses.size):
        if asked(plan, sketched, m):  # a ratio, so that the unit of rewards does not matter
            losses[m] = 0.5 * n * np.log((state.scores[NOISE, m] + tiny) / smallest) + 0.5 * state.scores[VOLUME, m]
            least = min(least, losses[m])
    w, largest = np.zeros(losses.size), 0.0
    for m in range(w.size):
        if asked(plan, sketched, m):
            w[m] = state.settings[m, WEIGHT] * np.exp(-TRUST * (losses[m] - least))
            largest = max(largest, w[m])
    for m in range(w.size):
        if w[m] < FEW * largest:
            w[m] = 0.0
    return w, least, smallest


@compiled
def tiny_of(state: Mixture) -> float:
    """Return a number so small that squared prediction errors of this size count as 0, in squared units of rewards.

    It is in proportion to the squared spread of the rewards of the `Mixture` in `state`.
    """
    return (PRECISION * state.rewards.numbers[SPREAD]) ** 2 + TINY


@compiled
def weights(state: Mixture) -> np.ndarray:
    """Return the weights (M,) by which the predictions of the M models of the `Mixture` in `state` are averaged.

    They sum to 1. Models with less than 0.05 times the largest weight have weight 0.
    """
    w, _, _ = raw_weights(state)
    return scale_weights(w)


@compiled
def scale_weights(w: np.ndarray) -> np.ndarray:
    """Return weights w (M,) divided by their sum."""
    return w / max(w.sum(), TINY)


@compiled
def weights_of_widths(w: np.ndarray) -> np.ndarray:
    """Return the weights (M,) by which the models' widths are averaged, given the weights w (M,) of their predictions.

    Models with at least 0.3 times the largest weight keep their weight, the others get 0, and the sum is scaled to 1.
    """
    v = np.where(w >= BELIEVED * w.max(), w, 0.0)
    return v / max(v.sum(), TINY)


@compiled
def sigma_of(state: Mixture, w: np.ndarray) -> float:
    """Return the average, with weights w (M,), of the models' root mean squares of prediction errors.

    `state` is the `Mixture`, which has the sums of squared errors.
    """
    total, n = 0.0, max(float(state.counts[KNOWN]), 1.0)
    for m in range(w.size):
        total += w[m] * np.sqrt(state.scores[NOISE, m] / n)
    return total


@compiled
def features(phi: np.ndarray, start: int, n: int, constant: float) -> np.ndarray:
    """Return `n` features of one model: the entries of phi from `start` on.

    If `constant` is not 0, it replaces the last of them.
    """
    if constant == 0.0:
        return phi[start : start + n]
    own = phi[start : start + n].copy()
    own[n - 1] = constant
    return own


@compiled
def unit_of(state: Mixture, w: np.ndarray) -> float:
    """Return the factor by which all widths are multiplied, so that they are in units of rewards.

    The factor is the models' root mean square prediction error, averaged with their weights w (M,), but at least a
    fixed fraction of the spread of rewards, their median absolute deviation. `state` is the `Mixture`.
    """
    return max(sigma_of(state, w), SHARE * state.rewards.numbers[SPREAD])


@compiled
def first_feature(plan: np.ndarray, w: np.ndarray, view: int) -> int:
    """Return the index of the first feature of feature map number `view` that a model with a weight above 0 has.

    w (M,) are the weights of the models, and `plan` (M, 3) holds each model's feature map and first feature.
    """
    found = -1
    for m in range(w.size):
        if w[m] > 0.0 and plan[m, SEES] == view and (found < 0 or plan[m, START] < found):
            found = plan[m, START]
    return max(found, 0)


@compiled
def kept_of(drift: float, last: int, now: int) -> float:
    """Return the fraction (1 - drift)^(now - last) of an arm's information that is left in round `now`.

    The arm last learned in round `last`, and `drift` is the model's rate of forgetting.
    """
    return (1.0 - drift) ** (now - last) if drift > 0.0 and last != NEVER else 1.0


@compiled
def cut(square: float, norm: float, learned: int) -> float:
    """Return the squared width of an arm, reduced because every row counts as a little information in all directions.

    `square` is the squared width, `learned` the number of rows of the arm, and `norm`, above 0, the squared norm of the
    features. The result is square / (1 + c learned square / norm) with a small constant c.
    """
    return square / (1.0 + ANYWHERE * learned * square / norm)


@compiled
def places_of(state: Mixture, slots: np.ndarray) -> np.ndarray:
    """Return `slots` (K,), the indices of arms' models, with -1 in place of arms that count as unknown.

    An arm counts as unknown if it has no rows, or if its few rewards tell little (rare_rewards.py). `state` is the
    `Mixture`.
    """
    found, arms, varied = slots.copy(), 0, has_many_values(state.rewards)
    every, unpaid, rows = 0.0, 0.0, 0.0
    for a in range(state.last.size):
        if state.last[a] != NEVER:
            arms += 1
            if varied:
                every += state.early[a, REPEATS]
                if not has_paid(state.tails[a]):
                    unpaid += state.early[a, REPEATS]
                    rows += state.learned[a]
    for a in range(slots.size):
        slot = slots[a]
        if slot == NEVER:
            continue
        if state.last[slot] == NEVER or (varied and counts_as_unknown(state, slot, arms, every, unpaid, rows)):
            found[a] = NEVER
    return found


@compiled
def counts_as_unknown(state: Mixture, slot: int, arms: int, every: float, unpaid: float, rows: float) -> bool:
    """Return True if an arm counts as unknown, because its few rewards are all or often equal (rare_rewards.py).

    An arm with many equal rewards is compared with the arms that have not paid a large reward yet, because the others
    may have many equal rewards, too. If no such arm is left, it is compared with all others.

    - state: the `Mixture`.
    - slot: index of the arm's models.
    - arms: number of arms that have learned.
    - every: number of repeated rewards of all arms.
    - unpaid, rows: number of repeated rewards, and of rows, of all arms that have not paid a large reward.
    """
    alike, repeats, learned = state.early[slot, ALIKE], state.early[slot, REPEATS], state.learned[slot]
    known = state.counts[KNOWN]
    if says_little(alike, learned, known, arms):
        return True
    if has_paid(state.tails[slot]) or not has_many_repeats(repeats, learned, known, arms):
        return False
    if rows > learned:
        return unpaid - repeats < REPEATS_OFTEN * (rows - learned)
    return every - repeats < REPEATS_OFTEN * (known - learned)


@compiled
def add_tails(state: Mixture, slots: np.ndarray, means: np.ndarray) -> None:
    """Add to the predicted means (K,) of arms, in place, the mean amount that clipping removed from their rewards.

    It is added only for arms whose large rewards recur (rare_rewards.py). `slots` (K,) are the indices of the arms'
    models in `state`, the `Mixture`.
    """
    for a in range(slots.size):
        if slots[a] != NEVER:
            means[a] += tail_of(state.tails[slots[a]], state.learned[slots[a]])


@compiled
def survey(state: Mixture, rows: np.ndarray, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the predicted means (K,) and widths (K,) of K arms, and the factor of widths in units of rewards.

    `rows` is (K, d), or (1, d) if all arms have the same row. `slots` (K,) are the indices of the arms' models in
    `state`, the `Mixture`.
    """
    w = weights(state)
    means, widths = survey_models(state, rows, places_of(state, slots), w)
    return means, widths, unit_of(state, w)


@compiled
def survey_models(state: Mixture, rows: np.ndarray, slots: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the means and widths (K,) that models with weights w (M,) predict for K arms.

    Means are averaged. A width is the root of the average of squared widths, by `weights_of_widths`.

    `rows` is (K, d), or (1, d) if all arms have the same row. `slots` (K,) are the indices of the arms' models in
    `state`, the `Mixture`, and -1 for unknown arms, which get the mean and width of the prior.
    """
    if state.sketches.root.shape[1] > 0 and model_of_sketches(state.plan) == SPARSE_MODEL:
        return survey_sketches(state, rows, slots)
    now, level, v = state.counts[CLOCK], prior(state.rewards), weights_of_widths(w)
    means, widths = np.full(slots.size, level), np.zeros(slots.size)
    for i in range(rows.shape[0]):
        first, last = (0, slots.size) if rows.shape[0] == 1 else (i, i + 1)
        for view in range(len(state.views)):
            phi, t, p = np.empty(0, np.float32), 0, 0
            for m in range(w.size):
                n, reg, wide = state.plan[m, SIZE], state.settings[m, REG], state.settings[m, STRETCH]
                if n > 0 and w[m] > 0.0 and state.plan[m, SEES] == view:
                    if phi.size == 0:
                        phi = embed_from(state.views[view], rows[i], first_feature(state.plan, w, view))
                    own = features(phi, state.plan[m, START], n, state.settings[m, CONSTANT])
                    norm = unknown(own, 1.0)
                    for a in range(first, last):
                        slot, square = slots[a], norm / reg
                        if slot != NEVER:
                            theta, tau = state.theta[slot, t : t + n], state.tau[slot, t : t + n]
                            kept = kept_of(state.settings[m, DRIFT], state.last[slot], now)
                            means[a] += w[m] * guess(theta, tau, own, kept, level)
                            if v[m] > 0.0:
                                square = look(state.inverse[slot, p : p + length(n)], own, kept, reg)
                                square = cut(square, norm, state.learned[slot])
                        if v[m] > 0.0:
                            widths[a] += v[m] * wide * wide * square
                t, p = t + n, p + length(n)
    if w[SKETCH_MODEL] > 0.0:
        add_dense_sketches(state, rows, slots, w[SKETCH_MODEL], v[SKETCH_MODEL], means, widths)
    add_tails(state, slots, means)
    return means, np.sqrt(widths)


@compiled
def add_dense_sketches(
    state: Mixture,
    rows: np.ndarray,
    slots: np.ndarray,
    weight: float,
    weight_of_width: float,
    means: np.ndarray,
    squares: np.ndarray,
) -> None:
    """Add the part of the model on sketches to the predicted means and squared widths (K,) of K arms, in place.

    Rows are not mostly zeros. The model's weights in means and widths are `weight` and `weight_of_width`.
    `survey_models` describes the other arguments.
    """
    reg = state.settings[SKETCH_MODEL, REG]
    for i in range(rows.shape[0]):
        first, last = (0, slots.size) if rows.shape[0] == 1 else (i, i + 1)
        phi = scale_row(state.views[STANDARD], rows[i])
        norm = unknown(phi, 1.0)
        for a in range(first, last):
            slot, square = slots[a], norm / reg
            if slot != NEVER:
                mean, square = ask_dense(state.sketches, slot, phi, reg)
                means[a] += weight * mean
                square = cut(square, norm, state.learned[slot])
            squares[a] += weight_of_width * square


@compiled
def survey_sketches(state: Mixture, rows: np.ndarray, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return predicted means and widths (K,) of K arms with sketches, for rows that are mostly zeros.

    `rows` is (K, d), or (1, d) if all arms have the same row. `slots` (K,) are the indices of the arms' sketches in
    `state`, the `Mixture`, and -1 for unknown arms, which get the mean and width of the prior.
    """
    reg, wide = state.settings[SPARSE_MODEL, REG], state.settings[SPARSE_MODEL, STRETCH]
    means, widths = np.full(slots.size, prior(state.rewards)), np.zeros(slots.size)
    for i in range(rows.shape[0]):
        first, last = (0, slots.size) if rows.shape[0] == 1 else (i, i + 1)
        places, values, norm = sparse_row(state.views[RAW], rows[i])
        for a in range(first, last):
            slot, square = slots[a], norm / reg
            if slot != NEVER:
                mean, square = ask_sketch(state.sketches, slot, places, values, norm)
                means[a] += mean
                square = cut(square, norm, state.learned[slot])
            widths[a] = wide * np.sqrt(square)
    add_tails(state, slots, means)
    return means, widths


@compiled
def add_score(scores: np.ndarray, m: int, e: float, h: float) -> None:
    """Add a prediction error e of model m, whose squared width was h, to the sums that determine the model's weight.

    `scores` (2, M) holds the sums of e^2 / (1 + h) and of log(1 + h), and is changed in place.
    """
    scores[NOISE, m] += e * e / (1.0 + h)
    scores[VOLUME, m] += np.log(1.0 + h)


@compiled
def best_without_drift(state: Mixture) -> int:
    """Return the index of the model in use with the smallest sum e^2 / (1 + h), among those that forget nothing.

    `state` is the `Mixture`, whose `scores` hold these sums.
    """
    found, least, sketched = 0, np.inf, state.sketches.root.shape[1] > 0
    for m in range(state.plan.shape[0]):
        still = asked(state.plan, sketched, m) and state.settings[m, DRIFT] == 0.0
        if still and state.scores[NOISE, m] < least:
            found, least = m, state.scores[NOISE, m]
    return found


@compiled
def improve(state: Mixture, slot: int, x: np.ndarray, now: int, reward: float) -> tuple[float, float, int]:
    """Let every model of an arm learn a reward for the row x (d,) in round `now`.

    `slot` is the index of the arm's models in `state`, the `Mixture`, whose arrays are changed in place. Returns three
    numbers of the model that was best so far among those that forget nothing: its prediction error and its squared
    width, both before it learns the reward, and its index.
    """
    best, error, spread, beyond = best_without_drift(state), 0.0, 0.0, 0.0
    level, numbers, tails = prior(state.rewards), state.rewards.numbers, state.tails[slot]
    size, bound = note_size(tails, reward, numbers[MIDDLE], FAR * numbers[SPREAD], state.learned[slot])
    for v in range(len(state.views)):
        phi, t, p = np.empty(0, np.float32), 0, 0
        for m in range(state.plan.shape[0]):
            n = state.plan[m, SIZE]
            if n > 0 and state.plan[m, SEES] == v:
                if phi.size == 0:
                    phi = embedded(state.views[v], x)
                own = features(phi, state.plan[m, START], n, state.settings[m, CONSTANT])
                theta, tau = state.theta[slot, t : t + n], state.tau[slot, t : t + n]
                inverse = state.inverse[slot, p : p + length(n)]
                kept = kept_of(state.settings[m, DRIFT], state.last[slot], now)
                e, h, rest = learn(theta, tau, inverse, own, kept, state.settings[m, REG], reward, level, bound)
                add_score(state.scores, m, e, h)
                if m == best:
                    error, spread, beyond = e, h, rest
            t, p = t + n, p + length(n)
    if state.sketches.root.shape[1] > 0:
        m = model_of_sketches(state.plan)
        if m == SPARSE_MODEL:
            phi, middle = embedded(state.views[RAW], x), middle_of(state.views[RAW])
        else:
            phi, middle = scale_row(state.views[STANDARD], x), np.empty(0, np.float32)
        reg = state.settings[m, REG]
        e, h, rest = learn_sketch(state.sketches, slot, phi, middle, reg, reward - level, bound)
        add_score(state.scores, m, e, h)
        if m == best:
            error, spread, beyond = e, h, rest
    add_cut(tails, size, beyond)
    state.last[slot] = now
    state.learned[slot] += 1
    state.counts[KNOWN] += 1
    return error, spread, best


@compiled
def begin_arm(state: Mixture, slot: int) -> None:
    """Set the models of the arm at index `slot` to the prior, before the arm's first reward."""
    t, p = 0, 0
    for m in range(state.plan.shape[0]):
        n = state.plan[m, SIZE]
        begin(
            state.theta[slot, t : t + n],
            state.tau[slot, t : t + n],
            state.inverse[slot, p : p + length(n)],
            state.settings[m, REG],
        )
        t, p = t + n, p + length(n)
    if state.sketches.root.shape[1] > 0:
        begin_sketch(state.sketches, slot, state.settings[model_of_sketches(state.plan), REG])


@compiled
def vacate(state: Mixture, slot: int) -> None:
    """Mark the models at index `slot` as having learned nothing, and mark the stored rows of their arm as of no arm."""
    state.last[slot] = NEVER
    state.learned[slot] = 0
    state.tails[slot] = 0.0
    for i in range(state.arms.size):
        if state.arms[i] == slot:
            state.arms[i] = NEVER


def erase(state: Mixture, slot: int) -> None:
    """Forget the arm whose models are at index `slot`, and overwrite its data with zeros."""
    vacate(state, slot)
    for array in (state.theta, state.tau, state.inverse, state.early, state.tails, *state.sketches):
        array[slot] = 0


@compiled
def forget(state: Mixture) -> None:
    """Forget everything learned, except the feature maps and the scale of rewards, after an alarm."""
    for slot in range(state.last.size):
        vacate(state, slot)
    state.scores[:] = 0.0
    state.counts[KNOWN], state.suspicion[0] = 0, 0.0
    state.counts[ALARMS] += 1


@compiled
def take(state: Mixture, x: np.ndarray, slot: int, reward: float, alarm_threshold: float) -> None:
    """Learn one row x (d,) with its reward for the arm whose models are at index `slot`, and test for an alarm.

    `state` is the `Mixture`, changed in place. `alarm_threshold` is the value of the change statistic (a CUSUM of
    prediction errors) above which everything is forgotten, or 0 for never.
    """
    now = state.counts[CLOCK]
    if now < state.rows.shape[0]:
        state.rows[now], state.arms[now], state.gains[now] = x, slot, reward
    state.counts[CLOCK] += 1
    note_reward(state.rewards, reward)
    note_early(state.rewards, state.early, slot, reward)
    e, h, best = improve(state, slot, x, now, reward)
    variance = state.scores[NOISE, best] / state.counts[KNOWN]
    if variance > 0.0:
        surprise = min(e * e / ((1.0 + h) * variance), SURPRISE)
        state.suspicion[0] = max(0.0, state.suspicion[0] + surprise - EXPECTED)
    if not worse(state.rewards):
        state.suspicion[0] = 0.0
    if 0.0 < alarm_threshold < state.suspicion[0] and state.counts[KNOWN] > SETTLED:
        forget(state)


@compiled
def learn_again(state: Mixture, first: int, last: int) -> None:
    """Learn the stored rows with the indices `first` to `last` - 1 again."""
    for i in range(first, last):
        if state.arms[i] != NEVER:
            improve(state, state.arms[i], state.rows[i], i, state.gains[i])


def begun_mixture(dim: int, room: int, reg: float) -> Mixture:
    """Return the state of averaged models that have learned nothing; the plan of models to use is still empty.

    `dim` is the number of columns, `room` the number of first rows that models which begin later learn, and `reg` the
    ridge penalty.
    """
    count = len(MODELS)
    return Mixture(
        views=(no_view(dim), no_view(dim), no_view(dim)),
        plan=zeros(count, SIZE + 1, dtype=np.int64),
        settings=np.array(
            [
                [own or reg, drift, stretch, np.sqrt(own / counts) if own and counts else 0.0, weight]
                for _, _, drift, own, stretch, weight, counts in MODELS
            ]
        ),
        scores=zeros(2, count),
        theta=zeros(0, 0, dtype=np.float32),
        tau=zeros(0, 0, dtype=np.float32),
        inverse=zeros(0, 0, dtype=np.float32),
        early=zeros(0, REPEATS + 1),
        last=zeros(0, dtype=np.int64),
        learned=zeros(0, dtype=np.int64),
        tails=zeros(0, 3, SIZES),
        rewards=no_rewards(),
        counts=zeros(ALARMS + 1, dtype=np.int64),
        suspicion=zeros(1),
        rows=zeros(room, dim),
        arms=zeros(room, dtype=np.int64),
        gains=zeros(room),
        sketches=no_sketches(0, dim, 0),
    )


def make_plan(views_made: tuple[View, View, View], used: np.ndarray) -> np.ndarray:
    """Return an array (M, 3) with each model's feature map, first feature and number of features.

    `views_made` are the feature maps, and models with used (M,) False have 0 features.
    """
    plan = np.zeros((len(MODELS), SIZE + 1), np.int64)
    for row, (sees, kernel, *_), wanted in zip(plan, MODELS, used, strict=True):
        landmarks = len(views_made[sees].landmarks)
        last = landmarks + width(views_made[sees])
        start = (last, landmarks, 0)[kernel]
        row[:] = sees, start, last + 1 - start if wanted else 0
    return plan


def choice(rows: np.ndarray, landmarks: int, ranked: bool) -> np.ndarray:
    """Return a mask (M,) of the models to use for these rows (n, d).

    Wide rows that are mostly zeros use the linear model on raw columns alone. If they have more than 300 columns, no
    model is used, because sketches take their place. All other rows use the other models: kernel models only if
    `landmarks` is above 0, and the model on ranks only if `ranked` is True and there are at most 300 columns.
    """
    if rows.shape[1] > FEW_COLUMNS and np.mean(rows == 0.0) > SPARSE:
        return (np.arange(len(MODELS)) == SPARSE_MODEL) & (rows.shape[1] <= WIDE)
    used = np.array([kernel != KERNEL or landmarks > 0 for _, kernel, *_ in MODELS])
    used[SPARSE_MODEL] = used[SKETCH_MODEL] = False  # the latter has a sketch, and no features
    used[RANKED_MODEL] &= ranked and rows.shape[1] <= WIDE
    return used


def bytes_of(plan: np.ndarray, dim: int, size: int) -> int:
    """Return the memory of one arm in bytes: its models, and a sketch of `size` directions of `dim` columns.

    `plan` (M, 3) holds each model's feature map, first feature and number of features.
    """
    sizes = plan[:, SIZE]
    return int((8 * sizes + 4 * length(sizes)).sum()) + bytes_of_sketch(dim, size)


def grown(state: Mixture, slots: int) -> Mixture:
    """Return the state of averaged models with its arrays enlarged to hold `slots` arms."""
    sizes, before = state.plan[:, SIZE], len(state.last)
    more = state._replace(
        theta=lazy_zeros(slots, int(sizes.sum()), dtype=np.float32),
        tau=lazy_zeros(slots, int(sizes.sum()), dtype=np.float32),
        inverse=lazy_zeros(slots, int(length(sizes).sum()), dtype=np.float32),
        early=np.zeros((slots, REPEATS + 1)),
        last=np.full(slots, NEVER),
        learned=np.zeros(slots, np.int64),
        tails=np.zeros((slots, 3, SIZES)),
        sketches=no_sketches(slots, state.rows.shape[1], state.sketches.root.shape[1] // 2),
    )
    for name in ("theta", "tau", "inverse", "early", "last", "learned", "tails"):
        getattr(more, name)[:before] = getattr(state, name)[:before]
    for array, old in zip(more.sketches, state.sketches, strict=True):
        array[:before] = old
    return more


def consistent(state: Mixture, begun: Mixture, arms: int) -> bool:
    """Return True if the shapes and counters of a loaded state are consistent.

    - begun: a state of the right width that has learned nothing.
    - arms: number of arms for which there must be room.
    """
    dim = begun.rows.shape[1]
    flat = ("plan", "settings", "scores", "counts", "suspicion", "arms", "gains")
    same = all(getattr(state, name).shape == getattr(begun, name).shape for name in flat)
    if not same or [one.shape for one in state.rewards] != [one.shape for one in begun.rewards]:
        return False
    if state.rows.shape != begun.rows.shape and state.rows.shape != (0, dim):
        return False
    if not all(view_fits(view, dim) for view in state.views):
        return False
    clock, known, alarms = state.counts.tolist()
    sizes, top = state.plan[:, SIZE], max(arms, int(state.arms.max()) + 1)
    room = (len(state.last), int(sizes.sum())), (len(state.last), int(length(sizes).sum()))
    return bool(
        np.array_equal(state.settings, begun.settings)
        and (np.array_equal(state.plan, make_plan(state.views, sizes > 0)) or (clock == 0 and not state.plan.any()))
        and (state.theta.shape, state.inverse.shape) == room
        and state.tau.shape == state.theta.shape
        and state.early.shape == (len(state.last), REPEATS + 1)
        and state.tails.shape == (len(state.last), 3, SIZES)
        and (len(state.last) >= top or clock == 0)
        and ((state.last >= NEVER) & (state.last <= clock)).all()
        and np.array_equal(state.learned > 0, state.last > NEVER)
        and state.learned.sum() <= known
        and (state.arms >= NEVER).all()
        and 0 <= known <= clock == state.rewards.numbers[SEEN]
        and alarms >= 0
        and sketches_fit(state.sketches, state.last > NEVER, dim)
    )
