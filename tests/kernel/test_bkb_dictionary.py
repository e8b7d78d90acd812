"""BKB's dictionary: its expected size, theorem 3.1 in numbers, and drawing it incrementally."""

import math

import numpy as np
import pytest

import dense_kernel as dense
import onepass as op
from kernel_games import learn

PAPER = {"staleness": 1.0, "redundancy": 0.0}
SIGMAS = 5.0  # a margin of so many standard deviations


def drawn(options, seed, count=40, rounds=40):
    """A bandit before and after its last play, the plays, and that last arm; RBF of length 1, reg 1."""
    arms = np.random.default_rng(0).random((count, 2))
    plays = np.random.default_rng(1).integers(0, count, rounds)
    bandit = op.BKB(arms, op.RBF(1.0), reg=1.0, seed=seed, **options)
    learn(bandit, plays[:-1], np.zeros(rounds - 1))
    before = bandit.copy()
    learn(bandit, int(plays[-1]), 0.0)
    return before, bandit, plays, int(plays[-1])


def test_a_drawing_has_the_size_that_the_variances_before_it_say():
    """E |S| <= qbar (d + v), both before the play."""
    sizes, expected, bounds, spread = [], 0.0, 0.0, 0.0
    for seed in range(400):
        before, bandit, plays, last = drawn({"oversampling": 1.0, **PAPER}, seed)
        variances = before.model.posterior().variances
        p = dense.inclusion(1.0, variances, np.bincount(plays, minlength=40))
        expected, spread = expected + p.sum(), spread + (p * (1.0 - p)).sum()
        bounds += before.model.effective_dimension() + variances[last]
        sizes.append(bandit.model.dictionary_size)
    assert abs(sum(sizes) - expected) < SIGMAS * np.sqrt(spread)
    assert sum(sizes) < bounds + SIGMAS * np.sqrt(spread)


def test_a_drawing_may_have_more_points_than_oversampling_times_the_effective_dimension_after_it():
    """Two points that tell of each other: both join with certainty, 2 > qbar 0.78; before, qbar (d + v) = 2.3."""
    for seed in range(10):
        before, bandit, _, last = drawn({"oversampling": 2.0, **PAPER}, seed, rounds=2)
        assert bandit.model.dictionary_size == 2 > 1.2 * 2.0 * bandit.model.effective_dimension()
        assert 2.0 * (before.model.effective_dimension() + before.model.posterior().variances[last]) >= 2.0


@pytest.mark.parametrize(("rounds", "delta", "epsilon"), [(1000, 0.1, 0.5), (50, 0.01, 0.9), (10**6, 0.3, 0.05)])
def test_the_oversampling_and_the_size_bound_are_those_of_theorem_3_1(rounds, delta, epsilon):
    a = (1 + epsilon) / (1 - epsilon)
    qbar = 6 * a * math.log(4 * rounds / delta) / epsilon**2
    assert op.model.bkb_oversampling(rounds, delta=delta, epsilon=epsilon) == pytest.approx(qbar, rel=1e-12)
    for kappa2, reg in ((1.0, 0.01), (5.0, 4.0)):
        want = 3 * (1 + kappa2 / reg) * a * qbar * 7.5
        assert op.model.bkb_size_bound(7.5, qbar, reg=reg, variance=kappa2, epsilon=epsilon) == pytest.approx(
            want, rel=1e-12
        )


@pytest.mark.parametrize("reg", [0.37, 4.0])
def test_theorem_3_1_holds_with_its_oversampling(reg):
    """Many plays of few points: |S| and the variances within a = 3; redrawn after every play."""
    arms, rounds = np.linspace(0.0, 1.0, 60)[:, None], 300
    kernel, qbar = 2.0 * op.Matern(1.5, 0.5), op.model.bkb_oversampling(rounds, delta=0.1)
    bandit, exact = op.BKB(arms, kernel, reg=reg, oversampling=qbar, **PAPER), op.GPUCB(arms, kernel, reg=reg)
    for arm in np.random.default_rng(0).integers(0, 60, rounds):
        learn(bandit, int(arm), 0.0)
        learn(exact, int(arm), 0.0)
        ratio = bandit.model.posterior().variances / exact.model.posterior().variances
        assert 1 / 3 <= ratio.min() <= ratio.max() <= 3
        bound = op.model.bkb_size_bound(exact.model.effective_dimension(), qbar, reg=reg, variance=2.0)
        assert bandit.model.dictionary_size <= bound


BAD = [
    (lambda: op.model.bkb_oversampling(0), "rounds"),
    (lambda: op.model.bkb_oversampling(10, delta=1.0), "delta"),
    (lambda: op.model.bkb_oversampling(10, epsilon=0.0), "epsilon"),
    (lambda: op.model.bkb_size_bound(-1.0, 5.0, reg=1.0), "effective_dimension"),
    (lambda: op.model.bkb_size_bound(1.0, 0.0, reg=1.0), "oversampling"),
    (lambda: op.model.bkb_size_bound(1.0, 5.0, reg=0.0), "reg"),
    (lambda: op.model.bkb_size_bound(1.0, 5.0, reg=1.0, variance=math.nan), "variance"),
    (lambda: op.model.bkb_size_bound(1.0, 5.0, reg=1.0, epsilon=1.0), "epsilon"),
    (lambda: op.BKB(np.eye(2), op.RBF(1.0), incremental=1), "incremental"),
]


