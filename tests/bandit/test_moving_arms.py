"""Models per arm: shards by arm are the whole again, bit for bit; arms of both are united; single arms move."""

import numpy as np
import pytest

import onepass as op
from arm_games import (
    CUTTING,
    DIM,
    LEFT,
    NAMES,
    RIGHT,
    data,
    disjoint,
    factor_data,
    hybrid,
    learn_in_batches,
    outer,
    slices,
)
from counts import LONG
from onepass.foundation import state as states

MANY = [f"arm {i}" for i in range(11)]
DESIGNS = {
    "exact": op.Exact(dim=DIM, reg=0.37),
    "exact, with rows": op.Exact(dim=DIM, reg=0.02).append(data(3, seed=8)[0]),
    "float32": op.Exact(dim=DIM, reg=0.37, dtype="float32"),
    "fd": op.FrequentDirections(dim=DIM, size=2, reg=0.37),
    "rfd": op.RobustFrequentDirections(dim=DIM, size=2, reg=0.37),
    "splitting": op.ProjectorSplitting(dim=DIM, rank=2, reg=0.37),
    "dyadic": op.Dyadic(dim=DIM, size=1, error=9.0, reg=0.37),
}


def arms_of(bandit):
    """Every arm's own bytes, names and roster apart."""
    return {name: op.to_bytes(bandit.model.export_arm(name)) for name in bandit.arms}


def dealt(make, rows, rewards, names, parts):
    """The same batches, each shard with the rows of its own arms."""
    shards = [make() for _ in range(parts)]
    for batch in slices(len(rows)):
        for k, shard in enumerate(shards):
            own = [i for i in range(batch.start, batch.stop) if MANY.index(names[i]) % parts == k]
            if own:
                shard.learn(rows[own], rewards[own], [names[i] for i in own])
    return shards


@pytest.mark.parametrize("compact", [None, False])
@pytest.mark.parametrize("kind", DESIGNS)
def test_a_bandit_split_by_arm_and_merged_again_is_bit_identical(kind, compact):
    make = lambda: disjoint(DESIGNS[kind], compact=compact)  # noqa: E731
    rows, rewards, names = data(300, names=MANY)
    whole = learn_in_batches(make(), rows, rewards, names)
    for parts in (2, 3, 7):
        shards = dealt(make, rows, rewards, names, parts)
        held = [op.to_bytes(shard) for shard in shards]
        merged = op.merge_all(*shards)
        assert [op.to_bytes(shard) for shard in shards] == held
        assert arms_of(merged) == arms_of(whole)
        assert merged.n_learned == whole.n_learned == 300
        more, paid, whose = data(60, seed=5, names=MANY)
        assert arms_of(learn_in_batches(merged, more, paid, whose)) == arms_of(
            learn_in_batches(whole.copy(), more, paid, whose)
        )


def test_neither_threads_nor_shards_change_a_bit():
    """The whole learns its batch, 4.6 MB, by two threads; no shard has as much."""
    rng = np.random.default_rng(0)
    rows, rewards = rng.standard_normal((9000, 64)), rng.standard_normal(9000)
    arms = rng.integers(0, 40, 9000)
    make = lambda threads: disjoint(op.RobustFrequentDirections(dim=64, size=4, reg=0.37), threads=threads)  # noqa: E731
    whole, shards = make(2), [make(1) for _ in range(3)]
    whole.learn(rows, rewards, arms)
    for k, shard in enumerate(shards):
        shard.learn(rows[arms % 3 == k], rewards[arms % 3 == k], arms[arms % 3 == k])
    merged = op.merge_all(*shards)
    for arm in range(40):
        assert states.equal(merged.model.export_arm(arm).state, whole.model.export_arm(arm).state)


@pytest.mark.parametrize("kind", DESIGNS)
def test_arms_move_as_bytes_into_holes_that_others_left(kind):
    rows, rewards, names = data(300, names=MANY)
    whole, target = (learn_in_batches(disjoint(DESIGNS[kind]), rows, rewards, names) for _ in range(2))
    for name in MANY[::2]:
        target.remove_arm(name)
    memory, rounds = target.memory_usage(), target.n_learned
    for name in MANY[::2]:
        target.model.import_arm(name, op.from_bytes(op.to_bytes(whole.model.export_arm(name))))
    assert arms_of(target) == arms_of(whole)
    if target.model.estimator.compact:  # vacant slots and records are used again
        assert target.memory_usage() == memory
    assert target.n_learned == rounds + sum(whole.model.rows_of(name) for name in MANY[::2])
    loaded = op.from_bytes(op.to_bytes(target))
    assert arms_of(loaded) == arms_of(whole)
    np.testing.assert_allclose(loaded.score(rows[0], MANY), whole.score(rows[0], MANY), rtol=1e-12)


