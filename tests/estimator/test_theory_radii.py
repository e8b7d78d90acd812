"""Theory radii equal the papers' formulas, written here once more, for bounds of rows, theta and noise other than 1."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onepass as op
from onepass.estimator import contract


class Setting(NamedTuple):
    """R, S, L, delta, and what the estimator is told."""

    noise: float
    parameter_bound: float
    row_bound: float
    delta: float
    dim: int
    reg: float
    epsilon: float
    horizon: int | None

    @property
    def theory(self):
        return op.Theory(
            noise=self.noise, parameter_bound=self.parameter_bound, row_bound=self.row_bound, delta=self.delta
        )


SETTINGS = [
    Setting(0.2, 1000.0, 0.3, 0.01, 2, 2.0, 1.0, 1000),
    Setting(3.0, 0.5, 4.0, 0.2, 5, 0.37, 0.4, None),
    Setting(0.6, 7.0, 25.0, 1e-4, 4, 25.0, 0.7, 90),
    Setting(1.7, 0.04, 0.8, 0.6, 3, 1e-3, 0.15, 60),
]
ROUNDS = 30


def rows_and_rewards(s, count=ROUNDS, rank=None, seed=0):
    """Rows no longer than L that span `rank` dimensions, rewards for theta of length S."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, rank or s.dim)) @ rng.standard_normal((rank or s.dim, s.dim))
    rows *= s.row_bound * rng.uniform(0.1, 1.0, (count, 1)) / np.linalg.norm(rows, axis=1, keepdims=True)
    theta = rng.standard_normal(s.dim)
    return rows, rows @ theta * s.parameter_bound / np.linalg.norm(theta) + s.noise * rng.standard_normal(count)


def radius_seen(bandit, query, **options):
    """What a decision adds to its mean, in widths."""
    decision = bandit.decide(query, **options)
    return float((decision.scores[0] - decision.means[0]) / decision.widths[0])


def played(bandit, s, query, **options):
    """The radius after ROUNDS rows."""
    rows, rewards = rows_and_rewards(s, **options)
    bandit.learn(rows, rewards)
    return radius_seen(bandit, query)


def oful(gain, s, ridge):
    """R sqrt(log(det A / det(reg I)) + 2 log(1 / delta)) + S sqrt(ridge)."""
    return s.noise * np.sqrt(gain - 2 * np.log(s.delta)) + s.parameter_bound * np.sqrt(ridge)


# ---- designs ----


@pytest.mark.parametrize("s", SETTINGS)
def test_the_exact_design_has_the_radius_of_oful(s):
    bandit, query = op.OFUL(dim=s.dim, reg=s.reg, exploration=s.theory), np.full((1, s.dim), s.row_bound)
    rows, _ = rows_and_rewards(s)
    gain = np.linalg.slogdet(np.eye(s.dim) + rows.T @ rows / s.reg)[1]
    assert played(bandit, s, query) == pytest.approx(oful(gain, s, s.reg), rel=1e-9)


@pytest.mark.parametrize("s", SETTINGS)
def test_sketches_have_the_radii_of_soful_and_cbscfd(s):
    size, dim, query = 1, s.dim + 4, np.full((1, s.dim + 4), s.row_bound)
    wide = s._replace(dim=dim)
    for make in (op.SOFUL, op.CBSCFD):
        bandit = make(dim=dim, size=size, reg=s.reg, exploration=s.theory)
        got, shed = played(bandit, wide, query), bandit.error_bound()
        assert shed > 0.1 * s.reg
        rank, t = 2 * size, ROUNDS
        inside = dim * np.log(1 + shed / s.reg) - 2 * np.log(s.delta)
        if make is op.SOFUL:
            inside += rank * np.log(1 + t * s.row_bound**2 / (rank * s.reg))
            want = s.noise * np.sqrt(inside) * np.sqrt(1 + shed / s.reg)
            want += s.parameter_bound * (s.reg + shed) / np.sqrt(s.reg)
        else:
            h = shed - size * shed / (2 * size)
            inside += rank * np.log(1 + t * s.row_bound**2 / (rank * s.reg) + h / s.reg)
            want = s.noise * np.sqrt(inside) + s.parameter_bound * np.sqrt(s.reg + shed)
        assert got == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize("s", SETTINGS)
@pytest.mark.parametrize("compensate", [False, True])
@pytest.mark.parametrize("lossy", [False, True])
def test_projector_splitting_has_the_radius_of_oful_at_its_own_matrix(s, compensate, lossy):
    dim, rank = s.dim + 6, 2
    wide = s._replace(dim=dim)
    design = op.ProjectorSplitting(dim=dim, rank=rank, reg=s.reg, compensate=compensate)
    query = np.full((1, dim), s.row_bound)
    got = played(op.Bandit(op.Ridge(design), op.UCB(s.theory)), wide, query, rank=None if lossy else rank)
    design.append(rows_and_rewards(wide, rank=None if lossy else rank)[0])
    values = np.linalg.eigvalsh(design.matrix())
    gain = max(np.log(values / s.reg).sum(), 0.0)
    ridge = values[0] if compensate and lossy else s.reg
    assert got == pytest.approx(oful(gain, s, ridge), rel=1e-6)


