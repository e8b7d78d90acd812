"""Interactions of users with items as problems for recommenders: a part to learn, then steps to score.

Interactions are divided by time, and features come from a singular value decomposition of the first part:

    first 80% in time order: the warm-up;  A V = users' features (U, r),  V = items' features (K, r),  A ~ U S V^T (SVD)

A holds the ratings of the warm-up, for repeated ratings the last one. Arms are its items, and a context is
vec(x_u x_a^T). Nothing after the warm-up affects features or arms, unless `leaking` is set (Shustova et al. 4.1, C.1).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from onepass.lab.datasets import INTERACTIONS, find_files, join_paths
from onepass.lab.errors import ExperimentError

WARM_UP = 0.8
UNKNOWN = -1  # number of an item that is no arm, or of a user without features


class Interactions(NamedTuple):
    """Interactions in time order.

    Parameters
    ----------
    users : number of the user (n,) int64.
    items : number of the item (n,) int64.
    ratings : ratings (n,).
    times : time (n,) in seconds.
    """

    users: np.ndarray
    items: np.ndarray
    ratings: np.ndarray
    times: np.ndarray

    def part(self, which: slice | np.ndarray) -> "Interactions":
        return Interactions(*(column[which] for column in self))


class Step(NamedTuple):
    """Interactions of one month or week, for which items are recommended before the interactions are learned.

    Users with features are those of the first 80% of the data, and arms are the items that can be recommended.

    Parameters
    ----------
    name : str
        The month or week.
    log : Interactions
        Interactions between users with features and arms.
    everyone : Interactions
        Interactions between all users and arms. Users without features have numbers below -1.
    items : array of shape (m,)
        Arm of every interaction in `everyone`.
    users : array of shape (n,)
        Users with features who have interactions.
    relevant : list of n sets
        Arms with which each of these users interacts; empty if none of the user's items is an arm.
    cold : list of sets
        Arms with which each user without features interacts.
    """

    name: str
    log: Interactions
    everyone: Interactions
    items: np.ndarray
    users: np.ndarray
    relevant: list[set[int]]
    cold: list[set[int]]


@dataclass(frozen=True)
class Problem:
    """Data of a recommender: features of users and arms, interactions to learn first, and steps that are scored.

    Parameters
    ----------
    users : features of users (U, r).
    arms : features of arms (K, r).
    warm : the first 80% of the interactions, which are learned before the first step.
    seen : set of arms of every user in `warm`.
    steps : later interactions, by month or week.
    """

    users: np.ndarray
    arms: np.ndarray
    warm: Interactions
    seen: list[set[int]]
    steps: list[Step]


@cache
def load(name: str) -> Interactions:
    """Return the interactions of the data set `name` in time order."""
    source = INTERACTIONS[name]
    form, paths = find_files(name, source)
    try:
        table, _ = form.read(paths)
    except (ValueError, OSError, EOFError) as error:
        raise ExperimentError(f"{join_paths(paths)} cannot be read ({error}): remove or replace it") from error
    counts = (len(table), *(len(np.unique(column)) for column in table.T[:2]))
    if source.counts and counts != source.counts:
        raise ExperimentError(
            f"{join_paths(paths)} is not {name}: it has {counts} interactions, users and items "
            f"instead of {source.counts}; remove or replace it"
        )
    return in_time_order(*table.T)


def in_time_order(users: np.ndarray, items: np.ndarray, ratings: np.ndarray, times: np.ndarray) -> Interactions:
    """Return `Interactions` sorted by time; equal times keep their order.

    `users`, `items`, `ratings` and `times` are arrays (n,).
    """
    order = np.argsort(times, kind="stable")
    kinds = (np.int64, np.int64, np.float64, np.float64)
    columns = (users, items, ratings, times)
    return Interactions(*(np.asarray(column)[order].astype(kind) for column, kind in zip(columns, kinds)))


def warm_up(interactions: Interactions) -> int:
    """Return the number of interactions that are learned before the first step: 80% of all."""
    return int(WARM_UP * len(interactions.users))


def features(log: Interactions, shape: tuple[int, int], rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Return features of users (U, rank) and arms (K, rank) from the matrix A (U, K) of last ratings, 0 without one.

    They are A V and V, where the columns of V are the first right singular vectors of A, by falling singular value. The
    largest entry, in absolute value, of each column of V is positive. `log` holds the interactions, and `shape` is (U,
    K). Raises ExperimentError if the rank is too large for A.
    """
    if not 1 <= rank < min(shape):
        raise ExperimentError(f"factors must be from 1 to {min(shape) - 1} for {shape[0]} users and {shape[1]} arms")
    pairs = log.users * shape[1] + log.items
    last = len(pairs) - 1 - np.unique(pairs[::-1], return_index=True)[1]
    matrix = scipy.sparse.csr_array((log.ratings[last], (log.users[last], log.items[last])), shape)
    start = np.random.default_rng(0).standard_normal(min(shape))
    right = scipy.sparse.linalg.svds(matrix, k=rank, v0=start)[2][::-1].T
    right = np.ascontiguousarray(right * np.sign(right[np.abs(right).argmax(axis=0), np.arange(rank)]))
    return matrix @ right, right


