"""scikit-learn estimators around any online kernel learner: labels of any kind, several classes, `partial_fit`.

For two classes there is one learner, and f >= 0 means the second of `classes_`. More classes are learned
one-versus-rest, and the class with the largest f is predicted. KernelNewton does so on one map and one design
(learner/multiclass_newton.py), at a fraction of the cost of separate learners. Other learners are separate, one per
class. They learn the stream one after the other, each in its compiled loop, with the same result as example by example.
Costs and memory grow with the number of learners.
"""

from typing import Any, Self

import numpy as np

from onepass.adapters.calibration import Calibration
from onepass.adapters.one_vs_rest import decide, decide_and_learn, refine
from onepass.adapters.online_estimator import (
    ClassifierMixin,
    OnlineKernelEstimator,
    RegressorMixin,
    can_score_poorly,
    check_classification_targets,
    prototype,
    remove_fitted,
    sample_weight_option,
    share_lock,
    single_row,
    transaction,
    validate_examples,
    validate_row,
    validate_rows,
    validate_weights,
)
from onepass.foundation import check, files
from onepass.foundation.check import quote
from onepass.foundation.rw_lock import composite, reading
from onepass.learner.kernel_newton import KernelNewton
from onepass.learner.learner import Learner
from onepass.learner.multiclass_newton import MulticlassNewton

LABEL_KINDS = "biufUO"  # NumPy kinds of labels that a file can hold
MULTICLASS = ("shared", "one_vs_rest")
REFINEMENTS = 3  # default number of Newton steps in `fit`, for every penalty
GOLDEN = 0.6180339887498949  # its multiples modulo 1 fill [0, 1) evenly; they decide which examples are left out


