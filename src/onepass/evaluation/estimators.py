"""Estimators of a policy's value from a log of another policy, all special cases of one formula.

The estimators differ in the function s of the weight w, and some of them in q and v:

    value = mean[ v + s(w) (r - q) ],        or, self-normalized, mean v + sum s(w) (r - q) / sum s(w)

    IPS         s = w               q = v = 0
    clipped     s = min(w, knob)    q = v = 0                         Bottou et al. 2013
    SNIPS       s = w               q = v = 0, self-normalized        Swaminathan and Joachims 2015
    DM          s = 0
    DR          s = w                                                 Dudik, Langford and Li 2011
    SNDR        s = w               self-normalized
    Switch-DR   s = w where w <= knob, else 0                         Wang, Agarwal and Dudik 2017
    DRos        s = knob w / (w^2 + knob)                             Su et al. 2020
    subgaussian s = w / (1 - knob + knob w), knob in [0, 1]           Metelli, Russo and Restelli 2021

w is the importance weight of a row, r its reward, q the reward predicted for its arm, and v the predicted value of the
policy (sample.py). DM, Switch-DR, DRos and subgaussian-DR use only rows that a model predicts (the first rows have no
model), because no weights correct the other rows. A model's predictions do not tell how wrong they are. So the
deviation of DM includes its bias as estimated by DR: it is sqrt(mean(w (r - q))^2 + deviation(DR)^2). IPS and DR are
unbiased if the weights are right and cover the policy; DR whatever the model is, if the model was fitted without the
row (reward_models.py). The others trade bias for variance. The cost is O(n).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from onepass.evaluation.sample import Sample
from onepass.foundation import check

Shape = Callable[[np.ndarray, float], np.ndarray]  # weights and knob to s(w)


def _identity(weights: np.ndarray, knob: float) -> np.ndarray:
    """Return the weights unchanged, the shape s(w) = w."""
    return weights


def zero_shape(weights: np.ndarray, knob: float) -> np.ndarray:
    """Return zeros (n,): the shrunk weights of an estimator that uses no weights."""
    return np.zeros_like(weights)


def _clip(weights: np.ndarray, knob: float) -> np.ndarray:
    """Return clipped weights, the shape s(w) = min(w, knob)."""
    return np.minimum(weights, knob)


def _switch(weights: np.ndarray, knob: float) -> np.ndarray:
    """Return the shape s(w) = w for weights up to the knob, and 0 for larger ones."""
    return np.where(weights <= knob, weights, 0.0)


def _optimistic(weights: np.ndarray, knob: float) -> np.ndarray:
    """Return the shape s(w) = knob w / (w^2 + knob), or w for an infinite knob."""
    return weights if np.isinf(knob) else knob * weights / (weights**2 + knob)


def _harmonic(weights: np.ndarray, knob: float) -> np.ndarray:
    """Return s(w) = w / (1 - knob + knob w), the weights of the estimator "subgaussian". They are at most 1 / knob."""
    return weights / np.where(weights > 0.0, 1.0 - knob + knob * weights, 1.0)


@dataclass(frozen=True)
class Estimator:
    """Estimator of a policy's value.

    Parameters
    ----------
    name : str
        Name, one of `ESTIMATORS`.
    shape : callable
        Function of the weights w, of shape (n,), and the knob. It returns the shrunk weights s(w), of shape (n,).
    knob : float, default inf
        Knob of the estimator: the parameter that says how much weights are shrunk, at least 0. Infinity shrinks
        nothing. For "subgaussian" and "subgaussian-dr" it is from 0 to 1, and 0 shrinks nothing.
    models : bool, default True
        True if the estimator uses a reward model.
    normalized : bool, default False
        True if weights are divided by their sum.
    """

    name: str
    shape: Shape
    knob: float = np.inf
    models: bool = True
    normalized: bool = False

    def shrink(self, weights: np.ndarray) -> np.ndarray:
        """Return the weights after shrinking.

        Parameters
        ----------
        weights : ndarray of shape (n,)
            Importance weights.

        Returns
        -------
        ndarray of shape (n,)
            Shrunk weights s(w).
        """
        return self.shape(weights, self.knob)

    @property
    def uses_all_rows(self) -> bool:
        """True if rows without a prediction can be used, because weights correct the model or there is none."""
        return not self.models or self.shape is _identity

    def select_rows(self, sample: Sample) -> Sample:
        """Return the rows that the estimator uses.

        Rows that no model predicts are left out unless `uses_all_rows`.

        Parameters
        ----------
        sample : Sample
            Rows of the log.

        Returns
        -------
        Sample
            Rows to use.
        """
        whole = self.uses_all_rows or bool(sample.modelled.all())
        return sample if whole else Sample(*(column[sample.modelled] for column in sample))

    def terms(self, sample: Sample) -> np.ndarray:
        """Return the numbers, one for each row, whose mean is the estimate.

        Their variance divided by n is about the estimator's variance, except for the estimator DM. For self-normalized
        estimators this holds by the delta method.

        Parameters
        ----------
        sample : Sample
            Rows of the log.

        Returns
        -------
        ndarray of shape (m,)
            One number for each row that the estimator uses.
        """
        sample = self.select_rows(sample)
        s = self.shrink(sample.weights)
        q, v = (sample.predicted, sample.values) if self.models else (0.0, 0.0)
        if not self.normalized:
            return v + s * (sample.rewards - q)
        total = s.mean()
        if total == 0.0:
            return np.zeros_like(s) + v
        away = s * (sample.rewards - q)
        ratio = away.mean() / total
        return v + ratio + (away - s * ratio) / total

    def value(self, sample: Sample) -> float:
        """Return the estimate, NaN if the estimator uses no row.

        Parameters
        ----------
        sample : Sample
            Rows of the log.

        Returns
        -------
        float
            Estimated value per decision.
        """
        terms = self.terms(sample)
        return float(terms.mean()) if terms.size else float("nan")

    def deviation(self, sample: Sample) -> float:
        """Return the standard error for a fixed log, sqrt(variance of the terms / n).

        For DM it includes the mean error of the reward model, as DR estimates it. NaN if the estimator uses fewer than
        two rows.

        Parameters
        ----------
        sample : Sample
            Rows of the log.

        Returns
        -------
        float
            Standard error of the estimate.
        """
        sample = self.select_rows(sample)
        if sample.rows < 2:
            return float("nan")
        if self.shape is not zero_shape:
            return float(np.sqrt(self.terms(sample).var() / sample.rows))
        away = sample.weights * (sample.rewards - sample.predicted)
        return float(np.hypot(away.mean(), np.sqrt((sample.values + away).var() / sample.rows)))


def get_estimator(name: str, knob: Any = None) -> Estimator:
    """Return the estimator with a name.

    Parameters
    ----------
    name : str
        One of `ESTIMATORS`.
    knob : float, default None
        Parameter of the estimator. It is at least 0 for "clipped", "switch" and "dros", and from 0 to 1 for the
        subgaussian estimators. None means no shrinkage.

    Returns
    -------
    Estimator
        Estimator with this knob.

    Raises
    ------
    ValueError
        If the name is unknown, the estimator has no knob, or the knob is out of range.
    """
    name = check.choice("name", name, ESTIMATORS)
    known = TABLE[name]
    if knob is None:
        return known
    if known.shape in (_identity, zero_shape):
        raise ValueError(f"knob must be None for {name}, which has none")
    if known.shape is _harmonic:
        knob = check.fraction("knob", knob)
    elif not (knob == np.inf or check.real("knob", knob) >= 0.0):
        raise ValueError(f"knob must be at least 0, got {check.quote(knob)}")
    return Estimator(name, known.shape, float(knob), known.models, known.normalized)


TABLE = {
    one.name: one
    for one in (
        Estimator("ips", _identity, models=False),
        Estimator("clipped", _clip, models=False),
        Estimator("snips", _identity, models=False, normalized=True),
        Estimator("dm", zero_shape),
        Estimator("dr", _identity),
        Estimator("sndr", _identity, normalized=True),
        Estimator("switch", _switch),
        Estimator("dros", _optimistic),
        Estimator("subgaussian", _harmonic, knob=0.0, models=False),
        Estimator("subgaussian-dr", _harmonic, knob=0.0),
    )
}
ESTIMATORS = tuple(TABLE)
