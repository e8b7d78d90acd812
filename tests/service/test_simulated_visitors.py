"""Simulated visitors: their world is what is said of it."""

import numpy as np
import pytest

from onepass.service.settings import read_file
from onepass.service.simulation import NAMES, OFTEN, SETTINGS, WORLD, policy_values


def test_rates_are_probabilities_and_the_best_policy_is_worth_what_is_said():
    rng, table = np.random.default_rng(0), np.array([*WORLD.values()])
    visitors = (rng.random((200_000, len(NAMES))) < OFTEN).astype(float)
    rates = visitors @ table.T
    assert rates.min() >= 0.0
    assert rates.max() <= 1.0
    found = policy_values()
    assert found.best == pytest.approx(rates.max(axis=1).mean(), abs=0.005)
    assert found.first == pytest.approx(rates[:, 0].mean(), abs=0.005)
    assert found.even == pytest.approx(rates.mean(), abs=0.005)
    assert found.best > 2.0 * found.first  # a first look shall show something


def test_the_loop_that_comes_with_them_has_their_arms_and_features():
    settings, keys = read_file(SETTINGS)
    assert (settings.arms, settings.features.context, keys) == ([*WORLD], [*NAMES], [])
