"""A detector of change: false alarms are as rare as it says, and changes are found soon."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import onepass as op
from onepass.exploration.e_detector import EDetector, betted

LONG = "ONEPASS_TEST_LONG" in os.environ


def test_bets_are_fair():
    """The mean over uniform p is 1: the integral over log p, by the midpoint rule."""
    edges = np.linspace(-700.0, 0.0, 2_000_001)
    middle = (edges[1:] + edges[:-1]) / 2
    mean = sum(betted(p) * p for p in np.exp(middle)) * (edges[1] - edges[0])
    assert abs(mean + 1.0 / 700.0 - 1.0) < 1e-3  # the mixture has 1 / 700 below p = e^-700


@pytest.mark.parametrize("kind", ["normal", "heavy", "clicks"])
def test_false_alarms_are_as_rare_as_stated(kind):
    """The mean time to an alarm of exchangeable values is at least `every`: below it by four standard errors, never."""
    games, every = (4_000 if LONG else 400), 100.0
    rng = np.random.default_rng(0)
    drawn = {
        "normal": lambda: abs(rng.standard_normal()),
        "heavy": lambda: abs(rng.standard_cauchy()),
        "clicks": lambda: float(rng.random() < 0.02),
    }[kind]
    times = []
    for seed in range(games):
        detector, t = EDetector(every=every, seed=seed), 1
        while not detector.add(drawn()):
            t += 1
        times.append(t)
    assert np.mean(times) + 4.0 * np.std(times) / np.sqrt(games) >= every


@pytest.mark.parametrize(("times", "late"), [(2.0, 120), (4.0, 40)])
def test_residuals_that_grow_are_found_and_when_they_began(times, late):
    """Values `times` as large from 1,000 on: found within `late` values (mean of 20), the beginning within 40."""
    delays, begun = [], []
    for seed in range(20):
        rng, detector, t = np.random.default_rng(seed), EDetector(every=1e5, seed=seed), 0
        while not detector.add(abs(rng.standard_normal()) * (times if t >= 1000 else 1.0)):
            t += 1
        delays.append(t - 1000)
        begun.append(t + 1 - detector.since - 1000)
    assert min(delays) >= 0
    assert np.mean(delays) <= late
    assert np.mean(np.abs(begun)) <= 40


def game(watched, rounds, change, seed):
    """Regret of rounds with unit contexts, theta turned round at `change`."""
    rng, regret = np.random.default_rng(seed), 0.0
    theta = np.array([1.0, 0.5, 0.0, 0.0])
    for t in range(rounds):
        rows = rng.standard_normal((5, 4))
        means = rows @ (theta if t < change else -theta)
        decision = watched.decide(rows)
        watched.learn(decision, means[decision.arm] + 0.3 * rng.standard_normal())
        regret += means.max() - means[decision.arm]
    return regret


def test_a_bandit_begins_anew_after_a_change_and_only_then():
    watched = op.Restarting(op.OFUL(dim=4), every=1e5)
    plain, still = op.OFUL(dim=4), op.Restarting(op.OFUL(dim=4), every=1e5)
    assert game(watched, 2_000, 1_000, 1) < 0.1 * game(plain, 2_000, 1_000, 1)
    assert len(watched.alarms) == 1
    assert 1_000 < watched.alarms[0] < 1_030
    game(still, 2_000, 2_000, 2)
    assert still.alarms == []


def test_what_is_not_one_decision_is_refused():
    watched = op.Restarting(op.OFUL(dim=2), every=10.0)
    for bad in (np.eye(2), watched.decide(np.eye(2), k=2), watched.decide(np.ones((3, 2, 2)))):
        with pytest.raises(ValueError, match="decision"):
            watched.learn(bad, 1.0)
    for options in ({"every": 1.0}, {"every": np.nan}, {"recent": 0}, {"seed": -1}):
        with pytest.raises(ValueError, match=next(iter(options))):
            op.Restarting(op.OFUL(dim=2), **options)
    with pytest.raises(ValueError, match="bandit"):
        op.Restarting(op.Ridge(op.Exact(dim=2)))


def test_four_threads_share_a_watched_bandit_and_every_reward_counts_once():
    watched, rows = op.Restarting(op.OFUL(dim=3), every=1e6), np.random.default_rng(0).standard_normal((200, 4, 3))

    def play(part):
        for contexts in part:
            watched.learn(watched.decide(contexts), 1.0)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(play, np.array_split(rows, 4)))
    assert watched.rewards == watched.bandit.rounds == 200
