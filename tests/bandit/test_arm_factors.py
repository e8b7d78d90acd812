"""Contexts given as factors: reduced models, directions, recipes."""

import numpy as np
import pytest

import dense
import onepass as op
from arm_games import DIM, LEFT, NAMES, RIGHT, assert_close, data, factor_data, fingerprint, outer, slices
from onepass.testing import REGS


@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize("reg", REGS)
def test_reduced_factors_give_the_scores_of_the_full_products(reg, compact):
    left, right, rewards, names, arms = factor_data(200)
    bandits = outer(True, reg=reg, compact=compact), outer(False, reg=reg, compact=compact)
    naive, full = dense.Disjoint(LEFT * RIGHT, reg, 0.5), np.einsum("ni,nj->nij", left, right).reshape(200, -1)
    for part in slices(200):
        for bandit in bandits:
            bandit.learn(op.Factors(left[part], right[part]), rewards[part], names[part])
    for bandit in bandits:
        bandit.learn(op.Factors(left[0], right[0]), rewards[0], names[0])  # a single row
    for i in (*range(200), 0):
        naive.learn(full[i], rewards[i], names[i])
    users, sides = (
        np.random.default_rng(8).standard_normal((6, LEFT)),
        -1.5 * np.stack([*arms.values(), np.ones(RIGHT)]),
    )
    offered = [*arms, "new"]
    want = [naive.scores(np.einsum("i,kj->kij", u, sides).reshape(len(sides), -1), offered) for u in users]
    for bandit in bandits:
        assert_close(bandit.score(op.Factors(users, sides), offered), np.stack(want))
        assert_close(bandit.score(op.Factors(users[0], sides), offered), want[0])
    assert bandits[0].memory_usage() < bandits[1].memory_usage() / 2


def test_sketched_products_of_enough_rank_equal_the_reduced_model():
    left, right, rewards, names, arms = factor_data(200, signed=False)
    reduced = outer(True)
    sketched = outer(False, op.ProjectorSplitting(dim=LEFT * RIGHT, rank=LEFT, reg=0.37))
    for bandit in (reduced, sketched):
        for part in slices(200):
            bandit.learn(op.Factors(left[part], right[part]), rewards[part], names[part])
    users, sides = np.random.default_rng(8).standard_normal((6, LEFT)), np.stack(list(arms.values()))
    contexts = op.Factors(users, sides)
    assert_close(sketched.score(contexts, list(arms)), reduced.score(contexts, list(arms)))
    assert sketched.error_bound() <= 1e-9 * np.linalg.norm(left) ** 2 * np.square(sides).sum()  # its rounding


def test_an_arm_that_turns_is_refused_and_nothing_changes():
    left, right, rewards, names, arms = factor_data(60)
    bandit = outer(True)
    bandit.learn(op.Factors(left, right), rewards, names)
    before = fingerprint(bandit)
    turned = right.copy()
    turned[13] = turned[13] + 1e-3 if turned[13].any() else 0.0
    turned[14] = np.ones(RIGHT)
    fresh = ["brand new" if i == 0 else name for i, name in enumerate(names)]
    for contexts, arm in (
        (op.Factors(left, turned), names),
        (op.Factors(left, turned), fresh),
        (op.Factors(left[:2], np.eye(RIGHT)[:2]), ["new", "new"]),  # turns within the batch
        (op.Factors(left[14], np.ones(RIGHT)), names[14]),
    ):
        with pytest.raises(ValueError, match=r"contexts\.right must keep the direction") as error:
            bandit.learn(contexts, np.ones(len(np.atleast_2d(contexts.left))) if isinstance(arm, list) else 1.0, arm)
        assert "\n" not in str(error.value)
        assert fingerprint(bandit) == before
    sides = np.stack(list(arms.values()))[::-1]
    with pytest.raises(ValueError, match=r"contexts\.right must keep the direction"):
        bandit.score(op.Factors(left[0], sides), list(arms))
    free = outer(False)
    free.learn(op.Factors(left, turned), rewards, names)  # the full model lets arms turn
    assert free.n_learned == 60


