"""Linear bandits for heavy-tailed rewards: HvtUCB, and what the papers compare with."""

from typing import Any

from onepass.bandit.bandit import Bandit
from onepass.design.design import Design
from onepass.design.exact import Exact
from onepass.estimator.adaptive_huber import AdaptiveHuber
from onepass.estimator.estimator import Estimator
from onepass.estimator.heavy_tails import EXPLORATION
from onepass.estimator.median_of_means import MedianOfMeans
from onepass.estimator.one_pass_huber import OnePassHuber
from onepass.estimator.one_pass_median import OnePassMedian
from onepass.estimator.one_pass_truncation import OnePassTruncation
from onepass.estimator.truncated_ridge import TruncatedRidge
from onepass.exploration.confidence_width import Theory
from onepass.foundation import check
from onepass.recipes.compose import Dim, Explore, compose, compose_shared, exact, given


def theory_of(exploration: Explore) -> Theory | None:
    """The theorem's constants, if these are what was given."""
    return exploration if isinstance(exploration, Theory) else None


def robust(exploration: Explore) -> dict[str, Any]:
    """What the exploration tells a Huber estimator: the theorem's constants, if these are what was given."""
    if isinstance(exploration, Theory):
        return {"theory": exploration}
    check.real("exploration", exploration, "use a number or onepass.Theory(...)")
    return {}


def HvtUCB(
    *,
    dim: Dim,
    epsilon: float = 1.0,
    nu: float | None = None,
    horizon: int | None = None,
    design: Design | None = None,
    reg: float | None = None,
    exploration: Explore = EXPLORATION,
    clip: float | None = None,
    floor: float | None = None,
    step: float | None = None,
    parameter_bound: float | None = None,
    model: str = "shared",
    seed: int = 0,
    dtype: str | None = None,
    half_life: Any = None,
) -> Bandit:
    """One-pass Huber regression, UCB, for heavy-tailed rewards: theta moves by a clipped residual, in the norm of A.

    Wang et al. (2025). O(1) designs' work a round, no history. Rewards without outliers, 0/1 ones too, are learned by
    ridge regression with the same reg, and rewards in other units are the same problem. Proved for a horizon and a nu
    that are given. Defaults were chosen on validation seeds and other data sets (docs/heavy_tails.md).

    dim: width of a context, at least 1, or (d_u, d_a) for contexts given as `Factors` x = vec(u v^T).
    epsilon: moments of order 1 + epsilon are finite; above 0, at most 1 (default 1.0, which is good in practice for all
        tails).
    nu: typical size of the noise, above 0, in units of the rewards; None (default): estimated as rewards come.
    horizon: rows that will come in all, for the papers' thresholds; None (default): any time; models per arm take None
        only.
    design: any design, as wide as the rows that are learned (a sketch makes a round O(dim size)); None (default):
        `Exact`.
    reg: as for every design, above 0; only without a design (None: 1.0).
    exploration: a number (default 1.5), which nu multiplies: score = mean + exploration nu width; or `Theory`: the
        paper's radius, threshold, step and ball.
    clip: factor of the threshold tau_0, above 0; None (default): 0.02, under `Theory` 1.
    floor: least value of tau in deviations of a prediction, at least 0; None (default): 3, under `Theory` 0.
    step: a, above 0: rows weigh 1 / a; None (default): 1, ridge regression where nothing is clipped, under
        `Theory` 4.
    parameter_bound: S, above 0: estimates are kept in the ball ||theta|| <= S; None (default): no ball; None beside
        `Theory`, which has one.
    model: "shared" (default): one model for all arms; "disjoint": one per arm (with factors, in d_u dimensions).
    seed: at least 0 (default 0); breaks ties.
    dtype: "float64" or "float32"; only without a design (None: "float64").
    half_life: after how many rounds, or after which time (a timedelta; `learn` and `decide` are then told the `time`)
        a row counts half; None (default): nothing is forgotten.
    Returns a `Bandit`. ValueError for arguments out of range.
    """

    def estimate(design: Design) -> Estimator:
        tail: dict[str, Any] = {"epsilon": epsilon, "nu": nu, "horizon": horizon, "parameter_bound": parameter_bound}
        return OnePassHuber(design, clip=clip, floor=floor, step=step, **tail, **robust(exploration))

    make = given(design, reg, dtype)
    return compose("HvtUCB", dim, make, exploration, model, seed, estimate=estimate, half_life=half_life)


