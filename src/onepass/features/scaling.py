"""Numbers among the terms of records: whether they are finite, and how they are standardized."""

import numpy as np

from onepass.foundation.generic import compiled


@compiled
def bounded(values, largest):
    """Whether every value is a number up to `largest`."""
    most = 0.0
    for i in range(values.size):
        most = max(most, abs(values[i])) if values[i] == values[i] else np.inf
    return most <= largest


@compiled
def standardized(places, values, means, scales, far):
    """(value - mean) scale of every place that has them, clipped at `far`, in place."""
    for i in range(places.size):
        if places[i] < means.size:
            found = (values[i] - means[places[i]]) * scales[places[i]]
            values[i] = min(max(found, -far), far)
