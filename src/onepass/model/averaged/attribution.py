"""Attribution of an arm's mean and width to the columns of a row, for averaged models.

With features phi_mj and parameters theta_mj of model m for column j, mean and width are sums:

    mean    = mu + tail + (1 - w) sum_m w_m (sum_j (theta_mj - mu tau_mj) phi_mj) + w (steps of the trees)
    width^2 = sum_m v_m cut_m^2 sum_j phi_mj (P_m phi_m)_j

cut_m is the factor of the widths of model m, reduced by the arm's rows. mixture.py defines the other symbols. Every
model with weight has one feature for column j. For wide rows, features are coordinates on the span Q (span.py), except
for the model on a sketch (sketches.py). All kernel features together are one term. w is the weight of the trees
(forest_share.py). A step is the change of the arm's mean at a split of a tree. It belongs to the column of the split,
and the step from mu to the root to the prior.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from onepass.design.subspace import solve_in
from onepass.features.attribution import Terms
from onepass.foundation.check import quote
from onepass.model.averaged.forest import Forest, forest_path
from onepass.model.averaged.forest_share import share_of
from onepass.model.averaged.mixture import (
    CLOCK,
    CONSTANT,
    DRIFT,
    NEVER,
    REG,
    SIZE,
    STRETCH,
    Mixture,
    cut,
    features,
    kept_of,
    places_of,
    raw_weights,
    scale_weights,
    weights_of_widths,
)
from onepass.model.averaged.rare_rewards import tail_of
from onepass.model.averaged.regression import length
from onepass.model.averaged.rewards import prior
from onepass.model.averaged.sketches import state_of
from onepass.model.averaged.view import View, columns_alone, embedded, width
from onepass.model.contract import Side


def called(dim: int, names: Iterable[str] | None) -> tuple[str, ...]:
    """Return the names of `dim` columns, x0, x1, ... if names is None.

    Raises ValueError unless there are `dim` different names.
    """
    columns = tuple(f"x{j}" for j in range(dim)) if names is None else tuple(names)
    if len(columns) != dim or len(set(columns)) != len(columns):
        raise ValueError(f"names must be {dim} different strings, got {quote(columns)}")
    return columns


def sides_of(
    state: Mixture, forest: Any, rows: list[np.ndarray], slots: list[int], names: tuple[str, ...], count: int
) -> list[list[Side]]:
    """Return the contributions of the columns of a row to the means and squared widths of one or two arms.

    - state: the averaged models.
    - forest: the trees beside the models, or ().
    - rows: a row (d,) for each arm.
    - slots: indices of the arms' models.
    - names: the columns' names.
    - count: 1 for the first arm alone, 2 for both.

    The squared width of the second arm gets a minus sign, because attributions explain a difference of two scores.
    """
    each = zip(rows, slots, (1.0, -1.0)[:count], strict=False)
    return [[side(state, forest, x, slot, sign, names)] for x, slot, sign in each]


def side(state: Mixture, forest: Any, x: np.ndarray, slot: int, sign: float, names: tuple[str, ...]) -> Side:
    """Return the contributions of the columns of a row to one arm's mean and squared width.

    - state: the averaged models.
    - forest: the trees beside the models, or ().
    - x (d,): the row.
    - slot: index of the arm's models.
    - sign: factor of the squared width: 1, or -1 for the arm that is subtracted in a comparison.
    - names: the columns' names.
    """
    dim = x.size
    means, squares, slopes = np.zeros(dim + 2), np.zeros(dim + 2), np.zeros((2, dim + 2))
    squares[-1] = 1.0 if state == () else 0.0  # as `ArmMixtures.survey` predicts before the first row
    if state != ():
        means[-1] = level = prior(state.rewards)
        slot = int(places_of(state, np.array([slot]))[0])
        if slot != NEVER:
            means[-1] += tail_of(state.tails[slot], state.learned[slot])
        raw, trees = raw_weights(state), 0.0
        w = scale_weights(raw[0])
        v = weights_of_widths(w)
        if forest != () and slot != NEVER:
            trees = share_of(state, forest, raw)
            steps = trees * forest_steps(forest, x, slot, level)
            means[:dim] += steps[:dim]
            means[-1] += steps[-1]
        for m, (weight, of_width) in enumerate(zip((1.0 - trees) * w, v, strict=True)):
            if weight > 0.0:
                sees, start, size = state.plan[m].tolist()
                view = columns_alone(state.views[sees]) if size == 0 else state.views[sees]  # a sketch
                phi = embedded(view, x)
                start, size = (start, size) if size else (0, phi.size)
                phi = features(phi, start, size, state.settings[m, CONSTANT]).astype(np.float64)
                theta, solved = theta_and_solved(state, m, slot, phi, level)
                across = min(width(view), size - 1)
                square = max(float(phi @ solved), np.finfo(np.float64).tiny)
                left = cut(square, phi @ phi, 0 if slot == NEVER else state.learned[slot]) / square
                widened = of_width * state.settings[m, STRETCH] ** 2 * left
                z = columns_of(view, x, phi) if across > 0 else np.zeros(dim)
                for total, by in ((means, weight * theta), (squares, widened * solved)):
                    if across > 0:
                        total[:dim] += z * of_columns(view, by[-across - 1 : -1])
                    total[dim] += (by * phi)[: -across - 1].sum()
                    total[dim + 1] += by[-1] * phi[-1]
                if across > 0:
                    slopes[0, :dim] += of_columns(view, weight * theta[-across - 1 : -1]) * moving(view, x)
    terms = Terms(
        names=(*names, "landmarks", "prior"),
        values=np.append(x, [1.0, 1.0]),
        slopes=slopes,
        parts=np.stack([means, sign * squares]),
    )
    return Side("arm", terms, float(means.sum()), float(sign * squares.sum()))


def forest_steps(forest: Forest, x: np.ndarray, slot: int, level: float) -> np.ndarray:
    """Return the steps of the trees from `level` to the mean of the arm in a slot, summed by column, (d + 1,).

    The last entry is the step from `level`, the mean of an unknown arm, to the roots.
    """
    steps, trees = np.zeros(x.size + 1), len(forest.children)
    for t in range(trees):
        columns, means = forest_path(forest, t, x, slot, level)
        np.add.at(steps, [x.size, *columns], np.diff(means) / trees)
    return steps


def theta_and_solved(state: Mixture, m: int, slot: int, phi: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights (n,) of n features in an arm's predicted mean, and their weights (n,) in its squared width.

    - m: number of the model.
    - slot: index of the arm's models.
    - phi (n,): the features.
    - level: predicted reward of an unknown arm.

    The first weights are theta - level tau with the arm's parameters theta (n,) and its parameters tau (n,) for a
    target that is always 1. The second are P phi, where P is the inverse of the arm's Gram matrix. Both are discounted
    to the current round.
    """
    reg = state.settings[m, REG]
    if slot == NEVER:
        return np.zeros(phi.size), phi / reg
    if state.plan[m, SIZE] == 0:
        space = state_of(state.sketches, slot, reg).space
        return state.sketches.theta[slot].astype(np.float64), solve_in(space, phi.astype(np.float32)).astype(np.float64)
    sizes = state.plan[:, SIZE]
    t, p, lower = sizes[:m].sum(), length(sizes[:m]).sum(), np.zeros((phi.size, phi.size))
    lower[np.tril_indices(phi.size)] = state.inverse[slot, p : p + length(phi.size)]
    whole, kept = lower + np.tril(lower, -1).T, kept_of(state.settings[m, DRIFT], state.last[slot], state.counts[CLOCK])
    theta = state.theta[slot, t : t + phi.size] - level * state.tau[slot, t : t + phi.size]
    return np.sqrt(kept) * theta, kept * (whole @ phi) + (1.0 - kept) * phi / reg


