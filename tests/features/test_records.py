"""`Records`: a dictionary that is learned, a seeded hash beyond it, and rows that agree with naive ones."""

import copy
import pickle
import random

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction import FeatureHasher

import onepass as op
from onepass.features.flatten import flatten_record
from onepass.lab.benchmark.records import microseconds, requests

QUARTERS = st.integers(-36, 36).map(lambda n: n / 4)
LEAVES = st.one_of(st.sampled_from("abcdefgh"), st.integers(-5, 5), st.booleans(), QUARTERS, st.none(),
                   st.lists(st.sampled_from("xyz"), max_size=3))  # fmt: skip
RECORD = st.dictionaries(st.sampled_from(["p", "q", "r", "s"]), LEAVES, max_size=4)
NESTED = st.dictionaries(st.sampled_from(["p", "q", "u"]), LEAVES | RECORD, max_size=3)


def naive(learned, record, size, hashed, standardize, place_of_hash):
    """A row from the terms of all records learned, in order."""
    names = list(dict.fromkeys(name for one in learned for name in flatten_record(one)))[: size - hashed]
    row = np.zeros(size)
    for name, value in flatten_record(record).items():
        number, missing = "=" not in name and "?" not in name, "?" in name
        if name in names:
            if standardize and number:
                seen = np.array([flatten_record(one)[name] for one in learned if name in flatten_record(one)])
                told = len(seen) > 1 and seen.std() > 1e-9
                value = np.clip((value - seen.mean()) / seen.std(), -3, 3) if told else 0.0
            row[names.index(name)] += value
        elif not missing and not (standardize and number):
            row[size - hashed + place_of_hash(name)] += value
    return row


@settings(deadline=None, derandomize=True)
@given(st.lists(NESTED, max_size=8), st.lists(NESTED, min_size=1, max_size=5), st.booleans())
def test_rows_are_the_naive_ones_whatever_was_looked_up_before(learned, asked, standardize):
    records = op.Records(size=12, hashed=4, standardize=standardize, seed=3)
    records.transform(asked)  # what is looked up here must not be found in its old place later
    for one in learned:
        records.learn(one)
        records.transform(asked)
    alone = op.Records(size=5, hashed=4, seed=3).learn({"only": "one"})
    rows = [naive(learned, one, 12, 4, standardize, lambda name: alone._hash(name)) for one in asked]
    assert records.transform(asked) == pytest.approx(np.array(rows), abs=1e-9)
    assert records.transform(asked[0]) == pytest.approx(rows[0], abs=1e-9)


def test_records_alike_go_by_columns_and_give_the_same_rows_as_one_by_one():
    rng = random.Random(0)
    every = [
        {"a": rng.choice("xyz"), "b": rng.random(), "c": rng.random() < 0.5, "d": rng.randrange(9)} for _ in range(40)
    ]
    for standardize in (False, True):
        records = op.Records(size=16, standardize=standardize).learn(every)
        single = np.array([records.transform(one) for one in every])
        assert np.array_equal(records.transform(every), single)
        assert np.array_equal(records.transform(every), single)  # now by what was looked up
        changed = [*every[:-1], {"a": "new", "b": 1.0, "c": True, "d": 2}]
        assert np.array_equal(records.transform(changed), [records.transform(one) for one in changed])
        shuffled = [dict(reversed(one.items())) for one in every]
        assert np.array_equal(records.transform(shuffled), single)


def test_the_same_stream_gives_the_same_dictionary_and_deciding_gives_none():
    every = [{"a": f"v{k % 13}", "n": k} for k in range(100)]
    one, other = op.Records(size=8, hashed=3), op.Records(size=8, hashed=3)
    for record in every:
        one.learn(record)
        other.transform(record)
        other.learn(record)
    assert one.feature_names() == other.feature_names()
    assert one.feature_names()[:5] == ("a=v0", "n", "a=v1", "a=v2", "a=v3")
    before = op.to_bytes(one)
    one.transform([{"a": "never", "z": None}, {"n": 1}])
    assert op.to_bytes(one) == before


