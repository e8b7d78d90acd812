"""TISVD: equal to the truncated decomposition while nothing is truncated, orthonormal for ever, no direction twice."""

import numpy as np
import pytest

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
