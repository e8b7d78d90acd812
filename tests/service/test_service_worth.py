"""Whether it is worth it: chances against naive sums, limits against worlds whose truth is known."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onepass.evaluation.reward_range import Range
from onepass.service.policy_gain import CUTS, PolicyGain, decision_weights, verdict


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(0, 10**6), st.floats(0.0, 1.0))
def test_what_a_cut_takes_is_what_naive_sums_say(count, seed, sharp):
    rng = np.random.default_rng(seed)
    eligible = sorted(rng.choice(count, rng.integers(1, count + 1), replace=False).tolist())
    p = np.zeros(count)
    p[eligible] = rng.dirichlet(np.full(len(eligible), 10.0 ** (2.0 - 4.0 * sharp)))
    p /= p.sum()
    shown, first = int(rng.choice(count, p=p)), eligible[0]
    found = decision_weights(p.tolist(), shown, first, eligible)
    policies = np.eye(count)[first], np.isin(range(count), eligible) / len(eligible)
    assert found.weights == pytest.approx([policy[shown] / p[shown] for policy in policies])
    naive = [np.maximum(policy - c * p, 0.0).sum() for policy in policies for c in CUTS]
    np.testing.assert_allclose(found.cut or np.zeros(len(naive)), naive, atol=1e-12)


def played(rng, n, floor, rates, rewards):
    """A worth after n rounds of a learner that becomes sure of its best arm, and the truth."""
    worth, chances, earned = PolicyGain(rewards), [], []
    arms, counts, sums = len(rates), np.ones(len(rates)), np.full(len(rates), 0.5)
    value = gain = 0.0
    for t in range(n):
        best, apart = int((sums / counts).argmax()), max(floor, 1.0 / (1.0 + t / 30.0))
        p = np.full(arms, apart / arms)
        p[best] += 1.0 - apart
        if t > n / 2 and floor == 0.0:
            p = np.eye(arms)[best]  # the others have no chance any more
        arm = int(rng.choice(arms, p=p))
        click = float(rng.random() < rates[arm])
        counts[arm] += 1.0
        sums[arm] += click
        value += p @ rates
        gain += p @ rates - rates[0]
        chances.append(decision_weights(p.tolist(), arm, 0, range(arms)))
        earned.append(rewards.least + rewards.span * click)
    worth.add(chances, earned)
    return worth, rewards.least + rewards.span * value / n, rewards.span * gain / n


@pytest.mark.parametrize("floor", [0.2, 0.0])
def test_limits_hold_the_truth_of_a_policy_that_learns_also_of_arms_without_a_chance(floor):
    rng, rates, rewards = np.random.default_rng(0), np.array([0.1, 0.5, 0.2]), Range(-1.0, 3.0)
    missed = 0
    for _ in range(20):
        worth, value, gain = played(rng, 300, floor, rates, rewards)
        first, even = rewards.least + rewards.span * rates[0], rewards.least + rewards.span * rates.mean()
        held = (
            worth.shown_value().lower <= value <= worth.shown_value().upper,
            worth.policy_value(0).lower <= first <= worth.policy_value(0).upper,
            worth.policy_value(1).lower <= even <= worth.policy_value(1).upper,
            worth.gain_over(0).lower <= gain <= worth.gain_over(0).upper,
        )
        missed += held.count(False)
    assert missed <= 0.05 * 80 + 3.0 * np.sqrt(0.05 * 0.95 * 80)


def test_a_policy_that_is_worth_it_is_said_to_be_and_one_that_is_not_too():
    rng = np.random.default_rng(1)
    good, _, gain = played(rng, 6000, 0.3, np.array([0.1, 0.6, 0.3]), Range(0.0, 1.0))
    over = good.gain_over(0)
    assert verdict(good, "a")[0] == "yes"
    assert 0.0 < over.lower < gain < over.upper
    assert over.unseen == 0.0
    bad = PolicyGain(Range(0.0, 1.0))
    shown = rng.choice(2, 3000, p=[0.3, 0.7])
    bad.add([decision_weights([0.3, 0.7], int(one), 0, [0, 1]) for one in shown], [float(one == 0) for one in shown])
    assert verdict(bad, "a")[0] == "no"


def test_an_arm_that_had_no_chance_may_have_been_worth_everything():
    worth = PolicyGain(Range(0.0, 1.0))
    worth.add([decision_weights([0.0, 1.0], 1, 0, [0, 1])] * 2000, [1.0] * 1000 + [0.0] * 1000)
    over = worth.gain_over(0)
    assert (verdict(worth, None)[0], over.unseen) == ("unknowable", 1.0)
    assert over.lower < -0.4  # 0.5 is earned, and 1 may have been


def test_nothing_is_claimed_before_the_first_reward_nor_where_only_the_first_arm_was_shown():
    worth = PolicyGain(Range(0.0, 1.0))
    assert verdict(worth, "a")[0] == "none"
    worth.add([decision_weights([1.0, 0.0], 0, 0, [0, 1])] * 50, [1.0] * 50)
    assert verdict(worth, "a")[0] == "same"


def test_a_worth_comes_back_from_json_and_goes_on_equal_in_every_bit():
    rng, chances = (
        np.random.default_rng(4),
        [decision_weights([0.9, 0.1, 0.0], 1, 0, [0, 1, 2]), decision_weights([0.5, 0.5], 0, 0, [0, 1])],
    )
    one, rewards = PolicyGain(Range(0.0, 2.0)), Range(0.0, 2.0)
    one.add(chances, [2.0, 0.5])
    other = PolicyGain(rewards, json.loads(json.dumps(one.to_dict())))
    for _ in range(3):
        earned = rng.random(2).tolist()
        one.add(chances, earned)
        other.add(chances, earned)
    assert one.to_dict() == other.to_dict()
    assert one.gain_over(1) == other.gain_over(1)
