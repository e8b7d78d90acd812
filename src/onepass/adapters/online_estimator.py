"""What the scikit-learn estimators around online kernel learners share: checks, blocks, copies and files."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from onepass.foundation import check, files
from onepass.foundation.check import shown
from onepass.foundation.interrupts import deferred
from onepass.foundation.registry import name_of
from onepass.foundation.sharing import Shared, composed, reading
from onepass.learner.kernel_newton import KernelNewton
from onepass.learner.learner import Held, Learner, take_back
from onepass.learner.rows import checked, parts

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


class OnlineKernelEstimator(Shared, BaseEstimator, ABC):
    """What both estimators share. `learners_`: the native learners, one, or one a class when there are several and the
    learner cannot do with one design. They are parts of the estimator: threads read or write all of them or none.
    """

    __metadata_request__fit: ClassVar = {
        "sample_weight": None
    }  # which scikit-learn's routing offers with `set_fit_request`

    learner: Learner | None
    learners_: list[Learner]
    n_features_in_: int
    _classifies: bool

    def __init__(self, learner: Learner | None = None) -> None:
        self.learner = learner

    @abstractmethod
    def _default(self) -> Learner:
        """The learner that None stands for."""

    @abstractmethod
    def _targets(self, y: np.ndarray) -> Callable[[int, slice], np.ndarray]:
        """The targets of learner k at a slice of the checked labels y."""

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

    def _pattern(self) -> Learner:
        """What the native learners are like."""
        return self._default() if self.learner is None else self.learner

    def _anew(self, count: int) -> list[Learner]:
        """So many native learners that know nothing yet."""
        learner = self._pattern()
        if not isinstance(learner, Learner) or learner.classifies is not self._classifies:
            losses = "hinge, squared_hinge or logistic" if self._classifies else "squared, huber or epsilon_insensitive"
            raise ValueError(f"learner must be an online kernel learner with the loss {losses}, got {shown(learner)}")
        return self._parts([clone(learner) for _ in range(count)])

    def _parts(self, learners: list[Learner]) -> list[Learner]:
        for learner in learners:
            learner.sharing = self.sharing
        return learners

    def _forget(self) -> None:
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def _examples(self, X: Any, y: Any) -> Any:
        """Rows and labels as scikit-learn checks them, the rows then as the native learners do."""
        options = {"y_numeric": not self._classifies, "reset": not self.__sklearn_is_fitted__()}
        with all_floats():
            X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, **options)
        return checked("X", X, None), y

    def _weights(self, given: Any, rows: Any) -> np.ndarray | None:
        """Weights (n,) of the examples, not negative; None where there are none."""
        if given is None:
            return None
        if not self._pattern().weighs:
            raise ValueError(f"sample_weight needs a KernelNewton, got {shown(self.learner)}")
        found = check.finite("sample_weight", check.array("sample_weight", given, np.dtype(np.float64), (0, 1)))
        if found.ndim == 0:
            found = np.full(rows.shape[0], float(found))
        if found.shape != (rows.shape[0],) or (found < 0.0).any():
            raise ValueError(f"sample_weight must have {rows.shape[0]} entries of at least 0, got {shown(given)}")
        return found

    def _advance(self, rows: Any, y: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        """Decide and learn checked examples: the decisions, (n,) for one learner, (n, classes) for several."""
        targets, decisions = self._targets(y), self._undecided(rows)
        for place, block in parts(rows, self.learners_[0].columns(rows.shape[1])):
            with deferred():
                for k, learner in enumerate(self.learners_):
                    decisions[place, self._place(k)] = learner.advance(
                        block, targets(k, place), None if weights is None else weights[place]
                    )
        return decisions if decisions.shape[1] > 1 else decisions[:, 0]

    def _row(self, x: Any) -> np.ndarray:
        """One row, (d,) or (1, d), as (1, d): scikit-learn's checks of whole arrays would take most of the time."""
        check_is_fitted(self)
        names, given = getattr(self, "feature_names_in_", None), getattr(x, "columns", getattr(x, "index", None))
        if names is not None and given is not None and not callable(given) and list(given) != list(names):
            raise ValueError(f"x must have the features {shown(list(names))} in this order, got {shown(list(given))}")
        return checked("x", single(x), self.n_features_in_)

    def _decisions(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        with all_floats():
            X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return self._decided(checked("X", X, None))

    def _decided(self, rows: Any) -> np.ndarray:
        decisions = self._undecided(rows)
        for place, block in parts(rows, self.learners_[0].columns(rows.shape[1])):
            for k, learner in enumerate(self.learners_):
                decisions[place, self._place(k)] = learner.decided_rows(block)
        return decisions if decisions.shape[1] > 1 else decisions[:, 0]

    def _undecided(self, rows: Any) -> np.ndarray:
        """Room for the decisions on rows."""
        return np.empty((rows.shape[0], *(self.learners_[0].outputs or (len(self.learners_),))))

    def _place(self, k: int) -> Any:
        """The columns of learner k's decisions."""
        return slice(None) if self.learners_[0].outputs else k

    def _given(self, options: dict[str, Any]) -> Any:
        """The sample_weight among options of `fit`, None where it is not; TypeError for others."""
        for name in options:
            if name != "sample_weight":
                raise TypeError(f"fit takes X, y and sample_weight, got {shown(name)}")
        return options.get("sample_weight")

    @abstractmethod
    def predict(self, X: Any) -> np.ndarray:
        """Of every row of X, (n, d) -> (n,)."""

    @abstractmethod
    def predict_one(self, x: Any) -> Any:
        """`predict` of one row x, (d,) or (1, d)."""

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
            twin.learners_ = twin._parts([learner.copy() for learner in self.learners_])
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
        self._parts(getattr(self, "learners_", []))

    @composed
    def rehearse(self, X: Any, y: Any) -> None:
        """Compile what learning examples X (n, d), y (n,) needs; the estimator stays as it is."""
        with self._all_or_nothing():
            fitted = self.__sklearn_is_fitted__()
            rows, y = self._examples(X, y)
            learner = self.learners_[0].copy() if fitted else self._first(y)
            learner.advance(rows[:1], np.ones(1))
            if not fitted:
                self._forget()

    def _first(self, y: np.ndarray) -> Learner:
        """A native learner that knows nothing, for such targets."""
        return self._anew(1)[0]

    # ---------------------------------------------------------------- files

    def save(self, path: str | Path) -> None:
        """Write everything to `path`, atomically; read with `onepass.load`. ValueError for what it could not build."""
        files.save(path, self)

    def contents(self) -> files.Contents:
        """What is written: the learner as a pattern, what scikit-learn knows, and the states of all learners."""
        learner = self._default() if self.learner is None else self.learner
        name_of(learner)
        extra: dict[str, Any] = {"dim": getattr(self, "n_features_in_", 0), "names": None, "classes": None}
        if hasattr(self, "feature_names_in_"):
            extra["names"] = [str(name) for name in self.feature_names_in_]
        if hasattr(self, "classes_"):
            kind, known = self.classes_.dtype.kind, all(isinstance(label, str) for label in self.classes_)
            if kind not in DTYPES or (kind == "O" and not known):
                raise ValueError(f"classes must be numbers or strings to be saved, got {shown(self.classes_)}")
            extra["classes"] = {"dtype": self.classes_.dtype.str, "labels": self.classes_.tolist()}
        extra["fitted"] = len(getattr(self, "learners_", ()))
        held = Held(sum((one.states() for one in getattr(self, "learners_", ())), ()))
        return files.Contents({"learner": self.learner}, extra, held)

    @classmethod
    def restored(cls, params: dict[str, Any], extra: dict[str, Any], held: files.Holds) -> Self:
        """From what a file, copy or pickle holds, `params`, `extra` and `held`; ValueError where that does not fit."""
        owner = cls(**params)
        owner._restore(extra)
        take_back(getattr(owner, "learners_", []), check.integer("dim", extra["dim"], 0), held)
        return owner

    def _restore(self, extra: dict[str, Any]) -> None:
        """Take back what a file says besides its arrays; ValueError, TypeError or KeyError where it makes no sense."""
        count = check.integer("fitted", extra["fitted"], 0)
        if count == 0:
            return
        self._restore_classes(extra["classes"])
        if count not in self._counts():
            raise ValueError(f"{count} learners")
        self.n_features_in_, self.learners_ = check.integer("dim", extra["dim"], 1), self._anew(count)
        if extra["names"] is not None:
            self.feature_names_in_ = np.array([str(name) for name in extra["names"]], object)
            if len(self.feature_names_in_) != self.n_features_in_:
                raise ValueError(f"{len(self.feature_names_in_)} names of features")

    def _restore_classes(self, classes: Any) -> None:
        if classes is not None:
            raise ValueError("classes of a regressor")

    def _counts(self) -> tuple[int, ...]:
        """How many native learners there may be; the first is what is made today."""
        return (1,)
