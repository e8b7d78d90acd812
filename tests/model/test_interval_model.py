"""Actions in an interval: a dense oracle, exact densities, records, games, and what is refused."""

import json
import math

import numpy as np
import pytest

import onepass as op
from onepass.exploration.rule import make_rule
from onepass.model.contract import Model
from onepass.model.interval.interval import CELLS
from onepass.model.interval.posterior import FIRST_REWARD, SplinePosterior
from onepass.model.interval.splines import KEPT, SPLINES, b_splines, smooth_basis, smooth_functions

PRICES = op.Interval(4.0, 40.0, log=True)
SALES = op.Interval(4.0, 40.0, log=True, demand=True, cost=1.0)


def test_splines_are_those_of_scipy_and_functions_are_orthonormal_with_the_penalty_diagonal():
    from scipy.interpolate import BSpline

    t = np.random.default_rng(0).random(50)
    step = 1.0 / (SPLINES - 3)
    knots = np.arange(-3, SPLINES + 1) * step
    assert np.allclose(b_splines(t), BSpline.design_matrix(t, knots, 3).toarray(), atol=1e-14)
    vectors, penalties = smooth_basis()
    fine = smooth_functions((np.arange(20_000) + 0.5) / 20_000)
    assert np.allclose(fine.T @ fine / len(fine), np.eye(KEPT), atol=1e-5)
    second = np.diff(vectors, 2, axis=0)
    gram = second.T @ second
    assert np.allclose(gram, np.diag(penalties) * gram[2, 2], atol=1e-7)
    assert np.allclose(fine[:, 0], 1.0)


def test_the_posterior_is_that_of_dense_ridge_regression_after_columns_have_grown():
    rng = np.random.default_rng(1)
    posterior, rows, rewards = SplinePosterior(1, False), [], []
    for n in range(70):
        if n == 20:
            posterior.grow(3)
        x, t, y = np.append(1.0, rng.standard_normal(posterior.columns - 1)), rng.random(), rng.standard_normal()
        psi = smooth_functions(np.array([t]))[0]
        posterior.add_row(x, psi, y)
        rows.append(np.append(np.outer(x, psi).reshape(-1), np.zeros((3 - posterior.columns) * KEPT)))
        rewards.append(y)
    z, y = np.array(rows), np.array(rewards)
    variances = posterior.prior_variances(posterior.choice)
    matrix = z.T @ z + np.diag(1.0 / variances)
    assert np.allclose(posterior.theta, np.linalg.solve(matrix, z.T @ y), atol=1e-9)
    assert np.allclose(posterior.inverse, np.linalg.inv(matrix), rtol=1e-6, atol=1e-9)
    covariance = np.eye(len(y)) + (z * variances) @ z.T
    noise, n = (y @ np.linalg.solve(covariance, y) + 0.5 * y.var(ddof=1)) / (len(y) + 1.0), len(y)
    log_det = np.linalg.slogdet(covariance)[1]
    prior = -0.5 * float(((posterior.choice - np.array(FIRST_REWARD)) ** 2).sum())
    found = posterior.fit_of(posterior.choice)
    assert found.noise == pytest.approx(noise, rel=1e-8)
    assert found.evidence == pytest.approx(-0.5 * log_det - 0.5 * (n + 1.0) * np.log(noise) + prior, rel=1e-8)
    x = np.array([1.0, 0.3, -2.0])
    mean, spread = posterior.moments(x)
    each = np.kron(x[:, None], np.eye(KEPT))
    assert np.allclose(mean, each.T @ posterior.theta)
    assert np.allclose(spread, posterior.noise[0] * each.T @ posterior.inverse @ each, atol=1e-9)


