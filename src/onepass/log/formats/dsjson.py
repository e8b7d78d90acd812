"""Decision Service JSON, one decision a line, as in Vowpal Wabbit's `--dsjson` and Personalizer's logs.

    CB     {"_label_cost": -r, "_label_probability": p[0], "_label_Action": a[0], "_labelIndex": a[0] - 1, "o": [...],
            "Timestamp", "Version", "EventId", "a": ranking from 1, "c": {..., "_multi": [...]}, "p": in the order of a,
            "VWState": {"m": model}, "pdrop", "_skipLearn", "_original_label_cost"}
    CCB    {"_outcomes": [{"_label_cost", "_id", "_a": places from 0, "_p", "_o", "_original_label_cost"}, ...],
            "c": {..., "_multi", "_slots"}, "_ba": baseline, ...}

Costs are minus rewards. 1 - pdrop is the probability with which a line was kept. Probabilities often come from single
precision; they are taken as they are. Keys that Vowpal Wabbit does not know are dropped.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from onepass.log.formats.lines import Lines, Report, open_atomic
from onepass.log.formats.requests import json_from_decision
from onepass.log.records import EPOCH, MICROSECOND, Decision, Event, Outcome, moment

NOTHING = msgspec.Raw(b"")  # a key that is not there: compared by identity, so that it is left out again
CLOSE = 1e-3  # between _label_probability and p: both may be rounded to single precision, or to a few digits


class State(msgspec.Struct, omit_defaults=True):
    """Value of the key VWState in a line of Decision Service JSON; `m` is the version of the model."""

    m: str | None = None


class Slot(msgspec.Struct, omit_defaults=True):
    """Entry of the key `_outcomes` in a line of Decision Service JSON, which describes one slot of a decision.

    `actions` are indices from 0, the chosen one first, and `probabilities` are theirs. `cost` is minus the reward. The
    name of each field's key stands beside the field.
    """

    cost: float | None = msgspec.field(name="_label_cost", default=None)
    id: str | None = msgspec.field(name="_id", default=None)
    actions: list[int] = msgspec.field(name="_a", default_factory=list)
    probabilities: list[float] = msgspec.field(name="_p", default_factory=list)
    outcomes: msgspec.Raw = msgspec.field(name="_o", default=NOTHING)
    original: float | None = msgspec.field(name="_original_label_cost", default=None)


class Line(msgspec.Struct, omit_defaults=True):
    """Content of a line of Decision Service JSON; fields are in the order in which their keys are written.

    `ranking` and `action` number actions from 1, `index` from 0. `cost` is minus the reward, and `dropped` the
    probability with which a line like this one was left out. The name of each field's key stands beside the field.
    """

    cost: float | None = msgspec.field(name="_label_cost", default=None)
    probability: float | None = msgspec.field(name="_label_probability", default=None)
    action: int | None = msgspec.field(name="_label_Action", default=None)
    index: int | None = msgspec.field(name="_labelIndex", default=None)
    skip: bool = msgspec.field(name="_skipLearn", default=False)
    outcomes: msgspec.Raw = msgspec.field(name="o", default=NOTHING)
    time: datetime | None = msgspec.field(name="Timestamp", default=None)
    version: str | None = msgspec.field(name="Version", default=None)
    id: str | None = msgspec.field(name="EventId", default=None)
    ranking: list[int] = msgspec.field(name="a", default_factory=list)
    context: msgspec.Raw = msgspec.field(name="c", default=NOTHING)
    probabilities: list[float] = msgspec.field(name="p", default_factory=list)
    slots: list[Slot] | None = msgspec.field(name="_outcomes", default=None)
    baseline: list[int] | None = msgspec.field(name="_ba", default=None)
    state: State | None = msgspec.field(name="VWState", default=None)
    dropped: float = msgspec.field(name="pdrop", default=0.0)
    original: float | None = msgspec.field(name="_original_label_cost", default=None)


class DecodedLine(Line):
    """Line of Decision Service JSON whose `context`, the features, is decoded to plain data."""

    context: Any = msgspec.field(name="c", default=NOTHING)


decoders: dict[bool, msgspec.json.Decoder[Any]] = {
    True: msgspec.json.Decoder(Line),
    False: msgspec.json.Decoder(DecodedLine),
}
encoder = msgspec.json.Encoder()


def read(
    path: str | Path, *, loop: str = "imported", lazy: bool = False, bad: str = "refuse", report: Report | None = None
) -> Iterator[Event]:
    """Yield the events of a file of Decision Service JSON.

    A line without EventId is called "line" and its number. A line without Timestamp has time 0.

    Parameters
    ----------
    path : str or Path
        The file.
    loop : str, default "imported"
        Name of the loop for its records.
    lazy : bool, default False
        Leave features as JSON in a `msgspec.Raw`, which is several times faster.
    bad : {"refuse", "skip"}, default "refuse"
        "refuse" raises ValueError with the number of a bad line. "skip" leaves it out.
    report : callable, default None
        Is called with the number of each line left out and the reason.

    Yields
    ------
    Event
        The next event.
    """
    lines = Lines(path, bad, report)
    for number, line in lines:
        if not line:
            continue
        try:
            yield _event_from_line(line, loop, f"line {number}", lazy)
        except (ValueError, msgspec.DecodeError, RecursionError) as error:
            lines.reject(number, error)


def _event_from_line(line: bytes, loop: str, name: str, lazy: bool) -> Event:
    """Parse the event of a line, called `name` if it has no id. Raises ValueError for a line without a decision.

    `loop` is the name of the loop for its records. With `lazy`, features stay JSON in a `msgspec.Raw`.
    """
    one = decoders[lazy].decode(line)
    if one.context is NOTHING:
        raise ValueError("there is no decision: the key c is missing")
    if not 0.0 <= one.dropped < 1.0:
        raise ValueError(f"pdrop must be at least 0 and below 1, got {one.dropped}")
    time = 0
    if one.time is not None:
        time = ((one.time if one.time.tzinfo else one.time.replace(tzinfo=UTC)) - EPOCH) // MICROSECOND
    common = {
        "loop": loop,
        "time": time,
        "id": one.id if one.id is not None else name,
        "contexts": one.context,
        "model": one.state.m if one.state is not None else None,
        "passed": 1.0 - one.dropped,
        "baseline": one.baseline,
    }
    return _event_from_cb(one, common) if one.slots is None else _event_from_ccb(one, one.slots, common)


def _event_from_cb(one: Line, common: dict[str, Any]) -> Event:
    """Make the event of the line `one` of a contextual bandit (CB), which has one slot.

    `common` holds the fields of the `Decision` that lines of all kinds have, by name.
    """
    ranking, p = [action - 1 for action in one.ranking], one.probabilities
    if ranking and sorted(ranking) != list(range(len(ranking))):
        raise ValueError("a must be a ranking of all actions, from 1")
    if p and len(p) != len(ranking):
        raise ValueError(f"p must have as many probabilities as a has actions, got {len(p)} and {len(ranking)}")
    place = one.index if one.index is not None else one.action - 1 if one.action is not None else None
    if place is None and not ranking:
        raise ValueError("there is no decision: neither a nor _labelIndex tells the action")
    place = ranking[0] if place is None else place
    if one.action is not None and one.action - 1 != place:
        raise ValueError(f"_labelIndex and _label_Action disagree: {place} and {one.action}")
    probabilities, propensity = None, one.probability
    if p:
        probabilities = [0.0] * len(p)
        for at, each in zip(ranking, p, strict=True):
            probabilities[at] = each
        if not 0 <= place < len(p):
            raise ValueError(f"_labelIndex must be below the number of actions ({len(p)}), got {place}")
        propensity = probabilities[place]
        if one.probability is not None and abs(one.probability - propensity) > CLOSE:
            raise ValueError(f"_label_probability and p disagree: {one.probability} and {propensity}")
    if propensity is not None and not propensity > 0.0:
        raise ValueError(f"the action that was chosen must have a probability above 0, got {propensity}")
    known = p or [0.0 if propensity is None else propensity]
    if min(known) < 0.0 or max(known) > 1.0 + CLOSE:
        raise ValueError(f"probabilities must be in [0, 1], got {min(known)} to {max(known)}")
    decision = Decision(
        places=[place], propensities=None if propensity is None else [propensity], probabilities=probabilities,
        ranking=ranking or None, deferred=one.skip, extra=_extra_fields(one, propensity), **common,
    )  # fmt: skip
    outcomes = (
        ()
        if one.cost is None
        else (Outcome(loop=decision.loop, time=decision.time, id=decision.id, value=0.0 - one.cost),)
    )
    return Event(decision, outcomes)


def _event_from_ccb(one: Line, slots: list[Slot], common: dict[str, Any]) -> Event:
    """Make the event of the line `one` of a conditional contextual bandit (CCB), which has several slots.

    `slots` are the line's slots. `common` holds the fields of the `Decision` that lines of all kinds have, by name.
    """
    if not slots or not all(slot.actions and len(slot.actions) == len(slot.probabilities) for slot in slots):
        raise ValueError("_outcomes must have slots with as many _p as _a, at least one")
    size = 1 + max(max(slot.actions) for slot in slots)
    rows = [[0.0] * max(size, _count_actions(one.context)) for _ in slots]
    for row, slot in zip(rows, slots, strict=True):
        if min(slot.actions) < 0 or len(set(slot.actions)) != len(slot.actions):
            raise ValueError("_a must be places from 0, each once")
        for place, p in zip(slot.actions, slot.probabilities, strict=True):
            if not 0.0 <= p <= 1.0 + CLOSE:
                raise ValueError(f"probabilities must be in [0, 1], got {p}")
            row[place] = p
        if not slot.probabilities[0] > 0.0:
            raise ValueError(f"the action that was chosen must have a probability above 0, got {slot.probabilities[0]}")
    names = [slot.id or "" for slot in slots]
    extra = _extra_fields(one) or {}
    if any(slot.actions != _order_actions(slot.actions[0], row) for slot, row in zip(slots, rows, strict=True)):
        extra["_a"] = [slot.actions for slot in slots]
    originals, raw = [slot.original for slot in slots], [slot.outcomes for slot in slots]
    if any(each is not None for each in originals):
        extra["_original_label_cost"] = originals
    if any(raw):
        extra["_o"] = [msgspec.json.decode(each) if each else None for each in raw]
    decision = Decision(
        places=[slot.actions[0] for slot in slots], propensities=[slot.probabilities[0] for slot in slots],
        probabilities=rows[0], slots=rows, slot_names=names if any(names) else None, deferred=one.skip,
        extra=extra or None, **common,
    )  # fmt: skip
    outcomes = tuple(
        Outcome(loop=decision.loop, time=decision.time, id=decision.id, value=0.0 - slot.cost, slot=place)
        for place, slot in enumerate(slots)
        if slot.cost is not None
    )
    return Event(decision, outcomes)


class ActionList(msgspec.Struct):
    """Value of the key c in a line of Decision Service JSON, of which only the list of actions is decoded."""

    actions: list[msgspec.Raw] = msgspec.field(name="_multi", default_factory=list)


def _count_actions(context: Any) -> int:
    """Count the actions in a decision's features."""
    if isinstance(context, msgspec.Raw):
        return len(msgspec.json.decode(context, type=ActionList).actions)
    return len(context.get("_multi", ())) if isinstance(context, dict) else 0


