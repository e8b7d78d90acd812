"""Online kernel learners on a budget are what their papers prove: perceptrons, projections, unbiased removals."""

from math import log, sqrt

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import dense_budget as dense
import onepass as op
from budget_streams import decisions, expansion, place, repeating, stream
from dense_learners import LOSSES, gaussian


def change(before, after, width, extra=None):
    """||f_after - f_before|| of two expansions, and of a term more: (x, weight)."""
    points = [after[0], before[0]] + ([] if extra is None else [extra[0][None]])
    weights = [after[1], -before[1]] + ([] if extra is None else [[extra[1]]])
    points, weights = np.vstack(points), np.concatenate(weights)
    return sqrt(max(weights @ gaussian(points, points, width) @ weights, 0.0))


# --- theorems: perceptrons


@pytest.mark.parametrize("width", [0.5, 1.6])
def test_with_room_for_all_rbp_and_projectron_are_the_perceptron(width):
    rows, targets = stream(300)
    want = dense.perceptron(rows, targets, width)
    np.testing.assert_allclose(
        decisions(op.learner.RBP(budget=300, width=width), rows, targets), want, rtol=0, atol=1e-9
    )
    few = op.learner.Projectron(budget=300, width=0.5, eta=1e-3)
    np.testing.assert_allclose(
        decisions(few, rows, targets), dense.perceptron(rows, targets, 0.5), rtol=0, atol=1e-6
    )  # fmt: skip
    assert few._state.budget.used > 60


def test_on_few_distinct_points_projectron_is_the_perceptron_and_keeps_each_once():
    rows, targets = repeating(600, 30)
    want = dense.perceptron(rows, targets, 0.7)
    learner = op.learner.Projectron(budget=30, width=0.7, eta=0.01)
    np.testing.assert_allclose(decisions(learner, rows, targets), want, rtol=0, atol=1e-6)
    points, weights = expansion(learner)
    assert len(points) == len(np.unique(points, axis=0)) <= 30
    assert np.abs(weights).max() > 1.5  # some made a mistake more than once


@pytest.mark.parametrize("make", [op.learner.RBP, op.learner.Projectron])
@pytest.mark.parametrize("width", [0.4, 0.9])
def test_mistakes_on_separable_streams_are_at_most_what_novikoff_says(make, width):
    rows, targets = repeating(3000, 25, seed=4)
    points, first = np.unique(rows, axis=0, return_index=True)
    labels = targets[first]
    most = labels @ np.linalg.solve(gaussian(points, points, width), labels)  # ||u||^2 of the u with y u(x) = 1
    learner = make(budget=max(int(most) + 1, 25), width=width)
    found = decisions(learner, rows, targets)
    assert 0 < (targets * found <= 0.0).sum() <= most
    assert (targets[-500:] * found[-500:] > 0.0).all()


@pytest.mark.parametrize("make", [op.learner.RBP, op.learner.Projectron, op.learner.BPAS, op.learner.BOGD])
def test_budgets_are_kept_and_filled(make):
    for budget in (2, 9):
        learner, used = make(budget=budget, width=0.5), 0
        for x, y in zip(*stream(120), strict=True):
            learner.learn_one(x, y)
            assert used <= learner._state.budget.used <= min(used + 1, budget)
            used = learner._state.budget.used
        assert used == budget


def test_rbp_keeps_examples_with_their_labels_and_changes_nothing_without_a_mistake():
    rows, targets = stream(300)
    learner, labels, idle = (
        op.learner.RBP(budget=12, width=0.8, seed=5),
        dict(zip(map(tuple, rows), targets, strict=True)),
        0,
    )
    for x, y in zip(rows, targets, strict=True):
        right = y * learner.decision_function([x])[0] > 0.0
        before = expansion(learner)[1] if learner._state is not None else None
        learner.learn_one(x, y)
        points, weights = expansion(learner)
        assert [labels[tuple(p)] for p in points] == weights.tolist()
        assert right or (points == x).all(axis=1).any()
        if right:
            idle += 1
            assert np.array_equal(before, weights)
    assert idle > 100


# --- theorems: Projectron


