"""Clicks in a world that changes: what generalized linear estimators forget, against dense matrices."""

import numpy as np
import pytest

import dense_generalized as dense
import onepass as op
from onepass.estimator.contract import forget

DIM, REG, FACTOR = 3, 0.7, 0.6


def clicks(rows):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((rows, DIM))
    return x, (rng.random(rows) < 1.0 / (1.0 + np.exp(-x @ [1.0, -2.0, 0.5]))).astype(float)


def halved(matrix, *others):
    """A <- reg I + f (A - reg I), and A'^-1 f A t for every t."""
    after = REG * np.eye(DIM) + FACTOR * (matrix - REG * np.eye(DIM))
    return after, *(np.linalg.solve(after, FACTOR * matrix @ one) for one in others)


@pytest.mark.parametrize("bound", [np.inf, 1.0])
def test_glb_omd_forgets_its_data_and_keeps_its_ridge(bound):
    rows, rewards = clicks(60)
    given = None if bound == np.inf else bound
    bandit = op.Bandit(op.OnePassGLM(op.Exact(dim=DIM, reg=REG), parameter_bound=given, implicit=False))
    bandit.learn(rows, rewards)
    theta, h = dense.glb_omd("logistic", rows, rewards, REG, 1.0, bound)
    after, theta = halved(h, theta)
    state = forget(bandit.model.state, FACTOR)
    assert np.abs(state.theta - dense.nearest_in_ball(after, theta, bound)).max() < 1e-8
    assert np.abs(state.design.root @ state.design.root.T @ after - np.eye(DIM)).max() < 1e-8


def test_gloc_forgets_what_it_regressed_on_and_what_its_online_learner_knew():
    rows, rewards = clicks(60)
    bandit = op.Bandit(op.estimator.RegressedGLM(op.Exact(dim=DIM, reg=REG), parameter_bound=2.0))
    bandit.learn(rows, rewards)
    a = REG * np.eye(DIM) + rows.T @ rows
    after, theta, online = halved(a, dense.gloc("logistic", rows, rewards, REG, 2.0), bandit.model.state.online)
    state = forget(bandit.model.state, FACTOR)
    assert np.abs(state.online - dense.nearest_in_ball(after, online, 2.0)).max() < 1e-8
    assert np.abs(np.linalg.solve(after, state.moment) - theta).max() < 1e-8


def test_click_rates_that_swap_are_followed_with_a_half_life_only():
    """Two arms, click rates .8 and .2, swapped after 1,500 rounds: of the last 300 choices."""
    rates, rng = np.array([0.8, 0.2]), np.random.default_rng(3)
    right = {}
    for half_life in (None, 100.0):
        bandit = op.GLBOMD(dim=2, reg=0.2, half_life=half_life, seed=0)
        for rates_now in (rates, rates[::-1]):
            rewards = (rng.random((1_500, 2)) < rates_now).astype(float)
            chosen = bandit.play(np.broadcast_to(np.eye(2), (1_500, 2, 2)), rewards)
        right[half_life] = np.mean(chosen[:300] == 1)
    assert right[100.0] > 0.6
    assert right[None] < 0.5 * right[100.0]
