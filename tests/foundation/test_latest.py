"""`Latest` does what a list of pairs does, from which the first ones are dropped."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onepass.foundation.latest import Latest

CHUNK = 64  # keys that are looked up at once


@pytest.mark.parametrize("length", [1, 3, CHUNK + 1])
@given(st.lists(st.tuples(st.sampled_from(["put", "put", "put", "pop", "copy"]), st.integers(0, 3 * CHUNK))))
def test_the_keys_put_last_stay_in_their_order(length, acts):
    naive = [(-key, "begun") for key in range(1, length + 1)]  # full, so that every new key drops one
    found = Latest(length, naive)
    for step, (act, key) in enumerate(acts):
        if act == "copy":
            found = found.copy()
            continue
        naive = [pair for pair in naive if pair[0] != key]
        if act == "pop":
            found.pop(key, None)
        else:
            found.put(key, step)
            naive = [*naive, (key, step)][-length:]
        assert list(found.items()) == naive


@pytest.mark.parametrize("length", [1, 5, 1_000])
def test_a_mapping_that_is_full_drops_one_key_for_each_new_one(length):
    found = Latest(length)
    for key in range(5 * length):
        found.put(key, str(key))
        assert len(found) == min(key + 1, length)
    assert list(found.items()) == [(key, str(key)) for key in range(4 * length, 5 * length)]


def test_a_copy_is_apart():
    found = Latest(2, {"a": 1, "b": 2})
    twin = found.copy()
    twin.put("c", 3)
    assert (found, twin) == ({"a": 1, "b": 2}, {"b": 2, "c": 3})
