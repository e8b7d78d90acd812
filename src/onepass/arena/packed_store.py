"""Store that packs the models of all arms into one arena (arena.py); its loops are compiled."""

import heapq
import os
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from onepass.arena import arena as arenas
from onepass.arena import arm_transfer, learning, scoring, simulate
from onepass.arena.arena import NONE, ArenaState
from onepass.arena.model_store import is_partition, is_valid_prior, make_prior
from onepass.arena.read_replicas import Replicas
from onepass.arena.rewards import unit_of_arms
from onepass.design.truncation import Truncation
from onepass.estimator.estimator import ArmLearning, Estimator
from onepass.foundation.generic import call_direct, is_registered

BLOCK_BYTES = 32_000_000  # of rows learned at a time: slots are reserved for them, and most are given back
LEAST_ROWS, MOST_ROWS = 64, 1024  # of a block; more where slots are many, as it reserves one a row
SHARE = 8  # of the slots in use, that much of a block more
GROWTH = 64  # arrays that are full grow by so much, in place: pages move, not bytes, and little room is spare
RECORDS = 16  # and by as many arms more
ONE_THREAD = 4_000_000  # numbers: a smaller batch is learned before another thread has begun


class _RefcountProbe(NamedTuple):
    """State with one array, used to measure how many references a state itself adds to its array."""

    array: np.ndarray


def _count_references(array: np.ndarray) -> int:
    """Count the references to an array attribute, including those of views and of computations in progress."""
    return sys.getrefcount(array)


_probe = _RefcountProbe(np.zeros(0))
SOLE_OWNER = _count_references(_probe.array)  # of an array that nobody has but the state it is an attribute of


def _resize_array(state: NamedTuple, name: str, length: int) -> np.ndarray:
    """Give the first axis of a state's array `name` a new length, and return the array.

    The array is resized in place if nothing else refers to it, which avoids a second copy of a large arena.
    """
    alone = _count_references(getattr(state, name)) == SOLE_OWNER
    array: np.ndarray = getattr(state, name)
    if alone and array.flags.owndata:
        array.resize((length, *array.shape[1:]), refcheck=False)
        return array
    grown = np.zeros((length, *array.shape[1:]), array.dtype)
    grown[: min(length, len(array))] = array[:length]
    return grown