def _extra_fields(one: Line, propensity: float | None = None) -> dict[str, Any] | None:
    """Return the keys of a line for which records have no field, with their values; None if there are none.

    They are o, Version, _original_label_cost, and _label_probability if it differs from `propensity`, the probability
    in the decision's record.
    """
    found: dict[str, Any] = {}
    if one.outcomes:
        found["o"] = msgspec.json.decode(one.outcomes)
    if one.version is not None:
        found["Version"] = one.version
    if one.original is not None:
        found["_original_label_cost"] = one.original
    if one.probability is not None and one.probability != propensity:
        found["_label_probability"] = one.probability
    return found or None


def _order_actions(first: int, row: list[float]) -> list[int]:
    """Return the index `first` that was drawn, then the other indices with positive probability in their order.

    `row` (K,) holds the probabilities of all actions.
    """
    return [first, *(place for place, p in enumerate(row) if p > 0.0 and place != first)]


def write(path: str | Path, events: Iterable[Event]) -> int:
    """Write events to a file, which appears when it is complete, and return their number.

    Several outcomes of a slot are summed. Raises ValueError for an event without features of its actions (`_multi`), or
    with an action that has no probability in the event.
    """
    count = 0
    with open_atomic(path) as file:
        for event in events:
            file.write(encoder.encode(line_from_event(event)) + b"\n")
            count += 1
    return count


