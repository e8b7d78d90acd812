"""The store of a bandit whose arms live on shards: what a bandit asks of a store, asked of whoever has the arms.

Arms have numbers, in the order in which they first learned, and a number its shard (placing.py). A batch goes to the
shards as one message each; arms share nothing, so their models are those of one process, bit for bit. An arm without
rows is asked for here, where its prior is.
"""

import heapq
import itertools
import weakref
from typing import Any, NamedTuple

import numpy as np

from onepass.arena.arena import NONE
from onepass.bandit.models import Disjoint, Hybrid
from onepass.cluster.crew import Crew
from onepass.cluster.placing import NOBODY, shards_of

GROWTH = 8  # lists of arms grow by an eighth
ROOM = 64  # and by as many arms more
BESIDE = NONE  # who answers for arms without rows: the store here


class Placed(NamedTuple):
    """owner (arms,): the shard of every number, NOBODY where no arm has it; rows (arms,): learned."""

    owner: np.ndarray
    rows: np.ndarray


class Store:
    """Arms on shards. `crew` is set once they are there; version: 0, or of what is published."""

    crew: Crew

    def __init__(self, models: Disjoint | Hybrid):
        self.models = models
        self.beside = models.store()  # of arms without rows
        self._placed = Placed(owner=np.full(0, NOBODY), rows=np.zeros(0, np.int64))
        self._homes = np.zeros(0, np.int64)  # the shards of arms to come
        self._count, self._vacant = 0, list[int]()
        self._version, self._versions = 0, itertools.count(1)
        self._split: tuple[Any, list[tuple[int, np.ndarray]]] | None = None
        self.reader: Any = None

    # ---- numbers ----

    @property
    def state(self) -> Placed:
        """What is kept here."""
        return self.kept()

    def kept(self) -> Placed:
        """The numbers in use or vacant."""
        return Placed(owner=self._placed.owner[: self._count], rows=self._placed.rows[: self._count])

    def template(self, parts: int) -> Placed:
        """What is kept looks like this."""
        return self.kept()

    def records(self, state: Placed) -> int:
        """How many numbers there are."""
        return len(state.owner)

    def vacant(self, state: Placed) -> np.ndarray:
        """Those that no arm has."""
        return np.flatnonzero(state.owner == NOBODY)

    def fits(self, state: Placed) -> bool:
        """Whether what a file holds fits together."""
        return state.rows.shape == state.owner.shape and bool((state.rows >= 0).all() and (state.owner >= NOBODY).all())

    def restore(self, state: Placed) -> None:
        """Take what a file holds."""
        self._placed, self._count = state, len(state.owner)
        self._vacant, self._split = self.vacant(state).tolist(), None

    def open(self) -> int:
        """A number for an arm that is about to learn."""
        if self._vacant:
            record = heapq.heappop(self._vacant)
        else:
            record, self._count = self._count, self._count + 1
            if record >= len(self._placed.owner):
                more = ROOM + record // GROWTH
                owner = np.concatenate([self._placed.owner, np.full(more, NOBODY)])
                self._placed = Placed(owner, np.concatenate([self._placed.rows, np.zeros(more, np.int64)]))
        if len(self._homes) != len(self._placed.owner):
            self._homes = shards_of(np.arange(len(self._placed.owner)), self.crew.numbers)
        self._placed.owner[record] = self._homes[record]
        self._placed.rows[record], self._split = 0, None
        return record

    def close(self, record: int) -> None:
        """No arm has this number any more."""
        self.crew.tell({int(self._placed.owner[record]): ("close", np.array([record]))})
        self._placed.owner[record], self._split = NOBODY, None
        heapq.heappush(self._vacant, record)

    def spread(self, records: np.ndarray) -> list[tuple[int, np.ndarray]]:
        """(shard, places among `records`) of those that are asked for; BESIDE for arms without rows."""
        known = self._split
        if known is None or known[0] is not records:
            owners = np.where(records == NONE, BESIDE, self._placed.owner[records] if self._count else BESIDE)
            known = records, [(s, np.flatnonzero(owners == s)) for s in np.unique(owners).tolist()]
            self._split = known
        return known[1]

    def move(self, numbers: list[int]) -> int:
        """Let `numbers` be the shards: only arms whose shard changes are moved; how many these are."""
        crew, owner = self.crew, self._placed.owner[: self._count]
        wanted = np.where(owner == NOBODY, NOBODY, shards_of(np.arange(len(owner)), numbers)) if len(owner) else owner
        moving = np.flatnonzero(wanted != owner)
        for number in numbers:
            if number not in crew.members:
                crew.begin(number)
        leaving = {int(s): moving[owner[moving] == s] for s in np.unique(owner[moving])}
        models = crew.ask({s: ("given_away", arms) for s, arms in leaving.items()})
        each = dict(zip(np.concatenate([*leaving.values(), moving[:0]]).tolist(), itertools.chain(*models.values())))
        coming = {int(s): moving[wanted[moving] == s] for s in np.unique(wanted[moving])}
        crew.tell({s: ("adopt", arms, [each[arm] for arm in arms.tolist()]) for s, arms in coming.items()})
        crew.tell({s: ("close", arms) for s, arms in leaving.items() if s in numbers})
        for number in [number for number in crew.numbers if number not in numbers]:
            crew.end(number)
        owner[moving], self._split, self._homes = wanted[moving], None, np.zeros(0, np.int64)
        return len(moving)

    # ---- learning ----

    def learn_one(self, record: int, row: np.ndarray, reward: float) -> None:
        """A row of one arm."""
        self.crew.tell({int(self._placed.owner[record]): ("learn_one", record, row.copy(), reward)})
        self._placed.rows[record] += 1

    def learn(self, records, starts, order, rows, right, rewards, extra):
        """Rows grouped by arm, as `Store.learn` of arena/stores.py has them."""
        increments, targets = np.empty_like(extra), np.empty(len(extra) if extra.shape[1] else 0)
        counts, owners, each, places = np.diff(starts), self._placed.owner[records], {}, {}
        for shard in np.unique(owners).tolist():
            mine = np.flatnonzero(owners == shard)
            own = order if len(mine) == len(records) else order[np.repeat(owners, counts) == shard]
            places[shard] = own
            each[shard] = ("learn", records[mine], counts[mine], rows[own], right[own], rewards[own], extra[own])
        for shard, (increment, target) in self.crew.tell(each).items():
            if extra.shape[1]:
                increments[places[shard]], targets[places[shard]] = increment, target
        self._placed.rows[records] += counts
        return increments, targets

    # ---- questions ----

    def evaluate(self, records, rows, extra):
        """Means and squares of arms; extra is changed in place."""
        means, squares = np.empty(len(records)), np.empty(len(records))
        for places, (mean, square, rest) in self._asked(
            records, "evaluate", lambda own: (rows[own] if len(rows) > 1 else rows, extra[own])
        ):
            means[places], squares[places], extra[places] = mean, square, rest
        return means, squares

    def evaluate_users(self, records, rows):
        """Means and squares (n, K) where each of n rows is the context of every arm."""
        return self._table(records, "evaluate_users", len(rows), lambda own: (rows,))

    def evaluate_factors(self, records, left, right):
        """The same for users left (n, d_u) and arms right (K, d_a)."""
        return self._table(records, "evaluate_factors", len(left), lambda own: (left, right[own]))

    def radii(self, records, constants):
        """Confidence radii (K,)."""
        out = np.empty(len(records))
        for places, found in self._asked(records, "radii", lambda own: (constants,)):
            out[places] = found
        return out

    def units(self, records):
        """What a number for exploration is multiplied by: 1 for all estimators that are taken."""
        return np.ones(len(records))

    def _table(self, records: np.ndarray, method: str, count: int, given: Any) -> tuple[np.ndarray, np.ndarray]:
        means, squares = np.empty((count, len(records))), np.empty((count, len(records)))
        for places, (mean, square) in self._asked(records, method, given):
            means[:, places], squares[:, places] = mean, square
        return means, squares

    def _asked(self, records: np.ndarray, method: str, given: Any) -> list[tuple[np.ndarray, Any]]:
        """(places, answer) of all who have arms among `records`; given: what a method is told, by places."""
        each, out = {}, []
        for shard, places in self.spread(records):
            told, arms = given(places), records[places]
            if shard == BESIDE:
                answer = getattr(self.beside, method)(arms, *told)
                out.append((places, (*answer, told[1]) if method == "evaluate" else answer))
            elif method == "evaluate":
                each[shard] = (method, self._version, arms, *told)
            else:
                each[shard] = ("about", self._version, method, arms, *told)
        found = self.crew.ask(each)
        return out + [(places, found[shard]) for shard, places in self.spread(records) if shard != BESIDE]

    def rows(self, record: int) -> int:
        """Rows learned of an arm."""
        return int(self._placed.rows[record])

    def error_bound(self) -> float:
        """The largest of all arms."""
        return max(self.crew.ask_all("error_bound"), default=0.0)

    def relative_loss(self) -> float:
        """The largest of all arms, in units of their ridges."""
        return max(self.crew.ask_all("relative_loss"), default=0.0)

    def parameter(self, record: int) -> np.ndarray:
        """theta of an arm."""
        return self._of_one("parameter", record)

    def solve(self, record: int, row: np.ndarray) -> np.ndarray:
        """A^-1 x of an arm."""
        return self._of_one("solve", record, row)

    def coupled(self, record: int, y: np.ndarray) -> np.ndarray:
        """A^-1 B y of an arm of a hybrid model."""
        return self._of_one("coupled", record, y)

    def export(self, record: int) -> Any:
        """A copy of an arm, bit for bit."""
        return self._of_one("export", record)

    def template_of_arm(self) -> Any:
        """What an exported arm looks like."""
        return self.beside.template_of_arm()

    def rows_in(self, arm: Any) -> int:
        """Rows learned by an arm that was exported."""
        return int(self.beside.rows_in(arm))

    def adopt(self, arms: list[Any]) -> list[int]:
        """Take arms that were exported; their numbers."""
        records = np.array([self.open() for _ in arms], np.int64)
        self.crew.tell({s: ("adopt", records[at], [arms[i] for i in at]) for s, at in self.spread(records)})
        self._placed.rows[records] = [self.rows_in(arm) for arm in arms]
        return records.tolist()

    def _of_one(self, method: str, record: int, *given: Any) -> Any:
        if record == NONE:
            return getattr(self.beside, method)(record, *given)
        shard = int(self._placed.owner[record])
        return self.crew.ask({shard: ("of_one", self._version, method, record, *given)})[shard]

    # ---- readers ----

    def published(self) -> "Store":
        """The arms as they are now, for readers; shards let go of them when nobody reads them any more."""
        twin = Store(self.models)
        twin.crew, twin._version, twin._count = self.crew, next(self._versions), self._count
        twin._placed = Placed(self._placed.owner.copy(), self._placed.rows.copy())
        gone, self.crew.gone = self.crew.gone, []
        self.crew.ask_all("publish", twin._version, gone)
        weakref.finalize(twin, self.crew.gone_by, twin._version)
        return twin
