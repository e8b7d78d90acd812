"""Contract of an online kernel learner; one compiled loop, `learn_examples`, serves all learners."""

from typing import Any

import numpy as np

from onepass.features.contract import copy_scratch
from onepass.foundation.generic import compiled, generic


def _unknown(state: Any, name: str) -> TypeError:
    return TypeError(f"{name} is not defined for {type(state).__name__}; register it with {name}.for_state(...)")


@generic
def decision(state: Any, x: np.ndarray) -> float:
    """Return f(x), the learner's prediction for one row x (dim,). It may write to work arrays of the state."""
    raise _unknown(state, "decision")


@generic
def step(state: Any, x: np.ndarray, y: float) -> tuple[Any, float]:
    """Return the state after learning the example (x, y), and the prediction f(x) made before."""
    raise _unknown(state, "step")


@compiled
def learn_examples(state: Any, rows: np.ndarray, targets: np.ndarray) -> tuple[Any, np.ndarray]:
    """Predict, then learn, example by example; return the state and the predictions f (n,)."""
    decisions = np.empty(rows.shape[0])
    for i in range(rows.shape[0]):
        state, decisions[i] = step(state, rows[i], targets[i])
    return state, decisions


@compiled
def decide_rows(state: Any, rows: np.ndarray) -> np.ndarray:
    """Return the prediction f of every row, (n, dim) -> (n,).

    Nothing of the state is written, so many threads may predict at once.
    """
    out, own = np.empty(rows.shape[0]), copy_scratch(state)
    for i in range(rows.shape[0]):
        out[i] = decision(own, rows[i])
    return out
