"""Conformance suite of stores.

A store of a log keeps one order without gaps, stores whole batches, returns every bit, and deletes in place.
"""

import threading
from collections.abc import Callable
from contextlib import closing
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from msgspec.structs import replace

from onepass.log.records import (
    Activation,
    Checkpoint,
    Decision,
    Join,
    Outcome,
    Record,
    Settings,
    decode,
    encode,
    kind_of,
)
from onepass.log.store import Store, StoreError
from onepass.testing.shared import summary

HARD_NUMBERS = (
    0.1,
    1 / 3,
    5e-324,
    -0.0,
    1.7976931348623157e308,
    2.0**53 + 2,
    -1e-17,
)  # numbers that a decimal format may change
THREADS, BATCHES, SIZE = 4, 6, 3  # concurrent writers, batches of each, records of a batch


def check_store(make: Callable[[], Store], reopen: Callable[[Store], Store] | None = None, n_calls: int = 80) -> str:
    """Check that a store of a log satisfies its contract.

    Parameters
    ----------
    make : function
        Returns a new, empty store.
    reopen : function, default None
        Closes a store and opens its contents again. None is for a store in memory.
    n_calls : int, default 80
        Number of random calls in which the store is compared with a list, at least 1.

    Returns
    -------
    str
        A sentence that lists what was checked.

    Raises
    ------
    AssertionError
        At the first violation.
    """
    claims = {
        "order and bits": _check_order_and_bits,
        "idempotent appends": _check_idempotent_appends,
        "atomic batches": _check_atomic_batches,
        "find": _check_find,
        "forget": _check_forget,
        "retention": _check_retention,
        "begin": _check_begin,
        "concurrent writers": _check_concurrent_writers,
        "concurrent readers": _check_concurrent_reader,
    }
    for check in claims.values():
        with closing(make()) as store:
            check(store)
            assert list(store.check()) == []
            if reopen is not None:
                before = list(map(encode, store.read())), store.first, store.last
                store = reopen(store)
                assert before == (list(map(encode, store.read())), store.first, store.last)
                assert store.append([_outcome("after")]) == [before[2] + 1]
                store.close()
    with closing(make()) as store:
        last = _compare_with_list(store, reopen, np.random.default_rng(0), n_calls)
        last.close()
        _check_closed(last)
    reopening = [] if reopen is None else ["its contents are the same when it is opened again"]
    names, calls = ", ".join(claims), f"{n_calls} random calls agree with a list"
    return summary(last, names, calls, *reopening, "calls of a closed store are refused")


def _outcome(id: str, value: float = 1.0, **fields: Any) -> Outcome:
    return Outcome(loop="a", time=7, id=id, value=value, **fields)


def _decision(id: str, **fields: Any) -> Decision:
    """Return a decision whose numbers are hard to store exactly; `fields` replace its defaults."""
    wide = {
        "context": [HARD_NUMBERS, HARD_NUMBERS[::-1]],
        "widths": list(HARD_NUMBERS),
        "extra": {"user": {"name": 'ü"\n', "numbers": HARD_NUMBERS}},
    }
    defaults = {"loop": "a", "time": 3, "places": [1], "propensities": [1 / 3], "probabilities": [2 / 3, 1 / 3]}
    return Decision(id=id, **{**defaults, **wide, **fields})


def _records_of_all_kinds() -> list[Record]:
    """Return records of every kind, of two loops."""
    return [
        Settings(loop="a", time=1, settings={"exploration": {"uniform_share": 0.1}}, version="1"),
        _decision("1", subject="someone", seed=2**70, offered=["x", {"tuple": ["y", 1]}]),
        _decision("1", loop="b"),
        Activation(loop="a", time=4, id="1"),
        _outcome("1", -0.0, request="r1", slot=0, extra={"v": [1, None, True]}),
        Join(loop="a", time=9, id="1", rewards=[1 / 3, None], how="sum", batch=2**60),
        Checkpoint(loop="a", time=10, through=6, digest="0" * 64, data=bytes(range(256)), model="v1"),
    ]


def _check_order_and_bits(store: Store) -> None:
    """Check that records have sequence numbers 1, 2, 3, ... in the order of appends, and come back in every bit."""
    assert (store.first, store.last, len(store), list(store.read())) == (1, 0, 0, [])
    records = _records_of_all_kinds()
    assert store.append(records[:3]) + store.append([]) + store.append(records[3:]) == list(range(1, 8))
    got = list(store.read())
    assert [record.seq for record in got] == list(range(1, 8))
    assert [encode(_reset_seq(record)) for record in got] == [encode(record) for record in records]
    assert [record.seq for record in store.read(since=2, until=5)] == [3, 4, 5]
    assert [record.seq for record in store.read(kinds=["decision", "join"])] == [2, 3, 6]
    assert [record.seq for record in store.read(loop="b")] == [3]
    assert [record.seq for record in store.read(since=7)] == [] == [record.seq for record in store.read(kinds=[])]
    assert _raises(lambda: store.read(kinds=["nothing"]))
    assert (store.first, store.last, len(store)) == (1, 7, 7)


