"""Kills in the middle of saves: the file is whole, no older than the last save that was done, and nothing is left."""

import json
import subprocess
import sys

from counts import repetitions

KILLS = repetitions(60, 1_000)
LONGEST = 0.03  # seconds that a process saves: some thirty times

# One process forks the others, so that they need not import again; it says what was wrong with which kill.
KILLING = """
import json, os, signal, sys, time
from pathlib import Path
import numpy as np
import onepass as op

place, kills, longest = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
rng, wrong, dim, done, unfinished, kill = np.random.default_rng(0), [], 1, 0, 0, 0
# where others have the processors, many a child has not run again when it is killed: then there are more kills
while kill < kills or (kill < 100 * kills and not (done > kill and unfinished > kills / 20)):
    kill += 1
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        while True:
            dim += 1
            op.Exact(dim=dim).save(place)
            os.write(theirs, dim.to_bytes(8, "little"))
    os.close(theirs)
    first = os.read(ours, 8)
    time.sleep(rng.uniform(0.0, longest))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    told = first
    while more := os.read(ours, 1 << 16):
        told += more
    os.close(ours)
    saved = int.from_bytes(told[-8:], "little")
    done += len(told) // 8
    unfinished += len(list(place.parent.iterdir())) - 1
    try:
        dim = op.load(place).dim
        if dim < saved:
            wrong.append([kill, f"{dim} is older than {saved}"])
    except Exception as trouble:
        wrong.append([kill, f"{type(trouble).__name__}: {trouble}"])
    dim = 1 if dim > 60 else dim
    op.Exact(dim=dim).save(place)
    left = [path.name for path in place.parent.iterdir()]
    if left != [place.name]:
        wrong.append([kill, f"left behind: {left}"])
print(json.dumps([wrong, kill, done, unfinished]))
"""


def test_kills_in_the_middle_of_saves_leave_the_last_model_and_nothing_else(tmp_path):
    command = [sys.executable, "-c", KILLING, str(tmp_path / "model"), str(KILLS), str(LONGEST)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    wrong, kills, done, unfinished = json.loads(told)
    assert wrong == []
    assert done > kills >= KILLS  # saves that were done before a kill
    assert unfinished > KILLS / 20  # kills that did come in the middle of one
