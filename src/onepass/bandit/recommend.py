"""Recommendations of the k best arms to many users, from scores that are computed block by block."""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np

from onepass.bandit.decision import Recommendation
from onepass.exploration.randomness import generator_of_seed
from onepass.exploration.sampling import top_k
from onepass.foundation import check
from onepass.foundation.check import quote

BLOCK = 4_000_000  # scores held at a time


def recommend_top_k(
    names: Sequence[Any],
    users: int,
    scores_of: Callable[[slice], np.ndarray],
    k: int,
    exclude: Sequence[Collection[Hashable]] | None,
    seed: int,
) -> Recommendation:
    """Return the k best of `names` for every user, without the arms excluded for that user.

    `users` is the number of users. `scores_of` returns the scores (n, K) of a slice of users, and `seed` orders arms
    with equal scores. Raises ValueError if `exclude` has another length, or if it holds something other than
    collections of names.
    """
    left_out = None if exclude is None else exclusions(exclude, users)
    k, order = min(check.integer("k", k, 1), len(names)), generator_of_seed(seed).permutation(len(names))
    places = {name: place for place, name in enumerate(names)} if left_out is not None else {}
    step, out = max(1, BLOCK // len(names)), Recommendation([], [])
    for start in range(0, users, step):
        block = slice(start, start + step)
        scores = scores_of(block)
        mask = np.zeros(scores.shape if left_out is not None else (0, 0), np.bool_)
        for i, barred in enumerate(left_out[block] if left_out is not None else ()):
            try:
                mask[i, [places[name] for name in barred if name in places]] = True
            except TypeError:
                raise ValueError(
                    f"exclude must hold a collection of names for every user, got {quote(barred)}"
                ) from None
        for i, found in enumerate(top_k(scores, k, order, mask)):
            found = found[found >= 0]
            out.arms.append([names[a] for a in found])
            out.scores.append(scores[i, found])
    return out


def exclusions(exclude: Any, users: int) -> list[Any]:
    """Return the collections of excluded names of all users as a list.

    Raises ValueError unless there is a collection for each of the `users` users, in their order. A string is refused,
    because its characters would be taken for names.
    """
    if isinstance(exclude, str | bytes | Mapping | Set) or not hasattr(exclude, "__len__"):
        raise ValueError(f"exclude must be a sequence with a collection of names for every user, got {quote(exclude)}")
    each = list(exclude)
    if len(each) != users:
        raise ValueError(f"exclude must have one collection per user ({users}), got {len(each)}")
    for barred in each:
        if isinstance(barred, str | bytes) or not isinstance(barred, Iterable):
            raise ValueError(f"exclude must hold a collection of names for every user, got {quote(barred)}")
    return each
