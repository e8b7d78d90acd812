"""Base class of scikit-learn estimators around online kernel learners: checks, copies and files."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from onepass.foundation import check, files
from onepass.foundation.check import quote
from onepass.foundation.registry import class_name
from onepass.foundation.rw_lock import RWLock, SharedObject, composite, reading
from onepass.learner.kernel_newton import KernelNewton
from onepass.learner.learner import Learner, LearnerStates, restore_states
from onepass.learner.sparse_input import check_rows

try:
    from sklearn.base import BaseEstimator, clone
    from sklearn.base import ClassifierMixin as ClassifierMixin
    from sklearn.base import RegressorMixin as RegressorMixin
    from sklearn.utils.multiclass import check_classification_targets as check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as missing:
    raise ImportError(
        "OnlineKernelClassifier and OnlineKernelRegressor need scikit-learn 1.6 or newer: pip install scikit-learn"
    ) from missing


def single_row(x: Any) -> np.ndarray:
    """Return one row of numbers, given as (d,) or (1, d), in the shape (1, d)."""
    return check.array("x", x, np.dtype(np.float64), (1, 2)).reshape(1, -1)


@contextmanager
def _refuse_huge_integers() -> Iterator[None]:
    """Raise ValueError if scikit-learn's checks meet an integer that no float can hold."""
    try:
        yield
    except OverflowError as error:
        raise ValueError(f"X and y must hold numbers that a float can hold: {error}") from None


