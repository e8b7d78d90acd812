"""Replay: a model is rebuilt from a checkpoint and the log after it, bit for bit.

The model after join s is computed from the model before:

    model(s) = learn(model(s - 1), the decision and the rewards of join s)      for the joins s = through + 1, ...

A join holds the rewards that were learned, so replay needs no clock. Its `batch` groups the joins that were learned in
one call, so a design that truncates at the end of a batch does so at the same point. The learner of a service and the
replay of its log are the same code. A model is identified by its line (the number of the model in its loop) and the
position through which it has learned: this position grows with every join, including corrections, in however many steps
the log is read.
"""

import functools
import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self, TypeVar

import msgspec
import numpy as np

from onepass.bandit.censored_rewards import correct_rewards
from onepass.bandit.decision import Decision as Decided
from onepass.bandit.decision import outcomes_from_json, rest_from_record
from onepass.bandit.late_correction import is_linear, learn_correction
from onepass.foundation import files
from onepass.foundation.check import quote
from onepass.foundation.deferred_signals import defer_signals
from onepass.log.eviction import arms_of, evict
from onepass.log.model_lineage import read_lineage
from onepass.log.records import CENSORED, CORRECTIONS, OUTCOME_FIELDS, OUTCOMES, Checkpoint, Decision, Eviction, Join
from onepass.log.replay_decide import learning_context
from onepass.log.store import Store, StoreError

HELD = 1 << 26  # bytes of decisions that are kept while their joins are awaited; older ones are looked up
EACH = 1_024  # bytes of a decision that is kept, without its rows; and of each arm in a record of another system
BITS = 8  # bytes of a number
NAME = 72  # bytes of a name in a list
REWARDED = 100_000  # arms whose last outcome is remembered in its order
DEFAULT = "default"  # how a join came about without an outcome
One = TypeVar("One", Join, Join | Eviction)
UNLEARNED: dict[str, Any] = dict.fromkeys(("scores", "means", "widths", "probabilities", "slots"))


