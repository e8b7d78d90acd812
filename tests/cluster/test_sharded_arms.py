"""Arms on shards are the arms of one process: models, scores, choices and probabilities, bit for bit.

Scores of many users at once are products of BLAS, whose rounding depends on where an arm lies: equal to 1e-12 there.
"""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onepass as op
from counts import LONG
from counts import repetitions as often
from onepass.cluster import ShardedBandit
from onepass.cluster.rendezvous_hash import assign_shards

DIM, ARMS = 6, 15
MODELS = {
    "exact": lambda: op.Disjoint(op.Ridge(op.Exact(dim=DIM, reg=0.3))),
    "exact, one state an arm": lambda: op.Disjoint(op.Ridge(op.Exact(dim=DIM, reg=2.0)), compact=False),
    "frequent directions": lambda: op.Disjoint(op.Ridge(op.FrequentDirections(dim=DIM, size=2, reg=0.3))),
    "projector splitting": lambda: op.Disjoint(op.Ridge(op.ProjectorSplitting(dim=DIM, rank=2, reg=0.7))),
    "Newton steps": lambda: op.Disjoint(op.OnlineNewton(op.Exact(dim=DIM, reg=0.3))),
    "hybrid": lambda: op.Hybrid(shared=op.Ridge(op.Exact(dim=DIM, reg=0.3)), arms=op.Ridge(op.Exact(dim=DIM, reg=0.9))),
}
RULES = {
    "UCB": lambda: op.UCB(0.3, uniform_share=0.1),
    "Thompson": lambda: op.Thompson(0.2, draws=20),
    "InverseGap": lambda: op.InverseGap(),
    "Softmax": lambda: op.Softmax(),
}


def make_bandit(models: str, rule: str):
    return op.Bandit(MODELS[models](), RULES[rule](), seed=3)


def stream(seed: int, batches: int):
    """Batches of rows, rewards, names of arms; single rows too. Rows are whole numbers here and there: arms tie."""
    rng = np.random.default_rng(seed)
    for _ in range(batches):
        n = int(rng.integers(1, 9))
        rows = rng.standard_normal((n, DIM)) if rng.random() < 0.7 else rng.integers(-1, 2, (n, DIM)).astype(float)
        names = [f"arm {a}" for a in rng.integers(0, ARMS, n)]
        yield (rows[0], float(rng.random()), names[0]) if n == 1 else (rows, rng.random(n), names)


ROUNDING = 1e-12  # of products by BLAS, of scores about 1


def assert_same_decisions(one, many, seed: int = 0) -> None:
    """Every field of every decision: of known arms, and among them two that nobody knows."""
    rng = np.random.default_rng(seed)
    offered = (*one.arms, "new", "newer")
    for arms, k, context in ((None, 1, (DIM,)), (offered, 2, (DIM,)), (offered, 1, (len(offered), DIM))):
        if arms is None and not one.arms:
            continue
        context = rng.standard_normal(context)
        mine, its = (bandit.decide(context, arms, k, id=f"{seed}-{k}") for bandit in (one, many))
        for name, value, other in zip(mine._fields, mine, its, strict=True):
            np.testing.assert_array_equal(value, other, err_msg=name, strict=isinstance(value, np.ndarray))


def assert_same_recommendations(one, many, rounding: float, seed: int = 0) -> None:
    """The best arms of users, some of which are barred, and their scores."""
    offered = (*one.arms, "new", "newer")
    users = np.random.default_rng(seed).standard_normal((4, DIM))
    barred = [[], ["arm 1", "new"], list(offered), ["nobody"]]
    mine, its = (bandit.recommend(users, 3, offered, barred) for bandit in (one, many))
    assert rounding or mine.arms == its.arms
    for scores, others in zip(mine.scores, its.scores, strict=True):
        np.testing.assert_allclose(scores, others, rtol=0.0, atol=rounding)


@pytest.mark.parametrize("models", MODELS if LONG else ["exact", "frequent directions", "hybrid"])
def test_any_number_of_shards_is_the_bandit_of_one_process(models):
    for shards, rule in ((1, "UCB"), (2, "UCB"), (5, "Thompson"), *(((5, "InverseGap"), (3, "Softmax")) * LONG)):
        one, many = make_bandit(models, rule), ShardedBandit(make_bandit(models, rule), shards)
        assert_same_decisions(one, many)
        for rows, rewards, names in stream(shards, 12):
            one.learn(rows, rewards, names)
            many.learn(rows, rewards, names)
        for bandit in (one, many):
            bandit.remove_arm("arm 3")
            bandit.add_arm("arm 99")
        decision = one.decide(np.ones(DIM), id="late")
        for bandit in (one, many):
            bandit.learn(decision, 0.5)
        assert many.n_learned == one.n_learned
        assert many.arms == one.arms
        assert_same_decisions(one, many, shards)
        assert_same_recommendations(one, many, ROUNDING, shards)
        assert many.bandit.error_bound() == one.error_bound()
        np.testing.assert_array_equal(many.bandit.model.parameter_of("arm 1"), one.model.parameter_of("arm 1"))


ACTS = ["learn", "add a shard", "drop a shard", "remove an arm"]


