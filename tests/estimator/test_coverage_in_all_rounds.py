"""Confidence sets hold the true parameter in all rounds together, with the probability that they state."""

import pytest

from counts import repetitions
from radius_games import GAMES, coverage


@pytest.mark.parametrize("delta", [0.05, 0.2])
@pytest.mark.parametrize("name", GAMES)
def test_the_set_holds_the_parameter_in_all_rounds(name, delta, capsys):
    games = repetitions(10, 1000)
    missed, largest = coverage(name, delta, games)
    with capsys.disabled():
        print(f"\n{name}, delta {delta}: {missed} of {games} missed; largest error / radius {largest:.4f}")
    assert missed <= delta * games
