"""Starts after models changed, were given up, restored or lost: the service goes on, or says what is missing."""

import json
import re
import shlex
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

import onepass as op
from onepass import cli
from onepass.log import micros
from onepass.log.memory import MemoryStore
from onepass.log.records import Settings
from onepass.log.sqlite import SqliteStore
from onepass.service import checkpoints
from onepass.service.doctor import examine
from onepass.service.messages import DecideRequest, OutcomeRequest
from onepass.service.responses import decision_answer
from onepass.service.settings import parse_settings, read_file
from patience import HeldClock, let_deadlines_pass, until
from service_process import RunningService, loops_in, write_settings

HOSTING = Path(__file__).parents[2] / "docs" / "hosting.md"


def rules(reg=0.5, **more):
    explores = {"kind": "Thompson", "exploration": 0.4, "draws": 5}
    arguments = {"model": "disjoint", "reg": reg, "exploration": explores}
    return parse_settings({
        "name": "news", "features": {"context": 3}, "arms": ["a", "b", "c"], "reward": {"wait": 0.02},
        "model": {"recipe": "OFUL", "seed": 2, "arguments": arguments},
        "operation": {"publish": 0.0, "checkpoint": 1e6},  # tests make checkpoints themselves, however long they take
        **more,
    })  # fmt: skip


def played(loop, begin, end):
    for t in range(begin, end):
        loop.clock.forward(0.006)
        context = np.random.default_rng(t).standard_normal(3).tolist()
        decision_answer(loop.decide(DecideRequest(context=context, id=f"{t}")).result())
        loop.outcomes([OutcomeRequest(id=f"{t}", value=float(t % 2), key="k")])[1].result()
    let_deadlines_pass(loop)


def took_over(loop, line):
    until(lambda: loop.learner.copies.present.line == line)


def caught_up(loop):
    until(lambda: loop.building is not None and loop.building.ready)


def checkpointed(loop):
    loop.learner.run_after_learning(lambda: loop.learner.save_checkpoint(always=True)).result()


def kept_of(loop, line):
    return [one for one in checkpoints.list_checkpoints(loop.folder, loop.store, "news") if one.line == line]


@pytest.fixture
def started(tmp_path):
    """Loops that end with their test."""
    with loops_in(tmp_path, HeldClock()) as start:
        yield start


# ---- the documented unit ----


def unit_commands(data, settings):
    """The commands of the documented systemd unit, in their order, for other places."""
    lines = re.findall(r"^ExecStart(?:Pre)?=(.*)$", HOSTING.read_text(), re.M)
    assert [line.split()[1] for line in lines] == ["doctor", "serve"]
    places = {"/opt/onepass/bin/onepass": None, "/var/lib/onepass": str(data), "/etc/onepass/news.toml": str(settings)}
    assert all(place in line for place in places for line in lines)
    return [[places.get(word, word) for word in shlex.split(line)][1:] for line in lines]


def onepass(capsys, *arguments):
    """Exit code, and what `onepass ARGUMENTS` prints."""
    with pytest.raises(SystemExit) as done:
        cli.main([*map(str, arguments)])
    return int(done.value.code or 0), capsys.readouterr().out


class Unit:
    """A service started as the unit starts it: the doctor first, then the service, on any port."""

    def __init__(self, capsys, data, settings):
        self.commands, self.capsys = unit_commands(data, settings), capsys
        assert self.commands[1] == ["serve", "--data", str(data), "--port", "8080", str(settings)]
        self.examine()
        self.served = RunningService(data, settings)

    def examine(self):
        code, said = onepass(self.capsys, *self.commands[0])
        assert (code, "broken" in said) == (0, False), said

    def ask(self, method, path="", **body):
        found = self.served.client.request(method, f"/v1/news{path}", **({"json": body} if body else {}))
        assert found.is_success, found.text
        return found.json() if found.content else None

    def play(self, begin, end):
        for t in range(begin, end):
            context = np.random.default_rng(t).standard_normal(3).tolist()
            self.ask("POST", "/decide", context=context, arms=["a", "b"], id=f"{t}")
            self.ask("POST", "/outcome", id=f"{t}", value=1.0, key="k")
        self.served.ready()

    def serving(self, line):
        until(lambda: self.ask("GET")["model_number"] == line, pause=0.05)
        self.examine()

    def stop(self):
        assert self.served.stop() == 0
        self.examine()


