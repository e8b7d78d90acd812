"""The service on a real PostgreSQL: a database that goes away and comes back, and kills under load."""

import asyncio

import httpx
import pytest

import onepass as op
from counts import LONG, repetitions
from onepass.log.postgres import PostgresStore
from onepass.log.replay import Fold
from onepass.service.app import Service
from onepass.service.keys import Keys
from onepass.service.loop import Loop
from onepass.service.settings import make_bandit, read_file
from patience import wait_until_learned
from postgres_server import unsynced
from service_killing import killed
from service_process import write_settings

KILLS = repetitions(2, 300)
GONE = 30.0 if LONG else 3.0  # seconds without a database
CLIENTS = 4


@pytest.fixture(scope="module")
def server():
    with unsynced() as server:
        yield server


def url(server):
    return f"postgresql://postgres@/postgres?host={server.folder}&connect_timeout=60"


def test_kills_under_load_lose_nothing_in_a_database(server, tmp_path):
    wrong, counts = killed(tmp_path, KILLS, url(server))
    assert wrong == []
    assert counts["decisions"] > KILLS
    assert counts["joins"] > 0


def test_a_database_that_is_gone_is_told_as_503_and_nothing_is_lost_or_there_twice(server, tmp_path):
    """Clients who send again what was refused, while the database is stopped and started."""
    settings, _ = read_file(write_settings(tmp_path))
    store = PostgresStore(server.conninfo, schema="gone")
    loop = Loop(settings, store, tmp_path / "models")
    service, refusals, answers, paid = Service({"news": loop}, {"news": Keys()}), [], {}, []
    state = {"up": True, "ending": False}

    async def insisting(client, place, body):
        """Sent until it is taken; the present answer."""
        while True:
            answer = await client.post(f"/v1/news/{place}", json=body)
            if answer.status_code == 200:
                return answer.json()
            refusals.append((answer.status_code, answer.json()["error"]["code"], state["up"]))
            await asyncio.sleep(0.05)

    async def asking(client, who):
        number = 0
        while not state["ending"] or number < 2:
            id, number = f"{who}.{number}", number + 1
            body = {"context": [0.1, 0.2, 0.3], "arms": ["a", "b", "c"], "id": id}
            answers[id] = body, await insisting(client, "decide", body)
            paid.append((await insisting(client, "outcome", {"id": id, "value": 1.0, "key": "k"}))["new"])
            await asyncio.sleep(0.02)

    async def breaking(client):
        await asyncio.sleep(0.2)
        state["up"] = False
        await asyncio.to_thread(server.stop)
        while len(refusals) < CLIENTS or loop.problem() is None:
            await asyncio.sleep(0.02)
        assert (await client.get("/healthz")).status_code == 200
        assert (await client.get("/readyz")).status_code == 503
        await asyncio.sleep(GONE)
        await asyncio.to_thread(server.start, "fsync=off")
        while loop.problem() is not None:
            await asyncio.sleep(0.02)
        state["ending"] = True

    async def everything():
        transport = httpx.ASGITransport(service)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=None) as client:
            await asyncio.gather(breaking(client), *(asking(client, who) for who in range(CLIENTS)))
            again = [(await client.post("/v1/news/decide", json=body)).json() for body, _ in answers.values()]
        assert again == [answer for _, answer in answers.values()]

    asyncio.run(everything())
    wait_until_learned(loop)
    loop.stop()
    assert {(status, code) for status, code, _ in refusals} == {(503, "LogUnavailable")}
    kinds = {kind: [one.id for one in store.read(kinds=[kind])] for kind in ("decision", "outcome", "join")}
    assert sorted(kinds["decision"]) == sorted(kinds["outcome"]) == sorted(kinds["join"]) == sorted(answers)
    assert set(paid) <= {0, 1}  # 0: it had been stored, and nobody was told
    twin = Fold(store, "news", make_bandit(settings))
    twin.advance()
    assert op.to_bytes(loop.learner.fold.bandit) == op.to_bytes(twin.bandit)
    store.close()
