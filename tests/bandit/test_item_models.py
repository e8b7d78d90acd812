"""Models of items from what was taken: ridge regressions on (1, taste direction), which beat counting."""

import numpy as np
import pytest

import onepass as op
from counts import repetitions
from onepass.lab import Recommender, RecommenderStudy, run
from onepass.lab.recommender.policies import ItemModelsPolicy, Popularity
from onepass.lab.recommender.synthetic import implicit_interactions
from onepass.testing import check_feature_map


def directions(rows):
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0.0)


def test_unit_length_keeps_the_contract_and_loses_no_square_of_small_and_large_rows():
    features = op.features.UnitLength(dim=3, length=2.5)
    rows = np.random.default_rng(0).standard_normal((20, 3))
    rows[3] = 0.0
    check_feature_map(lambda: op.features.UnitLength(dim=3, length=2.5))
    for scale in (1.0, 1e-170, 1e120):
        np.testing.assert_allclose(features.transform(scale * rows), 2.5 * directions(rows), rtol=1e-14)
    assert features.feature_names(["x", "y", "z"])[1] == "direction of y"
    with pytest.raises(ValueError, match="length must be a finite number above 0"):
        op.features.UnitLength(dim=3, length=0.0)


def test_scores_are_those_of_dense_ridge_regressions():
    rng = np.random.default_rng(1)
    rows, items, paid = rng.standard_normal((60, 4)), rng.integers(3, size=60), rng.random(60)
    for reg, taste, exploration in ((0.3, 1.0, 0.4), (1000.0, 4.0, 0.0), (20.0, 2.0, -0.1)):
        bandit = op.ItemModels(dim=4, similarity_weight=taste, reg=reg, exploration=exploration, half_life=None)
        bandit.learn(rows, paid, items)
        z, x = np.hstack([np.ones((60, 1)), taste * directions(rows)]), rng.standard_normal((1, 4))
        asked = np.append(1.0, taste * directions(x)[0])
        for item, score in enumerate(bandit.score(x[0], arms=range(3))):
            own = z[items == item]
            inverse = np.linalg.inv(reg * np.eye(5) + own.T @ own)
            wanted = asked @ inverse @ own.T @ paid[items == item] + exploration * np.sqrt(asked @ inverse @ asked)
            assert score == pytest.approx(wanted, rel=1e-9)


def test_strangers_are_shown_more_of_what_more_have_taken():
    """e^T A^-1 b = 1 - reg e^T A^-1 e for rewards 1 and e the constant: it grows with every row."""
    rng, bandit = np.random.default_rng(2), op.ItemModels(dim=3)
    rows, last = rng.standard_normal((40, 3)), 0.0
    for row in rows:
        bandit.learn(row, 1.0, "a")
        score = float(bandit.score(np.zeros(3), arms=["a"])[0])
        assert last < score < 1.0
        last = score


def test_what_is_taken_of_late_is_shown_and_what_is_new_has_its_chance():
    """50 takers of "new" after 100 of "old": first at a half-life of 20 rows, at none "old" is."""
    rng = np.random.default_rng(3)
    for half_life, first in ((20.0, "new"), (None, "old")):
        bandit = op.ItemModels(dim=3, half_life=half_life)
        bandit.learn(rng.standard_normal((150, 3)), np.ones(150), ["old"] * 100 + ["new"] * 50)
        assert bandit.recommend(np.zeros((1, 3)), k=1).arms == [[first]]
    assert op.ItemModels(dim=3).model.half_life == 15_000.0


def test_of_what_was_taken_alone_models_of_items_recommend_better_than_counting():
    """Known users and strangers, at the defaults; and better than ridge regression at its default reg."""
    users, items = repetitions(800, 8000), repetitions(300, 1200)
    ridge = Recommender("ridge", "LinUCB", {"model": "disjoint"})
    policies = (Recommender("models", ItemModelsPolicy), ridge, Recommender("counting", Popularity))
    problem = RecommenderStudy("taken", "", lambda: implicit_interactions(users, items), 16, policies, rounds=3)
    rows = [row for row in run(problem, quiet=True).rows if row["month"] == "all"]
    known = {row["policy"]: row["ndcg_at_10_unseen"] for row in rows if row["users"] == "known"}
    strange = {row["policy"]: row["hit_at_10_unseen"] for row in rows if row["users"] == "cold"}
    assert known["models"] > 1.2 * max(known["counting"], known["ridge"])
    assert strange["models"] > 0.9 * strange["counting"] > strange["ridge"]
