"""BKB's certificate of its variances holds with all roundings, against 80 digits; where it cannot, it says inf."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import exact_kernel as exact
import onepass as op
from kernel_games import learn


def within(bandit, arms, truth, plays, reg):
    """The factor, and the largest of sigma~^2 / sigma^2 and its inverse, of the table and predicted anew."""
    want = exact.variances(truth, arms, plays, reg)
    ours = np.concatenate([bandit.model.posterior().variances, bandit.model.posterior(arms).variances])
    ratio = exact.ratios(ours, want + want)
    return bandit.model.variance_factor(), max(ratio.max(), 1.0 / max(ratio.min(), 1e-300))


@st.composite
def cases(draw):
    """A kernel, its truth, arms, plays in order, and reg from 1e-15 to 1e6 of the largest k(x, x)."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count, dim, far = draw(st.integers(2, 12)), draw(st.integers(1, 2)), draw(st.sampled_from([[], [30.0], [1e3]]))
    if draw(st.booleans()):
        scale = 10.0 ** draw(st.floats(-1.0, 1.0))
        kernel, truth = op.RBF(scale), exact.rbf(scale)
    else:
        degree, bias = draw(st.integers(1, 4)), draw(st.sampled_from([0.1, 1.0, 10.0]))
        kernel, truth = op.Polynomial(degree, bias), exact.polynomial(degree, bias)
    arms = np.vstack(
        [rng.random((count, dim)) * 10.0 ** draw(st.floats(-1.0, 1.0)), *(np.full((1, dim), f) for f in far)]
    )
    order = rng.integers(draw(st.integers(0, 1)), len(arms), int(10 ** draw(st.floats(0.0, 2.5))))
    if draw(st.booleans()):
        order = np.minimum(order, count - 1)  # what is far is not played
    reg = float(kernel.diagonal(arms).max()) * 10.0 ** draw(st.floats(-15.0, 6.0))
    options = {
        "oversampling": 10.0 ** draw(st.floats(-1.0, 3.0)),
        "staleness": draw(st.sampled_from([1.0, 2.0, 1e9])),
        "redundancy": draw(st.sampled_from([0.0, 0.001, 0.1])),
        "incremental": draw(st.booleans()),
    }
    return kernel, truth, arms, order, reg, options


@settings(max_examples=300, deadline=None, derandomize=True)
@given(cases())
def test_the_variance_factor_holds_with_its_rounding_at_any_reg(case):
    kernel, truth, arms, order, reg, options = case
    bandit = op.BKB(arms, kernel, reg=reg, **options)
    learn(bandit, order, np.zeros(len(order)))
    factor, needed = within(bandit, arms, truth, np.bincount(order, minlength=len(arms)), reg)
    assert needed <= factor


@pytest.mark.parametrize("seed", range(5))
def test_the_variance_factor_holds_where_reg_is_a_trillionth_of_the_prior(seed):
    """With all plays in the dictionary and reg / k of 1e-13 a factor of 1 was certified, variances being 3% off."""
    rng = np.random.default_rng(seed)
    arms = rng.random((8, 2))
    order = rng.integers(0, 6, 60)
    for reg in (1e-11, 1e-12):  # k(x, x) is up to 9
        bandit = op.BKB(arms, op.Polynomial(2, 1.0), reg=reg, oversampling=1e12, redundancy=0.0)
        learn(bandit, order, np.zeros(60))
        factor, needed = within(bandit, arms, exact.polynomial(2, 1.0), np.bincount(order, minlength=8), reg)
        assert 1.0 + 1e-5 < needed <= factor


def test_where_rounding_is_all_there_is_nothing_is_certified():
    """Below 3e-14 variances are clipped to 0."""
    arms = np.random.default_rng(0).random((8, 2))
    bandit = op.BKB(arms, op.Polynomial(2, 1.0), reg=1e-15, oversampling=1e12)
    learn(bandit, np.arange(6).repeat(9), np.zeros(54))
    assert bandit.model.variance_factor() == float("inf")


@pytest.mark.parametrize("reg", [0.01, 1.0, 1e6])
def test_rounding_is_nothing_in_the_factor_at_the_regs_of_noise(reg):
    """A dictionary with all plays: 1, but for 1e-6 (1e5 plays times 16 roundings times 1 / reg)."""
    arms = np.linspace(0.0, 1.0, 30)[:, None]
    bandit = op.BKB(arms, op.Matern(0.5, 0.3), reg=reg, oversampling=1e12, redundancy=0.0)
    learn(bandit, np.arange(1000) % 30, np.zeros(1000))
    assert 1.0 < bandit.model.variance_factor() < 1.0 + 1e-6


def test_eighty_digits_agree_with_the_dense_inverse_where_double_precision_has_enough():
    rng = np.random.default_rng(0)
    arms, plays = rng.random((10, 2)), rng.integers(0, 4, 10)
    for kernel, truth in ((op.RBF(0.5), exact.rbf(0.5)), (op.Polynomial(3, 0.3), exact.polynomial(3, 0.3))):
        played = np.repeat(arms, plays, axis=0)
        inverse = np.linalg.inv(kernel(played, played) + 0.1 * np.eye(len(played)))
        k = kernel(played, arms)
        dense = (kernel.diagonal(arms) - np.einsum("ij,ij->j", k, inverse @ k)) / 0.1
        assert exact.ratios(dense, exact.variances(truth, arms, plays, 0.1)) == pytest.approx(1.0, rel=1e-10)
