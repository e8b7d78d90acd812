"""Heavy tails per arm, on sketches, in single precision, in pieces and from files; scales that are not known."""

import numpy as np
import pytest

import dense
import onepass as op
from counts import LONG
from heavy_games import DESIGNS, DIM, PRACTICE, ROW, SIX, assert_close, fingerprint, game, state_after, stream
from onepass.estimator import contract
from onepass.testing import REGS

# ---- one model per arm ----
PER_ARM = {  # arguments of the recipe, of the naive version, and the scale of the radius
    "arena": ({"exploration": 0.8}, PRACTICE, 0.8),
    "ball": ({"exploration": 0.8, "parameter_bound": 0.6}, {**PRACTICE, "bound": 0.6}, 0.8),
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
    bandit = op.HvtUCB(dim=DIM, reg=0.37, epsilon=0.5, model="disjoint", **options)
    assert bandit.model.estimator.compact == (kind == "arena")

    def apart(first, last, arm):
        naive = dense.HvtUCB(DIM, 0.37, 0.5, **scales)
        for i in range(first, last):
            if names[i] == arm:
                naive.learn(rows[i], rewards[i])
        return naive

    for start in range(0, 60, 15):
        bandit.learn(rows[start : start + 15], rewards[start : start + 15], names[start : start + 15])
    for arm in ("a", 7, "c"):
        assert_close(bandit.model.parameter_of(arm), apart(0, 60, arm).theta)
    bandit.remove_arm(7)
    bandit.add_arm("new")
    twin = bandit.copy()
    bandit.save(tmp_path / "arms")
    again = op.load(tmp_path / "arms")
    bandit.learn(rows[60:], rewards[60:], names[60:])
    for i in range(60, 90):
        again.learn(rows[i], rewards[i], names[i])
    assert twin.n_learned == 60
    naive = {"a": apart(0, 90, "a"), 7: apart(60, 90, 7), "c": apart(0, 90, "c")}
    naive["new"] = dense.HvtUCB(DIM, 0.37, 0.5, **scales)
    assert (kind == "arena") == (naive["a"].projections == 0)
    if kind == "theory":
        beta = [share * n.beta() for n in naive.values()]
    else:  # the noise of all arms together
        pooled = np.sqrt(sum(n.t * n.noise.square for n in naive.values()) / sum(n.t for n in naive.values()))
        beta = [share * pooled] * len(naive)
    want = [ROW @ n.theta + b * dense.width_in(n.matrix, ROW) for n, b in zip(naive.values(), beta, strict=True)]
    for one in (bandit, again):
        assert_close(one.score(ROW, arms=["a", 7, "c", "new"]), np.array(want))
    assert_close(twin.model.parameter_of("c"), apart(0, 60, "c").theta)


# ---- sketches and precision ----


@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("bound", [None, 0.5])
def test_sketches_larger_than_the_rank_change_nothing(reg, bound):
    rows, rewards = stream(250, seed=14, rank=3)
    found = {
        name: state_after(op.OnePassHuber(make(reg), epsilon=0.5, parameter_bound=bound).begin(), rows, rewards).theta
        for name, make in DESIGNS.items()
        if LONG or name != "Dyadic"
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
        found.append(state_after(start, rows.astype(dtype), rewards).theta)
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
    assert_close(apart.model.parameter, together.model.parameter, 1e-12)
    assert_close(late.model.parameter, together.model.parameter, 1e-12)


@pytest.mark.parametrize("nu", [0.4, None])
@pytest.mark.parametrize("c", [1e-3, 250.0])
def test_estimates_scale_with_the_unit_of_the_rewards(nu, c):
    rows, rewards = stream(300, seed=16)
    plain = op.OnePassHuber(op.Exact(dim=DIM, reg=0.37), epsilon=0.5, nu=nu, horizon=300)
    scaled = op.OnePassHuber(op.Exact(dim=DIM, reg=0.37), epsilon=0.5, nu=None if nu is None else nu * c, horizon=300)
    want = c * state_after(plain.begin(), rows, rewards).theta
    assert_close(state_after(scaled.begin(), rows, rewards * c).theta, want)


# ---- an unknown noise scale ----


def test_rewards_that_are_all_zero_are_learned_as_by_ridge_regression_and_leave_an_unknown_scale_unknown():
    rows, _ = stream(400, seed=20)
    bandit, ridge = op.HvtUCB(dim=DIM), op.OFUL(dim=DIM)
    bandit.learn(rows, np.zeros(len(rows)))
    ridge.learn(rows, np.zeros(len(rows)))
    assert bandit.model.state.noise.size == bandit.model.state.noise.square == 0.0
    assert bandit.model.state.design.log_det == pytest.approx(ridge.model.state.design.log_det, rel=1e-12)
    theta = np.array([0.5, -0.2, 0.3, 0.1])
    noise = 0.1 * np.random.default_rng(21).standard_normal((10, 400))
    for one in (bandit, ridge):
        one.learn(np.tile(rows, (10, 1)), (rows @ theta + noise).ravel())
    assert (
        np.abs(bandit.model.parameter - ridge.model.parameter).max() < 0.005
    )  # a tenth of what is to be learned since then


@pytest.mark.parametrize("first", [1e12, -1e12])
def test_an_unknown_scale_forgets_a_first_reward_of_1e12(first):
    rows, _ = stream(400, seed=22)
    bandit = op.HvtUCB(dim=DIM)
    bandit.learn(rows[0], first)
    theta = np.array([0.5, -0.2, 0.3, 0.1])
    noise = 0.1 * np.random.default_rng(23).standard_normal((10, 400))
    bandit.learn(np.tile(rows, (10, 1)), (rows @ theta + noise).ravel())
    assert np.abs(bandit.model.parameter - theta).max() < 0.02


def test_an_unknown_scale_stays_finite_and_falls_no_faster_than_1_over_t_on_exact_rewards():
    rows, _ = stream(1000, seed=24)
    theta = np.array([0.5, -0.2, 0.3, 0.1])
    bandit, ridge = op.HvtUCB(dim=DIM), op.OFUL(dim=DIM)
    for _ in range(30):
        for one in (bandit, ridge):
            one.learn(rows, rows @ theta)
    noise = bandit.model.state.noise
    assert noise.mean > 1e-6
    assert np.isfinite(bandit.model.state.design.gram).all()
    np.testing.assert_allclose(ridge.model.parameter, theta, atol=2e-4)
    np.testing.assert_allclose(
        bandit.model.parameter, ridge.model.parameter, atol=2e-4
    )  # reg, and at most a few rows less


def test_a_twentieth_of_the_rewards_being_gross_outliers_does_not_move_an_unknown_scale_far():
    rows, _ = stream(4000, seed=25)
    rng = np.random.default_rng(26)
    rewards = rows @ np.array([0.5, -0.2, 0.3, 0.1]) + 0.1 * rng.standard_normal(4000)
    clean, struck = op.HvtUCB(dim=DIM), op.HvtUCB(dim=DIM)
    clean.learn(rows, rewards)
    rewards[rng.random(4000) < 0.05] = 1e9
    struck.learn(rows, rewards)
    clean_size, size = (b.model.state.noise.size for b in (clean, struck))
    assert size < 2.0 * clean_size
    assert struck.model.state.noise.mean < 20.0 * clean.model.state.noise.mean


# ---- online Newton steps ----


@pytest.mark.parametrize("reg", REGS)
def test_online_newton_on_an_exact_design_is_ridge_regression(reg):
    rows, rewards = stream(300, seed=30)
    newton, ridge = op.OnlineNewton(op.Exact(dim=DIM, reg=reg)), op.Ridge(op.Exact(dim=DIM, reg=reg))
    assert_close(
        contract.parameter(state_after(newton.begin(), rows, rewards)),
        contract.parameter(state_after(ridge.begin(), rows, rewards)),
    )


@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("step", [0.7, 4.0])
def test_online_newton_equals_the_naive_step(reg, step):
    rows, rewards = stream(300, seed=31)
    state = state_after(op.OnlineNewton(op.Exact(dim=DIM, reg=reg), step=step).begin(), rows, rewards)
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
    bandit = op.HvtUCB(dim=DIM, model="disjoint")
    assert bandit.model.estimator.compact
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
    projection = op.features.GaussianProjection(dim=40, size=DIM, seed=1)
    with pytest.raises(ValueError, match="features"):
        op.Bandit(op.estimator.OnePassMedian(op.Exact(dim=DIM), repeats=3), op.UCB(1.0), features=projection)
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
    assert bandit.n_learned == 0


def test_one_noise_scale_may_be_told_for_a_whole_batch():
    rows, rewards = stream(50, seed=50)
    one, each = op.HvtUCB(dim=DIM), op.HvtUCB(dim=DIM)
    one.learn(rows, rewards, nu=0.3)
    each.learn(rows, rewards, nu=np.full(50, 0.3))
    assert np.array_equal(one.model.parameter, each.model.parameter)


def test_hybrid_parameters_are_refused_by_name():
    with pytest.raises(ValueError, match="model"):
        op.HvtUCB(dim=DIM, model="hybrid")
