"""How a recipe becomes a bandit: designs for the widths that its parameters have, an estimator on each, a rule."""

from collections.abc import Callable
from typing import Any

from onepass.bandit.bandit import Bandit
from onepass.design.design import Design
from onepass.design.exact import Exact
from onepass.estimator.estimator import Estimator
from onepass.estimator.online_newton import OnlineNewton
from onepass.estimator.ridge import Ridge
from onepass.exploration.confidence_width import Theory
from onepass.exploration.exploration import Exploration
from onepass.exploration.thompson import SingleDrawThompson
from onepass.exploration.ucb import UCB
from onepass.features.outer_product import OuterProduct
from onepass.foundation import check
from onepass.foundation.check import quote
from onepass.model.arms.per_arm import Disjoint, Hybrid

Dim = int | tuple[int, int]  # a width, or those of two factors
Explore = float | Theory | Exploration  # beta of the recipe's own rule, or another rule
Make = Callable[[int, int], Design]  # the design for rows of a width, with a rank or size of at most the second number

UNLIMITED = 2**62
LEAST_SQUARES: dict[str, Callable[[Design], Estimator]] = {"ridge": Ridge, "newton": OnlineNewton}


def least_squares(estimator: str) -> Callable[[Design], Estimator]:
    """Ridge regression or Newton steps; ValueError for anything else."""
    return LEAST_SQUARES[check.choice("estimator", estimator, tuple(LEAST_SQUARES))]


def compose(
    name: str,
    dim: Dim,
    make: Make,
    exploration: Explore,
    model: str,
    seed: int,
    *,
    thompson: bool = False,
    features: Any = None,
    estimate: Callable[[Design], Estimator] = Ridge,
    half_life: Any = None,
) -> Bandit:
    """The bandit of that name. estimate: what is learned on a design; the others as in every recipe.

    With factors the arms of "disjoint" and "hybrid" work in d_u dimensions, and a rank or size is at most that. Of
    "hybrid" the shared part learns by `estimate`, and the arms by ridge regression.
    """
    kinds = ("shared", "disjoint", "hybrid") if estimate in LEAST_SQUARES.values() else ("shared", "disjoint")
    check.choice("model", model, kinds)
    if isinstance(dim, tuple):
        if len(dim) != 2:
            raise ValueError(f"dim must be a width, or the widths (d_u, d_a) of two factors, got {quote(dim)}")
        features = OuterProduct(left=dim[0], right=dim[1])
        full, own = (features.output_dim, UNLIMITED), (dim[0], dim[0])
    else:
        full = own = (dim, UNLIMITED)
    learner: Any
    if model == "shared":
        learner = estimate(make(*full))
    elif model == "disjoint":
        learner = Disjoint(estimate(make(*own)))
    else:
        shared: Any = estimate(make(*full))
        learner = Hybrid(shared=shared, arms=Ridge(make(*own)))
    rule = exploration
    if not isinstance(rule, Exploration):
        rule = SingleDrawThompson(rule) if thompson else UCB(rule)
    return Bandit(learner, rule, features=features, seed=seed, name=name, half_life=half_life)


def at_most(name: str, value: Any, most: int) -> Any:
    """A rank or size for designs that take no more than `most`; their own checks tell of values out of range."""
    return value if most == UNLIMITED else min(check.integer(name, value, 1), most)


def exact(reg: float, dtype: str) -> Make:
    """Exact designs."""
    return lambda dim, most: Exact(dim=dim, reg=reg, dtype=dtype)


def given(design: Design | None, reg: float | None, dtype: str | None) -> Make:
    """The design that was given, which has a reg and a dtype of its own, or an exact one with these."""
    if design is None:
        return exact(1.0 if reg is None else reg, "float64" if dtype is None else dtype)
    for name, value in (("reg", reg), ("dtype", dtype)):
        if value is not None:
            raise ValueError(f"{name} must be None beside a design, which has its own, got {quote(value)}")
    if not isinstance(design, Design):
        raise ValueError(f"design must be a design such as FrequentDirections(dim=500, size=50), got {quote(design)}")

    def make(dim: int, most: int) -> Design:
        if design.dim != dim:
            raise ValueError(f"design must have dim={dim}, as wide as the rows that are learned, got {quote(design)}")
        return design

    return make


def compose_shared(
    name: str,
    dim: Dim,
    make: Make,
    exploration: Explore,
    seed: int,
    estimate: Callable[[Design], Estimator],
    half_life: Any = None,
) -> Bandit:
    """`compose` for estimators that serve one shared model only."""
    return compose(name, dim, make, exploration, "shared", seed, estimate=estimate, half_life=half_life)
