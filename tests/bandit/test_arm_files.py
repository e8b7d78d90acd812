"""Models per arm in files and copies: they decide alike, crafted ones are refused."""

import json

import numpy as np
import pytest

import onepass as op
from arm_games import DIM, KINDS, RIGHT, data, disjoint, example_bandit, factor_data, fingerprint
from onepass.arena import arena
from onepass.foundation import files


def continued(bandit, kind):
    """What a bandit does next: scores, choices, what it learns."""
    rows, rewards, names = data(60, seed=9)
    left, right, pays, who, arms = factor_data(60)
    seen = []
    for i in range(0, 60, 6):
        part = slice(i, i + 6)
        if kind == "factors":
            sides = np.stack([arms[a] if a in arms else np.ones(RIGHT) for a in bandit.arms])
            decision = bandit.decide(op.Factors(left[i], sides), k=2)
            bandit.learn(op.Factors(left[part], right[part]), pays[part], who[part])
        else:
            decision = bandit.decide(rows[i], k=2)
            bandit.learn(rows[part], rewards[part], names[part])
        seen.append((decision.arms, decision.scores.tobytes()))
    return seen, bandit.n_learned, bandit.arms


@pytest.mark.parametrize("kind", KINDS)
def test_saved_loaded_and_copied_bandits_decide_alike(kind, tmp_path):
    original = example_bandit(kind).copy()
    original.save(tmp_path / "model")
    loaded, copied = op.load(tmp_path / "model"), original.copy()
    assert repr(loaded) == repr(original)
    assert fingerprint(loaded) == fingerprint(original)
    assert [loaded.model.rows_of(a) for a in loaded.arms] == [original.model.rows_of(a) for a in original.arms]
    want = continued(original, kind)
    assert continued(loaded, kind) == want
    assert continued(copied, kind) == want
    assert fingerprint(loaded) == fingerprint(original) == fingerprint(copied)


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_is_independent(kind):
    original = example_bandit(kind).copy()
    before = fingerprint(original)
    twin = original.copy()
    continued(twin, kind)
    twin.remove_arm("a")
    twin.add_arm("somebody")
    assert fingerprint(original) == before
    assert fingerprint(twin) != before
    assert len(original.model.state.store._vacant_ids) == 1


@pytest.mark.parametrize("kind", ["Exact", "Dyadic"])
def test_vacancies_survive_a_file(kind, tmp_path):
    bandit = example_bandit(kind).copy()
    bandit.save(tmp_path / "model")
    loaded = op.load(tmp_path / "model")
    store = loaded.model.state.store
    top = store.state.top if kind == "Exact" else len(store.state)
    assert len(store._vacant_ids) == 1
    loaded.learn(np.ones(DIM), 1.0, "takes the free place")
    assert not store._vacant_ids
    assert top == (store.state.top if kind == "Exact" else len(store.state))


def test_names_survive_a_file(tmp_path):
    names = ["text", "", "schön ☃", 3, -(2**70), 2.5, float("inf"), True, None, ("a", 1, (None, 2.5)), ()]
    given = [*names, np.str_("numpy"), np.int64(12), np.float64(0.1)]
    bandit = disjoint(op.Exact(dim=DIM))
    for i, name in enumerate(given):
        if i % 2:
            bandit.add_arm(name)
        else:
            bandit.learn(np.full((1, DIM), i + 1.0), [1.0], [name])
    bandit.save(tmp_path / "model")
    loaded = op.load(tmp_path / "model")
    assert loaded.arms == (*names, "numpy", 12, 0.1)
    assert [type(name) for name in loaded.arms[:-3]] == [type(name) for name in names]
    np.testing.assert_array_equal(loaded.score(np.ones(DIM), given), bandit.score(np.ones(DIM), given))
    assert bandit.arms == tuple(given)


@pytest.mark.parametrize("name", [b"bytes", frozenset({1}), 1j, object(), ("a", b"inside")], ids=type)
def test_names_that_a_file_cannot_hold_are_refused_when_saving(name, tmp_path):
    bandit = disjoint(op.Exact(dim=DIM))
    bandit.learn(np.ones(DIM), 1.0, name)
    assert bandit.decide(np.ones(DIM)).arm is name
    with pytest.raises(ValueError, match="arm names must be strings, numbers or tuples"):
        bandit.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def with_prior(state, **parts):
    return state.prior._replace(space=state.prior.space._replace(**parts))


def changed(array, place, value):
    out = array.copy()
    out[place] = value
    return out


