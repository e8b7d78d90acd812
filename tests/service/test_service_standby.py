"""One writer of a loop: a second service says so and ends, or waits and takes over."""

import os
import re
import select
import subprocess
import sys
import time

import psycopg
import pytest

from counts import LONG
from onepass.log.postgres import PostgresStore
from onepass.log.records import Outcome
from onepass.log.store import ClaimError, StoreError
from patience import PATIENCE, until
from postgres_server import unsynced
from service_process import STARTING, RunningService, write_settings

ASKED = {"context": {"hour": 0.5}, "arms": ["a", "b"]}


@pytest.fixture(scope="module")
def server():
    with unsynced() as server:
        yield server


def command(data, path, *options):
    return [sys.executable, "-m", "onepass", "serve", "--data", str(data), "--port", "0", *options, str(path)]


def read_until(process, wanted):
    """What a process says up to what is wanted."""
    told, end = "", time.monotonic() + STARTING
    while wanted not in told:
        ready, _, _ = select.select([process.stderr], [], [], max(end - time.monotonic(), 0.0))
        part = os.read(process.stderr.fileno(), 4096).decode() if ready else ""
        assert part, told
        told += part
    return told


@pytest.mark.parametrize("where", ["folder", "database"])
def test_a_second_service_says_so_and_one_on_standby_takes_over(where, server, tmp_path):
    path = write_settings(tmp_path, "")
    log = (
        ()
        if where == "folder"
        else ("--log", f"postgresql://postgres@/postgres?host={server.folder}&connect_timeout=5")
    )
    data = [tmp_path / "data"] * 2 if where == "folder" else [tmp_path / "one", tmp_path / "two"]
    first = RunningService(data[0], path, options=log)
    answer = first.client.post("/v1/news/decide", json={**ASKED, "id": "kept"}).json()

    second = subprocess.run(command(data[1], path, *log), capture_output=True, text=True, timeout=STARTING)
    assert second.returncode == 2
    assert re.search("another process (serves|writes)", second.stderr)
    assert "--standby" in second.stderr

    waiting = subprocess.Popen(command(data[1], path, *log, "--standby"), stderr=subprocess.PIPE)
    read_until(waiting, "waiting for its end")
    assert first.client.get("/readyz").status_code == 200
    first.process.kill()
    first.process.wait()
    begin = time.monotonic()
    address = re.search(r"listening at (\S+)", read_until(waiting, "listening at "))[1]
    assert not LONG or time.monotonic() - begin < 10.0
    first.client.base_url = address
    assert first.client.post("/v1/news/decide", json={**ASKED, "id": "kept"}).json() == answer
    first.client.close()
    waiting.terminate()
    assert waiting.wait(PATIENCE) == 0
    waiting.stderr.close()
    first.process.stderr.close()


def test_a_claim_is_of_one_loop_and_ends_with_its_store(server):
    with PostgresStore(server.conninfo, schema="claims") as one, PostgresStore(server.conninfo, schema="claims") as two:
        one.claim("a")
        one.claim("a")
        two.claim("b")
        with pytest.raises(ClaimError, match="another process writes loop a"):
            two.claim("a")
    until_unclaimed(server)
    with PostgresStore(server.conninfo, schema="claims") as three:
        three.claim("a")


def test_who_lost_a_claim_with_its_connection_writes_nothing_more(server):
    conninfo = server.conninfo
    with PostgresStore(conninfo, schema="lost") as one, PostgresStore(conninfo, schema="lost") as two:
        one.claim("a")
        with psycopg.connect(conninfo, autocommit=True) as admin:
            admin.execute(
                "select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and pid <> pg_backend_pid()"
            )
        until_unclaimed(server)
        two.claim("a")
        with pytest.raises(StoreError, match="another process writes loop a"):
            one.append([outcome()])
        two.append([outcome()])
        two.close()
        until_unclaimed(server)
        one.append([outcome()])  # it has the claim again
        assert one.last == 2


def until_unclaimed(server):
    """Wait until no connection has a claim: the database ends connections some time after it is asked to."""
    with psycopg.connect(server.conninfo, autocommit=True) as admin:
        until(lambda: admin.execute("select count(*) from pg_locks where locktype = 'advisory'").fetchone() == (0,))


def outcome():
    return Outcome(loop="a", time=0, id="x", value=1.0)
