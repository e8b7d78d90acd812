"""Several classes by native learners: each class against all others.

One learner is enough for two classes, and for more where it has an output for every class. Otherwise class k has
learner k. Classes are codes 0, 1, ...; decisions are (n,) for two classes, else (n, classes).
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from onepass.foundation.deferred_signals import defer_signals
from onepass.learner.kernel_newton import KernelNewton
from onepass.learner.learner import Learner
from onepass.learner.sparse_input import split_rows


def advance(rows: Any, learners: list[Learner], codes: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Decide and learn checked rows of the classes `codes` (n,), and return the decisions."""
    targets = _targets(learners, codes)

    def learn(k: int, learner: Learner, place: slice, block: Any) -> np.ndarray:
        return learner.learn_checked(block, targets(k, place), None if weights is None else weights[place])

    return _each(rows, learners, learn, defer_signals)


def decide(rows: Any, learners: list[Learner]) -> np.ndarray:
    """Return the decisions on checked rows."""
    return _each(rows, learners, lambda k, learner, place, block: learner.decide_checked(block), nullcontext)


def refine(
    rows: Any,
    learners: list[Learner],
    codes: np.ndarray,
    weights: np.ndarray | None,
    decisions: np.ndarray,
    steps: int,
) -> tuple[np.ndarray, bool]:
    """Refine learners on the examples that they have learned, by Newton steps (learner/batch_refinement.py).

    Returns the decisions to calibrate on, and whether any is another one now: that with its example left out.
    """
    targets, found, changed = _targets(learners, codes), decisions.copy(), False
    for k, learner in enumerate(learners):
        if steps and len(codes) and isinstance(learner, KernelNewton):
            column = (slice(None), k) if len(learners) > 1 else ...
            left_out = learner.refine(rows, targets(k, slice(None)), weights, decisions[column], steps)
            if left_out is not None:
                found[column], changed = left_out, True
    return found, changed


def _targets(learners: list[Learner], codes: np.ndarray) -> Callable[[int, slice], np.ndarray]:
    """Return the function that gives the targets of learner k in a slice of the examples."""
    if learners[0].output_shape:
        return lambda k, place: codes[place].astype(np.float64)
    only = 1 if len(learners) == 1 else 0
    return lambda k, place: np.where(codes[place] == k + only, 1.0, -1.0)


def _each(
    rows: Any,
    learners: list[Learner],
    work: Callable[[int, Learner, slice, Any], np.ndarray],
    guard: Callable[[], AbstractContextManager[None]],
) -> np.ndarray:
    """Return the decisions that work(k, learner, place, block) gives; guard: of the work of all learners on a block."""
    found = np.empty((rows.shape[0], *(learners[0].output_shape or (len(learners),))))
    for place, block in split_rows(rows, learners[0].columns(rows.shape[1])):
        with guard():
            for k, learner in enumerate(learners):
                found[place, slice(None) if learner.output_shape else k] = work(k, learner, place, block)
    return found if found.shape[1] > 1 else found[:, 0]
