"""||A - A_hat|| <= error_bound(), its own rounding included: nothing is added to the bound in these tests."""

import numpy as np
import pytest

import onepass as op
from onepass.design import contract
from onepass.estimator.radii import confidence_radius
from onepass.testing import rows_of_all_kinds

DIM = 12
POWERS = (1e-6, 1e-3, 1.0, 1e3, 1e6)
MEMBERS = {
    "fd": lambda reg: op.FrequentDirections(dim=DIM, reg=reg, size=3),
    "fd of full rank": lambda reg: op.FrequentDirections(dim=DIM, reg=reg, size=7),
    "half": lambda reg: op.FrequentDirections(dim=DIM, reg=reg, size=4, compensation=0.5),
    "rfd": lambda reg: op.RobustFrequentDirections(dim=DIM, reg=reg, size=3),
    "dyadic": lambda reg: op.Dyadic(dim=DIM, reg=reg, size=2, error=8.0),
    "dyadic, small error": lambda reg: op.Dyadic(dim=DIM, reg=reg, size=3, error=1e-6),
    "dyadic rfd": lambda reg: op.Dyadic(dim=DIM, reg=reg, size=2, error=30.0, base="rfd"),
    "dyadic, one block": lambda reg: op.Dyadic(dim=DIM, reg=reg, size=3, error=1e20),
    "psi": lambda reg: op.ProjectorSplitting(dim=DIM, reg=reg, rank=2),
    "psi of full rank": lambda reg: op.ProjectorSplitting(dim=DIM, reg=reg, rank=DIM),
    "psi compensated": lambda reg: op.ProjectorSplitting(dim=DIM, reg=reg, rank=2, compensate=True),
    "psi compensated, of full rank": lambda reg: op.ProjectorSplitting(dim=DIM, reg=reg, rank=DIM, compensate=True),
}


def gap(rows, reg, held):
    """||reg I + X^T X - held||_2, summed up in extended precision."""
    exact = rows.astype(np.longdouble)
    return np.linalg.norm((exact.T @ exact + np.longdouble(reg) * np.eye(rows.shape[1]) - held).astype(float), 2)


def append_each(design, rows):
    """Append one row after the other, without the checks of `Design.append`, which take most of its time."""
    design.append(rows[0])
    state = design.state
    for row in rows[1:]:
        state = contract.append(state, row)
    design.state = state


@pytest.mark.parametrize("kind", [kind for kind, _ in rows_of_all_kinds(DIM, 1)])
@pytest.mark.parametrize("name", MEMBERS)
def test_certificates_hold_at_every_scale_of_rows_and_reg(name, kind):
    for seed in range(2):
        rows = dict(rows_of_all_kinds(DIM, 120, seed))[kind]
        for scale in POWERS:
            for reg in POWERS:
                design = MEMBERS[name](reg)
                for row in scale * rows[:60]:
                    design.append(row)
                design.append(scale * rows[60:])
                assert gap(scale * rows, reg, design.matrix()) <= design.error_bound()


@pytest.mark.parametrize("compensate", [False, True])
@pytest.mark.parametrize("reg", [1e6, 1e3])
@pytest.mark.parametrize("scale", [1.0, 0.1])
@pytest.mark.parametrize("noise", [1e-4, 3e-5])
def test_splitting_counts_what_it_cuts_below_its_tolerance(noise, scale, reg, compensate):
    """Once it reported 0 while such cuts had come to 0.04."""
    rng, dim, rank = np.random.default_rng(0), 6, 2
    weights, directions = rng.standard_normal((20_000, rank)), rng.standard_normal((rank, dim))
    rows = scale * (weights @ directions + noise * rng.standard_normal((len(weights), dim)))
    design = op.ProjectorSplitting(dim=dim, rank=rank, reg=reg, compensate=compensate)
    append_each(design, rows)
    assert design.state.sums.dust > 0.0
    assert gap(rows, reg, design.matrix()) <= design.error_bound()


def test_rows_that_vanish_beside_reg_are_counted():
    """Rows of squared length 1e-12 beside 1e6: each is less than a rounding of A."""
    rows = 1e-6 * np.random.default_rng(1).standard_normal((20_000, 4))
    design = op.ProjectorSplitting(dim=4, rank=2, reg=1e6)
    append_each(design, rows)
    assert np.linalg.norm(rows, 2) ** 2 <= design.error_bound() < np.inf


@pytest.mark.parametrize(
    "design",
    [
        op.FrequentDirections(dim=6, size=2, reg=0.37),
        op.RobustFrequentDirections(dim=6, size=2, reg=1e4),
        op.ProjectorSplitting(dim=6, rank=2, reg=1e6),
        op.ProjectorSplitting(dim=6, rank=2, reg=1e6, compensate=True),
    ],
    ids=repr,
)
@pytest.mark.parametrize("noise", [0.0, 1e-4])
def test_certificates_of_arms_hold(noise, design):
    """An arm's A_hat is read off its widths: (x + y)^T A^-1 (x + y) for all pairs of axes."""
    rng, dim, reg = np.random.default_rng(2), design.dim, design.params["reg"]
    rows = rng.standard_normal((4000, 2)) @ rng.standard_normal((2, dim)) + noise * rng.standard_normal((4000, dim))
    bandit = op.Bandit(op.Disjoint(op.Ridge(design)), op.UCB(1.0))
    for part in (*rows[:2000], *np.split(rows[2000:], 20)):
        bandit.learn(part, np.zeros(len(part) if part.ndim > 1 else ()), ["a"] * len(part) if part.ndim > 1 else "a")
    eye = np.eye(dim)
    pairs = (eye[:, None] + eye[None]).reshape(-1, dim)
    squares = bandit.decide(pairs[:, None], ["a"]).widths[:, 0].reshape(dim, dim) ** 2
    inverse = (squares - np.diag(squares)[:, None] / 4 - np.diag(squares)[None] / 4) / 2
    held = np.linalg.inv(inverse)
    reading = 1e-13 * np.linalg.cond(inverse) * np.linalg.norm(held, 2)  # what was lost in these two lines
    assert gap(rows, reg, held) <= bandit.error_bound() + reading