@pytest.mark.parametrize("s", SETTINGS)
@pytest.mark.parametrize("compact", [True, False])
def test_an_arm_has_the_radius_of_its_own_rows_and_k_arms_hold_together_at_delta_over_k(s, compact):
    rows, rewards = rows_and_rewards(s)
    names = [("a", "b", "c")[i % 3] for i in range(ROUNDS)]
    shared_out = s._replace(delta=s.delta / 3)
    bandit = op.Bandit(
        op.Disjoint(op.Ridge(op.Exact(dim=s.dim, reg=s.reg)), compact=compact), op.UCB(shared_out.theory)
    )
    bandit.learn(rows, rewards, names)
    decision = bandit.decide(np.full(s.dim, s.row_bound))
    for a in range(3):
        own = rows[a::3]
        gain = np.linalg.slogdet(np.eye(s.dim) + own.T @ own / s.reg)[1]
        want = s.noise * np.sqrt(gain + 2 * np.log(3 / s.delta)) + s.parameter_bound * np.sqrt(s.reg)
        got = (decision.scores[a] - decision.means[a]) / decision.widths[a]
        assert got == pytest.approx(want, rel=1e-9)


def test_forty_arms_fail_together_more_often_than_delta_and_not_at_delta_over_40():
    arms, count, reg, delta, games = 40, 30, 30.0, 0.5, 100
    rows, rng, failures = np.ones((arms * count, 1)), np.random.default_rng(3), {1: 0, arms: 0}
    for share in failures:
        theory = op.Theory(parameter_bound=0.01, delta=delta / share)
        for _ in range(games):
            bandit = op.LinUCB(dim=1, reg=reg, model="disjoint", exploration=theory)
            names = np.repeat(np.arange(arms), count).tolist()
            bandit.learn(rows, 0.01 + rng.standard_normal(arms * count), names)
            decision = bandit.decide(np.ones(1))
            failures[share] += bool((np.abs(decision.means - 0.01) > decision.scores - decision.means).any())
    margin = 3 * np.sqrt(games * delta * (1 - delta))
    assert failures[1] > games * delta + margin
    assert failures[arms] <= games * delta


# ---- estimators for heavy tails ----


def scales(s, t, step, deltas):
    """T, p, log(2 T^2 / delta), kappa, tau_0; delta is shared out among the deltas that the theorem spends."""
    T = max(t, 1) if s.horizon is None else s.horizon
    p, log = (1 - s.epsilon) / (2 * (1 + s.epsilon)), np.log(2 * T**2 * deltas / s.delta)
    kappa = s.dim * np.log(1 + s.row_bound**2 * T * T / (s.reg * step * s.dim))  # sigma_min^2 = 1 / T
    return T, p, log, kappa, np.sqrt(2 * kappa) * np.log(3 * T) ** p / log ** (1 / (1 + s.epsilon))


def hvt_radius(s, t):
    _, p, log, _, tau = scales(s, t, 4, 4)
    return 107 * log * tau * max(t, 1) ** p + np.sqrt(s.reg * (2 + 4 * s.parameter_bound**2))


def heavy_oful_radius(s, t):
    T, p, log, kappa, _ = scales(s, t, 1, 3)
    noise = 24 * max(t, 1) ** p * np.sqrt(2 * kappa) * np.log(3 * T) ** p * log ** (s.epsilon / (1 + s.epsilon))
    return 3 * np.sqrt(s.reg) * s.parameter_bound + noise


def tofu_radius(s, t, v=2.5):
    T, p = scales(s, t, 1, 1)[:2]
    log = np.log(2 * s.dim * T / s.delta) ** (s.epsilon / (1 + s.epsilon))
    noise = 4 * np.sqrt(s.dim) * v ** (1 / (1 + s.epsilon)) * log * max(t, 1) ** p
    return noise + np.sqrt(s.reg) * s.parameter_bound


