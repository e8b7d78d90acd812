"""The public face of the online kernel learners: checks arguments, holds the state, delegates to the compiled loop."""

import time
from typing import Any, NamedTuple, Self

import numpy as np

from onepass import check
from onepass import state as states
from onepass.features.sketched_nystrom import SketchedNystromState
from onepass.learner.contract import decide_rows, progress
from onepass.learner.forks import FORKSState
from onepass.learner.kogd import KOGDState
from onepass.learner.losses import CLASSIFICATION, loss_named


class Learner:
    """f(x) = w^T phi(x), learned one example at a time. Members are final and say how a state begins.

    Targets are -1 and 1 for the losses hinge, squared_hinge and logistic; any numbers for squared, huber and
    epsilon_insensitive (of the given loss_width).
    """

    params: dict[str, Any]
    _state: Any

    def _begin(self, dim: int) -> Any:
        raise NotImplementedError

    @property
    def classifies(self) -> bool:
        """Whether targets are -1 and 1."""
        return self.params["loss"] in CLASSIFICATION

    def _rows(self, rows: Any) -> np.ndarray:
        out = check.array("X", rows, np.dtype(np.float64), (2,), None if self._state is None else self.dim)
        return check.finite_rows("X", out)

    @property
    def dim(self) -> int:
        """Width of a row; 0 before the first example."""
        return 0 if self._state is None else self._state.points.shape[1]

    def _targets(self, targets: Any, count: int) -> np.ndarray:
        out = check.finite("y", check.array("y", targets, np.dtype(np.float64), (1,)))
        if len(out) != count:
            raise ValueError(f"y must have one entry per row of X ({count}), got {len(out)}")
        if self.classifies and not np.isin(out, (-1.0, 1.0)).all():
            raise ValueError(f"y must be -1 or 1 for the loss {self.params['loss']}, got {out[np.abs(out) != 1.0][0]}")
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
        state = self._begin(rows.shape[1]) if self._state is None else self._state
        self._state, decisions = progress(state, rows, targets)
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
        twin.params, twin._state = dict(self.params), None if self._state is None else states.copy(self._state)
        return twin

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.params.items())})"


def _common(width: Any, loss: Any, loss_width: Any, step: Any) -> dict[str, Any]:
    """The checked parameters that all learners have."""
    loss_named(loss, loss_width)
    return {
        "width": check.positive("width", width),
        "loss": loss,
        "loss_width": check.positive("loss_width", loss_width),
        "step": check.positive("step", step),
    }


class KOGD(Learner):
    """Kernelized online gradient descent without a budget; see onepass.learner.kogd.

    width: of the kernel exp(-||x - y||^2 / (2 width^2)); step: eta; reg: lambda, by which weights shrink.

    >>> import onepass as op
    >>> learner = op.KOGD(width=1.0).partial_fit([[0.0], [1.0]], [-1.0, 1.0])
    >>> learner.predict([[0.1], [0.9]])
    array([-1.,  1.])
    """

    def __init__(
        self,
        *,
        width: float = 1.0,
        loss: str = "hinge",
        loss_width: float = 1.0,
        step: float = 0.2,
        reg: float = 0.0,
    ):
        self.params = _common(width, loss, loss_width, step)
        self.params["reg"] = check.real("reg", reg)
        if not 0.0 <= self.params["reg"] * self.params["step"] < 1.0:
            raise ValueError(f"reg must be from 0 to below 1 / step, got {reg!r}")
        self._state = None

    def _begin(self, dim: int) -> KOGDState:
        p = self.params
        loss = loss_named(p["loss"], p["loss_width"])
        return KOGDState(np.zeros((16, dim)), np.zeros(16), 0, loss, p["step"], p["reg"], 0.5 / p["width"] ** 2)


class FORKS(Learner):
    """FORKS: second-order online kernel learning on an incremental sketch; see onepass.learner.forks.

    budget B: 2 B examples are buffered, then sketched; sketch_size s_p (None: B), sample_size s_m (None: a fifth of
    s_p), rank k (None: a tenth of B), blocks D: of the sketches; update_every: losses between their updates, each of
    which keeps one example more (P4: 0.3 of the stream's length; None: 3,000); width, loss, loss_width, step: as for
    `KOGD`; alpha, curvature: A = alpha I + curvature sum of g g^T; bound C: |f| <= C after a step; seed: of the sketch.
    ValueError for a budget below 2, a rank above sketch or sample size, sizes that do not fit.

    >>> import numpy as np, onepass as op
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.standard_normal((2000, 2))
    >>> labels = np.sign(rows[:, 0] * rows[:, 1])
    >>> found = op.progressive_validation(op.FORKS(budget=100, rank=20, sample_size=50), rows, labels)
    >>> found.mistakes[1000:].mean() < 0.2
    np.True_
    """

    def __init__(
        self,
        *,
        budget: int = 50,
        rank: int | None = None,
        sketch_size: int | None = None,
        sample_size: int | None = None,
        blocks: int = 1,
        update_every: int | None = None,
        width: float = 1.0,
        loss: str = "hinge",
        loss_width: float = 1.0,
        step: float = 0.2,
        alpha: float = 0.01,
        curvature: float = 0.04,
        bound: float = 1.0,
        seed: int = 0,
    ):
        budget = check.integer("budget", budget, 2)
        size = check.integer("sketch_size", budget if sketch_size is None else sketch_size, 1)
        sample = check.integer("sample_size", max(size // 5, 1) if sample_size is None else sample_size, 1, 2 * budget)
        top = min(size, sample)
        rank = check.integer("rank", min(max(budget // 10, 1), top) if rank is None else rank, 1, top)
        blocks = check.integer("blocks", blocks, 1, size)
        if size % blocks:
            raise ValueError(f"blocks must divide sketch_size={size}, got {blocks}")
        self.params = {
            "budget": budget,
            "rank": rank,
            "sketch_size": size,
            "sample_size": sample,
            "blocks": blocks,
            "update_every": check.integer("update_every", 3000 if update_every is None else update_every, 1),
            **_common(width, loss, loss_width, step),
            "alpha": check.positive("alpha", alpha),
            "curvature": check.positive("curvature", curvature),
            "bound": check.positive("bound", bound),
            "seed": check.integer("seed", seed, 0, 2**32 - 1),
        }
        self._state = None

    def _begin(self, dim: int) -> FORKSState:
        p = self.params
        size, sample, rank, capacity = p["sketch_size"], p["sample_size"], p["rank"], 2 * p["budget"]
        places = np.random.default_rng(p["seed"]).choice(capacity, sample, replace=False)
        sketch = SketchedNystromState(
            np.zeros((sample, dim)), np.zeros((1, dim)), np.zeros((size, sample)), np.zeros((size, size)),
            np.zeros((0, size)), np.zeros(0), np.zeros((sample, rank)), 0, rank, p["blocks"], p["seed"],
            0.5 / p["width"] ** 2,
        )  # fmt: skip
        return FORKSState(
            np.zeros((capacity, dim)), np.zeros(capacity), places, sketch, np.zeros(rank), np.zeros((rank, rank)),
            np.zeros(sample), np.zeros(rank), np.zeros(rank), np.zeros(rank), 0, False, 0, p["update_every"],
            loss_named(p["loss"], p["loss_width"]), p["step"], p["alpha"], p["curvature"], p["bound"],
        )  # fmt: skip


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
