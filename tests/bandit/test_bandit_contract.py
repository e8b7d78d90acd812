"""Every kind of bandit keeps the contract that third parties are held to."""

import pytest

import onepass as op
from onepass.testing import check_bandit

DIM = 6
BANDITS = {
    "OFUL": lambda seed: op.OFUL(dim=DIM, reg=0.37, seed=seed),
    "LinTS": lambda seed: op.LinTS(dim=DIM, reg=2.0, seed=seed),
    "SOFUL": lambda seed: op.SOFUL(dim=DIM, size=2, reg=0.37, seed=seed),
    "epsilon-greedy": lambda seed: op.Bandit(op.Ridge(op.Exact(dim=DIM, reg=2.0)), op.EpsilonGreedy(0.3), seed=seed),
    "HvtUCB": lambda seed: op.HvtUCB(dim=DIM, seed=seed),
    "CBRAP": lambda seed: op.CBRAP(dim=DIM, size=3, seed=seed),
    "standardized": lambda seed: op.Bandit(
        op.Ridge(op.Exact(dim=DIM)), features=op.features.Standardize(dim=DIM), seed=seed
    ),
    "contextual": lambda seed: op.ContextualBandit(dim=DIM, seed=seed),
    "contextual argmax": lambda seed: op.ContextualBandit(
        dim=DIM, exploration=op.UCB(1.0), n_landmarks=8, reg=0.37, warm_up=20, seed=seed
    ),
    "disjoint": lambda seed: op.OFUL(dim=DIM, reg=0.37, model="disjoint", seed=seed),
    "disjoint sketches": lambda seed: op.SOFUL(dim=DIM, size=2, reg=2.0, model="disjoint", seed=seed),
    "disjoint Thompson": lambda seed: op.LinTS(dim=DIM, reg=0.37, model="disjoint", seed=seed),
    "hybrid": lambda seed: op.LinUCB(dim=DIM, reg=0.37, model="hybrid", seed=seed),
}  # fmt: skip


@pytest.mark.parametrize("name", BANDITS)
def test_bandits_keep_the_shipped_contract(name):
    assert "keeps the contract: decisions, records" in check_bandit(BANDITS[name])
