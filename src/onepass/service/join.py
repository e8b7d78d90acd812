"""Which rewards are learned for which decision: a left outer join at a deadline, without a clock of its own.

    ranked -> (deferred -> activated | lapsed) -> rewarded* -> joined

A decision waits until its deadline. Then its outcomes, those with a time up to the deadline, become one reward a slot:
one aggregation, or the default where there was none. A deferred decision that was not activated by then lapses, and
nothing is learned of it. Outcomes that come before their decision are kept for two minutes. Late ones stay in the log
and are counted; where the join can look at the log, what they change is a join of its own (late.py).

What is taken are records of the log in their order, `now` is an argument: so the state is a function of the log, and a
restart rebuilds it by reading. Joins are records, and what was joined is not joined again.
"""

import heapq
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from onepass.log.records import CORRECTION, SECOND, Activation, Decision, Join, Outcome, Settings
from onepass.service.late import AGGREGATE, EARLY, Find, changed
from onepass.service.settings import LoopSettings, checked

REMEMBERED = 10_000  # decisions joined last, whose outcomes are counted as late
OUTCOMES = 10_000  # of a decision that count; further ones stay in the log
EARLY_OUTCOMES = 1_000  # of an id without a decision that are kept
EARLY_ALL = 100_000  # of all such ids together, the latest
LATE_OUTCOMES = 1_000  # of a joined decision that may each make a correction
TOGETHER = 256  # joins learned in one call at most: the model is locked for that long
DUE = "due"  # where a decision says its deadline (extra)


class Waiting:
    """A decision that waits. first: the first place of the log that is about it; subject: whom it is about; paid:
    (slot, value), in order."""

    __slots__ = ("active", "due", "first", "paid", "seq", "slots", "subject")

    def __init__(self, seq: int, first: int, due: int, slots: int, active: bool, subject: str | None):
        self.seq, self.first, self.due, self.slots, self.active = seq, first, due, slots, active
        self.subject = subject
        self.paid: list[tuple[int | None, float]] = []


