"""Typed records of a log; each has its loop, its time, and its position `seq` in the order of the log.

    Decision    what was chosen, from which distribution, shown to whom
    Outcome     a value that came of a decision
    Activation  a deferred decision did happen
    Join        the rewards that are learned for a decision, and their reason, so that replay needs no clock
    Settings    what the loop does from here on
    Checkpoint  a model that has learned all joins up to a position
    Eviction    arms that the models forget
    Forgotten   a record was deleted here; its position stays

A record is one line of JSON (`encode`, `decode`): every number comes back in every bit, and fields that have their
defaults are left out. The line has the field `kind`, and the field `v`, the version of the format, unless that is 1.
Times are whole microseconds of Unix time, always the caller's: no function of this module reads a clock.
"""

import math
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Annotated, Any, NamedTuple, Self

import numpy as np

try:
    import msgspec
except ModuleNotFoundError:
    raise ModuleNotFoundError("onepass.log needs msgspec: pip install onepass[log]", name="msgspec") from None

from onepass.bandit.decision import FORMAT as DECISION_FORMAT
from onepass.bandit.decision import OPTIONAL, RECORD_NAMES, SAMPLED, TAILS, name_from_json, plain_outcomes
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
OUTCOME_FIELDS = tuple(name for name in OPTIONAL if name != "eligible")  # of a bandit with outcomes
FIELDS = {name: field for field, name in RECORD_NAMES.items()}  # of a `onepass.Decision`, by their names in a record
_decision_values = attrgetter(*(FIELDS.get(name, name) for name in DECISION_FIELDS))
ARRAYS = (np.ndarray, np.generic)
CONTAINERS = (float, list, tuple, dict)  # what a number that is not finite may hide in
NOT_FINITE = b"null"  # what msgspec writes for it, and for None


OUTCOMES = "outcomes"  # how a join came about that has outcomes without rewards
CORRECTION = "correction"  # how a join came about that says what a late outcome changes
CENSORED = "censored"  # the same of a loop that learns before its outcomes are complete: any model is corrected
CORRECTIONS = (CORRECTION, CENSORED)
LONGEST = 256  # characters of a name, as Personalizer has them; PostgreSQL indexes 2,700 bytes
MOST = 2**62  # microseconds: databases have 64 bits
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST, pattern="^[^\\0]*$")]  # PostgreSQL has no NUL
Time = Annotated[int, msgspec.Meta(ge=-MOST, le=MOST)]


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Fields that all records have.

    Names of loops, subjects, decisions and requests are strings of 1 to 256 characters without NUL.

    Parameters
    ----------
    loop : str
        Name of the loop.
    time : int
        Microseconds of Unix time, from -2^62 to 2^62, as `micros` returns them.
    seq : int, default 0
        Position in the log, from 1. 0 if the record is in no store yet.
    subject : str, default None
        Person or thing that the record is about, which can be forgotten. None means nobody.
    v : int, default 1
        Version of the record's format.
    """

    loop: Name
    time: Time
    seq: int = 0
    subject: Name | None = None
    v: int = 1

    @property
    def event(self) -> str | None:
        """Id of the decision that the record is about; None if it is about no decision."""
        return getattr(self, "id", None)

    @property
    def unique_key(self) -> str | None:
        """Key that no two records of a loop share; a record with a known key is not stored again.

        It is None for records that are stored each time: settings, checkpoints, evictions, deleted records, outcomes
        without `request`, and joins with `again`.
        """
        return None

    @property
    def seconds(self) -> float:
        """Time of the record in seconds of Unix time."""
        return self.time / SECOND


class Canary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Choice of a candidate model, a new model that makes a share of the decisions to be compared with the serving one.

    - line: number of the candidate, as in `Decision.line`.
    - share: share of the decisions that the candidate makes, from 0 to 1.
    - through: position in the log of the last record from which the candidate had learned.
    - place: index of the arm that the candidate drew.
    - probabilities (K,): probabilities of the candidate for all arms, in the order of the decision's `probabilities`.
    """

    line: int
    share: float
    through: int
    place: int
    probabilities: list[float]


