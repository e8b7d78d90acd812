"""`onepass log`: verify, import, export, replay on the command line; sealed months; stores by their places."""

import json
from datetime import UTC, datetime

import msgspec
import pytest

import onepass as op
from log_games import bandit, play_game
from onepass import cli
from onepass.log import Join, Outcome, encode, micros
from onepass.log.archive import seal
from onepass.log.import_export import events_from_store, export_file, import_file
from onepass.log.memory import MemoryStore
from onepass.log.open_store import open_store
from onepass.log.parquet import ParquetStore
from onepass.log.replay import Fold
from onepass.log.sqlite import SqliteStore
from onepass.log.store import StoreError
from onepass.log.verification import FOREIGN, verify

ROUNDS = 26


@pytest.fixture
def game(tmp_path, monkeypatch):
    """A folder with the log of a game, the model that it began with, and the model at its end."""
    monkeypatch.chdir(tmp_path)
    bandit().save("begin")
    with SqliteStore("log") as store:
        fold = Fold(store, "game", bandit())
        store.append([fold.checkpoint(0)])
        play_game(store, ROUNDS, fold=fold, checkpoints=True)
        fold.bandit.save("end")
    return tmp_path


def onepass(capsys, *arguments):
    """Exit code, and what `onepass ARGUMENTS --json` says."""
    with pytest.raises(SystemExit) as done:
        cli.main([*arguments, "--json"])
    said = capsys.readouterr()
    return int(done.value.code or 0), json.loads(said.out) if said.out else said.err


def test_a_log_is_verified_from_its_first_checkpoint_or_from_a_model(game, capsys):
    for model in ([], ["--model", "begin"]):
        code, found = onepass(capsys, "log", "verify", "log", *model)
        assert (code, found["ok"], found["damages"]) == (0, True, [])
        told = found["loops"]["game"]
        assert (told["decisions"], told["equal"], told["others"]) == (ROUNDS, ROUNDS, [])
        assert told["checkpoints"] == 3
    bandit("disjoint", reg=0.6).save("other")
    code, found = onepass(capsys, "log", "verify", "log", "--model", "other")
    assert (code, found["ok"], found["loops"]["game"]["others"]) == (1, False, [1, 40, 77])
    code, said = onepass(capsys, "log", "verify", "log", "--model", "end")
    assert (code, said) == (2, "onepass: decision '0' has had its reward; pass allow_repeat=True to learn another\n")


def test_a_missing_file_makes_no_store_and_an_unknown_loop_no_file(game, capsys):
    for name in ("new.sqlite", "new.jsonl"):
        code, said = onepass(capsys, "log", "import", name, "missing.jsonl")
        assert (code, said) == (2, "onepass: there is no file missing.jsonl\n")
        assert not (game / name).exists()
    code, said = onepass(capsys, "log", "export", "log", "all.jsonl", "--loop", "nosuch")
    assert (code, said) == (2, "onepass: --loop must name a loop of the log, got nosuch\n")
    assert not (game / "all.jsonl").exists()


def test_export_and_import_keep_every_place_and_bit(game, capsys):
    assert onepass(capsys, "log", "export", "log", "all.jsonl.gz")[0] == 0
    with SqliteStore("log") as store:
        assert onepass(capsys, "log", "export", "log", "all.jsonl")[1]["written"] == len(store)
    for place in ("again", "all.jsonl"):
        if place == "again":
            code, found = onepass(capsys, "log", "import", place, "all.jsonl.gz")
            assert (code, found["counts"]["decision"], found["bad"]) == (0, ROUNDS, [])
        with open_store("log") as one, open_store(place, readonly=True) as other:
            assert list(map(encode, one.read())) == list(map(encode, other.read()))
        assert onepass(capsys, "log", "verify", place)[1]["loops"]["game"]["equal"] == ROUNDS
    counts = onepass(capsys, "log", "import", "again", "all.jsonl")[1]["counts"]
    with open_store("again", readonly=True) as store, open_store("log", readonly=True) as first:
        assert counts["known"] == len(first) - 3  # outcomes without a request, too
        assert len(store) == len(first)
    assert counts["left out"] == 3


def test_records_of_another_log_are_learned_and_not_repeated(game):
    first, other = MemoryStore(), MemoryStore()
    fold = Fold(first, "game", bandit("disjoint", reg=0.6))
    first.append([fold.checkpoint(0)])
    play_game(first, ROUNDS, fold=fold, checkpoints=True)
    for one in first.read(kinds=["decision", "outcome", "join"]):
        other.append([msgspec.structs.replace(one, seq=0, id=f"other {one.id}")])
    export_file(other, "other.jsonl")
    with SqliteStore("log") as store:
        for number in range(2):
            counts = import_file(store, "other.jsonl")
            assert counts["known" if number else "decision"] >= ROUNDS
            assert counts["join" if number else "known"] == 0
        fold = Fold.resume(store, "game")
        assert fold.advance() > 0
        play_game(store, 2 * ROUNDS, fold=fold, begin=ROUNDS, checkpoints=True)
        found = verify(Fold.resume(store, "game", first=True))
        assert found.ok
        assert (found.equal, found.left) == (2 * ROUNDS, {FOREIGN: ROUNDS})


