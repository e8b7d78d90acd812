"""Import into a store and export from it, as JSON lines of records or in other formats (`onepass.log.formats`)."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from onepass.foundation import check
from onepass.log import formats
from onepass.log.formats.lines import Lines, Report, open_atomic
from onepass.log.formats.requests import adopt_decision
from onepass.log.model_lineage import read_lineage
from onepass.log.records import Decision, Event, Join, Outcome, Record, decode, encode, kind_of
from onepass.log.replay import bandit_from_checkpoint, decision_to_learn
from onepass.log.store import Store

OWN = "records"  # the format of this package
ENDING = ".jsonl"
BATCH = 1_000  # records stored by one commit
DIGEST = 16  # bytes
NUMBERED = re.compile(r"(line|row) \d+")  # names that formats give to decisions without one

Progress = Callable[[int], object]


def format_of(path: str | Path, format: str | None) -> str | None:
    """Return the name of a file's format: `format` if it is given, else "records" for a path that ends in .jsonl.

    For other paths the result is None, and `formats.format_of` chooses by the file's ending.
    """
    return OWN if format is None and ENDING in Path(path).suffixes else format


def import_file(
    store: Store,
    path: str | Path,
    format: str | None = None,
    *,
    loop: str | None = None,
    bad: str = "refuse",
    report: Report | None = None,
    progress: Progress | None = None,
    default: float | None = None,
) -> Counter[str]:
    """Store the content of a file.

    A new store keeps the positions that records had. Any other store gives positions of its own and takes no
    checkpoints, which refer to positions. There, imported decisions count as those of another program. The rewards of
    their joins (records of the rewards that are learned) are learned, but verification does not repeat the decisions,
    because their models are in the other log.

    Parameters
    ----------
    store : Store
        The store to write.
    path : str or Path
        The file.
    format : str, default None
        "records" (lines of JSON as `export_file` writes them), "dsjson", "vw", "csv" or "obp". None chooses by the
        ending of the file's name.
    loop : str, default None
        Name of the loop for all records. None keeps their own; events of other formats get "imported".
    bad : {"refuse", "skip"}, default "refuse"
        "refuse" raises ValueError with the number of a line that cannot be read. "skip" leaves the line out.
    report : callable, default None
        Is called with the number of each line left out and the reason.
    progress : callable, default None
        Is called with the number of records read so far.
    default : float, default None
        For other formats: join every decision with the sum of its outcomes, or with this finite reward if there are
        none, so that a replay learns it. None writes no joins; a service makes them.

    Returns
    -------
    Counter
        Number of stored records by kind; `known` counts those that the store had already.

    Raises
    ------
    ValueError
        If the store is new and positions have gaps. Also if the store has a checkpoint of the loop's model, and this
        model cannot learn a decision.
    """
    if format_of(path, format) == OWN:
        if default is not None:
            raise ValueError("default must be None for records, which have joins of their own")
        return _import_records(store, path, loop, bad, report, progress)
    default = None if default is None else check.real("default", default)
    return _import_events(store, _read_foreign_events(path, format, loop, bad, report), default, progress)


def _import_records(
    store: Store, path: str | Path, loop: str | None, bad: str, report: Report | None, progress: Progress | None
) -> Counter[str]:
    """Store the records of a file in the package's own format, and return how many there were of each kind.

    If `loop` is given, it replaces the name of their loop. `bad` is "refuse" or "skip" for lines that cannot be read,
    `report` is called for each skipped one, and `progress` with the number of records so far.
    """
    counts: Counter[str] = Counter()
    fresh, before = store.bounds() == (1, 0), store.last
    records, held = _read_records(path, bad, report, loop), StoredRecords(store, before)
    while batch := list(islice(records, BATCH)):
        if fresh and counts.total() == 0 and batch[0].seq > 1:
            store.begin(batch[0].seq)
        if not fresh:
            counts["left out"] += sum(kind_of(one) == "checkpoint" for one in batch)
            given = [_make_foreign(one) for one in batch if kind_of(one) != "checkpoint"]
            batch = [one for one in given if not held.has(one)]
            counts["known"] += len(given) - len(batch)
        last = store.last
        seqs = store.append(batch)
        if fresh and any(seq != one.seq for seq, one in zip(seqs, batch) if one.seq):
            raise ValueError(f"{path} must hold every place from its first to its last, to be the same in a new store")
        _count_records(counts, batch, seqs, last)
        if progress is not None:
            progress(counts.total())
    return counts


def _make_foreign(record: Record) -> Record:
    """Return a record of another log; a decision without what refers to the models of that log."""
    if not isinstance(record, Decision):
        return record
    canary = None if record.canary is None else msgspec.structs.replace(record.canary, through=0)
    return msgspec.structs.replace(record, scores=None, through=None, rounds=0, line=0, canary=canary)


def _count_records(counts: Counter[str], batch: Sequence[Record], seqs: list[int], last: int) -> None:
    """Add the records of a batch to `counts`, which holds numbers of records by kind.

    `seqs` are the positions that the store gave them, and `last` is the store's last position before the batch. A
    record counts as known if its position is at most `last`, or if it appears twice in the batch.
    """
    seen = set[int]()
    for seq, one in zip(seqs, batch, strict=True):
        counts["known" if seq <= last or seq in seen else kind_of(one)] += 1
        seen.add(seq)


class StoredRecords:
    """Records without a unique key, such as outcomes without a request, among the positions 1 to `last` of a store.

    When a file is imported again, `has(record)` tells whether the store has this record already. Each call matches
    another stored record.
    """

    def __init__(self, store: Store, last: int) -> None:
        self._store, self._last, self._met = store, last, Counter[bytes]()
        self._loose: Counter[bytes] | None = None

    def has(self, record: Record) -> bool:
        """Return True if the store has an equal record that was not matched with another one before."""
        if record.unique_key is not None or self._last == 0:
            return False
        name = _content_digest(record)
        before = self._count_loose()[name]
        if record.event is not None:
            about = self._store.find(record.loop, record.event)
            before = sum(one.seq <= self._last and _content_digest(one) == name for one in about)
        self._met[name] += before > 0
        return 0 < self._met[name] <= before

    def _count_loose(self) -> Counter[bytes]:
        """Count the records that belong to no decision, by digest."""
        if self._loose is None:
            self._loose = Counter(map(_content_digest, self._store.read(0, self._last, ("settings", "forgotten"))))
        return self._loose


def _content_digest(record: Record) -> bytes:
    """Return a digest of all fields of a record except its position."""
    return blake2b(encode(msgspec.structs.replace(record, seq=0)), digest_size=DIGEST).digest()


def _read_records(path: str | Path, bad: str, report: Report | None, loop: str | None) -> Iterator[Any]:
    """Yield the records of a file in the package's own format; the arguments are those of `_import_records`."""
    read = Lines(path, bad, report)
    for number, line in read:
        try:
            record: Any = decode(line)
        except ValueError as error:
            read.reject(number, error)
            continue
        yield record if loop is None else msgspec.structs.replace(record, loop=loop)


