"""What every store of a log must satisfy: one order without gaps, whole batches, every bit back, deletion in place."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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

HARD = (0.1, 1 / 3, 5e-324, -0.0, 1.7976931348623157e308, 2.0**53 + 2, -1e-17)  # numbers that printing may lose
THREADS, BATCHES, SIZE = 4, 6, 3  # of those who write at once


def check_store(make: Callable[[], Store], reopened: Callable[[Store], Store] | None = None, steps: int = 80) -> str:
    """AssertionError unless a store keeps the contract.

    make: gives a new, empty store; reopened: closes a store and opens what it has kept (default None: it keeps
    nothing); steps: how many random calls it is compared with a list in, at least 1 (default 80).
    Returns a sentence that says what was checked.
    """
    claims = (places_and_bits, once, batches, found, forgetting, retention, beginning, threads, tails)
    for claim in claims:
        with closed(make()) as store:
            claim(store)
            assert list(store.check()) == []
            if reopened is not None:
                before = list(map(encode, store.read())), store.first, store.last
                store = reopened(store)
                assert before == (list(map(encode, store.read())), store.first, store.last)
                assert store.append([outcome("after")]) == [before[2] + 1]
                store.close()
    with closed(make()) as store:
        last = random_calls(store, reopened, np.random.default_rng(0), steps)
        last.close()
        refuses(last)
    reading = [] if reopened is None else ["what was kept is the same after it was opened again"]
    names = ", ".join(claim.__name__.replace("_", " ") for claim in claims)
    return summary(
        last, names, f"{steps} random calls agree with a list", *reading, "calls of a closed one are refused"
    )


@contextmanager
def closed(store: Store) -> Iterator[Store]:
    try:
        yield store
    finally:
        store.close()


def outcome(id: str, value: float = 1.0, **fields: Any) -> Outcome:
    return Outcome(loop="a", time=7, id=id, value=value, **fields)


def decision(id: str, **fields: Any) -> Decision:
    """One with numbers that are hard to write."""
    wide = {"context": [HARD, HARD[::-1]], "widths": list(HARD), "extra": {"user": {"name": 'ü"\n', "numbers": HARD}}}
    given = {"loop": "a", "time": 3, "places": [1], "propensities": [1 / 3], "probabilities": [2 / 3, 1 / 3]}
    return Decision(id=id, **{**given, **wide, **fields})


def every_kind() -> list[Record]:
    """A record of each kind, of two loops."""
    return [
        Settings(loop="a", time=1, settings={"exploration": {"uniform_share": 0.1}}, version="1"),
        decision("1", subject="someone", seed=2**70, offered=["x", {"tuple": ["y", 1]}]),
        decision("1", loop="b"),
        Activation(loop="a", time=4, id="1"),
        outcome("1", -0.0, request="r1", slot=0, extra={"v": [1, None, True]}),
        Join(loop="a", time=9, id="1", rewards=[1 / 3, None], how="sum", batch=2**60),
        Checkpoint(loop="a", time=10, through=6, digest="0" * 64, data=bytes(range(256)), model="v1"),
    ]


def places_and_bits(store: Store) -> None:
    """Records come back in every bit, at places 1, 2, 3, ..., in the order in which they were appended."""
    assert (store.first, store.last, len(store), list(store.read())) == (1, 0, 0, [])
    records = every_kind()
    assert store.append(records[:3]) + store.append([]) + store.append(records[3:]) == list(range(1, 8))
    got = list(store.read())
    assert [one.seq for one in got] == list(range(1, 8))
    assert [encode(unplaced(one)) for one in got] == [encode(one) for one in records]
    assert [one.seq for one in store.read(since=2, until=5)] == [3, 4, 5]
    assert [one.seq for one in store.read(kinds=["decision", "join"])] == [2, 3, 6]
    assert [one.seq for one in store.read(loop="b")] == [3]
    assert [one.seq for one in store.read(since=7)] == [] == [one.seq for one in store.read(kinds=[])]
    assert raised(lambda: store.read(kinds=["nothing"]))
    assert (store.first, store.last, len(store)) == (1, 7, 7)


def once(store: Store) -> None:
    """What is sent again is stored once, within a batch and between batches; another loop may have the same id."""
    first = store.append([decision("1"), decision("2"), decision("1"), outcome("1", request="r"), outcome("1")])
    assert first == [1, 2, 1, 3, 4]
    again = [outcome("1", 5.0, request="r"), outcome("1"), decision("2"), decision("2", loop="b"), outcome("2")]
    assert store.append(again) == [3, 5, 2, 6, 7]
    assert store.append([Activation(loop="a", time=1, id="1")] * 2) == [8, 8]
    joins = [Join(loop="a", time=1, id="1", rewards=[1.0], again=again) for again in (False, False, True, True)]
    assert store.append(joins) == [9, 9, 10, 11]
    assert [one.value for one in store.read(kinds=["outcome"])] == [1.0] * 4


def batches(store: Store) -> None:
    """A batch with something wrong in it leaves nothing behind."""
    for name in ("", "nul\0", "x" * 257):
        assert raised(partial(store.append, [outcome("1"), outcome(name)]))
        assert raised(partial(store.append, [outcome("1"), outcome("1", subject=name)]))
    assert raised(partial(store.append, [outcome("1"), replace(outcome("1"), time=2**63)]))
    infinite: Any = {"deep": [{"x": [float("inf")]}]}
    text: Any = "a record"
    for wrong in (outcome("1", float("nan")), decision("1", extra=infinite), outcome("1", text), text):
        assert raised(partial(store.append, [outcome("1"), wrong]))
    assert store.last == 0
    long = [chr(0x1F600 + i % 50) for i in range(256)]
    widest = replace(outcome("".join(long), request="".join(long[::-1])), loop="".join(long), subject="".join(long))
    assert store.append([widest, widest]) == [1, 1]
    assert len(store.find(widest.loop, widest.id)) == 1


def found(store: Store) -> None:
    """All records about a decision are found, no others."""
    store.append(every_kind())
    assert [one.seq for one in store.find("a", "1")] == [2, 4, 5, 6]
    assert [one.seq for one in store.find("b", "1")] == [3]
    assert store.find("c", "1") == [] == store.find("a", "none")


def forgetting(store: Store) -> None:
    """A subject's records go, with all about the same decisions; places and other records stay as they are."""
    store.append([decision("1", subject="someone"), decision("2", subject="else"), decision("1", loop="b")])
    store.append([outcome("1"), outcome("2"), outcome("3", subject="someone")])
    store.append([Join(loop="a", time=1, id="1", rewards=[1.0])])
    before = {one.seq: encode(one) for one in store.read()}
    assert store.forget("someone") == 4
    assert store.forget("someone") == 0 == store.forget("nobody")
    assert raised(lambda: store.forget(""))
    after = list(store.read())
    assert [one.seq for one in after] == list(range(1, 8))
    assert [one.was for one in after if kind_of(one) == "forgotten"] == ["decision", "outcome", "outcome", "join"]
    assert all(encode(one) == before[one.seq] for one in after if kind_of(one) != "forgotten")
    assert store.find("a", "1") == [] != store.find("b", "1")
    assert (store.decisions_of("someone"), store.decisions_of("else")) == (set(), {("a", "2")})
    assert not any(b"someone" in encode(one) or one.event == "3" for one in after)
    assert store.append([decision("1"), outcome("1")]) == [8, 9]
    assert store.erase("nobody", {("a", "1"), ("a", "none")}) == 2
    assert store.find("a", "1") == [] != store.find("a", "2")


