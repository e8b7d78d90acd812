"""Disk full, files read-only: the real errors, told in a sentence, and nothing is lost."""

import importlib
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from onepass.log import Outcome
from onepass.log.group_commit import GroupCommit
from onepass.log.memory import MemoryStore
from onepass.log.sqlite import SqliteStore
from onepass.log.store import StoreError, row_from_record

FILLING = """
import os, resource, sys
from onepass.log import Outcome
from onepass.log.parquet import ParquetStore
from onepass.log.sqlite import SqliteStore
from onepass.log.store import StoreError

MOST = 300_000  # bytes of a file
folder, nobody = sys.argv[1], 65534

def outcome(number, size=0):
    return Outcome(loop="a", time=number, id=f"{number}", value=1.0, extra={"noise": os.urandom(size).hex()})

def refused(call):
    try:
        call()
    except StoreError as error:
        return str(error)

def filled(store):
    stored, told = 0, None
    while told is None:
        batch = [outcome(stored, 2_000) for _ in range(5 + stored)]
        told = refused(lambda: store.append(batch))
        stored += len(batch) if told is None else 0
    print(told)
    assert store.last == stored == len(list(store.read())) > 0 and list(store.check()) == []
    return stored

stores = [SqliteStore(folder + "/log"), ParquetStore(folder + "/parts")]
resource.setrlimit(resource.RLIMIT_FSIZE, (MOST, resource.RLIM_INFINITY))
stored = [filled(store) for store in stores]
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
for store, last in zip(stores, stored):
    assert store.append([outcome(last)] * 50) == list(range(last + 1, last + 51))  # there is room again
    assert list(store.check()) == []
    store.close()
if os.geteuid() == 0:
    os.setgid(nobody)
    os.setuid(nobody)
else:
    for path, mode in (("/parts", 0o555), ("/log", 0o444), ("", 0o555)):
        os.chmod(folder + path, mode)
print(refused(lambda: SqliteStore(folder + "/log").append([outcome(0)])))
store = ParquetStore(folder + "/parts")
assert len(list(store.read())) == stored[1] + 50
print(refused(lambda: store.append([outcome(0)])))
"""


def test_files_that_may_not_grow_or_are_others_refuse_in_a_sentence_and_lose_nothing():
    """RLIMIT_FSIZE, then no right to write: the operating system refuses."""
    with tempfile.TemporaryDirectory() as folder:  # tmp_path is nobody's to look into
        Path(folder).chmod(0o755)
        command = [sys.executable, "-c", FILLING, folder]
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        Path(folder).chmod(0o755)
    whole = "nothing of it was stored, all that was is still there"
    wanted = (("disk I/O error", whole), ("File too large", whole), ("readonly|unable to open",), ("denied", whole))
    assert len(told) == len(wanted)
    for line, parts in zip(told, wanted, strict=True):
        assert all(re.search(part, line) for part in parts), line


def outcomes(*values):
    return [Outcome(loop="a", time=1, id=f"{value}", value=value, extra={"x": "y" * 1_000}) for value in values]


def test_a_database_that_is_full_refuses_and_goes_on_when_there_is_room(tmp_path):
    store = SqliteStore(tmp_path / "log")
    store.append(outcomes(1.0))
    with store.transaction() as connection:
        (pages,) = connection.query("pragma page_count")[0]
        connection.query(f"pragma max_page_count = {pages + 3}")
    with pytest.raises(StoreError, match="database or disk is full; nothing of it was stored, all that was is still"):
        store.append(outcomes(*range(2, 100)))
    assert store.append(outcomes(2.0)) == [2]
    assert list(store.check()) == []
    store.close()


def test_a_store_that_is_opened_for_reading_reads_and_refuses_to_write(tmp_path):
    with SqliteStore(tmp_path / "log") as writer:
        writer.append(outcomes(1.0))
        with SqliteStore(tmp_path / "log", readonly=True) as store:
            assert [one.value for one in store.read()] == [1.0]
            for write in (lambda: store.append(outcomes(2.0)), lambda: store.forget("x"), lambda: store.drop_before(2)):
                with pytest.raises(StoreError, match="open for reading only; nothing of it was stored"):
                    write()
        assert writer.append(outcomes(2.0)) == [2]


def test_a_failed_commit_fails_for_all_who_waited_for_it_and_for_nobody_else():
    """Groups: every batch of the group gets the error, the next one is stored."""
    store = MemoryStore()

    def write(rows):
        if any(row.event == "bad" for row in rows):
            raise StoreError("no room")
        return store.put(rows)

    groups = GroupCommit(write)
    good = [row_from_record(one) for one in outcomes(1.0)]
    with pytest.raises(StoreError, match="no room"):
        groups.append([good[0]._replace(event="bad")])
    assert groups.append(good) == [1]


@pytest.mark.parametrize(
    ("package", "module", "extra"),
    [
        ("msgspec", "onepass.log.records", "onepass.log needs msgspec: pip install onepass[log]"),
        ("polars", "onepass.log.parquet", "ParquetStore needs polars: pip install onepass[log]"),
        ("psycopg", "onepass.log.postgres", "PostgresStore needs psycopg: pip install onepass[postgres]"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(package, module, extra, monkeypatch):
    monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModuleNotFoundError, match=re.escape(extra)):
        importlib.import_module(module)
