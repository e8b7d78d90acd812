"""TISVD: equal to the truncated decomposition while nothing is truncated, orthonormal for ever, no direction twice."""

import numpy as np
import pytest

import onepass as op
from onepass.foundation.linalg import tisvd


def empty(n):
    return np.empty((0, n)), np.empty(0)


def dense(vectors, values):
    return (vectors.T * values) @ vectors


def updates(n, count, seed=0):
    """Updates a, b for which every M + a b^T + b a^T is positive semi-definite: a = s, b = s / 2 times c."""
    rows = np.random.default_rng(seed).standard_normal((count, n))
    return [(row, 0.5 * row) for row in rows]


def test_nothing_truncated_equals_the_dense_decomposition():
    n, rng = 12, np.random.default_rng(1)
    points, hashes = rng.standard_normal((40, 3)), np.zeros((40, n))
    hashes[np.arange(40), rng.integers(0, n, 40)] = rng.choice([-1.0, 1.0], 40)
    gram = np.exp(-0.5 * ((points[:, None] - points[None]) ** 2).sum(axis=2))
    vectors, values = empty(n)
    for t in range(40):  # the sketch S^T K S of a growing kernel matrix, as in Wen, Zhang et al. equation 12
        psi = hashes[:t].T @ gram[:t, t]
        vectors, values = tisvd(vectors, values, hashes[t], psi + 0.5 * gram[t, t] * hashes[t], n)
        want = hashes[: t + 1].T @ gram[: t + 1, : t + 1] @ hashes[: t + 1]
        np.testing.assert_allclose(dense(vectors, values), want, atol=1e-10)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(want)[::-1][: len(values)], atol=1e-10)


def test_a_truncated_update_is_the_best_of_its_rank():
    n, rank = 10, 4
    vectors, values = empty(n)
    for a, b in updates(n, 30):
        full = dense(vectors, values) + np.outer(a, b) + np.outer(b, a)
        vectors, values = tisvd(vectors, values, a, b, rank)
        left, singular, right = np.linalg.svd(full)
        np.testing.assert_allclose(dense(vectors, values), (left[:, :rank] * singular[:rank]) @ right[:rank], atol=1e-9)


def test_vectors_stay_orthonormal_over_50_000_updates():
    n, rank, rng = 20, 6, np.random.default_rng(2)
    rows = rng.standard_normal((50_000, n)) * 10.0 ** rng.uniform(-3, 3, (50_000, 1))
    vectors, values = empty(n)
    for row in rows:
        vectors, values = tisvd(vectors, 0.999 * values, row, 0.5 * row, rank)
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(rank), atol=1e-10)
    assert np.isfinite(values).all()


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_repeated_and_zero_updates_add_no_direction(scale):
    n, rng = 8, np.random.default_rng(3)
    row, zero = scale * rng.standard_normal(n), np.zeros(n)
    vectors, values = tisvd(*empty(n), zero, zero, 5)
    assert vectors.shape == (0, n)
    for times in range(1, 6):
        vectors, values = tisvd(vectors, values, row, 0.5 * row, 5)
        assert vectors.shape == (1, n)
        np.testing.assert_allclose(values, [times * row @ row], rtol=1e-12)
        vectors, values = tisvd(vectors, values, zero, row, 5)
        np.testing.assert_allclose(values, [times * row @ row], rtol=1e-12)


# --- any matrix, any update


def test_the_general_decomposition_is_the_best_of_its_rank_of_every_update():
    rng = np.random.default_rng(5)
    matrix = rng.standard_normal((9, 7))
    decomposition, held = op.learner.TISVD(4, matrix), best_of_rank(matrix, 4)
    for columns in (1, 3, 2, 5):
        left, right = rng.standard_normal((9, columns)), rng.standard_normal((7, columns))
        held = best_of_rank(held + left @ right.T, 4)
        np.testing.assert_allclose(decomposition.update(left, right).approximation(), held, atol=1e-10)
    np.testing.assert_allclose(decomposition.left.T @ decomposition.left, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(decomposition.right.T @ decomposition.right, np.eye(4), atol=1e-12)


def best_of_rank(matrix, rank):
    left, singular, right = np.linalg.svd(matrix)
    return (left[:, :rank] * singular[:rank]) @ right[:rank]


def test_the_general_decomposition_handles_an_indefinite_symmetric_matrix():
    rng = np.random.default_rng(6)
    decomposition, held = op.learner.TISVD(rank=3), np.zeros((8, 8))
    for _ in range(20):
        a, b = rng.standard_normal((2, 8))
        held = best_of_rank(held + np.outer(a, b) + np.outer(b, a), 3)
        decomposition.update(np.stack([a, b], axis=1), np.stack([b, a], axis=1))
        np.testing.assert_allclose(decomposition.approximation(), held, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_repeated_zero_and_dependent_columns_add_no_direction(scale):
    rng = np.random.default_rng(3)
    a, b = scale * rng.standard_normal(6), rng.standard_normal(5)
    decomposition = op.learner.TISVD(rank=5).update(np.zeros(6), b)
    assert decomposition.values.size == 0
    for times in range(1, 4):
        decomposition.update(np.stack([a, 2.0 * a, 0.0 * a], axis=1), np.stack([b, -b, b], axis=1))
        assert (decomposition.values > 1e-12 * scale).sum() == 1
        np.testing.assert_allclose(decomposition.approximation(), -times * np.outer(a, b), rtol=1e-9, atol=1e-20)


def test_the_general_decomposition_refuses_what_does_not_fit():
    decomposition = op.learner.TISVD(2, np.eye(3))
    with pytest.raises(ValueError, match="must have 3 and 3 rows"):
        decomposition.update(np.ones((3, 2)), np.ones((3, 1)))
    with pytest.raises(ValueError, match="finite"):
        decomposition.update([1.0, np.nan, 0.0], np.ones(3))
    np.testing.assert_array_equal(decomposition.values, [1.0, 1.0])
