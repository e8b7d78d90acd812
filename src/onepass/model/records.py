"""Contexts and arms that are records: how models read them, and what the record of a decision keeps of them.

A record is a dictionary; a frame, of polars or pandas, is one record a row; a row of numbers is read as the record
{"x0": ..., "x1": ..., ...}. What a record says is its terms (features/flatten.py). The evidence of a decision is
{"context": terms of the request, "arms": [terms of every arm that was chosen]}.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from onepass.features.flatten import check_terms, flatten_record, to_records
from onepass.foundation import check
from onepass.foundation.check import quote
from onepass.model.names import check_hashable, distinct_names, name_list

NAME = "arm"  # the only feature of an arm that is but a name
NUMBERS = np.dtype(np.float64)


def is_frame(value: Any) -> bool:
    """Return whether a value is a frame of polars or pandas."""
    return hasattr(value, "iter_rows") or hasattr(value, "iterrows")


def are_records(contexts: Any) -> bool:
    """Return whether contexts are a dictionary, a list of them, or a frame."""
    return isinstance(contexts, Mapping) or _holds_records(contexts) or is_frame(contexts)


def _holds_records(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) > 0 and isinstance(value[0], Mapping)


def have_features(arms: Any) -> bool:
    """Return whether arms come with features, by name or nameless; {"a": {"arm": "a"}} says no more than the name."""
    if isinstance(arms, Mapping):
        return any(not isinstance(record, Mapping) or record != {NAME: name} for name, record in arms.items())
    return _holds_records(arms) or is_frame(arms)


# ---- contexts ----


def records_of(contexts: Any) -> tuple[bool, list[Any]]:
    """Return whether contexts are a single request, and their records: a frame of one row is a single one."""
    if type(contexts) is dict:
        return True, [contexts]
    single, every = to_records(contexts)
    if not every:
        raise ValueError(f"contexts must have at least one record, got {quote(contexts)}")
    return single or (len(every) == 1 and is_frame(contexts)), every


def requests_of(contexts: Any, dim: int | None) -> tuple[bool, list[Any]]:
    """Return `records_of` contexts that may be rows of `dim` numbers (None: any), (d,), or n of shape (n, 1, d)."""
    if are_records(contexts):
        return records_of(contexts)
    rows = check.array("contexts", contexts, NUMBERS, (1, 2, 3), dim)
    if rows.size == 0 or (rows.ndim > 1 and rows.shape[-2] != 1):
        raise ValueError(f"contexts must have one row a decision where arms have features, got shape {rows.shape}")
    return rows.ndim < 3, [record_of_row(row) for row in rows.reshape(-1, rows.shape[-1])]


def examples_of(contexts: Any, arm: Any, dim: int | None = None) -> tuple[bool, list[Any], list[Any]]:
    """Return whether one record is to be learned by itself, the records, and the arm of each.

    contexts: also a row (d,) of `dim` numbers (None: any), or n of shape (n, d). arm: of a single record a name, {name:
    features} or [features]; else a list of them, one per record. ValueError for another number of them, and for none.
    """
    if arm is None:
        raise ValueError(
            "contexts must be decisions, or records beside arm, which says what was chosen: a name, {name: features}, "
            f"or [features] without a name; got {quote(contexts)}"
        )
    if are_records(contexts):
        single, records = records_of(contexts)
    else:
        rows = check.array("contexts", contexts, NUMBERS, (1, 2), dim)
        single, records = rows.ndim == 1, [record_of_row(row) for row in np.atleast_2d(rows)]
    if isinstance(arm, list) and (is_frame(contexts) or not have_features(arm)):
        single = False
    return single, records, [arm] if single else name_list(arm, len(records), "arm")


def record_of_row(row: Any) -> dict[str, float]:
    """Return a row of numbers as a record."""
    return {f"x{j}": value for j, value in enumerate(check.array("features", row, NUMBERS, (1,)).tolist())}


# ---- arms ----


def arms_of(arms: Any) -> tuple[list[Any] | None, list[Any]]:
    """Return names and records of arms; names are None if arms have none.

    ValueError if arms are of no such kind, appear twice, or are missing.
    """
    if isinstance(arms, Mapping):
        names, records = list(arms), list(map(_features_of, arms.values()))
        check_hashable(names)  # and each equal to itself
    elif is_frame(arms) or _holds_records(arms):
        names, records = None, to_records(arms)[1]
    else:
        names = distinct_names(arms)
        records = [_record_of_name(name) for name in names]
    if not records:
        raise ValueError(f"arms must have at least one arm, got {quote(arms)}")
    return names, records


def _features_of(features: Any) -> Any:
    return record_of_row(features) if isinstance(features, list | tuple | np.ndarray) else features


def _record_of_name(name: Any) -> dict[str, str]:
    return {NAME: name if isinstance(name, str) else repr(name)}


# ---- what the record of a decision keeps ----


def evidence_of(context: Any, arms: list[Any]) -> dict[str, Any]:
    """Return what is kept of the records of a request and of the arms that were chosen."""
    return {"context": flatten_record(context), "arms": [flatten_record(record) for record in arms]}


def evidence_of_names(context: Any, names: list[Any]) -> dict[str, Any]:
    """Return what is kept of the record of a request, and of arms that are names alone."""
    return evidence_of(context, [_record_of_name(name) for name in names])


def has_names_only(decision: Any) -> bool:
    """Return whether the evidence of a decision says of every arm no more than its name."""
    items = decision.context["arms"]
    return decision.candidates is not None and items == [
        flatten_record(_record_of_name(name)) for name in decision.arms
    ]


def check_evidence(decision: Any) -> tuple[dict[str, float], list[Any]]:
    """Return the terms of a decision's request, checked, and those of its arms; ValueError where it holds none."""
    kept = decision.context
    whole = isinstance(kept, Mapping) and kept.keys() == {"context", "arms"} and isinstance(kept["arms"], list)
    if not whole or len(kept["arms"]) != len(decision.arms):
        raise ValueError(f"decision {quote(decision.id)} has no context, as those of this bandit have")
    return check_terms(kept["context"]), kept["arms"]
