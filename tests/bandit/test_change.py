"""A detector of change: false alarms are as rare as it says, and changes are found soon."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import onepass as op
from counts import repetitions
from onepass.exploration.e_detector import EDetector, e_value


def test_bets_are_fair():
    """The mean over uniform p is 1: the integral over log p, by the midpoint rule."""
    edges = np.linspace(-700.0, 0.0, 2_000_001)
    middle = (edges[1:] + edges[:-1]) / 2
    mean = sum(e_value(p) * p for p in np.exp(middle)) * (edges[1] - edges[0])
    assert abs(mean + 1.0 / 700.0 - 1.0) < 1e-3  # the mixture has 1 / 700 below p = e^-700


@pytest.mark.parametrize("length", [4, 64, 4096])
@pytest.mark.parametrize("kind", ["normal", "heavy", "clicks"])
def test_false_alarms_are_as_rare_as_stated(kind, length):
    """The mean time to an alarm of exchangeable values is at least `every`: below it by four standard errors, never.

    Detectors of few values begin anew, in turn, many times before an alarm.
    """
    games, every = repetitions(60, 2_000), 100.0
    rng = np.random.default_rng(0)
    drawn = {
        "normal": lambda: np.abs(rng.standard_normal(500)),
        "heavy": lambda: np.abs(rng.standard_cauchy(500)),
        "clicks": lambda: (rng.random(500) < 0.02).astype(float),
    }[kind]
    times = []
    for seed in range(games):
        detector, t, alarm = EDetector(every=every, length=length, seed=seed), 0, False
        while not alarm:
            for value in drawn().tolist():
                t, alarm = t + 1, detector.add(value)
                if alarm:
                    break
        times.append(t)
    print(f"{kind}, {length} values: {np.mean(times):.0f} +- {np.std(times) / np.sqrt(games):.0f}")
    assert np.mean(times) + 4.0 * np.std(times) / np.sqrt(games) >= every


def test_no_exchangeable_stream_raises_more_alarms_than_stated():
    """One stream through many beginnings of both detectors: at most one alarm per `every` values, on average."""
    n, every, rng = repetitions(40_000, 1_000_000), 200.0, np.random.default_rng(3)
    for length in (8, 256, 4096):
        detector, alarms = EDetector(every=every, length=length, seed=4), 0
        for value in rng.random(n).tolist():
            if detector.add(value):
                alarms += 1
                detector.begin()
        assert alarms <= n / every


@pytest.mark.parametrize("change", [2_040, 2_060, 4_080, 4_085, 4_090, 4_096, 4_100, 4_110, 6_140, 8_190, 8_200])
def test_changes_are_found_wherever_they_come(change):
    """Values twice as large from `change` on. One detector found none of 40 at 4,090: it begins anew at 4,096."""
    delays = []
    for seed in range(repetitions(5, 40)):
        rng = np.random.default_rng(seed)
        detector, values = EDetector(every=1e5, seed=seed), np.abs(rng.standard_normal(change + 1_000))
        values[change:] *= 2.0
        delays.append(next(t for t, value in enumerate(values.tolist()) if detector.add(value)) - change)
        assert -40 <= delays[-1] + 1 - detector.since <= 40
    assert min(delays) >= 0
    assert np.mean(delays) <= 40
    assert max(delays) <= 120


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
    watched = op.RestartOnChange(op.OFUL(dim=4), every=1e5)
    plain, still = op.OFUL(dim=4), op.RestartOnChange(op.OFUL(dim=4), every=1e5)
    assert game(watched, 2_000, 1_000, 1) < 0.1 * game(plain, 2_000, 1_000, 1)
    assert len(watched.alarms) == 1
    assert 1_000 < watched.alarms[0] < 1_030
    game(still, 2_000, 2_000, 2)
    assert still.alarms == []


def test_a_watched_bandit_finds_a_change_where_its_first_detector_begins_anew():
    """Rewards of a fixed row change sign after 4,090 decisions: found within 100, and learned again from there."""
    watched, rng = op.RestartOnChange(op.OFUL(dim=2), every=1e5), np.random.default_rng(5)
    for t in range(4_190):
        decision = watched.decide(rng.standard_normal((3, 2)))
        theta = [1.0, 0.0] if t < 4_090 else [-1.0, 0.0]
        watched.learn(decision, float(decision.context @ theta) + rng.standard_normal())
    assert len(watched.alarms) == 1
    assert 4_090 < watched.alarms[0] <= 4_190
    assert watched.bandit.model.parameter[0] < -0.5


def test_what_is_not_one_decision_is_refused():
    watched = op.RestartOnChange(op.OFUL(dim=2), every=10.0)
    for bad in (np.eye(2), watched.decide(np.eye(2), k=2), watched.decide(np.ones((3, 2, 2)))):
        with pytest.raises(ValueError, match="decision"):
            watched.learn(bad, 1.0)
    for options in ({"every": 1.0}, {"every": np.nan}, {"recent": 0}, {"seed": -1}):
        with pytest.raises(ValueError, match=next(iter(options))):
            op.RestartOnChange(op.OFUL(dim=2), **options)
    with pytest.raises(ValueError, match="bandit"):
        op.RestartOnChange(op.Ridge(op.Exact(dim=2)))


def test_four_threads_share_a_watched_bandit_and_every_reward_counts_once():
    watched, rows = op.RestartOnChange(op.OFUL(dim=3), every=1e6), np.random.default_rng(0).standard_normal((200, 4, 3))

    def play(part):
        for contexts in part:
            watched.learn(watched.decide(contexts), 1.0)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(play, np.array_split(rows, 4)))
    assert watched.rewards == watched.bandit.n_learned == 200


def play_until_an_alarm(watched, rows):
    played = []
    while not watched.alarms:
        played.append((watched.decide(rows), 0.1 if watched.rewards < 100 else 9.0))
        watched.learn(*played[-1])
    return played


def test_random_numbers_go_on_after_an_alarm():
    watched = op.RestartOnChange(op.Bandit(op.Ridge(op.Exact(dim=2)), op.EpsilonGreedy(1.0)), every=100.0, recent=5)
    first, rows = watched.bandit.copy(), np.ones((50, 2))
    begun = [first.decide(rows).index for _ in range(20)]
    play_until_an_alarm(watched, rows)
    assert [watched.decide(rows).index for _ in range(20)] != begun


def test_what_learning_draws_goes_on_after_an_alarm():
    watched, again = op.RestartOnChange(op.BKB(np.eye(4), op.RBF(1.0)), every=100.0), op.BKB(np.eye(4), op.RBF(1.0))
    played = play_until_an_alarm(watched, None)
    for decision, reward in played[-watched.bandit.n_learned :]:
        again.learn(decision, reward)
    assert again.n_learned == watched.bandit.n_learned < len(played)
    np.testing.assert_allclose(again.model.posterior().means, watched.bandit.model.posterior().means, atol=0.1)
    assert again.model.contents().extra["coins"] != watched.bandit.model.contents().extra["coins"]


def test_a_reward_that_was_learned_before_an_alarm_is_refused_after_it():
    watched = op.RestartOnChange(op.OFUL(dim=2), every=100.0, recent=5)
    first = watched.decide(np.eye(2))
    watched.learn(first, 0.0)
    while not watched.alarms:
        watched.learn(watched.decide(np.eye(2)), 0.1 if watched.rewards < 100 else 9.0)
    with pytest.raises(ValueError, match="has had its reward"):
        watched.learn(first, 0.0)
