"""One design for all items, for logs of taken items: ItemHeads."""

from typing import Any

from onepass.bandit.bandit import Bandit
from onepass.design.design import Design
from onepass.design.exact import Exact
from onepass.exploration.exploration import Exploration
from onepass.exploration.ucb import UCB
from onepass.features.concatenate import Concatenate
from onepass.features.intercept import Intercept
from onepass.features.unit_length import UnitLength
from onepass.foundation.check import quote
from onepass.model.heads.arm_heads import ArmHeads
from onepass.recipes.compose import Explore

FEW = 10.0  # rows that a mean weighs against; 1 to 100 are alike on five logs


def ItemHeads(
    *,
    dim: int,
    reg: float = FEW,
    exploration: Explore = 0.0,
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
    design: Design | None = None,
) -> Bandit:
    """Make a bandit that predicts for every item how likely a user takes it, by one ridge regression for all items.

    The features are z = (1, x / ||x||). All items share the matrix A = reg I + sum of z z^T; an item has only a vector
    of its own.

    It is for logs that record the items that users took, but not those that they saw and did not take. Each row counts
    as a reward for the item that was taken, and as a 0 for every other item. An item's mean is the expected reward from
    it when somebody with the features x takes something. An unknown user is given as a row of zeros, and is shown what
    most users have taken.

    Parameters
    ----------
    dim : int
        Number of features of a user's row x, at least 1. Rows are scaled to length 1.
    reg : float, default 10.0
        Ridge penalty of A = reg I + sum of z z^T, above 0.
    exploration : float or Exploration, default 0.0
        A number is beta in score = mean + beta * width. The width is the standard error of the mean, divided by the
        standard deviation of the noise. Below 0 the bandit avoids arms of which it knows little. A rule such as
        `InverseGap()` replaces the recipe's own. `Theory` is refused, because no radius is known for this model.
    seed : int, default 0
        Seed, at least 0, of the draws that break ties.
    dtype : {"float64", "float32"}, default "float64"
        "float32" halves the memory.
    half_life : float or timedelta, default None
        Number of rows, or time, after which a row counts half, above 0. With a timedelta, `learn` and `decide` need
        the argument `time`. None forgets nothing.
    design : Design, default None
        Design of the dim + 1 numbers z, such as a sketch for wide rows; it has its own `reg` and `dtype`. None takes
        `Exact`.

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
    A row costs O(dim^2), and an item O(dim) numbers. `ItemModels` has a design for each item, O(dim^2) numbers.

    Examples
    --------
    >>> import onepass as op
    >>> bandit = op.ItemHeads(dim=2)
    >>> bandit.learn([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 5.0]], [1.0] * 4, ["a", "b", "b", "b"])
    >>> bandit.recommend([[9.0, 0.0], [0.0, 0.0]], k=1, exclude=[["b"], []]).arms
    [['a'], ['b']]
    """
    features = Concatenate(Intercept(dim=dim), UnitLength(dim=dim))
    if design is None:
        design = Exact(dim=features.output_dim, reg=reg, dtype=dtype)
    elif reg != FEW or dtype != "float64":
        raise ValueError(f"reg and dtype must be those of design, got design={quote(design)}")
    rule = exploration if isinstance(exploration, Exploration) else UCB(exploration)
    return Bandit(ArmHeads(design, features, half_life), rule, seed=seed, name="ItemHeads")
