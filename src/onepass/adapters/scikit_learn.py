"""scikit-learn estimators around any online kernel learner: labels of any kind, several classes, `partial_fit`.

Two classes: one learner, whose f >= 0 means the second of `classes_`. More: every class is told from all others, and
the class of the largest f. KernelNewton does so on one map and one design (learner/multiclass_newton.py), at a fraction
of the cost of learners of their own; of other learners there is one a class. They learn the stream one after the other,
each in its compiled loop, which is the same as example by example. Costs and memory are those of as many learners.
"""

from typing import Any, Self

import numpy as np

from onepass.adapters.calibration import Calibration
from onepass.adapters.one_vs_rest import advance, decide, refine
from onepass.adapters.online_estimator import (
    ClassifierMixin,
    OnlineKernelEstimator,
    RegressorMixin,
    can_score_poorly,
    check_classification_targets,
    checked_examples,
    checked_row,
    checked_rows,
    checked_weights,
    forget,
    pattern,
    share,
    single,
    transaction,
    weight_option,
)
from onepass.foundation import check, files
from onepass.foundation.check import quote
from onepass.foundation.rw_lock import composite, reading
from onepass.learner.kernel_newton import KernelNewton
from onepass.learner.learner import Learner
from onepass.learner.multiclass_newton import MulticlassNewton

DTYPES = "biufUO"  # of labels that a file can hold
SEVERAL = ("shared", "own")
STEPS = 3  # of Newton's method in `fit`, at every penalty
GOLDEN = 0.6180339887498949  # its multiples fill [0, 1) evenly: the chances by which examples are left out


