"""Decisions of a bandit for requests as a log stores them: arrays, factors, or dictionaries of a request and its arms.

    rows        [[1.0, 0.0], ...], of every arm, or [1.0, 0.0] of the request alone
    factors     {"left": ..., "right": ...}
    records     {"context": {"country": "de"}, "arms": [{"topic": "sport"}, ...]}, the arms in the order of their names

A service decides by the same code that verifies its log.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np

from onepass.features.flatten import flatten_record
from onepass.features.outer_product import Factors
from onepass.foundation.check import quote
from onepass.model.names import eligible_places

RECORDS = {"context", "arms"}
FACTORS = {"left", "right"}


def are_records(contexts: Any) -> TypeGuard[Mapping[str, Any]]:
    """Return True if contexts are dictionaries of a request and of its arms."""
    return isinstance(contexts, Mapping) and contexts.keys() == RECORDS


def decide_from_log(bandit: Any, contexts: Any, names: Any, k: int, **options: Any) -> Any:
    """Return the decision of a bandit or a snapshot on logged contexts.

    `names` are the arms' names, None if they have none; `k` is the number of slots; `options` are those of `decide`.
    Raises ValueError for contexts of another form.
    """
    if are_records(contexts):
        arms = contexts["arms"] if names is None else dict(zip(names, contexts["arms"], strict=True))
        return bandit.decide(contexts["context"], arms, k, **options)
    if isinstance(contexts, Mapping):
        if contexts.keys() != FACTORS:
            raise ValueError(
                f"contexts must be rows, factors, or records of a request and its arms, got {quote(contexts)}"
            )
        contexts = Factors(np.array(contexts["left"], np.float64), np.array(contexts["right"], np.float64))
    return bandit.decide(np.asarray(contexts, np.float64), names, k, **options)


def first_eligible(eligible: Any, names: list[Any] | None, count: int, k: int) -> list[int]:
    """Return the indices of the arms that were eligible for the first slot.

    `eligible` is the argument of `decide`, None for all; `count` is the number of arms, `k` the number of slots. Raises
    ValueError if they disagree.
    """
    if eligible is None:
        return list(range(count))
    if names is not None and all(type(one) is str for one in eligible):
        allowed = set(eligible)
        return [place for place, name in enumerate(names) if name in allowed]
    return eligible_places(eligible, names, count, k)


def learning_context(contexts: Any, places: Sequence[int]) -> Any:
    """Return the context that learning needs for the arms at the indices `places`, taken from logged contexts.

    It is {"context": ..., "arms": ...} for records, else the row of the arm, or a list of rows for several arms.
    Returns None if the contexts are in another form than records or rows of numbers.
    """
    if are_records(contexts):
        return {
            "context": flatten_record(contexts["context"]),
            "arms": [flatten_record(contexts["arms"][place]) for place in places],
        }
    if not isinstance(contexts, list):
        return None
    each = [contexts[place] if isinstance(contexts[0], list) else contexts for place in places]
    return each[0] if len(each) == 1 else each
