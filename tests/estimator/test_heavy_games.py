"""Bandits for heavy tails: games equal naive ones, arms are repeated, radii are the papers'."""

import numpy as np
import pytest

import dense
import onepass as op
from heavy_games import ARMS, DIM, PRACTICE, assert_close, game, state_after, stream
from onepass.estimator import contract
from onepass.testing import REGS

# ---- whole games against the naive versions ----


def choices(naive, exploration, contexts, rewards, repeats=1):
    """The arms that a naive estimator plays by means + exploration * widths, each `repeats` times in a row."""
    arms, arm = [], 0
    for t, (rows, pays) in enumerate(zip(contexts, rewards, strict=True)):
        if t % repeats == 0:
            widths = np.array([dense.width_in(naive.matrix, x) for x in rows])
            unit = naive.unit() if hasattr(naive, "unit") else 1.0
            arm = int(np.argmax(rows @ naive.theta + exploration * unit * widths))
        naive.learn(rows[arm], pays[arm])
        arms.append(arm)
    return arms


EXPLORE = 3.0  # so that several arms are played
GAMES = {
    "HvtUCB": lambda reg: (
        op.HvtUCB(dim=DIM, reg=reg, epsilon=0.5, exploration=EXPLORE),
        dense.HvtUCB(DIM, reg, 0.5, **PRACTICE),
        1,
    ),
    "CRTM": lambda reg: (
        op.CRTM(dim=DIM, reg=reg, epsilon=0.5, moment=2.0, exploration=EXPLORE, parameter_bound=0.7),
        dense.CRTM(DIM, reg, 0.5, 2.0, bound=0.7),
        1,
    ),
    "CRTM, horizon": lambda reg: (
        op.CRTM(dim=DIM, reg=reg, epsilon=0.8, moment=0.5, exploration=EXPLORE, horizon=700),
        dense.CRTM(DIM, reg, 0.8, 0.5, horizon=700),
        1,
    ),
    "TOFU": lambda reg: (
        op.TOFU(dim=DIM, reg=reg, epsilon=0.5, moment=0.2, exploration=EXPLORE),
        dense.TOFU(DIM, reg, 0.5, 0.2),
        1,
    ),
    "TOFU, horizon": lambda reg: (
        op.TOFU(dim=DIM, reg=reg, epsilon=0.8, moment=0.2, exploration=EXPLORE, horizon=700),
        dense.TOFU(DIM, reg, 0.8, 0.2, horizon=700),
        1,
    ),
    "CRMM": lambda reg: (
        op.CRMM(dim=DIM, reg=reg, repeats=6, exploration=EXPLORE, parameter_bound=0.7),
        dense.CRMM(DIM, reg, 6, bound=0.7),
        6,
    ),
    "MENU": lambda reg: (  # three estimates: medians are never equal
        op.MENU(dim=DIM, reg=reg, repeats=3, exploration=EXPLORE),
        dense.MENU(DIM, reg, 3),
        3,
    ),
}


@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("name", GAMES)
def test_games_equal_the_naive_ones(name, reg):
    contexts, rewards, _ = game()
    bandit, naive, repeats = GAMES[name](reg)
    arms = bandit.play(contexts, rewards)
    assert arms.tolist() == choices(naive, EXPLORE, contexts, rewards, repeats)
    assert len(set(arms.tolist())) > 2
    assert_close(bandit.model.parameter, naive.theta)
    if hasattr(naive, "cut"):
        assert naive.cut > 5


@pytest.mark.parametrize("repeats", [1, 2, 3, 5, 9, 10])
def test_the_estimate_of_least_median_distance_to_the_others_is_chosen(repeats):
    rows, rewards = np.repeat(stream(80, seed=17)[0], repeats, axis=0), stream(80 * repeats, seed=18)[1]
    state = op.estimator.MedianOfMeans(op.Exact(dim=DIM, reg=0.37), repeats=repeats).begin()
    naive = dense.MENU(DIM, 0.37, repeats)
    for i, (row, reward) in enumerate(zip(rows, rewards, strict=True)):
        state = contract.update(state, row, reward)
        naive.learn(row, reward)
        if (i + 1) % repeats == 0:  # of several with the same median, as on a line, any may be chosen
            k = int(np.argmin(np.abs(naive.found - state.theta).sum(axis=1)))
            assert_close(state.theta, naive.found[k])
            assert naive.spread[k] <= naive.spread.min() * (1 + 1e-6)