@settings(max_examples=often(10, 300), deadline=None)
@given(st.integers(0, 10**6), st.lists(st.sampled_from(ACTS), max_size=12))
def test_shards_come_and_go_and_no_model_changes(seed, acts):
    """Whatever happens in whatever order, the bandit on shards is the one without."""
    models = "exact, one state an arm"
    one, many = make_bandit(models, "UCB"), ShardedBandit(make_bandit(models, "UCB"), 2)
    batches = stream(seed, len(acts) + 1)
    for act in ["learn", *acts]:
        if act == "learn":
            rows, rewards, names = next(batches)
            one.learn(rows, rewards, names)
            many.learn(rows, rewards, names)
        elif act == "add a shard":
            many.add_shard()
        elif act == "drop a shard" and len(many.shards) > 1:
            many.remove_shard(many.shards[seed % len(many.shards)])
        elif act == "remove an arm" and one.arms:
            name = one.arms[seed % len(one.arms)]
            one.remove_arm(name)
            many.remove_arm(name)
    assert_same_decisions(one, many, seed)
    assert_same_recommendations(one, many, 0.0, seed)


def test_only_arms_whose_shard_changes_are_moved():
    arms = np.arange(20_000)
    two, three, other = (assign_shards(arms, shards) for shards in ([0, 1], [0, 1, 2], [1, 2]))
    assert set(three[two != three]) == {2}
    assert abs((two != three).mean() - 1 / 3) < 0.02  # 6 deviations of a share of 20,000
    np.testing.assert_array_equal(other[three != 0], three[three != 0])
    assert abs(np.bincount(three) / len(arms) - 1 / 3).max() < 0.02
    np.testing.assert_array_equal(assign_shards(arms, [2, 0, 1]), three)


def test_a_snapshot_of_all_shards_stays_as_it_is():
    one, many = make_bandit("exact", "UCB"), ShardedBandit(make_bandit("exact", "UCB"), 3)
    for place, (rows, rewards, names) in enumerate(stream(7, 9)):
        if place == 5:
            frozen, held = one.snapshot(), many.snapshot()
        one.learn(rows, rewards, names)
        many.learn(rows, rewards, names)
    x = np.ones(DIM)
    np.testing.assert_array_equal(held.score(x), frozen.score(x))
    assert held.n_learned == frozen.n_learned < many.n_learned
    del held, frozen
    later = many.snapshot()
    np.testing.assert_array_equal(later.score(x), many.score(x))


def test_factors_reach_the_shards():
    def make():
        models = op.Disjoint(op.Ridge(op.Exact(dim=3, reg=0.5)))
        return op.Bandit(models, op.UCB(0.2), features=op.features.OuterProduct(left=3, right=2))

    one, many, rng = make(), ShardedBandit(make(), 3), np.random.default_rng(5)
    names = [f"arm {a}" for a in range(8)]
    sides = dict(zip(names, rng.standard_normal((8, 2)), strict=True))
    for _ in range(20):
        picked = rng.choice(names, 4).tolist()
        pairs = op.Factors(rng.standard_normal((4, 3)), np.array([sides[name] for name in picked]))
        rewards = rng.random(4)
        one.learn(pairs, rewards, picked)
        many.learn(pairs, rewards, picked)
    users = op.Factors(rng.standard_normal((6, 3)), np.array([sides[name] for name in names]))
    np.testing.assert_array_equal(one.score(users, names), many.score(users, names))
    assert one.recommend(users, 2, names).arms == many.recommend(users, 2, names).arms


def test_what_cannot_live_on_shards_is_refused():
    shared = op.OFUL(dim=2)
    for wrong, word in (
        (shared, "Disjoint or Hybrid"),
        (op.Bandit(MODELS["exact"](), half_life=10), "half_life"),
        (op.Bandit(op.Disjoint(op.OnePassHuber(op.Exact(dim=2)))), "noise of all arms"),
    ):
        with pytest.raises(ValueError, match=word):
            ShardedBandit(wrong)
    used = make_bandit("exact", "UCB")
    used.learn(np.ones(DIM), 1.0, "a")
    with pytest.raises(ValueError, match="nothing yet"):
        ShardedBandit(used)
    many = ShardedBandit(make_bandit("exact", "UCB"))
    with pytest.raises(ValueError, match=r"NaN|finite"):
        many.learn(np.full(DIM, np.nan), 1.0, "a")
    with pytest.raises(ValueError, match="finite"):
        many.recommend(np.full((1, DIM), np.nan), 1, ["a"])
    assert many.seq == many.n_learned == 0
    assert many.arms == ()
    with pytest.raises(ValueError, match="number"):
        ShardedBandit(make_bandit("exact", "UCB"), 1).remove_shard(0)


def test_without_ray_everything_else_works_and_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)  # Python's own way to say that it is not installed
    many = ShardedBandit(make_bandit("exact", "UCB"))
    many.learn(np.ones(DIM), 1.0, "a")
    assert many.decide(np.ones(DIM)).arm == "a"
    with pytest.raises(ModuleNotFoundError, match=r"pip install onepass\[ray\]"):
        ShardedBandit(make_bandit("exact", "UCB"), ray="local")
