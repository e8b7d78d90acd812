"""Which settings of a recipe a log prefers: bandits that learn the log as it goes, compared by paired differences.

    D_t = (w_t - u_t) r_t,      w, u: progressive weights of a candidate and of the present settings

Every decision is weighed before it is learned (progressive.py), so sums of D - E[D] are martingales: limits hold at any
time. m candidates have alpha / m each: with probability 1 - alpha none is called better that is not.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onepass.evaluation.comparison import Comparison, policy_weights, summarize_comparison
from onepass.evaluation.evaluate import open_fraction
from onepass.evaluation.log import Log
from onepass.evaluation.progressive import LearningPolicy, learning_curve
from onepass.evaluation.reward_range import make_range
from onepass.evaluation.sample import make_sample

Grid = Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class TuningResult:
    """What a log prefers.

    settings: of the best candidate, or the present ones where none is better; bandit: with these settings, having
    learned the whole log; comparison: of all candidates with the present settings; curves: by name, (points, 2) rows so
    far and mean w r since the point before, "present" among them; candidates: their settings by name.
    """

    settings: dict[str, Any]
    bandit: Any
    comparison: Comparison
    curves: dict[str, np.ndarray]
    candidates: dict[str, dict[str, Any]]

    def __str__(self) -> str:
        return f"{_format_settings(self.settings) or 'the present settings'}\n{self.comparison}"


def tune(
    recipe: Callable[..., Any],
    grid: Grid,
    log: Log,
    *,
    present: Mapping[str, Any] | None = None,
    batch_size: int = 1,
    reward_range: tuple[float, float] = (0.0, 1.0),
    level: float = 0.95,
    weight_bound: float | None = None,
    points: int = 50,
) -> TuningResult:
    """Choose the settings of a recipe on a log.

    recipe: called with keywords, returns a bandit that explores with known probabilities; grid: lists of values by
    name, of which all combinations are tried, or the combinations themselves, at least one; log: with contexts.
    present: settings to beat, with which and over which candidates are built; None (default): the recipe's own.
    every: rows that are learned together, at least 1 (default 1); reward_range: as for `evaluate` (default (0.0, 1.0)).
    level: with which no candidate is called better that is not, above 0 and below 1 (default 0.95).
    weight_bound: the largest weight that there can be, at least 1; None (default): as the log tells.
    points: of a learning curve, at least 1 (default 50).
    Returns `Tuned`. ValueError for an empty grid, and as `progressive`.
    """
    base, rewards = dict(present or {}), make_range(reward_range)
    alpha = 1.0 - open_fraction("level", level)
    candidates = {_format_settings(one): {**base, **one} for one in _combinations(grid)}
    bandits, weights = {}, {}
    for name, settings in {"present": base, **candidates}.items():
        bandits[name] = recipe(**settings)
        weights[name] = policy_weights(log, LearningPolicy(bandits[name], batch_size), weight_bound)
    each = {name: weights[name] for name in candidates}
    comparison = summarize_comparison(each, weights["present"], log.rewards, rewards, alpha)
    best = "present" if comparison.best is None else comparison.best
    return TuningResult(
        settings=base if comparison.best is None else candidates[best],
        bandit=bandits[best],
        comparison=comparison,
        curves={name: learning_curve(make_sample(one.weights, log.rewards), points) for name, one in weights.items()},
        candidates=candidates,
    )


def _combinations(grid: Grid) -> list[dict[str, Any]]:
    """All combinations of a grid; ValueError where there is none."""
    if isinstance(grid, Mapping):
        found = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())] if grid else []
    else:
        found = [dict(one) for one in grid]
    if not found:
        raise ValueError("grid must hold at least one candidate")
    return found


def _format_settings(settings: Mapping[str, Any]) -> str:
    """Settings in words."""
    return ", ".join(f"{name}={value}" for name, value in settings.items())
