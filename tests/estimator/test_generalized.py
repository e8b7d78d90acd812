"""Estimators for clicks and counts, against dense algebra and what their formulas promise."""

import numpy as np
import pytest

import dense_generalized as dense
import onepass as op
from counts import LONG
from onepass.estimator import contract, families
from onepass.estimator.glb_omd import solve_implicit

FAMILIES = tuple(families.FAMILIES)
ROWS = 60


def stream(family, seed, size=2.0, dim=4, count=ROWS):
    """Rows of length 0.5 to 1, rewards of the family, and theta_*, of length `size`."""
    rng = np.random.default_rng(seed)
    theta = rng.standard_normal(dim)
    theta *= size / np.linalg.norm(theta)
    rows = rng.standard_normal((count, dim))
    rows *= rng.uniform(0.5, 1.0, (count, 1)) / np.linalg.norm(rows, axis=1, keepdims=True)
    return rows, dense.LAW[family](rng, dense.MU[family](rows @ theta)), theta


def learned(estimator, rows, rewards):
    """The state after rows, one after the other."""
    state = estimator.begin()
    for x, r in zip(rows, rewards, strict=True):
        state = contract.update(state, x, float(r))
    return state


@pytest.mark.parametrize("family", FAMILIES)
def test_means_are_slopes_of_potentials_and_are_finite_everywhere(family):
    kind, step = families.FAMILIES[family], 1e-5
    for z in np.linspace(-6.0, 6.0, 25):
        assert families.mean(kind, z) == pytest.approx(dense.MU[family](z), rel=1e-12)
        rise = families.potential(kind, z + step) - families.potential(kind, z - step)
        assert families.mean(kind, z) == pytest.approx(rise / (2 * step), rel=1e-6, abs=1e-9)
        rise = families.mean(kind, z + step) - families.mean(kind, z - step)
        assert families.slope(kind, z) == pytest.approx(rise / (2 * step), rel=1e-6, abs=1e-9)
        bend = abs(families.slope(kind, z + step) - families.slope(kind, z - step)) / (2 * step)
        assert bend <= families.concordance(kind) * families.slope(kind, z) * (1 + 1e-6) + 1e-9
        assert families.slope(kind, z) <= families.max_slope(kind, abs(z)) * (1 + 1e-12)
    for z in (-1e300, -800.0, 800.0, 1e300):
        found = [f(kind, z) for f in (families.mean, families.slope)]
        assert np.isfinite(found).all()
        assert families.slope(kind, z) >= 0.0


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("bound", "eta"), [(np.inf, 1.0), (0.7, 1.7), (0.7, 1.0)])
@pytest.mark.parametrize("reg", [0.3, 4.0])
def test_glb_omd_is_mirror_descent_on_dense_matrices(family, bound, eta, reg):
    rows, rewards, _ = stream(family, seed=1)
    ball = None if bound == np.inf else bound
    estimator = op.OnePassGLM(op.Exact(dim=4, reg=reg), family=family, step=eta, parameter_bound=ball, implicit=False)
    state = learned(estimator, rows, rewards)
    theta, h = dense.glb_omd(family, rows, rewards, reg, eta, bound)
    assert np.allclose(state.theta, theta, rtol=1e-7, atol=1e-9)
    inverse = np.array([contract.link(state) is None or op_solve(state, e) for e in np.eye(4)])
    assert np.allclose(inverse, np.linalg.inv(h), rtol=1e-7, atol=1e-9)
    assert state.gain == pytest.approx(np.linalg.slogdet(h)[1] - 4 * np.log(reg), rel=1e-9)
    assert ball is None or np.linalg.norm(state.theta) <= bound * (1 + 1e-9)


def op_solve(state, b):
    from onepass.design.contract import solve

    return solve(state.design, b)


@pytest.mark.parametrize("family", FAMILIES)
def test_implicit_steps_minimize_the_loss_itself(family):
    rows, rewards, _ = stream(family, seed=2, count=25)
    state = learned(op.OnePassGLM(op.Exact(dim=4, reg=0.3), family=family, step=1.5, implicit=True), rows, rewards)
    theta, _ = dense.glb_omd(family, rows, rewards, 0.3, 1.5, implicit=True)
    assert np.allclose(state.theta, theta, atol=1e-5)


