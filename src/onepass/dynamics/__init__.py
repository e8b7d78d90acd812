"""Worlds with a state: identification and control of linear systems, and linear Markov decision processes."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onepass.dynamics.adaptive_lqr import AdaptiveLQR as AdaptiveLQR
    from onepass.dynamics.system_identification import Ellipsoid as Ellipsoid
    from onepass.dynamics.system_identification import SystemIdentification as SystemIdentification
    from onepass.dynamics.value_iteration import OptimisticValueIteration as OptimisticValueIteration

__all__ = ["AdaptiveLQR", "Ellipsoid", "OptimisticValueIteration", "SystemIdentification"]

_MODULES = {
    "AdaptiveLQR": "onepass.dynamics.adaptive_lqr",
    "Ellipsoid": "onepass.dynamics.system_identification",
    "OptimisticValueIteration": "onepass.dynamics.value_iteration",
    "SystemIdentification": "onepass.dynamics.system_identification",
}


def __getattr__(name: str) -> Any:
    """Import a class when it is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value
