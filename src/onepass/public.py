"""Everything that `onepass` names, imported at once; `onepass` itself imports it when the first name is asked for."""

from functools import partial
from typing import TYPE_CHECKING, Any

from onepass.bandit.bandit import Bandit
from onepass.bandit.budget import Budget, Share
from onepass.bandit.budgeted import Budgeted
from onepass.bandit.decision import Decision, Recommendation
from onepass.bandit.explanation import Explanation
from onepass.bandit.list_bandit import ListBandit
from onepass.bandit.pending_rewards import PendingRewards
from onepass.bandit.restart_on_change import RestartOnChange
from onepass.bandit.sketch_warning import SketchWarning
from onepass.bandit.snapshot import Snapshot
from onepass.design.dyadic import Dyadic
from onepass.design.exact import Exact
from onepass.design.frequent_directions import FrequentDirections, RobustFrequentDirections
from onepass.design.projector_splitting import ProjectorSplitting
from onepass.estimator.glb_omd import OnePassGLM
from onepass.estimator.one_pass_huber import OnePassHuber
from onepass.estimator.online_newton import OnlineNewton
from onepass.estimator.ridge import Ridge
from onepass.evaluation.guarded import Guarded
from onepass.evaluation.warm_start import warm_start
from onepass.exploration.confidence_width import Theory
from onepass.exploration.greedy import EpsilonGreedy, Greedy
from onepass.exploration.inverse_gap import InverseGap
from onepass.exploration.optimistic_gap import OptimisticGap
from onepass.exploration.softmax import Softmax
from onepass.exploration.thompson import SingleDrawThompson, Thompson
from onepass.exploration.top_two import TopTwo
from onepass.exploration.ucb import UCB
from onepass.features.kernels import RBF, Linear, Matern, Polynomial
from onepass.features.outer_product import Factors
from onepass.features.records import Records
from onepass.foundation.files import from_bytes, load, to_bytes
from onepass.foundation.merge import merge_all
from onepass.foundation.registry import register_lazy
from onepass.learner.kernel_newton import KernelNewton
from onepass.learner.learner import progressive_validation
from onepass.model.arms.per_arm import Disjoint, Hybrid
from onepass.model.interval.interval import Interval
from onepass.recipes import (
    BKB,
    CBRAP,
    CBSCFD,
    CRMM,
    CRTM,
    GLBOMD,
    GLOC,
    GPUCB,
    MENU,
    OFUL,
    SOFUL,
    TOFU,
    ContextualBandit,
    DBSLinUCB,
    HeavyOFUL,
    HvtUCB,
    InteractionBandit,
    ItemHeads,
    ItemModels,
    LinTS,
    LinUCB,
    PSILinUCB,
    WeightUCB,
)
from onepass.recommender.recommender import Recommender

if TYPE_CHECKING:
    from onepass.adapters.scikit_learn import OnlineKernelClassifier, OnlineKernelRegressor
    from onepass.evaluation.ab_test import ABTest

__all__ = [
    "BKB",
    "CBRAP",
    "CBSCFD",
    "CRMM",
    "CRTM",
    "GLBOMD",
    "GLOC",
    "GPUCB",
    "MENU",
    "OFUL",
    "RBF",
    "SOFUL",
    "TOFU",
    "UCB",
    "ABTest",
    "Bandit",
    "Budget",
    "Budgeted",
    "ContextualBandit",
    "DBSLinUCB",
    "Decision",
    "Disjoint",
    "Dyadic",
    "EpsilonGreedy",
    "Exact",
    "Explanation",
    "Factors",
    "FrequentDirections",
    "Greedy",
    "Guarded",
    "HeavyOFUL",
    "HvtUCB",
    "Hybrid",
    "InteractionBandit",
    "Interval",
    "InverseGap",
    "ItemHeads",
    "ItemModels",
    "KernelNewton",
    "LinTS",
    "LinUCB",
    "Linear",
    "ListBandit",
    "Matern",
    "OnePassGLM",
    "OnePassHuber",
    "OnlineKernelClassifier",
    "OnlineKernelRegressor",
    "OnlineNewton",
    "OptimisticGap",
    "PSILinUCB",
    "PendingRewards",
    "Polynomial",
    "ProjectorSplitting",
    "Recommendation",
    "Recommender",
    "Records",
    "RestartOnChange",
    "Ridge",
    "RobustFrequentDirections",
    "Share",
    "SingleDrawThompson",
    "SketchWarning",
    "Snapshot",
    "Softmax",
    "Theory",
    "Thompson",
    "TopTwo",
    "WeightUCB",
    "from_bytes",
    "load",
    "merge_all",
    "progressive_validation",
    "to_bytes",
    "warm_start",
]

WITH_SCIKIT_LEARN = ("OnlineKernelClassifier", "OnlineKernelRegressor")
LATE = (*WITH_SCIKIT_LEARN, "ABTest")


def __getattr__(name: str) -> Any:
    """Import a class that needs further packages when it is first used, so that importing onepass is fast."""
    if name in WITH_SCIKIT_LEARN:
        from onepass.adapters import scikit_learn

        return getattr(scikit_learn, name)
    if name in LATE:
        from onepass.evaluation.ab_test import ABTest

        return ABTest
    raise AttributeError(f"module 'onepass' has no attribute {name!r}")


for _name in LATE:
    register_lazy(_name, partial(__getattr__, _name))
