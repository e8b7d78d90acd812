"""Linear bandits with a sketched or projected design: SOFUL, CBSCFD, CBRAP, DBSLinUCB and PSILinUCB.

All learn by ridge regression, as their papers do; `estimator="newton"` is the same sketch under Newton steps, which do
not depend on reg as ridge regression on a sketch does (docs/sketches.md).
"""

from typing import Any

from onepass.bandit.bandit import Bandit
from onepass.design.design import Design
from onepass.design.dyadic import Dyadic
from onepass.design.exact import Exact
from onepass.design.frequent_directions import FrequentDirections
from onepass.design.projector_splitting import ProjectorSplitting
from onepass.features.projection import GaussianProjection
from onepass.recipes.compose import Dim, Explore, Make, at_most, compose, least_squares


def sketch(size: int, reg: float, dtype: str, compensation: float = 0.0) -> Make:
    """Frequent Directions of `size` rows, or of the width where that is less."""
    return lambda dim, most: FrequentDirections(
        dim=dim, size=at_most("size", size, most), reg=reg, compensation=compensation, dtype=dtype
    )


def SOFUL(
    *,
    dim: Dim,
    size: int,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    thompson: bool = False,
    estimator: str = "ridge",
    model: str = "shared",
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> Bandit:
    """Frequent Directions, UCB or Thompson sampling: A = reg I + S^T S with a sketch S of the rows.

    Kuzborskij, Cella and Cesa-Bianchi (2019). O(dim size) a round and numbers of memory.

    dim: width of a context, at least 1, or (d_u, d_a) for contexts given as `Factors` x = vec(u v^T).
    size: rows kept at every shrink of the sketch, from 1 to dim (exact while the rank stays below 2 size).
        Too few beside `reg`, and means grow without a bound: a `SketchWarning` says so once (docs/sketches.md).
    reg: lambda of A = reg I + sum of x x^T, above 0 (default 1.0): variance of the noise over that of an entry of
        theta.
    exploration: beta, a number (default 0.1; below 0 is pessimism), or `Theory`: the proved radius; or
        a rule, such as `InverseGap()`.
    thompson: draw theta from N(theta, beta^2 A^-1) in place of the width (default False).
    estimator: "ridge" (default): theta = A^-1 b, as the paper has it; or "newton": `OnlineNewton` on the same
        sketch, far better where reg is small beside what is cut, and under `Theory` with the smaller radius; of
        "hybrid" models the shared part's.
    model: "shared" (default): one model for all arms; "disjoint" or "hybrid": models per arm, without or beside a
        shared one (with factors, an arm's own works in d_u dimensions).
    seed: at least 0 (default 0); breaks ties.
    dtype: "float64" (default) or "float32", which halves the memory.
    half_life: after how many rounds, or after which time (a timedelta; `learn` and `decide` are then told the `time`)
        a row counts half; None (default): nothing is forgotten.
    Returns a `Bandit`. ValueError for arguments out of range.
    """
    name = "SOFUL-TS" if thompson else "SOFUL"
    return compose(
        name,
        dim,
        sketch(size, reg, dtype),
        exploration,
        model,
        seed,
        thompson=thompson,
        estimate=least_squares(estimator),
        half_life=half_life,
    )


def CBSCFD(
    *,
    dim: Dim,
    size: int,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    compensation: float = 1.0,
    estimator: str = "ridge",
    model: str = "shared",
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> Bandit:
    """Robust Frequent Directions, UCB: A = (reg + compensation * what was cut) I + S^T S.

    Chen, Luo, Zhang, Yu and Lian (2020); 0.5 is the sketch of Luo et al. (2019). O(dim size) a round.

    dim: width of a context, at least 1, or (d_u, d_a) for contexts given as `Factors` x = vec(u v^T).
    size: rows kept at every shrink of the sketch, from 1 to dim (exact while the rank stays below 2 size).
    reg: lambda of A = reg I + sum of x x^T, above 0 (default 1.0): variance of the noise over that of an entry of
        theta.
    exploration: beta, a number (default 0.1; below 0 is pessimism), or `Theory`: the proved radius; or
        a rule, such as `InverseGap()`.
    compensation: from 0 (SOFUL) to 1 (default 1.0).
    estimator: "ridge" (default): theta = A^-1 b, as the paper has it; or "newton": `OnlineNewton` on the same
        sketch, which differs little here, as what was cut comes back in A; of "hybrid" models the shared part's.
    model: "shared" (default): one model for all arms; "disjoint" or "hybrid": models per arm, without or beside a
        shared one (with factors, an arm's own works in d_u dimensions).
    seed: at least 0 (default 0); breaks ties.
    dtype: "float64" (default) or "float32", which halves the memory.
    half_life: after how many rounds, or after which time (a timedelta; `learn` and `decide` are then told the `time`)
        a row counts half; None (default): nothing is forgotten.
    Returns a `Bandit`. ValueError for arguments out of range.
    """
    return compose(
        "CBSCFD",
        dim,
        sketch(size, reg, dtype, compensation),
        exploration,
        model,
        seed,
        estimate=least_squares(estimator),
        half_life=half_life,
    )


def CBRAP(
    *,
    dim: int,
    size: int,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    model: str = "shared",
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> Bandit:
    """Gaussian projection to `size` dimensions, exact design there, UCB.

    Yu, Lyu and King (2017). O(dim size + size^2) a round. The projection is drawn from the seed.

    dim: width of a context, at least 1; factors are not taken.
    size: width after the projection, from 1 to dim.
    reg: lambda of A = reg I + sum of x x^T, above 0 (default 1.0): variance of the noise over that of an entry of
        theta.
    exploration: beta, a number (default 0.1; below 0 is pessimism), or `Theory`: the proved radius; or
        a rule, such as `InverseGap()`.
    model: "shared" (default): one model for all arms; "disjoint" or "hybrid": models per arm, without or beside a
        shared one (with factors, an arm's own works in d_u dimensions).
    seed: at least 0 (default 0); of the projection, and breaks ties.
    dtype: "float64" (default) or "float32", which halves the memory.
    half_life: after how many rounds, or after which time (a timedelta; `learn` and `decide` are then told the `time`)
        a row counts half; None (default): nothing is forgotten.
    Returns a `Bandit`. ValueError for arguments out of range.
    """
    features = GaussianProjection(dim=dim, size=size, seed=seed)

    def design(d: int, most: int) -> Design:
        return Exact(dim=size, reg=reg, dtype=dtype)

    return compose("CBRAP", dim, design, exploration, model, seed, features=features, half_life=half_life)


def DBSLinUCB(
    *,
    dim: Dim,
    size: int,
    error: float,
    base: str = "fd",
    reg: float = 1.0,
    exploration: Explore = 0.1,
    estimator: str = "ridge",
    model: str = "shared",
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> Bandit:
    """Dyadic blocks of Frequent Directions, UCB: the sketch grows until ||A - A_hat|| <= 2 error is certain.

    Wen, Yin et al., algorithms 2 and 3. O(dim (size + what has grown)) a round.

    dim: width of a context, at least 1, or (d_u, d_a) for contexts given as `Factors` x = vec(u v^T).
    size: of the first block, from 1 to dim.
    error: half the bound, above 0, in units of ||x||^2.
    base: "fd" (default) or "rfd": what was cut is put back as a multiple of I.
    reg: lambda of A = reg I + sum of x x^T, above 0 (default 1.0): variance of the noise over that of an entry of
        theta.
    exploration: beta, a number (default 0.1; below 0 is pessimism), or `Theory`: the proved radius; or
        a rule, such as `InverseGap()`.
    estimator: "ridge" (default): theta = A^-1 b, as the paper has it; or "newton": `OnlineNewton` on the same
        sketch, better where reg is small beside 2 error, with the smaller radius for base "fd"; of "hybrid" models the
        shared part's.
    model: "shared" (default): one model for all arms; "disjoint" or "hybrid": models per arm, without or beside a
        shared one (with factors, an arm's own works in d_u dimensions).
    seed: at least 0 (default 0); breaks ties.
    dtype: "float64" (default) or "float32", which halves the memory.
    half_life: after how many rounds, or after which time (a timedelta; `learn` and `decide` are then told the `time`)
        a row counts half; None (default): nothing is forgotten.
    Returns a `Bandit`. ValueError for arguments out of range.
    """

    def design(d: int, most: int) -> Design:
        return Dyadic(dim=d, size=at_most("size", size, most), error=error, reg=reg, base=base, dtype=dtype)

    name = "DBSLinUCB" if base == "fd" else "DBSLinUCB-RFD"
    return compose(name, dim, design, exploration, model, seed, estimate=least_squares(estimator), half_life=half_life)


def PSILinUCB(
    *,
    dim: Dim,
    rank: int,
    compensate: bool = False,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    estimator: str = "ridge",
    model: str = "shared",
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> Bandit:
    """Projector splitting, UCB: A^-1 = L^-T L^-1 with L^-1 = (I - U V^T) / sqrt(reg), U V^T of low rank.

    Shustova et al. O(dim rank) a round; reg must be of the order of the spectrum.

    dim: width of a context, at least 1, or (d_u, d_a) for contexts given as `Factors` x = vec(u v^T).
    rank: of U V^T at the end of a batch, from 1 to dim (exact while the rank of the rows is at most that).
        Too low beside `reg`, uncompensated, means grow without a bound: a `SketchWarning` says so (docs/sketches.md).
    compensate: put the mass that was cut back as a multiple of I (default False).
    reg: lambda of A = reg I + sum of x x^T, above 0 (default 1.0): variance of the noise over that of an entry of
        theta.
    exploration: beta, a number (default 0.1; below 0 is pessimism), or `Theory`: the proved radius; or
        a rule, such as `InverseGap()`.
    estimator: "ridge" (default): theta = A^-1 b, as the paper has it; or "newton": `OnlineNewton` on the same
        sketch, which takes most of the harm out of a reg below the spectrum; of "hybrid" models the shared part's.
    model: "shared" (default): one model for all arms; "disjoint" or "hybrid": models per arm, without or beside a
        shared one (with factors, an arm's own works in d_u dimensions).
    seed: at least 0 (default 0); breaks ties.
    dtype: "float64" (default) or "float32", which halves the memory.
    half_life: after how many rounds, or after which time (a timedelta; `learn` and `decide` are then told the `time`)
        a row counts half; None (default): nothing is forgotten.
    Returns a `Bandit`. ValueError for arguments out of range.
    """

    def design(d: int, most: int) -> Design:
        return ProjectorSplitting(dim=d, rank=at_most("rank", rank, most), reg=reg, compensate=compensate, dtype=dtype)

    return compose(
        "PSILinUCB", dim, design, exploration, model, seed, estimate=least_squares(estimator), half_life=half_life
    )
