"""Kills under load at any moment: nothing acknowledged is lost or counted twice; the model is the uninterrupted one."""

from counts import many
from service_killing import killed

KILLS = many(4, 300)


def test_kills_under_load_lose_nothing_and_the_model_is_that_of_an_uninterrupted_twin(tmp_path):
    wrong, counts = killed(tmp_path, KILLS)
    assert wrong == []
    assert counts["decisions"] > 5 * KILLS
    assert counts["again"] > 10 * (KILLS - 1)
    assert counts["joins"] > KILLS
    assert (tmp_path / "data" / "news.sqlite").exists()
