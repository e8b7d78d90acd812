"""Games of A/B tests: worlds keep their rates, and a small study is played and shown."""

import dataclasses

import numpy as np
import pytest

from onepass.lab import find
from onepass.lab.ab_tests.players import optimal_shares
from onepass.lab.ab_tests.study import HALF
from onepass.lab.ab_tests.worlds import World, explained_share
from onepass.lab.runner import run


def test_contexts_explain_half_of_the_variance_and_keep_the_mean_rates():
    assert explained_share(0.03, HALF) == pytest.approx(0.5, abs=0.01)
    world = World((0.02, 0.04), 0.0, HALF, seed=0)
    rates = np.concatenate([world.block(1_000).rates for _ in range(100)])
    np.testing.assert_allclose(rates.mean(axis=0), [0.02, 0.04], rtol=0.03)


def test_a_level_moves_all_arms_and_stays_for_a_thousand_decisions():
    world = World((0.02, 0.04), 0.3, 0.0, seed=0)
    blocks = [world.block(600).rates for _ in range(4)]
    assert [len(block) for block in blocks] == [600, 400, 600, 400]
    odds = [np.log(block[0] / (1.0 - block[0])) for block in blocks]
    np.testing.assert_array_equal(odds[0], odds[1])
    assert abs(odds[0][0] - odds[2][0]) > 0.01
    np.testing.assert_allclose(odds[0] - odds[2], (odds[0] - odds[2])[0])


def test_shares_of_track_and_stop_make_all_rivals_equally_hard():
    means, variance = np.array([0.2, 0.35, 0.5]), np.array([0.16, 0.2275, 0.25])
    gap = means[2] - means[:2]
    shares = optimal_shares(2, np.array([True, True, False]), gap, variance)
    cost = gap**2 / (variance[2] / shares[2] + variance[:2] / shares[:2])
    assert shares.sum() == pytest.approx(1.0)
    assert cost[0] == pytest.approx(cost[1], rel=0.01)


def test_a_small_study_stops_at_the_best_arm():
    study = dataclasses.replace(find("ab-tests"), rates=(0.1, 0.5, 0.2), tolerance=0.05, rounds=4_000)
    rows = run(study, seeds=2, jobs=1, quiet=True).rows
    assert {row["policy"] for row in rows} == {policy.label for policy in study.policies}
    assert all(row["stopped"] and row["right"] and row["covered"] for row in rows)
    assert all("1.000" in line["right"] for line in study.figure.lines(rows))
