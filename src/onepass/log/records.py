"""What a log holds, as typed records: each says of which loop it is, when it was, and its place `seq` in the order.

    Decision    what was chosen, from which distribution, shown to whom
    Outcome     a value that came of it, as it came
    Activation  a decision that was deferred did happen
    Join        the rewards that are learned for a decision, and why these: so that replay needs no clock
    Settings    what the loop does from here on
    Checkpoint  a model that has learned all joins up to a place
    Forgotten   what stood here was deleted; its place stays

A record is one line of JSON (`encode`, `decode`): every number comes back in every bit, and fields that have their
defaults are left out. Its `kind` is written, and `v`, the version of its form, where that is not 1. Times are whole
microseconds of Unix time, always the caller's: nothing here looks at a clock.
"""

import math
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, NamedTuple, Self

import numpy as np

try:
    import msgspec
except ModuleNotFoundError:
    raise ModuleNotFoundError("onepass.log needs msgspec: pip install onepass[log]", name="msgspec") from None

from onepass.bandit.decision import FORMAT as DECISION_FORMAT
from onepass.bandit.decision import RECORD_NAMES, SAMPLED, TAILS, name_from_json
from onepass.bandit.decision import Decision as Decided
from onepass.features.outer_product import Factors
from onepass.foundation.check import quote

VERSION = 1
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
SECOND = 1_000_000  # microseconds
DETAILS = ("slots", "offered", "context", "scores", "means", "widths", "tail", "rounds", "rule", "seed")
# Fields that a record and a `onepass.Decision` share.
DECISION_FIELDS = ("id", "places", "propensities", "probabilities", *DETAILS)
FIELDS = {name: field for field, name in RECORD_NAMES.items()}  # of a `onepass.Decision`, by their names in a record
ARRAYS = (np.ndarray, np.generic)
CONTAINERS = (float, list, tuple, dict)  # what a number that is not finite may hide in
NOT_FINITE = b"null"  # what msgspec writes for it, and for None


CORRECTION = "correction"  # how a join came about that says what a late outcome changes
LONGEST = 256  # characters of a name, as Personalizer has them; PostgreSQL indexes 2,700 bytes
MOST = 2**62  # microseconds: databases have 64 bits
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST, pattern="^[^\\0]*$")]  # PostgreSQL has no NUL
Time = Annotated[int, msgspec.Meta(ge=-MOST, le=MOST)]


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What all records have.

    loop: the name of the loop; time: microseconds of Unix time (`micros`); subject: whom it is about, so that it can be
    forgotten (default None: nobody); seq: its place, from 1, 0 (default): in no store yet; v: the version of its form.
    Names, of loops, subjects, events and requests, are strings of 1 to 256 characters without NUL.
    """

    loop: Name
    time: Time
    seq: int = 0
    subject: Name | None = None
    v: int = 1

    @property
    def event(self) -> str | None:
        """The identity of the decision that this is about; None: of none."""
        return getattr(self, "id", None)

    @property
    def unique_key(self) -> str | None:
        """What no two records of a loop have in common, so that one that is sent again is not stored again."""
        return None

    @property
    def seconds(self) -> float:
        """Its time in seconds."""
        return self.time / SECOND


class Canary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a candidate would have done where it has a share of the decisions (showing.py).

    line: its model's; share: from 0 to 1; through: the place of the log through which it had learned; place: of the arm
    it drew; probabilities (K,): of all arms.
    """

    line: int
    share: float
    through: int
    place: int
    probabilities: list[float]


