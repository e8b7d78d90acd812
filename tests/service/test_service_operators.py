"""What operators do: settings that are wrong in several places, days that are dropped, subjects that are forgotten."""

import json
from datetime import UTC, datetime, timedelta

import httpx
import msgspec
import pytest

from onepass import cli
from onepass.client import Client
from onepass.log import micros
from onepass.log.records import Outcome
from onepass.log.replay import Fold
from onepass.log.sqlite import SqliteStore
from onepass.log.verification import verify
from onepass.service.duplicates import refuse_duplicates
from onepass.service.keys import hash_key
from onepass.service.loop import Loop
from onepass.service.messages import ApiError, DecideRequest, OutcomeRequest, RecordArm, RecordsRequest
from onepass.service.page import example_request
from onepass.service.server import hold_folder
from onepass.service.settings import parse_settings, read_file, takes_records
from patience import PATIENCE, until, wait_until_learned
from service_process import RunningService, loops_in, write_settings
from service_tls import Service

WRONG = """
name = "A b"
mode = "sleeping"
colour = "red"
[features]
context = ["hour", "hour"]
[model]
recipe = "OFLU"
[reward]
wait = "long"
default = 7.0
[limits]
rate = -1.0
[[keys]]
sha256 = "x"
roles = ["read"]
"""


def onepass(capsys, *arguments):
    """Exit code, what is printed, and what is said."""
    with pytest.raises(SystemExit) as done:
        cli.main([*map(str, arguments)])
    said = capsys.readouterr()
    return int(done.value.code or 0), said.out, said.err


def test_a_check_says_all_that_is_wrong_in_all_files_and_suggests_the_nearest_name(tmp_path, capsys):
    first, second = tmp_path / "first.toml", tmp_path / "second.toml"
    first.write_text(WRONG)
    second.write_text('name = "b"\n[features]\ncontex = 3\n[reward]\nwait = 0.0\n')
    code, out, err = onepass(capsys, "serve", "--check", first, second)
    assert (code, out) == (2, "")
    lines = err.splitlines()
    for path, words in (
        (first, ("mode", "field `colour`", "Expected `float`, got `str` - at `$.reward.wait`", "limits.rate must",
                 "reward.default must be in", "features.context must name every number once", "64 small hexadecimal")),
        (second, ("unknown field `contex` - at `$.features`: did you mean 'context'?", "reward.wait must be above 0")),
    ):  # fmt: skip
        for word in words:
            assert [line for line in lines if f"{path}: " in line and word in line], (word, err)
    assert not [line for line in lines if "features must have a number" in line]  # of what is not known


@pytest.mark.parametrize(
    ("name", "meant"), [("OFULL", "OFUL"), ("linucb", "LinUCB"), ("ContextBandit", "ContextualBandit")]
)
def test_a_misspelled_recipe_is_told_the_nearest_name(name, meant):
    with pytest.raises(ValueError, match=f"model.recipe must be one of .*: did you mean '{meant}'"):
        parse_settings({"name": "a", "features": {"context": 2}, "model": {"recipe": name}})


@pytest.mark.parametrize("rate", [-1.0, 1e-9, 1e7, float("inf"), float("nan")])
def test_a_rate_has_a_range(rate):
    with pytest.raises(ValueError, match=r"limits.rate must be from 0.001 to 1e\+06 requests a second, or 0"):
        parse_settings({"name": "a", "features": {"context": 2}, "limits": {"rate": rate}})


@pytest.mark.parametrize(
    "value", [0, -1.0, 0.5, 1e300, True, "day", {"days": 1}, {"seconds": 1e300}, {"seconds": 0}, {"seconds": None}]
)
def test_a_half_life_has_a_range(value):
    arguments = {"half_life": value}
    with pytest.raises(ValueError, match="half_life must be") as error:
        parse_settings(
            {"name": "a", "features": {"context": 2, "arms": 1}, "model": {"recipe": "OFUL", "arguments": arguments}}
        )
    assert len(str(error.value).splitlines()) == 1


# ---- what is deleted ----


def request(t):
    return DecideRequest(context=[float(t % 2), 1.0, 0.5], id=f"{t}", arms=[*"abc"], subject=f"user {t % 3}")


def play(loop, first, last):
    for t in range(first, last):
        loop.decide(request(t)).result()
        loop.outcomes([OutcomeRequest(id=f"{t}", value=1.0, key="k")])[1].result()


