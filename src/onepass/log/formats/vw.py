"""Text of Vowpal Wabbit: one decision a line (cb), or a block of lines that an empty line ends (cb_adf, ccb).

    2:-1:0.8 | user_a hour_9                    cb: action from 1 : cost : probability
    shared |User id_a age:31                    cb_adf: the action in a label is ignored
    0:-1:0.8 |Action topic_sport
    |Action topic_news
    ccb shared |User id_a                       ccb: every slot says action from 0 : cost : probability, action : p, ...
    ccb action |Action x
    ccb slot 0:-1:0.9,1:0.1 0,1 |Slot size_large

Costs are minus rewards. The text of a decision holds one probability (in ccb all of them), and neither time nor model.
The id of a decision is the tag, `'name`, of the first line.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from onepass.log.formats.lines import Lines, Report, open_atomic
from onepass.log.formats.namespaces import format_features, namespaces, parse_features, parse_number
from onepass.log.formats.requests import json_from_decision
from onepass.log.records import Decision, Event, Outcome
from onepass.log.replay_decide import are_records

MARKS = set(" \t|:,'\n\r")  # that a tag cannot have


def read(
    path: str | Path, *, loop: str = "imported", n_arms: int | None = None, bad: str = "refuse",
    report: Report | None = None,
) -> Iterator[Event]:  # fmt: skip
    """Yield the events of a text file of Vowpal Wabbit; a decision without a label counts as a bad line.

    A decision without a tag gets the id "line" and the number of its first line. All times are 0.

    Parameters
    ----------
    path : str or Path
        The file.
    loop : str, default "imported"
        Name of the loop for its records.
    n_arms : int, default None
        Number of actions that cb lines choose from, at least 1. None if it is not known.
    bad : {"refuse", "skip"}, default "refuse"
        "refuse" raises ValueError with the number of a bad line. "skip" leaves its whole decision out.
    report : callable, default None
        Is called with the number of each line left out and the reason.

    Yields
    ------
    Event
        The next event.
    """
    lines, block = Lines(path, bad, report), list[tuple[int, str]]()
    for number_, line in _lines_and_end(lines):
        text = line.decode("utf-8", "replace").strip()
        alone = bool(text) and not block and _is_cb_line(text)
        if text:
            block.append((number_, text))
        if block and (alone or not text):
            at = block[0][0]
            try:
                yield _event_from_cb(block[0][1], loop, at, n_arms) if alone else _event_from_block(block, loop)
            except (ValueError, IndexError) as error:
                lines.reject(at, error)
            block = []


def _lines_and_end(lines: Lines) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the text of each line, and of an empty line after them."""
    number_ = 0
    for number_, line in lines:
        yield number_, line
    yield number_ + 1, b""


def _is_cb_line(text: str) -> bool:
    """Return True for a line of VW's contextual bandit format cb, whose label is action:cost:probability, action >= 1.

    The caller checks that the line is not part of a block, whose lines may have such labels, too.
    """
    label = text.partition("|")[0].split()
    return bool(label) and ":" in label[0] and not label[0].startswith("0:")


def _split_tag(words: list[str]) -> tuple[list[str], str | None]:
    """Return the words of a label without its tag, and the tag: the last word, if it begins with ', else None."""
    if words and words[-1].startswith("'"):
        return words[:-1], words[-1][1:]
    return words, None


def _parse_probability(text: str, chosen: bool = True) -> float:
    """Parse a probability, which is above 0 for a chosen action; raise ValueError for other text."""
    p = parse_number(text)
    if not 0.0 <= p <= 1.0 or (chosen and p == 0.0):
        raise ValueError(f"a probability must be in [0, 1], and above 0 of the action that was chosen, got {text}")
    return p


def _event_from_cb(text: str, loop: str, at: int, n_arms: int | None) -> Event:
    """Make the event of a cb line.

    `text` is the line, `at` its number, `loop` the name of the loop for the records, and `n_arms` the number of actions
    that the line chooses from, None if it is not known.
    """
    label, bar, features = text.partition("|")
    words, tag = _split_tag(label.split())
    known = [word.split(":") for word in words if word.count(":") == 2]
    if len(known) != 1:
        raise ValueError("a cb line must have one label action:cost:probability")
    action, cost, p = known[0]
    if int(action) < 1 or (n_arms is not None and int(action) > n_arms):
        raise ValueError(f"an action must be from 1 to the number of actions, got {action}")
    decision = Decision(
        loop=loop, time=0, id=tag or f"line {at}", places=[int(action) - 1], propensities=[_parse_probability(p)],
        contexts=parse_features(bar + features), offered=None if n_arms is None else list(range(n_arms)),
    )  # fmt: skip
    return Event(decision, (Outcome(loop=loop, time=0, id=decision.id, value=0.0 - parse_number(cost)),))


