"""Which loop a call is for, and who may make it: two loops with keys, asked in this process."""

import asyncio

import httpx
import pytest

from onepass.log.memory import MemoryStore
from onepass.service.app import Service
from onepass.service.keys import Keys, hash_key
from onepass.service.loop import Loop
from onepass.service.settings import parse_settings

RANK = {"actions": [{"id": "a", "features": []}, {"id": "b", "features": [{"n": 1}]}], "eventId": "e"}


@pytest.fixture
def loops(tmp_path):
    model = {"recipe": "InteractionBandit", "arguments": {part: {"kind": "Records", "size": 16, "standardize": True}
                                                      for part in ("context", "item")}}  # fmt: skip
    found = {
        name: Loop(parse_settings({"name": name, "model": model}), MemoryStore(), tmp_path / name)
        for name in ("news", "shop")
    }
    yield found
    for loop in found.values():
        loop.stop()


def asking(loops, keys):
    held = {
        name: Keys([{"sha256": hash_key(key), "roles": roles} for key, roles in keys.get(name, {}).items()])
        for name in loops
    }
    app = Service(loops, held)

    def ask(method, path, **options):
        async def asked():
            transport = httpx.ASGITransport(app=app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                return await client.request(method, path, **options)

        return asyncio.run(asked())

    return ask


def rank(client, key, prefix="", bearer=False):
    headers = (
        {} if key is None else {"authorization": f"Bearer {key}"} if bearer else {"ocp-apim-subscription-key": key}
    )
    answer = client("POST", f"{prefix}/personalizer/v1.0/rank", json=RANK, headers=headers)
    return answer.status_code if answer.status_code == 201 else (answer.status_code, answer.json()["error"]["code"])


def decided(loops):
    return [name for name, loop in loops.items() if [*loop.store.read(kinds=["decision"])]]


def test_a_key_says_which_loop_and_what_may_be_done(loops):
    keys = {"news": {"one": ["decide"], "other": ["reward"]}, "shop": {"two": ["decide", "admin"]}}
    client = asking(loops, keys)
    assert rank(client, None) == rank(client, "three") == rank(client, "one", "/shop") == (401, "401")
    assert rank(client, "one", "/nobody") == (401, "401")
    assert rank(client, "other") == (403, "InvalidApiAccess")
    assert decided(loops) == []
    assert rank(client, "two") == 201
    assert decided(loops) == ["shop"]
    assert rank(client, "one", bearer=True) == rank(client, "two", "/shop") == 201
    assert decided(loops) == ["news", "shop"]
    root, admin = "/personalizer/v1.0/configurations/service", {"ocp-apim-subscription-key": "two"}
    assert client("GET", root, headers=admin).status_code == 200
    assert client("GET", root, headers={"ocp-apim-subscription-key": "one"}).status_code == 403


def test_without_keys_the_name_says_which_loop_and_only_this_machine_is_served(loops):
    client = asking(loops, {})
    assert rank(client, None) == (404, "ResourceNotFound")
    assert rank(client, "anything", "/nobody") == (404, "ResourceNotFound")
    assert rank(client, "news") == rank(client, "anything", "/shop") == 201
    assert decided(loops) == ["news", "shop"]
    answer = client("POST", "/shop/personalizer/v1.0/rank", json=RANK, headers={"host": "evil.example"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (421, "WrongHost")
