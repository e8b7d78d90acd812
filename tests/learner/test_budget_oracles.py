"""Online kernel learners on a budget equal naive ones."""

import numpy as np
import pytest

import dense_budget as dense
import onepass as op
from budget_streams import SKETCHES, decisions, place, repeating, stream
from counts import pairs
from dense_learners import LOSSES
from onepass.features.sketched_nystrom import absorb, make_sketched_nystrom
from onepass.learner.pros_n_kons import hash_to_uniform

STEPS = [  # of the second-order learners: nothing, the curvature, or the bound in force
    {"step": 0.2, "alpha": 0.01, "curvature": 0.04, "bound": 1.0},
    {"step": 0.6, "alpha": 0.5, "curvature": 0.7, "bound": 3.0},
    {"step": 0.4, "alpha": 0.05, "curvature": 0.3, "bound": 0.4},
]


# --- equal to naive ones


@pytest.mark.parametrize("width", [0.5, 1.6])
@pytest.mark.parametrize("budget", [2, 7, 40])
@pytest.mark.parametrize("seed", [0, 11])
def test_rbp_equals_the_naive_one(budget, width, seed):
    rows, targets = stream()
    found = decisions(op.learner.RBP(budget=budget, width=width, seed=seed), rows, targets)
    want = dense.rbp(rows, targets, width, budget, place(budget, seed))
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("budget", "width", "step", "reg", "cap", "seed"),
    [(2, 0.5, 0.2, 0.01, 1.0, 0), (7, 1.6, 0.7, 0.3, 0.4, 1), (40, 0.8, 0.05, 0.0, 9.0, 2), (7, 1.0, 2.5, 0.2, 2.0, 3)],
)
def test_bogd_equals_the_naive_one(loss, budget, width, step, reg, cap, seed):
    rows, targets = stream(loss=loss)
    learner = op.learner.BOGD(
        budget=budget, width=width, loss=loss, loss_width=0.3, step=step, reg=reg, cap=cap, seed=seed
    )  # fmt: skip
    want = dense.bogd(rows, targets, width, budget, loss, step, reg, cap, place(budget, seed))
    np.testing.assert_allclose(decisions(learner, rows, targets), want, rtol=0, atol=1e-9)


@pytest.mark.parametrize("width", [0.5, 1.6])
@pytest.mark.parametrize(("budget", "C"), [(2, 1.0), (7, 0.3), (7, 5.0), (40, 0.05), (40, 1.0)])
def test_bpas_equals_the_naive_one(budget, C, width):
    rows, targets = stream()
    found = decisions(op.learner.BPAS(budget=budget, width=width, aggressiveness=C), rows, targets)
    np.testing.assert_allclose(found, dense.bpas(rows, targets, width, budget, C), rtol=0, atol=1e-9)


@pytest.mark.parametrize("margins", [False, True])
@pytest.mark.parametrize("width", [0.5, 1.6, 6.0])
@pytest.mark.parametrize(("budget", "eta"), [(2, 0.1), (7, 0.5), (40, 0.1), (40, 0.6), (400, 0.3)])
def test_projectron_equals_the_naive_one(budget, eta, width, margins):
    rows, targets = stream()
    found = decisions(op.learner.Projectron(budget=budget, width=width, eta=eta, margins=margins), rows, targets)
    np.testing.assert_allclose(
        found, dense.projectron(rows, targets, width, budget, eta, margins), rtol=0, atol=1e-9
    )  # fmt: skip


@pytest.mark.parametrize("eta", [0.05, 0.5])
def test_projectron_with_margins_equals_the_naive_one_where_points_repeat_and_margins_are_nearly_reached(eta):
    rows, targets = repeating(800, 20)
    found = decisions(op.learner.Projectron(budget=30, width=0.9, eta=eta, margins=True), rows, targets)
    assert ((targets * found > 0.9) & (targets * found < 0.999)).sum() > 20
    want = dense.projectron(rows, targets, 0.9, 30, eta, True)
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("features", "width", "step", "seed"), [(2, 0.5, 0.2, 0), (28, 1.6, 0.7, 3)])
def test_fogd_equals_the_naive_one(loss, features, width, step, seed):
    rows, targets = stream(loss=loss)
    learner = op.learner.FOGD(features=features, width=width, loss=loss, loss_width=0.3, step=step, seed=seed)
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
    learner = op.learner.NOGD(budget=budget, rank=rank, width=width, loss=loss, loss_width=0.3, step=step)
    want = dense.nogd(rows, targets, width, budget, rank, loss, step)
    np.testing.assert_allclose(decisions(learner, rows, targets), want, rtol=0, atol=1e-9)


class Absorbing:
    """The library's own maps, updated by its truncated decomposition: what the sketches' own tests are about."""

    def __init__(self, places, size, rank, blocks, seed, width):
        self.sizes, self.places, self.state = (size, rank, blocks, seed, 0.5 / width**2), places, None

    def __call__(self, points, landmarks):
        if self.state is None:
            room = np.vstack([points, np.zeros_like(points)])
            self.state = make_sketched_nystrom(room, len(points), self.places, *self.sizes)
        else:
            self.state = absorb(self.state, points[-1])
        np.testing.assert_array_equal(self.state.features.points, landmarks)
        return self.state.features.z


