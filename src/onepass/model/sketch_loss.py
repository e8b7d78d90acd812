"""Loss of a sketch, for the warning that its means cannot be trusted any more."""

from typing import Any

from onepass.design.loss import relative_loss
from onepass.estimator.ridge import Ridge


def sketch_loss(estimator: Any, design: Any) -> tuple[float, float] | None:
    """Return how much a sketch has cut off, in units of its ridge, and the ridge.

    Returns None if it does not matter: only ridge regression has a moment that still contains what the sketch has lost
    (design/loss.py).
    """
    if not isinstance(estimator, Ridge):
        return None
    reg = float(estimator.design.reg)
    return relative_loss(design, reg), reg
