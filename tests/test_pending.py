"""Decisions that wait for their rewards."""

import copy
import pickle

import numpy as np
import pytest

import onepass as op

DIM = 3


def store(**more):
    bandit = op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=DIM, reg=0.5))), op.Thompson(0.4, draws=5), seed=2)
    return op.Pending(bandit, after=10.0, **more)


def rows(seed):
    return np.random.default_rng(seed).standard_normal((4, DIM))


def learned(pending):
    return op.to_bytes(pending.bandit)


def test_late_rewards_are_learned_and_overdue_decisions_become_the_default():
    pending, by_hand = store(default=-0.5), store().bandit
    made = [pending.decide(rows(t), range(4), k=1 + t % 2, id=f"{t}", now=float(t)) for t in range(6)]
    again = pending.decide(rows(1), range(4), k=2, id="1", now=9.0)  # asked twice: one decision, due as at first
    assert again.to_dict() == made[1].to_dict()
    pending.reward("3", [0.2, None], now=8.0)
    pending.reward("0", 1.0, now=9.5)
    with pytest.raises(KeyError, match="no decision waits"):
        pending.reward("1", [1.0, 1.0], now=11.0)  # overdue since 11, and 0 was rewarded
    assert pending.ids() == ["2", "4", "5"]
    assert pending.expire(now=14.5) == 2
    assert pending.ids() == ["5"]
    by_hand.learn(made[3], [0.2, None])
    by_hand.learn(made[0], 1.0)
    by_hand.learn(made[1], [-0.5, -0.5])
    by_hand.learn([made[2], made[4]], [-0.5, -0.5])
    assert learned(pending) == op.to_bytes(by_hand)


def test_without_a_default_nothing_is_learned_of_overdue_decisions():
    pending = store(default=None)
    pending.decide(rows(0), range(4), now=0.0)
    before = learned(pending)
    assert pending.expire(now=9.9) == 0
    assert pending.expire(now=10.0) == 1
    assert learned(pending) == before
    assert len(pending) == 0


@pytest.mark.parametrize("way", ["file", "bytes", "copy", "deepcopy", "pickle"])
def test_what_waits_is_saved_with_the_bandit(way, tmp_path):
    pending = store()
    for t in range(5):
        pending.decide(rows(t), ["a", 1, ("b", 2), "c"], k=1 + t % 2, id=f"{t}", now=float(t))
    pending.reward("2", 0.7, now=5.0)
    if way == "file":
        pending.save(tmp_path / "pending")
        twin = op.load(tmp_path / "pending")
    else:
        ways = {"copy": lambda one: one.copy(), "deepcopy": copy.deepcopy,
                "bytes": lambda one: op.from_bytes(op.to_bytes(one)),
                "pickle": lambda one: pickle.loads(pickle.dumps(one))}  # fmt: skip
        twin = ways[way](pending)
    assert twin.ids() == pending.ids() == ["0", "1", "3", "4"]
    before = learned(pending)
    twin.reward("0", 0.1, now=6.0)
    assert learned(pending) == before
    pending.reward("0", 0.1, now=6.0)
    assert learned(pending) == learned(twin)
    assert twin.expire(now=13.5) == pending.expire(now=13.5) == 2
    assert learned(pending) == learned(twin)
    assert pending.ids() == twin.ids() == ["4"]


@pytest.mark.parametrize(("call", "error"), [
    (lambda p: p.reward("0", np.nan, now=1.0), ValueError),
    (lambda p: p.reward("0", [1.0, 2.0], now=1.0), ValueError),
    (lambda p: p.reward("unknown", 1.0, now=1.0), KeyError),
    (lambda p: p.decide(rows(0), range(3), now=1.0), ValueError),
    (lambda p: p.expire(now=np.inf), ValueError),
])  # fmt: skip
def test_what_is_wrong_changes_nothing(call, error):
    pending = store()
    pending.decide(rows(0), range(4), id="0", now=0.0)
    before = op.to_bytes(pending)
    with pytest.raises(error):
        call(pending)
    assert op.to_bytes(pending) == before


@pytest.mark.parametrize("make", [
    lambda: op.Pending("bandit"), lambda: op.Pending(op.OFUL(dim=2), after=0.0),
    lambda: op.Pending(op.OFUL(dim=2), default=np.nan),
])  # fmt: skip
def test_arguments_out_of_range_are_refused(make):
    with pytest.raises(ValueError, match="must be"):
        make()


def test_what_a_part_of_the_bandit_knows_is_saved_with_it():
    bandit = op.CrossedBandit()
    bandit.learn(bandit.decide({"country": "de", "age": 3.0}, {"a": {"topic": "x"}}), 1.0)
    pending = op.Pending(bandit)
    twin = op.from_bytes(op.to_bytes(pending))
    assert twin.bandit.context.known == 2
    assert op.to_bytes(twin.bandit) == op.to_bytes(bandit)
