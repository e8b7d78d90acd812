"""What a ContextualBandit is given, and which models that asks for.

    contexts                    arms                                    models
    rows of numbers             names                                   rows: of every arm its own (mixture.py)
    records                     names, FEW at most                      records: the same, on columns (columns.py)
    records                     more names                              crossed
    either                      records or rows of features, by name    crossed: one of all (bandit/crossing.py)

A record of a decision says it as well: a row; or terms of the request and of the arms that were chosen.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from onepass.bandit.crossed_arms import NAME, arms_of
from onepass.bandit.decision import Decision
from onepass.features.terms import checked_terms, rows_of, terms
from onepass.foundation import check
from onepass.foundation.check import shown

ROWS, RECORDS, CROSSED = "rows", "records", "crossed"
OWN = "own"  # models of every arm, whatever its features
FEW = 20  # arms: of 30 to 300, clicked now and then, one model of all earns as much (docs/recommended_measured.md)


def is_frame(value: Any) -> bool:
    """Whether it is a frame of polars or pandas."""
    return hasattr(value, "iter_rows") or hasattr(value, "iterrows")


def are_records(contexts: Any) -> bool:
    """Whether contexts are a dictionary, a list of them, or a frame."""
    if isinstance(contexts, Mapping) or is_frame(contexts):
        return True
    return isinstance(contexts, list | tuple) and len(contexts) > 0 and isinstance(contexts[0], Mapping)


def have_features(arms: Any) -> bool:
    """Whether arms come with features: by their names, or nameless; {"a": {"arm": "a"}} says no more than the name."""
    if isinstance(arms, Mapping):
        return any(not isinstance(found, Mapping) or found != {NAME: name} for name, found in arms.items())
    return is_frame(arms) or (isinstance(arms, list | tuple) and len(arms) > 0 and isinstance(arms[0], Mapping))


def name_alone(arm: Any) -> Any:
    """The name of an arm that is learned, {name: features} or a name; ValueError where it has none, or several."""
    if isinstance(arm, Mapping) and len(arm) == 1:
        return next(iter(arm))
    if isinstance(arm, Mapping) or have_features(arm):
        raise ValueError(f"arm must be a name or {{name: features}} where each has models of its own, got {shown(arm)}")
    return arm


def first_featured(arm: Any, rewards: Any) -> Any:
    """The first arm with features of those that are learned, one for a single reward, else n; None without any."""
    each = [arm] if type(rewards) is float or np.ndim(rewards) == 0 else arm if isinstance(arm, list | tuple) else ()
    return next((one for one in each if have_features(one)), None)


def common(contexts: Any, arms: Any) -> bool:
    """Whether these are rows and names as they mostly are, found at once."""
    if type(contexts) is not np.ndarray:
        return False
    return arms is None or (type(arms) in (list, tuple) and len(arms) > 0 and type(arms[0]) in (str, int))


def names_alone(arms: Any) -> Any:
    """The names of arms, of which nothing else is used; ValueError where they have none."""
    if isinstance(arms, Mapping):
        return list(arms)
    if have_features(arms):
        raise ValueError(f"arms must have names where each has models of its own, got {shown(arms)}")
    return arms


def kind_of(models: str | None, numbers: bool, featured: bool, count: int) -> str:
    """The kind that contexts, rows of numbers or not, and arms ask for, where models are fixed or left to them."""
    if models is None:
        models = CROSSED if featured or (count > FEW and not numbers) else OWN
    return CROSSED if models == CROSSED else ROWS if numbers else RECORDS


def kind_of_decision(models: str | None, one: Decision) -> str:
    """The same of what a decision's record holds; ValueError where that is no context."""
    if isinstance(one.context, np.ndarray):
        return ROWS
    told_of(one)
    plain = one.offered is not None and all(
        item == found for item, found in zip(one.context["arms"], terms_of_names(one.arms), strict=True)
    )
    return kind_of(models, False, not plain, len(one.offered or ()))


# ---- records of requests and of arms ----


def records_of(contexts: Any) -> tuple[bool, list[Any]]:
    """Whether it is a single request, and the records: a frame of one row is one."""
    single, every = rows_of(contexts)
    if not every:
        raise ValueError(f"contexts must have at least one record, got {shown(contexts)}")
    return single or (len(every) == 1 and is_frame(contexts)), every


def requests_of(contexts: Any, dim: int) -> tuple[bool, list[Any]]:
    """The same, where rows of `dim` numbers (0: any) are records {"x0": ..., "x1": ..., ...}: one (d,), or n of shape
    (n, 1, d)."""
    if are_records(contexts):
        return records_of(contexts)
    rows = check.array("contexts", contexts, np.dtype(np.float64), (1, 2, 3), dim or None)
    if rows.size == 0 or (rows.ndim > 1 and rows.shape[-2] != 1):
        raise ValueError(f"contexts must have one row a decision where arms have features, got shape {rows.shape}")
    return rows.ndim < 3, [of_row(row) for row in rows.reshape(-1, rows.shape[-1])]


def of_row(row: Any) -> dict[str, float]:
    """A row of numbers as a record."""
    found = check.array("features", row, np.dtype(np.float64), (1,))
    return {f"x{j}": value for j, value in enumerate(found.tolist())}


def features_of(arms: Any) -> Any:
    """Arms, where features that are rows of numbers are records."""
    if not isinstance(arms, Mapping):
        return arms
    return {name: of_row(one) if isinstance(one, list | tuple | np.ndarray) else one for name, one in arms.items()}


# ---- what a decision's record holds ----


def terms_of_names(names: Any) -> list[dict[str, float]]:
    """Of arms that are names alone."""
    return [terms(record) for record in arms_of(list(names))[1]]


def kept_of(record: Any, names: Any) -> dict[str, Any]:
    """The context that the record of a decision holds: terms of the request, and of the arms that were chosen."""
    return {"context": terms(record), "arms": terms_of_names(names)}


def told_of(one: Decision) -> dict[str, float]:
    """The terms of a decision's request; ValueError where it holds none, as those of this bandit do."""
    kept = one.context
    whole = isinstance(kept, Mapping) and kept.keys() == {"context", "arms"} and isinstance(kept["arms"], list)
    if not whole or len(kept["arms"]) != len(one.arms):
        raise ValueError(f"decision {shown(one.id)} has no context, as those of this bandit have")
    return checked_terms(kept["context"])
