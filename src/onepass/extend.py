"""Base classes and decorators for designs, estimators, rules, feature maps, kernels and models of your own."""

from onepass.design.design import Design
from onepass.estimator.estimator import Estimator
from onepass.exploration.exploration import Exploration
from onepass.features.feature_map import FeatureMap
from onepass.features.kernels import Kernel
from onepass.foundation.registry import register_lazy, savable
from onepass.model.contract import Model

__all__ = [
    "Design",
    "Estimator",
    "Exploration",
    "FeatureMap",
    "Kernel",
    "Model",
    "register_lazy",
    "savable",
]
