"""Limits of running averages, against the formula over whole arrays, and against worlds that change."""

import numpy as np
import pytest

from onepass.evaluation.gamma_mixture import log_wealth, lower_limit
from onepass.evaluation.running import RunningAverages


def test_limits_are_those_of_the_formula_over_all_rows():
    rng = np.random.default_rng(0)
    for n, rate, top in ((1, 0.5, 1.0), (7, 0.9, 4.0), (400, 0.1, 10.0), (3000, 0.02, 50.0)):
        weights = np.where(rng.random(n) < 1.0 / top, top, 0.0)
        rewards = (rng.random(n) < rate).astype(float)
        found = RunningAverages(1)
        found.add((weights * rewards)[:, None])
        for alpha in (0.1, 0.001):
            assert found.lower(0, alpha / 2.0) == pytest.approx(lower_limit(weights, rewards, alpha), abs=1e-8)


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


def ever_refuted(rng, alpha, steps, every):
    """Whether a running average is below its limit at any look, of rewards whose rate follows what was seen."""
    found, truth, clicks = RunningAverages(1), 0.0, 0.0
    for t in range(0, steps, every):
        x, rates = np.empty(every), np.empty(every)
        for i in range(every):
            rates[i] = 0.9 if clicks % 7 < 3 else 0.02 + 0.3 * (t > steps / 2)  # what comes depends on what came
            x[i] = float(rng.random() < rates[i] / 3.0) * 3.0  # a weight of 3
            clicks += x[i] > 0.0
        found.add(x[:, None])
        truth += rates.sum()
        if log_wealth(found.means[0] * found.rows - truth, found.sums[1, 0]) >= -np.log(alpha):
            return True
    return False


def test_averages_of_a_world_that_answers_and_changes_are_held_at_every_time():
    rng = np.random.default_rng(2)
    runs, alpha = 300, 0.1
    failed = sum(ever_refuted(rng, alpha, 240, 20) for _ in range(runs))
    assert failed <= alpha * runs + 3.0 * np.sqrt(alpha * (1.0 - alpha) * runs)


def test_limits_close_in_on_what_is():
    x = (np.random.default_rng(3).random(20_000) < 0.2).astype(float)
    found = RunningAverages(2)
    found.add(np.column_stack([x, 1.0 - x]))
    lower, upper = found.lower(0, 0.025), 1.0 - found.lower(1, 0.025)
    assert lower < x.mean() < upper
    assert upper - lower < 4.0 * 2.0 * np.sqrt(0.16 / 20_000)  # four deviations: those of one look have two
