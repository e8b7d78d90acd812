"""Drift alarms: rarer than stated while means are right, whatever is offered; soon after rewards have changed."""

import numpy as np
import pytest

import onepass as op
from counts import repetitions
from onepass.log import Decision, Join
from onepass.service.drift import EVERY, KEPT, OFF, SETTLED, SHIFT, Drift, likelihood_ratio, smallest_rate
from onepass.service.overview import Overview
from onepass.service.settings import parse_settings

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
    found = Overview(
        parse_settings({"name": "a", "features": {"context": 1}, "reward": {"wait": 5.0, "range": [*scale]}})
    )
    for seq, record in enumerate(records, 1):
        found.add_record(
            type(record)(**{**{name: getattr(record, name) for name in record.__struct_fields__}, "seq": seq})
        )
    return found


def naive_bet(reward, mean, null, other):
    """The ratio as the module's docstring has it, for a mean within (0, 1)."""
    p, q = shifted(mean, null), shifted(mean, other)
    return reward * q / p + (1.0 - reward) * (1.0 - q) / (1.0 - p)


@pytest.mark.parametrize("mean", [1e-6, 0.001, 0.02, 0.1, 0.5, 0.9, 0.999, 1.0 - 1e-6])
def test_a_bet_is_fair_at_the_edge_of_what_means_may_be_off_by_and_loses_within(mean):
    for side in (1.0, -1.0):
        null, other = OFF**side, SHIFT**side
        won, lost = (likelihood_ratio(reward, mean, null, other) for reward in (1.0, 0.0))
        assert (won, lost) == pytest.approx([naive_bet(reward, mean, null, other) for reward in (1.0, 0.0)])
        expected = [p * won + (1.0 - p) * lost for p in (shifted(mean, null), mean, shifted(mean, 1.0 / null))]
        assert expected[0] == pytest.approx(1.0)
        assert expected[2] < expected[1] < 1.0
        assert likelihood_ratio(0.3, mean, null, other) == pytest.approx(0.3 * won + 0.7 * lost)


def test_each_bet_moves_means_to_its_own_safe_side():
    """What either bet expects of one more reward at the edge of the claim is at most 1, whatever came before."""
    rng = np.random.default_rng(6)
    for rate in (0.0, 0.001, 0.01, 0.5, 0.99, 0.999, 1.0):
        drift = Drift()
        for row, reward in enumerate((rng.random(1_000) < rate).astype(float)):
            drift.add(rate, reward, row)
        for mean in (-0.3, 0.0, 1e-5, 0.001, 0.01, 0.3, 0.99, 0.999, 1.0, 1.3):
            claimed = min(max(mean, 0.0), 1.0)
            more, fewer = np.zeros(2), np.zeros(2)
            for reward in (0, 1):
                after = Drift(more=drift.more, fewer=drift.fewer, rows=drift.rows, earned=drift.earned)
                after.add(mean, float(reward), 0, np.inf)
                more[reward], fewer[reward] = after.more / (drift.more + 1.0), after.fewer / (drift.fewer + 1.0)
            # at most the odds claimed, and at least: the expectation is linear in the true rate
            for true in (0.0, claimed, shifted(claimed, OFF) if claimed < 1.0 else 1.0):
                assert more @ [1.0 - true, true] <= 1.0 + 1e-12, (rate, mean, true)
            for true in (1.0, claimed, shifted(claimed, 1.0 / OFF) if claimed < 1.0 else 1.0):
                assert fewer @ [1.0 - true, true] <= 1.0 + 1e-12, (rate, mean, true)


def test_the_rate_that_is_claimed_at_least_is_half_of_what_rewards_have_been():
    assert smallest_rate(0.0, 0) == smallest_rate(500.0, 5_000) == 0.02
    assert smallest_rate(100.0, 100_000) == pytest.approx(0.0005, rel=0.02)
    assert 0.0 < smallest_rate(0.0, 1_000_000) < 1e-6


