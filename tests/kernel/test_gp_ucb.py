"""GP-UCB equals the dense inverse, one row a play, scikit-learn's process and, on a linear kernel, OFUL."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk

import dense_kernel as dense
import onepass as op
from kernel_games import (
    BANDITS,
    KERNELS,
    REGS,
    SMOOTH,
    assert_close,
    assert_posterior_close,
    history,
    learn,
    learn_rows,
    points,
    value,
)

# ---- exact GP-UCB ----


@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_gp_ucb_on_fixed_arms_equals_the_dense_inverse(kernel, reg):
    arms = points()
    plays, rewards = history(arms)
    bandit = op.GPUCB(arms, KERNELS[kernel], reg=reg)
    naive = dense.GP(op.features.kernels.as_kernel(KERNELS[kernel]), reg)
    assert_posterior_close(bandit.model.posterior(), naive.posterior(arms))
    for start in range(0, 300, 30):
        part = slice(start, start + 30)
        if start % 60:
            learn(bandit, plays[part], rewards[part])
        else:
            for arm, reward in zip(plays[part], rewards[part], strict=True):
                learn(bandit, int(arm), float(reward))
        learn_rows(naive, arms[plays[part]], rewards[part])
        assert_posterior_close(bandit.model.posterior(), naive.posterior(arms))
    assert bandit.n_learned == 300
    assert bandit.model.dictionary_size == len(np.unique(plays)) < 200
    elsewhere = points(20, 9)
    assert_posterior_close(bandit.model.posterior(elsewhere), naive.posterior(elsewhere))
    assert_close(bandit.model.posterior().deviations, np.sqrt(reg * naive.posterior(arms)[1]))


@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_gp_ucb_on_changing_arm_sets_equals_the_dense_inverse(kernel, reg):
    rng, pool = np.random.default_rng(2), points(25, 3)
    bandit = op.GPUCB(kernel=KERNELS[kernel], reg=reg, exploration=0.8)
    naive = dense.GP(op.features.kernels.as_kernel(KERNELS[kernel]), reg)
    for t in range(300):
        if t % 30 == 0:
            rows = np.vstack([rng.random((7, 2)), pool[:5]])
            decision, (means, variances) = bandit.decide(rows), naive.posterior(rows)
            assert_posterior_close(bandit.model.posterior(rows), (means, variances))
            assert_close(decision.means, means)
            assert_close(decision.widths, np.sqrt(variances), 1e-7)
            assert_close(decision.scores, means + 0.8 * np.sqrt(variances), 1e-7)
            assert_close(bandit.score(rows), decision.scores)
        row = pool[rng.integers(25)] if t % 3 else rng.random(2)
        reward = float(value(row[None])[0] + 0.1 * rng.standard_normal())
        learn(bandit, row, reward)
        naive.learn(row, reward)
    batch = np.vstack([rng.random((4, 2)), pool[:3], pool[:3]])
    rewards = value(batch) + 0.1 * rng.standard_normal(10)
    learn(bandit, batch, rewards)
    learn_rows(naive, batch, rewards)
    assert_posterior_close(bandit.model.posterior(pool), naive.posterior(pool))
    assert bandit.n_learned == 310
    assert bandit.model.dictionary_size == len(np.unique(np.array(naive.rows), axis=0))


@pytest.mark.parametrize("reg", REGS)
def test_the_order_of_plays_does_not_matter(reg):
    arms = points()
    plays, rewards = history(arms)
    order = np.random.default_rng(3).permutation(300)
    for make in (op.GPUCB, lambda *a, **k: op.BKB(*a, oversampling=1e12, redundancy=0.0, **k)):
        one, other = make(arms, SMOOTH, reg=reg), make(arms, SMOOTH, reg=reg)
        learn(one, plays, rewards)
        learn(other, plays[order], rewards[order])
        assert_posterior_close(one.model.posterior(), other.model.posterior()[:2])


@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("kernel", ["rbf", "matern 1/2", "matern 5/2", "linear", "sum"])
def test_gp_ucb_decides_as_one_row_a_play(kernel, reg):
    arms = points(60)
    bandit = op.GPUCB(arms, KERNELS[kernel], reg=reg, exploration=0.5, seed=4)
    naive, rng, gaps = dense.RowAPlay(KERNELS[kernel](arms, arms), reg), np.random.default_rng(4), []
    for _ in range(250):
        means, variances = naive.posterior()
        scores = means + 0.5 * np.sqrt(variances)
        decision = bandit.decide()
        first, second = np.sort(scores)[::-1][:2]
        gaps.append(first - second)
        assert decision.arm == scores.argmax() or scores[decision.arm] > first - 1e-9
        assert_close(decision.scores, scores, 1e-7)
        reward = float(value(arms)[decision.arm] + 0.1 * rng.standard_normal())
        learn(bandit, decision.arm, reward)
        naive.learn(decision.arm, reward)
    assert_posterior_close(bandit.model.posterior(), naive.posterior())
    assert np.mean(np.array(gaps) > 1e-9) > 0.9  # else the arms would not have been compared


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("kernel", ["rbf", "matern 3/2", "sum"])
def test_gp_ucb_equals_scikit_learns_gaussian_process(kernel, reg, normalize):
    theirs = {
        "rbf": sk.RBF(0.15),
        "matern 3/2": sk.Matern(0.3, nu=1.5),
        "sum": sk.ConstantKernel(0.5) * sk.Matern(0.2, nu=1.5) + sk.DotProduct(1e-9),
    }[kernel]
    arms = points()
    plays, rewards = history(arms)
    rewards = 70.0 + 20.0 * rewards
    fixed = op.GPUCB(arms, KERNELS[kernel], reg=reg, normalize=normalize)
    rows = op.GPUCB(kernel=KERNELS[kernel], reg=reg, normalize=normalize)
    for count in (1, 2, 50, 300):
        learn(fixed, plays[fixed.n_learned : count], rewards[fixed.n_learned : count])
        learn(rows, arms[plays[rows.n_learned : count]], rewards[rows.n_learned : count])
        regressor = GaussianProcessRegressor(theirs, alpha=reg, optimizer=None, normalize_y=normalize)
        means, deviations = regressor.fit(arms[plays[:count]], rewards[:count]).predict(arms, return_std=True)
        scale = rewards[:count].std() if normalize and count > 1 else 1.0
        for posterior in (fixed.model.posterior(), rows.model.posterior(arms)):
            assert_close(posterior.means, means)
            assert_close(reg * posterior.variances, (deviations / scale) ** 2)
            assert_close(posterior.deviations, deviations, 1e-7)


@pytest.mark.parametrize("make", [op.GPUCB, op.BKB])
def test_normalized_rewards_make_decisions_free_of_their_units(make):
    arms = points()
    plain, moved = (make(arms, SMOOTH, reg=0.37, normalize=True, seed=1) for _ in range(2))
    rng = np.random.default_rng(0)
    for t in range(120):
        one, other = plain.decide(), moved.decide()
        assert one.arm == other.arm
        if t > 1:  # two plays make a scale
            assert_close((other.means - 1000.0) / 256.0, one.means)
            assert_close((other.scores - 1000.0) / 256.0, one.scores, 1e-7)
        reward = float(value(arms)[one.arm] + 0.1 * rng.standard_normal())
        learn(plain, one.arm, reward)
        learn(moved, one.arm, 256.0 * reward + 1000.0)
    assert_posterior_close(
        plain.model.posterior(), ((moved.model.posterior().means - 1000.0) / 256.0, moved.model.posterior().variances)
    )
    assert_close(moved.model.posterior().deviations / 256.0, plain.model.posterior().deviations)


@pytest.mark.parametrize("exploration", [0.7, op.Theory(noise=0.3, parameter_bound=2.0, row_bound=1.5, delta=0.05)])
@pytest.mark.parametrize("reg", REGS)
def test_gp_ucb_with_a_linear_kernel_is_oful(reg, exploration):
    rng = np.random.default_rng(6)
    arms, theta = rng.standard_normal((30, 5)), rng.standard_normal(5)
    arms /= np.linalg.norm(arms, axis=1, keepdims=True) / rng.uniform(0.5, 1.5, (30, 1))
    oful = op.OFUL(dim=5, reg=reg, exploration=exploration)
    fixed = op.GPUCB(arms, op.Linear(), reg=reg, exploration=exploration)
    rows = op.GPUCB(kernel=op.Linear(), reg=reg, exploration=exploration)
    for _ in range(150):
        want = oful.decide(arms)
        for got in (fixed.decide(), rows.decide(arms)):
            assert_close(got.means, want.means)
            assert_close(got.widths, want.widths, 1e-7)
            assert_close(got.scores, want.scores, 1e-7)
            assert got.arm == want.arm or want.scores[got.arm] > want.scores.max() - 1e-8
        reward = float(arms[want.arm] @ theta + 0.3 * rng.standard_normal())
        oful.learn(arms[want.arm], reward)
        learn(fixed, want.arm, reward)
        learn(rows, arms[want.arm], reward)


@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("make", BANDITS)
def test_the_effective_dimension_is_the_sum_of_the_variances_of_the_plays(make, reg):
    arms = points()
    plays, rewards = history(arms)
    bandit = BANDITS[make](arms, SMOOTH, reg=reg)
    assert bandit.model.effective_dimension() == 0.0
    learn(bandit, plays, rewards)
    assert_close(bandit.model.effective_dimension(), bandit.model.posterior().variances[plays].sum())
    if make != "BKB with few":
        K = SMOOTH(arms[plays], arms[plays])
        exact = np.trace(K @ np.linalg.inv(K + reg * np.eye(300)))
        assert_close(bandit.model.effective_dimension(), exact, 1e-8 if make != "BKB" else 0.2)


def test_the_default_exploration_is_two_posterior_standard_deviations():
    arms = points()
    for make in BANDITS.values():
        for reg in REGS:
            bandit = make(arms, SMOOTH, reg=reg)
            learn(bandit, *history(arms, 20))
            posterior, decision = bandit.model.posterior(), bandit.decide()
            assert_close(decision.scores, posterior.means + 2 * posterior.deviations)


def test_the_default_kernel_is_matern_with_the_median_distance():
    arms = points(61, 4, 3)
    distances = np.linalg.norm(arms[:, None] - arms, axis=2)[np.triu_indices(61, 1)]
    kernel = op.GPUCB(arms).model.kernel
    assert kernel == op.Matern(2.5, kernel.length_scale)
    assert abs(kernel.length_scale - np.median(distances)) < 0.02 * np.median(distances)
    for make in (op.GPUCB, op.BKB):
        with pytest.raises(ValueError, match="kernel"):
            make(None)
