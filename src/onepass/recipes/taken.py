"""A model per item from what was taken: ItemModels."""

from typing import Any

from onepass.bandit.bandit import Bandit
from onepass.design.exact import Exact
from onepass.estimator.ridge import Ridge
from onepass.exploration.exploration import Exploration
from onepass.exploration.ucb import UCB
from onepass.features.concatenate import Concatenate
from onepass.features.intercept import Intercept
from onepass.features.unit_length import UnitLength
from onepass.foundation import check
from onepass.model.arms.per_arm import Disjoint
from onepass.recipes.compose import Explore

TASTE = 2.0  # of 1, 2 and 4 on ten sets (docs/recommender.md): at 4 likeness drowns numbers where tastes say little
HALF = 15_000.0  # rows: what is popular changes; of none, 15,000 and 30,000
COUNTING = 1000.0  # rows until which a mean is nearly a count; 300 and 3,000 are alike


def ItemModels(
    *,
    dim: int,
    similarity_weight: float = TASTE,
    reg: float = COUNTING,
    exploration: Explore = 0.0,
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = HALF,
) -> Bandit:
    """A ridge regression per item on z = (1, similarity_weight x / ||x||), for logs that
    say what was taken and nothing of what was not: purchases, films seen, ratings given.

    Where every reward is near 1, ridge regression at a small reg says 1 of every item that it knows, taken twice or
    two thousand times. At a large one theta^T z is nearly sum of r_s z_s^T z / reg over those who took the item: how
    many they were, and similarity_weight^2 times the cosine between each of them and who is asked for. Who is a
    stranger is the row 0, and is shown what most have taken. O(dim^2) an item.

    dim: width of a user's row x, at least 1; its length does not count.
    similarity_weight: what likeness counts beside number, above 0 (default 2.0).
    reg: lambda of A = reg I + sum of z z^T, above 0 (default 1000.0).
    exploration: beta, a number (default 0.0; below 0 is pessimism), or a rule, such as `InverseGap()`.
    seed: at least 0 (default 0); breaks ties.
    dtype: "float64" (default) or "float32", which halves the memory.
    half_life: after how many rounds, or after which time (a timedelta; `learn` and `decide` are then told the `time`)
        a row counts half (default 15000.0 rows; some ten rows an item where there are many thousands of items); None:
        nothing is forgotten, and models are kept in less memory.
    Returns a `Bandit`. ValueError for arguments out of range.

    >>> import onepass as op
    >>> bandit = op.ItemModels(dim=2)
    >>> bandit.learn([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 5.0]], [1.0] * 4, ["a", "b", "b", "b"])
    >>> bandit.recommend([[9.0, 0.0], [0.0, 0.0]], k=1, exclude=[["b"], []]).arms
    [['a'], ['b']]
    """
    features = Concatenate(
        Intercept(dim=dim), UnitLength(dim=dim, length=check.positive("similarity_weight", similarity_weight))
    )
    model = Disjoint(Ridge(Exact(dim=features.output_dim, reg=reg, dtype=dtype)))
    rule = exploration if isinstance(exploration, Exploration) else UCB(exploration)
    return Bandit(model, rule, features=features, seed=seed, name="ItemModels", half_life=half_life)