def test_an_implicit_step_never_overshoots():
    for family in families.FAMILIES.values():
        for z, target, reach in ((0, 1e6, 1e3), (-20, 1, 1e4), (5, 0, 1e-9), (3, 1e12, 1e12), (0, 0, 1), (-9, 1, 3)):
            s = solve_implicit(family, float(z), float(target), float(reach))
            low, high = sorted((z, z + reach * (target - families.mean(family, float(z)))))
            assert low <= s <= high
            away = s - z - reach * (target - families.mean(family, s))
            assert abs(away) <= 1e-9 * (1.0 + reach * families.slope(family, s)) * max(abs(s), abs(z), 1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_gloc_regresses_on_what_its_online_learner_predicted(family):
    rows, rewards, _ = stream(family, seed=3)
    estimator = op.estimator.RegressedGLM(op.Exact(dim=4, reg=0.7), family=family, parameter_bound=1.5)
    found = contract.parameter(learned(estimator, rows, rewards))
    assert np.allclose(found, dense.gloc(family, rows, rewards, 0.7, 1.5), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("family", FAMILIES if LONG else ["logistic"])
def test_the_offline_reference_is_at_the_minimum_of_all_rows(family):
    rows, rewards, _ = stream(family, seed=4)
    estimator = op.estimator.OfflineGLM(op.Exact(dim=4, reg=0.2), family=family)
    theta, h = dense.offline(family, rows, rewards, 0.2)
    for state in (learned(estimator, rows, rewards), contract.update_rows(estimator.begin(), rows, rewards)):
        assert np.allclose(state.theta, theta, atol=1e-6)
        assert np.allclose(np.array([op_solve(state, e) for e in np.eye(4)]), np.linalg.inv(h), rtol=1e-4)


def test_for_the_identity_all_three_are_ridge_regression():
    rows, rewards, _ = stream("identity", seed=5)
    ridge = contract.parameter(learned(op.Ridge(op.Exact(dim=4, reg=0.4)), rows, rewards))
    for make in (op.OnePassGLM, op.estimator.OfflineGLM):
        found = contract.parameter(learned(make(op.Exact(dim=4, reg=0.4), family="identity"), rows, rewards))
        assert np.allclose(found, ridge, rtol=1e-8)


def test_a_clipped_reward_moves_a_score_by_at_most_that_many_widths():
    rows, rewards, theta = stream("poisson", seed=6, count=400)
    clip = 1.5
    kinds = {c: op.OnePassGLM(op.Exact(dim=4, reg=0.5), family="poisson", clip=c) for c in (None, clip)}
    after = {}
    for c, estimator in kinds.items():
        state = learned(estimator, rows, rewards)
        width, before = np.sqrt(rows[0] @ op_solve(state, rows[0])), rows[0] @ state.theta
        state = contract.update(state, rows[0], 1e6)
        after[c] = (rows[0] @ state.theta - before) / width
    assert after[clip] <= clip < after[None]
    spoiled = rewards.copy()
    spoiled[::50] *= 1e3
    errors = {c: np.linalg.norm(learned(e, rows, spoiled).theta - theta) for c, e in kinds.items()}
    assert errors[clip] < 0.5 * errors[None]
    clicks_rows, clicks, _ = stream("logistic", seed=7, size=6.0)
    plain = learned(op.OnePassGLM(op.Exact(dim=4, reg=0.5)), clicks_rows, clicks)
    clipped = learned(op.OnePassGLM(op.Exact(dim=4, reg=0.5), clip=1.0 / np.sqrt(0.5)), clicks_rows, clicks)
    assert np.array_equal(plain.theta, clipped.theta)


def test_wrong_families_and_what_theory_decides_are_refused():
    design = op.Exact(dim=3, reg=0.3)
    for wrong in ("probit", 3, (1.0, 2.0), None):
        with pytest.raises(ValueError, match="family"):
            op.OnePassGLM(design, family=wrong)
    with pytest.raises(ValueError, match="reg above"):
        op.OnePassGLM(design, theory=op.Theory(parameter_bound=3.0))
    with pytest.raises(ValueError, match="step"):
        op.OnePassGLM(op.Exact(dim=3, reg=50.0), step=2.0, theory=op.Theory())
    with pytest.raises(ValueError, match="exploration"):
        op.Bandit(op.OnePassGLM(design), op.UCB(op.Theory()))
    with pytest.raises(ValueError, match="design"):
        op.estimator.OfflineGLM(op.FrequentDirections(dim=3, size=2))
