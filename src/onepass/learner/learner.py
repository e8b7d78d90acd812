"""Base class of the online kernel learners: checks arguments, holds the state, delegates to the compiled loop."""

import inspect
import time
from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, NamedTuple, Self

import numpy as np

from onepass.features.feature_map import check_names
from onepass.foundation import check, files
from onepass.foundation import state as states
from onepass.foundation.check import quote
from onepass.foundation.deferred_signals import defer_signals
from onepass.foundation.rw_lock import reading, writing
from onepass.foundation.state import has_same_layout
from onepass.learner.budget import check_kernel_width
from onepass.learner.contract import decide_rows, learn_examples
from onepass.learner.explanation import Reason, Reasons, make_reasons
from onepass.learner.losses import CLASSIFICATION, make_loss
from onepass.learner.sparse_input import check_rows, split_rows, to_dense


class Learner(files.Owner):
    """Base class of online kernel learners: f(x) = w^T phi(x), learned one example at a time.

    Subclasses define the initial state. A subclass of a subclass is not supported. `params` holds the constructor's
    arguments, `dim` is the width of a row (0 before the first example), and `output_shape` is the shape of a decision.

    Targets are -1 and 1 for the losses hinge, squared_hinge and logistic; any numbers for squared, huber and
    epsilon_insensitive (of the given loss_width). Rows are dense or sparse; sparse rows become dense a megabyte at a
    time.
    """

    params: dict[str, Any]
    dim: int = 0  # width of a row; 0 before the first example
    output_shape: tuple[int, ...] = ()  # shape of a decision
    _state: Any
    _given: tuple[tuple[Any, ...], dict[str, Any]]  # to the constructor

    def __new__(cls, *args: Any, **named: Any) -> Self:
        self = super().__new__(cls)
        self._given = args, named
        return self

    @abstractmethod
    def begin(self, dim: int) -> Any:
        """Return the state of a learner that has learned nothing, for rows of width `dim`."""

    @property
    def is_classifier(self) -> bool:
        """True if the learner is a classifier, whose targets are -1 and 1."""
        return self.params.get("loss", "hinge") in CLASSIFICATION

    def _rows(self, rows: Any) -> Any:
        return check_rows("X", rows, self.dim or None)

    def check_targets(self, targets: Any, count: int) -> np.ndarray:
        """Return the targets of `count` rows as an array (count,).

        Raises ValueError for a wrong length, a target that is not finite, or, in a classifier, one that is not -1 or 1.
        """
        out = check.finite("y", check.array("y", targets, np.dtype(np.float64), (1,)))
        if len(out) != count:
            raise ValueError(f"y must have one entry per row of X ({count}), got {len(out)}")
        if self.is_classifier and not np.isin(out, (-1.0, 1.0)).all():
            raise ValueError(
                f"y must be -1 or 1 for classification, got {out[np.abs(out) != 1.0][0]}; OnlineKernelClassifier takes "
                "labels of any kind"
            )
        return out

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learn examples in order.

        Ctrl-C stops between two blocks of examples, so that no block is learned in part.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, dim)
            The rows.
        y : array of shape (n,)
            The targets.

        Returns
        -------
        Learner
            The learner itself.

        Raises
        ------
        ValueError
            If rows or targets are not valid. Nothing has changed then.
        FloatingPointError
            If f overflows, for example by gradient steps on the squared loss with a `step` above 2. Every later call
            then raises the error, too.
        """
        self._check_and_learn(X, y)
        return self

    @writing
    def _check_and_learn(self, X: Any, y: Any) -> np.ndarray:
        rows = self._rows(X)
        return self._learn_checked(rows, self.check_targets(y, rows.shape[0]))

    @writing
    def learn_checked(self, rows: Any, targets: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        """Predict and then learn each of the checked rows, in order; return the predictions f, (n,) or (n, classes).

        `targets` (n,) are the values to learn, and `weights` (n,) or None multiply the losses.
        """
        return self._learn_checked(rows, targets, weights)

    def _learn_checked(self, rows: Any, targets: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        decisions, dim = np.empty((len(targets), *self.output_shape)), rows.shape[1]
        for place, part in split_rows(rows, self.columns(dim)):
            block = self._dense(part)
            with defer_signals():
                if self._state is None:
                    self._state, self.dim = self.begin(dim), dim
                decisions[place] = self._learn(block, targets[place], None if weights is None else weights[place])
            _check_finite(decisions[place])
        return decisions

    def columns(self, dim: int) -> int:
        """Return the number of columns, at least 1, that rows of width `dim` have in the learner.

        It is smaller than `dim` for a learner that hashes wide rows.
        """
        return dim

    def _dense(self, rows: Any) -> np.ndarray:
        """Convert rows to dense arrays of `columns` columns, as the compiled loop needs them."""
        return to_dense(rows)

    @property
    def can_use_weights(self) -> bool:
        """True if the examples that the learner learns may have weights."""
        return False

    def _learn(self, rows: np.ndarray, targets: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """Predict and learn rows (n, columns), one after the other, and return the predictions f(x), (n,).

        Each row is predicted before it is learned. `targets` (n,) are the values to learn, and `weights` (n,) or None
        multiply the losses. There is at least one row.
        """
        self._state, decisions = learn_examples(self._state, rows, targets)
        return decisions

    def compile_for(self, X: Any, y: Any) -> None:
        """Compile everything that learning examples X (n, dim), y (n,) needs; the learner stays as it is."""
        twin, rows = self.copy(), self._rows(X)
        twin.learn_checked(twin._rows(rows[:1]), self.check_targets(y, rows.shape[0])[:1])

    def predict_then_learn(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Predict and then learn examples X (n, dim), y (n,).

        Returns predictions, (n,) or (n, classes), and mistakes (n,).
        """
        decisions = self._check_and_learn(X, y)
        return decisions, self.mistakes(decisions, np.asarray(y, np.float64))

    def mistakes(self, decisions: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Return the mistakes (n,) of predictions f(x), `decisions` (n,): 0 or 1 for classes, else squared errors.

        `targets` (n,) are the right classes or values.
        """
        if self.is_classifier:
            return (np.where(decisions < 0.0, -1.0, 1.0) != targets).astype(np.float64)
        return (decisions - targets) ** 2

    @reading
    def decision_function(self, X: Any) -> np.ndarray:
        """Return f of every row.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, dim)
            The rows.

        Returns
        -------
        array of shape (n,)
            The decisions, 0 before the first example.

        Raises
        ------
        ValueError
            If a row is not valid.
        """
        return self._decide(self._rows(X))

    @reading
    def decide_checked(self, rows: Any) -> np.ndarray:
        """Return the predictions f, (n,) or (n, classes), of rows (n, dim) that have been checked."""
        return self._decide(rows)

    def _decide(self, rows: Any) -> np.ndarray:
        out = np.zeros((rows.shape[0], *self.output_shape))
        if self._state is not None:
            for place, part in split_rows(rows, self.columns(rows.shape[1])):
                out[place] = self.decide_dense(self._dense(part))
        _check_finite(out)
        return out

    def decide_dense(self, rows: np.ndarray) -> np.ndarray:
        """Return the predictions f of dense rows (n, columns): (n,), or (n, classes)."""
        found: np.ndarray = decide_rows(self._state, rows)
        return found

    def predict(self, X: Any) -> np.ndarray:
        """Predict the target of every row.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, dim)
            The rows.

        Returns
        -------
        array of shape (n,)
            The decisions f, for classification their signs (1 where f is 0).

        Raises
        ------
        ValueError
            If a row is not valid.
        """
        f = self.decision_function(X)
        return np.where(f < 0.0, -1.0, 1.0) if self.is_classifier else f

    def learn_one(self, x: Any, y: Any) -> Self:
        """Learn one example.

        Parameters
        ----------
        x : array of shape (dim,)
            The row.
        y : float
            Its target; -1 or 1 for a classifier.

        Returns
        -------
        Learner
            The learner itself. Raises the errors of `partial_fit`.
        """
        return self.partial_fit(check.array("x", x, np.dtype(np.float64), (1,))[None], [y])

    def predict_one(self, x: Any) -> float:
        """Predict the target of one row.

        Parameters
        ----------
        x : array of shape (dim,)
            The row.

        Returns
        -------
        float
            The prediction that `predict` makes.
        """
        return float(self.predict(check.array("x", x, np.dtype(np.float64), (1,))[None])[0])

    @reading
    def explain(self, x: Any, names: Iterable[str] | None = None) -> Reasons:
        """Split f of one row into terms: examples, landmarks, frequencies or columns.

        Nothing changes.

        Parameters
        ----------
        x : array of shape (dim,)
            The row.
        names : iterable of str, optional
            Names of the columns, for learners with a linear part on them. Defaults to x0, x1, ...

        Returns
        -------
        Reasons
            The decision and its terms, none before the first example.

        Raises
        ------
        ValueError
            If the row or the names are not valid.

        Examples
        --------
        >>> import numpy as np, onepass as op
        >>> rows = np.random.default_rng(0).standard_normal((200, 2))
        >>> learner = op.KernelNewton(size=10).partial_fit(rows, np.sign(rows[:, 0]))
        >>> found = learner.explain([2.0, 0.0], ["hour", "age"])
        >>> "hour" in [term.name for term in found.terms]
        True
        >>> bool(np.isclose(sum(term.contribution for term in found.terms), found.decision))
        True
        """
        rows = self._rows(check.array("x", x, np.dtype(np.float64), (1,))[None])
        names = check_names(names, rows.shape[1])
        decision = float(np.max(self._decide(rows)[0]))
        return make_reasons(decision, [] if self._state is None else self._terms(self._dense(rows)[0], names, decision))

    def _terms(self, x: np.ndarray, names: tuple[str, ...], decision: float) -> list[Reason]:
        """Return the terms of the decision f at a dense row x (columns,), by default f itself as one term.

        `names` are those of the columns.
        """
        return [Reason("f", 1.0, decision, decision)]

    @reading
    def memory_usage(self) -> int:
        """Return the bytes of all arrays of the state."""
        return 0 if self._state is None else states.nbytes(self._state)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's arguments as given, or their defaults, for scikit-learn's `clone` and searches.

        Parameters
        ----------
        deep : bool, default True
            Ignored: no argument has parameters of its own.

        Returns
        -------
        dict
            The arguments by name.
        """
        args, named = self._given
        bound = inspect.signature(type(self)).bind(*args, **named)
        bound.apply_defaults()
        return dict(bound.arguments)

    @writing
    def set_params(self, **changed: Any) -> Self:
        """Rebuild this learner with other arguments, and forget everything learned.

        Parameters
        ----------
        **changed
            Arguments of the constructor.

        Returns
        -------
        Learner
            The learner itself.

        Raises
        ------
        ValueError
            If a name is unknown or the constructor refuses a value. Nothing has changed then.

        Examples
        --------
        >>> import onepass as op
        >>> op.learner.FORKS(budget=40).set_params(width=2.0).get_params()["width"]
        2.0
        """
        if changed:
            known = self.get_params()
            for name in changed:
                check.choice(f"a parameter of {type(self).__name__}", name, tuple(known))
            fresh = type(self)(**{**known, **changed})
            self.__dict__.clear()
            self.__dict__.update(fresh.__dict__)
        return self

    # ---------------------------------------------------------------- files

    def contents(self) -> files.Contents:
        return files.Contents(self._arguments(), {"dim": self.dim}, LearnerStates(self.states()))

    @classmethod
    def from_contents(cls, params: dict[str, Any], extra: dict[str, Any], held: files.StateSource) -> Self:
        """Rebuild a learner from its saved arguments `params`, further data `extra` and arrays `held`.

        Raises ValueError if they disagree.
        """
        learner = cls(**params)
        dim = check.integer("dim", extra["dim"], 0)
        restore_states([learner] if dim else [], dim, held)
        return learner

    def _arguments(self) -> dict[str, Any]:
        """Return the constructor's arguments after validation, None where None was given."""
        return {n: None if value is None else self.params.get(n, value) for n, value in self.get_params().items()}

    def given(self) -> dict[str, Any]:
        """Return the constructor's arguments as the caller gave them, as plain data for a file."""
        return self._arguments()

    def states(self) -> tuple[Any, ...]:
        """Return the state of the learner in a tuple, which is empty before the first example."""
        return () if self._state is None else (self._state,)

    def set_state(self, state: Any, dim: int) -> None:
        """Replace the state of the learner by `state`, which belongs to rows of width `dim`."""
        self._state, self.dim = state, dim

    def begin_with_dim(self, dim: int) -> Any:
        """Set the width of rows to `dim`, and return an initial state for such rows."""
        self.dim = dim
        return self.begin(dim)

    def consistent(self, state: Any, begun: Any) -> bool:
        """Return True if a state read from a file can have come from `begun`, the initial state for as many columns."""
        return self.fits(state, begun)

    def fits(self, state: Any, begun: Any) -> bool:
        """Return True if a `state` read from a file is valid, compared with the initial state `begun`.

        It compares shapes, scalars and counters. Without this check, an index from a damaged file could lead compiled
        code outside an array.
        """
        return has_same_layout(state, begun)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.params.items())})"


