"""Answers for finished tests: coverage and width beside the textbook's, adjustment, planning, loggers that change."""

import numpy as np
import pytest
from scipy import stats

from counts import repetitions
from onepass import evaluation as ev
from onepass.evaluation.fixed_sample import LoggerChange, adjusted_gain, gain_interval, logger_change

Z = stats.norm.isf(0.025)


def closed_form(clicks, rows):
    """Limits of two arms' difference by counts (..., 2): half a click and half a miss more, variances as they are."""
    value = (clicks + 0.5) / (rows + 1.0)
    squares = clicks * (1 - value) ** 2 + (rows - clicks) * value**2 + 0.5 * ((1 - value) ** 2 + value**2)
    gain, deviation = value[..., 1] - value[..., 0], np.sqrt((squares / (rows + 1.0) ** 2).sum(-1))
    return gain - Z * deviation, gain + Z * deviation


@pytest.mark.parametrize("share", [0.5, 0.1])
def test_limits_of_two_arms_are_those_of_their_counts(share):
    rng, p = np.random.default_rng(0), np.array([1.0 - share, share])
    arms = rng.choice(2, 3_000, p=p)
    r = (rng.random(3_000) < np.array([0.05, 0.1])[arms]) * 1.0
    w, u = (arms == 1) / p[1], (arms == 0) / p[0]
    clicks = np.array([r[arms == a].sum() for a in (0, 1)])
    found = gain_interval(w, u, r, 0.05)
    np.testing.assert_allclose(found, closed_form(clicks, np.array([(arms == 0).sum(), (arms == 1).sum()])), rtol=1e-12)


@pytest.mark.parametrize("share", [0.5, 0.2, 0.05])
@pytest.mark.parametrize("mean", [0.005, 0.02, 0.1, 0.5])
@pytest.mark.parametrize("lift", [0.0, 0.2])
def test_limits_cover_the_gain_in_94_to_96_of_100_tests_and_are_as_wide_as_the_textbook_s(share, mean, lift):
    rng, games = np.random.default_rng(7), 20_000
    means = np.array([mean, mean * (1.0 + lift)])
    total = int(np.ceil(50.0 / min(mean * share, means[0] * (1.0 - share))))  # 50 clicks of the rarer arm
    of_b = rng.binomial(total, share, games)
    rows = np.stack([total - of_b, of_b], axis=-1)
    clicks = rng.binomial(rows, means)
    low, high = closed_form(clicks, rows)
    gain = means[1] - means[0]
    assert 0.94 <= np.mean((low <= gain) & (gain <= high)) <= 0.96
    value = clicks / rows
    textbook = 2.0 * Z * np.sqrt((value * (1.0 - value) / rows).sum(-1))
    assert np.mean(high - low) <= 1.05 * np.mean(textbook)


def linear_test(rng, rows, explained, gain=0.1, share=0.3):
    """A finished test: contexts (rows, 3), arms, rewards of which contexts explain a share of the variance."""
    x, arms = rng.normal(size=(rows, 3)), (rng.random(rows) < share) * 1
    seen = x @ np.array([0.6, -0.6, np.sqrt(0.28)]) * np.sqrt(explained)
    r = seen + rng.normal(size=rows) * np.sqrt(1.0 - explained) + gain * arms
    p = np.array([1.0 - share, share])
    return ev.Log(arms=arms, rewards=r, propensities=p[arms], contexts=x, distributions=np.tile(p, (rows, 1)))


def test_covariates_narrow_limits_by_what_they_explain():
    for explained in (0.0, 0.5, 0.8):
        log = linear_test(np.random.default_rng(3), 4_000, explained)
        found = ev.compare(
            log, {"b": [0.0, 1.0]}, present=[1.0, 0.0], reward_range=(-9.0, 9.0), model=ev.RidgeModel()
        ).differences[0]
        ratio = (found.adjusted.upper - found.adjusted.lower) / (found.fixed_sample.upper - found.fixed_sample.lower)
        assert ratio == pytest.approx(np.sqrt(1.0 - explained), rel=0.05)
        assert found.adjusted.contains(0.1)
        assert found.adjusted.contains(found.adjusted_gain)