@pytest.mark.parametrize("actions", [PRICES, op.Interval(-1.0, 2.0), SALES])
def test_actions_have_the_density_of_their_records(actions):
    bandit = op.ContextualBandit(seed=2)
    for _ in range(30):
        decision = bandit.decide({"x": 1.0}, actions)
        bandit.learn(decision, (decision.arm - actions.cost) * (decision.arm < 9.0))
    edges = np.array([actions.action(t) for t in np.linspace(0.0, 1.0, CELLS + 1)])
    p = bandit.decide({"x": 1.0}, actions).probabilities
    middles = np.array([actions.action(t) for t in (np.arange(64 * CELLS) + 0.5) / (64 * CELLS)])
    density = np.array([actions.density(a, q) for a, q in zip(middles, np.repeat(p, 64), strict=True)])
    widths = np.diff([actions.action(t) for t in np.linspace(0.0, 1.0, 64 * CELLS + 1)])
    assert (density * widths).sum() == pytest.approx(1.0, abs=1e-3)
    for _ in range(20):
        one = bandit.decide({"x": 1.0}, actions)
        assert edges[one.index] <= one.arm <= edges[one.index + 1]
        assert one.density == actions.density(one.arm, one.propensity)
        scale = math.log(10.0) if actions.log else 3.0
        assert one.half_width == pytest.approx(scale / (2 * CELLS))


def test_records_are_json_and_replay_exactly():
    live, replayed = op.ContextualBandit(seed=3), op.ContextualBandit(seed=3)
    rng = np.random.default_rng(4)
    for n in range(40):
        decision = live.decide({"age": rng.normal(), "from": "ad" if n % 3 else "mail"}, SALES, id=f"d{n}")
        reward = (decision.arm - 1.0) * float(rng.random() < 0.4)
        live.learn(decision, reward)
        replayed.learn(op.Decision.from_dict(json.loads(json.dumps(decision.to_dict()))), reward)
    assert op.to_bytes(live.model) == op.to_bytes(replayed.model)
    again = op.from_bytes(op.to_bytes(live))
    asked = [one.decide({"age": 0.0}, SALES, id="next").to_dict() for one in (live, again, live.copy())]
    assert asked[0] == asked[1] == asked[2]


@pytest.mark.parametrize("rule", [None, op.UCB(), op.Thompson(0.5, draws=7), op.SingleDrawThompson()])
@pytest.mark.parametrize("actions", [PRICES, SALES])
def test_a_choice_has_the_numbers_of_the_general_code(rule, actions):
    bandit = op.Bandit(op.model.IntervalModel(actions), rule, seed=1)
    for n in range(12):
        decision = bandit.decide({"x": float(n % 3)}, actions)
        bandit.learn(decision, (decision.arm - actions.cost) * (n % 2))
    request, explores = bandit.model.encode({"x": 2.0}, actions), make_rule(rule)
    among = np.ones((1, CELLS), bool)
    general, own = (
        choose(bandit.model, request, 0, explores, np.random.default_rng(2), among, 2, False)
        for choose in (Model.choose, op.model.IntervalModel.choose)
    )
    for one, other in zip(general, own, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_fixed_context_and_a_convex_cost_are_solved_in_300_rounds():
    bandit, actions = op.ContextualBandit(seed=0), op.Interval(0.0, 1.0)
    noise = np.random.default_rng(0)
    for _ in range(300):
        decision = bandit.decide(None, actions)
        bandit.learn(decision, -((decision.arm - 0.5) ** 2) + 0.01 * noise.standard_normal())
    means = bandit.decide(None, actions)
    assert abs(means.candidates[int(means.means.argmax())] - 0.5) < 0.02
    late = [bandit.decide(None, actions).arm for _ in range(100)]
    assert np.mean([(a - 0.5) ** 2 for a in late]) < 0.02


def test_demand_falls_in_the_price_and_stays_between_0_and_1():
    bandit, rng = op.ContextualBandit(seed=5), np.random.default_rng(5)
    for _ in range(60):
        decision = bandit.decide({"x": rng.normal()}, SALES)
        bandit.learn(decision, (decision.arm - 1.0) * float(rng.random() < 0.5))
    decision = bandit.decide({"x": 4.0}, SALES)
    rates = decision.means / (np.array([SALES.action(t) for t in (np.arange(CELLS) + 0.5) / CELLS]) - 1.0)
    assert ((rates > 0.0) & (rates < 1.0)).all()
    assert (np.diff(rates) <= 1e-12).all()
    assert "prior" in str(bandit.explain({"x": 0.5}, arms=SALES))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((4.0, 4.0), "low must be below high"),
        ((9.0, 4.0), "low must be below high"),
        ((0.0, 4.0, True), "low must be above 0 on a logarithmic scale"),
        ((-1.0, 4.0, True), "low must be above 0 on a logarithmic scale"),
        ((math.nan, 4.0), "low must be a finite number"),
        ((1.0, math.inf), "high must be a finite number"),
        ((-1e308, 1e308), "high - low must be a finite number"),
        (("1", 4.0), "low must be a finite number"),
        ((1.0, 4.0, "yes"), "log must be one of"),
        ((1.0, 4.0, False, True, 1.0), "cost must be below low"),
        ((1e9, 1e9 + 1e-6, True), "low and high must be farther apart"),
        ((0.0, 1e-310), "low and high must be farther apart"),
        ((1e-310, 1e-309, True), "low and high must be farther apart"),
        ((1.0, 4.0, False, False, 0.5), "cost must be 0 without demand=True"),
    ],
)
def test_an_impossible_interval_is_refused(arguments, said):
    with pytest.raises(ValueError, match=said):
        op.Interval(*arguments)


