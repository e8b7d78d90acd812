"""Recommendations are the best scores in order, whatever the blocks."""

import numpy as np
import pytest

import onepass as op
import onepass.bandit.recommend
from arm_games import DIM, NAMES, assert_close, data, disjoint, factor_data, fingerprint, make_experienced_bandit, outer

# ---- recommendations ----


def test_recommendations_are_the_best_scores_in_order():
    bandit, users = make_experienced_bandit(), np.random.default_rng(5).standard_normal((30, DIM))
    for contexts in (users, users[:, None], np.broadcast_to(users[:, None], (30, 5, DIM))):
        offered = [*NAMES, "new"]
        scores = bandit.score(contexts if contexts.ndim == 3 else contexts[:, None], offered)
        found = bandit.recommend(contexts, 3, offered)
        order = np.argsort(-scores, axis=1)[:, :3]
        assert found.arms == [[offered[a] for a in best] for best in order]
        np.testing.assert_array_equal(np.stack(found.scores), np.take_along_axis(scores, order, axis=1))
    everyone = bandit.recommend(users, 99)
    assert all(sorted(map(str, arms)) == sorted(map(str, NAMES)) for arms in everyone.arms)
    assert bandit.recommend(np.zeros((0, DIM)), 2) == op.Recommendation([], [])


def test_excluded_arms_are_left_out_and_lists_may_be_short():
    bandit, users = make_experienced_bandit(), np.random.default_rng(5).standard_normal((5, DIM))
    exclude = [[], {"a"}, ("a", 7, "nobody"), NAMES, np.array(["d"])]
    found = bandit.recommend(users, 3, exclude=exclude)
    scores = bandit.score(users[:, None])
    for i, out in enumerate(exclude):
        left = [(-scores[i, a], arm) for a, arm in enumerate(bandit.arms) if arm not in list(out)]
        want = [arm for _, arm in sorted(left, key=lambda pair: pair[0])[:3]]
        assert found.arms[i] == want
        assert len(found.scores[i]) == len(want)
    assert [len(arms) for arms in found.arms] == [3, 3, 2, 0, 3]


@pytest.mark.parametrize("kind", ["one row a user", "a row an arm", "factors", "thompson"])
def test_users_in_blocks_get_the_same_recommendations(kind, monkeypatch):
    if kind == "factors":
        left, right, rewards, names, arms = factor_data(120)
        bandit, offered = outer(True), list(arms)
        bandit.learn(op.Factors(left, right), rewards, names)
        contexts = op.Factors(left[:23], np.stack(list(arms.values())))
    else:
        bandit, offered = make_experienced_bandit(op.Thompson(0.5) if kind == "thompson" else None), [*NAMES, "new"]
        contexts = np.random.default_rng(5).standard_normal((23, DIM))
        if kind == "a row an arm":
            contexts = np.random.default_rng(5).standard_normal((23, 5, DIM))
    exclude = [[offered[i % 4]] for i in range(23)]
    want = bandit.recommend(contexts, 3, offered, exclude)
    for block in (1, 30):
        monkeypatch.setattr(onepass.bandit.recommend, "BLOCK", block)
        got = bandit.recommend(contexts, 3, offered, exclude)
        assert got.arms == want.arms
        assert_close(np.stack(got.scores), np.stack(want.scores))


def test_ties_among_recommendations_are_broken_by_the_seed():
    users, offered = np.ones((3, DIM)), [f"item {i}" for i in range(50)]
    lists = [disjoint(op.Exact(dim=DIM), seed=s).recommend(users, 5, offered).arms for s in (0, 0, 1)]
    assert lists[0] == lists[1] != lists[2]
    assert lists[0][0] == lists[0][1] == lists[0][2]  # alike for every user
    assert disjoint(op.Exact(dim=DIM), seed=0).recommend(users, 3, iter(offered)).arms[0] == lists[0][0][:3]


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_frames_and_series_are_taken_as_contexts_and_names(library):
    module = pytest.importorskip(library)
    rows, rewards, names = data(60, names=["a", "b", "c"])
    frame = module.DataFrame({f"x{j}": rows[:, j] for j in range(DIM)})
    bandit, plain = disjoint(op.Exact(dim=DIM)), disjoint(op.Exact(dim=DIM))
    bandit.learn(frame, module.Series(rewards), module.Series(names))
    plain.learn(rows, rewards, names)
    assert fingerprint(bandit) == fingerprint(plain)
    offered = module.Series(["a", "b", "new"])
    got = bandit.recommend(frame, 2, offered, module.Series([["a"]] * 60))
    want = plain.recommend(rows, 2, ["a", "b", "new"], [["a"]] * 60)
    assert got.arms == want.arms
    assert bandit.decide(frame[0:3], module.Series(["a", "b", "c"])).arm == plain.decide(rows[:3], ["a", "b", "c"]).arm
    whole = module.DataFrame({f"x{j}": [1, 2] for j in range(DIM)})  # integers
    assert bandit.recommend(whole, 1).arms == plain.recommend(np.repeat([[1.0], [2.0]], DIM, axis=1), 1).arms
