"""The public face of the online kernel learners: checks arguments, holds the state, delegates to the compiled loop."""

import time
from typing import Any, NamedTuple, Self

import numpy as np

from onepass import check
from onepass import state as states
from onepass.learner.budget import kernel_width
from onepass.learner.contract import decide_rows, progress
from onepass.learner.losses import CLASSIFICATION, loss_named


class Learner:
    """f(x) = w^T phi(x), learned one example at a time. Members are final and say how a state begins.

    Targets are -1 and 1 for the losses hinge, squared_hinge and logistic; any numbers for squared, huber and
    epsilon_insensitive (of the given loss_width).
    """

    params: dict[str, Any]
    dim: int = 0  # width of a row; 0 before the first example
    _state: Any

    def _begin(self, dim: int) -> Any:
        raise NotImplementedError

    @property
    def classifies(self) -> bool:
        """Whether targets are -1 and 1."""
        return self.params.get("loss", "hinge") in CLASSIFICATION

    def _rows(self, rows: Any) -> np.ndarray:
        out = check.array("X", rows, np.dtype(np.float64), (2,), self.dim or None)
        return check.finite_rows("X", out)

    def _targets(self, targets: Any, count: int) -> np.ndarray:
        out = check.finite("y", check.array("y", targets, np.dtype(np.float64), (1,)))
        if len(out) != count:
            raise ValueError(f"y must have one entry per row of X ({count}), got {len(out)}")
        if self.classifies and not np.isin(out, (-1.0, 1.0)).all():
            raise ValueError(f"y must be -1 or 1 for classification, got {out[np.abs(out) != 1.0][0]}")
        return out

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learn examples X (n, dim), y (n,), in order. ValueError, and nothing has changed, for bad ones."""
        self._progress(X, y)
        return self

    def _progress(self, X: Any, y: Any) -> np.ndarray:
        rows = self._rows(X)
        targets = self._targets(y, len(rows))
        if len(rows) == 0:
            return np.empty(0)
        if self._state is None:
            self._state, self.dim = self._begin(rows.shape[1]), rows.shape[1]
        return self._learn(rows, targets)

    def _learn(self, rows: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Decide and learn checked examples, at least one; the decisions."""
        self._state, decisions = progress(self._state, rows, targets)
        return decisions

    def decision_function(self, X: Any) -> np.ndarray:
        """f of every row, (n, dim) -> (n,); 0 before the first example."""
        rows = self._rows(X)
        return np.zeros(len(rows)) if self._state is None else decide_rows(self._state, rows)

    def predict(self, X: Any) -> np.ndarray:
        """Of every row: f, for classification its sign (1 where it is 0)."""
        f = self.decision_function(X)
        return np.where(f < 0.0, -1.0, 1.0) if self.classifies else f

    def learn_one(self, x: Any, y: Any) -> Self:
        """Learn one example: a row (dim,) and its target."""
        return self.partial_fit(check.array("x", x, np.dtype(np.float64), (1,))[None], [y])

    def predict_one(self, x: Any) -> float:
        """`predict` of one row (dim,)."""
        return float(self.predict(check.array("x", x, np.dtype(np.float64), (1,))[None])[0])

    def memory_usage(self) -> int:
        """Bytes of all arrays of the state."""
        return 0 if self._state is None else states.nbytes(self._state)

    def copy(self) -> Self:
        """An independent copy."""
        twin = object.__new__(type(self))
        twin.params, twin.dim = dict(self.params), self.dim
        twin._state = None if self._state is None else states.copy(self._state)
        return twin

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.params.items())})"


def common(width: Any, loss: Any, loss_width: Any, step: Any) -> dict[str, Any]:
    """The checked parameters that all learners have."""
    loss_named(loss, loss_width)
    return {
        "width": kernel_width(width),
        "loss": loss,
        "loss_width": check.positive("loss_width", loss_width),
        "step": check.positive("step", step),
    }


class Validation(NamedTuple):
    """mistake_rate in [0, 1]; mistakes (n,): of every example; decisions (n,): f before it was learned.

    For regression mistakes are squared errors and the rate is their mean.
    """

    mistake_rate: float
    mistakes: np.ndarray
    decisions: np.ndarray
    microseconds_per_example: float


def progressive_validation(learner: Learner, X: Any, y: Any) -> Validation:
    """Predict every example, then learn it, in one compiled loop: all examples count, from the first on.

    X (n, dim), y (n,). The learner has learned the stream afterwards; the time of compiling is not counted, that of
    checking the input is. ValueError, and nothing has changed, for bad input.
    """
    learner.copy().partial_fit(np.asarray(X)[:1], np.asarray(y)[:1])
    began = time.perf_counter()
    decisions = learner._progress(X, y)
    seconds = time.perf_counter() - began
    targets = np.asarray(y, np.float64)
    if learner.classifies:
        mistakes = (np.where(decisions < 0.0, -1.0, 1.0) != targets).astype(np.float64)
    else:
        mistakes = (decisions - targets) ** 2
    count = max(len(mistakes), 1)
    return Validation(float(mistakes.sum() / count), mistakes, decisions, 1e6 * seconds / count)
