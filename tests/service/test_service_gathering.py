"""Requests that come together are committed together, a lone one at once; a commit asks few statements."""

import asyncio
import threading
from types import SimpleNamespace

import pytest
from starlette.requests import Request

from onepass.log import Outcome
from onepass.log import tables as tb
from onepass.log.memory import MemoryStore
from onepass.service import writer as wr
from onepass.service.join import Joiner
from onepass.service.messages import ApiError
from onepass.service.request_body import RawRequest, read_body
from onepass.service.settings import parse_settings
from patience import PATIENCE


class Gated(MemoryStore):
    """A store whose commits wait until the gate is open."""

    def __init__(self):
        super().__init__()
        self.gate, self.inside, self.sizes = threading.Event(), threading.Event(), []

    def put(self, rows):
        self.inside.set()
        assert self.gate.wait(PATIENCE)
        self.sizes.append(len(rows))
        return super().put(rows)


@pytest.fixture
def begun():
    """A writer that ends with its test, and its store."""
    store = Gated()
    times = iter(range(1, 10**9))
    settings = parse_settings({"name": "news", "features": {"context": 1}, "arms": ["a"]})
    writer = wr.Writer(store, "news", lambda: next(times), Joiner(settings), lambda _: None, 0)
    writer.start()
    yield writer, store
    store.gate.set()
    writer.stop()


def paid(writer, number):
    return writer.submit([Outcome(loop="news", time=0, id=f"{number}", value=1.0)])


def test_after_a_commit_of_several_the_next_one_waits_for_others(begun, monkeypatch):
    sleeps, over = [], threading.Event()

    def sleep(seconds):
        """Sleep until ten others have come, however long that takes on this machine."""
        sleeps.append(seconds)
        assert over.wait(PATIENCE)

    monkeypatch.setattr(wr, "time", SimpleNamespace(sleep=sleep, monotonic=lambda: 0.0))
    writer, store = begun
    waiting = [paid(writer, 0)]
    assert store.inside.wait(PATIENCE)
    waiting += [paid(writer, 1), paid(writer, 2)]  # they meet while the first one is stored
    store.gate.set()
    assert [each for one in waiting for each in one.result(PATIENCE)] == [1, 2, 3]
    more = [paid(writer, number) for number in range(3, 13)]
    over.set()
    assert [each for one in more for each in one.result(PATIENCE)] == [*range(4, 14)]
    assert store.sizes == [1, 2, 10]
    assert sleeps[0] == wr.GATHER  # time stands still meanwhile


def test_who_comes_alone_waits_for_nobody(begun, monkeypatch):
    monkeypatch.setattr(wr, "GATHER", 100 * PATIENCE)
    writer, store = begun
    store.gate.set()
    for number in range(20):
        assert paid(writer, number).result(PATIENCE) == [number + 1]
    assert store.sizes == [1] * 20


def test_a_commit_has_few_statements_of_few_kinds():
    kinds = set()
    for count in range(400):
        found = list(range(count))
        parts = [*tb.insert_parts(found)]
        assert [one for part in parts for one in part] == found
        assert len(parts) <= -(-count // tb.WIDEST) + 1
        kinds.update(map(len, parts))
    assert max(kinds) == tb.WIDEST
    assert len(kinds) == 32


def of(headers, *messages):
    """A request as the framework has it, and as the frequent way reads it."""
    scope = {"type": "http", "method": "POST", "path": "/", "headers": headers, "client": ("127.0.0.1", 5)}

    def receiving():
        said = iter(messages)

        async def receive():
            return next(said)

        return receive

    return Request(scope, receiving()), RawRequest(scope, receiving())


def test_a_frequent_request_is_read_as_the_framework_reads_it():
    headers = [(b"host", b"a"), (b"content-type", b"application/json"), (b"host", b"b"), (b"x", "é".encode("latin-1"))]
    body = [{"type": "http.request", "body": part, "more_body": bool(part)} for part in (b"[1", b", 2]", b"")]
    theirs, ours = of(headers, *body)
    for name in ("host", "content-type", "x", "authorization"):
        assert ours.headers.get(name, "none") == theirs.headers.get(name, "none")
    assert ours.client == theirs.client
    assert asyncio.run(read_body(ours, 100)) == asyncio.run(read_body(theirs, 100)) == b"[1, 2]"
    for most, messages in ((3, body), (100, [body[0], {"type": "http.disconnect"}])):
        refusals = []
        for request in of(headers, *messages):
            with pytest.raises(ApiError) as refused:
                asyncio.run(read_body(request, most))
            refusals.append(refused.value.code)
        assert refusals == [["TooLarge", "TooLarge"], ["Disconnected", "Disconnected"]][most == 100]
