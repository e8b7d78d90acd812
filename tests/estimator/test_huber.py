"""Huber estimators equal the papers' algorithms; one reward, however large, moves them by no more than is proved."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dense
import onepass as op
from counts import LONG
from heavy_games import DESIGNS, DIM, PRACTICE, assert_close, game, state_after, stream
from onepass.design.contract import matrix
from onepass.estimator import contract
from onepass.estimator.newton import project_onto_ball
from onepass.foundation import state as states
from onepass.testing import REGS

EPSILONS = (0.3, 1.0)


# ---- one-pass Huber: the paper's algorithm ----


def followed(estimator, naive, rows, rewards, nus=None):
    """Both learn all rows; they must agree all the way, not only at the end."""
    state = estimator.begin()
    for i in range(len(rows)):
        nu = None if nus is None or np.isnan(nus[i]) else float(nus[i])
        state = state_after(state, rows[i : i + 1], rewards[i : i + 1], None if nus is None else nus[i : i + 1])
        naive.learn(rows[i], rewards[i], nu)
        if i % 50 == 0 or i == len(rows) - 1:
            assert_close(state.theta, naive.theta)
    return state


@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("noise", ["given", "per row", "unknown"])
@pytest.mark.parametrize("step", [None, 2.5])
def test_theory_equals_the_papers_algorithm_with_its_ball(reg, epsilon, noise, step):
    rows, rewards = stream(1000, seed=1)
    rewards[50::40] *= 1e6  # what it takes to exceed the paper's threshold
    nu = 0.7 if noise == "given" else None
    nus = np.random.default_rng(2).uniform(0.3, 60.0, len(rows)) if noise == "per row" else None
    theory = op.Theory(parameter_bound=0.03, row_bound=1.5, delta=0.02)
    estimator = op.OnePassHuber(
        op.Exact(dim=DIM, reg=reg), epsilon=epsilon, nu=nu, horizon=1000, theory=theory, step=step
    )
    naive = dense.HvtUCB(
        DIM, reg, epsilon, nu=nu, horizon=1000, step=step or 4.0, bound=0.03, row_bound=1.5, delta=0.02 / 4
    )
    state = followed(estimator, naive, rows, rewards, nus)
    assert 5 < naive.projections < 1000
    assert naive.clips > 5
    beta = contract.radius(state, 1000, 1.0, 0.03, 1.5, 0.02)
    assert abs(beta - naive.beta()) <= 1e-9 * beta


@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("noise", ["given", "per row", "unknown"])
@pytest.mark.parametrize("bound", [None, 0.8])
def test_practice_equals_the_papers_algorithm_with_its_own_scales(reg, epsilon, noise, bound):
    rows, rewards = stream(1000, seed=3)
    nu = 0.7 if noise == "given" else None
    nus = np.random.default_rng(4).uniform(0.3, 1.5, len(rows)) if noise == "per row" else None
    if nus is not None:
        nus[::3] = np.nan  # what is told counts for one row only
    estimator = op.OnePassHuber(op.Exact(dim=DIM, reg=reg), epsilon=epsilon, nu=nu, parameter_bound=bound, **PRACTICE)
    naive = dense.HvtUCB(DIM, reg, epsilon, nu=nu, bound=np.inf if bound is None else bound, **PRACTICE)
    followed(estimator, naive, rows, rewards, nus)
    assert naive.clips > 0
    assert (naive.projections == 0) if bound is None else (5 < naive.projections < 1000)


@pytest.mark.parametrize("reg", REGS)
def test_a_smallest_noise_scale_is_an_input_of_the_papers_algorithm(reg):
    rows, rewards = stream(300, seed=6)
    theory, given = op.Theory(parameter_bound=0.03, row_bound=1.5, delta=0.02), {"nu": 1e-4, "horizon": 300}
    estimator = op.OnePassHuber(op.Exact(dim=DIM, reg=reg), theory=theory, sigma_min=20.0, **given)
    naive = dense.HvtUCB(DIM, reg, 1.0, sigma_min=20.0, step=4.0, bound=0.03, row_bound=1.5, delta=0.02 / 4, **given)
    state = followed(estimator, naive, rows, rewards)
    assert contract.radius(state, 300, 1.0, 0.03, 1.5, 0.02) == pytest.approx(naive.beta(), rel=1e-9)
    lightest = op.Exact(dim=DIM, reg=reg).append(rows / 40.0)  # no row weighs more than 1 / (4 sigma_min^2)
    assert np.linalg.eigvalsh(lightest.matrix() - matrix(state.design))[0] >= -1e-9


@pytest.mark.parametrize("reg", REGS)
def test_other_scales_and_steps_equal_the_naive_ones(reg):
    rows, rewards = stream(300, seed=5)
    scales = {"radius": 0.4, "clip": 0.02, "floor": 0.3, "step": 3.0, "nu": 0.2, "horizon": 500}
    estimator = op.OnePassHuber(op.Exact(dim=DIM, reg=reg), epsilon=0.6, **scales)
    followed(estimator, dense.HvtUCB(DIM, reg, 0.6, **scales), rows, rewards)


@pytest.mark.parametrize("reg", REGS)
def test_the_unclipped_update_is_ridge_regression(reg):
    rows, rewards = stream(200, seed=6)
    nus = np.random.default_rng(7).uniform(0.3, 1.5, 200)
    estimator = op.OnePassHuber(op.Exact(dim=DIM, reg=reg), nu=0.3, radius=0.0, clip=1e100, step=1.0)
    state = state_after(estimator.begin(), rows, rewards, nus)
    shares = nus / 0.3  # of the noise that was given
    scaled = rows / shares[:, None]
    assert_close(state.theta, np.linalg.solve(reg * np.eye(DIM) + scaled.T @ scaled, scaled.T @ (rewards / shares)))


@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("step", [0.5, 1.0, 4.0])
def test_the_first_unclipped_step_solves_the_normal_equations(reg, step):
    row, reward = np.array([0.3, -1.2, 0.5, 0.1]), 2.7
    estimator = op.OnePassHuber(op.Exact(dim=DIM, reg=reg), nu=0.6, radius=0.0, clip=1e100, step=step)
    state = contract.update(estimator.begin(), row, reward)
    matrix = reg * np.eye(DIM) + np.outer(row, row) / step
    assert_close(matrix @ state.theta, row * reward)


# ---- the ball ----


def held(name, reg, seed=0):
    """A design that has learned rows of rank 3."""
    return DESIGNS[name](reg).append(2.0 * stream(40, seed, rank=3)[0])


@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("name", DESIGNS)
def test_outside_the_ball_theta_becomes_the_nearest_point_in_the_norm_of_the_design(name, reg):
    design, rng = held(name, reg), np.random.default_rng(8)
    matrix = design.matrix()
    for scale in (1.0000001, 1.3, 40.0, 1e6, 1e12):
        for bound in (0.01, 2.0):
            far = rng.standard_normal(DIM)
            far *= scale * bound / np.linalg.norm(far)
            theta = far.copy()
            assert project_onto_ball(design.state, theta, bound)
            assert np.linalg.norm(theta) <= bound * (1 + 1e-12)
            force = matrix @ (far - theta)  # = mu theta with mu >= 0
            multiplier = force @ theta / (theta @ theta)
            assert multiplier >= 0.0
            assert np.linalg.norm(force - multiplier * theta) <= 1e-8 * np.linalg.norm(matrix @ far)
            assert_close(theta, dense.nearest_in_ball(matrix, far, bound))


@pytest.mark.parametrize("name", DESIGNS)
def test_inside_the_ball_nothing_is_projected(name):
    design = held(name, 0.37)
    for theta in (np.zeros(DIM), np.array([0.6, 0.0, 0.8, 0.0]), np.full(DIM, 0.4999999)):
        before = theta.copy()
        assert not project_onto_ball(design.state, theta, 1.0)
        assert theta.tobytes() == before.tobytes()
    assert not project_onto_ball(design.state, np.full(DIM, 1e100), np.inf)


@pytest.mark.parametrize("name", DESIGNS)
def test_a_design_that_has_learned_nothing_projects_along_the_ray(name):
    theta = np.array([3.0, 0.0, -4.0, 0.0])
    assert project_onto_ball(DESIGNS[name](4.0).state, theta, 1.0)
    assert_close(theta, [0.6, 0.0, -0.8, 0.0], 1e-12)


@pytest.mark.parametrize("name", ["OnePassHuber", "OnePassTruncation", "OnePassMedian", "AdaptiveHuber"])
def test_no_estimate_ever_leaves_the_ball(name):
    rows, rewards = stream(120, seed=9)
    options = {"OnePassTruncation": {"moment": 1e6}, "OnePassMedian": {"repeats": 1}}.get(name, {})
    place = op.estimator if name in op.estimator.__all__ else op
    state = getattr(place, name)(op.Exact(dim=DIM, reg=4.0), parameter_bound=0.5, **options).begin()
    touched = 0
    for row, reward in zip(rows, rewards, strict=True):
        state = contract.update(state, row, reward)
        norm = np.linalg.norm(state.theta)
        assert norm <= 0.5 * (1 + 1e-12)
        touched += norm > 0.5 * (1 - 1e-9)
    assert 5 < touched < 120


# ---- robustness ----


@given(st.data())
@settings(max_examples=150, deadline=None, derandomize=True)
def test_one_reward_moves_theta_by_no_more_than_the_threshold_implies(data):
    reg, epsilon = data.draw(st.sampled_from([0.01, 0.37, 4.0])), data.draw(st.sampled_from([0.2, 0.5, 1.0]))
    scales = {
        "radius": data.draw(st.sampled_from([0.0, 0.3, 2.0])),
        "clip": data.draw(st.sampled_from([0.01, 0.1, 1.0])),
        "floor": data.draw(st.sampled_from([0.0, 1.0, 5.0])),
        "step": data.draw(st.sampled_from([1.0, 4.0])),
        "nu": data.draw(st.sampled_from([None, 0.1, 3.0])),
        "parameter_bound": data.draw(st.sampled_from([None, 0.7])),
    }
    rows, rewards = stream(data.draw(st.integers(1, 60)), data.draw(st.integers(0, 1000)))
    state = state_after(op.OnePassHuber(op.Exact(dim=DIM, reg=reg), epsilon=epsilon, **scales).begin(), rows, rewards)
    row = rows[-1] * data.draw(st.sampled_from([0.01, 1.0, 3.0]))
    reward = data.draw(st.sampled_from([-1e12, -3.0, 5.0, 1e6, 1e12]))
    before, t = state.theta.copy(), state.rows + 1
    old = op.Exact(dim=DIM)
    old.state = states.copy(state.design)
    width = np.sqrt(old.inverse_quadratic(row[None])[0])
    old.state = (state := contract.update(state, row, reward)).design
    known = 1.4826 * max(state.noise.size, state.noise.mean / 10)
    sigma = known if scales["nu"] is None else scales["nu"]
    matrix, s = old.matrix(), dense.Scales(t, DIM, reg, epsilon, None, scales["step"])
    # 1 / (1 + w^2) = ||x||^2 in the inverse of V after the row, over that before it
    w = np.sqrt(max(width**2 / old.inverse_quadratic(row[None])[0] - 1.0, 0.0))
    most = max(scales["clip"] * s.tau * s.growth, scales["floor"] * w) * np.sqrt(scales["step"]) * sigma
    assert dense.norm_in(matrix, state.theta - before) <= most * (1 + 1e-6) + 1e-12
    if abs(reward) == 1e12 and scales["parameter_bound"] is None:  # the bound is reached
        assert dense.norm_in(matrix, state.theta - before) >= most * (1 - 1e-4)


def regret_with_and_without(make, seeds):
    """Regrets (seeds,) when the worst arm is learned once in passing: with an ordinary reward, and with 1e12.

    After a third of 6,000 rounds under Student t noise of 2.1 degrees of freedom; 20 arms in 2 dimensions.
    """
    clean, struck = [], []
    for seed in range(seeds):
        contexts, rewards, gaps = game(6000, seed, arms=20, dim=2, df=2.1)
        bandit, worst = make(), int(np.argmax(gaps))
        before = gaps[bandit.play(contexts[:2000], rewards[:2000])].sum()
        for found, reward in ((clean, rewards[2000, worst]), (struck, 1e12)):
            twin = bandit.copy()
            twin.learn(contexts[0, worst], reward)
            found.append(before + gaps[twin.play(contexts[2000:], rewards[2000:])].sum())
    return np.array(clean), np.array(struck)


@pytest.mark.parametrize("nu", [0.65, None] if LONG else [None])
def test_one_reward_of_1e12_does_not_change_the_regret(nu):
    """By more than 5%, and twice the standard error of the paired difference: 4 to 5% of 200 seeds."""
    clean, struck = regret_with_and_without(lambda: op.HvtUCB(dim=2, nu=nu), 200)
    margin = 2.0 * (struck - clean).std() / np.sqrt(len(clean))
    assert margin <= 0.15 * clean.mean()
    assert abs((struck - clean).mean()) <= 0.05 * clean.mean() + margin


def test_one_reward_of_1e12_ruins_ridge_regression():
    clean, struck = regret_with_and_without(lambda: op.OFUL(dim=2, exploration=1.0), 5)
    assert struck.mean() > 10 * clean.mean()


# ---- adaptive Huber ----


@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("bound", [None, 0.6])
@pytest.mark.parametrize("batch", [1, 40])
def test_adaptive_huber_stays_close_to_the_minimizer_and_never_climbs(reg, bound, batch):
    rows, rewards = stream(400, seed=10)
    scales = {"nu": 0.3, "horizon": 400, "radius": 1.5, "clip": 0.1, "floor": 1.0}
    estimator = op.estimator.AdaptiveHuber(op.Exact(dim=DIM, reg=reg), epsilon=0.5, parameter_bound=bound, **scales)
    naive = dense.HeavyOFUL(DIM, reg, 0.5, bound=np.inf if bound is None else bound, **scales)
    state = estimator.begin()
    for start in range(0, 400, batch):
        part = slice(start, start + batch)
        for x, r in zip(rows[part], rewards[part], strict=True):
            naive.learn(x, r)
        before = naive.loss(state.theta)
        if batch == 1:
            state = contract.update(state, rows[start], float(rewards[start]))
        else:
            state = contract.update_rows(state, rows[part], rewards[part])
        assert naive.loss(state.theta) <= before * (1 + 1e-12)
        if start % 40 == 0:
            assert dense.norm_in(naive.matrix, state.theta - naive.minimizer()) <= 2 / np.sqrt(400)
    assert_close(state.history.rows[:400], naive.rows)
    assert_close(state.history.marks[:400], naive.marks)
    clipped = np.abs(naive.values - naive.rows @ state.theta) > naive.marks
    assert 0.02 < clipped.mean() < 0.9


@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_adaptive_huber_under_the_theorem_takes_its_two_guards_of_sigma(reg, epsilon):
    rows, rewards = stream(100, seed=11)
    rows *= 10.0 ** np.random.default_rng(12).uniform(-5, 0, (100, 1))  # for narrow rows the second guard is the larger
    theory = op.Theory(row_bound=1.5, delta=3 / 80_000, parameter_bound=2.0)
    estimator = op.estimator.AdaptiveHuber(
        op.Exact(dim=DIM, reg=reg), epsilon=epsilon, nu=0.01, horizon=10_000, theory=theory
    )
    naive = dense.HeavyOFUL(DIM, reg, epsilon, nu=0.01, horizon=10_000, bound=2.0, row_bound=1.5, delta=1 / 80_000)
    state = state_after(estimator.begin(), rows, rewards)
    for x, r in zip(rows, rewards, strict=True):
        naive.learn(x, r)
    assert_close(state.history.rows[:100], naive.rows)
    assert_close(state.history.marks[:100], naive.marks)
    assert dense.norm_in(naive.matrix, state.theta - naive.minimizer()) <= 2 / np.sqrt(10_000)
