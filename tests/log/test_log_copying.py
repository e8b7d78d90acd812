"""SQLite's write-ahead log is copied beside the writer: commits go on, it stays short, nothing is lost."""

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from onepass.log import Outcome
from onepass.log import wal_checkpointer as cp
from onepass.log.sqlite import SqliteStore
from patience import until

BATCH = 20
SOME = 400  # batches, as many as copies take where the copier is not kept waiting


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Pieces so small that a test of a second has many."""
    monkeypatch.setattr(cp, "PIECE", 200)
    monkeypatch.setattr(cp, "WHOLE", 400)


def copiers():
    return {one for one in threading.enumerate() if one.name == cp.NAME}


def batch(number):
    return [Outcome(loop="news", time=number, id=f"{number}.{part}", value=float(part)) for part in range(BATCH)]


def append_until(store, holds):
    """Append batches until `holds()` is true, and return their places; where that takes long, with pauses, in which the
    copier gets a processor and the lock of the writer."""
    seqs = []

    def step():
        if holds():
            return True
        seqs.extend(store.append(batch(store.last)))
        return False

    for _ in range(SOME):
        if step():
            return seqs
    until(step)
    return seqs


def begun(path):
    """How often the write-ahead log has begun again at its start, as its header says; 0 where it never did."""
    return int.from_bytes(Path(f"{path}-wal").read_bytes()[12:16], "big")


def test_a_log_is_copied_while_others_commit_and_begins_again_at_its_start(tmp_path):
    path = tmp_path / "log"
    with SqliteStore(path) as store:
        empty = path.stat().st_size
        seqs = append_until(store, lambda: begun(path) >= 2)
        assert store.checkpointer.trouble == ""
        assert path.stat().st_size > empty  # the file, which only copies write
        assert seqs == [*range(1, len(seqs) + 1)]
        assert [one.seq for one in store.read()] == seqs
        assert [*store.check()] == []


def test_a_commit_does_not_wait_for_a_copy(tmp_path):
    """While a copy is held up, as by a disk that takes seconds, batches are acknowledged and can be read."""
    path = tmp_path / "log"
    with SqliteStore(path) as store:
        with store.checkpointer.pause():
            for number in range(100):
                store.append(batch(number))
            assert (store.checkpointer.copies, store.last) == (0, 100 * BATCH)
            with SqliteStore(path, readonly=True) as reader:
                assert reader.last == 100 * BATCH
        until(lambda: store.checkpointer.copies > 0)


def test_what_was_committed_during_a_copy_is_in_the_file_when_the_log_is_taken_away(tmp_path):
    """The file alone, without the log, has all records up to a place, and is whole; the log has the others."""
    path = tmp_path / "log"
    with SqliteStore(path) as store:
        ended = threading.Event()
        threads = [threading.Thread(target=appended, args=(store, who, ended)) for who in range(3)]
        for one in threads:
            one.start()
        until(lambda: store.checkpointer.copies > 3)
        ended.set()
        for one in threads:
            one.join()
        last = store.last
    assert not Path(f"{path}-wal").exists()  # whoever closes last copies the rest
    with SqliteStore(path) as store:
        assert [one.seq for one in store.read()] == [*range(1, last + 1)]
        assert [*store.check()] == []


def appended(store, who, ended):
    number = 0
    while not ended.is_set():
        store.append(batch(10**6 * who + number))
        number += 1


def test_a_reader_that_stays_holds_up_the_log_but_no_commits(tmp_path):
    path = tmp_path / "log"
    with SqliteStore(path) as store:
        store.append(batch(0))
        with closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute("begin")
            assert reader.execute("select count(*) from record").fetchone() == (BATCH,)
            append_until(store, lambda: store.checkpointer.copies >= 3)
            assert reader.execute("select count(*) from record").fetchone() == (BATCH,)
            assert begun(path) == 0
            reader.execute("commit")
        append_until(store, lambda: begun(path) > 0)
        assert [one.seq for one in store.read()] == [*range(1, store.last + 1)]
        assert [*store.check()] == []


def test_forgetting_while_it_is_copied_takes_the_bytes_away(tmp_path):
    path = tmp_path / "log"
    with SqliteStore(path) as store:
        ended = threading.Event()
        thread = threading.Thread(target=appended, args=(store, 1, ended))
        thread.start()
        for number in range(5):
            subject = f"somebody {number} to be forgotten"
            store.append([Outcome(loop="news", time=1, id=f"of {number}", value=1.0, subject=subject)])
            assert store.forget(subject) == 1
        ended.set()
        thread.join()
        assert [*store.check()] == []
    assert b"to be forgotten" not in path.read_bytes()


def test_a_store_can_be_closed_at_any_moment_and_leaves_no_thread(tmp_path):
    before = copiers()
    for count in range(0, 60, 8):
        with SqliteStore(tmp_path / f"{count}") as store:
            for number in range(count):
                store.append(batch(number))
        assert not Path(f"{tmp_path / str(count)}-wal").exists()
    assert copiers() <= before


def test_the_thread_ends_when_nothing_comes_and_another_takes_its_place(tmp_path, monkeypatch):
    monkeypatch.setattr(cp, "IDLE", 0.01)
    before = copiers()
    with SqliteStore(tmp_path / "log") as store:
        for life in range(1, 4):
            for number in range(20):
                store.append(batch(100 * life + number))
            until(lambda life=life: store.checkpointer.copies >= life)
            until(lambda: copiers() <= before)
        assert len(store) == 60 * BATCH
