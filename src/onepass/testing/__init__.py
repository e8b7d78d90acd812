"""Conformance suites: what every member of a family must satisfy, ours and third parties' alike.

from onepass.testing import check_bandit, check_design, check_estimator, check_exploration, check_feature_map
from onepass.testing import check_learner
check_design(lambda dim, reg: MyDesign(dim=dim, reg=reg))
check_estimator(lambda design: MyEstimator(design))
check_exploration(lambda: MyRule(floor=0.1))
check_feature_map(lambda: MyMap(dim=5))
check_bandit(lambda seed: op.Bandit(MyEstimator(MyDesign(dim=5)), seed=seed))
check_learner(lambda: MyLearner(budget=20))
"""

from onepass.testing.bandits import check_bandit
from onepass.testing.designs import check_design
from onepass.testing.estimators import check_estimator
from onepass.testing.explorations import check_exploration
from onepass.testing.feature_maps import check_feature_map
from onepass.testing.learners import check_learner, targets_for
from onepass.testing.shared import REGS, rows_of_all_kinds

__all__ = [
    "REGS",
    "check_bandit",
    "check_design",
    "check_estimator",
    "check_exploration",
    "check_feature_map",
    "check_learner",
    "rows_of_all_kinds",
    "targets_for",
]
