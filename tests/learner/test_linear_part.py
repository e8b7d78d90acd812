"""The linear part of KernelNewton equals its naive version, and sparse, rare and wide features are learned with it."""

import numpy as np
import pytest
from scipy import sparse

import dense_newton as dense
import onepass as op
from wide_rows import wide

MAP = {"size": 8, "width": None, "width_factor": 1.0, "standardize": True, "recent": True, "seed": 3}


def mixed(count=150, seed=0):
    """Numbers far from zero, counts that are mostly zero, one of them not seen for a while, a constant; two classes."""
    rng = np.random.default_rng(seed)
    rare = (rng.random((count, 3)) < 0.3) * rng.integers(1, 4, (count, 3))
    rare[: count // 2, 0] = 0
    rows = np.column_stack([1e3 + rng.standard_normal((count, 2)), rare, np.full(count, 5.0)])
    f = rows[:, 0] - 1e3 + rare[:, 1] - rare[:, 2] + 2.0 * rare[:, 0] + 0.2 * rng.standard_normal(count)
    return rows, np.where(f < 0.3, -1.0, 1.0)


@pytest.mark.parametrize(("reg", "memory", "warm_up"), [(0.03, None, 45), (2.0, 20.0, 64)])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_decisions_equal_those_of_the_naive_version(loss, reg, memory, warm_up):
    rows, labels = mixed()
    steps = {"loss": loss, "reg": reg, "warm_up": warm_up, "memory": memory, "gain": 1.7}
    found = op.progressive_validation(op.KernelNewton(**steps, **MAP), rows, labels).decisions
    want = dense.kernel_newton(rows, labels, features="nystrom", rank=8, **steps, **MAP)
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-7)


def test_features_unseen_in_the_warm_up_are_learned_later():
    rng = np.random.default_rng(0)
    rows = (rng.random((4_000, 20)) < 0.2).astype(np.float64)
    rows[:400, 0] = 0.0
    labels = np.where(rows[:, 0] > 0.0, 1.0, -1.0)
    late = slice(2_000, None)
    assert op.progressive_validation(op.KernelNewton(), rows, labels).mistakes[late].mean() < 0.01
    alone = op.progressive_validation(op.KernelNewton(linear=False), rows, labels).mistakes[late].mean()
    assert alone > 0.1  # the kernel's features are cut at what they were


def test_scaling_a_feature_changes_nothing():
    rows, labels = mixed(400)
    rows = rows[:, [0, 1, 3, 4, 5]]
    want = op.progressive_validation(op.KernelNewton(size=20), rows, labels).decisions
    found = op.progressive_validation(op.KernelNewton(size=20), rows * 2.0 ** np.array([3, -40, 5, 5, 1]), labels)
    np.testing.assert_allclose(found.decisions[2:], want[2:], rtol=0, atol=1e-9)  # a single row has no scale


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_wide_binary_rows_are_learned_where_the_kernel_alone_is_the_constant(loss):
    rows, labels = wide()
    rate = op.progressive_validation(op.KernelNewton(loss=loss), rows, labels).mistake_rate
    alone = op.progressive_validation(op.KernelNewton(loss=loss, linear=False), rows, labels).mistake_rate
    assert rate < 0.93 * min(alone, (labels > 0.0).mean())


def test_hashed_rows_are_the_same_dense_or_sparse_and_are_learned():
    rng = np.random.default_rng(0)
    rows = sparse.random(1_500, 3_000, density=0.01, format="csr", random_state=0, data_rvs=rng.standard_normal)
    labels = np.where(rows[:, :200].toarray().sum(axis=1) > 0.0, 1.0, -1.0)
    made = [op.KernelNewton(columns=700, size=20).partial_fit(X, labels) for X in (rows, rows.toarray())]
    np.testing.assert_array_equal(made[0].decision_function(rows), made[1].decision_function(rows.toarray()))
    assert np.mean(made[0].predict(rows) == labels) > 0.65


def test_memory_of_very_wide_sparse_rows_is_one_percent_of_landmarks_in_full():
    width = 200_000
    rows = sparse.random(80, width, density=5e-4, format="csr", random_state=0)
    labels = np.where(np.asarray(rows[:, : width // 2].sum(axis=1)).reshape(-1) > 25.0, 1.0, -1.0)
    learner = op.KernelNewton(warm_up=64).partial_fit(rows, labels)
    assert learner.memory_usage() <= 0.01 * 100 * width * 8 * 1.05  # 100 landmarks in float64 are 160 MB
