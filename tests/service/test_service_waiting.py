"""Decisions that wait outside of memory: read again when their time has come, whole after every restart, and small."""

import resource
import time
import tracemalloc

import numpy as np
import pytest

from counts import LONG, repetitions
from onepass.log import Decision
from onepass.log.memory import MemoryStore
from onepass.log.replay import Fold
from onepass.log.sqlite import SqliteStore
from onepass.log.verification import verify
from onepass.service import checkpoints
from onepass.service.backlog import ENDING, Backlog
from onepass.service.join import Joiner
from onepass.service.messages import DecideRequest, OutcomeRequest
from onepass.service.pending_decision import DUE
from onepass.service.settings import parse_settings
from patience import HeldClock, let_deadlines_pass
from service_process import loops_in

SECOND = 1_000_000
DAY = 86_400.0


def rules(wait=100.0, **reward):
    return parse_settings({
        "name": "news", "features": {"context": 3}, "arms": ["a", "b", "c"], "reward": {"wait": wait, **reward},
        "model": {"recipe": "OFUL", "seed": 2, "arguments": {"model": "disjoint"}}, "operation": {"publish": 0.0},
    })  # fmt: skip


@pytest.fixture
def started(tmp_path, monkeypatch):
    """Loops that hold at most eight decisions in memory, and end with their test."""
    for name, value in (("HELD", 8), ("PARKED", 4), ("RECALLED", 5)):
        monkeypatch.setattr(f"onepass.service.join.{name}", value)
    stores = []
    with loops_in(tmp_path, HeldClock()) as start:

        def open_and_start(settings):
            stores.append(SqliteStore(tmp_path / "news.sqlite", synced=False))
            return start(settings, stores[-1])

        yield open_and_start
    for store in stores:
        store.close()


def decided(loop, begin, end, **more):
    for t in range(begin, end):
        loop.clock.forward(0.001)
        context = np.random.default_rng(t).standard_normal(3).tolist()
        loop.decide(DecideRequest(context=context, id=f"{t}", **more)).result()


def paid(loop, begin, end, key="k"):
    loop.clock.forward(0.001)
    loop.outcomes([OutcomeRequest(id=f"{t}", value=t / 1000, key=key) for t in range(begin, end)])[1].result()


def checkpointed(loop):
    loop.learner.run_after_learning(lambda: loop.learner.save_checkpoint(always=True)).result()


def joins_of(loop):
    return {one.id: one for one in loop.store.read(kinds=["join"], loop="news") if not one.again}


def test_a_backlog_gives_rows_in_the_order_of_their_deadlines_and_the_first_place_of_those_that_wait():
    rng, backlog, rows = np.random.default_rng(0), Backlog(), []
    for _ in range(40):
        block = [tuple(map(int, row)) for row in rng.integers(0, 1000, (rng.integers(0, 9), 3))]
        backlog.add(block)
        rows += block
        for _ in range(rng.integers(0, 6)):
            if rows:
                assert (len(backlog), backlog.first()) == (len(rows), min(row[2] for row in rows))
                found = backlog.pop()
                assert found[0] == min(row[0] for row in rows)
                rows.remove(found)
    assert len(backlog) == len(rows)


@pytest.mark.parametrize("restart", [False, True], ids=["without", "with a restart"])
def test_what_waits_in_the_backlog_is_joined_in_order_with_all_its_outcomes(started, restart):
    loop = started(rules())
    decided(loop, 0, 30)
    decided(loop, 30, 34, defer=True)
    paid(loop, 0, 20)
    loop.activate("31").result()
    if restart:
        checkpointed(loop)
        loop.stop()
        loop = started(rules())
    assert loop.numbers()["waiting"] == 34
    paid(loop, 10, 32, "late key")
    loop.clock.forward(101.0)
    paid(loop, 25, 28, "too late")
    let_deadlines_pass(loop)
    joins = joins_of(loop)
    assert [*map(int, joins)] == [*range(30), 31]
    for t, join in ((int(id), join) for id, join in joins.items()):
        assert join.rewards == [t / 1000] if 0 <= t < 32 else [0.0]
        assert join.count == (t < 20) + (10 <= t < 32)
    assert loop.joiner.counts["late"] == 3
    assert loop.numbers()["waiting"] == 0
    fold = Fold.resume(loop.store, "news", first=True)
    assert verify(fold).ok


def test_a_restart_reads_the_files_of_what_waits_and_no_record_before_the_checkpoint(started, monkeypatch):
    loop = started(rules())
    decided(loop, 0, 60)
    checkpointed(loop)
    known = max(one.known for one in checkpoints.list_checkpoints(loop.folder, loop.store, "news"))
    decided(loop, 60, 63)
    loop.stop()
    read, rows = [], SqliteStore.rows

    def noted(store, since, until, kinds, loop):
        for row in rows(store, since, until, kinds, loop):
            if row.kind in ("decision", "outcome"):
                read.append(row.seq)
            yield row

    monkeypatch.setattr(SqliteStore, "rows", noted)
    loop = started(rules())
    assert min(read) >= known
    assert loop.numbers()["waiting"] == 63
    loop.clock.forward(101.0)
    let_deadlines_pass(loop)
    assert len(joins_of(loop)) == 63


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(path.read_bytes()[:-8])])
def test_files_of_what_waits_that_are_lost_or_damaged_are_read_from_the_log_instead(started, damage):
    loop = started(rules())
    decided(loop, 0, 40)
    paid(loop, 3, 9)
    checkpointed(loop)
    loop.stop()
    paths = sorted(loop.folder.glob(f"*{ENDING}"))
    assert len(paths) > 1
    damage(paths[0])
    loop = started(rules())
    assert loop.numbers()["waiting"] == 40
    loop.clock.forward(101.0)
    let_deadlines_pass(loop)
    assert {id: join.rewards[0] for id, join in joins_of(loop).items()} == {
        f"{t}": t / 1000 if 3 <= t < 9 else 0.0 for t in range(40)
    }


