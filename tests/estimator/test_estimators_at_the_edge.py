"""Rows and rewards of any scale under every estimator on every design: finite, loadable, and right where A has digits.

A score or a parameter that the numbers cannot hold is one FloatingPointError, and changes nothing.
"""

import math
import warnings

import numpy as np
import pytest

import onepass as op
from counts import LONG, repetitions
from edge_families import DESIGNS, DIM, families
from onepass.estimator.newton import project_onto_ball
from onepass.foundation.state import leaves

ESTIMATORS = {
    "Ridge": lambda design: op.Ridge(design),
    "OnlineNewton": lambda design: op.OnlineNewton(design),
    "OnePassHuber": lambda design: op.OnePassHuber(design),
    "OnePassHuber, ball": lambda design: op.OnePassHuber(design, nu=0.1, parameter_bound=3.0),
    "OnePassTruncation": lambda design: op.estimator.OnePassTruncation(design),
    "OnePassTruncation, ball": lambda design: op.estimator.OnePassTruncation(design, clip=1e12, parameter_bound=3.0),
    "OnePassMedian": lambda design: op.estimator.OnePassMedian(design, repeats=1),
    "OnePassMedian, ball": lambda design: op.estimator.OnePassMedian(design, repeats=1, parameter_bound=3.0),
    "MedianOfMeans": lambda design: op.estimator.MedianOfMeans(design, repeats=2),
    "AdaptiveHuber": lambda design: op.estimator.AdaptiveHuber(design, nu=0.1, parameter_bound=3.0),
    "TruncatedRidge": lambda design: op.estimator.TruncatedRidge(design, clip=10.0),
}
KEEPING = ("AdaptiveHuber", "TruncatedRidge")  # all rows ever learned, and exact designs only
EVERY = [
    (estimator, design, dtype)
    for dtype in ("float64", "float32")
    for design in DESIGNS
    for estimator in ESTIMATORS
    if design == "Exact" or estimator not in KEEPING
]
CASES = [
    (estimator, design, dtype)
    for estimator, design, dtype in EVERY
    if LONG
    or (design == "Exact" and dtype == "float64" and estimator not in ("MedianOfMeans", "TruncatedRidge"))
    or (estimator == "OnlineNewton" and (design, dtype) in (("ProjectorSplitting", "float64"), ("Exact", "float32")))
    or (estimator == "Ridge" and (design, dtype) == ("ProjectorSplitting", "float64"))
]
BATCH = 20  # rows learned one by one, before the others in one batch


def rewards(count):
    rng = np.random.default_rng(1)
    yield "ones", np.ones(count)
    yield "of 1e12", np.full(count, 1e12)
    yield "of 1e-300", np.full(count, 1e-300)
    yield "of all scales", np.where(rng.random(count) < 0.5, -1.0, 1.0) * 10.0 ** rng.uniform(-300, 12, count)
    yield "zero", np.zeros(count)


def finite(state):
    """Whether all numbers are, but for marks and bounds that may be infinite."""
    may = ("marks", "parameter_bound")
    return all(np.isfinite(np.asarray(value, float)).all() for path, value in leaves(state) if not path.endswith(may))


def answered(ask):
    """Whether it is answered with finite numbers, or with the one error that says that they would not be."""
    try:
        return np.isfinite(ask()).all()
    except FloatingPointError as error:
        return "not finite" in str(error)