@pytest.mark.parametrize("rate", [0.001, 0.003, 0.01, 0.015, 0.5, 0.985, 0.99, 0.999])
def test_a_model_that_is_right_about_rare_rewards_raises_no_alarm(rate):
    """200,000 decisions at most 2 alarms on average; clipped at .02 on both sides there were 51 at .01, 203 at .001."""
    n = 200_000 if rate in (0.001, 0.01) else repetitions(50_000, 200_000)
    drift, clicks = Drift(), (np.random.default_rng(7).random(n) < rate).astype(float)
    for row, click in enumerate(clicks.tolist()):
        drift.add(rate, click, row)
    assert drift.alarms <= n / EVERY


@pytest.mark.parametrize(
    ("rate", "times", "late"),
    [(0.001, 0.4, 40_000), (0.001, 2.5, 20_000), (0.01, 0.4, 8_000), (0.01, 2.5, 4_000), (0.99, 2.5, 12_000)],
)
def test_rare_rewards_that_jump_are_found_once_some_have_come(rate, times, late):
    """Odds of a rate times 0.4 or 2.5 after 20,000 decisions that a model was right about."""
    rng, drift = np.random.default_rng(8), Drift()
    true = np.where(np.arange(20_000 + late) < 20_000, rate, shifted(rate, times))
    for row, click in enumerate((rng.random(len(true)) < true).astype(float).tolist()):
        drift.add(rate, click, row)
    assert drift.alarms >= 1
    assert drift.latest[0].time >= 20_000
    assert drift.latest[0].more is (times > 1.0)


def test_means_of_a_linear_model_of_rare_clicks_raise_none():
    """A rate of .3 % on average, of which a linear model says 0 or less of every seventh visitor."""
    n, rng = repetitions(20_000, 200_000), np.random.default_rng(9)
    theta, rows = 0.4 * rng.standard_normal(10), np.hstack([rng.standard_normal((n, 10)), np.ones((n, 1))])
    rates = np.minimum(0.003 * np.exp(rows[:, :10] @ theta - 0.5 * theta @ theta), 1.0)
    clicks, model, drift = (rng.random(n) < rates).astype(float), op.OFUL(dim=11), Drift()
    means = np.empty(n)
    for at in range(0, n, 100):
        part = slice(at, at + 100)
        means[part] = rows[part] @ model.model.parameter
        model.learn(rows[part], clicks[part])
    for row in range(SETTLED, n):
        drift.add(float(means[row]), float(clicks[row]), row)
    assert np.mean(means <= 0.0) > 0.1
    assert drift.alarms == 0


@pytest.mark.parametrize("side", [OFF, 1.0 / OFF])
@pytest.mark.parametrize("rates", [(0.001, 0.001), (0.01, 0.01), (0.05, 0.6), (0.99, 0.99), (0.999, 0.999)])
def test_false_alarms_are_at_least_as_far_apart_as_stated(rates, side):
    """The least favorable: odds always off by as much as is allowed. A stated distance of 1,000; means of runs."""
    n, every, rng, apart = repetitions(8, 2_000), 1_000.0, np.random.default_rng(1), []
    for _ in range(n):
        drift = Drift()
        while not drift.alarms:
            means = rng.uniform(*rates, 500)
            clicks = (rng.random(500) < shifted(means, side)).astype(float)
            for mean, click in zip(means.tolist(), clicks.tolist(), strict=True):
                if drift.add(mean, click, drift.rows, every):
                    break
        apart.append(drift.latest[0].after)
    print(f"{rates}, odds times {side:g}: {np.mean(apart):.0f} +- {np.std(apart) / np.sqrt(n):.0f}")
    assert np.mean(apart) + 4.5 * np.std(apart) / np.sqrt(n) >= every
    assert np.mean(apart) > every  # by a wide margin, in fact


def test_a_still_stream_raises_none_and_one_that_jumps_does():
    n, rng = repetitions(4_000, 100_000), np.random.default_rng(2)
    means = rng.uniform(0.03, 0.3, n)
    clicks = (rng.random(n) < means).astype(float)
    still = overview_of(logged(means, clicks)).to_dict()["drift"]
    assert (still["alarms"], still["latest"], still["every"], still["rewards"]) == (0, [], EVERY, n)
    jump = n - 800
    for factor, more in ((0.4, False), (2.5, True)):
        true = np.where(np.arange(n) < jump, means, factor * means)
        found = overview_of(logged(means, (rng.random(n) < true).astype(float))).to_dict()["drift"]
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
