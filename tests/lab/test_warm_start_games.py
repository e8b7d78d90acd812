"""Worlds of warm starts, and their table."""

import numpy as np

from onepass.lab.suites import find
from onepass.lab.warm_start.study import lines, ratios
from onepass.lab.warm_start.worlds import COMMON, EFFECTS, SetWorld, SiteWorld


def test_logs_that_do_not_fit_differ_from_the_good_one_as_their_names_say():
    world = SetWorld(0, sets=("iris",))
    rows, arms, rewards = world.source("good", "uniform")
    labels = world.labels[: world.logged]
    assert len(rows) == world.logged == 50
    np.testing.assert_array_equal(rewards, arms == labels)
    same_rows, same_arms, swapped = world.source("swapped", "uniform")
    np.testing.assert_array_equal(rows, same_rows)
    assert len(set(arms.tolist())) == len(set(same_arms.tolist())) == 3
    one = [k for k in range(3) if swapped[(same_arms == k) & (labels == k)].all()]
    assert len(one) == 1  # of three arms two have each other's rewards
    mixed = world.source("columns", "uniform")[0]
    assert [bool((mixed[:, j] == rows[:, j]).all()) for j in range(4)].count(True) == 2
    np.testing.assert_array_equal(np.sort(mixed, axis=0), np.sort(rows, axis=0))


def test_sisters_have_effects_in_common():
    sites = SiteWorld(0).family
    pairs = [np.concatenate([np.ravel(getattr(site, effect)) for effect in EFFECTS]) for site in sites[:2]]
    assert abs(np.corrcoef(*pairs)[0, 1] - COMMON) < 0.1


def test_the_table_compares_every_start_with_the_cold_one_of_its_seed():
    def row(policy, seed, regret):
        trusted = {"least trust": 0.2, "most trust": 0.8}
        return {"policy": policy, "seed": seed, "cumulative_regret": regret, "rounds": 100, **trusted}

    rows = [row("cold", 0, 9.0), row("cold", 1, 39.0), row("warm", 0, 4.0), row("warm", 1, 79.0)]
    assert ratios(rows)["warm"] == [0.5, 2.0]
    assert lines(rows)[1]["of cold, geometric mean"] == "1.000"
    assert lines(rows)[1]["largest"] == "2.00"
    paid = [{**one, "cumulative_regret": None, "cumulative_reward": 100.0 - one["cumulative_regret"]} for one in rows]
    assert ratios(paid)["warm"][0] == 96.0 / 91.0


def test_experiments_have_one_cold_start_each():
    for name in ("warm-start", "warm-start-prompts", "warm-start-sites"):
        labels = [policy.label for policy in find(name).policies]
        assert labels.count("cold") == 1
        assert len(set(labels)) == len(labels)
