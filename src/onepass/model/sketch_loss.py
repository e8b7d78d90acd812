"""What a sketch has lost, for a warning where its means cannot be trusted any more."""

from typing import Any

from onepass.design.loss import relative_loss
from onepass.estimator.ridge import Ridge


def sketch_loss(estimator: Any, design: Any) -> tuple[float, float] | None:
    """Return what the sketch of a design has cut, in units of its ridge, and that ridge; None where it is not known.

    Only ridge regression is meant, whose b holds what the sketch has lost (design/loss.py).
    """
    if not isinstance(estimator, Ridge):
        return None
    reg = float(estimator.design.params["reg"])
    return relative_loss(design, reg), reg
