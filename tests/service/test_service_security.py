"""What a stranger can do: nothing without a key, little with one; the application is asked without a socket."""

import asyncio
import json
import re
import tomllib

import httpx
import pytest

from certificate import certificate
from onepass.cli import main
from onepass.log.memory import MemoryStore
from onepass.log.sqlite import SqliteStore
from onepass.service.app import Service
from onepass.service.keys import Keys, make_key
from onepass.service.loop import Loop
from onepass.service.server import check_certificate, serve
from onepass.service.settings import BODY, parse_settings
from service_process import write_settings

MODEL = {"recipe": "OFUL", "seed": 2, "arguments": {"model": "disjoint", "reg": 0.5,
                                  "exploration": {"kind": "Thompson", "exploration": 0.4, "draws": 5}}}  # fmt: skip
LIMITS = {"body": 2_000, "arms": 4, "slots": 2, "id": 8, "batch": 3}
LOOP = {"name": "news", "features": {"context": 3}, "arms": ["a", "b"], "model": MODEL, "limits": LIMITS}
JSON = {"content-type": "application/json"}
ASKED = {"context": [1.0, 0.0, 0.5]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("service")


@pytest.fixture(scope="module")
def key():
    """A key, and what the settings file has of it."""
    return make_key(["admin"])


@pytest.fixture(scope="module")
def loop(folder):
    with SqliteStore(folder / "news.sqlite") as store:
        found = Loop(parse_settings(LOOP), store, folder / "models")
        yield found
        found.stop()


@pytest.fixture(scope="module")
def guarded(loop, key):
    """A service with a key."""
    return Service(
        {"news": loop}, {"news": Keys([{"sha256": re.search("[0-9a-f]{64}", key[1])[0], "roles": ["admin"]}])}
    )


@pytest.fixture(scope="module")
def unguarded(loop):
    return Service({"news": loop}, {"news": Keys()})


def asked(service, method, path, **options):
    async def ask():
        way = httpx.ASGITransport(service, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=way, base_url="http://127.0.0.1") as client:
            return await client.request(method, path, **options)

    return asyncio.run(ask())


def code(answer):
    return answer.status_code, answer.json()["error"]["code"]


BEYOND = {
    "a body": ("decide", {**ASKED, "subject": "x" * 3_000}, (413, "TooLarge")),
    "arms": ("decide", {**ASKED, "arms": [*"abcde"]}, (400, "BadArgument")),
    "slots": ("decide", {**ASKED, "arms": [*"abcd"], "slots": 3}, (400, "BadArgument")),
    "numbers": ("decide", {"context": [1.0] * 4}, (400, "BadArgument")),
    "an id": ("decide", {**ASKED, "id": "x" * 9}, (400, "BadArgument")),
    "the name of an arm": ("decide", {**ASKED, "arms": ["x" * 9]}, (400, "BadArgument")),
    "a subject": ("decide", {**ASKED, "subject": "x" * 9}, (400, "BadArgument")),
    "outcomes": ("outcome", [{"id": "x", "value": 0.0}] * 4, (400, "BadArgument")),
    "a key": ("outcome", {"id": "x", "value": 0.0, "key": "x" * 9}, (400, "BadArgument")),
}


@pytest.mark.parametrize(("place", "body", "wanted"), BEYOND.values(), ids=BEYOND)
def test_what_is_larger_than_the_limits_is_refused_and_not_stored(unguarded, loop, place, body, wanted):
    before = loop.store.last
    assert code(asked(unguarded, "POST", f"/v1/news/{place}", json=body)) == wanted
    assert loop.store.last == before


def test_a_body_without_a_length_is_refused_as_soon_as_it_is_too_large(unguarded):
    parts = []

    async def endless():
        while len(parts) < 1_000:
            parts.append(1)
            yield b" " * 1_000

    found = asked(unguarded, "POST", "/v1/news/decide", content=endless(), headers=JSON)
    assert code(found) == (413, "TooLarge")
    assert len(parts) < 10


def test_a_limit_that_is_too_small_for_settings_can_be_put_right(tmp_path):
    loop = Loop(parse_settings(LOOP), MemoryStore(), tmp_path)
    service = Service({"news": loop}, {"news": Keys()})
    try:
        for limits in ({"body": 1}, LIMITS):
            assert asked(service, "PUT", "/v1/news", json={**LOOP, "limits": limits}).status_code == 200
        found = asked(
            service, "PUT", "/v1/news", content=b" " * (BODY + 1), headers={"content-type": "application/json"}
        )
        assert code(found) == (413, "TooLarge")
    finally:
        loop.stop()


@pytest.mark.parametrize("service", ["guarded", "unguarded"])
def test_pages_of_other_origins_are_told_nothing_and_can_post_nothing(request, service):
    found = request.getfixturevalue(service)
    origin = {"origin": "https://evil.example"}
    before = asked(found, "OPTIONS", "/v1/news/decide", headers={**origin, "access-control-request-method": "POST"})
    assert before.status_code == 405
    simple = asked(
        found, "POST", "/v1/news/decide", content=json.dumps(ASKED), headers={**origin, "content-type": "text/plain"}
    )
    assert simple.status_code in (401, 415)
    read = asked(found, "GET", "/v1/news", headers=origin)
    for answer in (before, simple, read):
        assert not [name for name in answer.headers if name.startswith("access-control-")]


WRONG = ("onepass_wrong", "", "\xff", "Bearer", "x" * 5_000)


def test_a_key_is_kept_as_a_hash_and_said_nowhere(guarded, loop, key, folder, caplog):
    with caplog.at_level("DEBUG"):
        answers = [asked(guarded, method, path, headers={"authorization": b"Bearer " + given.encode("latin-1")}, **body)
                   for given in (key[0], *WRONG)
                   for method, path, body in (("POST", "/v1/news/decide", {"json": ASKED}), ("GET", "/v1/news", {}),
                                              ("GET", "/v1/news/log", {}), ("GET", "/metrics", {}), ("GET", "/a/b", {}),
                                              ("POST", "/v1/news/decide", {"json": {"context": "wrong"}}))]  # fmt: skip
    assert [one.status_code for one in answers[:6]] == [200, 200, 200, 200, 404, 400]
    assert {one.status_code for one in answers[6:]} == {401, 404}
    said = [key[1].encode(), caplog.text.encode(), *(one.content + f"{one.headers}".encode() for one in answers)]
    kept = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    assert len(kept) > 1
    digest = tomllib.loads(key[1])["keys"][0]["sha256"].encode()
    for text in (*said[1:], *kept):
        assert key[0].encode() not in text
        assert digest not in text
    assert key[0].encode() not in said[0]


def test_two_keys_are_not_alike_and_long(key):
    assert len({make_key(["read"])[0] for _ in range(100)}) == 100
    assert len(key[0]) > 43  # 32 bytes in base64


def test_a_key_in_an_address_is_not_taken(guarded, key):
    for path in (f"/v1/news?key={key[0]}", f"/v1/news?authorization={key[0]}"):
        assert asked(guarded, "GET", path).status_code == 401
    assert asked(guarded, "GET", "/v1/news", auth=("", key[0])).status_code == 401


def test_what_fails_unexpectedly_says_its_kind_and_nothing_that_was_sent(guarded, key, loop, monkeypatch):
    monkeypatch.setattr(loop.store, "find", lambda *_: {}["secret of a reader"])
    found = asked(guarded, "POST", "/v1/news/activate", json={"id": "x"}, headers={"authorization": f"Bearer {key[0]}"})
    assert code(found) == (500, "InternalError")
    assert "secret" not in found.text


def test_without_keys_no_other_machine_is_listened_to(tmp_path):
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.com"):
        with pytest.raises(ValueError, match="has no keys, so the service listens"):
            serve(tmp_path / "data", [write_settings(tmp_path)], host=host, port=0)


def test_a_certificate_that_cannot_be_read_is_refused_before_anything_is_opened(tmp_path):
    pem, private = certificate(tmp_path)
    check_certificate(pem, private)
    (tmp_path / "other").mkdir()
    for one, other in (
        (pem, None),
        (tmp_path / "none.pem", private),
        (pem, certificate(tmp_path / "other")[1]),
        (private, pem),
    ):
        with pytest.raises(ValueError, match="certificate"):
            serve(tmp_path / "data", [write_settings(tmp_path)], port=0, certificate=one, private_key=other)
    assert not (tmp_path / "data").exists()


def test_a_new_key_is_said_once_and_not_on_the_output_that_goes_into_the_file(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["serve", "--new-key", "decide,reward"])
    said = capsys.readouterr()
    key = re.search(r"onepass_\S+", said.err)[0]
    assert (ended.value.code, key in said.out) == (0, False)
    (entry,) = tomllib.loads(said.out)["keys"]
    assert Keys([entry]).roles(key) == {"decide", "reward"}
    assert Keys([entry]).roles("another") == set()


@pytest.mark.parametrize(
    "path", ["/", "/healthz", "/readyz", "/metrics", "/openapi.json", "/v1/news", "/v1/news/decide", "/personalizer/x"]
)
def test_without_keys_every_path_refuses_the_name_of_another_host(unguarded, path):
    assert asked(unguarded, "GET", path, headers={"host": "evil.example"}).status_code == 421


def test_excluding_costs_no_more_than_reading(unguarded, loop):
    arms = [f"{number}" for number in range(loop.settings.limits.arms)]
    body = {**ASKED, "arms": arms, "exclude": [arms[0]] * (len(arms) + 1)}
    refused = asked(unguarded, "POST", "/v1/news/decide", json=body)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "BadArgument")
    assert "exclude must be at most 4 names" in refused.json()["error"]["message"]
    body["exclude"] = [arms[0]] * len(arms)
    found = asked(unguarded, "POST", "/v1/news/decide", json=body)
    assert next(one for one in found.json()["ranking"] if one["arm"] == arms[0])["probability"] == 0.0


def test_the_rate_holds_for_personalizer_too(tmp_path):
    settings = parse_settings({**LOOP, "name": "rated", "limits": {**LIMITS, "rate": 0.001}})
    with SqliteStore(tmp_path / "rated.sqlite") as store:
        loop = Loop(settings, store, tmp_path / "models")
        try:
            service = Service({"rated": loop}, {"rated": Keys()})
            found = [asked(service, "GET", "/personalizer/v1.0/status") for _ in range(3)]
        finally:
            loop.stop()
    assert [one.status_code for one in found] == [200, 429, 429]
    assert int(found[1].headers["retry-after"]) > 1
