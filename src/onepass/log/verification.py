"""Verification: repeat each logged decision by the model that made it, and compare every bit.

A decision is repeated by

    model of a decision = the model after the joins up to the position that the decision names (`through`)

A loop that has had several models (model_lineage.py) is verified by one pass for each. A pass repeats the model's own
decisions and its choices as a candidate. It also checks that the arms shown agree with the mixture (canary_split.py).
Servers may lag behind the log and behind one another, so decisions are put in the order of their models, 1,000 of them
at a time. Every later checkpoint is compared with the model of the replay.

Deletion is a right, not tampering. If a join was forgotten that the model had learned, nobody can learn it again.
Decisions after it are counted as left, until a checkpoint whose model is in the log, which a service makes when it
forgets. From there on every decision is repeated.
"""

import hashlib
import heapq
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec
import numpy as np

from onepass.bandit.decision import rest_from_record
from onepass.bandit.mixture import mix_with_baseline
from onepass.bandit.outcomes import ARMS
from onepass.foundation import files
from onepass.log.canary_split import display_from_canary
from onepass.log.records import Checkpoint, Decision, Eviction, Forgotten, Join
from onepass.log.replay import Fold, bandit_from_checkpoint, is_same_batch
from onepass.log.replay_decide import decide_from_log

WINDOW = 1_000  # decisions that are put in the order of their models: as many may come out of order
LISTED = 100  # mismatches that are told in full
PROMISED = (
    "probabilities",
    "slots",
    "places",
    "propensities",
    "scores",
    "means",
    "widths",
    "rule",
    "predicted",
    "mixture",
)
UNDRAWN = ("means", "widths", "rule", "predicted")  # what does not depend on random numbers
JOIN = str(Join.__struct_config__.tag)
CANARY = "canary"  # the field of a decision that a candidate's pass compares


class Mismatch(NamedTuple):
    """Decision that cannot have been made as the log says.

    `seq` is the position of its record, and `fields` are the names of the fields that differ.
    """

    seq: int
    fields: tuple[str, ...]