class Fold:
    """Bandit that learns the rewards in a loop's log, up to some position so far.

    Parameters
    ----------
    store : Store
        The log.
    loop : str
        Name of the loop.
    bandit : Bandit
        Bandit that has learned every join, a record of rewards to learn, up to the position `through`. It is changed.
    through : int, default 0
        Position through which the bandit has learned.
    line : int, default 0
        Number of the loop's model (model_lineage.py); 0 is the first.
    end : int, default None
        Position of the last join that is learned. None means no end.
    begun : int, default None
        Position of the join after which the model began to learn. None takes it from the log.
    """

    store: Store
    loop: str
    bandit: Any
    line: int
    end: int | None
    joins: int  # how many it has learned, since somebody last set this to 0
    read: int  # the place up to which it has learned every join
    rewarded: dict[Any, None]  # arms that had an outcome, the one whose last is the oldest first

    def __init__(
        self, store: Store, loop: str, bandit: Any, through: int = 0, *, line: int = 0, end: int | None = None,
        begun: int | None = None,
    ) -> None:  # fmt: skip
        self.store, self.loop, self.bandit, self.through = store, loop, bandit, through
        self.line, self.end, self.read = line, end, through
        self.rewarded, self.joins = {}, 0
        self._decisions: dict[str, Decided | Decision] = {}
        self._names: Counter[int] = Counter()  # how many decisions that are kept have a list of names
        self._bytes = 0
        self._begun = begun

    @classmethod
    def resume(
        cls, store: Store, loop: str, begin: Any = None, *, first: bool = False, line: int | None = None
    ) -> Self:
        """Return the bandit of a checkpoint in the log, ready to learn what follows, or one at the log's beginning.

        Parameters
        ----------
        store : Store
            The log.
        loop : str
            Name of the loop.
        begin : Bandit, default None
            Bandit that has learned nothing, for a log without such a checkpoint.
        first : bool, default False
            Take the first checkpoint, from which most can be verified, instead of the last one.
        line : int, default None
            Number of the loop's model. None means the one that serves in the end.

        Returns
        -------
        Fold
            The bandit with its position in the log.

        Raises
        ------
        ValueError
            If there is neither a checkpoint nor `begin`.
        StoreError
            If the checkpoint is damaged.
        """
        lines = read_lineage(store, loop)
        number = lines.serving if line is None else line
        end = lines.each[number].end if number in lines.each else None
        found = None
        for one in store.read(kinds=["checkpoint"], loop=loop):
            if one.data is not None and one.line == number:
                found = one
                if first:
                    break
        if found is not None:
            return cls(store, loop, bandit_from_checkpoint(found), found.through, line=number, end=end)
        if begin is None:
            raise ValueError(f"loop {quote(loop)} has no checkpoint with its model: give the bandit it began with")
        return cls(store, loop, begin, line=number, end=end)

    def advance(self, until: int | None = None) -> int:
        """Learn all rewards, and forget arms, as the log says, up to a position.

        Parameters
        ----------
        until : int, default None
            The last position. None means the end of the log. A batch that ends after this position is not learned.

        Returns
        -------
        int
            Number of records learned.

        Raises
        ------
        StoreError
            If the decision of a reward is no longer in the log. What was learned before stays learned.
        """
        count, last = 0, self.store.last
        until = min(last if until is None else until, last if self.end is None else self.end)
        join_after_end = functools.cache(functools.partial(self._join_after, until))  # read once, also if there is none
        for joins in group_joins(self._scan(until)):
            if isinstance(joins[-1], Join) and joins[-1].batch is not None:
                later = join_after_end()
                if later is not None and is_same_batch(joins[-1], later):
                    return count
            self.learn(joins)
            count += len(joins)
        self.through = max(self.through, until)
        return count

    def checkpoint(self, time: int, **fields: Any) -> Checkpoint:
        """Return a checkpoint record with the learned model.

        `time` is its time in microseconds of Unix time, and `fields` are further fields, such as `state`.
        """
        data = files.to_bytes(self.bandit)
        digest = hashlib.sha256(data).hexdigest()
        fields = {"loop": self.loop, "time": time, "line": self.line, **fields}
        return Checkpoint(through=self.through, digest=digest, data=data, **fields)

    def _scan(self, until: int | None) -> Iterator[Join | Eviction]:
        """Yield the joins and evictions not read before, up to the position `until`, and store the decisions."""
        for one in self.store.read(max(self.through, self.read), until, ("decision", "join", "eviction"), self.loop):
            if isinstance(one, Decision):
                self.add_decision(one)
            else:
                yield one

    def add_decision(self, decision: Decision) -> None:
        """Store what must be learned from a decision, until the record with its rewards comes.

        A decision that cannot be learned is ignored. If decisions take too much memory, the oldest are dropped. The
        record of another system's decision is stored as it is, and converted when it is learned.
        """
        try:
            foreign = decision.scores is None and decision.context is None
            held = decision if foreign else lesson_from_record(decision)
        except ValueError:  # whoever learns it is told
            return
        self.release(decision.id)
        self._decisions[decision.id] = held
        self._bytes += _decision_bytes(held) + self._hold_names(_candidate_names(held), 1)
        while self._bytes > HELD:
            self.release(next(iter(self._decisions)))

    def release(self, identity: str) -> Decided | Decision | None:
        """Remove and return what was stored of the decision with the id `identity`; None if nothing is stored.

        A decision of onepass was stored as `Decided`, the part that learning needs; others as `Decision`.
        """
        held = self._decisions.pop(identity, None)
        if held is not None:
            self._bytes -= _decision_bytes(held) + self._hold_names(_candidate_names(held), -1)
        return held

    def _hold_names(self, names: Any, step: int) -> int:
        """Return the bytes of a list of names, or 0 if another stored decision shares it.

        `step` is 1 to store the list, -1 to release it.
        """
        others = self._names[id(names)] + min(step, 0)
        self._names[id(names)] += step
        if others:
            return 0
        if step < 0:
            del self._names[id(names)]
        return NAME * len(names or ())

    def _join_after(self, position: int) -> Join | None:
        """Return the first join after a position, None if there is none."""
        return next(self.store.read(position, None, ("join",), self.loop), None)

    def learn(self, records: Sequence[Join | Eviction]) -> int:
        """Learn the rewards of one batch of records in one call, or forget the arms that an eviction record names.

        Returns the number of records that were skipped because their decisions were erased. Raises StoreError if a
        decision is no longer in the log for another reason.
        """
        joins, passed = [one for one in records if isinstance(one, Join)], 0
        with defer_signals():
            if joins:
                passed = self._correct(joins) if joins[0].how in CORRECTIONS else self._learn(joins)
            for one in records:
                if isinstance(one, Eviction):
                    self._evict(one.arms)
            self.through = records[-1].seq
            self.joins += len(joins)
        return passed

    def _evict(self, arms: list[str]) -> None:
        evict(self.bandit, arms)
        for arm in arms:
            self.rewarded.pop(arm, None)

    def _learn(self, joins: list[Join]) -> int:
        found = self._find_decisions(joins)
        known = [(decision, join) for join in joins if (decision := self._decision(join, found)) is not None]
        decisions = [decision for decision, _ in known]
        rewards = [join.rewards if len(join.rewards) != 1 else join.rewards[0] for _, join in known]
        options: dict[str, Any] = {"allow_repeat": joins[0].again}
        if self.bandit.needs_time:
            options["time"] = joins[-1].seconds
        if any(join.outcomes is not None for _, join in known):
            each = [
                join.outcomes if join.outcomes is None or len(join.outcomes) != 1 else join.outcomes[0]
                for _, join in known
            ]
            options["outcomes"] = each[0] if joins[0].batch is None else each
        if not decisions:
            pass
        elif joins[0].how == OUTCOMES:
            self._learn_once(decisions, outcomes=[each[0]] if joins[0].batch is None else each)
        elif joins[0].batch is None:
            self._learn_once(decisions[0], rewards[0], **options)
        else:
            self._learn_once(decisions, rewards, **options)
        if self.bandit.model.has_named_arms:
            self._note_outcomes(known)
        return len(joins) - len(known)

    def _learn_once(self, *given: Any, **options: Any) -> None:
        """Call `learn` of the bandit, which refuses a second reward of a decision.

        It is learned if decisions were deleted from the log, because their ids may be used again.
        """
        try:
            self.bandit.learn(*given, **options)
        except ValueError:
            if not self._lacks_decisions():
                raise
            self.bandit.learn(*given, **{**options, "allow_repeat": True})

    def _note_outcomes(self, known: list[tuple[Decided, Join]]) -> None:
        """Remember the arms that had an outcome, in the order of their last outcome.

        `known` holds decisions, each with the join that has been learned for it.
        """
        for decision, join in known:
            for arm in decision.arms if join.how != DEFAULT else ():
                self.rewarded.pop(arm, None)
                self.rewarded[arm] = None
        while len(self.rewarded) > REWARDED:
            del self.rewarded[next(iter(self.rewarded))]

    def rewarded_arms(self) -> list[str]:
        """Return the known arms that had an outcome, the one whose last outcome is the oldest first."""
        known = {*arms_of(self.bandit)}
        return [arm for arm in self.rewarded if arm in known and isinstance(arm, str)]

    def _correct(self, corrections: list[Join]) -> int:
        """Learn corrections of rows that this model has learned, if it is linear in rewards or they are censored.

        Returns the number of corrections that were skipped because their decisions were erased.
        """
        passed, linear = 0, is_linear(self.bandit)
        for join in [one for one in corrections if linear or one.how == CENSORED]:
            about = self.store.find(self.loop, join.id)
            decision = next((one for one in about if isinstance(one, Decision)), None)
            learned = next((one for one in about if isinstance(one, Join) and not one.again), None)
            if decision is None or learned is None:
                self._refuse_dropped(join)
                passed += 1
            elif learned.seq > self._first_join():
                lesson = decision_to_learn(decision)
                kept = self._arms_not_evicted(learned.seq, join.seq, lesson.arms)
                rewards = [value if one else None for value, one in zip(join.rewards, kept, strict=True)]
                if linear:
                    learn_correction(self.bandit, lesson, rewards)
                else:
                    joins = [one for one in about if isinstance(one, Join) and one.seq < join.seq]
                    known = [math.fsum(one.rewards[slot] or 0.0 for one in joins) for slot in range(len(rewards))]
                    correct_rewards(self.bandit, lesson, list(known), rewards, join.seconds)
        return passed

    def _arms_not_evicted(self, learned: int, now: int, arms: list[Any]) -> list[bool]:
        """Return for each arm True if the model has kept it from the position `learned` of the log to `now`."""
        evicted = {arm for one in self.store.read(learned, now, ("eviction",), self.loop) for arm in one.arms}
        return [not evicted or arm not in evicted for arm in arms]

    def _first_join(self) -> int:
        """Return the position after which this model has learned every join."""
        if self._begun is None:
            line = read_lineage(self.store, self.loop).each.get(self.line)
            self._begun = 0 if line is None else line.through
        return self._begun

    def _find_decisions(self, joins: list[Join]) -> dict[str, list[Decision]]:
        """Return the decisions of a batch of joins that are not kept, from the log, as lists by id."""
        missing = [join.id for join in joins if join.id not in self._decisions]
        return self.store.find_all(self.loop, missing, ("decision",)) if missing else {}

    def _decision(self, join: Join, found: dict[str, list[Decision]]) -> Decided | None:
        """Return the decision of a join, kept or among `found`; None if it was forgotten before it was joined."""
        held = self.release(join.id)
        if held is not None:
            return decision_to_learn(held) if isinstance(held, Decision) else held
        for one in found[join.id] if join.id in found else self.store.find(self.loop, join.id):
            if isinstance(one, Decision):
                return decision_to_learn(one)
        self._refuse_dropped(join)
        return None

    def _refuse_dropped(self, join: Join) -> None:
        """Raise StoreError for a join whose decision is not in the log, unless the decision may have been forgotten.

        It may have been if the log begins at its first record and has a forgotten decision.
        """
        if self.store.first > 1 or not self._has_forgotten():
            raise StoreError(
                f"the decision of join {join.seq} is not in the log any more: begin at a checkpoint that has learned it"
            )

    def _has_forgotten(self) -> bool:
        """Return True if the log has a forgotten decision."""
        return any(one.was == "decision" for one in self.store.read(kinds=["forgotten"], loop=self.loop))

    def _lacks_decisions(self) -> bool:
        """Return True if decisions may have been deleted from the log: its first records, or forgotten ones."""
        return self.store.first > 1 or self._has_forgotten()


