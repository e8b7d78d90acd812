"""Censored rewards: decisions joined at drawn ages, conversions at once, and corrections of any model."""

import numpy as np
import pytest

import onepass as op
from onepass.log import Decision, Outcome
from onepass.log.memory import MemoryStore
from onepass.log.records import CENSORED, SECOND
from onepass.log.replay import Fold
from onepass.log.verification import verify
from onepass.service.drawn_deadline import draw_age, draw_deadline
from onepass.service.join import Joiner
from onepass.service.messages import ApiError, DecideRequest, OutcomeRequest
from onepass.service.overview import Overview
from onepass.service.policy_evaluation import FixedPolicy, Window, evaluate_policies, shown_probabilities
from onepass.service.settings import Reward, make_bandit, parse_settings
from patience import PATIENCE, HeldClock, finish_learning, last_join, until
from service_process import loops_in

RIDGE = {"recipe": "OFUL", "seed": 2, "arguments": {"model": "disjoint", "reg": 0.5}}
MODELS = [RIDGE, {"recipe": "ContextualBandit"}]
WAIT, DELAYS = 1000.0, [[10.0, 0.2], [100.0, 0.5]]


def rules(model=RIDGE, wait=WAIT, more=None, **reward):
    return parse_settings({
        "name": "shop", "features": {"context": 2}, "arms": ["a", "b"], "model": model, "operation": {"publish": 0.0},
        "reward": {"wait": wait, "censored": True, "delays": DELAYS, **reward}, **(more or {}),
    })  # fmt: skip


@pytest.fixture
def started(tmp_path, monkeypatch):
    """Loops that hold at most eight decisions in memory, and end with their test."""
    for name, value in (("HELD", 8), ("PARKED", 4), ("RECALLED", 5)):
        monkeypatch.setattr(f"onepass.service.join.{name}", value)
    with loops_in(tmp_path, HeldClock()) as start:
        yield start


def test_ages_have_the_law_of_the_delays():
    for delays in ([(10.0, 0.2), (100.0, 0.5)], [(5.0, 0.1), (WAIT, 1.0)]):
        reward = rules(delays=[list(one) for one in delays]).reward
        ages = np.sort([draw_age(f"{i}", reward) for i in range(4000)])
        assert all((ages >= 0.0) & (ages <= WAIT))
        for age, share in delays:
            assert np.mean(ages <= age) == pytest.approx(share, abs=0.03)
    assert draw_deadline("1", 7 * SECOND, rules(censored=False, delays=[])) == (7 + int(WAIT)) * SECOND


def decision(i, when, settings):
    due = draw_deadline(f"{i}", when, settings)
    return Decision(loop="shop", time=when, id=f"{i}", places=[0], seq=i + 1, extra={"due": due})


def test_a_conversion_is_joined_when_it_comes_and_a_missing_one_at_the_drawn_age():
    settings = rules()
    joiner, first, late = Joiner(settings), 5 * SECOND, draw_age("1", settings.reward)
    for i in range(2):
        joiner.add_record(decision(i, first, settings))
    joiner.add_record(Outcome(loop="shop", time=first + 1, id="0", value=1.0, seq=3))
    found = joiner.pop_due(first + 2)
    assert [(one.id, one.rewards, one.how) for one in found] == [("0", [1.0], "earliest")]
    assert joiner.pop_due(first + round(late * SECOND)) == []
    found = joiner.pop_due(first + round(late * SECOND) + 1)
    assert [(one.id, one.rewards, one.how) for one in found] == [("1", [0.0], "default")]
    assert joiner.pop_due(first + round(2 * WAIT * SECOND)) == []


def test_an_outcome_that_is_no_conversion_joins_nothing():
    settings = rules()
    joiner = Joiner(settings)
    joiner.add_record(decision(0, 0, settings))
    joiner.add_record(Outcome(loop="shop", time=1, id="0", value=0.0, seq=3))
    assert joiner.pop_due(2) == []


def until_learned(loop):
    """Wait until everything that is due is joined, corrected and learned."""
    until(lambda: loop.joiner.next_deadline() is None or loop.joiner.next_deadline() > loop.clock())
    for _ in range(2):  # what was due before the first look is in the log after the second
        loop.writer.run_between_commits(lambda: None).result(PATIENCE)
    until(lambda: not loop.learner.lag and loop.learner.seen >= last_join(loop.store))
    finish_learning(loop)


def totals(store):
    """Sum of the joins of each decision."""
    sums = {}
    for one in store.read(kinds=["join"]):
        sums[one.id] = sums.get(one.id, 0.0) + (one.rewards[0] or 0.0)
    return sums


def paid(loop, *ids, value=1.0, key="k"):
    loop.outcomes([OutcomeRequest(id=f"{t}", value=value, key=key) for t in ids])[1].result()


def decided(loop, *ids):
    for t in ids:
        context = np.random.default_rng(t).standard_normal(2).tolist()
        loop.decide(DecideRequest(context=context, id=f"{t}")).result()


