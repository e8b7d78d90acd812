"""Contexts and arms given as records: their conversion to numeric terms, and the part that a decision's record keeps.

A record is a dictionary. A frame, of polars or pandas, has one record in each row. A row of numbers is read as the
record {"x0": ..., "x1": ..., ...}. Records become numeric terms (features/flatten.py). The evidence of a decision is
{"context": terms of the request, "arms": [terms of every chosen arm]}.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from onepass.features.flatten import check_terms, flatten_record, to_records
from onepass.foundation import check
from onepass.foundation.check import quote
from onepass.model.interval.interval import has_facts
from onepass.model.names import check_hashable, distinct_names, name_list

NAME = "arm"  # the only feature of an arm that is but a name
NUMBERS = np.dtype(np.float64)


def is_frame(value: Any) -> bool:
    """Return True if a value is a frame of polars or pandas."""
    return hasattr(value, "iter_rows") or hasattr(value, "iterrows")


def are_records(contexts: Any) -> bool:
    """Return True if contexts are a dictionary, a list of dictionaries, or a frame."""
    return isinstance(contexts, Mapping) or _holds_records(contexts) or is_frame(contexts)


def _holds_records(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) > 0 and isinstance(value[0], Mapping)


def have_features(arms: Any) -> bool:
    """Return True if arms come with features, with or without names.

    The arm of {"a": {"arm": "a"}} says no more than its name and does not count.
    """
    if isinstance(arms, Mapping):
        return any(not isinstance(record, Mapping) or record != {NAME: name} for name, record in arms.items())
    return _holds_records(arms) or is_frame(arms)


# ---- contexts ----


def records_of(contexts: Any) -> tuple[bool, list[Any]]:
    """Return True if contexts are a single request, and contexts as a list of dictionaries.

    A frame of one row counts as a single request.
    """
    if type(contexts) is dict:
        return True, [contexts]
    single, every = to_records(contexts)
    if not every:
        raise ValueError(f"contexts must have at least one record, got {quote(contexts)}")
    return single or (len(every) == 1 and is_frame(contexts)), every


def requests_of(contexts: Any, dim: int | None) -> tuple[bool, list[Any]]:
    """Return True if contexts are a single request, and all contexts as a list of dictionaries.

    Rows of numbers, which are (dim,) or n of them with shape (n, 1, dim), are converted. A `dim` of None allows any
    number.
    """
    if type(contexts) is not np.ndarray and are_records(contexts):
        return records_of(contexts)
    rows = check.array("contexts", contexts, NUMBERS, (1, 2, 3), dim)
    if rows.size == 0 or (rows.ndim > 1 and rows.shape[-2] != 1):
        raise ValueError(f"contexts must have one row a decision where arms have features, got shape {rows.shape}")
    names = _column_names(rows.shape[-1])
    return rows.ndim < 3, [dict(zip(names, row, strict=True)) for row in rows.reshape(-1, len(names)).tolist()]


def examples_of(contexts: Any, arm: Any, dim: int | None = None) -> tuple[bool, list[Any], list[Any]]:
    """Return True if a single record is to be learned, the list of records, and the list of their arms.

    `contexts` may also be a row (d,) of `dim` numbers (None: any), or n rows (n, d). For a single record, `arm` is a
    name, {name: features} or [features]; otherwise a list of these. Raises ValueError if there are not as many arms as
    records, or none.
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
    """Return a row of numbers as the record {"x0": ..., "x1": ..., ...}."""
    values = check.array("features", row, NUMBERS, (1,)).tolist()
    return dict(zip(_column_names(len(values)), values, strict=True))


@lru_cache(maxsize=16)
def _column_names(count: int) -> tuple[str, ...]:
    return tuple(f"x{j}" for j in range(count))


# ---- arms ----


def arms_of(arms: Any) -> tuple[list[Any] | None, list[Any]]:
    """Return names and records of arms; names are None if arms have none.

    `arms` is {name: features}, a list of features or a frame for arms without names, or a sequence of names, which are
    then the only features. Raises ValueError for another form, if an arm appears twice, and without arms.
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
    """Return the part of a decision's record that learning needs: the terms of the request and of the chosen arms.

    `arms` lists the features of the chosen arms. In the result, "context" holds the request's terms, and "arms" a list
    with the terms of each arm.
    """
    return {"context": flatten_record(context), "arms": [flatten_record(record) for record in arms]}


def evidence_of_names(context: Any, names: list[Any]) -> dict[str, Any]:
    """Return the part of a decision's record that learning needs, for chosen arms that are names without features."""
    return evidence_of(context, [_record_of_name(name) for name in names])


def has_names_only(decision: Any) -> bool:
    """Return True if a decision's record holds only the name of every chosen arm."""
    items = decision.context["arms"]
    return decision.candidates is not None and items == [
        flatten_record(_record_of_name(name)) for name in decision.arms
    ]


def check_evidence(decision: Any, *, actions: bool = False) -> tuple[dict[str, float], list[Any]]:
    """Return the checked terms of a decision's request and of the chosen arms, from the decision's record.

    Raises ValueError if the record has no terms. Decisions over an interval of actions are refused, too, unless
    `actions` is True.
    """
    kept = decision.context
    whole = isinstance(kept, Mapping) and kept.keys() == {"context", "arms"} and isinstance(kept["arms"], list)
    if not whole or len(kept["arms"]) != len(decision.arms):
        raise ValueError(f"decision {quote(decision.id)} has no context, as those of this bandit have")
    if not actions and any(map(has_facts, kept["arms"])):
        raise ValueError(
            f"decision {quote(decision.id)} is over an interval of actions, but this bandit has named arms"
        )
    return check_terms(kept["context"]), kept["arms"]