def line_from_event(event: Event) -> Line:
    """Return an event as a line of Decision Service JSON."""
    decision, extra = event.decision, event.decision.extra or {}
    one = Line(
        skip=decision.deferred and event.activation is None,
        outcomes=_to_raw(extra["o"]) if "o" in extra else NOTHING,
        time=moment(decision.time) if decision.time else None,
        version=extra.get("Version"),
        id=decision.id,
        context=_to_raw(json_from_decision(decision)),
        state=State(decision.model) if decision.model is not None else None,
        baseline=decision.baseline,
    )
    if decision.passed < 1.0:
        one.dropped = 1.0 - decision.passed
    costs: list[float | None] = [None] * len(decision.places)
    for outcome in event.outcomes:
        place = outcome.slot or 0
        costs[place] = (costs[place] or 0.0) - outcome.value
    if decision.slots is None and len(decision.places) == 1:
        place, p = decision.places[0], decision.probabilities
        one.cost, one.index, one.action = costs[0], place, place + 1
        one.probability = extra.get("_label_probability", decision.propensities[0] if decision.propensities else None)
        if p is not None:
            ranking = decision.ranking or sorted(range(len(p)), key=lambda at: (at != place, -p[at], at))
            one.ranking, one.probabilities = [at + 1 for at in ranking], [p[at] for at in ranking]
        elif decision.ranking is not None:
            one.ranking = [at + 1 for at in decision.ranking]
        one.original = extra.get("_original_label_cost")
        return one
    rows = decision.slots
    if rows is None:
        raise ValueError(f"decision {decision.id} of several slots has no probabilities")
    names: list[str | None] = list(decision.slot_names) if decision.slot_names else [None for _ in rows]
    originals = extra.get("_original_label_cost", [None] * len(rows))
    orders = extra.get("_a") or [_order_actions(place, row) for place, row in zip(decision.places, rows, strict=True)]
    raw = extra.get("_o", [None] * len(rows))
    one.slots = [
        Slot(
            cost,
            name,
            order,
            [row[at] for at in order],
            _to_raw(each) if each is not None else NOTHING,
            original,
        )
        for cost, name, order, row, each, original in zip(costs, names, orders, rows, raw, originals, strict=True)
    ]
    return one


def _to_raw(value: Any) -> msgspec.Raw:
    """Encode plain data as JSON."""
    return value if isinstance(value, msgspec.Raw) else msgspec.Raw(encoder.encode(value))