@pytest.mark.parametrize("base", ["fd", "rfd"])
@pytest.mark.parametrize("reg", [1e-6, 1.0])
def test_dyadic_blocks_know_large_eigenvalues_to_rounding(base, reg):
    """At norms near 1e6 the frozen blocks once lost eps sqrt(||X^T X|| / reg) of them, which no certificate counted."""
    rng = np.random.default_rng(3)
    rows = 1e6 * rng.standard_normal((60, 16)) * np.linspace(1.0, 3.0, 16)
    design = op.Dyadic(dim=64, size=2, error=1e14, reg=reg, base=base)
    rows = np.hstack([rows, np.zeros((60, 48))])
    for row in rows:
        design.append(row)
        if len(design.blocks) > 1 and design.state.phase == 0:
            state = design.state
            frozen = state.whole.basis[: state.spectrum.size]
            assert np.abs(frozen @ frozen.T - np.eye(len(frozen))).max() <= 1e-12
    assert gap(rows, reg, design.matrix()) <= design.error_bound()


def test_merged_sketches_add_their_certificates():
    rng = np.random.default_rng(4)
    first, second = (
        1e6 * rng.standard_normal((80, DIM)),
        1e6 * rng.standard_normal((50, 2)) @ rng.standard_normal((2, DIM)),
    )
    one, two = (op.FrequentDirections(dim=DIM, size=3, reg=0.37) for _ in range(2))
    bound = one.append(first).error_bound() + two.append(second).error_bound()
    merged = one.merge(two)
    assert merged.error_bound() >= bound * (1 - 1e-12)
    assert gap(np.vstack([first, second]), 0.37, merged.matrix()) <= merged.error_bound()


def blocks_of_orthonormal_rows(base):
    """Three blocks of 3, 7 and 31 directions, 95 unit rows: what all hold together is more than the last one can."""
    design = op.Dyadic(dim=64, size=4, error=32.5 / 4, reg=0.01, base=base)
    axes = [i % 3 for i in range(32)] + [3 + i % 7 for i in range(32)] + [10 + i for i in range(31)]
    for axis in axes:
        design.append(np.eye(64)[axis])
    return design, len(axes)


@pytest.mark.parametrize("base", ["fd", "rfd"])
def test_the_dyadic_radius_counts_the_directions_of_all_blocks(base):
    """13.838 was returned where the determinant itself needs 14.698."""
    design, count = blocks_of_orthonormal_rows(base)
    needed = np.sqrt(2 * np.log(100.0) + design.log_det() - 64 * np.log(0.01))
    assert abs(needed - 14.698) < 1e-3
    radius = confidence_radius(design.state, count, 1.0, 0.0, 1.0, 0.01)
    held = min(64, 3 + 7 + 2 * 16)
    assert abs(radius - np.sqrt(2 * np.log(100.0) + held * np.log1p(count / (held * 0.01)))) < 1e-9
    assert radius >= needed


@pytest.mark.parametrize("base", ["fd", "half", "rfd"])
@pytest.mark.parametrize(
    ("noise", "bound", "length", "delta", "reg"),
    [(0.5, 3.0, 2.0, 0.01, 0.37), (2.0, 0.3, 0.7, 0.2, 4.0), (0.1, 7.0, 5.0, 1e-4, 50.0)],
)
def test_dyadic_radii_equal_the_formula(noise, bound, length, delta, reg, base):
    rng, dim, size, error = np.random.default_rng(5), 40, 3, 6.0
    rows = rng.standard_normal((150, 9)) @ rng.standard_normal((9, dim))
    rows *= length / np.linalg.norm(rows, axis=1, keepdims=True)
    design, cuts, phases = op.Dyadic(dim=dim, size=size, error=error * length**2, reg=reg, base=base), {}, set()
    for t, row in enumerate(rows, 1):
        design.append(row)
        state = design.state
        cuts[state.frozen] = (state.block.settings.size, state.block.sums.shed)
        if state.frozen and state.frozen - 1 in cuts:  # the last block may shrink when it is frozen
            before = sum(cuts[i][1] for i in range(state.frozen - 1))
            cuts[state.frozen - 1] = (size * 2 ** (state.frozen - 1), state.sums.shed - before)
        sigma, weighted = sum(c[1] for c in cuts.values()), sum(c[0] * c[1] for c in cuts.values())
        m = dim if state.phase else min(dim, state.spectrum.size + 2 * size * 2**state.frozen)
        tail = t * length**2 / (m * reg)
        common = 2 * np.log(1 / delta) + dim * np.log1p(sigma / reg)
        if base == "fd":
            want = noise * np.sqrt((common + m * np.log1p(tail)) * (1 + sigma / reg))
            want += bound * (reg + sigma) / np.sqrt(reg)
        elif base == "half":
            ridge, inside = reg + sigma / 2, common + m * np.log1p(t * length**2 / (m * (reg + sigma)))
            want = noise * np.sqrt(inside * (1 + sigma / 2 / ridge)) + bound * np.sqrt(ridge)
        else:
            want = noise * np.sqrt(common + m * np.log1p(tail + (sigma - weighted / m) / reg))
            want += bound * np.sqrt(reg + sigma)
        np.testing.assert_allclose(confidence_radius(state, t, noise, bound, length, delta), want, rtol=1e-9)
        phases.add((state.phase, state.frozen))
    assert len(phases) > 2
