"""The papers' names as short compositions. All keyword-only; all return a `Bandit`.

dim: width of a context, or (d_u, d_a) for contexts given as `Outer` factors; reg > 0 is the regularization lambda;
exploration is a number (the constant that practitioners tune) or `Theory`; parameters: "shared", "disjoint" or "hybrid"
(see onepass.bandit; with factors, the arms of the last two work in d_u dimensions, and a rank or size is at most
that); seed breaks ties and draws; dtype "float32" halves memory. Ranges and errors: see the parts of each.
"""

from collections.abc import Callable
from typing import Any

from onepass.bandit.arms import ArmBandit
from onepass.bandit.build import Bandit
from onepass.bandit.models import Disjoint, Hybrid
from onepass.bandit.shared import SharedBandit
from onepass.design.design import Design
from onepass.design.dyadic import Dyadic
from onepass.design.exact import Exact
from onepass.design.frequent_directions import FrequentDirections
from onepass.design.projector_splitting import ProjectorSplitting
from onepass.estimator.adaptive_huber import AdaptiveHuber
from onepass.estimator.estimator import Estimator
from onepass.estimator.heavy_tails import RADIUS
from onepass.estimator.median_of_means import MedianOfMeans
from onepass.estimator.one_pass_huber import OnePassHuber
from onepass.estimator.one_pass_median import OnePassMedian
from onepass.estimator.one_pass_truncation import OnePassTruncation
from onepass.estimator.ridge import Ridge
from onepass.estimator.truncated_ridge import TruncatedRidge
from onepass.exploration import UCB, Exploration, Theory, Thompson
from onepass.features.factors import OuterProduct
from onepass.features.projection import GaussianProjection
from onepass.foundation import check

Dim = int | tuple[int, int]
Explore = float | Theory


def _compose(
    name: str,
    dim: Dim,
    make: Callable[[int, int], Design],
    exploration: Explore,
    parameters: str,
    seed: int,
    *,
    thompson: bool = False,
    features: Any = None,
    estimate: Callable[[Design], Estimator] = Ridge,
) -> SharedBandit | ArmBandit:
    """make(dim, most): the design for rows of width dim, with a rank or size of at most `most`; estimate: what is
    learned on it."""
    check.choice(
        "parameters", parameters, ("shared", "disjoint", "hybrid") if estimate is Ridge else ("shared", "disjoint")
    )
    unlimited = 2**62
    if isinstance(dim, tuple):
        if len(dim) != 2:
            raise ValueError(f"dim must be a width, or the widths (d_u, d_a) of two factors, got {dim!r}")
        features = OuterProduct(left=dim[0], right=dim[1])
        full, own = (features.dim, unlimited), (features.left, features.left)
    else:
        full = own = (dim, unlimited)
    model: Any
    if parameters == "shared":
        model = estimate(make(*full))
    elif parameters == "disjoint":
        model = Disjoint(estimate(make(*own)))
    else:
        model = Hybrid(shared=estimate(make(*full)), arms=estimate(make(*own)))  # type: ignore[arg-type]  # it checks
    rule: Exploration = Thompson(exploration) if thompson else UCB(exploration)
    return Bandit(model, rule, features=features, seed=seed, name=name)


def _exact(reg: float, dtype: str) -> Callable[[int, int], Design]:
    return lambda dim, most: Exact(dim=dim, reg=reg, dtype=dtype)


def _sketch(size: int, reg: float, dtype: str, compensation: float = 0.0) -> Callable[[int, int], Design]:
    return lambda dim, most: FrequentDirections(
        dim=dim, size=min(size, most), reg=reg, compensation=compensation, dtype=dtype
    )


def OFUL(
    *,
    dim: Dim,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    parameters: str = "shared",
    seed: int = 0,
    dtype: str = "float64",
) -> SharedBandit | ArmBandit:
    """Exact design, UCB (Abbasi-Yadkori, Pal and Szepesvari 2011). O(dim^2) a round."""
    return _compose("OFUL", dim, _exact(reg, dtype), exploration, parameters, seed)


def LinUCB(
    *,
    dim: Dim,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    parameters: str = "shared",
    seed: int = 0,
    dtype: str = "float64",
) -> SharedBandit | ArmBandit:
    """Exact design, UCB with a constant width (Li, Chu, Langford and Schapire 2010). The same algorithm as OFUL.

    "disjoint" and "hybrid" are the paper's algorithms 1 and 2.
    """
    return _compose("LinUCB", dim, _exact(reg, dtype), exploration, parameters, seed)


def LinTS(
    *,
    dim: Dim,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    parameters: str = "shared",
    seed: int = 0,
    dtype: str = "float64",
) -> SharedBandit | ArmBandit:
    """Exact design, Thompson sampling (Agrawal and Goyal 2013). O(dim^2) a round."""
    return _compose("LinTS", dim, _exact(reg, dtype), exploration, parameters, seed, thompson=True)


