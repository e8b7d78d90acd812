"""A bandit that forgot arms goes on as one from its file does: the same places are filled, in the same order."""

import numpy as np
import pytest

import onepass as op

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
