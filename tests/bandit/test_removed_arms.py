"""A bandit that forgot arms goes on as one from its file does: the same places are filled, in the same order.

An arm is forgotten by the bandit alone, which notes it.
"""

import numpy as np
import pytest

import onepass as op
from onepass.model import ArmHeads

DIM = 4
RIDGE = {
    "sketch": lambda: op.Ridge(op.FrequentDirections(dim=DIM, size=2, reg=0.37)),
    "exact": lambda: op.Ridge(op.Exact(dim=DIM, reg=0.37)),
}
KINDS = {
    "compact": lambda one: op.Bandit(op.Disjoint(one)),
    "separate": lambda one: op.Bandit(op.Disjoint(one, compact=False)),
}


@pytest.mark.parametrize("ridge", RIDGE)
@pytest.mark.parametrize("kind", KINDS)
def test_a_bandit_that_forgot_arms_and_its_copy_from_a_file_stay_the_same_bytes(kind, ridge):
    rng, bandit = np.random.default_rng(0), KINDS[kind](RIDGE[ridge]())
    names = [f"a{i}" for i in range(12)]
    for turn in range(6):
        for name in rng.permutation(names)[:9]:
            bandit.learn(rng.standard_normal(DIM), 1.0, arm=str(name))
        for name in rng.permutation(list(bandit.arms))[:5]:
            bandit.remove_arm(str(name))
        again = op.from_bytes(op.to_bytes(bandit))
        for name in rng.permutation(names)[: 3 + turn]:
            row = rng.standard_normal(DIM)
            for one in (bandit, again):
                one.learn(row, 0.5, arm=str(name))
        assert op.to_bytes(again) == op.to_bytes(bandit)


def learned(bandit, offer=str):
    for i, row in enumerate(np.eye(DIM)):
        bandit.learn(row, 1.0, arm=offer(f"a{i}"))
    return bandit


OWNERS = {
    "ArmModels": lambda: learned(op.LinUCB(dim=DIM, model="disjoint")),
    "ArmHeads": lambda: learned(op.Bandit(ArmHeads(op.Exact(dim=DIM)))),
    "AutoModel": op.ContextualBandit,
    "AveragedModels": lambda: learned(op.ContextualBandit()),
    "InteractionModel": lambda: learned(op.InteractionBandit(), lambda name: {name: {"size": 1.0}}),
    "WarmStart": lambda: op.warm_start(op.ContextualBandit(), learned(op.ContextualBandit())),
}


@pytest.mark.parametrize("kind", OWNERS)
def test_the_bandit_removes_arms_and_its_model_refuses_a_call_behind_its_back(kind):
    bandit = OWNERS[kind]()
    if kind == "AutoModel":
        bandit.add_arm("a0")
    for one in (bandit, bandit.copy(), op.from_bytes(op.to_bytes(bandit))):
        before = op.to_bytes(one)
        with pytest.raises(RuntimeError, match=f"remove_arm must be called on the Bandit that owns this {kind}"):
            one.model.remove_arm("a0")
        assert op.to_bytes(one) == before
        one.remove_arm("a0")
        assert "a0" not in one.arms
        assert one.has_removed("a0", since=-1)


def test_an_arm_may_be_removed_from_a_model_that_no_bandit_owns():
    model = learned(op.LinUCB(dim=DIM, model="disjoint")).model.copy()
    model.remove_arm("a0")
    assert model.arms == ("a1", "a2", "a3")


def test_a_removal_under_another_exploration_rule_is_known_to_both_bandits():
    bandit = learned(op.LinUCB(dim=DIM, model="disjoint"))
    bandit.with_exploration(op.Greedy()).remove_arm("a0")
    assert bandit.has_removed("a0", since=DIM - 1)
