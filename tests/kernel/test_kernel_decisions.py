"""Kernel bandits decide: draws with the posterior's covariance, ranks, maximizers, ties, seeds."""

import numpy as np
import pytest

import dense_kernel as dense
import onepass as op
from kernel_games import (
    ARMS,
    BANDITS,
    SMOOTH,
    are_equal,
    are_equal_runs,
    assert_close,
    history,
    learn,
    learn_rows,
    play,
    points,
    run,
    value,
)

# ---- Thompson sampling ----


def draws(bandit, count, rows=None):
    """What so many decisions add to the means (count, K)."""
    out = []
    for _ in range(count):
        decision = bandit.decide() if rows is None else bandit.decide(rows)
        out.append(decision.scores - decision.means)
    return np.array(out)


@pytest.mark.parametrize("reg", [0.37, 0.01])
@pytest.mark.parametrize("sets", ["fixed", "rows"])
@pytest.mark.parametrize("make", BANDITS)
def test_thompson_sampling_draws_with_the_posterior_variance(make, sets, reg):
    """The variance of N draws is off by a standard deviation of sqrt(2 / N): five of them are allowed."""
    arms, count = points(12), 2000
    plays, rewards = history(arms, 15)
    exploration = op.Thompson(0.6)
    bandit = BANDITS[make](arms if sets == "fixed" else None, SMOOTH, reg=reg, exploration=exploration, seed=3)
    learn(bandit, plays if sets == "fixed" else arms[plays], rewards)
    got = draws(bandit, count, None if sets == "fixed" else arms)
    want = 0.36 * bandit.model.posterior(arms).variances
    assert (np.abs(got.var(axis=0) / want - 1) < 5 * np.sqrt(2 / count)).all()
    assert (np.abs(got.mean(axis=0)) < 5 * np.sqrt(want / count)).all()


@pytest.mark.parametrize("sets", ["fixed", "rows"])
@pytest.mark.parametrize("reg", [0.37, 0.01])
def test_thompson_sampling_of_gp_ucb_draws_arms_jointly(reg, sets):
    """An entry c_ij of N draws' covariance is off by a standard deviation of sqrt((c_ii c_jj + c_ij^2) / N)."""
    arms, count = np.vstack([points(8), points(8)[:1] + 1e-9]), 4000
    plays, rewards = history(arms, 12)
    bandit = op.GPUCB(arms if sets == "fixed" else None, SMOOTH, reg=reg, exploration=op.Thompson(1.0), seed=3)
    got = draws(bandit, count, None if sets == "fixed" else arms)
    prior = SMOOTH(arms, arms) / reg
    margin = 5.5 * np.sqrt((np.outer(np.diag(prior), np.diag(prior)) + prior**2) / count)
    assert (np.abs(got.T @ got / count - prior) < margin).all()
    learn(bandit, plays if sets == "fixed" else arms[plays], rewards)
    got, want = (
        draws(bandit, count, None if sets == "fixed" else arms),
        learn_rows(dense.GP(SMOOTH, reg), arms[plays], rewards).covariance(arms),
    )
    margin = 5.5 * np.sqrt((np.outer(np.diag(want), np.diag(want)) + want**2) / count)
    assert (np.abs(got.T @ got / count - want) < margin).all()


# ---- what bandits do ----


@pytest.mark.parametrize("make", BANDITS)
def test_decide_ranks_the_best_arms_and_learns_nothing(make):
    arms = points()
    plays, rewards = history(arms, 60)
    for sets in ("fixed", "rows"):
        bandit = BANDITS[make](arms if sets == "fixed" else None, SMOOTH, reg=0.37, exploration=0.4)
        learn(bandit, plays if sets == "fixed" else arms[plays], rewards)
        before = bandit.model.posterior(arms)
        rows = () if sets == "fixed" else (arms,)
        scores = bandit.score(*rows)
        decision = bandit.decide(*rows, k=4)
        assert list(decision.arms) == list(np.argsort(-scores)[:4])
        assert decision.arm == scores.argmax()
        assert decision.propensity == 1.0
        assert list(bandit.decide(*rows, k=ARMS).arms) == list(np.argsort(-scores))
        assert are_equal(bandit.model.posterior(arms), before)
        assert bandit.n_learned == 60
        assert_close(decision.scores, decision.means + 0.4 * decision.widths)


def test_greedy_and_epsilon_greedy_follow_the_means():
    arms = points()
    plays, rewards = history(arms, 60)
    for make in BANDITS.values():
        greedy, epsilon = (make(arms, SMOOTH, reg=0.37, exploration=e) for e in (op.Greedy(), op.EpsilonGreedy(0.5)))
        for bandit in (greedy, epsilon):
            learn(bandit, plays, rewards)
        means = greedy.model.posterior().means
        assert greedy.decide().arm == means.argmax()
        chosen = [epsilon.decide() for _ in range(400)]
        best = np.array([d.arm for d in chosen]) == means.argmax()
        share = 0.5 + 0.5 / ARMS
        assert abs(best.mean() - share) < 5 * np.sqrt(share * (1 - share) / 400)
        for d, hit in zip(chosen, best, strict=True):
            assert d.propensity == pytest.approx(share if hit else 0.5 / ARMS)


