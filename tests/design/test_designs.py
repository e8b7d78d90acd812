"""Every member against naive dense code: the inverse, the root, the determinant; and what each may claim as exact."""

import numpy as np
import pytest
from numba import njit

import dense
import onepass as op
from onepass.design import contract
from onepass.design.dyadic import DENSE, SKETCHED
from onepass.testing import REGS, check_design, rows_of_all_kinds

DIM, COUNT = 12, 90
MEMBERS = {
    "exact": lambda dim, reg: op.Exact(dim=dim, reg=reg),
    "fd": lambda dim, reg: op.FrequentDirections(dim=dim, reg=reg, size=3),
    "rfd": lambda dim, reg: op.RobustFrequentDirections(dim=dim, reg=reg, size=3),
    "half": lambda dim, reg: op.FrequentDirections(dim=dim, reg=reg, size=4, compensation=0.5),
    "dyadic": lambda dim, reg: op.Dyadic(dim=dim, reg=reg, size=2, error=8.0),
    "dyadic rfd": lambda dim, reg: op.Dyadic(dim=dim, reg=reg, size=2, error=30.0, base="rfd"),
    "dyadic half": lambda dim, reg: op.Dyadic(dim=dim, reg=reg, size=2, error=30.0, base="half"),
    "dyadic never exact": lambda dim, reg: op.Dyadic(dim=dim, reg=reg, size=3, error=1e20),
    "psi": lambda dim, reg: op.ProjectorSplitting(dim=dim, reg=reg, rank=4),
    "psi compensated": lambda dim, reg: op.ProjectorSplitting(dim=dim, reg=reg, rank=4, compensate=True),
}
KINDS = dict(rows_of_all_kinds(DIM, COUNT))


def stacked(design, later):
    """Rows S and ridge with A_hat = ridge I + S^T S, read from the state; `later`: rows since the exact phase began."""
    state = design.state
    if isinstance(design, op.Exact):
        return later, state.settings.reg
    if isinstance(design, op.FrequentDirections):
        used = state.space.used
        return state.triangle[:used, :used] @ state.space.basis[:used], state.space.ridge
    frozen = np.sqrt(state.spectrum)[:, None] * state.whole.basis[: state.spectrum.size]
    block = state.block
    ridge = block.settings.reg + block.settings.compensation * (state.sums.shed + block.sums.shed)
    if state.phase == SKETCHED:
        used = block.space.used
        return np.vstack([frozen, block.triangle[:used, :used] @ block.space.basis[:used]]), ridge
    return np.vstack([frozen, later]), ridge


def played(name, reg, rows):
    """The design after the rows, with its dense truth (S, ridge); the truth of the dense phase is carried along."""
    design, later, known = MEMBERS[name](DIM, reg), np.zeros((0, DIM)), None
    for row in rows:
        was_sketched = isinstance(design, op.Dyadic) and design.state.phase == SKETCHED
        design.append(row)
        later = row[None] if was_sketched else np.vstack([later, row])
        if isinstance(design, op.Dyadic) and design.state.phase == DENSE:
            known = (np.vstack([known[0], row]), known[1])
        else:
            known = stacked(design, later) if not isinstance(design, op.ProjectorSplitting) else None
    return design, known


@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MEMBERS)
def test_every_answer_agrees_with_the_dense_inverse(name, kind, reg):
    design, known = played(name, reg, KINDS[kind])
    if known is None:  # projector splitting: A^-1 = L^-T L^-1 is what it stands for
        state = design.state
        lower = np.eye(DIM) - state.left[: state.used].T @ state.right[: state.used]
        inverse, log_det = lower.T @ lower / state.ridge, DIM * np.log(state.ridge) - 2 * np.linalg.slogdet(lower)[1]
    else:
        inverse, log_det = dense.inverse(*known), dense.log_det(*known)
    size = np.linalg.norm(inverse, 2)
    solved = np.stack([design.solve(e) for e in np.eye(DIM)], axis=1)
    assert np.linalg.norm(solved - inverse, 2) <= 1e-8 * size
    root = np.stack([design.root(e) for e in np.eye(DIM)], axis=1)
    assert np.linalg.norm(root @ root.T - inverse, 2) <= 1e-8 * size
    queries = np.random.default_rng(2).standard_normal((20, DIM))
    want = np.einsum("ij,jk,ik->i", queries, inverse, queries)
    np.testing.assert_allclose(design.inverse_quadratic(queries), want, rtol=1e-8)
    assert abs(design.log_det() - log_det) <= 1e-8 * (DIM + abs(log_det))