def columns_of(view: View, x: np.ndarray, phi: np.ndarray) -> np.ndarray:
    """Return the value (d,) of the linear feature that each column of the row x gives.

    `view` is a feature map, and `phi` holds all features of x. For wide rows, whose features are coordinates along main
    directions, the result holds the scaled columns.
    """
    if view.span.basis.shape[1] == 0:
        return phi[-x.size - 1 : -1]
    limit, scale, _ = view.numbers
    return scale * np.clip((x - view.center) * view.unit, -limit, limit)


def of_columns(view: View, linear: np.ndarray) -> np.ndarray:
    """Return the weight (d,) of every column, given the weights `linear` of the linear features.

    `view` is the feature map. For wide rows the features are coordinates Q^T z of the scaled row z along main
    directions Q, so the result is Q times the weights.
    """
    basis = view.span.basis
    return basis @ linear if basis.shape[1] else linear


def moving(view: View, x: np.ndarray) -> np.ndarray:
    """Return the derivative (d,) of each column's linear feature with respect to the column, at the row x.

    It is 0 where the feature is clipped.
    """
    limit, scale, _ = view.numbers
    if view.knots.shape[1] > 0:
        return scale * np.array([slope(*line) for line in zip(x, view.knots, view.heights, strict=True)])
    return np.where(np.abs((x - view.center) * view.unit) < limit, view.unit * scale, 0.0)


def slope(x: float, knots: np.ndarray, heights: np.ndarray) -> float:
    """Return the slope at x of the piecewise linear function through (knots, heights); 0 outside the knots."""
    place = int(np.searchsorted(knots, x, side="right"))
    if place in (0, len(knots)):
        return 0.0
    return float((heights[place] - heights[place - 1]) / (knots[place] - knots[place - 1]))
