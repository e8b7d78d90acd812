"""Where the models of many arms live: `Compact`, one arena for all, or `Separate`, one state of the design per arm.

Both answer the same questions about records (an arm that has learned; NONE is an arm that has not):
learn a batch grouped by arm, means and x^T A^-1 x, confidence radii. Separate takes every design, Compact those whose
rule for cutting directions the arena knows: Exact, FrequentDirections, ProjectorSplitting.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, Protocol, Self

import numpy as np

from onepass.arena import arena as arenas
from onepass.arena import learning, scoring
from onepass.arena.arena import NONE, ArenaState, Cut
from onepass.design import contract
from onepass.design.design import Design
from onepass.design.exact import Exact
from onepass.design.frequent_directions import FrequentDirections
from onepass.design.projector_splitting import ProjectorSplitting
from onepass.estimator.contract import parameter, radius, update_rows
from onepass.estimator.estimator import Estimator
from onepass.estimator.one_pass_huber import OnePassHuber
from onepass.estimator.ridge import Ridge
from onepass.features.factors import products
from onepass.foundation import state as states
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import dot

BLOCK_BYTES = 32_000_000  # of rows learned at a time: slots are reserved for them, and most are given back


class Store(Protocol):
    """What a bandit asks of either store. Rows (n, dim); extra (n, k): shared features z of a hybrid model."""

    @property
    def state(self) -> Any: ...
    def open(self) -> int: ...
    def close(self, record: int) -> None: ...
    def learn_one(self, record: int, row: np.ndarray, reward: float) -> None: ...
    def learn(
        self, records: np.ndarray, starts: np.ndarray, order: np.ndarray, rows: np.ndarray, right: np.ndarray,
        rewards: np.ndarray, extra: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]: ...  # fmt: skip
    def evaluate(self, records: np.ndarray, rows: np.ndarray, extra: np.ndarray) -> tuple[np.ndarray, np.ndarray]: ...
    def evaluate_users(self, records: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]: ...
    def evaluate_factors(
        self, records: np.ndarray, left: np.ndarray, right: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]: ...
    def radii(self, records: np.ndarray, constants: np.ndarray) -> np.ndarray: ...
    def rows(self, record: int) -> int: ...
    def error_bound(self) -> float: ...
    def parameter(self, record: int) -> np.ndarray: ...
    def copy(self) -> Self: ...
    def trim(self) -> None: ...
    def template(self, records: int) -> Any: ...
    def records(self, state: Any) -> int: ...
    def vacant(self, state: Any) -> np.ndarray: ...
    def restore(self, state: Any) -> bool: ...


def cut_of(design: Design) -> Cut | None:
    """The arena's rule for a design; None where it has none."""
    dim, reg = design.dim, design.params["reg"]
    if type(design) is Exact:
        return Cut(arenas.NEVER, dim, dim, dim + 1, 0.0, reg)
    if type(design) is FrequentDirections:
        size = design.params["size"]
        return Cut(arenas.FREQUENT_DIRECTIONS, size, 2 * size - 1, 2 * size, design.params["compensation"], reg)
    if type(design) is ProjectorSplitting:
        rank = design.params["rank"]
        return Cut(arenas.SPLITTING, rank, rank, 2 * rank, float(design.params["compensate"]), reg)
    return None


def rule_of(estimator: Estimator) -> Any:
    """What the arena learns for an estimator; None where it cannot."""
    if isinstance(estimator, Ridge):
        return ()
    if isinstance(estimator, OnePassHuber) and type(estimator.design) is Exact:
        s = estimator.begin()
        return arenas.Winsor(s.noise.nu, s.tail, s.practice) if s.tail.parameter_bound == np.inf else None
    return None


def _resized(array: np.ndarray, length: int) -> np.ndarray:
    """The array with another first axis: in place where its memory is its own (no second copy of a large arena)."""
    try:
        array.resize((length, *array.shape[1:]), refcheck=False)  # nobody keeps views of an arena
        return array
    except ValueError:
        grown = np.zeros((length, *array.shape[1:]), array.dtype)
        grown[: min(length, len(array))] = array[:length]
        return grown


