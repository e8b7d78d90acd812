"""`Recommender` against dense formulas, on small generated logs, and through files."""

from datetime import UTC, datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

import onepass as op
from onepass.recommender.ranking import (
    FLOOR,
    HAD,
    HALF_LIVES,
    KNOWN,
    MIX,
    NEAR,
    NEW,
    SMOOTH,
    SPEEDS,
    TASTE,
    choose_candidates,
)
from onepass.recommender.tastes import EDGE, PRIOR, SHRINKAGE, fit_tastes, init_tastes, neighbours_of, taste_of


def make_log(rows=3000, users=150, items=60, groups=4, seed=0):
    """Users of some tastes take items, most of their own taste: users, items and times."""
    rng = np.random.default_rng(seed)
    user = rng.integers(users, size=rows)
    own = user % groups * (items // groups) + rng.integers(items // groups, size=rows)
    item = np.where(rng.random(rows) < 0.8, own, rng.integers(items, size=rows))
    return user, item, np.cumsum(rng.exponential(600.0, size=rows))


def test_a_tuple_is_one_name_and_never_a_list_of_users_by_mistake():
    recommender = op.Recommender()
    with pytest.raises(ValueError, match=r"user and item must be lists.*pass \[user\] and \[item\]"):
        recommender.learn(("ann", "bob"), ("tea", "milk"))
    assert recommender.n_learned == 0
    recommender.learn(["ann", "bob"], ["tea", "milk"])
    with pytest.raises(ValueError, match=r"user must be a list for many users.*pass \[user\]"):
        recommender.recommend(("ann", "bob"))
    assert len(recommender.recommend([("ann", "bob")]).arms) == 1
    recommender.learn(("ann", "bob"), "tea")
    assert recommender.n_users == 3
    assert recommender.recommend(("ann", "bob"), exclude_seen=True).arms == [["milk"]]


def make_recommender(rows=3000, **options):
    user, item, time = make_log(rows)
    recommender = op.Recommender(dim=8, **options)
    recommender.learn(user, item, time=time)
    return recommender


def dense_counts(item, names):
    """Shares of the items by the definition: every row counts half after so many others."""
    ages = np.arange(len(item))[::-1] + 1.0
    weights = 0.5 ** (ages[None] / HALF_LIVES[:, None])
    counts = np.array([[w[item == name].sum() for name in names] for w in weights])
    total = counts.sum(axis=1, keepdims=True) / len(names)
    return (counts + SMOOTH) / (total + SMOOTH)


def dense_scores(recommender, user, item, person):
    """Logits of all items by the formulas, from weights, directions and neighbours."""
    names = recommender.items
    state = recommender.contents().state
    weights, tastes = state.weights, state.tastes
    taken = np.array(sorted({names.index(one) for one in item[user == person]}), int)
    kind = KNOWN if len(taken) else NEW
    share = dense_counts(item, names)
    near = np.zeros(len(names))
    for one in taken[taken < len(tastes.near)]:
        np.add.at(near, tastes.near[one], tastes.likeness[one])
    near = near / near.mean() if near.any() else near
    mixture = weights.mixture[kind] / weights.mixture[kind].sum()
    mix = np.log(mixture[:-1] @ share + mixture[-1] * near)
    directions = np.zeros((len(names), len(tastes.levels)))
    directions[: len(tastes.basis)] = tastes.sizes[:, None] * tastes.basis[:, 1:-1] * np.sqrt(tastes.levels)
    x = directions[taken].sum(axis=0) / (1.0 + len(taken) * tastes.levels)
    had = np.isin(np.arange(len(names)), taken)
    w = weights.features[kind]
    return (
        w[:SPEEDS] @ np.log(share)
        + w[TASTE] * (directions @ x)
        + w[NEAR] * (np.log(near + FLOOR) - np.log(FLOOR) if near.any() else 0.0)
        + w[MIX] * mix
        + w[HAD] * had
    )


def test_scores_are_those_of_the_formulas():
    user, item, time = make_log()
    recommender = op.Recommender(dim=8)
    recommender.learn(user, item, time=time)
    for person in (0, 7, 149, "nobody"):
        expected = dense_scores(recommender, user, item, person)
        assert np.allclose(recommender.score(person), expected, rtol=1e-4, atol=1e-4)


def test_directions_are_those_of_the_dense_decomposition():
    user, item, _ = make_log(rows=6000)
    pairs = np.unique(np.stack([user, item], axis=1), axis=0)
    dense = np.zeros((150, 60))
    dense[pairs[:, 0], pairs[:, 1]] = 1.0
    lengths = dense.sum(axis=1).astype(np.int64)
    tastes = init_tastes(8)
    for _ in range(30):  # a step of subspace iteration after another
        tastes = fit_tastes(lengths, pairs[:, 1].astype(np.int32), 60, tastes, 0)
    degrees = dense.sum(axis=0)
    scaled = lengths[:, None] ** -0.25 * dense * (degrees + PRIOR) ** -0.5
    _, values, right = np.linalg.svd(scaled)
    levels = values**2 / values[0] ** 2
    known = np.maximum(levels[1:9] - EDGE * levels[9], 0.0)
    assert np.allclose(tastes.levels, known, atol=1e-4)
    assert (known > 0.1).sum() == 3  # four groups, of which one direction is the mean
    directions = np.sqrt(degrees.sum() / (degrees + PRIOR))[:, None] * right[1:9].T * np.sqrt(known)
    taken = np.flatnonzero(dense[3])
    x = directions[taken].sum(axis=0) / (1.0 + len(taken) * known)
    assert np.allclose(tastes.sizes * (tastes.basis @ taste_of(tastes, taken)), directions @ x, atol=1e-2)


def test_neighbours_are_the_largest_similarities():
    user, item, _ = make_log()
    pairs = np.unique(np.stack([user, item], axis=1), axis=0)
    dense = np.zeros((150, 60))
    dense[pairs[:, 0], pairs[:, 1]] = 1.0
    tastes = fit_tastes(dense.sum(axis=1).astype(np.int64), pairs[:, 1].astype(np.int32), 60, init_tastes(8), 0)
    gram = dense.T @ dense
    np.fill_diagonal(gram, 0.0)
    scale = (dense.sum(axis=0) + SHRINKAGE) ** -0.5
    similarities = scale[:, None] * gram * scale
    for i in range(60):
        expected = np.sort(similarities[i])[::-1][:24]
        assert np.allclose(np.sort(tastes.likeness[i])[::-1], expected, rtol=1e-5)
        assert np.allclose(similarities[i][tastes.near[i]], tastes.likeness[i], rtol=1e-5)
    near, sums = neighbours_of(tastes, np.array([0, 1]))
    both = np.zeros(60)
    for i in (0, 1):
        np.add.at(both, tastes.near[i], tastes.likeness[i])
    assert np.allclose(both[near], sums)
    assert np.allclose(both.sum(), sums.sum())


def test_weights_are_newton_steps_on_the_softmax():
    """The first step from the prior: w_0 + (10 I + H)^-1 (f_taken - mean f)."""
    item = np.arange(500) % 7
    recommender = op.Recommender()
    recommender.learn(np.arange(500), item)
    before = recommender.contents().state.weights.features[NEW].copy()
    share = dense_counts(item, range(7))
    features = np.zeros((len(before), 7))
    features[:SPEEDS], features[MIX] = np.log(share), np.log(share.mean(axis=0))
    values = before @ features
    p = np.exp(values) / np.exp(values).sum()
    mean = features @ p
    hessian = 10.0 * np.eye(len(before)) + (features * p) @ features.T - np.outer(mean, mean)
    recommender.learn("new", 3)
    after = recommender.contents().state.weights.features[NEW]
    assert np.allclose(after, before + np.linalg.solve(hessian, features[:, 3] - mean), atol=1e-9)


def test_rows_one_by_one_and_at_once_are_the_same():
    user, item, time = make_log(rows=1500)
    together, alone = op.Recommender(dim=4), op.Recommender(dim=4)
    together.learn(user, item, time=time)
    for row in zip(user.tolist(), item.tolist(), time.tolist(), strict=True):
        alone.learn(row[0], row[1], time=row[2])
    assert np.array_equal(together.score(3), alone.score(3))


@pytest.mark.parametrize("name", [np.int64(3), np.str_("q"), np.array("q"), np.float32(0.5)])
def test_a_single_name_may_be_a_number_or_text_of_numpy(name):
    recommender, plain = op.Recommender(), op.Recommender()
    recommender.learn(name, name)
    plain.learn(name.item(), name.item())
    assert recommender.items == plain.items == [name.item()]
    assert type(recommender.items[0]) is type(name.item())
    assert recommender.recommend(name, 1).arms == plain.recommend(name.item(), 1).arms == [[name.item()]]
    assert recommender.recommend(name, 1, exclude_seen=True).arms == [[]]
    assert op.to_bytes(recommender) == op.to_bytes(plain)


def test_names_in_series_of_polars_and_pandas():
    user, item, _ = make_log(rows=600)
    made = [op.Recommender(dim=4) for _ in range(3)]
    made[0].learn(user.tolist(), item.tolist())
    made[1].learn(pl.Series(user), pl.Series(item))
    made[2].learn(pd.Series(user), pd.Series(item))
    asked = (list(range(5)), pl.Series(range(5)), pd.Series(range(5)))
    lists = [one.recommend(users).arms for one, users in zip(made, asked, strict=True)]
    assert lists[0] == lists[1] == lists[2]


def test_tastes_are_found():
    user, item, time = make_log(rows=6000)
    recommender = op.Recommender()
    recommender.learn(user[:5000], item[:5000], time=time[:5000])
    found = recommender.recommend(np.arange(150)).arms
    own = np.mean([[one // 15 == person % 4 for one in each] for person, each in enumerate(found)])
    assert own > 0.9


def test_new_users_get_what_new_users_took_lately():
    recommender = op.Recommender()
    recommender.learn(np.arange(2000), np.repeat([1, 2], 1000))
    assert recommender.recommend(["new"], 2).arms == [[2, 1]]


def test_a_new_item_counts_from_its_first_row():
    recommender = make_recommender()
    recommender.learn(["a", "b", "c"], ["hit"] * 3, time=[1e9] * 3)
    assert "hit" in recommender.recommend("new", 60).arms[0]
    assert recommender.items[-1] == "hit"


def test_items_that_nobody_takes_twice_come_last():
    rng = np.random.default_rng(0)
    user = np.repeat(np.arange(200), 20)
    item = np.concatenate([rng.permutation(40)[:20] for _ in range(200)])
    order = rng.permutation(len(user))
    recommender = op.Recommender(dim=4)
    recommender.learn(user[order], item[order])
    taken = set(item[user == 5])
    assert not taken & set(recommender.recommend(5).arms[0])


def test_what_is_left_out():
    recommender = make_recommender()
    user, item, _ = make_log()
    taken = set(item[user == 3].tolist())
    assert not taken & set(recommender.recommend(3, 60, exclude_seen=True).arms[0])
    first = recommender.recommend([3, 4], 2).arms
    rest = recommender.recommend([3, 4], 2, exclude=[first[0], []]).arms
    assert not set(first[0]) & set(rest[0])
    assert rest[1] == first[1]
    assert set(recommender.recommend(3, items=[5, 6, "unknown"]).arms[0]) == {5, 6}
    scores = recommender.recommend(3, 60).scores[0]
    assert (np.diff(scores) <= 0.0).all()


def test_rewards_weigh_rows():
    heavy, twice, none = (op.Recommender() for _ in range(3))
    heavy.learn(["a", "b"], ["x", "y"], reward=[2.0, 1.0])
    assert heavy.recommend("new").arms == [["x", "y"]]
    none.learn(["a", "b"], ["x", "y"], reward=[0.0, 1.0])
    twice.learn("b", "y")
    assert none.items == twice.items == ["y"]


def test_times_of_all_kinds():
    seconds = [1.7e9, 1.7e9 + 60.0]
    forms = (
        seconds,
        [datetime.fromtimestamp(one, UTC) for one in seconds],
        np.array(seconds, np.int64).astype("datetime64[s]"),
    )
    found = []
    for time in forms:
        recommender = op.Recommender()
        recommender.learn(["a", "a"], ["x", "y"], time=time)
        found.append(recommender.contents().state)
    assert all(np.array_equal(one.last, found[0].last) for one in found)
    assert all(one.visits.tolist() == [[0], [2]] for one in found)


def test_a_file_holds_everything(tmp_path):
    recommender = make_recommender()
    recommender.learn(("u", 1), "tea", time=datetime(2026, 1, 1, tzinfo=UTC))
    recommender.save(tmp_path / "saved")
    twin, copy = op.load(tmp_path / "saved"), recommender.copy()
    user, item, time = make_log(rows=900, seed=1)
    for one in (recommender, twin, copy):
        one.learn(user, item, time=time + 1e9)
    for one in (twin, copy):
        assert np.array_equal(one.score(("u", 1)), recommender.score(("u", 1)))
        assert one.n_learned == recommender.n_learned == 3901
        assert repr(one) == repr(recommender)
    assert op.from_bytes(op.to_bytes(op.Recommender())).n_items == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["a"], ["x", "y"]), "one name for each user"),
        (([["a"]], ["x"]), "hashable"),
        (("a", float("nan")), "equal itself"),
    ],
)
def test_bad_rows_are_refused(arguments, message):
    recommender = op.Recommender()
    with pytest.raises(ValueError, match=message):
        recommender.learn(*arguments)
    assert recommender.n_learned == 0