class Joiner:
    """The state of the join of one loop.

    settings: of the loop, until the log says others: deadlines stay as decisions say them, the rest counts from then
    on. batch: the number that the first batch of joins gets is one above (default 0). find: what the log has about a
    decision (default None: it is not asked, and nothing is corrected). before: settings that were in force, with the
    places from which on, of what the log says before this reads it (default none).
    """

    def __init__(
        self,
        settings: LoopSettings,
        batch: int = 0,
        find: Find | None = None,
        before: Iterable[tuple[int, LoopSettings]] = (),
    ):
        self.settings, self.batch, self._find = settings, batch, find
        self._in_force = list(before)
        self.counts: Counter[str] = Counter()
        self._waiting: dict[str, Waiting] = {}
        self._early: dict[str, deque[Outcome]] = {}
        self._fleeting: deque[Outcome] = deque()  # early outcomes in their order, with some that are not kept any more
        self._joined: dict[str, int] = {}  # with how many late outcomes
        self._due: list[tuple[int, int, str]] = []
        self._late: dict[str, int] = {}  # decisions that may want a correction, and the place of its first outcome
        self._sent: dict[str, str | None] = {}  # of whose correction nobody knows yet whether it is stored; about whom

    def __len__(self) -> int:
        return len(self._waiting)

    # ---- what the log says ----

    def take(self, record: Any) -> None:
        """The next record of the loop."""
        if isinstance(record, Decision):
            self._decided(record)
        elif isinstance(record, Outcome):
            self._paid(record)
        elif isinstance(record, Activation):
            waiting = self._waiting.get(record.id)
            if waiting is not None and record.time <= waiting.due:
                waiting.active = True
            else:
                self.counts["activated late"] += 1
        elif isinstance(record, Join) and record.how == CORRECTION:
            self._sent.pop(record.id, None)
            self.counts["corrected"] += 1
        elif isinstance(record, Join):
            self._waiting.pop(record.id, None)
            self._remember(record.id)
        elif isinstance(record, Settings):
            self.settings = checked(record.settings["loop"])
            self._in_force.append((record.seq, self.settings))

    def settings_at(self, place: int) -> LoopSettings:
        """Settings that were in force at a place of the log: so what is corrected does not depend on restarts."""
        later = bisect_right(self._in_force, place, key=lambda one: one[0])
        return self._in_force[max(later - 1, 0)][1] if self._in_force else self.settings

    def _decided(self, record: Decision) -> None:
        due = deadline(record, self.settings)
        waiting = Waiting(record.seq, record.seq, due, len(record.places), not record.deferred, record.subject)
        self._waiting[record.id] = waiting
        heapq.heappush(self._due, (due, record.seq, record.id))
        for outcome in self._early.pop(record.id, ()):
            if outcome.time >= record.time - EARLY:
                waiting.first = min(waiting.first, outcome.seq)
                self._count(waiting, outcome)

    def _paid(self, record: Outcome) -> None:
        waiting = self._waiting.get(record.id)
        if waiting is not None:
            self._count(waiting, record)
        elif record.id in self._joined:
            self._too_late(record)
        elif record.id in self._early:
            self._keep_early(record)
        elif self._known(record):
            self._remember(record.id)
            self._too_late(record)
        else:
            self._early[record.id] = deque()
            self._keep_early(record)

    def _keep_early(self, record: Outcome) -> None:
        """Keep an outcome whose decision has not come, the latest of its id and of all."""
        early = self._early[record.id]
        early.append(record)
        self._fleeting.append(record)
        if len(early) > EARLY_OUTCOMES:
            self._give_up(early[0])
        if len(self._fleeting) > EARLY_ALL:
            self._give_up(self._fleeting.popleft())

    def _give_up(self, record: Outcome) -> None:
        """Keep an early outcome no longer, the oldest of its id."""
        early = self._early.get(record.id)
        if early is None or early[0] is not record:
            return  # its decision came, or it was given up
        early.popleft()
        self.counts["without a decision"] += 1
        if not early:
            del self._early[record.id]

    def _count(self, waiting: Waiting, outcome: Outcome) -> None:
        if outcome.time > waiting.due:
            self._too_late(outcome)
        elif outcome.slot is not None and outcome.slot >= waiting.slots:
            self.counts["of no slot"] += 1
        elif len(waiting.paid) >= OUTCOMES:
            self.counts["too many"] += 1
        else:
            waiting.paid.append((outcome.slot, outcome.value))
            self.counts["in time"] += 1

    def _known(self, record: Outcome) -> bool:
        """Whether the log has the decision of an outcome before it: it was joined long ago, or before a restart."""
        about = self._about(record.id) if self._corrects(record) else None
        return any(isinstance(one, Decision) and one.seq < record.seq for one in about or ())

    def _corrects(self, record: Outcome) -> bool:
        """Whether a late outcome corrects what was learned."""
        return self.settings_at(record.seq).reward.late == "correct"

    def _about(self, identity: str) -> list[Any] | None:
        """What the log has about a decision; None where it cannot be read now."""
        try:
            return None if self._find is None else [*self._find(identity)]
        except OSError:
            return None

    def _too_late(self, record: Outcome) -> None:
        self.counts["late"] += 1
        if self._find is None or not self._corrects(record):
            return
        number = self._joined.get(record.id, 0)
        if number >= LATE_OUTCOMES:
            self.counts["too many"] += 1
            return
        if record.id in self._joined:
            self._joined[record.id] = number + 1
        self._late.setdefault(record.id, record.seq)

    def corrections(self, now: int) -> list[Join]:
        """What late outcomes change of what was learned, to be stored; each is given once. now: microseconds."""
        found: list[Join] = []
        for identity in [*self._late] if self._find is not None else ():
            if identity in self._waiting or identity in self._sent:
                continue
            about = self._about(identity)
            if about is None:
                return found
            joined = next((one.seq for one in about if isinstance(one, Join)), 0)
            change = changed(about, self.settings_at(joined))
            if change is None:
                del self._late[identity]
                continue
            rewards, count = change
            self._sent[identity] = next((one.subject for one in about if isinstance(one, Decision)), None)
            found.append(
                Join(loop=self.settings.name, time=now, id=identity, rewards=rewards, how=CORRECTION, count=count,
                     again=True)
            )  # fmt: skip
            if len(found) == TOGETHER:
                break
        return found

    def _remember(self, identity: str) -> None:
        self._joined[identity] = 0
        if len(self._joined) > REMEMBERED:
            del self._joined[next(iter(self._joined))]

    # ---- what time says ----

    def due(self, now: int) -> list[Join]:
        """Joins of all decisions whose deadline has passed, in the order of their deadlines, to be stored in this
        order; each is given once. now: microseconds, of which no record that comes later may be before."""
        while self._fleeting and self._fleeting[0].time + EARLY < now:
            self._give_up(self._fleeting.popleft())
        joins = []
        while self._due and self._due[0][0] < now:
            _, _, identity = heapq.heappop(self._due)
            waiting = self._waiting.get(identity)
            if waiting is None:
                continue
            join = self._join(identity, waiting, now)
            if join is None:
                del self._waiting[identity]
                self._remember(identity)
            else:
                joins.append(join)
        return joins

    def _join(self, identity: str, waiting: Waiting, now: int) -> Join | None:
        """The join of a decision, None where nothing is learned of it."""
        rule = self.settings.reward
        if not waiting.active:
            self.counts["lapsed"] += 1
            return None
        if self.settings.mode == "logging":
            self.counts["only logged"] += 1
            return None
        rewards, how, clipped = list[float | None](), "default", False
        for slot in range(waiting.slots):
            values = [value for of, value in waiting.paid if of is None or of == slot]
            if not values:
                rewards.append(self.settings.default)
                continue
            value, how = AGGREGATE[rule.aggregation](values), rule.aggregation
            limited = min(max(value, rule.range[0]), rule.range[1])
            clipped = clipped or limited != value
            rewards.append(limited)
        if all(value is None for value in rewards):
            self.counts["without a reward"] += 1
            return None
        self.counts[f"joined: {how}"] += 1
        how = f"{how}, limited" if clipped else how
        return Join(loop=self.settings.name, time=now, id=identity, rewards=rewards, how=how, count=len(waiting.paid))

    def batches(self, joins: list[Join]) -> list[Join]:
        """Joins with the numbers of the calls that learn them."""
        out: list[Join] = []
        for start in range(0, len(joins), TOGETHER):
            part = joins[start : start + TOGETHER]
            self.batch += 1
            out += part if len(part) == 1 else [replace(join, batch=self.batch) for join in part]
        return out

    def forget(self, subject: str) -> set[str]:
        """Wait no longer for the decisions about a subject; which they were."""
        gone = {identity for identity, waiting in self._waiting.items() if waiting.subject == subject}
        for identity in gone:
            del self._waiting[identity]
            self.counts["forgotten"] += 1
        sent = {identity for identity, whom in self._sent.items() if whom == subject}
        for identity in sent:
            del self._sent[identity]
            self._late.pop(identity, None)
        return gone | sent

    # ---- restart ----

    def since(self, last: int) -> int:
        """The place after which everything stands that the state depends on. last: of the log."""
        waiting = min((one.first for one in self._waiting.values()), default=last + 1)
        early = min((each[0].seq for each in self._early.values()), default=last + 1)
        return min(waiting, early, min(self._late.values(), default=last + 1)) - 1

    def next(self) -> int | None:
        """The next deadline, None without one."""
        return self._due[0][0] if self._due else None


def deadline(record: Decision, settings: LoopSettings) -> int:
    """Until when outcomes count for a decision, in microseconds."""
    said = (record.extra or {}).get(DUE)
    return said if isinstance(said, int) else record.time + round(settings.reward.wait * SECOND)