def retention(store: Store) -> None:
    """What is dropped is gone for ever; no place is given again, even when nothing is left."""
    store.append([decision("1"), outcome("1"), outcome("1")])
    store.append([decision("2"), outcome("2")])
    assert store.drop_before(1) == 0
    assert store.drop_before(3) == 2
    assert store.drop_before(2) == 0
    assert (store.first, store.last, len(store)) == (3, 5, 3)
    assert [one.seq for one in store.read()] == [3, 4, 5]
    assert [one.seq for one in store.find("a", "1")] == [3]
    assert raised(lambda: store.drop_before(7))
    assert raised(lambda: store.drop_before(0))
    assert list(store.check()) == []
    assert store.drop_before(6) == 3
    assert (store.first, store.last, len(store), list(store.read())) == (6, 5, 0, [])
    assert store.append([decision("1")]) == [6]


def beginning(store: Store) -> None:
    """A new store begins at a place, one that has had records does not."""
    store.begin(17)
    assert (store.first, store.last, len(store)) == (17, 16, 0)
    assert store.append([outcome("1"), outcome("2")]) == [17, 18]
    assert [one.seq for one in store.read()] == [17, 18]
    assert raised(lambda: store.begin(30))


def threads(store: Store) -> None:
    """Batches of threads that write at once stand whole, and each thread's in its order."""
    given: dict[int, list[list[int]]] = {who: [] for who in range(THREADS)}

    def write(who: int) -> None:
        for batch in range(BATCHES):
            records = [outcome(f"{who}", batch * SIZE + part) for part in range(SIZE)]
            given[who].append(store.append(records))

    together([partial(write, who) for who in range(THREADS)])
    every = sorted(seq for batches in given.values() for batch in batches for seq in batch)
    assert every == list(range(1, THREADS * BATCHES * SIZE + 1))
    for who, batches in given.items():
        assert all(batch == list(range(batch[0], batch[0] + SIZE)) for batch in batches)
        assert all(one[-1] < other[0] for one, other in pairwise(batches))
        assert [one.value for one in store.find("a", f"{who}")] == list(range(BATCHES * SIZE))


