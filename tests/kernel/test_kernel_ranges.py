"""Kernels whose k(x, x) differs by many orders between arms: no arm is lost for being small."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import exact_kernel as exact
import onepass as op
from kernel_games import learn
from onepass.exploration.rule import make_rule
from onepass.features.nystrom import IN_SPAN
from onepass.model.kernel.exact import root_of

PAPER = {"staleness": 1.0, "redundancy": 0.0}
WIDE = op.Polynomial(3, 1.0)
DRAWN = 1e-8  # of k(x, x) / reg: what a draw's variance may lack, ten times what its factor leaves out


class Unit:
    """A source of standard normals of which only number `at` is not 0: a draw, linear in them, is then its column."""

    def __init__(self, at):
        self.at, self.used = at, 0

    def standard_normal(self, shape):
        out = np.zeros(shape)
        if 0 <= self.at - self.used < out.size:
            out.flat[self.at - self.used] = 1.0
        self.used += out.size
        return out


def draw_variances(bandit, rows=None):
    """The variances of draws of the arms, or of the rows, exactly: where all rewards were 0, so are means."""
    model, rule = bandit.model, make_rule(op.SingleDrawThompson(1.0))
    request, total, at = model.encode(rows, None), 0.0, 0
    while True:
        source = Unit(at)
        (column,) = model.predict(request, 0, rule, source, 1).samples
        if at >= source.used:
            return total
        total, at = total + column**2, at + 1


def regret(bandit, f, rounds, seed, noise=0.1):
    rng, total = np.random.default_rng(seed), 0.0
    for _ in range(rounds):
        arm = bandit.decide().arm
        learn(bandit, arm, float(f[arm] + noise * rng.standard_normal()))
        total += f.max() - f[arm]
    return total


def kernels():
    """Pairs of a kernel and its truth, one pair at a time: k(x, x) of degree up to 8 in x, times anything."""
    biases = st.sampled_from([0.01, 0.3, 1.0, 10.0])
    powers = st.builds(
        lambda degree, bias: (op.Polynomial(degree, bias), exact.polynomial(degree, bias)), st.integers(1, 4), biases
    )
    lines = st.builds(lambda bias: (op.Linear(bias), exact.polynomial(1, bias)), biases)
    bells = st.builds(lambda scale: (op.RBF(scale), exact.rbf(scale)), st.sampled_from([0.3, 1.0, 20.0]))
    return st.recursive(
        powers | lines,
        lambda some: (
            st.builds(lambda s, k: (s * k[0], exact.times(s, k[1])), st.sampled_from([1e-4, 3.0, 1e4]), some)
            | st.builds(lambda a, b: (a[0] + b[0], exact.plus(a[1], b[1])), some, bells | some)
            | st.builds(lambda a, b: (a[0] * b[0], exact.product(a[1], b[1])), some, bells)
        ),
        max_leaves=3,
    )


@st.composite
def cases(draw):
    """A kernel, its truth, arms from 1/100 to 300 away from an offset, plays of some of them, reg of the smallest k."""
    (kernel, truth), seed = draw(kernels()), draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    count, dim = draw(st.integers(3, 10)), draw(st.integers(1, 2))
    sizes = 10.0 ** rng.uniform(-2.0, draw(st.sampled_from([0.0, 1.0, 2.5])), (count, 1))
    arms = draw(st.sampled_from([0.0, 0.0, 1.0, 5.0])) + sizes * rng.standard_normal((count, dim))
    plays = rng.integers(0, 4, count) * (rng.random(count) < draw(st.sampled_from([0.4, 1.0])))
    plays[rng.integers(count)] += 1
    order = rng.permutation(np.repeat(np.arange(count), plays))
    reg = float(kernel.diagonal(arms).min()) * 10.0 ** draw(st.floats(-4.0, 2.0))
    return kernel, truth, arms, plays, order, reg


def test_thompson_sampling_finds_an_arm_of_small_prior_beside_one_of_large_prior():
    """k(x, x) = 1, 8 and 4.7e10, the best arm 8: it was never played, regret 250, by a draw of variance 109 for 800."""
    arms, f = np.array([[0.0], [1.0], [60.0]]), np.array([0.0, 1.0, 0.5])
    bandit = op.GPUCB(arms, WIDE, reg=0.01, exploration=op.SingleDrawThompson(0.1))
    assert draw_variances(bandit) == pytest.approx(WIDE.diagonal(arms) / 0.01, rel=1e-8)
    for seed in range(5):
        bandit = op.GPUCB(arms, WIDE, reg=0.01, exploration=op.SingleDrawThompson(0.1), seed=seed)
        assert regret(bandit, f, 500, seed) < 10.0


@pytest.mark.parametrize("options", [{}, PAPER, {"redundancy": 0.0}, {"staleness": 1.0}], ids=str)
@pytest.mark.parametrize("speed", [5.0, 6.0])
def test_bkb_regrets_as_gp_ucb_beside_an_arm_of_large_prior(speed, options):
    """20 arms in [0, 1] and one at 60: joined points were dropped at every drawing; regret 859, 2,559, of 431."""
    arms = np.append(np.linspace(0.0, 1.0, 20), 60.0)[:, None]
    f = np.append(np.sin(speed * arms[:20, 0]), -1.0)
    ours, exactly = (
        regret(make(arms, WIDE, reg=0.01), f, 1000, 0)
        for make in (lambda *a, **k: op.BKB(*a, **k, **options), op.GPUCB)
    )
    assert ours < 1.02 * exactly + 1.0


@settings(max_examples=80, deadline=None, derandomize=True)
@given(cases())
def test_thompson_draws_have_the_variance_of_the_posterior_at_every_arm(case):
    kernel, truth, arms, plays, order, reg = case
    want = np.array(list(map(float, exact.variances(truth, arms, plays, reg))))
    prior = kernel.diagonal(arms) / reg
    fixed, changing, budgeted = (
        make(kernel=kernel, reg=reg, **o)
        for make, o in (
            (lambda **k: op.GPUCB(arms, **k), {}),
            (op.GPUCB, {}),
            (lambda **k: op.BKB(arms, **k), {"oversampling": 1e12, **PAPER}),
        )
    )
    for bandit in (fixed, changing, budgeted):
        for arm in order:
            learn(bandit, arms[arm] if bandit is changing else int(arm), 0.0)
    assert (np.abs(draw_variances(budgeted) - budgeted.model.posterior().variances) <= DRAWN * prior).all()
    for got in (
        fixed.model.posterior().variances,
        draw_variances(fixed),
        draw_variances(changing, arms),
    ):
        assert (np.abs(got - want) <= DRAWN * prior).all(), np.abs(got - want) / prior


@pytest.mark.parametrize("options", [{}, PAPER], ids=str)
def test_points_that_joined_stay_whatever_the_largest_prior(options):
    arms = np.array([[0.0], [1.0], [60.0]])
    bandit = op.BKB(arms, WIDE, reg=0.01, oversampling=1e12, **options)
    for arm in (0, 1, 2, 2, 2):
        learn(bandit, arm, 0.0)
    assert bandit.model.dictionary_size == op.features.Nystrom(arms, WIDE).size == 3


@settings(max_examples=80, deadline=None, derandomize=True)
@given(cases())
def test_nystrom_features_keep_every_point_to_a_billionth_of_its_own_prior(case):
    """z^T z = k(x, x) on the dictionary, and on every played point where all of them may join."""
    kernel, _, arms, plays, order, reg = case
    for options in ({}, PAPER, {"oversampling": 1e12, **PAPER}):
        bandit = op.BKB(arms, kernel, reg=reg, **options)
        learn(bandit, order, np.zeros(len(order)))
        for rows in (bandit.model.dictionary, *([arms[plays > 0]] if "oversampling" in options else [])):
            prior = kernel.diagonal(rows)
            square = (bandit.model.nystrom().transform(rows) ** 2).sum(axis=1)
            assert (np.abs(square - prior) <= 3.0 * IN_SPAN * prior).all(), np.abs(square - prior) / prior


@settings(max_examples=80, deadline=None, derandomize=True)
@given(cases())
def test_nystrom_and_the_factor_of_a_prior_lose_a_billionth_of_every_point(case):
    kernel, _, arms, *_ = case
    prior = kernel.diagonal(arms)
    root = root_of(kernel.gram(arms, arms))
    features = op.features.Nystrom(arms, kernel).transform(arms)
    for square in ((root**2).sum(axis=0), (features**2).sum(axis=1)):
        assert (np.abs(square - prior) <= 3.0 * IN_SPAN * prior).all(), np.abs(square - prior) / prior


def test_points_without_prior_are_left_out_and_draw_nothing():
    """A linear kernel without bias knows that f = 0 at 0."""
    arms = np.array([[0.0], [1e-9], [1e9]])
    bandit = op.GPUCB(arms, op.Linear(), reg=0.01, exploration=op.SingleDrawThompson(0.1))
    assert draw_variances(bandit) == pytest.approx([0.0, 1e-16, 1e20], rel=1e-8)
    features = op.features.Nystrom(arms, op.Linear())
    assert features.size == 1
    assert (features.transform(arms) ** 2)[:, 0] == pytest.approx([0.0, 1e-18, 1e18], rel=1e-8)
