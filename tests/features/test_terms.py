"""What records say, term by term: names that cannot be confused, and values that cannot be wrong."""

import datetime
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onepass.features.flatten import check_terms, flatten_record, is_missing, is_number, to_records

WHEN = datetime.datetime(2024, 7, 1, 6, 0)  # a Monday, at a quarter of the day


def test_strings_numbers_booleans_lists_and_records_are_terms_by_their_full_names():
    record = {
        "country": "de",
        "age": 34,
        "vip": True,
        "price": Decimal("9.5"),
        "tags": ["a", "b", "a"],
        "seen": {"b", "a"},
        "at": (1.5, 2),
        "row": np.array([3.0]),
        "user": {"city": {"name": "Ulm", "size": np.int64(3)}},
        "nothing": None,
        "empty": [],
    }
    assert flatten_record(record) == {
        "country=de": 1.0,
        "age": 34.0,
        "vip": 1.0,
        "price": 9.5,
        "tags=a": 1.0,
        "tags=b": 1.0,
        "seen=a": 1.0,
        "seen=b": 1.0,
        "at[0]": 1.5,
        "at[1]": 2.0,
        "row[0]": 3.0,
        "user.city.name=Ulm": 1.0,
        "user.city.size": 3.0,
        "nothing?": 1.0,
    }
    assert all(type(value) is float for value in flatten_record(record).values())


def test_moments_are_points_on_the_circles_of_day_week_and_year():
    found = flatten_record({"t": WHEN})
    assert found["t@day.sin"] == pytest.approx(1.0)
    assert found["t@week.sin"] == pytest.approx(math.sin(2 * math.pi * 0.25 / 7))
    assert found["t@year.cos"] == pytest.approx(math.cos(2 * math.pi * (182 + 0.25) / 366))
    assert set(flatten_record({"t": WHEN.date()})) == {"t@week.sin", "t@week.cos", "t@year.sin", "t@year.cos"}
    assert set(flatten_record({"t": WHEN.time()})) == {"t@day.sin", "t@day.cos"}
    assert (
        flatten_record({"t": np.datetime64("2024-07-01T06:00")}) == found == flatten_record({"t": pd.Timestamp(WHEN)})
    )
    assert flatten_record({"t": np.datetime64("2024-07-01")}) == flatten_record({"t": WHEN.date()})
    assert flatten_record({"t": np.datetime64("NaT")}) == {"t?": 1.0} == flatten_record({"t": pd.NaT})


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e300, 10**400, b"raw", object(), 1j, [1, "a"], [[1]],
                                   ["a", None], {1.0, 2.0}, datetime.timedelta(1), np.timedelta64(1, "s"),
                                   np.eye(2), [math.nan]])  # fmt: skip
def test_what_has_no_terms_is_refused_and_the_key_is_named(value):
    with pytest.raises(ValueError, match="weight"):
        flatten_record({"user": {"weight": value}})


@pytest.mark.parametrize("record", [None, "text", [1], {1: "a"}, {None: 1}])
def test_what_is_no_record_is_refused(record):
    with pytest.raises(ValueError, match="record"):
        flatten_record(record)


KEYS = st.text(alphabet="a.=?[@\\] 0", max_size=4)
LEAVES = st.one_of(st.text(alphabet="a.=?[@\\]0", max_size=4), st.integers(-3, 3), st.none(),
                   st.lists(st.text(alphabet="a=.", max_size=2), max_size=2, unique=True))  # fmt: skip
RECORDS = st.recursive(
    st.dictionaries(KEYS, LEAVES, max_size=3), lambda inner: st.dictionaries(KEYS, inner | LEAVES, max_size=3)
)


def said(record, path=()):
    """What a record says, as tuples: the truth that names must keep apart."""
    for key, value in record.items():
        here = (*path, key)
        if isinstance(value, dict):
            yield from said(value, here)
        elif isinstance(value, list):
            yield from ((here, "text", one) for one in value)
        else:
            yield (
                here,
                "text" if isinstance(value, str) else "none" if value is None else "number",
                (value if isinstance(value, str) else None),
            )


@settings(deadline=None, derandomize=True)
@given(RECORDS)
def test_different_things_said_never_share_a_name(record):
    every = list(said(record))
    assert len(flatten_record(record)) == len(set(every))
    for name, (_, kind, _) in zip(flatten_record(record), dict.fromkeys(every), strict=True):
        assert (is_number(name), is_missing(name)) == (kind == "number", kind == "none")


def test_frames_are_records_and_what_they_miss_is_none():
    rows = [{"a": "x", "b": 1.5, "t": WHEN}, {"a": None, "b": None, "t": None}]
    of_polars, of_pandas = to_records(pl.DataFrame(rows)), to_records(pd.DataFrame(rows))
    assert of_polars == (False, rows)
    assert [flatten_record(row) for row in of_pandas[1]] == [flatten_record(row) for row in rows]
    nested = pl.DataFrame([{"user": {"tags": ["p", "q"]}}])
    assert flatten_record(to_records(nested)[1][0]) == {"user.tags=p": 1.0, "user.tags=q": 1.0}
    assert to_records({"a": 1}) == (True, [{"a": 1}])
    with pytest.raises(ValueError, match="frame"):
        to_records(3)


@pytest.mark.parametrize("found", [None, [], {"a": 1}, {"a": math.nan}, {1: 1.0}, {"a": True}])
def test_terms_of_a_record_from_outside_are_checked(found):
    with pytest.raises(ValueError, match="terms"):
        check_terms(found)
