"""Heavy tails: estimators equal their naive dense versions, one reward moves them little, bad input changes nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dense
import onepass as op
from onepass.estimator import contract
from onepass.estimator.newton import into_ball
from onepass.foundation import state as states
from onepass.testing import REGS

DIM, ARMS = 4, 6
EPSILONS = (0.3, 1.0)
PRACTICE = {"radius": 1.5, "clip": 0.1, "floor": 1.0, "step": 1.0}
DESIGNS = {  # exact on rows of rank 3
    "Exact": lambda reg: op.Exact(dim=DIM, reg=reg),
    "FrequentDirections": lambda reg: op.FrequentDirections(dim=DIM, size=4, reg=reg),
    "RobustFrequentDirections": lambda reg: op.RobustFrequentDirections(dim=DIM, size=4, reg=reg),
    "Dyadic": lambda reg: op.Dyadic(dim=DIM, size=4, error=1e9, reg=reg),
    "ProjectorSplitting": lambda reg: op.ProjectorSplitting(dim=DIM, rank=3, reg=reg),
}
SIX = {
    "HvtUCB": lambda **k: op.HvtUCB(dim=DIM, epsilon=0.5, **k),
    "HeavyOFUL": lambda **k: op.HeavyOFUL(dim=DIM, epsilon=0.5, nu=0.4, **k),
    "CRTM": lambda **k: op.CRTM(dim=DIM, epsilon=0.5, moment=3.0, **k),
    "TOFU": lambda **k: op.TOFU(dim=DIM, epsilon=0.5, moment=3.0, **k),
    "CRMM": lambda **k: op.CRMM(dim=DIM, repeats=7, **k),
    "MENU": lambda **k: op.MENU(dim=DIM, repeats=7, **k),
}


def stream(count=1000, seed=0, rank=DIM):
    """Rows (count, DIM) of lengths 0.2 to 1.5, rewards with Student t noise of 1.5 degrees of freedom."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, rank)) @ (np.eye(DIM) if rank == DIM else rng.standard_normal((rank, DIM)))
    rows *= rng.uniform(0.2, 1.5, (count, 1)) / np.linalg.norm(rows, axis=1, keepdims=True)
    return rows, rows @ rng.standard_normal(DIM) + 0.5 * rng.standard_t(1.5, count)


def game(rounds=630, seed=0, arms=ARMS, dim=DIM, df=1.5):
    """The same arms every round (rounds, arms, dim), what each would pay, and what each falls short by on average."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((arms, dim))
    rows *= rng.uniform(0.8, 1.0, (arms, 1)) / np.linalg.norm(rows, axis=1, keepdims=True)
    theta = rng.standard_normal(dim)
    means = rows @ theta / np.linalg.norm(theta)
    contexts = np.ascontiguousarray(np.broadcast_to(rows, (rounds, arms, dim)))
    return contexts, means + 0.5 * rng.standard_t(df, (rounds, arms)), means.max() - means


def learned(state, rows, rewards, nus=None):
    """The state after all rows; nus: noise scales told, NaN where none is."""
    for i in range(len(rows)):
        if nus is not None and nus[i] > 0.0:
            state = contract.expect(state, float(nus[i]))
        state = contract.update(state, rows[i], float(rewards[i]))
    return state


def fingerprint(bandit):
    """Everything that learning could change, as plain bytes."""
    saved = [(name, np.asarray(value).tobytes()) for name, value in states.leaves(bandit.copy()._saved())]
    return saved, bandit.rounds, bandit._rng.bit_generator.state


def assert_close(got, want, tolerance=1e-8):
    """Relative to the largest entry."""
    np.testing.assert_allclose(got, want, rtol=0.0, atol=tolerance * np.abs(want).max())


# ---- one-pass Huber: the paper's algorithm ----


def followed(estimator, naive, rows, rewards, nus=None):
    """Both learn all rows; they must agree all the way, not only at the end."""
    state = estimator.begin()
    for i in range(len(rows)):
        nu = None if nus is None or np.isnan(nus[i]) else float(nus[i])
        state = learned(state, rows[i : i + 1], rewards[i : i + 1], None if nus is None else nus[i : i + 1])
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
    state = learned(estimator.begin(), rows, rewards, nus)
    scaled = rows / nus[:, None]
    assert_close(state.theta, np.linalg.solve(reg * np.eye(DIM) + scaled.T @ scaled, scaled.T @ (rewards / nus)))


@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("step", [0.5, 1.0, 4.0])
def test_the_first_unclipped_step_solves_the_normal_equations(reg, step):
    row, reward, sigma = np.array([0.3, -1.2, 0.5, 0.1]), 2.7, 0.6
    estimator = op.OnePassHuber(op.Exact(dim=DIM, reg=reg), nu=sigma, radius=0.0, clip=1e100, step=step)
    state = contract.update(estimator.begin(), row, reward)
    matrix = reg * np.eye(DIM) + np.outer(row, row) / (step * sigma**2)
    assert_close(matrix @ state.theta, row * reward / sigma**2)


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
            assert into_ball(design.state, theta, bound)
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
        assert not into_ball(design.state, theta, 1.0)
        assert theta.tobytes() == before.tobytes()
    assert not into_ball(design.state, np.full(DIM, 1e100), np.inf)


@pytest.mark.parametrize("name", DESIGNS)
def test_a_design_that_has_learned_nothing_projects_along_the_ray(name):
    theta = np.array([3.0, 0.0, -4.0, 0.0])
    assert into_ball(DESIGNS[name](4.0).state, theta, 1.0)
    assert_close(theta, [0.6, 0.0, -0.8, 0.0], 1e-12)


@pytest.mark.parametrize("name", ["OnePassHuber", "OnePassTruncation", "OnePassMedian", "AdaptiveHuber"])
def test_no_estimate_ever_leaves_the_ball(name):
    rows, rewards = stream(120, seed=9)
    options = {"OnePassTruncation": {"moment": 1e6}, "OnePassMedian": {"repeats": 1}}.get(name, {})
    state = getattr(op, name)(op.Exact(dim=DIM, reg=0.37), parameter_bound=0.5, **options).begin()
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
    state = learned(op.OnePassHuber(op.Exact(dim=DIM, reg=reg), epsilon=epsilon, **scales).begin(), rows, rewards)
    row = rows[-1] * data.draw(st.sampled_from([0.01, 1.0, 3.0]))
    reward = data.draw(st.sampled_from([-1e12, -3.0, 5.0, 1e6, 1e12]))
    before, t = state.theta.copy(), state.rows + 1
    old = op.Exact(dim=DIM)
    old.state = states.copy(state.design)
    width = np.sqrt(old.inverse_quadratic(row[None])[0])
    old.state = (state := contract.update(state, row, reward)).design
    known = 1.4826 * max(state.noise.size, state.noise.mean / 2)
    unit = known if scales["nu"] is None else scales["nu"]
    matrix, s = old.matrix(), dense.Scales(t, DIM, reg, epsilon, None, scales["step"], unit=unit)
    # 1 / (1 + w^2) = ||x||^2 in the inverse of V after the row, over that before it
    w = np.sqrt(max(width**2 / old.inverse_quadratic(row[None])[0] - 1.0, 0.0))
    most = max(scales["clip"] * s.tau * s.growth, scales["floor"] * w / np.sqrt(1 + w**2)) * np.sqrt(scales["step"])
    assert dense.norm_in(matrix, state.theta - before) <= most * (1 + 1e-6) + 1e-12
    if abs(reward) == 1e12 and scales["parameter_bound"] is None:  # the bound is reached
        assert dense.norm_in(matrix, state.theta - before) >= most * (1 - 1e-4)


def regret_with_and_without(make, seeds):
    """Mean regret over the seeds when the worst arm is learned once in passing: with an ordinary reward, and with 1e12.

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
    return np.mean(clean), np.mean(struck)


