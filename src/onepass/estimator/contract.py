"""Contract of an estimator, which learns a parameter from (row, reward) pairs on a design.

Every estimator's state has a field `design`, which determines confidence widths and most of the memory.
"""

from functools import partial
from typing import Any

import numpy as np

from onepass.estimator.families import IdentityLink
from onepass.foundation.generic import generic


def path_dependence_error(kind: str) -> TypeError:
    """Make the error for merging two models whose states depend on the order of their rows.

    `kind` is the name of the model or estimator.
    """
    return TypeError(
        f"merge is not defined for {kind}: what it learns from a row depends on the rows before it; "
        "learn all rows again, one stream after the other"
    )


@generic
def update(state: Any, row: np.ndarray, reward: float) -> Any:
    """Return the state after one row (dim,) and its reward. Every estimator registers this function."""
    raise TypeError(f"update is not defined for {type(state).__name__}; register it with update.for_state(...)")


@partial(generic, default=True)
def update_rows(state: Any, rows: np.ndarray, rewards: np.ndarray) -> Any:
    """Return the state after rows (n, dim) and rewards (n,). By default rows are learned one after the other."""
    for i in range(rows.shape[0]):
        state = update(state, rows[i], float(rewards[i]))
    return state


@partial(generic, default=True)
def parameter(state: Any) -> np.ndarray:
    """Return the present estimate theta, shape (dim,). By default it is the field `theta` of the state."""
    return state.theta.copy()


@generic
def forget(state: Any, factor: float) -> Any:
    """Return the state in which all past rows count `factor` times, from 0 to 1, in the design and in all sums."""
    raise TypeError(f"forget is not defined for {type(state).__name__}; register it with forget.for_state(...)")


@partial(generic, default=True)
def radius(state: Any, rounds: int, noise: float, parameter_bound: float, row_bound: float, delta: float) -> float:
    """Return the confidence radius beta of the estimate theta, or infinity if none is known.

    In all rounds together, ||theta_* - theta||_A <= beta holds with probability 1 - delta for the true parameter
    theta_* and the design A.

    `rounds` is the number of rows learned, `noise` the sub-Gaussian constant R of the noise (heavy-tailed estimators
    use their own moment bound), `parameter_bound` a bound S >= ||theta_*||, and `row_bound` a bound L >= ||x||.
    """
    return np.inf


@partial(generic, default=True)
def set_next_noise(state: Any, nu: float) -> Any:
    """Return the state with `nu` as the noise scale of the next row, if the estimator uses one."""
    return state


@partial(generic, default=True)
def required_row(state: Any, rows: np.ndarray) -> int:
    """Return which of the rows (K, dim) must be chosen, for an estimator that plays an arm several times in a row.

    The index is -1 if any may be chosen, and -2 if the required row is not among them (epochs.py).
    """
    return -1


@partial(generic, default=True)
def noise_unit(state: Any) -> float:
    """Return the unit of an exploration multiplier given as a number.

    The multiplier times this unit multiplies the widths. It is 1 by default. Estimators for heavy tails return the size
    of the noise, given or estimated, and 0 while that is unknown.
    """
    return 1.0


@generic
def merge(state: Any, other: Any, start: Any) -> Any:
    """Return the state after the rows of both states, each counted once; both of them began as `start`.

    It runs in Python only. An estimator registers it by `merge.register(State)` if the order of its rows does not
    matter.
    """
    raise path_dependence_error(type(state).__name__.removesuffix("State"))


@partial(generic, default=True)
def link(state: Any) -> Any:
    """Return the reward family (families.py) that maps the score x^T theta to a mean. By default the identity."""
    return IdentityLink()