class Decision(Record, frozen=True, kw_only=True, tag_field="kind", tag="decision"):
    """What was chosen. K arms were offered, k slots were filled; one slot for most.

    id: of the event, a string, once in a loop.
    places: of the chosen arms among those offered, from 0, one per slot; propensities: with which probability each was
    drawn (default None: not known); probabilities (K,): of all arms, from which the first slot was drawn; slots (k, K):
    of every slot, where there are several. None: not known.
    offered: names of the arms (default None: their places); arms: those chosen, where they are not names offered.
    contexts: what `decide` was given, as lists, or the features of a foreign log as JSON; eligible: as `decide` was
    given it; context: the rows of the chosen arms; scores, means, widths (K,), tail, rounds, rule, seed: as a
    `onepass.Decision` has them, which fits in whole (`of`, `decided`).
    ranking: places in the order in which they were shown; shown: the places that were shown where they are not those
    drawn, with probability 1, or, of a single slot, drawn from showing (K,); baseline: places that would have been
    shown without a model; slot_names: of the slots.
    mode: online, apprentice, logging, canary, ...; model: the version of the settings; line: which of the loop's models
    decided (lines.py; default 0: the first); through: the place of the log through which it had learned (default None:
    not known, it is the model that has learned as many rows); canary: what a candidate would have done (default None:
    there was none); deferred: whether it waits for its activation; passed: the probability with which this line was
    kept, above 0 and at most 1 (default 1.0).
    extra: whatever else a foreign format said. ValueError for places and lists that do not fit together.
    """

    id: Name
    places: list[int]
    propensities: list[float] | None = None
    probabilities: list[float] | None = None
    slots: list[list[float]] | None = None
    offered: list[Any] | None = None
    arms: list[Any] | None = None
    contexts: Any = None
    eligible: Any = None
    context: Any = None
    scores: list[float] | None = None
    means: list[float] | None = None
    widths: list[float] | None = None
    tail: str = TAILS[SAMPLED]
    rounds: int = 0
    rule: str = ""
    seed: int | str = 0
    ranking: list[int] | None = None
    shown: list[int] | None = None
    showing: list[float] | None = None
    baseline: list[int] | None = None
    slot_names: list[str] | None = None
    mode: str = "online"
    model: str | None = None
    line: int = 0
    through: int | None = None
    canary: Canary | None = None
    deferred: bool = False
    passed: float = 1.0
    extra: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        k, rows = len(self.places), [self.probabilities, self.showing, *(self.slots or ())]
        if self.canary is not None:
            rows.append(self.canary.probabilities)
        count = next((len(row) for row in (*rows, self.offered) if row is not None), None)
        wrong = (
            k == 0
            or min(self.places) < 0
            or (count is not None and max(self.places) >= count)
            or (self.propensities is not None and len(self.propensities) != k)
            or (self.slots is not None and len(self.slots) != k)
            or any(row is not None and len(row) != count for row in (*rows, self.offered))
            or not 0.0 < self.passed <= 1.0
        )
        if wrong:
            raise ValueError(f"decision {quote(self.id)} has parts that do not fit together")

    @property
    def unique_key(self) -> str:
        return f"decision {self.id}"

    @classmethod
    def from_decision(cls, decision: Decided, *, loop: str, time: int, **fields: Any) -> Self:
        """The record of a `onepass.Decision`, whole.

        decision: of one, not of several at once; loop, time, fields: as above, contexts and eligible as `decide` took
        them. ValueError for several, for names that JSON does not know.
        """
        for name in ("contexts", "eligible"):
            if name in fields:
                fields[name] = _to_plain_data(fields[name])
        if isinstance(fields.get("eligible"), list | tuple | set | frozenset):
            fields["eligible"] = [_list_members(one) for one in fields["eligible"]]
        # names that are strings are written as they are
        if not decision.is_batch and decision.candidates and set(map(type, decision.candidates)) == {str}:
            held = {name: _to_plain(getattr(decision, FIELDS.get(name, name))) for name in DECISION_FIELDS}
            held["tail"] = TAILS[decision.rest]
            if decision.arms == _arms_at(decision.candidates, held["places"]):
                return cls(loop=loop, time=time, arms=None, **held, **fields)
        whole = decision.to_dict()
        names = whole["arms"]
        if names == _arms_at(whole["offered"], whole["places"]):
            names = None
        held = {name: whole[name] for name in DECISION_FIELDS}
        return cls(loop=loop, time=time, arms=names, **held, **fields)

    @property
    def names(self) -> list[Any] | None:
        """Names of the arms offered, as the bandit had them; None where they had none."""
        return None if self.offered is None else [name_from_json(name) for name in self.offered]

    def to_decision(self) -> Decided:
        """The `onepass.Decision` that this is the record of, equal in every bit; ValueError where it is of another
        origin."""
        arms = _arms_at(self.offered, self.places) if self.arms is None else self.arms
        whole = {name: getattr(self, name) for name in DECISION_FIELDS}
        return Decided.from_dict({"format": DECISION_FORMAT, "arms": arms, **whole})


class Outcome(Record, frozen=True, kw_only=True, tag_field="kind", tag="outcome"):
    """A value that came of a decision.

    id: of the event; value: a finite number; slot: the place of the slot it is of, from 0 (default None: of all);
    request: the identity of the message that brought it, which counts once (default None: each counts); extra: whatever
    else it said.
    """

    id: Name
    value: float
    slot: int | None = None
    request: Name | None = None
    extra: dict[str, Any] | None = None

    @property
    def unique_key(self) -> str | None:
        return None if self.request is None else f"outcome {len(self.id)} {self.id} {self.request}"


class Activation(Record, frozen=True, kw_only=True, tag_field="kind", tag="activation"):
    """A decision that was deferred did happen. id: of the event."""

    id: Name

    @property
    def unique_key(self) -> str:
        return f"activation {self.id}"


class Join(Record, frozen=True, kw_only=True, tag_field="kind", tag="join"):
    """The rewards that are learned for a decision.

    id: of the event; rewards: one per slot, None where there was none; how: sum, mean, earliest, default, late, ...;
    count: how many outcomes were joined (default 1).
    batch: joins in a row with the same number are learned in one call, as they were (default None: alone); again: a
    further reward of the same decision. With how = `correction` rewards are by how much those of the decision are
    others than before, and count is of all its outcomes; no row is learned again (correcting.py).
    """

    id: Name
    rewards: list[float | None]
    how: str = "earliest"
    count: int = 1
    batch: int | None = None
    again: bool = False

    @property
    def unique_key(self) -> str | None:
        if self.how == CORRECTION:
            return f"correction {self.count} {self.id}"
        return None if self.again else f"join {self.id}"


