"""An archive of Parquet files and a live store are one log to whoever reads, checks, replays, exports, evaluates,
forgets and drops."""

import json

import numpy as np
import pytest

import onepass as op
from counts import repetitions
from log_games import bandit, play_game
from onepass.cli import main
from onepass.evaluation.files import evaluate_file
from onepass.log import Outcome, encode
from onepass.log.archive import move
from onepass.log.archive_view import JoinedStore
from onepass.log.import_export import export_file
from onepass.log.memory import MemoryStore
from onepass.log.open_store import open_store
from onepass.log.parquet import ParquetStore
from onepass.log.replay import Fold
from onepass.log.sqlite import SqliteStore
from onepass.log.store import StoreError
from onepass.log.verification import verify
from onepass.testing import check_store

ROUNDS = 40


def sealed(joined, part, killed=False):
    """A part of the live store moves to the archive; killed: before it is deleted from the live one."""
    archive, live = joined.archive, joined.live
    if archive.last >= live.first:
        move(live, archive, archive.last)  # what was killed goes on
    end = live.first - 1 + int(len(live) * part)
    move(live if not killed else Kept(live), archive, end)
    return JoinedStore(archive, live)


class Kept:
    """A store whose records stay when they are deleted: the process was killed before."""

    def __init__(self, store):
        self.first, self.rows = store.first, store.rows

    def drop_before(self, place):
        pass


def sealing(rng):
    return lambda joined: sealed(joined, rng.uniform(), killed=bool(rng.integers(2)))


def test_a_joined_log_keeps_the_contract_of_a_store_wherever_it_was_sealed():
    rng = np.random.default_rng(0)
    check_store(lambda: JoinedStore(MemoryStore(), MemoryStore()), sealing(rng), repetitions(60, 2_000))


@pytest.fixture
def joined(tmp_path):
    """A game in SQLite whose first half was sealed."""
    with SqliteStore(tmp_path / "log") as live:
        play_game(live, ROUNDS, checkpoints=True)
        sealed(JoinedStore(ParquetStore(tmp_path / "archive"), live), 0.5)
    with open_store(f"{tmp_path / 'archive'}+{tmp_path / 'log'}") as store:
        yield store


@pytest.fixture(scope="module")
def whole():
    store = MemoryStore()
    play_game(store, ROUNDS, checkpoints=True)
    return store


def test_reading_searching_and_checking_a_joined_log_is_that_of_the_whole(joined, whole):
    assert isinstance(joined, JoinedStore)
    assert (joined.first, joined.last, len(joined)) == (1, whole.last, len(whole))
    middle = joined.archive.last
    assert 1 < middle < joined.last == joined.live.last
    for since, until, kinds in ((0, None, None), (middle - 3, middle + 3, None), (middle, None, ["join"]), (5, 9, [])):
        wanted = list(map(encode, whole.read(since, until, kinds)))
        assert list(map(encode, joined.read(since, until, kinds))) == wanted
    for t in range(ROUNDS):
        assert list(map(encode, joined.find("game", f"{t}"))) == list(map(encode, whole.find("game", f"{t}")))
    assert list(joined.check()) == []
    with joined.open_view() as view:
        assert [one.seq for one in view.read()] == list(range(1, len(whole) + 1))


def test_who_reads_while_months_are_sealed_misses_nothing():
    joined = JoinedStore(MemoryStore(), MemoryStore())
    joined.append([Outcome(loop="a", time=1, id=f"{place}", value=1.0) for place in range(2_500)])
    found, read = [], joined.read()
    for end in (700, 1_500, 2_300):
        found += [next(read).seq for _ in range(400)]
        move(joined.live, joined.archive, end)
    assert [*found, *(one.seq for one in read)] == list(range(1, 2_501))


def test_damage_and_gaps_of_a_joined_log_are_told(joined):
    joined.live.drop_before(joined.archive.last + 3)
    (damage,) = joined.check()
    assert damage.seq == joined.archive.last + 1
    assert "are missing" in damage.reason


def test_replay_and_verification_go_over_the_seam(joined, whole):
    ours, theirs = Fold(joined, "game", bandit()), Fold(whole, "game", bandit())
    assert ours.advance() == theirs.advance() > 20
    assert op.to_bytes(ours.bandit) == op.to_bytes(theirs.bandit)
    found = verify(Fold(joined, "game", bandit()))
    assert (found.ok, found.equal, found.checkpoints) == (True, ROUNDS, 3)


def test_exports_and_evaluations_of_a_joined_log_are_those_of_the_whole(joined, whole, tmp_path):
    place = f"{tmp_path / 'archive'}+{tmp_path / 'log'}"
    for ending in ("jsonl", "dsjson"):
        assert export_file(joined, tmp_path / f"a.{ending}") == export_file(whole, tmp_path / f"b.{ending}")
        assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()
    options = {"reward_range": (-10.0, 10.0), "loop": "game"}
    ours, theirs = (
        evaluate_file(log, ["logged", "uniform"], **options)["uniform"].to_dict()
        for log in (place, tmp_path / "b.jsonl")
    )
    assert ours == theirs
    assert ours["rows"] > 30


def test_a_subject_is_forgotten_on_both_sides_of_the_seam(joined):
    seam = joined.archive.last
    named = {one.id for one in joined.read(kinds=["decision"]) if one.subject == "user 3"}
    about = {one.seq for id in named for one in joined.find("game", id)}
    assert joined.archive.rows_about("game", "3")
    joined.append([Outcome(loop="game", time=1, id="3", value=1.0, request="late")])  # names nobody
    assert joined.forget("user 3") == len(about) + 1
    assert min(about) <= seam < max(about)
    gone = {one.seq for one in joined.read(kinds=["forgotten"])}
    assert gone == {*about, joined.last}
    assert joined.forget("user 3") == 0
    assert list(joined.check()) == []


def test_what_is_dropped_is_dropped_on_both_sides_and_what_is_sent_again_is_known(joined):
    assert joined.append([next(iter(joined.read(kinds=["decision"])))]) == [1]  # in the archive
    seam, last = joined.archive.last, joined.last
    assert joined.drop_before(3) == 2
    assert (joined.first, joined.live.first) == (3, seam + 1)
    assert joined.drop_before(seam + 5) == seam + 2
    assert (joined.first, joined.last) == (seam + 5, last)
    assert next(joined.read()).seq == seam + 5
    assert list(joined.check()) == []


def test_the_command_line_names_both(joined, tmp_path, capsys):
    joined.close()
    with pytest.raises(SystemExit) as end:
        main(["log", "verify", f"{tmp_path / 'archive'}+{tmp_path / 'log'}", "--loop", "game", "--json"])
    assert end.value.code == 0
    assert json.loads(capsys.readouterr().out)["records"] > 2 * ROUNDS
    with pytest.raises(StoreError, match="there is no store"):
        open_store(f"{tmp_path / 'archive'}+{tmp_path / 'nothing'}", readonly=True)
