"""Every model keeps the contract: `check_model` of each, at several regularizations."""

import numpy as np
import pytest

import onepass as op
from onepass.testing import REGS, check_model

DIM, ARMS = 4, ["a", "b", "c"]
LEFT, RIGHT = 2, 3


def rows(rng):
    return rng.standard_normal((len(ARMS), DIM))


def row(rng):
    return rng.standard_normal(DIM)


def shared(reg, **more):
    return lambda: op.model.SharedModel(op.Ridge(op.Exact(dim=DIM, reg=reg)), **more)


def arms(reg, **more):
    return lambda: op.model.ArmModels(op.Disjoint(op.Ridge(op.Exact(dim=DIM, reg=reg)), **more))


def hybrid(reg):
    make = lambda: op.Ridge(op.Exact(dim=DIM, reg=reg))  # noqa: E731
    return lambda: op.model.ArmModels(op.Hybrid(shared=make(), arms=make()))


def factors(reg):
    features = op.features.OuterProduct(left=LEFT, right=RIGHT)
    return lambda: op.model.SharedModel(op.Ridge(op.Exact(dim=LEFT * RIGHT, reg=reg)), features)


def users(rng):
    return op.Factors(rng.standard_normal(LEFT), rng.standard_normal((len(ARMS), RIGHT)))


def pair(context, place):
    return op.Factors(context.left, context.right[place]), None


def kernel(reg, fixed=False, budget=None):
    points = np.random.default_rng(0).standard_normal((len(ARMS), DIM)) if fixed else None
    make = lambda: op.model.KernelModel(points, op.RBF(2.0), reg=reg, budget=budget)  # noqa: E731
    return (make, lambda rng: None, None, lambda context, place: (None, place)) if fixed else (make, rows, None, None)


RECORDS = {"a": {"topic": "sport", "length": 3.0}, "b": {"topic": "news"}, "c": {"topic": "food", "length": None}}
SMALL = {"warm_up": 16, "n_landmarks": 4}


def record(rng):
    return {"hour": int(rng.integers(24)), "country": ("de", "fr")[rng.integers(2)], "x": float(rng.standard_normal())}


def action(context, index):
    return context, 1.0 + index % 8


def averaged(reg, **more):
    return lambda: op.model.AveragedModels(reg=reg, **SMALL, **more)


def auto(reg):
    return lambda: op.model.AutoModel(reg=reg, **SMALL)


MODELS = {
    "shared": lambda reg: (shared(reg), rows, None, None),
    "shared, standardized": lambda reg: (shared(reg, features=op.features.Standardize(dim=DIM)), rows, None, None),
    "shared, forgetting": lambda reg: (shared(reg, half_life=20.0), rows, None, None),
    "shared, clicks": lambda reg: (
        lambda: op.model.SharedModel(op.OnePassGLM(op.Exact(dim=DIM, reg=reg), family="identity")), rows, None, None
    ),
    "shared, sketched": lambda reg: (
        lambda: op.model.SharedModel(op.Ridge(op.RobustFrequentDirections(dim=DIM, size=2, reg=reg))), rows, None, None
    ),
    "factors": lambda reg: (factors(reg), users, None, pair),
    "disjoint": lambda reg: (arms(reg), row, ARMS, None),
    "disjoint, one state an arm": lambda reg: (arms(reg, compact=False), row, ARMS, None),
    "hybrid": lambda reg: (hybrid(reg), row, ARMS, None),
    "kernel": kernel,
    "kernel, fixed arms": lambda reg: kernel(reg, fixed=True),
    "kernel, a budget": lambda reg: kernel(reg, budget=op.model.Budget()),
    "kernel, fixed arms, a budget": lambda reg: kernel(reg, fixed=True, budget=op.model.Budget(incremental=True)),
    "interaction": lambda reg: (op.model.InteractionModel, record, RECORDS, None),
    "interaction, names": lambda reg: (op.model.InteractionModel, record, ARMS, None),
    "interaction, rows": lambda reg: (op.model.InteractionModel, row, RECORDS, None),
    "averaged, rows": lambda reg: (averaged(reg), row, ARMS, None),
    "averaged, records": lambda reg: (averaged(reg, context=op.Records(size=32)), record, ARMS, None),
    "interval": lambda reg: (
        lambda: op.model.IntervalModel(op.Interval(1.0, 9.0, log=True)), record, op.Interval(1.0, 9.0, log=True), action
    ),
    "auto, rows": lambda reg: (auto(reg), row, ARMS, None),
    "auto, records": lambda reg: (auto(reg), record, ARMS, None),
    "auto, features": lambda reg: (auto(reg), record, RECORDS, None),
}  # fmt: skip


@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("name", MODELS)
def test_a_model_keeps_the_contract(name, reg):
    make, context, names, observe_arm = MODELS[name](reg)
    assert "keeps the contract" in check_model(make, context, names, observe_arm=observe_arm)


@pytest.mark.parametrize("draws", [4, 100])  # fewer and more than the columns of an arm: directions, or arms together
def test_top_two_sampling_chooses_alike_from_factors_and_from_their_rows(draws):
    rng, rounds = np.random.default_rng(5), 40
    make = lambda **more: op.Bandit(  # noqa: E731
        op.Ridge(op.Exact(dim=LEFT * RIGHT, reg=0.3)), exploration=op.TopTwo(draws=draws), seed=7, **more
    )
    factors, rows = make(features=op.features.OuterProduct(left=LEFT, right=RIGHT)), make()
    left, right, rewards = (rng.standard_normal((rounds, n)) for n in (LEFT, RIGHT, 1))
    factors.learn(op.Factors(left, right), rewards[:, 0])
    rows.learn(outer(left, right), rewards[:, 0])
    user, arms = rng.standard_normal(LEFT), rng.standard_normal((9, RIGHT))
    one, other = factors.decide(op.Factors(user, arms)), rows.decide(outer(np.tile(user, (9, 1)), arms))
    assert one.probabilities.shape == other.probabilities.shape == (9,)
    if draws == 4:  # the same random numbers: the same choice
        np.testing.assert_allclose(one.probabilities, other.probabilities, atol=1e-12)
    np.testing.assert_allclose(one.means, other.means, atol=1e-12)


def outer(left, right):
    return np.einsum("ti,tj->tij", left, right).reshape(len(left), -1)
