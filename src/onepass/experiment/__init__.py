"""Experiments: problems from data, a runner that returns flat rows, named suites as data, tables and pictures.

    results = run(find("digits"), rounds=500)          # rows: one dict per policy and seed
    report.write(results, Path("results/digits"))      # Parquet, table, picture

Needs the extra `onepass[experiment]`.
"""

from onepass.experiment.bandits import Experiment
from onepass.experiment.datasets import Dataset, load
from onepass.experiment.definition import Policy, Study, select
from onepass.experiment.environments import (
    Chunk,
    Classification,
    Decaying,
    Environment,
    FixedArms,
    Labels,
    Linear,
    Noisy,
)
from onepass.experiment.errors import DataNotFound, ExperimentError
from onepass.experiment.kernels import KernelStudy
from onepass.experiment.learners import LearnerStudy
from onepass.experiment.matrices import MatrixStudy
from onepass.experiment.noise import Contaminated, Gaussian, Noise, Pareto, StudentT
from onepass.experiment.recommender import Recommender, RecommenderStudy
from onepass.experiment.results import Results
from onepass.experiment.runner import run
from onepass.experiment.starvation import StarvationStudy
from onepass.experiment.suites import SUITES, find
from onepass.experiment.tisvd import DecompositionStudy
from onepass.experiment.tuning import tune

__all__ = [
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
    "find",
    "load",
    "run",
    "select",
    "tune",
]
