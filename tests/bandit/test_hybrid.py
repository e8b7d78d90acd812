"""Hybrid models equal the joint regression over arms and what they share."""

import numpy as np
import pytest

import dense
import onepass as op
from arm_games import DIM, LEFT, NAMES, RIGHT, assert_close, data, factor_data, hybrid, learn_in_batches, slices
from onepass.testing import REGS

# ---- hybrid ----


@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize("reg", REGS)
def test_hybrid_equals_the_joint_ridge_regression(reg, compact):
    rows, rewards, names = data(200)
    bandit, naive = hybrid(reg, compact=compact), dense.Hybrid([*NAMES, "new"], DIM, DIM, reg, 0.5)
    offered = [*NAMES, "new"]
    for part in slices(200):
        bandit.learn(rows[part], rewards[part], names[part])
        for i in range(part.start, part.stop):
            naive.learn(rows[i], rewards[i], names[i])
        assert_close(bandit.score(rows[part.start], offered), naive.scores(np.tile(rows[part.start], (5, 1)), offered))
    assert_close(bandit.score(rows[:5], offered), naive.scores(rows[:5], offered))
    want = np.stack([naive.scores(np.tile(x, (5, 1)), offered) for x in rows[:7]])
    assert_close(bandit.score(rows[:7, None], offered), want)
    own = rows[:30].reshape(6, 5, DIM)
    assert_close(bandit.score(own, offered), np.stack([naive.scores(x, offered) for x in own]))
    decision = bandit.decide(rows[0], offered)
    np.testing.assert_allclose(decision.scores, decision.means + 0.5 * decision.widths, rtol=1e-12)


def test_hybrid_does_not_depend_on_the_order_of_rows():
    rows, rewards, names = data(120)
    order = np.random.default_rng(2).permutation(120)
    one = learn_in_batches(hybrid(), rows, rewards, names, (120,))
    other = learn_in_batches(hybrid(), rows[order], rewards[order], [names[i] for i in order], (1, 9))
    assert_close(other.score(rows[:7, None], NAMES), one.score(rows[:7, None], NAMES))


def test_hybrid_parameters_of_an_arm_are_its_means_of_unit_contexts():
    rows, rewards, names = data(100)
    bandit = learn_in_batches(hybrid(exploration=0.0), rows, rewards, names)
    for arm in NAMES:
        assert_close(bandit.model.parameter_of(arm), bandit.score(np.eye(DIM)[:, None], [arm])[:, 0])


@pytest.mark.parametrize("exploration", [0.5, -0.3])
def test_hybrid_with_factors_equals_the_joint_regression_on_products(exploration):
    left, right, rewards, names, arms = factor_data(120)
    make = lambda reduce: op.Bandit(  # noqa: E731
        op.Hybrid(
            shared=op.Ridge(op.Exact(dim=LEFT * RIGHT, reg=0.37)),
            arms=op.Ridge(op.Exact(dim=LEFT if reduce else LEFT * RIGHT, reg=0.37)),
        ),
        op.UCB(exploration),
        features=op.features.OuterProduct(left=LEFT, right=RIGHT, reduce=reduce),
    )
    bandits, offered = (make(True), make(False)), list(arms)
    full = np.einsum("ni,nj->nij", left, right).reshape(120, -1)
    naive = dense.Hybrid(offered, LEFT * RIGHT, LEFT * RIGHT, 0.37, exploration)
    for part in slices(120):
        for bandit in bandits:
            bandit.learn(op.Factors(left[part], right[part]), rewards[part], names[part])
    for i in range(120):
        naive.learn(full[i], rewards[i], names[i])
    queries, sides = np.random.default_rng(8).standard_normal((5, LEFT)), np.stack(list(arms.values()))
    want = [naive.scores(np.einsum("i,kj->kij", u, sides).reshape(len(sides), -1), offered) for u in queries]
    for bandit in bandits:
        assert_close(bandit.score(op.Factors(queries, sides), offered), np.stack(want))
        assert_close(bandit.score(op.Factors(queries[0], sides), offered), want[0])


@pytest.mark.parametrize("compact", [True, False])
def test_a_hybrid_model_over_sketches_learns_what_is_shared(compact):
    rows, rewards, names = data(1200)  # the same parameter for all arms
    parts = {
        "shared": op.Ridge(op.FrequentDirections(dim=DIM, size=6)),
        "arms": op.Ridge(op.RobustFrequentDirections(dim=DIM, size=2)),
    }
    bandit = op.Bandit(op.Hybrid(**parts, compact=compact), op.Greedy())
    learn_in_batches(bandit, rows[:1000], rewards[:1000], names[:1000])
    error = bandit.score(rows[1000:, None], [*NAMES, "new"]) - rewards[1000:, None]
    assert (error**2).mean() < 0.1 * rewards.var()
    assert bandit.error_bound() > 0.0
