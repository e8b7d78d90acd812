"""Every store keeps the contract (`onepass.testing.check_store`), and tells damage where there is some."""

import os
import sqlite3
from itertools import count

import polars as pl
import pytest

from counts import repetitions
from onepass.log import Decision, Outcome
from onepass.log.memory import MemoryStore
from onepass.log.parquet import ParquetStore
from onepass.log.sqlite import SqliteStore
from onepass.log.store import StoreError
from onepass.testing import check_store

STEPS, FILES = repetitions(25, 2_000), repetitions(25, 300)  # random calls; of Parquet, which writes a file for each


@pytest.fixture
def places(tmp_path):
    numbers = count()
    return lambda: tmp_path / f"store{next(numbers)}"


def reopened(kind, attribute):
    def again(store):
        store.close()
        return kind(getattr(store, attribute))

    return again


def test_a_store_in_memory_keeps_the_contract():
    assert "keeps the contract: order and bits, idempotent appends" in check_store(MemoryStore, n_calls=STEPS)


def test_a_store_of_sqlite_keeps_the_contract(places):
    check_store(lambda: SqliteStore(places()), reopened(SqliteStore, "path"), STEPS)


def test_a_store_of_parquet_files_keeps_the_contract(places):
    check_store(lambda: ParquetStore(places()), reopened(ParquetStore, "folder"), FILES)


def outcomes(*values):
    return [Outcome(loop="a", time=1, id=f"{value}", value=value) for value in values]


def altered(path, statement, *values):
    with sqlite3.connect(path) as connection:
        connection.execute(statement, values)
    connection.close()


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        (
            "update record set body = cast(replace(cast(body as text), '2.0', '3.0') as blob) where seq = 2",
            "record 2 is damaged",
        ),
        ("update record set crc = crc + 1 where seq = 2", "record 2 is damaged"),
        ("update record set event = 'x' where seq = 2", "what is searched by is not what record 2 says: event"),
        ("update record set time = 0 where seq = 2", "what is searched by is not what record 2 says: time"),
        ("delete from record where seq = 2", "records 2 to 2 are missing"),
        ("delete from record where seq = 3", "records 3 to 3 are missing"),
        ("update record set seq = 9 where seq = 3", "records 3 to 8 are missing"),
    ],
)
def test_a_walk_finds_what_was_altered(tmp_path, statement, told):
    with SqliteStore(tmp_path / "log") as store:
        store.append(outcomes(1.0, 2.0, 3.0))
    altered(tmp_path / "log", statement)
    with SqliteStore(tmp_path / "log") as store:
        damages = list(store.check())
        assert any(told in damage.reason for damage in damages)
        assert damages[0].seq == int(statement[-1])
        if "is damaged" in told:
            with pytest.raises(StoreError, match="record 2 is damaged"):
                list(store.read())


def test_a_walk_finds_every_flipped_byte_of_a_record_in_its_file(tmp_path):
    path = tmp_path / "log"
    with SqliteStore(path) as store:
        store.append(outcomes(*range(40)))
    with sqlite3.connect(path) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
    connection.close()
    whole, at = path.read_bytes(), path.read_bytes().find(b'"value":7.0')
    assert at > 0
    for place in range(at - 20, at + 11):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with SqliteStore(path) as store:
            assert list(store.check()) != []


def test_parquet_tells_a_damaged_file_and_reads_the_others(tmp_path):
    with ParquetStore(tmp_path) as store:
        store.append(outcomes(1.0, 2.0))
        store.append(outcomes(3.0))
        (first, second) = sorted(tmp_path.iterdir())
        data = first.read_bytes()
        first.write_bytes(data[:-5])
        assert next(store.check()).seq == 1
        with pytest.raises(StoreError):
            list(store.read())
        assert [one.value for one in store.read(since=2)] == [3.0]
        first.write_bytes(data)
        frame = pl.read_parquet(second).with_columns(body=pl.lit(b"{}"))
        frame.write_parquet(second)
        assert ["record 3 is damaged" in damage.reason for damage in store.check()] == [True]


def test_forgotten_bytes_are_in_no_file(tmp_path):
    store = SqliteStore(tmp_path / "log")
    for number in range(50):
        who = f"whisper{number % 2}"
        note = {"note": f"{who} " * 700}  # more than a page
        store.append([Decision(loop="a", time=1, id=f"secret{number}", places=[0], subject=who, extra=note)])
    assert any(b"whisper1" in path.read_bytes() for path in tmp_path.iterdir())
    assert store.forget("whisper1") == 25
    assert not any(b"whisper1" in path.read_bytes() for path in tmp_path.iterdir())
    assert any(b"whisper0" in path.read_bytes() for path in tmp_path.iterdir())
    store.close()


def test_a_file_that_is_no_store_is_refused(tmp_path):
    (tmp_path / "text").write_text("no database" * 1000)
    with pytest.raises(StoreError, match="not a database"):
        SqliteStore(tmp_path / "text")
    with pytest.raises(StoreError, match="unable to open"):
        SqliteStore(tmp_path / "missing", readonly=True)
    with SqliteStore(tmp_path / "later") as store:
        store.append(outcomes(1.0))
    altered(tmp_path / "later", "update mark set value = 2 where name = 'form'")
    with pytest.raises(StoreError, match="has form 2, this onepass knows form 1; upgrade onepass"):
        SqliteStore(tmp_path / "later")


def test_two_processes_that_open_one_file_share_its_order(tmp_path):
    first, second = SqliteStore(tmp_path / "log"), SqliteStore(tmp_path / "log")
    assert first.append(outcomes(1.0)) + second.append(outcomes(2.0)) + first.append(outcomes(3.0)) == [1, 2, 3]
    assert [one.value for one in second.read()] == [1.0, 2.0, 3.0]
    first.close()
    second.close()
    assert os.listdir(tmp_path) == ["log"]
