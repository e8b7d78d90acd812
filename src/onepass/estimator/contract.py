"""The contract of an estimator: a parameter learned from (row, reward) pairs on a design.

Every estimator's state has a field `design`; widths and memory come from there.
"""

from functools import partial
from typing import Any

import numpy as np

from onepass.estimator.families import IdentityLink
from onepass.foundation.generic import generic


def path_dependence_error(kind: str) -> TypeError:
    """Make the error for two streams that cannot be put together from what was learned of each."""
    return TypeError(
        f"merge is not defined for {kind}: what it learns from a row depends on the rows before it; "
        "learn all rows again, one stream after the other"
    )


@generic
def update(state: Any, row: np.ndarray, reward: float) -> Any:
    """Return the state after one row (dim,) and its reward. Every estimator registers this one."""
    raise TypeError(f"update is not defined for {type(state).__name__}; register it with update.for_state(...)")


@partial(generic, default=True)
def update_rows(state: Any, rows: np.ndarray, rewards: np.ndarray) -> Any:
    """Return the state after a batch: rows (n, dim), rewards (n,); one after the other unless a state knows better."""
    for i in range(rows.shape[0]):
        state = update(state, rows[i], float(rewards[i]))
    return state


@partial(generic, default=True)
def parameter(state: Any) -> np.ndarray:
    """Return the present estimate theta, shape (dim,); the field `theta` unless a state computes it."""
    return state.theta.copy()


@generic
def forget(state: Any, factor: float) -> Any:
    """Return the state whose rows count `factor` times as much, from 0 to 1: A and everything beside it."""
    raise TypeError(f"forget is not defined for {type(state).__name__}; register it with forget.for_state(...)")


@partial(generic, default=True)
def radius(state: Any, rounds: int, noise: float, parameter_bound: float, row_bound: float, delta: float) -> float:
    """Return beta with ||theta_* - theta||_A <= beta in every round with probability 1 - delta; infinite if unknown.

    rounds: rows learned.

    noise R: sub-Gaussian (heavy-tailed estimators use their own moment bound), parameter_bound S >= ||theta_*||,
    row_bound L >= ||x||.
    """
    return np.inf


@partial(generic, default=True)
def set_next_noise(state: Any, nu: float) -> Any:
    """Return the state with the noise scale nu of the next row, if the estimator uses one."""
    return state


@partial(generic, default=True)
def required_row(state: Any, rows: np.ndarray) -> int:
    """Return the index of the row (K, dim) that must be chosen, as it is played several times in a row (epochs.py).

    -1: any; -2: it is not among them.
    """
    return -1


@partial(generic, default=True)
def noise_unit(state: Any) -> float:
    """Return the unit of an exploration multiplier given as a number.

    It is 1 if the estimator's widths are in units of rewards. If widths depend on contexts alone, it is the estimated
    standard deviation of the noise, 0 while that is unknown.
    """
    return 1.0


@generic
def merge(state: Any, other: Any, start: Any) -> Any:
    """Return the state after the rows of both, each counted once; `start`: what both of them began with.

    For Python alone, registered by `merge.register(State)`: only where the order of rows is of no consequence.
    """
    raise path_dependence_error(type(state).__name__.removesuffix("State"))


@partial(generic, default=True)
def link(state: Any) -> Any:
    """Return the family of rewards (families.py) that maps the score x^T theta to a mean. Default: the identity."""
    return IdentityLink()
