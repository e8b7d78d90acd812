"""Limits of running averages, against the formula over whole arrays, and against worlds that change."""

import numpy as np
import pytest

import dense_evaluation as dense
from counts import repetitions
from onepass.evaluation.gamma_mixture import log_wealth, lower_limit
from onepass.evaluation.running_averages import RunningAverages, mixture_log_wealth


def test_limits_are_those_of_the_formula_over_all_rows():
    rng = np.random.default_rng(0)
    for n, rate, top in ((1, 0.5, 1.0), (7, 0.9, 4.0), (400, 0.1, 10.0), (3000, 0.02, 50.0)):
        weights = np.where(rng.random(n) < 1.0 / top, top, 0.0)
        rewards = (rng.random(n) < rate).astype(float)
        found = RunningAverages(1)
        found.add((weights * rewards)[:, None])
        for alpha in (0.1, 0.001):
            assert found.lower(0, alpha) == pytest.approx(dense.mixed_limit(weights * rewards, alpha), abs=1e-8)


def test_rows_may_come_in_any_blocks_and_from_saved_sums():
    x = np.random.default_rng(1).gamma(0.3, 1.0, (500, 3))
    whole, part = RunningAverages(3), RunningAverages(3)
    whole.add(x)
    for block in np.split(x, [1, 2, 50, 50, 471]):
        part.add(block)
        part = RunningAverages(3, np.array(part.sums.tolist()), part.rows)
    assert part.rows == whole.rows == 500
    np.testing.assert_allclose(part.sums, whole.sums, rtol=1e-12)
    np.testing.assert_allclose(part.means, x.mean(axis=0), rtol=1e-12)


def test_before_the_first_row_nothing_is_known():
    assert RunningAverages(2).lower(1, 0.05) == 0.0
    assert RunningAverages(2).means.tolist() == [0.0, 0.0]


def test_the_wealth_is_the_mean_of_three_integrals():
    for s, v in ((1.0, 1.0), (10.0, 20.0), (-3.0, 8.0), (60.0, 700.0)):
        wanted = sum(dense.mixture_wealth(s, v, c) for c in (1.0, 30.0, 1000.0)) / 3.0
        assert mixture_log_wealth(s, v) == pytest.approx(np.log(wanted), abs=1e-6)


def test_far_below_its_expectation_a_sum_earns_nothing():
    """The incomplete gamma function is below the smallest float there."""
    for s, v in ((-500.0, 1_000.0), (-5_000.0, 10_000.0), (-9e5, 1e6)):
        assert mixture_log_wealth(s, v) < 0.0
    edge = [log_wealth(s, 2_000.0) for s in np.linspace(-1_000.0, -900.0, 201)]
    assert (np.diff(edge) > 0.0).all()
    assert np.diff(edge).max() < 0.01


RATES = (0.001, 0.03, 0.5, 0.97, 0.999)


def ever_refuted(rng, rate, alpha, rows):
    """In how many of 100 worlds the average is below its limit at any row, of numbers from 0 to 3 whose rate follows
    what was seen: it is near `rate` after many of them and elsewhere after few."""
    runs, found = 100, np.zeros(100, bool)
    truth, total, v, ones = np.zeros(runs), np.zeros(runs), np.zeros(runs), np.zeros(runs)
    for t in range(1, rows + 1):
        rates = np.where(ones % 7 < 3, rate, 0.3 * rate + 0.02 * (t > rows / 2) * (1.0 - rate))
        x = (rng.random(runs) < rates / 3.0) * 3.0  # a weight of 3
        v += (x - np.minimum((total + 0.5) / t, 1.0)) ** 2
        total, truth, ones = total + x, truth + rates, ones + (x > 0.0)
        found |= dense.mixed_log_wealth(total - truth, v) >= -np.log(alpha)
    return int(found.sum())


@pytest.mark.parametrize("rate", RATES)
def test_averages_of_a_world_that_answers_and_changes_are_held_at_every_row(rate):
    rng, repeats, alpha = np.random.default_rng(2), repetitions(2, 20), 0.1
    failed = sum(ever_refuted(rng, rate, alpha, repetitions(400, 2_000)) for _ in range(repeats))
    assert failed <= alpha * 100 * repeats + 3.0 * np.sqrt(alpha * (1.0 - alpha) * 100 * repeats)


def test_on_long_logs_limits_are_a_seventh_nearer_than_those_of_one_mixture():
    for seed, rate in enumerate((0.05, 0.5)):
        x = (np.random.default_rng(seed).random(100_000) < rate).astype(float)
        found = RunningAverages(1)
        found.add(x[:, None])
        alone = lower_limit(np.ones(len(x)), x, 0.05)
        assert x.mean() - found.lower(0, 0.025) < 0.86 * (x.mean() - alone)


def test_limits_close_in_on_what_is():
    x = (np.random.default_rng(3).random(20_000) < 0.2).astype(float)
    found = RunningAverages(2)
    found.add(np.column_stack([x, 1.0 - x]))
    lower, upper = found.lower(0, 0.025), 1.0 - found.lower(1, 0.025)
    assert lower < x.mean() < upper
    assert upper - lower < 4.0 * 2.0 * np.sqrt(0.16 / 20_000)  # four deviations: those of one look have two
