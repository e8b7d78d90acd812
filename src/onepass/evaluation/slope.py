"""SLOPE: choice of the tuning parameter of a family of estimators (Su, Srinath and Krishnamurthy 2020).

It needs only the values and standard deviations of the estimators. They are sorted by falling deviation, so that the
bias grows. The chosen one is the last whose interval, value +- 2 deviations, overlaps the intervals of all estimators
before it. Its error is within a constant factor of the best in hindsight, whatever the biases are.
"""

from typing import Any

import numpy as np

from onepass.evaluation.estimators import Estimator, get_estimator
from onepass.evaluation.sample import Sample
from onepass.foundation import check

WIDTH = 2.0  # deviations: of the source
KNOBS = 20  # how many are tried where none are given, from the median weight to the largest


def _default_knobs(sample: Sample) -> np.ndarray:
    """Return the knobs (m,) to try in clipping or switching: quantiles of the positive weights, and infinity."""
    positive = sample.weights[sample.weights > 0.0]
    if positive.size == 0:
        return np.array([np.inf])
    return np.append(np.unique(np.quantile(positive, np.linspace(0.5, 1.0, KNOBS))), np.inf)


def slope_index(values: np.ndarray, deviations: np.ndarray) -> int:
    """Return the index that SLOPE selects among estimates (m,) with standard errors `deviations` (m,), in any order."""
    order = np.argsort(-deviations, kind="stable")
    lower, upper, best = -np.inf, np.inf, int(order[0])
    for index in order:
        lower = max(lower, values[index] - WIDTH * deviations[index])
        upper = min(upper, values[index] + WIDTH * deviations[index])
        if lower > upper:
            break
        best = int(index)
    return best


def tune_estimator(sample: Sample, name: str, knobs: Any = None) -> Estimator:
    """Return the estimator with the knob (parameter) that the method SLOPE selects.

    SLOPE sorts the estimates by falling standard error. It takes the last one whose interval overlaps the intervals of
    all estimates before it (Su, Srinath and Krishnamurthy 2020). The cost is O(m n) for m knobs and n rows.

    Parameters
    ----------
    sample : Sample
        Rows of the log.
    name : str
        "clipped", "switch", "dros", "subgaussian" or "subgaussian-dr".
    knobs : array of shape (m,), default None
        Knobs to choose from. None takes 20 quantiles of the weights, from the median on, and infinity. For "dros" the
        quantiles are squared. For the subgaussian estimators None takes 0 to 1 in steps of 0.05.

    Returns
    -------
    Estimator
        Estimator with the selected knob.

    Raises
    ------
    ValueError
        If the name is unknown or a knob is out of range.
    """
    name = check.choice("name", name, ("clipped", "switch", "dros", "subgaussian", "subgaussian-dr"))
    if knobs is None:
        knobs = _default_knobs(sample) ** 2 if name == "dros" else _default_knobs(sample)
        if name.startswith("subgaussian"):
            knobs = np.linspace(0.0, 1.0, KNOBS + 1)
    family = [get_estimator(name, float(knob)) for knob in np.atleast_1d(knobs)]
    values = np.array([one.value(sample) for one in family])
    return family[slope_index(values, np.array([one.deviation(sample) for one in family]))]
