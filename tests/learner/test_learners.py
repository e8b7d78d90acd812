"""Online kernel learners equal their naive dense versions; bad input changes nothing; memory does not grow."""

import os
import signal
import threading
from contextlib import contextmanager

import numpy as np
import pytest

import dense_learners as dense
import onepass as op
from interrupting_signals import raise_on_signal
from onepass.features.sketched_nystrom import make_sketched_nystrom
from onepass.learner import losses

CLASSIFYING = ("hinge", "squared_hinge", "logistic")


def stream(count=400, dim=3, seed=0, loss="hinge"):
    """Rows and targets: two classes that no plane separates, or a smooth function with noise."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, dim))
    f = np.sin(2.0 * rows[:, 0]) + rows[:, 1] * rows[:, 2] + 0.2 * rng.standard_normal(count)
    return rows, np.where(f < 0.0, -1.0, 1.0) if loss in CLASSIFYING else f


@pytest.mark.parametrize("name", dense.LOSSES)
def test_losses_and_their_slopes_are_what_they_are_called(name):
    loss, (value, slope) = losses.make_loss(name, 0.3), dense.LOSSES[name]
    for f in np.linspace(-3.0, 3.0, 61):
        for y in (-1.0, 1.0) if name in CLASSIFYING else (-1.3, 0.0, 0.77):
            assert abs(losses.value(loss, f, y) - value(f, y)) < 1e-12
            assert abs(losses.slope(loss, f, y) - slope(f, y)) < 1e-12
            difference = (losses.value(loss, f + 1e-6, y) - losses.value(loss, f - 1e-6, y)) / 2e-6
            assert min(abs(losses.slope(loss, f + h, y) - difference) for h in (-2e-6, 0.0, 2e-6)) < 1e-4 or (
                abs(abs(f - y) - 0.3) < 1e-5 or abs(y * f - 1.0) < 1e-5
            )
    assert np.isfinite([losses.value(loss, f, 1.0) for f in (-1e5, 1e5)]).all()
    assert np.isfinite([losses.slope(loss, f, 1.0) for f in (-1e5, 1e5)]).all()


@pytest.mark.parametrize("reg", [0.0, 0.3])
@pytest.mark.parametrize("loss", dense.LOSSES)
def test_kogd_equals_the_naive_one(loss, reg):
    rows, targets = stream(loss=loss)
    learner = op.learner.KOGD(width=0.8, loss=loss, loss_width=0.3, step=0.4, reg=reg)
    found = op.progressive_validation(learner, rows, targets)
    np.testing.assert_allclose(found.decisions, dense.kogd(rows, targets, 0.8, loss, 0.4, reg), atol=1e-10)


@pytest.mark.parametrize("loss", dense.LOSSES)
@pytest.mark.parametrize(("alpha", "curvature", "bound"), [(0.01, 0.04, 1.0), (0.7, 0.5, 0.4)])
def test_forks_equals_the_naive_one_while_nothing_is_truncated(loss, alpha, curvature, bound):
    rows, targets = stream(loss=loss)
    sizes = {"budget": 15, "rank": 8, "sketch_size": 8, "sample_size": 8, "blocks": 2}
    steps = {"step": 0.3, "alpha": alpha, "curvature": curvature, "bound": bound}
    learner = op.learner.FORKS(**sizes, **steps, update_every=40, width=1.5, loss=loss, loss_width=0.3, seed=3)
    found = op.progressive_validation(learner, rows, targets)
    assert learner._state.sketching.mapped
    assert learner._state.sketching.sketch.used > 31  # updated, and more than once
    want = dense.forks(
        rows, targets, learner._state.sketching.landmark_indices, 15, 8, 8, 2, 40, 1.5, loss, seed=3, **steps
    )  # fmt: skip
    np.testing.assert_allclose(found.decisions, want, atol=1e-6)


def test_forks_with_small_sketches_is_the_naive_one_until_the_first_update():
    rows, targets = stream(800)
    learner = op.learner.FORKS(budget=40, width=1.5, seed=1, update_every=3000)
    found = op.progressive_validation(learner, rows, targets)
    p = learner.params
    # Wen, Zhang et al.: k = 0.1 B, s_p = B, s_m = 0.2 s_p
    assert (p["rank"], p["sketch_size"], p["sample_size"]) == (4, 40, 8)
    landmarks = learner._state.sketching.landmark_indices
    want = dense.forks(
        rows, targets, landmarks, 40, 4, 40, 1, 3000, 1.5, "hinge", 0.2, 0.01, 0.04, 1.0, 1
    )  # fmt: skip
    np.testing.assert_allclose(found.decisions, want, atol=1e-8)


def test_the_reset_forgets_weights_and_inverse_and_nothing_else():
    rows, targets = stream(600, loss="squared")
    learner = op.learner.FORKS(budget=20, update_every=1, width=1.0, loss="epsilon_insensitive", loss_width=0.01)
    learner.partial_fit(rows, targets)
    learner.partial_fit([[3.0, 0.0, 0.0]] * 2, [9.0, 0.0])  # the last one has a loss, but none where f = 0: no step
    state = learner._state
    sketch, newton = state.sketching.sketch, state.newton
    assert sketch.used > 400
    assert (newton.w == 0.0).all()
    np.testing.assert_allclose(newton.root @ newton.root.T, np.eye(2) / 0.01)
    again = make_sketched_nystrom(sketch.points, sketch.used, state.sketching.landmark_indices, 20, 2, 1, 0, 0.5)
    np.testing.assert_allclose(sketch.pp, again.pp, atol=1e-8)
    np.testing.assert_allclose(sketch.pm, again.pm, atol=1e-8)


@pytest.mark.parametrize("make", [op.learner.KOGD, op.learner.FORKS])
def test_learning_in_pieces_or_one_by_one_is_the_same(make):
    rows, targets = stream()
    whole, pieces, single = (make(width=1.0) for _ in range(3))
    whole.partial_fit(rows, targets)
    pieces.partial_fit(rows[:130], targets[:130]).partial_fit(rows[130:], targets[130:])
    for x, y in zip(rows, targets, strict=True):
        single.learn_one(x, y)
    queries = stream(seed=1)[0]
    assert np.array_equal(whole.decision_function(queries), pieces.decision_function(queries))
    assert np.array_equal(whole.decision_function(queries), single.decision_function(queries))
    assert [whole.predict_one(x) for x in queries[:9]] == whole.predict(queries[:9]).tolist()


def test_second_order_steps_learn_what_gradient_descent_learns():
    rows, targets = stream(4000, dim=3)
    forks = op.progressive_validation(op.learner.FORKS(budget=100, rank=30, sample_size=60, width=1.5), rows, targets)
    assert forks.mistakes[2000:].mean() < 0.15
    assert 0.0 <= forks.mistake_rate <= 1.0
    assert forks.mistake_rate == forks.mistakes.mean()


def test_memory_of_forks_does_not_grow_between_updates_of_its_sketches():
    learner = op.learner.FORKS(budget=20, width=1.0, update_every=10**6)
    learner.partial_fit(*stream(2000))
    held = learner.memory_usage()
    assert learner.partial_fit(*stream(2000, seed=1)).memory_usage() == held


@pytest.mark.parametrize("make", [op.learner.KOGD, op.learner.FORKS])
def test_degenerate_streams_give_no_nan(make):
    for rows in (np.zeros((300, 2)), np.ones((300, 2)), 1e9 * stream(300, 2 + 1)[0]):
        targets = np.where(np.arange(300) % 3 == 0, -1.0, 1.0)
        found = op.progressive_validation(make(width=1.0), rows, targets)
        assert np.isfinite(found.decisions).all()


@pytest.mark.parametrize("make", [op.learner.KOGD, op.learner.FORKS])
def test_bad_examples_are_refused_and_change_nothing(make):
    rows, targets = stream(150)
    learner = make(width=1.0).partial_fit(rows, targets)
    before = learner.decision_function(rows)
    bad = [
        (np.full((1, 3), np.nan), [1.0], "X"),
        (rows[:2], [1.0, np.nan], "y"),
        (rows[:2], [1.0, 0.0], "-1 or 1"),
        (rows[:2], [1.0], "one entry"),
        (rows[:2, :2], [1.0, 1.0], "X"),
        (rows[0], [1.0], "X"),
        ([["a", "b", "c"]], [1.0], "X"),
    ]
    for X, y, said in bad:
        with pytest.raises(ValueError, match=said):
            learner.partial_fit(X, y)
        with pytest.raises(ValueError, match=said):
            op.progressive_validation(learner, X, y)
    assert np.array_equal(learner.decision_function(rows), before)
    assert make(width=1.0).predict(rows).tolist() == [1.0] * 150  # nothing learned yet
    twin = learner.copy()
    twin.partial_fit(*stream(150, seed=5))
    assert np.array_equal(learner.decision_function(rows), before)


@pytest.mark.parametrize(
    "wrong",
    [
        {"budget": 1},
        {"budget": 10, "rank": 11},
        {"budget": 10, "sample_size": 4, "rank": 5},
        {"budget": 10, "sample_size": 21},
        {"budget": 10, "blocks": 3},
        {"update_every": 0},
        {"width": 0.0},
        {"loss": "perceptron"},
        {"alpha": -1.0},
        {"bound": np.inf},
        {"seed": -1},
    ],
)
def test_sizes_that_do_not_fit_are_refused_by_name(wrong):
    with pytest.raises(ValueError, match=list(wrong)[-1]):
        op.learner.FORKS(**wrong)


def test_learners_that_diverge_say_so_instead_of_predicting():
    rows, targets = stream(3000, loss="squared")
    learner = op.learner.FOGD(loss="squared", step=50.0)
    with pytest.raises(FloatingPointError, match="smaller step"):
        learner.partial_fit(rows, targets)
    with pytest.raises(FloatingPointError, match="diverged"):
        learner.predict(rows)
    with pytest.raises(FloatingPointError, match="diverged"):
        op.progressive_validation(op.learner.FOGD(loss="squared", step=50.0), rows, targets)


def for_ever(listen, learner, rows, targets):
    while True:
        listen[0] = True  # each time: what is raised in a finalizer reaches nobody
        learner.partial_fit(rows, targets)


@contextmanager
def signals_every(delay):
    """SIGINT after so many seconds, and again until the block is left."""
    over = threading.Event()

    def send():
        while not over.wait(delay):
            os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=send)
    sender.start()
    try:
        yield
    finally:
        over.set()
        sender.join()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # as finalizers may be hit
@pytest.mark.parametrize("make", [op.KernelNewton, op.learner.FORKS, op.learner.KOGD, op.learner.RBP])
def test_interrupts_wait_for_a_block_and_leave_the_learner_as_after_it(make):
    rows, targets = stream(60_000)
    make().partial_fit(rows[:500], targets[:500])  # compiled before the clock runs
    with raise_on_signal(signal.SIGINT, KeyboardInterrupt) as listen:
        for delay in (0.002, 0.01, 0.03):
            learner = make()
            with signals_every(delay), pytest.raises(KeyboardInterrupt):
                for_ever(listen, learner, rows, targets)
            state = learner.copy()
            state.partial_fit(rows[:100], targets[:100])
            assert np.isfinite(learner.decision_function(rows[:100])).all()
            if isinstance(learner, op.KernelNewton) and learner._state is not None:
                seen = learner._state.n_seen % 60_000
                assert seen % 4096 == 0
                fresh = make()
                for _ in range(learner._state.n_seen // 60_000):
                    fresh.partial_fit(rows, targets)
                fresh.partial_fit(rows[:seen], targets[:seen])
                queries = rows[:50]
                assert np.array_equal(fresh.decision_function(queries), learner.decision_function(queries))


def test_progressive_validation_says_what_it_takes():
    for wrong in (op.learner.FORKS, object(), None):
        with pytest.raises(ValueError, match="learner must be"):
            op.progressive_validation(wrong, np.zeros((1, 1)), [1.0])
