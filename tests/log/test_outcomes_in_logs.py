"""Decisions with outcomes and budgets in a log: replay and verification compute them again bit for bit."""

import numpy as np
import pytest

import onepass as op
from onepass.log import Decision, Join, Outcome, decode, encode
from onepass.log.memory import MemoryStore
from onepass.log.records import OUTCOMES
from onepass.log.replay import Fold
from onepass.log.verification import verify

COSTS = {"x": {"dollars": 2.0}, "y": {"dollars": 5.0}}


def begin() -> op.Bandit:
    return op.ContextualBandit(seed=3, outcomes=["dollars", "latency"])


def logged_game() -> tuple[MemoryStore, op.Bandit]:
    """A store of a router's game, and the bandit that learned in it: outcomes with rewards, later, or never."""
    store, bandit, rng = MemoryStore(), begin(), np.random.default_rng(0)
    router, seq = op.Budgeted(bandit, {"dollars": op.Budget(3.0)}, shares={"y": op.Share(most=0.5)}), 0
    for t in range(60):
        row = rng.standard_normal(2)
        weights = {"latency": -0.1} if t % 2 else None
        decision = router.decide(row, ["x", "y"], id=f"{t}", costs=COSTS, weights=weights, now=0.0)
        record = Decision.from_decision(decision, loop="a", time=t, contexts=row, through=seq)
        store.append([record])
        outcomes = {"dollars": (2.0, 5.0)[decision.index] * (1.0 + 0.1 * float(row[0]))}
        with_reward = outcomes if t % 3 else None
        store.append(
            [Join(loop="a", time=t, id=f"{t}", rewards=[float(row[1])], outcomes=[with_reward] if t % 3 else None)]
        )
        router.learn(decision, float(row[1]), outcomes=with_reward, now=0.0)
        if t % 3 == 0:
            late = {"latency": 1.0 + float(row[0])}
            store.append([Join(loop="a", time=t, id=f"{t}", rewards=[None], outcomes=[late], how=OUTCOMES)])
            router.learn(decision, outcomes=late, now=0.0)
        seq = store.last
    return store, bandit


def test_replay_gives_the_bandit_that_learned_outcomes_bit_for_bit():
    store, bandit = logged_game()
    fold = Fold(store, "a", begin())
    fold.advance()
    assert op.to_bytes(fold.bandit) == op.to_bytes(bandit)


def test_verify_repeats_decisions_under_budgets_shares_and_weights():
    store, _ = logged_game()
    found = verify(Fold(store, "a", begin()))
    assert (found.equal, found.wrong, found.left) == (60, 0, {})


@pytest.mark.parametrize("baseline", ["x", "a bandit"])
def test_verify_repeats_decisions_of_a_mixture_with_a_baseline(baseline):
    store, bandit, rng = MemoryStore(), op.ContextualBandit(seed=3), np.random.default_rng(0)
    rule = op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=2))), op.EpsilonGreedy(0.5), seed=4)
    guarded, seq = op.Guarded(bandit, "x" if baseline == "x" else rule, loss=0.5), 0
    for t in range(80):
        row = rng.standard_normal(2)
        decision = guarded.decide(row, ["x", "y"], id=f"{t}")
        record = Decision.from_decision(decision, loop="a", time=t, contexts=row, through=seq)
        assert decode(encode(record)) == record
        assert record.to_decision().mixture["share"] == decision.mixture["share"]
        reward = 1.0 if decision.arm == "y" else 0.5
        store.append([record, Join(loop="a", time=t, id=f"{t}", rewards=[reward])])
        guarded.learn(decision, reward)
        seq = store.last
    assert guarded.report().share > 0.0
    found = verify(Fold(store, "a", op.ContextualBandit(seed=3)))
    assert (found.equal, found.wrong, found.left) == (80, 0, {})


def test_records_with_outcomes_come_back_in_every_bit():
    store, _ = logged_game()
    records = [*store.read(), Outcome(loop="a", time=1, id="1", value=0.3, name="dollars")]
    assert [decode(encode(one)) for one in records] == records
    (decision,) = [one for one in records if getattr(one, "id", None) == "59" and isinstance(one, Decision)]
    made = decision.to_decision()
    assert made.prices.keys() <= {"dollars", "latency"}
    assert Decision.from_decision(made, loop="a", time=59, contexts=decision.contexts, eligible=decision.eligible,
                                  through=decision.through, seq=decision.seq) == decision  # fmt: skip