@pytest.mark.parametrize(
    "options",
    [
        {"time": float("nan")},
        {"time": [1.0, 2.0, 3.0]},
        {"time": "now"},
        {"time": datetime(2026, 1, 1)},
        {"time": np.array(["NaT", "NaT"], "datetime64[s]")},
        {"reward": -1.0},
        {"reward": [1.0]},
        {"reward": float("inf")},
    ],
    ids=str,
)
def test_bad_options_are_refused(options):
    recommender = op.Recommender()
    with pytest.raises(ValueError, match=r"time|reward"):
        recommender.learn(["a", "b"], ["x", "y"], **options)
    assert recommender.n_learned == recommender.n_users == 0


def test_times_come_always_or_never():
    recommender = op.Recommender()
    recommender.learn("a", "x", time=1.0)
    with pytest.raises(ValueError, match="time must be given as in earlier calls"):
        recommender.learn("a", "y")


@pytest.mark.parametrize(
    "options",
    [
        {"k": 0},
        {"exclude": []},
        {"exclude": ["x"]},
        {"exclude": 3},
        {"items": "x"},
        {"items": [["x"]]},
        {"items": np.array(3)},
    ],
    ids=str,
)
def test_bad_requests_are_refused(options):
    recommender = op.Recommender()
    recommender.learn("a", "x")
    with pytest.raises(ValueError, match=r"k must|exclude must|items must|hashable"):
        recommender.recommend("a", **options)


