"""The randomness of learners on a budget: uniform, independent, of the seed."""

from math import sqrt

import numpy as np
import pytest

from budget_streams import place
from onepass.learner.budget import free_or_random_index, make_budget
from onepass.learner.pros_n_kons import hash_to_uniform

# --- random places and coins


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1])
@pytest.mark.parametrize("budget", [2, 7, 40])
def test_random_places_are_uniform_and_each_is_independent_of_the_one_before(budget, seed):
    turns, some = 40_000, place(budget, seed)
    found = np.array([some(t) for t in range(turns)])
    assert found.min() == 0
    assert found.max() == budget - 1
    for counts in (np.bincount(found, minlength=budget), np.bincount(found[1:] * budget + found[:-1])):
        cells = len(counts)
        chi = ((counts - counts.mean()) ** 2).sum() / counts.mean()
        assert abs(chi - (cells - 1)) < 5.0 * sqrt(2.0 * cells)


def test_places_of_another_seed_are_others():
    first, second = ([place(7, seed)(t) for t in range(700)] for seed in (0, 1))
    assert 60 < np.sum(np.equal(first, second)) < 140  # 100 +- 4.3 sigma by chance


def test_there_is_no_randomness_while_there_is_room():
    empty = make_budget(5, 1, 1.0)
    assert [int(free_or_random_index(empty._replace(used=n), 3, 1000 + n)) for n in range(5)] == list(range(5))


def test_coins_are_uniform_independent_and_below_one():
    found = np.array([hash_to_uniform(5, t) for t in range(100_000)])
    assert found.min() >= 0.0
    assert found.max() < 1.0
    counts = np.histogram2d(found[1:], found[:-1], bins=10, range=[[0, 1], [0, 1]])[0]
    chi = ((counts - counts.mean()) ** 2).sum() / counts.mean()
    assert abs(chi - 99) < 5.0 * sqrt(200.0)
    assert not np.isin(found[:1000], [hash_to_uniform(6, t) for t in range(1000)]).any()
