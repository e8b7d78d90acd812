"""scikit-learn estimators around any online kernel learner: labels of any kind, several classes, `partial_fit`.

Two classes: one learner, whose f >= 0 means the second of `classes_`. More: one learner a class, which tells it from
all others, and the class of the largest f. They learn the stream one after the other, each in its compiled loop, which
is the same as example by example. Costs and memory are those of as many learners.
"""

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from onepass.adapters.online_estimator import (
    DTYPES,
    ClassifierMixin,
    OnlineKernelEstimator,
    RegressorMixin,
    check_classification_targets,
    single,
)
from onepass.foundation.check import shown
from onepass.foundation.sharing import composed, reading
from onepass.learner.kernel_newton import KernelNewton
from onepass.learner.learner import Learner


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

    @composed
    def fit(self, X: Any, y: Any) -> Self:
        """Learn examples X (n, d) with labels y (n,), in order, after forgetting what was learned before."""
        with self._all_or_nothing():
            self._forget()
            self._progress(X, y, np.unique)
        return self

    @composed
    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn more examples X (n, d), y (n,). classes: all labels that will ever occur, given at the first call."""
        self._progress(X, y, lambda _: self._named(classes), classes)
        return self

    @composed
    def learn_one(self, x: Any, y: Any, classes: Any = None) -> Self:
        """`partial_fit` of one row x, (d,) or (1, d), and its label y; classes: as there."""
        if classes is not None or not self.__sklearn_is_fitted__():
            return self.partial_fit(single(x), [y], classes)
        self._advance(self._row(x), self._codes(np.asarray([y])))
        return self

    @reading
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
                    raise ValueError(
                        f"y must have at least 2 classes, got {len(self.classes_)} class: {shown(self.classes_)}"
                    )
                self.learners_ = self._anew(self._count())
            elif classes is not None and not np.array_equal(self._named(classes), self.classes_):
                raise ValueError(
                    f"classes must be those of the first call, {shown(self.classes_)}, got {shown(classes)}"
                )
            codes = self._codes(y)
        return self._advance(rows, codes)

    def _codes(self, y: np.ndarray) -> np.ndarray:
        """Places (n,) of the labels among the classes."""
        try:
            codes = np.minimum(np.searchsorted(self.classes_, y), len(self.classes_) - 1)
        except TypeError:
            raise ValueError(
                f"y must hold labels among {shown(self.classes_.tolist())}, got {shown(y.tolist())}"
            ) from None
        known = self.classes_[codes] == y
        if not np.all(known):
            raise ValueError(
                f"y must hold labels among {shown(self.classes_.tolist())}, got {shown(y[~known].tolist()[0])}"
            )
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

    @reading
    def decision_function(self, X: Any) -> np.ndarray:
        """f of every row of X (n, d): (n,), 0 and above for the second class of two; (n, classes) for more than two."""
        return self._decisions(X)

    @reading
    def predict(self, X: Any) -> np.ndarray:
        """The class of every row of X, (n, d) -> (n,)."""
        return self._labels(self._decisions(X))

    @composed
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

    @composed
    def fit(self, X: Any, y: Any) -> Self:
        """Learn examples X (n, d) with targets y (n,), in order, after forgetting what was learned before."""
        with self._all_or_nothing():
            self._forget()
            self._progress(X, y)
        return self

    @composed
    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learn examples X (n, d) with targets y (n,) more, in order."""
        self._progress(X, y)
        return self

    @composed
    def learn_one(self, x: Any, y: Any) -> Self:
        """`partial_fit` of one row x, (d,) or (1, d), and its target y."""
        if not self.__sklearn_is_fitted__():
            return self.partial_fit(single(x), [y])
        self._advance(self._row(x), self.learners_[0]._targets([y], 1))
        return self

    @reading
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

    @reading
    def predict(self, X: Any) -> np.ndarray:
        """f of every row of X, (n, d) -> (n,)."""
        return self._decisions(X)

    @composed
    def validated(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Decisions and mistakes (n,) while examples X (n, d), y (n,) are learned."""
        decisions = self._progress(X, y)
        return decisions, (decisions - np.asarray(y, np.float64).reshape(-1)) ** 2
