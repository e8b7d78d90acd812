"""Intervals for a value: oracles, and how often they miss, at the end and at any time."""

import numpy as np
import pytest
from scipy import stats

import dense_evaluation as dense
from counts import repetitions
from onepass import evaluation as ev
from onepass.evaluation import intervals
from onepass.evaluation.doubly_robust import doubly_robust_interval, lower_limits
from onepass.evaluation.gamma_mixture import gamma_mixture, log_wealth

RUNS = repetitions(200, 2_000)
CLICKS = ev.Range(0.0, 1.0)


def allowed(level, runs):
    """Misses of `runs` runs that 1 - level does not explain at 1 in 10,000."""
    return int(stats.binom.isf(1e-4, runs, level))


def logged(rng, rows, learns, policy=(0.05, 0.15, 0.8), mean=(0.02, 0.08, 0.05)):
    """Weights, rewards and the value of a policy; a logger that learns shifts its choices to what clicked."""
    policy, mean, clicks, shown = np.array(policy), np.array(mean), np.ones(3), np.full(3, 30.0)
    w, r = np.empty(rows), np.empty(rows)
    for t in range(rows):
        p = np.full(3, 1 / 3)
        if learns:
            p = 0.1 / 3 + 0.9 * np.exp(40 * clicks / shown) / np.exp(40 * clicks / shown).sum()
        arm = rng.choice(3, p=p / p.sum())
        r[t] = rng.random() < mean[arm]
        w[t] = policy[arm] / p[arm]
        clicks[arm], shown[arm] = clicks[arm] + r[t], shown[arm] + 1
    return w, r, float(policy @ mean)


@pytest.mark.parametrize("learns", [False, True])
def test_limits_for_all_times_miss_at_any_time_in_at_most_one_run_in_twenty(learns):
    """Checked after every 50 rows; for a logger that learns, too."""
    rng, missed, rows, runs = np.random.default_rng(2), np.zeros(2, int), 400, repetitions(100, 2_000)
    for _ in range(runs):
        w, r, value = logged(rng, rows, learns)
        bound = 0.8 * 3 / 0.1
        sequence, out = ev.BettingSequence(CLICKS, bound), False
        for start in range(0, rows, 50):
            sequence.add(w[start : start + 50], r[start : start + 50])
            out |= not sequence.interval(0.05).contains(value)
        missed[0] += out
        low = lower_limits(w * (r - 0.05) + 0.05, bound, 0.025).max()
        high = 1.0 - lower_limits(w * ((1.0 - r) - 0.95) + 0.95, bound, 0.025).max()
        missed[1] += not low <= value <= high  # extremes over all times: a miss at any time shows
    assert (missed <= allowed(0.05, runs)).all(), missed


def test_the_gamma_mixture_is_its_integral():
    for s, v in ((1.0, 1.0), (3.0, 5.0), (10.0, 20.0), (-1.0, 3.0)):
        assert log_wealth(s, v) == pytest.approx(np.log(dense.mixture_wealth(s, v)), abs=1e-9)


def test_a_limit_of_the_mixture_is_where_its_wealth_is_what_level_asks():
    rng = np.random.default_rng(3)
    w, r, _ = logged(rng, 2_000, False)
    low = gamma_mixture(ev.make_sample(w, r), CLICKS, 0.05).lower
    x = w * r
    before = (np.concatenate([[0.0], np.cumsum(x)[:-1]]) + 0.5) / np.arange(1, len(x) + 1)
    assert log_wealth(x.sum() - len(x) * low, ((x - before) ** 2).sum()) == pytest.approx(np.log(2 / 0.05), abs=1e-6)


@pytest.mark.parametrize("least", [0.0, -1.0])
def test_cressie_read_limits_are_those_of_an_optimizer(least):
    rng = np.random.default_rng(4)
    w = rng.exponential(size=25)
    r = rng.uniform(least, 1.0, size=25)
    found = intervals.cressie_read(ev.compute_moments(w, r), ev.Range(least, 1.0), 0.05)
    assert found == pytest.approx(dense.cressie_read(w, r, least, 1.0, 0.05), abs=1e-4)