def test_candidates_stand_for_all_items():
    """Every item counts once in the mean over all beginnings, so the sums of the softmax are unbiased."""
    near, known = np.array([3, 77, 990]), 1000
    step = known // 128
    counted = np.zeros(known)
    for start in range(step):
        items, excess = choose_candidates(500, near, known, start)
        assert (np.diff(items) > 0).all()
        assert len(items) <= known / step + 5
        assert (excess[np.isin(items, [3, 77, 500, 990])] == 1.0).all()
        counted[items] += excess / step
    assert np.allclose(counted, 1.0)
    items, excess = choose_candidates(5, near[:1], 100, 7)
    assert len(items) == excess.sum() == 100


def test_few_candidates_learn_the_weights_of_all(monkeypatch):
    rng = np.random.default_rng(0)
    user, time = rng.integers(300, size=4000), np.arange(4000) * 900.0
    item = (user % 3 * 200 + np.minimum(rng.geometric(0.03, size=4000), 199)) % 600
    few = op.Recommender(dim=4)
    few.learn(user, item, time=time)
    monkeypatch.setattr("onepass.recommender.ranking.CANDIDATES", 10**9)
    every = op.Recommender(dim=4)
    every.learn(user, item, time=time)
    a, b = (one.contents().state.weights.features[KNOWN] for one in (few, every))
    assert not np.array_equal(a, b)
    assert np.abs(a - b).max() < 0.15
    assert len(set(few.recommend(5).arms[0]) & set(every.recommend(5).arms[0])) >= 8


