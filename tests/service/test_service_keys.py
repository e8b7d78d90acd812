"""Keys over HTTP: every call needs its role, of its own loop; the application is asked without a socket."""

import asyncio

import httpx
import pytest

from onepass.log.memory import MemoryStore
from onepass.service.app import Service
from onepass.service.keys import Keys, hash_key
from onepass.service.loop import Loop
from onepass.service.settings import parse_settings

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
    model = {"recipe": "OFUL", "seed": 2, "arguments": {"model": "disjoint", "reg": 0.5,
                                      "exploration": {"kind": "Thompson", "exploration": 0.4, "draws": 5}}}  # fmt: skip
    return parse_settings({"name": name, "features": {"context": 3}, "model": model})


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    loops = {name: Loop(settings(name), MemoryStore(), folder / name) for name in ("one", "two")}
    keys = {
        name: Keys({"sha256": hash_key(f"{name} {role}"), "roles": [role]} for role in ROLES) for name in ("one", "two")
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
    assert asked(service, "GET", "/v1/three", key="one read").status_code == 401


@pytest.mark.parametrize("path", OPEN)
def test_health_needs_no_key(service, path):
    assert asked(service, "GET", path).status_code == 200


def test_an_unknown_loop_and_a_key_of_another_loop_get_the_same_answer(service):
    answers = [asked(service, "POST", f"/v1/{name}/decide", DECIDE, "two decide") for name in ("one", "none")]
    assert [(one.status_code, one.content) for one in answers] == [(401, answers[0].content)] * 2


def test_metrics_are_those_of_the_loops_of_a_key(service):
    for name in ("one", "two"):
        assert asked(service, "POST", f"/v1/{name}/decide", DECIDE, f"{name} decide").status_code == 200
    asked(service, "GET", "/v1/none", key="one read")
    for name, other in (("one", "two"), ("two", "one")):
        text = asked(service, "GET", "/metrics", key=f"{name} read").text
        assert f'loop="{name}"' in text
        assert f'loop="{other}"' not in text
        assert 'loop=""' not in text


def test_readiness_without_a_key_says_no_reason(service):
    loop = service.loops["one"]
    loop.learner.problem = "the disk of a secret place is full"
    try:
        answers = {key: asked(service, "GET", "/readyz", key=key) for key in (None, "two read", "one read")}
    finally:
        loop.learner.problem = None
    assert [one.status_code for one in answers.values()] == [503] * 3
    assert ["secret" in one.text for one in answers.values()] == [False, False, True]
    assert asked(service, "GET", "/readyz").status_code == 200
