"""Kernel bandits: memory, units, interruptions, and what they say of themselves."""

import signal

import numpy as np
import pytest

import dense_kernel as dense
import onepass as op
from interrupting_signals import raise_on_signal
from kernel_games import BANDITS, SMOOTH, history, learn, play, points, value

# ---- cost ----


@pytest.mark.parametrize("sets", ["fixed", "rows"])
@pytest.mark.parametrize("make", ["GPUCB", "BKB"])
def test_memory_and_dictionary_are_flat_once_the_effective_dimension_is(make, sets):
    arms = points(60)
    rng = np.random.default_rng(0)
    bandit = BANDITS[make](arms if sets == "fixed" else None, op.RBF(0.5), reg=0.37)
    memory, sizes = [], []
    for _ in range(100):
        plays = rng.integers(0, 60, 100)
        learn(bandit, plays if sets == "fixed" else arms[plays], value(arms)[plays] + rng.standard_normal(100))
        memory.append(bandit.memory_usage())
        sizes.append(bandit.model.dictionary_size)
    assert bandit.n_learned == 10_000
    assert max(sizes[90:]) <= max(sizes[40:50]) + 3
    assert max(memory[50:]) <= 1.1 * max(memory[:50])
    assert max(sizes) <= 60


def test_an_exact_bandit_holds_distinct_points_and_not_plays():
    arms = points(10)
    few, many = op.GPUCB(arms, SMOOTH), op.GPUCB(arms, SMOOTH)
    learn(few, np.arange(10), np.ones(10))
    learn(many, np.tile(np.arange(10), 200), np.ones(2000))
    assert many.memory_usage() <= few.memory_usage()
    assert many.model.dictionary_size == 10


def test_memory_usage_counts_the_arrays():
    arms = points(500)
    bandit = op.GPUCB(arms, SMOOTH)
    learn(bandit, np.arange(100), np.ones(100))
    assert bandit.memory_usage() >= arms.nbytes + 8 * 100 * 500


def test_repr_says_what_it_is_and_has_learned():
    for make in (op.GPUCB, op.BKB):
        bandit = make(points(), SMOOTH, reg=0.37)
        learn(bandit, [0, 1, 1], [1.0, 2.0, 3.0])
        text = repr(bandit)
        for part in (make.__name__, "Matern", "0.37", "3"):
            assert part in text


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # as finalizers may be hit
@pytest.mark.parametrize("make", [op.GPUCB, op.BKB])
def test_ctrl_c_loses_a_play_or_keeps_it_but_never_half_of_it(make):
    rng, arms = np.random.default_rng(0), np.random.default_rng(1).random((3_000, 2))
    play(make(arms, op.RBF(0.2)), lambda arm: 0.0, 30)  # compiled
    bandit, learned, pressed = make(arms, op.RBF(0.2), reg=1.0, exploration=4.0), [], 0
    with raise_on_signal(signal.SIGALRM, KeyboardInterrupt) as listen:
        try:
            for _ in range(40):
                arm = reward = 0
                try:
                    signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.001, 0.02), 0.02)
                    while True:
                        arm, reward = int(rng.integers(3_000)), float(rng.standard_normal())
                        listen[0] = True  # each time: what is raised in a finalizer reaches nobody
                        learn(bandit, arm, reward)
                        learned.append((arm, reward))
                except (KeyboardInterrupt, SystemError):  # numba says SystemError of a signal that comes as it returns
                    pressed += 1
                    if bandit.n_learned > len(learned):
                        learned.append((arm, reward))
                assert bandit.model.state.plays.sum() == bandit.n_learned == len(learned)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
    assert pressed == 40
    played, rewards = zip(*learned, strict=True)
    want = dense.dtc(op.RBF(0.2), bandit.model.dictionary, arms[list(played)], np.array(rewards), arms[:40], 1.0)
    posterior = bandit.model.posterior()
    np.testing.assert_allclose(posterior.means[:40], want[0], atol=1e-6)
    np.testing.assert_allclose(posterior.variances[:40], want[1], atol=1e-6)


