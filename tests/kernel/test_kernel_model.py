"""Kernel models do what all models do: labels, several decisions, recommendations, snapshots, rules that follow reg."""

import numpy as np
import pytest

import onepass as op
from kernel_games import BANDITS, SMOOTH, assert_close, history, learn, points


def learned(make, sets="rows", **options):
    arms = points()
    bandit = BANDITS[make](arms if sets == "fixed" else None, SMOOTH, reg=0.37, seed=3, **options)
    plays, rewards = history(arms, 60)
    learn(bandit, plays if sets == "fixed" else arms[plays], rewards)
    return bandit, arms


@pytest.mark.parametrize("make", ["GPUCB", "BKB"])
def test_rows_have_labels_where_they_are_given(make):
    bandit, arms = learned(make)
    labels = [f"setting {i}" for i in range(len(arms))]
    named, plain = bandit.decide(arms, labels, k=3), bandit.decide(arms, k=3)
    assert named.arms == [labels[place] for place in plain.arms]
    assert bandit.explain(arms, labels[4], arms=labels).terms == bandit.explain(arms, 4).terms
    bandit.learn(named, [1.0, None, 2.0])
    assert bandit.n_learned == 62


@pytest.mark.parametrize("make", ["GPUCB", "BKB"])
def test_several_decisions_at_once_are_those_one_by_one(make):
    bandit, _ = learned(make, exploration=op.Thompson(0.4, draws=5))
    sets, ids = np.random.default_rng(4).random((6, 9, 2)), [f"{i}" for i in range(6)]
    together = bandit.decide(sets, id=ids)
    each = [bandit.decide(rows, id=one) for rows, one in zip(sets, ids, strict=True)]
    assert [one.to_dict() for one in together.split()] == [one.to_dict() for one in each]
    twin = bandit.copy()
    bandit.learn(together, np.arange(6.0))
    for one, reward in zip(each, np.arange(6.0), strict=True):
        twin.learn(one, float(reward))
    assert op.to_bytes(bandit.model) == op.to_bytes(twin.model)


@pytest.mark.parametrize("make", ["GPUCB", "BKB"])
def test_recommendations_are_the_best_of_the_scores(make):
    bandit, _ = learned(make)
    users = np.random.default_rng(5).random((5, 8, 2))
    found = bandit.recommend(users, 3)
    for arms, scores, rows in zip(found.arms, found.scores, users, strict=True):
        want = bandit.score(rows)
        assert arms == np.argsort(-want)[:3].tolist()
        assert_close(scores, np.sort(want)[::-1][:3])


@pytest.mark.parametrize("sets", ["fixed", "rows"])
@pytest.mark.parametrize("make", ["GPUCB", "BKB"])
def test_a_snapshot_stays_as_the_bandit_was(make, sets):
    bandit, arms = learned(make, sets, exploration=op.SingleDrawThompson())
    rows = None if sets == "fixed" else arms
    before, snapshot = bandit.score(rows), bandit.snapshot()
    for _ in range(5):
        bandit.learn(bandit.decide(rows), 1.0)
    assert np.array_equal(snapshot.score(rows), before)
    assert not np.array_equal(bandit.score(rows), before)
    assert snapshot.bandit().n_learned == 60


@pytest.mark.parametrize("make", ["GPUCB", "BKB"])
def test_an_exploration_that_was_not_given_follows_reg(make, tmp_path):
    bandit, _ = learned(make, "fixed")
    bandit.model.refit(SMOOTH, 0.04)
    bandit.save(tmp_path / "bandit")
    for one in (bandit, op.load(tmp_path / "bandit"), bandit.with_exploration(bandit.exploration)):
        posterior = one.model.posterior()
        assert_close(one.score(), posterior.means + 2.0 * posterior.deviations)
        assert one.decide().rule == "PosteriorUCB(deviations=2.0)"
    bandit.exploration = op.UCB(0.5)
    posterior = bandit.model.posterior()
    assert_close(
        bandit.score(), posterior.means + 0.5 / 0.37**0.5 * posterior.deviations
    )  # kept in standard deviations


def test_what_only_dictionaries_have_is_refused_without_one():
    bandit, _ = learned("GPUCB")
    with pytest.raises(ValueError, match="variance_factor"):
        bandit.model.variance_factor()
    with pytest.raises(ValueError, match="budget must be"):
        op.model.KernelModel(points(), SMOOTH, budget=3)
    with pytest.raises(ValueError, match="since must be None"):
        bandit.merge(bandit, since=bandit)