def test_the_documented_unit_starts_again_after_a_promotion_a_rollback_and_a_restore(tmp_path, capsys):
    settings, data = write_settings(tmp_path, wait=0.05), tmp_path / "data"
    unit = Unit(capsys, data, settings)
    unit.play(0, 10)
    present = unit.ask("GET")["settings"]
    present["model"]["arguments"]["reg"] = 2.0
    unit.ask("PUT", **present)
    unit.serving(1)
    unit.play(10, 20)
    unit.stop()
    with SqliteStore(data / "news.sqlite") as store:
        store.backup(tmp_path / "copy")

    unit = Unit(capsys, data, settings)  # after a promotion
    assert unit.ask("GET")["model_number"] == 1
    (before,) = [one for one in unit.ask("GET", "/models")["checkpoints"] if one["model_number"] == 0][:1]
    assert before["rounds"] == 10
    unit.ask("POST", "/rollback", checkpoint=before["name"])
    unit.serving(2)
    unit.play(20, 25)
    unit.stop()

    for left in data.glob("news.sqlite*"):
        left.unlink()
    shutil.copyfile(tmp_path / "copy", data / "news.sqlite")
    unit = Unit(capsys, data, settings)  # after a rollback, and a restore: what was saved since is of another log
    assert unit.ask("GET")["model_number"] == 1
    unit.play(20, 30)
    unit.stop()
    code, found = onepass(capsys, "log", "verify", data / "news.sqlite", "--json")
    assert (code, json.loads(found)["ok"]) == (0, True)


def found_by_doctor(loop):
    """What the doctor says about the checkpoints of a loop that has been stopped."""
    copy = loop.folder.parent / "looked at"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(loop.folder, copy / "news.models")
    with SqliteStore(copy / "news.sqlite") as store:
        store.begin(loop.store.first)
        store.put(list(loop.store.rows(0, None, None, None)))
    return [(one.state, one.sentence) for one in examine(copy, quick=True) if one.what == "checkpoint"]


# ---- checkpoints that stay ----


def test_the_checkpoints_of_the_model_that_serves_stay_whatever_candidates_come_and_go(started):
    """Six candidates, given up, and a restart from the checkpoint alone."""
    store = MemoryStore()
    loop = started(rules(mode="canary"), store)
    played(loop, 0, 5)
    for number in range(1, 7):
        loop.change_settings(rules(reg=1.0 + number, mode="canary"))
        caught_up(loop)
        played(loop, 5 * number, 5 * number + 5)
        checkpointed(loop)
        assert kept_of(loop, 0), number
        loop.discard_candidate()
    checkpointed(loop)
    assert len(kept_of(loop, 0)) == checkpoints.KEPT
    assert {one.line for one in checkpoints.list_checkpoints(loop.folder, store, "news")} == {0, 3, 4, 5, 6}
    loop.stop()
    store.drop_before(checkpoints.last_droppable(loop.folder, store, "news") + 1)
    assert store.first > 100
    assert found_by_doctor(loop)[0][0] == "fine"
    again = started(rules(mode="canary"), store)
    assert op.to_bytes(again.learner.fold.bandit) == op.to_bytes(loop.learner.fold.bandit)
    played(again, 35, 40)