class Settings(Record, frozen=True, kw_only=True, tag_field="kind", tag="settings"):
    """What a loop does from here on. settings: plain JSON; version: their name (default "")."""

    settings: dict[str, Any]
    version: str = ""


class Checkpoint(Record, frozen=True, kw_only=True, tag_field="kind", tag="checkpoint"):
    """A model that has learned every join up to and including the place `through`, and none after it.

    digest: SHA-256 of its bytes (`onepass.to_bytes`), in hexadecimal digits; data: these bytes, or path: of the file
    that holds them; model: its version; state: staged, serving, retired (without a digest); line: which of the loop's
    models it is of (lines.py; default 0: the first); why: a sentence about a change of state (default ""); begun: the
    join after which the model began to learn (default None: its first checkpoint says so by `through`).
    """

    through: int
    digest: str
    data: bytes | None = None
    path: str | None = None
    model: str | None = None
    state: str = "serving"
    line: int = 0
    why: str = ""
    begun: int | None = None


class Eviction(Record, frozen=True, kw_only=True, tag_field="kind", tag="eviction"):
    """Arms that every model of the loop forgets at this place, where it knows them. arms: their names."""

    arms: list[Name]


class Forgotten(Record, frozen=True, kw_only=True, tag_field="kind", tag="forgotten"):
    """What stood at this place was deleted. was: its kind."""

    was: str


AnyRecord = Decision | Outcome | Activation | Join | Settings | Checkpoint | Eviction | Forgotten
KINDS: dict[str, type[Record]] = {
    str(kind.__struct_config__.tag): kind
    for kind in (Decision, Outcome, Activation, Join, Settings, Checkpoint, Eviction, Forgotten)
}


class Event(NamedTuple):
    """A decision and what came of it, as foreign formats hold them on one line."""

    decision: Decision
    outcomes: tuple[Outcome, ...] = ()
    activation: Activation | None = None


def kind_of(record: Record) -> str:
    """The name of a record's kind."""
    return str(record.__struct_config__.tag)


# ---- JSON ----

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(AnyRecord)


def encode(record: Record) -> bytes:
    """A record as one line of JSON, without its end; ValueError for a number that is not finite."""
    line = _encoder.encode(record)
    for value in msgspec.structs.astuple(record) if NOT_FINITE in line else ():
        if type(value) in CONTAINERS and not is_finite(value):
            raise ValueError(
                f"{kind_of(record)} {quote(record.event)} has a number that is not finite, in {quote(value)}"
            )
    return line


def decode(line: bytes | str) -> AnyRecord:
    """The record of a line; ValueError, with the reason, for what is none or of a later version."""
    try:
        record = _decoder.decode(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"this is no record of a log: {error}") from None
    if record.v > VERSION:
        raise ValueError(f"a record has version {record.v}, this onepass reads up to {VERSION}; upgrade onepass")
    return record


def is_finite(value: Any) -> bool:
    """Whether all numbers of plain data are."""
    if isinstance(value, list | tuple):
        try:
            if math.isfinite(sum(value)):
                return True
        except (TypeError, OverflowError):
            pass
        return all(map(is_finite, value))
    if isinstance(value, dict):
        return all(map(is_finite, value.values()))
    return not isinstance(value, float) or math.isfinite(value)


def micros(moment: Any) -> int:
    """Microseconds of Unix time: of a datetime with a time zone, or of seconds.

    moment: a datetime or a finite number of seconds, rounded to the next microsecond. ValueError for a datetime without
    a time zone and for what is no time.
    """
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise ValueError(f"time must have a time zone, got {quote(moment)}")
        return (moment - EPOCH) // MICROSECOND
    if isinstance(moment, bool) or not isinstance(moment, int | float) or not math.isfinite(moment):
        raise ValueError(f"time must be a datetime or a finite number of seconds, got {quote(moment)}")
    return round(moment * SECOND)


def moment(micros: int) -> datetime:
    """The inverse of `micros`, in UTC."""
    return EPOCH + micros * MICROSECOND


def _to_plain_data(value: Any) -> Any:
    """Arrays as lists, factors as {"left": ..., "right": ...}; plain data as it is."""
    if isinstance(value, Factors):
        return {"left": _to_plain_data(value.left), "right": _to_plain_data(value.right)}
    return value.tolist() if isinstance(value, np.ndarray) else value


def _list_members(value: Any) -> Any:
    """A collection of names, of one slot of several, as a list; a name as it is."""
    return list(value) if isinstance(value, set | frozenset) else _to_plain_data(value)


def _to_plain(value: Any) -> Any:
    """Arrays as lists, numbers of NumPy as numbers; plain data as it is."""
    return value.tolist() if isinstance(value, ARRAYS) else value


def _arms_at(offered: Any, places: list[int]) -> list[Any]:
    """What is called what: the names at places, or the places themselves."""
    return list(places) if offered is None else [offered[place] for place in places]
