"""A store with one state of the estimator for each arm, for any design and estimator."""

import heapq
from copy import copy
from math import fsum
from typing import Any, NamedTuple

import numpy as np

from onepass.arena.arena import NONE
from onepass.arena.model_store import is_partition
from onepass.design import contract
from onepass.design.loss import relative_loss
from onepass.estimator.contract import forget, merge, noise_unit, parameter, path_dependence_error, radius, update_rows
from onepass.estimator.estimator import Estimator
from onepass.estimator.half_life import decay_factor
from onepass.estimator.ridge import RidgeState
from onepass.features.outer_product import row_products
from onepass.foundation import state as states
from onepass.foundation.generic import compiled, is_registered
from onepass.foundation.linalg import dot

N_CHECKED = 64  # arms whose sketches are looked at, lest a row of many arms' takes long


@compiled
def evaluate_state(estimator: Any, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return predictions x^T theta (n,) and squared widths x^T A^-1 x (n,) of one arm for rows x (n, dim).

    `estimator` is the arm's state, with the parameter theta and the design A.
    """
    return dot(rows, parameter(estimator)), contract.inverse_quadratic(estimator.design, rows)


class ListArm(NamedTuple):
    """Model of one arm with an estimator's state of its own.

    - learned: the estimator's state.
    - cross (dim, k): the sum of x z^T over rows x with shared features z.
    - rows: number of rows learned.
    - tick: time, in ticks of the half-life clock, up to which old rows were discounted.
    """

    learned: Any
    cross: np.ndarray
    rows: int
    tick: int

    def parameter(self) -> np.ndarray:
        return parameter(self.learned)

    def solve(self, row: np.ndarray) -> np.ndarray:
        return contract.solve(self.learned.design, row)

    def inverse(self) -> np.ndarray:
        return contract.inverse_gram(self.learned.design, np.eye(len(self.cross), dtype=self.cross.dtype))

    def solve_cross(self, y: np.ndarray) -> np.ndarray:
        return self.solve(self.cross @ y)

    def schur_complement(self) -> tuple[np.ndarray, np.ndarray]:
        solved = np.array([self.solve(column) for column in np.ascontiguousarray(self.cross.T)])
        return solved @ self.cross, solved @ self.learned.moment

    def flip_sign(self) -> "ListArm":
        if not isinstance(self.learned, RidgeState):
            raise path_dependence_error(type(self.learned).__name__.removesuffix("State"))
        return self._replace(learned=self.learned._replace(moment=-self.learned.moment), cross=-self.cross)

    def add_to_moment(self, change: np.ndarray) -> "ListArm":
        return self._replace(learned=self.learned._replace(moment=self.learned.moment + change))

    def merge(self, other: "ListArm", start: "ListArm", estimator: Estimator) -> "ListArm":
        learned = merge(states.copy(self.learned), states.copy(other.learned), start.learned)
        cross, rows = self.cross + other.cross - start.cross, self.rows + other.rows - start.rows
        return ListArm(learned, cross, rows, self.tick)

    def fits(self, begun: "ListArm", estimator: Estimator) -> bool:
        return estimator.consistent(self.learned) and self.cross.shape == begun.cross.shape and self.rows >= 0

    def decay_to(self, tick: int) -> "ListArm":
        """Discount the arm's rows to a later time, in one step and in place, and return the arm.

        `tick` is the time in equal parts of the half-life.
        """
        factor = decay_factor(tick - self.tick)
        return ListArm(forget(self.learned, factor), factor * self.cross, self.rows, tick)


class ListStore:
    """Store of the models of many arms, with one state of the estimator for each arm that has learned."""

    def __init__(self, estimator: Estimator, extra: int = 0, threads: int | None = None) -> None:
        design = estimator.design
        self._estimator = estimator
        self._empty_arm = ListArm(estimator.begin(), states.zeros(design.dim, extra, dtype=design.dtype), 0, 0)
        self._arms: list[ListArm | None] = []
        self._vacant_ids: list[int] = []  # a heap: the lowest is filled first, as after a file was read
        self._copies: dict[int, ListArm] = {}  # of arms that have not changed since they were published
        self._now = 0  # tick
        self._decayed: dict[int, Any] = {}  # of arms left behind: (what was aged, what came of it)

    def snapshot(self) -> "ListStore":
        """Return a read-only store with the present models; arms unchanged since the last snapshot are shared."""
        for arm_id, arm in enumerate(self._arms):
            if arm is not None and arm_id not in self._copies:
                self._copies[arm_id] = states.copy(arm)
        twin = copy(self)
        twin._arms = [None if arm is None else self._copies[arm_id] for arm_id, arm in enumerate(self._arms)]
        twin._vacant_ids, twin._copies, twin._decayed = list(self._vacant_ids), {}, {}
        return twin

    # ---- forgetting ----

    def advance(self, ticks: int, own: bool = False) -> "ListStore":
        """Return a store with the same arms at a later time, when their rows count less.

        `ticks` is the time that has passed, in equal parts of the half-life. If `own` is True, the arms of the result
        have arrays of their own.
        """
        twin = copy(self)
        twin._now, twin._decayed = self._now + ticks, {}
        if own:
            twin._arms, twin._copies = [None if arm is None else states.copy(arm) for arm in self._arms], {}
        return twin

    def decay_arms(self) -> list[ListArm]:
        """Discount the rows of every arm to the store's present time, and return the list of arms that have learned."""
        return [self._decay_arm(arm_id) for arm_id, arm in enumerate(self._arms) if arm is not None]

    def _set(self, arm_id: int, arm: ListArm | None) -> None:
        self._copies.pop(arm_id, None)
        self._decayed.pop(arm_id, None)
        self._arms[arm_id] = arm

    def _get_arm(self, arm_id: int) -> ListArm:
        """Return an arm at the present tick, or an arm without rows for the id NONE. The result must not be changed."""
        arm = self._empty_arm if arm_id == NONE else self._arms[arm_id]
        assert arm is not None
        if arm_id == NONE or arm.tick >= self._now:
            return arm
        known = self._decayed.get(arm_id)
        if known is None or known[0] is not arm:
            known = self._decayed[arm_id] = arm, states.copy(arm).decay_to(self._now)
        return known[1]

    def _decay_arm(self, arm_id: int) -> ListArm:
        """Decay an arm to the present tick before it learns, and return it."""
        arm = self._arms[arm_id]
        assert arm is not None
        if arm.tick < self._now:
            arm = arm.decay_to(self._now)
            self._set(arm_id, arm)
        return arm

    # ---- files ----

    @property
    def state(self) -> tuple[ListArm, ...]:
        """All arms, with empty arms at vacant ids, and one more empty arm that holds the store's present time."""
        return *(self._empty_arm if arm is None else arm for arm in self._arms), self._empty_arm._replace(
            tick=self._now
        )

    def to_state(self) -> tuple[ListArm, ...]:
        return self.state

    def fits(self, state: tuple[ListArm, ...], taken: np.ndarray) -> bool:
        return (
            bool(state)
            and all(arm.fits(self._empty_arm, self._estimator) for arm in state)
            and state[-1].rows == 0
            and is_partition(taken, _find_vacant(state), len(state) - 1)
        )

    def restore(self, state: tuple[ListArm, ...]) -> None:
        self._vacant_ids = _find_vacant(state).tolist()
        self._arms, self._copies, self._decayed = [arm if arm.rows else None for arm in state[:-1]], {}, {}
        self._empty_arm, self._now = state[-1]._replace(tick=0), state[-1].tick

    # ---- single arms ----

    def allocate(self) -> int:
        if self._vacant_ids:
            arm_id = heapq.heappop(self._vacant_ids)
        else:
            arm_id = len(self._arms)
            self._arms.append(None)
        self.write_arm(arm_id, states.copy(self._empty_arm))
        return arm_id

    def release(self, arm_id: int) -> None:
        self._set(arm_id, None)
        heapq.heappush(self._vacant_ids, arm_id)

    def export_arm(self, arm_id: int) -> ListArm:
        return states.copy(self._get_arm(arm_id))

    def write_arm(self, arm_id: int, arm: ListArm) -> None:
        """Replace an arm's model by an exported model, whose rows count from the present time of the store on."""
        self._set(arm_id, arm._replace(tick=self._now))

    # ---- learning ----

    def learn_one(self, arm_id: int, row: np.ndarray, reward: float) -> None:
        self._learn(arm_id, row, np.array([reward], row.dtype))

    def _learn(self, arm_id: int, rows: np.ndarray, rewards: np.ndarray) -> None:
        arm = self._decay_arm(arm_id)
        self._set(arm_id, ListArm(update_rows(arm.learned, rows, rewards), arm.cross, arm.rows + len(rows), arm.tick))

    def learn(
        self,
        arm_ids: np.ndarray,
        starts: np.ndarray,
        order: np.ndarray,
        rows: np.ndarray,
        right: np.ndarray,
        rewards: np.ndarray,
        extra: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        increments, targets = np.empty_like(extra), np.empty(len(extra) if extra.shape[1] else 0)
        for g, arm_id in enumerate(arm_ids):
            chosen = order[starts[g] : starts[g + 1]]
            if not extra.shape[1]:
                batch = (
                    row_products(rows[chosen], right[chosen]) if right.shape[1] else np.ascontiguousarray(rows[chosen])
                )
                self._learn(arm_id, batch, rewards[chosen])
                continue
            for i in chosen:
                arm = self._decay_arm(arm_id)
                row = row_products(rows[i : i + 1], right[i : i + 1]) if right.shape[1] else rows[i : i + 1]
                seen = arm.solve(row[0])
                weight = 1.0 / np.sqrt(1.0 + float(contract.inverse_quadratic(arm.learned.design, row)[0]))
                increments[i] = (extra[i] - seen @ arm.cross) * weight
                targets[i] = (rewards[i] - seen @ arm.learned.moment) * weight
                cross = arm.cross
                cross += np.outer(row[0], extra[i])
                self._learn(arm_id, row, rewards[i : i + 1])
        return increments, targets

    # ---- questions ----

    def evaluate(
        self, arm_ids: np.ndarray, rows: np.ndarray, extra: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        means, squares = np.empty(len(arm_ids)), np.empty(len(arm_ids))
        for a, arm_id in enumerate(arm_ids):
            row, arm = rows[a : a + 1] if len(rows) > 1 else rows, self._get_arm(arm_id)
            mean, square = evaluate_state(arm.learned, row)
            means[a], squares[a] = mean[0], square[0]
            if extra.shape[1] and arm.rows:
                extra[a] -= arm.solve(row[0]) @ arm.cross
        return means, squares, extra

    def evaluate_users(
        self, arm_ids: np.ndarray, left: np.ndarray, right: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        means, squares, rows = np.empty((len(left), len(arm_ids))), np.empty((len(left), len(arm_ids))), left
        for a, arm_id in enumerate(arm_ids):
            if right is not None:
                rows = row_products(left, np.broadcast_to(right[a], (len(left), right.shape[1])))
            means[:, a], squares[:, a] = evaluate_state(self._get_arm(arm_id).learned, rows)
        return means, squares

    def exploration_scales(self, arm_ids: np.ndarray, theory: np.ndarray) -> np.ndarray:
        if theory.size:
            return np.array([radius(arm.learned, arm.rows, *theory) for arm in map(self._get_arm, arm_ids)])
        nu, begun = 1.0, self._empty_arm.learned
        if is_registered(noise_unit, begun):
            found = [(arm.rows, float(noise_unit(arm.learned))) for arm in self._arms if arm is not None and arm.rows]
            total = sum(rows for rows, _ in found)
            nu = (fsum(rows * nu**2 for rows, nu in found) / total) ** 0.5 if total else float(noise_unit(begun))
        return np.full(len(arm_ids), nu if nu > 0.0 else 1.0)

    def error_bound(self) -> float:
        held = [self._get_arm(arm_id).learned.design for arm_id, arm in enumerate(self._arms) if arm is not None]
        return max((float(contract.error_bound(design)) for design in held), default=0.0)

    def relative_loss(self) -> float:
        """Return the largest relative loss of an arm's sketch (design/loss.py), 0 for exact designs.

        The relative loss is the sum of squares along a direction that truncations have removed, divided by the ridge.
        Only the first 64 arms are looked at.
        """
        reg = float(self._estimator.design.reg)
        held = [
            self._get_arm(arm_id).learned.design for arm_id, arm in enumerate(self._arms[:N_CHECKED]) if arm is not None
        ]
        return max((relative_loss(design, reg) for design in held), default=0.0)


def _find_vacant(state: tuple[ListArm, ...]) -> np.ndarray:
    return np.flatnonzero([arm.rows == 0 for arm in state[:-1]])