def test_models_that_have_served_outlast_those_that_never_did(started):
    loop = started(rules(), MemoryStore())
    played(loop, 0, 5)
    for line in range(1, 7):
        loop.change_settings(rules(reg=1.0 + line))
        took_over(loop, line)
        played(loop, 5 * line, 5 * line + 5)
    loop.change_settings(rules(reg=7.0, mode="canary"))
    for line in range(7, 13):
        loop.change_settings(rules(reg=1.0 + line, mode="canary"))
        caught_up(loop)
        checkpointed(loop)
        loop.discard_candidate()
    checkpointed(loop)
    kept = {one.line for one in checkpoints.list_checkpoints(loop.folder, loop.store, "news")}
    assert kept == {6} | {2, 3, 4, 5} | {9, 10, 11, 12}


def test_checkpoints_of_a_log_that_was_restored_are_kept_and_those_of_the_log_before_are_not(started):
    """The folder has checkpoints of later places than the restored log's: they count for nothing."""
    store = MemoryStore()
    loop = started(rules(), store)
    played(loop, 0, 10)
    checkpointed(loop)
    copy = [row._replace() for row in store.rows(0, None, None, None)]
    played(loop, 10, 60)
    for end in (70, 80, 90):
        played(loop, end - 10, end)
        checkpointed(loop)
    loop.stop()
    restored = MemoryStore()
    restored.put(copy)
    loop = started(rules(), restored)
    for t in (100, 110, 120):
        played(loop, t, t + 5)
        checkpointed(loop)
    loop.stop()
    assert len(kept_of(loop, 0)) == checkpoints.KEPT
    assert len(list(loop.folder.glob("*.json"))) == checkpoints.KEPT
    restored.drop_before(checkpoints.last_droppable(loop.folder, restored, "news") + 1)
    again = started(rules(), restored)
    assert op.to_bytes(again.learner.fold.bandit) == op.to_bytes(loop.learner.fold.bandit)
    assert again.learner.fold.bandit.n_learned == 25


def test_a_model_that_was_replaced_before_its_first_checkpoint_can_be_gone_back_to(started):
    loop = started(rules(), MemoryStore())
    played(loop, 0, 10)
    assert kept_of(loop, 0) == []
    before = op.to_bytes(loop.learner.fold.bandit)
    loop.change_settings(rules(reg=2.0))
    took_over(loop, 1)
    played(loop, 10, 17)  # after its last checkpoint, of its takeover
    late = op.to_bytes(loop.learner.fold.bandit)
    (first,) = kept_of(loop, 0)
    loop.rollback(first.name)
    took_over(loop, 2)
    assert op.to_bytes(loop.learner.fold.bandit) == before
    last = kept_of(loop, 1)[0]
    assert last.rounds == 17
    loop.rollback(last.name)
    took_over(loop, 3)
    assert op.to_bytes(loop.learner.fold.bandit) == late


# ---- what cannot go ----


def aged(path, days):
    """A loop's log and checkpoints as if everything had happened so many days ago."""

    class Aged(HeldClock):
        def __call__(self, after=None):
            if after is not None:
                return super().__call__(micros(datetime.now(UTC) - timedelta(days=days)))
            return super().__call__()

    return loops_in(path, Aged())


def test_a_log_that_no_checkpoint_covers_is_not_sealed(tmp_path, capsys):
    def seal():
        with pytest.raises(SystemExit) as done:
            cli.main([
                "log", "seal", str(tmp_path / "news.sqlite"), str(tmp_path / "archive"), "--days", "60", "--json",
            ])  # fmt: skip
        return int(done.value.code or 0), capsys.readouterr()

    with SqliteStore(tmp_path / "news.sqlite") as store, aged(tmp_path, 200) as start:
        loop = start(rules(mode="canary"), store, "news.models")
        played(loop, 0, 20)
        last = store.last
        code, said = seal()
        assert (code, store.first) == (2, 1)
        assert re.search(
            rf"loop news needs records 1 to {last} for a restart, since no usable checkpoint in .*news.models covers "
            "them: start the service with this folder and stop it, which makes one",
            said.err,
        )
        checkpointed(loop)
        played(loop, 20, 25)  # after a checkpoint, and as old as what it covers
        loop.stop()
        assert last < checkpoints.last_droppable(tmp_path / "news.models", store, "news") < store.last
    assert seal()[0] == 2
    with SqliteStore(tmp_path / "news.sqlite") as store, aged(tmp_path, 0) as start:
        played(start(rules(mode="canary"), store, "news.models"), 25, 30)
    code, said = seal()
    assert code == 0, said.err
    with SqliteStore(tmp_path / "news.sqlite") as store, loops_in(tmp_path, HeldClock()) as start:
        assert store.first > last
        loop = start(rules(mode="canary"), store, "news.models")
        assert loop.learner.fold.bandit.n_learned == 30
        played(loop, 30, 33)


