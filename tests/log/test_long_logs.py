"""Long logs: whole checkpoints cut them into pieces, which are verified one by one, in parallel, and once for ever."""

import hashlib
import itertools
import json
import sqlite3
from contextlib import closing
from functools import partial

import numpy as np
import pytest
from msgspec.structs import replace

import onepass as op
from counts import repetitions
from lagging_games import lagging_game
from onepass import cli
from onepass.log.archive import move
from onepass.log.memory import MemoryStore
from onepass.log.open_store import open_store
from onepass.log.parallel import verify_all
from onepass.log.parquet import ParquetStore
from onepass.log.pieces import find_pieces, merge_pieces, read_checkpoint, sum_results, verify_piece
from onepass.log.replay import Fold, bandit_from_checkpoint
from onepass.log.sqlite import SqliteStore
from onepass.log.store import StoreError, place_row, record_from_row, row_from_record
from onepass.log.verification import DAMAGED, verify
from onepass.service.loop import Loop
from onepass.service.messages import DecideRequest, OutcomeRequest
from onepass.service.settings import make_bandit, parse_settings
from patience import until, wait_until_learned

MODEL = {"recipe": "OFUL", "seed": 2, "arguments": {"model": "disjoint", "reg": 0.5,
                                  "exploration": {"kind": "Thompson", "exploration": 0.4, "draws": 5}}}  # fmt: skip


def rules(whole=20, **more):
    return parse_settings({
        "name": "news", "features": {"context": 3}, "arms": ["a", "b", "c"], "model": MODEL, "reward": {"wait": 0.02},
        "operation": {"publish": 0.0, "whole": whole}, **more,
    })  # fmt: skip


def played(loop, begin, end):
    for t in range(begin, end):
        context = np.random.default_rng(t).standard_normal(3).tolist()
        record = loop.decide(DecideRequest(context=context, id=f"{t}")).result()
        if t % 2:
            loop.outcomes([OutcomeRequest(id=record.id, value=float(record.places[0] == t % 3), key="k")])[1].result()
    wait_until_learned(loop)


@pytest.fixture
def started(tmp_path):
    loops = []

    def start(settings, store):
        loops.append(Loop(settings, store, tmp_path / "models"))
        return loops[-1]

    yield start
    for loop in loops:
        if loop.writer.is_alive():
            loop.stop()


def wholes(store):
    return [one for one in store.read(kinds=["checkpoint"]) if one.data is not None]


def test_a_service_makes_whole_checkpoints_by_joins_and_goes_on_counting_after_a_restart(started, monkeypatch):
    monkeypatch.setattr("onepass.service.whole_checkpoints.SPARSE", 0)
    store = MemoryStore()
    for life in range(4):
        loop = started(rules(whole=40), store)
        played(loop, 25 * life, 25 * (life + 1))
        loop.stop()
    found = wholes(store)
    joins = [one.seq for one in store.read(kinds=["join"])]
    between = [sum(one.through < place <= other.through for place in joins) for one, other in itertools.pairwise(found)]
    assert len(between) == 2
    assert all(40 <= one < 40 + 25 for one in between)  # a batch holds the joins of one life at most
    for one in found:
        fold = Fold(store, "news", make_bandit(rules()))
        fold.advance(one.through)
        assert op.to_bytes(fold.bandit) == one.data
    result = verify(Fold.resume(store, "news", first=True))
    assert (result.ok, result.equal) == (True, 100)


def test_a_large_model_waits_for_twenty_times_its_bytes_of_other_records(started, monkeypatch):
    monkeypatch.setattr("onepass.service.whole_checkpoints.SPARSE", 2)
    store = MemoryStore()
    for life in range(2):
        loop = started(rules(whole=1), store)
        played(loop, 60 * life, 60 * (life + 1))
        loop.stop()
    first, *found = wholes(store)
    sizes = {row.seq: len(row.body) for row in store.rows(0, None, None, None)}
    assert found
    last = first
    for one in found:
        others = sum(size for seq, size in sizes.items() if last.seq < seq < one.seq)
        assert others >= 2 * len(one.data)
        last = one


def test_no_whole_checkpoints_are_made_where_settings_say_never_and_others_are_refused(started, monkeypatch):
    monkeypatch.setattr("onepass.service.whole_checkpoints.SPARSE", 0)
    store = MemoryStore()
    loop = started(rules(whole=0), store)
    played(loop, 0, 40)
    loop.stop()
    assert len(wholes(store)) == 1
    for wrong in (-1, 1_000_000_001):
        with pytest.raises(ValueError, match=r"operation\.whole must be from 1 to 1,000,000,000 joins, or 0 for never"):
            rules(whole=wrong)


def in_pieces(store, loop, line=0):
    return sum_results(verify_piece(store, piece).found for piece in find_pieces(store, loop, line))


