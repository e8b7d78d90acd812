"""Replay: a model is the fold of its log from a checkpoint, bit for bit.

    model(s) = learn(model(s - 1), the decision and the rewards of join s)      for the joins s = through + 1, ...

A join says which rewards were learned, so replay needs no clock, and which joins were learned in one call (`batch`), so
a design that cuts at the end of a batch cuts where it did. The learner of a service and the replay of its log are the
same lines. `verify` decides again what was decided: every probability of the log, to the last bit.
"""

import hashlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Self

import msgspec
import numpy as np

from onepass.bandit.decision import Decision as Decided
from onepass.features.factors import Outer
from onepass.foundation import files
from onepass.foundation.check import shown
from onepass.foundation.interrupts import deferred
from onepass.log.records import Checkpoint, Decision, Join
from onepass.log.store import Store, StoreError

HELD = 1_000  # decisions kept while their joins are awaited, of up to 1 MB each; older ones are looked up
WINDOW = 1_000  # decisions that are put in the order of their models: as many may come out of order
LISTED = 100  # mismatches that are told in full
PROMISED = ("probabilities", "slots", "places", "propensities", "scores", "means", "widths", "rule")
UNDRAWN = ("means", "widths", "rule")  # what does not depend on random numbers


class Fold:
    """A bandit that has learned the joins of a loop up to a place, and goes on.

    store: the log; loop: the name of the loop; bandit: what has learned everything up to the place `through` (default
    0: nothing), and is changed.
    """

    def __init__(self, store: Store, loop: str, bandit: Any, through: int = 0):
        self.store, self.loop, self.bandit, self.through = store, loop, bandit, through
        self._decisions: dict[str, Decision] = {}

    @classmethod
    def resumed(cls, store: Store, loop: str, begin: Any = None, *, first: bool = False) -> Self:
        """The fold at the last checkpoint of a loop that holds its model, or at the beginning.

        store, loop: as above; begin: the bandit that has learned nothing, for a log without such a checkpoint (default
        None); first: at the first checkpoint instead, from which most can be verified (default False). ValueError where
        neither is there, StoreError for a checkpoint that is damaged.
        """
        found = None
        for one in store.read(kinds=["checkpoint"], loop=loop):
            if one.data is not None:
                found = one
                if first:
                    break
        if found is not None:
            return cls(store, loop, restored(found), found.through)
        if begin is None:
            raise ValueError(f"loop {shown(loop)} has no checkpoint with its model: give the bandit it began with")
        return cls(store, loop, begin)

    def advance(self, until: int | None = None) -> int:
        """Learn all joins up to a place, and return how many.

        until: the last place (default None: the end of the log); a batch that goes on after it is not begun. StoreError
        where the decision of a join is no longer in the log; what was learned before stays learned.
        """
        count = 0
        for joins in grouped(self._scanned(until)):
            if until is not None and self._goes_on(joins[-1], until):
                return count
            self.learn(joins)
            count += len(joins)
        self.through = max(self.through, self.store.last if until is None else until)
        return count

    def checkpoint(self, time: int, **fields: Any) -> Checkpoint:
        """A record of what was learned so far, model included. time: microseconds; fields: model, state, ..."""
        data = files.to_bytes(self.bandit)
        digest = hashlib.sha256(data).hexdigest()
        return Checkpoint(loop=self.loop, time=time, through=self.through, digest=digest, data=data, **fields)

    def _scanned(self, until: int | None) -> Iterator[Join]:
        """Joins after `through`, while decisions are noted."""
        for one in self.store.read(self.through, until, ("decision", "join"), self.loop):
            if isinstance(one, Join):
                yield one
            else:
                self.note(one)

    def note(self, decision: Decision) -> None:
        """Keep a decision until its join comes."""
        self._decisions[decision.id] = decision
        if len(self._decisions) > HELD:
            del self._decisions[next(iter(self._decisions))]

    def _goes_on(self, join: Join, until: int) -> bool:
        """Whether the batch of a join has more joins after a place."""
        later = next(self.store.read(until, None, ("join",), self.loop), None)
        return later is not None and together(join, later)

    def learn(self, joins: list[Join]) -> None:
        """Learn joins in one call, those of one batch."""
        decisions = [learned_from(self._decision(join)) for join in joins]
        rewards = [join.rewards if len(join.rewards) != 1 else join.rewards[0] for join in joins]
        options: dict[str, Any] = {"again": joins[0].again}
        if self.bandit.timed:
            options["time"] = joins[-1].seconds
        with deferred():
            if joins[0].batch is None:
                self.bandit.learn(decisions[0], rewards[0], **options)
            else:
                self.bandit.learn(decisions, rewards, **options)
            self.through = joins[-1].seq

    def _decision(self, join: Join) -> Decision:
        held = self._decisions.pop(join.id, None)
        if held is not None:
            return held
        for one in self.store.find(self.loop, join.id):
            if isinstance(one, Decision):
                return one
        raise StoreError(
            f"the decision of join {join.seq} is not in the log any more: begin at a checkpoint that has learned it"
        )


