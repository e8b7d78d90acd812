"""Standardization of columns: x minus its mean, divided by its standard deviation, both of the rows learned so far.

Number n, mean m and sum of squares s of each column are updated by a row x, and z is the standardized row:

    n <- n + 1,   m <- m + (x - m_before) / n,   s <- s + (x - m_before) (x - m),   z = (x - m) / sqrt(s / n)

This is Welford's method (1962), which avoids the cancellation of sums of squares. A row is counted before it is mapped
itself, so |z_j| <= sqrt(n - 1) for every row that is learned, whatever outliers there are. A column that has been
constant up to rounding gives 0.

The map changes as it learns, but a design cannot remove rows. The design holds every row as it was mapped when it was
learned, and a decision maps its rows by the present mean and deviation. After n independent rows, both are accurate to
about 1 / sqrt(n) of a deviation. So later rows are mapped almost alike, while the first ones stay in a different scale.
Calling the map's own `learn` on some rows before the bandit starts makes the difference small (docs/feature_maps.md
measures it). Error bounds of a design would refer to rows that no single map gives, so they do not hold with this map.
The first row learned is mapped to 0, and so are rows of decisions before it. A row costs O(dim).
"""

from collections.abc import Iterable
from typing import Any, NamedTuple, final

import numpy as np

from onepass.features.attribution import Attribution, Linear, pass_to_inputs
from onepass.features.contract import output_dim, transform_row, update_and_transform
from onepass.features.feature_map import FeatureMap
from onepass.foundation import check
from onepass.foundation.generic import compiled
from onepass.foundation.registry import savable
from onepass.foundation.state import zeros

CONSTANT = 8.0  # roundings of a column's mean, in the rows' dtype: less deviation than that is none
LEAST_SPREAD = np.finfo(np.float64).tiny / np.finfo(np.float64).eps  # sums of squares below that have lost digits


class StandardizeState(NamedTuple):
    """Running statistics of columns in float64.

    seen (1,) is the number of rows, mean (dim,) the columns' means, and spread (dim,) their sums of squares about the
    means. A column counts as constant if its deviation is at most `least` times the absolute value of its mean.
    """

    seen: np.ndarray
    mean: np.ndarray
    spread: np.ndarray
    least: float


@output_dim.for_state(StandardizeState)
def output_dim_standardize(state: StandardizeState) -> int:
    return state.mean.size


@transform_row.for_state(StandardizeState)
def transform_row_standardize(state: StandardizeState, x: np.ndarray, z: np.ndarray) -> None:
    count = max(state.seen[0], 1.0)
    for j in range(x.size):
        deviation = np.sqrt(state.spread[j] / count)
        if state.spread[j] > LEAST_SPREAD and deviation > state.least * abs(state.mean[j]):
            z[j] = (x[j] - state.mean[j]) / deviation
        else:
            z[j] = 0.0


@compiled
def count_row(state: StandardizeState, x: np.ndarray) -> None:
    """Update the running statistics in `state` by one more row x (dim,), in place."""
    state.seen[0] += 1.0
    count = state.seen[0]
    for j in range(x.size):
        before = x[j] - state.mean[j]
        state.mean[j] += before / count
        state.spread[j] += before * (x[j] - state.mean[j])


@update_and_transform.for_state(StandardizeState)
def update_and_transform_standardize(state: StandardizeState, rows: np.ndarray) -> np.ndarray:
    z = np.empty(rows.shape, rows.dtype)
    for i in range(rows.shape[0]):
        count_row(state, rows[i])
        transform_row(state, rows[i], z[i])
    return z


@final
@savable
class Standardize(FeatureMap):
    """Standardized columns: each value minus the column's mean, divided by its standard deviation.

    Mean and deviation are those of the rows learned so far. A column whose values have all been equal gives 0. Until
    two rows are learned, every column gives 0. Learning changes the map; deciding does not. Standardized features alone
    cannot learn the mean reward. So add an `Intercept` (with `Concatenate`) if rewards do not average 0.

    Parameters
    ----------
    dim : int
        Width of x and of z, at least 1.

    Raises
    ------
    ValueError
        If `dim` is below 1.

    Notes
    -----
    The map is not certified, because it changes as it learns. A row costs O(dim).

    Examples
    --------
    >>> import onepass as op
    >>> features = op.features.Standardize(dim=2).learn([[1.0, 5.0], [3.0, 5.0]])
    >>> features.transform([4.0, 5.0])
    array([2., 0.])
    """

    output_dim: int

    input_dim: int

    def __init__(self, *, dim: int) -> None:
        self.input_dim = self.output_dim = check.integer("dim", dim, 1)
        self.params: dict[str, Any] = {"dim": self.input_dim}

    def begin(self, dtype: np.dtype) -> StandardizeState:
        least = CONSTANT * float(np.finfo(dtype).eps)
        return StandardizeState(seen=zeros(1), mean=zeros(self.input_dim), spread=zeros(self.input_dim), least=least)

    def mutable_arrays(self, state: Any) -> tuple[Any, ...]:
        return state.seen, state.mean, state.spread

    def consistent(self, learned: tuple[Any, ...]) -> bool:
        seen, mean, spread = learned
        whole = bool(seen[0] >= 0.0 and seen[0] == np.floor(seen[0]))
        return whole and bool(np.isfinite(mean).all() and (spread >= 0.0).all() and np.isfinite(spread).all())

    def name_features(self, names: tuple[str, ...]) -> Iterable[str]:
        return names

    def attribute(self, state: Any, x: np.ndarray, features: Linear, names: tuple[str, ...]) -> Attribution:
        deviation = np.sqrt(state.spread / max(state.seen[0], 1.0))
        told = (state.spread > LEAST_SPREAD) & (deviation > state.least * np.abs(state.mean))
        per_unit = np.divide(1.0, deviation, out=np.zeros(x.size), where=told)
        return pass_to_inputs(Linear(features.slopes * per_unit, features.parts))