@pytest.mark.parametrize("nu", [0.65, None])
def test_one_reward_of_1e12_does_not_change_the_regret(nu):
    # over 200 seeds the difference has a standard error of 2.4%
    clean, struck = regret_with_and_without(lambda: op.HvtUCB(dim=2, nu=nu), 200)
    assert abs(struck - clean) <= 0.05 * clean


def test_one_reward_of_1e12_ruins_ridge_regression():
    clean, struck = regret_with_and_without(lambda: op.OFUL(dim=2, exploration=1.0), 5)
    assert struck > 10 * clean


# ---- adaptive Huber ----


@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("bound", [None, 0.6])
@pytest.mark.parametrize("batch", [1, 40])
def test_adaptive_huber_stays_close_to_the_minimizer_and_never_climbs(reg, bound, batch):
    rows, rewards = stream(400, seed=10)
    scales = {"nu": 0.3, "horizon": 400, "radius": 1.5, "clip": 0.1, "floor": 1.0}
    estimator = op.AdaptiveHuber(op.Exact(dim=DIM, reg=reg), epsilon=0.5, parameter_bound=bound, **scales)
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
    estimator = op.AdaptiveHuber(op.Exact(dim=DIM, reg=reg), epsilon=epsilon, nu=0.01, horizon=10_000, theory=theory)
    naive = dense.HeavyOFUL(DIM, reg, epsilon, nu=0.01, horizon=10_000, bound=2.0, row_bound=1.5, delta=1 / 80_000)
    state = learned(estimator.begin(), rows, rewards)
    for x, r in zip(rows, rewards, strict=True):
        naive.learn(x, r)
    assert_close(state.history.rows[:100], naive.rows)
    assert_close(state.history.marks[:100], naive.marks)
    assert dense.norm_in(naive.matrix, state.theta - naive.minimizer()) <= 2 / np.sqrt(10_000)


# ---- whole games against the naive versions ----


def choices(naive, exploration, contexts, rewards, repeats=1):
    """The arms that a naive estimator plays by means + exploration * widths, each `repeats` times in a row."""
    arms, arm = [], 0
    for t, (rows, pays) in enumerate(zip(contexts, rewards, strict=True)):
        if t % repeats == 0:
            widths = np.array([dense.width_in(naive.matrix, x) for x in rows])
            arm = int(np.argmax(rows @ naive.theta + exploration * widths))
        naive.learn(rows[arm], pays[arm])
        arms.append(arm)
    return arms


