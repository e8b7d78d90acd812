"""A candidate against the model that serves: the paired difference is exact, and hardly ever said to be above 0."""

import numpy as np
import pytest

from counts import repetitions
from onepass.log.canary_split import mix_probabilities
from onepass.log.records import Canary, Decision, Join
from onepass.service.canary_test import CanaryTest

SHARE, ALPHA = 0.3, 0.1
P, Q = [0.6, 0.3, 0.1], [0.1, 0.3, 0.6]


def decided(number, place, p=P, q=Q):
    canary = Canary(line=1, share=SHARE, through=0, place=place, probabilities=q)
    chances = {"probabilities": p, "showing": mix_probabilities(p, q, SHARE)}
    return Decision(loop="l", time=0, id=f"{number}", places=[place], shown=[place], canary=canary, **chances)


def joined(number, reward):
    return Join(loop="l", time=number, id=f"{number}", rewards=[reward])


def gains(pays, rows, seed, p=P, q=Q, instead=None):
    """A trial, looked at after each ten rows: whether it was ever called better, and what it knows at the end.
    instead: the first reward (default None: as the others)."""
    rng, trial, ever = np.random.default_rng(seed), CanaryTest(1, (0.0, 1.0), SHARE, ALPHA), False
    mixture = np.array(mix_probabilities(p, q, SHARE))
    places, lots = rng.choice(3, size=rows, p=mixture / mixture.sum()), rng.random(rows)
    for number, (place, lot) in enumerate(zip(places.tolist(), lots, strict=True)):
        trial.add_decision(decided(number, place, p, q))
        reward = float(lot < pays[place]) if number or instead is None else instead
        trial.add_join(joined(number, reward))
        if number % 10 == 9:
            ever = ever or trial.gain().better
    return ever, trial.gain()


def test_the_mean_of_the_difference_over_what_may_be_shown_is_the_difference_of_the_values():
    rng = np.random.default_rng(1)
    for _ in range(20):
        p, q, pays = rng.dirichlet([1.0] * 3).tolist(), rng.dirichlet([1.0] * 3).tolist(), rng.random(3)
        mean = 0.0
        for place in range(3):
            trial = CanaryTest(1, (0.0, 1.0), SHARE, ALPHA)
            trial.add_decision(decided(0, place, p, q))
            trial.add_join(joined(0, float(pays[place])))
            mean += mix_probabilities(p, q, SHARE)[place] * trial.gain().mean
        assert mean == pytest.approx(float(np.dot(q, pays) - np.dot(p, pays)), abs=1e-12)


def test_a_candidate_that_is_as_good_is_called_better_as_rarely_as_promised():
    """Both are worth the same; 60 looks a trial. At most alpha / 2 = .05 of trials, and 4.5 deviations."""
    n, pays = repetitions(60, 1_000), [0.3, 0.9, 0.3]
    wrong = sum(gains(pays, 600, seed)[0] for seed in range(n))
    assert wrong <= n * 0.05 + 4.5 * np.sqrt(n * 0.05 * 0.95)


def test_a_better_one_is_found_and_a_worse_one_is_not():
    better, known = gains([0.2, 0.5, 0.8], 800, 0)
    assert better
    assert known.lower < 0.5 * (0.8 - 0.2) < known.upper
    worse, known = gains([0.8, 0.5, 0.2], 800, 0)
    assert not worse
    assert known.upper < 0.0


def test_the_levels_of_all_candidates_of_a_loop_add_up_to_one():
    spent = sum(CanaryTest(line, (0.0, 1.0), SHARE, ALPHA).alpha for line in range(1, 400))
    assert spent == pytest.approx(ALPHA * (1.0 - 1.0 / 400))


def test_decisions_of_others_do_not_count():
    trial = CanaryTest(2, (0.0, 1.0), SHARE, ALPHA)
    trial.add_decision(decided(0, 0))
    trial.add_join(joined(0, 1.0))
    trial.add_join(joined(1, 1.0))
    assert trial.gain().rows == 0


def test_a_reward_beyond_its_range_ends_what_a_trial_can_claim_and_nothing_else():
    """Limits rest on the range: as settings may have another one since, a reward may leave it."""
    pays, rows = [0.2, 0.5, 0.8], 800
    (clean, known), (ever, beyond) = (gains(pays, rows, 2, instead=reward) for reward in (1.0, -9.0))
    assert clean
    assert beyond.rows == known.rows == rows
    assert not ever
    assert not beyond.better
    assert beyond.mean != known.mean  # it counts
