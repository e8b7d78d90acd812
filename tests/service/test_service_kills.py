"""Kills under load at any moment: nothing acknowledged is lost or counted twice; the model is the uninterrupted one."""

import pytest

from counts import repetitions
from service_killing import killed

KILLS = repetitions(4, 300)
LIVES = repetitions(
    6, 10
)  # of a service that is steered, in each of so many folders: after every kill its log is verified
FOLDERS = repetitions(1, 30)


def test_kills_under_load_lose_nothing_and_the_model_is_that_of_an_uninterrupted_twin(tmp_path):
    wrong, counts = killed(tmp_path, KILLS)
    assert wrong == []
    assert counts["decisions"] > 5 * KILLS
    assert counts["again"] > 10 * (KILLS - 1)
    assert counts["joins"] > KILLS
    assert (tmp_path / "data" / "news.sqlite").exists()


@pytest.mark.parametrize("seed", range(FOLDERS))
def test_kills_among_candidates_corrections_ways_back_and_forgotten_subjects_leave_a_log_that_verifies(tmp_path, seed):
    wrong, counts = killed(tmp_path, LIVES, seed=seed, steered=True)
    assert wrong == []
    assert counts["verified"] > LIVES
    assert counts["equal"] > 0
    assert counts["corrections"] > 0
    assert counts["PUT "] > 0
    assert counts["POST /forget"] > 0