@pytest.mark.parametrize("name", ["exact", "fd", "rfd", "dyadic never exact"])
def test_widths_of_huge_rows_seen_before_keep_their_digits(name):
    rows = KINDS["badly scaled"][:5]
    design, (s, ridge) = played(name, 0.37, rows)
    # x^T A^-1 x of a learned row is near 1 while ||x||^2 / reg is up to 1e13
    with np.errstate(all="ignore"):
        factor = np.linalg.qr(np.vstack([np.sqrt(ridge) * np.eye(DIM), s]), mode="r")
    want = np.sum(np.linalg.solve(factor.T, rows.T) ** 2, axis=0)
    np.testing.assert_allclose(design.inverse_quadratic(rows), want, rtol=1e-8)


@pytest.mark.parametrize("name", MEMBERS)
def test_members_keep_the_shipped_contract(name):
    check_design(MEMBERS[name])


@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize(
    "name", sorted(set(MEMBERS) - {"exact", "dyadic", "dyadic rfd", "dyadic half"})
)  # those: test_theorems
@pytest.mark.parametrize("single", [True, False])
def test_sketches_are_exact_on_data_of_low_rank(name, single, reg):
    rows = KINDS["low rank"] / 3.0
    rows = np.vstack([rows, rows[:7], np.zeros((2, DIM))])  # repeats and zeros do not inflate the rank
    design, truth = MEMBERS[name](DIM, reg), dense.inverse(rows, reg)
    for part in rows if single else np.array_split(rows, 9):
        design.append(part)
    solved = np.stack([design.solve(e) for e in np.eye(DIM)], axis=1)
    assert np.linalg.norm(solved - truth, 2) <= 1e-9 * np.linalg.norm(truth, 2)
    assert design.error_bound() <= 1e-9 * np.linalg.norm(rows) ** 2
    assert abs(design.log_det() - dense.log_det(rows, reg)) < 1e-8


@pytest.mark.parametrize("reg", REGS)
def test_exact_batches_equal_single_rows(reg):
    rows = np.random.default_rng(3).standard_normal((300, DIM))
    one, many, uneven = (op.Exact(dim=DIM, reg=reg) for _ in range(3))
    for row in rows:
        one.append(row)
    many.append(rows)
    for start, stop in ((0, 5), (5, 70), (70, 71), (71, 300)):
        uneven.append(rows[start:stop])
    truth = dense.inverse(rows, reg)
    for design in (one, many, uneven):
        solved = np.stack([design.solve(e) for e in np.eye(DIM)], axis=1)
        np.testing.assert_allclose(solved, truth, atol=1e-12 * np.abs(truth).max())