def lesson_from_record(record: Decision) -> Decided:
    """Return the part of a logged decision that learning needs: the chosen arms, without the statistics of other arms.

    Raises ValueError for a decision of another system that cannot be learned.
    """
    rows, names, drawn = record.context, record.offered, record.propensities
    mine = record.arms is None and record.shown is None and type(rows) is list
    if not mine or drawn is None or names is None or not all(type(names[place]) is str for place in record.places):
        return decision_to_learn(record)._replace(**UNLEARNED)
    arms, places = [names[place] for place in record.places], np.array(record.places)
    return Decided(
        arm=arms[0], arms=arms, propensity=drawn[0], index=record.places[0], places=places,
        propensities=np.array(drawn), rest=rest_from_record(record.tail), id=record.id, candidates=names,
        context=np.array(rows, np.float64),
        n_learned=record.rounds, rule=record.rule, seed=record.seed, **UNLEARNED, **_outcome_fields(record),
    )  # fmt: skip


def _outcome_fields(record: Decision) -> dict[str, Any]:
    """Return the fields of a `onepass.Decision` with outcomes that learning needs: predictions and prices.

    The result is {} for a decision without named outcomes.
    """
    if record.predicted is None:
        return {}
    return outcomes_from_json({name: getattr(record, name) for name in OUTCOME_FIELDS}, len(record.offered or ()))


