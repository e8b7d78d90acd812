"""Regret of FORKS over time: python tests/forks_games.py [ROUNDS [SEEDS]] prints it, and the exponent of its growth.

Wen, Zhang et al., theorem 1: regret against the best function f of the kernel's space, which is computed at the end.

    R_T = sum of (f_t - y_t)^2 / 2  -  min over f of sum of (f(x_t) - y_t)^2 / 2 + reg / 2 ||f||^2

Rows are drawn from 400 points of the unit cube, so that f is found exactly. The sketch is updated 1 / theta times, as
the theorem assumes, and curvature is at least the one of the loss.
"""

import sys
from typing import NamedTuple

import numpy as np

import onepass as op

POINTS, REG, THETA = 400, 0.01, 0.3


class World(NamedTuple):
    """Points of so many dimensions, the width of the kernel, and the rank of FORKS."""

    dim: int
    width: float
    rank: int


WORLDS = {
    "1 dimension, rank 20": World(1, 0.2, 20),
    "2 dimensions, rank 20": World(2, 0.2, 20),
    "2 dimensions, rank 5": World(2, 0.2, 5),
}


def stream(world, rounds, seed):
    """Numbers of points, all points, the kernel on them, and labels -1 and 1 of a smooth mean and noise."""
    rng = np.random.default_rng([seed, 15])
    points = rng.random((POINTS, world.dim))
    gram = np.exp(-((points[:, None] - points) ** 2).sum(axis=2) / (2.0 * world.width**2))
    mean = gram[:, :40] @ rng.standard_normal(40)
    mean *= 0.9 / np.abs(mean).max()
    which = rng.integers(POINTS, size=rounds)
    labels = np.where(rng.random(rounds) < 0.5 * (1.0 + mean[which]), 1.0, -1.0)
    return which, points, gram, labels


def least_loss(which, gram, labels):
    """min over f of sum of (f(x_t) - y_t)^2 / 2 + REG / 2 ||f||^2."""
    counts = np.bincount(which, minlength=POINTS).astype(float)
    sums = np.bincount(which, weights=labels, minlength=POINTS)
    weights = np.linalg.solve(counts[:, None] * gram + REG * np.eye(POINTS), sums)
    f = gram @ weights
    return 0.5 * float(((f[which] - labels) ** 2).sum()) + 0.5 * REG * float(weights @ f)


def regret(world, rounds, seed):
    """R_T of FORKS, for which T is known beforehand."""
    which, points, gram, labels = stream(world, rounds, seed)
    learner = op.learner.FORKS(
        budget=50,
        rank=world.rank,
        sketch_size=100,
        sample_size=50,
        update_every=int(THETA * rounds),
        count="examples",
        width=world.width,
        loss="squared",
        step=1.0,
        alpha=0.1,
        curvature=0.25,  # of (f - y)^2 / 2, whose slopes are at most 2
        seed=seed,
    )
    decisions = op.progressive_validation(learner, points[which], labels).decisions
    return 0.5 * float(((decisions - labels) ** 2).sum()) - least_loss(which, gram, labels)


def growth(world, rounds, seeds):
    """Mean regrets of rounds / 64, ..., rounds, each four times the one before, and log4 of the last ratio."""
    horizons = [rounds // 64, rounds // 16, rounds // 4, rounds]
    regrets = np.array([[regret(world, t, seed) for seed in range(seeds)] for t in horizons]).mean(axis=1)
    return horizons, regrets, float(np.log(regrets[-1] / regrets[-2]) / np.log(4.0))


if __name__ == "__main__":
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 512_000
    seeds = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    for name, world in WORLDS.items():
        horizons, regrets, exponent = growth(world, rounds, seeds)
        found = ", ".join(f"{t:,}: {r:,.0f}" for t, r in zip(horizons, regrets, strict=True))
        print(f"{name}: regret {found}; exponent at the end {exponent:.2f}", flush=True)
