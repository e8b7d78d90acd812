"""Worlds with a state: identification and control of linear systems, and linear Markov decision processes."""

from typing import TYPE_CHECKING

from onepass.foundation.lazy_names import make_lazy

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

__getattr__, __dir__ = make_lazy(__name__, _MODULES)