class Verified(NamedTuple):
    """Result of `verify`.

    Parameters
    ----------
    decisions : int
        Number of decisions of this model.
    equal : int
        Number of decisions that are equal in every bit.
    undrawn : int
        Number of decisions without an id, whose draw cannot be repeated, but whose means and widths are equal.
    wrong : int
        Number of decisions that differ.
    mismatches : tuple of Mismatch
        Up to 100 of the decisions that differ.
    left : dict
        Number of decisions that could not be repeated, by reason.
    joins : int
        Number of records of rewards that were learned.
    checkpoints : int
        Number of later checkpoints that the model was equal to in every bit.
    others : tuple of int
        Positions of checkpoints that the model was not equal to.
    canaries : int, default 0
        Number of decisions made by other models in which this model took part as a candidate.
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
        """True if no decision and no checkpoint differs, and the model of every decision was found.

        Checkpoints may differ after decisions without an id, which move the bandit's random generator.
        """
        modelless = self.left.keys() & {OLDER, NEWER, DAMAGED}
        return self.wrong == 0 and not modelless and (not self.others or self.undrawn > 0)


NO_CONTEXTS = "the log does not hold what was offered"
FORGOTTEN = "made by a model that had learned of a subject that was forgotten"
EARLIER = "made before the checkpoint with which verifying begins"
OLDER = f"made by a model that is more than {WINDOW:,} decisions old"
NEWER = "made by a model that has learned more than the log holds"
FOREIGN = "of another origin"
DAMAGED = "pieces that begin with a checkpoint that is damaged"


def verify(fold: Fold, until: int | None = None, progress: Callable[[int], object] | None = None) -> Verified:
    """Repeat the logged decisions from a checkpoint on, each by the model that made it.

    The model of a decision is the one that has learned the rewards up to the position that the decision's record says,
    or else the one that has learned as many rows as the record says.

    Parameters
    ----------
    fold : Fold
        Bandit at the checkpoint, with its position. It learns the rest of the log.
    until : int, default None
        The last position. None means the end of the log.
    progress : callable, default None
        Is called with every position that was read.

    Returns
    -------
    Verified
        The result.
    """
    check = Verifier(fold, until)
    for one in fold.store.read(fold.through, until, ("decision", "join", "eviction", "forgotten"), fold.loop):
        check.add_record(one)
        if progress is not None:
            progress(one.seq)
    return check.finish()


class SavedDigest(NamedTuple):
    """Checkpoint with which a repeated model is compared.

    - through: position of the last reward that the saved model had learned.
    - seq: position of the checkpoint in the log.
    - digest: digest of the model.
    - whole: True if the log contains the model.
    """

    through: int
    seq: int
    digest: str
    whole: bool


class Boundary(NamedTuple):
    """Checkpoint at which a log is divided into parts.

    `through` is the position of the last reward that the saved model had learned. `rounds` is a function that returns
    the number of rows that it had learned.
    """

    through: int
    rounds: Callable[[], int]

    def follows(self, through: int, rounds: int) -> bool:
        """Return True if a model had learned less than the model of this checkpoint.

        `through` is the position of the last reward that the model had learned. If it is -1, the number `rounds` of
        rows that the model had learned is compared in its place.
        """
        return through < self.through if through >= 0 else rounds < self.rounds()


class LogPart(NamedTuple):
    """Part of a log: the decisions made by the models between two checkpoints.

    - begin: first checkpoint, None at the beginning of the log.
    - end: second checkpoint, None if the part goes on to the end of the log.
    - saved: checkpoints with which repeated models are compared.
    """

    begin: Boundary | None
    end: Boundary | None
    saved: tuple[SavedDigest, ...]


class OrderedDecision(NamedTuple):
    """Decision with the numbers by which the model that made it is found.

    - through: position of the last reward that the model had learned, or -1 if the model is found by `rounds`.
    - rounds: number of rows that the model had learned.
    - seq: position of the record.
    - record: the record of the decision.
    """

    through: int
    rounds: int
    seq: int
    record: Decision


class Verifier:
    """Verification in progress: it repeats decisions, in the order of the models that made them, and learns rewards.

    A decision after the end of a part of the log still belongs to this part if the model that made it does, and if at
    most `WINDOW` decisions of later models came before it.

    `fold` is the bandit with its position, `until` the last position to read (None: the end), and `part` the part of
    the log (None: everything after the bandit's position).
    """

    def __init__(self, fold: Fold, until: int | None, part: LogPart | None = None) -> None:
        self._fold, self._begin, self._read = fold, fold.through, fold.through
        if part is None:
            saved = fold.store.read(fold.through, until, ("checkpoint",), fold.loop)
            ours = (one for one in saved if one.line == fold.line and one.through >= fold.through and one.digest)
            part = LogPart(None, None, tuple(sorted(map(digest_from_checkpoint, ours))))
        self._first, self._last, self._saved = part.begin, part.end, deque(part.saved)
        self._since, self._beyond = 0, 0  # decisions of models from the part's beginning on, and from its end on
        self._others: list[int] = []
        self._window: list[OrderedDecision] = []
        self._joins: deque[list[Join | Eviction | Forgotten]] = deque()
        self._lost: int | None = None  # the place of a join that was forgotten, while no checkpoint has followed
        self._gaps: list[tuple[int, int]] = []  # such places, and those through which a checkpoint had learned
        self._counts: Counter[str] = Counter()
        self._left: Counter[str] = Counter()
        self._mismatches: list[Mismatch] = []

    def add_record(self, one: Decision | Join | Eviction | Forgotten) -> None:
        """Process the next record of the log: repeat a decision, or learn rewards."""
        self._read = one.seq
        if self._last is not None and one.seq > self._last.through:
            if isinstance(one, Decision):
                self._put_in_order(one, one.seq, lambda: one)
        elif isinstance(one, Decision):
            self._fold.add_decision(one)
            self._put_in_order(one, one.seq, lambda: one)
        elif isinstance(one, Forgotten):
            if one.was == JOIN:
                self._joins.append([one])
        elif self._joins and not isinstance(last := self._joins[-1][-1], Forgotten) and is_same_batch(last, one):
            self._joins[-1].append(one)
        else:
            self._joins.append([one])

    def add_later(self, head: Any, seq: int, read: Callable[[], Decision]) -> None:
        """Process a decision after the end of this part of the log, if a model of this part made it.

        `head` names the models of the decision, `seq` is its position, and `read` returns the whole record.
        """
        self._read = seq
        self._put_in_order(head, seq, read)

    def _put_in_order(self, head: Any, seq: int, read: Callable[[], Decision]) -> None:
        if head.line == self._fold.line:
            through, rounds = -1 if head.through is None else head.through, head.rounds
        elif head.canary is not None and head.canary.line == self._fold.line:
            through, rounds = head.canary.through, 0
        else:
            return
        if self._is_mine(through, rounds, seq):
            heapq.heappush(self._window, OrderedDecision(through, rounds, seq, read()))
        while self._window and len(self._window) + self._beyond > WINDOW:  # later ones would be in it, too
            self._verify_decision(heapq.heappop(self._window))

    def _is_mine(self, through: int, rounds: int, seq: int) -> bool:
        """Return True if a decision belongs to this part; `through` and `rounds` are as in `OrderedDecision`."""
        first, last = self._first, self._last
        if first is not None:
            if not first.follows(through, rounds):
                self._since += 1
            elif self._since <= WINDOW:
                return False
        if last is not None and seq > last.through and not last.follows(through, rounds):
            self._beyond += 1
            return False
        return True

    @property
    def is_over(self) -> bool:
        """True if no later decision of the log can belong to this part of the log."""
        return self._beyond > WINDOW

    @property
    def read(self) -> int:
        """Position of the last record that was read."""
        return self._read

    def finish(self) -> Verified:
        """Return the result of the verification, after the last record."""
        while self._window:
            self._verify_decision(heapq.heappop(self._window))
        end = self._fold.end if self._last is None else self._last.through
        if end is not None and self._saved:  # of what came before a restart a candidate may have learned more
            end = max(end, self._saved[-1].through)
        while self._joins and (end is None or self._joins[0][-1].seq <= end):
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

    def _compare(self, before: int | None) -> None:
        """Compare the model with the checkpoints that have learned nothing from the position `before` on.

        If joins were forgotten, continue with the model of a checkpoint in the log.
        """
        digest = None
        while self._saved and (before is None or self._saved[0].through < before):
            saved = self._saved.popleft()
            if self._lost is not None:
                if saved.whole:
                    (record,) = self._fold.store.read(saved.seq - 1, saved.seq)
                    self._fold.bandit, self._fold.through = bandit_from_checkpoint(record), saved.through
                    self._gaps.append((self._lost, saved.through))
                    self._lost, digest = None, None
                continue
            if digest is None:
                digest = hashlib.sha256(files.to_bytes(self._fold.bandit)).hexdigest()
            if saved.digest == digest:
                self._counts["checkpoints"] += 1
            else:
                self._others.append(saved.seq)

    def _learn(self) -> None:
        records = self._joins.popleft()
        self._compare(records[0].seq)
        learned = [one for one in records if not isinstance(one, Forgotten)]
        if self._lost is None and (not learned or self._fold.learn(learned) > 0):
            self._lost = records[0].seq
        elif self._lost is None:
            self._counts["joins"] += sum(isinstance(one, Join) for one in learned)

    def _verify_decision(self, made: OrderedDecision) -> None:
        own, known, record = made.record.line == self._fold.line, made.through >= 0, made.record
        self._counts["decisions" if own else "canaries"] += 1
        while self._joins and (
            self._joins[0][-1].seq <= made.through
            if known
            else self._lost is None and self._fold.bandit.n_learned < made.rounds
        ):
            self._learn()
        if known:
            self._compare(self._joins[0][0].seq if self._joins else self._read + 1)
        reason = self._reason(made)
        if reason is not None:
            self._left[reason] += 1
            return
        keyed = isinstance(record.seed, str)
        if own:
            fields = _differing_fields(self._fold.bandit, record, PROMISED if keyed else UNDRAWN)
            fields += _display_differences(record)
        else:
            fields = _canary_differences(self._fold.bandit, record)
        self._counts["wrong" if fields else "equal" if keyed else "undrawn"] += 1
        if fields and len(self._mismatches) < LISTED:
            self._mismatches.append(Mismatch(record.seq, fields))

    def _reason(self, made: OrderedDecision) -> str | None:
        """Return the reason why a decision cannot be repeated, or None."""
        through, record = made.through, made.record
        if record.contexts is None:
            return NO_CONTEXTS
        if record.scores is None:
            return FOREIGN
        if through < 0:
            known = self._fold.bandit.n_learned
            if self._lost is not None:
                return FORGOTTEN
            return None if known == made.rounds else OLDER if known > made.rounds else NEWER
        if through >= record.seq:
            return NEWER
        if self._lost is not None or any(lost <= through < found for lost, found in self._gaps):
            return FORGOTTEN
        if through < self._begin and self._first is None:
            return EARLIER
        return OLDER if through < self._fold.through else None


def digest_from_checkpoint(record: Checkpoint) -> SavedDigest:
    """Return the digest and the positions of a checkpoint record, without the bytes of the model."""
    return SavedDigest(record.through, record.seq, record.digest, record.data is not None)


def _differing_fields(bandit: Any, record: Decision, fields: Iterable[str]) -> tuple[str, ...]:
    """Return the names, among `fields`, of the fields of a decision that differ when `bandit` repeats it."""
    found = Decision.from_decision(repeat_decision(bandit, record), loop=record.loop, time=record.time)
    bits = msgspec.json.encode
    return tuple(name for name in fields if bits(getattr(found, name)) != bits(getattr(record, name)))


def _canary_differences(bandit: Any, record: Decision) -> tuple[str, ...]:
    """Return ("canary",) if a candidate's choice differs when the candidate, `bandit`, repeats it, else ()."""
    assert record.canary is not None
    found = repeat_decision(bandit, record)
    same = (found.probabilities.tolist(), found.places[0]) == (record.canary.probabilities, record.canary.place)
    return () if same else (CANARY,)


def _display_differences(record: Decision) -> tuple[str, ...]:
    """Return ("shown",) if the wrong arm was shown in a decision that is split between model and candidate, else ().

    The split determines which of their choices must have been shown, and with which probabilities.
    """
    wanted = display_from_canary(record)
    return () if wanted is None or wanted == (record.shown, record.showing) else ("shown",)


def repeat_decision(bandit: Any, record: Decision) -> Any:
    """Let a bandit repeat a logged decision, and return the new decision."""
    options: dict[str, Any] = {"id": record.id, "rest": rest_from_record(record.tail)}
    if record.eligible is not None:
        options["eligible"] = record.eligible
    if bandit.needs_time:
        options["time"] = record.seconds
    names = record.names
    places = range(len(record.probabilities or ())) if names is None else names
    if record.costs is not None:
        options["costs"] = {}
        for outcome, each in record.costs.items():
            for place, price in each.items():
                options["costs"].setdefault(places[int(place)], {})[outcome] = price
    if record.weights is not None:
        options["weights"] = dict(record.weights)
        if ARMS in record.weights:
            by_text = {str(name): name for name in places}
            options["weights"][ARMS] = {by_text[arm]: weight for arm, weight in record.weights[ARMS].items()}
    if record.mixture is None:
        return decide_from_log(bandit, record.contexts, record.names, len(record.places), **options)

    def decide(eligible: Any) -> Any:
        again = options if eligible is None else {**options, "eligible": eligible}
        return decide_from_log(bandit, record.contexts, record.names, 1, **again)

    mixed = record.mixture
    law, expected = np.array(mixed["baseline"]), mixed.get("expected")
    return mix_with_baseline(decide(None), decide, law, mixed["place"], mixed["share"], expected)
