"""Conformance suites, which check that a component, built in or your own, satisfies the contract of its family.

Each suite raises AssertionError at the first violation, and returns a sentence that lists what it has checked::

    from onepass.testing import check_bandit, check_design, check_estimator, check_exploration, check_feature_map
    from onepass.testing import check_learner, check_model, check_record_bandit, check_store

    check_design(lambda dim, reg: MyDesign(dim=dim, reg=reg))
    check_estimator(lambda design: MyEstimator(design))
    check_exploration(lambda: MyRule(uniform_share=0.1))
    check_feature_map(lambda: MyMap(dim=5))
    check_bandit(lambda seed: op.Bandit(MyEstimator(MyDesign(dim=5)), seed=seed))
    check_record_bandit(lambda seed: op.InteractionBandit(seed=seed))  # arms with features
    check_model(lambda: MyModel(dim=5), lambda rng: rng.standard_normal((3, 5)))
    check_learner(lambda: MyLearner(budget=20))
    check_store(lambda: MyStore())  # with the extra `log`
"""

from typing import TYPE_CHECKING, Any

from onepass.testing.bandits import check_bandit
from onepass.testing.designs import check_design
from onepass.testing.estimators import check_estimator
from onepass.testing.explorations import check_exploration
from onepass.testing.feature_maps import check_feature_map
from onepass.testing.learners import check_learner, make_targets
from onepass.testing.models import check_model
from onepass.testing.record_bandits import check_record_bandit
from onepass.testing.shared import REGS, rows_of_all_kinds

if TYPE_CHECKING:
    from onepass.testing.stores import check_store

__all__ = [
    "REGS",
    "check_bandit",
    "check_design",
    "check_estimator",
    "check_exploration",
    "check_feature_map",
    "check_learner",
    "check_model",
    "check_record_bandit",
    "check_store",
    "make_targets",
    "rows_of_all_kinds",
]


def __getattr__(name: str) -> Any:
    """Import the suite `name`, which needs packages of an extra, when it is first used."""
    if name == "check_store":
        from onepass.testing.stores import check_store

        return check_store
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
