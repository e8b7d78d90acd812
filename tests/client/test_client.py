"""The client against a service in a process of its own, over TLS and with keys, also where answers are lost."""

import asyncio
import inspect
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import numpy as np
import pytest

import onepass.client
from counts import repetitions
from onepass.client import (
    AsyncClient,
    BadRequest,
    Client,
    Conflict,
    Forbidden,
    NoAnswer,
    NotFound,
    ServiceError,
    Unauthorized,
    Unavailable,
)
from patience import until
from service_tls import Lossy, Service

DOCS = Path(__file__).parents[2] / "docs"
CONTEXT, ARMS = {"morning": 0.5, "one": 1.0}, ["a", "b", "c"]


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("service")
    found = Service(folder)
    yield found
    assert found.served.stop() == 0
    for kept in (found.served.told, *(path.read_bytes() for path in folder.rglob("*") if path.is_file())):
        assert found.key.encode() not in kept


@pytest.fixture
def client(service):
    with service.client() as found:
        yield found


@pytest.fixture
def lossy(service):
    """A client on such a way, and the way."""
    clients = []

    def made(losing, **options):
        way = Lossy(service, losing)
        clients.append(service.client(transport=way, **options))
        return clients[-1], way

    yield made
    for one in clients:
        one.close()


def about(client, id):
    return [record for record in client.log() if record.get("id") == id]


def test_a_decision_its_outcome_and_what_the_log_says_of_them(client):
    found = client.decide(CONTEXT, ARMS, subject="user 7")
    assert found.arm == found.arms[0] == found.ranking[0].arm
    assert found.propensity == found.propensities[0] == found.ranking[0].probability
    assert sorted(one.arm for one in found.ranking) == ARMS
    assert client.outcome(found.id, 1.0) == onepass.client.OutcomeCounts(accepted=1, new=1)
    first, second = about(client, found.id)
    assert (first["subject"], first["propensities"], second["value"]) == ("user 7", [found.propensity], 1.0)


def test_arrays_names_and_slots_are_taken_as_they_are(client):
    found = client.decide(np.array([0.5, 0.0, 1.0]), dict.fromkeys(ARMS), slots=2, exclude=["b"], rest="greedy")
    assert sorted(found.arms) == ["a", "c"]
    paid = client.outcomes({"id": found.id, "value": np.float64(0.5), "slot": slot} for slot in range(2))
    assert paid.new == 2


def test_a_deferred_decision_is_activated(client):
    found = client.decide(CONTEXT, ARMS, defer=True)
    client.activate(found.id)
    assert "activation" in [one["kind"] for one in about(client, found.id)]


def test_settings_are_asked_for_and_tried(client):
    was = client.settings()
    new = {**was.settings, "limits": {**was.settings["limits"], "slots": 7}}
    assert client.replace_settings(new, dry_run=True).changed == ("limits",)
    assert client.settings() == was


def test_an_evaluation_is_asked_for_once_looked_at_and_removed(client, lossy):
    news, way = lossy(lambda number: "answer" if number == 1 else None)
    ids = lambda: {one["id"] for one in client.evaluations()["evaluations"]}  # noqa: E731
    before = ids()  # of other tests
    policies = [{"name": "uniform", "kind": "uniform"}]
    asked = news.evaluate(policies=policies, id="asked")
    assert (way.sent, asked["id"]) == (2, "asked")
    until(lambda: client.evaluation("asked")["status"] in ("done", "failed"))  # nothing is joined here
    assert ids() == {*before, "asked"}
    client.delete_evaluation("asked")
    assert ids() == before
    with pytest.raises(NotFound, match="EvaluationNotFound"):
        client.evaluation("asked")
    assert client.models()["models"]
    with pytest.raises(ServiceError, match="andidate"):
        client.discard_candidate()