def _check_finite(decisions: np.ndarray) -> None:
    """Raise FloatingPointError unless all decisions are finite."""
    if not np.isfinite(decisions).all():
        raise FloatingPointError("a decision is not finite: the learner diverged; begin again with a smaller step")


class LearnerStates(NamedTuple):
    """States of learners as a file holds them; there are none before the first example."""

    states: tuple[Any, ...]


def restore_states(learners: list[Learner], dim: int, held: files.StateSource) -> None:
    """Give learners the states `held` by a file; raise ValueError if they do not belong to these learners.

    `dim` is the number of columns of the rows that the learners have learned.
    """
    begun = LearnerStates(tuple(one.begin_with_dim(dim) for one in learners))

    def fits(found: LearnerStates) -> bool:
        three = zip(learners, found.states, begun.states, strict=True)
        return all(learner.consistent(state, fresh) for learner, state, fresh in three)

    found = held.take(begun, fits)
    for learner, state in zip(learners, found.states, strict=True):
        learner.set_state(state, dim)


def check_common(width: Any, loss: Any, loss_width: Any, step: Any) -> dict[str, Any]:
    """Return the checked parameters that all learners have (width, loss, loss_width and step) as a dictionary."""
    make_loss(loss, loss_width)
    return {
        "width": check_kernel_width(width),
        "loss": loss,
        "loss_width": check.positive("loss_width", loss_width),
        "step": check.positive("step", step),
    }


