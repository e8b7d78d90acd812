"""Verify: decide again what a log says was decided, by the model that made it, and compare every bit.

    model of a decision = the fold of the joins that it had learned: as many rows as the decision says

A loop that has had several models (lines.py) is verified by one pass for each: its own decisions, what it would have
done as a candidate, and, of its own decisions, that what was shown is what the mixture of both says (showing.py).
Servers may lag behind the log and behind one another, so decisions are put in the order of their models, 1,000 at a
time. Every later checkpoint is compared with the model of the fold.
"""

import hashlib
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec

from onepass.foundation import files
from onepass.log.asking import decided_on
from onepass.log.records import Decision, Join
from onepass.log.replay import Fold, together
from onepass.log.showing import shown_with

WINDOW = 1_000  # decisions that are put in the order of their models: as many may come out of order
LISTED = 100  # mismatches that are told in full
PROMISED = ("probabilities", "slots", "places", "propensities", "scores", "means", "widths", "rule")
UNDRAWN = ("means", "widths", "rule")  # what does not depend on random numbers
CANARY = "canary"  # the field of a decision that a candidate's pass compares


class Mismatch(NamedTuple):
    """A decision that cannot have been made as the log says. seq: its place; fields: those that come out otherwise."""

    seq: int
    fields: tuple[str, ...]


class Verified(NamedTuple):
    """What `verify` found.

    decisions: how many were read of this model; canaries: how many of another's with what this one would have done as a
    candidate; equal: how many came out the same in every bit; undrawn: how many had no id of their
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
    canaries: int = 0

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

    def __init__(self, fold: Fold, until: int | None) -> None:
        self._fold = fold
        saved = fold.store.read(fold.through, until, ("checkpoint",), fold.loop)
        ours = (one for one in saved if one.line == fold.line and one.through >= fold.through and one.digest)
        self._saved = deque(sorted((one.through, one.seq, one.digest) for one in ours))
        self._others: list[int] = []
        self._window: list[tuple[int, Decision]] = []
        self._joins: deque[list[Join]] = deque()
        self._counts: Counter[str] = Counter()
        self._left: Counter[str] = Counter()
        self._mismatches: list[Mismatch] = []

    def take(self, one: Decision | Join) -> None:
        """The next record."""
        if isinstance(one, Join):
            if self._fold.end is not None and one.seq > self._fold.end:
                return
            if self._joins and together(self._joins[-1][-1], one):
                self._joins[-1].append(one)
            else:
                self._joins.append([one])
            return
        self._fold.note(one)
        if one.line == self._fold.line:
            self._window.append((one.rounds, one))
        elif one.canary is not None and one.canary.line == self._fold.line:
            self._window.append((one.canary.rounds, one))
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
            canaries=count["canaries"],
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
        for rounds, record in sorted(self._window, key=lambda one: one[0]):
            own = record.line == self._fold.line
            self._counts["decisions" if own else "canaries"] += 1
            while self._fold.bandit.rounds < rounds and len(self._joins) > 0:
                self._learn()
            reason = self._reason(record, rounds)
            if reason is not None:
                self._left[reason] += 1
                continue
            keyed = isinstance(record.seed, str)
            if own:
                fields = different(self._fold.bandit, record, PROMISED if keyed else UNDRAWN)
                fields += wrongly_shown(record)
            else:
                fields = otherwise(self._fold.bandit, record)
            self._counts["wrong" if fields else "equal" if keyed else "undrawn"] += 1
            if fields and len(self._mismatches) < LISTED:
                self._mismatches.append(Mismatch(record.seq, fields))
        self._window.clear()

    def _reason(self, record: Decision, rounds: int) -> str | None:
        """Why a decision cannot be made again."""
        if record.contexts is None:
            return NO_CONTEXTS
        if record.scores is None:
            return FOREIGN
        known = self._fold.bandit.rounds
        return None if known == rounds else OLDER if known > rounds else NEWER


def different(bandit: Any, record: Decision, fields: Iterable[str]) -> tuple[str, ...]:
    """Which fields of a decision come out otherwise."""
    found = Decision.of(again(bandit, record), loop=record.loop, time=record.time)
    bits = msgspec.json.encode
    return tuple(name for name in fields if bits(getattr(found, name)) != bits(getattr(record, name)))


def otherwise(bandit: Any, record: Decision) -> tuple[str, ...]:
    """The same of what a candidate would have done."""
    assert record.canary is not None
    found = again(bandit, record)
    same = (found.probabilities.tolist(), found.places[0]) == (record.canary.probabilities, record.canary.place)
    return () if same else (CANARY,)


def wrongly_shown(record: Decision) -> tuple[str, ...]:
    """Whether what was shown is not what the mixture with a candidate says."""
    wanted = shown_with(record)
    return () if wanted is None or wanted == (record.shown, record.showing) else ("shown",)


def again(bandit: Any, record: Decision) -> Any:
    """The decision, made again by a bandit."""
    options: dict[str, Any] = {"id": record.id, "tail": record.tail}
    if record.eligible is not None:
        options["eligible"] = record.eligible
    if bandit.timed:
        options["time"] = record.seconds
    return decided_on(bandit, record.contexts, record.names, len(record.places), **options)
