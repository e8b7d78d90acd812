"""Drift alarms: rarer than stated while means are right, whatever is offered; soon after rewards have changed."""

import numpy as np
import pytest

from counts import many
from onepass.log import Decision, Join
from onepass.service.drift import EVERY, KEPT, LEAST, OFF, SETTLED, SHIFT, Drift, bet
from onepass.service.overview import Overview
from onepass.service.settings import checked

SECOND = 1_000_000


def shifted(mean, times):
    """The mean whose odds are so many times as many."""
    odds = times * mean / (1.0 - mean)
    return odds / (1.0 + odds)


def logged(means, rewards, rounds=SETTLED, scale=(0.0, 1.0)):
    """Decisions of one arm, and their joins."""
    least, span = scale[0], scale[1] - scale[0]
    for i, (mean, reward) in enumerate(zip(means.tolist(), rewards.tolist(), strict=True)):
        yield Decision(loop="a", time=2 * i, id=f"{i}", places=[0], probabilities=[1.0], offered=["x"],
                       means=[least + span * mean], rounds=rounds, extra={"due": 2 * i})  # fmt: skip
        yield Join(loop="a", time=2 * i + 1, id=f"{i}", rewards=[least + span * reward])


def overview_of(records, scale=(0.0, 1.0)):
    found = Overview(checked({"name": "a", "features": {"context": 1}, "reward": {"wait": 5.0, "range": [*scale]}}))
    for seq, record in enumerate(records, 1):
        found.take(type(record)(**{**{name: getattr(record, name) for name in record.__struct_fields__}, "seq": seq}))
    return found


@pytest.mark.parametrize("mean", [LEAST, 0.1, 0.5, 0.9])
def test_a_bet_is_fair_at_the_edge_of_what_means_may_be_off_by_and_loses_within(mean):
    odds = mean / (1.0 - mean)
    for side in (1.0, -1.0):
        null, other = odds * OFF**side, odds * SHIFT**side
        edge, within = shifted(mean, OFF**side), shifted(mean, OFF ** (-side))
        expected = [p * bet(1.0, null, other) + (1.0 - p) * bet(0.0, null, other) for p in (edge, mean, within)]
        assert expected[0] == pytest.approx(1.0)
        assert expected[2] < expected[1] < 1.0
        assert bet(0.3, null, other) == pytest.approx(0.3 * bet(1.0, null, other) + 0.7 * bet(0.0, null, other))


def test_false_alarms_are_at_least_as_far_apart_as_stated():
    """The least favorable: odds always off by as much as is allowed. A stated distance of 200; means of runs."""
    n, every, rng, apart = many(40, 2_000), 200.0, np.random.default_rng(1), []
    for _ in range(n):
        drift, rows = Drift(), 0
        while not drift.alarms:
            mean = float(rng.uniform(0.05, 0.6))
            drift.add(mean, float(rng.random() < shifted(mean, OFF)), rows, every)
            rows += 1
        apart.append(drift.latest[0].after)
    assert np.mean(apart) + 4.5 * np.std(apart) / np.sqrt(n) >= every
    assert np.mean(apart) > every  # by a wide margin, in fact


def test_a_still_stream_raises_none_and_one_that_jumps_does():
    n, rng = many(4_000, 100_000), np.random.default_rng(2)
    means = rng.uniform(0.03, 0.3, n)
    clicks = (rng.random(n) < means).astype(float)
    still = overview_of(logged(means, clicks)).shown()["drift"]
    assert (still["alarms"], still["latest"], still["every"], still["rewards"]) == (0, [], EVERY, n)
    jump = n - 800
    for factor, more in ((0.4, False), (2.5, True)):
        true = np.where(np.arange(n) < jump, means, factor * means)
        found = overview_of(logged(means, (rng.random(n) < true).astype(float))).shown()["drift"]
        (first, said), *_ = found["latest"]
        assert 1 <= found["alarms"] == len(found["latest"])  # so the first one is known
        assert said is more
        assert first * SECOND / 2 > jump


def test_rewards_of_any_range_count_and_models_that_know_little_are_passed_over():
    rng, n = np.random.default_rng(3), 400
    means, scale = rng.uniform(0.3, 0.6, n), (-10.0, 30.0)
    for noise in (0.0, 0.2):
        rewards = means + noise * rng.uniform(-1.0, 1.0, n)
        assert overview_of(logged(means, rewards, scale=scale), scale).sums.drift.alarms == 0
        low = overview_of(logged(means, rewards - 0.25, scale=scale), scale).sums.drift
        assert low.alarms > 0
        assert not low.latest[0].more
    assert overview_of(logged(means, means - 0.25, rounds=SETTLED - 1)).sums.drift == Drift()
    nobody = [Decision(loop="a", time=0, id="0", places=[0]), Join(loop="a", time=1, id="0", rewards=[1.0])]
    assert overview_of(nobody).sums.drift == Drift()


def test_the_last_alarms_are_known_and_all_are_counted():
    drift = Drift()
    for row in range(20 * KEPT):
        drift.add(0.5, 0.0, row, 10.0)
    assert drift.alarms > KEPT == len(drift.latest)
    assert [one.time for one in drift.latest] == sorted({one.time for one in drift.latest})
    assert all(not one.more for one in drift.latest)