def test_files_of_what_no_longer_waits_are_removed(started):
    loop = started(rules())
    for turn in range(4):
        decided(loop, 30 * turn, 30 * turn + 30)
        checkpointed(loop)
        loop.clock.forward(101.0)
        let_deadlines_pass(loop)
    for turn in range(checkpoints.KEPT):
        decided(loop, 1000 + turn, 1001 + turn)
        loop.clock.forward(101.0)
        let_deadlines_pass(loop)
        checkpointed(loop)
    names = {name for one in checkpoints.list_checkpoints(loop.folder, loop.store, "news") for name, _ in one.waiting}
    assert {path.name for path in loop.folder.glob(f"*{ENDING}")} == names
    assert names == set()


def test_a_block_is_written_by_the_first_checkpoint_that_has_it_and_by_no_later_one(started):
    loop = started(rules())
    decided(loop, 0, 60)
    checkpointed(loop)
    before = {path.name: path.stat().st_ino for path in loop.folder.glob(f"*{ENDING}")}
    decided(loop, 60, 80)
    checkpointed(loop)
    after = {path.name: path.stat().st_ino for path in loop.folder.glob(f"*{ENDING}")}
    stayed = before.keys() & after.keys()
    assert len(stayed) > 8
    assert all(before[name] == after[name] for name in stayed)


def test_a_subject_in_the_backlog_is_forgotten_and_nothing_is_learned_of_it(started):
    from onepass.service.erasure import forget_subject

    loop = started(rules())
    decided(loop, 0, 10, subject="ann")
    decided(loop, 10, 30)
    paid(loop, 0, 30)
    assert forget_subject(loop, "ann").result() == 20
    loop.clock.forward(101.0)
    let_deadlines_pass(loop)
    assert [*map(int, joins_of(loop))] == [*range(10, 30)]
    assert loop.joiner.counts["forgotten"] == 10
    assert loop.numbers()["waiting"] == 0


def test_what_waits_is_joined_after_the_log_could_not_be_read_for_a_while(monkeypatch):
    for name, value in (("HELD", 8), ("PARKED", 4)):
        monkeypatch.setattr(f"onepass.service.join.{name}", value)
    store = MemoryStore()
    joiner = Joiner(rules(wait=300.0), 0, store)
    for t in range(20):
        record = Decision(loop="news", time=t, id=f"{t}", places=[0])
        (seq,) = store.append([record])
        (stored,) = store.read(seq - 1, seq)
        joiner.add_record(stored)

    def fails(*_):
        raise OSError("the disk is gone")

    later = 301 * SECOND
    with monkeypatch.context() as broken:
        broken.setattr(store, "events_at", fails, raising=False)
        assert joiner.pop_due(later) == []
    assert [int(one.id) for one in joiner.pop_due(later)] == [*range(20)]


def generated(store, count, wait):
    """A log of decisions that all wait, as the service writes it."""
    begin = HeldClock()()
    for start in range(0, count, 5000):
        store.append([
            Decision(
                loop="news", time=begin + t, id=f"{t:036d}", places=[0], propensities=[0.5], offered=["a", "b", "c"],
                contexts=[0.1, 0.2, 0.3], extra={DUE: begin + t + round(wait * SECOND), "request": "0" * 32},
            )
            for t in range(start, min(start + 5000, count))
        ])  # fmt: skip


def test_a_waiting_decision_takes_less_than_two_hundred_bytes(monkeypatch):
    monkeypatch.setattr("onepass.service.join.HELD", 1024)
    monkeypatch.setattr("onepass.service.join.PARKED", 512)
    store, count = MemoryStore(), 20_000
    generated(store, count, DAY)
    joiner = Joiner(rules(DAY), 0, store)
    tracemalloc.start()
    for record in store.read():
        joiner.add_record(record)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(joiner) == count
    assert taken < 200 * count


@pytest.mark.skipif(not LONG, reason="a log of 10^6 decisions takes minutes")
def test_a_million_waiting_decisions_take_200_mb_and_a_restart_takes_ten_seconds(tmp_path):
    count = repetitions(20_000, 1_000_000)
    with SqliteStore(tmp_path / "news.sqlite", synced=False) as store, loops_in(tmp_path, HeldClock()) as start:
        generated(store, count, DAY)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        loop = start(rules(DAY), store)
        assert loop.numbers()["waiting"] == count
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before
        checkpointed(loop)
        loop.stop()
        began = time.perf_counter()
        loop = start(rules(DAY), store)
        taken = time.perf_counter() - began
        assert loop.numbers()["waiting"] == count
    print(f"{grown:.0f} MB, restart {taken:.1f} s")
    assert grown < 200
    assert taken < 10