@pytest.mark.parametrize("compact", [None, False])
def test_an_arm_that_has_not_learned_moves_as_a_name(compact):
    bandit = learn_in_batches(disjoint(DESIGNS["exact"], compact=compact), *data(60))
    bandit.add_arm("waiting")
    bandit.model.import_arm("twin", bandit.model.export_arm("waiting"))
    loaded = op.from_bytes(op.to_bytes(bandit))
    assert loaded.arms == bandit.arms
    assert loaded.model.rows_of("twin") == 0


def test_an_arm_can_take_another_name_and_go_on_beside_the_original():
    rows, rewards, names = data(90)
    bandit = learn_in_batches(disjoint(DESIGNS["exact"]), rows, rewards, names)
    bandit.add_arm("twin")
    bandit.model.import_arm("twin", bandit.model.export_arm("a").copy())
    held = op.to_bytes(bandit.model.export_arm("a"))
    assert op.to_bytes(bandit.model.export_arm("twin")) == held
    bandit.learn(rows[0], 3.0, "twin")
    assert op.to_bytes(bandit.model.export_arm("a")) == held
    bandit.add_arm("new")
    assert bandit.model.export_arm("new").rows == 0
    assert "0 rows learned" in repr(bandit.model.export_arm("new"))


# ---- the same arm of both ----


def scores(bandit, rows, names):
    return np.stack([bandit.score(row, names) for row in rows])


def both(make, counts, prior=0, ranks=(DIM, DIM)):
    """Two shards with arms of each other's, and the bandit that has learned all their rows."""
    streams = [data(count, rank, seed, MANY) for seed, (count, rank) in enumerate(zip(counts, ranks, strict=True), 3)]
    shards = [learn_in_batches(make(), *stream) for stream in streams]
    whole = make()
    for stream in streams:
        learn_in_batches(whole, *stream)
    return *shards, whole


@pytest.mark.parametrize("compact", [None, False])
@pytest.mark.parametrize("kind", ["exact", "exact, with rows", *(["float32"] if LONG else [])])
@pytest.mark.parametrize("counts", [(5, 7), (20, 60), (400, 300)])
def test_arms_of_both_equal_learning_both_streams(counts, kind, compact):
    make = lambda: disjoint(DESIGNS[kind], op.UCB(op.Theory(scale=0.3)), compact=compact)  # noqa: E731
    first, second, whole = both(make, counts, ranks=(DIM, 3))
    merged = op.merge_all(first, second)
    rows, tolerance = data(9, seed=7)[0], 1e-3 if kind == "float32" else 1e-9
    assert set(merged.arms) == set(whole.arms)
    got, want = scores(merged, rows, MANY), scores(whole, rows, MANY)
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * np.abs(want).max())
    assert [merged.model.rows_of(name) for name in whole.arms] == [whole.model.rows_of(name) for name in whole.arms]
    assert merged.n_learned == whole.n_learned
    again = op.merge_all(first.copy(), second, first)  # and goes on, its arena in order
    assert op.from_bytes(op.to_bytes(again)).n_learned == 2 * first.n_learned + second.n_learned


@pytest.mark.parametrize("compact", [None, False])
@pytest.mark.parametrize("kind", ["exact", "exact, with rows"])
def test_copies_of_one_bandit_merge_with_what_their_arms_have_learned_since(kind, compact):
    make = lambda: disjoint(DESIGNS[kind], compact=compact)  # noqa: E731
    common = learn_in_batches(make(), *data(50, seed=1, names=MANY[:7]))
    streams = [data(60, seed=seed, names=names) for seed, names in ((2, MANY[:9]), (3, MANY[5:]))]
    shards, whole = [learn_in_batches(common.copy(), *stream) for stream in streams], common.copy()
    for stream in streams:
        learn_in_batches(whole, *stream)
    merged = op.merge_all(*shards, since=common)
    rows = data(9, seed=7)[0]
    np.testing.assert_allclose(scores(merged, rows, MANY), scores(whole, rows, MANY), rtol=0, atol=1e-9)
    assert merged.n_learned == whole.n_learned
    untouched = [name for name in common.arms if name not in streams[1][2]]
    assert untouched
    for name in untouched:
        assert op.to_bytes(merged.model.export_arm(name)) == op.to_bytes(shards[0].model.export_arm(name))


