"""Logs that were cut before all conversions had come."""

import numpy as np
import pytest

from onepass.evaluation import DelayLaw, Log, evaluate, fit_delay_law, ipcw_log

DAY = 86_400.0
WEEK = 7 * DAY
SIGMA = np.log(6.0) / 1.2815515655  # median one day, 90 % within six days


def make_log(seed, n=40_000):
    """Log of three arms and one feature, its delays, and whether a decision converts within the week."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, n)
    chances = np.stack([0.15 + 0.1 * x, 0.1 - 0.05 * x, np.full(n, 0.2)], axis=1)
    p = np.array([0.5, 0.3, 0.2])
    arms = rng.choice(3, n, p=p)
    late = DAY * np.exp(SIGMA * rng.standard_normal(n))
    converts = (rng.random(n) < chances[np.arange(n), arms]) & (late <= WEEK)
    given = {"arms": arms, "propensities": p[arms], "n_arms": 3, "contexts": np.stack([np.ones(n), x], axis=1)}
    return given | {"distributions": np.tile(p, (n, 1))}, late, converts, rng


def policy(contexts):
    good = contexts[:, 1] > 0.0
    return np.stack([good, np.zeros(len(good)), ~good], axis=1).astype(float)


@pytest.mark.parametrize("cut", ["after one day", "two days at work"])
def test_weights_remove_the_bias_of_a_cut_log(cut):
    _, late, converts, rng = make_log(0, 400_000)
    old = rng.uniform(0.0, 20 * DAY, len(late))  # an earlier log, cut as well
    seen = converts & (late <= old)
    law = fit_delay_law(late[seen], old[seen], WEEK)
    estimates = {"complete": [], "cut": [], "ips": [], "dr": []}
    for seed in range(1, 4):
        given, late, converts, rng = make_log(seed)
        ages = np.full(len(late), DAY) if cut == "after one day" else rng.uniform(0.0, 2 * DAY, len(late))
        known = converts & (late <= ages)
        complete = evaluate(Log(rewards=converts.astype(float), **given), policy, estimators=["dr"])
        naive = Log(rewards=known.astype(float), **given)
        ours = evaluate(ipcw_log(naive, ages, law), policy, estimators=["ips", "dr"], reward_range=(0.0, 20.0))
        estimates["complete"].append(complete.value)
        estimates["cut"].append(evaluate(naive, policy, estimators=["dr"]).value)
        estimates["ips"].append(ours.estimates["ips"].value)
        estimates["dr"].append(ours.estimates["dr"].value)
        low, high = ours.limits
        assert low <= complete.value <= high
    truth = np.mean(estimates["complete"])
    assert 0.3 < 1.0 - np.mean(estimates["cut"]) / truth < 0.6
    assert np.mean(estimates["dr"]) == pytest.approx(truth, rel=0.02)
    assert np.mean(estimates["ips"]) == pytest.approx(truth, rel=0.03)


def test_weights_are_unbiased_by_enumeration():
    """All delays, for any law and reward."""
    law, n = DelayLaw(WEEK), 4000
    for age in (law.ages[3], law.ages[7] * 1.3, WEEK):
        late = np.exp(np.interp((np.arange(n) + 0.5) / n, law.shares, np.log(law.ages)))
        rewards = np.where(late <= age, 3.0, -1.0)
        log = Log(arms=np.zeros(n, int), rewards=rewards, propensities=np.ones(n))
        assert ipcw_log(log, np.full(n, age), law, default=-1.0).rewards.mean() == pytest.approx(3.0, rel=0.01)


def test_a_complete_log_stays_as_it_is_and_young_decisions_are_left_out():
    log = Log(arms=[0, 1, 1], rewards=[1.0, 0.0, 1.0], propensities=[0.5, 0.5, 0.5])
    law = DelayLaw(100.0)
    assert ipcw_log(log, [100.0, 200.0, 1e9], law).rewards.tolist() == [1.0, 0.0, 1.0]
    part = ipcw_log(log, [100.0, 0.001, 50.0], law)
    assert part.arms.tolist() == [0, 1]
    assert part.rewards == pytest.approx([1.0, 12.0 / 11.0])


def test_bad_input_has_an_answer():
    log = Log(arms=[0, 1], rewards=[1.0, 0.0], propensities=[0.5, 0.5])
    law = DelayLaw(100.0)
    for ages in ([1.0], [-1.0, 2.0], [1.0, float("nan")]):
        with pytest.raises(ValueError, match="ages"):
            ipcw_log(log, ages, law)
    for more in ({"least": 0.0}, {"least": 1.5}, {"default": float("inf")}):
        with pytest.raises(ValueError, match=next(iter(more))):
            ipcw_log(log, [1.0, 2.0], law, **more)
    with pytest.raises(ValueError, match="old enough"):
        ipcw_log(log, [0.0, 0.001], law)
    with pytest.raises(ValueError, match="law must be a DelayLaw"):
        ipcw_log(log, [1.0, 2.0], None)
