"""Warm starts: weights against two bandits apart, all sources, files, explanations and refusals."""

import numpy as np
import pytest

import onepass as op
from onepass.evaluation import Log
from onepass.model import AutoModel, AveragedModels, WarmStart
from onepass.model.warm_start import AMPLE, CAP, ENOUGH, EVERY, NEIGHBOURS, NONE, RATE, TINY
from onepass.testing.models import check_model

ARMS = ["a", "b", "c"]


def visits(seed, n):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 2)), rng.choice(ARMS, n).tolist()


def rewards_of(rows, arms, swapped=False):
    """Return rewards that are linear in the row; swapped: arms "b" and "c" have each other's."""
    theta = {"a": [1.0, 0.0], "b": [0.0, 1.0], "c": [-1.0, -1.0]}
    if swapped:
        theta["b"], theta["c"] = theta["c"], theta["b"]
    return np.array([float(np.dot(row, theta[arm])) for row, arm in zip(rows, arms, strict=True)])


def linear_bandit():
    return op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=2))), op.UCB(0.5))


def make_start(learned=20):
    """Return a warm start whose rows are not counted, as the suite of models expects."""
    bandit, (rows, arms) = op.ContextualBandit(), visits(5, learned)
    bandit.learn(rows, rewards_of(rows, arms), arms)
    model = WarmStart(bandit.model, AutoModel())
    model.n_learned = 0
    return model


def test_it_keeps_the_contract_of_a_model():
    assert "keeps the contract" in check_model(make_start, lambda rng: rng.standard_normal(2), ARMS)


def test_it_keeps_the_contract_where_all_arms_share_one_model():
    def make():
        bandit = op.ContextualBandit()
        for i in range(10):
            bandit.learn({"hour": i % 5}, float(i % 2), {"ab"[i % 2]: {"topic": i % 2}})
        model = WarmStart(bandit.model, AutoModel())
        model.n_learned = 0
        return model

    arms = {"a": {"topic": 0}, "b": {"topic": 1}}
    assert "keeps the contract" in check_model(make, lambda rng: {"hour": float(rng.random())}, arms)


def test_weights_and_means_are_those_of_two_bandits_apart():
    rows, arms = visits(0, 60)
    bandit = op.warm_start(linear_bandit(), (rows, arms, rewards_of(rows, arms, swapped=True)))
    start, fresh = linear_bandit(), linear_bandit()
    start.learn(rows, rewards_of(rows, arms, swapped=True), arms)
    gaps, losses, counts, squares = dict.fromkeys(ARMS, 0.0), dict.fromkeys(ARMS, 0.0), dict.fromkeys(ARMS, 0), 0.0
    rows, arms = visits(1, 12)
    for row, arm, reward in zip(rows, arms, rewards_of(rows, arms).tolist(), strict=True):
        errors = np.array([reward - float(one.decide(row, ARMS).means[ARMS.index(arm)]) for one in (start, fresh)])
        for one in (bandit, start, fresh):
            one.learn(row, reward, arm)
        gaps[arm] += errors[0] ** 2 - errors[1] ** 2
        counts[arm] += 1
        squares = squares + errors**2
        total, n = sum(gaps.values()), sum(counts.values())
        unit = 2.0 * (squares.min() / n + TINY) / RATE
        losses[arm] = float(np.clip(losses[arm] + errors[0] ** 2 - errors[1] ** 2, -2 * CAP * unit, 2 * CAP * unit))
    for arm in ARMS:
        shared = NEIGHBOURS * (total - gaps[arm]) / max(n - counts[arm], NEIGHBOURS) / unit
        expected = 1.0 / (1.0 + np.exp(losses[arm] / unit + np.clip(shared, -CAP, CAP)))
        expected = 0.0 if expected < NONE else 1.0 if expected > 1.0 - NONE else expected
        assert bandit.trust[arm] == pytest.approx(expected, rel=1e-6)
    w = np.array([bandit.trust[arm] for arm in ARMS])
    mine, first, second = (one.decide([0.3, -1.0], ARMS, id="x") for one in (bandit, start, fresh))
    np.testing.assert_allclose(mine.means, w * first.means + (1.0 - w) * second.means, rtol=1e-9)
    np.testing.assert_allclose(mine.widths**2, w * first.widths**2 + (1.0 - w) * second.widths**2, rtol=1e-9)


