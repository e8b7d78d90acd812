"""The k best of all arms, found where the arms are.

A shard is told once which of its arms a list holds, and who comes first among equals; then a search sends it users and
gets k scores and places of each.
"""

import itertools
from collections.abc import Collection, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from onepass.bandit.bandit import Bandit
from onepass.bandit.decision import Recommendation
from onepass.cluster.shard import Query, best_of
from onepass.cluster.store import BESIDE, Store
from onepass.exploration.residual_scale import Tally
from onepass.exploration.rule import make_rule
from onepass.features.outer_product import Factors
from onepass.foundation import check
from onepass.model.names import distinct_names

SCORES = 4_000_000  # held at a time, as by a bandit in one process


class Asked(NamedTuple):
    """A list of arms that was asked for: names and records, its key, and the places of each shard's arms in it."""

    names: list[Any]
    records: np.ndarray
    key: int
    places: dict[int, np.ndarray]
    ranks: np.ndarray


class Search:
    """Of one bandit on shards."""

    def __init__(self, bandit: Bandit, store: Store):
        self._bandit, self._store = bandit, store
        self._keys = itertools.count(1)
        self._known: Asked | None = None

    def best(self, contexts: Any, k: int, arms: Any, exclude: Sequence[Collection[Hashable]] | None) -> Recommendation:
        """`recommend` of the bandit."""
        bandit, store, rule = self._bandit, self._store, make_rule(self._bandit.exploration)
        models = bandit.model.estimator
        apart = models.shared is not None or models.arms.family is not None or bandit.model.features is not None
        if apart or rule.pairs or isinstance(contexts, Factors) or np.ndim(contexts) != 2:
            return bandit.recommend(contexts, k, arms, exclude)
        users = check.array("contexts", contexts, models.arms.design.dtype, (2,), bandit.model.dim)
        check.finite_rows("contexts", users)
        asked = self._asked(arms)
        k = min(check.integer("k", k, 1), len(asked.names))
        barred = None if exclude is None else barred_of(exclude, asked, len(users))
        tally = Tally(*bandit.model.contents().extra["tally"]) if rule.residual else Tally(rows=0, squares=0.0)
        query = Query(rule, tally, bandit.n_learned, max(1, SCORES // len(asked.names)))
        values, found = [], []
        each = {shard: places for shard, places in asked.places.items() if shard != BESIDE}
        answers = self._told(asked, each, users, k, query, barred)
        if BESIDE in asked.places:
            places = asked.places[BESIDE]
            order = np.argsort(asked.ranks[places])
            own = None if barred is None else barred[BESIDE]
            answers[BESIDE] = best_of(store.beside, asked.records[places], order, users, k, query, own)
        for shard, (scores, where) in answers.items():
            values.append(np.where(where >= 0, scores, -np.inf))
            found.append(np.where(where >= 0, asked.places[shard][where], -1))
        return together(np.hstack(values), np.hstack(found), asked, k)

    def _told(
        self, asked: Asked, each: dict[int, np.ndarray], users: np.ndarray, k: int, query: Query, barred: Any
    ) -> dict[int, Any]:
        """The answers of shards; those that do not know the list are told it."""
        crew, version = self._store.crew, 0
        call = lambda s: ("best", version, asked.key, users, k, query, None if barred is None else barred[s])  # noqa: E731
        answers = crew.ask({shard: call(shard) for shard in each})
        missing = [shard for shard, answer in answers.items() if answer is None]
        if missing:
            crew.ask({s: ("remember", asked.key, asked.records[each[s]], asked.ranks[each[s]]) for s in missing})
            answers.update(crew.ask({shard: call(shard) for shard in missing}))
        return answers

    def _asked(self, arms: Any) -> Asked:
        """The list of arms; the last one is kept, under its key, as long as it and its shards stay as they are."""
        names, records = self._bandit.model.index.request(arms if arms is None else tuple(distinct_names(arms)))
        known = self._known
        split = self._store.spread(records)
        same = known is not None and known.records is records and known.places.keys() == {s for s, _ in split}
        if known is None or not same or any(known.places[s] is not places for s, places in split):
            ranks = np.empty(len(names), np.int64)
            ranks[np.random.default_rng(self._bandit.seed).permutation(len(names))] = np.arange(len(names))
            known = self._known = Asked(names, records, next(self._keys), dict(split), ranks)
        return known


def barred_of(exclude: Any, asked: Asked, users: int) -> dict[int, list[np.ndarray]]:
    """By shard, of every user the places, among the shard's arms, of those that must not be taken."""
    if len(exclude) != users:
        raise ValueError(f"exclude must have one collection per user ({users}), got {len(exclude)}")
    where = {name: place for place, name in enumerate(asked.names)}
    inside, owner = np.empty(len(asked.names), np.int64), np.empty(len(asked.names), np.int64)
    for shard, places in asked.places.items():
        inside[places], owner[places] = np.arange(len(places)), shard
    out: dict[int, list[np.ndarray]] = {shard: [] for shard in asked.places}
    for names in exclude:
        try:
            held = np.array([where[name] for name in names if name in where], np.int64)
        except TypeError:
            raise ValueError(
                f"exclude must hold a collection of names for every user, got {check.quote(names)}"
            ) from None
        for shard in asked.places:
            out[shard].append(inside[held[owner[held] == shard]])
    return out


def together(values: np.ndarray, places: np.ndarray, asked: Asked, k: int) -> Recommendation:
    """The k best of what the shards found: scores and places (n, shards x k), -1 for none."""
    out = Recommendation([], [])
    ranks = np.where(places >= 0, asked.ranks[places], len(asked.names))
    for scores, where, rank in zip(values, places, ranks, strict=True):
        order = np.lexsort((rank, -scores))[:k]
        order = order[where[order] >= 0]
        out.arms.append([asked.names[place] for place in where[order]])
        out.scores.append(scores[order])
    return out
