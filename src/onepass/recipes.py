"""The papers' names as short compositions. All keyword-only; all return a `Bandit`.

reg > 0 is the regularization lambda; exploration is a number (the constant that practitioners tune) or `Theory`;
seed breaks ties and draws; dtype "float32" halves memory. Ranges and errors: see the parts that each one is made of.
"""

from onepass.bandit import Bandit
from onepass.design.dyadic import Dyadic
from onepass.design.exact import Exact
from onepass.design.frequent_directions import FrequentDirections
from onepass.design.projector_splitting import ProjectorSplitting
from onepass.estimator.ridge import Ridge
from onepass.exploration import UCB, Exploration, Theory, Thompson
from onepass.features.projection import GaussianProjection

Explore = float | Theory


def _rule(exploration: Explore, thompson: bool = False) -> Exploration:
    return Thompson(exploration) if thompson else UCB(exploration)


def OFUL(*, dim: int, reg: float = 1.0, exploration: Explore = 0.1, seed: int = 0, dtype: str = "float64") -> Bandit:
    """Exact design, UCB (Abbasi-Yadkori, Pal and Szepesvari 2011). O(dim^2) a round."""
    return Bandit(Ridge(Exact(dim=dim, reg=reg, dtype=dtype)), _rule(exploration), seed=seed, name="OFUL")


def LinUCB(*, dim: int, reg: float = 1.0, exploration: Explore = 0.1, seed: int = 0, dtype: str = "float64") -> Bandit:
    """Exact design, UCB with a constant width (Li, Chu, Langford and Schapire 2010). The same algorithm as OFUL."""
    return Bandit(Ridge(Exact(dim=dim, reg=reg, dtype=dtype)), _rule(exploration), seed=seed, name="LinUCB")


def LinTS(*, dim: int, reg: float = 1.0, exploration: Explore = 0.1, seed: int = 0, dtype: str = "float64") -> Bandit:
    """Exact design, Thompson sampling (Agrawal and Goyal 2013). O(dim^2) a round."""
    return Bandit(Ridge(Exact(dim=dim, reg=reg, dtype=dtype)), _rule(exploration, True), seed=seed, name="LinTS")


def SOFUL(
    *,
    dim: int,
    size: int,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    thompson: bool = False,
    seed: int = 0,
    dtype: str = "float64",
) -> Bandit:
    """Frequent Directions, UCB or Thompson sampling (Kuzborskij, Cella and Cesa-Bianchi 2019). O(dim size) a round."""
    design = FrequentDirections(dim=dim, size=size, reg=reg, dtype=dtype)
    name = "SOFUL-TS" if thompson else "SOFUL"
    return Bandit(Ridge(design), _rule(exploration, thompson), seed=seed, name=name)


def CBSCFD(
    *,
    dim: int,
    size: int,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    compensation: float = 1.0,
    seed: int = 0,
    dtype: str = "float64",
) -> Bandit:
    """Robust Frequent Directions, UCB (Chen, Luo, Zhang, Yu and Lian 2020). O(dim size) a round."""
    design = FrequentDirections(dim=dim, size=size, reg=reg, compensation=compensation, dtype=dtype)
    return Bandit(Ridge(design), _rule(exploration), seed=seed, name="CBSCFD")


def CBRAP(
    *, dim: int, size: int, reg: float = 1.0, exploration: Explore = 0.1, seed: int = 0, dtype: str = "float64"
) -> Bandit:
    """Gaussian projection to `size` dimensions, exact design there, UCB (Yu, Lyu and King 2017).

    O(dim size + size^2) a round. The projection is drawn from `seed`.
    """
    features = GaussianProjection(dim=dim, size=size, seed=seed)
    design = Exact(dim=size, reg=reg, dtype=dtype)
    return Bandit(Ridge(design), _rule(exploration), features=features, seed=seed, name="CBRAP")


def DBSLinUCB(
    *,
    dim: int,
    size: int,
    error: float,
    base: str = "fd",
    reg: float = 1.0,
    exploration: Explore = 0.1,
    seed: int = 0,
    dtype: str = "float64",
) -> Bandit:
    """Dyadic blocks over FD or robust FD, UCB (P0, Wen et al.). The sketch grows until ||A - A_hat|| <= 2 error."""
    design = Dyadic(dim=dim, size=size, error=error, reg=reg, base=base, dtype=dtype)
    name = "DBSLinUCB" if base == "fd" else "DBSLinUCB-RFD"
    return Bandit(Ridge(design), _rule(exploration), seed=seed, name=name)


def PSILinUCB(
    *,
    dim: int,
    rank: int,
    compensate: bool = False,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    seed: int = 0,
    dtype: str = "float64",
) -> Bandit:
    """Projector splitting, UCB (P3, Shustova et al.). O(dim rank) a round; reg must be of the order of the spectrum."""
    design = ProjectorSplitting(dim=dim, rank=rank, reg=reg, compensate=compensate, dtype=dtype)
    return Bandit(Ridge(design), _rule(exploration), seed=seed, name="PSILinUCB")
