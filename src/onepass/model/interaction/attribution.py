"""Attribution of an arm's mean and width to pairs of terms (interactions.py).

The widths of several priors are added, not their squares. A term's share is scaled so that all shares add up to
width^2.
"""

from typing import Any

import numpy as np

from onepass.features.attribution import Terms
from onepass.model.contract import Side
from onepass.model.interaction.interactions import (
    NEW,
    OWN,
    PRIORS,
    InteractionRow,
    InteractionState,
    length,
    prior_weights,
)

SHARED, ARM = "shared", "arm"  # parts: weights of terms, and the arm's own appeal


def sides_of(
    state: InteractionState, row: InteractionRow, users: tuple[str, ...], items: tuple[str, ...]
) -> list[list[Side]]:
    """Return the contributions of features to one arm's predicted mean and squared width.

    `row` holds the features of the request and of the arm; `users` and `items` name the columns of requests and of
    arms.
    """
    weights, _ = prior_weights(state)
    rows, priors = state.totals[0], state.losses.size
    u = np.r_[1.0, row.user_values / length(state.totals[1], rows, row.user_values)]
    a = np.r_[1.0, row.item_values / length(state.totals[2], rows, row.item_values)]
    left = ["", *(users[place] for place in row.user)]
    right = ["", *(items[place] for place in row.item)]
    names = [" * ".join(part for part in (x, y) if part) or "constant" for x in left for y in right]
    values = np.outer(u, a).reshape(-1)
    cells = state.cells[np.ix_(np.r_[0, 1 + row.user], np.r_[0, 1 + row.item])].reshape(values.size, -1)
    own = np.zeros((0, 2 * priors))
    if row.own >= 0:
        own = state.own[row.own][None]
    elif row.own == NEW:
        own = np.r_[np.zeros(priors), OWN * np.array(PRIORS[:priors])][None]
    every, along = np.vstack([cells, own]), np.r_[values, np.ones(len(own))]
    squares = (along**2) @ every[:, priors:]
    width = float(weights @ np.sqrt(squares))
    per = np.divide(weights, np.sqrt(squares), out=np.zeros(priors), where=squares > 0.0) * width
    slopes, shares = every[:, :priors] @ weights, along**2 * (every[:, priors:] @ per)

    def side(part: str, names: list[str], which: slice) -> Any:
        rows = np.stack([slopes[which] * along[which], shares[which]])
        terms = Terms(tuple(names), along[which], np.stack([slopes[which], np.zeros(len(names))]), rows)
        return Side(part, terms, float(rows[0].sum()), float(rows[1].sum()))

    count = len(names)
    return [[side(SHARED, names, slice(count)), side(ARM, ["own"] * len(own), slice(count, None))]]