def test_a_start_is_trusted_more_for_the_arm_that_it_fits():
    rows, arms = visits(2, 300)
    bandit = op.warm_start(op.ContextualBandit(), (rows, arms, rewards_of(rows, arms, swapped=True)))
    assert bandit.trust == dict.fromkeys(sorted(ARMS, key=arms.index), 0.5)
    rows, arms = visits(3, 60)
    for row, arm, reward in zip(rows, arms, rewards_of(rows, arms), strict=True):
        bandit.learn(row, float(reward), arm)
    assert max(bandit.trust["b"], bandit.trust["c"]) < min(0.001, 0.01 * bandit.trust["a"])
    assert bandit.choices()["trust"]["b"] == 0.0


def test_a_start_that_no_arm_believes_is_dropped_and_costs_nothing_from_then_on():
    rows, arms = visits(4, 200)
    bandit = op.warm_start(linear_bandit(), (rows, arms, -10.0 * rewards_of(rows, arms)))
    fresh = linear_bandit()
    rows, arms = visits(5, 96)
    for row, arm, reward in zip(rows, arms, rewards_of(rows, arms), strict=True):
        bandit.learn(row, float(reward), arm)
        fresh.learn(row, float(reward), arm)
    assert bandit.model.start is None
    assert set(bandit.trust.values()) == {0.0}
    assert bandit.n_learned == 296
    np.testing.assert_array_equal(bandit.score([1.0, 2.0], ARMS), fresh.score([1.0, 2.0], ARMS))
    assert bandit.memory_usage() == fresh.memory_usage()


def test_trust_returns_to_neither_model_for_ever():
    rows, arms = visits(13, 200)
    bandit = op.warm_start(linear_bandit(), (rows, arms, rewards_of(rows, arms)))
    rng = np.random.default_rng(14)
    trusts = []
    for t in range(240):  # first the log fits, then arms "b" and "c" have each other's rewards
        row, arm = rng.standard_normal(2), ARMS[t % 3]
        reward = rewards_of([row], [arm], swapped=t >= 120)[0] + 0.1 * rng.standard_normal()
        bandit.learn(row, float(reward), arm)
        trusts.append(bandit.trust["b"])
    assert trusts[119] > 0.9
    assert min(trusts[120:150]) < 0.1


def test_after_many_rewards_the_better_model_stays_alone():
    rows, arms = visits(6, 20)
    bandit = op.warm_start(linear_bandit(), (rows, arms, rewards_of(rows, arms)))
    assert max(ENOUGH, AMPLE * 20) <= 32 * EVERY
    bandit.model._rewards = 32 * EVERY - 1
    bandit.learn([1.0, 0.0], 1.0, "a")
    assert bandit.model.fresh is None
    assert set(bandit.trust.values()) == {1.0}


def test_all_sources_give_the_same_start(tmp_path):
    rows, arms = visits(7, 40)
    paid = rewards_of(rows, arms)
    learned = op.ContextualBandit()
    learned.learn(rows, paid, arms)
    learned.save(tmp_path / "germany.onepass")
    log = Log(arms=arms, rewards=paid, propensities=np.full(40, 1 / 3), contexts=rows)
    sources = [
        (rows, arms, paid),
        learned,
        log,
        str(tmp_path / "germany.onepass"),
        op.warm_start(learned_copy(), learned),
    ]
    scores = [op.warm_start(op.ContextualBandit(), one).score([1.0, 0.5], ARMS) for one in sources]
    for other in scores[1:]:
        np.testing.assert_array_equal(scores[0], other)
    full = op.warm_start(op.ContextualBandit(), log, trust="full")
    np.testing.assert_array_equal(full.score([1.0, 0.5], ARMS), learned.score([1.0, 0.5], ARMS))
    assert full.trust == learned.trust == {}
    assert learned.n_learned == 40


def learned_copy():
    return op.ContextualBandit()


def test_labelled_examples_teach_every_label():
    rows = np.array([[1.0], [2.0], [-1.0], [-3.0]])
    bandit = op.warm_start(op.ContextualBandit(), (rows, ["up", "up", "down", "down"]))
    assert bandit.n_learned == 8
    assert bandit.arms == ("up", "down")
    again = op.warm_start(op.ContextualBandit(), ([{"x": 1.0}, {"x": -1.0}], np.array(["up", "down"])))
    assert again.n_learned == 4


def test_a_log_of_records_is_learned():
    frame = {"page": ["old", "new"] * 10, "bought": [0.0, 1.0] * 10, "country": ["de", "fr", "uk", "de"] * 5}
    log = Log.from_frame(frame, arm="page", reward="bought", propensity=0.5, context="country")
    bandit = op.warm_start(op.ContextualBandit(), log)
    assert bandit.decide({"country": "de"}, ["old", "new"]).means[1] > 0.3