class Validation(NamedTuple):
    """Result of `progressive_validation`.

    Parameters
    ----------
    mistake_rate : float
        Mean of `mistakes`, in [0, 1] for classification.
    mistakes : array of shape (n,)
        Mistake of every example, 0 or 1; for regression its squared error.
    decisions : array of shape (n,) or (n, classes)
        Prediction f for every example before it was learned. In classification with two classes, shape (n,), its sign
        is the predicted class. With more classes, the largest number of a row is the predicted class.
    microseconds_per_example : float
        Time to predict and learn an example, without compilation.
    """

    mistake_rate: float
    mistakes: np.ndarray
    decisions: np.ndarray
    microseconds_per_example: float


def progressive_validation(learner: Any, X: Any, y: Any) -> Validation:
    """Predict every example before it is learned, and count the mistakes.

    Afterwards the learner has learned the stream. The time to compile is not counted; the time to check the input is.

    Parameters
    ----------
    learner : Learner, OnlineKernelClassifier or OnlineKernelRegressor
        The learner to validate.
    X : array or sparse matrix of shape (n, dim)
        The rows.
    y : array of shape (n,)
        The targets. For scikit-learn estimators they are labels.

    Returns
    -------
    Validation
        Mistakes, decisions and time.

    Raises
    ------
    ValueError
        If the input is not valid. Nothing has changed then.
    """
    if isinstance(learner, type) or not hasattr(learner, "compile_for"):
        raise ValueError(f"learner must be an online kernel learner such as FORKS(), got {quote(learner)}")
    learner.compile_for(X, y)
    began = time.perf_counter()
    decisions, mistakes = learner.predict_then_learn(X, y)
    seconds = time.perf_counter() - began
    count = max(len(mistakes), 1)
    return Validation(float(mistakes.sum() / count), mistakes, decisions, 1e6 * seconds / count)