def test_refusals_are_errors_of_their_kind_with_the_code_and_the_sentence(service, client):
    with pytest.raises(BadRequest, match=r"^BadArgument: .*which the settings do not name$") as caught:
        client.decide({"minute": 1.0}, ARMS, id="r1")
    assert (caught.value.status, caught.value.sent["id"]) == (400, "r1")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again), again.sent) == (BadRequest, str(caught.value), caught.value.sent)
    client.decide(CONTEXT, ARMS, id="r2")
    with pytest.raises(Conflict, match="EventConflict"):
        client.decide(CONTEXT, ARMS[:2], id="r2")
    with pytest.raises(NotFound, match="EventNotFound"):
        client.activate("nobody")
    for options, kind in (({"key": None}, Unauthorized), ({"key": service.reading}, Forbidden)):
        with service.client(**options) as other, pytest.raises(kind):
            other.decide(CONTEXT, ARMS)
    with service.client(loop="two words?") as other, pytest.raises(Unauthorized):  # as with a wrong key
        other.settings()


def test_what_cannot_be_sent_is_refused_before_it_is(lossy):
    client, way = lossy(lambda number: None)
    with pytest.raises(ValueError, match="JSON compliant"):
        client.decide([float("nan"), 0.0, 0.0], ARMS)
    with pytest.raises(TypeError, match="set cannot be sent"):
        client.decide({"one": {1.0}}, ARMS)
    for wrong in ({"url": "news"}, {"timeout": 0.0}, {"retries": -1}):
        with pytest.raises(ValueError, match="must be"):
            Client(**{"url": "http://127.0.0.1", "loop": "news", **wrong})
    assert way.sent == 0


def test_an_empty_id_or_key_is_sent_as_it_is_and_the_service_refuses_it():
    bodies, refusal = [], {"error": {"code": "BadRequest", "message": "an id is empty"}}

    def answer(request):
        bodies.append(json.loads(request.content))
        return httpx.Response(400, json=refusal)

    with Client("http://127.0.0.1", "news", transport=httpx.MockTransport(answer)) as news:
        for send in (lambda: news.decide(CONTEXT, ARMS, id=""), lambda: news.outcome("1", 1.0, key="")):
            with pytest.raises(BadRequest, match="an id is empty"):
                send()
    assert bodies[0]["id"] == bodies[1][0]["key"] == ""


@pytest.mark.parametrize("key", ["schl\u00fcssel", "a\nb", "a b", "secret\n"])
def test_a_key_that_no_header_can_hold_is_refused_and_not_shown(key):
    for kind in (Client, AsyncClient):
        with pytest.raises(ValueError, match="key must be printable ASCII") as refused:
            kind("http://127.0.0.1", "news", key)
        assert key.strip() not in str(refused.value)


@pytest.mark.parametrize("wrong", [{"limit": -1}, {"since": -1}])
def test_a_negative_number_of_records_is_refused(wrong):
    with Client("http://127.0.0.1", "news") as news, pytest.raises(ValueError, match="must be at least 0, got"):
        list(news.log(**wrong))


@pytest.mark.parametrize("what", ["request", "answer", "stopping", "proxy"])
def test_what_is_lost_on_the_way_is_sent_again_and_counts_once(client, lossy, what):
    n = repetitions(2, 100)
    news, way = lossy(lambda number: what if number % 2 else None)
    ids = [news.decide(CONTEXT, ARMS).id for _ in range(n)]
    for id in ids:
        news.outcome(id, 0.5)
    news.activate(ids[0])
    assert way.sent == 2 * (2 * n + 1)
    since = next(one["seq"] for one in client.log() if one.get("id") == ids[0])
    kinds = [(one["kind"], one["id"]) for one in client.log(since - 1) if one.get("id") in ids]
    for kind in ("decision", "outcome"):
        assert sorted(id for one, id in kinds if one == kind) == sorted(ids)


