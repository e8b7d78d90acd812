"""Linear bandits with the exact design: OFUL, LinUCB and LinTS."""

from typing import Any

from onepass.bandit.bandit import Bandit
from onepass.recipes.compose import Dim, Explore, compose, exact_factory


def OFUL(
    *,
    dim: Dim,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    model: str = "shared",
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> Bandit:
    """Make a UCB bandit with the exact design.

    It plays the arm x with the largest x^T theta + beta sqrt(x^T A^-1 x). Here A = reg I + sum of x x^T and theta =
    A^-1 sum of r x, over the rows x and rewards r learned.

    Parameters
    ----------
    dim : int or (int, int)
        Number d of features of a context, at least 1. For contexts given as `Factors`, where a row is x = vec(u v^T),
        it is the pair of the lengths of u and v.
    reg : float, default 1.0
        Ridge penalty of A = reg I + sum of x x^T, above 0. In a Bayesian model it is the variance of the noise divided
        by the prior variance of an entry of theta.
    exploration : float, Theory or Exploration, default 0.1
        A number is beta in score = mean + beta * width. The width is the standard error of the mean, divided by the
        standard deviation of the noise. Below 0 the bandit avoids arms of which it knows little. `Theory` takes the
        multiplier for which the regret is proved. Any other rule, such as `InverseGap()`, replaces the recipe's own.
    model : {"shared", "disjoint", "hybrid"}, default "shared"
        "shared" is one model for all arms. "disjoint" is a model for each arm. "hybrid" is a model for each arm beside
        a shared one. With `Factors`, the model of an arm learns from u alone.
    seed : int, default 0
        Seed, at least 0, of the draws that break ties.
    dtype : {"float64", "float32"}, default "float64"
        "float32" halves the memory.
    half_life : float or timedelta, default None
        Number of rows, or time, after which a row counts half, above 0. With a timedelta, `learn` and `decide` need
        the argument `time`. None forgets nothing.

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
    A round costs O(dim^2), and the model has O(dim^2) numbers. In a model of one arm, the rank of the arm's rows takes
    the place of dim.

    References
    ----------
    Abbasi-Yadkori, Pal and Szepesvari (2011).
    """
    return compose("OFUL", dim, exact_factory(reg, dtype), exploration, model, seed, half_life=half_life)


def LinUCB(
    *,
    dim: Dim,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    model: str = "shared",
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> Bandit:
    """Make a UCB bandit with the exact design.

    It does the same as `OFUL`, under the name that is more common for one model per arm.

    Parameters
    ----------
    dim : int or (int, int)
        Number d of features of a context, at least 1. For contexts given as `Factors`, where a row is x = vec(u v^T),
        it is the pair of the lengths of u and v.
    reg : float, default 1.0
        Ridge penalty of A = reg I + sum of x x^T, above 0. In a Bayesian model it is the variance of the noise divided
        by the prior variance of an entry of theta.
    exploration : float, Theory or Exploration, default 0.1
        A number is beta in score = mean + beta * width. The width is the standard error of the mean, divided by the
        standard deviation of the noise. Below 0 the bandit avoids arms of which it knows little. `Theory` takes the
        multiplier for which the regret is proved. Any other rule, such as `InverseGap()`, replaces the recipe's own.
    model : {"shared", "disjoint", "hybrid"}, default "shared"
        "shared" is one model for all arms. "disjoint" is a model for each arm. "hybrid" is a model for each arm beside
        a shared one. With `Factors`, the model of an arm learns from u alone.
    seed : int, default 0
        Seed, at least 0, of the draws that break ties.
    dtype : {"float64", "float32"}, default "float64"
        "float32" halves the memory.
    half_life : float or timedelta, default None
        Number of rows, or time, after which a row counts half, above 0. With a timedelta, `learn` and `decide` need
        the argument `time`. None forgets nothing.

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
    A round costs O(dim^2).

    References
    ----------
    Li, Chu, Langford and Schapire (2010). Their algorithm 1 is "disjoint", and their algorithm 2 is "hybrid".
    """
    return compose("LinUCB", dim, exact_factory(reg, dtype), exploration, model, seed, half_life=half_life)


def LinTS(
    *,
    dim: Dim,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    model: str = "shared",
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> Bandit:
    """Make a Thompson sampling bandit with the exact design.

    It draws a parameter theta~ from N(theta, beta^2 A^-1), and plays the arm x with the largest x^T theta~. Here A =
    reg I + sum of x x^T and theta = A^-1 sum of r x, over the rows x and rewards r learned.

    Parameters
    ----------
    dim : int or (int, int)
        Number d of features of a context, at least 1. For contexts given as `Factors`, where a row is x = vec(u v^T),
        it is the pair of the lengths of u and v.
    reg : float, default 1.0
        Ridge penalty of A = reg I + sum of x x^T, above 0. In a Bayesian model it is the variance of the noise divided
        by the prior variance of an entry of theta.
    exploration : float, Theory or Exploration, default 0.1
        A number is beta, the standard deviation of the draw in units of the width. `Theory` takes the multiplier for
        which the regret is proved. Any other rule, such as `InverseGap()`, replaces the recipe's own.
    model : {"shared", "disjoint", "hybrid"}, default "shared"
        "shared" is one model for all arms. "disjoint" is a model for each arm. "hybrid" is a model for each arm beside
        a shared one. With `Factors`, the model of an arm learns from u alone.
    seed : int, default 0
        Seed of the draws, at least 0.
    dtype : {"float64", "float32"}, default "float64"
        "float32" halves the memory.
    half_life : float or timedelta, default None
        Number of rows, or time, after which a row counts half, above 0. With a timedelta, `learn` and `decide` need
        the argument `time`. None forgets nothing.

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
    A round costs O(dim^2).

    References
    ----------
    Agrawal and Goyal (2013).
    """
    return compose(
        "LinTS", dim, exact_factory(reg, dtype), exploration, model, seed, thompson=True, half_life=half_life
    )