class OnlineKernelEstimator(SharedObject, BaseEstimator, ABC):
    """Base of the scikit-learn classifier and regressor, which hold online kernel learners in `learners_`.

    There is one learner, or one for each of more than two classes if a learner has a single output. A lock lets many
    threads read all learners, or one thread change them.
    """

    # scikit-learn's metadata routing offers `set_fit_request` for it
    __metadata_request__fit: ClassVar = {"sample_weight": None}

    learner: Learner | None
    learners_: list[Learner]
    n_features_in_: int

    def __init__(self, learner: Learner | None = None) -> None:
        self.learner = learner

    @abstractmethod
    def default_learner(self) -> Learner:
        """Return the learner that `learner=None` stands for.

        Returns
        -------
        Learner
            A new learner.
        """

    def _learner_counts(self) -> tuple[int, ...]:
        """Return the possible numbers of native learners. A new estimator has the first of these numbers."""
        return (1,)

    def _make_learners(self, count: int) -> list[Learner]:
        """Return `count` new native learners."""
        learner, is_classifier = prototype(self), isinstance(self, ClassifierMixin)
        if not isinstance(learner, Learner) or learner.is_classifier is not is_classifier:
            losses = "hinge, squared_hinge or logistic" if is_classifier else "squared, huber or epsilon_insensitive"
            raise ValueError(f"learner must be an online kernel learner with the loss {losses}, got {quote(learner)}")
        return share_lock([clone(learner) for _ in range(count)], self.sharing)

    def _init_learners(self, y: Any) -> None:
        """Make new learners for labels y (n,)."""
        self.learners_ = self._make_learners(self._learner_counts()[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "learners_")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's arguments, for scikit-learn's `clone` and searches.

        Parameters
        ----------
        deep : bool, default True
            True to add the parameters of the learner as `learner__width` and so on, of the default learner, too.

        Returns
        -------
        dict
            Values by name.
        """
        params = super().get_params(deep)
        if deep and self.learner is None:
            params.update({f"learner__{name}": value for name, value in self.default_learner().get_params().items()})
        return params

    def set_params(self, **params: Any) -> Self:
        """Set arguments of the constructor.

        Parameters
        ----------
        **params : dict
            New values by name. `learner__width` and so on set parameters of the learner, of the default one, too.

        Returns
        -------
        OnlineKernelEstimator
            The estimator itself.
        """
        if params.get("learner", self.learner) is None and any(name.startswith("learner__") for name in params):
            params = {**params, "learner": self.default_learner()}
        return super().set_params(**params)

    @reading
    def memory_usage(self) -> int:
        """Return the bytes of all arrays of all learners.

        Returns
        -------
        int
            Number of bytes, 0 before the first example.
        """
        return sum(learner.memory_usage() for learner in getattr(self, "learners_", ()))

    @reading
    def copy(self) -> Self:
        """Return an independent copy that has learned the same examples; scikit-learn's `clone` has learned none.

        Returns
        -------
        OnlineKernelEstimator
            The copy.
        """
        twin = clone(self)
        vars(twin).update({name: value for name, value in vars(self).items() if name.endswith("_")})
        if self.__sklearn_is_fitted__():
            twin.learners_ = share_lock([learner.copy() for learner in self.learners_], twin.sharing)
        return twin

    def __copy__(self) -> Self:
        return self.copy()

    @reading
    def __getstate__(self) -> dict[str, Any]:
        state = dict(vars(self))
        if "learners_" in state:
            state["learners_"] = [learner.copy() for learner in self.learners_]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        share_lock(getattr(self, "learners_", []), self.sharing)

    @composite
    def compile_for(self, X: Any, y: Any) -> None:
        """Compile the code that learns rows of this width, and leave the estimator as it is.

        Parameters
        ----------
        X : array of shape (n, d)
            Rows.
        y : array of shape (n,)
            Their labels or targets.
        """
        with transaction(self):
            is_fitted = self.__sklearn_is_fitted__()
            rows, y = validate_examples(self, X, y)
            if not is_fitted:
                self._init_learners(y)
            self.learners_[0].copy().learn_checked(rows[:1], np.ones(1))
            if not is_fitted:
                remove_fitted(self)

    # ---------------------------------------------------------------- files

    def save(self, path: str | Path) -> None:
        """Write the estimator to a file, atomically. `onepass.load` reads it.

        Parameters
        ----------
        path : str or Path
            File to write.

        Raises
        ------
        ValueError
            If `onepass.load` could not rebuild the estimator.
        """
        files.save(path, self)

    def contents(self) -> files.Contents:
        """Return the contents of a file: the prototype of the learners, scikit-learn's attributes, and all states.

        Returns
        -------
        Contents
            Parameters, further data, and states.
        """
        class_name(prototype(self))
        extra: dict[str, Any] = {"dim": getattr(self, "n_features_in_", 0), "names": None, "classes": None}
        if hasattr(self, "feature_names_in_"):
            extra["names"] = [str(name) for name in self.feature_names_in_]
        extra["fitted"] = len(getattr(self, "learners_", ()))
        states = LearnerStates(sum((learner.states() for learner in getattr(self, "learners_", ())), ()))
        return files.Contents({"learner": self.learner}, extra, states)

    @classmethod
    def from_contents(cls, params: dict[str, Any], extra: dict[str, Any], held: files.StateSource) -> Self:
        """Rebuild an estimator from the contents of a file, copy or pickle.

        Parameters
        ----------
        params : dict
            Arguments of the constructor.
        extra : dict
            Further data.
        held : StateSource
            States of the learners.

        Returns
        -------
        OnlineKernelEstimator
            The estimator.

        Raises
        ------
        ValueError
            If the parts do not belong together.
        """
        estimator = cls(**params)
        estimator._restore_extra(extra)
        restore_states(getattr(estimator, "learners_", []), check.integer("dim", extra["dim"], 0), held)
        return estimator

    def _restore_extra(self, extra: dict[str, Any]) -> None:
        """Restore `extra`, the data of a file besides its arrays.

        Damaged data raise ValueError, TypeError or KeyError.
        """
        count = check.integer("fitted", extra["fitted"], 0)
        if count == 0:
            return
        if extra["classes"] is not None and not hasattr(self, "classes_"):
            raise ValueError("file of a regressor has classes, expected none")
        if count not in self._learner_counts():
            raise ValueError(f"file has {count} learners, expected {' or '.join(map(str, self._learner_counts()))}")
        self.n_features_in_, self.learners_ = check.integer("dim", extra["dim"], 1), self._make_learners(count)
        if extra["names"] is not None:
            self.feature_names_in_ = np.array([str(name) for name in extra["names"]], object)
            if len(self.feature_names_in_) != self.n_features_in_:
                count = len(self.feature_names_in_)
                raise ValueError(f"file has {count} names of features, expected {self.n_features_in_}")


# ---- arguments ----


def prototype(estimator: OnlineKernelEstimator) -> Learner:
    """Return the learner, without any examples, that the estimator clones for its own learners."""
    return estimator.default_learner() if estimator.learner is None else estimator.learner


def can_score_poorly(learner: Learner | None) -> bool:
    """Return True for a learner whose memory may be too small to pass scikit-learn's checks of accuracy.

    This is every learner but `KernelNewton`, the default.
    """
    return not (learner is None or isinstance(learner, KernelNewton))


def sample_weight_option(options: dict[str, Any]) -> Any:
    """Return the `sample_weight` among the options of `fit`, or None. Raises TypeError for other options."""
    for name in options:
        if name != "sample_weight":
            raise TypeError(f"fit takes X, y and sample_weight, got {quote(name)}")
    return options.get("sample_weight")


def validate_examples(estimator: OnlineKernelEstimator, X: Any, y: Any) -> Any:
    """Return rows and labels after scikit-learn's checks of X (n, d) and y (n,), and the learners' checks of rows."""
    numeric, reset = not isinstance(estimator, ClassifierMixin), not estimator.__sklearn_is_fitted__()
    with _refuse_huge_integers():
        X, y = validate_data(estimator, X, y, accept_sparse="csr", dtype=np.float64, y_numeric=numeric, reset=reset)
    return check_rows("X", X, None), y


def validate_weights(estimator: OnlineKernelEstimator, sample_weight: Any, rows: Any) -> np.ndarray | None:
    """Return weights (n,) of the examples, at least 0, or None without `sample_weight`."""
    if sample_weight is None:
        return None
    if not prototype(estimator).can_use_weights:
        raise ValueError(f"sample_weight needs a KernelNewton, got {quote(estimator.learner)}")
    weights = check.finite("sample_weight", check.array("sample_weight", sample_weight, np.dtype(np.float64), (0, 1)))
    if weights.ndim == 0:
        weights = np.full(rows.shape[0], float(weights))
    if weights.shape != (rows.shape[0],) or (weights < 0.0).any():
        raise ValueError(f"sample_weight must have {rows.shape[0]} entries of at least 0, got {quote(sample_weight)}")
    return weights


def validate_rows(estimator: OnlineKernelEstimator, X: Any) -> Any:
    """Return rows X (n, d) to decide on after the checks of scikit-learn and of the learners."""
    check_is_fitted(estimator)
    with _refuse_huge_integers():
        X = validate_data(estimator, X, accept_sparse="csr", dtype=np.float64, reset=False)
    return check_rows("X", X, None)


def validate_row(estimator: OnlineKernelEstimator, x: Any) -> Any:
    """Return one row (d,) or (1, d) as (1, d), without scikit-learn's checks, which would take most of the time."""
    check_is_fitted(estimator)
    expected, names = getattr(estimator, "feature_names_in_", None), getattr(x, "columns", getattr(x, "index", None))
    if expected is not None and names is not None and not callable(names) and list(names) != list(expected):
        raise ValueError(f"x must have the features {quote(list(expected))} in this order, got {quote(list(names))}")
    return check_rows("x", single_row(x), estimator.n_features_in_)


# ---- learned attributes ----


@contextmanager
def transaction(estimator: OnlineKernelEstimator) -> Iterator[None]:
    """Undo all changes of the estimator if the block raises an error, as a context manager."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise


def remove_fitted(estimator: OnlineKernelEstimator) -> None:
    """Remove all attributes of the estimator that were learned."""
    for name in [name for name in vars(estimator) if name.endswith("_")]:
        delattr(estimator, name)


def share_lock(learners: list[Learner], sharing: RWLock) -> list[Learner]:
    """Make all learners use the same lock `sharing`, and return the learners."""
    for learner in learners:
        learner.sharing = sharing
    return learners
