"""Adaptive control: Riccati gains, optimism equal to a search through the ellipsoid, stable play, copies."""

import numpy as np
import pytest

import onepass as op
from dynamics_games import draw_system
from onepass.dynamics import AdaptiveLQR, SystemIdentification
from onepass.dynamics.riccati import solve_optimistic, solve_regulator


def control(regulator, a, b, steps, df=2.1, seed=0):
    """States (steps + 1, n) under the regulator."""
    rng, states = np.random.default_rng(seed), [np.zeros(len(a))]
    for _ in range(steps):
        u = regulator.act(states[-1])
        w = rng.standard_normal(len(a)) if df is None else rng.standard_t(df, len(a))
        states.append(a @ states[-1] + b @ u + w)
        regulator.learn(states[-2], u, states[-1])
    return np.array(states)


def test_the_gain_of_known_matrices_minimizes_the_long_run_cost():
    rng = np.random.default_rng(1)
    a, b = draw_system(rng, radius=1.1)
    q, r = np.diag([1.0, 2.0, 0.5]), np.diag([0.3, 1.7])
    gain, value = solve_regulator(a, b, q, r)

    def cost(k):
        closed, p = a + b @ k, np.zeros_like(a)
        for _ in range(2000):  # the cost to go of this gain
            p = q + k.T @ r @ k + closed.T @ p @ closed
        return np.trace(p)

    assert cost(gain) == pytest.approx(np.trace(value))
    for _ in range(5):
        assert cost(gain + 0.01 * rng.standard_normal(gain.shape)) > cost(gain)


@pytest.mark.parametrize("seed", range(4))
def test_optimism_finds_the_least_cost_in_the_ellipsoid_of_a_system_with_one_state(seed):
    rng = np.random.default_rng(seed)
    center, q, r, radius = rng.uniform(0.4, 1.1, 2), 1.3, 0.7, rng.uniform(0.2, 1.2)
    root = rng.standard_normal((2, 2))
    precision = 5 * root @ root.T + 20 * np.eye(2)
    angles = np.linspace(0.0, 2.0 * np.pi, 20_001)
    edge = np.linalg.cholesky(np.linalg.inv(precision)) @ np.array([np.cos(angles), np.sin(angles)])
    a, b = center[:, None] + radius * edge  # the least cost is at the edge
    half = r - q * b * b - a * a * r
    costs = (-half + np.sqrt(half * half + 4 * b * b * q * r)) / (2 * b * b)
    found = solve_optimistic(center[None, :1], center[None, 1:], np.eye(1) * q, np.eye(1) * r, precision, radius)
    assert found.value[0, 0] == pytest.approx(costs.min(), rel=1e-6)
    assert found.value[0, 0] < solve_regulator(center[None, :1], center[None, 1:], np.eye(1) * q, np.eye(1) * r).value


def test_optimism_promises_less_cost_the_larger_the_set_and_nothing_where_it_holds_every_cost():
    a, b = draw_system(np.random.default_rng(0))
    given = a, b, np.eye(3), np.eye(2), 100.0 * np.eye(5)
    costs = [np.trace(solve_optimistic(*given, radius).value) for radius in (0.0, 0.1, 1.0, 3.0)]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] == pytest.approx(np.trace(solve_regulator(*given[:4]).value))
    assert solve_optimistic(*given, 100.0) is None


@pytest.mark.parametrize(("kind", "optimism"), [("huber", 0.0), ("huber", 0.3), ("ridge", 0.0)])
def test_the_gain_is_that_of_the_estimate_and_comes_near_the_best_one(kind, optimism):
    a, b = draw_system(np.random.default_rng(3))
    regulator = AdaptiveLQR(SystemIdentification(3, 2, estimator=kind), optimism=optimism)
    states = control(regulator, a, b, 400)
    best = solve_regulator(a, b, np.eye(3), np.eye(2)).gain
    assert np.linalg.norm(regulator.gain - best) < 0.3 * np.linalg.norm(best)
    assert np.abs(states).max() < 1e3
    twin = SystemIdentification(3, 2, estimator=kind).learn(states[:-1], np.zeros((400, 2)), states[1:])
    fresh = AdaptiveLQR(SystemIdentification(3, 2, estimator=kind))
    fresh.learn(states[:-1], np.zeros((400, 2)), states[1:])
    np.testing.assert_array_equal(fresh.gain, solve_regulator(*twin.matrices(), np.eye(3), np.eye(2)).gain)


