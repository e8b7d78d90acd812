"""The radius of GLB-OMD (docs/clicks/radius.md): its deterministic half for any rewards, and coverage in all rounds.

Notation: ell(z) = m(z) - r z, ell' = mu - r, ell'' = mu', |mu''| <= R mu'; ||theta_*|| <= H_*, rows of length at most
L, all theta in the ball of S. The letters are those of `glb_omd.py`: H_t before row t, with H_1 = reg I; w_t =
mu'(x^T theta_(t+1)), q_t = x^T H_t^-1 x, d_t = theta_(t+1) - theta_t. On a design H_(t+1) <= H_t + w_t x x^T +
(g_(t+1) - g_t) I: exact designs and plain Frequent Directions have g = 0, compensated ones g = what was added to reg,
dyadic ones likewise; projector splitting has g = 0 until something is truncated, and no radius after.

**1. Whatever the rewards.** Let eta >= 1 + R L (S + H_*) / 2. Since (e^-u + u - 1) / u^2 >= 1 / (2 + u),
self-concordance gives, at theta = theta_(t+1),

    ell(theta) - ell(theta_*) <= ell'(theta) x^T (theta - theta_*) - (w_t / 2 eta) (x^T (theta - theta_*))^2

theta_(t+1) minimizes over the ball ell's expansion at theta_t to second order + ||. - theta_t||^2_(H_t) / 2 eta, so its
slope there, times theta_(t+1) - theta_*, is at most 0. The slope of the expansion differs from ell' by at most R M (x^T
d_t)^2 / 2, M the largest mu' over |z| <= L S, and (x^T d_t)^2 <= ||d_t||^2_(H_t) L^2 / reg. Together, with e_t =
theta_t - theta_* and v = 1 - eta R M L^3 (S + H_*) / reg,

    ||e_(t+1)||^2_(H_(t+1)) <= ||e_t||^2_(H_t) + 2 eta (ell_t(theta_*) - ell_t(theta_(t+1)))
                               - v ||d_t||^2_(H_t) + (g_(t+1) - g_t) (S + H_*)^2

The step uses the projection in the norm of H_t + eta mu' x x^T, not of H_t: the first line of optimality holds for that
one alone.

**2. Against a mixture.** Let s be the factor of the variance (1 for clicks and counts; noise^2 for the identity), P_t =
N(theta_t, c H_t^-1) and mix_t = -ln E_(P_t) exp(-ell_t / s). exp(sum of ell(theta_*) / s - mix) is a nonnegative
supermartingale: it is a likelihood ratio, for rewards strictly between 0 and 1 by convexity in r, for sub-Gaussian
noise by its definition. So by Ville's inequality sum of ell(theta_*) / s - mix <= ln(1 / delta) in all rounds with
probability 1 - delta. Let mu' be log-concave, as that of all three families is (for clicks log mu' = -z - 2 ln(1 +
e^-z)). Then mu'(z + u) mu'(z - u) <= mu'(z)^2, and each of the two is at most mu'(z) e^(R |u|), so their sum is at most
2 mu'(z) cosh(R u); without log-concavity it may be twice mu'(z) e^(R |u|), and the next line is false. By Jensen's
inequality under N(theta_(t+1), c (H_t + w x x^T)^-1), in which m grows by E m(z + g) - m(z) <= w E (cosh(R g) - 1) /
R^2 = w (e^(R^2 c q' / 2) - 1) / R^2, q' = q / (1 + w q) <= L^2 / reg,

    s mix_t <= ell_t(theta_(t+1)) + (s / 2) ln(1 + w q) + (s / 2 c) ||d_t||^2_(H_t) + ((k c - s) / 2) w q',
    k = (e^u - 1) / u,  u = R^2 c L^2 / (2 reg)

and w q' = w q / (1 + w q) <= ln(1 + w q).

**3. Sum.** With c = eta s / v the ||d||^2 cancel. For all t, with G = sum of ln(1 + w q) (on exact designs log det H -
log det reg I),

    beta^2 = reg H_*^2 + 2 eta s ln(1 / delta) + k eta^2 s G / v + g (S + H_*)^2
"""

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