def test_a_negative_exploration_is_pessimism():
    arms = points()
    bandit = op.GPUCB(arms, SMOOTH, reg=0.37, exploration=-0.5)
    learn(bandit, *history(arms, 60))
    posterior = bandit.model.posterior()
    assert_close(bandit.score(), posterior.means - 0.5 * np.sqrt(posterior.variances))


@pytest.mark.parametrize("make", BANDITS)
def test_a_maximizer_chooses_any_point(make):
    grid = np.linspace(0, 1, 101)[:, None]
    bandit = BANDITS[make](None, op.RBF(0.2), reg=0.37, exploration=0.5)
    learn(bandit, points(40, 1, 1), value(points(40, 1, 1)))
    seen = []

    def maximizer(score):
        seen.append(score(grid))
        return grid[seen[-1].argmax()]

    decision = bandit.decide(maximizer=maximizer)
    assert_close(seen[0], bandit.score(grid))
    assert np.array_equal(decision.arm, grid[bandit.score(grid).argmax()])
    learn(bandit, decision.arm, 1.0)
    assert bandit.n_learned == 41


@pytest.mark.parametrize("exploration", [None, op.Thompson(0.2), op.EpsilonGreedy(0.2)], ids=str)
@pytest.mark.parametrize("options", [{}, {"normalize": True}, {"fit_after": 15}], ids=str)
@pytest.mark.parametrize("make", BANDITS)
def test_play_is_decide_and_learn(make, options, exploration):
    arms = points()
    one, other = (BANDITS[make](arms, SMOOTH, reg=0.37, exploration=exploration, seed=6, **options) for _ in range(2))
    noise = np.random.default_rng(0).standard_normal(60)
    told_by = iter(noise)
    chosen = play(one, lambda arm: float(value(arms)[arm] + 0.1 * next(told_by)), 60)
    for t in range(60):
        arm = other.decide().arm
        assert arm == chosen[t]
        learn(other, arm, float(value(arms)[arm] + 0.1 * noise[t]))
    assert one.n_learned == other.n_learned == 60
    assert are_equal(one.model.posterior(), other.model.posterior())


@pytest.mark.parametrize("make", BANDITS)
def test_a_reward_that_is_no_number_ends_play_with_what_was_learned_before(make):
    bandit, paid = BANDITS[make](points(), SMOOTH, reg=0.37), iter([1.0, 2.0, np.nan, 3.0])
    with pytest.raises(ValueError, match="reward"):
        play(bandit, lambda arm: next(paid), 4)
    assert bandit.n_learned == 2
    assert len(play(bandit, lambda arm: 1.0, 0)) == 0
    play(bandit, lambda arm: 1.0, 3)
    assert bandit.n_learned == 5


@pytest.mark.parametrize("make", BANDITS)
def test_without_rows_the_posterior_of_changing_sets_is_that_of_the_points_played(make):
    bandit, rows = BANDITS[make](None, SMOOTH, reg=0.37, normalize=True), points()
    plays, rewards = history(rows, 80)
    learn(bandit, rows[plays], rewards)
    _, first = np.unique(plays, return_index=True)
    places = plays[np.sort(first)]
    for got, want in zip(bandit.model.posterior(), bandit.model.posterior(rows[places]), strict=True):
        assert_close(got, want)


def test_zeros_of_either_sign_are_one_point():
    bandit = op.GPUCB(kernel=SMOOTH)
    learn(bandit, [[0.0, 1.0], [-0.0, 1.0]], [1.0, 1.0])
    assert bandit.model.dictionary_size == 1


@pytest.mark.parametrize("make", BANDITS)
def test_the_same_seed_gives_the_same_run_and_others_break_ties_otherwise(make):
    arms = points()
    runs = [run(BANDITS[make](arms, SMOOTH, reg=0.37, seed=seed), 40) for seed in (1, 1, 2)]
    assert are_equal_runs(runs[0], runs[1])
    assert not are_equal_runs(runs[0], runs[2])
    first = {BANDITS[make](points(5), SMOOTH, seed=seed).decide().arm for seed in range(60)}
    assert first == set(range(5))  # all arms are alike before the first play
    first = {BANDITS[make](None, SMOOTH, seed=seed).decide(points(5)).arm for seed in range(60)}
    assert first == set(range(5))


@pytest.mark.parametrize("make", ["GPUCB", "BKB"])
def test_bandits_find_the_best_arm(make):
    arms = np.linspace(0, 1, 200)[:, None]
    rng = np.random.default_rng(0)
    bandit = BANDITS[make](arms, op.RBF(0.2), reg=0.01)
    chosen = play(bandit, lambda arm: float(value(arms)[arm] + 0.1 * rng.standard_normal()), 200)
    gaps = value(arms).max() - value(arms)[chosen]
    assert gaps[-50:].mean() < 0.05
    assert gaps[-50:].mean() < 0.1 * gaps[:5].mean()
