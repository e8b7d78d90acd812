"""How often limits miss: those that hold at any time do, whoever wrote the log; textbook ones do not if one looks."""

import pytest
from scipy import stats

from counts import repetitions
from coverage_games import GAMES, TOGETHER, misses

RUNS, ROWS = repetitions(80, 2_000), repetitions(250, 2_000)


def allowed(level):
    """Misses that 1 - level does not explain at 1 in 10,000."""
    return stats.binom.isf(1e-4, RUNS, level)


@pytest.mark.parametrize("learns", [False, True])
@pytest.mark.parametrize("game", GAMES)
def test_limits_for_all_times_miss_at_any_look_in_at_most_one_run_of_twenty(game, learns):
    found = misses(game, learns, RUNS, ROWS, looks=5, bootstrap=0)
    for name in TOGETHER:
        assert found[name][1] <= allowed(0.05), name
    if game in ("rare", "hidden"):
        return  # the others are rules of thumb there
    if learns:
        assert found["normal"][1] > allowed(0.05)  # the textbook's, looked at five times
    else:
        for name in ("bernstein", "cressie-read"):
            assert found[name][0] <= allowed(0.05), name
