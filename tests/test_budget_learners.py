"""Online kernel learners on a budget: equal to naive ones, true to their theorems, and hard to break."""

from math import log, sqrt

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import minimize_scalar

import dense_budget as dense
import onepass as op
from dense_learners import LOSSES, gaussian
from onepass.features.sketched_nystrom import absorb, sketched_nystrom
from onepass.foundation import state as states
from onepass.learner.budget import budgeted, some_place
from onepass.learner.contract import progress
from onepass.learner.learner import Learner
from onepass.learner.pros_n_kons import coin

CLASSIFYING = ("hinge", "squared_hinge", "logistic")
STEPS = [  # of the second-order learners: nothing, the curvature, or the bound in force
    {"step": 0.2, "alpha": 0.01, "curvature": 0.04, "bound": 1.0},
    {"step": 0.6, "alpha": 0.5, "curvature": 0.7, "bound": 3.0},
    {"step": 0.4, "alpha": 0.05, "curvature": 0.3, "bound": 0.4},
]


def stream(count=400, dim=3, seed=0, loss="hinge"):
    """Rows and targets: two classes that no plane separates, or a smooth function with noise."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, dim))
    f = np.sin(2.0 * rows[:, 0]) + rows[:, 1] * rows[:, 2] + 0.2 * rng.standard_normal(count)
    return rows, np.where(f < 0.0, -1.0, 1.0) if loss in CLASSIFYING else f


def repeating(count, distinct, seed=0, dim=3):
    """A stream that draws from so many distinct points, each with its class."""
    rows, targets = stream(distinct, dim, seed=seed)
    drawn = np.random.default_rng(seed + 1).integers(distinct, size=count)
    return rows[drawn], targets[drawn]


def decisions(learner, rows, targets):
    return op.progressive_validation(learner, rows, targets).decisions


def place(budget, seed):
    """The library's random places in a full budget, as a function of the turn."""
    full = budgeted(budget, 1, 1.0)._replace(used=budget)
    return lambda turn: int(some_place(full, seed, turn))


def expansion(learner):
    """A copy of the points in use and their weights."""
    budget = learner._state.budget
    return budget.points[: budget.used].copy(), budget.weights[: budget.used].copy()


def change(before, after, width, extra=None):
    """||f_after - f_before|| of two expansions, and of a term more: (x, weight)."""
    points = [after[0], before[0]] + ([] if extra is None else [extra[0][None]])
    weights = [after[1], -before[1]] + ([] if extra is None else [[extra[1]]])
    points, weights = np.vstack(points), np.concatenate(weights)
    return sqrt(max(weights @ gaussian(points, points, width) @ weights, 0.0))


# --- random places and coins


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1])
@pytest.mark.parametrize("budget", [2, 7, 40])
def test_random_places_are_uniform_and_each_is_independent_of_the_one_before(budget, seed):
    turns, some = 40_000, place(budget, seed)
    found = np.array([some(t) for t in range(turns)])
    assert found.min() == 0
    assert found.max() == budget - 1
    for counts in (np.bincount(found, minlength=budget), np.bincount(found[1:] * budget + found[:-1])):
        cells = len(counts)
        chi = ((counts - counts.mean()) ** 2).sum() / counts.mean()
        assert abs(chi - (cells - 1)) < 5.0 * sqrt(2.0 * cells)


def test_places_of_another_seed_are_others():
    first, second = ([place(7, seed)(t) for t in range(700)] for seed in (0, 1))
    assert 60 < np.sum(np.equal(first, second)) < 140  # 100 +- 4.3 sigma by chance


def test_there_is_no_randomness_while_there_is_room():
    empty = budgeted(5, 1, 1.0)
    assert [int(some_place(empty._replace(used=n), 3, 1000 + n)) for n in range(5)] == list(range(5))


def test_coins_are_uniform_independent_and_below_one():
    found = np.array([coin(5, t) for t in range(100_000)])
    assert found.min() >= 0.0
    assert found.max() < 1.0
    counts = np.histogram2d(found[1:], found[:-1], bins=10, range=[[0, 1], [0, 1]])[0]
    chi = ((counts - counts.mean()) ** 2).sum() / counts.mean()
    assert abs(chi - 99) < 5.0 * sqrt(200.0)
    assert not np.isin(found[:1000], [coin(6, t) for t in range(1000)]).any()


# --- equal to naive ones


@pytest.mark.parametrize("width", [0.5, 1.6])
@pytest.mark.parametrize("budget", [2, 7, 40])
@pytest.mark.parametrize("seed", [0, 11])
def test_rbp_equals_the_naive_one(budget, width, seed):
    rows, targets = stream()
    found = decisions(op.RBP(budget=budget, width=width, seed=seed), rows, targets)
    want = dense.rbp(rows, targets, width, budget, place(budget, seed))
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("budget", "width", "step", "reg", "cap", "seed"),
    [(2, 0.5, 0.2, 0.01, 1.0, 0), (7, 1.6, 0.7, 0.3, 0.4, 1), (40, 0.8, 0.05, 0.0, 9.0, 2), (7, 1.0, 2.5, 0.2, 2.0, 3)],
)
def test_bogd_equals_the_naive_one(loss, budget, width, step, reg, cap, seed):
    rows, targets = stream(loss=loss)
    learner = op.BOGD(
        budget=budget, width=width, loss=loss, loss_width=0.3, step=step, reg=reg, cap=cap, seed=seed
    )  # fmt: skip
    want = dense.bogd(rows, targets, width, budget, loss, step, reg, cap, place(budget, seed))
    np.testing.assert_allclose(decisions(learner, rows, targets), want, rtol=0, atol=1e-9)