@pytest.mark.parametrize("model", MODELS, ids=["ridge", "recommended"])
def test_corrections_of_any_model_are_replayed_and_verified_in_every_bit_across_a_restart(started, model):
    store, settings, bought = MemoryStore(), rules(model, delays=[[1.0, 0.5]]), {*range(0, 20, 2)}
    loop = started(settings, store)
    decided(loop, *range(20))
    loop.clock.forward(1.5)  # half of them are learned as the default by now
    until(lambda: 5 <= len(totals(store)) < 15)
    until_learned(loop)
    young = len(totals(store))
    loop.stop()
    loop = started(settings, store)
    paid(loop, *bought)
    until(lambda: sum(totals(store).values()) == 10.0)
    until_learned(loop)
    corrections = [one for one in store.read(kinds=["join"]) if one.how == CENSORED]
    assert 0 < len(corrections) < 10
    assert len(totals(store)) == young + 10 - len(corrections)
    loop.clock.forward(2 * WAIT)
    until(lambda: len(totals(store)) == 20)
    until_learned(loop)
    loop.stop()
    assert {int(name) for name, value in totals(store).items() if value == 1.0} == bought
    twin = Fold(store, "shop", make_bandit(settings))
    twin.advance()
    assert op.to_bytes(loop.learner.fold.bandit) == op.to_bytes(twin.bandit)
    assert verify(Fold.resume(store, "shop", first=True)).ok
    if model is RIDGE:  # an oracle: the right rewards, learned at once
        plain = make_bandit(settings)
        for record in store.read(kinds=["decision"]):
            plain.learn(record.to_decision(), float(int(record.id) in bought))
        for arm in ("a", "b"):
            known = twin.bandit.model.parameter_of(arm)
            np.testing.assert_allclose(known, plain.model.parameter_of(arm), rtol=1e-9, atol=1e-12)


def test_evaluations_and_the_overview_count_corrections(started):
    store = MemoryStore()
    loop = started(rules(delays=[[1.0, 0.98]]), store)
    decided(loop, *range(24))
    loop.clock.forward(1.5)
    until(lambda: len(totals(store)) >= 20)
    paid(loop, *range(24))
    until(lambda: sum(totals(store).values()) == 24.0)
    until_learned(loop)
    loop.stop()
    overview = Overview(loop.settings, find=lambda identity: store.find("shop", identity))
    for record in store.read():
        overview.add_record(record)
    overview.settle()
    assert sum(piece.earned for piece in overview.sums.pieces) == 24.0
    policies = {"logged": FixedPolicy(shown_probabilities)}
    found = evaluate_policies(store, "shop", policies, Window(), (0.0, 1.0), 0.95, lambda rows: None)
    assert found["logged"].found.value == 1.0


def test_a_conversion_after_the_wait_is_too_late_and_one_that_is_cancelled_is_taken_back(started):
    store = MemoryStore()
    loop = started(rules(aggregation="sum"), store)
    decided(loop, 1, 2)
    paid(loop, 2, key="bought")
    until(lambda: totals(store) == {"2": 1.0})
    paid(loop, 2, value=-1.0, key="cancelled")
    until(lambda: totals(store) == {"2": 0.0})
    loop.clock.forward(WAIT + 1.0)
    until(lambda: totals(store) == {"2": 0.0, "1": 0.0})
    paid(loop, 1)
    loop.clock.forward(WAIT)
    decided(loop, 3)
    paid(loop, 3)
    until(lambda: "3" in totals(store))
    loop.stop()
    assert totals(store) == {"2": 0.0, "1": 0.0, "3": 1.0}


def test_decisions_that_are_deferred_are_refused(started):
    loop = started(rules(), MemoryStore())
    with pytest.raises(ApiError, match="defer must be false in a loop with censored rewards"):
        loop.decide(DecideRequest(context=[1.0, 0.0], id="1", defer=True)).result()


def test_wrong_settings_have_a_sentence():
    for wrong, sentence in (
        ({"default": "none"}, "reward.censored must be false unless reward.default is a number"),
        ({"censored": False}, "reward.delays must be given where reward.censored is true"),
        ({"delays": []}, "reward.delays must be given where reward.censored is true"),
        ({"delays": [[2.0, 0.5], [1.0, 0.6]]}, "reward.delays must be pairs"),
        ({"delays": [[2.0, 0.5], [3.0, 0.5]]}, "reward.delays must be pairs"),
        ({"delays": [[0.0, 0.5]]}, "reward.delays must be pairs"),
        ({"delays": [[2.0 * WAIT, 1.0]]}, "reward.delays must be pairs"),
        ({"delays": [[1.0, 1.0]]}, "reward.delays must be pairs"),
    ):
        with pytest.raises(ValueError, match=sentence):
            rules(**wrong)
    for more, sentence in (
        ({"mode": "canary"}, 'reward.censored must be false where mode = "canary"'),
        ({"ab_test": {}}, "reward.censored must be false in a loop with outcomes"),
        ({"outcomes": {"dollars": {}}}, "reward.censored must be false in a loop with outcomes"),
    ):
        with pytest.raises(ValueError, match=sentence):
            rules({"recipe": "ContextualBandit"}, more=more)
    assert rules().reward == Reward(wait=WAIT, censored=True, delays=[(10.0, 0.2), (100.0, 0.5)])
