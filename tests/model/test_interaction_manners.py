"""`InteractionBandit` as a bandit: records of decisions, late rewards, copies and files, refusals, threads."""

import copy
import datetime
import json
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pytest

import onepass as op
from onepass.bandit.decision import Decision

ARMS = {
    "a1": {"topic": "sport", "age": 2.0},
    "a2": {"topic": "news", "age": 5.0, "since": datetime.date(2024, 5, 1)},
    "a3": {"topic": "food", "age": None},
}
USER = {"country": "de", "hour": 9, "interests": ["sport", "food"], "geo": {"lat": 48.1}}


def taught(seed: int = 0, rounds: int = 40) -> op.Bandit:
    bandit = op.InteractionBandit(seed=seed)
    for k in range(rounds):
        decision = bandit.decide({**USER, "hour": k % 24}, ARMS, id=f"r{k}")
        bandit.learn(decision, float(decision.arm == "a1"))
    return bandit


def test_a_record_through_json_teaches_what_the_decision_does_once():
    one, other = taught(), taught()
    decisions = [bandit.decide(USER, ARMS, k=2, id="x") for bandit in (one, other)]
    record = json.loads(json.dumps(decisions[1].to_dict()))
    assert Decision.from_dict(record).context == decisions[1].context
    assert set(record["context"]["context"]) >= {"country=de", "hour", "interests=sport", "geo.lat"}
    one.learn(decisions[0], [1.0, None])
    other.learn(Decision.from_dict(record), [1.0, None])
    assert op.to_bytes(one) == op.to_bytes(other)
    with pytest.raises(ValueError, match="has had its reward"):
        one.learn(decisions[0], [1.0, 0.0])
    one.learn(decisions[0], [1.0, 0.0], allow_repeat=True)
    assert one.n_learned == 43


def test_deciding_scoring_and_explaining_change_nothing_and_an_id_repeats_its_decision():
    bandit = taught()
    before = op.to_bytes(bandit)
    new = {**ARMS, "a9": {"topic": "never seen", "tags": ["new"]}}
    first = bandit.decide({**USER, "os": "new"}, new, id="q")
    again = bandit.decide({**USER, "os": "new"}, new, id="q")
    assert first.arm == again.arm
    assert np.array_equal(first.probabilities, again.probabilities)
    assert np.array_equal(bandit.score(USER, new), bandit.score(USER, new))
    bandit.explain(USER, arms=new)
    assert op.to_bytes(bandit) == before
    assert abs(first.probabilities.sum() - 1.0) < 1e-12
    assert first.propensity == first.probabilities[first.index]


def test_rewards_come_late_and_in_any_order_and_pending_waits_for_them():
    bandit = taught()
    decisions = [bandit.decide(USER, ARMS) for _ in range(5)]
    bandit.learn(decisions[::-1], [0.0, 1.0, 0.0, 0.0, 1.0])
    assert bandit.n_learned == 45
    pending = op.PendingRewards(bandit, after=60.0)
    pending.decide(USER, arms=ARMS, id="click", now=0.0)
    pending.decide(USER, arms=ARMS, id="none", now=1.0)
    pending.reward("click", 1.0, now=10.0)
    twin = op.from_bytes(op.to_bytes(pending))
    assert pending.expire(now=100.0) == twin.expire(now=100.0) == 2
    assert bandit.n_learned == twin.bandit.n_learned == 47


def test_copies_pickles_bytes_and_files_go_on_bit_for_bit(tmp_path):
    bandit = taught()
    bandit.save(tmp_path / "bandit")
    twins = [copy.deepcopy(bandit), pickle.loads(pickle.dumps(bandit)), op.from_bytes(op.to_bytes(bandit))]
    twins += [op.load(tmp_path / "bandit"), bandit.snapshot().bandit()]
    before = op.to_bytes(bandit)
    for k in range(20):
        for one in (bandit, *twins):
            decision = one.decide(USER, {**ARMS, f"n{k}": {"topic": f"t{k}", "age": float(k)}}, id=f"late {k}")
            one.learn(decision, float(k % 3 == 0))
    states = {op.to_bytes(one) for one in (bandit, *twins)}
    assert len(states) == 1
    assert states != {before}


