"""One-versus-rest classification by native learners.

One learner is enough for two classes, and for more classes if it has an output for each. Otherwise learner k separates
class k from all others. Classes are codes 0, 1, ...; decisions are (n,) for two classes, else (n, classes).
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from onepass.foundation.deferred_signals import defer_signals
from onepass.learner.kernel_newton import KernelNewton
from onepass.learner.learner import Learner
from onepass.learner.sparse_input import split_rows


def decide_and_learn(
    rows: Any, learners: list[Learner], codes: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """Return the decision values on rows of the classes `codes` (n,), each computed before the learners learn it.

    The values are (n,) for two classes, else (n, classes). `weights` (n,) are the weights of the rows, or None.
    """
    targets = _targets(learners, codes)

    def learn(k: int, learner: Learner, part: slice, block: Any) -> np.ndarray:
        return learner.learn_checked(block, targets(k, part), None if weights is None else weights[part])

    return _map_learners(rows, learners, learn, defer_signals)


def decide(rows: Any, learners: list[Learner]) -> np.ndarray:
    """Return the learners' decision values on checked rows: (n,) for two classes, else (n, classes)."""
    return _map_learners(rows, learners, lambda k, learner, part, block: learner.decide_checked(block), nullcontext)


def refine(
    rows: Any,
    learners: list[Learner],
    codes: np.ndarray,
    weights: np.ndarray | None,
    decisions: np.ndarray,
    steps: int,
) -> tuple[np.ndarray, bool]:
    """Refine learners by Newton steps on all examples that they have learned (learner/batch_refinement.py).

    rows (n, d) are the examples, codes (n,) their classes, `weights` (n,) their weights or None, `decisions` the
    decision values computed before each was learned, and `steps` the number of Newton steps for each penalty.

    Returns the decision values for calibration, and True if a learner was refined. The values of a refined learner are
    those of a model that leaves the example out.
    """
    targets, refined, is_refined = _targets(learners, codes), decisions.copy(), False
    for k, learner in enumerate(learners):
        if steps and len(codes) and isinstance(learner, KernelNewton):
            column = (slice(None), k) if len(learners) > 1 else ...
            left_out = learner.refine(rows, targets(k, slice(None)), weights, decisions[column], steps)
            if left_out is not None:
                refined[column], is_refined = left_out, True
    return refined, is_refined


def _targets(learners: list[Learner], codes: np.ndarray) -> Callable[[int, slice], np.ndarray]:
    """Return a function of k and a slice of the examples that gives the targets (n,) of `learners[k]`.

    `codes` (n,) are the classes of the examples, from 0. A learner of all classes has the classes as targets, another
    one 1 for its class and -1 for others.
    """
    if learners[0].output_shape:
        return lambda k, part: codes[part].astype(np.float64)
    first = 1 if len(learners) == 1 else 0  # class of the first learner
    return lambda k, part: np.where(codes[part] == k + first, 1.0, -1.0)


def _map_learners(
    rows: Any,
    learners: list[Learner],
    work: Callable[[int, Learner, slice, Any], np.ndarray],
    guard: Callable[[], AbstractContextManager[None]],
) -> np.ndarray:
    """Return the decision values that `work(k, learner, part, block)` gives for learner k and a block of rows.

    They are (n,) for two classes, else (n, classes), for `rows` (n, d). `part` is the slice of the rows in the block.
    `guard` makes a context manager that is entered around the work of all learners on a block.
    """
    decisions = np.empty((rows.shape[0], *(learners[0].output_shape or (len(learners),))))
    for part, block in split_rows(rows, learners[0].columns(rows.shape[1])):
        with guard():
            for k, learner in enumerate(learners):
                decisions[part, slice(None) if learner.output_shape else k] = work(k, learner, part, block)
    return decisions if decisions.shape[1] > 1 else decisions[:, 0]