class OnlineKernelClassifier(ClassifierMixin, OnlineKernelEstimator):
    """An online kernel classifier for scikit-learn: labels of any kind, two classes or more, dense or sparse rows.

    learner: any native learner with a loss for classification, such as op.learner.FORKS() (None: op.KernelNewton(),
    which needs no tuning, with the logistic loss); it serves as a pattern and is never changed.
    class_weight: None (default); "balanced": n / (classes * count of the class), counted over all that was learned,
        this call included; or {label: weight}, above 0, 1 for labels not named. Learners other than
        KernelNewton learn such a share of every class instead (rejection sampling, Zadrozny et al. 2003).
    several: what three classes and more are learned by: "shared" (default), a KernelNewton whose map and design serve
        all of them, or "own", one learner a class; learners other than KernelNewton have their own always.
    refinements: steps of Newton's method on all examples that `fit` adds to its one pass, for each penalty it tries, at
        least 0 (default 3; 0: one pass): learner/batch_refinement.py. For KernelNewton with the logistic loss, without
        `follow`; where rows drift the pass stays. `partial_fit` and `learn_one` learn every example once.
    After `fit` or `partial_fit`: `classes_` (classes,), `n_features_in_`, `learners_`. Weights of examples multiply
    their losses, and 0 leaves them out. `fit` takes `sample_weight` by name; its signature does not show it, as
    scikit-learn has it that weight 2 then is the example twice *in any order*, which no online learner can keep.
    ValueError for bad input, and nothing has changed.

    >>> import numpy as np, onepass as op
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.standard_normal((3000, 2))
    >>> labels = np.array(["inside", "outside"])[(np.linalg.norm(rows, axis=1) > 1.2).astype(int)]
    >>> classifier = op.OnlineKernelClassifier().fit(rows[:2000], labels[:2000])
    >>> classifier.score(rows[2000:], labels[2000:]) > 0.95
    True
    """

    classes_: np.ndarray
    counts_: np.ndarray
    calibration_: Calibration

    def __init__(
        self,
        learner: Learner | None = None,
        class_weight: Any = None,
        several: str = "shared",
        refinements: int = STEPS,
    ) -> None:
        super().__init__(learner)
        self.class_weight = class_weight
        self.several = several
        self.refinements = refinements

    def default_learner(self) -> Learner:
        return KernelNewton(loss="logistic")

    def copy(self) -> Self:
        """An independent copy, with what was learned; scikit-learn's `clone` copies without."""
        twin = super().copy()
        if self.__sklearn_is_fitted__():
            twin.calibration_, twin.counts_ = self.calibration_.copy(), self.counts_.copy()
        return twin

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = can_score_poorly(self.learner)
        return tags

    @composite
    def fit(self, X: Any, y: Any, **options: Any) -> Self:
        """Learn examples X (n, d) with labels y (n,), in order, after forgetting what was learned before.

        options: sample_weight, (n,) or a number, at least 0 (default None: 1).
        """
        with transaction(self):
            given, steps = weight_option(options), check.integer("refinements", self.refinements, 0)
            forget(self)
            self._progress(X, y, None, given, steps)
        return self

    @composite
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn more examples X (n, d), y (n,). classes: all labels that will ever occur, given at the first call.

        sample_weight: (n,) or a number, at least 0 (default None: 1).
        """
        if classes is None and not self.__sklearn_is_fitted__():
            raise ValueError("classes must be given at the first call: all labels that may occur, as in classes=[0, 1]")
        self._progress(X, y, classes, sample_weight)
        return self

    @composite
    def learn_one(self, x: Any, y: Any, classes: Any = None) -> Self:
        """`partial_fit` of one row x, (d,) or (1, d), and its label y; classes: as there."""
        if classes is not None or not self.__sklearn_is_fitted__():
            return self.partial_fit(single(x), [y], classes)
        self._learn_codes(checked_row(self, x), self._codes(np.asarray([y])), None)
        return self

    @reading
    def predict_one(self, x: Any) -> Any:
        """`predict` of one row x, (d,) or (1, d)."""
        return self._labels(decide(checked_row(self, x), self.learners_))[0]

    def _progress(self, X: Any, y: Any, classes: Any = None, given: Any = None, steps: int = 0) -> np.ndarray:
        """Decide and learn, and refine. The first call takes the classes from the labels where none are given."""
        with transaction(self):
            rows, y = checked_examples(self, X, y)
            weights = checked_weights(self, given, rows)
            if not self.__sklearn_is_fitted__():
                check_classification_targets(y)
                self.begin(y if classes is None else classes)
                if self.classes_.size < 2:
                    raise ValueError(
                        f"y must have at least 2 classes, got {len(self.classes_)} class: {quote(self.classes_)}"
                    )
            elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
                raise ValueError(
                    f"classes must be those of the first call, {quote(self.classes_)}, got {quote(classes)}"
                )
            codes = self._codes(y)
            by_class = self._class_weights(codes)
        if by_class is not None:
            weights = by_class[codes] if weights is None else weights * by_class[codes]
        return self._learn_codes(rows, codes, weights, steps)

    def begin(self, y: Any) -> None:
        """Make learners that have learned nothing, for the classes among labels y (n,)."""
        self.classes_ = np.unique(y)
        super().begin(y)
        self.calibration_ = Calibration(str(self.learners_[0].params.get("loss", "hinge")))
        self.counts_ = np.zeros(len(self.classes_))

    def _class_weights(self, codes: np.ndarray) -> np.ndarray | None:
        """Weights (classes,) of the classes, once these examples are counted; None where there are none."""
        wanted = self.class_weight
        if wanted is None:
            return None
        if isinstance(wanted, str) and wanted == "balanced":
            counts = self.counts_ + np.bincount(codes, minlength=len(self.classes_))
            return counts.sum() / (len(counts) * np.maximum(counts, 1.0))
        if not isinstance(wanted, dict):
            raise ValueError(f"class_weight must be None, 'balanced' or a dictionary, got {quote(wanted)}")
        known = self.classes_.tolist()
        for label in wanted:
            check.choice("a label of class_weight", label, tuple(known))
        return np.array([check.positive("class_weight", wanted.get(label, 1.0)) for label in known])

    def _learn_codes(self, rows: Any, codes: np.ndarray, weights: np.ndarray | None, steps: int = 0) -> np.ndarray:
        """Decide and learn examples of these classes, refine, calibrate and count; the decisions."""
        if weights is None and self.class_weight is not None:
            by_class = self._class_weights(codes)
            weights = None if by_class is None else by_class[codes]
        if weights is not None and not weights.all():
            rows, codes, weights = rows[weights > 0.0], codes[weights > 0.0], weights[weights > 0.0]
        before, counted = self.counts_.sum(), np.bincount(codes, minlength=len(self.counts_))
        if weights is not None and not pattern(self).can_use_weights:
            chance = (before + np.arange(1.0, len(codes) + 1.0)) * GOLDEN % 1.0
            by_class = self._class_weights(codes)
            kept = chance < weights / (1.0 if by_class is None else by_class.max())
            rows, codes, weights = rows[kept], codes[kept], None
        decisions = advance(rows, self.learners_, codes, weights)
        found, refined = refine(rows, self.learners_, codes, weights, decisions, steps)
        self.calibration_.learn(found, codes, weights, not refined)
        self.counts_ = self.counts_ + counted
        return decisions

    def _codes(self, y: np.ndarray) -> np.ndarray:
        """Places (n,) of the labels among the classes."""
        try:
            codes = np.minimum(np.searchsorted(self.classes_, y), len(self.classes_) - 1)
        except TypeError:
            raise ValueError(
                f"y must hold labels among {quote(self.classes_.tolist())}, got {quote(y.tolist())}"
            ) from None
        known = self.classes_[codes] == y
        if not np.all(known):
            raise ValueError(
                f"y must hold labels among {quote(self.classes_.tolist())}, got {quote(y[~known].tolist()[0])}"
            )
        return codes

    def contents(self) -> files.Contents:
        """Return what is written: the classes, their counts and the calibration too."""
        found = super().contents()
        wanted = self.class_weight
        if isinstance(wanted, dict):
            wanted = [[np.asarray(label).item(), float(weight)] for label, weight in wanted.items()]
        found.extra.update(class_weight=wanted, several=self.several, refinements=self.refinements)
        if self.__sklearn_is_fitted__():
            kind, known = self.classes_.dtype.kind, all(isinstance(label, str) for label in self.classes_)
            if kind not in DTYPES or (kind == "O" and not known):
                raise ValueError(f"classes must be numbers or strings to be saved, got {quote(self.classes_)}")
            found.extra["classes"] = {"dtype": self.classes_.dtype.str, "labels": self.classes_.tolist()}
            found.extra.update(calibration=self.calibration_.plain(), counts=self.counts_.tolist())
        return found

    def restore(self, extra: dict[str, Any]) -> None:
        """Take back what a file says besides its arrays, `extra`, as for every estimator."""
        self.several = check.choice("several", extra.get("several", "shared"), SEVERAL)
        self.refinements = check.integer("refinements", extra.get("refinements", STEPS), 0)
        if extra["fitted"]:
            self.classes_ = labels(extra["classes"])
        super().restore(extra)
        wanted = extra.get("class_weight")
        self.class_weight = {label: float(weight) for label, weight in wanted} if isinstance(wanted, list) else wanted
        if self.__sklearn_is_fitted__():
            self.calibration_ = Calibration.of(extra["calibration"])
            self.counts_ = check.array("counts", extra["counts"], np.dtype(np.float64), (1,), len(self.classes_))
            if not (self.counts_ >= 0.0).all():
                raise ValueError("counts below 0")

    def learner_counts(self) -> tuple[int, ...]:
        classes, shared = len(self.classes_), check.choice("several", self.several, SEVERAL) == "shared"
        if classes == 2:
            return (1,)
        return (1, classes) if shared and isinstance(pattern(self), KernelNewton) else (classes,)

    def make_learners(self, count: int) -> list[Learner]:
        made = super().make_learners(count)
        if count == 1 and len(self.classes_) > 2:
            newton = [learner for learner in made if isinstance(learner, KernelNewton)]
            several: list[Learner] = [
                MulticlassNewton(classes=len(self.classes_), learner=learner) for learner in newton
            ]
            return share(several, self.sharing)
        return made

    def _labels(self, decisions: np.ndarray) -> np.ndarray:
        return self.classes_[(decisions >= 0.0).astype(int) if decisions.ndim == 1 else decisions.argmax(axis=1)]

    @reading
    def decision_function(self, X: Any) -> np.ndarray:
        """f of every row of X (n, d): (n,), 0 and above for the second class of two; (n, classes) for more than two."""
        return decide(checked_rows(self, X), self.learners_)

    @reading
    def predict(self, X: Any) -> np.ndarray:
        """The class of every row of X, (n, d) -> (n,)."""
        return self._labels(self.decision_function(X))

    @reading
    def predict_proba(self, X: Any) -> np.ndarray:
        """Of every row of X (n, d) and every class, (n, classes): calibrated on all decisions before their examples
        were learned (calibration.py), after a refined `fit` on those with each left out; class weights are in it.
        """
        decisions = self.decision_function(X)
        return self.calibration_.probabilities(decisions)

    @reading
    def predict_proba_one(self, x: Any) -> np.ndarray:
        """`predict_proba` of one row x, (d,) or (1, d): (classes,)."""
        decisions = decide(checked_row(self, x), self.learners_)
        return self.calibration_.probabilities(decisions)[0]

    @composite
    def predict_then_learn(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Decisions and mistakes (n,) while examples X (n, d), y (n,) are learned."""
        decisions = self._progress(X, y)
        return decisions, (self._labels(decisions) != np.asarray(y).reshape(-1)).astype(np.float64)