STORE = {  # what is written in place of an array of the arena, and how
    "first beyond the slots": lambda s: {"first": changed(s.first, 0, s.top)},
    "first far beyond": lambda s: {"first": changed(s.first, 0, 2**62)},
    "first negative": lambda s: {"first": changed(s.first, 0, -7)},
    "no first": lambda s: {"first": changed(s.first, 0, arena.NONE)},
    "two arms on one list": lambda s: {"first": changed(s.first, 0, s.first[2])},
    "a cycle": lambda s: {"link": changed(s.link, s.first[0], s.first[0])},
    "a list that goes on": lambda s: {"link": changed(s.link, last_slot(s, 0), s.first[2])},
    "a list that ends": lambda s: {"link": changed(s.link, s.first[0], arena.NONE)},
    "a link beyond the slots": lambda s: {"link": changed(s.link, s.first[0], s.link.size + 3)},
    "more used than held": lambda s: {"used": changed(s.used, 0, s.used[0] + 1)},
    "negative counts": lambda s: {"used": changed(s.used, 0, -1), "n_slots": changed(s.n_slots, 0, -1)},
    "more held than there can be": lambda s: {"n_slots": changed(s.n_slots, 0, 99), "used": changed(s.used, 0, 99)},
    "outside beyond the slots": lambda s: {"outside": changed(s.outside, 0, s.top + 1)},
    "outside within a list": lambda s: {"outside": changed(s.outside, 0, s.first[0])},
    "free slot in use": lambda s: {"free": int(s.first[0])},
    "free beyond the slots": lambda s: {"free": s.top},
    "free negative": lambda s: {"free": -2},
    "a cycle of free slots": lambda s: {"link": changed(s.link, s.free, s.free)},
    "top beyond the slots": lambda s: {"top": s.top + 1},
    "top negative": lambda s: {"top": -1},
    "slots in no list": lambda s: {"free": arena.NONE},
    "fewer rows than directions": lambda s: {"rows": changed(s.rows, 0, 1)},
    "a vacant arm that is named": lambda s: {"rows": changed(s.rows, 0, arena.NONE)},
    "ridge zero": lambda s: {"ridge": changed(s.ridge, 0, 0.0)},
    "ridge nan": lambda s: {"ridge": changed(s.ridge, 0, np.nan)},
    "shed negative": lambda s: {"shed": changed(s.shed, 0, -1.0)},
    "a prior that is wider": lambda s: {"prior": with_prior(s, basis=np.zeros((0, DIM + 1)))},
    "a prior of directions it has not": lambda s: {"prior": with_prior(s, used=1)},
    "a prior without a ridge": lambda s: {"prior": with_prior(s, ridge=0.0)},
    "a prior that is not finite": lambda s: {"prior": with_prior(s, log_det=np.nan)},
    "a prior that cut less than nothing": lambda s: {"prior": s.prior._replace(sums=s.prior.sums._replace(shed=-1.0))},
    "another width": lambda s: {"basis": s.basis[:, :-1]},
    "too few slots": lambda s: {"root": s.root[:-1]},
    "too few records": lambda s: {"n_slots": s.n_slots[:-1]},
    "another dtype": lambda s: {"weight": s.weight.astype(np.float32)},
    "cross of a hybrid": lambda s: {"cross": np.zeros((len(s.link), 2))},
}


OUTSIDE_STORE = {
    "record out of range": lambda s: {"arm_ids": changed(s.arm_ids, 0, 99)},
    "record negative": lambda s: {"arm_ids": changed(s.arm_ids, 0, -3)},
    "one record for two": lambda s: {"arm_ids": changed(s.arm_ids, 0, s.arm_ids[1])},
    "record of nobody": lambda s: {"arm_ids": changed(s.arm_ids, 0, arena.NONE)},
    "fewer names": lambda s: {"names": text(["a"])},
    "a name twice": lambda s: {"names": text(["a"] * len(s.arm_ids))},
    "names that are no list": lambda s: {"names": text(3)},
    "names that are lists": lambda s: {"names": text([["a"]] * len(s.arm_ids))},
    "names that are objects": lambda s: {"names": text([{"code": "a"}] * len(s.arm_ids))},
    "names that are not JSON": lambda s: {"names": np.frombuffer(b"\xff[", np.uint8)},
    "names that never end": lambda s: {"names": np.frombuffer(b"[" * 100_000, np.uint8)},
    "directions of factors": lambda s: {"direction": np.zeros((4, 3))},
    "a shared part": lambda s: {"shared": (np.zeros(3),)},
}


def text(value):
    return np.frombuffer(json.dumps(value).encode(), np.uint8)


def last_slot(state, record):
    slot = state.first[record]
    while state.link[slot] != arena.NONE:
        slot = state.link[slot]
    return slot


def write(path, bandit, saved):
    path.write_bytes(files.pack("ArmModels", bandit.model.contents()._replace(state=saved)))


@pytest.mark.parametrize("what", [*STORE, *OUTSIDE_STORE])
def test_a_crafted_file_is_refused(what, tmp_path):
    bandit = example_bandit("Exact").copy()
    saved = bandit.model.contents().state
    write(tmp_path / "model", bandit, saved)
    assert op.load(tmp_path / "model").arms == bandit.arms  # the untouched one is good
    store = saved.store._replace(**STORE[what](saved.store)) if what in STORE else saved.store
    other = {} if what in STORE else OUTSIDE_STORE[what](saved)
    write(tmp_path / "model", bandit, saved._replace(store=store, **other))
    with pytest.raises(ValueError, match="is damaged"):
        op.load(tmp_path / "model")


@pytest.mark.parametrize("what", ["fewer states", "negative rows", "cross", "vacant"])
def test_a_crafted_file_of_separate_states_is_refused(what, tmp_path):
    bandit = example_bandit("Dyadic").copy()
    saved = bandit.model.contents().state
    first, *rest = saved.store
    store = {
        "fewer states": tuple(rest),
        "negative rows": (first._replace(rows=-1), *rest),
        "cross": (first._replace(cross=np.zeros((DIM, 2))), *rest),
        "vacant": (first._replace(rows=0), *rest),
    }[what]
    write(tmp_path / "model", bandit, saved._replace(store=store))
    with pytest.raises(ValueError, match="is damaged"):
        op.load(tmp_path / "model")
