"""Models that a bandit decides with: one for all arms, one for each arm, interactions, averages, and kernels."""

from typing import TYPE_CHECKING

from onepass.foundation.lazy_names import make_lazy

if TYPE_CHECKING:
    from onepass.model.arms.arm_model import ArmModel as ArmModel
    from onepass.model.arms.arm_models import ArmModels as ArmModels
    from onepass.model.auto import AutoModel as AutoModel
    from onepass.model.averaged.averaged_models import AveragedModels as AveragedModels
    from onepass.model.contract import Model as Model
    from onepass.model.heads.arm_heads import ArmHeads as ArmHeads
    from onepass.model.interaction.interaction_model import InteractionModel as InteractionModel
    from onepass.model.interval.interval_model import IntervalModel as IntervalModel
    from onepass.model.kernel.budgeted import Budget as Budget
    from onepass.model.kernel.kernel_model import KernelModel as KernelModel
    from onepass.model.kernel.leverage import bkb_oversampling as bkb_oversampling
    from onepass.model.kernel.leverage import bkb_size_bound as bkb_size_bound
    from onepass.model.kernel.state import Posterior as Posterior
    from onepass.model.shared import SharedModel as SharedModel
    from onepass.model.warm_start import WarmStart as WarmStart

__all__ = [
    "ArmHeads",
    "ArmModel",
    "ArmModels",
    "AutoModel",
    "AveragedModels",
    "Budget",
    "InteractionModel",
    "IntervalModel",
    "KernelModel",
    "Model",
    "Posterior",
    "SharedModel",
    "WarmStart",
    "bkb_oversampling",
    "bkb_size_bound",
]

_MODULES = {
    "ArmHeads": "onepass.model.heads.arm_heads",
    "ArmModel": "onepass.model.arms.arm_model",
    "ArmModels": "onepass.model.arms.arm_models",
    "AutoModel": "onepass.model.auto",
    "AveragedModels": "onepass.model.averaged.averaged_models",
    "Budget": "onepass.model.kernel.budgeted",
    "InteractionModel": "onepass.model.interaction.interaction_model",
    "IntervalModel": "onepass.model.interval.interval_model",
    "KernelModel": "onepass.model.kernel.kernel_model",
    "Model": "onepass.model.contract",
    "Posterior": "onepass.model.kernel.state",
    "SharedModel": "onepass.model.shared",
    "WarmStart": "onepass.model.warm_start",
    "bkb_oversampling": "onepass.model.kernel.leverage",
    "bkb_size_bound": "onepass.model.kernel.leverage",
}

__getattr__, __dir__ = make_lazy(__name__, _MODULES)