@pytest.mark.parametrize("width", [0.5, 1.6])
@pytest.mark.parametrize(("budget", "C"), [(2, 1.0), (7, 0.3), (7, 5.0), (40, 0.05), (40, 1.0)])
def test_bpas_equals_the_naive_one(budget, C, width):
    rows, targets = stream()
    found = decisions(op.BPAS(budget=budget, width=width, aggressiveness=C), rows, targets)
    np.testing.assert_allclose(found, dense.bpas(rows, targets, width, budget, C), rtol=0, atol=1e-9)


@pytest.mark.parametrize("margins", [False, True])
@pytest.mark.parametrize("width", [0.5, 1.6, 6.0])
@pytest.mark.parametrize(("budget", "eta"), [(2, 0.1), (7, 0.5), (40, 0.1), (40, 0.6), (400, 0.3)])
def test_projectron_equals_the_naive_one(budget, eta, width, margins):
    rows, targets = stream()
    found = decisions(op.Projectron(budget=budget, width=width, eta=eta, margins=margins), rows, targets)
    np.testing.assert_allclose(
        found, dense.projectron(rows, targets, width, budget, eta, margins), rtol=0, atol=1e-9
    )  # fmt: skip


@pytest.mark.parametrize("eta", [0.05, 0.5])
def test_projectron_with_margins_equals_the_naive_one_where_points_repeat_and_margins_are_nearly_reached(eta):
    rows, targets = repeating(800, 20)
    found = decisions(op.Projectron(budget=30, width=0.9, eta=eta, margins=True), rows, targets)
    assert ((targets * found > 0.9) & (targets * found < 0.999)).sum() > 20
    want = dense.projectron(rows, targets, 0.9, 30, eta, True)
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("features", "width", "step", "seed"), [(2, 0.5, 0.2, 0), (28, 1.6, 0.7, 3)])
def test_fogd_equals_the_naive_one(loss, features, width, step, seed):
    rows, targets = stream(loss=loss)
    learner = op.FOGD(features=features, width=width, loss=loss, loss_width=0.3, step=step, seed=seed)
    found = decisions(learner, rows, targets)
    W = np.random.default_rng(seed).standard_normal((features // 2, 3)) / width
    np.testing.assert_array_equal(learner._state.map.frequencies, W)
    np.testing.assert_allclose(found, dense.fogd(rows, targets, W, loss, step), rtol=0, atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("budget", "rank", "width", "step"), [(2, 1, 0.5, 0.2), (7, 14, 0.7, 0.6), (40, 9, 1.6, 0.1), (40, 30, 0.5, 0.3)]
)
def test_nogd_equals_the_naive_one(loss, budget, rank, width, step):
    rows, targets = stream(loss=loss)
    learner = op.NOGD(budget=budget, rank=rank, width=width, loss=loss, loss_width=0.3, step=step)
    want = dense.nogd(rows, targets, width, budget, rank, loss, step)
    np.testing.assert_allclose(decisions(learner, rows, targets), want, rtol=0, atol=1e-9)


class Absorbing:
    """The library's own maps, updated by its truncated decomposition: what the sketches' own tests are about."""

    def __init__(self, places, size, rank, blocks, seed, width):
        self.sizes, self.places, self.state = (size, rank, blocks, seed, 0.5 / width**2), places, None

    def __call__(self, points, landmarks):
        if self.state is None:
            room = np.vstack([points, np.zeros_like(points)])
            self.state = sketched_nystrom(room, len(points), self.places, *self.sizes)
        else:
            self.state = absorb(self.state, points[-1])
        np.testing.assert_array_equal(self.state.features.points, landmarks)
        return self.state.features.z


SKETCHES = {"budget": 15, "rank": 8, "sketch_size": 8, "sample_size": 8, "blocks": 2}


@pytest.mark.parametrize("loss", ["hinge", "logistic", "huber", "epsilon_insensitive"])
@pytest.mark.parametrize(("step", "update_every", "width"), [(0.02, 40, 1.5), (0.005, 0.15, 4.0), (0.02, 1, 4.0)])
def test_skegd_equals_the_naive_one_while_nothing_is_truncated(loss, step, update_every, width):
    """Then sketches are square and features long: losses whose slopes are bounded, small steps, relative errors."""
    rows, targets = stream(loss=loss)
    sizes = {"step": step, "update_every": update_every, "width": width, "loss": loss, "loss_width": 0.3}
    learner = op.SkeGD(**SKETCHES, **sizes, seed=3)
    found = decisions(learner, rows, targets)
    assert learner._state.sketching.sketch.used > 31  # updated, and more than once
    places, made = learner._state.sketching.places, dense.sketched_anew(8, 8, 2, 3, width)
    want = dense.skegd(rows, targets, places, 15, update_every, width, loss, step, made)
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-6 * max(1.0, np.abs(want).max()))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("update_every", "width", "seed"), [(7, 1.2, 2), (0.02, 1.2, 0), (1, 0.6, 5)])
def test_skegd_on_truncated_sketches_is_gradient_descent_with_refits(loss, update_every, width, seed):
    rows, targets = stream(600, loss=loss)
    sizes = {"budget": 40, "rank": 6, "sketch_size": 30, "sample_size": 12, "blocks": 3}
    both = {"step": 0.1, "update_every": update_every, "width": width, "loss": loss, "loss_width": 0.3}
    learner = op.SkeGD(**sizes, **both, seed=seed)
    found, places = decisions(learner, rows, targets), learner._state.sketching.places
    assert learner._state.sketching.sketch.used > 88
    made = Absorbing(places, 30, 6, 3, seed, width)
    want = dense.skegd(rows, targets, places, 40, update_every, width, loss, 0.1, made)
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-8)


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("update_every", [7, 0.02])
def test_forks_on_truncated_sketches_is_newton_steps_with_resets(update_every, steps):
    rows, targets = stream(800)
    sizes = {"budget": 40, "rank": 6, "sketch_size": 30, "sample_size": 12, "blocks": 3}
    learner = op.FORKS(**sizes, **steps, update_every=update_every, width=1.2, seed=2)
    found, places = decisions(learner, rows, targets), learner._state.sketching.places
    assert learner._state.sketching.sketch.used > 95
    made = Absorbing(places, 30, 6, 3, 2, 1.2)
    want = dense.forks(rows, targets, places, 40, update_every, 1.2, "hinge", **steps, made=made)
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-8)