class PackedStore:
    """Store that packs the models of all arms into a few shared arrays, the arena (arena.py).

    `reader` is the token of a reader whose copy of the arena this store is, None for the store that learns.
    """

    reader: Any = None  # of a store that is a copy for readers

    def __init__(self, estimator: Estimator, extra: int = 0, threads: int | None = None) -> None:
        design: Any = estimator.design
        cutting, arm_learning = design.truncation(), estimator.arm_learning()
        assert isinstance(cutting, Truncation)
        assert isinstance(arm_learning, ArmLearning)
        kind, dim, hold = design.dtype, design.dim, min(cutting.hold, design.dim)
        slots, arm_ids = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.threads = threads
        self._rule, self._limit, self._arm_rule = cutting.rule, cutting.limit, arm_learning.rule
        self._has_noise_unit = is_registered(unit_of_arms, arm_learning.rule)
        self.state = ArenaState(
            basis=np.zeros((0, dim), kind),
            root=np.zeros((0, hold), kind),
            moment=np.zeros(0, kind),
            weight=np.zeros(0, kind),
            cross=np.zeros((0, extra), kind),
            link=slots,
            first=arm_ids,
            used=arm_ids.copy(),
            n_slots=arm_ids.copy(),
            outside=arm_ids.copy(),
            rows=arm_ids.copy(),
            ridge=np.zeros(0),
            log_det=np.zeros(0),
            mass=np.zeros(0),
            shed=np.zeros(0),
            weighted=np.zeros(0),
            dust=np.zeros(0),
            memory=np.zeros((0, arm_learning.memory)),
            free=NONE,
            top=0,
            prior=make_prior(estimator, hold),
        )
        self._vacant_ids: list[int] = []  # a heap: the lowest is filled first, as after a file was read
        self._replicas = Replicas()  # for readers
        self._code: dict[Any, Callable] = {}  # compiled for the types of this state
        self._count = 0  # records in use or vacant; the arrays may be longer
        self._free = 0  # slots that are known to be free, and perhaps more

    def fits(self, state: ArenaState, taken: np.ndarray) -> bool:
        mine, slots, arm_ids = self.state, state.basis.shape[0], state.first.shape[0]
        dim, hold = mine.basis.shape[1], mine.root.shape[1]
        shaped = all(
            getattr(state, name).shape
            == (slots if name in arenas.PER_SLOT else arm_ids, *getattr(mine, name).shape[1:])
            for name in (*arenas.PER_SLOT, *arenas.PER_ARM)
        )
        sane = shaped and is_valid_prior(state.prior, dim, hold) and bool(arenas.is_consistent(state))
        return sane and is_partition(taken, np.flatnonzero(state.rows < 0), arm_ids)

    def restore(self, state: ArenaState) -> None:
        self.state, self._count, self._free, self._replicas = state, len(state.first), 0, Replicas()
        self._code = {}
        self._vacant_ids = np.flatnonzero(state.rows < 0).tolist()

    def _grow(self, names: tuple[str, ...], length: int) -> None:
        grown: dict[str, Any] = {name: _resize_array(self.state, name, length) for name in names}
        self.state = self.state._replace(**grown)

    def to_state(self) -> ArenaState:
        slots = {name: getattr(self.state, name)[: self.state.top] for name in arenas.PER_SLOT}
        return self.state._replace(**slots, **{n: getattr(self.state, n)[: self._count] for n in arenas.PER_ARM})

    def _allocate_id(self) -> int:
        """Return an id that no arm has, and mark it as taken."""
        if self._vacant_ids:
            return heapq.heappop(self._vacant_ids)
        arm_id, self._count = self._count, self._count + 1
        if arm_id >= self.state.first.size:
            self._grow(arenas.PER_ARM, arm_id + RECORDS + arm_id // GROWTH)
        return arm_id

    def allocate(self) -> int:
        arm_id = self._allocate_id()
        self._ensure_slots(self.state.prior.space.used, reuse=True)
        free, top = arenas.init_arm(self.state, arm_id)
        self._commit(free, top, [arm_id])
        return arm_id

    def release(self, arm_id: int) -> None:
        self._commit(arenas.delete_arm(self.state, arm_id), self.state.top, [arm_id])
        heapq.heappush(self._vacant_ids, arm_id)

    def _commit(self, free: int, top: int, changed: Iterable[int]) -> None:
        """Store the arena's new fields `free` and `top`, and mark the arms with ids `changed` in the readers' copies.

        A slot holds one direction of one arm. `free` is the first free slot, and `top` the number of slots ever used.
        """
        self.state = self.state._replace(free=free, top=top)
        self._replicas.mark_changed(changed)

    def snapshot(self) -> "PackedStore":
        """Return a read-only store with the models of all arms as they are now.

        It uses a copy of the arrays in which only the arms that changed since its last use are updated
        (read_replicas.py).
        """
        twin = copy(self)
        twin.state, twin.reader = self._replicas.acquire(self.state)
        twin._vacant_ids, twin._replicas, twin._code = list(self._vacant_ids), Replicas(), {}
        return twin

    def _ensure_slots(self, slots: int, reuse: bool = False) -> None:
        """Enlarge the arena unless there is room for `slots` more slots.

        A slot holds one direction of one arm. The field `top` is the number of slots ever used. The slots above it are
        room, and if `reuse` is True, the free slots below it, too.
        """
        state, self._free = self.state, max(0, self._free - slots)
        if state.top + slots <= state.link.size or (reuse and self._free > 0):
            return
        if reuse:
            taken = state.n_slots[: self._count].sum() + np.count_nonzero(state.outside[: self._count] != NONE)
            self._free = int(state.top - taken - slots)
        if not reuse or self._free < 0:
            self._free = 0
            self._grow(arenas.PER_SLOT, state.top + slots + state.top // GROWTH)

    def learn_one(self, arm_id: int, row: np.ndarray, reward: float) -> None:
        self._ensure_slots(2)
        given = self.state, self._rule, self._limit, self._arm_rule, arm_id, row, reward
        free, top = call_direct(self._code if row.flags.carray else None, learning.learn_one, *given)
        self._commit(free, top, [arm_id])

    def learn(
        self, arm_ids: np.ndarray, starts: np.ndarray, order: np.ndarray, rows: np.ndarray, right: np.ndarray,
        rewards: np.ndarray, extra: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """Learn groups of rows, one group for each arm: arm_ids[g] learns rows order[starts[g]:starts[g + 1]].

        Contexts are rows (n, dim) with right (n, 0), or outer products of rows (n, d_u) and right (n, d_a); extra (n,
        k) holds the shared features of a hybrid model. Returns what its shared part has to learn: rows (n, k) and
        targets (n,).
        Threads share the arms in blocks. One thread computes each arm, so results do not depend on the number of
        threads.
        """
        found = np.empty_like(extra), np.empty(len(extra) if extra.shape[1] else 0)
        counts, hold = np.diff(starts), self.state.root.shape[1]
        width = self.state.basis.shape[1] * rows.itemsize
        wanted = np.cumsum(np.minimum(counts, hold) + 1)
        step = max(min(BLOCK_BYTES // width, MOST_ROWS + self.state.top // SHARE), LEAST_ROWS)
        threads = (self.threads or os.cpu_count() or 1) if len(rows) * width > ONE_THREAD else 1
        with ThreadPoolExecutor(threads) as pool:
            begin = 0
            while begin < arm_ids.size:
                before = wanted[begin - 1] if begin else 0
                end = int(np.searchsorted(wanted, before + step, side="right"))
                end = max(end, begin + 1)
                self._learn_block(
                    begin, end, (arm_ids, starts, order, rows, right, rewards, extra), found, pool, threads
                )
                begin = end
        return found

    def _learn_block(
        self, begin: int, end: int, batch: Any, found: Any, pool: ThreadPoolExecutor, threads: int
    ) -> None:
        """Learn the groups `begin` to `end - 1` of a batch, a group being the rows of one arm.

        `batch` is the tuple of the arguments of `learn`, and `found` holds the arrays that receive what the shared part
        of a hybrid model has to learn. The groups are divided among `threads` threads of `pool`. No reference to the
        arrays remains afterwards, so that they can grow in place.
        """
        arm_ids, starts = batch[:2]
        block, counts = arm_ids[begin:end], np.diff(starts[begin : end + 1])
        self._ensure_slots(self._count_missing_slots(block, counts))
        free, top = arenas.reserve_slots(self.state, block, counts)
        work: Any = (self.state, self._rule, self._limit, self._arm_rule, *batch)
        edges = np.searchsorted(starts, np.linspace(starts[begin], starts[end], threads + 1)[1:-1])
        edges = np.unique([begin, *edges, end])
        if edges.size == 2:
            learning.learn_arms(*work, begin, end, *found)
        else:
            jobs = [
                pool.submit(learning.learn_arms, *work, int(a), int(b), *found)  # type: ignore[call-arg]
                for a, b in pairwise(edges)
            ]
            for job in jobs:
                job.result()
        self._commit(arenas.release_slots(self.state, block, free), top, block.tolist())

    def _count_missing_slots(self, block: np.ndarray, counts: np.ndarray) -> int:
        """Count the slots that `reserve_slots` will take for `counts` (n,) more rows of the n arms with ids `block`.

        A slot holds one direction of one arm.
        """
        state, dim, hold = self.state, self.state.basis.shape[1], self.state.root.shape[1]
        reach = state.used[block] + counts
        loses = (reach > hold) & (dim > hold) & (state.outside[block] == NONE)
        return int((np.minimum(reach, hold) - state.n_slots[block] + loses).sum())

    def play(
        self, rule: Any, rounds: int, tally: Any, arm_ids: np.ndarray, contexts: np.ndarray, rewards: np.ndarray,
        normals: np.ndarray, lots: np.ndarray, scored: np.ndarray,
    ) -> tuple[Any, np.ndarray, np.ndarray]:  # fmt: skip
        """Play T recorded rounds in compiled code: score the arms, choose one, and learn its reward.

        `contexts` (T, K or 1, dim) holds the rows of the arms, `rewards` (T, K) the reward of every arm, and `arm_ids`
        (K,) the arms' ids. `rule` is the exploration rule. Its random numbers are normals (T, pairs, K), with two draws
        for each pair, and uniforms `lots` (T, 2). `tally` holds the sums of squared residuals, and `rounds` is the
        number of rewards learned. scored (T, 3) receives the predicted reward and the score of the chosen arm, and the
        largest score; with (0, 3) nothing is stored.

        Returns the new `tally`, the chosen arms (T,), and the arm ids (K,) afterwards.
        """
        missing = int(np.count_nonzero(arm_ids == NONE))
        fresh = np.array([self._allocate_id() for _ in range(missing)], np.int64)
        self._ensure_slots(simulate.count_slots_for_rounds(self.state, len(contexts), len(arm_ids)))
        settings = (self.state, self._rule, self._limit, self._arm_rule, rule, rounds, tally)
        given = arm_ids, fresh, contexts, rewards, normals, lots, scored
        state, tally, arms, taken = simulate.play_rounds(*settings, *given)
        self._commit(state.free, state.top, arm_ids[arm_ids != NONE].tolist())
        for arm_id in fresh[taken:][::-1].tolist():
            self._return_id(arm_id)
        return tally, arms, arm_ids

    def _return_id(self, arm_id: int) -> None:
        """Return the id that was allocated last, if no arm was initialized with it."""
        if arm_id == self._count - 1:
            self._count = arm_id
        else:
            self.state.rows[arm_id] = NONE
            heapq.heappush(self._vacant_ids, arm_id)

    def evaluate(
        self, arm_ids: np.ndarray, rows: np.ndarray, extra: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return *self._evaluate_arms(arm_ids, rows, extra), extra

    def _evaluate_arms(self, arm_ids: np.ndarray, rows: np.ndarray, extra: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        plain = arm_ids.flags.carray and rows.flags.carray and extra.flags.carray
        found: tuple[np.ndarray, np.ndarray] = call_direct(
            self._code if plain else None, scoring.evaluate_arms, self.state, arm_ids, rows, extra
        )
        return found

    def evaluate_users(
        self, arm_ids: np.ndarray, left: np.ndarray, right: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        if right is not None:
            return scoring.evaluate_factors(self.state, arm_ids, left, right)
        if len(left) > 1:
            return scoring.evaluate_users(self.state, arm_ids, left)
        means, squares = self._evaluate_arms(arm_ids, left, np.empty((len(arm_ids), 0), left.dtype))
        return means[None], squares[None]

    def exploration_scales(self, arm_ids: np.ndarray, theory: np.ndarray) -> np.ndarray:
        if not theory.size and not self._has_noise_unit:
            return np.ones(len(arm_ids))
        return scoring.exploration_scales(self.state, self._rule, self._limit, self._arm_rule, arm_ids, theory)

    def error_bound(self) -> float:
        """Return the largest proven bound of ||A - A_hat||_2 over all arms.

        It is infinite once projector splitting has truncated.
        """
        return learning.error_bound(self.state, self._rule, self._count)

    def relative_loss(self) -> float:
        return float((self.state.shed[: self._count] / self.state.ridge[: self._count]).max(initial=0.0))

    # ---- single arms (arm_transfer.py) ----

    def export_arm(self, arm_id: int) -> arm_transfer.PackedArm:
        return arm_transfer.make_prior_arm(self.state) if arm_id == NONE else arm_transfer.copy_arm(self.state, arm_id)

    def write_arm(self, arm_id: int, arm: arm_transfer.PackedArm) -> None:
        released = int(self.state.n_slots[arm_id]) + (self.state.outside[arm_id] != NONE)
        self._ensure_slots(max(0, len(arm.moment) + len(arm.outside) - released), reuse=True)
        free, top = arm_transfer.write_arm(self.state, arm_id, arm)
        self._commit(free, top, [arm_id])
