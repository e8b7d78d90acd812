"""Join of decisions and rewards: a left outer join at a deadline, without a clock of its own.

    ranked -> (deferred -> activated | lapsed) -> rewarded* -> joined

A decision waits until its deadline. Then its outcomes with a time up to the deadline become one reward for each slot,
by one aggregation, or the default if there are none. A deferred decision (one that may not have been shown) lapses if
it was not activated by then, and nothing is learned from it. Outcomes that come before their decision are kept for two
minutes. Late outcomes stay in the log and are counted; with access to the log, the join makes a correction from them
(late_rewards.py).

The input is the log's records in their order, and `now` is an argument, so the state is a function of the log, and a
restart rebuilds it by reading. Joins are records, and a joined decision is not joined again.

The latest `HELD` waiting decisions are held in memory. Of earlier ones, only a deadline and two sequence numbers are
(backlog.py). They are read from the log again when their deadline has passed or an outcome comes. So 10^6 of them take
some 25 MB, and a restart reads them from files of a checkpoint.
"""

import heapq
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, groupby, islice
from typing import Any

from msgspec.structs import replace

from onepass.log.records import (
    CENSORED,
    CORRECTION,
    CORRECTIONS,
    OUTCOMES,
    Activation,
    Decision,
    Join,
    Outcome,
    Settings,
)
from onepass.log.store import Store
from onepass.service.backlog import Backlog, Block
from onepass.service.late_rewards import AGGREGATE, EARLY, aggregate_named, correct_rewards, late_outcomes
from onepass.service.pending_decision import EARLY_OUTCOMES, PendingDecision, deadline, restore_decision
from onepass.service.settings import LoopSettings, parse_logged_settings

REMEMBERED = 10_000  # decisions joined last, whose outcomes are counted as late
EARLY_ALL = 100_000  # of all such ids together, the latest
LATE_OUTCOMES = 1_000  # of a joined decision that may each make a correction
TOGETHER = 256  # joins learned in one call at most: the model is locked for that long
HELD = 65_536  # decisions that wait in memory, where there is a store to read others from
PARKED = 16_384  # of them that go to the backlog at once
RECALLED = 256  # decisions that are read from the log at once: nobody is answered for that long
POPPED = 1_024  # joins that one call returns at most: a commit holds as many


