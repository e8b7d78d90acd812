"""Linear bandits for worlds that change: WeightUCB."""

from typing import Any

from onepass.bandit.bandit import Bandit
from onepass.recipes.compose import Dim, Explore, compose, exact

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
    """Exact design that forgets, UCB: A_t = reg I + sum of g_s x_s x_s^T, theta = A_t^-1 sum of g_s r_s x_s, g_s =
    gamma^(t - s), and the arm of the largest x^T theta + beta sqrt(x^T A_t^-1 x).

    Wang, Zhao and Zhou (2023), gamma = 2^(-1 / half_life), in whole ticks of half_life / 64 (docs/forgetting.md). It is
    OFUL with a half-life, which every other recipe takes as well. O(dim^2) a round and O(dim^3) a tick.

    dim: width of a context, at least 1, or (d_u, d_a) for contexts given as `Factors` x = vec(u v^T).
    half_life: after how many rounds, or after which time (a timedelta; `learn` and `decide` are then told the `time`)
        a row counts half (default 1000.0); None: nothing is forgotten.
    reg: lambda of A = reg I + sum of g x x^T, above 0 (default 1.0): variance of the noise over that of an entry of
        theta.
    exploration: beta, a number (default 0.1; below 0 is pessimism), or `Theory`: a radius that holds in any one round
        of a world that stands still; or a rule, such as `InverseGap()`.
    model: "shared" (default): one model for all arms; "disjoint" or "hybrid": models per arm, without or beside a
        shared one (with factors, an arm's own works in d_u dimensions).
    seed: at least 0 (default 0); breaks ties.
    dtype: "float64" (default) or "float32", which halves the memory.
    Returns a `Bandit`. ValueError for arguments out of range.
    """
    return compose("WeightUCB", dim, exact(reg, dtype), exploration, model, seed, half_life=half_life)
