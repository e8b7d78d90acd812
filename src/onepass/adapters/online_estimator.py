"""The base class of scikit-learn estimators around online kernel learners: checks, copies and files."""

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


class OnlineKernelEstimator(SharedObject, BaseEstimator, ABC):
    """What both estimators share. `learners_`: the native learners, one, or one a class when there are several and the
    learner cannot do with one design. They are parts of the estimator: threads read or write all of them or none.
    """

    __metadata_request__fit: ClassVar = {
        "sample_weight": None
    }  # which scikit-learn's routing offers with `set_fit_request`

    learner: Learner | None
    learners_: list[Learner]
    n_features_in_: int

    def __init__(self, learner: Learner | None = None) -> None:
        self.learner = learner

    @abstractmethod
    def default_learner(self) -> Learner:
        """Return the learner that None stands for."""

    def learner_counts(self) -> tuple[int, ...]:
        """Return how many native learners there may be; the first is what is made today."""
        return (1,)

    def make_learners(self, count: int) -> list[Learner]:
        """Return `count` native learners that have learned nothing."""
        learner, classifies = pattern(self), isinstance(self, ClassifierMixin)
        if not isinstance(learner, Learner) or learner.is_classifier is not classifies:
            losses = "hinge, squared_hinge or logistic" if classifies else "squared, huber or epsilon_insensitive"
            raise ValueError(f"learner must be an online kernel learner with the loss {losses}, got {quote(learner)}")
        return share([clone(learner) for _ in range(count)], self.sharing)

    def begin(self, y: Any) -> None:
        """Make learners that have learned nothing, for labels y (n,)."""
        self.learners_ = self.make_learners(self.learner_counts()[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "learners_")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """`learner`, and, if deep, as `learner__width` and the like what can be set of it, of the default one too."""
        params = super().get_params(deep)
        if deep and self.learner is None:
            params.update({f"learner__{name}": value for name, value in self.default_learner().get_params().items()})
        return params

    def set_params(self, **params: Any) -> Self:
        """As every estimator's; `learner__width` and the like set those of the native learner, also of the default."""
        if params.get("learner", self.learner) is None and any(name.startswith("learner__") for name in params):
            params = {**params, "learner": self.default_learner()}
        return super().set_params(**params)

    @reading
    def memory_usage(self) -> int:
        """Bytes of all arrays of all learners; 0 before the first example."""
        return sum(learner.memory_usage() for learner in getattr(self, "learners_", ()))

    @reading
    def copy(self) -> Self:
        """An independent copy, with what was learned; scikit-learn's `clone` copies without."""
        twin = clone(self)
        vars(twin).update({name: value for name, value in vars(self).items() if name.endswith("_")})
        if self.__sklearn_is_fitted__():
            twin.learners_ = share([learner.copy() for learner in self.learners_], twin.sharing)
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
        share(getattr(self, "learners_", []), self.sharing)

    @composite
    def compile_for(self, X: Any, y: Any) -> None:
        """Compile what learning examples X (n, d), y (n,) needs; the estimator stays as it is."""
        with transaction(self):
            fitted = self.__sklearn_is_fitted__()
            rows, y = checked_examples(self, X, y)
            if not fitted:
                self.begin(y)
            self.learners_[0].copy().learn_checked(rows[:1], np.ones(1))
            if not fitted:
                forget(self)

    # ---------------------------------------------------------------- files

    def save(self, path: str | Path) -> None:
        """Write everything to `path`, atomically; read with `onepass.load`. ValueError for what it could not build."""
        files.save(path, self)

    def contents(self) -> files.Contents:
        """What is written: the learner as a pattern, what scikit-learn knows, and the states of all learners."""
        class_name(pattern(self))
        extra: dict[str, Any] = {"dim": getattr(self, "n_features_in_", 0), "names": None, "classes": None}
        if hasattr(self, "feature_names_in_"):
            extra["names"] = [str(name) for name in self.feature_names_in_]
        extra["fitted"] = len(getattr(self, "learners_", ()))
        held = LearnerStates(sum((one.states() for one in getattr(self, "learners_", ())), ()))
        return files.Contents({"learner": self.learner}, extra, held)

    @classmethod
    def from_contents(cls, params: dict[str, Any], extra: dict[str, Any], held: files.StateSource) -> Self:
        """From what a file, copy or pickle holds, `params`, `extra` and `held`; ValueError where that does not fit."""
        owner = cls(**params)
        owner.restore(extra)
        restore_states(getattr(owner, "learners_", []), check.integer("dim", extra["dim"], 0), held)
        return owner

    def restore(self, extra: dict[str, Any]) -> None:
        """Take back what a file says besides its arrays, `extra`. Raises ValueError, TypeError or KeyError."""
        count = check.integer("fitted", extra["fitted"], 0)
        if count == 0:
            return
        if extra["classes"] is not None and not hasattr(self, "classes_"):
            raise ValueError("classes of a regressor")
        if count not in self.learner_counts():
            raise ValueError(f"{count} learners")
        self.n_features_in_, self.learners_ = check.integer("dim", extra["dim"], 1), self.make_learners(count)
        if extra["names"] is not None:
            self.feature_names_in_ = np.array([str(name) for name in extra["names"]], object)
            if len(self.feature_names_in_) != self.n_features_in_:
                raise ValueError(f"{len(self.feature_names_in_)} names of features")


# ---- what an estimator is given ----


def pattern(estimator: OnlineKernelEstimator) -> Learner:
    """Return the learner that the native ones are copies of."""
    return estimator.default_learner() if estimator.learner is None else estimator.learner


def can_score_poorly(learner: Learner | None) -> bool:
    """Return scikit-learn's poor_score: a budget may be too small for the data that scikit-learn checks with."""
    return not (learner is None or isinstance(learner, KernelNewton))


def weight_option(options: dict[str, Any]) -> Any:
    """Return the sample_weight among options of `fit`, default None. Raises TypeError for others."""
    for name in options:
        if name != "sample_weight":
            raise TypeError(f"fit takes X, y and sample_weight, got {quote(name)}")
    return options.get("sample_weight")


def checked_examples(estimator: OnlineKernelEstimator, X: Any, y: Any) -> Any:
    """Return rows and labels as scikit-learn checks them, the rows then as the native learners do."""
    numeric, reset = not isinstance(estimator, ClassifierMixin), not estimator.__sklearn_is_fitted__()
    with all_floats():
        X, y = validate_data(estimator, X, y, accept_sparse="csr", dtype=np.float64, y_numeric=numeric, reset=reset)
    return check_rows("X", X, None), y


def checked_weights(estimator: OnlineKernelEstimator, given: Any, rows: Any) -> np.ndarray | None:
    """Return weights (n,) of the examples, at least 0; None where there are none."""
    if given is None:
        return None
    if not pattern(estimator).can_use_weights:
        raise ValueError(f"sample_weight needs a KernelNewton, got {quote(estimator.learner)}")
    found = check.finite("sample_weight", check.array("sample_weight", given, np.dtype(np.float64), (0, 1)))
    if found.ndim == 0:
        found = np.full(rows.shape[0], float(found))
    if found.shape != (rows.shape[0],) or (found < 0.0).any():
        raise ValueError(f"sample_weight must have {rows.shape[0]} entries of at least 0, got {quote(given)}")
    return found


def checked_rows(estimator: OnlineKernelEstimator, X: Any) -> Any:
    """Return rows to decide on as scikit-learn checks them, then as the native learners do."""
    check_is_fitted(estimator)
    with all_floats():
        X = validate_data(estimator, X, accept_sparse="csr", dtype=np.float64, reset=False)
    return check_rows("X", X, None)


def checked_row(estimator: OnlineKernelEstimator, x: Any) -> Any:
    """Return one row, (d,) or (1, d), as (1, d): scikit-learn's checks of whole arrays would take most of the time."""
    check_is_fitted(estimator)
    names, given = getattr(estimator, "feature_names_in_", None), getattr(x, "columns", getattr(x, "index", None))
    if names is not None and given is not None and not callable(given) and list(given) != list(names):
        raise ValueError(f"x must have the features {quote(list(names))} in this order, got {quote(list(given))}")
    return check_rows("x", single(x), estimator.n_features_in_)


# ---- what an estimator has learned ----


@contextmanager
def transaction(estimator: OnlineKernelEstimator) -> Iterator[None]:
    """Take back what has changed if an argument is refused; once learning has begun, all arguments are checked."""
    held = dict(vars(estimator))
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(held)
        raise


def forget(estimator: OnlineKernelEstimator) -> None:
    """Remove all that was learned."""
    for name in [name for name in vars(estimator) if name.endswith("_")]:
        delattr(estimator, name)


def share(learners: list[Learner], sharing: RWLock) -> list[Learner]:
    """Let learners be used as parts of one object, and return them."""
    for learner in learners:
        learner.sharing = sharing
    return learners
