"""Shard of a bandit: the models of some arms in a store, in this process or in another one.

The coordinator gives the arms their numbers. Rows come to a shard after the bandit's feature map.
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

GROWTH = 8  # the array of places grows by an eighth
REQUESTS = 4  # number of remembered lists of arms


class ShardState(NamedTuple):
    """State of a shard in a file.

    Parameters
    ----------
    places : id of every arm in the store, by the arm's number; -1 for arms of other shards.
    store : state of the store.
    """

    places: np.ndarray
    store: Any


class Query(NamedTuple):
    """Facts about the whole bandit that a search for the best arms needs.

    Parameters
    ----------
    rule : exploration rule.
    tally : number of predictions and sum of their squared residuals.
    rounds : number of rows learned.
    step : number of users that are scored at a time.
    """

    rule: Rule
    tally: Tally
    rounds: int
    step: int


@final
@savable
class Shard(files.Owner):
    """Shard of a bandit: the models of some of its arms.

    Parameters
    ----------
    models : `Disjoint` or `Hybrid`, the kind of model of the whole bandit.
    seq : number of the last change.
    """

    def __init__(self, models: Disjoint | Hybrid, seq: int = 0) -> None:
        self.models, self.seq = models, seq
        self.store: Any = models.store()
        self.places = np.zeros(0, np.int64)
        self._published: dict[int, tuple[np.ndarray, Any]] = {}
        self._requests: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    # ---- changes ----

    def _allocate(self, arms: np.ndarray) -> np.ndarray:
        """Return the ids (n,) in the store of the arms with numbers `arms` (n,), and give an id to new arms."""
        self._grow(int(arms.max(initial=-1)) + 1)
        for arm in arms[self.places[arms] == UNASSIGNED].tolist():
            self.places[arm] = self.store.allocate()
        return self.places[arms]

    def _grow(self, wanted: int) -> None:
        if wanted > len(self.places):
            more = np.full(wanted + wanted // GROWTH - len(self.places), UNASSIGNED)
            self.places = np.concatenate([self.places, more])

    def learn_one(self, arm: int, row: np.ndarray, reward: float) -> None:
        """Learn the reward of a row (dim,) in the model of the arm with number `arm`."""
        self.store.learn_one(int(self._allocate(np.array([arm]))[0]), row, reward)

    def learn(self, arms: np.ndarray, counts: np.ndarray, *rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Learn rows of several arms: `counts` (n,) rows of each of the n arms `arms`, in order.

        `rows` are four arrays: contexts (m, dim), their right factors, rewards (m,) and shared features (m, k) of a
        hybrid model. For contexts that are outer products, the first two arrays are factors (m, d_u) and (m, d_a);
        else the second is empty. Returns what the shared part has to learn: rows (m, k) and targets (m,).
        """
        starts, order = np.concatenate([[0], np.cumsum(counts)]), np.arange(len(rows[0]))
        return self.store.learn(self._allocate(arms), starts, order, *rows)

    def release(self, arms: np.ndarray) -> None:
        """Delete the models of the arms with the numbers `arms` (n,)."""
        for arm in arms.tolist():
            if arm < len(self.places) and self.places[arm] != UNASSIGNED:
                self.store.release(int(self.places[arm]))
                self.places[arm] = UNASSIGNED

    def import_arms(self, arms: np.ndarray, models: list[Any]) -> None:
        """Add arms with the models that another shard, or a bandit, has exported, bit for bit.

        `arms` (n,) are the numbers of the arms, and `models` their n models.
        """
        for place, model in zip(self._allocate(arms).tolist(), models, strict=True):
            self.store.write_arm(place, model)

    # ---- predictions ----

    def _arms_at(self, version: int) -> tuple[np.ndarray, Any]:
        if version == 0:
            return self.places, self.store
        if version not in self._published:
            raise LookupError("a shard of this snapshot was lost, and came back without it: take a new snapshot")
        return self._published[version]

    def call_store(self, version: int, method: str, arms: np.ndarray, *given: Any) -> Any:
        """Return the result of the method named `method` of the store, called with arms and the arguments `given`.

        `arms` (n,) are the numbers of the arms. The method sees the models of the published version `version`; 0 is the
        present state.
        """
        places, store = self._arms_at(version)
        return getattr(store, method)(places[arms], *given)

    def export_arms(self, version: int, arms: np.ndarray) -> list[Any]:
        """Return copies of the models of arms, as of a published version; version 0 is the present state."""
        places, store = self._arms_at(version)
        return [store.export_arm(place) for place in places[arms].tolist()]

    def error_bound(self) -> float:
        """Return the largest proven bound of ||A - A_hat||_2 over the arms, for an arm's design A and sketch A_hat."""
        return float(self.store.error_bound())

    def relative_loss(self) -> float:
        """Return the largest relative loss of an arm's sketch (design/loss.py), 0 for exact designs.

        The relative loss is the sum of squares along a direction that truncations have removed, divided by the ridge
        penalty.
        """
        return float(self.store.relative_loss())

    def nbytes(self) -> int:
        """Return the bytes of all arrays, including spare capacity."""
        return state.nbytes(self.store.state) + self.places.nbytes

    def publish(self, version: int, gone: list[int]) -> None:
        """Keep a copy of the arms' models as number `version`, for snapshots, and drop the versions in `gone`."""
        for old in gone:
            self._published.pop(old, None)
        self._published[version] = (self.places.copy(), self.store.snapshot())

    def remember(self, key: int, arms: np.ndarray, ranks: np.ndarray) -> None:
        """Remember the arms with the numbers `arms` (n,) under a key, for later searches.

        Of arms with equal scores, the one with the smaller rank in `ranks` (n,) comes first.
        """
        self._requests[key] = (arms, np.argsort(ranks))
        for old in list(self._requests)[:-REQUESTS]:
            del self._requests[old]

    def best_arms(
        self, version: int, key: int, users: np.ndarray, k: int, query: Query, excluded: list[np.ndarray] | None
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Return scores and indices (n, k) of the k best arms for every user (n, width); None for an unknown key.

        Indices refer to the list of arms that `remember` stored under `key`; they are -1 if fewer arms are left.
        `version` is a published version, or 0 for the present state. `query` has the exploration rule and the counts
        that it needs. `excluded` holds the indices of arms excluded for every user.
        """
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
        """Rebuild a shard from the parts of a saved file; raise ValueError if they disagree.

        `params` has the arguments of the constructor by name, and `held` the arrays. `extra` is empty.
        """
        shard = cls(**{name: build(part) for name, part in params.items()})
        begun = ShardState(places=shard.places, store=empty_state(shard.store, held.arrays))
        found = held.take(begun, shard._fits)
        shard.places = found.places
        shard.store.restore(found.store)
        return shard

    def _fits(self, found: ShardState) -> bool:
        return self.store.fits(found.store, found.places[found.places != UNASSIGNED])


def start_shard(models: Disjoint | Hybrid, file: Any) -> Shard:
    """Make a shard for the kind of model `models`, or load it from the path `file` if that is not None.

    Raises ValueError if the file holds something else.
    """
    if file is None:
        return Shard(models)
    found = files.load(file)
    if not isinstance(found, Shard):
        raise ValueError(f"{check.quote_path(file)} holds {type(found).__name__}, expected Shard")
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
    """Return the scores and the indices (n, k) of the k best arms for every user.

    `records` (K,) are the arms' ids in the store, and `order` (K,) their indices in the order in which ties are broken.
    An index refers to `records`; it is -1 if fewer arms are left. `users` (n, dim) are the users' contexts. `query` has
    the exploration rule and the counts that it needs. `excluded` holds the indices of arms excluded for every user.
    """
    learned, step = ArmModelsState(store, (), np.zeros((0, 0))), query.step
    values, found = np.zeros((len(users), k)), np.full((len(users), k), NONE)
    for start in range(0, len(users), step):
        part = slice(start, start + step)
        means, squares = store.evaluate_users(records, users[part])
        scores = np.empty(means.shape)
        for i in range(len(means)):
            inputs = (query.tally, query.rounds, records, means[i], squares[i], None, empty_normals(len(records)))
            scores[i] = score(query.rule.rule, arm_statistics(learned, query.rule, *inputs))
        if not np.isfinite(scores).all():
            raise non_finite_error()
        mask = np.zeros(scores.shape if excluded is not None else (0, 0), np.bool_)
        for i, one in enumerate(excluded[part] if excluded is not None else ()):
            mask[i, one] = True
        found[part] = top_k(scores, k, order, mask)
        values[part] = np.take_along_axis(scores, np.maximum(found[part], 0), axis=1)
    return values, found
