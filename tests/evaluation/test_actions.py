"""Evaluation of shifted policies over an interval: unbiased weights, limits at any time, and what is refused."""

import json

import numpy as np
import pytest

import onepass as op
from counts import repetitions
from onepass.evaluation import evaluate_actions
from onepass.evaluation.actions import BANDWIDTH, EPSILON
from onepass.model.interval.interval import CELLS

ACTIONS = op.Interval(4.0, 40.0, log=True)
LOGS, LOOKS = repetitions(4, 100), (20, 40, 80, 160)
FINE = (np.arange(CELLS * 200) + 0.5) / (CELLS * 200)


def pay(position):
    """Return the expected reward at a position on the scale."""
    return 0.2 + 0.6 * np.exp(-8.0 * (position - 0.6) ** 2)


def truth(target, bandwidth=BANDWIDTH):
    """Return the value of an action that is uniform around a position."""
    t = FINE[(target - bandwidth <= FINE) & (target + bandwidth >= FINE)]
    return float(pay(t).mean())


def play(seed, rounds, share=0.5):
    """Return decisions and rewards of a bandit that learns."""
    bandit = op.ContextualBandit(exploration=op.Thompson(0.5, draws=16, uniform_share=share), seed=seed)
    rng, decisions, rewards = np.random.default_rng([seed, 1]), [], []
    for _ in range(rounds):
        decision = bandit.decide(None, ACTIONS)
        reward = float(rng.random() < pay(ACTIONS.position(decision.arm)))
        bandit.learn(decision, reward)
        decisions.append(decision)
        rewards.append(reward)
    return decisions, rewards


def test_weights_have_mean_1_and_estimates_the_true_mean_by_enumeration_of_cells():
    bandit = op.ContextualBandit(seed=3)
    for _ in range(30):
        decision = bandit.decide(None, ACTIONS)
        bandit.learn(decision, 0.0)
    decision = bandit.decide(None, ACTIONS)
    for target in (1.0 / CELLS, 24.0 / CELLS, 1.0):
        action, weights, products, robust = ACTIONS.action(target), 0.0, 0.0, 0.0
        for position in FINE[50::100]:
            cell = int(position * CELLS)
            p = float(decision.probabilities[cell])
            known = {**decision.context["arms"][0], "action": ACTIONS.action(position)}
            kept = {"context": {}, "arms": [known]}
            one = decision._replace(index=cell, context=kept, propensity=p)
            sample = evaluate_actions([one], [1.0], [action]).sample
            chance = p * CELLS * 100.0 / len(FINE)
            weights += chance * sample.weights[0]
            products += chance * sample.weights[0] * pay(position)
            robust += chance * (sample.weights[0] * (pay(position) - sample.predicted[0]) + sample.values[0])
        assert weights == pytest.approx(1.0, abs=0.02)
        assert products / weights == pytest.approx(truth(target), abs=0.01)
        assert robust == pytest.approx(truth(target), abs=0.02)


def test_limits_of_a_shifted_policy_hold_at_every_look():
    failed = 0
    for seed in range(LOGS):
        decisions, rewards = play(seed, max(LOOKS))
        target = 0.35 + 0.03 * (seed % 10)
        asked = [ACTIONS.action(target)] * max(LOOKS)
        value = truth(target, 0.1)
        found = [
            evaluate_actions(decisions[:n], rewards[:n], asked[:n], bandwidth=0.1).limits.contains(value) for n in LOOKS
        ]
        failed += not all(found)
    assert failed <= max(LOGS // 20, 0)


def test_a_function_of_the_context_and_records_from_json_give_the_same():
    bandit = op.ContextualBandit(seed=1)
    decisions = [bandit.decide({"rich": float(i % 2)}, ACTIONS) for i in range(20)]
    rewards = [0.5] * 20
    again = [op.Decision.from_dict(json.loads(json.dumps(one.to_dict()))) for one in decisions]
    by_function = evaluate_actions(again, rewards, lambda terms: 30.0 if terms["rich"] else 10.0)
    by_array = evaluate_actions(decisions, rewards, [30.0 if i % 2 else 10.0 for i in range(20)])
    assert by_function.estimates == by_array.estimates


def test_calls_that_do_not_fit_are_refused():
    decisions, rewards = play(0, 5)
    named = op.ContextualBandit()
    for arguments, said in (
        (([], [], []), "at least one decision"),
        ((decisions, rewards[:4], [9.0] * 5), "one entry per decision"),
        ((decisions, rewards, [9.0] * 4), "one action per decision"),
        ((decisions, rewards, [50.0] * 5), "action must be from 4 to 40"),
        ((decisions, [2.0] * 5, [9.0] * 5), "range"),
        ((decisions, [np.nan] * 5, [9.0] * 5), "rewards"),
        (([named.decide({"x": 1.0}, ["a", "b"])], [0.0], [9.0]), "over an interval of actions"),
    ):
        with pytest.raises(ValueError, match=said):
            evaluate_actions(*arguments)
    for bandwidth in (0.0, 1e-17, -1.0, 1.5, np.nan):
        with pytest.raises(ValueError, match="bandwidth"):
            evaluate_actions(decisions, rewards, [9.0] * 5, bandwidth=bandwidth)
    for action in (4.0, 9.0, 40.0):
        assert evaluate_actions(decisions, rewards, [action] * 5, bandwidth=EPSILON).bound >= 1.0
