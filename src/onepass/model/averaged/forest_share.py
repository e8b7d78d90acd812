"""The forest beside the averaged models: its weight, the means of both together, and what it learns.

    l = n/2 log(S) + H / 2,   S = sum of e^2 / (1 + h),   H = sum of log(1 + h)         as for a model (mixture.py)
    w = e^(-TRUST l) / (e^(-TRUST l) + sum_m pi_m e^(-TRUST l_m)),  0 below FEW and before FROM rows, at most MOST
    mean_a = (1 - w) (mean_a of the models) + w (mean_a of the trees) + tail_a
    sigma = (1 - w) (sigma of the models) + w sqrt(S / n)

e is the error with which the forest predicts a reward before it learns it, and h the mean of 1 / (1 + rows of the arm
in the leaf), over trees. Squared errors say how well the played arms are predicted, and not how well arms are told
apart. So a forest is never believed alone. Its trees have no width: widths are those of the other models.
"""

import numpy as np

from onepass.foundation.generic import compiled
from onepass.model.averaged.forest import (
    Forest,
    add_to_trees,
    ask_forest,
    clear_forest,
    judge_forest,
    needs_tree,
    replace_tree,
    store,
)
from onepass.model.averaged.mixture import (
    FEW,
    KNOWN,
    NEVER,
    NOISE,
    SHARE,
    TRUST,
    VOLUME,
    Mixture,
    places_of,
    raw_weights,
    scale_weights,
    sigma_of,
    survey_models,
    tiny_of,
)
from onepass.model.averaged.rare_rewards import clip_of, tail_of
from onepass.model.averaged.rewards import FAR, MIDDLE, SPREAD, prior

FROM = 100  # rows: trees of fewer say little, and cost mistakes on the smallest sets
MOST = 0.7  # alone they make up to 1.12 times the mistakes where truths are smooth (docs/recommended_measured.md)


@compiled
def share_of(state: Mixture, forest: Forest, found: tuple[np.ndarray, float, float]) -> float:
    """Return the weight, from 0 to 1, of the forest in predicted means; the averaged models `state` have the rest.

    `found` is the result of `raw_weights` for these models: their weights, the least loss and the least error.
    """
    if state.counts[KNOWN] < FROM:
        return 0.0
    n, tiny, (w, least, smallest) = float(state.counts[KNOWN]), tiny_of(state), found
    total = w.sum()
    if total == 0.0:
        return 0.0
    loss = 0.5 * n * np.log((forest.scores[NOISE] + tiny) / smallest) + 0.5 * forest.scores[VOLUME]
    share = 1.0 / (1.0 + total * np.exp(min(TRUST * (loss - least), 100.0)))
    return min(share, MOST) if share >= FEW else 0.0


@compiled
def sigma_with_trees(state: Mixture, forest: Forest, w: np.ndarray, share: float) -> float:
    """Return sigma, the root mean square prediction error of models and forest, averaged with their weights.

    w (M,) are the weights of the models, and `share` is that of the forest.
    """
    sigma = sigma_of(state, w)
    if share > 0.0:
        sigma += share * (np.sqrt(forest.scores[NOISE] / state.counts[KNOWN]) - sigma)
    return sigma


@compiled
def survey_with_trees(
    state: Mixture, forest: Forest, rows: np.ndarray, slots: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return means (K,), widths (K,), and the factor that turns widths into units of rewards.

    A mean is the weighted average of the predictions of the models in `state` and of the forest. Widths are those of
    the models. `rows` is (K, d), or (1, d) if all arms have the same row. `slots` (K,) are the indices of the arms'
    models.
    """
    found, places = raw_weights(state), places_of(state, slots)
    w = scale_weights(found[0])
    means, widths = survey_models(state, rows, places, w)
    share = share_of(state, forest, found)
    sigma = sigma_with_trees(state, forest, w, share)
    if share > 0.0:
        level = prior(state.rewards)
        for i in range(rows.shape[0]):
            first, last = (0, slots.size) if rows.shape[0] == 1 else (i, i + 1)
            asked = ask_forest(forest, rows[i], places[first:last], level)
            for a in range(first, last):
                slot = places[a]
                if slot != NEVER:
                    tail = tail_of(state.tails[slot], state.learned[slot])
                    means[a] += share * (asked[a - first] + tail - means[a])
    return means, widths, max(sigma, SHARE * state.rewards.numbers[SPREAD])


@compiled
def teach_trees(state: Mixture, forest: Forest, x: np.ndarray, slot: int, reward: float) -> None:
    """Let the forest predict and learn a reward for row x that the models have just learned.

    `slot` is the index of the arm. One of the trees is grown anew if that is due. If the models have just forgotten
    everything, so does the forest.
    """
    if state.counts[KNOWN] == 0:
        clear_forest(forest)
        return
    most = FAR * state.rewards.numbers[SPREAD]
    guessed, h = judge_forest(forest, x, slot, prior(state.rewards))
    e, bound = reward - guessed, clip_of(state.tails[slot], most, state.learned[slot]) * np.sqrt(1.0 + h)
    if bound > 0.0:
        e = min(max(e, -bound), bound)
    forest.scores[NOISE] += e * e / (1.0 + h)
    forest.scores[VOLUME] += np.log(1.0 + h)
    add_to_trees(forest, x, slot, guessed + e)
    store(forest, x, slot, guessed + e)
    if needs_tree(forest):
        bounds = np.zeros(state.last.size)
        for a in range(bounds.size):
            bounds[a] = clip_of(state.tails[a], most, state.learned[a])
        replace_tree(forest, state.rewards.numbers[MIDDLE], bounds)
