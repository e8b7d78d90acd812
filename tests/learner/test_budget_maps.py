"""Learners whose map follows the stream: what happens where it changes, and how large it grows."""

from math import sqrt

import numpy as np
import pytest

import onepass as op
from budget_streams import SKETCHES, expansion, features, repeating, stream
from dense_learners import LOSSES, gaussian


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
@pytest.mark.parametrize(("budget", "width"), [(2, 1.0), (20, 0.5)])
def test_nogd_of_full_rank_is_what_gradient_descent_was_and_of_less_its_projection(loss, budget, width):
    rows, targets = stream(loss=loss)
    both = {"width": width, "loss": loss, "step": 0.3}
    full = op.learner.NOGD(budget=budget, rank=2 * budget, **both)
    some, exact, queries = (
        op.learner.NOGD(budget=budget, rank=budget, **both),
        op.learner.KOGD(**both),
        stream(50, seed=8)[0],
    )
    for x, y in zip(rows, targets, strict=True):
        assert not full._state or not full._state.mapped
        for learner in (full, some, exact):
            learner.learn_one(x, y)
        if full._state.mapped:
            break
        assert np.array_equal(some.decision_function(queries), exact.decision_function(queries))
    assert some._state.mapped
    points, weights = expansion(exact)
    assert len(points) == 2 * budget
    np.testing.assert_allclose(full.decision_function(queries), exact.decision_function(queries), atol=1e-8)
    V = np.linalg.eigh(gaussian(points, points, width))[1][:, -budget:]
    want = gaussian(queries, points, width) @ V @ V.T @ weights
    np.testing.assert_allclose(some.decision_function(queries), want, atol=1e-9)


def test_nogd_of_full_rank_goes_on_as_gradient_descent_with_projected_examples():
    """phi(x)^T phi(y) = k(x)^T K^-1 k(y): a step adds -step l' times the projection of k(x, .) on the buffer's span."""
    rows, targets = stream(200)
    learner = op.learner.NOGD(budget=10, rank=20, width=0.7, step=0.3).partial_fit(rows, targets)
    points, queries = learner._state.buffer.points, stream(30, seed=8)[0]
    K, x = gaussian(points, points, 0.7), np.array([0.3, -0.2, 0.1])
    before, f = learner.decision_function(queries), learner.decision_function([x])[0]
    y = -1.0 if f > 0.0 else 1.0
    near = np.linalg.solve(K, gaussian(points, x[None], 0.7)[:, 0])
    after = learner.learn_one(x, y).decision_function(queries)
    np.testing.assert_allclose(after - before, 0.3 * y * gaussian(queries, points, 0.7) @ near, atol=1e-8)