def SOFUL(
    *,
    dim: Dim,
    size: int,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    thompson: bool = False,
    parameters: str = "shared",
    seed: int = 0,
    dtype: str = "float64",
) -> SharedBandit | ArmBandit:
    """Frequent Directions, UCB or Thompson sampling (Kuzborskij, Cella and Cesa-Bianchi 2019). O(dim size) a round."""
    name = "SOFUL-TS" if thompson else "SOFUL"
    return _compose(name, dim, _sketch(size, reg, dtype), exploration, parameters, seed, thompson=thompson)


def CBSCFD(
    *,
    dim: Dim,
    size: int,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    compensation: float = 1.0,
    parameters: str = "shared",
    seed: int = 0,
    dtype: str = "float64",
) -> SharedBandit | ArmBandit:
    """Robust Frequent Directions, UCB (Chen, Luo, Zhang, Yu and Lian 2020). O(dim size) a round."""
    return _compose("CBSCFD", dim, _sketch(size, reg, dtype, compensation), exploration, parameters, seed)


def CBRAP(
    *,
    dim: int,
    size: int,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    parameters: str = "shared",
    seed: int = 0,
    dtype: str = "float64",
) -> SharedBandit | ArmBandit:
    """Gaussian projection to `size` dimensions, exact design there, UCB (Yu, Lyu and King 2017).

    O(dim size + size^2) a round. The projection is drawn from `seed`. dim: a width; factors are not taken.
    """
    features = GaussianProjection(dim=dim, size=size, seed=seed)

    def design(d: int, most: int) -> Design:
        return Exact(dim=size, reg=reg, dtype=dtype)

    return _compose("CBRAP", dim, design, exploration, parameters, seed, features=features)


def DBSLinUCB(
    *,
    dim: Dim,
    size: int,
    error: float,
    base: str = "fd",
    reg: float = 1.0,
    exploration: Explore = 0.1,
    parameters: str = "shared",
    seed: int = 0,
    dtype: str = "float64",
) -> SharedBandit | ArmBandit:
    """Dyadic blocks over FD or robust FD, UCB (Wen, Yin et al.). The sketch grows until ||A - A_hat|| <= 2 error."""

    def design(d: int, most: int) -> Design:
        return Dyadic(dim=d, size=min(size, most), error=error, reg=reg, base=base, dtype=dtype)

    name = "DBSLinUCB" if base == "fd" else "DBSLinUCB-RFD"
    return _compose(name, dim, design, exploration, parameters, seed)


def PSILinUCB(
    *,
    dim: Dim,
    rank: int,
    compensate: bool = False,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    parameters: str = "shared",
    seed: int = 0,
    dtype: str = "float64",
) -> SharedBandit | ArmBandit:
    """Projector splitting, UCB (Shustova et al.). O(dim rank) a round; reg must be of the order of the spectrum."""

    def design(d: int, most: int) -> Design:
        return ProjectorSplitting(dim=d, rank=min(rank, most), reg=reg, compensate=compensate, dtype=dtype)

    return _compose("PSILinUCB", dim, design, exploration, parameters, seed)


def _given(design: Design | None, reg: float | None, dtype: str | None) -> Callable[[int, int], Design]:
    """The design that was given, which has a reg and a dtype of its own, or an exact one with these."""
    if design is None:
        return _exact(1.0 if reg is None else reg, "float64" if dtype is None else dtype)
    for name, value in (("reg", reg), ("dtype", dtype)):
        if value is not None:
            raise ValueError(f"{name} must be None beside a design, which has its own, got {value!r}")
    if not isinstance(design, Design):
        raise ValueError(f"design must be a design such as FrequentDirections(dim=500, size=50), got {design!r}")

    def make(dim: int, most: int) -> Design:
        if design.dim != dim:
            raise ValueError(f"design must have dim={dim}, as wide as the rows that are learned, got {design!r}")
        return design

    return make


def _theory(exploration: Explore) -> Theory | None:
    return exploration if isinstance(exploration, Theory) else None


def _robust(exploration: Explore) -> dict[str, Any]:
    """What the exploration tells a Huber estimator: the theorem's constants, or the practical radius."""
    if isinstance(exploration, Theory):
        return {"theory": exploration}
    return {"radius": abs(check.real("exploration", exploration, "use a number or onepass.Theory(...)"))}


