"""Properties of the exact posterior that the analysis of BKB uses (Calandriello et al. appendix B)."""

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