def menu_radius(s, t, v=2.5):
    p, n = (1 - s.epsilon) / (2 * (1 + s.epsilon)), max(t // 3, 1)
    noise = 3 * (9 * s.dim * v) ** (1 / (1 + s.epsilon)) * n**p
    return noise + 3 * np.sqrt(s.reg) * s.parameter_bound


HEAVY = {
    "HvtUCB": (lambda **k: op.HvtUCB(nu=0.5, **k), hvt_radius),
    "HeavyOFUL": (lambda **k: op.HeavyOFUL(nu=0.5, **k), heavy_oful_radius),
    "TOFU": (lambda **k: op.TOFU(moment=2.5, **k), tofu_radius),
    "MENU": (lambda **k: op.MENU(moment=2.5, repeats=3, **k), menu_radius),
}


def heavy(name, s):
    return HEAVY[name][0](dim=s.dim, reg=s.reg, epsilon=s.epsilon, horizon=s.horizon, exploration=s.theory)


@pytest.mark.parametrize("s", SETTINGS)
@pytest.mark.parametrize("name", HEAVY)
def test_estimators_for_heavy_tails_have_the_radii_of_their_papers(name, s):
    bandit, formula = heavy(name, s), HEAVY[name][1]
    query = np.full((1, s.dim), s.row_bound)
    assert radius_seen(bandit, query) == pytest.approx(formula(s, 0), rel=1e-9)
    rows, rewards = rows_and_rewards(s, ROUNDS // 3)
    bandit.learn(np.repeat(rows, 3, axis=0), np.repeat(rewards, 3))
    assert radius_seen(bandit, query) == pytest.approx(formula(s, ROUNDS), rel=1e-9)


@given(st.data())
@settings(max_examples=60, deadline=None, derandomize=True)
def test_no_radius_is_below_what_theta_can_be_in_a_direction_never_seen(data):
    """||theta_*||_A = sqrt(reg) S there, whatever was learned of others."""
    s = Setting(
        data.draw(st.sampled_from([0.1, 5.0])), 10.0 ** data.draw(st.integers(-3, 6)),
        10.0 ** data.draw(st.integers(-2, 3)), data.draw(st.sampled_from([1e-6, 0.01, 0.5])), 2,
        10.0 ** data.draw(st.integers(-4, 4)), data.draw(st.sampled_from([0.2, 0.5, 1.0])),
        data.draw(st.sampled_from([None, 20, 1000])),
    )  # fmt: skip
    for bandit in (op.OFUL(dim=2, reg=s.reg, exploration=s.theory), *(heavy(name, s) for name in HEAVY)):
        assert radius_seen(bandit, np.eye(2)[:1]) >= np.sqrt(s.reg) * s.parameter_bound * (1 - 1e-12)
        bandit.learn(np.tile([0.0, s.row_bound], (6, 1)), np.full(6, s.row_bound * s.parameter_bound))
        assert radius_seen(bandit, np.eye(2)[:1]) >= np.sqrt(s.reg) * s.parameter_bound * (1 - 1e-9)


def test_heavy_oful_covers_a_parameter_of_length_1000():
    s = Setting(1.0, 1000.0, 1.0, 0.01, 2, 2.0, 1.0, 1000)
    got = radius_seen(heavy("HeavyOFUL", s), np.eye(2)[:1])
    assert got > 3 * np.sqrt(2.0) * 1000.0  # where 3 sqrt(reg) in place of 3 sqrt(reg) S made it 744
    assert got == pytest.approx(heavy_oful_radius(s, 0), rel=1e-9)


# ---- what is radius and what is threshold go by one theory ----


@pytest.mark.parametrize("make", [op.CRTM, op.CRMM])
def test_theory_is_refused_by_estimators_of_no_known_radius(make):
    with pytest.raises(ValueError, match=r"^exploration .*no theoretical radius"):
        make(dim=2, horizon=100, exploration=op.Theory())


@pytest.mark.parametrize("options", [{"parameter_bound": 2.0}, {"row_bound": 2.0}, {"delta": 0.02}])
@pytest.mark.parametrize("model", [lambda e: e, op.Disjoint])
def test_a_rule_by_other_constants_than_the_estimators_is_refused(options, model):
    estimator = op.OnePassHuber(op.Exact(dim=2), theory=op.Theory())
    op.Bandit(model(estimator), op.UCB(op.Theory(scale=0.1, noise=3.0)))  # the radius has no noise, and is scaled after
    with pytest.raises(ValueError, match=r"^exploration must have the parameter_bound, row_bound and delta"):
        op.Bandit(model(estimator), op.UCB(op.Theory(**options)))


@pytest.mark.parametrize("make", [op.HvtUCB, op.HeavyOFUL])
def test_a_ball_beside_theory_is_refused(make):
    with pytest.raises(ValueError, match=r"^parameter_bound must be None beside theory"):
        make(dim=2, exploration=op.Theory(), parameter_bound=3.0)


@pytest.mark.parametrize("kind", [lambda design: op.OnlineNewton(design, step=2.0), op.estimator.TruncatedRidge])
def test_an_estimator_that_was_given_no_theory_has_no_radius(kind):
    with pytest.raises(ValueError, match=r"^exploration .*no theoretical radius"):
        op.Bandit(kind(op.Exact(dim=2)), op.UCB(op.Theory()))


@pytest.mark.parametrize(("delta", "horizon"), [(0.3, 40), (1e-6, 7000), (None, 40)])
def test_menu_repeats_an_arm_as_often_as_its_delta_asks_for(delta, horizon):
    rule = 1.0 if delta is None else op.Theory(delta=delta)
    repeats = op.MENU(dim=2, horizon=horizon, exploration=rule).model.state.epoch.rewards.size
    assert repeats == int(np.ceil(24 * np.log(np.e * horizon / (1 / (8 * horizon) if delta is None else delta))))


def test_contract_radii_are_infinite_where_nothing_is_known():
    state = op.OnlineNewton(op.Exact(dim=2), step=2.0).begin()
    assert contract.radius(state, 0, 1.0, 1.0, 1.0, 0.1) == np.inf
