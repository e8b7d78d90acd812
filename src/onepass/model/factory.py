"""The model for an estimator, one for all arms, or for models per arm."""

from typing import Any

from onepass.estimator.estimator import Estimator
from onepass.foundation.check import quote
from onepass.model.arms.arm_models import ArmModels
from onepass.model.arms.per_arm import Disjoint, Hybrid
from onepass.model.contract import Model
from onepass.model.shared import SharedModel


def make_model(given: Any, features: Any = None, half_life: Any = None) -> Model:
    """Return `SharedModel` of an estimator, `ArmModels` of `Disjoint` or `Hybrid`, or a model as it is.

    features, half_life: of a model that is made. ValueError for anything else, and for these beside a model.
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
