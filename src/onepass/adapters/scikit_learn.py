"""scikit-learn estimators around any online kernel learner: labels of any kind, several classes, `partial_fit`.

Two classes: one learner, whose f >= 0 means the second of `classes_`. More: one learner a class, which tells it from
all others, and the class of the largest f. They learn the stream one after the other, each in its compiled loop, which
is the same as example by example. Costs and memory are those of as many learners.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np

from onepass.foundation import check, files
from onepass.foundation.interrupts import deferred
from onepass.foundation.registry import built, name_of
from onepass.learner.kernel_newton import KernelNewton
from onepass.learner.learner import Held, Learner, take_back
from onepass.learner.rows import blocks, checked

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as missing:
    raise ImportError(
        "OnlineKernelClassifier and OnlineKernelRegressor need scikit-learn 1.6 or newer: pip install scikit-learn"
    ) from missing

DTYPES = "biufUO"  # of labels that a file can hold


def single(x: Any) -> np.ndarray:
    """One row, (d,) or (1, d), of numbers, as (1, d)."""
    return check.array("x", x, np.dtype(np.float64), (1, 2)).reshape(1, -1)


@contextmanager
def all_floats() -> Iterator[None]:
    """ValueError where scikit-learn's checks meet an integer beyond all floats."""
    try:
        yield
    except OverflowError as trouble:
        raise ValueError(f"X and y must hold numbers that a float can hold: {trouble}") from None