@pytest.mark.parametrize(("call", "name"), BAD, ids=lambda v: v if isinstance(v, str) else "")
def test_bad_arguments_are_refused_by_name(call, name):
    with pytest.raises(ValueError, match=f"^{name} must"):
        call()


@pytest.mark.parametrize("staleness", [1.0, 1.5])
def test_an_incremental_drawing_keeps_every_copy_with_the_ratio_of_its_chances(staleness):
    """Counted by hand from the variances before every play: copies c of chance p become binomial(c, p_new / p)."""
    kept, expected, spread = 0.0, 0.0, 0.0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        arms = rng.random((12, 2))
        options = {"oversampling": 1.5, "staleness": staleness, "redundancy": 0.0, "incremental": True}
        bandit = op.BKB(arms, op.RBF(0.5), reg=0.37, seed=seed, **options)
        for arm in rng.integers(0, 12, 40):
            copies, chance = bandit.model.state.copies.copy()
            variances, first = bandit.model.posterior().variances, bandit.n_learned == 0
            learn(bandit, int(arm), 0.0)
            now = np.minimum(np.minimum(1.0, 1.5 * variances), np.where(copies > 0, chance, 1.0))
            now[arm] = 1.0 if first and staleness > 1.0 else now[arm]
            changed = bandit.model.state.copies[1] != chance
            assert changed[arm] or now[arm] == chance[arm]
            p = np.where(changed & (copies > 0), now / np.where(copies > 0, chance, 1.0), 1.0)
            assert bandit.model.state.copies[1][changed] == pytest.approx(now[changed], rel=1e-12) or first
            if first:
                continue
            kept += bandit.model.state.copies[0].sum()
            expected += (copies * p).sum() + now[arm]
            spread += (copies * p * (1.0 - p)).sum() + now[arm] * (1.0 - now[arm])
    assert abs(kept - expected) < SIGMAS * np.sqrt(spread)
    assert spread > 1000.0  # coins were thrown


def test_an_incremental_dictionary_forgets_points_that_are_not_played_again():
    """Its members are members of before, or the point just played; copies beyond those that are drawn count no play."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        arms = rng.random((30, 1))
        bandit = op.BKB(arms, op.RBF(0.3), reg=0.1, oversampling=2.0, incremental=True, seed=seed, **PAPER)
        held = set()
        for arm in rng.integers(0, 30, 100):
            learn(bandit, int(arm), 0.0)
            now = set(bandit.model.dictionary[:, 0])
            assert now <= held | {arms[arm, 0]}
            held = now | set(arms[bandit.model.state.copies[0] > 0, 0])
        assert (bandit.model.state.copies[0] <= bandit.model.state.plays).all()


@pytest.mark.parametrize("options", [{}, PAPER, {"oversampling": 1e12}], ids=str)
@pytest.mark.parametrize("sets", ["fixed", "rows"])
def test_an_incremental_bkb_is_certified_saved_and_regrets_as_gp_ucb(sets, options, tmp_path):
    arms = np.random.default_rng(0).random((60, 2))
    f = np.sin(5.0 * arms[:, 0]) * np.cos(3.0 * arms[:, 1])
    ours = op.BKB(arms if sets == "fixed" else None, op.RBF(0.3), reg=0.04, incremental=True, **options)
    exact = op.GPUCB(arms, op.RBF(0.3), reg=0.04)
    regrets = [0.0, 0.0]
    for t in range(200):
        noise = 0.2 * np.random.default_rng(t).standard_normal()
        for i, bandit in enumerate((ours, exact)):
            arm = bandit.decide(None if bandit.model.fixed else arms).arm
            learn(bandit, arm if bandit.model.fixed else arms[arm], float(f[arm] + noise))
            regrets[i] += f.max() - f[arm]
        if t == 100:
            ours.save(tmp_path / "bandit")
            ours = op.load(tmp_path / "bandit")
            assert ours.model.budget.incremental is True
    assert regrets[0] < 1.3 * regrets[1]
    truth, factor = op.GPUCB(arms, op.RBF(0.3), reg=0.04), ours.model.variance_factor()
    plays = ours.model.state.plays[: ours.model.state.size].astype(int)
    where = (
        np.arange(60)
        if sets == "fixed"
        else [int(np.flatnonzero((arms == p).all(1))[0]) for p in ours.model.state.points[: ours.model.state.size]]
    )
    learn(truth, np.repeat(where, plays), np.zeros(plays.sum()))
    ratio = ours.model.posterior(arms).variances / truth.model.posterior().variances
    assert 1 / factor <= ratio.min() <= ratio.max() <= factor