EXPLORE = 3.0  # so that several arms are played
GAMES = {
    "HvtUCB": lambda reg: (
        op.HvtUCB(dim=DIM, reg=reg, epsilon=0.5, exploration=EXPLORE),
        dense.HvtUCB(DIM, reg, 0.5, **{**PRACTICE, "radius": EXPLORE}),
        1,
    ),
    "CRTM": lambda reg: (
        op.CRTM(dim=DIM, reg=reg, epsilon=0.5, moment=2.0, exploration=EXPLORE, parameter_bound=0.7),
        dense.CRTM(DIM, reg, 0.5, 2.0, bound=0.7),
        1,
    ),
    "CRTM, horizon": lambda reg: (
        op.CRTM(dim=DIM, reg=reg, epsilon=0.8, moment=0.5, exploration=EXPLORE, horizon=700),
        dense.CRTM(DIM, reg, 0.8, 0.5, horizon=700),
        1,
    ),
    "TOFU": lambda reg: (
        op.TOFU(dim=DIM, reg=reg, epsilon=0.5, moment=0.2, exploration=EXPLORE),
        dense.TOFU(DIM, reg, 0.5, 0.2),
        1,
    ),
    "TOFU, horizon": lambda reg: (
        op.TOFU(dim=DIM, reg=reg, epsilon=0.8, moment=0.2, exploration=EXPLORE, horizon=700),
        dense.TOFU(DIM, reg, 0.8, 0.2, horizon=700),
        1,
    ),
    "CRMM": lambda reg: (
        op.CRMM(dim=DIM, reg=reg, repeats=6, exploration=EXPLORE, parameter_bound=0.7),
        dense.CRMM(DIM, reg, 6, bound=0.7),
        6,
    ),
    "MENU": lambda reg: (  # three estimates: medians are never equal
        op.MENU(dim=DIM, reg=reg, repeats=3, exploration=EXPLORE),
        dense.MENU(DIM, reg, 3),
        3,
    ),
}


@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("name", GAMES)
def test_games_equal_the_naive_ones(name, reg):
    contexts, rewards, _ = game()
    bandit, naive, repeats = GAMES[name](reg)
    arms = bandit.play(contexts, rewards)
    assert arms.tolist() == choices(naive, EXPLORE, contexts, rewards, repeats)
    assert len(set(arms.tolist())) > 2
    assert_close(bandit.parameter, naive.theta)
    if hasattr(naive, "cut"):
        assert naive.cut > 5


@pytest.mark.parametrize("repeats", [1, 2, 3, 5, 9, 10])
def test_the_estimate_of_least_median_distance_to_the_others_is_chosen(repeats):
    rows, rewards = np.repeat(stream(80, seed=17)[0], repeats, axis=0), stream(80 * repeats, seed=18)[1]
    state = op.MedianOfMeans(op.Exact(dim=DIM, reg=0.37), repeats=repeats).begin()
    naive = dense.MENU(DIM, 0.37, repeats)
    for i, (row, reward) in enumerate(zip(rows, rewards, strict=True)):
        state = contract.update(state, row, reward)
        naive.learn(row, reward)
        if (i + 1) % repeats == 0:  # of several with the same median, as on a line, any may be chosen
            k = int(np.argmin(np.abs(naive.found - state.theta).sum(axis=1)))
            assert_close(state.theta, naive.found[k])
            assert naive.spread[k] <= naive.spread.min() * (1 + 1e-6)


def test_an_arm_is_repeated_with_certainty_until_its_epoch_is_over():
    contexts, rewards, _ = game(70, seed=1)
    for kind in (op.OnePassMedian, op.MedianOfMeans):
        bandit, played = op.Bandit(kind(op.Exact(dim=DIM), repeats=7), op.EpsilonGreedy(0.6)), []
        for t, rows in enumerate(contexts):
            decision = bandit.decide(rows)
            if t % 7:
                assert (decision.arm, decision.propensity) == (played[-1], 1.0)
            else:
                assert decision.propensity <= 0.4 + 0.6 / ARMS + 1e-12
            played.append(decision.arm)
            bandit.learn(rows[decision.arm], rewards[t, decision.arm])
        assert len(set(played)) > 2


@pytest.mark.parametrize("horizon", [10, 18_000])
def test_repetitions_follow_the_papers_formulas(horizon):
    crmm, menu = op.CRMM(dim=2, horizon=horizon), op.MENU(dim=2, horizon=horizon)
    assert crmm._learned.epoch.rewards.size == int(np.ceil(16 * np.log(4 * horizon * 8 * horizon)))
    assert menu._learned.epoch.rewards.size == int(np.ceil(24 * np.log(np.e * horizon * 8 * horizon)))


# ---- radii ----


def radius_of(estimator, rounds=10):
    rows, rewards = stream(rounds)
    state = learned(estimator.begin(), rows[:, :2].copy(), rewards)
    return contract.radius(state, rounds, 1.0, 1.5, 1.2, 0.01)