@pytest.mark.parametrize("make", [op.GPUCB, op.BKB])
def test_a_fit_waits_until_rewards_differ(make):
    """Thirty visits without a click say nothing of the kernel; a fit would believe that no arm is ever clicked."""
    arms = np.random.default_rng(0).random((60, 2))
    bandit = make(arms, op.RBF(0.3), fit_after=30)
    learn(bandit, np.arange(40), np.zeros(40))
    assert (bandit.model.kernel, bandit.model.reg) == (op.RBF(0.3), 0.01)
    assert bandit.decide().propensity == 1 / 60
    learn(bandit, 40, 1.0)
    assert bandit.model.kernel != op.RBF(0.3)
    assert np.isfinite(bandit.model.posterior().deviations).all()
    assert bandit.decide().propensity > 1 / 60


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("unit", [1e-4, 1e4])
def test_a_fit_does_not_depend_on_the_units_of_rewards(unit, normalize):
    rng = np.random.default_rng(3)
    arms = rng.random((60, 2))
    paid = np.sin(6.0 * arms[:, 0]) * np.cos(4.0 * arms[:, 1]) + 0.1 * rng.standard_normal(60)
    fits = []
    for c in (1.0, unit):
        bandit = op.GPUCB(
            arms, op.RBF(1.0), reg=0.01 * (1.0 if normalize else c * c), fit_after=60, normalize=normalize
        )
        learn(bandit, np.arange(60), c * paid)
        squared = 1.0 if normalize else c * c
        fits.append(
            [bandit.model.kernel.kernel.length_scale, bandit.model.kernel.scale / squared, bandit.model.reg / squared]
        )
    np.testing.assert_allclose(fits[1], fits[0], rtol=1e-2)
    assert 0.1 < fits[0][0] < 1.0
    assert 0.003 < fits[0][2] < 0.05


def test_rewards_are_normalized_where_a_kernel_is_fitted_unless_told_otherwise():
    arms = np.eye(3)
    assert op.BKB(arms, fit_after=5).model.normalize
    assert not op.BKB(arms).model.normalize
    assert not op.GPUCB(arms, fit_after=5, normalize=False).model.normalize
    with pytest.raises(ValueError, match="normalize must be"):
        op.GPUCB(arms, normalize="yes")


def test_a_replayed_point_keeps_its_variance_where_reg_is_tiny():
    """Its variance is 1 / n less what others tell, below 1e-10 of the prior's: no difference of the two may hold it."""
    arms = np.array([[0.0], [3.0]])
    for make in (op.GPUCB, op.BKB):
        bandit = make(arms, op.RBF(1.0), reg=1e-12)
        for _ in range(50):
            learn(bandit, 0, 1.0)
        assert abs(50.0 * bandit.model.posterior().variances[0] - 1.0) < 1e-3
    cubes = np.random.default_rng(0).uniform(0.0, 100.0, (40, 3))
    plays = np.random.default_rng(1).integers(0, 40, 400)
    stiff = op.GPUCB(cubes, op.Polynomial(3), reg=1.0)  # variances up to 1e12 reg
    learn(stiff, plays, np.ones(400))
    assert np.isfinite(stiff.model.posterior().means).all()


def test_information_gain_is_half_the_log_determinant():
    arms = points()
    plays, rewards = history(arms, 60)
    gram = SMOOTH(arms[plays], arms[plays])
    want = 0.5 * np.linalg.slogdet(np.eye(60) + gram / 0.37)[1]
    for bandit in (
        op.GPUCB(arms, SMOOTH, reg=0.37),
        op.BKB(arms, SMOOTH, reg=0.37, oversampling=1e12, redundancy=0.0, staleness=1.0),
        op.BKB(arms, SMOOTH, reg=0.37, oversampling=1e12, redundancy=0.0, staleness=np.inf),
    ):
        learn(bandit, plays, rewards)
        assert abs(bandit.model.information_gain() - want) < 1e-8 * want


def test_what_only_looks_like_an_arm_is_refused_with_a_sentence():
    bandit = op.BKB(points(), SMOOTH)
    for wrong in ([[1, 2], [3]], points()[0], "a", None):
        with pytest.raises(ValueError, match="arm"):
            learn(bandit, wrong, 1.0)
    with pytest.raises(ValueError, match="second argument"):
        op.GPUCB(SMOOTH)
    with pytest.raises(ValueError, match="redundancy"):
        op.BKB(points(), SMOOTH, redundancy=1.0)
    with pytest.raises(ValueError, match="learn a play first"):
        bandit.model.nystrom()
    learn(bandit, np.array(3), 1.0)
    learn(bandit, np.arange(3, dtype=np.uint8), np.ones(3, np.float32))
    assert bandit.n_learned == 4
