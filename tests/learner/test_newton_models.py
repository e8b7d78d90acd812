"""Newton steps as the shared part of hybrid models, in the recipes, and under every rule of exploration."""

import numpy as np
import pytest

import onepass as op
from arm_games import DIM, NAMES, assert_close, data, learn_in_batches

FD = {"dim": DIM, "size": 2, "reg": 0.37}
RECIPES = {
    "SOFUL": (op.SOFUL, {"size": 2}, lambda: op.FrequentDirections(**FD)),
    "CBSCFD": (op.CBSCFD, {"size": 2}, lambda: op.RobustFrequentDirections(**FD)),
    "DBSLinUCB": (op.DBSLinUCB, {"size": 2, "error": 3.0}, lambda: op.Dyadic(**FD, error=3.0)),
    "PSILinUCB": (op.PSILinUCB, {"rank": 2}, lambda: op.ProjectorSplitting(dim=DIM, rank=2, reg=0.37)),
}


def hybrid(shared, arms=None):
    return op.Bandit(op.Hybrid(shared=shared, arms=op.Ridge(op.Exact(dim=DIM, reg=0.37)) if arms is None else arms))


# ---- hybrid models ----


def test_a_shared_part_by_newton_steps_is_the_joint_ridge_regression_where_nothing_is_cut(tmp_path):
    rows, rewards, names = data(120)
    newton, ridge = (
        learn_in_batches(hybrid(kind(op.Exact(dim=DIM, reg=0.37))), rows, rewards, names)
        for kind in (op.OnlineNewton, op.Ridge)
    )
    assert_close(newton.score(rows[:9, None], NAMES), ridge.score(rows[:9, None], NAMES))
    newton.save(tmp_path / "hybrid")
    assert np.array_equal(op.load(tmp_path / "hybrid").score(rows[0], NAMES), newton.score(rows[0], NAMES))
    explained = newton.explain(rows[0], arms=NAMES)
    assert_close(sum(term.contribution for term in explained.terms), explained.mean)


def test_a_shared_part_by_newton_steps_learns_what_exact_arms_leave_of_every_row():
    rows, rewards, names = data(120)
    design = op.FrequentDirections(**FD)
    whole, alone = (
        learn_in_batches(hybrid(op.OnlineNewton(design)), rows, rewards, names),
        op.OnlineNewton(design).begin(),
    )
    arms = {name: (0.37 * np.eye(DIM), np.zeros((DIM, DIM)), np.zeros(DIM)) for name in NAMES}
    for x, reward, name in zip(rows, rewards, names, strict=True):
        a, b, moment = arms[name]
        seen = np.linalg.solve(a, x)
        weight = 1.0 / np.sqrt(1.0 + x @ seen)
        left, target = (x - seen @ b) * weight, (reward - seen @ moment) * weight
        alone = op.estimator.contract.update(alone, left, float(target))
        arms[name] = a + np.outer(x, x), b + np.outer(x, x), moment + reward * x
    assert_close(whole.model.state.shared.theta, alone.theta, 1e-8)


def test_arms_of_hybrid_models_stay_ridge_regression_and_the_message_says_why():
    ridge, newton = op.Ridge(op.Exact(dim=DIM)), op.OnlineNewton(op.Exact(dim=DIM))
    with pytest.raises(
        ValueError, match=r"^arms must be Ridge.*Newton steps.*use Disjoint.*or OnlineNewton for the sha"
    ):
        op.Hybrid(shared=ridge, arms=newton)
    with pytest.raises(ValueError, match=r"^shared must be Ridge\(design\) or OnlineNewton"):
        op.Hybrid(shared=op.OnePassHuber(op.Exact(dim=DIM)), arms=ridge)


def test_hybrid_models_that_share_by_newton_steps_merge_where_their_arms_differ():
    rows, rewards, _ = data(60)
    make = lambda: hybrid(op.OnlineNewton(op.Exact(dim=DIM, reg=0.37)))  # noqa: E731
    one, two, whole = make(), make(), make()
    for bandit, names in ((one, ["a"] * 30), (whole, ["a"] * 30)):
        bandit.learn(rows[:30], rewards[:30], names)
    for bandit in (two, whole):
        bandit.learn(rows[30:], rewards[30:], ["b"] * 30)
    assert_close(one.copy().merge(two).score(rows[:9, None]), whole.score(rows[:9, None]))
    with pytest.raises(TypeError, match="merge is not defined for OnlineNewton beside arms that both know"):
        one.merge(one.copy())


# ---- recipes ----


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_takes_newton_steps_in_place_of_ridge_regression(name):
    recipe, options, design = RECIPES[name]
    models = {"shared": lambda estimator: estimator, "disjoint": op.Disjoint}
    for parameters, model in models.items():
        for estimator, kind in (("ridge", op.Ridge), ("newton", op.OnlineNewton)):
            bandit = recipe(dim=DIM, reg=0.37, estimator=estimator, model=parameters, **options)
            assert repr(bandit.model.estimator) == repr(model(kind(design())))
        default = recipe(dim=DIM, model=parameters, **options)
        assert repr(default.model.estimator).count("Ridge(") == 1
    both = recipe(dim=DIM, reg=0.37, estimator="newton", model="hybrid", **options).model.estimator
    assert (type(both.shared), type(both.arms)) == (op.OnlineNewton, op.Ridge)
    with pytest.raises(ValueError, match="estimator must be one of 'ridge', 'newton'"):
        recipe(dim=DIM, estimator="huber", **options)


# ---- rules ----


@pytest.mark.parametrize(
    "rule", [op.SingleDrawThompson(0.1), op.Thompson(), op.InverseGap(op.Theory(noise=0.1))], ids=repr
)
def test_every_rule_draws_by_newton_steps_on_sketches_shared_and_per_arm(rule):
    rng = np.random.default_rng(3)
    theta, rows = rng.standard_normal((4, DIM)), rng.standard_normal((120, DIM)) / np.sqrt(np.arange(1, DIM + 1))
    own = rng.standard_normal((120, 4, DIM))
    newton = op.OnlineNewton(op.FrequentDirections(**FD))
    for model in (newton, op.Disjoint(newton)):
        bandit, paid, offered = op.Bandit(model, rule, seed=1), [], []
        for x, each in zip(rows, own, strict=True):
            rewards = each @ theta[0] if model is newton else theta @ x
            decision = bandit.decide(each) if model is newton else bandit.decide(x, range(4))
            assert np.sum(decision.probabilities) == pytest.approx(1.0)
            bandit.learn(decision, float(rewards[decision.index]))
            paid.append(rewards[decision.index])
            offered.append((rewards.mean(), rewards.max()))
        mean, best = np.mean(offered[60:], axis=0)
        assert np.mean(paid[60:]) > mean + 0.5 * (best - mean)  # half of what there is to gain over a uniform choice
