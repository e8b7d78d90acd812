"""Theorems of Calandriello et al. in numbers: variances (appendix B), operators (cor. 4.2), regret (theorem 4.1)."""

import numpy as np
import pytest

import onepass as op

ROUNDS = 40


@pytest.mark.parametrize("reg", [0.02, 0.37, 5.0])
@pytest.mark.parametrize("kernel", [op.RBF(0.2), op.Matern(1.5, 0.3)])
def test_variances_fall_by_a_bounded_factor_and_add_up_to_the_effective_dimension(kernel, reg):
    """Prop. B.1: s_{t-1}^2 / (1 + k / reg) <= s_t^2 <= s_{t-1}^2 at x_t, of any arm the right one; prop. B.3: d_eff <=
    sum of s_t^2(x_t) <= log det(K / reg + I) <= d_eff (1 + log(||K|| / reg + 1)); s^2 in units of reg."""
    arms, rng = np.linspace(0.0, 1.0, 25)[:, None], np.random.default_rng(0)
    bandit, played, total = op.GPUCB(arms, kernel, reg=reg), [], 0.0
    for _ in range(ROUNDS):
        decision = bandit.decide()
        before, a = decision.widths**2, decision.index
        bandit.learn(decision, float(rng.standard_normal()))
        after = bandit.decide().widths ** 2
        assert (after <= before * (1.0 + 1e-7) + 1e-12).all()
        assert after[a] >= before[a] / (1.0 + 1.0 / reg) * (1.0 - 1e-7)
        np.testing.assert_allclose(after[a], before[a] / (1.0 + before[a]), rtol=1e-6)
        total += after[a]
        played.append(a)
    gram = kernel(arms[played], arms[played])
    effective = np.trace(np.linalg.solve(gram + reg * np.eye(ROUNDS), gram))
    gain = np.linalg.slogdet(np.eye(ROUNDS) + gram / reg)[1]
    assert effective <= total * (1.0 + 1e-9)
    assert total <= gain
    assert gain <= effective * (1.0 + np.log1p(np.linalg.norm(gram, 2) / reg))


@pytest.mark.parametrize("reg", [0.37, 4.0])
def test_the_design_on_the_dictionary_is_within_alpha_of_the_exact_one(reg):
    """Cor. 4.2: A_t / alpha <= A~_t <= alpha A_t, alpha = 3, with A~ of the features projected on the dictionary."""
    arms, rounds = np.linspace(0.0, 1.0, 60)[:, None], 200
    kernel, qbar = op.Matern(1.5, 0.5), op.model.bkb_oversampling(rounds, delta=0.1)
    values, vectors = np.linalg.eigh(kernel(arms, arms))
    features = vectors * np.sqrt(np.maximum(values, 0.0))  # of the arms: their products are the kernel
    bandit = op.BKB(arms, kernel, reg=reg, oversampling=qbar, staleness=1.0, redundancy=0.0)
    design = reg * np.eye(60)
    for arm in np.random.default_rng(0).integers(0, 60, rounds):
        bandit.learn(None, 0.0, int(arm))
        design += np.outer(features[arm], features[arm])
        members = np.isin(arms[:, 0], bandit.model.dictionary[:, 0])
        projection = np.linalg.pinv(features[members], rcond=1e-10) @ features[members]
        projected = reg * np.eye(60) + projection @ (design - reg * np.eye(60)) @ projection
        root = np.linalg.cholesky(np.linalg.inv(design))
        ratios = np.linalg.eigvalsh(root.T @ projected @ root)
        assert 1.0 / 3.0 <= ratios[0] <= ratios[-1] <= 3.0
    assert bandit.model.dictionary_size < 60


@pytest.mark.parametrize("kernel", [op.RBF(0.2), op.Matern(1.5, 0.3)])
def test_the_regret_of_bkb_is_below_its_running_bound_and_below_theorem_4_1(kernel):
    """R_T <= 2 (2 alpha)^(3/2) sqrt(T) (R d log T + sqrt(d log T) F + R log(1 / delta)) for reg = k(x, x) = 1."""
    rng, rounds, noise = np.random.default_rng(0), 200, 0.3
    arms = np.linspace(0.0, 1.0, 30)[:, None]
    weights = rng.standard_normal(30)
    f = kernel(arms, arms) @ weights / np.sqrt(weights @ kernel(arms, arms) @ weights)  # of norm 1
    theory = op.Theory(noise=noise, parameter_bound=1.0, delta=0.05)
    bandit = op.BKB(arms, kernel, reg=1.0, exploration=op.UCB(theory), staleness=1.0, redundancy=0.0)
    regret = 0.0
    for _ in range(rounds):
        decision = bandit.decide()
        regret += float(f.max() - f[decision.index])
        bandit.learn(decision, float(f[decision.index] + noise * rng.standard_normal()))
    d = bandit.model.effective_dimension() * np.log(rounds)
    theorem = 2.0 * 6.0**1.5 * np.sqrt(rounds) * (noise * d + np.sqrt(d) + noise * np.log(20.0))
    assert regret <= bandit.regret_bound().total <= theorem
