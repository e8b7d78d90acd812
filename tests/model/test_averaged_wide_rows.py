"""Wide rows of `ContextualBandit`: coordinates on a span, sketches of sparse rows, against dense truth."""

import numpy as np
import pytest

import onepass as op
from dense_contextual import Ridge, views_of
from onepass.design.contract import matrix
from onepass.model.averaged.mixture import (
    ANYWHERE,
    MODELS,
    NOISE,
    SKETCH_MODEL,
    SPARSE_MODEL,
    VOLUME,
    bytes_of,
    survey_models,
    weights,
    weights_of_widths,
)
from onepass.model.averaged.remake import spare
from onepass.model.averaged.sketches import (
    COMPENSATION,
    DENSE_KEPT,
    DENSE_NUMBERS,
    RIDGE,
    ROWS_KEPT,
    WIDEST,
    begin_sketch,
    dense_size,
    learn_sketch,
    no_sketches,
    state_of,
)
from onepass.model.averaged.span import DIRECTIONS, LEAST, NUMBERS, WIDE, directions, landmarks_on
from onepass.model.averaged.view import embedded, seen

DIM = 320  # a little more than WIDE
SINGLE = 2e-3  # of numbers near 1: float32
WIDER = MODELS[SPARSE_MODEL][4]  # widths of sparse rows


