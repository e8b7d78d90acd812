"""The radius of GLB-OMD (docs/clicks.md): its deterministic half for any rewards, and coverage in all rounds."""

import numpy as np
import pytest

import dense_generalized as dense
import onepass as op
from counts import repetitions
from onepass.design.contract import matrix
from onepass.design.potential_growth import potential_growth
from onepass.estimator import contract, families
from onepass.estimator.glb_omd import least_reg

DIM, DELTA = 4, 0.05
DESIGNS = {
    "Exact": lambda reg: op.Exact(dim=DIM, reg=reg),
    "FD": lambda reg: op.FrequentDirections(dim=DIM, size=2, reg=reg),
    "RFD": lambda reg: op.RobustFrequentDirections(dim=DIM, size=2, reg=reg),
}
CASES = [
    *(("logistic", bound, "Exact") for bound in (1.0, 3.0, 6.0)),
    *(("poisson", bound, "Exact") for bound in (1.0, 3.0, 6.0)),
    ("identity", 1.0, "Exact"),
    ("logistic", 3.0, "FD"),
    ("logistic", 3.0, "RFD"),
]


def setting(family, bound, design, factor):
    theory = op.Theory(parameter_bound=bound, delta=DELTA)
    reg = max(factor * least_reg(families.FAMILIES[family], theory), 0.4)
    return op.OnePassGLM(DESIGNS[design](reg), family=family, theory=theory), reg


def beta(state, bound):
    return contract.radius(state, 0, 1.0, bound, 1.0, DELTA)


@pytest.mark.parametrize(("family", "bound", "design"), CASES)
@pytest.mark.parametrize("factor", [1.3, 3.0])
def test_mirror_descent_pays_for_its_distance_whatever_the_rewards(family, bound, design, factor):
    """||theta - theta_*||_H^2 <= reg ||theta_*||^2 + g (2 S)^2 + 2 eta sum of (loss_* - loss after the step)
    - v sum of ||steps||^2, for every theta_* in the ball and all rewards."""
    rng = np.random.default_rng(int(10 * bound))
    estimator, reg = setting(family, bound, design, factor)
    kind, eta = families.FAMILIES[family], 1.0 + bound * families.concordance(families.FAMILIES[family])
    left = 1.0 - least_reg(kind, op.Theory(parameter_bound=bound)) / reg
    star = rng.standard_normal(DIM)
    star *= bound / np.linalg.norm(star)
    state, pays = estimator.begin(), 0.0
    loss = lambda z, r: families.potential(kind, float(z)) - r * z  # noqa: E731
    for t in range(120):
        row = rng.standard_normal(DIM) * (1.0, 0.3, 0.1, 0.01)
        row /= np.linalg.norm(row)
        against = rng.random() if family == "logistic" else float(rng.integers(0, 5))
        reward = against if t % 3 else float(families.mean(kind, float(-row @ star)) > 0.5)
        before, held = state.theta.copy(), matrix(state.design)
        state = contract.update(state, row, reward)
        step = state.theta - before
        pays += 2.0 * eta * (loss(row @ star, reward) - loss(row @ state.theta, reward)) - left * step @ held @ step
        distance = (state.theta - star) @ matrix(state.design) @ (state.theta - star)
        most = reg * bound**2 + potential_growth(state.design) * 4.0 * bound**2 + pays
        assert distance <= most + 1e-8 * (abs(most) + abs(pays) + reg * bound**2)


@pytest.mark.parametrize(("family", "bound", "design"), CASES)
def test_the_ellipsoid_holds_theta_star_in_all_rounds(family, bound, design):
    """Rows are those that UCB chooses; a failure in any round of a seed is one, delta = 0.05."""
    failures, shares, seeds = 0, [], repetitions(6, 40)
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        estimator, _ = setting(family, bound, design, 2.0)
        star = rng.standard_normal(DIM)
        star *= bound / np.linalg.norm(star)
        state, worst = estimator.begin(), 0.0
        for _ in range(150):
            rows = rng.standard_normal((5, DIM))
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
            inverse = np.linalg.inv(matrix(state.design))
            widths = np.sqrt(np.einsum("ij,jk,ik->i", rows, inverse, rows))
            row = rows[np.argmax(rows @ state.theta + beta(state, bound) * widths)]
            reward = float(dense.LAW[family](rng, np.array([dense.MU[family](row @ star)]))[0])
            state = contract.update(state, row, reward)
            away = state.theta - star
            worst = max(worst, np.sqrt(away @ matrix(state.design) @ away) / beta(state, bound))
        failures, shares = failures + (worst > 1.0), [*shares, worst]
    assert failures <= DELTA * seeds
    assert np.isfinite(shares).all()
    assert min(shares) > 0.05


def test_the_radius_is_that_of_the_derivation_and_for_the_identity_oful_s():
    for family, bound in (("logistic", 3.0), ("poisson", 1.0), ("identity", 2.0)):
        estimator, reg = setting(family, bound, "Exact", 2.5)
        state = estimator.begin()
        rows = np.random.default_rng(0).standard_normal((50, DIM)) / 4.0
        state = contract.update_rows(state, rows, np.ones(50))
        eta = 1.0 + bound * (family != "identity")
        wanted = dense.radius(family, state.gain, reg, eta, bound, bound, 1.0, DELTA)
        assert beta(state, bound) == pytest.approx(wanted, rel=1e-12)
    gain = np.linalg.slogdet(matrix(state.design))[1] - DIM * np.log(reg)
    assert wanted**2 == pytest.approx(reg * bound**2 + 2.0 * np.log(1.0 / DELTA) + gain)


def test_no_radius_is_claimed_where_none_is_proved():
    theory = op.Theory(parameter_bound=2.0, delta=DELTA)
    finite = op.OnePassGLM(op.Exact(dim=DIM, reg=30.0), theory=theory).begin()
    assert np.isfinite(beta(finite, 2.0))
    assert np.isinf(beta(finite, 2.5))
    assert np.isinf(contract.radius(finite, 0, 1.0, 2.0, 3.0, DELTA))
    for options in ({"implicit": True}, {"clip": 2.0}, {}, {"parameter_bound": 2.0}):
        assert np.isinf(beta(op.OnePassGLM(op.Exact(dim=DIM, reg=30.0), **options).begin(), 2.0))
    with pytest.raises(ValueError, match="exploration"):
        op.Bandit(op.OnePassGLM(op.Exact(dim=DIM, reg=30.0).append(np.eye(DIM)), theory=theory), op.UCB(theory))