class OnlineKernelClassifier(ClassifierMixin, OnlineKernelEstimator):
    """Online kernel classifier for scikit-learn, with labels of any kind and dense or sparse rows.

    Parameters
    ----------
    learner : Learner, default None
        Learner with a loss for classification, such as op.learner.FORKS(). It is only copied, and never changes. None
        takes op.KernelNewton() with the logistic loss, which needs no tuning.
    class_weight : dict or str, default None
        Weights of classes by label, above 0; other labels have weight 1. "balanced" weighs a class in inverse
        proportion to its number of examples so far. None weighs all classes equally.
    multiclass : str, default "shared"
        Models of three and more classes. "shared" is one KernelNewton, whose features and design serve all classes.
        "one_vs_rest" is one learner for each class, as learners other than KernelNewton always have.
    refinements : int, default 3
        Number of Newton steps on all examples that `fit` adds to its one pass, for each penalty it tries, at least 0.

    Attributes
    ----------
    classes_ : array of shape (classes,)
        Labels of the classes, sorted.
    n_features_in_ : int
        Number of features.
    learners_ : list of Learner
        Native learners.

    Raises
    ------
    ValueError
        If the input is bad. Nothing has changed then.

    Notes
    -----
    `fit` takes `sample_weight` by name, although its signature does not show it. A weight multiplies the loss of an
    example, and 0 leaves the example out. With `class_weight`, learners other than KernelNewton leave out a random part
    of the examples of classes with small weights.

    Refinements are for KernelNewton with the logistic loss and without `follow`. If rows change over time, `fit` keeps
    the result of its one pass. `partial_fit` and `learn_one` learn every example once.

    Examples
    --------
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
        multiclass: str = "shared",
        refinements: int = REFINEMENTS,
    ) -> None:
        super().__init__(learner)
        self.class_weight: Any = class_weight
        self.multiclass: str = multiclass
        self.refinements: int = refinements

    def default_learner(self) -> Learner:
        return KernelNewton(loss="logistic")

    def copy(self) -> Self:
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
        """Forget everything and learn examples, in their order.

        Parameters
        ----------
        X : array or sparse array of shape (n, d)
            Rows.
        y : array of shape (n,)
            Their labels.
        **options : dict
            `sample_weight` only: a number, or an array of shape (n,), at least 0. None weights every example with 1.

        Returns
        -------
        OnlineKernelClassifier
            The estimator itself.

        Raises
        ------
        ValueError
            If an argument is bad. Nothing has changed then.
        """
        with transaction(self):
            weight, steps = sample_weight_option(options), check.integer("refinements", self.refinements, 0)
            remove_fitted(self)
            self._decide_and_learn(X, y, None, weight, steps)
        return self

    @composite
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn more examples, in their order.

        Parameters
        ----------
        X : array or sparse array of shape (n, d)
            Rows.
        y : array of shape (n,)
            Their labels.
        classes : array of shape (classes,), default None
            All labels that will ever occur. The first call needs them.
        sample_weight : float or array of shape (n,), default None
            Weights of the examples, at least 0. None weights every example with 1.

        Returns
        -------
        OnlineKernelClassifier
            The estimator itself.

        Raises
        ------
        ValueError
            If an argument is bad. Nothing has changed then.
        """
        if classes is None and not self.__sklearn_is_fitted__():
            raise ValueError("classes must be given at the first call: all labels that may occur, as in classes=[0, 1]")
        self._decide_and_learn(X, y, classes, sample_weight)
        return self

    @composite
    def learn_one(self, x: Any, y: Any, classes: Any = None) -> Self:
        """Learn one more example, with less overhead than `partial_fit`.

        Parameters
        ----------
        x : array of shape (d,) or (1, d)
            Row.
        y : label
            Its label.
        classes : array of shape (classes,), default None
            All labels that will ever occur, as for `partial_fit`.

        Returns
        -------
        OnlineKernelClassifier
            The estimator itself.
        """
        if classes is not None or not self.__sklearn_is_fitted__():
            return self.partial_fit(single_row(x), [y], classes)
        self._learn_codes(validate_row(self, x), self._encode_labels(np.asarray([y])), None)
        return self

    @reading
    def predict_one(self, x: Any) -> Any:
        """Return the prediction for one row, with less overhead than `predict`.

        Parameters
        ----------
        x : array of shape (d,) or (1, d)
            Row.

        Returns
        -------
        label
            Label of the class.
        """
        return self._labels_from_decisions(decide(validate_row(self, x), self.learners_))[0]

    def _decide_and_learn(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, steps: int = 0
    ) -> np.ndarray:
        """Decide on examples X (n, d), learn them with their labels y (n,), refine, and return the decisions.

        The first call takes the classes from the labels if `classes` is None. `steps` is the number of Newton steps of
        the refinement, 0 for none.
        """
        with transaction(self):
            rows, y = validate_examples(self, X, y)
            weights = validate_weights(self, sample_weight, rows)
            if not self.__sklearn_is_fitted__():
                check_classification_targets(y)
                self._init_learners(y if classes is None else classes)
                if self.classes_.size < 2:
                    raise ValueError(
                        f"y must have at least 2 classes, got {len(self.classes_)} class: {quote(self.classes_)}"
                    )
            elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
                raise ValueError(
                    f"classes must be those of the first call, {quote(self.classes_)}, got {quote(classes)}"
                )
            codes = self._encode_labels(y)
            class_weights = self._class_weights(codes)
        if class_weights is not None:
            weights = class_weights[codes] if weights is None else weights * class_weights[codes]
        return self._learn_codes(rows, codes, weights, steps)

    def _init_learners(self, y: Any) -> None:
        """Make new learners for the classes among labels y (n,)."""
        self.classes_ = np.unique(y)
        super()._init_learners(y)
        self.calibration_ = Calibration(str(self.learners_[0].params.get("loss", "hinge")))
        self.counts_ = np.zeros(len(self.classes_))

    def _class_weights(self, codes: np.ndarray) -> np.ndarray | None:
        """Return the weights (classes,) of the classes, or None without weights.

        For "balanced" weights, examples of the classes `codes` (n,) are counted beside those learned so far.
        """
        weights = self.class_weight
        if weights is None:
            return None
        if isinstance(weights, str) and weights == "balanced":
            counts = self.counts_ + np.bincount(codes, minlength=len(self.classes_))
            return counts.sum() / (len(counts) * np.maximum(counts, 1.0))
        if not isinstance(weights, dict):
            raise ValueError(f"class_weight must be None, 'balanced' or a dictionary, got {quote(weights)}")
        classes = self.classes_.tolist()
        for label in weights:
            check.choice("a label of class_weight", label, tuple(classes))
        return np.array([check.positive("class_weight", weights.get(label, 1.0)) for label in classes])

    def _learn_codes(self, rows: Any, codes: np.ndarray, weights: np.ndarray | None, steps: int = 0) -> np.ndarray:
        """Decide on rows (n, d) of the classes `codes` (n,), learn, calibrate and count them, and return the decisions.

        `weights` (n,) are the examples' weights or None, and `steps` is the number of Newton steps of a refinement.
        """
        if weights is None and self.class_weight is not None:
            class_weights = self._class_weights(codes)
            weights = None if class_weights is None else class_weights[codes]
        if weights is not None and not weights.all():
            rows, codes, weights = rows[weights > 0.0], codes[weights > 0.0], weights[weights > 0.0]
        n_before, counts = self.counts_.sum(), np.bincount(codes, minlength=len(self.counts_))
        if weights is not None and not prototype(self).can_use_weights:
            uniform = (n_before + np.arange(1.0, len(codes) + 1.0)) * GOLDEN % 1.0
            class_weights = self._class_weights(codes)
            accepted = uniform < weights / (1.0 if class_weights is None else class_weights.max())
            rows, codes, weights = rows[accepted], codes[accepted], None
        decisions = decide_and_learn(rows, self.learners_, codes, weights)
        refined, is_refined = refine(rows, self.learners_, codes, weights, decisions, steps)
        self.calibration_.learn(refined, codes, weights, not is_refined)
        self.counts_ = self.counts_ + counts
        return decisions

    def _encode_labels(self, y: np.ndarray) -> np.ndarray:
        """Return the indices (n,) of labels (n,) among the classes."""
        try:
            codes = np.minimum(np.searchsorted(self.classes_, y), len(self.classes_) - 1)
        except TypeError:
            raise ValueError(
                f"y must hold labels among {quote(self.classes_.tolist())}, got {quote(y.tolist())}"
            ) from None
        is_known = self.classes_[codes] == y
        if not np.all(is_known):
            raise ValueError(
                f"y must hold labels among {quote(self.classes_.tolist())}, got {quote(y[~is_known].tolist()[0])}"
            )
        return codes

    def contents(self) -> files.Contents:
        contents = super().contents()
        weights = self.class_weight
        if isinstance(weights, dict):
            weights = [[np.asarray(label).item(), float(weight)] for label, weight in weights.items()]
        contents.extra.update(class_weight=weights, multiclass=self.multiclass, refinements=self.refinements)
        if self.__sklearn_is_fitted__():
            kind, are_strings = self.classes_.dtype.kind, all(isinstance(label, str) for label in self.classes_)
            if kind not in LABEL_KINDS or (kind == "O" and not are_strings):
                raise ValueError(f"classes must be numbers or strings to be saved, got {quote(self.classes_)}")
            contents.extra["classes"] = {"dtype": self.classes_.dtype.str, "labels": self.classes_.tolist()}
            contents.extra.update(calibration=self.calibration_.to_plain(), counts=self.counts_.tolist())
        return contents

    def _restore_extra(self, extra: dict[str, Any]) -> None:
        self.multiclass = check.choice("multiclass", extra.get("multiclass", "shared"), MULTICLASS)
        self.refinements = check.integer("refinements", extra.get("refinements", REFINEMENTS), 0)
        if extra["fitted"]:
            self.classes_ = _labels_from_plain(extra["classes"])
        super()._restore_extra(extra)
        weights = extra.get("class_weight")
        if isinstance(weights, list):
            weights = {label: float(weight) for label, weight in weights}
        self.class_weight = weights
        if self.__sklearn_is_fitted__():
            self.calibration_ = Calibration.from_plain(extra["calibration"])
            self.counts_ = check.array("counts", extra["counts"], np.dtype(np.float64), (1,), len(self.classes_))
            if not (self.counts_ >= 0.0).all():
                raise ValueError(f"counts of classes are {self.counts_.tolist()}, expected at least 0")

    def _learner_counts(self) -> tuple[int, ...]:
        classes, is_shared = len(self.classes_), check.choice("multiclass", self.multiclass, MULTICLASS) == "shared"
        if classes == 2:
            return (1,)
        return (1, classes) if is_shared and isinstance(prototype(self), KernelNewton) else (classes,)

    def _make_learners(self, count: int) -> list[Learner]:
        learners = super()._make_learners(count)
        if count == 1 and len(self.classes_) > 2:
            shared: list[Learner] = [
                MulticlassNewton(classes=len(self.classes_), learner=learner)
                for learner in learners
                if isinstance(learner, KernelNewton)
            ]
            return share_lock(shared, self.sharing)
        return learners

    def _labels_from_decisions(self, decisions: np.ndarray) -> np.ndarray:
        return self.classes_[(decisions >= 0.0).astype(int) if decisions.ndim == 1 else decisions.argmax(axis=1)]

    @reading
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the values f from which classes are predicted.

        Parameters
        ----------
        X : array or sparse array of shape (n, d)
            Rows.

        Returns
        -------
        array of shape (n,) or (n, classes)
            For two classes one number f a row; the second class is predicted if f is at least 0. For more classes one f
            for each class, and the class with the largest f is predicted.
        """
        return decide(validate_rows(self, X), self.learners_)

    @reading
    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted classes.

        Parameters
        ----------
        X : array or sparse array of shape (n, d)
            Rows.

        Returns
        -------
        array of shape (n,)
            Labels of the classes.
        """
        return self._labels_from_decisions(self.decision_function(X))

    @reading
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return calibrated probabilities of the classes.

        They are calibrated on the predictions made before each example was learned. After a refined `fit` they are
        calibrated on predictions with each example left out. They include class weights.

        Parameters
        ----------
        X : array or sparse array of shape (n, d)
            Rows.

        Returns
        -------
        array of shape (n, classes)
            Probabilities of the classes, in the order of `classes_`.
        """
        decisions = self.decision_function(X)
        return self.calibration_.probabilities(decisions)

    @reading
    def predict_proba_one(self, x: Any) -> np.ndarray:
        """Return calibrated probabilities for one row, with less overhead than `predict_proba`.

        Parameters
        ----------
        x : array of shape (d,) or (1, d)
            Row.

        Returns
        -------
        array of shape (classes,)
            Probabilities of the classes, in the order of `classes_`.
        """
        decisions = decide(validate_row(self, x), self.learners_)
        return self.calibration_.probabilities(decisions)[0]

    @composite
    def predict_then_learn(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Predict every example before it is learned.

        Parameters
        ----------
        X : array or sparse array of shape (n, d)
            Rows.
        y : array of shape (n,)
            Their labels.

        Returns
        -------
        tuple of (array, array)
            The values f of `decision_function`, of shape (n,) or (n, classes), and the mistakes (n,): 1 for a wrong
            class, else 0.
        """
        decisions = self._decide_and_learn(X, y)
        return decisions, (self._labels_from_decisions(decisions) != np.asarray(y).reshape(-1)).astype(np.float64)