@pytest.mark.parametrize("margins", [False, True])
@pytest.mark.parametrize(("eta", "width"), [(0.1, 1.6), (0.5, 0.8)])
def test_a_projection_is_within_eta_of_the_update_it_stands_for(eta, width, margins):
    rows, targets = stream(400)
    learner, projections, margin_steps = op.learner.Projectron(budget=400, width=width, eta=eta, margins=margins), 0, 0
    learner.learn_one(rows[0], targets[0])
    for x, y in zip(rows[1:], targets[1:], strict=True):
        before, f = expansion(learner), y * learner.decision_function([x])[0]
        after = expansion(learner.learn_one(x, y))
        K, k = gaussian(before[0], before[0], width), gaussian(before[0], x[None], width)[:, 0]
        inside = k @ np.linalg.lstsq(K, k, rcond=None)[0]
        delta, now = sqrt(max(1.0 - inside, 0.0)), y * learner.decision_function([x])[0]
        if f <= 0.0:
            gap = change(before, after, width, (x, -y))  # of f and the perceptron's
            assert gap <= eta + 1e-7
            if len(after[0]) > len(before[0]):
                assert delta > eta
                assert gap < 1e-7
            else:
                projections += 1
                assert abs(gap - delta) < 1e-7
                assert abs(now - f - inside) < 1e-7
        elif not np.array_equal(before[1], after[1]):
            margin_steps += 1
            assert margins
            assert f < 1.0
            moved, loss = change(before, after, width), 1.0 - f
            tau = moved / sqrt(inside)
            assert f < now <= 1.0 + 1e-9  # nearer to the margin, and not past it
            assert 0.0 < tau <= 1.0 + 1e-9
            # the bound of the paper holds since ||f - u||^2 falls for all u with loss 0 that are at most 1 / eta long
            assert tau * (2.0 * (loss - delta / eta) - tau * inside) >= -1e-9
    assert projections > 5
    assert (margin_steps > 20) == margins


def test_a_full_projectron_projects_whatever_the_distance():
    rows, targets = stream(300)
    learner = op.learner.Projectron(budget=5, width=0.5, eta=1e-3).partial_fit(rows[:100], targets[:100])
    kept, seen = expansion(learner)[0], 0
    for x, y in zip(rows[100:], targets[100:], strict=True):
        f, weights = y * learner.decision_function([x])[0], expansion(learner)[1]
        points, now = expansion(learner.learn_one(x, y))
        assert np.array_equal(points, kept)
        assert (f > 0.0) == np.array_equal(weights, now)
        seen += f <= 0.0
        k = gaussian(kept, x[None], 0.5)[:, 0]
        if f <= 0.0:
            np.testing.assert_allclose(gaussian(kept, kept, 0.5) @ (now - weights), y * k, atol=1e-9)
    assert seen > 50


def test_repeated_points_do_not_join_a_projectron_with_a_tiny_eta():
    rows, targets = repeating(2000, 12)
    flipped = targets * np.where(np.random.default_rng(5).random(2000) < 0.4, -1.0, 1.0)
    learner = op.learner.Projectron(budget=50, width=0.3, eta=1e-12).partial_fit(rows, flipped)
    assert learner._state.budget.used == 12


@pytest.mark.parametrize("eta", [1e-12, 1e-7, 1e-4, 1e-3])
def test_projections_are_exact_whatever_the_eta(eta):
    """On a smooth kernel, where hundreds of points are nearly in the span of those kept."""
    rng = np.random.default_rng(1)
    rows, targets = rng.standard_normal((2000, 2)), np.where(rng.random(2000) < 0.5, -1.0, 1.0)
    learner, worst, seen = op.learner.Projectron(budget=200, eta=eta).partial_fit(rows, targets), 0.0, 0
    for x in rng.standard_normal((60, 2)):
        (points, weights), y = expansion(learner), 1.0 if learner.decision_function([x])[0] < 0.0 else -1.0
        now = expansion(learner.learn_one(x, y))[1]
        if len(now) == len(weights):
            seen, k = seen + 1, gaussian(points, x[None], 1.0)[:, 0]
            worst = max(worst, np.abs(gaussian(points, points, 1.0) @ (now - weights) - y * k).max())
    assert seen > 20
    assert worst < 1e-4


# --- theorems: BPA-S


@pytest.mark.parametrize("C", [0.2, 1.0, 7.0])
@pytest.mark.parametrize("budget", [3, 15])
def test_a_step_of_bpas_is_passive_aggressive_and_of_all_swaps_the_nearest(budget, C):
    rows, targets = stream(150)
    learner, swaps = op.learner.BPAS(budget=budget, width=1.2, aggressiveness=C), 0
    learner.learn_one(rows[0], targets[0])
    for x, y in zip(rows[1:], targets[1:], strict=True):
        before, f = expansion(learner), learner.decision_function([x])[0]
        after = expansion(learner.learn_one(x, y))
        now = learner.decision_function([x])[0]
        if y * f >= 1.0:
            assert np.array_equal(before[1], after[1])
            continue
        np.testing.assert_allclose(y * now, min(1.0, y * f + C), atol=1e-12)
        cost = 0.5 * change(before, after, 1.2) ** 2 + C * max(0.0, 1.0 - y * now)
        k, least = gaussian(before[0], x[None], 1.2)[:, 0], np.inf
        for a, near in zip(before[1], k, strict=True) if len(before[0]) == budget else [(0.0, 0.0)]:

            def objective(b, a=a, near=near, f=f, y=y):
                return (a * a - 2 * a * b * near + b * b) / 2 + C * max(0.0, 1 - y * (f - a * near + b))

            found = minimize_scalar(objective, bounds=(-20.0, 20.0), method="bounded", options={"xatol": 1e-10})
            least = min(least, found.fun)
        assert abs(cost - least) < 1e-6
        swaps += len(before[0]) == budget
    assert swaps > 20