def test_clopper_pearson_is_the_binomial_one_for_weights_of_one():
    m = ev.compute_moments(np.ones(50), np.r_[np.ones(7), np.zeros(43)])
    exact = stats.binomtest(7, 50).proportion_ci(0.95, method="exact")
    assert intervals.clopper_pearson(m, CLICKS, 0.05) == pytest.approx((exact.low, exact.high), abs=1e-12)


def test_bernstein_is_the_formula_of_its_source():
    rng = np.random.default_rng(5)
    w, r, _ = logged(rng, 20_000, False)
    x, log = w * r, np.log(4 / 0.05)
    away = np.sqrt(2 * x.var(ddof=1) * log / len(x)) + 7 * w.max() * log / (3 * (len(x) - 1))
    found = intervals.bernstein(ev.compute_moments(w, r), CLICKS, 0.05)
    assert found == pytest.approx((max(x.mean() - away, 0.0), x.mean() + away), abs=1e-12)


def test_sums_of_parts_are_those_of_the_whole():
    rng = np.random.default_rng(6)
    w, r, _ = logged(rng, 300, False)
    whole = ev.compute_moments(w, r)
    parts = ev.compute_moments(w[:100], r[:100]) + ev.Moments() + ev.compute_moments(w[100:], r[100:])
    assert parts.rows == 300
    assert parts.max_weight == whole.max_weight
    for interval in (intervals.bernstein, intervals.clopper_pearson, intervals.cressie_read):
        assert interval(parts, CLICKS, 0.05) == pytest.approx(interval(whole, CLICKS, 0.05), abs=1e-12)


def test_fixed_intervals_cover_at_the_end_of_a_log_that_was_not_adaptive():
    rng = np.random.default_rng(7)
    runs, missed = RUNS, dict.fromkeys(("bernstein", "clopper-pearson", "cressie-read"), 0)
    policy, mean = np.array([0.1, 0.2, 0.7]), np.array([0.2, 0.8, 0.4])
    for _ in range(runs):
        arms = rng.integers(3, size=400)
        m = ev.compute_moments(3 * policy[arms], (rng.random(400) < mean[arms]) * 1.0)
        for name, limits in zip(
            missed,
            (intervals.bernstein(m, CLICKS, 0.05), intervals.clopper_pearson(m, CLICKS, 0.05),
             intervals.cressie_read(m, CLICKS, 0.05)),
            strict=True,
        ):  # fmt: skip
            missed[name] += not limits.contains(float(policy @ mean))
    assert max(missed.values()) <= allowed(0.05, runs), missed


def test_limits_move_with_the_units_of_rewards():
    rng = np.random.default_rng(8)
    w, r, _ = logged(rng, 400, False)
    wide = ev.Range(-10.0, 30.0)
    scaled = ev.compute_moments(w, 40.0 * r - 10.0)
    for interval in (intervals.bernstein, intervals.clopper_pearson, intervals.cressie_read):
        low, high = interval(ev.compute_moments(w, r), CLICKS, 0.05)
        expected = (40.0 * low - 10.0, 40.0 * high - 10.0)
        assert interval(scaled, wide, 0.05) == pytest.approx(expected, abs=1e-8)
    sample, moved = ev.make_sample(w, r), ev.make_sample(w, 40.0 * r - 10.0, np.full(400, -10.0), np.full(400, -10.0))
    low, high = doubly_robust_interval(sample, CLICKS, 3.0)
    assert doubly_robust_interval(moved, wide, 3.0) == pytest.approx((40.0 * low - 10.0, 40.0 * high - 10.0))


def test_a_weight_above_the_bound_is_refused():
    with pytest.raises(ValueError, match="weights must be at most the bound 2"):
        ev.BettingSequence(CLICKS, 2.0).add(np.array([3.0]), np.array([1.0]))
