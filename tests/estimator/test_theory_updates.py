"""Guards and thresholds under theory are the papers' for any L and S; what one-pass Huber winsorizes is said."""

import copy

import numpy as np
import pytest

import dense
import onepass as op
from onepass.estimator import contract

DIM = 3
CASES = [  # epsilon, reg, S, L, delta, horizon, nu
    (1.0, 2.0, 1000.0, 0.3, 0.01, 1000, 1e-3),
    (0.4, 0.37, 0.5, 4.0, 0.2, 60, 1e-3),
    (0.7, 25.0, 7.0, 25.0, 1e-4, None, 1e-3),
    (0.2, 1e-2, 30.0, 50.0, 0.5, 200, 1e-3),
    (0.4, 30.0, 1e-4, 1e-3, 0.2, 60, 1e-3),
]


def scales(case, t, step, deltas):
    """p, log(2 T^2 / delta), kappa, tau_0, sigma_min of round t."""
    epsilon, reg, _, L, delta, horizon, _ = case
    T = t if horizon is None else horizon
    p, log = (1 - epsilon) / (2 * (1 + epsilon)), np.log(2 * T**2 / (delta / deltas))
    kappa = DIM * np.log(1 + L**2 * T / (1 / T * reg * step * DIM))
    return T, p, log, kappa, np.sqrt(2 * kappa) * np.log(3 * T) ** p / log ** (1 / (1 + epsilon)), 1 / np.sqrt(T)


def estimator_of(kind, case):
    epsilon, reg, S, L, delta, horizon, nu = case
    theory = op.Theory(parameter_bound=S, row_bound=L, delta=delta)
    return kind(op.Exact(dim=DIM, reg=reg), epsilon=epsilon, nu=nu, horizon=horizon, theory=theory)


def first_row(case, share=1.0):
    return np.array([2.0, -1.0, 2.0]) / 3 * case[3] * share


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("share", [1.0, 1e-4])
def test_the_first_row_of_heavy_oful_is_guarded_by_what_theta_in_the_ball_can_pay(case, share):
    epsilon, reg, S, L, _, _, nu = case
    x = first_row(case, share)
    state = contract.update(estimator_of(op.estimator.AdaptiveHuber, case).begin(), x, 0.3)
    T, _, log, kappa, tau0, least = scales(case, 1, 1, 3)
    width, one = np.linalg.norm(x) / np.sqrt(reg), 1 + epsilon
    c0, c1 = 1 / np.sqrt(23 * log), np.log(3 * T) ** ((1 - epsilon) / one) / (48 * log ** (2 / one))
    sigma = max(nu, least, width / c0, np.sqrt(L * S * width) / (2 * c1 * kappa) ** 0.25)
    np.testing.assert_allclose(state.history.rows[0], x / sigma, rtol=1e-9)
    w = width / sigma
    assert state.history.marks[0] == pytest.approx(tau0 * np.sqrt(1 + w**2) / w, rel=1e-9)
    assert 2 * np.linalg.norm(x) * S / sigma <= state.history.marks[0] / (2 * np.sqrt(3)) * (1 + 1e-9)


def test_each_bound_of_sigma_decides_somewhere():
    decided = set()
    for case in CASES:
        for share in (1.0, 1e-4):
            epsilon, reg, S, L, _, _, nu = case
            width, (T, _, log, kappa, _, least) = (
                np.linalg.norm(first_row(case, share)) / np.sqrt(reg),
                scales(case, 1, 1, 3),
            )
            c1 = np.log(3 * T) ** ((1 - epsilon) / (1 + epsilon)) / (48 * log ** (2 / (1 + epsilon)))
            bounds = [nu, least, width * np.sqrt(23 * log), np.sqrt(L * S * width) / (2 * c1 * kappa) ** 0.25]
            decided.add(int(np.argmax(bounds)))
    assert decided == {1, 2, 3}  # nu is the least in all


