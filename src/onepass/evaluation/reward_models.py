"""Reward models for doubly robust estimates: fitted on the past of a log, used on later rows.

The log is cut into blocks in time order. A model that has learned the earlier blocks predicts the next one. So no row
has been seen by the model that predicts it. Estimates stay unbiased, and confidence sequences stay valid for a logger
that learns. The first block has no model and is predicted by 0, which costs DR and SNDR no more than variance.
Estimators without correcting weights, such as DM, leave out the first block.
"""

from copy import copy, deepcopy
from typing import Any

import numpy as np

from onepass.design.exact import Exact
from onepass.estimator.contract import parameter, update_rows
from onepass.estimator.ridge import Ridge
from onepass.evaluation.log import Log

FOLDS = 5  # blocks of a log
REG = 1.0  # of the default model, whose features are of the order of 1


class RidgeModel:
    """Default reward model: ridge regression for each arm, or one ridge regression if arms have features of their own.

    Parameters
    ----------
    reg : float, default 1.0
        Ridge penalty on every weight, above 0.
    """

    def __init__(self, reg: float = REG) -> None:
        self._reg, self._states = reg, {}  # type: ignore[var-annotated]

    @property
    def is_fitted(self) -> bool:
        """True once the model has learned a row."""
        return bool(self._states)

    def fit(self, log: Log) -> None:
        """Learn the rows of a log, in addition to the rows of earlier calls.

        Parameters
        ----------
        log : Log
            Rows to learn.
        """
        rows, models = _features(log), self._models(log)
        for model in np.unique(models):
            own = models == model
            if model not in self._states:
                self._states[model] = Ridge(Exact(dim=rows.shape[-1], reg=self._reg)).begin()
            chosen = rows[own, log.arms[own]] if rows.ndim == 3 else rows[own]
            self._states[model] = update_rows(self._states[model], np.ascontiguousarray(chosen), log.rewards[own])

    def predict(self, log: Log) -> np.ndarray:
        """Predict rewards, 0 for an arm without data.

        Parameters
        ----------
        log : Log
            Rows to predict.

        Returns
        -------
        ndarray of shape (n, K)
            Predicted rewards.
        """
        rows, out = _features(log), np.zeros((len(log), log.n_arms))
        if rows.ndim == 3:
            return rows @ parameter(self._states[0]) if self._states else out
        for arm, state in self._states.items():
            out[:, arm] = rows @ parameter(state)
        return out

    def _unfitted(self) -> "RidgeModel":
        """Return a copy that has learned nothing."""
        found = copy(self)
        found._states = {}
        return found

    def _models(self, log: Log) -> np.ndarray:
        """Return the index (n,) of the model of each row: the index of its arm, or 0 for all if arms have features."""
        return np.zeros(len(log), int) if log.contexts is not None and log.contexts.ndim == 3 else log.arms


def _features(log: Log) -> np.ndarray:
    """Return a constant and the contexts, (n, 1 + d) or (n, K, 1 + d)."""
    if log.contexts is None:
        return np.ones((len(log), 1))
    return np.concatenate([np.ones((*log.contexts.shape[:-1], 1)), log.contexts], axis=-1)


class RegressorModel:
    """Reward model that fits a scikit-learn regressor to all rows so far, with the arm as one-hot features.

    Parameters
    ----------
    model : regressor
        Object with `fit(X, y)` and `predict(X)`. It is fitted in place.
    """

    def __init__(self, model: Any) -> None:
        self._model, self._rows, self._rewards = model, [], []  # type: ignore[var-annotated]

    @property
    def is_fitted(self) -> bool:
        """True once the model has learned a row."""
        return bool(self._rows)

    def fit(self, log: Log) -> None:
        """Learn the rows of a log, together with the rows before.

        Parameters
        ----------
        log : Log
            Rows to learn.
        """
        self._rows.append(_arm_features(log, log.arms))
        self._rewards.append(log.rewards)
        self._model.fit(np.concatenate(self._rows), np.concatenate(self._rewards))

    def predict(self, log: Log) -> np.ndarray:
        """Predict rewards, 0 before the first fit.

        Parameters
        ----------
        log : Log
            Rows to predict.

        Returns
        -------
        ndarray of shape (n, K)
            Predicted rewards.
        """
        if not self._rows:
            return np.zeros((len(log), log.n_arms))
        each = [self._model.predict(_arm_features(log, np.full(len(log), arm))) for arm in range(log.n_arms)]
        return np.stack(each, axis=1)

    def _unfitted(self) -> "RegressorModel":
        """Return a copy that has learned nothing, with a regressor of its own."""
        found = copy(self)
        found._model, found._rows, found._rewards = deepcopy(self._model), [], []
        return found


def _arm_features(log: Log, arms: np.ndarray) -> np.ndarray:
    """Return the contexts of rows with the given arms (n,), and the arms as one-hot columns: (n, d + K)."""
    one_hot = np.eye(log.n_arms)[arms]
    if log.contexts is None:
        return one_hot
    rows = log.contexts[np.arange(len(log)), arms] if log.contexts.ndim == 3 else log.contexts
    return np.hstack([rows, one_hot])


def make_reward_model(given: Any) -> Any:
    """Return a reward model like `given` that has learned nothing: `RidgeModel()` for None.

    A scikit-learn regressor is put into a `RegressorModel`. The caller's object is copied, because a model that kept
    the rows of one evaluation would predict the same rows in the next.
    """
    if given is None:
        return RidgeModel()
    return (given if isinstance(given, RidgeModel | RegressorModel) else RegressorModel(given))._unfitted()


class ProgressivePredictor:
    """Predictor of rewards for one part of a log after the other, by a model that has learned the parts before.

    The first part is cut into `folds` pieces, each predicted by a model that has learned the pieces before.
    """

    def __init__(self, model: RidgeModel | RegressorModel, folds: int = FOLDS) -> None:
        self._model, self._folds = model, folds
        self._last: Log | None = None

    def predict(self, block: Log) -> tuple[np.ndarray, np.ndarray]:
        """Return predicted rewards (n, K), and a mask (n,) that is True for rows with a prediction.

        Predictions are 0 for rows before the model has learned its first row.
        """
        out, known = np.zeros((len(block), block.n_arms)), np.zeros(len(block), bool)
        size = len(block) if self._last is not None else -(-len(block) // self._folds)
        for place, part in enumerate(block.blocks(max(size, 1))):
            if self._last is not None:
                self._model.fit(self._last)
            rows = slice(place * size, place * size + len(part))
            out[rows], known[rows] = self._model.predict(part), self._model.is_fitted
            self._last = part
        return out, known
