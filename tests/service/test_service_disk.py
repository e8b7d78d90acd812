"""A disk that is full, in the middle of the service: the operating system refuses, and nothing is lost."""

import json
import resource
import time

import pytest

from onepass.log.sqlite import SqliteStore
from patience import until
from service_process import RunningService, write_settings

ASKED = {"context": [0.5, 1.0, 0.0], "arms": ["a", "b", "c"]}
AGAIN = 8  # of every kind, before, while and after


@pytest.fixture
def served(tmp_path):
    service = RunningService(tmp_path / "data", write_settings(tmp_path))
    yield service
    if service.process.poll() is None:
        service.stop()


def room(service, bytes):
    """How many bytes a file of the service may have; those that have more cannot grow."""
    resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (bytes, resource.RLIM_INFINITY))


def test_a_full_disk_is_told_as_503_and_when_there_is_room_again_nothing_is_lost_or_there_twice(served, tmp_path):
    client = served.client
    ask = lambda name: client.post("/v1/news/decide", json={**ASKED, "id": name})  # noqa: E731
    pay = lambda name: client.post("/v1/news/outcome", json={"id": name, "value": 1.0, "key": "k"})  # noqa: E731
    before = {f"before {n}": ask(f"before {n}") for n in range(AGAIN)}
    room(served, 0)
    refused = [call(name) for n in range(AGAIN) for call, name in ((ask, f"while {n}"), (pay, f"before {n}"))]
    for answer in refused:
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "LogUnavailable")
        assert "nothing of it was stored" in answer.json()["error"]["message"]
        assert answer.headers["retry-after"] == "1"
    assert client.get("/healthz").status_code == 200
    unready = client.get("/readyz")
    assert unready.status_code == 503
    assert "the log cannot be written" in unready.json()["error"]["message"]
    assert client.get("/v1/news/log").status_code == 200  # what is there can be read
    time.sleep(1.0)  # while it is asked in vain whether it can be written
    assert client.get("/readyz").status_code == 503
    room(served, resource.RLIM_INFINITY)
    until(lambda: client.get("/readyz").status_code == 200)  # though nobody sends anything
    after = {f"while {n}": ask(f"while {n}") for n in range(AGAIN)}
    assert all(answer.status_code == 200 for answer in [*before.values(), *after.values()])
    assert [pay(name).json()["new"] for name in (*before, *after)] == [1] * (2 * AGAIN)
    assert {name: ask(name).json() for name in before} == {name: answer.json() for name, answer in before.items()}
    served.ready()
    assert client.get("/readyz").status_code == 200
    log = [json.loads(line) for line in client.get("/v1/news/log", params={"limit": 100_000}).text.splitlines()]
    for kind in ("decision", "join"):
        assert sorted(one["id"] for one in log if one["kind"] == kind) == sorted([*before, *after])
    assert served.stop() == 0
    with SqliteStore(tmp_path / "data" / "news.sqlite") as store:
        assert [*store.check()] == []
