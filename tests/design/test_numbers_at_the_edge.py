"""Rows of any scale: finite answers within the certificate, for every design; widths that keep their digits."""

import warnings

import numpy as np
import pytest
from numba import njit

import onepass as op
from counts import repetitions
from edge_families import DESIGNS, DIM, SCALES, families
from onepass.design import contract

SMALL = {"float64": 1e-9, "float32": 1e-3}  # of ||A||: what the sums of these tests are known to


def answers(design):
    eye = np.eye(DIM)
    solved = np.array([design.solve(e) for e in eye])
    return solved, design.inverse_quadratic(eye), design.root(np.ones(DIM)), np.array(design.log_det())


@pytest.mark.parametrize("dtype", SCALES)
@pytest.mark.parametrize("name", DESIGNS)
def test_rows_of_any_scale_leave_finite_answers_within_the_certificate(name, dtype):
    for reg in (1.0, 1e-3):
        for kind, given in families(dtype, repetitions(200, 100_000)):
            rows = given.astype(dtype)
            truth = reg * np.eye(DIM, dtype=np.longdouble)
            truth += rows.astype(np.longdouble).T @ rows.astype(np.longdouble)
            for parts in ([*rows[:40], rows[40:]], np.array_split(rows, 7)):
                design = DESIGNS[name](dim=DIM, reg=reg, dtype=dtype)
                with np.errstate(all="ignore"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # overflow of what is certified to be unknown
                    for part in parts:
                        design.append(part)
                    held, bound = design.matrix(), design.error_bound()
                where = f"{design!r} on {kind} rows"
                assert all(np.isfinite(answer).all() for answer in answers(design)), where
                assert (design.inverse_quadratic(np.eye(DIM)) >= 0.0).all(), where
                assert np.isfinite(held).all(), where
                np.testing.assert_array_equal(op.from_bytes(op.to_bytes(design)).matrix(), held, where)
                gap = float(np.abs(truth - held).max())
                assert gap <= bound + SMALL[dtype] * float(np.abs(truth).max()), (where, gap, bound)
                if np.abs(rows).max() <= 1e-6 * np.sqrt(reg) / np.finfo(dtype).eps:  # else a root has no digits for it
                    assert (design.inverse_quadratic(rows[-3:]) <= 1.0 + bound / reg + SMALL[dtype]).all(), where


ESTIMATORS = {
    "Ridge": lambda design: op.Ridge(design),
    "OnlineNewton": lambda design: op.OnlineNewton(design),
    "OnePassHuber": lambda design: op.OnePassHuber(design, nu=0.1, parameter_bound=3.0),
    "OnePassTruncation": lambda design: op.estimator.OnePassTruncation(design),
}


@pytest.mark.parametrize("compact", [None, False])
@pytest.mark.parametrize("name", ["Exact", "FrequentDirections", "ProjectorSplitting"])
def test_arms_stay_finite_on_rows_of_any_scale(name, compact):
    for kind, rows in families("float64", repetitions(60, 10_000)):
        estimator = op.Ridge(DESIGNS[name](dim=DIM, reg=1.0, dtype="float64"))
        bandit = op.Bandit(op.Disjoint(estimator, compact=compact), op.UCB(0.1))
        bandit.learn(rows[:30], np.ones(30), [i % 2 for i in range(30)])
        for i in range(30, len(rows)):
            bandit.learn(rows[i], 1.0, i % 2)
        decision = bandit.decide(np.ones((1, 1, DIM)), [0, 1, 2])
        assert np.isfinite(decision.scores).all(), (name, kind)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_stay_finite_on_rows_that_an_inverse_resolves(name):
    """Up to sqrt(reg) / eps: beside longer rows a root in double precision has no digits left for the others."""
    for kind, rows in families("float64", repetitions(100, 100_000), top=14):
        bandit = op.Bandit(ESTIMATORS[name](op.Exact(dim=DIM, reg=1.0)), op.UCB(0.1))
        bandit.learn(rows, np.ones(len(rows)))
        assert np.isfinite(bandit.model.parameter).all(), (name, kind)


@njit
def one_by_one(state, rows):
    for i in range(rows.shape[0]):
        state = contract.append(state, rows[i])
    return state


@pytest.mark.parametrize("spanned", [20, 10])
@pytest.mark.parametrize("single", [True, False])
def test_widths_after_long_rows_and_then_short_ones_are_those_of_a_fresh_factorization(single, spanned):
    """Rows of length 1, and then as many of length 1e-6: at 10^6 of each they agreed to 1.4e-12."""
    dim, reg, rng = 20, 1e-3, np.random.default_rng(0)
    design, triangle = op.Exact(dim=dim, reg=reg), np.sqrt(reg) * np.eye(dim)
    basis = np.linalg.qr(rng.standard_normal((dim, dim)))[0][:spanned]
    for k in range(20):
        rows = (
            rng.standard_normal((repetitions(5_000, 100_000), spanned)) @ basis
            if k < 10
            else rng.standard_normal((repetitions(5_000, 100_000), dim))
        )
        rows *= (1.0 if k < 10 else 1e-6) / np.linalg.norm(rows, axis=1, keepdims=True)
        if single:
            design.state = one_by_one(design.state, rows)
        else:
            design.append(rows)
        triangle = np.linalg.qr(np.vstack([triangle, np.linalg.qr(rows, mode="r")]), mode="r")
    queries = np.vstack([np.eye(dim), np.linalg.svd(basis)[2]])
    fresh = np.sum(np.linalg.solve(triangle.T, queries.T) ** 2, axis=0)
    np.testing.assert_allclose(design.inverse_quadratic(queries), fresh, rtol=1e-6)
