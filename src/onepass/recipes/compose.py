"""Composition of the bandit of a recipe from its design, its estimator and its exploration rule."""

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
ESTIMATORS: dict[str, Callable[[Design], Estimator]] = {"ridge": Ridge, "newton": OnlineNewton}


def least_squares_estimator(estimator: str) -> Callable[[Design], Estimator]:
    """Return the class of the estimator named "ridge" or "newton". Raises ValueError for another name."""
    return ESTIMATORS[check.choice("estimator", estimator, tuple(ESTIMATORS))]


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
    compact: bool | None = None,
) -> Bandit:
    """Compose the bandit of a recipe.

    With factors u and v, the models of arms work in d_u dimensions, the length of u, and their rank or size is at most
    d_u. In "hybrid" models the shared part learns by `estimate`, and the arms by ridge regression.

    Parameters
    ----------
    name : str
        Name shown by repr.
    dim : int or (int, int)
        Width of a context, or the widths of two factors, at least 1.
    make : callable
        Function (width, largest rank or size) -> design.
    exploration : float, Theory or Exploration
        Multiplier of the recipe's own rule, or another rule.
    model : {"shared", "disjoint", "hybrid"}
        "shared" is one model for all arms, "disjoint" one for each arm, and "hybrid" both.
    seed : int
        Seed of the bandit, at least 0.
    thompson : bool, default False
        Sample theta if `exploration` is a number, instead of adding the width.
    features : FeatureMap, default None
        Feature map of contexts; none if `dim` is a pair.
    estimate : callable, default Ridge
        Function design -> estimator.
    half_life : float or timedelta, default None
        Number of rows, or time, after which a row counts half, above 0. None forgets nothing.
    compact : bool, default None
        True keeps the models of all arms in a few shared arrays. None does so if the estimator allows it.

    Returns
    -------
    Bandit
        The bandit, which has learned nothing yet.
    """
    kinds = ("shared", "disjoint", "hybrid") if estimate in ESTIMATORS.values() else ("shared", "disjoint")
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
        learner = Disjoint(estimate(make(*own)), compact=compact)
    else:
        shared: Any = estimate(make(*full))
        learner = Hybrid(shared=shared, arms=Ridge(make(*own)), compact=compact)
    rule = exploration
    if not isinstance(rule, Exploration):
        rule = SingleDrawThompson(rule) if thompson else UCB(rule)
    return Bandit(learner, rule, features=features, seed=seed, name=name, half_life=half_life)


def cap_size(name: str, value: Any, most: int) -> Any:
    """Return `value`, a rank or size of a design, reduced to `most` if it is larger.

    `name` is the argument that an error names. The design checks the rest of the range.
    """
    return value if most == UNLIMITED else min(check.integer(name, value, 1), most)


def exact_factory(reg: float, dtype: str) -> Make:
    """Return a function that makes an exact design with this `reg` and `dtype`.

    Its arguments are the width of the rows and the largest size of a sketch, which an exact design ignores. `compose`
    takes the function as its argument `make`.
    """
    return lambda dim, most: Exact(dim=dim, reg=reg, dtype=dtype)


def design_factory(design: Design | None, reg: float | None, dtype: str | None) -> Make:
    """Return a function that makes a design, for `compose`.

    Its arguments are the width of the rows and the largest size of a sketch. The function returns `design`, or an exact
    design with `reg` and `dtype` if `design` is None.
    """
    if design is None:
        return exact_factory(1.0 if reg is None else reg, "float64" if dtype is None else dtype)
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
    """Compose the bandit of an estimator that works only as one model for all arms.

    `make` makes the design, and `estimate` the estimator on a design; `name` is the recipe's name for errors. `dim`,
    `exploration`, `seed` and `half_life` are arguments of the recipe.
    """
    return compose(name, dim, make, exploration, "shared", seed, estimate=estimate, half_life=half_life)
