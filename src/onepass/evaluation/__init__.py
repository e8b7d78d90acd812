"""Estimate what a policy would have earned from the log of another policy, with limits and a verdict.

Start with `evaluate(log, policy)` for one policy, `compare(log, candidates)` for several, or `progressive(log, bandit)`
for a bandit that learns. The page docs/evaluation.md says which number holds when.
"""

from onepass.bandit.delay_law import DelayLaw, fit_delay_law
from onepass.evaluation.actions import evaluate_actions
from onepass.evaluation.average_sequence import AverageSequence
from onepass.evaluation.baseline_policies import ConstantPolicy, LoggingPolicy, RowPolicy, UniformPolicy
from onepass.evaluation.baseline_promise import GuardReport
from onepass.evaluation.betting import BettingSequence
from onepass.evaluation.censoring import ipcw_log
from onepass.evaluation.comparison import Comparison, Difference, compare
from onepass.evaluation.diagnosis import Diagnosis, diagnose
from onepass.evaluation.doubly_robust import doubly_robust_interval
from onepass.evaluation.estimators import ESTIMATORS, Estimator, get_estimator
from onepass.evaluation.evaluate import Estimate, Evaluation, evaluate
from onepass.evaluation.events import logs_from_events
from onepass.evaluation.fixed_sample import power, sample_size
from onepass.evaluation.frames import DirtyRow, DirtyRows
from onepass.evaluation.guarded import FieldArm, Guarded
from onepass.evaluation.harm_test import AtLeast, AtMost
from onepass.evaluation.linear_policy import LinearPolicy
from onepass.evaluation.list_rewards import ListEvaluation, evaluate_list_rewards
from onepass.evaluation.log import Log
from onepass.evaluation.moments import Moments, compute_moments
from onepass.evaluation.outcomes import FrontierPoint, evaluate_outcomes, frontier, outcome_log
from onepass.evaluation.pooling import pool_logs
from onepass.evaluation.progressive import LearningPolicy, learning_curve, progressive
from onepass.evaluation.reward_models import RegressorModel, RidgeModel
from onepass.evaluation.reward_range import Interval, Range
from onepass.evaluation.sample import Sample, make_sample
from onepass.evaluation.slates import SlateEvaluation, evaluate_slates
from onepass.evaluation.slope import tune_estimator
from onepass.evaluation.streaming import evaluate_many
from onepass.evaluation.tuning import TuningResult, tune

__all__ = [
    "ESTIMATORS",
    "AtLeast",
    "AtMost",
    "AverageSequence",
    "BettingSequence",
    "Comparison",
    "ConstantPolicy",
    "DelayLaw",
    "Diagnosis",
    "Difference",
    "DirtyRow",
    "DirtyRows",
    "Estimate",
    "Estimator",
    "Evaluation",
    "FieldArm",
    "FrontierPoint",
    "GuardReport",
    "Guarded",
    "Interval",
    "LearningPolicy",
    "LinearPolicy",
    "ListEvaluation",
    "Log",
    "LoggingPolicy",
    "Moments",
    "Range",
    "RegressorModel",
    "RidgeModel",
    "RowPolicy",
    "Sample",
    "SlateEvaluation",
    "TuningResult",
    "UniformPolicy",
    "compare",
    "compute_moments",
    "diagnose",
    "doubly_robust_interval",
    "evaluate",
    "evaluate_actions",
    "evaluate_list_rewards",
    "evaluate_many",
    "evaluate_outcomes",
    "evaluate_slates",
    "fit_delay_law",
    "frontier",
    "get_estimator",
    "ipcw_log",
    "learning_curve",
    "logs_from_events",
    "make_sample",
    "outcome_log",
    "pool_logs",
    "power",
    "progressive",
    "sample_size",
    "tune",
    "tune_estimator",
]  # fmt: skip
