"""Experiments: problems from data, a runner that returns flat rows, named suites as data, tables and pictures.

    results = run(find("digits"), rounds=500)          # rows: one dict per policy and seed
    table = keep(results, Path("results/digits"))      # Parquet, table, picture

Own policies, problems and data sets: docs/experiments.md. Needs the extra `onepass[experiment]`.
"""

from onepass.experiment.bandits.environments import (
    Chunk,
    Classification,
    Decaying,
    Environment,
    FixedArms,
    Labels,
    Linear,
    Noisy,
)
from onepass.experiment.bandits.noise import Contaminated, Gaussian, Noise, Pareto, StudentT
from onepass.experiment.bandits.study import Experiment
from onepass.experiment.bandits.suites import experiment_on
from onepass.experiment.datasets import Dataset, load
from onepass.experiment.definition import Study, select
from onepass.experiment.errors import DataNotFound, ExperimentError
from onepass.experiment.figure import Figure
from onepass.experiment.kernels.starvation import StarvationStudy
from onepass.experiment.kernels.study import KernelStudy
from onepass.experiment.learners.study import LearnerStudy
from onepass.experiment.learners.tisvd import DecompositionStudy
from onepass.experiment.matrices.study import MatrixStudy
from onepass.experiment.policy import Policy
from onepass.experiment.recommender.policies import Recommender
from onepass.experiment.recommender.study import RecommenderStudy
from onepass.experiment.report import keep, keep_tuning
from onepass.experiment.results import Results
from onepass.experiment.runner import run
from onepass.experiment.suites import GROUPS, SUITES, find
from onepass.experiment.tuning import tune

__all__ = [
    "GROUPS",
    "SUITES",
    "Chunk",
    "Classification",
    "Contaminated",
    "DataNotFound",
    "Dataset",
    "Decaying",
    "DecompositionStudy",
    "Environment",
    "Experiment",
    "ExperimentError",
    "Figure",
    "FixedArms",
    "Gaussian",
    "KernelStudy",
    "Labels",
    "LearnerStudy",
    "Linear",
    "MatrixStudy",
    "Noise",
    "Noisy",
    "Pareto",
    "Policy",
    "Recommender",
    "RecommenderStudy",
    "Results",
    "StarvationStudy",
    "StudentT",
    "Study",
    "experiment_on",
    "find",
    "keep",
    "keep_tuning",
    "load",
    "run",
    "select",
    "tune",
]