def test_replay_saves_the_model_of_the_end(game, capsys):
    for number, options in enumerate([[], ["--model", "begin"], ["--loop", "game"]]):
        code, found = onepass(capsys, "log", "replay", "log", "--out", f"model {number}", *options)
        with SqliteStore("log") as store:
            assert (code, found["through"]) == (0, store.last)
        assert op.to_bytes(op.load(f"model {number}")) == op.to_bytes(op.load("end"))


def test_what_cannot_be_done_is_said_in_a_sentence_with_code_2(game, capsys):
    (game / "bad.jsonl").write_bytes(b'{"kind":"outcome","loop":"a","time":1,"id":"1","value":1.0}\nnonsense\n')
    assert onepass(capsys, "log", "import", "new", "bad.jsonl") == (
        2,
        "onepass: bad.jsonl, line 2: this is no record of a log: JSON is malformed: invalid character (byte 4)\n",
    )
    assert onepass(capsys, "log", "import", "newer", "bad.jsonl", "--skip")[1]["bad"][0][0] == 2
    for wrong in (
        ["verify", "missing"],
        ["export", "log", "file.unknown"],
        ["replay", "log", "--out", "x", "--loop", "none"],
        ["import", "log", "missing.jsonl"],
    ):
        code, said = onepass(capsys, "log", *wrong)
        assert code == 2
        assert said.startswith("onepass: ")
    code, found = onepass(capsys, "log", "verify", "log", "--loop", "none")
    assert (code, found["loops"]["none"]["reason"]) == (
        1,
        "loop 'none' has no checkpoint with its model: give the bandit it began with",
    )


def test_a_damaged_log_has_code_1(game, capsys):
    import sqlite3

    with sqlite3.connect("log") as connection:
        connection.execute("update record set crc = 0 where seq = 9")
    connection.close()
    code, found = onepass(capsys, "log", "verify", "log")
    assert (code, found["ok"], [damage["seq"] for damage in found["damages"]]) == (1, False, [9])


def test_events_go_out_in_a_foreign_format_and_come_back(game):
    with SqliteStore("log") as store, MemoryStore() as copy:
        export_file(store, "events.dsjson")
        counts = import_file(copy, "events.dsjson", loop="game")
        assert counts["decision"] == ROUNDS
        assert [one.id for one in copy.read(kinds=["decision"])] == [f"{t}" for t in range(ROUNDS)]


def test_an_event_has_its_outcomes_or_else_the_rewards_of_its_join():
    store = MemoryStore()
    play_game(store, 4)
    store.append([Join(loop="game", time=0, id="3", rewards=[0.5, None])])
    assert [one.value for one in next(events_from_store(store)).outcomes] == [1.0]
    store.forget("user 0")
    assert [event.decision.id for event in events_from_store(store)] == ["1", "2", "3"]
    bare = MemoryStore()
    bare.append([one for one in store.read() if not isinstance(one, Outcome)])
    assert [(one.value, one.slot) for one in list(events_from_store(bare))[-1].outcomes] == [(0.5, 0)]


def dated(*days):
    return [Outcome(loop="a", time=micros(datetime(2026, *day, tzinfo=UTC)), id="1", value=1.0) for day in days]


def test_sealed_months_leave_the_store_when_the_archive_has_them(tmp_path):
    days = [(8, 3), (8, 30), (9, 1), (8, 31), (9, 2), (10, 1), (11, 5)]
    with SqliteStore(tmp_path / "log") as store, ParquetStore(tmp_path / "archive") as archive:
        store.append(dated((7, 1)))
        store.drop_before(2)
        store.append(dated(*days))
        whole = list(map(encode, store.read()))
        assert seal(store, archive, datetime(2026, 8, 1, tzinfo=UTC)) == []
        assert seal(store, archive, datetime(2026, 10, 1, tzinfo=UTC)) == [("2026-08", 2), ("2026-09", 3)]
        assert (archive.first, archive.last, store.first, store.last) == (2, 6, 7, 8)
        assert len(list((tmp_path / "archive").glob("*.parquet"))) == 3  # one that says where it begins
        assert [*map(encode, archive.read()), *map(encode, store.read())] == whole
        assert [*archive.check(), *store.check()] == []


def test_sealing_goes_on_where_it_was_killed_and_refuses_an_archive_that_has_something_else(tmp_path):
    with SqliteStore(tmp_path / "log") as store, ParquetStore(tmp_path / "archive") as archive:
        store.append(dated((8, 3), (8, 30), (9, 1)))
        archive.put(list(store.rows(0, 2, None, None)))  # killed before anything was deleted
        assert seal(store, archive, datetime(2026, 9, 1, tzinfo=UTC)) == [("2026-08", 2)]
        archive.append(dated((9, 3)))
        with pytest.raises(StoreError, match="otherwise than the store; nothing was deleted"):
            seal(store, archive, datetime(2026, 10, 1, tzinfo=UTC))
        assert len(store) == 1
        with pytest.raises(StoreError, match="record 3 cannot follow record 3"):
            archive.put(list(store.rows(0, 3, None, None)))