def test_with_room_for_all_bpas_is_the_kernel_passive_aggressive_learner():
    rows, targets = stream(200)
    K, weights, want = gaussian(rows, rows, 0.9), np.zeros(200), np.zeros(200)
    for t in range(200):
        want[t] = weights @ K[t]
        weights[t] = targets[t] * min(0.4, max(0.0, 1.0 - targets[t] * want[t]))
    found = decisions(op.learner.BPAS(budget=200, width=0.9, aggressiveness=0.4), rows, targets)
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-10)


# --- theorems: BOGD


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
def test_a_removal_of_bogd_is_unbiased(loss):
    """Over all places that may be drawn the mean of f is gradient descent's without a budget."""
    rows, targets = stream(60, loss=loss)
    queries, means = stream(20, seed=9)[0], {}
    for seed in range(100):
        learner = op.learner.BOGD(budget=5, width=1.3, loss=loss, step=0.4, reg=0.3, cap=50.0, seed=seed)
        for x, y in zip(rows, targets, strict=True):
            full = learner._state is not None and learner._state.turn == 5
            before, at = learner.decision_function(queries), learner.decision_function([x])[0]
            learner.learn_one(x, y)
            if full and learner._state.turn == 6:  # the first removal: all seeds have kept the same until here
                means[place(5, seed)(5)] = learner.decision_function(queries)
                slope = LOSSES[loss][1](at, y)
                want = (1 - 0.4 * 0.3) * before - 0.4 * slope * gaussian(queries, x[None], 1.3)[:, 0]
                break
    assert sorted(means) == list(range(5))
    np.testing.assert_allclose(np.mean(list(means.values()), axis=0), want, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_with_room_for_all_and_no_cap_bogd_is_kernelized_gradient_descent(loss):
    rows, targets = stream(200, loss=loss)
    both = {"width": 0.9, "loss": loss, "loss_width": 0.3, "step": 0.3, "reg": 0.2}
    found = decisions(op.learner.BOGD(budget=201, cap=100.0, **both), rows, targets)
    np.testing.assert_allclose(found, decisions(op.learner.KOGD(**both), rows, targets), rtol=0, atol=1e-10)


@pytest.mark.parametrize(("step", "cap"), [(0.5, 0.3), (0.5, 0.6), (2.0, 1.0)])
def test_no_weight_of_bogd_exceeds_the_cap(step, cap):
    rows, targets = stream(300, loss="squared")
    learner, most = op.learner.BOGD(budget=4, width=0.6, loss="squared", step=step, reg=0.0, cap=cap), 0.0
    for x, y in zip(rows, targets, strict=True):
        most = max(most, np.abs(expansion(learner.learn_one(x, y))[1]).max())
    assert most == cap


# --- theorems: maps


@pytest.mark.parametrize("width", [0.5, 1.7])
def test_fourier_features_are_unit_and_their_products_approximate_the_kernel(width):
    """Products are means of 10,000 cosines: by Hoeffding none of 400 is off by `margin` but with chance 1e-9."""
    rows = stream(20)[0]
    margin, found = sqrt(2.0 * log(2 * 400 / 1e-9) / 10_000), np.empty((20, 20))
    for i in range(20):
        learner = op.learner.FOGD(features=20_000, width=width, step=0.5, seed=3).learn_one(rows[i], 1.0)
        found[i] = learner.decision_function(rows) / 0.5  # w = 0.5 phi(x_i)
    np.testing.assert_allclose(np.diag(found), 1.0, atol=1e-12)
    gap = found - gaussian(rows, rows, width)
    assert np.abs(gap).max() < margin
    assert np.abs(gap).max() > 1e-4  # and they are not the kernel itself


def test_fogd_has_four_features_per_example_of_its_budget():
    for budget, features, count in ((2, None, 8), (33, None, 132), (33, 10, 10)):
        learner = op.learner.FOGD(budget=budget, features=features).learn_one([1.0, 2.0], 1.0)
        assert learner._state.w.size == count
        assert learner._state.map.frequencies.shape == (count // 2, 2)
