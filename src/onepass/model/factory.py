"""Choice of the model class: one model for all arms for an estimator, or models per arm."""

from typing import Any

from onepass.estimator.estimator import Estimator
from onepass.foundation.check import quote
from onepass.model.arms.arm_models import ArmModels
from onepass.model.arms.per_arm import Disjoint, Hybrid
from onepass.model.contract import Model
from onepass.model.shared import SharedModel


def make_model(given: Any, features: Any = None, half_life: Any = None) -> Model:
    """Return a `SharedModel` for an estimator, `ArmModels` for `Disjoint` or `Hybrid`, or a given model itself.

    `features` and `half_life` are passed to a model that is made here. Raises ValueError if they are given beside a
    model, and if `given` is something else.
    """
    if isinstance(given, Model):
        if features is not None or half_life is not None:
            raise ValueError("features and half_life must be None beside a model, which has its own")
        return given
    if isinstance(given, Disjoint | Hybrid):
        return ArmModels(given, features, half_life)
    if isinstance(given, Estimator):
        return SharedModel(given, features, half_life)
    raise ValueError(
        f"model must be an estimator such as Ridge(design), Disjoint, Hybrid or a model, got {quote(given)}"
    )