def _check_idempotent_appends(store: Store) -> None:
    """Check that a repeated record is stored once, within a batch and between batches, for each loop."""
    first = store.append([_decision("1"), _decision("2"), _decision("1"), _outcome("1", request="r"), _outcome("1")])
    assert first == [1, 2, 1, 3, 4]
    again = [_outcome("1", 5.0, request="r"), _outcome("1"), _decision("2"), _decision("2", loop="b"), _outcome("2")]
    assert store.append(again) == [3, 5, 2, 6, 7]
    assert store.append([Activation(loop="a", time=1, id="1")] * 2) == [8, 8]
    joins = [Join(loop="a", time=1, id="1", rewards=[1.0], again=again) for again in (False, False, True, True)]
    assert store.append(joins) == [9, 9, 10, 11]
    assert [record.value for record in store.read(kinds=["outcome"])] == [1.0] * 4


def _check_atomic_batches(store: Store) -> None:
    """Check that nothing of a batch is stored if a record of it is wrong."""
    for name in ("", "nul\0", "x" * 257):
        assert _raises(partial(store.append, [_outcome("1"), _outcome(name)]))
        assert _raises(partial(store.append, [_outcome("1"), _outcome("1", subject=name)]))
    assert _raises(partial(store.append, [_outcome("1"), replace(_outcome("1"), time=2**63)]))
    infinite: Any = {"deep": [{"x": [float("inf")]}]}
    text: Any = "a record"
    for wrong in (_outcome("1", float("nan")), _decision("1", extra=infinite), _outcome("1", text), text):
        assert _raises(partial(store.append, [_outcome("1"), wrong]))
    assert store.last == 0
    long = [chr(0x1F600 + i % 50) for i in range(256)]
    widest = replace(_outcome("".join(long), request="".join(long[::-1])), loop="".join(long), subject="".join(long))
    assert store.append([widest, widest]) == [1, 1]
    assert len(store.find(widest.loop, widest.id)) == 1


def _check_find(store: Store) -> None:
    """Check that `find` returns all records about a decision, and no others."""
    store.append(_records_of_all_kinds())
    assert [record.seq for record in store.find("a", "1")] == [2, 4, 5, 6]
    assert [record.seq for record in store.find("b", "1")] == [3]
    assert store.find("c", "1") == [] == store.find("a", "none")


def _check_forget(store: Store) -> None:
    """Check that `forget` deletes a subject's records and all about its decisions, and leaves others as they are."""
    store.append([_decision("1", subject="someone"), _decision("2", subject="else"), _decision("1", loop="b")])
    store.append([_outcome("1"), _outcome("2"), _outcome("3", subject="someone")])
    store.append([Join(loop="a", time=1, id="1", rewards=[1.0])])
    before = {record.seq: encode(record) for record in store.read()}
    assert store.forget("someone") == 4
    assert store.forget("someone") == 0 == store.forget("nobody")
    assert _raises(lambda: store.forget(""))
    after = list(store.read())
    assert [record.seq for record in after] == list(range(1, 8))
    assert [record.was for record in after if kind_of(record) == "forgotten"] == [
        "decision",
        "outcome",
        "outcome",
        "join",
    ]
    assert all(encode(record) == before[record.seq] for record in after if kind_of(record) != "forgotten")
    assert store.find("a", "1") == [] != store.find("b", "1")
    assert (store.decisions_of("someone"), store.decisions_of("else")) == (set(), {("a", "2")})
    assert not any(b"someone" in encode(record) or record.event == "3" for record in after)
    assert store.append([_decision("1"), _outcome("1")]) == [8, 9]
    assert store.erase("nobody", {("a", "1"), ("a", "none")}) == 2
    assert store.find("a", "1") == [] != store.find("a", "2")


def _check_retention(store: Store) -> None:
    """Check that dropped records are gone, and that their sequence numbers are not used again."""
    store.append([_decision("1"), _outcome("1"), _outcome("1")])
    store.append([_decision("2"), _outcome("2")])
    assert store.drop_before(1) == 0
    assert store.drop_before(3) == 2
    assert store.drop_before(2) == 0
    assert (store.first, store.last, len(store)) == (3, 5, 3)
    assert [record.seq for record in store.read()] == [3, 4, 5]
    assert [record.seq for record in store.find("a", "1")] == [3]
    assert _raises(lambda: store.drop_before(7))
    assert _raises(lambda: store.drop_before(0))
    assert list(store.check()) == []
    assert store.drop_before(6) == 3
    assert (store.first, store.last, len(store), list(store.read())) == (6, 5, 0, [])
    assert store.append([_decision("1")]) == [6]