def test_an_arm_that_was_removed_gives_back_what_was_learned_since_only():
    common = learn_in_batches(disjoint(DESIGNS["exact"]), *data(50, names=MANY))
    first, second = common.copy(), common.copy()
    first.remove_arm(MANY[0])
    first.remove_arm(MANY[1])
    rows, rewards, _ = data(5, seed=2)
    second.learn(rows, rewards, [MANY[0]] * 5)
    first.merge(second, since=common)
    assert first.model.rows_of(MANY[0]) == 5
    assert first.model.rows_of(MANY[1]) == 0
    alone = disjoint(DESIGNS["exact"])
    alone.learn(rows, rewards, [MANY[0]] * 5)
    np.testing.assert_allclose(first.model.parameter_of(MANY[0]), alone.model.parameter_of(MANY[0]), rtol=0, atol=1e-9)


@pytest.mark.parametrize("design", CUTTING, ids=lambda d: f"{d.params['size']}, {d.params['compensation']}")
def test_arms_on_sketches_keep_b_and_their_certificates_add_and_hold(design):
    make = lambda: disjoint(design)  # noqa: E731
    streams = [data(count, seed=seed, names=["a"]) for seed, count in ((3, 30), (4, 17), (5, 2))]
    shards = [learn_in_batches(make(), *stream) for stream in streams]
    merged = op.merge_all(*shards)
    rows, rewards = np.vstack([s[0] for s in streams]), np.concatenate([s[1] for s in streams])
    assert merged.error_bound() >= sum(shard.error_bound() for shard in shards) * (1 - 1e-9)
    more, paid, names = data(25, seed=6, names=["a"])
    for extra in (0, 25):
        learn_in_batches(merged, more[:extra], paid[:extra], names[:extra])
        seen, heard = np.vstack([rows, more[:extra]]), np.concatenate([rewards, paid[:extra]])
        arm = merged.model.export_arm("a").state.arm
        inverse = arm.basis.T @ (arm.root @ arm.root.T - np.eye(len(arm.root)) / arm.ridge) @ arm.basis
        held = np.linalg.inv(inverse + np.eye(DIM) / arm.ridge)
        assert np.linalg.norm(0.37 * np.eye(DIM) + seen.T @ seen - held, 2) <= merged.error_bound()
        b = arm.moment @ arm.basis + arm.outside.sum(axis=0)
        np.testing.assert_allclose(b, seen.T @ heard, rtol=0, atol=1e-9 * np.abs(b).max())
        np.testing.assert_allclose(merged.model.parameter_of("a"), np.linalg.solve(held, b), rtol=0, atol=1e-7)
        assert abs(arm.log_det - np.linalg.slogdet(held)[1]) < 1e-7
        assert len(arm.basis) <= 2 * design.params["size"] - 1 or len(arm.basis) == DIM


# ---- hybrid ----


@pytest.mark.parametrize("compact", [None, False])
@pytest.mark.parametrize("counts", [(5, 7), (60, 90)])
def test_hybrid_bandits_equal_the_joint_regression_with_arms_of_both_and_of_one(counts, compact):
    make = lambda: hybrid(compact=compact)  # noqa: E731
    first, second, whole = both(make, counts)
    rows = data(9, seed=7)[0]
    merged = op.merge_all(first, second)
    np.testing.assert_allclose(scores(merged, rows, MANY), scores(whole, rows, MANY), rtol=0, atol=1e-9)
    more, paid, names = data(40, seed=9, names=MANY)
    later = learn_in_batches(merged, more, paid, names), learn_in_batches(whole, more, paid, names)
    np.testing.assert_allclose(*(scores(bandit, rows, MANY) for bandit in later), rtol=0, atol=1e-9)


def test_hybrid_copies_merge_with_what_they_have_learned_since():
    common = learn_in_batches(hybrid(), *data(40, names=MANY[:6]))
    streams = [data(60, seed=seed, names=names) for seed, names in ((2, MANY[:9]), (3, MANY[5:]))]
    shards, whole = [learn_in_batches(common.copy(), *stream) for stream in streams], common.copy()
    for stream in streams:
        learn_in_batches(whole, *stream)
    rows, merged = data(9, seed=7)[0], op.merge_all(*shards, since=common)
    np.testing.assert_allclose(scores(merged, rows, MANY), scores(whole, rows, MANY), rtol=0, atol=1e-9)


def test_hybrid_sketches_merge_where_no_arm_is_one_of_both():
    sketch = op.Ridge(op.FrequentDirections(dim=DIM, size=2, reg=0.37))
    make = lambda: op.Bandit(op.Hybrid(shared=sketch, arms=sketch), op.UCB(0.5))  # noqa: E731
    rows, rewards, names = data(120, names=MANY)
    shards = dealt(make, rows, rewards, names, 2)
    merged = op.merge_all(*shards)
    assert merged.n_learned == 120
    assert merged.error_bound() >= max(shard.error_bound() for shard in shards)
    held = op.to_bytes(merged)
    with pytest.raises(ValueError, match="rows cannot be taken away"):
        merged.merge(shards[1])
    assert op.to_bytes(merged) == held
    with pytest.raises(ValueError, match="known to its shared part too"):
        merged.model.export_arm(MANY[0])


