"""Standardize: two passes' answer in one, bounded on learned rows, zero where nothing varies, in every unit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dense_features as dense
import onepass as op
from onepass.features import contract

DIM = 3


def learned(rows):
    """z of every row as it was learned, and the map afterwards."""
    features = op.features.Standardize(dim=rows.shape[1])
    return contract.update_and_transform(features.state, rows), features


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    count=st.integers(1, 60),
    seed=st.integers(0, 2**32 - 1),
    scale=st.floats(-140.0, 140.0),
    offset=st.floats(-1e4, 1e4),
    outlier=st.floats(0.0, 9.0),
)
def test_one_pass_gives_what_two_passes_give_in_any_unit(count, seed, scale, offset, outlier):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, DIM)) + offset
    rows[rng.integers(count)] += 10.0**outlier
    rows[:, 1] = rows[0, 1]
    z, features = learned(rows * 10.0**scale)
    # deviations are known to a rounding of the mean, count times; in units of a deviation that is at least 0.01
    tolerance = 1e3 * count * np.finfo(float).eps * (1.0 + abs(offset)) * 100.0
    np.testing.assert_allclose(z, dense.learned(dense.standardize, rows), rtol=1e-8, atol=max(tolerance, 1e-9))
    asked = features.transform(rows[:5] * 10.0**scale)
    np.testing.assert_allclose(asked, dense.standardize(rows[:5], rows), rtol=1e-8, atol=max(tolerance, 1e-9))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.lists(
        st.lists(st.floats(-1e150, 1e150, allow_subnormal=True), min_size=DIM, max_size=DIM), min_size=1, max_size=30
    )
)
def test_learned_rows_stay_within_the_root_of_their_number_whatever_comes(rows):
    z, _ = learned(np.array(rows))
    most = np.sqrt(np.arange(len(rows)))[:, None]
    assert (np.abs(z) <= most * (1.0 + 1e-7)).all()


@pytest.mark.parametrize("value", [0.0, 1.0, -0.1, 1e150, 1e-150, 5e-324, 1 / 3])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_constant_columns_give_zero_and_nothing_else_is_touched(value, dtype):
    rng = np.random.default_rng(0)
    column = np.full(1000, value if dtype == "float64" else min(value, 1e15))
    rows = np.stack([column, rng.standard_normal(1000)], axis=1)
    rows = rows.astype(dtype)
    state = op.features.Standardize(dim=2).begin(rows.dtype)
    z = contract.update_and_transform(state, rows)
    assert z.dtype == rows.dtype
    assert (z[:, 0] == 0.0).all()
    assert abs(z[2:, 1].std() - 1.0) < 0.1
    asked = contract.transform(state, rows + np.array([1, 0], dtype))
    assert (asked[:, 0] == 0.0).all()


def test_columns_that_vary_by_roundings_only_count_as_constant():
    sums = np.array([0.1 + 0.2, 0.3] * 50)
    z, _ = learned(sums[:, None])
    assert (z == 0.0).all()
    varying = 0.3 + 1e-12 * np.array([0.0, 1.0] * 50)
    assert abs(learned(varying[:, None])[0][-1, 0]) == pytest.approx(1.0, rel=1e-3)


def test_before_the_second_row_everything_is_zero():
    features = op.features.Standardize(dim=2)
    assert (features.transform(np.eye(2)) == 0.0).all()
    z, features = learned(np.array([[3.0, 4.0], [5.0, 4.0]]))
    assert z.tolist() == [[0.0, 0.0], [1.0, 0.0]]


def test_units_do_not_matter_to_a_bandit_behind_it():
    rng = np.random.default_rng(1)
    rows, rewards, asked = rng.standard_normal((200, 4)), rng.standard_normal(200), rng.standard_normal((5, 4))
    units, places = 10.0 ** np.array([-6.0, 0.0, 3.0, 9.0]), np.array([5.0, -3.0, 0.0, 100.0])
    scores = []
    for unit, place in ((np.ones(4), np.zeros(4)), (units, units * places)):
        bandit = op.Bandit(op.Ridge(op.Exact(dim=4, reg=0.37)), features=op.features.Standardize(dim=4))
        bandit.learn(rows * unit + place, rewards)
        scores.append(bandit.score(asked * unit + place))
    np.testing.assert_allclose(scores[1], scores[0], rtol=0.0, atol=1e-9)


def moments(rows, warm):
    """(z^T z as the rows were learned after the first `warm`, z^T z of the same rows by the map at the end) / count."""
    state = op.features.Standardize(dim=3).begin(rows.dtype)
    then = contract.update_and_transform(state, rows)[warm:]
    today = contract.transform(state, rows)[warm:]
    return then.T @ then / len(then), today.T @ today / len(then)


def test_what_was_learned_stays_as_it_was_mapped_then_and_a_map_that_knows_rows_already_is_closer_to_today():
    gaps = []
    for seed in range(10):
        rows = np.random.default_rng(seed).standard_normal((800, 3)) * [1.0, 10.0, 0.1] + [0.0, 50.0, 1.0]
        gaps.append([np.linalg.norm(a - b, 2) for a, b in (moments(rows[400:], 0), moments(rows, 400))])
    cold, warm = np.mean(gaps, axis=0)  # 0.10 and 0.035 over 40 seeds, each with a standard error below a tenth of it
    assert warm < cold / 2
    bandit = op.Bandit(op.Ridge(op.Exact(dim=3, reg=0.37)), features=op.features.Standardize(dim=3))
    bandit.learn(rows, np.ones(800))
    held = np.linalg.inv(bandit.model.state.design.root @ bandit.model.state.design.root.T)
    np.testing.assert_allclose(held, 0.37 * np.eye(3) + 800 * moments(rows, 0)[0], rtol=1e-8, atol=1e-6)