def test_input_noise_decays_by_the_fourth_root_and_ends_with_the_warm_up_under_optimism():
    for optimism, want in ((0.0, 0.5 * 10_000**-0.25), (1.0, 0.0)):
        regulator = AdaptiveLQR(SystemIdentification(1, 1), optimism=optimism, input_noise=0.5, warm_up=10)
        rows = np.random.default_rng(0).standard_normal((10_000, 3))
        regulator.learn(rows[:, :1], rows[:, 1:2], rows[:, 2:])
        drawn = np.array([regulator.act([0.0])[0] for _ in range(2000)])
        assert drawn.std() == pytest.approx(want, rel=0.1)


def test_the_theory_of_the_system_is_the_radius_of_optimism():
    system = SystemIdentification(1, 1, estimator="ridge", theory=op.Theory(row_bound=20.0, delta=0.1))
    regulator, twin = AdaptiveLQR(system, optimism=0.5), AdaptiveLQR(SystemIdentification(1, 1, estimator="ridge"))
    rows = np.random.default_rng(0).standard_normal((500, 2))
    after = 0.9 * rows[:, :1] + rows[:, 1:]
    for one in (regulator, twin):
        one.learn(rows[:, :1], rows[:, 1:], after)
    (a, b), (_, precision, radius) = system.matrices(), system.ellipsoid()
    want = solve_optimistic(a, b, np.eye(1), np.eye(1), precision, 0.5 * radius)
    np.testing.assert_allclose(regulator.gain, want.gain)
    assert regulator.value < twin.value


@pytest.mark.parametrize("optimism", [0.0, 0.3])
def test_a_copy_and_a_file_go_on_alike(optimism):
    a, b = draw_system(np.random.default_rng(3))
    regulator = AdaptiveLQR(
        SystemIdentification(3, 2), optimism=optimism, state_cost=2 * np.eye(3), gain=-0.1 * np.ones((2, 3)), seed=5
    )
    control(regulator, a, b, 80)
    copies = [regulator.copy(), op.from_bytes(op.to_bytes(regulator))]
    want = control(regulator, a, b, 60, seed=1)
    for twin in copies:
        np.testing.assert_array_equal(control(twin, a, b, 60, seed=1), want)
        np.testing.assert_array_equal(twin.gain, regulator.gain)
        assert repr(twin) == repr(regulator)


def test_the_noise_of_ridge_regression_is_the_root_mean_square_of_its_residuals():
    rows = np.random.default_rng(0).standard_normal((300, 3))
    after = rows[:, :2] @ np.array([[0.5, 0.1], [0.0, 0.3]]) + 2.0 * np.random.default_rng(1).standard_normal((300, 2))
    system = SystemIdentification(2, 1, estimator="ridge").learn(rows[:, :2], rows[:, 2:], after)
    theta = np.hstack(system.matrices())
    want = np.sqrt((((after - rows @ theta.T) ** 2).sum(axis=0) + (theta**2).sum(axis=1)) / 300)
    np.testing.assert_allclose(system.noise_scales(), want, rtol=1e-10)
    assert system.n_learned == 300
    np.testing.assert_allclose(system.log_det(), np.linalg.slogdet(np.eye(3) + rows.T @ rows)[1])
    huber = SystemIdentification(2, 1).learn(rows[:, :2], rows[:, 2:], after)
    np.testing.assert_allclose(huber.noise_scales(), want, rtol=0.2)


BAD = {
    "system": lambda: AdaptiveLQR(SystemIdentification(2, 0)),
    "state_cost must have shape": lambda: AdaptiveLQR(SystemIdentification(2, 1), state_cost=np.eye(3)),
    "state_cost must be symmetric": lambda: AdaptiveLQR(
        SystemIdentification(2, 1), state_cost=[[1.0, 2.0], [0.0, 1.0]]
    ),
    "input_cost must be symmetric": lambda: AdaptiveLQR(SystemIdentification(2, 1), input_cost=[[0.0]]),
    "optimism": lambda: AdaptiveLQR(SystemIdentification(2, 1), optimism=-1.0),
    "gain": lambda: AdaptiveLQR(SystemIdentification(2, 1), gain=np.eye(2)),
    "warm_up": lambda: AdaptiveLQR(SystemIdentification(2, 1), warm_up=0),
    "x must": lambda: AdaptiveLQR(SystemIdentification(2, 1)).act([1.0, np.nan]),
}


@pytest.mark.parametrize("words", BAD)
def test_a_bad_call_names_what_is_wrong(words):
    with pytest.raises(ValueError, match=words):
        BAD[words]()
