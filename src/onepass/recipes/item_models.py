"""Ridge regressions of items for logs of taken items: ItemModels."""

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

TASTE = 2.0  # of 1, 2 and 4 on ten sets (docs/item_models_weight.md): 4 drowns counts where tastes say little
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
    """Make a bandit with a ridge regression for each item on z = (1, similarity_weight x / ||x||).

    It is for logs of what users took, such as purchases or ratings, that do not say what users saw and did not take. In
    such a log every reward is near 1. With a small reg, ridge regression predicts about 1 for every known item, however
    often it was taken. With a large reg, the mean of an item is nearly proportional to a sum over the users who took
    it: each counts 1, plus similarity_weight^2 times the cosine of its row with the row of the present user. A row of
    zeros stands for an unknown user, who gets the items that most users took.

    Parameters
    ----------
    dim : int
        Number of features of a user's row x, at least 1. Rows are scaled to length 1.
    similarity_weight : float, default 2.0
        Weight of similarity between users beside the number of takers, above 0.
    reg : float, default 1000.0
        Ridge penalty of A = reg I + sum of z z^T, above 0.
    exploration : float, Theory or Exploration, default 0.0
        A number is beta in score = mean + beta * width. The width is the standard error of the mean, divided by the
        standard deviation of the noise. Below 0 the bandit avoids arms of which it knows little. `Theory` takes the
        multiplier for which the regret is proved. Any other rule, such as `InverseGap()`, replaces the recipe's own.
    seed : int, default 0
        Seed, at least 0, of the draws that break ties.
    dtype : {"float64", "float32"}, default "float64"
        "float32" halves the memory.
    half_life : float or timedelta, default 15000.0
        Number of rows, or time, after which a row counts half, above 0. With a timedelta, `learn` and `decide` need the
        argument `time`. With many thousands of items, about ten rows for each item are a good half-life. None forgets
        nothing, and models then take less memory. The default forgets too fast on a large log: on a million rows it
        lost 40% of the hits, and learning took 50 times as long as with None. Pass None or a timedelta there.

    Returns
    -------
    Bandit
        The bandit, which has learned nothing yet.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    An item costs O(dim^2) numbers of memory.

    Examples
    --------
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