class Decision(Record, frozen=True, kw_only=True, tag_field="kind", tag="decision"):
    """Record of a decision that chose from K arms and filled k slots, mostly one.

    `places` are the arms that the bandit chose, with their `propensities`. If the service showed others, they are in
    `shown`, and an evaluation uses their probabilities in `showing`.

    Parameters
    ----------
    loop : str
        Name of the loop.
    time : int
        Microseconds of Unix time, from -2^62 to 2^62, as `micros` returns them.
    seq : int, default 0
        Position in the log, from 1. 0 if the record is in no store yet.
    subject : str, default None
        Person or thing that the record is about, which can be forgotten. None means nobody.
    v : int, default 1
        Version of the record's format.
    id : str
        Id of the decision, once in a loop.
    places : list of int
        Index of the chosen arm of each slot, from 0.
    propensities : list of float, default None
        Probability of each chosen arm. None if it is not known.
    probabilities : list of float, default None
        Probabilities (K,) of all arms for the first slot. None if they are not known.
    slots : list of list of float, default None
        Probabilities (k, K) of every slot, if there are several.
    offered : list, default None
        Names of the arms. None means their indices.
    arms : list, default None
        The chosen arms if they are not names of `offered`.
    contexts : Any, default None
        Contexts that `decide` was given, as lists, or the features of another system's log as JSON.
    eligible : Any, default None
        Eligible arms as `decide` was given them.
    context : Any, default None
        Row of the chosen arm of each slot.
    scores : list of float, default None
        Scores (K,), as in `onepass.Decision`.
    means : list of float, default None
        Means (K,), as in `onepass.Decision`.
    widths : list of float, default None
        Widths (K,), as in `onepass.Decision`.
    tail : str, default "drawn"
        "drawn" or "greedy": choice of the slots after the first, the field `rest` of a `onepass.Decision`.
    rounds : int, default 0
        Number of rows that the model had learned.
    rule : str, default ""
        The exploration rule as text.
    seed : int or str, default 0
        Key of the random numbers, if the caller gave the id. Otherwise the seed of the bandit.
    ranking : list of int, default None
        Indices of the arms in the order in which they were shown.
    shown : list of int, default None
        Indices of the arms that were shown, if they differ from `places`.
    showing : list of float, default None
        Probabilities (K,) from which `shown` was drawn, for a single slot. None means that `shown` had probability 1.
    baseline : list of int, default None
        Indices of the arms that would have been shown without a model.
    slot_names : list of str, default None
        Names of the slots.
    mode : str, default "online"
        Mode of the loop: online, apprentice, logging, canary, ...
    model : str, default None
        Version of the settings (`Settings.version`) with which the decision was made.
    line : int, default 0
        Number of the model that decided. The models of a loop are counted from 0.
    through : int, default None
        Position of the last record that the model had learned. None means the model that had learned `rounds` rows.
    canary : Canary, default None
        Choice of a candidate model, if there was one: its number `line`, its `share` of the decisions, the arm's index
        `place`, and its `probabilities` of all arms.
    deferred : bool, default False
        True if the decision waits for its activation.
    passed : float, default 1.0
        Probability, above 0 and at most 1, with which this decision was kept when a log was thinned.
    predicted, spreads : dict of str to list of float, default None
        Predicted outcomes of all arms and their standard errors, as in `onepass.Decision`.
    costs : dict, default None
        Costs of arms (what a choice is expected to add to an outcome): {outcome: {index of the arm as text: cost}}.
    weights : dict, default None
        Weights {"reward": weight, outcome: weight, "arms": {arm: number added to its score}}. The price of
        a budget is minus its weight.
    mixture : dict, default None
        Parts of a mixture with a baseline, as in `onepass.Decision`: "share", "place", "baseline", "policy", and
        "expected" if the share depends on the model.
    prices : dict of str to float, default None
        Prices of budgets by outcome: what one unit of the outcome costs in units of reward. Prices of shares have
        "most" or "least" and the index of the arm as names.
    known_prices : dict of str to float, default None
        Usual costs of the chosen arm by outcome, as the caller gave them, before they were corrected by costs observed
        so far.
    extra : dict, default None
        Further fields of another system's format.

    Raises
    ------
    ValueError
        If indices and lists do not fit together.
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
    predicted: dict[str, list[float]] | None = None
    spreads: dict[str, list[float]] | None = None
    costs: dict[str, dict[str, float]] | None = None
    weights: dict[str, Any] | None = None
    mixture: dict[str, Any] | None = None
    prices: dict[str, float] | None = None
    known_prices: dict[str, float] | None = None
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
            sizes = {
                "places": k,
                "propensities": None if self.propensities is None else len(self.propensities),
                "slots": None if self.slots is None else len(self.slots),
                "arms": [len(row) for row in (*rows, self.offered) if row is not None],
            }
            raise ValueError(
                f"decision {quote(self.id)} has parts that contradict each other: places must be one or more of the "
                f"arms, propensities and slots one for each place, all rows as long as there are arms, and passed "
                f"{quote(self.passed)} above 0 and at most 1; lengths are {sizes}"
            )

    @property
    def unique_key(self) -> str:
        return f"decision {self.id}"

    @classmethod
    def from_decision(cls, decision: Decided, *, loop: str, time: int, **fields: Any) -> Self:
        """Make the complete record of a `onepass.Decision`.

        Parameters
        ----------
        decision : onepass.Decision
            A single decision.
        loop : str
            Name of the loop.
        time : int
            Microseconds of Unix time.
        **fields : Any
            Further fields of the record, with `contexts` and `eligible` as `decide` took them.

        Returns
        -------
        Decision
            The record.

        Raises
        ------
        ValueError
            If there are several decisions, or names that JSON cannot hold.
        """
        for name in ("contexts", "eligible"):
            if name in fields:
                fields[name] = _to_plain_data(fields[name])
        if isinstance(fields.get("eligible"), list | tuple | set | frozenset):
            fields["eligible"] = [_list_members(one) for one in fields["eligible"]]
        if decision.eligible is not None:  # by a budget, which no replay asks again
            fields["eligible"] = _to_plain(decision.eligible)
        for name in OUTCOME_FIELDS:
            if getattr(decision, name) is not None:
                fields[name] = plain_outcomes(getattr(decision, name))
        # names that are strings are written as they are
        if not decision.is_batch and decision.candidates and set(map(type, decision.candidates)) == {str}:
            held = dict(zip(DECISION_FIELDS, map(_to_plain, _decision_values(decision)), strict=True))
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
        """Names of the arms on offer, as the bandit had them; None if arms are indices."""
        return None if self.offered is None else [name_from_json(name) for name in self.offered]

    def to_decision(self) -> Decided:
        """Return the `onepass.Decision` of this record, equal in every bit.

        Returns
        -------
        onepass.Decision
            The decision.

        Raises
        ------
        ValueError
            If the record is of another system.
        """
        arms = _arms_at(self.offered, self.places) if self.arms is None else self.arms
        whole = {name: getattr(self, name) for name in (*DECISION_FIELDS, *OUTCOME_FIELDS)}
        return Decided.from_dict({"format": DECISION_FORMAT, "arms": arms, **whole})


class Outcome(Record, frozen=True, kw_only=True, tag_field="kind", tag="outcome"):
    """Record of a value, for example a reward, that was observed after a decision.

    Parameters
    ----------
    loop : str
        Name of the loop.
    time : int
        Microseconds of Unix time, from -2^62 to 2^62, as `micros` returns them.
    seq : int, default 0
        Position in the log, from 1. 0 if the record is in no store yet.
    subject : str, default None
        Person or thing that the record is about, which can be forgotten. None means nobody.
    v : int, default 1
        Version of the record's format.
    id : str
        Id of the decision.
    value : float
        The value, finite.
    slot : int, default None
        Index of the slot, from 0. None means all slots.
    name : str, default None
        Name of the outcome, such as "dollars". None means the reward.
    request : str, default None
        Identity of the message that brought the value. A message with the same identity counts once. With None every
        message counts.
    extra : dict, default None
        Further fields of the message.
    """

    id: Name
    value: float
    slot: int | None = None
    name: Name | None = None
    request: Name | None = None
    extra: dict[str, Any] | None = None

    @property
    def unique_key(self) -> str | None:
        return None if self.request is None else f"outcome {len(self.id)} {self.id} {self.request}"


class Activation(Record, frozen=True, kw_only=True, tag_field="kind", tag="activation"):
    """Record that a deferred decision has been shown.

    A deferred decision counts only after its activation, because it may never be shown.

    Parameters
    ----------
    loop : str
        Name of the loop.
    time : int
        Microseconds of Unix time, from -2^62 to 2^62, as `micros` returns them.
    seq : int, default 0
        Position in the log, from 1. 0 if the record is in no store yet.
    subject : str, default None
        Person or thing that the record is about, which can be forgotten. None means nobody.
    v : int, default 1
        Version of the record's format.
    id : str
        Id of the decision.
    """

    id: Name

    @property
    def unique_key(self) -> str:
        return f"activation {self.id}"


class Join(Record, frozen=True, kw_only=True, tag_field="kind", tag="join"):
    """Record of the rewards that are learned for a decision.

    Parameters
    ----------
    loop : str
        Name of the loop.
    time : int
        Microseconds of Unix time, from -2^62 to 2^62, as `micros` returns them.
    seq : int, default 0
        Position in the log, from 1. 0 if the record is in no store yet.
    subject : str, default None
        Person or thing that the record is about, which can be forgotten. None means nobody.
    v : int, default 1
        Version of the record's format.
    id : str
        Id of the decision.
    rewards : list of float or None
        Reward of each slot, None for a slot without one. With how="correction" or "censored", the change of each
        reward.
    how : str, default "earliest"
        How the rewards were computed. "earliest", "sum", "mean", "median", "min" and "max" aggregate the values of the
        outcomes. "default" is the reward of a decision without outcomes. "correction" changes rewards that were learned
        before, because outcomes came late; only models that are linear in rewards learn it. "censored" is the same in a
        loop with censored rewards (rewards that may still come), and every model learns it. "outcomes" has named
        outcomes and no rewards. ", limited" is appended if a reward was limited to the range in the settings.
    count : int, default 1
        Number of outcomes from which the rewards were computed. With how="correction", "censored" or "outcomes", the
        number of all outcomes of the decision so far.
    batch : int, default None
        Consecutive joins with the same number are learned in one call. None means that the join is learned alone.
    again : bool, default False
        True for a further reward of the same decision.
    outcomes : list of dict or None, default None
        Outcomes of each slot by name, None for a slot without any. With how="outcomes" they come apart from the reward,
        and all rewards are None.
    """

    id: Name
    rewards: list[float | None]
    how: str = "earliest"
    count: int = 1
    batch: int | None = None
    again: bool = False
    outcomes: list[dict[str, float] | None] | None = None

    @property
    def unique_key(self) -> str | None:
        if self.how in (*CORRECTIONS, OUTCOMES):
            return f"{self.how} {self.count} {self.id}"
        return None if self.again else f"join {self.id}"


class Settings(Record, frozen=True, kw_only=True, tag_field="kind", tag="settings"):
    """Record of the settings that a loop has from this position on.

    Parameters
    ----------
    loop : str
        Name of the loop.
    time : int
        Microseconds of Unix time, from -2^62 to 2^62, as `micros` returns them.
    seq : int, default 0
        Position in the log, from 1. 0 if the record is in no store yet.
    subject : str, default None
        Person or thing that the record is about, which can be forgotten. None means nobody.
    v : int, default 1
        Version of the record's format.
    settings : dict
        The settings as plain JSON.
    version : str, default ""
        Version of these settings.
    """

    settings: dict[str, Any]
    version: str = ""


class Checkpoint(Record, frozen=True, kw_only=True, tag_field="kind", tag="checkpoint"):
    """Record of a model that has learned all final rewards (joins) up to the position `through`, and none after it.

    Parameters
    ----------
    loop : str
        Name of the loop.
    time : int
        Microseconds of Unix time, from -2^62 to 2^62, as `micros` returns them.
    seq : int, default 0
        Position in the log, from 1. 0 if the record is in no store yet.
    subject : str, default None
        Person or thing that the record is about, which can be forgotten. None means nobody.
    v : int, default 1
        Version of the record's format.
    through : int
        The last position that the model has learned.
    digest : str
        SHA-256 of the model's bytes (`onepass.to_bytes`) in hexadecimal digits. Empty if the model is retired.
    data : bytes, default None
        The bytes of the model.
    path : str, default None
        File that holds the bytes.
    model : str, default None
        Version of the settings (`Settings.version`) of the model.
    state : str, default "serving"
        State of the model: staged, serving or retired.
    line : int, default 0
        Number of the model. The models of a loop are counted from 0.
    why : str, default ""
        Sentence about a change of state.
    begun : int, default None
        Position of the join after which the model began to learn. None means `through` of its first checkpoint.
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
    """Record of arms that every model of the loop forgets at this position.

    Parameters
    ----------
    loop : str
        Name of the loop.
    time : int
        Microseconds of Unix time, from -2^62 to 2^62, as `micros` returns them.
    seq : int, default 0
        Position in the log, from 1. 0 if the record is in no store yet.
    subject : str, default None
        Person or thing that the record is about, which can be forgotten. None means nobody.
    v : int, default 1
        Version of the record's format.
    arms : list of str
        Names of the arms.
    """

    arms: list[Name]


