"""Estimates on made-up logs whose value is known: bias and error are those of theory, for few arms and for many."""

import numpy as np
import pytest

from counts import repetitions
from coverage_games import logs
from onepass import evaluation as ev

RUNS, ROWS = repetitions(200, 4_000), 500
UNBIASED = ("ips", "dr", "subgaussian", "subgaussian-dr")  # the knob 0 shrinks nothing


def game(arms, sharp, seed=0):
    """Means, a logger and a policy, each a softmax of other scores; sharp: how far from even the logger is."""
    rng = np.random.default_rng(seed)
    soft = lambda x: np.exp(x - x.max()) / np.exp(x - x.max()).sum()  # noqa: E731
    means = rng.uniform(0.05, 0.6, arms)
    return means, 0.95 * soft(sharp * rng.normal(size=arms)) + 0.05 / arms, soft(2.0 * rng.normal(size=arms) + means)


def sampled(means, logger, policy, rows, rng, model):
    arms = rng.choice(len(means), size=rows, p=logger)
    rewards = (rng.random(rows) < means[arms]) * 1.0
    value = np.full(rows, policy @ model)
    return ev.make_sample(policy[arms] / logger[arms], rewards, model[arms], value)


@pytest.mark.parametrize("sharp", [0.0, 1.0, 3.0])  # from even to nearly one arm
@pytest.mark.parametrize("arms", [2, 30, 1_000])
def test_bias_and_error_are_those_of_theory(arms, sharp):
    """Of v + w (r - q) with a model q that is wrong: no bias, and the variance E[w^2 (r - q)^2] - (E[w (r - q)])^2 over
    n, the mean of v being no random number here. SNIPS: by the delta method."""
    means, logger, policy = game(arms, sharp)
    model, rng, value = np.clip(means + 0.2, 0, 1), np.random.default_rng(1), float(policy @ means)
    samples = [sampled(means, logger, policy, ROWS, rng, model) for _ in range(RUNS)]
    w = policy / logger
    for name in (*UNBIASED, "snips", "sndr"):
        q = model if ev.get_estimator(name).models else np.zeros(arms)
        centre = value if name == "snips" else float(policy @ (means - model)) if name == "sndr" else 0.0
        square = means * (1 - q - centre) ** 2 + (1 - means) * (q + centre) ** 2
        mean = float(logger @ (w * (means - q - centre)))
        deviation = np.sqrt((float(logger @ (w**2 * square)) - mean**2) / ROWS)
        found = np.array([ev.get_estimator(name).value(sample) for sample in samples])
        slack = 4.0 * deviation / np.sqrt(RUNS)
        if name in UNBIASED:
            assert found.mean() == pytest.approx(value, abs=slack), name
            spread = (
                float(((found - value) ** 4).mean()) / deviation**4
            )  # of the squares: heavy weights have heavy tails
            assert (found - value).std() == pytest.approx(deviation, rel=4.0 * np.sqrt(spread / RUNS)), name
        else:
            bias = float((w**2 * logger).sum()) / ROWS  # of a ratio: at most the variance of its denominator
            assert found.mean() == pytest.approx(value, abs=slack + bias), name


def test_shrinking_pays_less_variance_with_bias_of_one_sign():
    """Clipped weights are too small, so without a model values of rewards above 0 are too low."""
    means, logger, policy = game(30, 3.0)
    rng, value = np.random.default_rng(2), float(policy @ means)
    samples = [sampled(means, logger, policy, ROWS, rng, np.zeros(30)) for _ in range(RUNS)]
    ips = np.array([ev.get_estimator("ips").value(sample) for sample in samples])
    for name, knob in (("clipped", 3.0), ("subgaussian", 0.3)):
        found = np.array([ev.get_estimator(name, knob).value(sample) for sample in samples])
        assert found.mean() < value
        assert found.std() < ips.std()
        shrunk = ev.get_estimator(name, knob).shrink(policy / logger)
        assert found.mean() == pytest.approx(float(logger @ (shrunk * means)), abs=4 * found.std() / np.sqrt(RUNS))


@pytest.mark.parametrize("name", ["clicks", "twins"])
def test_a_logger_that_learns_biases_no_mean_of_weighted_rewards(name):
    """Rewards alone are biased, for arms with luck are shown more; weighted ones are a martingale."""
    w, r, value, _ = logs(name, True, RUNS, 400, seed=3)
    found = (w * r).mean(axis=1)
    assert found.mean() == pytest.approx(value, abs=4 * found.std() / np.sqrt(RUNS))


@pytest.mark.parametrize("arms", [2, 30])
def test_a_logger_of_one_arm_tells_of_that_arm_only(arms):
    log = ev.Log(
        arms=np.zeros(300, int), rewards=np.ones(300), propensities=np.ones(300), n_arms=arms,
        distributions=np.eye(arms)[np.zeros(300, int)],
    )  # fmt: skip
    same, other = np.eye(arms)[0], np.full(arms, 1 / arms)
    assert ev.evaluate_many(log, {"a": same}, estimators=("ips",))["a"].estimates["ips"].value == 1.0
    found = ev.evaluate_many(log, {"a": other}, estimators=("ips",))["a"]
    assert found.verdict == "refused"
    assert found.diagnosis.unsupported == pytest.approx(1.0 - 1.0 / arms)
