"""Any sequence of operations keeps the arena orderly and the scores true."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dense
import onepass as op
from arm_games import DIM, data, disjoint, fingerprint, hybrid, learn_in_batches
from onepass.arena import arena

# ---- any sequence of operations ----

ARM = st.integers(0, 2)


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("learn"), ARM),
        st.tuples(st.just("batch"), st.lists(ARM, min_size=0, max_size=25)),
        st.tuples(st.just("again"), st.lists(ARM, min_size=1, max_size=9)),  # one row, many times
        st.tuples(st.just("add"), ARM),
        st.tuples(st.just("remove"), ARM),
        st.tuples(st.just("score"), st.just(0)),
        st.tuples(st.just("copy"), st.just(0)),
    ),
    min_size=5,
    max_size=40,
)


@given(OPERATIONS, st.sampled_from(["Exact", "ProjectorSplitting", "FD", "RFD"]), st.integers(0, 2**32 - 1))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_any_sequence_of_operations_keeps_the_arena_orderly_and_the_scores_true(operations, kind, seed):
    rng, dim = np.random.default_rng(seed), 3
    design = {
        "Exact": lambda: op.Exact(dim=dim, reg=0.37),
        "ProjectorSplitting": lambda: op.ProjectorSplitting(dim=dim, rank=dim, reg=0.37),
        "FD": lambda: op.FrequentDirections(dim=dim, size=1, reg=0.37),  # cut all the time
        "RFD": lambda: op.RobustFrequentDirections(dim=dim, size=1, reg=0.37),
    }[kind]()
    exact = kind in ("Exact", "ProjectorSplitting")
    bandit, naive = disjoint(design), dense.Disjoint(dim, 0.37, 0.5)
    separate, known = disjoint(design, compact=False), set()
    for what, value in [*operations, ("score", 0)]:
        rows = np.zeros((0, dim))
        if what == "learn":
            rows, names = rng.standard_normal((1, dim)), [value]
        elif what == "batch":
            rows, names = rng.standard_normal((len(value), dim)) * (rng.random((len(value), 1)) < 0.8), value
        elif what == "again":
            rows, names = np.tile(rng.standard_normal(dim), (len(value), 1)), value
        elif what == "add" and value not in known:
            bandit.add_arm(value)
            known.add(value)
        elif what == "remove" and value in known:
            bandit.remove_arm(value)
            known.discard(value)
            naive.remove(value)
            if value in separate.arms:
                separate.remove_arm(value)
        elif what == "copy":
            bandit = bandit.copy()
        if len(rows):
            pays = rng.standard_normal(len(rows))
            if what == "learn":
                bandit.learn(rows[0], pays[0], names[0])
                separate.learn(rows[0], pays[0], names[0])
            else:
                bandit.learn(rows, pays, names)
                separate.learn(rows, pays, names)
            for row, pay, name in zip(rows, pays, names, strict=True):
                naive.learn(row, pay, name)
            known.update(names)
        store = bandit.model.state.store
        if what in ("score", "remove"):
            query = rng.standard_normal(dim)
            want = naive.scores(np.tile(query, (6, 1)), range(6)) if exact else separate.score(query, range(6))
            np.testing.assert_allclose(bandit.score(query, range(6)), want, rtol=1e-8, atol=1e-8)
        assert arena.is_consistent(store.to_state())
        assert set(bandit.arms) == known


@pytest.mark.parametrize("make", [lambda: disjoint(op.Exact(dim=DIM)), hybrid])
def test_deepcopy_is_an_independent_bandit_that_decides_alike(make):
    rows, rewards, names = data(40)
    bandit = learn_in_batches(make(), rows, rewards, names)
    before, twin = fingerprint(bandit), copy.deepcopy(bandit)
    assert fingerprint(twin) == before
    twin.learn(rows[:3], rewards[:3], ["new", "a", "d"])
    assert fingerprint(bandit) == before
    assert bandit.decide(rows[0]).arm == make_again(bandit).decide(rows[0]).arm


def make_again(bandit):
    """The same through a process boundary, as multiprocessing would send it."""
    return pickle.loads(pickle.dumps(bandit.copy()))