def test_radii_are_the_papers():
    design, theory = op.Exact(dim=2, reg=2.0), op.Theory(parameter_bound=1.5, row_bound=1.2, delta=0.01)
    options = {"epsilon": 0.5, "horizon": 100}  # p = 1/6, log(2 T^2 / delta) = log 2e6, 4 and 3 deltas are spent
    kappa = 2 * np.log(1 + 1.2**2 * 100 * 100 / (2.0 * 4 * 2))
    tau = np.sqrt(2 * kappa) * np.log(300) ** (1 / 6) / np.log(8e6) ** (2 / 3)
    want = 107 * np.log(8e6) * tau * 10 ** (1 / 6) + np.sqrt(2.0 * (2 + 4 * 1.5**2))
    assert radius_of(op.OnePassHuber(design, theory=theory, **options)) == pytest.approx(want, rel=1e-12)
    kappa = 2 * np.log(1 + 1.2**2 * 100 * 100 / (2.0 * 2))
    want = 24 * 10 ** (1 / 6) * np.sqrt(2 * kappa) * np.log(300) ** (1 / 6) * np.log(6e6) ** (1 / 3)
    want += 3 * np.sqrt(2.0) * 1.5
    assert radius_of(op.AdaptiveHuber(design, theory=theory, **options)) == pytest.approx(want, rel=1e-12)
    want = 4 * np.sqrt(2) * 5.0 ** (2 / 3) * np.log(4e4) ** (1 / 3) * 10 ** (1 / 6) + np.sqrt(2.0) * 1.5
    assert radius_of(op.TruncatedRidge(design, moment=5.0, **options)) == pytest.approx(want, rel=1e-12)
    want = 3 * (9 * 2 * 5.0) ** (2 / 3) * 5 ** (1 / 6) + 3 * np.sqrt(2.0) * 1.5
    menu = op.MedianOfMeans(design, moment=5.0, repeats=2, **options)  # 5 epochs in 10 rounds
    rows = np.repeat(stream(5)[0][:, :2], 2, axis=0)
    state = learned(menu.begin(), np.ascontiguousarray(rows), stream(10)[1])
    assert contract.radius(state, 10, 1.0, 1.5, 1.0, 0.01) == pytest.approx(want, rel=1e-12)


def test_scores_use_the_theoretical_radius_of_the_round_before():
    rows, rewards = stream(20)
    theory = op.Theory(parameter_bound=0.5, row_bound=1.5, delta=0.01, scale=0.3)
    bandit = op.HvtUCB(dim=DIM, epsilon=0.5, nu=0.4, horizon=100, reg=0.37, exploration=theory)
    naive = dense.HvtUCB(DIM, 0.37, 0.5, nu=0.4, horizon=100, bound=0.5, row_bound=1.5, delta=0.01 / 4)
    for x, r in zip(rows, rewards, strict=True):
        means, widths = rows @ naive.theta, np.array([dense.width_in(naive.matrix, y) for y in rows])
        assert_close(bandit.decide(rows).scores, means + 0.3 * naive.beta() * widths)
        bandit.learn(x, r)
        naive.learn(x, r)


@pytest.mark.parametrize("make", [op.CRTM, op.CRMM])
def test_theory_is_refused_where_no_radius_is_known(make):
    with pytest.raises(ValueError, match=r"^exploration .*no theoretical radius"):
        make(dim=2, horizon=100, exploration=op.Theory())


# ---- bad input ----

