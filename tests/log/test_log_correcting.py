"""Corrections of rewards: what a linear model then knows is what the right rewards would have taught it at once."""

import numpy as np
import pytest

import onepass as op
from onepass.bandit.late_correction import is_linear, learn_correction

ARMS = ["a", "b", "c"]
EXACT = op.Exact(dim=4, reg=0.3)


def bandit_of(kind):
    if kind == "shared":
        return op.Bandit(op.Ridge(EXACT), seed=1)
    if kind == "shared, sketched":
        return op.Bandit(op.Ridge(op.FrequentDirections(dim=4, size=2, reg=0.3)), seed=1)
    if kind == "arms":
        return op.Bandit(op.Disjoint(op.Ridge(EXACT)), seed=1)
    if kind == "arms, in states":
        return op.Bandit(op.Disjoint(op.Ridge(EXACT), compact=False), seed=1)
    return op.Bandit(op.Disjoint(op.Ridge(op.FrequentDirections(dim=4, size=2, reg=0.3))), seed=1)


KINDS = ["shared", "shared, sketched", "arms", "arms, in states", "arms, sketched"]


def played(bandit, rewards, corrections=(), n=30):
    """A bandit after n rounds of any arm; corrections: (round before which it is told, of which round, by how much)."""
    rng, decisions = np.random.default_rng(3), []
    for t in range(n):
        rows = rng.standard_normal((3, 4))
        decisions.append(bandit.decide(rows, ARMS, eligible=[ARMS[t % 3]], id=f"{t}"))
        for when, which, by in corrections:
            if when == t:
                learn_correction(bandit, decisions[which], [by])
        bandit.learn(decisions[t], rewards[t])
    return bandit


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_that_is_corrected_knows_what_it_would_have_learned_at_once(kind):
    rng = np.random.default_rng(7)
    right = rng.standard_normal(30)
    wrong, corrections = right.copy(), []
    for which, when in ((2, 3), (5, 29), (11, 20), (11, 25)):  # one of them twice
        by = float(rng.standard_normal())
        wrong[which] -= by
        corrections.append((when, which, by))
    one, other = (played(bandit_of(kind), rewards.tolist(), made)
                  for rewards, made in ((right, ()), (wrong, corrections)))  # fmt: skip
    rows = rng.standard_normal((20, 3, 4))
    for x in rows:
        expected, found = (bandit.decide(x, ARMS, id="asked") for bandit in (one, other))
        np.testing.assert_allclose(found.means, expected.means, rtol=1e-9, atol=1e-11)
        np.testing.assert_array_equal(found.widths, expected.widths)  # the design is the same in every bit
    assert one.n_learned == other.n_learned == 30
    uncorrected = played(bandit_of(kind), wrong.tolist())
    assert np.abs(uncorrected.decide(rows[0], ARMS).means - one.decide(rows[0], ARMS).means).max() > 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_that_was_written_and_read_is_corrected_alike_and_copies_stay(kind):
    bandit = played(bandit_of(kind), [0.5] * 12, n=12)
    served, again = bandit.snapshot(), op.from_bytes(op.to_bytes(bandit))
    row = np.random.default_rng(5).standard_normal((3, 4))
    decision = bandit.decide(row, ARMS, k=2, id="two")
    before = served.decide(row, ARMS, id="asked").means
    for one in (bandit, again):
        one.learn(decision, [0.0, 0.0])
        learn_correction(one, decision, [1.0, None])
    assert op.to_bytes(bandit) == op.to_bytes(again)
    np.testing.assert_array_equal(served.decide(row, ARMS, id="asked").means, before)
    assert (bandit.snapshot().decide(row, ARMS, id="asked").means != before).any()


def test_models_that_are_not_linear_in_rewards_say_so():
    assert all(is_linear(bandit_of(kind)) for kind in KINDS)
    for bandit in (
        op.ContextualBandit(),
        op.InteractionBandit(),
        op.Bandit(op.Ridge(EXACT), half_life=100),
        op.Bandit(op.Disjoint(op.Ridge(EXACT)), half_life=100),
        op.Bandit(op.Hybrid(shared=op.Ridge(EXACT), arms=op.Ridge(EXACT))),
        op.Bandit(op.OnlineNewton(EXACT)),
        op.Bandit(op.Ridge(EXACT), features=op.features.Standardize(dim=4)),
    ):
        assert not is_linear(bandit), bandit
