"""Values that jump from neighbour to neighbour: some trials lie near the best, whatever the posterior says."""

import numpy as np

from onepass.tuning import Real, Tuner, proposing
from onepass.tuning.space import Space

SETTINGS = {"x": Real(0.0, 1.0), "y": Real(0.0, 1.0)}


def hashed(settings: dict[str, float]) -> float:
    """No posterior knows this: noise that is the same at every look."""
    return float(np.random.default_rng([int(1e9 * settings["x"]), int(1e9 * settings["y"])]).standard_normal())


def test_such_a_trial_is_near_one_of_the_best_and_does_not_ask_the_posterior():
    def refused(rows: np.ndarray) -> None:
        raise AssertionError("the posterior was asked")

    centres = np.array([[0.1, 0.9], [0.8, 0.2]])
    candidates = proposing.Candidates(Space(SETTINGS), None, np.random.default_rng(0))
    found = np.array([proposing.proposed(candidates, refused, 0.0, centres, 9, True) for _ in range(200)])
    apart = np.linalg.norm(found[:, None] - centres[None], axis=2).min(axis=1)
    assert 0.0 < np.median(apart) < 0.2
    assert len(np.unique(found, axis=0)) == 200


def test_only_where_the_fit_finds_noise_are_trials_drawn_so():
    for function, rough in ((hashed, True), (lambda s: -((s["x"] - 0.3) ** 2) - (s["y"] - 0.6) ** 2, False)):
        tuner = Tuner(SETTINGS, seed=2)
        for _ in range(24):
            trial = tuner.ask()
            tuner.tell(trial, function(trial.settings))
        assert (tuner._model.fit.noise > proposing.ROUGH) == rough