def calendar_periods(times: np.ndarray, unit: str) -> list[tuple[str, slice]]:
    """Return the name and the slice of `times` of every calendar month (UTC), or of every week since the first time.

    `times` (n,) are Unix times in seconds, in increasing order. `unit` is "month" or "week". Empty periods are left
    out.
    """
    seconds = times.astype("int64").astype("datetime64[s]")
    if unit == "month":
        labels = np.datetime_as_string(seconds.astype("datetime64[M]"))
    else:
        begins = seconds[0] + (seconds - seconds[0]) // np.timedelta64(7, "D") * np.timedelta64(7, "D")
        labels = np.datetime_as_string(begins.astype("datetime64[D]"))
    names, starts = np.unique(labels, return_index=True)
    ends = [*starts[1:].tolist(), len(times)]
    return [(str(name), slice(start, end)) for name, start, end in zip(names, starts.tolist(), ends)]


def prepare(
    interactions: Interactions, factors: int, unit: str = "month", arms: int | None = None, leaking: bool = False
) -> Problem:
    """Return the problem of a recommender that is made from interactions.

    Parameters
    ----------
    interactions : interactions in time order.
    factors : number of features of users and arms.
    unit : length of a step, "month" or "week".
    arms : number of arms, the most frequent ones; None for all.
    leaking : True to compute features from all interactions, also those that are scored later.
    """
    end = warm_up(interactions)
    known = interactions if leaking else interactions.part(slice(end))
    names, counts = np.unique(known.items, return_counts=True)
    names = np.sort(names[np.argsort(-counts, kind="stable")[:arms]])
    people = np.unique(known.users)
    log = interactions._replace(users=places(people, interactions.users), items=places(names, interactions.items))
    trusted = _drop_unknown(log if leaking else log.part(slice(end)))
    left, right = features(trusted, (len(people), len(names)), factors)
    warm = _drop_unknown(log.part(slice(end)))
    seen: list[set[int]] = [set() for _ in people]
    for user, item in zip(warm.users.tolist(), warm.items.tolist()):
        seen[user].add(item)
    steps = [
        _make_step(name, log.part(slice(end + part.start, end + part.stop)), interactions.users[end:][part])
        for name, part in calendar_periods(interactions.times[end:], unit)
    ]
    return Problem(left, right, warm, seen, steps)


def places(names: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the index in the sorted array `names` of every entry of `values` (n,), or -1 for a missing entry."""
    found = np.minimum(np.searchsorted(names, values), len(names) - 1)
    return np.where(names[found] == values, found, UNKNOWN)


def _drop_unknown(log: Interactions) -> Interactions:
    """Return those interactions in `log` whose user has features and whose item is an arm."""
    return log.part((log.users != UNKNOWN) & (log.items != UNKNOWN))


def _make_step(name: str, log: Interactions, people: np.ndarray) -> Step:
    """Make the step `name` from its interactions `log`, in which unknown users and items are -1.

    `people` (n,) are the users of the interactions in the numbering of the data set.
    """
    came: dict[int, set[int]] = {}
    for person, item in zip(people.tolist(), log.items.tolist()):
        came.setdefault(person, set()).update({item} - {UNKNOWN})
    number = dict(zip(people.tolist(), log.users.tolist()))
    known = sorted((number[person], items) for person, items in came.items() if number[person] != UNKNOWN)
    cold = [items for person, items in came.items() if number[person] == UNKNOWN]
    users = np.array([user for user, _ in known], np.int64)
    numbers = np.where(log.users == UNKNOWN, UNKNOWN - 1 - people, log.users)
    everyone = log._replace(users=numbers).part(log.items != UNKNOWN)
    return Step(name, _drop_unknown(log), everyone, everyone.items, users, [items for _, items in known], cold)


def metrics(recommended: Sequence[int], relevant: set[int], k: int = 10) -> tuple[float, float, float]:
    """Return Hit@k, NDCG@k and MRR@k of the items `recommended`, best first; all are 0 without a hit.

    hit = 1 if any of the first k is relevant; ndcg = sum over the hits of 1 / log2(1 + rank), divided by the sum for
    min(k, |relevant|) hits at the first ranks; mrr = 1 / rank of the first hit.

    >>> metrics([7, 3, 9], {3, 5})[0::2]
    (1.0, 0.5)
    """
    hits = [place for place, item in enumerate(recommended[:k], 1) if item in relevant]
    if not hits:
        return 0.0, 0.0, 0.0
    ideal = (1 / np.log2(1 + np.arange(1, min(k, len(relevant)) + 1))).sum()
    return 1.0, float((1 / np.log2(1 + np.array(hits))).sum() / ideal), 1 / hits[0]