def _labels_from_plain(classes: Any) -> np.ndarray:
    """Return the labels that a file holds. Raises ValueError if they are of another kind, or not sorted."""
    dtype = np.dtype(str(classes["dtype"]))
    if dtype.kind not in LABEL_KINDS:
        raise ValueError(f"labels have dtype {dtype}, expected numbers or strings")
    labels = np.array(classes["labels"], dtype)
    if labels.ndim != 1 or labels.size < 2 or not np.array_equal(np.unique(labels), labels):
        raise ValueError(f"labels are {quote(labels.tolist())}, expected at least 2, sorted and distinct")
    return labels


class OnlineKernelRegressor(RegressorMixin, OnlineKernelEstimator):
    """Online kernel regressor for scikit-learn, with dense or sparse rows and one target.

    Parameters
    ----------
    learner : Learner, default None
        Learner with a loss for regression, such as op.learner.FOGD(loss="huber"). It is only copied, and never changes.
        None takes op.KernelNewton(loss="squared"), which needs no tuning.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    learners_ : list of Learner
        The native learner, in a list of one.

    Raises
    ------
    ValueError
        If the input is bad. Nothing has changed then.

    Notes
    -----
    `sample_weight` works as for `OnlineKernelClassifier`.

    Examples
    --------
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
        """Forget everything and learn examples, in their order.

        Parameters
        ----------
        X : array or sparse array of shape (n, d)
            Rows.
        y : array of shape (n,)
            Their targets.
        **options : dict
            `sample_weight` only: a number, or an array of shape (n,), at least 0. None weights every example with 1.

        Returns
        -------
        OnlineKernelRegressor
            The estimator itself.

        Raises
        ------
        ValueError
            If an argument is bad. Nothing has changed then.
        """
        with transaction(self):
            weight = sample_weight_option(options)
            remove_fitted(self)
            self._decide_and_learn(X, y, weight)
        return self

    @composite
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn more examples, in their order.

        Parameters
        ----------
        X : array or sparse array of shape (n, d)
            Rows.
        y : array of shape (n,)
            Their targets.
        sample_weight : float or array of shape (n,), default None
            Weights of the examples, at least 0. None weights every example with 1.

        Returns
        -------
        OnlineKernelRegressor
            The estimator itself.

        Raises
        ------
        ValueError
            If an argument is bad. Nothing has changed then.
        """
        self._decide_and_learn(X, y, sample_weight)
        return self

    @composite
    def learn_one(self, x: Any, y: Any) -> Self:
        """Learn one more example, with less overhead than `partial_fit`.

        Parameters
        ----------
        x : array of shape (d,) or (1, d)
            Row.
        y : float
            Its target.

        Returns
        -------
        OnlineKernelRegressor
            The estimator itself.
        """
        if not self.__sklearn_is_fitted__():
            return self.partial_fit(single_row(x), [y])
        self.learners_[0].learn_checked(validate_row(self, x), self.learners_[0].check_targets([y], 1))
        return self

    @reading
    def predict_one(self, x: Any) -> Any:
        """Return the prediction for one row, with less overhead than `predict`.

        Parameters
        ----------
        x : array of shape (d,) or (1, d)
            Row.

        Returns
        -------
        float
            Predicted target.
        """
        return decide(validate_row(self, x), self.learners_)[0]

    def _decide_and_learn(self, X: Any, y: Any, sample_weight: Any = None) -> np.ndarray:
        with transaction(self):
            rows, y = validate_examples(self, X, y)
            weights = validate_weights(self, sample_weight, rows)
            if not self.__sklearn_is_fitted__():
                self._init_learners(y)
            targets = self.learners_[0].check_targets(y, rows.shape[0])
        if weights is not None and not weights.all():
            rows, targets, weights = rows[weights > 0.0], targets[weights > 0.0], weights[weights > 0.0]
        return self.learners_[0].learn_checked(rows, targets, weights)

    @reading
    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted targets.

        Parameters
        ----------
        X : array or sparse array of shape (n, d)
            Rows.

        Returns
        -------
        array of shape (n,)
            Predicted targets.
        """
        return decide(validate_rows(self, X), self.learners_)

    @composite
    def predict_then_learn(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Predict every example before it is learned.

        Parameters
        ----------
        X : array or sparse array of shape (n, d)
            Rows.
        y : array of shape (n,)
            Their targets.

        Returns
        -------
        tuple of (array, array)
            The predictions, and their squared errors (n,).
        """
        decisions = self._decide_and_learn(X, y)
        return decisions, (decisions - np.asarray(y, np.float64).reshape(-1)) ** 2