class Forgotten(Record, frozen=True, kw_only=True, tag_field="kind", tag="forgotten"):
    """Record in the position of a deleted record.

    Parameters
    ----------
    loop : str
        Name of the loop.
    time : int
        Microseconds of Unix time, from -2^62 to 2^62, as `micros` returns them.
    seq : int, default 0
        Position in the log, from 1. 0 if the record is in no store yet.
    subject : str, default None
        Person or thing that the record is about, which can be forgotten. None means nobody.
    v : int, default 1
        Version of the record's format.
    was : str
        Kind of the deleted record.
    """

    was: str


AnyRecord = Decision | Outcome | Activation | Join | Settings | Checkpoint | Eviction | Forgotten
KINDS: dict[str, type[Record]] = {
    str(kind.__struct_config__.tag): kind
    for kind in (Decision, Outcome, Activation, Join, Settings, Checkpoint, Eviction, Forgotten)
}


class Event(NamedTuple):
    """Decision and its outcomes, as other systems' formats hold them on one line.

    Parameters
    ----------
    decision : Decision
        The decision.
    outcomes : tuple of Outcome, default ()
        Its outcomes.
    activation : Activation, default None
        Its activation, if the decision was deferred.
    """

    decision: Decision
    outcomes: tuple[Outcome, ...] = ()
    activation: Activation | None = None