def _import_events(
    store: Store, found: Iterator[Event], default: float | None, progress: Progress | None
) -> Counter[str]:
    """Store events of another format: decisions first, then the outcomes that the store did not have.

    `default` is the reward of a decision without an outcome; with None none is learned. `progress` is called with the
    number of records so far. Returns how many records of each kind were found.
    """
    counts, trial = Counter[str](), TrialModels(store)
    while batch := list(islice(found, BATCH)):
        for event in batch:
            trial.learn(event.decision)
        last = store.last
        seqs = store.append([event.decision for event in batch])
        _count_records(counts, [event.decision for event in batch], seqs, last)
        rest: list[Record] = []
        for event, seq in zip(batch, seqs, strict=True):
            rest += _event_records(
                event, default, store.find(event.decision.loop, event.decision.id) if seq <= last else []
            )
        last = store.last
        _count_records(counts, rest, store.append(rest), last)
        if progress is not None:
            progress(counts.total())
    return counts


def _event_records(event: Event, default: float | None, about: list[Any]) -> list[Record]:
    """Return the records of an event beside its decision: activation, outcomes and join.

    `default` is the reward in the join of an event without outcomes; with None there is no join. `about` holds the
    records about the decision that the store had already.
    """
    known = {one.slot or 0 for one in about if isinstance(one, Outcome)}
    joined = any(isinstance(one, Join) and one.count for one in about)
    found: list[Record] = [] if event.activation is None else [event.activation]
    for number, one in enumerate(event.outcomes):
        if not joined and (one.slot or 0) not in known:
            request = f"import {number}" if one.slot is None else f"import {one.slot} {number}"
            found.append(msgspec.structs.replace(one, request=request if one.request is None else one.request))
    decision = event.decision
    if (
        default is None
        or (decision.deferred and event.activation is None)
        or any(isinstance(one, Join) for one in about)
    ):
        return found
    count, each = (
        len(event.outcomes),
        [[one.value for one in event.outcomes if one.slot in (None, slot)] for slot in range(len(decision.places))],
    )
    rewards: list[float | None] = [sum(values) if values else default for values in each]
    how = "sum" if count else "default"
    found.append(Join(loop=decision.loop, time=decision.time, id=decision.id, rewards=rewards, how=how, count=count))
    return found


