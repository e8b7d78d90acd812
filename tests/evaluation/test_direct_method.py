"""The direct method: no row without a model, and a deviation that counts how wrong the model is."""

import numpy as np
import pytest
from scipy import stats

import dense_evaluation as dense
from counts import repetitions
from onepass import evaluation as ev


def visits(rng, rate, rows, contexts=False):
    """Clicks of two pages that a coin chose, the second a tenth better."""
    arms = rng.integers(2, size=rows)
    clicks = (rng.random(rows) < np.array([rate, min(1.1 * rate, 0.9999)])[arms]) * 1.0
    x = rng.normal(size=(rows, 2)) if contexts else None
    return ev.Log(arms=arms, rewards=clicks, propensities=np.full(rows, 0.5), n_arms=2, contexts=x)


@pytest.mark.parametrize("contexts", [False, True])
def test_the_direct_method_is_near_the_truth_within_its_deviation(contexts):
    """Of a page with a click rate of .05 it said .0370 +- .00017 where the first fold was predicted by 0."""
    rng, values, away = np.random.default_rng(0), [], []
    for _ in range(repetitions(20, 200)):
        found = ev.evaluate(visits(rng, 0.05, 10_000, contexts), ev.ConstantPolicy(0)).estimates["dm"]
        values.append(found.value)
        away.append(abs(found.value - 0.05) / found.deviation)
        assert found.normal.contains(found.value)
    assert np.mean(values) == pytest.approx(0.05, abs=4 * np.std(values) / np.sqrt(len(values)) + 5e-4)  # reg pulls
    assert max(away) < 4.0
    assert np.mean(np.array(away) < 2.0) >= 0.9


@pytest.mark.parametrize("rate", [0.001, 0.01, 0.3, 0.9, 0.999])
def test_its_limits_hold_at_all_click_rates(rate):
    rng, rows, missed, runs = np.random.default_rng(1), 10_000, 0, repetitions(30, 500)
    for _ in range(runs):
        missed += not ev.evaluate(visits(rng, rate, rows), ev.ConstantPolicy(0)).estimates["dm"].normal.contains(rate)
    assert missed <= stats.binom.ppf(1.0 - 1e-4, runs, 0.1), missed


@pytest.mark.parametrize("rows", [2, 4_000, 10_000])
def test_one_pass_over_one_block_has_a_model_too(rows):
    log = visits(np.random.default_rng(2), 0.05, rows)
    one = ev.evaluate(log, ev.ConstantPolicy(0), estimators=("dm", "dr", "sndr")).estimates
    many_ = ev.evaluate_many(log, {"a": ev.ConstantPolicy(0)}, estimators=("dm", "dr", "sndr"))["a"].estimates
    for name, found in one.items():
        assert many_[name].value == pytest.approx(found.value, rel=1e-9)
        assert many_[name].deviation == pytest.approx(found.deviation, rel=1e-9, nan_ok=True)


def test_a_log_of_one_row_has_no_model():
    log = ev.Log(arms=[0], rewards=[1.0], propensities=[0.5], n_arms=2)
    for found in (ev.evaluate(log, ev.ConstantPolicy(0)), ev.evaluate_many(log, {"a": ev.ConstantPolicy(0)})["a"]):
        assert np.isnan(found.estimates["dm"].value)
        assert found.estimates["dm"].normal == (0.0, 1.0)
        assert found.value is None
        assert "dm              no row has a model" in str(found)


def test_rows_without_a_model_are_left_out_where_weights_do_not_correct_them():
    rng = np.random.default_rng(3)
    w, r, q, v = (rng.exponential(size=100) for _ in range(4))
    known = np.arange(100) >= 30
    q, v = np.where(known, q, 0.0), np.where(known, v, 0.0)
    sample = ev.make_sample(w, r, q, v, known)
    for name in ev.ESTIMATORS:
        knob = 0.4 if "subgaussian" in name else 2.0 if name in ("clipped", "switch", "dros") else None
        rows = known if name in ("dm", "switch", "dros", "subgaussian-dr") else slice(None)
        wanted = dense.estimate(name, w[rows], r[rows], q[rows], v[rows], knob)
        assert ev.get_estimator(name, knob).value(sample) == pytest.approx(wanted, rel=1e-12), name
    dm = ev.get_estimator("dm").deviation(sample)
    error = w[known] * (r - q)[known]
    assert dm**2 == pytest.approx(error.mean() ** 2 + (v[known] + error).var() / 70)