def test_calls_that_do_not_fit_are_refused_and_change_nothing():
    bandit = op.Bandit(op.model.IntervalModel(SALES), seed=1)
    decision = bandit.decide({"x": 1.0})
    before = op.to_bytes(bandit)
    for action in (3.9, 40.1, math.nan, "cheap", None):
        with pytest.raises(ValueError, match="action"):
            bandit.learn({"x": 1.0}, 0.0, action)
    with pytest.raises(ValueError, match="rewards must be from 0 to action - cost"):
        bandit.learn(decision, 2.0 * decision.arm)
    with pytest.raises(ValueError, match="rewards must be from 0 to action - cost"):
        bandit.learn(decision, -1.0)
    with pytest.raises(ValueError, match="rewards"):
        bandit.learn(decision, math.nan)
    for arms in (PRICES, ["a", "b"], op.Interval(4.0, 41.0, log=True, demand=True), op.Interval(3.0, 9.0, log=True)):
        with pytest.raises(ValueError, match="arms must be"):
            bandit.decide({"x": 1.0}, arms)
    assert op.to_bytes(bandit) == before
    bandit.learn(decision, 0.0)
    with pytest.raises(ValueError, match="has had its reward"):
        bandit.learn(decision, 0.0)
    named = op.ContextualBandit()
    named.learn({"x": 1.0}, 1.0, arm="a")
    with pytest.raises(ValueError, match="arms"):
        named.decide({"x": 1.0}, PRICES)
    with pytest.raises(ValueError, match="one over an interval of actions"):
        bandit.learn(named.decide({"x": 1.0}, ["a", "b"]), 0.0)
    wide = op.ContextualBandit(seed=1).decide({"x": 1.0}, op.Interval(3.0, 9.0, log=True, demand=True))
    with pytest.raises(ValueError, match="or a part of it, got"):
        bandit.learn(wide, 0.0)


@pytest.mark.parametrize("arms", [["a", "b"], {"a": {"size": 1.0}, "b": {"size": 2.0}}, [f"a{i}" for i in range(30)]])
def test_a_bandit_with_named_arms_refuses_the_decision_of_an_interval_and_the_reverse(arms):
    def learn(arms, reward):
        bandit = op.ContextualBandit(seed=1)
        decision = bandit.decide({"x": 1.0}, arms)
        bandit.learn(decision, reward)
        return bandit

    named, priced = learn(arms, 1.0), learn(PRICES, 1.0)
    price, name = priced.decide({"x": 1.0}, PRICES), named.decide({"x": 1.0}, arms)
    before = [op.to_bytes(named), op.to_bytes(priced)]
    with pytest.raises(ValueError, match="is over an interval of actions, but this bandit has named arms"):
        named.learn(price, 1.0)
    with pytest.raises(ValueError, match="must be one over an interval of actions"):
        priced.learn(name, 1.0)
    assert [op.to_bytes(named), op.to_bytes(priced)] == before


