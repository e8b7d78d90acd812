"""Wang et al.'s regret counts the noise of every row: what is told of it is worth something, where rows differ."""

import numpy as np

from counts import repetitions
from variance_games import regrets

SEEDS = repetitions(range(8, 16), range(100))


def test_regret_falls_with_the_noise_of_most_rows_where_every_rows_noise_is_told():
    found = [regrets(seed, 0.05, rounds=3_000) for seed in SEEDS]
    typical = {name: np.median([one[name] for one in found]) for name in found[0]}
    assert typical["every row's"] < 0.5 * typical["the largest"]  # .06 to .46 in nine times eight seeds
    assert typical["every row's"] < typical["OFUL"]


def test_where_all_rows_are_alike_it_is_worth_nothing():
    found = regrets(0, 1.0, rounds=500)
    assert found["every row's"] == found["the largest"]