class Joiner:
    """Join of the decisions of a loop with their rewards: it collects outcomes until a decision's deadline.

    - settings: settings of the loop until the log has others. Deadlines stay as decisions state them; everything else
      changes with the settings.
    - batch: number of the last batch of joins, records of final rewards (default 0); the next batch gets the next
      number.
    - store: the log (default None: nothing is corrected, and memory holds all decisions that wait).
    - before: earlier settings with their sequence numbers (default none).
    """

    def __init__(
        self,
        settings: LoopSettings,
        batch: int = 0,
        store: Store | None = None,
        before: Iterable[tuple[int, LoopSettings]] = (),
    ) -> None:
        self.settings, self.batch, self._store = settings, batch, store
        self._in_force = list(before)
        self._backlog, self._recalled = Backlog(), 0  # how many that memory holds are in the backlog, too
        self._known = 0  # the place up to which the backlog has all decisions that wait
        self.counts: Counter[str] = Counter()
        self._waiting: dict[str, PendingDecision] = {}
        self._early: dict[str, list[Outcome]] = {}  # lists, since most ids have one: an empty deque takes 760 bytes
        self._fleeting: deque[Outcome] = deque()  # early outcomes in their order, with some that are not kept any more
        self._joined: dict[str, int] = {}  # with how many late outcomes
        self._due: list[tuple[int, int, str]] = []
        self._late: dict[str, int] = {}  # decisions that may want a correction, and the place of its first outcome
        self._late_named: dict[str, int] = {}  # decisions that may have further outcomes, and the place of the first
        self._sent: dict[str, str | None] = {}  # of whose correction nobody knows yet whether it is stored; about whom
        self._recalled_records: list[Decision] = []  # of decisions that were read from the log, and are joined now

    def __len__(self) -> int:
        return len(self._waiting) + len(self._backlog) - self._recalled

    # ---- what the log says ----

    def add_record(self, record: Any) -> None:
        """Add the next record of the loop's log, such as a decision or an outcome."""
        if isinstance(record, Decision):
            self._add_decision(record)
        elif isinstance(record, Outcome):
            self._add_outcome(record)
        elif isinstance(record, Activation):
            self._add_activation(record)
        elif isinstance(record, Join) and record.again and record.how in (*CORRECTIONS, OUTCOMES):
            self._sent.pop(record.id, None)
            self.counts["outcomes later" if record.how == OUTCOMES else "corrected"] += 1
        elif isinstance(record, Join):
            waiting = self._release(record.id)
            if waiting is not None and waiting.record is not None:
                self._recalled_records.append(waiting.record)
            self._remember(record.id)
        elif isinstance(record, Settings):
            self.settings = parse_logged_settings(record)
            self._in_force.append((record.seq, self.settings))

    def settings_at(self, place: int) -> LoopSettings:
        """Return the settings that were in force at the sequence number `place` of the log."""
        later = bisect_right(self._in_force, place, key=lambda one: one[0])
        return self._in_force[max(later - 1, 0)][1] if self._in_force else self.settings

    def _add_decision(self, record: Decision) -> None:
        early = self._early.pop(record.id, ())
        if record.seq <= self._known:
            return
        waiting = PendingDecision(record, deadline(record, self.settings))
        self._waiting[record.id] = waiting
        for outcome in early:
            if outcome.time >= record.time - EARLY:
                waiting.first = min(waiting.first, outcome.seq)
                self._count(waiting, outcome)
        heapq.heappush(self._due, (waiting.due, record.seq, record.id))
        if self._store is not None and len(self._waiting) > HELD:
            self._park()

    def _add_activation(self, record: Activation) -> None:
        waiting = self._waiting.get(record.id)
        if waiting is None and len(self._backlog):
            about = self._find_records(record.id) or ()
            waiting = self._recall(record.id, [one for one in about if one.seq < record.seq])
        if waiting is not None and record.time <= waiting.due:
            waiting.active = True
        else:
            self.counts["activated late"] += 1

    def _add_outcome(self, record: Outcome) -> None:
        waiting = self._waiting.get(record.id)
        if waiting is not None:
            self._count(waiting, record)
        elif record.id in self._joined:
            self._count_late(record)
        elif record.id in self._early:
            self._keep_early(record)
        else:
            self._add_old_outcome(record)

    def _add_old_outcome(self, record: Outcome) -> None:
        """Add an outcome of a decision that is not in memory."""
        wanted = len(self._backlog) or record.name is not None or self._corrects(record)
        about = self._find_records(record.id) if wanted else None
        before = [one for one in about or () if one.seq < record.seq]
        waiting = self._recall(record.id, before)
        if waiting is not None:
            self._count(waiting, record)
        elif any(isinstance(one, Decision) for one in before):  # it was joined long ago, or before a restart
            self._remember(record.id)
            self._count_late(record)
        else:
            self._early[record.id] = []
            self._keep_early(record)

    def _keep_early(self, record: Outcome) -> None:
        """Store an outcome whose decision has not come; only the latest ones are kept, for each id and in total."""
        early = self._early[record.id]
        early.append(record)
        self._fleeting.append(record)
        if len(early) > EARLY_OUTCOMES:
            self._drop_early(early[0])
        if len(self._fleeting) > EARLY_ALL:
            self._drop_early(self._fleeting.popleft())

    def _drop_early(self, record: Outcome) -> None:
        """Remove `record`, an early outcome, unless its decision has come; it is the oldest one of its decision."""
        early = self._early.get(record.id)
        if early is None or early[0] is not record:
            return  # its decision came, or it was given up
        del early[0]
        self.counts["without a decision"] += 1
        if not early:
            del self._early[record.id]

    def _count(self, waiting: PendingDecision, outcome: Outcome) -> None:
        what = waiting.count(outcome)
        if what == "late":
            self._count_late(outcome)
        else:
            self.counts[what] += 1
            if what == "in time" and waiting.hasten(outcome, self.settings_at(outcome.seq)):
                heapq.heappush(self._due, (waiting.due, waiting.seq, outcome.id))

    def _corrects(self, record: Outcome) -> bool:
        """Return True if `record`, an outcome after the deadline, corrects the reward that was learned."""
        reward = self.settings_at(record.seq).reward
        return reward.censored or reward.late == "correct"

    def _find_records(self, identity: str) -> list[Any] | None:
        """Return the records about a decision, or None if the log cannot be read now."""
        try:
            return None if self._store is None else self._store.find(self.settings.name, identity)
        except OSError:
            return None

    def _count_late(self, record: Outcome) -> None:
        self.counts["late"] += 1
        if self._store is not None and record.name is not None:
            self._late_named.setdefault(record.id, record.seq)
            return
        if self._store is None or not self._corrects(record):
            return
        number = self._joined.get(record.id, 0)
        if number >= LATE_OUTCOMES:
            self.counts["too many"] += 1
            return
        if record.id in self._joined:
            self._joined[record.id] = number + 1
        self._late.setdefault(record.id, record.seq)

    def corrections(self, now: int) -> list[Join]:
        """Return records that correct rewards already learned, because outcomes came after the deadline.

        The records, at most 256, must be written to the log. The next call returns the others. `now` is the
        present time in microseconds of Unix time.
        """
        begin = partial(Join, loop=self.settings.name, time=now, again=True)
        outcomes = (
            begin(id=identity, rewards=[None] * len(found), how=OUTCOMES, count=count, outcomes=found)
            for identity, (found, count), _ in self._late_changes(self._late_named, late_outcomes)
        )
        rewards = (
            begin(id=identity, rewards=found, how=CENSORED if settings.reward.censored else CORRECTION, count=count)
            for identity, (found, count), settings in self._late_changes(self._late, correct_rewards)
        )
        return [*islice(chain(outcomes, rewards), TOGETHER)]

    def _late_changes(
        self, late: dict[str, int], find_change: Callable[[list[Any], LoopSettings], Any]
    ) -> Iterator[tuple[str, Any, LoopSettings]]:
        """Yield the ids of decisions in `late` whose rewards must change, with the change and their join's settings.

        The keys of `late` are ids of decisions with late outcomes. `find_change` returns the change from a decision's
        records and the settings, None for none; such a decision is removed from `late`. A decision that is yielded
        counts as sent from then on.
        """
        for identity in [*late] if self._store is not None else ():
            if identity in self._waiting or identity in self._sent:
                continue
            about = self._find_records(identity)
            if about is None:
                return
            settings = self.settings_at(next((one.seq for one in about if isinstance(one, Join)), 0))
            change = find_change(about, settings)
            if change is None:
                del late[identity]
                continue
            self._sent[identity] = next((one.subject for one in about if isinstance(one, Decision)), None)
            yield identity, change, settings

    def _remember(self, identity: str) -> None:
        self._joined[identity] = 0
        if len(self._joined) > REMEMBERED:
            del self._joined[next(iter(self._joined))]

    # ---- the backlog ----

    def _park(self) -> None:
        """Move the decisions that have been in memory longest to the backlog."""
        oldest = [*islice(((name, one) for name, one in self._waiting.items() if not one.sent), PARKED)]
        self._backlog.add((one.due, one.seq, one.first) for _, one in oldest if not one.parked)
        for identity, waiting in oldest:
            self._recalled -= waiting.parked
            del self._waiting[identity]
        if len(self._due) > HELD + PARKED:
            self._due = [entry for entry in self._due if entry[2] in self._waiting]
            heapq.heapify(self._due)

    def _recall(self, identity: str, about: list[Any]) -> PendingDecision | None:
        """Move a decision from the backlog to memory, given its records `about`; return None if it does not wait."""
        waiting = restore_decision(about, self.settings_at) if len(self._backlog) else None
        if waiting is not None:
            waiting.parked = True
            self._recalled += 1
            self._waiting[identity] = waiting
        return waiting

    def _recall_due(self, now: int) -> None:
        """Move the first `RECALLED` due decisions from the backlog to memory.

        All stay in the backlog while the log cannot be read. `now` is the present time in microseconds of Unix time.
        """
        if self._store is None or not self._is_due(now):
            return
        popped = list[tuple[int, int, int]]()
        while len(popped) < RECALLED and self._is_due(now):
            popped.append(self._backlog.pop())
        try:
            names = self._store.events_at(self.settings.name, [seq for _, seq, _ in popped])
            unheld = [name for name in names.values() if name not in self._waiting]
            found = self._store.find_all(self.settings.name, unheld)
        except OSError:
            self._backlog.add(popped)
            return
        for due, seq, _ in popped:
            name = names.get(seq)
            if name is None:
                self.counts["forgotten"] += 1
                continue
            waiting = self._waiting.get(name)
            if waiting is not None:
                self._recalled -= waiting.parked
                waiting.parked = False
            else:
                waiting = restore_decision(found[name], self.settings_at, due)
                if waiting is not None:
                    waiting.record = next(one for one in found[name] if isinstance(one, Decision))
            if waiting is not None and not waiting.sent:
                self._waiting[name] = waiting
                heapq.heappush(self._due, (due, seq, name))

    def take_recalled(self) -> list[Decision]:
        """Return the records of decisions that were read from the log to be joined, and whose joins have been added.

        Each is returned once. The learner needs them, and so does not read them again.
        """
        recalled, self._recalled_records = self._recalled_records, []
        return recalled

    def _is_due(self, now: int) -> bool:
        """Return True if the backlog has a deadline before the time `now`."""
        due = self._backlog.next_due()
        return due is not None and due < now

    def _release(self, identity: str) -> PendingDecision | None:
        """Remove a decision from memory, and return it."""
        waiting = self._waiting.pop(identity, None)
        if waiting is not None:
            self._recalled -= waiting.parked
        return waiting

    def blocks(self) -> list[tuple[Block, int]]:
        """Return all decisions that wait for outcomes, as blocks.

        Each block comes with the number of decisions at its beginning that no longer wait.
        """
        held = Backlog()
        held.add((one.due, one.seq, one.first) for one in self._waiting.values() if not one.parked)
        return [(one, one.done) for one in (*held.blocks, *self._backlog.blocks)]

    def restore(self, blocks: Iterable[Block], known: int) -> None:
        """Restore the decisions that waited for outcomes at the sequence number `known`, from a checkpoint's blocks."""
        for block in blocks:
            self._backlog.put(block)
        self._known = known

    # ---- what time says ----

    def pop_due(self, now: int, recall: bool = True) -> list[Join]:
        """Return the final rewards (joins) of decisions whose deadline has passed, sorted by deadline.

        Each is returned once. A call returns at most `POPPED` of them, so it is repeated until it returns none. `now`
        is the present time in microseconds of Unix time; no later record may have an earlier time. With `recall` False
        nothing is read from the log: decisions in the backlog wait on, and so do decisions with later deadlines.
        """
        while self._fleeting and self._fleeting[0].time + EARLY < now:
            self._drop_early(self._fleeting.popleft())
        if recall:
            self._recall_due(now)
        later = self._backlog.next_due()
        end = now if later is None else min(now, later)
        joins = list[Join]()
        while self._due and self._due[0][0] < end and len(joins) < POPPED:
            _, _, identity = heapq.heappop(self._due)
            waiting = self._waiting.get(identity)
            if waiting is None or waiting.sent:
                continue
            join = self._join(identity, waiting, now)
            if join is None:
                self._release(identity)
                self._remember(identity)
            else:
                waiting.sent = True
                joins.append(join)
        return joins

    def _join(self, identity: str, waiting: PendingDecision, now: int) -> Join | None:
        """Make the join of a decision (the record of its final rewards), or return None if nothing is learned from it.

        `identity` is the id of the decision, `waiting` its outcomes so far, and `now` the time in microseconds of
        Unix time.
        """
        rule = self.settings.reward
        if not waiting.active:
            self.counts["lapsed"] += 1
            return None
        if self.settings.mode == "logging":
            self.counts["only logged"] += 1
            return None
        rewards, how, clipped = list[float | None](), "default", False
        for slot in range(waiting.slots):
            values = [value for of, value in waiting.outcomes if of is None or of == slot]
            if not values:
                rewards.append(self.settings.default)
                continue
            value, how = AGGREGATE[rule.aggregation](values), rule.aggregation
            limited = min(max(value, rule.range[0]), rule.range[1])
            clipped = clipped or limited != value
            rewards.append(limited)
        outcomes = aggregate_named(waiting.named, waiting.slots, self.settings)
        if all(value is None for value in rewards):
            self.counts["without a reward"] += 1
            if outcomes is None:
                return None
            how, clipped = OUTCOMES, False
        self.counts[f"joined: {how}"] += 1
        how = f"{how}, limited" if clipped else how
        return Join(
            loop=self.settings.name, time=now, id=identity, rewards=rewards, how=how,
            count=len(waiting.outcomes) + len(waiting.named), outcomes=outcomes,
        )  # fmt: skip

    def assign_batches(self, joins: list[Join]) -> list[Join]:
        """Return records of final rewards (joins), with the number of the batch in which each of them is learned.

        One call of `learn` learns a batch, of at most `TOGETHER` records. A record of outcomes without a reward is a
        batch alone.
        """
        out: list[Join] = []
        for alone, run in groupby(joins, lambda join: join.how == OUTCOMES):
            together, each = 1 if alone else TOGETHER, [*run]
            for start in range(0, len(each), together):
                part = each[start : start + together]
                self.batch += 1
                out += part if len(part) == 1 else [replace(join, batch=self.batch) for join in part]
        return out

    def forget(self, subject: str) -> set[str]:
        """Drop the waiting decisions about a subject (a person), and return their ids.

        Decisions that wait on disk are dropped when their deadline has passed, because their records are erased by
        then.
        """
        gone = {identity for identity, waiting in self._waiting.items() if waiting.subject == subject}
        for identity in gone:
            waiting = self._release(identity)
            self.counts["forgotten"] += waiting is not None and not waiting.parked
        sent = {identity for identity, whom in self._sent.items() if whom == subject}
        for identity in sent:
            del self._sent[identity]
            self._late.pop(identity, None)
            self._late_named.pop(identity, None)
        return gone | sent

    # ---- restart ----

    def replay_start(self, last: int) -> int:
        """Return the sequence number after which a restart must read the log to restore the waiting decisions.

        `last` is the last sequence number of the log.
        """
        waiting = min((one.first for one in self._waiting.values()), default=last + 1)
        parked = self._backlog.first()
        return min(waiting, last + 1 if parked is None else parked, self.scan_start(last) + 1) - 1

    def scan_start(self, last: int) -> int:
        """Return the sequence number after which a restart must read the log if waiting decisions are also in files.

        `last` is the last sequence number of the log.
        """
        early = min((each[0].seq for each in self._early.values()), default=last + 1)
        late = (*self._late.values(), *self._late_named.values())
        return min(early, min(late, default=last + 1)) - 1

    def next_deadline(self) -> int | None:
        """Return the next deadline in microseconds, or None if nothing waits."""
        first = [self._due[0][0]] if self._due else []
        parked = self._backlog.next_due()
        return min(first if parked is None else [*first, parked], default=None)
