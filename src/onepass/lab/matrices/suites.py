"""Named studies of sketched matrices. Source: Wen, Yin et al. (DBSLinUCB)."""

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np

from onepass import FrequentDirections
from onepass.design import DyadicSketches
from onepass.lab.bandits.environments import dataset_rows, gaussian_rows
from onepass.lab.datasets import load
from onepass.lab.definition import Study
from onepass.lab.matrices.figures import INVERSE, RANKS
from onepass.lab.matrices.study import MatrixStudy
from onepass.lab.matrices.tails import SUITE as TAILS
from onepass.lab.policy import Policy, policies_over_reg, policy_variant
from onepass.lab.recommender import interactions

FACTORS = 41  # number of features of users and arms, as in the recommender study


def _mnist_rows(seed: int, rounds: int) -> np.ndarray:
    return dataset_rows(load("mnist"), seed, rounds)


def _cifar_rows(seed: int, rounds: int) -> np.ndarray:
    return dataset_rows(load("cifar-10"), seed, rounds)


def dyadic_sketches(*, dim: int, size: int, error: float, compensation: float, reg: float) -> DyadicSketches:
    return DyadicSketches(FrequentDirections(dim=dim, size=size, reg=reg, compensation=compensation), error=error)


def _approximation_designs() -> tuple[Policy, ...]:
    dyadic, errors = {"reg": 1.0, "size": 16}, (5.0, 10.0, 20.0)
    return (
        Policy("FD size=50", "FrequentDirections", {"reg": 1.0, "size": 50}),
        *(Policy(f"DBS error={error:g}", "Dyadic", {**dyadic, "error": error}) for error in errors),
        *(
            Policy(f"{name} error={error:g}", dyadic_sketches, {**dyadic, "error": error, "compensation": compensation})
            for name, compensation in (("own error, FD", 0.0), ("own error, half", 0.5))
            for error in errors
        ),
    )


def _magazine_rows(seed: int, rounds: int) -> np.ndarray:
    """Return rows of the seed-th most frequent arm of Magazine Subscriptions in order of time.

    A row is ||x_a|| x_u, where x_u are the features of a user and x_a those of the arm. It is vec(x_u x_a^T) in the
    coordinates of the arm. Rows repeat if there are fewer than `rounds`.
    """
    problem = magazine()
    arms, counts = np.unique(problem.warm.items, return_counts=True)
    arm = arms[np.argsort(-counts, kind="stable")[seed]]
    users = problem.warm.users[problem.warm.items == arm]
    return problem.users[np.resize(users, rounds)] * np.linalg.norm(problem.arms[arm])


@cache
def magazine() -> interactions.Problem:
    return interactions.prepare(interactions.load("magazine"), FACTORS)


def sketches_over_ranks(ranks: tuple[int, ...], regs: tuple[float, ...]) -> tuple[Policy, ...]:
    """Return all sketches at these numbers of rows (`ranks`) and ridge penalties (`regs`), as policies."""
    found = []
    for policy, reg in product(sketches(1), regs):
        group = replace(policy, label=f"{policy.label}, reg {reg:g}", params={**policy.params, "reg": reg})
        name = "rank" if "rank" in policy.params else "size"
        found += [policy_variant(group, f"{name}={rank}", **{name: rank}) for rank in ranks]
    return tuple(found)


def sketches(rank: int) -> tuple[Policy, ...]:
    """Return five policies, one for each kind of sketch, of rank `rank`.

    Before they are reduced again to `rank`, Frequent Directions (FD) holds up to twice as many rows, and projector
    splitting (PSI) up to twice as many columns.
    """
    return (
        Policy("FD", "FrequentDirections", {"size": rank}),
        Policy("RFD", "RobustFrequentDirections", {"size": rank, "compensation": 1.0}),
        Policy("RFD half", "RobustFrequentDirections", {"size": rank, "compensation": 0.5}),
        Policy("PSI", "ProjectorSplitting", {"rank": rank, "compensate": False}),
        Policy("PSI compensated", "ProjectorSplitting", {"rank": rank, "compensate": True}),
    )


SUITES: tuple[Study, ...] = (
    TAILS,
    MatrixStudy(
        "matrix-approximation",
        "spectral error and its bound along 1,250 unit rows in 500 dimensions (Wen, Yin et al. figure 4)",
        gaussian_rows,
        _approximation_designs(),
        rounds=1250,
        seeds=5,
    ),
    MatrixStudy(
        "inverse-error",
        "relative error of A^-1 over reg at rank 50, after 1,000 rows of MNIST",
        _mnist_rows,
        policies_over_reg(sketches(50)),
        rounds=1000,
        seeds=3,
        figure=INVERSE,
    ),
    MatrixStudy(
        "inverse-error-flat",
        "the same after 1,000 rows of flat spectrum in 500 dimensions",
        gaussian_rows,
        policies_over_reg(sketches(50)),
        rounds=1000,
        seeds=3,
        figure=INVERSE,
    ),
    MatrixStudy(
        "inverse-error-rank",
        "relative error of A^-1 over the size of the sketch, after 1,000 rows of MNIST (Shustova et al. figure 5)",
        _mnist_rows,
        sketches_over_ranks((10, 20, 50, 100, 200, 400), (2.0, 20.0)),
        rounds=1000,
        seeds=3,
        figure=RANKS,
    ),
    MatrixStudy(
        "inverse-error-cifar-10",
        "the same after 1,000 rows of CIFAR-10 (Shustova et al. figure 12)",
        _cifar_rows,
        sketches_over_ranks((10, 20, 50, 100, 200, 400), (2.0, 20.0)),
        rounds=1000,
        seeds=3,
        figure=RANKS,
    ),
    MatrixStudy(
        "inverse-error-magazine",
        "the same on the rows of the ten most frequent arms of Magazine Subscriptions (Shustova et al. figure 16)",
        _magazine_rows,
        sketches_over_ranks((2, 4, 8, 16, 24, 32, 40), (1.0, 10.0)),
        rounds=700,
        seeds=10,
        figure=RANKS,
    ),
)
