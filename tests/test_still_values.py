"""Values that stand still, and jump: what was tried is not asked for again, and every second trial is drawn where
the best lie densely, setting by setting."""

import numpy as np
import pytest
from scipy.stats import kstest

from onepass import GPUCB, Matern
from onepass.tuning import Category, Integer, Real, Tuner, parzen, surrogate
from onepass.tuning.proposing import Candidates, log_improvement
from onepass.tuning.space import Space

MIXED = {"c": Category(["p", "q"]), "n": Integer(1, 9, when={"c": "p"}), "x": Real(0.0, 1.0)}
SQUARE = {"x": Real(0.0, 1.0), "y": Real(0.0, 1.0)}


@pytest.mark.parametrize("shares", [[], [0.5], [0.0, 0.0, 0.31, 1.0], [0.2, 0.21, 0.9]], ids=len)
def test_a_mixture_is_a_density_and_draws_are_of_it(shares):
    shares, grid = np.array(shares), (np.arange(20_000) + 0.5) / 20_000
    density = parzen.density(shares, grid)
    assert np.isclose(density.mean(), 1.0, rtol=1e-6)
    assert density.min() > 0.0
    rng = np.random.default_rng(1)
    draws = np.concatenate([parzen.drawn(shares, rng) for _ in range(40)])
    assert kstest(draws, lambda x: np.interp(x, grid, np.cumsum(density) / len(grid))).pvalue > 1e-3  # a fixed seed


def test_chances_of_choices_are_counts_and_one_more_over_all():
    assert np.allclose(parzen.chances(np.array([0.1, 0.1, 0.9]), 4), np.array([2.25, 0.25, 0.25, 1.25]) / 4.0)


def test_values_stand_still_where_a_tenth_is_that_of_others():
    rng = np.random.default_rng(0)
    smooth, steps = rng.random(50), np.round(rng.random(50), 1)
    apart = np.arange(80)
    assert parzen.still(steps, apart[:50])
    assert not parzen.still(smooth, apart[:50])
    assert not parzen.still(np.concatenate([smooth, np.full(30, np.nan)]), apart)  # failures are no values


def test_the_same_settings_that_paid_two_values_are_noise_and_not_steps():
    steps, seats = np.round(np.random.default_rng(0).random(50), 1), np.arange(50)
    again = np.concatenate([seats, seats[:1]])
    assert parzen.still(np.concatenate([steps, steps[:1]]), again)
    assert not parzen.still(np.concatenate([steps, steps[:1] + 0.1]), again)
    assert parzen.still(np.concatenate([steps, [np.nan]]), again)  # a failure is no value


def test_of_what_was_tried_nothing_is_hoped_for():
    bandit, rows = GPUCB(None, Matern(2.5, 0.3), reg=0.04), np.array([[0.1], [0.5], [0.9]])
    for row, value in zip(rows, (0.0, 1.0, 0.5), strict=True):
        bandit.learn(row, value)
    at = np.array([[0.5], [0.7], [0.9]])
    means, deviations = surrogate.untried(bandit, {rows[1].tobytes()}, at)
    usual = surrogate.moments(bandit, at)
    assert means.tolist() == [-np.inf, *usual[0][1:]]
    assert np.array_equal(deviations, usual[1])
    assert log_improvement(means, deviations, 1.0)[0] == -np.inf
    assert np.isfinite(log_improvement(means, deviations, 1.0)[1:]).all()


def test_draws_of_the_densities_are_not_asked_for_again():
    rng, space = np.random.default_rng(6), Space({"n": Integer(1, 4)})
    shares = np.array([[0.125], [0.375], [0.625]])
    tried = {row.tobytes() for row in space.rows(shares)}
    values = np.array([0.0, 1.0, 0.0])
    for _ in range(5):
        assert parzen.proposed(Candidates(space, None, rng), shares, values, tried) == pytest.approx(0.875, abs=0.125)
    every = tried | {space.rows(np.array([[0.875]]))[0].tobytes()}
    assert parzen.proposed(Candidates(space, None, rng), shares, values, every) is None


def test_every_setting_of_a_small_space_of_steps_is_asked_for_once_and_then_any_again():
    tuner = Tuner({"c": Category(["p", "q", "r"]), "n": Integer(1, 8, when={"c": ("p", "q")})}, start=8)
    for _ in range(22):
        trial = tuner.ask()
        tuner.tell(trial, float(trial.settings.get("n", 0) // 3))
    asked = [tuple(trial.settings.values()) for trial in tuner.trials]
    assert len(set(asked)) == 17  # 2 times 8, and "r"


def test_draws_are_where_the_best_lie_and_not_where_as_many_others_do():
    rng = np.random.default_rng(2)
    x, good = rng.random(200), np.arange(200) % 10 == 0
    x[good] = 0.8 + 0.2 * x[good]
    y = np.where(good & (np.arange(200) % 20 == 0), 0.8, 0.2) + 0.02 * rng.standard_normal(200)  # most are at 0.2
    shares, candidates = np.stack([x, y], axis=1), Candidates(Space(SQUARE), None, rng)
    found = np.array([parzen.proposed(candidates, shares, 1.0 * good) for _ in range(50)])
    assert (found[:, 0] > 0.75).mean() > 0.9
    assert (found[:, 1] > 0.7).mean() > 0.9


def test_settings_that_play_no_part_and_failures_do_not_count_and_constraints_hold():
    rng = np.random.default_rng(3)
    space = Space(MIXED)
    settings = [space.settings(rng.random(3)) for _ in range(40)]
    shares = np.array([space.shares(one, np.nan) for one in settings])
    assert np.isnan(shares[:, 1]).any()
    values = np.where(shares[:, 2] < 0.3, 1.0, 0.0)
    values[::5] = np.nan
    candidates = Candidates(space, lambda one: one["x"] < 0.6, rng)
    for _ in range(30):
        assert space.settings(parzen.proposed(candidates, shares, values))["x"] < 0.6
    assert parzen.proposed(Candidates(space, lambda one: False, rng), shares, values) is None


def jumping(settings: dict[str, float]) -> float:
    """Constant in bands of x, each as good as chance has it; y plays no part."""
    return float(np.random.default_rng([4, int(20 * settings["x"])]).standard_normal())


def test_the_best_of_twenty_plateaus_is_found():
    """37 of 40 seeds find it within 40 trials (measured), so fewer than 6 of 8 do with probability 0.02."""
    best, found = max(jumping({"x": (band + 0.5) / 20}) for band in range(20)), 0
    for seed in range(8):
        tuner = Tuner(SQUARE, seed=seed)
        for _ in range(40):
            trial = tuner.ask()
            value = jumping(trial.settings)
            tuner.tell(trial, value)
            if value == best:
                found += 1
                break
    assert found >= 6
