"""A store in a real PostgreSQL: the contract, the order of those who write at once, and what breaks in between."""

import threading
import time
from itertools import count

import psycopg
import pytest

from counts import repetitions
from onepass.log import Decision, Outcome
from onepass.log.postgres import PostgresStore
from onepass.log.store import StoreError
from onepass.testing import check_store
from patience import until
from postgres_server import unsynced

STEPS = repetitions(12, 1_000)
WRITERS, BATCHES = repetitions(3, 8), repetitions(10, 300)
KILLS = repetitions(1, 20)


@pytest.fixture(scope="module")
def server():
    with unsynced() as server:
        yield server


@pytest.fixture
def store(server):
    with psycopg.connect(server.conninfo) as connection:
        connection.execute("drop schema if exists onepass cascade")
    connection.close()
    with PostgresStore(server.conninfo) as store:
        yield store


def outcomes(*values):
    return [Outcome(loop="a", time=1, id=f"{value}", value=value) for value in values]


def reopened(server):
    def again(store):
        store.close()
        return PostgresStore(server.conninfo, schema=store.schema)

    return again


def test_a_store_of_postgresql_keeps_the_contract(server):
    numbers = count()
    check_store(lambda: PostgresStore(server.conninfo, schema=f"test {next(numbers)}"), reopened(server), STEPS)


def test_no_reader_passes_by_a_place_that_is_committed_later(server, store):
    """Writers with connections of their own, some of which wait inside their transaction or roll it back: who reads
    behind them sees 1, 2, 3, ... at every moment."""
    stores, done, seen = [PostgresStore(server.conninfo) for _ in range(WRITERS)], threading.Event(), []

    def write(who):
        for batch in range(BATCHES):
            stores[who].append(outcomes(*[1000.0 * who + batch] * (1 + batch % 3)))

    def read():
        while True:
            over = done.is_set()
            seen.extend(one.seq for one in store.read(since=seen[-1] if seen else 0))
            assert seen == list(range(1, len(seen) + 1))
            if over:
                return

    def roll_back():
        with psycopg.connect(server.conninfo, autocommit=True) as connection:
            while not done.is_set():
                connection.execute("begin")
                connection.execute("select value from onepass.mark where name = 'last' for update")
                connection.execute("update onepass.mark set value = value + 5 where name = 'last'")
                connection.execute("select pg_sleep(0.002)")
                connection.execute("rollback")
        connection.close()

    writers = [threading.Thread(target=write, args=(who,)) for who in range(WRITERS)]
    others = [threading.Thread(target=read), threading.Thread(target=roll_back)]
    for thread in writers + others:
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    for thread in others:
        thread.join()
    assert len(seen) == WRITERS * sum(1 + batch % 3 for batch in range(BATCHES))
    for one in stores:
        one.close()


def terminated(server):
    """End all other connections, as an administrator does."""
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        connection.execute(
            "select pg_terminate_backend(pid, 240000) from pg_stat_activity "
            "where pid <> pg_backend_pid() and backend_type = 'client backend'"
        )
    connection.close()


def test_a_connection_that_broke_while_idle_is_made_again(server, store):
    assert store.append(outcomes(1.0)) == [1]
    terminated(server)
    assert store.append(outcomes(2.0)) == [2]
    terminated(server)
    assert [one.value for one in store.read()] == [1.0, 2.0]


def test_a_database_that_is_read_only_refuses_clearly_and_loses_nothing(server, store):
    store.append(outcomes(1.0))
    for reads in ("on", "off"):
        with psycopg.connect(server.conninfo) as connection:
            connection.execute("set transaction read write")
            connection.execute(f"alter database postgres set default_transaction_read_only = {reads}")
        connection.close()
        terminated(server)
        if reads == "on":
            with pytest.raises(StoreError, match="read-only transaction; nothing of it was stored"):
                store.append(outcomes(2.0))
            assert [one.value for one in store.read()] == [1.0]
    assert store.append(outcomes(3.0)) == [2]


def test_a_server_that_is_not_there_is_named(tmp_path):
    with pytest.raises(StoreError, match="PostgreSQL: connection"):
        PostgresStore(f"host={tmp_path} user=postgres connect_timeout=1")


def test_kills_of_the_server_lose_nothing_that_was_acknowledged(server, store):
    """A thread appends decisions, each again until it is acknowledged, while the server is killed and started again."""
    done, places = threading.Event(), {}

    def write():
        for number in count():
            if done.is_set():
                return
            record = [Decision(loop="a", time=number, id=f"{number}", places=[0])]
            while number not in places:  # also the last one, which may be stored although nobody was told
                try:
                    places[number] = store.append(record)[0]
                except StoreError:
                    time.sleep(0.01)

    writer = threading.Thread(target=write)
    writer.start()
    for kill in range(KILLS):
        done.wait(0.05 + 0.05 * kill)
        server.kill()
        server.start("fsync=off")
    before = len(places)
    until(lambda: len(places) > before)
    done.set()
    writer.join()
    assert sorted(places.values()) == list(range(1, len(places) + 1))
    assert all(one.seq == places[int(one.id)] for one in store.read())
    assert (store.last, list(store.check())) == (len(places), [])
