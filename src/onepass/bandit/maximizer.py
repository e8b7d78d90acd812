"""Decisions among rows that cannot be listed: a function given by the caller finds the best row."""

from collections.abc import Callable
from typing import Any

import numpy as np

from onepass.exploration.contract import ArmStatistics, score
from onepass.exploration.rule import Rule
from onepass.model.contract import Choice, Model, non_finite_error


def maximize_score(
    model: Model, rule: Rule, maximizer: Callable[[Callable[[Any], np.ndarray]], Any], rng: np.random.Generator
) -> tuple[np.ndarray, Choice]:
    """Return the row (dim,) of the best arm, as found by `maximizer`, in the form of a choice with probability 1.

    `maximizer` is given a function that maps rows (n, dim) to scores (n,). `rule` must not be random. Raises ValueError
    if the maximizer returns no row, FloatingPointError if the row's score is not finite.
    """

    def score_rows(rows: Any) -> tuple[np.ndarray, ArmStatistics]:
        seen = model.predict(model.encode(rows, None), 0, rule, rng, 0)
        return score(rule.rule, model.view(seen, rule)), seen

    row = np.array(maximizer(lambda rows: score_rows(rows)[0]), np.float64)
    if row.ndim != 1:
        raise ValueError(f"maximizer must return one row (dim,), got shape {row.shape}")
    scores, seen = score_rows(row[None])
    if not np.isfinite(scores[0]):
        raise non_finite_error()
    sure = np.zeros(1, np.int64), np.ones((1, 1))
    return row, (*sure, model.mean_rewards(scores, rule), model.mean_rewards(seen.means), seen.widths)
