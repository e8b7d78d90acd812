"""Linear bandits for problems that change: WeightUCB."""

from typing import Any

from onepass.bandit.bandit import Bandit
from onepass.recipes.compose import Dim, Explore, compose, exact_factory

HALF_LIFE = (
    1000.0  # rounds: cheap where the world stands still (docs/forgetting.md), at most sixteen times the best there
)


def WeightUCB(
    *,
    dim: Dim,
    half_life: Any = HALF_LIFE,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    model: str = "shared",
    seed: int = 0,
    dtype: str = "float64",
) -> Bandit:
    """Make a UCB bandit with an exact design that forgets.

    A_t = reg I + sum of g_s x_s x_s^T, theta = A_t^-1 sum of g_s r_s x_s, g_s = gamma^(t - s). It plays the arm with
    the largest x^T theta + beta sqrt(x^T A_t^-1 x). This is `OFUL` with a half-life, which every other recipe takes as
    well.

    Parameters
    ----------
    dim : int or (int, int)
        Width d of a context, at least 1. A pair (d_u, d_a) for contexts given as `Factors`, x = vec(u v^T).
    half_life : float or timedelta, default 1000.0
        Number of rows, or time, after which a row counts half. With a timedelta, `learn` and `decide` need the
        argument `time`. None forgets nothing.
    reg : float, default 1.0
        Ridge lambda of A = reg I + sum of g x x^T, above 0: the variance of the noise divided by the prior
        variance of an entry of theta.
    exploration : float, Theory or Exploration, default 0.1
        A number is beta, the multiplier of the width in score = mean + beta width. Below 0 the bandit avoids arms of
        which it knows little. `Theory` takes a multiplier for which the confidence interval holds in any single round,
        if the problem does not change. Any other rule, such as `InverseGap()`, replaces the recipe's own.
    model : {"shared", "disjoint", "hybrid"}, default "shared"
        "shared" is one model for all arms. "disjoint" is a model for each arm. "hybrid" is a model for each arm
        beside a shared one. With factors, the model of an arm works in d_u dimensions.
    seed : int, default 0
        Seed, at least 0, that breaks ties.
    dtype : {"float64", "float32"}, default "float64"
        "float32" halves the memory.

    Returns
    -------
    Bandit
        The bandit, which has learned nothing yet.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    gamma = 2^(-1 / half_life), in whole ticks of half_life / 64 (docs/forgetting.md). A round costs O(dim^2), and a
    tick O(dim^3).

    References
    ----------
    Wang, Zhao and Zhou (2023).
    """
    return compose("WeightUCB", dim, exact_factory(reg, dtype), exploration, model, seed, half_life=half_life)
