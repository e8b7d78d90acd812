"""The named studies of sketched matrices, as data. Source: Wen, Yin et al. (DBSLinUCB)."""

import numpy as np

from onepass.experiment.bandits.environments import dataset_rows, gaussian_rows
from onepass.experiment.datasets import load
from onepass.experiment.definition import Study
from onepass.experiment.matrices.figures import INVERSE
from onepass.experiment.matrices.study import MatrixStudy
from onepass.experiment.policy import Policy, over_reg


def mnist_rows(seed: int, rounds: int) -> np.ndarray:
    return dataset_rows(load("mnist"), seed, rounds)


def approximation_designs() -> tuple[Policy, ...]:
    dyadic = {"reg": 1.0, "size": 16, "base": "fd"}
    return (
        Policy("FD size=50", "FrequentDirections", {"reg": 1.0, "size": 50}),
        *(Policy(f"DBS error={error:g}", "Dyadic", {**dyadic, "error": error}) for error in (5.0, 10.0, 20.0)),
    )


def inverse_designs(rank: int) -> tuple[Policy, ...]:
    """Sketches of equal nominal rank; FD holds up to twice as many rows between its shrinks, PSI as many columns."""
    designs = (
        Policy("FD", "FrequentDirections", {"size": rank}),
        Policy("RFD", "RobustFrequentDirections", {"size": rank, "compensation": 1.0}),
        Policy("RFD half", "RobustFrequentDirections", {"size": rank, "compensation": 0.5}),
        Policy("PSI", "ProjectorSplitting", {"rank": rank, "compensate": False}),
        Policy("PSI compensated", "ProjectorSplitting", {"rank": rank, "compensate": True}),
    )
    return over_reg(designs)


SUITES: tuple[Study, ...] = (
    MatrixStudy(
        "matrix-approximation",
        "spectral error and its bound along 1,250 unit rows in 500 dimensions (Wen, Yin et al. figure 4)",
        gaussian_rows,
        approximation_designs(),
        rounds=1250,
        seeds=5,
    ),
    MatrixStudy(
        "inverse-error",
        "relative error of A^-1 over reg at rank 50, after 1,000 rows of MNIST",
        mnist_rows,
        inverse_designs(50),
        rounds=1000,
        seeds=3,
        figure=INVERSE,
    ),
    MatrixStudy(
        "inverse-error-flat",
        "the same after 1,000 rows of flat spectrum in 500 dimensions",
        gaussian_rows,
        inverse_designs(50),
        rounds=1000,
        seeds=3,
        figure=INVERSE,
    ),
)
