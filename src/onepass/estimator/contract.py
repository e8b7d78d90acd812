"""The contract of an estimator: a parameter learned from (row, reward) pairs on a design.

Every estimator's state has a field `design`; widths, radii and memory come from there.
"""

import numpy as np

from onepass.generic import generic


@generic
def update(state, row: np.ndarray, reward: float):
    """The state after one row (dim,) and its reward."""
    raise TypeError(f"update is not defined for {type(state).__name__}; register it with update.for_state(...)")


@generic
def update_rows(state, rows: np.ndarray, rewards: np.ndarray):
    """The state after a batch: rows (n, dim), rewards (n,)."""
    raise TypeError(
        f"update_rows is not defined for {type(state).__name__}; register it with update_rows.for_state(...)"
    )


@generic
def parameter(state) -> np.ndarray:
    """The present estimate theta, shape (dim,)."""
    raise TypeError(f"parameter is not defined for {type(state).__name__}; register it with parameter.for_state(...)")