def test_a_full_dictionary_hashes_by_its_seed_and_counts_its_collisions():
    records = op.Records(size=4, hashed=2, seed=1).learn([{"a": "x"}, {"a": "y"}])
    assert (records.n_names, records.collisions) == (2, 0)
    strangers = [f"s{k}" for k in range(40)]
    for name in strangers:
        records.learn({"a": name})
    assert records.collisions == 38  # two places, whose first names are no collisions
    rows = records.transform([{"a": name} for name in strangers])
    assert (rows[:, :2] == 0).all()
    assert (rows.sum(axis=1) == 1).all()
    assert 8 <= rows[:, 2].sum() <= 32  # of 40, at five deviations
    other = op.Records(size=4, hashed=2, seed=2).learn([{"a": "x"}, {"a": "y"}])
    assert not np.array_equal(other.transform([{"a": name} for name in strangers]), rows)
    names = records.feature_names()
    assert names[2].startswith("hash#0 (a=s")
    assert names[2].endswith(", ...)")


def test_what_is_missing_says_something_once_it_was_learned_so():
    records = op.Records(size=8).learn({"age": 3.0})
    assert not records.transform({"age": None}).any()
    records.learn({"age": None})
    assert records.transform({"age": None}).sum() == 1.0
    assert "age?" in records.feature_names()


def test_standardized_numbers_are_clipped_and_missing_ones_count_as_the_mean():
    records = op.Records(size=8, standardize=True).learn([{"n": value} for value in (1.0, 3.0, 1.0, 3.0)])
    assert records.transform([{"n": 2.0}, {"n": 3.0}, {"n": 1e9}, {"n": None}])[:, 0].tolist() == [0.0, 1.0, 3.0, 0.0]
    assert not records.learn({"still": 7.0}).learn({"still": 7.0}).transform({"still": 7.0}).any()


def test_a_refused_call_learns_nothing_of_it():
    records = op.Records(size=8).learn({"a": "x", "n": 1.0})
    before = op.to_bytes(records)
    for bad in ({"a": "y", "n": float("nan")}, {"b": "z", "n": float("inf")}, {"n": 10**400}, {"n": object()}):
        for act in (records.learn, records.transform, records.pairs):
            with pytest.raises(ValueError, match="n must be"):
                act([{"a": "new"}, {"a": "new"}, bad])
    assert op.to_bytes(records) == before


def test_pairs_are_the_rows_by_what_is_not_zero():
    records = op.Records(size=8, hashed=1).learn([{"a": "x", "n": 2.0}, {"a": "y"}])
    starts, places, values = records.pairs([{"a": "y", "n": 5.0}, {}, {"a": "x"}])
    assert (starts.tolist(), places.tolist(), values.tolist()) == ([0, 2, 2, 3], [2, 1, 0], [1.0, 5.0, 1.0])
    frame = pl.DataFrame({"a": ["x", None], "n": [1.0, None]})
    assert np.array_equal(records.transform(frame), records.transform([{"a": "x", "n": 1.0}, {"a": None, "n": None}]))


def test_copies_pickles_and_bytes_go_on_alike():
    records = op.Records(size=9, hashed=2, standardize=True, seed=4)
    for k in range(30):
        records.learn({"a": f"v{k % 11}", "n": k, "m": None if k % 3 else 1.5})
    rest = [{"a": f"v{k}", "n": 7.5 * k, "m": None, "new": "b"} for k in range(12)]
    for twin in (copy.deepcopy(records), pickle.loads(pickle.dumps(records)), op.from_bytes(op.to_bytes(records))):
        assert op.to_bytes(twin) == op.to_bytes(records)
        assert np.array_equal(twin.transform(rest), records.transform(rest))
        assert twin.feature_names() == records.feature_names()
        twin.learn({"other": "x"})
        before = records.n_names
        assert records.n_names == before
    assert records.memory_usage() > 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"size": 1},
        {"size": 4, "hashed": 4},
        {"size": 4, "hashed": 0},
        {"standardize": 1.5},
        {"seed": -1},
        {"size": 2.0},
    ],
)
def test_wrong_arguments_are_refused(wrong):
    with pytest.raises(ValueError, match=next(reversed(wrong))):
        op.Records(**wrong)


def test_known_records_become_rows_in_less_than_the_time_that_hashing_takes():
    users, items, asked = op.Records(), op.Records(), requests(0, 100)
    for user, arms in asked:
        users.learn(user)
        items.learn(list(arms.values()))
    hasher = FeatureHasher(users.size)
    works = {
        "rows": lambda user, arms: (users.pairs(user), items.pairs(list(arms.values()))),
        "hashed": lambda user, arms: (hasher.transform([user]), hasher.transform(arms.values())),
    }
    tries = (microseconds(works, asked) for _ in range(8))  # others may have the processor during all turns of one
    assert any(least["rows"] < 0.7 * least["hashed"] for least in tries)  # a third: docs/features_measured.md
