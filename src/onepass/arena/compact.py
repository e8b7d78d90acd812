"""All arms in one arena (arena.py): its slots grow with what was learned; what learns, scores and moves is compiled."""

import heapq
import os
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from onepass.arena import arena as arenas
from onepass.arena import learning, moving, playing, scoring
from onepass.arena.arena import NONE, ArenaState
from onepass.arena.published import Copies
from onepass.arena.rewards import unit_of_arms
from onepass.arena.stores import each_once, prior_of, sound
from onepass.design.cutting import Cutting
from onepass.estimator.estimator import Estimator, Weighing
from onepass.foundation.generic import defined

BLOCK_BYTES = 32_000_000  # of rows learned at a time: slots are reserved for them, and most are given back
LEAST_ROWS, MOST_ROWS = 64, 1024  # of a block; more where slots are many, as it reserves one a row
SHARE = 8  # of the slots in use, that much of a block more
GROWTH = 64  # arrays that are full grow by so much, in place: pages move, not bytes, and little room is spare
RECORDS = 16  # and by as many arms more
ONE_THREAD = 4_000_000  # numbers: a smaller batch is learned before another thread has begun


class Moment(NamedTuple):
    """A state of one array, to count with."""

    array: np.ndarray


def _holders(array: np.ndarray) -> int:
    """Count the references to an array that an attribute hands on, views and running computations included."""
    return sys.getrefcount(array)


_moment = Moment(np.zeros(0))
ALONE = _holders(_moment.array)  # of an array that nobody has but the state it is an attribute of


def _resized(state: NamedTuple, name: str, length: int) -> np.ndarray:
    """The array with another first axis: in place where nobody else has it (no second copy of a large arena)."""
    alone = _holders(getattr(state, name)) == ALONE
    array: np.ndarray = getattr(state, name)
    if alone and array.flags.owndata:
        array.resize((length, *array.shape[1:]), refcheck=False)
        return array
    grown = np.zeros((length, *array.shape[1:]), array.dtype)
    grown[: min(length, len(array))] = array[:length]
    return grown


