"""Forgetting without end: memory and time a round stay what they are, and so does the error."""

import os
from time import process_time

import numpy as np
import pytest

import onepass as op
from dense_forgetting import Weighted

LONG = "ONEPASS_TEST_LONG" in os.environ
ROUNDS, PART = (5_000_000, 100_000) if LONG else (20_000, 4_000)
DIM, ARMS, HALF_LIFE = 8, 4, 500.0 if LONG else 64.0
MEMBERS = {
    "exact": lambda: op.OFUL(dim=DIM, reg=0.5, half_life=HALF_LIFE),
    "sketch": lambda: op.SOFUL(dim=DIM, size=3, reg=0.5, half_life=HALF_LIFE),
    "per arm": lambda: op.OFUL(dim=DIM, reg=0.5, half_life=HALF_LIFE, model="disjoint"),
}


@pytest.mark.parametrize("name", MEMBERS)
def test_memory_time_and_error_are_flat(name):
    """Time: the last fifth of the parts against the second fifth, medians, in the long run alone."""
    bandit, rng, seconds, memory = MEMBERS[name](), np.random.default_rng(0), [], []
    theta, names = rng.standard_normal(DIM), np.arange(PART) % ARMS
    for start in range(0, ROUNDS, PART):
        rows = rng.standard_normal((PART, 1, DIM)) * 10.0 ** rng.uniform(-1.0, 1.0)
        rewards = rows @ theta + 0.1 * rng.standard_normal((PART, 1))
        began = process_time()
        if name == "per arm":
            bandit.learn(rows[:, 0], rewards[:, 0], names.tolist())
        else:
            bandit.play(rows, rewards)
        seconds.append(process_time() - began)
        memory.append(bandit.memory_usage())
        assert bandit.n_learned == start + PART
    assert len(set(memory)) == 1
    if LONG:
        fifth = len(seconds) // 5
        assert np.median(seconds[-fifth:]) <= 1.3 * np.median(seconds[fifth : 2 * fifth])
    assert np.isfinite(bandit.error_bound())
    if name == "exact":  # rows before the last part weigh 2^(-PART / HALF_LIFE) at most
        truth, per_tick = Weighted(DIM, 0.5), HALF_LIFE / 64
        ages = np.arange(PART)[::-1] + 1
        ticks = np.floor(ROUNDS / per_tick) - np.floor((ROUNDS - ages) / per_tick)
        truth.rows, truth.rewards, truth.weights = rows[:, 0], rewards[:, 0], 2.0 ** (-ticks / 64)
        want = truth.theta
        assert np.abs(bandit.model.parameter - want).max() <= 1e-9 * np.abs(want).max()