def test_sizes_that_are_left_to_the_learner_follow_the_budget():
    assert [op.learner.NOGD(budget=b).params["rank"] for b in (2, 4, 5, 9, 10, 100)] == [1, 1, 1, 1, 2, 20]
    for make in (op.learner.FORKS, op.learner.SkeGD):
        for budget in (2, 7, 50, 100):
            p = make(budget=budget).params
            sizes = (budget, max(budget // 5, 1), max(budget // 10, 1))
            assert (p["sketch_size"], p["sample_size"], p["rank"]) == sizes
        assert make(budget=50, sketch_size=10).params["sample_size"] == 2
        assert make(budget=50, sample_size=3).params["rank"] == 3


@pytest.mark.parametrize("make", [op.learner.FORKS, op.learner.SkeGD])
def test_landmarks_are_drawn_from_the_buffer_without_repetition(make):
    (rows, targets), most = stream(), 0
    for seed in range(3):
        learner = make(budget=12, sample_size=9, sketch_size=9, rank=4, seed=seed).partial_fit(rows, targets)
        s = learner._state.sketching
        assert len(set(s.landmark_indices.tolist())) == 9
        assert s.landmark_indices.min() >= 0
        assert s.landmark_indices.max() < 24
        most = max(most, s.landmark_indices.max())
        np.testing.assert_array_equal(s.sketch.features.points, s.buffer.points[s.landmark_indices])
        np.testing.assert_array_equal(s.sketch.points[:24], s.buffer.points)
    assert most > 18  # of the whole buffer, not only of its beginning


@pytest.mark.parametrize("first", [True, False])
def test_skegd_keeps_the_values_at_its_landmarks_when_the_map_changes(first):
    rows, targets = stream()
    learner = op.learner.SkeGD(**SKETCHES, step=0.2, update_every=25, width=0.7, seed=1)
    for x, y in zip(rows, targets, strict=True):
        if learner._state is not None and learner._state.sketching.mapped and first:
            break
        twin = learner.copy()
        learner.learn_one(x, y)
        s, old = learner._state.sketching, twin._state and twin._state.sketching
        if s.mapped and not first and s.sketch.used > 31:
            break
    landmarks, found = s.sketch.features.points, learner.decision_function(s.sketch.features.points)
    if first:  # the buffer with this example in it
        want = gaussian(landmarks, s.buffer.points, 0.7) @ s.buffer.weights
    else:  # the old map, after the step for this example
        Z, w, f = old.sketch.features.z, twin._state.w, twin.decision_function([x])[0]
        phi = Z.T @ gaussian(landmarks, x[None], 0.7)[:, 0]
        want = gaussian(landmarks, landmarks, 0.7) @ Z @ (w - 0.2 * LOSSES["hinge"][1](f, y) * phi)
        assert not np.array_equal(Z, s.sketch.features.z)
    assert np.abs(want).max() > 0.05
    np.testing.assert_allclose(found, want, atol=1e-6)


@pytest.mark.parametrize("width", [0.5, 1.3])
def test_the_dictionary_stops_growing_on_few_distinct_points_and_reproduces_the_kernel(width):
    rows, targets = repeating(4000, 30)
    learner = op.learner.PROSNKONS(width=width, reg=0.3, oversampling=2.0, seed=3)
    sizes = [learner.partial_fit(rows[i : i + 500], targets[i : i + 500])._state.dictionary.used for i in (0, 500)]
    learner.partial_fit(rows[1000:], targets[1000:])
    d = learner._state.dictionary
    points = d.points[: d.used]
    assert sizes[0] <= sizes[1] <= d.used <= 30
    assert len(np.unique(points, axis=0)) == d.used
    phi = features(learner, points)
    np.testing.assert_allclose(phi @ phi.T, gaussian(points, points, width), atol=1e-7)
    if d.used == 30:
        all_rows = features(learner, rows[:200])
        np.testing.assert_allclose(all_rows @ all_rows.T, gaussian(rows[:200], rows[:200], width), atol=1e-7)
    held = learner.memory_usage()
    assert learner.partial_fit(rows, targets)._state.dictionary.used <= 30
    assert learner.memory_usage() == held


def test_new_points_join_for_certain_where_oversampling_is_large():
    rows, targets = repeating(600, 30, seed=7)
    learner = op.learner.PROSNKONS(width=0.5, oversampling=1e9).partial_fit(rows, targets)
    d = learner._state.dictionary
    first = np.sort(np.unique(rows, axis=0, return_index=True)[1])
    np.testing.assert_array_equal(d.points[: d.used], rows[first])  # each once, in the order they came
    np.testing.assert_array_equal(d.scales[: d.used], 1.0)


@pytest.mark.parametrize(("width", "reg"), [(0.7, 1.0), (1.5, 0.3), (4.0, 1.0)])
def test_the_dictionary_is_of_the_order_of_the_effective_dimension(width, reg):
    """Calandriello et al.: leverage scores of exact online ridge regression sum to about d_eff log n.

    With sampling that is accurate (beta from log n on) the size is a sum of coins with chances within a constant of
    beta (1 + epsilon) times those scores: here half as many to half as many again, and 5 standard deviations.
    """
    rows, targets = stream(1200, seed=5)
    K, beta, expected = gaussian(rows, rows, width), 6.0, 0.0
    for t in range(10, 1200, 20):  # each stands for the twenty around it
        k = K[:t, t]
        left = 1.0 - k @ np.linalg.solve(K[:t, :t] + reg * np.eye(t), k)
        expected += 20.0 * min(1.0, beta * 1.5 * left / (left + reg))
    learner = op.learner.PROSNKONS(width=width, reg=reg, oversampling=beta, epsilon=0.5, seed=1).partial_fit(
        rows, targets
    )
    size = learner._state.dictionary.used
    assert 0.5 * expected - 5.0 * sqrt(expected) < size < 1.5 * expected + 5.0 * sqrt(expected)


def test_examples_without_a_loss_join_the_dictionary_too_and_reset_the_step():
    rows, _ = stream(60)
    learner = op.learner.PROSNKONS(width=0.3, oversampling=1e9, loss="epsilon_insensitive", loss_width=10.0)
    learner.partial_fit(rows, np.zeros(60))
    state = learner._state
    assert state.dictionary.used == 60
    assert (state.newton.w == 0.0).all()
    root = state.newton.root[:60, :60]
    np.testing.assert_allclose(root @ root.T, np.eye(60) / 0.01)


def test_a_full_dictionary_stays_as_it_is_and_the_steps_go_on():
    rows, targets = stream(300)
    learner = op.learner.PROSNKONS(budget=5, width=0.6, oversampling=1e9).partial_fit(rows[:5], targets[:5])
    points = learner._state.dictionary.points.copy()
    w = learner._state.newton.w.copy()
    learner.partial_fit(rows[5:], targets[5:])
    assert learner._state.dictionary.used == 5
    np.testing.assert_array_equal(learner._state.dictionary.points, points)
    assert not np.array_equal(learner._state.newton.w, w)


@pytest.mark.parametrize("make", [op.learner.PROSNKONS, op.learner.FORKS])
def test_newton_steps_keep_f_within_the_bound_at_the_example_just_learned(make):
    rows, targets = stream(500, loss="squared")
    learner = make(budget=15, loss="squared", bound=0.35, step=0.8, width=1.0)
    hit = 0
    for x, y in zip(rows, 5.0 * targets, strict=True):
        old = learner.memory_usage(), learner._state
        f = learner.learn_one(x, y).decision_function([x])[0]
        mapped = make is op.learner.PROSNKONS or learner._state.sketching.mapped
        if mapped and old[1] is not None:
            assert abs(f) <= 0.35 + 1e-9
            hit += abs(f) > 0.35 - 1e-9
    assert hit > 50
