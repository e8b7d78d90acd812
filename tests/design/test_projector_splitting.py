"""Projector splitting equals Shustova et al.'s algorithms with dense matrices, before and after a cut."""

import numpy as np
import pytest

import dense
import onepass as op

DIM, RANK, REG = 10, 3, 0.37


def stream(seed=0):
    """Batches of one to three rows of a decaying spectrum; far more is cut than reg."""
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((size, DIM)) * 0.7 ** np.arange(DIM) for size in (2, 1, 3, 3, 2, 3, 1, 3, 2, 3)]


def inverse(design):
    return np.stack([design.solve(e) for e in np.eye(design.dim)], axis=1)


@pytest.mark.parametrize("factor", ["symmetric", "cholesky"])
def test_batches_are_integrated_as_in_algorithms_2_to_4(factor):
    design = op.ProjectorSplitting(dim=DIM, rank=RANK, reg=REG, factor=factor)
    naive = dense.ProjectorSplitting(DIM, RANK, REG, cholesky=factor == "cholesky")
    for batch in stream():
        design.append(batch)
        naive.add(batch)
        naive.compress()
        np.testing.assert_allclose(inverse(design), naive.inverse(), atol=1e-9)
    assert naive.lossy


def test_both_factors_are_exact_until_something_is_cut_and_differ_afterwards():
    rows = stream()
    exact, found = op.Exact(dim=DIM, reg=REG), {}
    for factor in ("symmetric", "cholesky"):
        found[factor] = op.ProjectorSplitting(dim=DIM, rank=RANK, reg=REG, factor=factor)
        np.testing.assert_allclose(inverse(found[factor].append(rows[2])), inverse(exact.append(rows[2])), atol=1e-12)
        exact = op.Exact(dim=DIM, reg=REG)
        for batch in rows:
            found[factor].append(batch)
    gap = np.linalg.norm(inverse(found["symmetric"]) - inverse(found["cholesky"]), 2) * REG
    assert 0.001 < gap < 1.0


def test_long_batches_are_learned_in_pieces_which_is_no_less_accurate():
    """Error of the inverse, over its norm, after batches of four times the rank; measured: 0.81, and 0.82 whole."""
    dim, rank, reg, errors = 40, 6, 20.0, []
    for seed in range(20):
        rng, exact = np.random.default_rng(seed), reg * np.eye(dim)
        design, whole = op.ProjectorSplitting(dim=dim, rank=rank, reg=reg), dense.ProjectorSplitting(dim, rank, reg)
        pieces = dense.ProjectorSplitting(dim, rank, reg)
        for _ in range(12):
            batch = rng.standard_normal((4 * rank, dim)) * 0.9 ** np.arange(dim)
            exact += batch.T @ batch
            design.append(batch)
            whole.add(batch)
            whole.compress()
            for piece in np.split(batch, 4):
                pieces.add(piece)
                pieces.compress()
        np.testing.assert_allclose(inverse(design), pieces.inverse(), atol=1e-8)
        errors.append([np.linalg.norm(one.inverse() - np.linalg.inv(exact), 2) for one in (pieces, whole)])
    ours, theirs = np.mean(errors, axis=0)
    assert ours < theirs


def test_a_step_a_row_is_algorithm_6():
    design = op.ProjectorSplitting(dim=DIM, rank=RANK, reg=REG, schedule="row")
    naive, held = dense.ProjectorSplitting(DIM, RANK, REG), 0
    for row in np.vstack(stream()):
        design.append(row)
        naive.add(row[None])
        held += 1
        if held == 2 * RANK or naive.lossy:
            naive.compress()
            held = RANK
        np.testing.assert_allclose(inverse(design), naive.inverse(), atol=1e-9)
    assert naive.lossy
    together = op.ProjectorSplitting(dim=DIM, rank=RANK, reg=REG, schedule="row").append(np.vstack(stream()))
    np.testing.assert_allclose(inverse(together), inverse(design), atol=1e-12)


def test_rows_wait_for_a_common_step_by_default():
    design, naive, held = (
        op.ProjectorSplitting(dim=DIM, rank=RANK, reg=REG),
        dense.ProjectorSplitting(DIM, RANK, REG),
        0,
    )
    for row in np.vstack(stream()):
        design.append(row)
        naive.add(row[None])
        held += 1
        if held == 2 * RANK:
            naive.compress()
            held = RANK
        np.testing.assert_allclose(inverse(design), naive.inverse(), atol=1e-9)


@pytest.mark.parametrize("given", [{"compensate": True}, {"factor": "cholesky"}])
def test_a_step_a_row_has_no_batch_and_no_compensation(given):
    with pytest.raises(ValueError, match="schedule must be 'batch'"):
        op.ProjectorSplitting(dim=DIM, rank=RANK, schedule="row", **given)


@pytest.mark.parametrize("factor", ["symmetric", "cholesky"])
def test_models_of_arms_by_the_integrator_equal_a_design_for_each_arm(factor):
    """Contexts (u, v_a): the integrator in d_u dimensions is that in d_u d_a dimensions, turned."""
    rng = np.random.default_rng(1)
    own, rows = rng.standard_normal((3, 2)), rng.standard_normal((60, 5)) * 0.7 ** np.arange(5)
    arms, rewards = rng.integers(3, size=60), rng.standard_normal(60)
    bandit = op.PSILinUCB(
        dim=(5, 2), rank=2, reg=REG, exploration=-0.1, model="disjoint", integrator=True, factor=factor
    )  # fmt: skip
    naive = [dense.ProjectorSplitting(10, 2, REG, cholesky=factor == "cholesky") for _ in range(3)]
    moments = np.zeros((3, 10))
    for start in range(0, 60, 6):
        part = slice(start, start + 6)
        bandit.learn(op.Factors(rows[part], own[arms[part]]), rewards[part], arm=arms[part])
        for a in range(3):
            mine = start + np.flatnonzero(arms[part] == a)
            full = np.einsum("ni,j->nij", rows[mine], own[a]).reshape(-1, 10)
            moments[a] += full.T @ rewards[mine]
            for piece in range(0, len(full), 2):
                naive[a].add(full[piece : piece + 2])
                naive[a].compress()
    user = rng.standard_normal((1, 5))
    found = bandit.recommend(op.Factors(user, own), 3, arms=[0, 1, 2])
    full = np.einsum("i,aj->aij", user[0], own).reshape(3, 10)
    scores = [
        x @ n.inverse() @ b - 0.1 * np.sqrt(x @ n.inverse() @ x) for x, n, b in zip(full, naive, moments, strict=True)
    ]
    np.testing.assert_allclose(found.scores[0], np.sort(scores)[::-1], atol=1e-8)


def test_options_of_the_integrator_need_it():
    with pytest.raises(ValueError, match="integrator must be True"):
        op.PSILinUCB(dim=4, rank=2, model="disjoint", factor="cholesky")
    with pytest.raises(ValueError, match="integrator must be False"):
        op.PSILinUCB(dim=4, rank=2, model="disjoint", integrator=True, compensate=True)