def test_an_update_after_a_share_of_all_examples_counts_those_without_a_loss_and_those_before_the_map():
    rows, targets = stream(600)
    learner = op.FORKS(budget=10, update_every=0.1, width=1.0)
    found = decisions(learner, rows, targets)
    losses = np.cumsum(targets * found < 1.0)
    made, last = int(np.argmax(losses == 20)), int(losses[np.argmax(losses == 20)])
    updates = 0
    for t in range(made + 1, 600):
        if losses[t] > losses[t - 1] and losses[t] - last >= 0.1 * (t + 1):
            updates, last = updates + 1, losses[t]
    assert updates > 3
    assert learner._state.sketching.sketch.used == 20 + updates


@pytest.mark.parametrize("reset", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize(
    ("budget", "width", "oversampling", "epsilon", "reg", "seed"),
    [(None, 1.6, 0.05, 0.5, 0.2, 0), (7, 0.5, 1.0, 0.1, 1.0, 1), (40, 0.8, 0.5, 2.0, 3.0, 2)],
)
def test_pros_n_kons_equals_the_naive_one(loss, steps, budget, width, oversampling, epsilon, reg, seed, reset):
    rows, targets = stream(loss=loss)
    sampling = {"oversampling": oversampling, "epsilon": epsilon, "reg": reg}
    learner = op.PROSNKONS(
        budget=budget, width=width, loss=loss, loss_width=0.3, seed=seed, reset=reset, **steps, **sampling
    )  # fmt: skip
    found, d = decisions(learner, rows, targets), learner._state.dictionary
    want, kept = dense.pros_n_kons(
        rows, targets, budget, width, loss, **steps, **sampling, coin=lambda t: coin(seed, t), reset=reset
    )  # fmt: skip
    chosen, chances = map(list, zip(*kept, strict=True))
    np.testing.assert_array_equal(d.points[: d.used], rows[chosen])
    np.testing.assert_allclose(d.scales[: d.used], 1.0 / np.sqrt(chances), rtol=1e-6)
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-6)
    assert d.used == budget or (budget is None and 4 < d.used < 80)


# --- theorems: perceptrons


@pytest.mark.parametrize("width", [0.5, 1.6])
def test_with_room_for_all_rbp_and_projectron_are_the_perceptron(width):
    rows, targets = stream(300)
    want = dense.perceptron(rows, targets, width)
    np.testing.assert_allclose(decisions(op.RBP(budget=300, width=width), rows, targets), want, rtol=0, atol=1e-9)
    few = op.Projectron(budget=300, width=0.5, eta=1e-3)
    np.testing.assert_allclose(
        decisions(few, rows, targets), dense.perceptron(rows, targets, 0.5), rtol=0, atol=1e-6
    )  # fmt: skip
    assert few._state.budget.used > 60


def test_on_few_distinct_points_projectron_is_the_perceptron_and_keeps_each_once():
    rows, targets = repeating(600, 30)
    want = dense.perceptron(rows, targets, 0.7)
    learner = op.Projectron(budget=30, width=0.7, eta=0.01)
    np.testing.assert_allclose(decisions(learner, rows, targets), want, rtol=0, atol=1e-6)
    points, weights = expansion(learner)
    assert len(points) == len(np.unique(points, axis=0)) <= 30
    assert np.abs(weights).max() > 1.5  # some made a mistake more than once


@pytest.mark.parametrize("make", [op.RBP, op.Projectron])
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


@pytest.mark.parametrize("make", [op.RBP, op.Projectron, op.BPAS, op.BOGD])
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
    learner, labels, idle = op.RBP(budget=12, width=0.8, seed=5), dict(zip(map(tuple, rows), targets, strict=True)), 0
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
    learner, projections, margin_steps = op.Projectron(budget=400, width=width, eta=eta, margins=margins), 0, 0
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
    learner = op.Projectron(budget=5, width=0.5, eta=1e-3).partial_fit(rows[:100], targets[:100])
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
    learner = op.Projectron(budget=50, width=0.3, eta=1e-12).partial_fit(rows, flipped)
    assert learner._state.budget.used == 12