def kind_of(record: Record) -> str:
    """Return the name of the kind of a record, such as "decision" or "outcome"."""
    return str(record.__struct_config__.tag)


# ---- JSON ----

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(AnyRecord)


def encode(record: Record) -> bytes:
    """Encode a record as one line of JSON, without the line end.

    Parameters
    ----------
    record : Record
        The record.

    Returns
    -------
    bytes
        The line.

    Raises
    ------
    ValueError
        If a number is not finite.
    """
    line = _encoder.encode(record)
    for value in msgspec.structs.astuple(record) if NOT_FINITE in line else ():
        if type(value) in CONTAINERS and not is_finite(value):
            raise ValueError(
                f"{kind_of(record)} {quote(record.event)} has a number that is not finite, in {quote(value)}"
            )
    return line


def decode(line: bytes | str) -> AnyRecord:
    """Decode the record of a line.

    Parameters
    ----------
    line : bytes or str
        One line of JSON.

    Returns
    -------
    Record
        The record.

    Raises
    ------
    ValueError
        If the line is not a record, or is of a later version.
    """
    try:
        record = _decoder.decode(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"this is no record of a log: {error}") from None
    if record.v > VERSION:
        raise ValueError(f"a record has version {record.v}, this onepass reads up to {VERSION}; upgrade onepass")
    return record


