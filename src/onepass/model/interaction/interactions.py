"""A linear model of users, items, and all pairs of their features, which never forms the row of products.

The mean reward of user u for item a and its width are

    mean = w_00 + sum_i u_i w_i0 + sum_j a_j w_0j + sum_ij u_i a_j w_ij + o     u: user, a: item, o: effect of the item
    width^2 = the same sum of squared inputs times the variance p of each weight

A pair's weight and variance are in a table at (1 + place of i, 1 + place of j), with index 0 for the constant, so a
user of n and an item of m terms cost (1 + n)(1 + m). Learning is ridge regression with a diagonal covariance: for a
reward r

    e = r - mean,   h = width^2,   w_ij += p_ij x_ij e / (1 + h),   p_ij <- p_ij / (1 + p_ij x_ij^2),   x_ij = u_i a_j

u and a are divided by the root mean squares of their lengths so far, so that users, items, and pairs have a prior
variance of `prior` each, however many terms they have. Several priors learn side by side. Their losses L are sums of
e^2 / (1 + variance of w_00), and

    weight of a prior ~ exp(-TEMPER (L - L_min) / (2 L_min / n)),   sigma^2 = weighted mean of e^2 / (1 + h)

Everything is in units of sigma, the size of the residuals, so multiplied rewards give multiplied means and the same
choices. If rewards have hardly any noise, sigma falls with every row, and the prior that explains them best is a wide
one. Without that prior the widths of untried arms would fall as well.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.exploration.contract import ArmStatistics, draws, strength
from onepass.exploration.slots import rank_and_fill
from onepass.foundation.generic import compiled
from onepass.foundation.state import is_abstract, zeros
from onepass.model.shared_loop import sample_means

PRIORS = (0.01, 0.1, 1.0, 10.0, 100.0)  # in units of sigma^2: signals from a tenth of the noise to ten times as much
CONSTANT = 1e6  # of the constant, in units of sigma^2: free, in effect, beside the widest prior as well
OWN = 0.15  # of an item's own appeal, in units of a prior
TEMPER = 0.2  # losses of priors that learn from the same rewards differ less surely than independent ones
NEGLIGIBLE = 0.01  # weight of a prior below which it is not asked
NEW, NAMELESS = -1, -2  # in place of the place of an item: one without a record; one that has no name
TOTALS = 3  # of what is counted: rows, squared lengths of users, of items


class InteractionState(NamedTuple):
    """State of a linear model of requests (users), arms (items) and all pairs of their features, under several priors.

    - cells (1 + users, 1 + items, 2 priors): weights, then variances, of all pairs of columns; index 0 is a constant.
    - own (recent, 2 priors): weights and variances of the items' own effects.
    - losses (priors,): sums of e^2 / (1 + the constant's variance) over prediction errors e, so that an error in the
      common level of all rewards counts little.
    - squares (priors,): sums of e^2 / (1 + h), with the squared width h.
    - totals (3,): number of rows, and the sums of squared lengths of users and of items.
    """

    cells: np.ndarray
    own: np.ndarray
    losses: np.ndarray
    squares: np.ndarray
    totals: np.ndarray


class InteractionRow(NamedTuple):
    """Features of a request and of one arm.

    - user, user_values: columns and values of the request's features.
    - item, item_values: columns and values of the arm's features.
    - own: index of the arm's own effect in `InteractionState.own`, negative if it has none.
    """

    user: np.ndarray
    user_values: np.ndarray
    item: np.ndarray
    item_values: np.ndarray
    own: int


def init_state(users: int, items: int, recent: int) -> InteractionState:
    """Return the state before the first reward, for `users` columns of requests and `items` columns of arms.

    `recent` is the number of arms whose own effects can be stored.
    """
    priors = len(PRIORS)
    cells, own = zeros(1 + users, 1 + items, 2 * priors), zeros(recent, 2 * priors)
    if not is_abstract():
        cells[:, :, priors:] = PRIORS
        cells[0, 0, priors:] = CONSTANT
        own[:, priors:] = OWN * np.array(PRIORS)
    return InteractionState(cells=cells, own=own, losses=zeros(priors), squares=zeros(priors), totals=zeros(TOTALS))


def reset_arm(state: InteractionState, place: int) -> None:
    """Reset the own effect of an arm, at index `place`, to the prior, in place, before another arm uses the index."""
    priors = state.losses.size
    state.own[place, :priors] = 0.0
    state.own[place, priors:] = OWN * np.array(PRIORS[:priors])


def rescale(state: InteractionState, users: list[tuple[int, float]], items: list[tuple[int, float]]) -> None:
    """Divide the weights of columns whose values were multiplied, in place, so that predictions stay the same.

    `users` and `items` list these columns of requests and of arms, as pairs (column, factor).
    """
    priors = state.losses.size
    for place, factor in users:
        state.cells[1 + place, :, :priors] /= factor
    for place, factor in items:
        state.cells[:, 1 + place, :priors] /= factor


@compiled
def prior_weights(state: InteractionState) -> tuple[np.ndarray, float]:
    """Return the weights (priors,) of the priors by how well they predict, which sum to 1, and the scale of the errors.

    `state` is the `InteractionState`. The scale is the root mean square prediction error, averaged with the weights.
    """
    out, rows = np.ones(state.losses.size), state.totals[0]
    least = state.losses.min()
    for s in range(out.size):
        if least > 0.0:
            out[s] = np.exp(-TEMPER * (state.losses[s] - least) * rows / (2.0 * least))
        if out[s] < NEGLIGIBLE:
            out[s] = 0.0
    out /= out.sum()
    square = 0.0
    for s in range(out.size):
        square += out[s] * state.squares[s]
    return out, np.sqrt(square / rows) if rows > 0.0 else 0.0


@compiled
def length(total: float, rows: float, values: np.ndarray) -> float:
    """Return the number by which features are divided: the root mean square length of the feature vectors so far.

    `total` is the sum of squared lengths over `rows` rows. Before the first row the length of `values` is used.
    """
    square = total / rows if rows > 0.0 else 0.0
    if square == 0.0:
        for i in range(values.size):
            square += values[i] * values[i]
    return np.sqrt(square) if square > 0.0 else 1.0


@compiled
def measure(state: InteractionState, row: InteractionRow, means: np.ndarray, squares: np.ndarray) -> None:
    """Write predicted mean and squared width of a row under every prior to `means` and `squares`, (priors,) each.

    `row` is an `InteractionRow`, the features of a request and of an arm, and `state` the `InteractionState`.
    """
    priors, rows = state.losses.size, state.totals[0]
    by_user = 1.0 / length(state.totals[1], rows, row.user_values)
    by_item = 1.0 / length(state.totals[2], rows, row.item_values)
    means[:] = 0.0
    squares[:] = 0.0
    for i in range(-1, row.user.size):
        u = row.user_values[i] * by_user if i >= 0 else 1.0
        line = state.cells[row.user[i] + 1 if i >= 0 else 0]
        for j in range(-1, row.item.size):
            x = u * row.item_values[j] * by_item if j >= 0 else u
            cell = line[row.item[j] + 1 if j >= 0 else 0]
            for s in range(priors):
                means[s] += x * cell[s]
                squares[s] += x * x * cell[priors + s]
    for s in range(priors):
        if row.own >= 0:
            means[s] += state.own[row.own, s]
            squares[s] += state.own[row.own, priors + s]
        elif row.own == NEW:
            squares[s] += OWN * PRIORS[s]


@compiled
def sums_of_request(
    state: InteractionState, weights: np.ndarray, user: np.ndarray, user_values: np.ndarray, places: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of u w and of u^2 p over a request's features u, for every column that the arms use.

    w and p are weight and variance of a pair of columns. The request has the numbers `user_values` in the columns
    `user`, and the arms use the columns `places`. The results are sums (columns, 2 priors), and the index (1 + items,)
    of each column in them. Priors with weight 0 in `weights` are left out.
    """
    priors, rows = state.losses.size, state.totals[0]
    by_user, index = 1.0 / length(state.totals[1], rows, user_values), np.full(state.cells.shape[1], -1)
    found, count = np.zeros(1 + places.size, np.int64), 1
    index[0] = 0
    for place in places:
        if index[place + 1] < 0:
            index[place + 1], found[count] = count, place + 1
            count += 1
    sums = np.zeros((count, 2 * priors))
    for i in range(-1, user.size):
        u = user_values[i] * by_user if i >= 0 else 1.0
        line = state.cells[user[i] + 1 if i >= 0 else 0]
        for k in range(count):
            cell, out = line[found[k]], sums[k]
            for s in range(priors):
                if weights[s] > 0.0:
                    out[s] += u * cell[s]
                    out[priors + s] += u * u * cell[priors + s]
    return index, sums


@compiled
def look(
    state: InteractionState,
    rule: Any,
    user: np.ndarray,
    user_values: np.ndarray,
    starts: np.ndarray,
    places: np.ndarray,
    values: np.ndarray,
    own: np.ndarray,
    normals: np.ndarray,
) -> ArmStatistics:
    """Return the means, widths and draws of K arms for a request, as the exploration rule needs them.

    Sums over the request are computed once for each feature of arms. The request has the number user_values[i] in
    column user[i]. Arm a has the number values[j] in column places[j] for j from starts[a] to starts[a + 1] - 1, and
    own[a] is the arm's index in the state's field `own`. normals (pairs, K) are random numbers.
    """
    count, priors = own.size, state.losses.size
    weights, sigma = prior_weights(state)
    means, widths = np.zeros(count), np.zeros(count)
    index, sums = sums_of_request(state, weights, user, user_values, places)
    for a in range(count):
        part = slice(starts[a], starts[a + 1])
        by_item = 1.0 / length(state.totals[2], state.totals[0], values[part])
        mean, width = 0.0, 0.0
        for s in range(priors):
            if weights[s] == 0.0:
                continue
            each, square = sums[0, s], sums[0, priors + s]
            for j in range(starts[a], starts[a + 1]):
                x, k = values[j] * by_item, index[places[j] + 1]
                each += x * sums[k, s]
                square += x * x * sums[k, priors + s]
            if own[a] >= 0:
                each += state.own[own[a], s]
                square += state.own[own[a], priors + s]
            elif own[a] == NEW:
                square += OWN * PRIORS[s]
            mean += weights[s] * each
            width += weights[s] * np.sqrt(square)
        means[a], widths[a] = mean, width
    rounds = int(state.totals[0])
    beta = strength(rule).scale * (sigma if rounds > 0 else 1.0)
    samples = np.empty((0, count))
    if draws(rule) > 0:
        samples = sample_means(rule, means, beta, normals * widths)
    betas = np.full(count, beta)
    return ArmStatistics(means=means, widths=widths, samples=samples, beta=betas, residual=sigma, rounds=rounds)


@compiled
def decide_request(
    state: InteractionState,
    rule: Any,
    user: np.ndarray,
    user_values: np.ndarray,
    starts: np.ndarray,
    places: np.ndarray,
    values: np.ndarray,
    own: np.ndarray,
    normals: np.ndarray,
    eligible: np.ndarray,
    uniforms: np.ndarray,
    greedy: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Choose arms for k slots, and return them (k,), their distributions (k, K), and scores, means and widths (K,).

    The request has the number user_values[i] in column user[i]. Arm a has the number values[j] in column places[j] for
    j from starts[a] to starts[a + 1] - 1, and own[a] is the arm's index in the state's field `own`, negative if it has
    none. normals (pairs, K) and uniforms (2 k,) are random numbers, and eligible (1 or k, K) masks the arms. If
    `greedy`, slots after the first are filled by score.
    """
    seen = look(state, rule, user, user_values, starts, places, values, own, normals)
    arms, p, scores = rank_and_fill(rule, seen, eligible, uniforms, greedy)
    return arms, p, scores, seen.means, seen.widths


@compiled
def learn_row(state: InteractionState, row: InteractionRow, reward: float) -> None:
    """Update the `InteractionState` in `state` by the reward of one `InteractionRow`, in place."""
    priors = state.losses.size
    for values, k in ((row.user_values, 1), (row.item_values, 2)):
        square = 0.0
        for i in range(values.size):
            square += values[i] * values[i]
        state.totals[k] += square
    state.totals[0] += 1.0
    means, squares = np.empty(priors), np.empty(priors)
    measure(state, row, means, squares)
    by_user = 1.0 / length(state.totals[1], state.totals[0], row.user_values)
    by_item = 1.0 / length(state.totals[2], state.totals[0], row.item_values)
    errors = np.empty(priors)
    for s in range(priors):
        error = reward - means[s]
        errors[s] = error / (1.0 + squares[s])
        state.losses[s] += error * error / (1.0 + state.cells[0, 0, priors + s])
        state.squares[s] += error * errors[s]
    for i in range(-1, row.user.size):
        u = row.user_values[i] * by_user if i >= 0 else 1.0
        line = state.cells[row.user[i] + 1 if i >= 0 else 0]
        for j in range(-1, row.item.size):
            x = u * row.item_values[j] * by_item if j >= 0 else u
            cell = line[row.item[j] + 1 if j >= 0 else 0]
            for s in range(priors):
                variance = cell[priors + s]
                cell[s] += variance * x * errors[s]
                cell[priors + s] = variance / (1.0 + variance * x * x)
    if row.own >= 0:
        mine = state.own[row.own]
        for s in range(priors):
            mine[s] += mine[priors + s] * errors[s]
            mine[priors + s] /= 1.0 + mine[priors + s]
