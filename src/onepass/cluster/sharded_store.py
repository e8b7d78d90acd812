"""Store of a bandit whose arms are on shards: it has the interface of a store, and asks the shards.

Arms are numbered in the order in which they first learned, and the number determines the shard (rendezvous_hash.py). A
batch is one message to each shard. Arms share nothing, so their models equal those of one process bit for bit. Arms
without rows are answered here, from the prior.
"""

import heapq
import itertools
import weakref
from typing import Any, NamedTuple

import numpy as np

from onepass.arena.arena import NONE
from onepass.arena.model_store import ArmState, is_partition
from onepass.cluster.rendezvous_hash import UNASSIGNED, assign_shards
from onepass.cluster.shard_supervisor import ShardSupervisor
from onepass.model.arms.per_arm import Disjoint, Hybrid

GROWTH = 8  # arrays of arms grow by an eighth,
ROOM = 64  # and by so many arms more
UNSHARDED = NONE  # stands for a shard's number if arms have no rows: the store here answers


class Placement(NamedTuple):
    """Assignment of arms to shards: `owner` (arms,) is the number of each arm's shard, -1 for an unused id."""

    owner: np.ndarray


class ShardedStore:
    """Store of arms whose models are on shards; it asks the shards through `supervisor`."""

    supervisor: ShardSupervisor

    def __init__(self, models: Disjoint | Hybrid) -> None:
        self.models = models
        self.prior_store = models.store()  # answers for arms without rows
        self._owner = np.full(0, UNASSIGNED)
        self._homes = np.zeros(0, np.int64)  # the shard of every number, also of future arms
        self._count, self._vacant = 0, list[int]()
        self._version, self._versions = 0, itertools.count(1)
        self._split: tuple[Any, list[tuple[int, np.ndarray]]] | None = None

    # ---- numbers ----

    @property
    def state(self) -> Placement:
        """Assignment of all arm ids to shards, as a `Placement`."""
        return Placement(self._owner[: self._count])

    def to_state(self) -> Placement:
        """Return the assignment of arms to shards, for a file."""
        return self.state

    def fits(self, state: Placement, taken: np.ndarray) -> bool:
        """Return True if the assignment `state`, read from a file, is valid, and its arms have the ids `taken`."""
        vacant = np.flatnonzero(state.owner == UNASSIGNED)
        return bool((state.owner >= UNASSIGNED).all()) and is_partition(taken, vacant, len(state.owner))

    def restore(self, state: Placement) -> None:
        """Restore the assignment of arms to shards that was read from a file."""
        self._owner, self._count = state.owner, len(state.owner)
        self._vacant, self._split = np.flatnonzero(state.owner == UNASSIGNED).tolist(), None

    def allocate(self) -> int:
        """Return an unused id for an arm that is about to learn."""
        if self._vacant:
            record = heapq.heappop(self._vacant)
        else:
            record, self._count = self._count, self._count + 1
            if record >= len(self._owner):
                self._owner = np.concatenate([self._owner, np.full(ROOM + record // GROWTH, UNASSIGNED)])
        if len(self._homes) != len(self._owner):
            self._homes = assign_shards(np.arange(len(self._owner)), self.supervisor.numbers)
        self._owner[record], self._split = self._homes[record], None
        return record

    def release(self, record: int) -> None:
        """Mark the id `record` of an arm as unused, and let the arm's shard delete the model."""
        self.supervisor.apply({int(self._owner[record]): ("release", np.array([record]))})
        self._owner[record], self._split = UNASSIGNED, None
        heapq.heappush(self._vacant, record)

    def split_by_shard(self, records: np.ndarray) -> list[tuple[int, np.ndarray]]:
        """Return pairs of a shard's number and the indices into `records`, an array of arm ids, of its arms.

        Arms without rows are under the number -1.
        """
        known = self._split
        if known is None or known[0] is not records:
            owners = np.where(records == NONE, UNSHARDED, self._owner[records] if self._count else UNSHARDED)
            known = records, [(s, np.flatnonzero(owners == s)) for s in np.unique(owners).tolist()]
            self._split = known
        return known[1]

    def move(self, numbers: list[int]) -> int:
        """Make `numbers` the shards, move the arms whose shard changes, and return how many arms moved."""
        supervisor, owner = self.supervisor, self._owner[: self._count]
        wanted = (
            np.where(owner == UNASSIGNED, UNASSIGNED, assign_shards(np.arange(len(owner)), numbers))
            if len(owner)
            else owner
        )
        moving = np.flatnonzero(wanted != owner)
        for number in numbers:
            if number not in supervisor.members:
                supervisor.start(number)
        leaving = {int(s): moving[owner[moving] == s] for s in np.unique(owner[moving])}
        models = supervisor.ask({s: ("export_arms", 0, arms) for s, arms in leaving.items()})
        each = dict(zip(np.concatenate([*leaving.values(), moving[:0]]).tolist(), itertools.chain(*models.values())))
        coming = {int(s): moving[wanted[moving] == s] for s in np.unique(wanted[moving])}
        supervisor.apply({s: ("import_arms", arms, [each[arm] for arm in arms.tolist()]) for s, arms in coming.items()})
        supervisor.apply({s: ("release", arms) for s, arms in leaving.items() if s in numbers})
        for number in [number for number in supervisor.numbers if number not in numbers]:
            supervisor.stop(number)
        owner[moving], self._split, self._homes = wanted[moving], None, np.zeros(0, np.int64)
        return len(moving)

    # ---- learning ----

    def learn_one(self, record: int, row: np.ndarray, reward: float) -> None:
        """Learn the reward of a row (dim,) in the model of the arm with the id `record`, on the arm's shard."""
        self.supervisor.apply({int(self._owner[record]): ("learn_one", record, row.copy(), reward)})

    def learn(
        self, records: np.ndarray, starts: np.ndarray, order: np.ndarray, rows: np.ndarray, right: np.ndarray,
        rewards: np.ndarray, extra: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """Learn rows grouped by arm on the shards of these arms.

        The arm with the id records[g] learns the rows order[starts[g]:starts[g + 1]] of `rows` (n, dim), with `rewards`
        (n,). Contexts are these rows, with right (n, 0), or outer products of rows (n, d_u) and right (n, d_a). `extra`
        (n, k) holds the features of the shared part of a hybrid model; k is 0 for other models.

        Returns what the shared part has to learn, in the order of `rows`: rows (n, k), and targets (n,). Without a
        shared part both are empty.
        """
        increments, targets = np.empty_like(extra), np.empty(len(extra) if extra.shape[1] else 0)
        counts, owners, each, places = np.diff(starts), self._owner[records], {}, {}
        for shard in np.unique(owners).tolist():
            mine = np.flatnonzero(owners == shard)
            own = order if len(mine) == len(records) else order[np.repeat(owners, counts) == shard]
            places[shard] = own
            each[shard] = ("learn", records[mine], counts[mine], rows[own], right[own], rewards[own], extra[own])
        for shard, (increment, target) in self.supervisor.apply(each).items():
            if extra.shape[1]:
                increments[places[shard]], targets[places[shard]] = increment, target
        return increments, targets

    def write_arm(self, record: int, arm: Any) -> None:
        """Replace the model of the arm with the id `record` by an exported model, on the arm's shard."""
        self.supervisor.apply({int(self._owner[record]): ("import_arms", np.array([record]), [arm])})

    # ---- predictions ----

    def evaluate(
        self, records: np.ndarray, rows: np.ndarray, extra: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return predicted rewards (K,) and x^T A^-1 x (K,) of the arms with ids `records`, and `extra` (K, k).

        `rows` (K, dim) has a row x for each arm, or (1, dim) one for all, and A is the arm's design. `extra` holds the
        shared features z of a hybrid model, from which each arm subtracts, in place, what it explains itself.
        """
        means, squares = np.empty(len(records)), np.empty(len(records))
        for places, (mean, square, rest) in self._ask_shards(
            records, "evaluate", lambda own: (rows[own] if len(rows) > 1 else rows, extra[own])
        ):
            means[places], squares[places], extra[places] = mean, square, rest
        return means, squares, extra

    def evaluate_users(
        self, records: np.ndarray, left: np.ndarray, right: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return predicted rewards (n, K) and x^T A^-1 x (n, K) of the K arms with ids `records`.

        Each row x of `left` (n, dim) is the context of every arm, and A is the design of the arm. With `right` (K, d_a)
        the context is the outer product of the row and the arm's row of `right`.
        """
        means, squares = np.empty((len(left), len(records))), np.empty((len(left), len(records)))
        for places, (mean, square) in self._ask_shards(
            records, "evaluate_users", lambda own: (left, None if right is None else right[own])
        ):
            means[:, places], squares[:, places] = mean, square
        return means, squares

    def exploration_scales(self, records: np.ndarray, theory: np.ndarray) -> np.ndarray:
        """Return the multiplier (K,) of the exploration width for each arm, given the ids `records` of the arms.

        If `theory` holds (noise, parameter_bound, row_bound, delta), the multipliers are confidence radii. If it is
        empty, they are 1.
        """
        out = np.ones(len(records))
        for places, found in (
            self._ask_shards(records, "exploration_scales", lambda own: (theory,)) if theory.size else ()
        ):
            out[places] = found
        return out

    def _ask_shards(self, records: np.ndarray, method: str, arguments: Any) -> list[tuple[np.ndarray, Any]]:
        """Call a method of the store on every shard that has arms with the ids `records`.

        Returns a list of pairs: the indices into `records` of the shard's arms, and the answer. `method` is the name of
        the method, and `arguments(indices)` returns the further arguments of the method.
        """
        split, ask_prior = self.split_by_shard(records), getattr(self.prior_store, method)
        found = self.supervisor.ask(
            {s: ("call_store", self._version, method, records[at], *arguments(at)) for s, at in split if s != UNSHARDED}
        )
        return [(at, found[s] if s != UNSHARDED else ask_prior(records[at], *arguments(at))) for s, at in split]

    def error_bound(self) -> float:
        """Return the largest proven bound of ||A - A_hat||_2 over all arms, A_hat being the sketch of the design A."""
        return max(self.supervisor.ask_all("error_bound"), default=0.0)

    def relative_loss(self) -> float:
        """Return the largest relative loss of an arm's sketch (design/loss.py), 0 for exact designs.

        The relative loss is the sum of squares along a direction that truncations have removed, divided by the ridge
        penalty.
        """
        return max(self.supervisor.ask_all("relative_loss"), default=0.0)

    def export_arm(self, record: int) -> ArmState:
        """Return an exact copy of the model of the arm with the id `record`."""
        if record == NONE:
            return self.prior_store.export_arm(record)
        shard = int(self._owner[record])
        return self.supervisor.ask({shard: ("export_arms", self._version, np.array([record]))})[shard][0]

    # ---- readers ----

    def snapshot(self) -> "ShardedStore":
        """Return a read-only store with the arms as they are now.

        The shards keep the copies until the snapshot is garbage-collected.
        """
        twin = ShardedStore(self.models)
        twin.supervisor, twin._version, twin._count = self.supervisor, next(self._versions), self._count
        twin._owner = self._owner.copy()
        gone, self.supervisor.dropped_versions = self.supervisor.dropped_versions, []
        self.supervisor.ask_all("publish", twin._version, gone)
        weakref.finalize(twin, self.supervisor.drop_version, twin._version)
        return twin
