"""Merging of features in the JSON of Vowpal Wabbit and Personalizer into one record.

    [{"hour": 9}, {"device": {"os": "x"}}]      ->      {"hour": 9, "device": {"os": "x"}}

Entries of a list are merged. Records under one key become one record, numbers under one key add up, and strings under
one key become a list. Keys that begin with _ are ignored, as in those tools, except for `_text`, whose words are
features.
"""

from typing import Any

from onepass.foundation.check import quote

TEXT = "_text"


def merge_records(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Merge several records into one; raise ValueError for a key whose values cannot be combined."""
    found: dict[str, Any] = {}
    for record in records:
        for key, value in record.items():
            if key == TEXT and isinstance(value, str):
                value = value.split()
            elif key.startswith("_") and key != TEXT:
                continue
            value = _plain(value)
            found[key] = _join_values(key, found[key], value) if key in found else value
    return found


def _plain(value: Any) -> Any:
    """Drop keys that begin with _ from a value, and merge lists of records into records."""
    if isinstance(value, dict):
        return merge_records([value])
    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        return merge_records(value)
    return value


def _join_values(key: str, one: Any, other: Any) -> Any:
    """Combine the values `one` and `other` of the same key; raise ValueError if that is impossible.

    Dictionaries are merged, numbers added, and different strings listed. Equal values stay as they are.
    """
    if isinstance(one, dict) and isinstance(other, dict):
        return merge_records([one, other])
    if _is_number(one) and _is_number(other):
        return one + other
    each = [*(one if isinstance(one, list) else [one]), *(other if isinstance(other, list) else [other])]
    if all(isinstance(value, str) for value in each) or one == other:
        return one if one == other else each
    raise ValueError(f"{key} has values of different kinds: {quote(one)}, {quote(other)}")


def _is_number(value: Any) -> bool:
    """Return True if a value is a number but not a boolean."""
    return isinstance(value, int | float) and not isinstance(value, bool)