def together(one: Join, other: Join) -> bool:
    """Whether two joins that follow one another are learned in one call."""
    return one.batch is not None and (one.batch, one.again) == (other.batch, other.again)


def grouped(joins: Iterable[Join]) -> Iterator[list[Join]]:
    """Joins that are learned in one call."""
    group: list[Join] = []
    for join in joins:
        if group and not together(group[-1], join):
            yield group
            group = []
        group.append(join)
    if group:
        yield group


def restored(checkpoint: Checkpoint) -> Any:
    """The model of a checkpoint; StoreError where its bytes are not those that were written."""
    data = checkpoint.data or b""
    if hashlib.sha256(data).hexdigest() != checkpoint.digest:
        raise StoreError(f"checkpoint {checkpoint.seq} is damaged: its digest is another")
    return files.from_bytes(data)


def learned_from(record: Decision) -> Decided:
    """What is learned of a decision: what was shown."""
    if record.shown is None or record.shown == record.places:
        return record.decided()
    rows = record.contexts
    if not isinstance(rows, list):
        raise ValueError(f"decision {shown(record.id)} must have the rows of all arms, to learn from what was shown")
    each = [rows[place] if isinstance(rows[0], list) else rows for place in record.shown]
    context = each[0] if len(each) == 1 else each
    return msgspec.structs.replace(record, places=record.shown, arms=None, context=context).decided()


# ---- verify ----


class Mismatch(NamedTuple):
    """A decision that cannot have been made as the log says. seq: its place; fields: those that come out otherwise."""

    seq: int
    fields: tuple[str, ...]


