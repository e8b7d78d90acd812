"""Checks and standardization of the numbers among the terms of records."""

import math
from typing import Any

import numpy as np

from onepass.foundation.generic import compiled

NONE = 1e-12  # of the mean: a deviation below it is rounding


@compiled
def is_bounded(values: np.ndarray, largest: float) -> bool:
    """Return True if every value is finite and at most `largest` in size."""
    most = 0.0
    for i in range(values.size):
        most = max(most, abs(values[i])) if values[i] == values[i] else np.inf
    return most <= largest


@compiled
def standardize_values(
    places: np.ndarray, values: np.ndarray, means: np.ndarray, scales: np.ndarray, far: float
) -> None:
    """Replace values by (value - mean) * scale, clipped to [-far, far], in place, in the columns that have a mean.

    `places` are the values' columns. The means and scales are those of the first columns; values in others stay.
    """
    for i in range(places.size):
        if places[i] < means.size:
            found = (values[i] - means[places[i]]) * scales[places[i]]
            values[i] = min(max(found, -far), far)


def float_array(values: list[Any]) -> np.ndarray:
    """Return numbers as a float array; an integer too large for a float makes the result a single infinity."""
    try:
        return np.array(values, np.float64)
    except OverflowError:  # an integer
        return np.full(1, np.inf)


def mean_and_scale(moment: list[float]) -> tuple[float, float]:
    """Return mean and 1 / standard deviation from (count, mean, sum of squares about the mean).

    The scale is 0 if the deviation is 0.
    """
    count, mean, squares = moment
    if count < 2.0:
        return mean, 0.0
    deviation = math.sqrt(squares / count)
    return mean, 1.0 / deviation if deviation > NONE * abs(mean) else 0.0