def dense_rows(n, seed, dim=DIM):
    """Of six directions and noise, with zeros in half of their columns."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, 6)) @ rng.standard_normal((6, dim)) + 0.3 * rng.standard_normal((n, dim))
    return rows * (rng.random((n, dim)) < 0.5)


def sparse_rows(n, seed, dim=DIM):
    """Counts, some fifteen of them, in columns that are not equally frequent."""
    rng = np.random.default_rng(seed)
    return np.array([rng.multinomial(15, rng.dirichlet(np.full(dim, 0.1))) for _ in range(n)], float)


def standardized(view, x):
    """z of a row, before it is mapped."""
    return np.clip((x - view.center) * view.unit, -view.numbers[0], view.numbers[0])


@pytest.mark.parametrize("share", [1.0, 0.05])
def test_coordinates_are_products_with_directions_and_what_is_left(share):
    """Rows with few non-zeros go another way than full ones."""
    rows, rng = dense_rows(50, 1), np.random.default_rng(2)
    for view in views_of(rows, 10, 20)[:2]:
        basis = view.span.basis.astype(float)
        assert basis.shape == (DIM, 20)
        assert np.allclose(basis.T @ basis, np.eye(20), atol=1e-5)
        x = rng.standard_normal(DIM) * (rng.random(DIM) < share)
        z = standardized(view, x)
        inside = basis.T @ z
        found, scale = seen(view, x), np.linalg.norm(z)
        assert np.allclose(found[:20], inside, atol=1e-5 * scale)
        assert found[20] == 0.0
        assert found[21] == pytest.approx(np.sqrt(z @ z - inside @ inside), rel=1e-3)


def test_with_all_directions_kernels_and_products_are_those_of_whole_rows():
    """The first rows are in their own span: nothing is lost of them."""
    rows = dense_rows(40, 3)
    mapped, whole = (views_of(rows, 10, most)[0] for most in (40, 0))
    pairs = [(embedded(mapped, x).astype(float), embedded(whole, x).astype(float)) for x in rows[:12]]
    for one, other in pairs:
        assert np.allclose(one[:10], other[:10], atol=SINGLE)
        for two, another in pairs:
            assert one[10:] @ two[10:] == pytest.approx(other[10:] @ another[10:], abs=SINGLE)


def test_landmarks_are_as_far_as_rows_whose_remainders_are_orthogonal():
    rows = dense_rows(40, 4)
    view = views_of(rows, 10, 12)[1]
    z = standardized(view, rows[0])
    spot, x = landmarks_on(view.span, z[None])[0], seen(view, rows[1]).astype(float)
    other, basis = standardized(view, rows[1]), view.span.basis.astype(float)
    rest = z @ z - (z @ basis) @ (z @ basis) + other @ other - (other @ basis) @ (other @ basis)
    assert ((spot - x) ** 2).sum() == pytest.approx((((z - other) @ basis) ** 2).sum() + rest, rel=1e-3)


def test_directions_are_fewer_where_rows_are_wider():
    assert directions(WIDE) == 0
    assert directions(WIDE + 1) == DIRECTIONS
    assert directions(20_000) == NUMBERS // 20_000 >= LEAST
    assert directions(10**6) == LEAST


def learned(rows, seed=5, **options):
    """A bandit of three arms that has learned rows whose rewards are linear."""
    rng, bandit = np.random.default_rng(seed), op.ContextualBandit(**options)
    rewards = rows @ rng.standard_normal(rows.shape[1]) / np.abs(rows).max()
    arms = rng.integers(3, size=len(rows))
    bandit.learn(rows, rewards, arms.tolist())
    return bandit, rewards, arms


def test_models_of_sparse_rows_are_dense_regressions_until_a_cut():
    """Clicks, so that nothing is clipped and unknown arms are worth 0; every arm has fewer than 2 ROWS_KEPT rows."""
    rows, rng = sparse_rows(60, 6), np.random.default_rng(7)
    rewards, arms = (rng.random(60) < 0.5).astype(float), np.arange(60) % 3
    bandit = op.ContextualBandit(warm_up=32, reg=0.37, alarm_threshold=None)
    bandit.learn(rows, rewards, arms.tolist())
    state = bandit.model.state
    assert bandit.choices()["directions"] == 2 * ROWS_KEPT
    assert bandit.choices()["bytes_per_arm"] == bytes_of(state.plan, DIM, ROWS_KEPT)

    def phi(x):
        return np.append((x - rows[:32].mean(axis=0)) * state.views[1].unit, 1.0 / np.sqrt(DIM + 1.0))

    truth = [Ridge(DIM + 1, 0.37, 0.0) for _ in range(3)]
    for x, arm, reward in zip(rows, arms, rewards, strict=True):
        truth[arm].learn(phi(x), reward, 0, 0.0, 0.0)
    for x in sparse_rows(5, 8):
        found, f = bandit.decide(x, [0, 1, 2, "new"]), phi(x)
        assert np.allclose(found.means, [*(f @ one.theta for one in truth), 0.0], atol=SINGLE)
        squares = np.array([f @ one.covariance @ f for one in truth])
        widths = WIDER / np.sqrt(1.0 / squares + ANYWHERE * 20.0 / (f @ f))
        assert np.allclose(found.widths, [*widths, WIDER * np.sqrt(f @ f / 0.37)], rtol=SINGLE)


def test_a_cut_sketch_is_robust_frequent_directions_under_newton_steps():
    """Of the same rows as a float64 sketch of the house, whose theta is moved by dense solves."""
    rng, reg, size, dim = np.random.default_rng(9), 0.3, 4, 12
    sketches = no_sketches(1, dim - 1, size)
    begin_sketch(sketches, 0, reg)
    design = op.RobustFrequentDirections(dim=dim, size=size, reg=reg, compensation=COMPENSATION)
    theta, middle = np.zeros(dim), rng.standard_normal(dim).astype(np.float32)
    for _ in range(40):
        phi, reward = rng.standard_normal(dim).astype(np.float32), rng.standard_normal()
        step = design.solve(phi.astype(float))
        h, whole = phi @ step, reward - phi @ theta
        bound = 0.5 * np.sqrt(1.0 + h)
        e = np.clip(whole, -bound, bound)
        found = learn_sketch(sketches, 0, phi, middle, reg, reward, 0.5)
        assert found == pytest.approx((e, h, whole - e), rel=SINGLE, abs=SINGLE)
        theta = theta + step * e / (1.0 + h)
        design.append(phi.astype(float))
    assert sketches.numbers[0, RIDGE] > reg
    assert np.allclose(sketches.theta[0], theta, atol=SINGLE)
    assert np.allclose(matrix(state_of(sketches, 0, reg)), design.matrix(), rtol=SINGLE, atol=SINGLE * 10.0)
    assert sketches.aside[0, -1] == pytest.approx(theta @ middle, abs=SINGLE)


def clicks_of_dense_rows():
    """A bandit of three arms after 90 clicks, and what it learned; an arm has 30 rows, fewer than 2 DENSE_KEPT."""
    rows, arms = dense_rows(90, 21), np.arange(90) % 3
    rewards = (np.random.default_rng(22).random(90) < 0.5).astype(float)
    bandit = op.ContextualBandit(warm_up=32, reg=0.37, alarm_threshold=None, n_landmarks=8)
    bandit.learn(rows, rewards, arms.tolist())
    return bandit, rows, rewards, arms


def test_the_sketch_of_dense_rows_is_ridge_regression_on_all_columns_until_a_cut():
    """Clicks, so that nothing is clipped and unknown arms are worth 0."""
    bandit, rows, rewards, arms = clicks_of_dense_rows()
    state = bandit.model.state
    assert state.sketches.root.shape[1] == 2 * DENSE_KEPT
    assert bandit.choices()["directions"] == state.views[0].span.basis.shape[1] > 0
    assert bandit.choices()["bytes_per_arm"] == bytes_of(state.plan, DIM, DENSE_KEPT)

    def phi(x):
        return np.append(state.views[0].numbers[1] * standardized(state.views[0], x), 1.0 / np.sqrt(DIM + 1.0))

    truth, scores = [Ridge(DIM + 1, 0.37, 0.0) for _ in range(3)], np.zeros(2)
    for x, arm, reward in zip(rows, arms, rewards, strict=True):
        e, h, _ = truth[arm].learn(phi(x), reward, 0, 0.0, 0.0)
        scores += e * e / (1.0 + h), np.log(1.0 + h)
    assert state.scores[[NOISE, VOLUME], SKETCH_MODEL] == pytest.approx(scores, rel=SINGLE)
    alone = np.eye(len(MODELS))[SKETCH_MODEL]
    for x in dense_rows(5, 23):
        means, widths = survey_models(state, x[None], np.array([0, 1, 2, -1]), alone)
        f = phi(x)
        assert np.allclose(means, [*(f @ one.theta for one in truth), 0.0], atol=SINGLE)
        squares = np.array([f @ one.covariance @ f for one in truth])
        known = 1.0 / np.sqrt(1.0 / squares + ANYWHERE * 30.0 / (f @ f))
        assert np.allclose(widths, [*known, np.sqrt(f @ f / 0.37)], rtol=SINGLE)


def test_means_and_squared_widths_of_dense_rows_are_averages_over_models_the_sketch_among_them():
    bandit, *_ = clicks_of_dense_rows()
    state, slots = bandit.model.state, np.arange(3)
    w = weights(state)
    assert w[SKETCH_MODEL] > 0.0
    for x in dense_rows(5, 24):
        means, widths = survey_models(state, x[None], slots, w)
        each = [survey_models(state, x[None], slots, one) for one in np.eye(len(MODELS))[w > 0.0]]
        assert np.allclose(means, w[w > 0.0] @ [one for one, _ in each])
        assert np.allclose(widths**2, weights_of_widths(w)[w > 0.0] @ [one**2 for _, one in each])
        shared = survey_models(state, np.tile(x, (3, 1)), slots, w)
        assert np.allclose(shared, (means, widths), rtol=1e-5)


def test_what_lies_outside_the_main_directions_is_learned_by_the_sketch():
    """Rewards depend on one column, among the noise that the 64 main directions leave out."""
    rng = np.random.default_rng(25)
    rows = 3.0 * rng.standard_normal((900, 80)) @ rng.standard_normal((80, DIM)) / np.sqrt(80)
    rows += rng.standard_normal(rows.shape)
    basis = np.linalg.svd(rows[:256] - rows[:256].mean(axis=0), full_matrices=False)[2]
    rewards = rows @ basis[150] + 0.1 * rng.standard_normal(900)
    bandit = op.ContextualBandit()
    bandit.learn(rows, rewards, ["a"] * 900)
    assert bandit.choices()["weights"]["sketch"] > 0.9


def test_a_sketch_of_dense_rows_is_smaller_where_rows_are_wider():
    assert dense_size(WIDE + 1) == dense_size(DENSE_NUMBERS // DENSE_KEPT) == DENSE_KEPT
    assert dense_size(1_024) == DENSE_NUMBERS // 1_024
    assert dense_size(WIDEST) == ROWS_KEPT
    assert dense_size(WIDEST + 1) == 0


def test_where_memory_is_short_dense_rows_lose_their_sketch_before_landmarks():
    rows = dense_rows(48, 26)
    sketch = np.zeros((1, 2 * DENSE_KEPT, DIM), np.float32).nbytes
    plenty = learned(rows, warm_up=32, n_landmarks=8)[0].choices()
    few = learned(rows, warm_up=32, n_landmarks=8, memory_limit=(3 * plenty["bytes_per_arm"] - sketch) / 1e6)[0]
    assert "sketch" in plenty["weights"]
    assert "sketch" not in few.choices()["weights"]
    assert few.choices()["landmarks"] == plenty["landmarks"]
    assert few.choices()["bytes_per_arm"] < plenty["bytes_per_arm"] - sketch


@pytest.mark.parametrize("make", [dense_rows, sparse_rows])
def test_wide_explanations_add_up(make):
    rows = make(40, 10)
    bandit, _, _ = learned(rows, warm_up=32, n_landmarks=8)
    decision = bandit.decide(rows[0], range(3))
    found = bandit.explain(rows[0], 1, 2, arms=range(3))
    assert found.mean == pytest.approx(decision.means[1], abs=SINGLE)
    assert found.width == pytest.approx(decision.widths[1], rel=SINGLE)
    assert sum(term.share for term in found.terms) == pytest.approx(found.width**2)


@pytest.mark.parametrize("make", [dense_rows, sparse_rows])
def test_wide_bandits_go_on_from_their_files_bit_for_bit(make):
    rows = make(60, 11)
    bandit, _, _ = learned(rows[:40], warm_up=32, n_landmarks=8)
    twin = op.from_bytes(op.to_bytes(bandit))
    for one in (bandit, twin):
        one.remove_arm(1)
        one.learn(rows[40:], rows[40:, 0], [3, 4] * 10)
    assert op.to_bytes(bandit) == op.to_bytes(twin)
    assert f"{bandit.choices()['directions']} directions" in repr(bandit)


def test_the_first_rows_are_kept_until_views_stay_and_no_longer():
    rows = dense_rows(33, 14)
    bandit = learned(rows[:31], warm_up=32, n_landmarks=8)[0]
    assert bandit.model.state.rows.shape == (32 + spare(32), DIM)
    bandit.learn(rows[31:], [1.0, 0.0], [0, 1])
    assert bandit.model.state.rows.shape == (0, DIM)
    assert op.to_bytes(op.from_bytes(op.to_bytes(bandit))) == op.to_bytes(bandit)


def test_where_memory_is_short_wide_rows_have_fewer_directions():
    for make, most in ((dense_rows, 24), (sparse_rows, 2 * ROWS_KEPT)):
        rows = make(48, 13)  # 16 more than the warm-up, so that the last views are finished
        plenty, few = (learned(rows, warm_up=32, memory_limit=one)[0].choices() for one in (64.0, 0.06))
        assert plenty["directions"] >= most > few["directions"] > 0 or make is dense_rows
        assert few["bytes_per_arm"] < plenty["bytes_per_arm"]


def test_rows_may_be_as_wide_as_memory_allows():
    for dim in (20_000, 27_777):
        assert op.ContextualBandit(dim=dim).model.dim == dim
    with pytest.raises(ValueError, match="27777"):
        op.ContextualBandit().learn(np.zeros(27_778), 1.0, "a")
    assert op.ContextualBandit(dim=100_000, memory_limit=300.0).model.dim == 100_000