def _check_begin(store: Store) -> None:
    """Check that `begin` sets the first sequence number of a new store, and is refused after the first record."""
    store.begin(17)
    assert (store.first, store.last, len(store)) == (17, 16, 0)
    assert store.append([_outcome("1"), _outcome("2")]) == [17, 18]
    assert [record.seq for record in store.read()] == [17, 18]
    assert _raises(lambda: store.begin(30))


def _check_concurrent_writers(store: Store) -> None:
    """Check that batches of concurrent writers stay whole, and that those of one thread keep their order."""
    assigned: dict[int, list[list[int]]] = {writer: [] for writer in range(THREADS)}

    def write(writer: int) -> None:
        for batch in range(BATCHES):
            records = [_outcome(f"{writer}", batch * SIZE + part) for part in range(SIZE)]
            assigned[writer].append(store.append(records))

    _run_in_threads([partial(write, writer) for writer in range(THREADS)])
    seqs = sorted(seq for batches in assigned.values() for batch in batches for seq in batch)
    assert seqs == list(range(1, THREADS * BATCHES * SIZE + 1))
    for writer, batches in assigned.items():
        assert all(batch == list(range(batch[0], batch[0] + SIZE)) for batch in batches)
        assert all(first[-1] < second[0] for first, second in pairwise(batches))
        assert [record.value for record in store.find("a", f"{writer}")] == list(range(BATCHES * SIZE))


def _check_concurrent_reader(store: Store) -> None:
    """Check that a reader that follows the writers gets every record once and in order."""
    done, seqs = threading.Event(), list[int]()

    def write() -> None:
        for _ in range(BATCHES):
            store.append([_outcome("1")] * SIZE)

    def read() -> None:
        while True:
            is_last = done.is_set()
            since = seqs[-1] if seqs else 0
            seqs.extend(record.seq for record in store.read(since=since))
            if is_last:
                return

    reader = threading.Thread(target=read)
    reader.start()
    _run_in_threads([write] * THREADS)
    done.set()
    reader.join()
    assert seqs == list(range(1, THREADS * BATCHES * SIZE + 1))


def _compare_with_list(
    store: Store, reopen: Callable[[Store], Store] | None, rng: np.random.Generator, n_calls: int
) -> Store:
    """Check that the store and a list agree on random calls. Return the store as it was last opened."""
    truth: dict[int, Record | None] = {}
    last, first = 0, 1
    for call in range(n_calls):
        choice = rng.choice(["append", "append", "append", "forget", "drop", "reopen"])
        if choice == "append":
            records: list[Record] = []
            for i in range(int(rng.integers(1, 5))):
                subject = f"s{rng.integers(6)}"
                records.append(_decision(f"{call}.{i}", subject=subject, passed=float(rng.uniform(0.1, 1.0))))
            assert store.append(records) == list(range(last + 1, last + 1 + len(records)))
            truth.update(enumerate(records, last + 1))
            last += len(records)
        elif choice == "forget":
            subject = f"s{rng.integers(6)}"
            gone = [seq for seq, record in truth.items() if record is not None and record.subject == subject]
            assert store.forget(subject) == len(gone)
            truth.update(dict.fromkeys(gone))
        elif choice == "drop" and last >= first:
            end = int(rng.integers(first, min(first + 4, last + 1) + 1))
            assert store.drop_before(end) == end - first
            truth, first = {seq: record for seq, record in truth.items() if seq >= end}, end
        elif reopen is not None:
            store = reopen(store)
        assert (store.first, store.last) == (first, last)
    read = {
        record.seq: None if kind_of(record) == "forgotten" else encode(_reset_seq(record)) for record in store.read()
    }
    assert read == {
        seq: None if record is None else encode(_reset_seq(record)) for seq, record in sorted(truth.items())
    }
    assert list(store.check()) == []
    return store


def _check_closed(store: Store) -> None:
    """Check that calls of a closed store raise StoreError."""
    for call in (lambda: store.append([_outcome("1")]), lambda: list(store.read()), lambda: store.last):
        assert _raises(call, StoreError)


def _reset_seq(record: Any) -> Any:
    """Return a record as it was before the store gave it a sequence number."""
    return replace(decode(encode(record)), seq=0)


def _raises(call: Callable[[], Any], error: type[Exception] = ValueError) -> bool:
    """Return True if a call raises such an error."""
    try:
        call()
    except error:
        return True
    return False


def _run_in_threads(calls: list[Callable[[], None]]) -> None:
    """Run calls in threads, and raise the first error of one of them."""
    errors: list[BaseException] = []

    def run(call: Callable[[], None]) -> None:
        try:
            call()
        except BaseException as error:
            errors.append(error)

    running = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if errors:
        raise errors[0]
