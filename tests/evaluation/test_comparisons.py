"""Comparing policies on a log: nobody worse is called better, limits at any time, limits of a fixed sample."""

import weakref

import numpy as np
import pytest
from scipy import stats

import onepass as op
from counts import repetitions
from onepass import evaluation as ev
from onepass.evaluation.comparison import (
    CONDITIONS,
    PolicyWeights,
    WeightLimits,
    gain_interval,
    lower_gain,
    weight_scale,
)
from onepass.evaluation.running_averages import RunningAverages

RARE = 0.000377  # hardly ever played: in 686 of 1,000 logs of 1,000 rows not at all
FAR = 1.0 - 1e-4  # of binomial counts: one test in 10,000 fails by chance


def played(rng, rows, p, means, *, known=False, contexts=False):
    """Clicks of arms that a lot chose; known: whether the log has all probabilities; contexts: whether it has some."""
    p, means = np.array(p), np.array(means)
    arms = rng.choice(len(p), size=rows, p=p)
    rewards = (rng.random(rows) < means[arms]) * 1.0
    distributions = np.tile(p, (rows, 1)) if known else None
    return ev.Log(
        arms=arms,
        rewards=rewards,
        propensities=p[arms],
        n_arms=len(p),
        distributions=distributions,
        contexts=np.ones((rows, 1)) if contexts else None,
    )


@pytest.mark.parametrize(("worse", "better"), [(0.3, 0.6), (0.001, 0.01), (0.98, 0.999)])
@pytest.mark.parametrize("known", [False, True])
def test_a_worse_policy_is_never_called_better_where_the_present_one_was_hardly_ever_played(worse, better, known):
    """Where the largest weight seen stood in for the unknown bound, in 686 of 1,000 logs."""
    rng = np.random.default_rng(0)
    wrong, blind, runs = 0, 0, repetitions(60, 1_000)
    for _ in range(runs):
        log = played(rng, 1_000, ((1.0 - RARE) / 2, (1.0 - RARE) / 2, RARE), (worse, worse, better), known=known)
        found = ev.compare(log, {"worse": ev.ConstantPolicy(0)}, present=ev.ConstantPolicy(2))
        wrong += found.best is not None or not found.differences[0].limits.contains(worse - better)
        blind += found.present.verdict == "refused"
    assert wrong == 0
    assert blind == runs  # the present policy's weights are looked at, too


def test_settings_are_not_called_better_where_the_present_ones_want_what_was_hardly_ever_played():
    """The present settings take the arm of which least is known, which is the best one; the others one of two that earn
    half as much. In 14 of 20 logs these were called better."""

    def recipe(beta):
        return op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=1))), op.UCB(beta), seed=0)

    rng, best = np.random.default_rng(1), []
    for _ in range(repetitions(4, 100)):
        log = played(rng, 1_000, ((1.0 - RARE) / 2, (1.0 - RARE) / 2, RARE), (0.3, 0.3, 0.6), contexts=True)
        tuned = ev.tune(recipe, {"beta": [0.0]}, log, present={"beta": 100.0}, batch_size=100)
        best.append(tuned.comparison.best)
        assert not tuned.comparison.bound_known
        assert tuned.comparison.differences[0].fixed_sample is None  # policies that learn have no one value
    assert set(best) == {None}


def test_nothing_is_better_without_a_known_bound_and_limits_hold_all_the_same():
    rng = np.random.default_rng(2)
    log = played(rng, 20_000, (0.5, 0.3, 0.2), (0.2, 0.5, 0.4))
    unknown = ev.compare(log, {"b": ev.ConstantPolicy(1)}, present=ev.ConstantPolicy(0))
    assert (unknown.best, unknown.bound_known) == (None, False)
    assert "give weight_bound" in str(unknown)
    assert unknown.differences[0].limits.contains(0.3)
    told = ev.compare(log, {"b": ev.ConstantPolicy(1)}, present=ev.ConstantPolicy(0), weight_bound=5.0)
    assert (told.best, told.bound_known) == ("b", True)
    assert told.differences[0].limits.contains(0.3)
    assert ev.compare(log, {"b": ev.ConstantPolicy(1)}).best == "b"  # what wrote the log has weights of 1


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("rate", [0.001, 0.03, 0.5, 0.97, 0.999])
def test_limits_of_a_gain_hold_at_all_click_rates(rate, known):
    """A logger with an arm of one row in a hundred, a present policy that takes it often; looked at five times."""
    rng, missed, runs = np.random.default_rng(3), 0, repetitions(20, 1_000)
    means, p = (rate, rate, min(1.5 * rate, 0.5 + rate / 2)), (0.69, 0.3, 0.01)
    one, two = np.array([0.2, 0.7, 0.1]), np.array([0.1, 0.2, 0.7])
    true = float((one - two) @ means)
    for _ in range(runs):
        log, out = played(rng, 2_000, p, means, known=known), False
        for end in (50, 200, 500, 1_000, 2_000):
            part = log[slice(0, end)]
            out |= not ev.compare(part, {"one": one}, present=two).differences[0].limits.contains(true)
        missed += out
    assert missed <= stats.binom.ppf(FAR, runs, 0.05), missed