def labels(classes: Any) -> np.ndarray:
    """Return the labels that a file holds. Raises ValueError where they are not sorted, or of a kind not written."""
    kind = np.dtype(str(classes["dtype"]))
    if kind.kind not in DTYPES:
        raise ValueError(f"labels of dtype {kind}")
    found = np.array(classes["labels"], kind)
    if found.ndim != 1 or found.size < 2 or not np.array_equal(np.unique(found), found):
        raise ValueError("labels are not sorted")
    return found


class OnlineKernelRegressor(RegressorMixin, OnlineKernelEstimator):
    """An online kernel regressor for scikit-learn: dense or sparse rows, one target.

    learner: any native learner with a loss for regression, such as op.learner.FOGD(loss="huber") (None:
    op.KernelNewton(loss="squared"), which needs no tuning); it serves as a pattern and is never changed. After `fit` or
    `partial_fit`: `n_features_in_`, `learners_`, a list of one. Weights as for `OnlineKernelClassifier`. ValueError for
    bad input, and nothing has changed.

    >>> import numpy as np, onepass as op
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.standard_normal((2000, 2))
    >>> regressor = op.OnlineKernelRegressor().fit(rows[:1000], np.sin(2.0 * rows[:1000, 0]))
    >>> regressor.score(rows[1000:], np.sin(2.0 * rows[1000:, 0])) > 0.95
    True
    """

    def default_learner(self) -> Learner:
        return KernelNewton(loss="squared")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = can_score_poorly(self.learner)
        return tags

    @composite
    def fit(self, X: Any, y: Any, **options: Any) -> Self:
        """Learn examples X (n, d) with targets y (n,), in order, after forgetting what was learned before.

        options: sample_weight, (n,) or a number, at least 0 (default None: 1).
        """
        with transaction(self):
            given = weight_option(options)
            forget(self)
            self._progress(X, y, given)
        return self

    @composite
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn examples X (n, d) with targets y (n,) more, in order.

        sample_weight: (n,) or a number, at least 0 (default None: 1).
        """
        self._progress(X, y, sample_weight)
        return self

    @composite
    def learn_one(self, x: Any, y: Any) -> Self:
        """`partial_fit` of one row x, (d,) or (1, d), and its target y."""
        if not self.__sklearn_is_fitted__():
            return self.partial_fit(single(x), [y])
        self.learners_[0].learn_checked(checked_row(self, x), self.learners_[0].check_targets([y], 1))
        return self

    @reading
    def predict_one(self, x: Any) -> Any:
        """`predict` of one row x, (d,) or (1, d)."""
        return decide(checked_row(self, x), self.learners_)[0]

    def _progress(self, X: Any, y: Any, given: Any = None) -> np.ndarray:
        with transaction(self):
            rows, y = checked_examples(self, X, y)
            weights = checked_weights(self, given, rows)
            if not self.__sklearn_is_fitted__():
                self.begin(y)
            targets = self.learners_[0].check_targets(y, rows.shape[0])
        if weights is not None and not weights.all():
            rows, targets, weights = rows[weights > 0.0], targets[weights > 0.0], weights[weights > 0.0]
        return self.learners_[0].learn_checked(rows, targets, weights)

    @reading
    def predict(self, X: Any) -> np.ndarray:
        """f of every row of X, (n, d) -> (n,)."""
        return decide(checked_rows(self, X), self.learners_)

    @composite
    def predict_then_learn(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Decisions and mistakes (n,) while examples X (n, d), y (n,) are learned."""
        decisions = self._progress(X, y)
        return decisions, (decisions - np.asarray(y, np.float64).reshape(-1)) ** 2
