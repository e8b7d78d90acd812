"""Features as Personalizer has them, as one record.

    [{"hour": 9}, {"device": {"os": "x"}}]      ->      {"hour": 9, "device": {"os": "x"}}

Entries of a list are merged: records of one key into one record, numbers of one key add up, strings of one key stand
beside one another. Keys that begin with _ are passed over, as there.
"""

from typing import Any

from onepass.foundation.check import shown
from onepass.service.crossed_features import counted


def record_of(features: list[dict[str, Any]] | None) -> dict[str, Any]:
    """The record of a list of features; ValueError for a key with values that cannot stand together."""
    given = features or []
    counted(given)  # none is too deep
    return merged(given)


def merged(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Records as one."""
    found: dict[str, Any] = {}
    for record in records:
        for key, value in record.items():
            if not key.startswith("_"):
                value = plain(value)
                found[key] = joined(key, found[key], value) if key in found else value
    return found


def plain(value: Any) -> Any:
    """A value without keys that begin with _, and lists of records as records."""
    if isinstance(value, dict):
        return merged([value])
    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        return merged(value)
    return value


def joined(key: str, one: Any, other: Any) -> Any:
    """Two values of a key."""
    if isinstance(one, dict) and isinstance(other, dict):
        return merged([one, other])
    if is_number(one) and is_number(other):
        return one + other
    each = [*(one if isinstance(one, list) else [one]), *(other if isinstance(other, list) else [other])]
    if all(isinstance(value, str) for value in each) or one == other:
        return one if one == other else each
    raise ValueError(f"{key} has values of different kinds: {shown(one)}, {shown(other)}")


def is_number(value: Any) -> bool:
    """Whether it is a number, and no flag."""
    return isinstance(value, int | float) and not isinstance(value, bool)