def test_a_day_is_sealed_and_dropped_where_no_service_needs_it(tmp_path, capsys):
    now = datetime.now(UTC)
    with SqliteStore(tmp_path / "log") as store:
        store.append([
            Outcome(loop="a", time=micros(now - timedelta(days=days)), id=f"{days}", value=1.0)
            for days in (5.2, 4.2, 3.2, 2.2, 0.2)
        ])  # fmt: skip
    code, out, _ = onepass(capsys, "log", "seal", tmp_path / "log", tmp_path / "archive", "--days", 4, "--json")
    assert (code, sum(json.loads(out)["months"].values())) == (0, 2)
    code, out, _ = onepass(capsys, "log", "seal", tmp_path / "log", tmp_path / "archive", "--days", 3, "--json")
    assert (code, sum(json.loads(out)["months"].values())) == (0, 1)
    assert onepass(capsys, "log", "seal", tmp_path / "log", tmp_path / "archive", "--days", 0)[0] == 2
    yesterday = f"{now - timedelta(days=1):%Y-%m-%d}"
    assert json.loads(onepass(capsys, "log", "drop", tmp_path / "log", "--before", yesterday, "--json")[1]) == {
        "ok": True, "dropped": 1, "first": 5,
    }  # fmt: skip
    for before in ("7", "0", "soon", "2026-13-01"):
        code, _, err = onepass(capsys, "log", "drop", tmp_path / "log", "--before", before)
        assert (code, "--before must be" in err) == (2, True)
    assert onepass(capsys, "log", "drop", tmp_path / "log", "--before", "6")[0] == 0
    with SqliteStore(tmp_path / "log") as store:
        assert (len(store), store.last) == (0, 5)


def test_what_a_restart_needs_is_not_dropped(tmp_path, capsys):
    settings, _ = read_file(write_settings(tmp_path, wait=0.02))
    data = tmp_path / "data"
    data.mkdir()
    with SqliteStore(data / "news.sqlite") as store:
        loop = Loop(settings, store, data / "news.models")
        play(loop, 0, 12)
        wait_until_learned(loop)
        loop.stop()
        last = store.last
    code, _, err = onepass(capsys, "log", "drop", data / "news.sqlite", "--before", last + 1)
    assert (code, "no usable checkpoint" in err) == (2, True)
    with SqliteStore(data / "news.sqlite") as store:
        assert store.first == 1
    assert onepass(capsys, "log", "drop", data / "news.sqlite", "--before", 10, "--data", tmp_path)[0] == 2
    assert onepass(capsys, "log", "drop", data / "news.sqlite", "--before", 10)[0] == 0
    with SqliteStore(data / "news.sqlite") as store:
        assert store.first == 10
        again = Loop(settings, store, data / "news.models")
        assert again.learner.fold.bandit.n_learned == 12
        again.stop()


def test_a_subject_is_forgotten_by_a_command_while_no_service_uses_the_folder(tmp_path, capsys):
    settings, _ = read_file(write_settings(tmp_path, wait=0.02))
    data = tmp_path / "data"
    data.mkdir()
    with SqliteStore(data / "news.sqlite") as store:
        loop = Loop(settings, store, data / "news.models")
        play(loop, 0, 12)
        wait_until_learned(loop)
        loop.stop()
    with hold_folder(data, None):
        code, _, err = onepass(capsys, "log", "forget", data / "news.sqlite", "user 0")
        assert (code, "POST /v1/NAME/forget" in err) == (2, True)
    code, out, _ = onepass(capsys, "log", "forget", data / "news.sqlite", "user 0", "user 1", "nobody", "--json")
    assert (code, json.loads(out)["forgotten"]) == (0, {"user 0": 12, "user 1": 12, "nobody": 0})
    with SqliteStore(data / "news.sqlite") as store:
        again = Loop(settings, store, data / "news.models")
        assert again.learner.fold.bandit.n_learned == 12
        play(again, 14, 15)
        wait_until_learned(again)
        again.stop()
    assert all(b"user 0" not in path.read_bytes() for path in data.glob("news.sqlite*"))


# ---- what is told ----