def test_factors_in_float32_keep_their_direction_within_its_rounding():
    left, right, rewards, names, arms = factor_data(200)
    bandit, exact = outer(True, op.Exact(dim=LEFT, reg=0.37, dtype="float32")), outer(True)
    for part in slices(200):
        for one in (bandit, exact):
            one.learn(op.Factors(left[part], right[part]), rewards[part], names[part])
    contexts = op.Factors(left[:5], -1.5 * np.stack(list(arms.values())))
    # lambda_max / reg bounds the condition number; a rounding for each of LEFT products in each of ~33 updates an arm
    largest = max(np.linalg.norm(left[[a == b for b in names]], 2) ** 2 * 4.0 * v @ v for a, v in arms.items())
    tolerance = (1.0 + largest / 0.37) * LEFT * np.sqrt(33) * np.finfo(np.float32).eps
    assert tolerance < 0.02
    assert_close(bandit.score(contexts, list(arms)), exact.score(contexts, list(arms)), tolerance)


def test_a_removed_arm_may_come_back_with_another_direction():
    bandit = outer(True)
    bandit.learn(op.Factors(np.ones(LEFT), [1.0, 0.0, 0.0]), 1.0, "a")
    bandit.remove_arm("a")
    bandit.learn(op.Factors(np.ones(LEFT), [0.0, 1.0, 0.0]), 1.0, "a")
    want = dense.Disjoint(LEFT, 0.37, 0.5)
    want.learn(np.ones(LEFT), 1.0, "a")
    got = bandit.score(op.Factors(np.ones(LEFT), [[0.0, 3.0, 0.0]]), ["a"])
    assert_close(got, 3.0 * want.scores(np.ones((1, LEFT)), ["a"]))


@pytest.mark.parametrize("candidates", [RIGHT - 1, 9])
@pytest.mark.parametrize("rule", [op.UCB(0.5), op.SingleDrawThompson(0.5), op.Greedy(), op.UCB(op.Theory())], ids=repr)
def test_a_shared_model_of_factors_equals_one_of_products(rule, candidates):
    rng = np.random.default_rng(4)
    left, right, rewards = rng.standard_normal((50, LEFT)), rng.standard_normal((50, RIGHT)), rng.standard_normal(50)
    features = op.features.OuterProduct(left=LEFT, right=RIGHT)
    factors = op.Bandit(op.Ridge(op.Exact(dim=LEFT * RIGHT, reg=0.37)), rule, features=features, seed=2)
    products = op.Bandit(op.Ridge(op.Exact(dim=LEFT * RIGHT, reg=0.37)), rule, seed=2)
    factors.learn(op.Factors(left, right), rewards)
    products.learn(np.einsum("ni,nj->nij", left, right).reshape(50, -1), rewards)
    users, sides = left[:5], right[:candidates]
    full = np.einsum("ni,kj->nkij", users, sides).reshape(5, candidates, -1)
    assert_close(factors.score(op.Factors(users, sides)), products.score(full))
    assert_close(factors.score(op.Factors(users[0], sides)), products.score(full[0]))
    for i in range(5):  # the same stream of random numbers
        got, want = factors.decide(op.Factors(users[i], sides), k=2), products.decide(full[i], k=2)
        assert_close(got.scores, want.scores)
        assert got.arms == want.arms
    got = factors.recommend(op.Factors(users, sides), 2)
    assert got.arms == [list(np.argsort(-scores)[:2]) for scores in factors.score(op.Factors(users, sides))]


def test_recipes_take_factors_and_parameters_by_name():
    left, right, rewards, names, arms = factor_data(80)
    sides = np.stack(list(arms.values()))
    for parameters in ("disjoint", "hybrid"):
        for recipe, options in (
            (op.LinUCB, {}), (op.LinTS, {}), (op.SOFUL, {"size": 3}), (op.CBSCFD, {"size": 9}),
            (op.PSILinUCB, {"rank": 9}), (op.DBSLinUCB, {"size": 2, "error": 4.0}),
        ):  # fmt: skip
            bandit = recipe(dim=(LEFT, RIGHT), model=parameters, **options)
            bandit.learn(op.Factors(left, right), rewards, names)
            assert bandit.score(op.Factors(left[:2], sides), list(arms)).shape == (2, len(arms))
            assert bandit.model.estimator.arms.design.dim == LEFT
    bandit = op.CBRAP(dim=DIM, size=3, model="disjoint", seed=4)
    rows, rewards, names = data(50)
    bandit.learn(rows, rewards, names)
    naive = dense.Disjoint(3, 1.0, 0.1)
    matrix = np.random.RandomState(4).standard_normal((DIM, 3)) / np.sqrt(3.0)
    for row, reward, name in zip(rows, rewards, names, strict=True):
        naive.learn(row @ matrix, reward, name)
    assert_close(bandit.score(rows[:4], NAMES), naive.scores(rows[:4] @ matrix, NAMES))
    assert bandit.error_bound() == np.inf
