"""Warning, once for each bandit, that a sketch has lost so much that its means cannot be trusted.

The check runs when 64, 128, 256, ... rows have been learned, so other rows cost only a comparison of integers. It
covers only ridge regression, whose moment b still contains the rows that the sketch has lost (design/loss.py).
"""

import warnings
from typing import Any

FIRST = 64  # rows before the first look
MOST = 100.0  # ridges that may be lost
NEVER = 2**63  # rows


class SketchWarning(UserWarning):
    """Warning that a sketch is too small for its `reg`, so scores may be far too large.

    It is given once for each bandit. Any of these helps: a larger sketch, a larger `reg`, an exact design,
    `estimator="newton"`, or a sketch that adds what it cuts off to `reg` (`CBSCFD`, `PSILinUCB(compensate=True)`,
    `DBSLinUCB(base="rfd")`). To learn silently, call `warnings.simplefilter("ignore", onepass.SketchWarning)`.
    """


def next_look(model: Any, name: str, due: int) -> int:
    """Warn if a sketch of the model has cut off more than 100 times its ridge, and return the time of the next check.

    Times are numbers of rows learned. `due` is the time at which this check was due. The result is `due` doubled until
    it exceeds the present number of rows, or `NEVER` after a warning. `name` is the bandit's name.
    """
    while due <= model.n_learned:
        due *= 2
    found = model.sketch_loss()
    if found is None or not found[0] > MOST:
        return due
    warnings.warn(
        f"{name}: a sketch has cut over {MOST:g} times its ridge (reg={found[1]:g}) by row "
        f"{2 ** (model.n_learned.bit_length() - 1)}, and means of ridge regression on it may be far too large; "
        "take a larger size or reg, a design that puts back what it cuts, or estimator='newton'",
        SketchWarning,
        stacklevel=4,
    )
    return NEVER