def test_a_checkpoint_that_cannot_be_saved_is_told_and_no_longer_once_it_can(tmp_path, caplog):
    settings, _ = read_file(write_settings(tmp_path))
    with SqliteStore(tmp_path / "log") as store, loops_in(tmp_path) as start:
        loop = start(settings, store)
        models = tmp_path / "models"
        wait_until_learned(loop)
        kept = tmp_path / "kept"
        if models.exists():
            models.rename(kept)
        models.write_text("no folder")  # a file in its place: root may write into every folder
        play(loop, 0, 3)
        until(lambda: loop.learner.failure is not None)
        assert "a checkpoint could not be saved" in loop.learner.failure
        assert loop.problem() is None
        assert loop.numbers()["checkpoint_failed"] == 1.0
        assert [one for one in caplog.messages if "loop news: a checkpoint could not be saved" in one]
        models.unlink()
        play(loop, 3, 6)
        until(lambda: loop.learner.failure is None)
        assert loop.numbers()["checkpoint_failed"] == 0.0


def test_readiness_and_metrics_tell_a_failed_checkpoint_to_those_who_may_read(tmp_path):
    key = "onepass_of_these_tests"
    keys = f'[[keys]]\nroles = ["admin"]\nsha256 = "{hash_key(key)}"\n'
    data = tmp_path / "data"
    data.mkdir()
    (data / "news.models").write_text("no folder")
    served = RunningService(data, write_settings(tmp_path, keys=keys), key=key)
    client = served.client
    client.post("/v1/news/decide", json={"context": [1, 2, 3], "arms": ["a", "b"]}).raise_for_status()
    until(lambda: "warnings" in client.get("/readyz").json())
    assert client.get("/readyz").json()["warnings"][0].startswith("loop news: a checkpoint could not be saved")
    assert httpx.get(f"{served.address}/readyz", timeout=PATIENCE).json() == {"status": "ready"}
    assert 'onepass_checkpoint_failed{loop="news"} 1.0' in client.get("/metrics").text
    patched(client)
    assert served.stop() == 0
    assert b"loop news: a checkpoint could not be saved" in served.told


# ---- a part of the settings ----


def patched(client):
    """A part of the settings is changed; the rest stays."""
    before = client.get("/v1/news").json()
    dry = client.patch("/v1/news?dry_run=true", json={"reward": {"wait": 7.0}})
    assert dry.json()["changed"] == ["reward"]
    assert dry.json()["settings"]["reward"] == {**before["settings"]["reward"], "wait": 7.0}
    assert client.get("/v1/news").json() == before
    found = client.patch("/v1/news", json={"reward": {"wait": 7.0}, "limits": {"rate": 100}}).json()
    assert found["changed"] == ["reward", "limits"]
    now = client.get("/v1/news").json()["settings"]
    assert now == {
        **before["settings"],
        "reward": {**before["settings"]["reward"], "wait": 7.0},
        "limits": {**before["settings"]["limits"], "rate": 100.0},
    }
    assert client.patch("/v1/news", json={"limits": None}).json()["settings"]["limits"]["rate"] == 0.0
    for wrong, code in (
        ({"reward": {"wait": -1.0}}, 400), ({"colour": "red"}, 400), ([], 400), ({"name": None}, 400),
        ({"name": "other"}, 409), ({"features": {"context": 4}}, 409),
    ):  # fmt: skip
        assert client.patch("/v1/news", json=wrong).status_code == code, wrong
    body = b'{"reward": {"wait": 8.0, "wait": 9.0}}'
    twice = client.patch("/v1/news", content=body, headers={"content-type": "application/json"})
    assert (twice.status_code, "'wait' stands twice" in twice.json()["error"]["message"]) == (400, True)
    body = b'{"id": "e", "value": 1.0, "value": 0.0}'
    twice = client.post("/v1/news/outcome", content=body, headers={"content-type": "application/json"})
    assert twice.status_code == 400
    for body in (
        b'{"context": [1, 2, 3], "arms": ["a", "b"], "arms": ["a", "c"]}',
        b'{"context": [1, 2, 3], "arms": ["a", "b"], "arms": ["a", "b"]}',
        b'{"context": {"hour": 1, "hour": 2}, "arms": ["a", "b"]}',
        b'{"context": [1, 2, 3], "arms": [{"id": "a", "id": "c"}, "b"]}',
    ):
        twice = client.post("/v1/news/decide", content=body, headers={"content-type": "application/json"})
        assert (twice.status_code, "stands twice" in twice.json()["error"]["message"]) == (400, True), body


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        (b'{"a": 1, "b": {"a": 2}}', False),
        (b'{"a": 1, "a": 1}', True),
        (b'{"a": ":\\"a\\": 1", "b": 1}', False),
        (b'{"a": 1, "\\u0061": 2}', True),
        (b'{"a:b": "::", "c": [{"d": 1}, {"d": 2}]}', False),
        (b'[{"d": 1, "e": {"f": 1, "f": "\\u003a"}}]', True),
        (b'{"a": 123456789012345678901234567890, "b": 2}', False),
        (b'{"a": 123456789012345678901234567890, "a": 2}', True),
    ],
)
def test_a_name_that_stands_twice_is_found(body, wrong):
    if wrong:
        with pytest.raises(ValueError, match="stands twice"):
            refuse_duplicates(body)
    else:
        refuse_duplicates(body)