def test_a_snapshot_decides_and_scores_as_the_bandit_did():
    bandit = taught()
    still, scores = bandit.snapshot(), bandit.score(USER, ARMS)
    bandit.learn(bandit.decide(USER, ARMS), 1.0)
    assert np.array_equal(still.score(USER, ARMS), scores)
    assert still.decide(USER, ARMS, id="one").n_learned == bandit.n_learned - 1


def test_arms_may_be_names_alone_frames_or_nameless_records():
    bandit = op.InteractionBandit()
    named = bandit.decide(USER, ["x", "y", 3])
    assert named.arm in ("x", "y", 3)
    assert named.context["arms"][0] in [{"arm=x": 1.0}, {"arm=y": 1.0}, {"arm=3": 1.0}]
    rows = [{"topic": "sport", "age": 1.0}, {"topic": "news", "age": None}]
    for arms in (rows, pl.DataFrame(rows), pd.DataFrame(rows)):
        decision = bandit.decide(USER, arms, eligible=[1])
        assert (decision.arm, decision.candidates, decision.context["arms"][0]["topic=news"]) == (1, None, 1.0)
        bandit.learn(decision, 1.0)
    assert sorted(bandit.decide(USER, ARMS, k=3).arms) == ["a1", "a2", "a3"]


@pytest.mark.parametrize(
    ("context", "arms", "said"),
    [
        ({"x": np.nan}, ARMS, "x must be"),
        (USER, {"a": {"x": np.inf}}, "x must be"),
        ("text", ARMS, "contexts"),
        ((), ARMS, "contexts"),
        (USER, {}, "at least one arm"),
        (USER, ["a", "a"], "twice"),
        (USER, {"a": 3}, "record"),
        (USER, {"a": None}, "record"),
        (USER, "abc", "arms"),
        (USER, None, "arms"),
        (USER, {float("nan"): {}}, "equal itself"),
    ],
)
def test_bad_requests_are_refused_and_change_nothing(context, arms, said):
    bandit = taught(rounds=3)
    before = op.to_bytes(bandit)
    with pytest.raises(ValueError, match=said):
        bandit.decide(context, arms)
    assert op.to_bytes(bandit) == before


def test_bad_rewards_and_foreign_decisions_are_refused_and_change_nothing():
    bandit = taught(rounds=3)
    good = bandit.decide(USER, {"new": {"topic": "new"}})
    rows = good._replace(context=np.ones(2))
    before = op.to_bytes(bandit)
    spoiled = good._replace(context={"context": {"a": float("nan")}, "arms": [{}]})
    for decision, reward in (
        (good, np.nan),
        (good, 1e200),
        (good, "1"),
        (good, [1.0, 2.0]),
        ([good, good], [1.0, 1.0]),
        (rows, 1.0),
        (spoiled, 1.0),
        (good._replace(context={"context": {}, "arms": []}), 1.0),
        ([good, spoiled], [1.0, 1.0]),
        (3, 1.0),
    ):
        with pytest.raises(ValueError, match=r"reward|terms|decision"):
            bandit.learn(decision, reward)
        assert op.to_bytes(bandit) == before


PROVED = op.UCB(op.Theory(noise=1.0, parameter_bound=1.0))
WRONG = (
    {"context": 3},
    {"item": op.features.Identity(dim=2)},
    {"recent": 0},
    {"seed": -1},
    {"name": 3},
    {"exploration": PROVED},
)


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_parts_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        op.InteractionBandit(**wrong)


def test_parts_are_copied_and_the_bandit_says_what_it_is_made_of():
    users = op.Records(size=16).learn({"country": "de"})
    bandit = op.InteractionBandit(users)
    bandit.learn(bandit.decide({"country": "fr"}, ["a"]), 1.0)
    assert (users.n_names, bandit.model.context.n_names, bandit.memory_usage() > 0) == (1, 2, True)
    assert "Records(size=16" in repr(bandit)
    assert "OptimisticGap" in repr(bandit)


def test_threads_decide_while_one_learns():
    bandit, rounds = taught(), 60
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda k: bandit.decide(USER, {**ARMS, f"n{k}": {"topic": f"t{k}"}}), range(rounds)))
        list(pool.map(lambda decision: bandit.learn(decision, 0.5), found))
    assert bandit.n_learned == 40 + rounds
    assert all(abs(one.probabilities.sum() - 1.0) < 1e-12 for one in found)