@pytest.mark.parametrize(("name", "design", "dtype"), CASES)
def test_a_state_stays_finite_and_an_answer_is_finite_or_refused(name, design, dtype):
    count = repetitions(80, 2_000) if name in KEEPING else repetitions(120, 100_000)
    for reg in (1.0, 1e-3):
        for kind, given in families(dtype, count):
            rows = given.astype(dtype)
            rows = np.repeat(rows[::2], 2, axis=0)[:count] if name == "MedianOfMeans" else rows
            for paid, values in rewards(count):
                where = f"{name} on {design} in {dtype}, reg={reg}, {kind} rows, rewards {paid}"
                bandit = op.Bandit(ESTIMATORS[name](DESIGNS[design](dim=DIM, reg=reg, dtype=dtype)), op.UCB(0.1))
                with np.errstate(all="ignore"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    for i in range(BATCH):
                        bandit.learn(rows[i], float(values[i]))
                    bandit.learn(rows[BATCH:], values[BATCH:].astype(dtype))
                    assert finite(bandit.model.state), where
                    assert answered(lambda bandit=bandit: bandit.model.parameter), where
                    for asked in (np.ones((2, DIM)), np.eye(DIM), rows[-3:]):
                        assert answered(lambda b=bandit, x=asked: b.score(x)), where
                        assert answered(lambda b=bandit, x=asked: b.decide(x).scores), where
                    op.from_bytes(op.to_bytes(bandit))


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if "Huber" not in name and name != "TruncatedRidge"])
def test_rows_in_other_units_give_the_parameter_in_those_units_bit_for_bit(name):
    """x -> c x, reg -> c^2 reg, S -> S / c with c a power of two: theta -> theta / c."""
    rng = np.random.default_rng(2)
    rows, values = rng.standard_normal((60, DIM)), 3.0 * rng.standard_normal(60)
    rows = np.repeat(rows[::2], 2, axis=0) if name == "MedianOfMeans" else rows

    def learned(exponent):
        unit = math.ldexp(1.0, exponent)
        estimator = ESTIMATORS[name](op.Exact(dim=DIM, reg=0.25 * unit * unit))
        if name.endswith("ball"):
            params = {k: v for k, v in estimator.params().items() if k != "design"}
            estimator = type(estimator)(estimator.design, **{**params, "parameter_bound": 0.5 / unit})
        bandit = op.Bandit(estimator, op.UCB(0.1))
        for row, value in zip(rows[:30], values[:30], strict=True):
            bandit.learn(row * unit, float(value))
        bandit.learn(rows[30:] * unit, values[30:])
        return bandit.model.parameter * unit

    for exponent in (-400, -30, 30, 400):
        np.testing.assert_array_equal(learned(exponent), learned(0))


def test_a_projection_onto_the_ball_is_that_of_a_dense_search_at_any_scale():
    """argmin over ||theta'|| <= S of ||theta' - theta||_A by bisection of mu in (A + mu I) theta' = A theta."""
    rng = np.random.default_rng(3)
    for low, top in ((-3, 3), (-140, -134), (130, 136), (-60, 60)):
        spread = 10.0 ** rng.uniform(low, top, DIM)
        turn = np.eye(DIM) if top - low > 10 else np.linalg.qr(rng.standard_normal((DIM, DIM)))[0]
        values, design = spread**2, op.Exact(dim=DIM)
        design.state = design.state._replace(root=np.ascontiguousarray(turn.T / spread))
        theta, bound = turn.T @ rng.standard_normal(DIM), 0.3
        inside, small, big = turn @ theta, values.min() * 1e-30, values.max() * 1e30
        for _ in range(2000):
            shift = math.sqrt(small) * math.sqrt(big)
            outside = np.linalg.norm(inside * (values / (values + shift))) > bound
            small, big = (shift, big) if outside else (small, shift)
        expected = turn.T @ (inside * (values / (values + small)))
        found = theta.copy()
        assert project_onto_ball(design.state, found, bound)
        np.testing.assert_allclose(found, expected, atol=1e-8 * bound)


def test_a_parameter_that_is_not_finite_is_one_error_of_both_bandits():
    """Rows of 1e140 and rewards of 1e140 at reg = 1e-100: theta is at most 1e190, a moment 1e280, A^-1 b a double."""
    shared = op.Bandit(op.Ridge(op.FrequentDirections(dim=4, size=1, reg=1e-100)), op.UCB(0.1))
    arms = op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=4, reg=1e-100)), compact=False), op.UCB(0.1))
    row = np.full(4, 1e140)
    shared.learn(np.stack([row * [1, 2, 3, 4], row * [4, -3, 2, 1]] * 3), np.full(6, 1e140))
    arms.learn(row, 1e140, "a")
    arms.learn(row * [1, -1, 1, -1], 1e140, "a")
    for ask in (lambda: shared.model.parameter, lambda: arms.model.parameter_of("a"), lambda: shared.score(row[None])):
        assert answered(ask)
    with pytest.raises(FloatingPointError, match="the parameter is not finite"):
        assert shared.model.parameter is None
