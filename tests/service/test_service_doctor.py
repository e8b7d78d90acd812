"""`onepass doctor` finds what is broken, and only that."""

import json
import shutil

import pytest

from onepass.cli import main
from onepass.log.records import SECOND
from onepass.log.sqlite import SqliteStore
from onepass.service import doctor
from onepass.service.doctor import Finding, examine
from onepass.service.loop import Loop
from onepass.service.messages import DecideRequest
from onepass.service.server import hold_folder
from onepass.service.settings import read_file
from patience import until
from service_process import write_settings


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A folder in which a loop has decided and learned."""
    folder = tmp_path_factory.mktemp("played")
    settings, _ = read_file(write_settings(folder, wait=0.05))
    (folder / "data").mkdir()
    with SqliteStore(folder / "data" / "news.sqlite") as store:
        loop = Loop(settings, store, folder / "data" / "news.models")
        for number in range(5):
            loop.decide(DecideRequest(context=[1.0, 0.0, float(number)], arms=["a", "b"])).result()
        until(lambda: loop.learner.learned >= 5)
        loop.stop()
    return folder


@pytest.fixture
def folder(played, tmp_path):
    """A copy of it."""
    return shutil.copytree(played, tmp_path / "copy")


def found(folder, **options):
    given = {"paths": [folder / "news.toml"], **options}
    return [one for one in examine(folder / "data", **given) if one.what not in ("disk", "compiled")]


def states(findings):
    return {(one.what, one.state) for one in findings}


FINE = {(what, "fine") for what in ("folder", "settings", "log", "clock", "checkpoint")}


def test_a_service_that_is_in_order_is_fine_stopped_or_running(folder):
    assert states(found(folder)) == FINE
    assert states(found(folder, quick=True)) == FINE
    assert states(found(folder, paths=())) == FINE - {("settings", "fine")}
    (said,) = [one.sentence for one in found(folder) if one.what == "checkpoint"]
    assert said.endswith("5 rounds; a start learns 0 rewards after it")
    with hold_folder(folder / "data", None):
        assert "is served now" in found(folder)[0].sentence
    assert "is not served now" in found(folder)[0].sentence


def test_a_service_that_is_not_there_yet_is_fine(tmp_path):
    assert states(found(tmp_path, paths=[write_settings(tmp_path)])) == {
        (what, "fine") for what in ("folder", "settings", "log")
    }


def test_a_log_that_is_damaged_or_none_is_broken(folder):
    log = folder / "data" / "news.sqlite"
    whole = log.read_bytes()
    at = whole.rindex(b'"kind":"decision"')
    log.write_bytes(whole[:at] + b'"kind":"decisiom"' + whole[at + 17 :])
    assert ("log", "broken") in states(found(folder))
    log.write_bytes(b"no database " * 1_000)
    assert states(found(folder)) == {("folder", "fine"), ("settings", "fine"), ("log", "broken")}


def test_a_checkpoint_that_is_damaged_or_gone_costs_a_longer_start(folder):
    for path in (folder / "data" / "news.models").glob("*.model"):
        path.write_bytes(b"damaged")
    assert ("checkpoint", "soon") in states(found(folder))
    (*_, last) = found(folder)
    assert last.sentence == "there is none; a start learns 5 rewards after it"
    shutil.rmtree(folder / "data" / "news.models")
    assert states(found(folder)) == FINE


def test_settings_that_do_not_fit_are_broken(folder, tmp_path):
    text = (folder / "news.toml").read_text()
    (folder / "news.toml").write_text(text.replace('"hour", ', ""))
    assert ("settings", "broken") in states(found(folder))
    (folder / "news.toml").write_text(
        text.replace("wait = 0.05", "wait = -1").replace("publish = 0.0", "publish = -1.0")
    )
    assert [one.what for one in found(folder) if one.state == "broken"] == ["settings", "settings"]
    (folder / "news.toml").write_text(text)
    assert ("settings", "broken") in states(found(folder, paths=[folder / "news.toml"] * 2))


def test_a_clock_that_stands_before_the_log_is_told(folder):
    with SqliteStore(folder / "data" / "news.sqlite", readonly=True) as store:
        last = [one.time / SECOND for one in store.read()][-1]
    assert [one.sentence for one in found(folder, now=last - 3_600.0) if one.state == "soon"] == [
        "the system's clock is 3600 s behind the last record: times go on from that one"
    ]
    assert states(found(folder, now=last)) == FINE


@pytest.mark.parametrize(("free", "state"), [(50, "broken"), (500, "soon"), (5_000, "fine")])
def test_a_disk_that_is_nearly_full_is_told(folder, monkeypatch, free, state):
    usage = shutil.disk_usage(folder)
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: usage._replace(free=free * 10**6))
    assert [one.state for one in examine(folder / "data", quick=True) if one.what == "disk"] == [state]


def test_a_folder_that_cannot_be_written_or_is_none_is_broken(folder, monkeypatch):
    assert ("folder", "broken") in states(examine(folder / "news.toml", quick=True))
    monkeypatch.setattr(doctor.os, "access", lambda *_: False)
    assert ("folder", "broken") in states(found(folder))


def test_the_command_ends_with_0_or_1_and_says_lines_or_json(folder, capsys):
    def ended(*options):
        with pytest.raises(SystemExit) as end:
            main(["doctor", "--data", str(folder / "data"), *options, str(folder / "news.toml")])
        return end.value.code, capsys.readouterr().out.splitlines()

    code, lines = ended()
    assert (code, {line.split()[0] for line in lines} <= {"fine", "soon"}) == (0, True)
    (folder / "data" / "news.sqlite").write_bytes(b"no database")
    code, lines = ended("--json")
    assert code == 1
    assert "broken" in {Finding(**json.loads(line)).state for line in lines}
