"""Experiments: problems, a runner that returns flat rows, named suites, tables and pictures.

    results = run(find("digits"), rounds=500)          # rows: one dict per policy and seed
    table = keep(results, Path("results/digits"))      # Parquet, table, picture

docs/experiments.md shows how to add policies, problems and data sets. Needs the extra `onepass[experiment]`.
"""

from onepass.lab.bandits.environments import (
    Chunk,
    Classification,
    Decaying,
    Environment,
    FixedArms,
    Labels,
    Linear,
    Noisy,
)
from onepass.lab.bandits.noise import Contaminated, Gaussian, Noise, Pareto, StudentT
from onepass.lab.bandits.study import Experiment
from onepass.lab.bandits.suites import experiment_on
from onepass.lab.datasets import Dataset, load
from onepass.lab.definition import Study, select
from onepass.lab.errors import DataNotFound, ExperimentError
from onepass.lab.figure import Figure
from onepass.lab.kernels.starvation import StarvationStudy
from onepass.lab.kernels.study import KernelStudy
from onepass.lab.learners.study import LearnerStudy
from onepass.lab.learners.tisvd import DecompositionStudy
from onepass.lab.matrices.study import MatrixStudy
from onepass.lab.policy import Policy
from onepass.lab.recommender.policies import Recommender
from onepass.lab.recommender.study import RecommenderStudy
from onepass.lab.report import keep, keep_tuning
from onepass.lab.results import Results
from onepass.lab.runner import run
from onepass.lab.suites import GROUPS, SUITES, find
from onepass.lab.tuning import tune

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
