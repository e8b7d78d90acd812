"""Hvt-UCB for sub-Gaussian noise (Wang et al. section 4.1): no threshold, step 2, every row of weight 1."""

import numpy as np
import pytest

import onepass as op
from dense_system import project
from onepass.design.contract import matrix
from onepass.estimator import contract

DIM, ROUNDS, BOUND = 4, 60, 1.5


@pytest.mark.parametrize("reg", [0.37, 4.0])
def test_without_a_threshold_it_is_the_printed_estimator_and_keeps_the_inequality_of_lemma_2(reg):
    rng = np.random.default_rng(0)
    theta = rng.standard_normal(DIM)
    theta *= BOUND / np.linalg.norm(theta)
    rows, noise = rng.standard_normal((ROUNDS, DIM)), 0.5 * rng.standard_normal(ROUNDS)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    estimator = op.OnePassHuber(
        op.Exact(dim=DIM, reg=reg),
        nu=1.0,
        horizon=ROUNDS,
        clip=np.inf,
        step=2.0,
        theory=op.Theory(parameter_bound=BOUND),
    )
    state, v, naive = estimator.begin(), reg * np.eye(DIM), np.zeros(DIM)
    gap = stability = negative = 0.0
    for x, eta in zip(rows, noise, strict=True):
        off = naive - theta
        residual = float(x @ theta + eta - x @ naive)
        state = contract.update(state, x, float(x @ theta + eta))
        v = v + np.outer(x, x) / 2.0
        gap += 2.0 * eta * (x @ off)
        stability += residual**2 * (x @ np.linalg.solve(v, x))
        negative += 0.5 * (x @ off) ** 2
        naive = project(naive + np.linalg.solve(v, x) * residual, v, BOUND)
        np.testing.assert_allclose(contract.parameter(state), naive, rtol=0.0, atol=1e-8)
        np.testing.assert_allclose(matrix(state.design), v, rtol=1e-9)
        assert (naive - theta) @ v @ (naive - theta) <= gap + stability - negative + 4.0 * reg * BOUND**2
