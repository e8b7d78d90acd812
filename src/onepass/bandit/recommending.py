"""Lists of the k best arms of many users, from scores that are made block by block."""

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any

import numpy as np

from onepass.bandit.decision import Recommendation
from onepass.exploration.choosing import best
from onepass.features.factors import Outer
from onepass.foundation.check import shown

BLOCK = 4_000_000  # scores held at a time


def recommendation(
    scores_of: Callable[[Any], np.ndarray],
    contexts: Any,
    names: Sequence[Any],
    k: int,
    exclude: Sequence[Collection[Hashable]] | None,
    order: np.ndarray,
) -> Recommendation:
    """The k best of `names` for every user, but for those that `exclude` has for him, or for her.

    scores_of: scores (n, K) of a block of contexts, users on their first axis; order (K,): who is first among equals.
    ValueError for an `exclude` of another length, or of what are no collections of names.
    """
    users = len(contexts.left if isinstance(contexts, Outer) else contexts)
    if exclude is not None and len(exclude) != users:
        raise ValueError(f"exclude must have one collection per user ({users}), got {len(exclude)}")
    places = {name: place for place, name in enumerate(names)} if exclude is not None else {}
    step, out = max(1, BLOCK // len(names)), Recommendation([], [])
    for start in range(0, users, step):
        block = slice(start, start + step)
        scores = scores_of(
            Outer(contexts.left[block], contexts.right) if isinstance(contexts, Outer) else contexts[block]
        )
        mask = np.zeros(scores.shape if exclude is not None else (0, 0), np.bool_)
        for i, barred in enumerate(exclude[block] if exclude is not None else ()):
            try:
                mask[i, [places[name] for name in barred if name in places]] = True
            except TypeError:
                raise ValueError(
                    f"exclude must hold a collection of names for every user, got {shown(barred)}"
                ) from None
        for i, found in enumerate(best(scores, k, order, mask)):
            found = found[found >= 0]
            out.arms.append([names[a] for a in found])
            out.scores.append(scores[i, found])
    return out
