"""Choice of a recipe's settings on a log: bandits learn the log as it goes, and paired differences compare them.

The difference of row t is

    D_t = (w_t - u_t) r_t,      w, u: progressive weights of a candidate and of the present settings

Every decision is evaluated before it is learned (progressive.py), so sums of D - E[D] are martingales, and limits hold
at any time. Each of m candidates has the error probability alpha / m. So with probability 1 - alpha no candidate is
called better that is not better.
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
    """Result of `tune`.

    Parameters
    ----------
    settings : dict
        Settings of the best candidate, or the present ones if no candidate is better.
    bandit : bandit
        Bandit with these settings that has learned the whole log.
    comparison : Comparison
        Comparison of all candidates with the present settings.
    curves : dict of str to ndarray of shape (points, 2)
        Learning curves by name, "present" among them. The columns are the number of rows so far, and the mean of weight
        times reward since the point before.
    candidates : dict of str to dict
        Settings of the candidates by name.
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

    Parameters
    ----------
    recipe : callable
        Called with settings as keywords, returns a bandit that explores with known probabilities.
    grid : dict of lists, or sequence of dicts
        Values by name, of which all combinations are tried, or the combinations themselves, at least one.
    log : Log
        Log with contexts.
    present : dict, default None
        Settings to beat. A candidate's settings override them one by one. None takes the recipe's own.
    batch_size : int, default 1
        Rows learned together, at least 1.
    reward_range : tuple of float, default (0.0, 1.0)
        Least and largest possible reward.
    level : float, default 0.95
        Probability that no candidate is called better that is not, above 0 and below 1.
    weight_bound : float, default None
        Largest possible weight, at least 1. None computes it from the log, as `evaluate` does. If it is not known for
        the weights of `present`, no candidate is called better.
    points : int, default 50
        Points of a learning curve, at least 1.

    Returns
    -------
    TuningResult
        Settings, bandit, comparison and learning curves.

    Raises
    ------
    ValueError
        If the grid is empty, or `progressive` would refuse the log.
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
    """Return all combinations of a grid. Raises ValueError if there is none."""
    if isinstance(grid, Mapping):
        found = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())] if grid else []
    else:
        found = [dict(one) for one in grid]
    if not found:
        raise ValueError("grid must hold at least one candidate")
    return found


def _format_settings(settings: Mapping[str, Any]) -> str:
    """Format settings as text."""
    return ", ".join(f"{name}={value}" for name, value in settings.items())