def _decision_bytes(held: Decided | Decision) -> int:
    """Return the approximate bytes of a stored decision, without the names that other decisions may share."""
    if isinstance(held, Decision):
        return EACH * (1 + len(held.probabilities or held.offered or ()))
    return EACH + BITS * int(np.size(held.context))


def _candidate_names(held: Decided | Decision) -> Any:
    """Return the list of names of a stored decision, which other decisions may share; None if it has its own."""
    return None if isinstance(held, Decision) else held.candidates


def is_same_batch(one: Join | Eviction, other: Join | Eviction) -> bool:
    """Return True if two consecutive records hold rewards that are learned in one call."""
    if isinstance(one, Eviction) or isinstance(other, Eviction):
        return False
    return one.batch is not None and (one.batch, one.again) == (other.batch, other.again)


def group_joins(joins: Iterable[One]) -> Iterator[list[One]]:
    """Yield lists of records whose rewards are learned in one call; a record of removed arms is in a list by itself."""
    group: list[One] = []
    for join in joins:
        if group and not is_same_batch(group[-1], join):
            yield group
            group = []
        group.append(join)
    if group:
        yield group


def bandit_from_checkpoint(checkpoint: Checkpoint) -> Any:
    """Return the model of a checkpoint; raise StoreError if its bytes have another digest."""
    data = checkpoint.data or b""
    if hashlib.sha256(data).hexdigest() != checkpoint.digest:
        raise StoreError(f"checkpoint {checkpoint.seq} is damaged: its digest is another")
    return files.from_bytes(data)


def decision_to_learn(record: Decision) -> Decided:
    """Return a logged decision as a `onepass.Decision` for `learn`; it has the arms that were shown.

    Raises ValueError if the record lacks what learning needs.
    """
    if record.scores is None:
        return _foreign_decision(record)
    if record.shown is None or record.shown == record.places:
        return record.to_decision()
    context = learning_context(record.contexts, record.shown)
    if context is None:
        raise ValueError(f"decision {quote(record.id)} must have the rows of all arms, to learn from what was shown")
    return msgspec.structs.replace(record, places=record.shown, arms=None, context=context).to_decision()


def _foreign_decision(record: Decision) -> Decided:
    """Return the decision of another system, without scores, which learning does not need.

    Raises ValueError if the log does not hold the arms that were offered.
    """
    places = record.places if record.shown is None else record.shown
    context, names = learning_context(record.contexts, places), record.names
    if context is None:
        raise ValueError(f"decision {quote(record.id)} must have rows or records of its arms, to learn from it")
    arms = list(places) if names is None else [names[place] for place in places]
    context = context if isinstance(context, dict) else np.array(context, np.float64)
    return Decided(
        arm=arms[0], arms=arms, propensity=None, index=places[0], places=np.array(places),
        propensities=np.array(record.propensities or (), np.float64), rest=rest_from_record(record.tail),
        id=record.id, candidates=names, context=context, n_learned=0, rule="", seed=0, **UNLEARNED,
    )  # fmt: skip
