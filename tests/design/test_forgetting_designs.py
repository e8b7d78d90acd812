"""Designs that forget: A <- reg I + factor (A - reg I), against all rows with their weights.

A sketch that forgets has an error that is bounded for all time. Let X_g be the matrix of the rows sqrt(g_s) x_s, with
the weights g_s, and S the sketch. Frequent Directions guarantee 0 <= X_g^T X_g - S^T S <= D I with

    D_t = f D_(t-1) + d_t    f: the factor by which this round multiplies all weights, d: what a cut of this round shed

Proof. Forgetting multiplies S by sqrt(f), so the claim holds for f D. A row adds x x^T to both sides. A cut subtracts
at most d from every eigenvalue of S^T S, so the difference grows by at most d I, and does not become negative.

For every k < size, (size - k) D_t <= ||X_g - [X_g]_k||_F^2, where [X_g]_k is the best approximation of rank k. Proof. A
cut takes at least size d off ||S||_F^2. Forgetting multiplies ||S||_F^2, D and ||X_g||_F^2 by f. A row adds ||x||^2 to
||S||_F^2 and to ||X_g||_F^2. So ||S||_F^2 + size D <= ||X_g||_F^2. Let P be the projection on the first k right
singular vectors of X_g. The guarantee gives ||X_g P||_F^2 <= ||S P||_F^2 + k D. So ||X_g - [X_g]_k||_F^2 = ||X_g||_F^2
- ||X_g P||_F^2 >= ||S||_F^2 + size D - ||S P||_F^2 - k D >= (size - k) D.

Rows of length at most L whose weights are multiplied by gamma in each round have ||X_g||_F^2 <= L^2 / (1 - gamma), so
the error does not grow with time. The error of dyadic blocks is the sum of the errors of all blocks. If the weight of
all rows together falls below half of error * size, the blocks are replaced by one, so ||A - A_hat|| <= 2 error holds
for all time. If `error` is below L^2 / ((1 - gamma) size), the sketch becomes exact in the end. Frequent Directions of
size L^2 / ((1 - gamma) error) reach the same error without blocks. Projector splitting multiplies the part of the
spectrum above reg by f, which is exact while nothing was cut off.

The relative error of an inverse is asked to be below 1e-8. Rounding alone can cause an error of eps ||X_g|| /
sqrt(reg), with eps = 2.2e-16; if this is above 1e-8, the error must be below this instead.
"""

import os

import numpy as np
import pytest

import onepass as op
from dense_forgetting import Weighted

LONG = "ONEPASS_TEST_LONG" in os.environ
DIM = 12
PRECISE = 1e-8  # of ||A^-1||, where a factor of A that is known to eps ||X_g|| says as much
EXACT = {
    "exact": lambda reg: op.Exact(dim=DIM, reg=reg),
    "fd of full rank": lambda reg: op.FrequentDirections(dim=DIM, reg=reg, size=7),
    "rfd of full rank": lambda reg: op.RobustFrequentDirections(dim=DIM, reg=reg, size=7),
    "dyadic of one block": lambda reg: op.Dyadic(dim=DIM, reg=reg, size=7, error=1.0),
}
SKETCHES = {
    "fd": lambda reg: op.FrequentDirections(dim=DIM, reg=reg, size=3),
    "half": lambda reg: op.FrequentDirections(dim=DIM, reg=reg, size=4, compensation=0.5),
    "rfd": lambda reg: op.RobustFrequentDirections(dim=DIM, reg=reg, size=3),
    "dyadic": lambda reg: op.Dyadic(dim=DIM, reg=reg, size=2, error=8.0),
    "dyadic rfd": lambda reg: op.Dyadic(dim=DIM, reg=reg, size=2, error=30.0, base="rfd"),
    "psi of full rank": lambda reg: op.ProjectorSplitting(dim=DIM, reg=reg, rank=DIM),
    "psi compensated": lambda reg: op.ProjectorSplitting(dim=DIM, reg=reg, rank=DIM, compensate=True),
}


def game(seed, rounds, powers):
    """(row, factor) of every round: rows of norms 10^powers in bursts of a few directions each, some factors that leave
    next to nothing, as gaps of 10^6 rounds do."""
    rng = np.random.default_rng(seed)
    for t in range(rounds):
        if t % 100 == 0:
            scale = 10.0 ** rng.uniform(*powers)
            directions = rng.standard_normal((rng.integers(1, DIM + 1), DIM))
        factor = 0.5 ** (1.0 / 64) if t % 5 == 0 else 1.0
        if rng.random() < 1e-3:
            factor = 0.5 ** rng.choice([30.0, 1e3, 1e6])
        yield scale * rng.standard_normal(len(directions)) @ directions, factor


