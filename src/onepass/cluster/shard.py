"""A shard: the models of some arms, in a store of their own, wherever it runs.

Arms have numbers here, given by who is in front, and rows come as the designs see them.
"""

from typing import Any, NamedTuple, Self, final

import numpy as np

from onepass.arena.arena import NONE
from onepass.arena.model_store import empty_state
from onepass.cluster.rendezvous_hash import UNASSIGNED
from onepass.exploration.contract import score
from onepass.exploration.randomness import empty_normals
from onepass.exploration.residual_scale import Tally
from onepass.exploration.rule import Rule
from onepass.exploration.sampling import top_k
from onepass.foundation import check, files, state
from onepass.foundation.registry import build, savable
from onepass.model.arms.per_arm import ArmModelsState, Disjoint, Hybrid
from onepass.model.arms.predict import arm_statistics
from onepass.model.contract import non_finite_error

GROWTH = 8  # the list of places grows by an eighth
REQUESTS = 4  # lists of arms that are remembered


class ShardState(NamedTuple):
    """What is written: the place of every arm in the store, NOBODY for those elsewhere, and the store."""

    places: np.ndarray
    store: Any


class Query(NamedTuple):
    """Who asks for the best arms: how it explores, what the whole bandit has learned; users are looked at `step` at a
    time."""

    rule: Rule
    tally: Tally
    rounds: int
    step: int


