"""Rows that the design given holds already are the prior of every arm, as they are of a shared model."""

import numpy as np
import pytest

import dense
import onepass as op

DIM, REG = 6, 0.37
DESIGNS = {  # exact on the rows below, of rank 3
    "Exact": lambda: op.Exact(dim=DIM, reg=REG),
    "FrequentDirections": lambda: op.FrequentDirections(dim=DIM, size=3, reg=REG),
    "RobustFrequentDirections": lambda: op.RobustFrequentDirections(dim=DIM, size=3, reg=REG),
    "ProjectorSplitting": lambda: op.ProjectorSplitting(dim=DIM, rank=3, reg=REG),
    "Dyadic": lambda: op.Dyadic(dim=DIM, size=1, error=8.0, reg=REG),
}


def learned(name, compact, count=40):
    """A bandit whose arms begin with 20 rows, and the naive one."""
    rng = np.random.default_rng(0)
    plane = rng.standard_normal((3, DIM))
    before, rows = rng.standard_normal((20, 3)) @ plane, rng.standard_normal((count, 3)) @ plane
    rewards, names = rows[:, 0] + 0.1 * rng.standard_normal(count), [i % 3 for i in range(count)]
    bandit = op.Bandit(op.Disjoint(op.Ridge(DESIGNS[name]().append(before)), compact=compact), op.UCB(0.5))
    naive = dense.Disjoint(DIM, REG, 0.5)
    begun = naive.fresh

    def fresh():
        arm = begun()
        arm.matrix = arm.matrix + before.T @ before
        return arm

    naive.fresh = fresh
    bandit.learn(rows[:30], rewards[:30], names[:30])
    for i in range(30, count):
        bandit.learn(rows[i], rewards[i], names[i])
    for row, reward, name in zip(rows, rewards, names, strict=True):
        naive.learn(row, reward, name)
    return bandit, naive, plane


@pytest.mark.parametrize("compact", [None, False])
@pytest.mark.parametrize("name", DESIGNS)
def test_arms_begin_with_the_rows_that_their_design_holds(name, compact, tmp_path):
    bandit, naive, plane = learned(name, compact)
    bandit.add_arm("known")
    queries = np.random.default_rng(1).standard_normal((5, DIM))
    for removed in (False, True):
        arms = [0, 1, 2, "known", "unknown"]
        for x in (*plane, *queries):
            want = naive.scores(np.tile(x, (5, 1)), arms)
            np.testing.assert_allclose(bandit.score(x, arms), want, atol=1e-8 * np.abs(want).max())
        want = np.stack([naive.scores(np.tile(x, (5, 1)), arms) for x in queries])
        np.testing.assert_allclose(bandit.score(queries[:, None], arms), want, atol=1e-8 * np.abs(want).max())
        if not removed:
            bandit.remove_arm(1)
            naive.remove(1)
            bandit.save(tmp_path / "model")
            bandit = op.load(tmp_path / "model")


def test_contexts_given_as_factors_know_the_prior_too():
    rng = np.random.default_rng(2)
    left, right = rng.standard_normal((4, 2)), rng.standard_normal((3, 3))
    before = rng.standard_normal((9, DIM))
    design = op.Exact(dim=DIM, reg=REG).append(before)
    bandit = op.Bandit(
        op.Disjoint(op.Ridge(design)), op.UCB(0.5), features=op.features.OuterProduct(left=2, right=3, reduce=False)
    )
    bandit.learn(op.Factors(left[:1], right[:1]), [1.0], ["a"])
    inverse = np.linalg.inv(REG * np.eye(DIM) + before.T @ before)
    for users in (left[0], left):
        scores = np.atleast_2d(bandit.score(op.Factors(users, right), ["a", "b", "c"]))
        for i, user in enumerate(np.atleast_2d(users)):
            for a in (1, 2):
                x = np.outer(user, right[a]).ravel()
                np.testing.assert_allclose(scores[i, a], 0.5 * np.sqrt(x @ inverse @ x), rtol=1e-9)
