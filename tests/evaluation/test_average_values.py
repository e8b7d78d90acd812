"""Limits of average values: of policies that learn, of those that wrote the log, in worlds that change."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

import dense_evaluation as dense
import onepass as op
from counts import repetitions
from onepass import evaluation as ev
from onepass.evaluation.policies import bandit_probabilities

RUNS, ROWS, LOOKS = repetitions(60, 2_000), repetitions(600, 2_000), repetitions(3, 10)
CLICKS = ev.Range(0.0, 1.0)
MEANS, FLOOR = np.array([0.1, 0.3, 0.8]), 0.3


def rising(runs, rows, seed=0):
    """Weights, rewards and the value at every row (runs, rows), of a policy that learns a log whose logger learns too:
    both take the arm with the best mean so far, but for floors, and the world gets better on the way."""
    rng, each = np.random.default_rng(seed), np.arange(runs)
    clicks, shown = np.ones((runs, 3)), np.full((runs, 3), 2.0)
    w, r, values = (np.empty((runs, rows)) for _ in range(3))
    for t in range(rows):
        means = MEANS * (0.4 + 0.6 * t / rows)
        best = (clicks / shown).argmax(axis=1)
        p, q = np.full((runs, 3), FLOOR / 3), np.full((runs, 3), 0.01)
        p[each, best] += 1.0 - FLOOR
        q[each, best] += 0.97
        arm = (p.cumsum(axis=1) > rng.random((runs, 1))).argmax(axis=1)
        r[:, t] = rng.random(runs) < means[arm]
        w[:, t], values[:, t] = q[each, arm] / p[each, arm], q @ means
        clicks[each, arm] += r[:, t]
        shown[each, arm] += 1.0
    return w, r, values


def test_limits_of_a_value_that_rises_miss_at_any_look_in_at_most_one_run_of_twenty_where_bets_miss_more():
    w, r, values = rising(RUNS, ROWS)
    ends, missed, bets = np.linspace(0, ROWS, LOOKS + 1).astype(int), {None: 0, 1.3: 0}, 0
    for run in range(RUNS):
        sequences = {bound: ev.AverageSequence(CLICKS, bound) for bound in missed}
        betting, out = ev.BettingSequence(CLICKS, 1.3), {bound: False for bound in (*missed, "bets")}
        for start, end in pairwise(ends):
            value, part = values[run, :end].mean(), (w[run, start:end], r[run, start:end])
            for bound, one in sequences.items():
                one.add(*part)
                out[bound] |= not one.interval(0.05).contains(value)
            betting.add(*part)
            out["bets"] |= not betting.interval(0.05).contains(value)
        bets += out["bets"]
        for bound in missed:
            missed[bound] += out[bound]
    assert max(missed.values()) <= stats.binom.isf(1e-4, RUNS, 0.05), missed
    assert bets > stats.binom.isf(1e-4, RUNS, 0.05), bets


def test_limits_are_those_of_the_formula_over_all_rows():
    rng = np.random.default_rng(3)
    for n, top, rewards in ((1, 3.0, CLICKS), (300, 4.0, CLICKS), (2_000, 20.0, ev.Range(-2.0, 3.0))):
        w = np.where(rng.random(n) < 1.0 / top, top, 0.0)
        r = rng.random(n) < 0.2
        found = ev.AverageSequence(rewards)
        found.add(w, rewards.least + rewards.span * r)
        low, high = dense.mixed_limit(w * r, 0.05), 1.0 - dense.mixed_limit(w * (1.0 - r), 0.05)
        wanted = rewards.clip(rewards.least + rewards.span * low, rewards.least + rewards.span * high)
        assert found.interval(0.1) == pytest.approx(wanted, abs=1e-7)
        bounded = ev.AverageSequence(rewards, top)
        bounded.add(w, rewards.least + rewards.span * r)
        rest = top * (1.0 - dense.mixed_limit(1.0 - w * r / top, 0.025))
        high = min(1.0 - dense.mixed_limit(w * (1.0 - r), 0.025), rest)
        assert bounded.interval(0.1).upper == pytest.approx(
            rewards.clip(0.0, rewards.least + rewards.span * high).upper, abs=1e-7
        )


def test_sequences_go_on_and_refuse_what_does_not_fit():
    rng = np.random.default_rng(4)
    w, r = rng.choice([0.0, 2.0], 500), (rng.random(500) < 0.5) * 1.0
    whole, first, second = (ev.AverageSequence(CLICKS, 2.0) for _ in range(3))
    whole.add(w, r)
    first.add(w[:200], r[:200])
    second.add(w[200:], r[200:])
    assert first.concat(second).interval() == pytest.approx(whole.interval(), abs=0.01)
    assert first.concat(ev.AverageSequence(CLICKS)).bound is None
    with pytest.raises(ValueError, match="other must have the range of rewards"):
        first.concat(ev.AverageSequence(ev.Range(0.0, 2.0)))
    with pytest.raises(ValueError, match="weights must be at most the bound 2, got 3"):
        first.add(np.array([3.0]), np.array([1.0]))


def test_a_bound_that_rises_has_limits_of_the_formula():
    """W_i is the largest weight that any row up to i could have had; the first bound is the unit."""
    rng, max_weights = np.random.default_rng(6), np.repeat([1.5, 2.5, 2.0], 300)
    w, r = np.where(rng.random(900) < 1.0 / max_weights, max_weights, 0.0), rng.random(900) < 0.03
    found = ev.AverageSequence(CLICKS, 2.0)
    for part in np.array_split(np.arange(900), 7):
        found.add(w[part], r[part], max_weights[part])
    most = np.repeat([2.0, 2.5], [300, 600])
    rest = most.mean() - 2.0 * dense.mixed_limit((most - w * r) / 2.0, 0.0125)
    high = min(1.0 - dense.mixed_limit(w * (1.0 - r), 0.0125), rest)
    assert found.interval() == pytest.approx((dense.mixed_limit(w * r, 0.025), high), abs=1e-7)
    found.forget_bound()
    assert found.interval().upper == pytest.approx(1.0 - dense.mixed_limit(w * (1.0 - r), 0.025), abs=1e-7)


def logged(rows=400, seed=0, K=3):
    rng = np.random.default_rng(seed)
    x, arms = rng.uniform(-1, 1, (rows, 2)), rng.integers(K, size=rows)
    rewards = (rng.random(rows) < 0.2 + 0.5 * (arms == (x[:, 0] > 0))) * 1.0
    return ev.Log(arms=arms, rewards=rewards, propensities=np.full(rows, 1 / K), n_arms=K, contexts=x)


def learner():
    return op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=2))), op.EpsilonGreedy(0.3), seed=1)


def test_a_policy_that_learns_is_evaluated_with_limits_of_its_average():
    log = logged()
    sample, found = ev.progressive(log, learner(), 50), ev.evaluate(log, ev.LearningPolicy(learner(), 50))
    assert np.array_equal(found.sample.weights, sample.weights)
    assert set(found.intervals) == {"bernstein", "clopper-pearson", "cressie-read", "average"}
    own = ev.AverageSequence(CLICKS, found.bound)
    own.add(sample.weights, sample.rewards)
    assert found.limits == pytest.approx(own.interval(0.05))
    assert found.limits.contains(found.value)
    many = ev.evaluate_many(
        log, {"learns": ev.LearningPolicy(learner(), 50), "even": ev.UniformPolicy()}, weight_bound=found.bound
    )
    assert many["learns"].limits == pytest.approx(found.limits)
    assert "betting" in many["even"].intervals
    changing = ev.evaluate_many(log, {"even": ev.UniformPolicy()}, average=True, weight_bound=1.0)["even"]
    assert changing.limits == pytest.approx(ev.evaluate(log, ev.UniformPolicy(), average=True).limits)


def test_what_wrote_the_log_may_have_learned_so_its_limits_are_of_its_average():
    rng, p = np.random.default_rng(5), np.tile([0.5, 0.5], (50, 1))
    log = ev.Log(arms=rng.integers(2, size=50), rewards=np.zeros(50), propensities=np.full(50, 0.5), distributions=p)
    assert "average" in ev.evaluate(log, ev.LoggingPolicy()).intervals
    assert "average" in ev.evaluate_many(log, {"logged": ev.LoggingPolicy()})["logged"].intervals


def test_a_frozen_bandit_is_asked_in_blocks_and_chooses_among_what_was_offered():
    """Block by block or one by one the same probabilities, to 1e-12: sums of a block may be taken in another order."""
    log, bandit = logged(60), learner()
    bandit.learn(log.contexts, log.rewards, arm=log.arms.tolist())
    eligible = np.ones((60, 3), bool)
    eligible[::2, 2] = log.arms[::2] == 2
    offered = ev.Log(
        arms=log.arms, rewards=log.rewards, propensities=1.0 / eligible.sum(axis=1), contexts=log.contexts,
        eligible=eligible,
    )  # fmt: skip
    found = bandit_probabilities(bandit, offered)
    for i, x in enumerate(log.contexts):
        wanted = bandit.decide(x, range(3), id=f"row {i}", eligible=eligible[i]).probabilities
        np.testing.assert_allclose(found[i], wanted, rtol=0.0, atol=1e-12)
    assert found[~eligible].max() == 0.0