@pytest.mark.parametrize("loss", ["hinge", "logistic", "huber", "epsilon_insensitive"])
@pytest.mark.parametrize(("step", "update_every", "width"), [(0.02, 40, 1.5), (0.005, 0.15, 4.0), (0.02, 1, 4.0)])
def test_skegd_equals_the_naive_one_while_nothing_is_truncated(loss, step, update_every, width):
    """Then sketches are square and features long: losses whose slopes are bounded, small steps, relative errors."""
    rows, targets = stream(loss=loss)
    sizes = {"step": step, "update_every": update_every, "width": width, "loss": loss, "loss_width": 0.3}
    learner = op.learner.SkeGD(**SKETCHES, **sizes, seed=3)
    found = decisions(learner, rows, targets)
    assert learner._state.sketching.sketch.used > 31  # updated, and more than once
    places, made = learner._state.sketching.landmark_indices, dense.sketched_anew(8, 8, 2, 3, width)
    want = dense.skegd(rows, targets, places, 15, update_every, width, loss, step, made)
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-6 * max(1.0, np.abs(want).max()))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("update_every", "width", "seed"), [(7, 1.2, 2), (0.02, 1.2, 0), (1, 0.6, 5)])
def test_skegd_on_truncated_sketches_is_gradient_descent_with_refits(loss, update_every, width, seed):
    rows, targets = stream(600, loss=loss)
    sizes = {"budget": 40, "rank": 6, "sketch_size": 30, "sample_size": 12, "blocks": 3}
    both = {"step": 0.1, "update_every": update_every, "width": width, "loss": loss, "loss_width": 0.3}
    learner = op.learner.SkeGD(**sizes, **both, seed=seed)
    found, places = decisions(learner, rows, targets), learner._state.sketching.landmark_indices
    assert learner._state.sketching.sketch.used > 88
    made = Absorbing(places, 30, 6, 3, seed, width)
    want = dense.skegd(rows, targets, places, 40, update_every, width, loss, 0.1, made)
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-8)


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("update_every", [7, 0.02])
def test_forks_on_truncated_sketches_is_newton_steps_with_resets(update_every, steps):
    rows, targets = stream(800)
    sizes = {"budget": 40, "rank": 6, "sketch_size": 30, "sample_size": 12, "blocks": 3}
    learner = op.learner.FORKS(**sizes, **steps, update_every=update_every, width=1.2, seed=2)
    found, places = decisions(learner, rows, targets), learner._state.sketching.landmark_indices
    assert learner._state.sketching.sketch.used > 95
    made = Absorbing(places, 30, 6, 3, 2, 1.2)
    want = dense.forks(rows, targets, places, 40, update_every, 1.2, "hinge", **steps, made=made)
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-8)


@pytest.mark.parametrize("options", [{"project": "next"}, {"count": "examples"}])
def test_forks_projects_on_the_next_example_or_counts_examples_as_the_naive_one_does(options):
    rows, targets = stream(800)
    sizes = {"budget": 40, "rank": 6, "sketch_size": 30, "sample_size": 12, "blocks": 3}
    steps = STEPS[2]
    learner = op.learner.FORKS(**sizes, **steps, **options, update_every=23, width=1.2, seed=2)
    found, places = decisions(learner, rows, targets), learner._state.sketching.landmark_indices
    made = Absorbing(places, 30, 6, 3, 2, 1.2)
    changed = {"project_next": "project" in options, "by_example": "count" in options}
    want = dense.forks(rows, targets, places, 40, 23, 1.2, "hinge", **steps, made=made, **changed)
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-8)
    first = 800 - sum(learner._state.sketching.schedule.counts[2:]) if "count" in options else 200
    if "project" in options:
        assert np.abs(found[first:]).max() == steps["bound"]
    else:
        assert (
            learner._state.sketching.sketch.used == 80 + (800 - (np.cumsum(targets * found < 1.0) < 80).sum() - 1) // 23
        )


def test_an_update_after_a_share_of_all_examples_counts_those_without_a_loss_and_those_before_the_map():
    rows, targets = stream(600)
    learner = op.learner.FORKS(budget=10, update_every=0.1, width=1.0)
    found = decisions(learner, rows, targets)
    losses = np.cumsum(targets * found < 1.0)
    made, last = int(np.argmax(losses == 20)), int(losses[np.argmax(losses == 20)])
    updates = 0
    for t in range(made + 1, 600):
        if losses[t] > losses[t - 1] and losses[t] - last >= 0.1 * (t + 1):
            updates, last = updates + 1, losses[t]
    assert updates > 3
    assert learner._state.sketching.sketch.used == 20 + updates


SAMPLINGS = [(None, 1.6, 0.05, 0.5, 0.2, 0), (7, 0.5, 1.0, 0.1, 1.0, 1), (40, 0.8, 0.5, 2.0, 3.0, 2)]


@pytest.mark.parametrize(("reset", "loss", "steps", "sampled"), pairs([True, False], LOSSES, STEPS, SAMPLINGS))
def test_pros_n_kons_equals_the_naive_one(loss, steps, sampled, reset):
    budget, width, oversampling, epsilon, reg, seed = sampled
    rows, targets = stream(loss=loss)
    sampling = {"oversampling": oversampling, "epsilon": epsilon, "reg": reg}
    learner = op.learner.PROSNKONS(
        budget=budget, width=width, loss=loss, loss_width=0.3, seed=seed, reset=reset, **steps, **sampling
    )  # fmt: skip
    found, d = decisions(learner, rows, targets), learner._state.dictionary
    want, kept = dense.pros_n_kons(
        rows, targets, budget, width, loss, **steps, **sampling, coin=lambda t: hash_to_uniform(seed, t), reset=reset
    )  # fmt: skip
    chosen, chances = map(list, zip(*kept, strict=True))
    np.testing.assert_array_equal(d.points[: d.used], rows[chosen])
    np.testing.assert_allclose(d.scales[: d.used], 1.0 / np.sqrt(chances), rtol=1e-6)
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-6)
    assert d.used == budget or (budget is None and 4 < d.used < 80)
