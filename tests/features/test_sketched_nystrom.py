"""The sketched Nystrom map: its sketches are those computed from scratch, at full size it is the kernel itself."""

import numpy as np
import pytest

from onepass.features.contract import transform_row
from onepass.features.sketched_nystrom import absorb, sjlt_row
from onepass.features.sketched_nystrom import make_sketched_nystrom as sketched

PRECISION = 0.7


def sketched_nystrom(points, *sizes):
    return sketched(points, len(points), *sizes)


def embedded(state, x):
    phi = np.empty(state.features.z.shape[1])
    transform_row(state, x, phi)
    return phi


def kernel(x, y):
    return np.exp(-PRECISION * ((x[:, None] - y[None]) ** 2).sum(axis=2))


def hashes(count, size, blocks, seed):
    return np.stack([sjlt_row(n, size, blocks, seed) for n in range(count)])


@pytest.mark.parametrize(("size", "blocks"), [(16, 1), (16, 4), (15, 3)])
def test_a_row_of_the_sjlt_has_one_entry_a_block_and_unit_length(size, blocks):
    rows = hashes(4000, size, blocks, 5)
    in_blocks = (rows.reshape(4000, blocks, -1) != 0.0).sum(axis=2)
    assert (in_blocks == 1).all()
    np.testing.assert_allclose((rows**2).sum(axis=1), 1.0)
    places = (rows != 0.0).sum(axis=0)
    expected = 4000 * blocks / size
    assert (np.abs(places - expected) < 5.0 * np.sqrt(expected)).all()
    assert abs((rows > 0).sum() - 2000 * blocks) < 5.0 * np.sqrt(1000 * blocks)
    assert not np.array_equal(rows, hashes(4000, size, blocks, 6))


@pytest.mark.parametrize("blocks", [1, 3])
def test_inner_products_survive_the_sjlt_in_the_mean(blocks):
    x, y = np.random.default_rng(0).standard_normal((2, 30))
    products = [(x @ hashes(30, 12, blocks, seed)) @ (y @ hashes(30, 12, blocks, seed)) for seed in range(2000)]
    assert abs(np.mean(products) - x @ y) < 5.0 * np.std(products) / 2000**0.5


@pytest.mark.parametrize("blocks", [1, 2])
def test_sketches_equal_those_from_scratch_after_every_update(blocks):
    rng = np.random.default_rng(1)
    points, size = rng.standard_normal((60, 3)), 12
    points[40:50] = points[30]  # one point again and again
    points[50:53] = 0.0
    places = np.array([3, 7, 11, 19, 2])
    state = sketched_nystrom(points[:20].copy(), places, size, 6, blocks, 9, PRECISION)
    for t in range(20, 60):
        state = absorb(state, points[t])
        gram, rows = kernel(points[: t + 1], points[: t + 1]), hashes(t + 1, size, blocks, 9)
        np.testing.assert_allclose(state.pp, rows.T @ gram @ rows, atol=1e-8)
        np.testing.assert_allclose(state.pm, rows.T @ gram[:, places], atol=1e-8)
        np.testing.assert_allclose(state.vectors @ state.vectors.T, np.eye(len(state.values)), atol=1e-10)
        assert np.isfinite(embedded(state, points[t])).all()


def test_a_map_of_full_rank_is_decomposed_as_from_scratch():
    rng = np.random.default_rng(2)
    points, size = rng.standard_normal((40, 3)), 10
    places = np.arange(10)
    state = sketched_nystrom(points[:20].copy(), places, size, size, 1, 4, PRECISION)
    for point in points[20:]:
        state = absorb(state, point)
    again = sketched_nystrom(points, places, size, size, 1, 4, PRECISION)
    np.testing.assert_allclose((state.vectors.T * state.values) @ state.vectors, again.pp, atol=1e-8)
    queries = rng.standard_normal((5, 3))
    one = np.stack([embedded(state, x) for x in queries])
    two = np.stack([embedded(again, x) for x in queries])
    np.testing.assert_allclose(one @ one.T, two @ two.T, atol=1e-6)


def test_at_full_size_the_map_is_the_kernel():
    """All points are landmarks, S_p has full rank (five times as many columns as points) and nothing is truncated."""
    points = np.random.default_rng(3).standard_normal((12, 4))
    state = sketched_nystrom(points[:8].copy(), np.arange(8), 60, 60, 3, 1, PRECISION)
    assert np.linalg.matrix_rank(hashes(8, 60, 3, 1)) == 8
    features = np.stack([embedded(state, x) for x in points[:8]])
    np.testing.assert_allclose(features @ features.T, kernel(points[:8], points[:8]), atol=1e-8)


def test_it_approximates_the_kernel_better_with_larger_sketches():
    points = np.random.default_rng(4).standard_normal((200, 2))
    gram = kernel(points, points)
    errors = []
    for size, landmarks in ((10, 5), (40, 20), (160, 60)):
        state = sketched_nystrom(points, np.arange(landmarks), size, landmarks, 1, 0, PRECISION)
        features = np.stack([embedded(state, x) for x in points])
        errors.append(np.linalg.norm(features @ features.T - gram) / np.linalg.norm(gram))
    assert errors[2] < 0.5 * errors[1] < 0.5 * errors[0]


def test_repeated_landmarks_and_zero_rows_give_no_nan():
    points = np.vstack([np.zeros((10, 3)), np.ones((10, 3))])
    state = sketched_nystrom(points, np.arange(8), 16, 4, 2, 0, PRECISION)
    for x in (np.zeros(3), np.ones(3), np.full(3, 1e6)):
        state = absorb(state, x)
        assert np.isfinite(embedded(state, x)).all()
    assert abs(np.linalg.norm(embedded(state, np.zeros(3))) - 1.0) < 0.05
