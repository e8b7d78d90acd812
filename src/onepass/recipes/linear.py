"""Linear bandits with the exact design: OFUL, LinUCB and LinTS."""

from typing import Any

from onepass.bandit.bandit import Bandit
from onepass.recipes.compose import Dim, Explore, compose, exact


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
    """Exact design, UCB: the arm of the largest x^T theta + beta sqrt(x^T A^-1 x), theta = A^-1 sum of r x.

    Abbasi-Yadkori, Pal and Szepesvari (2011). O(dim^2) a round and numbers of memory (per arm: of rank of its rows).

    dim: width of a context, at least 1, or (d_u, d_a) for contexts given as `Factors` x = vec(u v^T).
    reg: lambda of A = reg I + sum of x x^T, above 0 (default 1.0): variance of the noise over that of an entry of
        theta.
    exploration: beta, a number (default 0.1; below 0 is pessimism), or `Theory`: the proved radius; or
        a rule, such as `InverseGap()`.
    model: "shared" (default): one model for all arms; "disjoint" or "hybrid": models per arm, without or beside a
        shared one (with factors, an arm's own works in d_u dimensions).
    seed: at least 0 (default 0); breaks ties.
    dtype: "float64" (default) or "float32", which halves the memory.
    half_life: after how many rounds, or after which time (a timedelta; `learn` and `decide` are then told the `time`)
        a row counts half; None (default): nothing is forgotten.
    Returns a `Bandit`. ValueError for arguments out of range.
    """
    return compose("OFUL", dim, exact(reg, dtype), exploration, model, seed, half_life=half_life)


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
    """Exact design, UCB with a constant width. The same algorithm as OFUL.

    Li, Chu, Langford and Schapire (2010), whose algorithms 1 and 2 are "disjoint" and "hybrid". O(dim^2) a round.

    dim: width of a context, at least 1, or (d_u, d_a) for contexts given as `Factors` x = vec(u v^T).
    reg: lambda of A = reg I + sum of x x^T, above 0 (default 1.0): variance of the noise over that of an entry of
        theta.
    exploration: beta, a number (default 0.1; below 0 is pessimism), or `Theory`: the proved radius; or
        a rule, such as `InverseGap()`.
    model: "shared" (default): one model for all arms; "disjoint" or "hybrid": models per arm, without or beside a
        shared one (with factors, an arm's own works in d_u dimensions).
    seed: at least 0 (default 0); breaks ties.
    dtype: "float64" (default) or "float32", which halves the memory.
    half_life: after how many rounds, or after which time (a timedelta; `learn` and `decide` are then told the `time`)
        a row counts half; None (default): nothing is forgotten.
    Returns a `Bandit`. ValueError for arguments out of range.
    """
    return compose("LinUCB", dim, exact(reg, dtype), exploration, model, seed, half_life=half_life)


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
    """Exact design, Thompson sampling: the arm of the largest x^T theta~, theta~ drawn from N(theta, beta^2 A^-1).

    Agrawal and Goyal (2013). O(dim^2) a round.

    dim: width of a context, at least 1, or (d_u, d_a) for contexts given as `Factors` x = vec(u v^T).
    reg: lambda of A = reg I + sum of x x^T, above 0 (default 1.0): variance of the noise over that of an entry of
        theta.
    exploration: beta, the deviation of the draw, a number (default 0.1), or `Theory`: the proved radius; or
        a rule, such as `InverseGap()`.
    model: "shared" (default): one model for all arms; "disjoint" or "hybrid": models per arm, without or beside a
        shared one (with factors, an arm's own works in d_u dimensions).
    seed: at least 0 (default 0); of the draws.
    dtype: "float64" (default) or "float32", which halves the memory.
    half_life: after how many rounds, or after which time (a timedelta; `learn` and `decide` are then told the `time`)
        a row counts half; None (default): nothing is forgotten.
    Returns a `Bandit`. ValueError for arguments out of range.
    """
    return compose("LinTS", dim, exact(reg, dtype), exploration, model, seed, thompson=True, half_life=half_life)