def HvtUCB(
    *,
    dim: Dim,
    epsilon: float = 1.0,
    nu: float | None = None,
    horizon: int | None = None,
    design: Design | None = None,
    reg: float | None = None,
    exploration: Explore = RADIUS,
    clip: float | None = None,
    floor: float | None = None,
    step: float | None = None,
    parameter_bound: float | None = None,
    parameters: str = "shared",
    seed: int = 0,
    dtype: str | None = None,
) -> SharedBandit | ArmBandit:
    """One-pass Huber regression, UCB, for heavy-tailed rewards (Wang et al. 2025). O(1) designs' work a round.

    nu: the typical size of the noise, None: estimated; design: any (a sketch makes it O(dim size)), None: Exact, for
    which reg (1.0) and dtype ("float64") may be given. Rows are divided by nu and reg is not: 1 suits theta of the
    order of 1, and rewards c times as large want reg / c^2. exploration and clip are two scales, of the radius (and, by
    its size, of sigma's guard) and of the threshold, whose defaults were chosen on validation seeds;
    exploration=Theory(...) takes the paper's radius, threshold, step and ball (proved with a horizon and nu), and
    parameter_bound must be None beside it. horizon must be None for models per arm.
    """

    def estimate(design: Design) -> Estimator:
        return OnePassHuber(
            design, epsilon=epsilon, nu=nu, horizon=horizon, clip=clip, floor=floor, step=step,
            parameter_bound=parameter_bound, **_robust(exploration),
        )  # fmt: skip

    make = _given(design, reg, dtype)
    return _compose("HvtUCB", dim, make, exploration, parameters, seed, estimate=estimate)


def HeavyOFUL(
    *,
    dim: Dim,
    epsilon: float = 1.0,
    nu: float | None = None,
    horizon: int | None = None,
    reg: float = 1.0,
    exploration: Explore = RADIUS,
    clip: float | None = None,
    floor: float | None = None,
    parameter_bound: float | None = None,
    parameters: str = "shared",
    seed: int = 0,
    dtype: str = "float64",
) -> SharedBandit | ArmBandit:
    """Adaptive Huber regression over the whole history, UCB (Huang et al. 2023). O(t dim) a round: to compare with."""

    def estimate(design: Design) -> Estimator:
        assert isinstance(design, Exact)
        return AdaptiveHuber(
            design, epsilon=epsilon, nu=nu, horizon=horizon, clip=clip, floor=floor, parameter_bound=parameter_bound,
            **_robust(exploration),
        )  # fmt: skip

    return _compose("HeavyOFUL", dim, _exact(reg, dtype), exploration, parameters, seed, estimate=estimate)


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
    parameters: str = "shared",
    seed: int = 0,
    dtype: str | None = None,
) -> SharedBandit | ArmBandit:
    """One-pass truncation, UCB (after Xue et al. 2023: see the estimator for our reading).

    moment bounds E|r|^(1 + epsilon) of the rewards themselves.
    """

    def estimate(design: Design) -> Estimator:
        return OnePassTruncation(
            design, epsilon=epsilon, moment=moment, horizon=horizon, clip=clip, parameter_bound=parameter_bound
        )

    make = _given(design, reg, dtype)
    return _compose("CRTM", dim, make, exploration, parameters, seed, estimate=estimate)


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
) -> SharedBandit | ArmBandit:
    """Mean of medians in one pass, UCB (after Xue et al. 2023), for fixed arms, each played `repeats` times in a row.

    repeats: None for the paper's O(log horizon).
    """

    def estimate(design: Design) -> Estimator:
        return OnePassMedian(design, horizon=horizon, repeats=repeats, parameter_bound=parameter_bound)

    make = _given(design, reg, dtype)
    return _compose("CRMM", dim, make, exploration, "shared", seed, estimate=estimate)


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
) -> SharedBandit | ArmBandit:
    """Median of means, UCB (Shao et al. 2018), for fixed arms: each is played `repeats` times in a row.

    repeats: None for the paper's O(log horizon), fewer than which prove no radius; moment bounds E|eta|^(1 + epsilon),
    for Theory.
    """

    def estimate(design: Design) -> Estimator:
        return MedianOfMeans(
            design, epsilon=epsilon, moment=moment, horizon=horizon, repeats=repeats, theory=_theory(exploration)
        )

    return _compose("MENU", dim, _given(design, reg, dtype), exploration, "shared", seed, estimate=estimate)


def TOFU(
    *,
    dim: Dim,
    epsilon: float = 1.0,
    moment: float = 1.0,
    horizon: int | None = None,
    reg: float = 1.0,
    exploration: Explore = 1.0,
    clip: float = 1.0,
    parameters: str = "shared",
    seed: int = 0,
    dtype: str = "float64",
) -> SharedBandit | ArmBandit:
    """Truncation in whitened coordinates over the whole history, UCB (Shao et al. 2018). O(t dim^2) a round."""

    def estimate(design: Design) -> Estimator:
        assert isinstance(design, Exact)
        return TruncatedRidge(
            design, epsilon=epsilon, moment=moment, horizon=horizon, clip=clip, theory=_theory(exploration)
        )

    return _compose("TOFU", dim, _exact(reg, dtype), exploration, parameters, seed, estimate=estimate)