class TrialModels:
    """Copies of a store's models that learn imported decisions, to find those that a service could not learn."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._models: dict[str, tuple[Any, float]] = {}

    def learn(self, decision: Decision) -> None:
        """Let a copy of the model of a decision's loop learn the decision with reward 0.

        Raises ValueError if the model cannot learn it. Decisions of loops without a model are not checked.
        """
        if decision.loop not in self._models:
            line, last = read_lineage(self._store, decision.loop).serving, None
            for one in self._store.read(kinds=("checkpoint",), loop=decision.loop):
                last = one if one.data is not None and one.line == line else last
            self._models[decision.loop] = (None, 0.0) if last is None else (bandit_from_checkpoint(last), last.seconds)
        bandit, time = self._models[decision.loop]
        if bandit is None or decision.deferred:
            return
        options = {"allow_repeat": True, **({"time": max(time, decision.seconds)} if bandit.needs_time else {})}
        slots = len(decision.places)
        try:
            bandit.learn(decision_to_learn(decision), 0.0 if slots == 1 else [0.0] * slots, **options)
        except ValueError as error:
            raise ValueError(
                f"the model of loop {check.quote(decision.loop)} cannot learn decision {check.quote(decision.id)}: "
                f"{error}; import it as a loop of another name"
            ) from None
        self._models[decision.loop] = bandit, max(time, decision.seconds)


def _read_foreign_events(
    path: str | Path, format: str | None, loop: str | None, bad: str, report: Report | None
) -> Iterator[Event]:
    """Yield the events of a file in another format.

    An event that is named only by its line gets a digest of its content in its name, so that two files do not share
    names.
    """
    options: dict[str, Any] = {} if loop is None else {"loop": loop}
    if formats.format_of(path, format) is not formats.obp:
        options.update(bad=bad, report=report)
    for number, event in enumerate(formats.read(path, format, **options), 1):
        try:
            decision = adopt_decision(event.decision)
        except ValueError as error:
            if bad == "refuse":
                raise ValueError(f"{path}, decision {check.quote(event.decision.id)}: {error}") from None
            if report is not None:
                report(number, f"decision {check.quote(event.decision.id)}: {error}")
            continue
        if NUMBERED.fullmatch(decision.id):
            said = blake2b(b"".join(map(encode, (decision, *event.outcomes))), digest_size=DIGEST)
            event = _rename_event(event, f"{decision.id} {said.hexdigest()}")
        yield event._replace(decision=msgspec.structs.replace(decision, id=event.decision.id))


def _rename_event(event: Event, name: str) -> Event:
    """Return an event whose decision has another name."""
    activation = None if event.activation is None else msgspec.structs.replace(event.activation, id=name)
    outcomes = tuple(msgspec.structs.replace(one, id=name) for one in event.outcomes)
    return Event(msgspec.structs.replace(event.decision, id=name), outcomes, activation)


def export_file(
    store: Store,
    path: str | Path,
    format: str | None = None,
    *,
    loop: str | None = None,
    since: int = 0,
    until: int | None = None,
    progress: Progress | None = None,
) -> int:
    """Write the content of a store to a file, which appears when it is complete.

    An event of another format has the outcomes of its decision, or, if there are none, the rewards that were learned
    for it.

    Parameters
    ----------
    store : Store
        The store to read.
    path : str or Path
        The file.
    format : str, default None
        Format, as in `import_file`.
    loop : str, default None
        Name of the loop. None means all.
    since : int, default 0
        Position after which to begin.
    until : int, default None
        Last position. None means the end.
    progress : callable, default None
        Is called with every position that was read.

    Returns
    -------
    int
        Number of records written, or of events in the formats of other programs.
    """
    since = check.integer("since", since, 0)
    if format_of(path, format) != OWN:
        return formats.write(path, _report_progress(events_from_store(store, loop, since, until), progress), format)
    count = 0
    with open_atomic(path) as file:
        for record in _report_progress(store.read(since, until, None, loop), progress):
            file.write(encode(record) + b"\n")
            count += 1
    return count


def _report_progress(found: Iterable[Any], progress: Progress | None) -> Iterator[Any]:
    """Yield the records in `found`, and call `progress`, if it is given, with the position of each."""
    for one in found:
        yield one
        if progress is not None:
            progress(one.decision.seq if isinstance(one, Event) else one.seq)


def events_from_store(
    store: Store, loop: str | None = None, since: int = 0, until: int | None = None
) -> Iterator[Event]:
    """Yield the decisions of a store with since < position <= until, each with its outcomes, as events.

    None as `loop` takes all loops.
    """
    for decision in store.read(since, until, ("decision",), loop):
        outcomes, joined, activation = list[Outcome](), list[Outcome](), None
        for one in store.find(decision.loop, decision.id):
            if isinstance(one, Outcome):
                outcomes.append(one)
            elif isinstance(one, Join):
                joined += outcomes_from_join(one)
            elif not isinstance(one, Decision):
                activation = one
        yield Event(decision, tuple(outcomes or joined), activation)


def outcomes_from_join(join: Join) -> list[Outcome]:
    """Return the rewards in a join, the record of what is learned for a decision, as outcomes."""
    several = len(join.rewards) > 1
    return [
        Outcome(loop=join.loop, time=join.time, id=join.id, value=value, slot=slot if several else None)
        for slot, value in enumerate(join.rewards)
        if value is not None
    ]
