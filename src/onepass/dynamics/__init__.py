"""Worlds with a state: identification and control of linear systems, and linear Markov decision processes."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onepass.dynamics.system_identification import Ellipsoid as Ellipsoid
    from onepass.dynamics.system_identification import SystemIdentification as SystemIdentification

__all__ = ["Ellipsoid", "SystemIdentification"]

_MODULES = {
    "Ellipsoid": "onepass.dynamics.system_identification",
    "SystemIdentification": "onepass.dynamics.system_identification",
}


def __getattr__(name: str) -> Any:
    """Import a class when it is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value
