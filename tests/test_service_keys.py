"""Keys over HTTP: every call needs its role, of its own loop; the application is asked without a socket."""

import asyncio

import httpx
import pytest

from onepass.log.memory import MemoryStore
from onepass.service.app import Service
from onepass.service.keys import Keys, hashed
from onepass.service.loop import Loop
from onepass.service.settings import checked

DECIDE = {"context": [1.0, 0.0, 0.5], "arms": ["a", "b"]}
CALLS = {
    ("POST", "/v1/one/decide"): ("decide", DECIDE),
    ("POST", "/v1/one/outcome"): ("reward", {"id": "x", "value": 1.0}),
    ("GET", "/v1/one/log"): ("read", None),
    ("GET", "/v1/one"): ("read", None),
    ("PUT", "/v1/one"): ("admin", {}),
    ("GET", "/metrics"): ("read", None),
}
ROLES = ("decide", "reward", "read", "admin")
OPEN = ("/healthz", "/readyz", "/openapi.json")


def settings(name):
    model = {"recipe": "OFUL", "seed": 2, "arguments": {"parameters": "disjoint", "reg": 0.5,
                                      "exploration": {"kind": "Thompson", "exploration": 0.4, "draws": 5}}}  # fmt: skip
    return checked({"name": name, "features": {"context": 3}, "model": model})


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    loops = {name: Loop(settings(name), MemoryStore(), folder / name) for name in ("one", "two")}
    keys = {
        name: Keys({"sha256": hashed(f"{name} {role}"), "roles": [role]} for role in ROLES) for name in ("one", "two")
    }
    yield Service(loops, keys)
    for loop in loops.values():
        loop.stop()


def asked(service, method, path, body=None, key=None):
    async def ask():
        async with httpx.AsyncClient(transport=httpx.ASGITransport(service), base_url="http://any.example") as client:
            headers = {} if key is None else {"authorization": f"Bearer {key}"}
            return await client.request(method, path, json=body, headers=headers)

    return asyncio.run(ask())


@pytest.mark.parametrize(("method", "path"), CALLS)
def test_a_call_needs_a_key_of_its_loop_with_its_role(service, method, path):
    role, body = CALLS[method, path]
    for key in (None, "", "one", "nobody's"):
        assert asked(service, method, path, body, key).status_code == 401
    for other in ROLES:
        status = asked(service, method, path, body, f"one {other}").status_code
        if other in (role, "admin"):
            assert status in (200, 400)
        else:
            assert status == (401 if path == "/metrics" else 403)
        if path != "/metrics":
            assert asked(service, method, path, body, f"two {other}").status_code == 401


def test_nobody_without_a_key_learns_which_loops_there_are(service):
    assert asked(service, "GET", "/v1/three").status_code == 401
    assert asked(service, "GET", "/v1/three", key="one read").status_code == 404


@pytest.mark.parametrize("path", OPEN)
def test_health_needs_no_key(service, path):
    assert asked(service, "GET", path).status_code == 200
