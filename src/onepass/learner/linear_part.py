"""The linear part beside kernel features: (x - middle) * slope, every column in its own units, rows of length 1.

    slope = g / (s r),   r = root mean square of ||(x - middle) / s|| over the first rows

s: a column's standard deviation, around its mean; where more than half of it is zero, the root mean square of what is
not, around zero: a feature that is rarely on counts as much as others when it is on, where a division by its deviation
would make it the longest of all. A column that was zero all along takes the median scale of such columns, and is cut
at REACH of them. Constant columns have no slope. Cost O(n dim).
"""

from typing import NamedTuple

import numpy as np

from onepass.foundation.generic import compiled
from onepass.learner.losses import value

MOSTLY = 0.5  # share of zeros from which a column is sparse
REACH = 3.0  # scales within which a column is held that has not been seen


class LinearPart(NamedTuple):
    """middle, slope (dim,); unseen (dim,): columns of zeros among sparse ones; reach: where these are cut."""

    middle: np.ndarray
    slope: np.ndarray
    unseen: np.ndarray
    reach: float


def make_linear_part(rows: np.ndarray, deviations: np.ndarray, constant: np.ndarray, standardize: bool) -> LinearPart:
    """Return the linear part of the first rows (n, dim), with g = 1. deviations, constant (dim,): of the columns."""
    dim = rows.shape[1]
    if not standardize:
        middle, inverse, unseen, reach = np.zeros(dim), np.ones(dim), np.zeros(dim, bool), 0.0
    else:
        counts = np.count_nonzero(rows, axis=0)
        sparse = counts < (1.0 - MOSTLY) * len(rows)
        unseen = counts == 0
        lengths = np.sqrt((rows * rows).sum(axis=0) / np.maximum(counts, 1))
        seen = sparse & (lengths > 0.0)
        reach = float(np.median(lengths[seen])) if seen.any() else 0.0
        scale = np.where(seen, lengths, np.where(unseen, reach, np.where(constant, 0.0, deviations)))
        middle = np.where(sparse, 0.0, rows.mean(axis=0))
        inverse = np.divide(1.0, scale, out=np.zeros(dim), where=scale > 0.0)
        unseen = unseen & (reach > 0.0)
    mean = float(np.mean(np.sum(((rows - middle) * inverse) ** 2, axis=1)))
    return LinearPart(middle, inverse / np.sqrt(mean) if mean > 0.0 else inverse, unseen, REACH * reach)


@compiled
def total_loss(loss, decisions, targets, weights):
    """Sum of weight l(f, y)."""
    total = 0.0
    for i in range(decisions.size):
        total += weights[i] * value(loss, decisions[i], targets[i])
    return total