# ---- factors ----


def test_reduced_arms_are_united_along_one_direction_whatever_its_sign():
    left, right, rewards, names, arms = factor_data(160)
    make = lambda: outer(True)  # noqa: E731
    first, second, whole = make(), make(), make()
    turn = np.array([-1.0 if name in NAMES[:2] else 1.0 for name in names])[:, None] * np.abs(right).max()
    first.learn(op.Factors(left[:80], right[:80]), rewards[:80], names[:80])
    second.learn(op.Factors(left[80:], right[80:] * turn[80:]), rewards[80:], names[80:])
    whole.learn(op.Factors(left[:80], right[:80]), rewards[:80], names[:80])
    whole.learn(op.Factors(left[80:], right[80:] * turn[80:]), rewards[80:], names[80:])
    known = list(whole.arms)
    request = op.Factors(left[:5], np.stack([arms[name] for name in known]))
    np.testing.assert_allclose(first.merge(second).score(request, known), whole.score(request, known), atol=1e-9)
    other = make()
    other.learn(op.Factors(np.ones(LEFT), np.ones(RIGHT)), 1.0, NAMES[0])
    with pytest.raises(ValueError, match="it has turned"):
        first.merge(other)
    moved = make()
    for name in known:
        moved.model.import_arm(name, op.from_bytes(op.to_bytes(first.model.export_arm(name))))
    np.testing.assert_array_equal(moved.model.state.direction[: len(known)].any(axis=1), [n != "zero" for n in known])
    np.testing.assert_allclose(moved.score(request, known), first.score(request, known), rtol=1e-12)


# ---- what is refused ----


def refused(call, bandit, error, match):
    held = op.to_bytes(bandit)
    with pytest.raises(error, match=match):
        call()
    assert op.to_bytes(bandit) == held


def test_what_does_not_fit_is_refused_and_nothing_has_changed():
    bandit = learn_in_batches(disjoint(DESIGNS["exact"]), *data(60))
    model = bandit.model.export_arm("a")
    for other in (
        disjoint(DESIGNS["exact, with rows"]),
        disjoint(DESIGNS["fd"]),
        disjoint(DESIGNS["exact"], compact=False),
    ):
        refused(lambda: other.model.import_arm("a", model), other, ValueError, "model must have")  # noqa: B023
        refused(lambda: bandit.merge(other), bandit, ValueError, "other must have")  # noqa: B023
    refused(lambda: bandit.model.import_arm("a", model), bandit, ValueError, "must not have learned yet")
    refused(lambda: bandit.model.import_arm("new", bandit), bandit, TypeError, "must be an ArmModel")
    refused(lambda: bandit.model.import_arm([1], model), bandit, ValueError, "hashable")
    refused(lambda: bandit.model.export_arm("nobody"), bandit, ValueError, "not known")
    refused(lambda: bandit.merge(op.OFUL(dim=DIM)), bandit, TypeError, "must be another bandit with a")
    rows = op.Exact(dim=DIM, reg=0.37).append(data(3, seed=1)[0])
    refused(lambda: bandit.merge(disjoint(rows)), bandit, ValueError, "begun with the same rows")
    for kind, error in (("splitting", TypeError), ("dyadic", None)):
        sketches = learn_in_batches(disjoint(DESIGNS[kind]), *data(60))
        if error is None:
            assert sketches.merge(sketches.copy()).n_learned == 120
        else:
            refused(lambda: sketches.merge(sketches.copy()), sketches, error, "merge is not defined")  # noqa: B023
    huber = lambda compact: op.Bandit(op.Disjoint(op.OnePassHuber(op.Exact(dim=DIM)), compact=compact))  # noqa: E731
    for compact in (True, False):
        two = [learn_in_batches(huber(compact), *data(30, seed=seed)) for seed in range(2)]
        refused(lambda: two[0].merge(two[1]), two[0], TypeError, "merge is not defined for OnePassHuber")  # noqa: B023
        apart = learn_in_batches(huber(compact), *data(30, names=["other"]))
        assert two[0].merge(apart).model.rows_of("other") == 30


def test_a_damaged_arm_is_refused():
    bandit = learn_in_batches(disjoint(DESIGNS["rfd"]), *data(60))
    data_of = op.to_bytes(bandit.model.export_arm("a"))
    for place in range(0, len(data_of), 97):
        broken = bytearray(data_of)
        broken[place] ^= 1
        try:
            loaded = op.from_bytes(bytes(broken))
        except ValueError:
            continue
        assert op.to_bytes(loaded) == data_of
    held = bandit.model.export_arm("a").state
    assert dict(states.leaves(held))["rows"] == bandit.model.rows_of("a")