class OnlineKernelEstimator(BaseEstimator):
    """What both estimators share. `learners_`: the native learners, one, or one a class when there are several."""

    learner: Learner | None
    learners_: list[Learner]
    n_features_in_: int
    _classifies: bool

    def __init__(self, learner: Learner | None = None):
        self.learner = learner

    def _default(self) -> Learner:
        """The learner that None stands for."""
        raise NotImplementedError

    def _targets(self, y: np.ndarray) -> Callable[[int, slice], np.ndarray]:
        """The targets of learner k at a slice of the checked labels y."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def _promises_nothing(self) -> bool:
        """scikit-learn's poor_score: a budget may be of any size, also too small for the data that it checks with."""
        return not (self.learner is None or isinstance(self.learner, KernelNewton))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "learners_")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """`learner`, and, if deep, as `learner__width` and the like what can be set of it, of the default one too."""
        params = super().get_params(deep)
        if deep and self.learner is None:
            params.update({f"learner__{name}": value for name, value in self._default().get_params().items()})
        return params

    def set_params(self, **params: Any) -> Self:
        """As every estimator's; `learner__width` and the like set those of the native learner, also of the default."""
        if params.get("learner", self.learner) is None and any(name.startswith("learner__") for name in params):
            params = {**params, "learner": self._default()}
        return super().set_params(**params)

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Takes back what has changed if an argument is refused; once learning has begun, all arguments are checked."""
        held = dict(vars(self))
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(held)
            raise

    def _anew(self, count: int) -> list[Learner]:
        """So many native learners that know nothing yet."""
        learner = self._default() if self.learner is None else self.learner
        if not isinstance(learner, Learner) or learner.classifies is not self._classifies:
            losses = "hinge, squared_hinge or logistic" if self._classifies else "squared, huber or epsilon_insensitive"
            raise ValueError(f"learner must be an online kernel learner with the loss {losses}, got {learner!r}")
        return [clone(learner) for _ in range(count)]

    def _forget(self) -> None:
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def _examples(self, X: Any, y: Any) -> Any:
        """Rows and labels as scikit-learn checks them, the rows then as the native learners do."""
        options = {"y_numeric": not self._classifies, "reset": not self.__sklearn_is_fitted__()}
        with all_floats():
            X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, **options)
        return checked("X", X, None), y

    def _advance(self, rows: Any, y: np.ndarray) -> np.ndarray:
        """Decide and learn checked examples: the decisions, (n,) for one learner, (n, classes) for several."""
        targets, decisions = self._targets(y), np.empty((rows.shape[0], len(self.learners_)))
        for place, block in blocks(rows):
            with deferred():
                for k, learner in enumerate(self.learners_):
                    decisions[place, k] = learner.advance(block, targets(k, place))
        return decisions if decisions.shape[1] > 1 else decisions[:, 0]

    def _row(self, x: Any) -> np.ndarray:
        """One row, (d,) or (1, d), as (1, d): scikit-learn's checks of whole arrays would take most of the time."""
        check_is_fitted(self)
        names, given = getattr(self, "feature_names_in_", None), getattr(x, "columns", getattr(x, "index", None))
        if names is not None and given is not None and not callable(given) and list(given) != list(names):
            raise ValueError(f"x must have the features {list(names)} in this order, got {list(given)}")
        return checked("x", single(x), self.n_features_in_)

    def _decisions(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        with all_floats():
            X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return self._decided(checked("X", X, None))

    def _decided(self, rows: Any) -> np.ndarray:
        decisions = np.empty((rows.shape[0], len(self.learners_)))
        for place, block in blocks(rows):
            for k, learner in enumerate(self.learners_):
                decisions[place, k] = learner.decided_rows(block)
        return decisions if decisions.shape[1] > 1 else decisions[:, 0]

    def predict(self, X: Any) -> np.ndarray:
        """Of every row of X, (n, d) -> (n,)."""
        raise NotImplementedError

    def predict_one(self, x: Any) -> Any:
        """`predict` of one row x, (d,) or (1, d)."""
        raise NotImplementedError

    def memory_usage(self) -> int:
        """Bytes of all arrays of all learners; 0 before the first example."""
        return sum(learner.memory_usage() for learner in getattr(self, "learners_", ()))

    def copy(self) -> Self:
        """An independent copy, with what was learned; scikit-learn's `clone` copies without."""
        twin = clone(self)
        vars(twin).update({name: value for name, value in vars(self).items() if name.endswith("_")})
        if self.__sklearn_is_fitted__():
            twin.learners_ = [learner.copy() for learner in self.learners_]
        return twin

    def __copy__(self) -> Self:
        return self.copy()

    def rehearse(self, X: Any, y: Any) -> None:
        """Compile what learning examples X (n, d), y (n,) needs; the estimator stays as it is."""
        with self._all_or_nothing():
            fitted = self.__sklearn_is_fitted__()
            rows, _ = self._examples(X, y)
            (learner,) = [self.learners_[0].copy()] if fitted else self._anew(1)
            learner.advance(rows[:1], np.ones(1))
            if not fitted:
                self._forget()

    # ---------------------------------------------------------------- files

    def save(self, path: str | Path) -> None:
        """Write everything to `path`, atomically; read with `onepass.load`. ValueError for what it could not build."""
        files.save(path, self)

    def contents(self) -> files.Contents:
        learner = self._default() if self.learner is None else self.learner
        name_of(learner)
        extra: dict[str, Any] = {"dim": getattr(self, "n_features_in_", 0), "names": None, "classes": None}
        if hasattr(self, "feature_names_in_"):
            extra["names"] = [str(name) for name in self.feature_names_in_]
        if hasattr(self, "classes_"):
            kind, known = self.classes_.dtype.kind, all(isinstance(label, str) for label in self.classes_)
            if kind not in DTYPES or (kind == "O" and not known):
                raise ValueError(f"classes must be numbers or strings to be saved, got {self.classes_!r}")
            extra["classes"] = {"dtype": self.classes_.dtype.str, "labels": self.classes_.tolist()}
        extra["fitted"] = len(getattr(self, "learners_", ()))
        held = Held(sum((one.states() for one in getattr(self, "learners_", ())), ()), learner.prior_states())
        return files.Contents({"learner": self.learner}, extra, held)

    @classmethod
    def restored(cls, params: dict[str, Any], extra: dict[str, Any], held: files.Holds) -> Self:
        """From what a file, copy or pickle holds, `params`, `extra` and `held`; ValueError where that does not fit."""
        owner = cls(built(params["learner"]))
        owner._restore(extra)
        pattern = owner._default() if owner.learner is None else owner.learner
        take_back(pattern, getattr(owner, "learners_", []), check.integer("dim", extra["dim"], 0), held)
        return owner

    def _restore(self, extra: dict[str, Any]) -> None:
        """Take back what a file says besides its arrays; ValueError, TypeError or KeyError where it makes no sense."""
        count = check.integer("fitted", extra["fitted"], 0)
        if count == 0:
            return
        self._restore_classes(extra["classes"])
        if count != self._count():
            raise ValueError(f"{count} learners")
        self.n_features_in_, self.learners_ = check.integer("dim", extra["dim"], 1), self._anew(count)
        if extra["names"] is not None:
            self.feature_names_in_ = np.array([str(name) for name in extra["names"]], object)
            if len(self.feature_names_in_) != self.n_features_in_:
                raise ValueError(f"{len(self.feature_names_in_)} names of features")

    def _restore_classes(self, classes: Any) -> None:
        if classes is not None:
            raise ValueError("classes of a regressor")

    def _count(self) -> int:
        """How many native learners there are."""
        return 1


class OnlineKernelClassifier(ClassifierMixin, OnlineKernelEstimator):
    """An online kernel classifier for scikit-learn: labels of any kind, two classes or more, dense or sparse rows.

    learner: any native learner with a loss for classification, such as op.FORKS() (None: op.KernelNewton(), which needs
    no tuning); it serves as a pattern and is never changed. After `fit` or `partial_fit`: `classes_` (classes,),
    `n_features_in_`, `learners_`. Sample weights are not supported. ValueError for bad input, and nothing has changed.

    >>> import numpy as np, onepass as op
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.standard_normal((3000, 2))
    >>> labels = np.array(["inside", "outside"])[(np.linalg.norm(rows, axis=1) > 1.2).astype(int)]
    >>> classifier = op.OnlineKernelClassifier().fit(rows[:2000], labels[:2000])
    >>> classifier.score(rows[2000:], labels[2000:]) > 0.95
    True
    """

    _classifies = True
    classes_: np.ndarray

    def _default(self) -> Learner:
        return KernelNewton()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = self._promises_nothing
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Learn examples X (n, d) with labels y (n,), in order, after forgetting what was learned before."""
        with self._all_or_nothing():
            self._forget()
            self._progress(X, y, np.unique)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn more examples X (n, d), y (n,). classes: all labels that will ever occur, given at the first call."""
        self._progress(X, y, lambda _: self._named(classes), classes)
        return self

    def learn_one(self, x: Any, y: Any, classes: Any = None) -> Self:
        """`partial_fit` of one row x, (d,) or (1, d), and its label y; classes: as there."""
        if classes is not None or not self.__sklearn_is_fitted__():
            return self.partial_fit(single(x), [y], classes)
        self._advance(self._row(x), self._codes(np.asarray([y])))
        return self

    def predict_one(self, x: Any) -> Any:
        return self._labels(self._decided(self._row(x)))[0]

    def _named(self, classes: Any) -> np.ndarray:
        if classes is None:
            raise ValueError("classes must be given at the first call: all labels that may occur, as in classes=[0, 1]")
        return np.unique(np.asarray(classes))

    def _progress(self, X: Any, y: Any, first: Callable[[Any], np.ndarray], classes: Any = None) -> np.ndarray:
        """Decide and learn; first: the classes, from the labels, if this is the first call."""
        with self._all_or_nothing():
            rows, y = self._examples(X, y)
            if not self.__sklearn_is_fitted__():
                check_classification_targets(y)
                self.classes_ = first(y)
                if self.classes_.size < 2:
                    raise ValueError(f"y must have at least 2 classes, got {len(self.classes_)} class: {self.classes_}")
                self.learners_ = self._anew(self._count())
            elif classes is not None and not np.array_equal(self._named(classes), self.classes_):
                raise ValueError(f"classes must be those of the first call, {self.classes_!r}, got {classes!r}")
            codes = self._codes(y)
        return self._advance(rows, codes)

    def _codes(self, y: np.ndarray) -> np.ndarray:
        """Places (n,) of the labels among the classes."""
        try:
            codes = np.minimum(np.searchsorted(self.classes_, y), len(self.classes_) - 1)
        except TypeError:
            raise ValueError(f"y must hold labels among {self.classes_.tolist()}, got {y.tolist()}") from None
        known = self.classes_[codes] == y
        if not np.all(known):
            raise ValueError(f"y must hold labels among {self.classes_.tolist()}, got {y[~known].tolist()[0]!r}")
        return codes

    def _targets(self, y: np.ndarray) -> Callable[[int, slice], np.ndarray]:
        only = 1 if len(self.learners_) == 1 else 0
        return lambda k, place: np.where(y[place] == k + only, 1.0, -1.0)

    def _restore_classes(self, classes: Any) -> None:
        kind = np.dtype(str(classes["dtype"]))
        if kind.kind not in DTYPES:
            raise ValueError(f"labels of dtype {kind}")
        labels = np.array(classes["labels"], kind)
        if labels.ndim != 1 or labels.size < 2 or not np.array_equal(np.unique(labels), labels):
            raise ValueError("labels are not sorted")
        self.classes_ = labels

    def _count(self) -> int:
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    def _labels(self, decisions: np.ndarray) -> np.ndarray:
        return self.classes_[(decisions >= 0.0).astype(int) if decisions.ndim == 1 else decisions.argmax(axis=1)]

    def decision_function(self, X: Any) -> np.ndarray:
        """f of every row of X (n, d): (n,), 0 and above for the second class of two; (n, classes) for more than two."""
        return self._decisions(X)

    def predict(self, X: Any) -> np.ndarray:
        """The class of every row of X, (n, d) -> (n,)."""
        return self._labels(self._decisions(X))

    def validated(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Decisions and mistakes (n,) while examples X (n, d), y (n,) are learned."""
        decisions = self._progress(X, y, np.unique)
        return decisions, (self._labels(decisions) != np.asarray(y).reshape(-1)).astype(np.float64)


class OnlineKernelRegressor(RegressorMixin, OnlineKernelEstimator):
    """An online kernel regressor for scikit-learn: dense or sparse rows, one target.

    learner: any native learner with a loss for regression, such as op.FOGD(loss="huber") (None:
    op.KernelNewton(loss="squared"), which needs no tuning); it serves as a pattern and is never changed. After `fit` or
    `partial_fit`: `n_features_in_`, `learners_`, a list of one. Sample weights are not supported. ValueError for bad
    input, and nothing has changed.

    >>> import numpy as np, onepass as op
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.standard_normal((2000, 2))
    >>> regressor = op.OnlineKernelRegressor().fit(rows[:1000], np.sin(2.0 * rows[:1000, 0]))
    >>> regressor.score(rows[1000:], np.sin(2.0 * rows[1000:, 0])) > 0.95
    True
    """

    _classifies = False

    def _default(self) -> Learner:
        return KernelNewton(loss="squared")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = self._promises_nothing
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Learn examples X (n, d) with targets y (n,), in order, after forgetting what was learned before."""
        with self._all_or_nothing():
            self._forget()
            self._progress(X, y)
        return self

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learn examples X (n, d) with targets y (n,) more, in order."""
        self._progress(X, y)
        return self

    def learn_one(self, x: Any, y: Any) -> Self:
        """`partial_fit` of one row x, (d,) or (1, d), and its target y."""
        if not self.__sklearn_is_fitted__():
            return self.partial_fit(single(x), [y])
        self._advance(self._row(x), self.learners_[0]._targets([y], 1))
        return self

    def predict_one(self, x: Any) -> Any:
        return self._decided(self._row(x))[0]

    def _progress(self, X: Any, y: Any) -> np.ndarray:
        with self._all_or_nothing():
            rows, y = self._examples(X, y)
            if not self.__sklearn_is_fitted__():
                self.learners_ = self._anew(1)
            targets = self.learners_[0]._targets(y, rows.shape[0])
        return self._advance(rows, targets)

    def _targets(self, y: np.ndarray) -> Callable[[int, slice], np.ndarray]:
        return lambda k, place: y[place]

    def predict(self, X: Any) -> np.ndarray:
        """f of every row of X, (n, d) -> (n,)."""
        return self._decisions(X)

    def validated(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Decisions and mistakes (n,) while examples X (n, d), y (n,) are learned."""
        decisions = self._progress(X, y)
        return decisions, (decisions - np.asarray(y, np.float64).reshape(-1)) ** 2