def test_what_would_count_twice_is_sent_again_only_where_nothing_was_sent(lossy):
    for what in ("answer", "stopping", "proxy"):
        client, way = lossy(lambda number, what=what: what)
        kind = NoAnswer if what == "answer" else Unavailable
        for call, given in ((client.rollback, {"checkpoint": "none"}), (client.replace_settings, {"settings": {}})):
            before = way.sent
            with pytest.raises(kind):
                call(**given)
            assert way.sent == before + 1
    client, way = lossy(lambda number: "request" if number == 1 else None)
    with pytest.raises(ServiceError) as caught:
        client.rollback(checkpoint="none")
    assert (way.sent, caught.value.status // 100) == (2, 4)


def test_an_error_says_what_was_sent_so_that_it_can_be_sent_later(client, lossy):
    news, way = lossy(lambda number: "answer", retries=1)
    with pytest.raises(NoAnswer, match="ReadTimeout") as caught:
        news.decide(CONTEXT, ARMS)
    assert way.sent == 2
    assert client.decide(**caught.value.sent).id == caught.value.sent["id"]
    id = caught.value.sent["id"]
    with pytest.raises(NoAnswer) as caught:
        news.outcome(id, 1.0)
    assert client.outcomes(caught.value.sent).new == 0
    assert [one["kind"] for one in about(client, id)].count("outcome") == 1


def test_a_log_that_breaks_off_goes_on_after_the_last_record(service, client, lossy, monkeypatch):
    """Pages of three records, of which every other answer ends early."""

    class Breaking(httpx.SyncByteStream):
        def __init__(self, inner, most):
            self._inner, self._most = inner, most

        def __iter__(self):
            for part in self._inner:
                yield part[: self._most]
                if len(part) > self._most:
                    raise httpx.ReadError("broken")

        def close(self):
            self._inner.close()

    class Way(Lossy):
        def handle_request(self, request):
            answer = super().handle_request(request)
            most = 300 if self.sent % 2 else 10**6
            return httpx.Response(answer.status_code, headers=answer.headers, stream=Breaking(answer.stream, most))

    for number in range(10):
        client.decide(CONTEXT, [f"line\u2028of {number}\x85", "b"])
    whole = list(client.log(limit=9))
    monkeypatch.setattr(onepass.client.requests, "PAGE", 3)
    with service.client(transport=Way(service, lambda number: None)) as news:
        assert list(news.log(limit=9)) == whole
        assert [one["seq"] for one in news.log(since=2, limit=4)] == [one["seq"] for one in whole[2:6]]
    assert list(client.log(limit=0)) == []


def test_health_is_told_and_nobody_is_healthy_where_nothing_listens(client):
    assert client.is_healthy()
    assert client.problem() is None
    with Client("http://127.0.0.1:9", "news", retries=0) as nobody:
        assert not nobody.is_healthy()
        assert "ConnectError" in (nobody.problem() or "")


def test_the_awaiting_client_has_the_same_calls(service):
    async def asked():
        async with service.client(AsyncClient) as news:
            found = await asyncio.gather(*(news.decide(CONTEXT, ARMS) for _ in range(8)))
            paid = await news.outcomes({"id": one.id, "value": 1.0} for one in found)
            await news.outcome(found[0].id, 1.0, key="second")
            await news.activate(found[0].id)
            kinds = [one["kind"] async for one in news.log() if one.get("id") == found[0].id]
            was = await news.settings()
            assert (await news.replace_settings(was.settings, dry_run=True)).changed == ()
            assert (await news.is_healthy(), await news.problem()) == (True, None)
            with pytest.raises(Conflict):
                await news.decide(CONTEXT, ARMS[:2], id=found[0].id)
            for place in (news.evaluation("none"), news.promote(checkpoint="none"), news.rollback(checkpoint="none")):
                with pytest.raises(ServiceError):
                    await place
            return paid.new, kinds

    assert asyncio.run(asked()) == (8, ["decision", "outcome", "outcome", "activation"])
    public = [name for name in vars(Client) if not name.startswith("_")]
    assert public == [name for name in vars(AsyncClient) if not name.startswith("_")]
    for name in (*public, "__init__"):
        one, other = getattr(Client, name), getattr(AsyncClient, name)
        assert inspect.getdoc(one) == inspect.getdoc(other)
        if name != "__init__":
            assert inspect.signature(one).parameters == inspect.signature(other).parameters


def examples(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", (DOCS / page).read_text(), re.M | re.S)


def test_the_programs_of_the_page_run(service, monkeypatch):
    monkeypatch.setenv("ONEPASS_KEY", service.key)
    monkeypatch.setenv("SSL_CERT_FILE", f"{service.pem}")
    names = {}
    blocks = examples("client.md", "python")
    for block in blocks:
        exec(block.replace("http://127.0.0.1:8080", service.url), names)
    assert len(blocks) == 3
    assert names["article"]({"one": 1}) in ("sport", "economy", "culture")
    names["news"].close()


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")
def test_the_commands_of_the_pages_run(service, tmp_path):
    """As they stand, but for the address; curl reads from a file of its own which key to send."""
    said = f'header = "authorization: Bearer {service.key}"\nsilent\nshow-error\nfail-with-body\n'
    (tmp_path / ".curlrc").write_text(said)
    pages = ("client_shell.md", "service.md", "service_evaluations.md")
    blocks = [block for page in pages for block in examples(page, "sh")]
    commands = [found for block in blocks for found in re.findall(r"^curl .*(?:\n[ }\]].*)*", block, re.M)]
    assert len(commands) > 10
    answers = []
    environment = {**os.environ, "CURL_HOME": f"{tmp_path}", "CURL_CA_BUNDLE": f"{service.pem}"}
    for command in commands:
        run = ["bash", "-c", command.replace("http://127.0.0.1:8080", service.url)]
        done = subprocess.run(run, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        answers.append(done.stdout)
    assert json.loads(answers[0])["arm"] in ("sport", "economy", "culture")
    assert [json.loads(one) for one in answers[3:5]] == [{"accepted": 1, "new": 1}, {"accepted": 2, "new": 1}]


def test_a_key_is_in_no_error_and_in_no_representation(service):
    with service.client() as news, pytest.raises(NotFound) as caught:
        news.activate("nobody")
    with service.client(url="http://127.0.0.1:9", retries=0) as news, pytest.raises(NoAnswer) as lost:
        news.activate("nobody")
    for said in (repr(news), repr(vars(news)), repr(caught.value), repr(lost.value), repr(lost.value.__cause__)):
        assert service.key not in said


def test_another_authority_is_not_trusted(service):
    with service.client(ca_file=None, retries=0) as news, pytest.raises(NoAnswer, match="CERTIFICATE_VERIFY_FAILED"):
        news.settings()


WITHOUT = """
import sys, onepass.client
print(*{'numpy', 'numba', 'scipy', 'msgspec'} & {*sys.modules})
from onepass.foundation.files import load
print(type(load(sys.argv[1])).__name__)
"""


def test_who_asks_a_service_imports_nothing_that_learns_and_files_know_their_classes_even_so(tmp_path):
    onepass.PendingRewards(onepass.OFUL(dim=2)).save(tmp_path / "file")
    said = subprocess.run([sys.executable, "-c", WITHOUT, f"{tmp_path / 'file'}"], capture_output=True, text=True)
    assert (said.stdout, said.stderr) == ("\nPendingRewards\n", "")


def test_the_folder_alone_is_a_client_that_needs_httpx_and_nothing_else(tmp_path):
    shutil.copytree(Path(onepass.client.__file__).parent, tmp_path / "onepass" / "client")
    (tmp_path / "onepass" / "__init__.py").touch()
    code = (
        "import sys, onepass.client; print(onepass.client.__file__); "
        "print(*{'numpy', 'numba', 'scipy', 'msgspec'} & {*sys.modules})"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([f"{tmp_path}", os.environ.get("PYTHONPATH", "")])},
    ).stdout.splitlines()  # fmt: skip
    assert said == [str(tmp_path / "onepass" / "client" / "__init__.py"), ""]