def tails(store: Store) -> None:
    """Who reads behind those who write sees every place, in order, whole batches, and none twice."""
    done, seen = threading.Event(), list[int]()

    def write() -> None:
        for _ in range(BATCHES):
            store.append([outcome("1")] * SIZE)

    def read() -> None:
        while True:
            over = done.is_set()
            since = seen[-1] if seen else 0
            seen.extend(one.seq for one in store.read(since=since))
            if over:
                return

    reader = threading.Thread(target=read)
    reader.start()
    together([write] * THREADS)
    done.set()
    reader.join()
    assert seen == list(range(1, THREADS * BATCHES * SIZE + 1))


def random_calls(
    store: Store, reopened: Callable[[Store], Store] | None, rng: np.random.Generator, steps: int
) -> Store:
    """The store and a list agree on random calls; the store, as it was last opened."""
    truth: dict[int, Record | None] = {}
    last, first = 0, 1
    for step in range(steps):
        choice = rng.choice(["append", "append", "append", "forget", "drop", "reopen"])
        if choice == "append":
            records: list[Record] = []
            for i in range(int(rng.integers(1, 5))):
                who = f"s{rng.integers(6)}"
                records.append(decision(f"{step}.{i}", subject=who, passed=float(rng.uniform(0.1, 1.0))))
            assert store.append(records) == list(range(last + 1, last + 1 + len(records)))
            truth.update(enumerate(records, last + 1))
            last += len(records)
        elif choice == "forget":
            who = f"s{rng.integers(6)}"
            gone = [seq for seq, one in truth.items() if one is not None and one.subject == who]
            assert store.forget(who) == len(gone)
            truth.update(dict.fromkeys(gone))
        elif choice == "drop" and last >= first:
            to = int(rng.integers(first, min(first + 4, last + 1) + 1))
            assert store.drop_before(to) == to - first
            truth, first = {seq: one for seq, one in truth.items() if seq >= to}, to
        elif reopened is not None:
            store = reopened(store)
        assert (store.first, store.last) == (first, last)
    read = {one.seq: None if kind_of(one) == "forgotten" else encode(unplaced(one)) for one in store.read()}
    assert read == {seq: None if one is None else encode(unplaced(one)) for seq, one in sorted(truth.items())}
    assert list(store.check()) == []
    return store


def refuses(store: Store) -> None:
    """A store that is closed says so."""
    for call in (lambda: store.append([outcome("1")]), lambda: list(store.read()), lambda: store.last):
        assert raised(call, StoreError)


def unplaced(record: Any) -> Any:
    """A record as it was appended, read once."""
    return replace(decode(encode(record)), seq=0)


def raised(call: Callable[[], Any], kind: type[Exception] = ValueError) -> bool:
    """Whether a call raises an error of this kind."""
    try:
        call()
    except kind:
        return True
    return False


def together(calls: list[Callable[[], None]]) -> None:
    """Run calls in threads; the first error of one is raised."""
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