def test_limits_count_what_the_present_policy_would_have_chosen_without_support():
    """Four of a hundred choices of the present policy were impossible, and would have earned 1 each."""
    rng, p = np.random.default_rng(4), (0.5, 0.5, 0.0)
    log = played(rng, 100_000, p, (0.1, 0.1, 1.0), known=True)
    found = ev.compare(log, {"one": ev.ConstantPolicy(0)}, present=np.array([0.48, 0.48, 0.04])).differences[0]
    assert found.limits.contains(0.1 - (0.96 * 0.1 + 0.04))
    again = ev.compare(log, {"one": np.array([0.48, 0.48, 0.04])}, present=np.array([0.5, 0.5, 0.0])).differences[0]
    assert again.limits.contains(0.96 * 0.1 + 0.04 - 0.1)


def naive(w, u, r, bounds, alpha):
    """The larger of two limits of running averages, row by row; 0 <= r <= 1."""

    def mean(rows, part):
        averages = RunningAverages(1)
        for x in rows:
            averages.add(np.array([[x]]))
        return averages.lower(0, part)

    free = [a * x + b * (1.0 - x) for a, b, x in zip(w, u, r, strict=True)]
    if bounds is None:
        return mean(free, alpha) - 1.0
    scale, j = bounds.first or bounds.largest, 0
    while scale < bounds.largest:
        scale, j = 2.0 * scale, j + 1
    part = 1.0 if bounds.first is None else 0.8 if j == 0 else 0.2 / 2.0**j
    low = (mean([1.0 + (a - b) * x / scale for a, b, x in zip(w, u, r, strict=True)], part * alpha / 2) - 1.0) * scale
    return max(mean(free, alpha / 2) - 1.0, low)


@pytest.mark.parametrize("bounds", [None, WeightLimits(6.0, None), WeightLimits(6.0, 6.0), WeightLimits(6.0, 1.3)])
def test_a_limit_is_that_of_the_formula(bounds):
    rng = np.random.default_rng(5)
    u, w = rng.choice([0.0, 1.0, 6.0], 400), rng.choice([0.0, 0.5, 3.0], 400)
    r = rng.random(400)
    one, base = (PolicyWeights(x, bounds, 0.0, False) for x in (w, u))
    assert lower_gain(one, base, r, 0.03) == pytest.approx(naive(w, u, r, bounds, 0.03), abs=1e-8)


def test_the_scales_of_weights_share_an_alpha():
    scales = [weight_scale(WeightLimits(1.5 * 2.0**j, 1.5)) for j in range(60)]
    assert [scale for scale, _ in scales[:4]] == [1.5, 3.0, 6.0, 12.0]
    assert sum(part for _, part in scales) == pytest.approx(1.0)
    assert weight_scale(WeightLimits(7.0, None)) == (7.0, 1.0)


def test_a_weight_above_the_bound_that_was_given_is_refused():
    log = played(np.random.default_rng(6), 1_000, (0.5, 0.4, 0.1), (0.1, 0.1, 0.1))
    with pytest.raises(ValueError, match=r"weight_bound must be at least every weight, got 5, and row \d+ has 10"):
        ev.compare(log, {"a": ev.ConstantPolicy(2)}, weight_bound=5.0)
    with pytest.raises(ValueError, match="rewards must be within reward_range"):
        ev.compare(log, {"a": ev.ConstantPolicy(2)}, reward_range=(0.0, 0.5))


# ---- of a fixed sample ----


def proportions(clicks, rows, more=0.5, alpha=0.05):
    """The textbook's limits of the difference of two proportions, with half a click and half a row without one more on
    either side."""
    n = rows + 2.0 * more
    p = (clicks + more) / n
    away = stats.norm.isf(alpha / 2) * np.sqrt((p * (1.0 - p) / n).sum(axis=0))
    return p[1] - p[0] - away, p[1] - p[0] + away


