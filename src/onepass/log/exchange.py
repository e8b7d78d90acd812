"""Into a store and out of it: our own records as lines of JSON, and the formats of others (`onepass.log.formats`)."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from onepass.foundation import check
from onepass.log import formats
from onepass.log.formats.lines import Lines, Report, whole
from onepass.log.records import Decision, Event, Join, Outcome, Record, decode, encode, kind
from onepass.log.store import Store

OWN = "records"  # the format of this package
ENDING = ".jsonl"
BATCH = 1_000  # records stored by one commit

Told = Callable[[int], object]


def format_of(path: str | Path, format: str | None) -> str | None:
    """`records` for what ends in .jsonl or .jsonl.gz where nothing else is asked for; None: by the ending."""
    return OWN if format is None and ENDING in Path(path).suffixes else format


def taken(
    store: Store,
    path: str | Path,
    format: str | None = None,
    *,
    loop: str | None = None,
    bad: str = "refuse",
    report: Report | None = None,
    told: Told | None = None,
) -> Counter[str]:
    """Store what a file holds; how many records of each kind were stored, and how many were there already (`known`).

    store: where to; path: of the file; format: "records" (lines of JSON as `given` writes them), "dsjson", "vw", "csv"
    or "obp" (default None: by the ending). A new store keeps the places that records had; one that is not new gives
    places of its own, and takes no checkpoints, which speak of places.
    loop: that all records shall be of (default None: as they say, foreign events "imported"). bad: "refuse" (default):
    a line that cannot be read is a ValueError with its number; "skip": it is told to `report`. told: is called with how
    many were read (default None). ValueError for a new store and records whose places have gaps.
    """
    counts: Counter[str] = Counter()
    own = format_of(path, format) == OWN
    fresh = store.bounds() == (1, 0)
    records = lines(path, bad, report, loop) if own else foreign(path, format, loop, bad, report)
    while batch := list(islice(records, BATCH)):
        if own and fresh and counts.total() == 0 and batch[0].seq > 1:
            store.begin(batch[0].seq)
        if own and not fresh:
            counts["left out"] += sum(kind(one) == "checkpoint" for one in batch)
            batch = [one for one in batch if kind(one) != "checkpoint"]
        last = store.last
        seqs = store.append(batch)
        if own and fresh and any(seq != one.seq for seq, one in zip(seqs, batch) if one.seq):
            raise ValueError(f"{path} must hold every place from its first to its last, to be the same in a new store")
        for seq, one in zip(seqs, batch):
            counts[kind(one) if seq > last else "known"] += 1
        if told is not None:
            told(counts.total())
    return counts


def lines(path: str | Path, bad: str, report: Report | None, loop: str | None) -> Iterator[Any]:
    """Records of a file of ours."""
    read = Lines(path, bad, report)
    for number, line in read:
        try:
            record: Any = decode(line)
        except ValueError as error:
            read.wrong(number, error)
            continue
        yield record if loop is None else msgspec.structs.replace(record, loop=loop)


def foreign(
    path: str | Path, format: str | None, loop: str | None, bad: str, report: Report | None
) -> Iterator[Record]:
    """Records of a file of others: decisions, each with what came of it."""
    options: dict[str, Any] = {} if loop is None else {"loop": loop}
    if formats.format_of(path, format) is not formats.obp:
        options.update(bad=bad, report=report)
    for event in formats.read(path, format, **options):
        yield event.decision
        if event.activation is not None:
            yield event.activation
        yield from event.outcomes


def given(
    store: Store,
    path: str | Path,
    format: str | None = None,
    *,
    loop: str | None = None,
    since: int = 0,
    until: int | None = None,
    told: Told | None = None,
) -> int:
    """Write what a store holds to a file, which appears when it is whole; how many records or events.

    store: from where; path, format: as in `taken`; loop: only this one (default None: all); since, until: after which
    place, and to which one (default 0, None: all). told: is called with every place that was read (default None).
    An event of a foreign format has the outcomes of its decision, or, where there are none, the rewards of its join.
    """
    since = check.integer("since", since, 0)
    if format_of(path, format) != OWN:
        return formats.write(path, passed(events(store, loop, since, until), told), format)
    count = 0
    with whole(path) as file:
        for record in passed(store.read(since, until, None, loop), told):
            file.write(encode(record) + b"\n")
            count += 1
    return count


def passed(found: Iterable[Any], told: Told | None) -> Iterator[Any]:
    """The same, while places are told."""
    for one in found:
        yield one
        if told is not None:
            told(one.decision.seq if isinstance(one, Event) else one.seq)


def events(store: Store, loop: str | None = None, since: int = 0, until: int | None = None) -> Iterator[Event]:
    """Decisions with what came of them, as a stream. store, loop, since, until: as in `given`."""
    for decision in store.read(since, until, ("decision",), loop):
        outcomes, joined, activation = list[Outcome](), list[Outcome](), None
        for one in store.find(decision.loop, decision.id):
            if isinstance(one, Outcome):
                outcomes.append(one)
            elif isinstance(one, Join):
                joined += paid(one)
            elif not isinstance(one, Decision):
                activation = one
        yield Event(decision, tuple(outcomes or joined), activation)


def paid(join: Join) -> list[Outcome]:
    """The rewards of a join as outcomes."""
    several = len(join.rewards) > 1
    return [
        Outcome(loop=join.loop, time=join.time, id=join.id, value=value, slot=slot if several else None)
        for slot, value in enumerate(join.rewards)
        if value is not None
    ]