DESIGN = op.Exact(dim=2, reg=0.37)
REFUSED = {
    **{f"epsilon {e}": ("epsilon", lambda e=e: op.HvtUCB(dim=2, epsilon=e)) for e in (0, -1, 1.5, np.nan, "1")},
    **{f"epsilon {e} ({m.__name__})": ("epsilon", lambda e=e, m=m: m(dim=2, epsilon=e))
       for e in (0.0, 1.01) for m in (op.HeavyOFUL, op.CRTM, op.TOFU)},
    "epsilon 2 (MENU)": ("epsilon", lambda: op.MENU(dim=2, epsilon=2.0, repeats=3)),
    **{f"nu {nu}": ("nu", lambda nu=nu: op.HvtUCB(dim=2, nu=nu)) for nu in (0, -1.0, np.nan, np.inf)},
    "nu 0 (HeavyOFUL)": ("nu", lambda: op.HeavyOFUL(dim=2, nu=0.0)),
    "moment": ("moment", lambda: op.CRTM(dim=2, moment=0.0)),
    "moment (TOFU)": ("moment", lambda: op.TOFU(dim=2, moment=-1.0)),
    "moment (MENU)": ("moment", lambda: op.MENU(dim=2, moment=np.nan, repeats=3)),
    "horizon 0": ("horizon", lambda: op.HvtUCB(dim=2, horizon=0)),
    "horizon 1.5": ("horizon", lambda: op.TOFU(dim=2, horizon=1.5)),
    "no horizon, no repeats": ("horizon", lambda: op.CRMM(dim=2)),
    "no horizon, no repeats (MENU)": ("horizon", lambda: op.MENU(dim=2)),
    "repeats 0": ("repeats", lambda: op.CRMM(dim=2, repeats=0)),
    "repeats 2.5": ("repeats", lambda: op.MENU(dim=2, repeats=2.5)),
    "clip": ("clip", lambda: op.HvtUCB(dim=2, clip=0.0)),
    "clip (CRTM)": ("clip", lambda: op.CRTM(dim=2, clip=-1.0)),
    "floor": ("floor", lambda: op.HvtUCB(dim=2, floor=-0.1)),
    "radius": ("radius", lambda: op.OnePassHuber(DESIGN, radius=-1.0)),
    "step": ("step", lambda: op.HvtUCB(dim=2, step=0.0)),
    "parameter_bound": ("parameter_bound", lambda: op.HvtUCB(dim=2, parameter_bound=0.0)),
    "theory": ("theory", lambda: op.OnePassHuber(DESIGN, theory=0.3)),
    "exploration": ("exploration", lambda: op.HvtUCB(dim=2, exploration="bold")),
    "design of another width": ("design", lambda: op.HvtUCB(dim=3, design=DESIGN)),
    "design of no kind": ("design", lambda: op.HvtUCB(dim=2, design="Exact")),
    "sketch for the whole history": ("design", lambda: op.AdaptiveHuber(op.FrequentDirections(dim=2, size=1))),
    "sketch for TOFU": ("design", lambda: op.TruncatedRidge(op.FrequentDirections(dim=2, size=1))),
    "disjoint with a horizon": ("estimator", lambda: op.HvtUCB(dim=2, horizon=9, parameters="disjoint")),
    "disjoint CRMM": ("estimator", lambda: op.Disjoint(op.OnePassMedian(DESIGN, repeats=3))),
    "disjoint MENU": ("estimator", lambda: op.Disjoint(op.MedianOfMeans(DESIGN, repeats=3))),
    "hybrid Huber": ("parameters", lambda: op.HvtUCB(dim=2, parameters="hybrid")),
    "hybrid Huber arms": ("arms", lambda: op.Hybrid(shared=op.Ridge(DESIGN), arms=op.OnePassHuber(DESIGN))),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_constructors_refuse_what_is_out_of_range_by_name(name):
    argument, make = REFUSED[name]
    with pytest.raises(ValueError, match=rf"^{argument} must"):
        make()


ROW, ROWS = np.array([0.3, -0.2, 0.5, 0.1]), stream(5, seed=20)[0]
UNLEARNED = {
    "NaN reward": ("rewards", lambda b: b.learn(ROW, np.nan)),
    "infinite reward": ("rewards", lambda b: b.learn(ROW, -np.inf)),
    "NaN in a batch": ("rewards", lambda b: b.learn(ROWS, [1.0, 2.0, np.nan, 0.0, 0.0])),
    "infinity in a game": ("rewards", lambda b: b.play(ROWS[None], [[1.0, np.inf, 0.0, 0.0, 0.0]])),
    "NaN context": ("contexts", lambda b: b.learn(ROW * np.nan, 1.0)),
    "nu 0": ("nu", lambda b: b.learn(ROW, 1.0, nu=0.0)),
    "nu -1": ("nu", lambda b: b.learn(ROW, 1.0, nu=-1.0)),
    "nu NaN": ("nu", lambda b: b.learn(ROW, 1.0, nu=np.nan)),
    "nu text": ("nu", lambda b: b.learn(ROW, 1.0, nu="big")),
    "nu of a batch for one row": ("nu", lambda b: b.learn(ROW, 1.0, nu=[0.3])),
    "too few nus": ("nu", lambda b: b.learn(ROWS, np.ones(5), nu=np.ones(4))),
    "a zero among nus": ("nu", lambda b: b.learn(ROWS, np.ones(5), nu=[1.0, 1.0, 0.0, 1.0, 1.0])),
    "nu of a game": ("nu", lambda b: b.play(ROWS[None], np.ones((1, 5)), nu=np.ones(5))),
    "infinite nu of a game": ("nu", lambda b: b.play(ROWS[None], np.ones((1, 5)), nu=[[1.0, 1.0, np.inf, 1.0, 1.0]])),
}


@pytest.mark.parametrize("name", UNLEARNED)
def test_bad_rows_rewards_and_noise_scales_change_nothing(name):
    argument, call = UNLEARNED[name]
    bandit = op.HvtUCB(dim=DIM, reg=0.37)
    bandit.learn(ROW, 1.0)
    before = fingerprint(bandit)
    with pytest.raises(ValueError, match=rf"^{argument} must"):
        call(bandit)
    assert fingerprint(bandit) == before


@pytest.mark.parametrize("make", [op.OFUL, op.CRTM, op.TOFU])
def test_a_noise_scale_is_refused_by_those_who_use_none(make):
    bandit = make(dim=DIM)
    before = fingerprint(bandit)
    for call in (lambda: bandit.learn(ROW, 1.0, nu=0.5), lambda: bandit.play(ROWS[None], np.ones((1, 5)), nu=[0.5])):
        with pytest.raises(ValueError, match=r"^nu must be None"):
            call()
    assert fingerprint(bandit) == before


def test_a_fixed_horizon_is_never_exceeded():
    contexts, rewards, _ = game(12)
    bandit = op.HvtUCB(dim=DIM, horizon=12, nu=0.5)
    bandit.play(contexts[:10], rewards[:10])
    before = fingerprint(bandit)
    for call in (
        lambda: bandit.learn(ROWS[:3], np.ones(3)),
        lambda: bandit.learn(ROWS[:3], np.ones(3), nu=np.ones(3)),
        lambda: bandit.play(contexts[:3], rewards[:3]),
    ):
        with pytest.raises(ValueError, match=r"^horizon was fixed at 12 rows.* 10 are learned, so 3 more"):
            call()
    assert fingerprint(bandit) == before
    bandit.learn(ROW, 1.0)
    bandit.learn(ROW, 1.0)
    before = fingerprint(bandit)
    with pytest.raises(ValueError, match=r"^horizon was fixed"):
        bandit.learn(ROW, 1.0)
    assert fingerprint(bandit) == before
    assert bandit.rounds == 12


@pytest.mark.parametrize("make", [SIX["CRMM"], SIX["MENU"]])
def test_an_epoch_broken_off_is_refused(make):
    contexts, rewards, _ = game(20)
    bandit = make()
    bandit.play(contexts[:10], rewards[:10])
    rows = contexts[0]
    arm = bandit.decide(rows).arm
    others = np.delete(rows, arm, axis=0)
    before = fingerprint(bandit)
    for call in (
        lambda: bandit.learn(others[0], 1.0),
        lambda: bandit.learn(np.stack([rows[arm], others[0]]), np.ones(2)),
        lambda: bandit.learn(np.stack([rows[arm]] * 4 + [others[0], rows[arm]]), np.ones(6)),
    ):
        with pytest.raises(ValueError, match=r"^contexts must repeat the arm being played 7 times"):
            call()
        assert fingerprint(bandit) == before
    with pytest.raises(ValueError, match=r"^contexts must offer the arm being played"):
        bandit.decide(others)
    saved, learned_rows, _ = fingerprint(bandit)  # the generator has moved, as after every decision
    assert (saved, learned_rows) == before[:2]
    moved = np.concatenate([contexts[:2], contexts[:1] + 1.0])
    with pytest.raises(ValueError, match=r"^contexts must offer the arm being played"):
        bandit.play(moved, rewards[:3])
    assert bandit.rounds == 12
    bandit.learn(np.stack([rows[arm]] * 2 + [others[0]] * 3), np.ones(5))  # in turn
    assert bandit.decide(rows).arm == int(np.flatnonzero((rows == others[0]).all(axis=1))[0])


# ---- one model per arm ----


PER_ARM = {  # arguments of the recipe, of the naive version, and the scale of the radius
    "arena": ({"exploration": 0.8}, {**PRACTICE, "radius": 0.8}, 1.0),
    "ball": ({"exploration": 0.8, "parameter_bound": 0.6}, {**PRACTICE, "radius": 0.8, "bound": 0.6}, 1.0),
    "theory": (
        {"exploration": op.Theory(parameter_bound=0.01, row_bound=1.5, delta=0.01, scale=0.3)},
        {"bound": 0.01, "row_bound": 1.5, "delta": 0.01 / 4},
        0.3,
    ),
}


@pytest.mark.parametrize("kind", PER_ARM)
def test_models_per_arm_equal_one_bandit_an_arm(kind, tmp_path):
    options, scales, share = PER_ARM[kind]
    rows, rewards = stream(90, seed=12)
    names = [("a", 7, "c")[i] for i in np.random.default_rng(13).integers(0, 3, 90)]
    bandit = op.HvtUCB(dim=DIM, reg=0.37, epsilon=0.5, parameters="disjoint", **options)
    assert bandit.estimator.compact == (kind == "arena")

    def apart(first, last, arm):
        naive = dense.HvtUCB(DIM, 0.37, 0.5, **scales)
        for i in range(first, last):
            if names[i] == arm:
                naive.learn(rows[i], rewards[i])
        return naive

    for start in range(0, 60, 15):
        bandit.learn(rows[start : start + 15], rewards[start : start + 15], names[start : start + 15])
    for arm in ("a", 7, "c"):
        assert_close(bandit.parameter_of(arm), apart(0, 60, arm).theta)
    bandit.remove_arm(7)
    bandit.add_arm("new")
    twin = bandit.copy()
    bandit.save(tmp_path / "arms")
    again = op.load(tmp_path / "arms")
    bandit.learn(rows[60:], rewards[60:], names[60:])
    for i in range(60, 90):
        again.learn(rows[i], rewards[i], names[i])
    assert twin.rounds == 60
    naive = {"a": apart(0, 90, "a"), 7: apart(60, 90, 7), "c": apart(0, 90, "c")}
    naive["new"] = dense.HvtUCB(DIM, 0.37, 0.5, **scales)
    assert (kind == "arena") == (naive["a"].projections == 0)
    want = [ROW @ n.theta + share * n.beta() * dense.width_in(n.matrix, ROW) for n in naive.values()]
    for one in (bandit, again):
        assert_close(one.score(ROW, arms=["a", 7, "c", "new"]), np.array(want))
    assert_close(twin.parameter_of("c"), apart(0, 60, "c").theta)


# ---- sketches and precision ----


@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("bound", [None, 0.5])
def test_sketches_larger_than_the_rank_change_nothing(reg, bound):
    rows, rewards = stream(250, seed=14, rank=3)
    found = {
        name: learned(op.OnePassHuber(make(reg), epsilon=0.5, parameter_bound=bound).begin(), rows, rewards).theta
        for name, make in DESIGNS.items()
    }
    naive = dense.HvtUCB(DIM, reg, 0.5, bound=np.inf if bound is None else bound, **PRACTICE)
    for x, r in zip(rows, rewards, strict=True):
        naive.learn(x, r)
    assert naive.projections == 0 if bound is None else 5 < naive.projections < 250
    for theta in found.values():
        assert_close(theta, naive.theta)


def test_single_precision_stays_close_to_double():
    rows, rewards = stream(200, seed=15)
    found = []
    for dtype in ("float64", "float32"):
        design = op.Exact(dim=DIM, reg=0.37, dtype=dtype)
        start = op.OnePassHuber(design, epsilon=0.5, nu=0.5, parameter_bound=0.8).begin()
        found.append(learned(start, rows.astype(dtype), rewards).theta)
    assert found[1].dtype == np.float32
    assert_close(found[1], found[0], 1e-4)


# ---- one game in any pieces, and units ----


@pytest.mark.parametrize("name", SIX)
def test_games_continue_exactly_in_pieces_in_copies_and_from_files(name, tmp_path):
    contexts, rewards, _ = game(150, seed=2)
    whole, pieces = SIX[name](seed=3), SIX[name](seed=3)
    arms = whole.play(contexts, rewards)
    first = pieces.play(contexts[:45], rewards[:45])
    pieces.save(tmp_path / "model")
    loaded, twin = op.load(tmp_path / "model"), pieces.copy()
    assert repr(loaded) == repr(pieces)
    for one in (loaded, twin, pieces):
        rest = one.play(contexts[45:], rewards[45:])
        assert [*first, *rest] == arms.tolist()
        assert fingerprint(one) == fingerprint(whole)


@pytest.mark.parametrize(("name", "told"), [("HvtUCB", False), ("HvtUCB", True), ("CRMM", False)])
def test_games_equal_decide_and_learn(name, told):
    contexts, rewards, _ = game(60, seed=4)
    nus = np.random.default_rng(5).uniform(0.2, 1.0, rewards.shape) if told else None
    together, apart, late = (SIX[name](seed=1) for _ in range(3))
    arms = together.play(contexts, rewards, nu=nus)
    taken = np.arange(60), arms
    for t, arm in enumerate(arms):
        assert apart.decide(contexts[t]).arm == arm
        apart.learn(contexts[t, arm], rewards[t, arm], nu=None if nus is None else nus[t, arm])
    late.learn(contexts[taken], rewards[taken], nu=None if nus is None else nus[taken])
    assert_close(apart.parameter, together.parameter, 1e-12)
    assert_close(late.parameter, together.parameter, 1e-12)


@pytest.mark.parametrize("nu", [0.4, None])
@pytest.mark.parametrize("c", [1e-3, 250.0])
def test_estimates_scale_with_the_unit_of_the_rewards(nu, c):
    rows, rewards = stream(300, seed=16)
    plain = op.OnePassHuber(op.Exact(dim=DIM, reg=0.37), epsilon=0.5, nu=nu, horizon=300)
    scaled = op.OnePassHuber(  # reg is in units of 1 / theta^2
        op.Exact(dim=DIM, reg=0.37 / c**2), epsilon=0.5, nu=None if nu is None else nu * c, horizon=300
    )
    want = c * learned(plain.begin(), rows, rewards).theta
    assert_close(learned(scaled.begin(), rows, rewards * c).theta, want)


# ---- an unknown noise scale ----


def test_rewards_that_are_all_zero_leave_an_unknown_scale_unknown_and_the_bandit_ready_to_learn():
    rows, _ = stream(400, seed=20)
    bandit = op.HvtUCB(dim=DIM)
    bandit.learn(rows, np.zeros(len(rows)))
    assert np.array_equal(bandit._learned.design.gram, np.eye(DIM))
    theta = np.array([0.5, -0.2, 0.3, 0.1])
    noise = 0.1 * np.random.default_rng(21).standard_normal((10, 400))
    bandit.learn(np.tile(rows, (10, 1)), (rows @ theta + noise).ravel())
    assert np.abs(bandit.parameter - theta).max() < 0.02


@pytest.mark.parametrize("first", [1e12, -1e12])
def test_an_unknown_scale_forgets_a_first_reward_of_1e12(first):
    rows, _ = stream(400, seed=22)
    bandit = op.HvtUCB(dim=DIM)
    bandit.learn(rows[0], first)
    theta = np.array([0.5, -0.2, 0.3, 0.1])
    noise = 0.1 * np.random.default_rng(23).standard_normal((10, 400))
    bandit.learn(np.tile(rows, (10, 1)), (rows @ theta + noise).ravel())
    assert np.abs(bandit.parameter - theta).max() < 0.02


def test_an_unknown_scale_stays_finite_and_falls_no_faster_than_1_over_t_on_exact_rewards():
    rows, _ = stream(1000, seed=24)
    theta = np.array([0.5, -0.2, 0.3, 0.1])
    bandit = op.HvtUCB(dim=DIM)
    for _ in range(30):
        bandit.learn(rows, rows @ theta)
    noise = bandit._learned.noise
    assert noise.mean > 1e-6
    assert np.isfinite(bandit._learned.design.gram).all()
    np.testing.assert_allclose(bandit.parameter, theta, atol=1e-9)


def test_a_twentieth_of_the_rewards_being_gross_outliers_does_not_move_an_unknown_scale_far():
    rows, _ = stream(4000, seed=25)
    rng = np.random.default_rng(26)
    rewards = rows @ np.array([0.5, -0.2, 0.3, 0.1]) + 0.1 * rng.standard_normal(4000)
    clean, struck = op.HvtUCB(dim=DIM), op.HvtUCB(dim=DIM)
    clean.learn(rows, rewards)
    rewards[rng.random(4000) < 0.05] = 1e9
    struck.learn(rows, rewards)
    clean_size, size = (b._learned.noise.size for b in (clean, struck))
    assert size < 2.0 * clean_size
    assert struck._learned.noise.mean < 20.0 * clean._learned.noise.mean


# ---- online Newton steps ----


@pytest.mark.parametrize("reg", REGS)
def test_online_newton_on_an_exact_design_is_ridge_regression(reg):
    rows, rewards = stream(300, seed=30)
    newton, ridge = op.OnlineNewton(op.Exact(dim=DIM, reg=reg)), op.Ridge(op.Exact(dim=DIM, reg=reg))
    assert_close(
        contract.parameter(learned(newton.begin(), rows, rewards)),
        contract.parameter(learned(ridge.begin(), rows, rewards)),
    )


@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("step", [0.7, 4.0])
def test_online_newton_equals_the_naive_step(reg, step):
    rows, rewards = stream(300, seed=31)
    state = learned(op.OnlineNewton(op.Exact(dim=DIM, reg=reg), step=step).begin(), rows, rewards)
    matrix, theta = reg * np.eye(DIM), np.zeros(DIM)
    for x, reward in zip(rows, rewards, strict=True):
        matrix = matrix + np.outer(x, x) / step
        theta = theta + np.linalg.solve(matrix, x) * (reward - x @ theta)
    assert_close(state.theta, theta)


# ---- per arm, in the arena ----


@pytest.mark.parametrize("options", [{"nu": 0.7}, {}, {"nu": 0.5, "step": 4.0, "clip": 0.02, "epsilon": 0.4}])
@pytest.mark.parametrize("reg", REGS)
def test_the_arena_learns_one_pass_huber_per_arm_as_ridge_regression_on_other_rewards(options, reg):
    rng = np.random.default_rng(40)
    pair = [
        op.Bandit(op.Disjoint(op.OnePassHuber(op.Exact(dim=DIM, reg=reg), **options), compact=compact), op.UCB(1.0))
        for compact in (True, False)
    ]
    for _ in range(60):
        count = int(rng.integers(1, 6))
        rows, rewards, arms = rng.standard_normal((count, DIM)), rng.standard_t(1.3, count), rng.integers(0, 3, count)
        rewards[rng.random(count) < 0.1] = 0.0
        for bandit in pair:
            bandit.learn(rows, rewards, [int(arm) for arm in arms])
    queries = rng.standard_normal((5, 1, DIM))
    scores = [bandit.score(queries) for bandit in pair]
    assert_close(scores[0], scores[1])
    assert pair[0].memory_usage() < 10_000


def test_arms_of_huber_models_are_saved_and_continue_exactly(tmp_path):
    rng = np.random.default_rng(41)
    bandit = op.HvtUCB(dim=DIM, parameters="disjoint")
    assert bandit.estimator.compact
    bandit.learn(rng.standard_normal((40, DIM)), rng.standard_t(1.5, 40), ["a", "b"] * 20)
    bandit.save(tmp_path / "arms")
    loaded = op.load(tmp_path / "arms")
    rows, rewards = rng.standard_normal((40, DIM)), rng.standard_t(1.5, 40)
    for one in (bandit, loaded):
        one.learn(rows, rewards, ["b", "c"] * 20)
    x = rng.standard_normal(DIM)
    assert np.array_equal(bandit.score(x), loaded.score(x))


# ---- what a reviewer found ----


def test_arms_played_in_a_row_are_refused_behind_a_projection_and_for_several_decisions_at_once():
    projection = op.GaussianProjection(dim=40, size=DIM, seed=1)
    with pytest.raises(ValueError, match="features"):
        op.Bandit(op.OnePassMedian(op.Exact(dim=DIM), repeats=3), op.UCB(1.0), features=projection)
    with pytest.raises(ValueError, match="contexts"):
        op.CRMM(dim=DIM, repeats=3).decide(np.ones((2, 3, DIM)))


def test_scores_in_the_middle_of_an_epoch_need_not_offer_the_arm_being_played():
    bandit = op.CRMM(dim=DIM, repeats=3)
    bandit.learn(np.eye(DIM)[0], 1.0)
    assert bandit.score(np.eye(DIM)[1:]).shape == (DIM - 1,)


@pytest.mark.parametrize("model", [lambda e: e, op.Disjoint])
def test_a_theoretical_radius_is_refused_for_estimators_that_were_not_given_its_constants(model):
    with pytest.raises(ValueError, match="theory="):
        op.Bandit(model(op.OnePassHuber(op.Exact(dim=DIM))), op.UCB(op.Theory()))


@pytest.mark.parametrize("nu", [1e200, 1e-200])
def test_noise_scales_whose_square_is_no_number_are_refused(nu):
    with pytest.raises(ValueError, match="nu"):
        op.HvtUCB(dim=DIM, nu=nu)
    bandit = op.HvtUCB(dim=DIM)
    with pytest.raises(ValueError, match="nu"):
        bandit.learn(np.ones(DIM), 1.0, nu=nu)
    assert bandit.rounds == 0


def test_one_noise_scale_may_be_told_for_a_whole_batch():
    rows, rewards = stream(50, seed=50)
    one, each = op.HvtUCB(dim=DIM), op.HvtUCB(dim=DIM)
    one.learn(rows, rewards, nu=0.3)
    each.learn(rows, rewards, nu=np.full(50, 0.3))
    assert np.array_equal(one.parameter, each.parameter)


def test_hybrid_parameters_are_refused_by_name():
    with pytest.raises(ValueError, match="parameters"):
        op.HvtUCB(dim=DIM, parameters="hybrid")
