"""Driver that forks writers on a store and kills them, and with PostgreSQL the server, too.

    python log_killing.py FOLDER KILLS LONGEST     KILLS writers on SQLite, then on PostgreSQL, there KILLS servers too

One process forks the others, so that they need not import again. Each goes on with the game of log_games, while two
threads append batches of their own and report which were acknowledged. They append refused batches again.
"""

import json
import os
import signal
import sys
import threading
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np

import onepass as op
from log_games import bandit, play_game, resume_game
from onepass.log import Outcome, wal_checkpointer
from onepass.log.memory import MemoryStore
from onepass.log.postgres import PostgresStore
from onepass.log.replay import Fold
from onepass.log.sqlite import SqliteStore
from onepass.log.store import StoreError
from onepass.log.verification import verify
from postgres_server import unsynced

SIZE = 5  # records of a batch
WRITERS = 2
PAUSE = 0.01  # seconds before a refused batch is appended again
FOREVER = 10**9  # rounds
wal_checkpointer.PIECE, wal_checkpointer.WHOLE = 200, 400  # pages: so small that every life copies its log many times


def retry(act):
    """Repeat a call until the store does it, since a killed server is started again."""
    while True:
        try:
            return act()
        except StoreError:
            time.sleep(PAUSE)


def noise(store, pipe, life, who):
    number = 0
    while True:
        name = f"{life}.{who}.{number}"
        batch = [
            Outcome(loop="noise", time=part, id=name, request=f"{name}.{part}", value=part) for part in range(SIZE)
        ]
        seqs = retry(lambda batch=batch: store.append(batch))
        os.write(pipe, json.dumps([name, seqs]).encode() + b"\n")
        number += 1


def live(opened, pipe, life):
    """Write until the process is killed."""
    try:
        store = retry(opened)
        for who in range(WRITERS):
            threading.Thread(target=noise, args=(store, pipe, life, who)).start()
        retry(lambda: resume_game(store, FOREVER))
    except BaseException as error:
        os.write(2, repr(error).encode())
    finally:
        os._exit(1)


def run_life(opened, server, life, longest, rng):
    """Start a writer, kill it, and return the lines it wrote, each a name and sequence numbers.

    A server is killed, too, before the writer or with it.
    """
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        live(opened, theirs, life)
    os.close(theirs)
    told = os.read(ours, 1 << 16)
    time.sleep(rng.uniform(0.0, longest))
    if server is not None:
        server.kill()
        if rng.random() < 0.5:
            server.start("fsync=off")
            time.sleep(rng.uniform(0.0, longest))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if server is not None and server.process.poll() is not None:
        server.start("fsync=off")
    while more := os.read(ours, 1 << 16):
        told += more
    os.close(ours)
    return told.splitlines()


def find_losses(store, told):
    """Return acknowledged batches that are lost, incomplete or stored twice, and damage."""
    wrong = [f"{damage}" for damage in store.check()]
    for line in told:
        name, seqs = json.loads(line)
        if [one.seq for one in store.find("noise", name)] != seqs:
            wrong.append(f"lost: {name}")
    parts = {}
    for one in store.read(kinds=["outcome"], loop="noise"):
        parts.setdefault(one.id, []).append((one.seq, one.value))
    for name, found in parts.items():
        if found != [(found[0][0] + part, float(part)) for part in range(SIZE)]:
            wrong.append(f"half there, or twice: {name}")
    return wrong


def compare_game(store):
    """Return differences of the game from an uninterrupted one, and its number of rounds."""
    wrong = []
    rounds = sum(1 for _ in store.read(kinds=["decision"], loop="game")) + 3
    ours, twin = resume_game(store, rounds), play_game(MemoryStore(), rounds)
    if op.to_bytes(ours.bandit) != op.to_bytes(twin.bandit):
        wrong.append("the game is another")
    again = Fold(store, "game", bandit())
    again.advance()
    if op.to_bytes(again.bandit) != op.to_bytes(twin.bandit):
        wrong.append("replay from nothing is another")
    found = verify(Fold(store, "game", bandit()))
    if not found.ok or found.equal != rounds:
        wrong.append(f"verify: {found}")
    return wrong, rounds


def suite(opened, server, kills, longest):
    """Return the errors by life, the number of acknowledged batches, and the rounds of the game."""
    rng, wrong, acknowledged = np.random.default_rng(0), [], 0
    for life in range(kills):
        told = run_life(opened, server, life, longest, rng)
        acknowledged += len(told)
        with opened() as store:
            wrong += [[life, one] for one in find_losses(store, told)]
    with opened() as store:
        found, rounds = compare_game(store)
    return {"wrong": wrong + [[kills, one] for one in found], "acknowledged": acknowledged, "rounds": rounds}


def main(folder, kills, longest):
    memory = MemoryStore()
    play_game(memory, 15, checkpoints=True)
    resume_game(memory, 18)  # all is compiled that a life needs
    found = {}
    for name, serving in (("sqlite", nullcontext()), ("postgresql", unsynced())):
        with serving as server:
            place = folder / "log" if server is None else server.conninfo
            kind = SqliteStore if server is None else PostgresStore
            found[name] = suite(lambda kind=kind, place=place: kind(place), server, kills, longest)
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