@pytest.mark.parametrize("whole", [PRICES, op.Interval(-1.0, 2.0), SALES])
def test_a_part_of_an_interval_is_decided_and_learned_as_in_the_whole(whole):
    model = op.model.IntervalModel(whole)
    narrow, wide = op.Bandit(model, seed=1), op.Bandit(model.copy(), seed=1)
    low, high = whole.action(0.25), whole.action(0.5)
    part = op.Interval(low, high, log=whole.log, demand=whole.demand, cost=whole.cost)
    for n in range(60):
        decision = narrow.decide({"x": float(n % 3)}, part)
        assert low <= decision.arm <= high
        reward = (decision.arm - whole.cost) * (n % 2)
        narrow.learn(decision, reward)
        wide.learn({"x": float(n % 3)}, reward, decision.arm)
    assert op.to_bytes(narrow.model) == op.to_bytes(wide.model)
    found, all_of_it = narrow.decide({"x": 1.0}, part), narrow.decide({"x": 1.0}, whole)
    assert np.interp(found.candidates, all_of_it.candidates, all_of_it.means) == pytest.approx(found.means, abs=0.05)
    p = found.probabilities
    width = math.log(high / low) if whole.log else high - low
    density = found.propensity * CELLS / (width * (found.arm if whole.log else 1.0))
    assert p.sum() == pytest.approx(1.0)
    assert found.density == pytest.approx(density)


def test_demand_is_that_of_dense_logistic_steps_and_wide_contexts_stay_exact():
    rng = np.random.default_rng(8)
    for demand, columns, rounds in ((True, 3, 300), (True, 23, 60), (False, 23, 200)):
        posterior = SplinePosterior(columns, demand)
        rows, y, weights, targets, inverse = [], [], [], [], posterior.inverse.copy()
        for _ in range(rounds):
            x, psi = np.append(1.0, rng.standard_normal(columns - 1)), smooth_functions(rng.random(1))[0]
            rows.append(np.outer(x, psi).reshape(-1))
            y.append(float(rng.random() < 0.4) if demand else rng.standard_normal())
            eta, n = rows[-1] @ posterior.theta, len(y)
            mu = 1.0 / (1.0 + np.exp(-eta))
            weights.append(max(mu * (1.0 - mu), 0.01) if demand else 1.0)
            targets.append(eta + (y[-1] - mu) / weights[-1] if demand else y[-1])
            old, due = posterior.theta.copy(), n >= posterior.due[0]
            posterior.add_row(x, psi, y[-1])
            if due and demand:  # the first 256 rows take another step, from theta with this row where a fit is spread
                z, w, whole = rows[-1], weights[-1], len(old) > 160
                before = np.array(rows) @ (old_step(old, inverse, z, w, targets[-1]) if whole else old)
                mu = 1.0 / (1.0 + np.exp(-before[:256]))
                w = np.maximum(mu * (1.0 - mu), 0.01)
                weights[:256], targets[:256] = w, before[:256] + (np.array(y[:256]) - mu) / w
            inverse = posterior.inverse.copy()
        z, w = np.array(rows), np.array(weights)
        matrix = (z * w[:, None]).T @ z + np.diag(1.0 / posterior.prior_variances(posterior.choice))
        assert np.allclose(posterior.theta, np.linalg.solve(matrix, z.T @ (w * np.array(targets))), atol=1e-7)
        assert np.allclose(posterior.inverse, np.linalg.inv(matrix), rtol=1e-6, atol=1e-8)


def old_step(theta, inverse, z, w, target):
    """Return theta after a rank-one update."""
    gain = inverse @ z
    return theta + gain * (target - z @ theta) / (1.0 / w + z @ gain)