@final
@savable
class Shard(files.Owner):
    """Some of a bandit's arms.

    models: `Disjoint` or `Hybrid`, as the whole bandit's; seq: of the last change.
    """

    def __init__(self, models: Disjoint | Hybrid, seq: int = 0):
        self.models, self.seq = models, seq
        self.store: Any = models.store()
        self.places = np.zeros(0, np.int64)
        self._published: dict[int, tuple[np.ndarray, Any]] = {}
        self._requests: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    # ---- changes ----

    def _allocate(self, arms: np.ndarray) -> np.ndarray:
        """Places of arms, which begin where they are new."""
        self._grow(int(arms.max(initial=-1)) + 1)
        for arm in arms[self.places[arms] == UNASSIGNED].tolist():
            self.places[arm] = self.store.allocate()
        return self.places[arms]

    def _grow(self, wanted: int) -> None:
        if wanted > len(self.places):
            more = np.full(wanted + wanted // GROWTH - len(self.places), UNASSIGNED)
            self.places = np.concatenate([self.places, more])

    def learn_one(self, arm: int, row: np.ndarray, reward: float) -> None:
        """A row of one arm."""
        self.store.learn_one(int(self._allocate(np.array([arm]))[0]), row, reward)

    def learn(self, arms: np.ndarray, counts: np.ndarray, *rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows of arms, `counts` of each in their order: left, right, rewards, extra, as `Store.learn` has them."""
        starts, order = np.concatenate([[0], np.cumsum(counts)]), np.arange(len(rows[0]))
        return self.store.learn(self._allocate(arms), starts, order, *rows)

    def release(self, arms: np.ndarray) -> None:
        """Forget arms."""
        for arm in arms.tolist():
            if arm < len(self.places) and self.places[arm] != UNASSIGNED:
                self.store.release(int(self.places[arm]))
                self.places[arm] = UNASSIGNED

    def import_arms(self, arms: np.ndarray, models: list[Any]) -> None:
        """Take arms as another shard, or a bandit, has exported them, bit for bit."""
        for place, model in zip(self._allocate(arms).tolist(), models, strict=True):
            self.store.write_arm(place, model)

    # ---- questions ----

    def _arms_at(self, version: int) -> tuple[np.ndarray, Any]:
        if version == 0:
            return self.places, self.store
        if version not in self._published:
            raise LookupError("a shard of this snapshot was lost, and came back without it: take a new snapshot")
        return self._published[version]

    def call_store(self, version: int, method: str, arms: np.ndarray, *given: Any) -> Any:
        """What a method of the store says of arms, together."""
        places, store = self._arms_at(version)
        return getattr(store, method)(places[arms], *given)

    def export_arms(self, version: int, arms: np.ndarray) -> list[Any]:
        """Copies of arms."""
        places, store = self._arms_at(version)
        return [store.export_arm(place) for place in places[arms].tolist()]

    def error_bound(self) -> float:
        """The largest of all arms."""
        return float(self.store.error_bound())

    def relative_loss(self) -> float:
        """The largest of all arms, in units of their ridges."""
        return float(self.store.relative_loss())

    def nbytes(self) -> int:
        """Bytes of all arrays, spare room included."""
        return state.nbytes(self.store.state) + self.places.nbytes

    def publish(self, version: int, gone: list[int]) -> None:
        """Keep the arms as they are now, for readers; nobody reads the versions that are gone."""
        for old in gone:
            self._published.pop(old, None)
        self._published[version] = (self.places.copy(), self.store.snapshot())

    def remember(self, key: int, arms: np.ndarray, ranks: np.ndarray) -> None:
        """Arms that will be asked for under a key; ranks: who comes first among equals, over all shards."""
        self._requests[key] = (arms, np.argsort(ranks))
        for old in list(self._requests)[:-REQUESTS]:
            del self._requests[old]

    def best_arms(
        self, version: int, key: int, users: np.ndarray, k: int, query: Query, excluded: list[np.ndarray] | None
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """The k best of the arms under a key for every user z (n, width): scores and places among those arms, -1 where
        fewer are left. None: the key is not known. barred: of every user, places that must not be taken."""
        if key not in self._requests:
            return None
        arms, order = self._requests[key]
        places, store = self._arms_at(version)
        return best_arms(store, places[arms], order, users, k, query, excluded)

    # ---- files ----

    def contents(self) -> files.Contents:
        kept = ShardState(places=self.places, store=self.store.to_state())
        return files.Contents({"models": self.models, "seq": self.seq}, {}, kept)

    @classmethod
    def from_contents(cls, params: dict[str, Any], extra: dict[str, Any], held: files.StateSource) -> Self:
        """From what a file holds, `params`, `extra` and `held`; ValueError where that does not fit."""
        shard = cls(**{name: build(part) for name, part in params.items()})
        begun = ShardState(places=shard.places, store=empty_state(shard.store, held.arrays))
        found = held.take(begun, shard._fits)
        shard.places = found.places
        shard.store.restore(found.store)
        return shard

    def _fits(self, found: ShardState) -> bool:
        return self.store.fits(found.store, found.places[found.places != UNASSIGNED])


def start_shard(models: Disjoint | Hybrid, file: Any) -> Shard:
    """A shard that begins, or (file, a path) as it was saved. ValueError for a file of something else."""
    if file is None:
        return Shard(models)
    found = files.load(file)
    if not isinstance(found, Shard):
        raise ValueError(f"{check.quote_path(file)} holds no shard")
    return found


def best_arms(
    store: Any,
    records: np.ndarray,
    order: np.ndarray,
    users: np.ndarray,
    k: int,
    query: Query,
    excluded: list[np.ndarray] | None,
) -> tuple[np.ndarray, np.ndarray]:
    """`Shard.best` of arms by their places in a store; order: in which ties are taken."""
    learned, step = ArmModelsState(store, (), np.zeros((0, 0))), query.step
    values, found = np.zeros((len(users), k)), np.full((len(users), k), NONE)
    for start in range(0, len(users), step):
        part = slice(start, start + step)
        means, squares = store.evaluate_users(records, users[part])
        scores = np.empty(means.shape)
        for i in range(len(means)):
            told = (query.tally, query.rounds, records, means[i], squares[i], None, empty_normals(len(records)))
            scores[i] = score(query.rule.rule, arm_statistics(learned, query.rule, *told))
        if not np.isfinite(scores).all():
            raise non_finite_error()
        mask = np.zeros(scores.shape if excluded is not None else (0, 0), np.bool_)
        for i, one in enumerate(excluded[part] if excluded is not None else ()):
            mask[i, one] = True
        found[part] = top_k(scores, k, order, mask)
        values[part] = np.take_along_axis(scores, np.maximum(found[part], 0), axis=1)
    return values, found
