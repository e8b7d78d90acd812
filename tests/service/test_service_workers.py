"""Worker processes decide, one process writes and learns: nothing of what is promised changes."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import httpx
import pytest

from onepass.log.model_lineage import read_lineage
from onepass.log.replay import Fold
from onepass.log.sqlite import SqliteStore
from onepass.log.verification import verify
from onepass.service.workers import SETTLE
from patience import PATIENCE, until
from service_process import RunningService, write_settings

ASKED = {"context": {"hour": 0.5, "new": 1.0}, "arms": ["a", "b", "c"]}
TWO = ("--workers", "2")


def workers_of(process):
    """The processes that a service has started."""
    found = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for path in found for child in path.read_text().split()]


def is_alive(process):
    """Whether a process runs: one that has ended and is not waited for does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def verify_all(path):
    """Decide again what every model of a log decided; how many decisions there were."""
    with SqliteStore(path) as store:
        found = [verify(Fold.resume(store, "news", first=True, line=line)) for line in read_lineage(store, "news").each]
        assert [*store.check()] == []
        count = sum(1 for _ in store.read(kinds=["decision"]))
    assert all(one.ok and one.undrawn == 0 and one.equal == one.decisions + one.canaries for one in found)
    assert sum(one.decisions for one in found) == count
    return count


def ask_again(client, path, body):
    """What a client does whose connection or worker is lost: the same request again."""
    while True:
        try:
            answer = client.post(path, json=body)
        except httpx.TransportError:
            continue
        if answer.status_code != 503:
            return answer


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A service with workers, whose log is verified in the end."""
    folder = tmp_path_factory.mktemp("workers")
    service = RunningService(folder / "data", write_settings(folder), options=TWO)
    yield service
    assert service.stop() == 0
    verify_all(folder / "data" / "news.sqlite")


def test_decisions_are_answered_and_verified_while_workers_are_killed(tmp_path):
    service = RunningService(tmp_path / "data", write_settings(tmp_path), options=TWO)
    answers, failures = {}, []

    def ask(name):
        try:
            with httpx.Client(base_url=service.address, timeout=PATIENCE) as client:
                for number in range(60):
                    id = f"{name}.{number}"
                    answers[id] = ask_again(client, "/v1/news/decide", {**ASKED, "id": id}).json()
                    ask_again(client, "/v1/news/outcome", {"id": id, "value": number % 2, "key": "k"})
        except Exception as error:
            failures.append(error)

    asking = [threading.Thread(target=ask, args=(name,)) for name in range(4)]
    for thread in asking:
        thread.start()
    for count in (40, 120):
        until(lambda least=count: len(answers) > least)
        before = workers_of(service.process.pid)
        os.kill(before[0], signal.SIGKILL)
        until(lambda killed=before[0]: len(now := workers_of(service.process.pid)) == 2 and killed not in now)
    for thread in asking:
        thread.join()
    assert not failures
    assert len(answers) == 240
    for id in ("0.0", "3.59"):  # by whichever worker, the first answer stands
        assert ask_again(service.client, "/v1/news/decide", {**ASKED, "id": id}).json() == answers[id]
    assert service.stop() == 0
    assert verify_all(tmp_path / "data" / "news.sqlite") == 240


def decided(service, client):
    """The record of a decision that a client asked for."""
    return service.log(client.post("/v1/news/decide", json=ASKED).json()["id"])[0]


def change(service, settings):
    """Change the settings, and return the seconds until the answer: after SETTLE it comes before all workers follow."""
    begin = time.monotonic()
    assert service.client.put("/v1/news", json=settings).status_code == 200
    return time.monotonic() - begin


def test_settings_and_models_hold_in_all_workers_when_a_change_is_answered(shared):
    service = shared
    clients = [httpx.Client(base_url=service.address, timeout=PATIENCE) for _ in range(8)]  # connections of both
    for version in range(2, 6):
        settings = service.client.get("/v1/news").json()["settings"]
        settings["reward"]["wait"] = 0.2 + version / 100
        taken = change(service, settings)
        answers = [client.post("/v1/news/decide", json=ASKED).json() for client in clients]
        assert {one["settings"] for one in answers} == {f"{version}"} or taken >= SETTLE
    settings["mode"], settings["share"], settings["model"]["seed"] = "canary", 0.5, 9
    assert service.client.put("/v1/news", json=settings).status_code == 200
    until(lambda: service.client.get("/v1/news").json()["candidate"]["state"] == "waiting")
    until(lambda: all("canary" in decided(service, client) for client in clients))  # they follow by themselves
    taken = change(service, settings)  # connections may all have been of one worker; now the other one follows, too
    records = [decided(service, clients[number % 8]) for number in range(40)]
    assert all("canary" in one for one in records) or taken >= SETTLE
    assert service.client.post("/v1/news/promote", json={}).status_code == 200
    for client in clients:
        client.post("/v1/news/decide", json=ASKED)
    for client in clients:
        client.close()


def test_a_rate_is_of_all_workers_together(tmp_path):
    path = write_settings(tmp_path)
    path.write_text(path.read_text().replace("[limits]", "[limits]\nrate = 0.001"))
    service = RunningService(tmp_path / "data", path, options=TWO)
    statuses = Counter[int]()
    for _ in range(6):  # a connection each: of either worker
        with httpx.Client(base_url=service.address, timeout=PATIENCE) as client:
            statuses[client.post("/v1/news/decide", json=ASKED).status_code] += 1
    assert statuses == {200: 1, 429: 5}
    assert service.stop() == 0


def test_workers_end_with_their_service_and_the_next_one_goes_on(tmp_path):
    path = write_settings(tmp_path)
    service = RunningService(tmp_path / "data", path, options=TWO)
    answer = service.client.post("/v1/news/decide", json={**ASKED, "id": "kept"}).json()
    workers = workers_of(service.process.pid)
    service.process.kill()
    service.process.wait()
    service.process.stderr.close()
    service.client.close()
    until(lambda: not any(map(is_alive, workers)))
    service = RunningService(tmp_path / "data", path, options=TWO)
    assert service.client.post("/v1/news/decide", json={**ASKED, "id": "kept"}).json() == answer
    other = service.client.post("/v1/news/decide", json={**ASKED, "arms": ["a", "b"], "id": "kept"})
    assert (other.status_code, other.json()["error"]["code"]) == (409, "EventConflict")
    assert service.stop() == 0
    assert verify_all(tmp_path / "data" / "news.sqlite") == 1


@pytest.mark.parametrize(
    ("path", "status", "begin"),
    [
        ("/v1/news/log?limit=1", 200, b'{"kind":"checkpoint"'),
        ("/metrics", 200, b"# HELP"),
        ("/v1/none/decide", 405, b'{"error"'),
        ("/readyz", 200, b'{"status":"ready"}'),
        ("/", 200, b"<!doctype html"),
        ("/v1/news/none", 404, b'{"error"'),
    ],
)
def test_other_paths_are_answered_by_the_service_behind_its_workers(shared, path, status, begin):
    answer = shared.client.get(path)
    assert (answer.status_code, answer.content[: len(begin)]) == (status, begin)


def test_a_worker_that_is_started_by_hand_ends_with_a_sentence(tmp_path):
    ended = subprocess.run([sys.executable, "-m", "onepass.service.worker"], capture_output=True, text=True)
    assert ended.returncode == 2
    assert "onepass serve --workers" in ended.stderr