def test_adjusted_limits_cover_with_a_model_that_is_wrong():
    rng, held, games = np.random.default_rng(11), 0, repetitions(400, 20_000)
    p, rows = np.array([0.8, 0.2]), 1_500
    for _ in range(games):
        x, arms = rng.random(rows), (rng.random(rows) < p[1]) * 1
        r = (rng.random(rows) < 0.1 + 0.3 * x**2 + 0.05 * arms) * 1.0
        q = np.stack([0.4 * x, 0.1 + 0.2 * x], axis=1)  # fixed, and wrong
        w, u = (arms == 1) / p[1], (arms == 0) / p[0]
        held += adjusted_gain(w, u, q[:, 1], q[:, 0], r - q[np.arange(rows), arms], 0.05)[1].contains(0.05)
    assert stats.binom.cdf(held, games, 0.95) > 1e-4
    assert stats.binom.sf(held - 1, games, 0.95) > 1e-4


def test_a_logger_that_learned_is_flagged_and_gets_no_fixed_sample():
    rng, rows = np.random.default_rng(5), 2_000
    moving = np.clip(0.5 + 0.3 * np.arange(rows) / rows, 0.1, 0.9)
    by_context = rng.choice([0.3, 0.7], rows)
    for chance, contexts, learned in [
        (np.full(rows, 0.3), None, False),
        (moving, None, True),
        (by_context, None, True),
        (by_context, by_context[:, None], False),
        (by_context, rng.normal(size=(rows, 1)), False),
        (moving, rng.normal(size=(rows, 1)), True),
    ]:
        arms = (rng.random(rows) < chance) * 1
        p = np.stack([1.0 - chance, chance], axis=1)
        r = (rng.random(rows) < 0.2) * 1.0
        for known in (True, False):
            log = ev.Log(
                arms=arms, rewards=r, propensities=p[np.arange(rows), arms], contexts=contexts,
                distributions=p if known else None,
            )  # fmt: skip
            assert logger_change(log) is learned
            change = LoggerChange()
            for block in log.blocks(300):
                change.add(block)
            assert change.has_changed is learned
            compared = ev.compare(log, {"b": [0.0, 1.0]}, present=[1.0, 0.0])
            assert (compared.differences[0].fixed_sample is None) is learned
            assert ("the logging policy may have learned" in str(compared)) is learned


def test_planned_sizes_find_the_gain_as_often_as_promised():
    for mean, gain, shares in [(0.04, 0.01, (0.5, 0.5)), (0.1, 0.02, (0.8, 0.2)), (0.3, -0.04, (0.6, 0.3))]:
        rows = ev.sample_size(mean, gain, shares=shares)
        assert ev.power(rows, mean, gain, shares=shares) == pytest.approx(0.8, abs=1e-3)
        rng, means = np.random.default_rng(2), np.array([mean, mean + gain])
        each = rng.multinomial(rows, [*shares, max(1.0 - sum(shares), 0.0)], 20_000)[:, :2]
        low, high = closed_form(rng.binomial(each, means), each)
        assert np.mean(low > 0.0 if gain > 0.0 else high < 0.0) == pytest.approx(0.8, abs=0.02)


def test_a_test_of_another_size_than_planned_says_so():
    log = linear_test(np.random.default_rng(0), 400, 0.0)
    arguments = {"present": [1.0, 0.0], "reward_range": (-9.0, 9.0)}
    assert "500 decisions were planned" in str(ev.compare(log, {"b": [0.0, 1.0]}, planned=500, **arguments))
    assert "all 400 planned" in str(ev.compare(log, {"b": [0.0, 1.0]}, planned=400, **arguments))
    with pytest.raises(ValueError, match="shares"):
        ev.sample_size(0.1, 0.01, shares=(0.9, 0.2))