def _event_from_block(block: list[tuple[int, str]], loop: str) -> Event:
    """Make the event of a block of lines, in the format cb_adf or ccb.

    `block` holds the number and the text of each line, and `loop` is the name of the loop for the records.
    """
    shared: dict[str, Any] = {}
    actions: list[Any] = []
    slots: list[tuple[str | None, Any]] = []
    chosen, name = None, f"line {block[0][0]}"
    for at, text in block:
        label, bar, features = text.partition("|")
        words, tag = _split_tag(label.split())
        name = tag if tag and at == block[0][0] else name
        kind = (
            words[1] if words[:1] == ["ccb"] and len(words) > 1 else "shared" if words[:1] == ["shared"] else "action"
        )
        found = parse_features(bar + features)
        if kind == "shared":
            shared = found
        elif kind == "slot":
            slots.append((words[2] if len(words) > 2 and ":" in words[2] else None, found))
        elif kind == "action":
            if words and words[0] != "ccb":
                if chosen is not None or words[0].count(":") != 2:
                    raise ValueError(f"line {at}: a decision must have one label action:cost:probability")
                chosen = (len(actions), words[0].split(":"))
            actions.append(found)
        else:
            raise ValueError(f"line {at}: ccb lines are shared, action or slot, got {kind}")
    contexts = {**shared, "_multi": actions}
    if slots:
        return _event_from_ccb(contexts, slots, loop, name)
    if chosen is None:
        raise ValueError("there is no decision: no action has a label")
    place, (_, cost, p) = chosen
    decision = Decision(
        loop=loop, time=0, id=name, places=[place], propensities=[_parse_probability(p)], contexts=contexts
    )
    return Event(decision, (Outcome(loop=loop, time=0, id=name, value=0.0 - parse_number(cost)),))


def _event_from_ccb(contexts: dict[str, Any], slots: list[tuple[str | None, Any]], loop: str, name: str) -> Event:
    """Make the event of a ccb block.

    `contexts` holds the shared features and the list `_multi` of the actions' features. `slots` are (label, features)
    of each slot. `loop` is the name of the loop for the records, and `name` the id of the decision.
    """
    contexts["_slots"] = [found for _, found in slots]
    count, rows, places, outcomes = len(contexts["_multi"]), [], [], []
    for at, (label, _) in enumerate(slots):
        if label is None:
            raise ValueError("there is no decision: a slot has no label")
        first, *others = [part.split(":") for part in label.split(",")]
        row = [0.0] * count
        for one in others:
            row[int(one[0])] = _parse_probability(one[1], chosen=False)
        row[int(first[0])] = _parse_probability(first[2])
        places.append(int(first[0]))
        outcomes.append(Outcome(loop=loop, time=0, id=name, value=0.0 - parse_number(first[1]), slot=at))
        rows.append(row)
    decision = Decision(
        loop=loop, time=0, id=name, places=places, probabilities=rows[0], slots=rows, contexts=contexts,
        propensities=[row[place] for row, place in zip(rows, places, strict=True)],
    )  # fmt: skip
    return Event(decision, tuple(outcomes))


def write(path: str | Path, events: Iterable[Event]) -> int:
    """Write events to a file, which appears when it is complete, and return their number.

    Decisions with features of their actions (`_multi`) become cb_adf blocks, or ccb blocks with several slots. Other
    decisions become cb lines. An event without an outcome costs 0. Raises ValueError for a decision without its
    propensity.
    """
    count = 0
    with open_atomic(path) as file:
        for event in events:
            file.write(("\n".join(lines_from_event(event)) + "\n").encode())
            count += 1
    return count


def lines_from_event(event: Event) -> list[str]:
    """Return an event as lines of Vowpal Wabbit's text; several lines end with an empty one."""
    decision = event.decision
    if decision.propensities is None:
        raise ValueError(f"decision {decision.id} has no propensity, which text needs")
    contexts = decision.contexts
    contexts = msgspec.json.decode(contexts) if isinstance(contexts, msgspec.Raw) else contexts
    if isinstance(contexts, list):
        contexts = (
            {"x": contexts} if not isinstance(contexts[0], list) else {"_multi": [{"x": row} for row in contexts]}
        )
    contexts = json_from_decision(decision) if are_records(contexts) else contexts or {}
    tag = f" '{decision.id}" if decision.id and not MARKS & set(decision.id) else ""
    costs = [0.0] * len(decision.places)
    for outcome in event.outcomes:
        costs[outcome.slot or 0] -= outcome.value
    shared, actions = format_features(namespaces(contexts)), contexts.get("_multi")
    labels = [f"{cost!r}:{p!r}" for cost, p in zip(costs, decision.propensities, strict=True)]
    if actions is None and len(labels) == 1:
        return [f"{decision.places[0] + 1}:{labels[0]}{tag} {shared or '|'}"]
    described = [format_features(namespaces(action)) or "|" for action in actions or ()]
    if len(labels) == 1 and decision.slots is None:
        lines = [f"0:{labels[0]} {one}" if at == decision.places[0] else one for at, one in enumerate(described)]
        return [f"shared{tag} {shared or '|'}", *lines, ""]
    slots = contexts.get("_slots") or [{} for _ in labels]
    lines = [f"ccb shared{tag} {shared or '|'}", *(f"ccb action {one}" for one in described)]
    for place, label, row, slot in zip(decision.places, labels, decision.slots or [], slots, strict=True):
        others = [f"{at}:{p!r}" for at, p in enumerate(row) if p > 0.0 and at != place]
        lines.append(f"ccb slot {','.join([f'{place}:{label}', *others])} {format_features(namespaces(slot)) or '|'}")
    return [*lines, ""]