def test_a_candidate_that_is_built_keeps_the_log_that_it_reads(started):
    store = MemoryStore()
    loop = started(rules(mode="canary"), store)
    played(loop, 0, 20)
    checkpointed(loop)
    assert checkpoints.last_droppable(loop.folder, store, "news") > 20
    loop.change_settings(rules(reg=2.0, mode="canary"))
    caught_up(loop)
    played(loop, 20, 25)
    assert checkpoints.last_droppable(loop.folder, store, "news") == 0
    checkpointed(loop)
    assert checkpoints.last_droppable(loop.folder, store, "news") > 50


@pytest.mark.parametrize("lost", ["the model's beginning", "every model"])
def test_a_start_that_cannot_go_on_says_what_is_missing_and_what_to_do(started, lost):
    store = MemoryStore()
    loop = started(rules(), store)
    played(loop, 0, 10)
    loop.change_settings(rules(reg=2.0))
    took_over(loop, 1)
    played(loop, 10, 15)
    loop.stop()
    places = [one.seq for one in store.read(kinds=["checkpoint"])]
    store.drop_before({"the model's beginning": places[1], "every model": places[2] + 1}[lost])
    shutil.rmtree(loop.folder)
    loop.folder.mkdir()
    missing = "model 1 cannot be restored" if lost == "the model's beginning" else "cannot go on"
    with pytest.raises(ValueError, match=rf"loop news.*{missing}.*no whole checkpoint.* begins with record.*put the"):
        started(rules(), store)
    ((state, sentence),) = found_by_doctor(loop)
    assert state == "broken"
    assert missing in sentence


def test_a_candidate_that_cannot_be_restored_ends_and_the_loop_goes_on(started):
    store = MemoryStore()
    loop = started(rules(mode="canary"), store)
    played(loop, 0, 10)
    loop.change_settings(rules(reg=2.0, mode="canary"))
    caught_up(loop)
    played(loop, 10, 15)
    loop.stop()
    for file in loop.folder.glob("*-1.*"):
        file.unlink()
    store.drop_before(20)
    loop = started(rules(mode="canary"), store)
    assert loop.building is None
    assert "model 1 cannot be restored" in loop.loop_state.lines.each[1].why
    played(loop, 15, 20)
    assert loop.learner.fold.bandit.n_learned == 20


def test_settings_that_an_earlier_version_logged_are_refused_in_one_sentence_with_both_versions(tmp_path, capsys):
    """The log holds an argument of version 0.2.0, `parameters`, which is `model` now."""
    path, place = write_settings(tmp_path), tmp_path / "data" / "news.sqlite"
    place.parent.mkdir()
    content, _ = read_file(path)
    logged = content.to_dict()
    logged["model"]["arguments"]["parameters"] = "disjoint"
    with SqliteStore(place) as store:
        store.append([Settings(loop="news", time=0, settings={"from": "file", "loop": logged}, version="1")])
    with pytest.raises(SystemExit, match="2"):
        cli.main(["serve", str(path), "--data", str(place.parent), "--port", "0"])
    (sentence,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("onepass: ")]
    assert "written by onepass 0.2.0 or earlier" in sentence
    assert f"onepass {op.__version__} does not take them: model.arguments has 'parameters'" in sentence
