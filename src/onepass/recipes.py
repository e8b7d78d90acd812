"""The papers' names as short compositions. All keyword-only; all return a `Bandit`.

dim: width of a context, or (d_u, d_a) for contexts given as `Outer` factors; reg > 0 is the regularization lambda;
exploration is a number (the constant that practitioners tune) or `Theory`; parameters: "shared", "disjoint" or "hybrid"
(see onepass.parameters; with factors, the arms of the last two work in d_u dimensions, and a rank or size is at most
that); seed breaks ties and draws; dtype "float32" halves memory. Ranges and errors: see the parts of each.
"""

from collections.abc import Callable
from typing import Any

from onepass import check
from onepass.bandit import Bandit
from onepass.design.design import Design
from onepass.design.dyadic import Dyadic
from onepass.design.exact import Exact
from onepass.design.frequent_directions import FrequentDirections
from onepass.design.projector_splitting import ProjectorSplitting
from onepass.estimator.ridge import Ridge
from onepass.exploration import UCB, Exploration, Theory, Thompson
from onepass.features.factors import OuterProduct
from onepass.features.projection import GaussianProjection
from onepass.parameters.models import Disjoint, Hybrid

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
) -> Bandit:
    """make(dim, most): the design for rows of width dim, with a rank or size of at most `most`."""
    check.choice("parameters", parameters, ("shared", "disjoint", "hybrid"))
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
        model = Ridge(make(*full))
    elif parameters == "disjoint":
        model = Disjoint(Ridge(make(*own)))
    else:
        model = Hybrid(shared=Ridge(make(*full)), arms=Ridge(make(*own)))
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
) -> Bandit:
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
) -> Bandit:
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
) -> Bandit:
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
) -> Bandit:
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
) -> Bandit:
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
) -> Bandit:
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
) -> Bandit:
    """Dyadic blocks over FD or robust FD, UCB (P0, Wen et al.). The sketch grows until ||A - A_hat|| <= 2 error."""

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
) -> Bandit:
    """Projector splitting, UCB (P3, Shustova et al.). O(dim rank) a round; reg must be of the order of the spectrum."""

    def design(d: int, most: int) -> Design:
        return ProjectorSplitting(dim=d, rank=min(rank, most), reg=reg, compensate=compensate, dtype=dtype)

    return _compose("PSILinUCB", dim, design, exploration, parameters, seed)
