"""Games of A/B tests: worlds keep their rates, and a small study is played and shown."""

import dataclasses

import numpy as np
import pytest

from onepass.lab import DataNotFound, find
from onepass.lab.ab_tests.players import Choices, ClickModel, optimal_shares, play_ab_test, play_bandit
from onepass.lab.ab_tests.study import HALF
from onepass.lab.ab_tests.worlds import CAMPAIGNS, JumpingWorld, LoggedWorld, explained_share
from onepass.lab.runner import run


def test_contexts_explain_half_of_the_variance_and_keep_the_mean_rates():
    assert explained_share(0.03, HALF) == pytest.approx(0.5, abs=0.01)
    world = JumpingWorld((0.02, 0.04), 0.0, HALF, seed=0)
    rates = np.concatenate([world.block(1_000).rates for _ in range(100)])
    np.testing.assert_allclose(rates.mean(axis=0), [0.02, 0.04], rtol=0.03)


def test_a_level_moves_all_arms_and_stays_for_a_thousand_decisions():
    world = JumpingWorld((0.02, 0.04), 0.3, 0.0, seed=0)
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


def test_a_logged_world_gives_all_arms_the_clicks_of_its_rows():
    try:
        world = LoggedWorld(3, seed=1)
    except DataNotFound:
        pytest.skip("the log of Open Bandit is not in $ONEPASS_DATA")
    rows = 10_000 * len(CAMPAIGNS)
    blocks = [world.block(size).rates for size in (7, rows - 7, 7)]
    clicks = np.concatenate(blocks[:2])
    np.testing.assert_array_equal(clicks[:, 0], clicks[:, 2])
    assert clicks[:, 0].sum() == pytest.approx(rows * world.rates[0])
    np.testing.assert_array_equal(blocks[0], blocks[2])


def test_no_arm_is_right_where_all_are_equal():
    assert not Choices(np.array([0.1, 0.1])).is_right(0)
    choices = Choices(np.array([0.1, 0.3]))
    assert choices.is_right(1)
    assert not choices.is_right(0)
    for arms in ([0, 0, 1, 1], [1, 1, 0, 1]):
        choices.add(np.tile([0.1, 0.3], (4, 1)), np.array(arms))
    assert choices.regret == pytest.approx(3 * 0.2)
    assert choices.share == 0.5


def test_predicted_clicks_are_those_of_the_logistic_regression():
    rng = np.random.default_rng(0)
    contexts, arms = rng.standard_normal((600, 2)), rng.integers(3, size=600)
    model = ClickModel(3)
    assert model.predict(contexts) is None
    model.learn(contexts, arms, (rng.random(600) < 0.3 + 0.2 * (contexts[:, 0] > 0)) * 1.0)
    each = [np.hstack([contexts, np.eye(3)[np.full(600, arm)]]) for arm in range(3)]
    expected = np.stack([model._fitted.predict_proba(x)[:, 1] for x in each], axis=1)
    np.testing.assert_allclose(model.predict(contexts), expected, rtol=1e-9)


def test_a_bandit_plays_as_long_as_the_test_that_stops():
    world = (0.1, 0.6), 0.0, 0.0, 5
    test = play_ab_test(JumpingWorld(*world), 3_000, 0.05, seed=5)
    bandit = play_bandit(JumpingWorld(*world), 3_000, 0.05, seed=5)
    assert test.stopped
    assert bandit.decisions == test.decisions < 3_000
    assert 0.0 < bandit.regret < test.regret


def test_a_small_study_stops_at_the_best_arm():
    study = dataclasses.replace(find("ab-tests"), rates=(0.1, 0.5, 0.2), tolerance=0.05, rounds=4_000)
    rows = run(study, seeds=2, jobs=1, quiet=True).rows
    assert {row["policy"] for row in rows} == {policy.label for policy in study.policies}
    assert all(row["stopped"] and row["right"] and row["covered"] for row in rows)
    assert all("1.000" in line["right"] for line in study.figure.lines(rows))