@pytest.mark.parametrize("case", CASES)
def test_the_first_row_of_hvt_ucb_is_weighed_by_the_delta_of_its_radius(case):
    _, reg, S, _, delta, _, nu = case
    x, estimator = first_row(case), estimator_of(op.OnePassHuber, case)
    state = contract.update(estimator.begin(), x, 1e9)  # clipped
    _, _, log, _, tau0, least = scales(case, 1, 4, 4)
    beta = 107 * log * tau0 + np.sqrt(reg * (2 + 4 * S**2))
    width = np.linalg.norm(x) / np.sqrt(reg)
    sigma = max(nu, least, np.sqrt(2 * beta / (tau0 * 2)) * width)
    np.testing.assert_allclose(
        state.design.gram + state.design.recent.T @ state.design.recent,
        reg * np.eye(DIM) + np.outer(x, x) / (4 * sigma**2),
        rtol=1e-9,
        atol=1e-12 * reg,
    )
    w = width / sigma / 2
    tau = tau0 * np.sqrt(1 + w**2) / w
    moved = np.linalg.solve(reg * np.eye(DIM) + np.outer(x, x) / (4 * sigma**2), min(tau, 1e9 / sigma) * x / sigma)
    moved *= min(1.0, S / np.linalg.norm(moved))  # along one eigenvector
    np.testing.assert_allclose(state.theta, moved, rtol=1e-8)
    assert contract.radius(state, 1, 1.0, S, case[3], delta) >= beta * (1 - 1e-12)


# ---- TOFU ----


def test_tofu_truncates_by_the_delta_of_its_radius():
    rng = np.random.default_rng(5)
    rows, rewards = rng.standard_normal((80, DIM)), 5 * rng.standard_t(1.5, 80)
    cuts = []
    for delta in (0.9, 1e-12):
        bandit = op.TOFU(
            dim=DIM, reg=0.37, epsilon=0.5, moment=4.0, horizon=80, exploration=op.Theory(delta=delta, row_bound=3.0)
        )
        naive = dense.TOFU(DIM, 0.37, 0.5, 4.0, horizon=80, delta=delta)
        for x, r in zip(rows, rewards, strict=True):
            naive.learn(x, r)
        bandit.learn(rows, rewards)
        np.testing.assert_allclose(bandit.model.parameter, naive.theta, rtol=1e-8, atol=1e-10)
        cuts.append(naive.cut)
    assert cuts[0] < cuts[1]


# ---- ridge regression on other rewards ----


def followed(step, bound, seed=6):
    """theta of one-pass Huber, and of ridge regression on winsorized rewards and on x^T theta + a clip(...)."""
    rng, reg, nu = np.random.default_rng(seed), 0.37, 0.4
    options = {"nu": nu, "radius": 1.5, "clip": 0.1, "floor": 1.0, "step": step}
    state = op.OnePassHuber(op.Exact(dim=DIM, reg=reg), parameter_bound=bound, **options).begin()
    naive = dense.HvtUCB(DIM, reg, 1.0, bound=np.inf if bound is None else bound, **options)
    matrix, winsorized, other = reg * np.eye(DIM), np.zeros(DIM), np.zeros(DIM)
    for _ in range(150):
        x = rng.standard_normal(DIM)
        r = x @ [1.0, -2.0, 0.5] + rng.standard_t(1.5)
        expected = x @ naive.theta
        residual = r - expected
        rho, _, mark = copy.deepcopy(naive).weigh(x, r, None)
        pull, weighted = np.clip(residual, -mark, mark), x / (step * rho**2)
        matrix = matrix + np.outer(x, weighted)
        winsorized, other = winsorized + weighted * (expected + pull), other + weighted * (expected + step * pull)
        naive.learn(x, r)
        state = contract.update(state, x, r)
    assert naive.clips > 10
    return state.theta, np.linalg.solve(matrix, winsorized), np.linalg.solve(matrix, other), naive.projections


def gap(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


def test_with_step_1_and_inside_the_ball_one_pass_huber_is_ridge_regression_on_winsorized_rewards():
    for bound in (None, 1e3):
        theta, winsorized, _, projections = followed(1.0, bound)
        assert projections == 0
        assert gap(theta, winsorized) <= 1e-9


@pytest.mark.parametrize("step", [0.5, 4.0])
def test_with_another_step_it_is_ridge_regression_on_rewards_as_many_times_as_far_from_the_prediction(step):
    theta, winsorized, other, projections = followed(step, None)
    assert projections == 0
    assert gap(theta, other) <= 1e-9
    assert gap(theta, winsorized) > 0.01


def test_once_it_has_left_the_ball_it_is_no_ridge_regression_on_either():
    theta, winsorized, other, projections = followed(1.0, 1.5)
    assert projections > 0
    assert min(gap(theta, winsorized), gap(theta, other)) > 0.01