@pytest.mark.parametrize("reg", [0.01, 1.0])
def test_a_few_rows_as_long_as_1e6_leave_the_small_eigenvalues_of_the_exact_design_as_they_are(reg):
    """A loses those near reg to its roundings, 1e-16 of 1e13; the root knows them, and is not made anew from A."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        rows = rng.standard_normal((64, DIM)) * np.where(rng.uniform(size=(64, 1)) < 0.05, 1e6, 1e-6)
        _, singular, turned = np.linalg.svd(np.vstack([rows, np.sqrt(reg) * np.eye(DIM)]), full_matrices=False)
        truth = (turned.T / singular**2) @ turned
        for parts in (rows, [rows]):
            design = op.Exact(dim=DIM, reg=reg)
            for part in parts:
                design.append(part)
            solved = np.stack([design.solve(e) for e in np.eye(DIM)], axis=1)
            assert np.linalg.norm(solved - truth, 2) <= 1e-9 * np.linalg.norm(truth, 2)


def test_exact_drift_is_noticed_and_repaired():
    rows = np.random.default_rng(4).standard_normal((256, DIM))
    design = op.Exact(dim=DIM, reg=0.37).append(rows[:128])
    design.state.root[:] += 1e-6 * np.random.default_rng(5).standard_normal((DIM, DIM))
    design.append(rows[128:])
    truth = dense.inverse(rows, 0.37)
    assert design.state.repairs >= 1
    root = np.stack([design.root(e) for e in np.eye(DIM)], axis=1)
    np.testing.assert_allclose(root @ root.T, truth, atol=1e-10 * np.abs(truth).max())
    np.testing.assert_allclose(
        np.stack([design.solve(e) for e in np.eye(DIM)]), truth, atol=1e-10 * np.abs(truth).max()
    )


@njit
def one_by_one(state, rows):
    for i in range(rows.shape[0]):
        state = contract.append(state, rows[i])
    return state


def test_a_million_rows_leave_the_exact_inverse_within_1e_8():
    rng, dim = np.random.default_rng(6), 50
    rows = rng.standard_normal((1_000_000, dim)) * np.linspace(0.1, 3.0, dim)
    design = op.Exact(dim=dim, reg=0.37)
    state = one_by_one(design.state, rows)
    fresh = np.linalg.inv(0.37 * np.eye(dim) + rows.T @ rows)
    ours = state.root @ state.root.T
    assert np.linalg.norm(ours - fresh, 2) <= 1e-8 * np.linalg.norm(fresh, 2)


@pytest.mark.parametrize("name", sorted(set(MEMBERS) - {"exact"}))
def test_memory_does_not_grow_with_rounds(name):
    rows = np.random.default_rng(7).standard_normal((2000, DIM))
    design = MEMBERS[name](DIM, 0.37).append(rows[:400])
    before = design.memory_usage()
    assert design.append(rows[400:]).memory_usage() == before


def test_basis_stays_orthonormal_over_many_shrinks():
    rows = np.random.default_rng(8).standard_normal((30_000, DIM))
    design = op.FrequentDirections(dim=DIM, size=3, reg=0.37).append(rows)
    basis = design.state.space.basis[: design.state.space.used]
    assert np.abs(basis @ basis.T - np.eye(len(basis))).max() < 1e-11


@pytest.mark.parametrize(
    "make",
    [
        lambda dtype: op.Exact(dim=DIM, reg=4.0, dtype=dtype),
        lambda dtype: op.RobustFrequentDirections(dim=DIM, reg=4.0, size=3, dtype=dtype),
        lambda dtype: op.Dyadic(dim=DIM, reg=4.0, size=2, error=8.0, dtype=dtype),
        lambda dtype: op.ProjectorSplitting(dim=DIM, reg=4.0, rank=3, dtype=dtype),
        lambda dtype: op.ProjectorSplitting(dim=DIM, reg=4.0, rank=3, compensate=True, dtype=dtype),
    ],
)
def test_float32_agrees_with_float64_and_takes_about_half_the_memory(make):
    rows = np.random.default_rng(9).standard_normal((40, DIM)).astype(np.float32)
    single, double = make("float32"), make("float64")
    for part in (rows[0], rows[1:20], *rows[20:]):
        single.append(part)
        double.append(part)
    np.testing.assert_allclose(single.solve(rows[0]), double.solve(rows[0]), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(single.inverse_quadratic(rows), double.inverse_quadratic(rows), rtol=1e-3)
    assert single.memory_usage() < 0.6 * double.memory_usage()


def test_nearly_collinear_rows_never_outgrow_the_room_of_dyadic_blocks():
    """Rows within rounding of each other's span: frozen and active blocks need not agree on what is a new direction."""
    for seed in range(12):
        rng, dim, rank = np.random.default_rng(seed), 60, 5 + seed
        directions = rng.standard_normal((rank, dim))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        design = op.Dyadic(dim=dim, size=3, error=5.0, dtype="float32")
        for _ in range(250):
            row = directions[rng.integers(rank)] * (10 ** rng.uniform(-5, 0.3) if rng.random() < 0.5 else 1.0)
            nearby = (rng.standard_normal(rank) * (rng.random(rank) < 0.3)) @ directions
            design.append((row + nearby * 6e-5 * 10 ** rng.uniform(-2, 2.5)).astype(np.float32))
            whole, block = design.state.whole, design.state.block
            assert whole.used <= whole.basis.shape[0] <= dim
            assert block.space.used <= block.space.basis.shape[0]
        assert np.isfinite(design.solve(directions[0])).all()


@pytest.mark.parametrize("compensate", [False, True])
@pytest.mark.parametrize("dim", [1, 2, 3, 5])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_splitting_of_full_rank_is_exact_for_ever(dim, compensate, dtype):
    rows = np.random.default_rng(dim).standard_normal((40, dim))
    design = op.ProjectorSplitting(dim=dim, rank=dim, reg=0.37, compensate=compensate, dtype=dtype)
    for part in (*rows[:30], rows[30:]):
        design.append(part)
    assert design.error_bound() <= (1e-8 if dtype == "float64" else 1.0) * np.linalg.norm(rows) ** 2  # its rounding
    truth = dense.inverse(rows, 0.37)
    solved = np.stack([design.solve(e) for e in np.eye(dim)])
    assert np.abs(solved - truth).max() <= (1e-9 if dtype == "float64" else 1e-3) * np.abs(truth).max()


def test_splitting_in_single_precision_knows_when_nothing_was_lost():
    rows = np.outer(np.linspace(1, 2, 20), np.arange(1.0, 7.0)).astype(np.float32)
    design = op.ProjectorSplitting(dim=6, rank=3, dtype="float32")
    for row in rows:
        design.append(row)
    assert design.error_bound() <= 0.01 * np.linalg.norm(rows) ** 2  # its rounding


def test_members_take_the_memory_they_say():
    dim = 200
    rows = np.random.default_rng(10).standard_normal((500, dim))
    for size in (20, 50, 150, 200):
        design = op.Dyadic(dim=dim, size=size, error=20.0).append(rows)
        assert design.memory_usage() <= 8 * (2 * dim**2 + 64 * dim + 2 * dim) * 1.1
