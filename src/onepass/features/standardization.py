"""Checks and standardization of the numbers among the terms of records."""

import math
from typing import Any

import numpy as np

from onepass.foundation.generic import compiled

NONE = 1e-12  # of the mean: a deviation below it is rounding


@compiled
def is_bounded(values: np.ndarray, largest: float) -> bool:
    """Return whether every value is a number up to `largest`."""
    most = 0.0
    for i in range(values.size):
        most = max(most, abs(values[i])) if values[i] == values[i] else np.inf
    return most <= largest


@compiled
def standardize_values(
    places: np.ndarray, values: np.ndarray, means: np.ndarray, scales: np.ndarray, far: float
) -> None:
    """Replace the value of every place with a mean by (value - mean) scale, clipped at `far`, in place."""
    for i in range(places.size):
        if places[i] < means.size:
            found = (values[i] - means[places[i]]) * scales[places[i]]
            values[i] = min(max(found, -far), far)


def float_array(values: list[Any]) -> np.ndarray:
    """Return numbers as an array; an integer too large for a float gives one infinity instead."""
    try:
        return np.array(values, np.float64)
    except OverflowError:  # an integer
        return np.full(1, np.inf)


def mean_and_scale(moment: list[float]) -> tuple[float, float]:
    """Return the mean and 1 / deviation (0 if there is none) of a count, mean, and sum of squares about the mean."""
    count, mean, squares = moment
    if count < 2.0:
        return mean, 0.0
    deviation = math.sqrt(squares / count)
    return mean, 1.0 / deviation if deviation > NONE * abs(mean) else 0.0