class Verified(NamedTuple):
    """What `verify` found.

    decisions: how many were read; equal: how many came out the same in every bit; undrawn: how many had no id of their
    own, so that their random numbers are gone, but the same means and widths; mismatches: up to 100 of those that did
    not; wrong: how many there were; left: how many could not be decided again, by reason; joins: how many were learned.
    checkpoints: how many later checkpoints the model was equal to, in every bit; others: the places of those that it
    was not.
    """

    decisions: int
    equal: int
    undrawn: int
    wrong: int
    mismatches: tuple[Mismatch, ...]
    left: dict[str, int]
    joins: int
    checkpoints: int
    others: tuple[int, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong, and every decision has its model. Decisions without an id move the generator of a
        bandit, which is a part of it: then checkpoints may be others."""
        modelless = self.left.keys() & {OLDER, NEWER}
        return self.wrong == 0 and not modelless and (not self.others or self.undrawn > 0)


NO_CONTEXTS = "the log does not hold what was offered"
OLDER = f"made by a model that is more than {WINDOW:,} decisions old"
NEWER = "made by a model that has learned more than the log holds"
FOREIGN = "of another origin"


def verify(fold: Fold, until: int | None = None, told: Callable[[int], object] | None = None) -> Verified:
    """Decide again, from a checkpoint on, what the log says was decided, each decision by the model that made it.

    fold: at the checkpoint; its bandit goes on to the end. until: the last place (default None: the end of the log).
    told: is called with every place that was read (default None).
    The model of a decision is the one that has learned as many rows as the decision says.
    """
    check = Verifying(fold, until)
    for one in fold.store.read(fold.through, until, ("decision", "join"), fold.loop):
        check.take(one)
        if told is not None:
            told(one.seq)
    return check.done()


class Verifying:
    """Decisions in the order of their models, and the joins between them."""

    def __init__(self, fold: Fold, until: int | None):
        self._fold = fold
        saved = fold.store.read(fold.through, until, ("checkpoint",), fold.loop)
        self._saved = deque(sorted((one.through, one.seq, one.digest) for one in saved if one.through >= fold.through))
        self._others: list[int] = []
        self._window: list[Decision] = []
        self._joins: deque[list[Join]] = deque()
        self._counts: Counter[str] = Counter()
        self._left: Counter[str] = Counter()
        self._mismatches: list[Mismatch] = []

    def take(self, one: Decision | Join) -> None:
        """The next record."""
        if isinstance(one, Join):
            if self._joins and together(self._joins[-1][-1], one):
                self._joins[-1].append(one)
            else:
                self._joins.append([one])
            return
        self._fold.note(one)
        self._window.append(one)
        if len(self._window) == WINDOW:
            self._settle()

    def done(self) -> Verified:
        """What was found, when there are no more records."""
        self._settle()
        while self._joins:
            self._learn()
        self._compare(None)
        count = self._counts
        return Verified(
            decisions=count["decisions"],
            equal=count["equal"],
            undrawn=count["undrawn"],
            wrong=count["wrong"],
            mismatches=tuple(self._mismatches),
            left=dict(self._left),
            joins=count["joins"],
            checkpoints=count["checkpoints"],
            others=tuple(self._others),
        )

    def _compare(self, seq: int | None) -> None:
        """The model with the checkpoints that have learned nothing from a place on."""
        digest = None
        while self._saved and (seq is None or self._saved[0][0] < seq):
            _, place, saved = self._saved.popleft()
            if digest is None:
                digest = hashlib.sha256(files.to_bytes(self._fold.bandit)).hexdigest()
            if saved == digest:
                self._counts["checkpoints"] += 1
            else:
                self._others.append(place)

    def _learn(self) -> None:
        joins = self._joins.popleft()
        self._compare(joins[0].seq)
        self._fold.learn(joins)
        self._counts["joins"] += len(joins)

    def _settle(self) -> None:
        for record in sorted(self._window, key=lambda one: one.rounds):
            self._counts["decisions"] += 1
            while self._fold.bandit.rounds < record.rounds and len(self._joins) > 0:
                self._learn()
            reason = self._reason(record)
            if reason is not None:
                self._left[reason] += 1
                continue
            keyed = isinstance(record.seed, str)
            fields = different(self._fold.bandit, record, PROMISED if keyed else UNDRAWN)
            self._counts["wrong" if fields else "equal" if keyed else "undrawn"] += 1
            if fields and len(self._mismatches) < LISTED:
                self._mismatches.append(Mismatch(record.seq, fields))
        self._window.clear()

    def _reason(self, record: Decision) -> str | None:
        """Why a decision cannot be made again."""
        if record.contexts is None:
            return NO_CONTEXTS
        if record.scores is None:
            return FOREIGN
        rounds = self._fold.bandit.rounds
        return None if rounds == record.rounds else OLDER if rounds > record.rounds else NEWER


def different(bandit: Any, record: Decision, fields: Iterable[str]) -> tuple[str, ...]:
    """Which fields of a decision come out otherwise."""
    options: dict[str, Any] = {"id": record.id, "tail": record.tail}
    if record.eligible is not None:
        options["eligible"] = record.eligible
    if bandit.timed:
        options["time"] = record.seconds
    names = None if record.offered is None else record.decided().offered
    again = bandit.decide(offered(record.contexts), names, len(record.places), **options)
    found = Decision.of(again, loop=record.loop, time=record.time)
    bits = msgspec.json.encode
    return tuple(name for name in fields if bits(getattr(found, name)) != bits(getattr(record, name)))


def offered(contexts: Any) -> Any:
    """Contexts of a record as `decide` takes them."""
    if isinstance(contexts, dict):
        return Outer(np.array(contexts["left"], np.float64), np.array(contexts["right"], np.float64))
    return np.array(contexts, np.float64)