@pytest.mark.parametrize("seed", range(repetitions(12, 300)))
@pytest.mark.parametrize("kind", ["in order of models", "out of order", "too late", "without places"])
def test_pieces_find_together_what_one_pass_finds(monkeypatch, seed, kind):
    monkeypatch.setattr("onepass.log.verification.WINDOW", 6)
    store = MemoryStore()
    lag, late, placed = 3 if kind == "out of order" else 1, 0.2 * (kind == "too late"), kind != "without places"
    lagging_game(store, seed, 150, lag=lag, late=late, placed=placed, forgetting=not late)
    whole = verify(Fold.resume(store, "game", first=True))
    pieces = find_pieces(store, "game")
    assert in_pieces(store, "game") == whole
    assert whole.wrong == 0
    assert whole.others == ()
    assert whole.ok or kind in ("out of order", "too late")
    middle = len(pieces) // 2
    halves = [merge_pieces(each) for each in (pieces[:middle], pieces[middle:]) if each]
    assert sum_results(verify_piece(store, piece).found for piece in halves) == whole


def changed(store, seq, change):
    """A log whose record at a place is another, with the checksum of what it says."""
    forged = MemoryStore()
    rows = [*store.rows(0, None, None, None)]
    record = change(record_from_row(rows[seq - 1]))
    forged.put([*rows[: seq - 1], place_row(row_from_record(record), seq), *rows[seq:]])
    return forged


def more_likely(record):
    first, *rest = record.probabilities
    return replace(record, probabilities=[first + 1e-12, *rest])


def dearer(record):
    return replace(record, rewards=[record.rewards[0] + 1e-9, *record.rewards[1:]])


def wrong_pieces(store):
    found = [verify_piece(store, piece) for piece in find_pieces(store, "game")]
    return [place for place, one in enumerate(found) if not one.found.ok]


@pytest.fixture(scope="module")
def game():
    store = MemoryStore()
    lagging_game(store, 5, 200, lag=1, forgetting=False)
    return store


def test_a_probability_that_was_changed_is_found_in_the_piece_of_its_model(game):
    pieces = find_pieces(game, "game")
    decisions = [*game.read(kinds=["decision"])]
    for one in decisions[::25]:
        place = max(place for place, piece in enumerate(pieces) if piece.begin <= one.through)
        assert wrong_pieces(changed(game, one.seq, more_likely)) == [place]


def test_a_reward_that_was_changed_is_found_in_the_piece_that_learned_it_and_no_later_one(game):
    pieces = find_pieces(game, "game")
    joins = [*game.read(kinds=["join"])]
    assert wrong_pieces(game) == []
    for one in joins[5::25]:
        place = max(place for place, piece in enumerate(pieces) if piece.begin < one.seq)
        assert wrong_pieces(changed(game, one.seq, dearer)) == [place]


def test_a_model_that_was_changed_is_found_by_the_piece_that_ends_with_it(game):
    pieces = find_pieces(game, "game")
    model = bandit_from_checkpoint(read_checkpoint(game, pieces[2].seq))
    model.learn(model.decide(np.ones((4, 3)), [f"arm {i}" for i in range(4)]), 1.0)
    data = op.to_bytes(model)
    digest = hashlib.sha256(data).hexdigest()
    forged = changed(game, pieces[2].seq, lambda one: replace(one, data=data, digest=digest))
    assert wrong_pieces(forged)[0] == 1
    assert not verify_all(forged.open_view, workers=1).ok
    torn = changed(game, pieces[2].seq, lambda one: replace(one, data=data))
    assert wrong_pieces(torn) == [2]
    assert verify_piece(torn, pieces[2]).found.left == {DAMAGED: 1}


def filed(store, path):
    with SqliteStore(path, synced=False) as file:
        file.put([*store.rows(0, None, None, None)])
    return partial(open_store, str(path), readonly=True)