def HeavyOFUL(
    *,
    dim: Dim,
    epsilon: float = 1.0,
    nu: float | None = None,
    horizon: int | None = None,
    reg: float = 1.0,
    exploration: Explore = EXPLORATION,
    clip: float | None = None,
    floor: float | None = None,
    parameter_bound: float | None = None,
    model: str = "shared",
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> Bandit:
    """Adaptive Huber regression over the whole history, UCB: to compare with HvtUCB.

    Huang et al. (2023). O(t dim) a round and numbers of memory.

    dim: width of a context, at least 1, or (d_u, d_a) for contexts given as `Factors` x = vec(u v^T).
    epsilon: moments of order 1 + epsilon are finite; above 0, at most 1 (default 1.0, which is good in practice for all
        tails).
    nu: typical size of the noise, above 0, in units of the rewards; None (default): estimated as rewards come.
    horizon: rows that will come in all, for the papers' thresholds; None (default): any time; models per arm take None
        only.
    reg: lambda of A = reg I + sum of x x^T, above 0 (default 1.0): variance of the noise over that of an entry of
        theta.
    exploration: a number (default 1.5), which nu multiplies: score = mean + exploration nu width; or `Theory`: the
        paper's radius, threshold and ball.
    clip: factor of the threshold tau_0, above 0; None (default): 0.02, under `Theory` 1.
    floor: least value of tau in deviations of a prediction, at least 0; None (default): 3, under `Theory` 0.
    parameter_bound: S, above 0: estimates are kept in the ball ||theta|| <= S; None (default): no ball; None beside
        `Theory`, which has one.
    model: "shared" (default): one model for all arms; "disjoint": one per arm (with factors, in d_u dimensions).
    seed: at least 0 (default 0); breaks ties.
    dtype: "float64" (default) or "float32", which halves the memory.
    half_life: after how many rounds, or after which time (a timedelta; `learn` and `decide` are then told the `time`)
        a row counts half; None (default): nothing is forgotten.
    Returns a `Bandit`. ValueError for arguments out of range.
    """

    def estimate(design: Design) -> Estimator:
        assert isinstance(design, Exact)
        tail: dict[str, Any] = {"epsilon": epsilon, "nu": nu, "horizon": horizon, "parameter_bound": parameter_bound}
        return AdaptiveHuber(design, clip=clip, floor=floor, **tail, **robust(exploration))

    return compose(
        "HeavyOFUL", dim, exact(reg, dtype), exploration, model, seed, estimate=estimate, half_life=half_life
    )


def CRTM(
    *,
    dim: Dim,
    epsilon: float = 1.0,
    moment: float = 1.0,
    horizon: int | None = None,
    design: Design | None = None,
    reg: float | None = None,
    exploration: float = 1.0,
    clip: float = 1.0,
    parameter_bound: float | None = None,
    model: str = "shared",
    seed: int = 0,
    dtype: str | None = None,
    half_life: Any = None,
) -> Bandit:
    """One-pass truncation, UCB: rewards above a threshold count as 0.

    After Xue et al. (2023): see `OnePassTruncation` for our reading. O(1) designs' work a round.

    dim: width of a context, at least 1, or (d_u, d_a) for contexts given as `Factors` x = vec(u v^T).
    epsilon: moments of order 1 + epsilon are finite; above 0, at most 1 (default 1.0).
    moment: u, above 0 (default 1.0): bounds E|r|^(1 + epsilon) of the rewards themselves.
    horizon: rows that will come in all, for the papers' thresholds; None (default): any time; models per arm take None
        only.
    design: any design, as wide as the rows that are learned (a sketch makes a round O(dim size)); None (default):
        `Exact`.
    reg: as for every design, above 0; only without a design (None: 1.0).
    exploration: beta, a number (default 1.0); no radius is proved.
    clip: factor of the threshold, above 0 (default 1.0: the paper's).
    parameter_bound: S, above 0: estimates are kept in the ball ||theta|| <= S; None (default): no ball.
    model: "shared" (default): one model for all arms; "disjoint": one per arm (with factors, in d_u dimensions).
    seed: at least 0 (default 0); breaks ties.
    dtype: "float64" or "float32"; only without a design (None: "float64").
    half_life: after how many rounds, or after which time (a timedelta; `learn` and `decide` are then told the `time`)
        a row counts half; None (default): nothing is forgotten.
    Returns a `Bandit`. ValueError for arguments out of range.
    """

    def estimate(design: Design) -> Estimator:
        return OnePassTruncation(
            design, epsilon=epsilon, moment=moment, horizon=horizon, clip=clip, parameter_bound=parameter_bound
        )

    make = given(design, reg, dtype)
    return compose("CRTM", dim, make, exploration, model, seed, estimate=estimate, half_life=half_life)


def CRMM(
    *,
    dim: Dim,
    horizon: int | None = None,
    repeats: int | None = None,
    design: Design | None = None,
    reg: float | None = None,
    exploration: float = 1.0,
    parameter_bound: float | None = None,
    seed: int = 0,
    dtype: str | None = None,
    half_life: Any = None,
) -> Bandit:
    """Mean of medians in one pass, UCB, for fixed arms, each of which is played `repeats` times in a row.

    After Xue et al. (2023): see `OnePassMedian` for our reading. O(1) designs' work a round.

    dim: width of a context, at least 1, or (d_u, d_a) for contexts given as `Factors` x = vec(u v^T).
    horizon: rows that will come in all; None (default): any time, for which repeats must be given.
    repeats: at least 1; None (default): the paper's O(log horizon).
    design: any design, as wide as the rows that are learned (a sketch makes a round O(dim size)); None (default):
        `Exact`.
    reg: as for every design, above 0; only without a design (None: 1.0).
    exploration: beta, a number (default 1.0); no radius is proved.
    parameter_bound: S, above 0: estimates are kept in the ball ||theta|| <= S; None (default): no ball.
    seed: at least 0 (default 0); breaks ties.
    dtype: "float64" or "float32"; only without a design (None: "float64").
    half_life: after how many rounds, or after which time (a timedelta; `learn` and `decide` are then told the `time`)
        a row counts half; None (default): nothing is forgotten.
    Returns a `Bandit`. ValueError for arguments out of range.
    """

    def estimate(design: Design) -> Estimator:
        return OnePassMedian(design, horizon=horizon, repeats=repeats, parameter_bound=parameter_bound)

    return compose_shared("CRMM", dim, given(design, reg, dtype), exploration, seed, estimate, half_life=half_life)


def MENU(
    *,
    dim: Dim,
    epsilon: float = 1.0,
    moment: float = 1.0,
    horizon: int | None = None,
    repeats: int | None = None,
    design: Design | None = None,
    reg: float | None = None,
    exploration: Explore = 1.0,
    seed: int = 0,
    dtype: str | None = None,
    half_life: Any = None,
) -> Bandit:
    """Median of means, UCB, for fixed arms, each of which is played `repeats` times in a row.

    Shao et al. (2018). O(repeats) designs' work an epoch.

    dim: width of a context, at least 1, or (d_u, d_a) for contexts given as `Factors` x = vec(u v^T).
    epsilon: moments of order 1 + epsilon are finite; above 0, at most 1 (default 1.0).
    moment: v, above 0 (default 1.0): bounds E|eta|^(1 + epsilon) of the noise, for `Theory`.
    horizon: rows that will come in all; None (default): any time, for which repeats must be given.
    repeats: at least 1; None (default): the paper's O(log horizon), fewer than which prove no radius.
    design: any design, as wide as the rows that are learned (a sketch makes a round O(dim size)); None (default):
        `Exact`.
    reg: as for every design, above 0; only without a design (None: 1.0).
    exploration: beta, a number (default 1.0), or `Theory`: the proved radius.
    seed: at least 0 (default 0); breaks ties.
    dtype: "float64" or "float32"; only without a design (None: "float64").
    half_life: after how many rounds, or after which time (a timedelta; `learn` and `decide` are then told the `time`)
        a row counts half; None (default): nothing is forgotten.
    Returns a `Bandit`. ValueError for arguments out of range.
    """

    def estimate(design: Design) -> Estimator:
        return MedianOfMeans(
            design, epsilon=epsilon, moment=moment, horizon=horizon, repeats=repeats, theory=theory_of(exploration)
        )

    return compose_shared("MENU", dim, given(design, reg, dtype), exploration, seed, estimate, half_life=half_life)


def TOFU(
    *,
    dim: Dim,
    epsilon: float = 1.0,
    moment: float = 1.0,
    horizon: int | None = None,
    reg: float = 1.0,
    exploration: Explore = 1.0,
    clip: float = 1.0,
    model: str = "shared",
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> Bandit:
    """Truncation in whitened coordinates over the whole history, UCB.

    Shao et al. (2018). O(t dim^2) a round, O(t dim) memory: to compare with.

    dim: width of a context, at least 1, or (d_u, d_a) for contexts given as `Factors` x = vec(u v^T).
    epsilon: moments of order 1 + epsilon are finite; above 0, at most 1 (default 1.0).
    moment: v, above 0 (default 1.0): bounds E|r|^(1 + epsilon) of the rewards themselves.
    horizon: rows that will come in all, for the papers' thresholds; None (default): any time; models per arm take None
        only.
    reg: lambda of A = reg I + sum of x x^T, above 0 (default 1.0): variance of the noise over that of an entry of
        theta.
    exploration: beta, a number (default 1.0), or `Theory`: the proved radius (with a horizon and clip 1).
    clip: factor of the threshold, above 0 (default 1.0: the paper's).
    model: "shared" (default): one model for all arms; "disjoint": one per arm (with factors, in d_u dimensions).
    seed: at least 0 (default 0); breaks ties.
    dtype: "float64" (default) or "float32", which halves the memory.
    half_life: after how many rounds, or after which time (a timedelta; `learn` and `decide` are then told the `time`)
        a row counts half; None (default): nothing is forgotten.
    Returns a `Bandit`. ValueError for arguments out of range.
    """

    def estimate(design: Design) -> Estimator:
        assert isinstance(design, Exact)
        return TruncatedRidge(
            design, epsilon=epsilon, moment=moment, horizon=horizon, clip=clip, theory=theory_of(exploration)
        )

    return compose("TOFU", dim, exact(reg, dtype), exploration, model, seed, estimate=estimate, half_life=half_life)
