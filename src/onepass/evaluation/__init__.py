"""What a policy would have earned, from the log of another one: estimates, limits, and whether to believe them.

`evaluate(log, policy)`, `compare(log, candidates)`, `progressive(log, bandit)`; docs/evaluation.md says which number
holds when.
"""

from onepass.evaluation.averages import AverageSequence
from onepass.evaluation.betting import BettingSequence
from onepass.evaluation.comparing import Comparison, Difference, compare
from onepass.evaluation.diagnosis import Diagnosis, diagnosed
from onepass.evaluation.doubly_robust import doubly_robust_sequence
from onepass.evaluation.estimators import NAMES, Estimator, estimator
from onepass.evaluation.evaluate import Estimate, Evaluation, evaluate
from onepass.evaluation.events import logs_of
from onepass.evaluation.linear_policy import LinearPolicy
from onepass.evaluation.log import Log
from onepass.evaluation.loggers import pooled
from onepass.evaluation.moments import Moments, moments_of
from onepass.evaluation.plain_policies import Always, Logged, Uniform
from onepass.evaluation.progressive import Learning, learning_curve, progressive
from onepass.evaluation.ranges import Interval, Range
from onepass.evaluation.reward_models import Linear, Regressor
from onepass.evaluation.sample import Sample, sample_of
from onepass.evaluation.slates import Slates, evaluate_slates
from onepass.evaluation.slope import slope
from onepass.evaluation.streaming import evaluate_many
from onepass.evaluation.tuning import Tuned, tune

__all__ = [
    "NAMES", "Always", "AverageSequence", "BettingSequence", "Comparison", "Diagnosis", "Difference", "Estimate",
    "Estimator", "Evaluation", "Interval", "Learning", "Linear", "LinearPolicy", "Log", "Logged", "Moments",
    "Range", "Regressor", "Sample", "Slates", "Tuned", "Uniform", "compare", "diagnosed",
    "doubly_robust_sequence", "estimator", "evaluate", "evaluate_many", "evaluate_slates", "learning_curve",
    "logs_of", "moments_of", "pooled", "progressive", "sample_of", "slope", "tune",
]  # fmt: skip
