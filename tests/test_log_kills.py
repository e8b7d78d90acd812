"""Kills at any moment: what was acknowledged is there, nothing is half there, the game goes on as if nothing was."""

import json
import subprocess
import sys
from pathlib import Path

from counts import many

KILLS = many(4, 300)
LONGEST = 0.2  # seconds that a process lives after its first acknowledgement

# One process forks the others, so that they need not import again. Each goes on with the game of log_games, while two
# threads append batches of their own and tell what was acknowledged.
KILLING = """
import json, os, signal, sys, threading, time
from pathlib import Path
sys.path.insert(0, sys.argv[4])
import numpy as np
import onepass as op
from log_games import bandit, resumed, played
from onepass.log import Outcome
from onepass.log.memory import MemoryStore
from onepass.log.replay import Fold
from onepass.log.sqlite import SqliteStore
from onepass.log.verifying import verify

place, kills, longest = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
rng, wrong, acknowledged, rounds = np.random.default_rng(0), [], 0, 0
memory = MemoryStore()
played(memory, 15, checkpoints=True)
resumed(memory, 18)  # all is compiled that a life needs
SIZE = 5

def noise(store, pipe, life, who):
    number = 0
    while True:
        name = f"{life}.{who}.{number}"
        seqs = store.append([Outcome(loop="noise", time=part, id=name, value=part) for part in range(SIZE)])
        os.write(pipe, json.dumps([name, seqs]).encode() + b"\\n")
        number += 1

for life in range(kills):
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        store = SqliteStore(place)
        for who in range(2):
            threading.Thread(target=noise, args=(store, theirs, life, who)).start()
        resumed(store, 10**9)
    os.close(theirs)
    told = os.read(ours, 1 << 16)
    time.sleep(rng.uniform(0.0, longest))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while more := os.read(ours, 1 << 16):
        told += more
    os.close(ours)
    with SqliteStore(place) as store:
        wrong += [[life, f"{damage}"] for damage in store.check()]
        for line in told.splitlines():
            name, seqs = json.loads(line)
            acknowledged += 1
            if [one.seq for one in store.find("noise", name)] != seqs:
                wrong.append([life, f"lost: {name}"])
        parts = {}
        for one in store.read(kinds=["outcome"], loop="noise"):
            parts.setdefault(one.id, []).append((one.seq, one.value))
        for name, found in parts.items():
            if found != [(found[0][0] + part, float(part)) for part in range(SIZE)]:
                wrong.append([life, f"half there: {name}"])

with SqliteStore(place) as store:
    rounds = sum(1 for _ in store.read(kinds=["decision"], loop="game")) + 3
    ours, twin = resumed(store, rounds), played(MemoryStore(), rounds)
    if op.to_bytes(ours.bandit) != op.to_bytes(twin.bandit):
        wrong.append([kills, "the game is another"])
    again = Fold(store, "game", bandit())
    again.advance()
    if op.to_bytes(again.bandit) != op.to_bytes(twin.bandit):
        wrong.append([kills, "replay from nothing is another"])
    found = verify(Fold(store, "game", bandit()))
    if not found.ok or found.equal != rounds:
        wrong.append([kills, f"verify: {found}"])
print(json.dumps([wrong, acknowledged, rounds]))
"""


def test_kills_lose_nothing_that_was_acknowledged_and_replay_is_the_uninterrupted_game(tmp_path):
    command = [
        sys.executable,
        "-c",
        KILLING,
        str(tmp_path / "log"),
        str(KILLS),
        str(LONGEST),
        str(Path(__file__).parent),
    ]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    wrong, acknowledged, rounds = json.loads(told)
    assert wrong == []
    assert acknowledged > KILLS
    assert rounds > KILLS // 2
