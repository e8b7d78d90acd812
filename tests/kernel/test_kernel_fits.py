"""Kernels fitted by marginal likelihood after random plays."""

import numpy as np
import pytest

import dense_kernel as dense
import onepass as op
from kernel_games import (
    BANDITS,
    SETS,
    SMOOTH,
    are_equal,
    are_equal_runs,
    assert_close,
    learn,
    learn_rows,
    play,
    points,
    run,
)

# ---- fitting ----


def drawn(length_scale, count=150, seed=0, noise=0.1):
    """Arms on a line and a draw of the GP there."""
    arms = np.linspace(0, 4, count)[:, None]
    gram = op.RBF(length_scale)(arms, arms) + 1e-10 * np.eye(count)
    rng = np.random.default_rng(seed)
    return arms, np.linalg.cholesky(gram) @ rng.standard_normal(count), noise * rng.standard_normal(1000)


def length_of(kernel):
    """The one length scale of a kernel of ours, under whatever multiples."""
    while not hasattr(kernel, "length_scale"):
        kernel = kernel.kernel
    return kernel.length_scale


@pytest.mark.parametrize("length_scale", [0.1, 0.5])
@pytest.mark.parametrize("make", ["GPUCB", "BKB"])
@pytest.mark.parametrize("sets", ["fixed", "rows"])
def test_fit_after_finds_the_length_scale_within_a_factor_of_two(sets, make, length_scale):
    for seed in range(3):
        arms, function, noise = drawn(length_scale, seed=seed)
        bandit = BANDITS[make](arms if sets == "fixed" else None, op.RBF(0.22), reg=0.3, fit_after=80, seed=seed)
        rows = () if sets == "fixed" else (arms,)
        for t in range(80):
            assert bandit.model.kernel == op.RBF(0.22)
            assert bandit.model.reg == 0.3
            decision = bandit.decide(*rows)
            assert decision.propensity == pytest.approx(1 / len(arms))
            reward = float(function[decision.arm] + noise[t])
            learn(bandit, decision.arm if sets == "fixed" else arms[decision.arm], reward)
        assert length_scale / 2 < length_of(bandit.model.kernel) < 2 * length_scale
        assert bandit.model.reg < 0.3
        naive = bandit.copy()
        for t in range(80, 120):
            decision = bandit.decide(*rows)
            assert np.isfinite(decision.scores).all()
            learn(
                bandit,
                decision.arm if sets == "fixed" else arms[decision.arm],
                float(function[decision.arm] + noise[t]),
            )
        assert (bandit.model.kernel, bandit.model.reg) == (naive.model.kernel, naive.model.reg)
        assert bandit.n_learned == 120


def test_after_the_fit_the_posterior_is_that_of_the_fitted_kernel():
    arms, function, noise = drawn(0.3)
    for normalize in (False, True):
        bandit = op.GPUCB(arms, op.Matern(2.5, 1.0), reg=0.3, fit_after=40, normalize=normalize, seed=1)
        plays, rewards = [], []
        for t in range(70):
            plays.append(bandit.decide().arm)
            rewards.append(float(5.0 * function[plays[-1]] + noise[t]) + 7.0)
            learn(bandit, plays[-1], rewards[-1])
        y = np.array(rewards)
        centre, scale = (y.mean(), y.std()) if normalize else (0.0, 1.0)
        naive = learn_rows(dense.GP(bandit.model.kernel, bandit.model.reg), arms[plays], (y - centre) / scale)
        means, variances = naive.posterior(arms)
        assert_close(bandit.model.posterior().means, centre + scale * means, 1e-7)
        assert_close(bandit.model.posterior().variances * bandit.model.reg, variances * bandit.model.reg)
        assert bandit.model.kernel != op.Matern(2.5, 1.0)


@pytest.mark.parametrize("make", ["GPUCB", "BKB"])
def test_after_the_fit_a_number_explores_as_many_posterior_deviations_as_before(make):
    arms, function, noise = drawn(0.3)
    for exploration in (None, 0.9, op.UCB(0.9)):
        bandit = BANDITS[make](arms, op.Matern(2.5, 1.0), reg=0.3, fit_after=40, exploration=exploration, seed=1)
        for t in range(50):
            if t == 40:
                assert bandit.model.reg != 0.3
            arm = bandit.decide().arm
            learn(bandit, arm, float(function[arm] + noise[t]))
        decision, deviations = bandit.decide(), 2.0 if exploration is None else 0.9 / np.sqrt(0.3)
        assert_close(decision.scores - decision.means, deviations * bandit.model.posterior().deviations)


@pytest.mark.parametrize("sets", ["fixed", "rows"])
@pytest.mark.parametrize("make", ["GPUCB", "BKB"])
def test_a_fit_that_fails_changes_nothing(make, sets, monkeypatch):
    from onepass.model.kernel import marginal_likelihood

    def fails(*arguments):
        raise ValueError("kernel cannot be fitted, says this test")

    bandit = BANDITS[make](points() if sets == "fixed" else None, SMOOTH, reg=0.37, fit_after=10, seed=3)
    run(bandit, 9, sets=SETS[sets])
    with monkeypatch.context() as patched:
        patched.setattr(marginal_likelihood, "fit_kernel", fails)
        for what in (3, [3, 4]):
            arm = what if sets == "fixed" else points(5, 9)[what]
            before, state = bandit.model.posterior(points(7, 4)), bandit.n_learned
            with pytest.raises(ValueError, match="kernel"):
                learn(bandit, arm, np.zeros(np.shape(what)))
            assert are_equal(bandit.model.posterior(points(7, 4)), before)
            assert bandit.n_learned == state == 9
    twin = BANDITS[make](points() if sets == "fixed" else None, SMOOTH, reg=0.37, fit_after=10, seed=3)
    run(twin, 9, sets=SETS[sets])
    assert are_equal_runs(run(bandit, 8, sets=SETS[sets]), run(twin, 8, sets=SETS[sets]))
    assert are_equal(bandit.model.posterior(points(7, 4)), twin.model.posterior(points(7, 4)))


def test_before_the_fit_plays_are_uniformly_random_whatever_they_pay():
    """2,000 plays of 5 arms: each count is off by a standard deviation of sqrt(2000 * 0.2 * 0.8)."""
    for make in ("GPUCB", "BKB"):
        bandit = BANDITS[make](points(5), SMOOTH, fit_after=5000, seed=1)
        counts = np.bincount(play(bandit, lambda arm: 100.0 * (arm == 2), 2000), minlength=5)
        assert (np.abs(counts - 400) < 5 * np.sqrt(2000 * 0.2 * 0.8)).all()