def is_finite(value: Any) -> bool:
    """Return True if all numbers of plain data are finite."""
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
    """Convert a time to microseconds of Unix time.

    Parameters
    ----------
    moment : datetime or float
        A datetime with a time zone, or a finite number of seconds, which is rounded to the nearest microsecond.

    Returns
    -------
    int
        Microseconds of Unix time.

    Raises
    ------
    ValueError
        If a datetime has no time zone, or the argument is not a time.
    """
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise ValueError(f"time must have a time zone, got {quote(moment)}")
        return (moment - EPOCH) // MICROSECOND
    if isinstance(moment, bool) or not isinstance(moment, int | float) or not math.isfinite(moment):
        raise ValueError(f"time must be a datetime or a finite number of seconds, got {quote(moment)}")
    return round(moment * SECOND)


def moment(micros: int) -> datetime:
    """Convert microseconds of Unix time to a datetime in UTC.

    Parameters
    ----------
    micros : int
        Microseconds of Unix time.

    Returns
    -------
    datetime
        The time.
    """
    return EPOCH + micros * MICROSECOND


def _to_plain_data(value: Any) -> Any:
    """Convert arrays to lists, and rows of users and arms (`Factors`) to {"left": ..., "right": ...}."""
    if isinstance(value, Factors):
        return {"left": _to_plain_data(value.left), "right": _to_plain_data(value.right)}
    return value.tolist() if isinstance(value, np.ndarray) else value


def _list_members(value: Any) -> Any:
    """Convert a set of names to a list; leave other data unchanged."""
    return list(value) if isinstance(value, set | frozenset) else _to_plain_data(value)


def _to_plain(value: Any) -> Any:
    """Convert arrays to lists and NumPy numbers to numbers."""
    return value.tolist() if isinstance(value, ARRAYS) else value


def _arms_at(offered: Any, places: list[int]) -> list[Any]:
    """Return the names in `offered` at the indices `places`, or the indices themselves if `offered` is None."""
    return list(places) if offered is None else [offered[place] for place in places]
