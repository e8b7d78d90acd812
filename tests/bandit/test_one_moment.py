"""What is written of an owner and of its parts is of one moment, whatever is learned before it is written."""

import numpy as np
import pytest

import onepass as op
from onepass.foundation.files import pack, snapshot
from onepass.foundation.registry import class_name

ARMS = {"a": {"topic": "sport"}, "b": {"topic": "news"}}


def crossed():
    bandit = op.InteractionBandit(op.Records(size=8, standardize=True), op.Records(size=8))
    decisions = [bandit.decide({"hour": i, "device": f"d{i}"}, ARMS) for i in range(4)]
    bandit.learn(decisions[0], 1.0)
    return bandit, lambda: bandit.learn(decisions[1:], [0.0, 1.0, 0.5])


def pending():
    waiting = op.PendingRewards(op.OFUL(dim=3), after=60.0)
    for i in range(3):
        waiting.decide(np.eye(3), id=f"{i}", now=0.0)
    return waiting, lambda: waiting.reward("1", 1.0, now=1.0)


@pytest.mark.parametrize("make", [crossed, pending])
def test_parts_that_learn_on_are_written_as_they_were(make):
    owner, learn = make()
    before, contents, (build, arguments) = op.to_bytes(owner), snapshot(owner), owner.__reduce__()
    learn()
    assert op.to_bytes(owner) != before
    assert pack(class_name(owner), contents) == before
    assert op.to_bytes(build(*arguments)) == before