class Compact:
    """All arms in one arena (see arena.py)."""

    def __init__(self, estimator: Estimator, extra: int = 0, threads: int | None = None):
        design, cut, rule = estimator.design, cut_of(estimator.design), rule_of(estimator)
        assert cut is not None
        assert rule is not None
        kind, dim, empty = design.dtype, design.dim, np.zeros(0, np.int64)
        self.threads = threads
        self.state = ArenaState(
            basis=np.zeros((0, dim), kind), root=np.zeros((0, min(cut.hold, dim)), kind), moment=np.zeros(0, kind),
            weight=np.zeros(0, kind), cross=np.zeros((0, extra), kind), link=empty.copy(), first=empty.copy(),
            used=empty.copy(), held=empty.copy(), outside=empty.copy(), rows=empty.copy(), ridge=np.zeros(0),
            mass=np.zeros(0), shed=np.zeros(0), dust=np.zeros(0), log_det=np.zeros(0), size=np.zeros(0),
            mean=np.zeros(0), cut=cut, free=NONE, top=0, rule=rule,
        )  # fmt: skip
        self._vacant: list[int] = []
        self._count = 0  # records in use or vacant; the arrays may be longer

    def restore(self, state: ArenaState) -> bool:
        """Take a state from a file, unless its arrays do not fit together or its lists are not orderly."""
        mine, slots, records = self.state, state.basis.shape[0], state.first.shape[0]
        fits = all(
            getattr(state, name).shape
            == (slots if name in arenas.PER_SLOT else records, *getattr(mine, name).shape[1:])
            for name in (*arenas.PER_SLOT, *arenas.PER_ARM)
        )
        if not fits or (state.cut, state.rule) != (mine.cut, mine.rule) or not arenas.orderly(state):
            return False
        self.state, self._count = state, records
        self._vacant = self.vacant(state).tolist()
        return True

    def template(self, records: int) -> ArenaState:
        """What a state in a file looks like."""
        return self.state

    def records(self, state: ArenaState) -> int:
        """How many records a state has, vacant ones too."""
        return len(state.first)

    def vacant(self, state: ArenaState) -> np.ndarray:
        """The records of a state that no arm has."""
        return np.flatnonzero(state.rows < 0)

    def _grow(self, names: tuple[str, ...], length: int) -> None:
        grown: dict[str, Any] = {name: _resized(getattr(self.state, name), length) for name in names}
        self.state = self.state._replace(**grown)

    def trim(self) -> None:
        """Give spare room back."""
        self._grow(arenas.PER_SLOT, self.state.top)
        self._grow(arenas.PER_ARM, self._count)

    def open(self) -> int:
        if self._vacant:
            record = self._vacant.pop()
        else:
            record, self._count = self._count, self._count + 1
            if record >= self.state.first.size:
                self._grow(arenas.PER_ARM, record + 16 + record // 8)
        arenas.new_record(self.state, record)
        return record

    def close(self, record: int) -> None:
        self.state = self.state._replace(free=arenas.vacate(self.state, record))
        self._vacant.append(record)

    def _room(self, slots: int) -> None:
        """Make sure that `slots` more can be taken above the top."""
        top, capacity = self.state.top, self.state.link.size
        if top + slots > capacity:
            self._grow(arenas.PER_SLOT, top + slots + top // 8)

    def learn_one(self, record: int, row: np.ndarray, reward: float) -> None:
        self._room(2)
        free, top = learning.learn_one(self.state, record, row, reward)
        self.state = self.state._replace(free=free, top=top)

    def learn(self, records, starts, order, rows, right, rewards, extra):
        """Groups of rows, one group an arm: order[starts[g]:starts[g + 1]] are the rows of records[g].

        rows (n, dim) and right (n, 0), or factors rows (n, d_u) and right (n, d_a).

        Arms are dealt to threads in blocks; every arm is computed by one of them, so results do not depend on how many.
        """
        increments, targets = np.empty_like(extra), np.empty(len(extra) if extra.shape[1] else 0)
        counts, cut = np.diff(starts), self.state.cut
        width = self.state.basis.shape[1] * rows.itemsize
        wanted = np.cumsum(np.minimum(counts, cut.hold) + 1)
        step = max(min(BLOCK_BYTES // width, 1024 + self.state.top // 8), 64)
        threads = (self.threads or os.cpu_count() or 1) if len(rows) * width > 4_000_000 else 1
        with ThreadPoolExecutor(threads) as pool:
            begin = 0
            while begin < records.size:
                before = wanted[begin - 1] if begin else 0
                end = int(np.searchsorted(wanted, before + step, side="right"))
                end = max(end, begin + 1)
                block = records[begin:end]
                self._room(int(wanted[end - 1] - before))
                free, top = arenas.reserve(self.state, block, counts[begin:end])
                state, work = self.state, (records, starts, order, rows, right, rewards, extra)
                edges = np.searchsorted(starts, np.linspace(starts[begin], starts[end], threads + 1)[1:-1])
                edges = np.unique([begin, *edges, end])
                if edges.size == 2:
                    learning.learn_arms(state, *work, begin, end, increments, targets)
                else:
                    jobs = [
                        pool.submit(learning.learn_arms, state, *work, int(a), int(b), increments, targets)  # type: ignore[call-arg]
                        for a, b in pairwise(edges)
                    ]
                    for job in jobs:
                        job.result()
                free = arenas.release(self.state, block, free)
                self.state = self.state._replace(free=free, top=top)
                begin = end
        return increments, targets

    def evaluate(self, records, rows, extra):
        return scoring.evaluate_arms(self.state, records, rows, extra)

    def evaluate_users(self, records, rows):
        return scoring.evaluate_users(self.state, records, rows)

    def evaluate_factors(self, records, left, right):
        return scoring.evaluate_factors(self.state, records, left, right)

    def radii(self, records, constants):
        return np.array([scoring.radius(self.state, record, *constants) for record in records])

    def rows(self, record):
        return int(self.state.rows[record])

    def error_bound(self):
        """The largest over all arms, with its rounding; infinite once projector splitting has cut something."""
        return max((learning.error_bound(self.state, record) for record in range(self._count)), default=0.0)

    def parameter(self, record):
        eye = np.eye(self.state.basis.shape[1], dtype=self.state.basis.dtype)
        means, _ = self.evaluate_users(np.array([record]), eye)
        return means[:, 0].astype(self.state.basis.dtype)

    def copy(self):
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__, state=states.copy(self.state), _vacant=list(self._vacant))
        return twin


@compiled
def evaluate_state(estimator, rows):
    """x^T theta and x^T A^-1 x for rows (n, dim) of one arm."""
    return dot(rows, parameter(estimator)), contract.inverse_quadratic(estimator.design, rows)


class Separate:
    """One state of the design per arm that has learned: for what the arena does not know, and to compare."""

    def __init__(self, estimator: Estimator, extra: int = 0, threads: int | None = None):
        self._estimator, self._extra = estimator, extra
        self._states: list[Any] = []  # (estimator's state, cross (dim, k) = sum of x z^T, rows)
        self._vacant: list[int] = []

    def _fresh(self) -> tuple[Any, np.ndarray, int]:
        design = self._estimator.design
        return self._estimator.begin(), np.zeros((design.dim, self._extra), design.dtype), 0

    @property
    def state(self) -> tuple:
        """All states, a fresh one in every vacant place."""
        return tuple(self._fresh() if one is None else one for one in self._states)

    def restore(self, state: tuple) -> bool:
        """Take states from a file, unless one does not fit."""
        width = (self._estimator.design.dim, self._extra)
        if not all(self._estimator.consistent(s) and cross.shape == width and rows >= 0 for s, cross, rows in state):
            return False
        self._vacant = self.vacant(state).tolist()
        self._states = [one if one[2] else None for one in state]
        return True

    def records(self, state: tuple) -> int:
        """How many records a state has, vacant ones too."""
        return len(state)

    def vacant(self, state: tuple) -> np.ndarray:
        """The records of a state that no arm has."""
        return np.flatnonzero([rows == 0 for _, _, rows in state])

    def trim(self) -> None:
        """There is no spare room."""

    def template(self, records: int) -> tuple:
        """Fresh states for as many records."""
        return tuple(self._fresh() for _ in range(records))

    def open(self) -> int:
        if self._vacant:
            record = self._vacant.pop()
        else:
            record = len(self._states)
            self._states.append(None)
        self._states[record] = self._fresh()
        return record

    def close(self, record: int) -> None:
        self._states[record] = None
        self._vacant.append(record)

    def learn_one(self, record: int, row: np.ndarray, reward: float) -> None:
        self._learn(record, row, np.array([reward], row.dtype))

    def _learn(self, record: int, rows: np.ndarray, rewards: np.ndarray) -> None:
        learned, cross, count = self._states[record]
        self._states[record] = (update_rows(learned, rows, rewards), cross, count + len(rows))

    def learn(self, records, starts, order, rows, right, rewards, extra):
        increments, targets = np.empty_like(extra), np.empty(len(extra) if extra.shape[1] else 0)
        for g, record in enumerate(records):
            chosen = order[starts[g] : starts[g + 1]]
            if not extra.shape[1]:
                batch = products(rows[chosen], right[chosen]) if right.shape[1] else np.ascontiguousarray(rows[chosen])
                self._learn(record, batch, rewards[chosen])
                continue
            for i in chosen:
                learned, cross, _ = self._states[record]
                row = products(rows[i : i + 1], right[i : i + 1]) if right.shape[1] else rows[i : i + 1]
                seen = contract.solve(learned.design, row[0])
                weight = 1.0 / np.sqrt(1.0 + float(contract.inverse_quadratic(learned.design, row)[0]))
                increments[i] = (extra[i] - seen @ cross) * weight
                targets[i] = (rewards[i] - seen @ learned.moment) * weight
                cross += np.outer(row[0], extra[i])
                self._learn(record, row, rewards[i : i + 1])
        return increments, targets

    def evaluate(self, records, rows, extra):
        means, squares = np.empty(len(records)), np.empty(len(records))
        for a, record in enumerate(records):
            row = rows[a : a + 1] if len(rows) > 1 else rows
            if record == NONE:
                means[a], squares[a] = 0.0, float(row[0] @ row[0]) / self._estimator.design.params["reg"]
                continue
            learned, cross, _ = self._states[record]
            mean, square = evaluate_state(learned, row)
            means[a], squares[a] = mean[0], square[0]
            if extra.shape[1]:
                extra[a] -= contract.solve(learned.design, row[0]) @ cross
        return means, squares

    def evaluate_users(self, records, rows):
        means, squares = np.empty((len(rows), len(records))), np.empty((len(rows), len(records)))
        for a, record in enumerate(records):
            if record == NONE:
                means[:, a] = 0.0
                squares[:, a] = np.einsum("ij,ij->i", rows, rows) / self._estimator.design.params["reg"]
            else:
                means[:, a], squares[:, a] = evaluate_state(self._states[record][0], rows)
        return means, squares

    def evaluate_factors(self, records, left, right):
        means, squares = np.empty((len(left), len(records))), np.empty((len(left), len(records)))
        for a in range(len(records)):
            rows = products(left, np.broadcast_to(right[a], (len(left), right.shape[1])))
            mean, square = self.evaluate_users(records[a : a + 1], rows)
            means[:, a], squares[:, a] = mean[:, 0], square[:, 0]
        return means, squares

    def radii(self, records, constants):
        fresh = self._fresh()
        found = [(self._states[record] if record != NONE else fresh) for record in records]
        return np.array([radius(s, rows, *constants) for s, _, rows in found])

    def rows(self, record):
        return self._states[record][2]

    def error_bound(self):
        return max((float(contract.error_bound(s[0].design)) for s in self._states if s is not None), default=0.0)

    def parameter(self, record):
        return parameter(self._states[record][0])

    def copy(self):
        twin = object.__new__(type(self))
        kept = [one if one is None else states.copy(one) for one in self._states]
        twin.__dict__.update(self.__dict__, _states=kept, _vacant=list(self._vacant))
        return twin
