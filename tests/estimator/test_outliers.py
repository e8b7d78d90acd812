"""Hvt-UCB told nothing costs nothing where there are no outliers, and knows no unit of rewards."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dense
import onepass as op
from heavy_games import DIM, PRACTICE, assert_close, game, stream
from onepass.lab.bandits.environments import Classification, Labels
from onepass.lab.datasets import load

REGS = (0.02, 0.2, 1.0, 20.0)
MORE = 1.15  # times the mistakes of ridge regression


def mistakes(bandit, contexts, rewards):
    """The share of rounds in which the arm played pays nothing."""
    return 1.0 - rewards[np.arange(len(rewards)), bandit.play(contexts, rewards)].mean()


@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("parameters", ["shared", "disjoint"])
def test_on_0_1_rewards_it_errs_no_more_than_ridge_regression_at_any_reg(parameters, reg):
    problem, ridge = (Classification, op.OFUL) if parameters == "shared" else (Labels, op.LinUCB)
    own = {"model": "disjoint"} if parameters == "disjoint" else {}
    found = []
    for seed in range(3):
        contexts, _, rewards = problem(load("digits"), seed).chunk(0, 1500)
        found.append([mistakes(make(dim=64, reg=reg, **own), contexts, rewards) for make in (op.HvtUCB, ridge)])
    ours, best = np.mean(found, axis=0)
    assert ours <= MORE * best + 0.01  # a percent: three seeds of few mistakes


@pytest.mark.parametrize("c", [0.01, 100.0, 2.0**40])
@pytest.mark.parametrize("parameters", ["shared", "disjoint"])
def test_rewards_in_other_units_are_the_same_game(parameters, c):
    contexts, rewards, _ = game(300, seed=6)
    plain, scaled = (op.HvtUCB(dim=DIM, reg=0.3, model=parameters, seed=1) for _ in range(2))
    arms = plain.play(contexts, rewards)
    assert scaled.play(contexts, c * rewards).tolist() == arms.tolist()
    assert len(set(arms.tolist())) > 2


@given(st.data())
@settings(max_examples=40, deadline=None, derandomize=True)
def test_rewards_of_two_values_are_learned_as_ridge_regression_learns_them(data):
    """Whatever their share, at any reg: but for one before a rare value has its votes, none is an outlier."""
    reg, share = data.draw(st.sampled_from(REGS)), data.draw(st.sampled_from([0.002, 0.02, 0.1, 0.5, 0.9, 0.99]))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    rows = stream(800, data.draw(st.integers(0, 1000)))[0]
    rewards = data.draw(st.sampled_from([1.0, -3.0, 1e-6, 1e6])) * (rng.random(800) < share)
    bandit, ridge = op.HvtUCB(dim=DIM, reg=reg), op.OFUL(dim=DIM, reg=reg)
    for one in (bandit, ridge):
        one.learn(rows, rewards)
    if rewards.any():
        assert_close(bandit.model.parameter, ridge.model.parameter, 5e-3)


def test_the_noise_of_all_arms_is_known_to_each():
    rng = np.random.default_rng(3)
    rows, rewards = rng.standard_normal((200, DIM)), rng.standard_t(1.5, 200)
    bandit = op.HvtUCB(dim=DIM, model="disjoint")
    bandit.learn(rows, rewards, ["a", "b"] * 100)
    bandit.add_arm("new")
    each = [dense.HvtUCB(DIM, 1.0, 1.0, **PRACTICE) for _ in range(2)]
    for i, (x, r) in enumerate(zip(rows, rewards, strict=True)):
        each[i % 2].learn(x, r)
    nu = np.sqrt(np.mean([one.noise.square for one in each]))
    x = rng.standard_normal(DIM)
    assert bandit.score(x, arms=["new"])[0] == pytest.approx(1.5 * nu * np.linalg.norm(x), rel=1e-9)


def test_sales_are_measured_by_sales():
    """One visit in fifty buys; an order of 1,000 times the usual basket moves theta by a few baskets at most."""
    rng = np.random.default_rng(4)
    rows = stream(4000, seed=5)[0]
    rewards = np.where(rng.random(4000) < 0.02, rng.lognormal(0.0, 0.3, 4000), 0.0)
    plain, struck = op.HvtUCB(dim=DIM), op.HvtUCB(dim=DIM)
    plain.learn(rows, rewards)
    rewards[3000] = 1000.0
    struck.learn(rows, rewards)
    ridge = op.OFUL(dim=DIM)
    ridge.learn(rows, rewards)
    moved = np.abs(struck.model.parameter - plain.model.parameter).max()
    assert moved < 0.01 * np.abs(ridge.model.parameter - plain.model.parameter).max()


def test_a_thousand_arms_of_0_1_rewards_keep_a_row_more_each():
    """Beside LinUCB's: 9 numbers and the row of the first residual."""
    rows, rng = stream(3000, seed=8)[0], np.random.default_rng(9)
    names, rewards = (np.arange(3000) % 1000).tolist(), (rng.random(3000) < 0.1).astype(float)
    sizes = []
    for make in (op.HvtUCB, op.LinUCB):
        bandit = make(dim=DIM, model="disjoint")
        bandit.learn(rows, rewards, names)
        sizes.append(bandit.memory_usage())
    assert sizes[0] - sizes[1] <= 1150 * 8 * (9 + DIM)  # arrays are an eighth longer than they need be
