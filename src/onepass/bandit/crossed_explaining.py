"""Why an arm of a `CrossedBandit` has its mean and width: what every pair of features adds (crossing.py)."""

from math import sqrt
from typing import Any

import numpy as np

from onepass.bandit.crossing import NEW, OWN, PRIORS, Crossed, Crossing, length, shares
from onepass.bandit.explanation import Explanation, Term


def explained(
    state: Crossing, row: Crossed, users: tuple[str, ...], items: tuple[str, ...], arm: Any, score: float
) -> Explanation:
    """The explanation of one row; users, items: names of all places.

    Widths of several priors are added, not their squares: a term's share is that which makes shares add up to width^2.
    """
    weights, _ = shares(state)
    rows, priors = state.totals[0], state.losses.size
    u = np.r_[1.0, row.user_values / length(state.totals[1], rows, row.user_values)]
    a = np.r_[1.0, row.item_values / length(state.totals[2], rows, row.item_values)]
    left = ["", *(users[place] for place in row.user)]
    right = ["", *(items[place] for place in row.item)]
    each: list[tuple[str, str, float, np.ndarray]] = []
    for i, x in enumerate(u):
        for j, y in enumerate(a):
            place = (row.user[i - 1] + 1 if i else 0, row.item[j - 1] + 1 if j else 0)
            name = " * ".join(part for part in (left[i], right[j]) if part) or "constant"
            each.append(("shared", name, x * y, state.cells[place]))
    if row.own >= 0:
        each.append(("arm", "own", 1.0, state.own[row.own]))
    elif row.own == NEW:
        each.append(("arm", "own", 1.0, np.r_[np.zeros(priors), OWN * np.array(PRIORS[:priors])]))
    squares = sum(value * value * cell[priors:] for _, _, value, cell in each)
    width = float(weights @ np.sqrt(squares))
    per = np.divide(weights, np.sqrt(squares), out=np.zeros(priors), where=squares > 0.0) * width
    terms = []
    for part, name, value, cell in each:
        weight = float(weights @ cell[:priors])
        share = float(per @ (value * value * cell[priors:]))
        terms.append(Term(part, name, float(value), weight, weight * float(value), share))
    terms.sort(key=lambda term: -abs(term.contribution))
    mean = float(np.sum([term.contribution for term in terms]))
    return Explanation(arm, score, mean, sqrt(width * width), tuple(terms), None)