@pytest.mark.parametrize("eta", [1e-12, 1e-7, 1e-4, 1e-3])
def test_projections_are_exact_whatever_the_eta(eta):
    """On a smooth kernel, where hundreds of points are nearly in the span of those kept."""
    rng = np.random.default_rng(1)
    rows, targets = rng.standard_normal((2000, 2)), np.where(rng.random(2000) < 0.5, -1.0, 1.0)
    learner, worst, seen = op.Projectron(budget=200, eta=eta).partial_fit(rows, targets), 0.0, 0
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
    learner, swaps = op.BPAS(budget=budget, width=1.2, aggressiveness=C), 0
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
    found = decisions(op.BPAS(budget=200, width=0.9, aggressiveness=0.4), rows, targets)
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-10)


# --- theorems: BOGD


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
def test_a_removal_of_bogd_is_unbiased(loss):
    """Over all places that may be drawn the mean of f is gradient descent's without a budget."""
    rows, targets = stream(60, loss=loss)
    queries, means = stream(20, seed=9)[0], {}
    for seed in range(100):
        learner = op.BOGD(budget=5, width=1.3, loss=loss, step=0.4, reg=0.3, cap=50.0, seed=seed)
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
    found = decisions(op.BOGD(budget=201, cap=100.0, **both), rows, targets)
    np.testing.assert_allclose(found, decisions(op.KOGD(**both), rows, targets), rtol=0, atol=1e-10)


@pytest.mark.parametrize(("step", "cap"), [(0.5, 0.3), (0.5, 0.6), (2.0, 1.0)])
def test_no_weight_of_bogd_exceeds_the_cap(step, cap):
    rows, targets = stream(300, loss="squared")
    learner, most = op.BOGD(budget=4, width=0.6, loss="squared", step=step, reg=0.0, cap=cap), 0.0
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
        learner = op.FOGD(features=20_000, width=width, step=0.5, seed=3).learn_one(rows[i], 1.0)
        found[i] = learner.decision_function(rows) / 0.5  # w = 0.5 phi(x_i)
    np.testing.assert_allclose(np.diag(found), 1.0, atol=1e-12)
    gap = found - gaussian(rows, rows, width)
    assert np.abs(gap).max() < margin
    assert np.abs(gap).max() > 1e-4  # and they are not the kernel itself