def test_an_arm_is_repeated_with_certainty_until_its_epoch_is_over():
    contexts, rewards, _ = game(70, seed=1)
    for kind in (op.estimator.OnePassMedian, op.estimator.MedianOfMeans):
        bandit, played = op.Bandit(kind(op.Exact(dim=DIM), repeats=7), op.EpsilonGreedy(0.6)), []
        for t, rows in enumerate(contexts):
            decision = bandit.decide(rows)
            if t % 7:
                assert (decision.arm, decision.propensity) == (played[-1], 1.0)
            else:
                assert decision.propensity <= 0.4 + 0.6 / ARMS + 1e-12
            played.append(decision.arm)
            bandit.learn(rows[decision.arm], rewards[t, decision.arm])
        assert len(set(played)) > 2


@pytest.mark.parametrize("horizon", [10, 18_000])
def test_repetitions_follow_the_papers_formulas(horizon):
    crmm, menu = op.CRMM(dim=2, horizon=horizon), op.MENU(dim=2, horizon=horizon)
    assert crmm.model.state.epoch.rewards.size == int(np.ceil(16 * np.log(4 * horizon * 8 * horizon)))
    assert menu.model.state.epoch.rewards.size == int(np.ceil(24 * np.log(np.e * horizon * 8 * horizon)))


# ---- radii ----


def radius_of(estimator, rounds=10):
    rows, rewards = stream(rounds)
    state = state_after(estimator.begin(), rows[:, :2].copy(), rewards)
    return contract.radius(state, rounds, 1.0, 1.5, 1.2, 0.01)


def test_radii_are_the_papers():
    design, theory = op.Exact(dim=2, reg=2.0), op.Theory(parameter_bound=1.5, row_bound=1.2, delta=0.01)
    options = {"epsilon": 0.5, "horizon": 100}  # p = 1/6, log(2 T^2 / delta) = log 2e6, 4 and 3 deltas are spent
    kappa = 2 * np.log(1 + 1.2**2 * 100 * 100 / (2.0 * 4 * 2))
    tau = np.sqrt(2 * kappa) * np.log(300) ** (1 / 6) / np.log(8e6) ** (2 / 3)
    want = 107 * np.log(8e6) * tau * 10 ** (1 / 6) + np.sqrt(2.0 * (2 + 4 * 1.5**2))
    assert radius_of(op.OnePassHuber(design, theory=theory, **options)) == pytest.approx(want, rel=1e-12)
    kappa = 2 * np.log(1 + 1.2**2 * 100 * 100 / (2.0 * 2))
    want = 24 * 10 ** (1 / 6) * np.sqrt(2 * kappa) * np.log(300) ** (1 / 6) * np.log(6e6) ** (1 / 3)
    want += 3 * np.sqrt(2.0) * 1.5
    assert radius_of(op.estimator.AdaptiveHuber(design, theory=theory, **options)) == pytest.approx(want, rel=1e-12)
    want = 4 * np.sqrt(2) * 5.0 ** (2 / 3) * np.log(4e4) ** (1 / 3) * 10 ** (1 / 6) + np.sqrt(2.0) * 1.5
    assert radius_of(op.estimator.TruncatedRidge(design, moment=5.0, **options)) == pytest.approx(want, rel=1e-12)
    want = 3 * (9 * 2 * 5.0) ** (2 / 3) * 5 ** (1 / 6) + 3 * np.sqrt(2.0) * 1.5
    menu = op.estimator.MedianOfMeans(design, moment=5.0, repeats=2, **options)  # 5 epochs in 10 rounds
    rows = np.repeat(stream(5)[0][:, :2], 2, axis=0)
    state = state_after(menu.begin(), np.ascontiguousarray(rows), stream(10)[1])
    assert contract.radius(state, 10, 1.0, 1.5, 1.0, 0.01) == pytest.approx(want, rel=1e-12)


def test_scores_use_the_theoretical_radius_of_the_round_before():
    rows, rewards = stream(20)
    theory = op.Theory(parameter_bound=0.5, row_bound=1.5, delta=0.01, scale=0.3)
    bandit = op.HvtUCB(dim=DIM, epsilon=0.5, nu=0.4, horizon=100, reg=0.37, exploration=theory)
    naive = dense.HvtUCB(DIM, 0.37, 0.5, nu=0.4, horizon=100, bound=0.5, row_bound=1.5, delta=0.01 / 4)
    for x, r in zip(rows, rewards, strict=True):
        means, widths = rows @ naive.theta, np.array([dense.width_in(naive.matrix, y) for y in rows])
        assert_close(bandit.decide(rows).scores, means + 0.3 * naive.beta() * widths)
        bandit.learn(x, r)
        naive.learn(x, r)


@pytest.mark.parametrize("make", [op.CRTM, op.CRMM])
def test_theory_is_refused_where_no_radius_is_known(make):
    with pytest.raises(ValueError, match=r"^exploration .*no theoretical radius"):
        make(dim=2, horizon=100, exploration=op.Theory())
