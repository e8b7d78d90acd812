"""The linear part beside kernel features: (x - middle) * slope, with columns in their own units and rows of length g.

Every column has the slope

    slope = g / (s r),   r = root mean square of ||(x - middle) / s|| over the first rows

s is a column's standard deviation, and middle its mean. If more than half of a column is zero, s is instead the root
mean square of its other values, and middle is zero. A feature that is rarely on then counts as much as others when it
is on. A division by its standard deviation would make it far too long. A column that was always zero gets the median s
of such columns, and is clipped at REACH times this value. Constant columns have slope 0. The cost is O(n dim).
"""

from typing import NamedTuple

import numpy as np

from onepass.foundation.generic import compiled
from onepass.learner.losses import Loss, value

MOSTLY = 0.5  # share of zeros from which a column is sparse
REACH = 3.0  # scales within which a column is held that has not been seen


class LinearPart(NamedTuple):
    """Linear features (x - middle) * slope of rows x (dim,), beside kernel features.

    - middle, slope (dim,): centre and factor of each column.
    - unseen (dim,): True for columns that were 0 in all first rows, if other columns are sparse and not always 0.
    - reach: largest absolute value to which the columns in `unseen` are clipped.
    """

    middle: np.ndarray
    slope: np.ndarray
    unseen: np.ndarray
    reach: float


def make_linear_part(rows: np.ndarray, deviations: np.ndarray, constant: np.ndarray, standardize: bool) -> LinearPart:
    """Return the linear features for the first rows (n, dim), with a mean square length of 1 on these rows.

    `deviations` (dim,) are the columns' standard deviations, and `constant` (dim,) marks constant columns. If
    `standardize` is False, columns are neither centred nor scaled one by one.
    """
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
def total_loss(loss: Loss, decisions: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> float:
    """Return the sum over examples of weight times `loss`(f, y), for decisions f (n,) and targets y (n,)."""
    total = 0.0
    for i in range(decisions.size):
        total += weights[i] * value(loss, decisions[i], targets[i])
    return total
