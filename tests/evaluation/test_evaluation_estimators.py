"""Estimators of a policy's value: the formulas, unbiasedness by enumeration, the knob that SLOPE chooses."""

import itertools

import numpy as np
import pytest

import dense_evaluation as dense
from onepass import evaluation as ev
from onepass.evaluation.slope import slope_index

KNOBS = {"clipped": 1.5, "switch": 1.5, "dros": 3.0, "subgaussian": 0.3, "subgaussian-dr": 0.3}


def some(rows=200, seed=0):
    rng = np.random.default_rng(seed)
    w = rng.exponential(size=rows) * (rng.random(rows) < 0.8)
    return ev.make_sample(w, rng.normal(size=rows), rng.normal(size=rows), rng.normal(size=rows))


@pytest.mark.parametrize("name", ev.ESTIMATORS)
def test_an_estimate_is_its_formula_row_by_row(name):
    sample = some()
    found = ev.get_estimator(name, KNOBS.get(name)).value(sample)
    assert found == pytest.approx(dense.estimate(name, *sample[:4], KNOBS.get(name)), rel=1e-12)


@pytest.mark.parametrize("name", sorted(KNOBS))
def test_a_knob_of_none_shrinks_nothing(name):
    sample = some()
    plain = "ips" if name in ("clipped", "subgaussian") else "dr"
    assert ev.get_estimator(name).value(sample) == pytest.approx(ev.get_estimator(plain).value(sample), rel=1e-12)


@pytest.mark.parametrize("name", ["ips", "dr"])
def test_the_expectation_over_all_logs_is_the_value(name):
    """Three arms, two rewards, two rows: all 36 logs, each with its probability; the model is wrong on purpose."""
    logger, policy, mean = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.2, 0.7]), np.array([0.2, 0.9, 0.4])
    model, expected = np.array([0.7, 0.1, 0.6]), 0.0
    outcomes = list(itertools.product(range(3), (0.0, 1.0)))
    for log in itertools.product(outcomes, repeat=2):
        arms, rewards = np.array([a for a, _ in log]), np.array([r for _, r in log])
        chance = np.prod(logger[arms] * np.where(rewards == 1.0, mean[arms], 1.0 - mean[arms]))
        sample = ev.make_sample(policy[arms] / logger[arms], rewards, model[arms], np.full(2, policy @ model))
        expected += chance * ev.get_estimator(name).value(sample)
    assert expected == pytest.approx(policy @ mean, abs=1e-12)


@pytest.mark.parametrize("name", ["ips", "snips", "dr", "sndr"])
def test_a_deviation_is_that_of_the_estimate_over_many_logs(name):
    rng, policy, mean = np.random.default_rng(3), np.array([0.1, 0.2, 0.7]), np.array([0.2, 0.9, 0.4])
    values, deviations = [], []
    for _ in range(400):
        arms = rng.integers(3, size=300)
        rewards = (rng.random(300) < mean[arms]) * 1.0
        sample = ev.make_sample(policy[arms] * 3.0, rewards, mean[arms] + 0.1, np.full(300, policy @ mean + 0.1))
        values.append(ev.get_estimator(name).value(sample))
        deviations.append(ev.get_estimator(name).deviation(sample))
    assert np.mean(values) == pytest.approx(policy @ mean, abs=4 * np.std(values) / 20)
    assert np.mean(deviations) == pytest.approx(np.std(values), rel=4 / np.sqrt(2 * 400))


def test_slope_takes_the_last_interval_that_meets_all_before_it():
    assert slope_index(np.array([0.0, 0.3, 0.2]), np.array([0.5, 0.2, 0.05])) == 2
    assert (
        slope_index(np.array([0.0, 0.3, 1.0, 0.2]), np.array([0.5, 0.2, 0.1, 0.05])) == 1
    )  # [0.8, 1.2] misses [-0.1, 0.7]
    assert slope_index(np.array([0.2, 1.0, 0.3, 0.0]), np.array([0.05, 0.1, 0.2, 0.5])) == 2  # whatever the order


@pytest.mark.parametrize("name", sorted(KNOBS))
def test_slope_is_no_worse_than_six_times_the_best_knob(name):
    """The source's constant is 6, of bias plus deviation in hindsight; over 100 logs with weights up to 100."""
    rng, policy, logger = np.random.default_rng(5), np.array([0.97, 0.03]), np.array([0.01, 0.99])
    mean, value, errors, grid = np.array([0.5, 0.3]), 0.97 * 0.5 + 0.03 * 0.3, [], []
    knobs = [0.0, 0.25, 0.5, 0.75, 1.0] if name.startswith("sub") else [0.5, 3.0, 30.0, 1e9]
    for _ in range(100):
        arms = (rng.random(500) < 0.99).astype(int)
        rewards = (rng.random(500) < mean[arms]) * 1.0
        sample = ev.make_sample(policy[arms] / logger[arms], rewards, np.full(500, 0.4), np.full(500, 0.4))
        errors.append(abs(ev.tune_estimator(sample, name, knobs).value(sample) - value))
        grid.append([abs(ev.get_estimator(name, knob).value(sample) - value) for knob in knobs])
    assert np.mean(errors) <= 6.0 * np.mean(grid, axis=0).min()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: ev.get_estimator("magic"), "name must be one of"),
        (lambda: ev.get_estimator("ips", 3.0), "knob must be None for ips"),
        (lambda: ev.get_estimator("switch", -1.0), "knob must be at least 0"),
        (lambda: ev.get_estimator("subgaussian", 2.0), "knob must be from 0 to 1"),
        (lambda: ev.make_sample([1.0, -1.0], [0.0, 0.0]), "weights must be at least 0"),
        (lambda: ev.make_sample([1.0], [np.nan]), "rewards must be finite"),
        (lambda: ev.make_sample([1.0], [1.0, 2.0]), "must have one entry a row"),
        (lambda: ev.make_sample([1.0], [1.0], [1.0]), "must be given together"),
    ],
)
def test_wrong_arguments_are_named(call, said):
    with pytest.raises(ValueError, match=said):
        call()