@pytest.mark.parametrize(
    ("share", "means"), [(0.5, (0.05, 0.06)), (0.2, (0.5, 0.3)), (0.9, (0.999, 0.998)), (0.5, (0.0, 0.0))]
)
def test_a_finished_experiment_has_the_interval_of_two_proportions(share, means):
    log = played(np.random.default_rng(7), 4_000, (1.0 - share, share), means)
    found = ev.compare(log, {"b": ev.ConstantPolicy(1)}, present=ev.ConstantPolicy(0)).differences[0].fixed_sample
    rows, clicks = np.bincount(log.arms), np.bincount(log.arms, log.rewards)
    assert found == pytest.approx(proportions(clicks, rows), rel=1e-9, abs=1e-12)
    swapped = ev.compare(log, {"a": ev.ConstantPolicy(0)}, present=ev.ConstantPolicy(1)).differences[0].fixed_sample
    assert swapped == pytest.approx((-found.upper, -found.lower), rel=1e-9)


def experiments(rate, lift, share, total, runs, seed):
    """Limits of experiments by their counts, of which they are made; whether they hold; their widths over those of the
    textbook, where it has at least ten clicks and ten rows without one a side."""
    rng, means = np.random.default_rng(seed), np.array([rate, lift])
    rare = rng.binomial(total, share, runs)
    rows = np.stack([rare, total - rare])
    clicks = rng.binomial(rows, means[:, None])
    low, high = proportions(clicks, rows)
    valid = (np.minimum(clicks, rows - clicks) >= 10).all(axis=0)
    textbook = np.subtract(*proportions(clicks[:, valid], rows[:, valid], more=0.0))
    return (low <= lift - rate) & (lift - rate <= high), (low - high)[valid] / textbook


@pytest.mark.parametrize("share", [0.5, 0.1])
@pytest.mark.parametrize("lift", [1.0, 1.2])
@pytest.mark.parametrize("rate", [0.001, 0.01, 0.1, 0.5, 0.8, 0.9])
def test_of_fifty_expected_clicks_an_arm_the_interval_holds_in_94_to_96_of_100(rate, lift, share):
    total = int(np.ceil(50.0 / rate / share))
    held, widths = experiments(rate, min(lift * rate, 0.95), share, total, repetitions(40_000, 400_000), 8)
    assert 0.94 <= held.mean() <= 0.96, held.mean()
    assert np.mean([1.0, *widths]) <= 1.05


@pytest.mark.parametrize("share", [0.5, 0.1])
@pytest.mark.parametrize("rate", [0.9, 0.99, 0.999])
def test_of_fifty_expected_rows_without_a_click_it_holds_as_often(rate, share):
    total = int(np.ceil(50.0 / (1.0 - rate) / share))
    for other in (rate, 1.0 - 1.2 * (1.0 - rate)):
        held, widths = experiments(rate, other, share, total, repetitions(40_000, 400_000), 9)
        assert 0.94 <= held.mean() <= 0.96, held.mean()
        assert widths.mean() <= 1.05


@pytest.mark.parametrize(("rate", "least"), [(0.95, 0.94), (0.99, 0.92), (0.999, 0.9)])
def test_where_less_than_five_rows_without_a_click_are_expected_it_may_hold_less_often(rate, least):
    """Fifty expected clicks an arm, and .05 to 2.5 rows without one: not what the interval is made for."""
    for other in (rate, rate - 0.04):
        held, _ = experiments(rate, other, 0.5, int(np.ceil(100.0 / rate)), repetitions(40_000, 400_000), 10)
        assert held.mean() >= least, held.mean()


@pytest.mark.parametrize("rate", [0.01, 0.3, 0.9])
@pytest.mark.parametrize("present", [None, (0.1, 0.2, 0.7)])
def test_the_interval_of_any_two_policies_holds_in_94_to_96_of_100(rate, present):
    """Policies that share arms, an uneven logger."""
    rng, p, one = np.random.default_rng(10), np.array([0.5, 0.3, 0.2]), np.array([0.3, 0.6, 0.1])
    base = p if present is None else np.array(present)
    means, rows, runs = (
        np.array([rate, 1.05 * rate, 0.9 * rate]),
        int(200 / rate / (1 - rate)),
        repetitions(500, 20_000),
    )
    true, held = float((one - base) @ means), 0
    for _ in range(runs):
        arms = rng.choice(3, size=rows, p=p)
        r = (rng.random(rows) < means[arms]) * 1.0
        held += gain_interval((one / p)[arms], (base / p)[arms], r, 0.05).contains(true)
    low, high = stats.binom.ppf([1.0 - FAR, FAR], runs, [0.94, 0.96])
    assert low <= held <= high, held / runs