def test_rows_that_are_arms_have_one_weight():
    rows = visits(8, 50)[0]
    bandit = op.warm_start(op.OFUL(dim=2), (rows, None, rows[:, 0]))
    bandit.learn(bandit.decide(np.eye(2)), 1.0)
    bandit.learn(np.eye(2), [1.0, 0.0])
    assert list(bandit.trust) == ["all"]
    assert bandit.trust["all"] > 0.5
    assert bandit.n_learned == 53


def test_a_saved_warm_start_goes_on_bit_for_bit():
    rows, arms = visits(9, 40)
    bandit = op.warm_start(op.ContextualBandit(seed=3), (rows, arms, rewards_of(rows, arms)))
    rows, arms = visits(10, 20)
    twins = [bandit]
    for t, (row, reward) in enumerate(zip(rows, rewards_of(rows, arms), strict=True)):
        if t == 10:
            twins += [op.from_bytes(op.to_bytes(bandit)), bandit.copy(), bandit.snapshot().bandit()]
        decisions = [one.decide(row, ARMS, id=f"d{t}") for one in twins]
        for one, decision in zip(twins, decisions, strict=True):
            one.learn(decision, float(reward))
    assert len({op.to_bytes(one) for one in twins[:3]}) == 1
    assert twins[3].trust == bandit.trust


def test_explanations_say_how_much_the_start_counts():
    rows, arms = visits(11, 40)
    bandit = op.warm_start(op.ContextualBandit(), (rows, arms, rewards_of(rows, arms)))
    found = bandit.explain([1.0, 0.0], "a", arms=ARMS)
    parts = {term.part for term in found.terms}
    assert parts == {"start (0.50) arm", "fresh (0.50) arm"}
    assert sum(term.contribution for term in found.terms) == pytest.approx(found.mean)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (3.0, "source must be a Log"),
        ((np.zeros((0, 2)), [], []), "at least one row"),
        (([[1.0]], ["a", "b"]), "labels must have one entry"),
        (Log(arms=[0], rewards=[1.0], propensities=[1.0]), "log with contexts"),
        (op.ContextualBandit(), "must have learned something"),
        (([[float("nan")]], ["a"], [1.0]), "contexts"),
    ],
)
def test_sources_that_do_not_fit_are_refused(source, message):
    with pytest.raises(ValueError, match=message):
        op.warm_start(op.ContextualBandit(), source)


def test_bandits_that_cannot_start_warm_are_refused():
    rows, arms = visits(12, 10)
    source = rows, arms, rewards_of(rows, arms)
    learned = op.ContextualBandit()
    learned.learn(rows, source[2], arms)
    with pytest.raises(ValueError, match="learned nothing"):
        op.warm_start(learned, source)
    with pytest.raises(ValueError, match="no outcomes"):
        op.warm_start(op.ContextualBandit(outcomes=["dollars"]), source)
    with pytest.raises(ValueError, match="trust"):
        op.warm_start(op.ContextualBandit(), source, trust="half")
    with pytest.raises(TypeError, match="bandit must be"):
        op.warm_start(AveragedModels(), source)
    with pytest.raises(TypeError, match="source must be a bandit with a SharedModel"):
        op.warm_start(op.OFUL(dim=2), learned)
    prices, chosen = op.ContextualBandit(), op.Interval(1.0, 2.0)
    prices.learn(prices.decide(None, chosen), 1.0)
    with pytest.raises(ValueError, match='trust must be "full" for an interval'):
        op.warm_start(op.ContextualBandit(), prices)
    assert op.warm_start(op.ContextualBandit(), prices, trust="full").decide(None, chosen).density > 0.0
    with pytest.raises(ValueError, match="both are None"):
        WarmStart(None, None)


def test_arms_that_only_one_of_the_two_models_knows_are_known_to_both():
    source, bandit = linear_bandit(), linear_bandit()
    source.learn([1.0, 0.0], 1.0, "old")
    bandit.add_arm("new")
    warm = op.warm_start(bandit, source)
    assert warm.arms == ("old", "new")
    assert warm.decide([1.0, 0.0]).candidates == ["old", "new"]
    with pytest.raises(ValueError, match="known already"):
        warm.add_arm("new")
    warm.remove_arm("old")
    assert [one.arms for one in (warm.model.start, warm.model.fresh)] == [("new",), ("new",)]


def test_an_arm_that_only_the_start_has_learned_is_removed():
    source = op.InteractionBandit()
    for name in ("a", "b"):
        source.learn({"hour": 3}, 1.0, {name: {"topic": name}})
    warm = op.warm_start(op.InteractionBandit(), source)
    warm.remove_arm("a")
    assert warm.arms == ("b",)
    with pytest.raises(ValueError, match="not known"):
        warm.remove_arm("a")