def test_new_users_are_learned_from_all_rows_of_their_first_visit():
    user = np.repeat(np.arange(200), 10)
    recommender = op.Recommender(dim=4)
    recommender.learn(user, np.tile(np.arange(10), 200), time=np.arange(2000) * 60.0)
    used = recommender.contents().state.used
    assert used[:2].tolist() == [1500.0, 0.0]  # those after the first 500
    recommender.learn([7] * 10, list(range(10)), time=1e6 + np.arange(10))
    used = recommender.contents().state.used
    assert used[:2].tolist() == [1500.0, pytest.approx((1.0 / np.arange(1, 11)).sum())]


def test_many_items_take_a_sample_of_the_softmax():
    rng = np.random.default_rng(0)
    recommender = op.Recommender(dim=4)
    recommender.learn(rng.integers(200, size=4500), np.minimum(rng.geometric(0.0003, size=4500), 9000))
    assert recommender.n_items > 2000
    assert np.isfinite(recommender.score(3)).all()
    weights = recommender.contents().state.weights.features
    assert (weights[NEW] != weights[NEW].round()).any()


def test_memory_of_many_items():
    """Arrays take at most 1.1 times the float64 heads of as many items, 8 dim bytes each."""
    items, dim = 8000, 64
    recommender = op.Recommender(dim=dim)
    recommender.learn(np.arange(items) % 50, np.arange(items))
    assert recommender.memory_usage() <= 1.1 * 8 * dim * items
