"""Clients that send as much as they can: memory stays, others are served, and a stop is a stop."""

import contextlib
import json
import socket
import threading
import time

import httpx
import pytest

from counts import LONG, repetitions
from onepass.lab.benchmark.service import resident_megabytes
from onepass.service.keys import make_key
from patience import PATIENCE
from service_process import RunningService, write_settings

ASKED = {"context": {"hour": 0.5}, "arms": ["a", "b", "c"]}
MEGABYTES = repetitions(8, 100)  # that each attacker sends
KNOWN = repetitions(300, 2_000)  # arms at most
BODY = 900_000  # bytes of a request, within limits.body
HOST = b"host: localhost\r\n"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("attacked")
    keys, lines = {}, []
    for role in ("decide", "reward", "read"):
        keys[role], text = make_key([role])
        lines.append(text)
    path = write_settings(folder, keys="\n".join(["", *lines, ""]))
    path.write_text(path.read_text().replace("body = 20000", f"known_arms = {KNOWN}"))
    service = RunningService(folder / "data", path, options=("--connections", "200"), key=keys["read"])
    service.keys = keys
    yield service
    begin = time.monotonic()
    assert service.stop() == 0
    assert not LONG or time.monotonic() - begin < 10.0


def place_of(service):
    host, _, port = service.address.rpartition("//")[2].partition(":")
    return host, int(port)


def pour(service, begin, part):
    """Send a beginning and then parts, on new connections, until enough was sent."""
    sent = 0
    while sent < MEGABYTES * 1_000_000:
        with contextlib.suppress(OSError), socket.create_connection(place_of(service), PATIENCE) as link:
            sent += link.send(begin)
            while sent < MEGABYTES * 1_000_000:
                sent += link.send(part)


def pour_headers(service):
    pour(service, b"GET /v1/news HTTP/1.1\r\n" + HOST, b"a: " + b"x" * 50_000 + b"\r\n")


def pour_url(service):
    pour(service, b"GET /", b"x" * 65_536)


def pour_noise(service):
    pour(service, b"\x16\x03\x01\x00", b"\xff" * 65_536)


def pour_body_without_key(service):
    pour(service, b"POST /v1/news/decide HTTP/1.1\r\n" + HOST + b"content-length: 900000000\r\n\r\n", b"x" * 65_536)


def half_open(service):
    with contextlib.ExitStack() as stack:
        for _ in range(2_000 if LONG else 400):
            with contextlib.suppress(OSError):
                link = stack.enter_context(socket.create_connection(place_of(service), PATIENCE))
                link.sendall(b"POST /v1/news/decide HTTP/1.1\r\n" + HOST)


def post(service, role, operation, bodies):
    """Send bodies with a key, until enough was sent."""
    headers = {"authorization": f"Bearer {service.keys[role]}", "content-type": "application/json"}
    sent, number = 0, 0
    with httpx.Client(base_url=service.address, headers=headers, timeout=PATIENCE) as client:
        while sent < MEGABYTES * 1_000_000:
            body = json.dumps(bodies(number))
            with contextlib.suppress(httpx.TransportError):
                client.post(f"/v1/news/{operation}", content=body)
            sent, number = sent + len(body), number + 1


def exclude_one_name_often(service):
    arms = [f"arm {number}" for number in range(1_000)]
    post(service, "decide", "decide", lambda n: {**ASKED, "arms": arms, "exclude": [arms[0]] * (BODY // 10)})


def reward_an_unknown_id(service):
    post(service, "reward", "outcome", lambda n: [{"id": "unknown", "value": 1.0}] * 1_000)


def reward_many_unknown_ids(service):
    post(service, "reward", "outcome", lambda n: [{"id": f"{n}.{one}", "value": 1.0} for one in range(1_000)])


def read_with_a_key_that_may_decide(service):
    post(service, "decide", "outcome", lambda n: [{"id": "x" * 200, "value": 1.0}] * 1_000)


def send_new_arm_names(service):
    long = "x" * 200
    post(service, "decide", "decide", lambda n: {**ASKED, "arms": [f"{n}.{one} {long}" for one in range(20)]})


def send_1_000_new_arm_names_a_request(service):
    long = "x" * 200
    post(service, "decide", "decide", lambda n: {**ASKED, "arms": [f"{n}.{one} {long}" for one in range(1_000)]})


ATTACKS = (
    pour_headers, pour_url, pour_noise, pour_body_without_key, half_open, exclude_one_name_often, reward_an_unknown_id,
    reward_many_unknown_ids, read_with_a_key_that_may_decide, send_new_arm_names, send_1_000_new_arm_names_a_request,
)  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_an_attacker_takes_neither_memory_nor_time_of_others(served, attack):
    headers = {"authorization": f"Bearer {served.keys['decide']}"}
    with httpx.Client(base_url=served.address, headers=headers, timeout=PATIENCE) as client:
        assert client.post("/v1/news/decide", json=ASKED).status_code == 200
        before = resident_megabytes(served.process.pid)
        attacker = threading.Thread(target=attack, args=(served,))
        attacker.start()
        slowest = 0.0
        while attacker.is_alive():
            begin = time.monotonic()
            try:
                answer = client.post("/v1/news/decide", json=ASKED)
            except httpx.TransportError:
                continue  # an idle connection may be ended for a new one
            assert answer.status_code in (200, 503)
            slowest = max(slowest, time.monotonic() - begin)
            time.sleep(0.01)
        attacker.join()
        assert client.post("/v1/news/decide", json=ASKED).status_code == 200
        assert resident_megabytes(served.process.pid) - before < 100.0
        assert not LONG or slowest < 1.0