def test_fogd_has_four_features_per_example_of_its_budget():
    for budget, features, count in ((2, None, 8), (33, None, 132), (33, 10, 10)):
        learner = op.FOGD(budget=budget, features=features).learn_one([1.0, 2.0], 1.0)
        assert learner._state.w.size == count
        assert learner._state.map.frequencies.shape == (count // 2, 2)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
@pytest.mark.parametrize(("budget", "width"), [(2, 1.0), (20, 0.5)])
def test_nogd_of_full_rank_is_what_gradient_descent_was_and_of_less_its_projection(loss, budget, width):
    rows, targets = stream(loss=loss)
    both = {"width": width, "loss": loss, "step": 0.3}
    full = op.NOGD(budget=budget, rank=2 * budget, **both)
    some, exact, queries = op.NOGD(budget=budget, rank=budget, **both), op.KOGD(**both), stream(50, seed=8)[0]
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
    learner = op.NOGD(budget=10, rank=20, width=0.7, step=0.3).partial_fit(rows, targets)
    points, queries = learner._state.first.points, stream(30, seed=8)[0]
    K, x = gaussian(points, points, 0.7), np.array([0.3, -0.2, 0.1])
    before, f = learner.decision_function(queries), learner.decision_function([x])[0]
    y = -1.0 if f > 0.0 else 1.0
    near = np.linalg.solve(K, gaussian(points, x[None], 0.7)[:, 0])
    after = learner.learn_one(x, y).decision_function(queries)
    np.testing.assert_allclose(after - before, 0.3 * y * gaussian(queries, points, 0.7) @ near, atol=1e-8)


def test_sizes_that_are_left_to_the_learner_follow_the_budget():
    assert [op.NOGD(budget=b).params["rank"] for b in (2, 4, 5, 9, 10, 100)] == [1, 1, 1, 1, 2, 20]
    for make in (op.FORKS, op.SkeGD):
        for budget in (2, 7, 50, 100):
            p = make(budget=budget).params
            sizes = (budget, max(budget // 5, 1), max(budget // 10, 1))
            assert (p["sketch_size"], p["sample_size"], p["rank"]) == sizes
        assert make(budget=50, sketch_size=10).params["sample_size"] == 2
        assert make(budget=50, sample_size=3).params["rank"] == 3


@pytest.mark.parametrize("make", [op.FORKS, op.SkeGD])
def test_landmarks_are_drawn_from_the_buffer_without_repetition(make):
    (rows, targets), most = stream(), 0
    for seed in range(3):
        learner = make(budget=12, sample_size=9, sketch_size=9, rank=4, seed=seed).partial_fit(rows, targets)
        s = learner._state.sketching
        assert len(set(s.places.tolist())) == 9
        assert s.places.min() >= 0
        assert s.places.max() < 24
        most = max(most, s.places.max())
        np.testing.assert_array_equal(s.sketch.features.points, s.first.points[s.places])
        np.testing.assert_array_equal(s.sketch.points[:24], s.first.points)
    assert most > 18  # of the whole buffer, not only of its beginning


@pytest.mark.parametrize("first", [True, False])
def test_skegd_keeps_the_values_at_its_landmarks_when_the_map_changes(first):
    rows, targets = stream()
    learner = op.SkeGD(**SKETCHES, step=0.2, update_every=25, width=0.7, seed=1)
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
        want = gaussian(landmarks, s.first.points, 0.7) @ s.first.weights
    else:  # the old map, after the step for this example
        Z, w, f = old.sketch.features.z, twin._state.w, twin.decision_function([x])[0]
        phi = Z.T @ gaussian(landmarks, x[None], 0.7)[:, 0]
        want = gaussian(landmarks, landmarks, 0.7) @ Z @ (w - 0.2 * LOSSES["hinge"][1](f, y) * phi)
        assert not np.array_equal(Z, s.sketch.features.z)
    assert np.abs(want).max() > 0.05
    np.testing.assert_allclose(found, want, atol=1e-6)


# --- theorems: PROS-N-KONS


def features(learner, rows):
    d, precision = learner._state.dictionary, learner._state.precision
    near = np.exp(-precision * ((rows[:, None] - d.points[None, : d.used]) ** 2).sum(axis=2))
    return near @ d.whitening[: d.used, : d.used]


@pytest.mark.parametrize("width", [0.5, 1.3])
def test_the_dictionary_stops_growing_on_few_distinct_points_and_reproduces_the_kernel(width):
    rows, targets = repeating(4000, 30)
    learner = op.PROSNKONS(width=width, reg=0.3, oversampling=2.0, seed=3)
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
    learner = op.PROSNKONS(width=0.5, oversampling=1e9).partial_fit(rows, targets)
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
    learner = op.PROSNKONS(width=width, reg=reg, oversampling=beta, epsilon=0.5, seed=1).partial_fit(rows, targets)
    size = learner._state.dictionary.used
    assert 0.5 * expected - 5.0 * sqrt(expected) < size < 1.5 * expected + 5.0 * sqrt(expected)


def test_examples_without_a_loss_join_the_dictionary_too_and_reset_the_step():
    rows, _ = stream(60)
    learner = op.PROSNKONS(width=0.3, oversampling=1e9, loss="epsilon_insensitive", loss_width=10.0)
    learner.partial_fit(rows, np.zeros(60))
    state = learner._state
    assert state.dictionary.used == 60
    assert (state.newton.w == 0.0).all()
    root = state.newton.root[:60, :60]
    np.testing.assert_allclose(root @ root.T, np.eye(60) / 0.01)


def test_a_full_dictionary_stays_as_it_is_and_the_steps_go_on():
    rows, targets = stream(300)
    learner = op.PROSNKONS(budget=5, width=0.6, oversampling=1e9).partial_fit(rows[:5], targets[:5])
    points = learner._state.dictionary.points.copy()
    w = learner._state.newton.w.copy()
    learner.partial_fit(rows[5:], targets[5:])
    assert learner._state.dictionary.used == 5
    np.testing.assert_array_equal(learner._state.dictionary.points, points)
    assert not np.array_equal(learner._state.newton.w, w)


@pytest.mark.parametrize("make", [op.PROSNKONS, op.FORKS])
def test_newton_steps_keep_f_within_the_bound_at_the_example_just_learned(make):
    rows, targets = stream(500, loss="squared")
    learner = make(budget=15, loss="squared", bound=0.35, step=0.8, width=1.0)
    hit = 0
    for x, y in zip(rows, 5.0 * targets, strict=True):
        old = learner.memory_usage(), learner._state
        f = learner.learn_one(x, y).decision_function([x])[0]
        mapped = make is op.PROSNKONS or learner._state.sketching.mapped
        if mapped and old[1] is not None:
            assert abs(f) <= 0.35 + 1e-9
            hit += abs(f) > 0.35 - 1e-9
    assert hit > 50


# --- all at once

LEARNERS = {
    "RBP": lambda **p: op.RBP(**{"budget": 20, "seed": 3, **p}),
    "BOGD": lambda **p: op.BOGD(**{"budget": 20, "seed": 3, **p}),
    "BPAS": lambda **p: op.BPAS(**{"budget": 20, **p}),
    "Projectron": lambda **p: op.Projectron(**{"budget": 20, **p}),
    "Projectron++": lambda **p: op.Projectron(**{"budget": 20, "margins": True, **p}),
    "KOGD": lambda **p: op.KOGD(**{"reg": 0.1, **p}),
    "FOGD": lambda **p: op.FOGD(**{"budget": 20, "seed": 3, **p}),
    "NOGD": lambda **p: op.NOGD(**{"budget": 20, **p}),
    "SkeGD": lambda **p: op.SkeGD(**{"budget": 20, "rank": 4, "seed": 3, "update_every": 0.1, **p}),
    "FORKS": lambda **p: op.FORKS(**{"budget": 20, "rank": 4, "seed": 3, "update_every": 0.1, **p}),
    "PROSNKONS": lambda **p: op.PROSNKONS(**{"budget": 20, "seed": 3, **p}),
    "PROSNKONS without a cap": lambda **p: op.PROSNKONS(**{"reg": 0.3, "seed": 3, **p}),
}
OF_ANY_LOSS = [name for name in LEARNERS if name not in ("RBP", "BPAS", "Projectron", "Projectron++")]
SEEDED = [n for n in LEARNERS if n not in ("BPAS", "Projectron", "Projectron++", "KOGD", "NOGD")]
every_learner = pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)


def degenerate():
    count = 400
    alternating = np.where(np.arange(count) % 3 == 0, -1.0, 1.0)
    rows, targets = stream(count)
    return {
        "zeros": (np.zeros((count, 2)), alternating),
        "constant": (np.full((count, 4), 3.7), alternating),
        "huge": (1e9 * rows, targets),
        "largest": (1e149 * rows, targets),
        "tiny": (1e-170 * rows, alternating),
        "one class": (rows, np.ones(count)),
        "the other class": (rows, -np.ones(count)),
        "two points": (rows[[0, 1] * 200], alternating),
        "a line of nearly equal points": (1e-8 * np.arange(count)[:, None] * [[1.0, 0.0]], alternating),
        "one column": (rows[:, :1], targets),
        "more columns than examples": (np.random.default_rng(0).standard_normal((30, 200)), targets[:30]),
        "zeros, then not": (np.vstack([np.zeros((200, 3)), rows[:200]]), targets),
    }


@every_learner
@pytest.mark.parametrize("kind", degenerate())
def test_degenerate_streams_give_finite_decisions(make, kind):
    rows, targets = degenerate()[kind]
    for width in (0.05, 1.0, 300.0):
        learner = make(width=width)
        found = decisions(learner, rows, targets)
        assert np.isfinite(found).all()
        assert np.abs(found).max() < 1e4
        assert np.isfinite(learner.decision_function(rows)).all()


@pytest.mark.parametrize("name", OF_ANY_LOSS)
@pytest.mark.parametrize("loss", LOSSES)
def test_degenerate_streams_give_finite_decisions_for_every_loss(name, loss):
    for rows, targets in degenerate().values():
        assert np.isfinite(decisions(LEARNERS[name](loss=loss, loss_width=0.1), rows, targets)).all()


@pytest.mark.parametrize("name", [name for name in LEARNERS if name != "PROSNKONS without a cap"])  # resets go on
def test_targets_of_one_class_are_learned(name):
    rows, make = stream(300)[0], LEARNERS[name]
    for y in (-1.0, 1.0):
        found = op.progressive_validation(make(width=2.0), rows, np.full(300, y))
        assert (found.mistakes[-100:] == 0.0).all()
        assert found.mistake_rate < 0.1


@every_learner
def test_learning_in_pieces_or_one_by_one_is_bit_for_bit_the_same(make):
    rows, targets = stream(500)
    queries = stream(60, seed=1)[0]
    whole, pieces, single, watched = (make(width=1.1) for _ in range(4))
    found = decisions(watched, rows, targets)
    whole.partial_fit(rows, targets)
    for start, end in ((0, 1), (1, 1), (1, 138), (138, 500)):
        pieces.partial_fit(rows[start:end], targets[start:end])
        pieces.decision_function(queries)  # asking changes nothing
    one_by_one = np.empty(500)
    for t in range(500):
        one_by_one[t] = single.decision_function(rows[t : t + 1])[0]
        single.learn_one(rows[t], targets[t])
    np.testing.assert_array_equal(found, one_by_one)
    want = whole.decision_function(queries)
    for other in (pieces, single, watched, whole.copy()):
        np.testing.assert_array_equal(other.decision_function(queries), want)
    assert [whole.predict_one(x) for x in queries[:9]] == whole.predict(queries[:9]).tolist()
    np.testing.assert_array_equal(decisions(make(width=1.1), rows, targets), found)  # and again the same


def packed(state, gap):
    """The same state with its arrays in one piece of memory, so many numbers between them."""
    found, used = dict(states.leaves(states.copy(state))), gap
    arrays = {k: v for k, v in found.items() if isinstance(v, np.ndarray) and v.dtype == np.float64}
    memory = np.zeros(gap + sum(v.size + gap for v in arrays.values()))
    for name, array in arrays.items():
        found[name] = memory[used : used + array.size].reshape(array.shape)
        found[name][...] = array
        used += array.size + gap
    return states.rebuild(state, found)


@every_learner
def test_decisions_do_not_depend_on_where_arrays_lie(make):
    """Sums in memory may be vectorized where arrays are far enough from each other, and reassociated with that."""
    rows, targets = stream(500)
    state, found = make(width=1.1)._begin(3), []
    for gap in (0, 1, 2, 8, 40, 500):
        now, first = progress(packed(state, gap), rows[:120], targets[:120])
        found.append(np.append(first, progress(packed(now, gap), rows[120:], targets[120:])[1]))
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


@pytest.mark.parametrize("name", SEEDED)
def test_another_seed_is_another_learner(name):
    rows, targets = stream()
    found = [decisions(LEARNERS[name](seed=seed), rows, targets) for seed in (3, 4, 2**32 - 1)]
    for i, j in ((0, 1), (0, 2), (1, 2)):
        assert np.abs(found[i] - found[j]).max() > 1e-3


@every_learner
def test_arrays_that_are_lists_of_another_type_or_order_are_the_same(make):
    rows, targets = stream(120)
    rows = np.round(rows, 1).astype(np.float32).astype(np.float64)
    want = decisions(make(), rows, targets)
    for X, y in (
        (rows.tolist(), targets.tolist()),
        (rows.astype(np.float32), targets.astype(np.int8)),
        (np.asfortranarray(rows), targets[::1]),
        (np.repeat(rows, 2, axis=0)[::2], np.repeat(targets, 2)[::2]),
    ):
        np.testing.assert_array_equal(decisions(make(), X, y), want)


@every_learner
def test_bad_examples_are_one_value_error_and_change_nothing(make):
    rows, targets = stream(150)
    learner = make(width=1.0).partial_fit(rows, targets)
    before, held = learner.decision_function(rows), learner.memory_usage()
    bad = [
        (np.vstack([rows[:3], [[0.0, np.nan, 0.0]]]), [1.0, -1.0, 1.0, 1.0], "X"),
        (np.vstack([rows[:3], [[0.0, np.inf, 0.0]]]), [1.0, -1.0, 1.0, 1.0], "X"),
        (np.full((1, 3), 1e200), [1.0], "X"),
        (rows[:2], [1.0, np.nan], "y"),
        (rows[:2], [1.0, -np.inf], "y"),
        (rows[:2], [1.0, 0.0], "-1 or 1"),
        (rows[:2], [1.0, 2.0], "-1 or 1"),
        (rows[:2], [1.0], "one entry"),
        (rows[:2], [1.0, 1.0, 1.0], "one entry"),
        (rows[:2], [[1.0], [1.0]], "y"),
        (rows[:2, :2], [1.0, 1.0], "X"),
        (np.zeros((2, 4)), [1.0, 1.0], "X"),
        (rows[0], [1.0], "X"),
        (rows[None], [1.0], "X"),
        ([["a", "b", "c"]], [1.0], "X"),
        (1j * rows[:1], [1.0], "X"),
        (rows[:1], ["1"], "y"),
    ]
    for X, y, said in bad:
        for learn in (learner.partial_fit, lambda X, y: op.progressive_validation(learner, X, y)):
            with pytest.raises(ValueError, match=said):
                learn(X, y)
    for x, y in ((rows[:1], 1.0), (rows[0, :2], 1.0), (rows[0], np.nan), (rows[0], 0.5), (0.3, 1.0)):
        with pytest.raises(ValueError, match=r"x|X|y"):
            learner.learn_one(x, y)
    for asked in (rows[:, :2], np.full((1, 3), np.nan), rows[0]):
        with pytest.raises(ValueError, match="X"):
            learner.decision_function(asked)
        with pytest.raises(ValueError, match="X"):
            learner.predict(asked)
    assert np.array_equal(learner.decision_function(rows), before)
    assert learner.memory_usage() == held
    fresh = make(width=1.0)
    for X, y, said in bad[:9]:
        with pytest.raises(ValueError, match=said):
            fresh.partial_fit(X, y)
    assert fresh.dim == 0
    assert fresh.predict(rows).tolist() == [1.0] * 150  # nothing learned yet
    assert np.array_equal(fresh.partial_fit(rows, targets).decision_function(rows), before)


@pytest.mark.parametrize("name", OF_ANY_LOSS)
def test_regression_takes_any_target_and_counts_squared_errors(name):
    rows, targets = stream(loss="squared")
    for loss in ("squared", "huber", "epsilon_insensitive"):
        learner = LEARNERS[name](loss=loss, loss_width=0.3)
        found = op.progressive_validation(learner, rows, targets)
        np.testing.assert_allclose(found.mistakes, (found.decisions - targets) ** 2)
        assert found.mistake_rate == found.mistakes.mean()
        assert np.array_equal(learner.predict(rows), learner.decision_function(rows))
        with pytest.raises(ValueError, match="y"):
            learner.partial_fit(rows[:1], [np.nan])


@every_learner
def test_a_copy_is_independent(make):
    rows, targets = stream(200)
    others = stream(200, seed=5)
    assert make().copy().dim == 0
    for learned in (0, 7, 45, 200):
        learner = make(width=0.8).partial_fit(rows[:learned], targets[:learned])
        before, twin = learner.decision_function(rows), learner.copy()
        assert repr(twin) == repr(learner)
        want = twin.partial_fit(*others).decision_function(rows)
        assert np.array_equal(learner.decision_function(rows), before)
        assert twin.params is not learner.params
        later = learner.copy()
        learner.partial_fit(*others)
        assert np.array_equal(later.decision_function(rows), before)
        assert np.array_equal(learner.decision_function(rows), want)


@pytest.mark.parametrize("name", [n for n in LEARNERS if n not in ("KOGD", "PROSNKONS without a cap")])
def test_memory_is_constant_once_the_budget_is_full(name):
    p = {"update_every": 10**6} if name in ("FORKS", "SkeGD") else {}
    learner = LEARNERS[name](width=0.5, **p)
    assert learner.memory_usage() == 0
    held = learner.partial_fit(*stream(400)).memory_usage()
    assert held > 0
    assert learner.partial_fit(*stream(3000, seed=1)).memory_usage() == held


def test_memory_follows_the_budget_and_the_width_of_a_row():
    for name in ("RBP", "BOGD", "BPAS"):
        learner = LEARNERS[name](budget=1000).partial_fit(*stream(10, dim=50))
        assert 1000 * 50 * 8 <= learner.memory_usage() <= 1000 * 53 * 8
    assert LEARNERS["KOGD"]().partial_fit(*stream(2000)).memory_usage() > 300 * 4 * 8


@every_learner
@pytest.mark.parametrize(
    "wrong",
    [
        {"width": 0.0},
        {"width": -1.0},
        {"width": np.nan},
        {"width": np.inf},
        {"width": "1"},
        {"width": True},
        {"width": None},
        {"budget": 1},
        {"budget": 0},
        {"budget": 2.0},
        {"budget": True},
        {"loss": "perceptron"},
        {"loss": None},
        {"step": 0.0},
        {"step": -0.1},
        {"step": np.inf},
        {"seed": -1},
        {"seed": 2**32},
        {"seed": 0.5},
    ],
    ids=repr,
)
def test_wrong_parameters_are_refused_by_name(make, wrong):
    name = next(iter(wrong))
    if name not in make().params:
        with pytest.raises(TypeError, match=name):
            make(**wrong)
        return
    with pytest.raises(ValueError, match=rf"\b{name} must"):
        make(**wrong)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("BOGD", {"reg": -0.1}),
        ("BOGD", {"step": 0.5, "reg": 2.0}),
        ("BOGD", {"reg": np.nan}),
        ("BOGD", {"cap": 0.0}),
        ("KOGD", {"step": 0.5, "reg": 2.0}),
        ("BPAS", {"aggressiveness": 0.0}),
        ("BPAS", {"aggressiveness": np.nan}),
        ("Projectron", {"eta": 0.0}),
        ("Projectron", {"eta": 1.0}),
        ("Projectron", {"margins": 2}),
        ("FOGD", {"features": 3}),
        ("FOGD", {"features": 0}),
        ("FOGD", {"features": 4.0}),
        ("NOGD", {"rank": 0}),
        ("NOGD", {"rank": 41}),
        ("SkeGD", {"sketch_size": 3, "rank": 4}),
        ("SkeGD", {"sample_size": 3, "rank": 4}),
        ("SkeGD", {"rank": 0}),
        ("SkeGD", {"sample_size": 41}),
        ("SkeGD", {"sample_size": 0}),
        ("SkeGD", {"sketch_size": 0}),
        ("SkeGD", {"blocks": 3}),
        ("SkeGD", {"blocks": 0}),
        ("SkeGD", {"update_every": 0}),
        ("SkeGD", {"update_every": 0.0}),
        ("SkeGD", {"update_every": -0.5}),
        ("SkeGD", {"update_every": np.nan}),
        ("SkeGD", {"update_every": "1"}),
        ("FORKS", {"curvature": -1e-9}),
        ("FORKS", {"curvature": np.nan}),
        ("FORKS", {"decaying_curvature": -0.1}),
        ("FORKS", {"decaying_curvature": np.inf}),
        ("FORKS", {"decaying_curvature": "1"}),
        ("PROSNKONS", {"alpha": 0.0}),
        ("PROSNKONS", {"curvature": -1.0}),
        ("PROSNKONS", {"bound": np.inf}),
        ("PROSNKONS", {"oversampling": 0.0}),
        ("PROSNKONS", {"epsilon": -0.5}),
        ("PROSNKONS", {"reg": 0.0}),
    ],
    ids=repr,
)
def test_wrong_parameters_of_some_learners_are_refused_by_name(name, wrong):
    with pytest.raises(ValueError, match=rf"\b{list(wrong)[-1]} must"):
        LEARNERS[name](**wrong)