def far(design, truth):
    """||A_hat^-1 - A^-1|| / ||A^-1||, and the same of A."""
    held = np.stack([design.solve(e) for e in np.eye(DIM)], axis=1)
    inverse = truth.inverse
    return (
        np.linalg.norm(held - inverse, 2) / np.linalg.norm(inverse, 2),
        np.linalg.norm(design.matrix() - truth.matrix, 2) / np.linalg.norm(truth.matrix, 2),
    )


@pytest.mark.parametrize("reg", [1e-2, 1.0, 37.0])
@pytest.mark.parametrize("name", EXACT)
def test_decayed_designs_equal_dense_decayed_ones(name, reg):
    design, truth = EXACT[name](reg), Weighted(DIM, reg)
    for t, (row, factor) in enumerate(game(3, 100_000 if LONG else 4_000, (-6.0, 6.0))):
        if factor < 1.0:
            design.decay(factor)
            truth.decay(factor)
        design.append(row)
        truth.append(row)
        if t % 97 == 0:
            inverse, matrix = far(design, truth)
            known = np.finfo(np.float64).eps * np.linalg.norm(truth.scaled, 2) / reg**0.5
            assert inverse < max(PRECISE, known), (
                f"{name}: {inverse:.1e} in round {t}, of which {known:.1e} is rounding"
            )
            assert matrix < PRECISE, f"{name}: {matrix:.1e} in round {t}"


@pytest.mark.parametrize("name", [*list(EXACT)[1:], *SKETCHES])
def test_certificates_hold_at_every_round(name):
    """And for FD (size - k) Delta_t <= ||X_g - [X_g]_k||_F^2 for every k < size."""
    rng = np.random.default_rng(5)
    for reg in (0.01, 1.0):
        design, truth = {**EXACT, **SKETCHES}[name](reg), Weighted(DIM, reg)
        spread = 0.7 ** np.arange(DIM)
        for t in range(300):
            factor = 0.97 if t != 200 else 1e-9
            design.decay(factor)
            truth.decay(factor)
            row = rng.standard_normal(DIM) * (spread if t < 100 else np.roll(spread, 5)) * (3.0 if t < 150 else 0.3)
            design.append(row)
            truth.append(row)
            bound = design.error_bound()
            assert np.linalg.norm(truth.matrix - design.matrix(), 2) <= bound
            if name in ("fd", "half", "rfd"):
                size, shed = design.params["size"], design.state.sums.shed
                tails = np.cumsum(np.linalg.svd(truth.scaled, compute_uv=False)[::-1] ** 2)[::-1]
                tails = np.append(tails, np.zeros(size))
                assert all((size - k) * shed <= tails[k] * (1 + 1e-9) for k in range(size))
            if name.startswith("dyadic") and "one" not in name:
                assert bound <= 2.0 * design.params["error"]


@pytest.mark.parametrize("base", ["fd", "rfd"])
def test_dyadic_blocks_begin_anew_once_little_is_left(base):
    rng = np.random.default_rng(6)
    design, truth = op.Dyadic(dim=DIM, reg=0.1, size=2, error=4.0, base=base), Weighted(DIM, 0.1)
    for _ in range(3):
        for row in rng.standard_normal((200, DIM)):
            design.append(row)
            truth.append(row)
        assert design.state.phase != 0
        most = design.memory_usage()
        for _ in range(40):
            design.decay(0.7)
            truth.decay(0.7)
            assert np.linalg.norm(truth.matrix - design.matrix(), 2) <= design.error_bound() <= 8.0
        assert design.blocks == [2]
        assert design.memory_usage() < most / 2


def test_forgetting_all_is_beginning_and_nothing_is_nothing():
    rows = np.random.default_rng(7).standard_normal((50, DIM))
    for make in (*EXACT.values(), *SKETCHES.values()):
        design = make(0.5).append(rows)
        before = design.matrix()
        assert np.abs(design.decay(1.0).matrix() - before).max() <= 1e-12 * np.abs(before).max()
        assert np.abs(design.decay(0.0).matrix() - 0.5 * np.eye(DIM)).max() <= 1e-12
        for bad in (-0.1, 1.1, np.nan, "half"):
            with pytest.raises(ValueError, match="factor"):
                design.decay(bad)
