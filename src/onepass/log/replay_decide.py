"""A bandit asked with what a log holds: arrays and factors, or records of a request and of its arms.

    rows        [[1.0, 0.0], ...], of every arm, or [1.0, 0.0] of the request alone
    factors     {"left": ..., "right": ...}
    records     {"context": {"country": "de"}, "arms": [{"topic": "sport"}, ...]}, the arms in the order of their names

A service decides by the same lines as those who verify its log.
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
    """Whether contexts are records of a request and of its arms."""
    return isinstance(contexts, Mapping) and contexts.keys() == RECORDS


def decide_from_log(bandit: Any, contexts: Any, names: Any, k: int, **options: Any) -> Any:
    """What a bandit, or a copy that serves, decides.

    contexts: as above, or an array; names: of the arms, None where they have none; k: slots to fill; options: of
    `decide`. ValueError for what it does not take.
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
    """Places of the arms that the first slot might have had.

    eligible: as `decide` was given, None: all; names: of the arms, None where they have none; count: of arms; k: of
    slots. ValueError where they do not belong together.
    """
    if eligible is None:
        return list(range(count))
    if names is not None and all(type(one) is str for one in eligible):
        allowed = set(eligible)
        return [place for place, name in enumerate(names) if name in allowed]
    return eligible_places(eligible, names, count, k)


def learning_context(contexts: Any, places: Sequence[int]) -> Any:
    """What learning needs of the arms at some places, as a decision for them would hold it; None where contexts do not
    say it."""
    if are_records(contexts):
        return {
            "context": flatten_record(contexts["context"]),
            "arms": [flatten_record(contexts["arms"][place]) for place in places],
        }
    if not isinstance(contexts, list):
        return None
    each = [contexts[place] if isinstance(contexts[0], list) else contexts for place in places]
    return each[0] if len(each) == 1 else each