RECORDS = {"name": "news", "features": {"records": True}, "reward": {"wait": 0.02}}


def test_one_early_request_of_names_alone_does_not_close_a_loop_of_records_for_arms_with_features(tmp_path):
    settings = parse_settings(RECORDS)
    ask = lambda id, arms: DecideRequest(context={"x": "y"}, arms=arms, id=id)  # noqa: E731
    arms = [RecordArm(id=name, features={"topic": topic}) for name, topic in (("a1", "sport"), ("a2", "news"))]
    with SqliteStore(tmp_path / "log") as store, loops_in(tmp_path) as start:
        loop = start(settings, store)
        loop.decide(ask("early", ["a", "b"])).result()
        until(lambda: loop.learner.snapshot.n_learned == 1)
        with pytest.raises(
            ApiError, match=r'send PATCH /v1/news \{"model": \{"arguments": \{"model": "interaction"\}\}\}'
        ) as error:
            loop.decide(ask("later", arms))
        assert (error.value.status, error.value.code) == (409, "ModelOfNames")
        loop.update_settings(
            lambda present: parse_settings({**present.to_dict(), "model": {"arguments": {"model": "interaction"}}})
        )
        until(lambda: loop.learner.copies.present.line == 1)
        assert loop.decide(ask("later", arms)).result().names == ["a1", "a2"]
        wait_until_learned(loop)
        assert loop.problem() is None
        loop.stop()
        assert verify(Fold.resume(store, "news", first=True, line=1)).ok


@pytest.mark.parametrize("settings", [
    {"features": {"context": ["x", "y"]}}, {"features": {"context": 2}, "arms": ["a'b", "c"]},
    {"features": {"context": 1, "arms": ["z"]}}, {"features": {"arms": 2}, "arms": ["a", "b", "c"]},
    {"features": {"records": True}}, {"model": {"recipe": "InteractionBandit"}},
])  # fmt: skip
def test_the_example_of_an_empty_loop_is_decided(tmp_path, settings):
    found = parse_settings({"name": "news", **settings})
    body = json.dumps(example_request(found)).encode()
    with SqliteStore(tmp_path / "log") as store, loops_in(tmp_path) as start:
        loop = start(found, store)
        decoder = msgspec.json.Decoder(RecordsRequest) if takes_records(found) else loop.tables
        assert loop.decide(decoder.decode(body)).result().id


# ---- keys and authorities ----


def test_an_empty_key_is_refused_in_a_sentence(capsys, monkeypatch):
    for key in ("", " "):
        with pytest.raises(ValueError, match=r"key must not be empty: .*ONEPASS_KEY"):
            Client("http://127.0.0.1:1", "news", key)
        monkeypatch.setenv("ONEPASS_KEY", key)
        code, _, err = onepass(capsys, "simulate", "--seconds", 1)
        assert (code, "ONEPASS_KEY must not be empty" in err) == (2, True)


def test_a_private_authority_is_trusted_by_client_and_command(tmp_path, capsys, monkeypatch):
    service = Service(tmp_path)
    monkeypatch.setenv("ONEPASS_KEY", service.key)
    with service.client() as news:
        assert news.patch_settings({"exploring": 0.0}, dry_run=True).changed == ()
        assert news.patch_settings({"reward": {"wait": 601.0}}).changed == ("reward",)
    code, _, err = onepass(
        capsys, "simulate", service.url, "--loop", "news", "--seconds", 1, "--ca", service.pem, "--rate", 5
    )
    assert (code, "the service refused" in err) == (2, True)  # another loop's features: TLS and the key were right
    code, _, err = onepass(capsys, "simulate", service.url, "--ca", tmp_path / "nothing.pem")
    assert (code, "PEM" in err) == (2, True)
    (tmp_path / "no.pem").write_text("no certificate")
    with pytest.raises(ValueError, match="PEM"):
        service.client(ca_file=tmp_path / "no.pem")
    assert service.served.stop() == 0