def test_several_processes_find_what_one_finds_whatever_the_store_and_from_a_place_on(tmp_path, game):
    access = filed(game, tmp_path / "log.sqlite")
    whole = verify(Fold.resume(game, "game", first=True))
    one = verify_all(access)
    assert one.loops == {"game": {0: whole}}
    assert one.ok
    assert verify_all(access, workers=2) == one
    pieces = find_pieces(game, "game")
    middle = pieces[len(pieces) // 2]
    later = verify_all(access, workers=2, since=middle.begin + 1).loops["game"][0]
    assert later == sum_results(verify_piece(game, piece).found for piece in pieces[len(pieces) // 2 :])
    assert 0 < later.decisions < whole.decisions
    with access() as store, ParquetStore(tmp_path / "months") as months:
        months.put([*store.rows(0, middle.begin + 20, None, None)])
        months.put([*store.rows(middle.begin + 20, None, None, None)])
        # decisions that waited where a piece begins are found by one walk, not by one each
        walks, about = [], months.rows_about
        months.rows_about = lambda loop, event: walks.append(event) or about(loop, event)
        assert verify_piece(months, middle).found == verify_piece(game, middle).found
        corrected = {one.id for one in game.read(middle.begin, middle.end, ["join"]) if one.how == "correction"}
        assert {*walks} <= corrected
    assert verify_all(partial(open_store, str(tmp_path / "months")), workers=2).loops == one.loops
    for workers in (0, 65):
        with pytest.raises(ValueError, match="workers"):
            verify_all(access, workers=workers)


def test_damage_is_found_by_several_processes_and_then_nothing_is_decided(tmp_path, game):
    access = filed(game, tmp_path / "log.sqlite")
    with closing(sqlite3.connect(tmp_path / "log.sqlite")) as file:
        file.execute("delete from record where seq = 77")
        file.commit()
    found = verify_all(access, workers=2)
    assert ([one.seq for one in found.damages], found.loops, found.ok) == ([77], {}, False)


def sealed_log(tmp_path, game, parts):
    """A log of several sealed files and a live one, as a command line names it."""
    live = SqliteStore(tmp_path / "log.sqlite", synced=False)
    live.put([*game.rows(0, None, None, None)])
    with ParquetStore(tmp_path / "months") as months:
        for last in parts:
            move(live, months, last)
    live.close()
    return f"{tmp_path / 'months'}+{tmp_path / 'log.sqlite'}"


def test_sealed_months_are_verified_once_until_their_bytes_change(tmp_path, game, monkeypatch):
    monkeypatch.setattr("onepass.log.verification.WINDOW", 6)
    pieces = find_pieces(game, "game")
    place = sealed_log(tmp_path, game, [pieces[len(pieces) // 3].end, pieces[2 * len(pieces) // 3].end])
    access = partial(open_store, place, readonly=True)
    whole = verify(Fold.resume(game, "game", first=True))
    first = verify_all(access)
    assert (first.loops["game"][0], first.earlier) == (whole, 0)
    second = verify_all(access)
    assert second.loops == first.loops
    assert whole.decisions / 2 < second.earlier < whole.decisions
    assert verify_all(access, again=True) == first
    assert verify_all(access, workers=2) == second
    # more is sealed: the rest is verified once, too
    with open_store(place) as log:
        move(log.live, log.archive, log.last - 5)
    verify_all(access)
    third = verify_all(access)
    assert (third.loops, third.earlier > second.earlier) == (first.loops, True)
    # a file that was changed is not trusted, nor is what follows it
    victim = sorted((tmp_path / "months").glob("*.parquet"))[1]
    with ParquetStore(tmp_path / "months") as months:
        segment = months.segments[1]
        rows = [*months.rows(segment.first - 1, segment.last, None, None)]
        at, one = next((at, record_from_row(row)) for at, row in enumerate(rows) if row.kind == "decision")
        rows[at] = place_row(row_from_record(more_likely(one)), one.seq)
        victim.unlink()
        months._write(segment.first, segment.last, rows)
    forged = verify_all(access)
    assert (forged.ok, forged.loops["game"][0].wrong) == (False, 1)
    assert 0 < forged.earlier < third.earlier


def test_the_command_takes_a_place_or_a_day_and_says_what_was_verified_earlier(tmp_path, game, capsys, monkeypatch):
    monkeypatch.setattr("onepass.log.verification.WINDOW", 6)
    middle = find_pieces(game, "game")[4].end
    place = sealed_log(tmp_path, game, [middle])

    def command(*arguments):
        with pytest.raises(SystemExit) as done:
            cli.main(["log", "verify", place, *arguments])
        said = capsys.readouterr()
        return int(done.value.code or 0), said.out, said.err

    code, out, _ = command("--json")
    found = json.loads(out)
    assert (code, found["ok"], "decisions verified earlier" in found) == (0, True, False)
    code, out, _ = command("--json")
    again = json.loads(out)
    assert again["loops"] == found["loops"]
    assert 0 < again["decisions verified earlier"] < again["loops"]["game"]["decisions"]
    assert "decisions verified earlier" not in json.loads(command("--all", "--json")[1])
    assert "decisions verified earlier: " in command("--workers", "2")[1]
    later = json.loads(command("--since", f"{middle}", "--json")[1])
    assert 0 < later["loops"]["game"]["decisions"] < again["loops"]["game"]["decisions"]
    assert json.loads(command("--since", "1970-01-01", "--all", "--json")[1])["loops"] == found["loops"]
    assert command("--since", "soon")[0] == 2
    assert (
        "--since must be a sequence number of the log, or a date such as 2026-11-01, got soon"
        in command("--since", "soon")[2]
    )


def test_a_whole_checkpoint_that_could_not_be_stored_is_made_again(started, monkeypatch):
    monkeypatch.setattr("onepass.service.whole_checkpoints.SPARSE", 0)
    store = MemoryStore()
    loop = started(rules(whole=40), store)
    played(loop, 0, 30)
    failing = [True]
    put = loop.put

    def fail(settings, *checkpoints):
        if failing[0]:
            raise StoreError("the disk is full")
        put(settings, *checkpoints)

    monkeypatch.setattr(loop, "put", fail)
    played(loop, 30, 60)
    until(lambda: loop.learner.failure is not None)
    failing[0] = False
    loop.learner.run_after_learning(loop.learner.save_checkpoint).result()
    assert [one.through for one in wholes(store)][1:] == [loop.learner.through]
    assert loop.learner.fold.joins == 0
