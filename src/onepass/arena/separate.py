"""One state of the estimator per arm: for designs and estimators that no arena takes, and to compare."""

import heapq
from copy import copy
from math import fsum
from typing import Any

import numpy as np

from onepass.arena.arena import NONE
from onepass.design import contract
from onepass.design.loss import relative_loss
from onepass.estimator.contract import forget, merge, parameter, path_dependent, radius, unit, update_rows
from onepass.estimator.estimator import Estimator
from onepass.estimator.half_life import remembered
from onepass.estimator.ridge import RidgeState
from onepass.features.factors import products
from onepass.foundation import state as states
from onepass.foundation.generic import compiled, defined
from onepass.foundation.linalg import dot

SEEN = 64  # arms whose sketches are looked at, lest a row of many arms' takes long


@compiled
def evaluate_state(estimator: Any, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x^T theta and x^T A^-1 x for rows (n, dim) of one arm."""
    return dot(rows, parameter(estimator)), contract.inverse_quadratic(estimator.design, rows)


class Separate:
    """One state of the design per arm that has learned: for what the arena does not know, and to compare."""

    def __init__(self, estimator: Estimator, extra: int = 0, threads: int | None = None) -> None:
        self._estimator, self._extra = estimator, extra
        self._prior = estimator.begin()
        self._states: list[
            Any
        ] = []  # (estimator's state, cross (dim, k) = sum of x z^T, rows, tick up to which forgotten)
        self._vacant: list[int] = []  # a heap: the lowest is filled first, as after a file was read
        self._copies: dict[int, Any] = {}  # of arms that have not changed since they were published
        self.now = 0  # tick
        self._aged: dict[int, Any] = {}  # of arms left behind: (what was aged, to which tick, what came of it)

    def published(self) -> "Separate":
        """A store that stays as it is now, for readers: only arms that have changed since the last one are copied."""
        for record, one in enumerate(self._states):
            if one is not None and record not in self._copies:
                self._copies[record] = states.copy(one)
        twin = copy(self)
        twin._states = [None if one is None else self._copies[record] for record, one in enumerate(self._states)]
        twin._vacant, twin._copies, twin._aged = list(self._vacant), {}, {}
        return twin

    # ---- forgetting ----

    def age(self, ticks: int) -> None:
        """So much later: arms that nobody asks for stay as they are."""
        self.now += ticks

    def later(self, ticks: int) -> "Separate":
        """Return these arms so much later, for readers, while nobody learns."""
        twin = copy(self)
        twin.now, twin._aged = self.now + ticks, {}
        return twin

    def owned(self) -> "Separate":
        """Copy the arms into arrays of their own."""
        twin = copy(self)
        twin._states = [None if one is None else states.copy(one) for one in self._states]
        twin._copies, twin._aged = {}, {}
        return twin

    def arms(self) -> list[Any]:
        """All that have learned, as they are."""
        return [one for one in self._states if one is not None]

    def catch_up(self) -> None:
        """Let every arm forget up to now."""
        for record, one in enumerate(self._states):
            if one is not None and one[3] < self.now:
                self._set(record, self._up_to_date(one))

    def _up_to_date(self, one: Any) -> Any:
        """An arm left behind, in one step; its arrays are written."""
        learned, cross, rows, tick = one
        factor = remembered(self.now - tick)
        return forget(learned, factor), factor * cross, rows, self.now

    def _set(self, record: int, state: Any) -> None:
        self._copies.pop(record, None)
        self._aged.pop(record, None)
        self._states[record] = state

    def _fresh(self) -> tuple[Any, np.ndarray, int, int]:
        design = self._estimator.design
        return states.copy(self._prior), states.zeros(design.dim, self._extra, dtype=design.dtype), 0, 0

    def _of(self, record: int) -> tuple[Any, np.ndarray, int, int]:
        """Return the state of an arm, as of now; for NONE its prior."""
        if record == NONE:
            return self._prior, np.zeros((0, 0)), 0, 0
        one = self._states[record]
        if one[3] >= self.now:
            return one
        known = self._aged.get(record)
        if known is None or known[0] is not one or known[1] != self.now:
            known = one, self.now, self._up_to_date(states.copy(one))
            self._aged[record] = known
        return known[2]

    def _current(self, record: int) -> tuple[Any, np.ndarray, int, int]:
        """An arm that is about to learn, once it has forgotten up to now."""
        one = self._states[record]
        if one[3] < self.now:
            self._set(record, self._up_to_date(one))
        return self._states[record]

    @property
    def state(self) -> tuple:
        """All states, a fresh one in every vacant place, and one more: the prior, as of now."""
        return *(self._fresh() if one is None else one for one in self._states), (*self._fresh()[:3], self.now)

    def fits(self, state: tuple) -> bool:
        """Return whether all states of a file fit."""
        width = (self._estimator.design.dim, self._extra)
        if not all(self._estimator.consistent(s) and cross.shape == width and rows >= 0 for s, cross, rows, _ in state):
            return False
        return bool(state) and state[-1][2] == 0

    def restore(self, state: tuple) -> None:
        """Take states that fit."""
        self._vacant = self.vacant(state).tolist()
        self._states, self._copies, self._aged = [one if one[2] else None for one in state[:-1]], {}, {}
        self._prior, _, _, self.now = state[-1]

    def records(self, state: tuple) -> int:
        """Count the records of a state, vacant ones too."""
        return len(state) - 1

    def vacant(self, state: tuple) -> np.ndarray:
        """The records of a state that no arm has."""
        return np.flatnonzero([rows == 0 for _, _, rows, _ in state[:-1]])

    def trim(self) -> None:
        """There is no spare room."""

    def kept(self) -> tuple:
        """The state: there is no spare room."""
        return self.state

    def template(self, records: int) -> tuple:
        """Fresh states for as many records."""
        return tuple(self._fresh() for _ in range(records))

    def open(self) -> int:
        if self._vacant:
            record = heapq.heappop(self._vacant)
        else:
            record = len(self._states)
            self._states.append(None)
        self._set(record, (*self._fresh()[:3], self.now))
        return record

    def close(self, record: int) -> None:
        self._set(record, None)
        heapq.heappush(self._vacant, record)

    def learn_one(self, record: int, row: np.ndarray, reward: float) -> None:
        self._learn(record, row, np.array([reward], row.dtype))

    def _learn(self, record: int, rows: np.ndarray, rewards: np.ndarray) -> None:
        learned, cross, count, tick = self._current(record)
        self._set(record, (update_rows(learned, rows, rewards), cross, count + len(rows), tick))

    def learn(
        self,
        records: np.ndarray,
        starts: np.ndarray,
        order: np.ndarray,
        rows: np.ndarray,
        right: np.ndarray,
        rewards: np.ndarray,
        extra: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        increments, targets = np.empty_like(extra), np.empty(len(extra) if extra.shape[1] else 0)
        for g, record in enumerate(records):
            chosen = order[starts[g] : starts[g + 1]]
            if not extra.shape[1]:
                batch = products(rows[chosen], right[chosen]) if right.shape[1] else np.ascontiguousarray(rows[chosen])
                self._learn(record, batch, rewards[chosen])
                continue
            for i in chosen:
                learned, cross, _, _ = self._current(record)
                row = products(rows[i : i + 1], right[i : i + 1]) if right.shape[1] else rows[i : i + 1]
                seen = contract.solve(learned.design, row[0])
                weight = 1.0 / np.sqrt(1.0 + float(contract.inverse_quadratic(learned.design, row)[0]))
                increments[i] = (extra[i] - seen @ cross) * weight
                targets[i] = (rewards[i] - seen @ learned.moment) * weight
                cross += np.outer(row[0], extra[i])
                self._learn(record, row, rewards[i : i + 1])
        return increments, targets

    def evaluate(self, records: np.ndarray, rows: np.ndarray, extra: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        means, squares = np.empty(len(records)), np.empty(len(records))
        for a, record in enumerate(records):
            row = rows[a : a + 1] if len(rows) > 1 else rows
            learned, cross, _, _ = self._of(record)
            mean, square = evaluate_state(learned, row)
            means[a], squares[a] = mean[0], square[0]
            if extra.shape[1] and record != NONE:
                extra[a] -= contract.solve(learned.design, row[0]) @ cross
        return means, squares

    def evaluate_users(self, records: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        means, squares = np.empty((len(rows), len(records))), np.empty((len(rows), len(records)))
        for a, record in enumerate(records):
            means[:, a], squares[:, a] = evaluate_state(self._of(record)[0], rows)
        return means, squares

    def evaluate_factors(
        self, records: np.ndarray, left: np.ndarray, right: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        means, squares = np.empty((len(left), len(records))), np.empty((len(left), len(records)))
        for a in range(len(records)):
            rows = products(left, np.broadcast_to(right[a], (len(left), right.shape[1])))
            mean, square = self.evaluate_users(records[a : a + 1], rows)
            means[:, a], squares[:, a] = mean[:, 0], square[:, 0]
        return means, squares

    def radii(self, records: np.ndarray, constants: np.ndarray) -> np.ndarray:
        return np.array([radius(s, rows, *constants) for s, _, rows, _ in map(self._of, records)])

    def units(self, records: np.ndarray) -> np.ndarray:
        nu = 1.0
        if defined(unit, self._prior):
            found = [(rows, float(unit(s))) for s, _, rows, _ in filter(None, self._states) if rows]
            total = sum(rows for rows, _ in found)
            nu = (fsum(rows * nu**2 for rows, nu in found) / total) ** 0.5 if total else float(unit(self._prior))
        return np.full(len(records), nu if nu > 0.0 else 1.0)

    def rows(self, record: int) -> int:
        return self._states[record][2]

    def error_bound(self) -> float:
        held = [self._of(record)[0] for record, one in enumerate(self._states) if one is not None]
        return max((float(contract.error_bound(one.design)) for one in held), default=0.0)

    def relative_loss(self) -> float:
        """The largest of the first SEEN arms (design/loss.py)."""
        reg = float(self._estimator.design.params["reg"])
        held = [self._of(record)[0] for record, one in enumerate(self._states[:SEEN]) if one is not None]
        return max((relative_loss(one.design, reg) for one in held), default=0.0)

    def parameter(self, record: int) -> np.ndarray:
        return parameter(self._of(record)[0])

    def solve(self, record: int, row: np.ndarray) -> np.ndarray:
        return contract.solve(self._of(record)[0].design, row)

    def models(self, records: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        thetas = np.stack([self.parameter(record) for record in records])
        unit = np.eye(thetas.shape[1], dtype=thetas.dtype)
        inverses = np.stack([[self.solve(record, row) for row in unit] for record in records])
        return thetas, (inverses + inverses.swapaxes(1, 2)) / 2.0

    def coupled(self, record: int, y: np.ndarray) -> np.ndarray:
        learned, cross, _, _ = self._of(record)
        return contract.solve(learned.design, cross @ y) if len(cross) else np.zeros_like(parameter(learned))

    # ---- single arms ----

    def export(self, record: int) -> Any:
        return states.copy(self._of(record)) if record != NONE else self._fresh()

    def template_of_arm(self) -> Any:
        return self._fresh()

    def rows_in(self, arm: Any) -> int:
        """Rows learned by an arm that was exported."""
        return int(arm[2])

    def arm_fits(self, arm: Any) -> bool:
        """Return whether an arm of a file fits."""
        learned, cross, rows, _ = arm
        width = (self._estimator.design.dim, self._extra)
        return self._estimator.consistent(learned) and cross.shape == width and rows >= 0

    def adopt(self, arms: list[Any]) -> list[int]:
        """Take arms that were exported, as of now; the records that they have here."""
        records = []
        for arm in arms:
            records.append(self.open())
            self._set(records[-1], (*arm[:3], self.now))
        return records

    def carry(self, other: Any, records: np.ndarray) -> list[int]:
        """Take arms of another store of the same kind; the records that they have here."""
        return self.adopt([other.export(record) for record in records])

    def replace(self, record: int, arm: Any) -> None:
        self._set(record, arm)

    def mergeable(self, exact: bool) -> None:
        begun = self._estimator.begin()
        if not defined(merge, begun):
            raise path_dependent(type(self._estimator).__name__)
        if not defined(contract.merge, begun.design):
            raise contract.unknown(begun.design, "merge")
        if exact and not defined(contract.since, begun.design):
            raise contract.not_removable(begun.design)

    def united(self, arm: Any, other: Any, start: Any) -> Any:
        learned = merge(states.copy(arm[0]), states.copy(other[0]), start[0])
        return learned, arm[1] + other[1] - start[1], arm[2] + other[2] - start[2], self.now

    def turned(self, arm: Any) -> Any:
        learned, cross, rows, tick = arm
        if not isinstance(learned, RidgeState):
            raise path_dependent(type(self._estimator).__name__)
        return learned._replace(moment=-learned.moment), -cross, rows, tick

    def eliminated(self, arm: Any) -> tuple[np.ndarray, np.ndarray]:
        learned, cross, _, _ = arm
        solved = np.array([contract.solve(learned.design, column) for column in np.ascontiguousarray(cross.T)])
        return solved @ cross, solved @ learned.moment