def test_an_interval_of_amounts_is_that_of_two_means():
    rng, rows = np.random.default_rng(11), 3_000
    arms = rng.integers(2, size=rows)
    amounts = np.minimum(rng.exponential(5.0 + arms), 100.0)
    log = ev.Log(arms=arms, rewards=amounts, propensities=np.full(rows, 0.5), n_arms=2)
    found = ev.compare(
        log, {"b": ev.ConstantPolicy(1)}, present=ev.ConstantPolicy(0), reward_range=(0.0, 100.0)
    ).differences[0]
    one, two = amounts[arms == 0], amounts[arms == 1]
    away = stats.norm.isf(0.025) * np.sqrt(one.var() / len(one) + two.var() / len(two))
    assert found.fixed_sample == pytest.approx((two.mean() - one.mean() - away, two.mean() - one.mean() + away))


def test_what_is_printed_says_who_is_certainly_better_and_when_limits_hold():
    log = played(np.random.default_rng(12), 20_000, (0.5, 0.5), (0.05, 0.055))
    found = ev.compare(log, {"b": ev.ConstantPolicy(1)}, present=ev.ConstantPolicy(0))
    lines = str(found).splitlines()
    assert found.best is None
    assert lines[0] == "none is certainly better than the present policy (level 0.95)"
    assert lines[1].split() == ["candidate", "gain", "limits", "at", "any", "time", "fixed", "sample"]
    assert lines[-1] == CONDITIONS
    assert "planned before" in CONDITIONS
    assert "did not learn" in CONDITIONS
    assert "asymptotic" in CONDITIONS
    log = played(np.random.default_rng(12), 20_000, (0.5, 0.5), (0.05, 0.08))
    assert str(ev.compare(log, {"b": ev.ConstantPolicy(1)}, present=ev.ConstantPolicy(0))).startswith(
        "best: b (level 0.95)"
    )


def test_an_honest_log_whose_weights_are_all_the_same_is_not_refused():
    """An arm of one row in a thousand, of which a log of 1,000 has none: all weights are 1 / .999."""
    assert ev.diagnose(np.full(1_000, 1.0 / 0.999)).verdict == "ok"
    assert ev.diagnose(np.full(20_000, 1.0 / 0.999)).verdict == "refused"  # 20 rows of the rest are missing
    assert ev.diagnose(np.full(1_000, 0.999)).verdict == "refused"


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("present", [None, 0, "one"])
def test_blocks_are_compared_as_one_log_is_and_are_not_kept(monkeypatch, known, present):
    monkeypatch.setattr("onepass.evaluation.comparison.BLOCK", 1_000)
    rng, p = np.random.default_rng(8), (0.5, 0.3, 0.1, 0.1)
    log = played(rng, 2_500, p, (0.2, 0.5, 0.4, 0.1), known=known, contexts=True)
    bandit = op.OFUL(dim=1, model="disjoint", seed=0)
    bandit.learn(log.contexts[:200], log.rewards[:200], arm=log.arms[:200])
    policies = {"bandit": bandit, "uniform": "uniform", "two": [0.0, 0.0, 1.0, 0.0], "even": ev.ConstantPolicy(1)}
    present = {None: None, 0: ev.ConstantPolicy(0), "one": [0.1, 0.1, 0.8, 0.0]}[present]
    kept = []

    def blocks():
        for block in log.blocks(1_000):
            assert not any(one() is not None for one in kept[:-1])
            kept.append(weakref.ref(block))
            yield block

    found = ev.compare(blocks(), policies, present=present)
    assert found == ev.compare(log, policies, present=present)
    assert (len(kept), found.rows) == (3, 2_500)


def test_blocks_may_have_arms_that_earlier_ones_did_not():
    rng = np.random.default_rng(9)
    two, three = (played(rng, 500, p, np.full(len(p), 0.5)) for p in ((0.5, 0.5), (0.4, 0.4, 0.2)))
    found = ev.compare([two, three], {"even": "uniform"})
    assert found.differences[0].diagnosis.unsupported == 0.0
    assert found.rows == 1_000


def test_blocks_have_no_model_and_must_have_a_row():
    log = played(np.random.default_rng(9), 50, (0.5, 0.5), (0.5, 0.5), contexts=True)
    with pytest.raises(ValueError, match="log must be a Log for an adjustment"):
        ev.compare(log.blocks(10), {"even": "uniform"}, model=ev.RidgeModel())
    with pytest.raises(ValueError, match="at least one row"):
        ev.compare([], {"even": "uniform"})
    with pytest.raises(ValueError, match="at least one row"):
        ev.compare(log[:0], {"even": "uniform"})
