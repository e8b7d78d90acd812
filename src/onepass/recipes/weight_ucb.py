"""Linear bandits for problems that change: WeightUCB."""

from typing import Any

from onepass.bandit.bandit import Bandit
from onepass.recipes.compose import Dim, Explore, compose, exact_factory

HALF_LIFE = 1000.0  # rounds: cheap if nothing changes, and up to 16 times the best (docs/forgetting_measured.md)


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

    This is `OFUL` with a half-life, which most other recipes take as well. In round t, the row x_s of an earlier round
    s has the weight g_s = 2^(-(t - s) / half_life). The bandit plays the arm x with the largest x^T theta + beta
    sqrt(x^T A^-1 x), where A = reg I + sum of g_s x_s x_s^T and theta = A^-1 sum of g_s r_s x_s.

    Parameters
    ----------
    dim : int or (int, int)
        Number d of features of a context, at least 1. For contexts given as `Factors`, where a row is x = vec(u v^T),
        it is the pair of the lengths of u and v.
    half_life : float or timedelta, default 1000.0
        Number of rows, or time, after which a row counts half, above 0. With a timedelta, `learn` and `decide` need
        the argument `time`. None forgets nothing.
    reg : float, default 1.0
        Ridge penalty in A, above 0. In a Bayesian model it is the variance of the noise divided by the prior variance
        of an entry of theta.
    exploration : float, Theory or Exploration, default 0.1
        A number is beta in score = mean + beta * width. The width is sqrt(x^T A^-1 x). Below 0 the bandit avoids arms
        of which it knows little. `Theory` computes beta from a theorem. The confidence interval then holds in every
        single round with probability 1 - `delta`, if the problem does not change. Any other rule, such as
        `InverseGap()`, replaces the recipe's own.
    model : {"shared", "disjoint", "hybrid"}, default "shared"
        "shared" is one model for all arms. "disjoint" is a model for each arm. "hybrid" is a model for each arm beside
        a shared one. With `Factors`, the model of an arm learns from u alone.
    seed : int, default 0
        Seed, at least 0, of the draws that break ties.
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
    Weights change only at the end of each 64th part of the half-life. This costs O(dim^3), and a round O(dim^2).

    References
    ----------
    Wang, Zhao and Zhou (2023).
    """
    return compose("WeightUCB", dim, exact_factory(reg, dtype), exploration, model, seed, half_life=half_life)