@pytest.mark.parametrize("name", OF_ANY_LOSS)
@pytest.mark.parametrize("wrong", [0.0, -1.0, np.nan, "1"])
def test_a_wrong_width_of_the_loss_is_refused_by_name(name, wrong):
    with pytest.raises(ValueError, match=r"^loss_width must"):
        LEARNERS[name](loss_width=wrong)


@pytest.mark.parametrize("make", [op.FORKS, op.SkeGD])
@pytest.mark.parametrize("share", [1.5, 40.0])
def test_shares_above_one_are_refused(make, share):
    with pytest.raises(ValueError, match="update_every must"):
        make(update_every=share)


@every_learner
@pytest.mark.parametrize("width", [1e-200, 1e-160, 1e200])
def test_widths_whose_squares_are_no_numbers_are_refused(make, width):
    with pytest.raises(ValueError, match=r"^width must"):
        make(width=width)


@every_learner
def test_rows_without_columns_are_refused(make):
    with pytest.raises(ValueError, match="X"):
        make().partial_fit(np.zeros((2, 0)), [1.0, -1.0])


@pytest.mark.parametrize(
    ("X", "y", "said"), [(5, [1.0], "X"), (np.ones((1, 2)), 1.0, "y"), ([[1.0], [1.0, 2.0]], [1.0, 1.0], "X must")]
)
def test_validation_refuses_bad_shapes_as_learning_does(X, y, said):
    with pytest.raises(ValueError, match=said):
        op.RBP().partial_fit(X, y)
    with pytest.raises(ValueError, match=said):
        op.progressive_validation(op.RBP(), X, y)


@every_learner
def test_sparse_rows_are_the_dense_ones(make):
    rows, targets = stream(100)
    sparse = scipy.sparse.csr_matrix(np.where(rows > 0.0, rows, 0.0))
    want = decisions(make(), sparse.toarray(), targets)
    found = make().partial_fit(sparse, targets).decision_function(sparse)
    np.testing.assert_array_equal(found, make().partial_fit(sparse.toarray(), targets).decision_function(sparse))
    np.testing.assert_array_equal(decisions(make(), sparse, targets), want)


@every_learner
def test_what_a_learner_is_made_of_can_be_read_and_made_again(make):
    learner = make(width=0.7)
    again = type(learner)(**learner.params)
    assert again.params == learner.params
    assert repr(again) == repr(learner) == repr(eval(repr(learner), vars(op)))
    rows, targets = stream(200)
    np.testing.assert_array_equal(decisions(again, rows, targets), decisions(learner, rows, targets))
    assert learner.dim == 3


def test_every_learner_of_this_kind_is_tested_here():
    classes = {c for c in vars(op).values() if isinstance(c, type) and issubclass(c, Learner)}
    assert {type(make()) for make in LEARNERS.values()} == classes - {op.KernelNewton}