class Compact:
    """All arms in one arena (see arena.py)."""

    reader: Any = None  # of a store that is a copy for readers

    def __init__(self, estimator: Estimator, extra: int = 0, threads: int | None = None) -> None:
        design: Any = estimator.design
        cutting, weighing = design.cutting(), estimator.weighing()
        assert isinstance(cutting, Cutting)
        assert isinstance(weighing, Weighing)
        kind, dim, hold = design.dtype, design.dim, min(cutting.hold, design.dim)
        slots, records = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.threads = threads
        self._rule, self._limit, self._weighing = cutting.rule, cutting.limit, weighing.rule
        self._scaled = defined(unit_of_arms, weighing.rule)
        self.state = ArenaState(
            basis=np.zeros((0, dim), kind),
            root=np.zeros((0, hold), kind),
            moment=np.zeros(0, kind),
            weight=np.zeros(0, kind),
            cross=np.zeros((0, extra), kind),
            link=slots,
            first=records,
            used=records.copy(),
            held=records.copy(),
            outside=records.copy(),
            rows=records.copy(),
            ridge=np.zeros(0),
            log_det=np.zeros(0),
            mass=np.zeros(0),
            shed=np.zeros(0),
            weighted=np.zeros(0),
            dust=np.zeros(0),
            memory=np.zeros((0, weighing.memory)),
            free=NONE,
            top=0,
            prior=prior_of(estimator, hold),
        )
        self._vacant: list[int] = []  # a heap: the lowest is filled first, as after a file was read
        self._copies = Copies()  # for readers
        self._count = 0  # records in use or vacant; the arrays may be longer
        self._free = 0  # slots that are known to be free, and perhaps more

    def fits(self, state: ArenaState, taken: np.ndarray) -> bool:
        mine, slots, records = self.state, state.basis.shape[0], state.first.shape[0]
        dim, hold = mine.basis.shape[1], mine.root.shape[1]
        shaped = all(
            getattr(state, name).shape
            == (slots if name in arenas.PER_SLOT else records, *getattr(mine, name).shape[1:])
            for name in (*arenas.PER_SLOT, *arenas.PER_ARM)
        )
        sane = shaped and sound(state.prior, dim, hold) and bool(arenas.orderly(state))
        return sane and each_once(taken, np.flatnonzero(state.rows < 0), records)

    def restore(self, state: ArenaState) -> None:
        self.state, self._count, self._free, self._copies = state, len(state.first), 0, Copies()
        self._vacant = np.flatnonzero(state.rows < 0).tolist()

    def _grow(self, names: tuple[str, ...], length: int) -> None:
        grown: dict[str, Any] = {name: _resized(self.state, name, length) for name in names}
        self.state = self.state._replace(**grown)

    def kept(self) -> ArenaState:
        slots = {name: getattr(self.state, name)[: self.state.top] for name in arenas.PER_SLOT}
        return self.state._replace(**slots, **{n: getattr(self.state, n)[: self._count] for n in arenas.PER_ARM})

    def _record(self) -> int:
        """A record that no arm has."""
        if self._vacant:
            return heapq.heappop(self._vacant)
        record, self._count = self._count, self._count + 1
        if record >= self.state.first.size:
            self._grow(arenas.PER_ARM, record + RECORDS + record // GROWTH)
        return record

    def open(self) -> int:
        record = self._record()
        self._room(self.state.prior.space.used, holes=True)
        free, top = arenas.begin(self.state, record)
        self._settle(free, top, [record])
        return record

    def close(self, record: int) -> None:
        self._settle(arenas.vacate(self.state, record), self.state.top, [record])
        heapq.heappush(self._vacant, record)

    def _settle(self, free: int, top: int, changed: Iterable[int]) -> None:
        """Write down what is free after some arms have changed."""
        self.state = self.state._replace(free=free, top=top)
        self._copies.changed(changed)

    def published(self) -> "Compact":
        """A store that stays as it is now, for readers: of a copy that only what has changed since the last was written
        to (published.py)."""
        twin = copy(self)
        twin.state, twin.reader = self._copies.current(self.state)
        twin._vacant, twin._copies = list(self._vacant), Copies()
        return twin

    def _room(self, slots: int, holes: bool = False) -> None:
        """Make sure that `slots` more can be taken above the top; holes: or from those that are free."""
        state, self._free = self.state, max(0, self._free - slots)
        if state.top + slots <= state.link.size or (holes and self._free > 0):
            return
        if holes:
            taken = state.held[: self._count].sum() + np.count_nonzero(state.outside[: self._count] != NONE)
            self._free = int(state.top - taken - slots)
        if not holes or self._free < 0:
            self._free = 0
            self._grow(arenas.PER_SLOT, state.top + slots + state.top // GROWTH)

    def learn_one(self, record: int, row: np.ndarray, reward: float) -> None:
        self._room(2)
        free, top = learning.learn_one(self.state, self._rule, self._limit, self._weighing, record, row, reward)
        self._settle(free, top, [record])

    def learn(
        self, records: np.ndarray, starts: np.ndarray, order: np.ndarray, rows: np.ndarray, right: np.ndarray,
        rewards: np.ndarray, extra: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """Arms are dealt to threads in blocks; every arm is computed by one of them, so results do not depend on how
        many."""
        found = np.empty_like(extra), np.empty(len(extra) if extra.shape[1] else 0)
        counts, hold = np.diff(starts), self.state.root.shape[1]
        width = self.state.basis.shape[1] * rows.itemsize
        wanted = np.cumsum(np.minimum(counts, hold) + 1)
        step = max(min(BLOCK_BYTES // width, MOST_ROWS + self.state.top // SHARE), LEAST_ROWS)
        threads = (self.threads or os.cpu_count() or 1) if len(rows) * width > ONE_THREAD else 1
        with ThreadPoolExecutor(threads) as pool:
            begin = 0
            while begin < records.size:
                before = wanted[begin - 1] if begin else 0
                end = int(np.searchsorted(wanted, before + step, side="right"))
                end = max(end, begin + 1)
                self._learn_block(
                    begin, end, (records, starts, order, rows, right, rewards, extra), found, pool, threads
                )
                begin = end
        return found

    def _learn_block(
        self, begin: int, end: int, batch: Any, found: Any, pool: ThreadPoolExecutor, threads: int
    ) -> None:
        """Groups begin .. end - 1 of a batch. Nothing refers to the arrays afterwards, which may then grow in place."""
        records, starts = batch[:2]
        block, counts = records[begin:end], np.diff(starts[begin : end + 1])
        self._room(self._missing(block, counts))
        free, top = arenas.reserve(self.state, block, counts)
        work: Any = (self.state, self._rule, self._limit, self._weighing, *batch)
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
        self._settle(arenas.release(self.state, block, free), top, block.tolist())

    def _missing(self, block: np.ndarray, counts: np.ndarray) -> int:
        """Count the slots that `reserve` will take for `counts` more rows of arms."""
        state, dim, hold = self.state, self.state.basis.shape[1], self.state.root.shape[1]
        reach = state.used[block] + counts
        loses = (reach > hold) & (dim > hold) & (state.outside[block] == NONE)
        return int((np.minimum(reach, hold) - state.held[block] + loses).sum())

    def play(
        self, rule: Any, rounds: int, tally: Any, records: np.ndarray, contexts: np.ndarray, rewards: np.ndarray,
        normals: np.ndarray, lots: np.ndarray,
    ) -> tuple[Any, np.ndarray, np.ndarray]:  # fmt: skip
        """Rounds by playing.py: the tally, the arms, and the records (K,) as they are after."""
        missing = int(np.count_nonzero(records == NONE))
        fresh = np.array([self._record() for _ in range(missing)], np.int64)
        self._room(playing.room_for(self.state, len(contexts), len(records)))
        settings = (self.state, self._rule, self._limit, self._weighing, rule, rounds, tally)
        state, tally, arms, taken = playing.play_rounds(*settings, records, fresh, contexts, rewards, normals, lots)
        self._settle(state.free, state.top, records[records != NONE].tolist())
        for record in fresh[taken:][::-1].tolist():
            self._unused(record)
        return tally, arms, records

    def _unused(self, record: int) -> None:
        """Give a record back that was asked for last and not begun."""
        if record == self._count - 1:
            self._count = record
        else:
            self.state.rows[record] = NONE
            heapq.heappush(self._vacant, record)

    def evaluate(
        self, records: np.ndarray, rows: np.ndarray, extra: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return *scoring.evaluate_arms(self.state, records, rows, extra), extra

    def evaluate_users(
        self, records: np.ndarray, left: np.ndarray, right: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        if right is not None:
            return scoring.evaluate_factors(self.state, records, left, right)
        if len(left) > 1:
            return scoring.evaluate_users(self.state, records, left)
        means, squares = scoring.evaluate_arms(self.state, records, left, np.empty((len(records), 0), left.dtype))
        return means[None], squares[None]

    def scales(self, records: np.ndarray, theory: np.ndarray) -> np.ndarray:
        if not theory.size and not self._scaled:
            return np.ones(len(records))
        return scoring.scales(self.state, self._rule, self._limit, self._weighing, records, theory)

    def error_bound(self) -> float:
        """Infinite once projector splitting has cut something."""
        return learning.error_bound(self.state, self._rule, self._count)

    def relative_loss(self) -> float:
        return float((self.state.shed[: self._count] / self.state.ridge[: self._count]).max(initial=0.0))

    # ---- single arms (moving.py) ----

    def export(self, record: int) -> moving.Arm:
        return moving.prior_arm(self.state) if record == NONE else moving.taken_out(self.state, record)

    def put(self, record: int, arm: moving.Arm) -> None:
        released = int(self.state.held[record]) + (self.state.outside[record] != NONE)
        self._room(max(0, len(arm.moment) + len(arm.outside) - released), holes=True)
        free, top = moving.put_in(self.state, record, arm)
        self._settle(free, top, [record])
