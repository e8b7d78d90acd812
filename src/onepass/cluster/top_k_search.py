"""Search for the k best of all arms, done on the shards of the arms.

A shard receives a list of arms and their order among equal scores once. After that a search sends users only, and gets
k scores and places for each.
"""

import itertools
from collections.abc import Collection, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from onepass.bandit.bandit import Bandit
from onepass.bandit.decision import Recommendation
from onepass.bandit.recommend import exclusions
from onepass.cluster.shard import Query, best_arms
from onepass.cluster.sharded_store import UNSHARDED, ShardedStore
from onepass.exploration.residual_scale import Tally
from onepass.exploration.rule import make_rule
from onepass.features.outer_product import Factors
from onepass.foundation import check
from onepass.model.names import distinct_names

SCORES = 4_000_000  # scores in memory at a time, as in a bandit of one process


class _ArmList(NamedTuple):
    """List of candidate arms that shards remember.

    Parameters
    ----------
    names : names of the arms.
    records : ids of the arms in the store (K,).
    key : number under which the shards remember the list.
    places : for each shard's number, the indices into `names` of the shard's arms.
    ranks : rank of each arm among arms with equal scores (K,).
    """

    names: list[Any]
    records: np.ndarray
    key: int
    places: dict[int, np.ndarray]
    ranks: np.ndarray


class TopKSearch:
    """Search for the k best arms of a sharded bandit, whose arms are in `store`."""

    def __init__(self, bandit: Bandit, store: ShardedStore) -> None:
        self._bandit, self._store = bandit, store
        self._keys = itertools.count(1)
        self._known: _ArmList | None = None

    def recommend(
        self, contexts: Any, k: int, arms: Any, exclude: Sequence[Collection[Hashable]] | None
    ) -> Recommendation:
        """Recommend the k best of the arms to each user of `contexts`, without the user's excluded arms.

        `contexts` are rows (n, dim), one for each user, or other contexts of `Bandit.recommend`. `exclude` has a
        collection of names of arms for each user, or is None. `arms` are names; None takes all arms.
        """
        bandit, store, rule = self._bandit, self._store, make_rule(self._bandit.exploration)
        models = bandit.model.estimator
        apart = models.shared is not None or models.arms.family is not None or bandit.model.features is not None
        if apart or rule.pairs or isinstance(contexts, Factors) or np.ndim(contexts) != 2:
            return bandit.recommend(contexts, k, arms, exclude)
        users = check.array("contexts", contexts, models.arms.design.dtype, (2,), bandit.model.dim)
        check.finite_rows("contexts", users)
        listed = self._list_arms(arms)
        k = min(check.integer("k", k, 1), len(listed.names))
        excluded = None if exclude is None else _excluded_by_shard(exclude, listed, len(users))
        tally = Tally(*bandit.model.contents().extra["tally"]) if rule.residual else Tally(rows=0, squares=0.0)
        query = Query(rule, tally, bandit.n_learned, max(1, SCORES // len(listed.names)))
        values, found = [], []
        each = {shard: places for shard, places in listed.places.items() if shard != UNSHARDED}
        answers = self._query_shards(listed, each, users, k, query, excluded)
        if UNSHARDED in listed.places:
            places = listed.places[UNSHARDED]
            order = np.argsort(listed.ranks[places])
            own = None if excluded is None else excluded[UNSHARDED]
            answers[UNSHARDED] = best_arms(store.prior_store, listed.records[places], order, users, k, query, own)
        for shard, (scores, where) in answers.items():
            values.append(np.where(where >= 0, scores, -np.inf))
            found.append(np.where(where >= 0, listed.places[shard][where], -1))
        return _merge_best(np.hstack(values), np.hstack(found), listed, k)

    def _query_shards(
        self, listed: _ArmList, each: dict[int, np.ndarray], users: np.ndarray, k: int, query: Query, excluded: Any
    ) -> dict[int, Any]:
        """Return the answers of all shards to a query for the `k` best arms of each user, by shard number.

        `users` holds the rows of n users. An answer has scores (n, k) and indices (n, k) into the shard's arms. The
        arms `listed` are sent only to shards that do not know them. `each` maps a shard to the indices of its arms in
        `listed`. `excluded` is None, or maps a shard to the excluded arms of each user, as indices into the shard's
        arms.
        """
        supervisor, version = self._store.supervisor, 0
        call = lambda s: ("best_arms", version, listed.key, users, k, query, None if excluded is None else excluded[s])  # noqa: E731
        answers = supervisor.ask({shard: call(shard) for shard in each})
        missing = [shard for shard, answer in answers.items() if answer is None]
        if missing:
            supervisor.ask(
                {s: ("remember", listed.key, listed.records[each[s]], listed.ranks[each[s]]) for s in missing}
            )
            answers.update(supervisor.ask({shard: call(shard) for shard in missing}))
        return answers

    def _list_arms(self, arms: Any) -> _ArmList:
        """Return the candidates `arms`, or all known arms if it is None, as an `_ArmList`.

        The last list is returned if neither its arms nor their shards have changed.
        """
        names, records = self._bandit.model.index.request(arms if arms is None else tuple(distinct_names(arms)))
        known = self._known
        split = self._store.split_by_shard(records)
        same = known is not None and known.records is records and known.places.keys() == {s for s, _ in split}
        if known is None or not same or any(known.places[s] is not places for s, places in split):
            ranks = np.empty(len(names), np.int64)
            ranks[np.random.default_rng(self._bandit.seed).permutation(len(names))] = np.arange(len(names))
            known = self._known = _ArmList(names, records, next(self._keys), dict(split), ranks)
        return known


def _excluded_by_shard(exclude: Any, listed: _ArmList, users: int) -> dict[int, list[np.ndarray]]:
    """Map each shard to the excluded arms of every user, as indices into that shard's arms in `listed`.

    `exclude` has a collection of names of arms for each user, and `users` is the number of users.
    """
    where = {name: place for place, name in enumerate(listed.names)}
    inside, owner = np.empty(len(listed.names), np.int64), np.empty(len(listed.names), np.int64)
    for shard, places in listed.places.items():
        inside[places], owner[places] = np.arange(len(places)), shard
    out: dict[int, list[np.ndarray]] = {shard: [] for shard in listed.places}
    for names in exclusions(exclude, users):
        try:
            held = np.array([where[name] for name in names if name in where], np.int64)
        except TypeError:
            raise ValueError(
                f"exclude must hold a collection of names for every user, got {check.quote(names)}"
            ) from None
        for shard in listed.places:
            out[shard].append(inside[held[owner[held] == shard]])
    return out


def _merge_best(values: np.ndarray, places: np.ndarray, listed: _ArmList, k: int) -> Recommendation:
    """Recommend the k best arms to each of n users, by the answers of all shards.

    `values` and `places` (n, shards x k) are scores, and indices into the arms `listed`; an index of -1 means no arm.
    """
    out = Recommendation([], [])
    ranks = np.where(places >= 0, listed.ranks[places], len(listed.names))
    for scores, where, rank in zip(values, places, ranks, strict=True):
        order = np.lexsort((rank, -scores))[:k]
        order = order[where[order] >= 0]
        out.arms.append([listed.names[place] for place in where[order]])
        out.scores.append(scores[order])
    return out
