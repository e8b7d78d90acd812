"""Workers forked while threads decide, and while they compile, decide alike."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import onepass as op
from counts import repetitions
from patience import PATIENCE

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")

SCRIPT = """
import os, sys, threading, time
import numpy as np
import onepass as op

rows = np.random.default_rng(0).standard_normal((5, 6))
kind, forks, warm = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "warm"
if kind == "arms":
    bandit = op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=6))), op.Thompson(0.1))
    bandit.learn(rows[0], 1.0, arm=0)
else:
    bandit = {"ucb": op.OFUL, "thompson": op.LinTS}[kind](dim=6)

def decide():
    return bandit.decide(rows, arms=(0, 1, 2, 3, 4))

def work():
    while True:
        decide()

if warm:
    decide()
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.1)
for _ in range(forks):
    child = os.fork()
    if child == 0:
        decide()
        os._exit(7)
    end = time.monotonic() + 400.0
    while not (found := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > end:
            os.kill(child, 9)
            os._exit(1)
        time.sleep(0.001)
    if os.waitstatus_to_exitcode(found[1]) != 7:
        os._exit(2)
print("all decided", flush=True)
os._exit(0)
"""


@pytest.mark.parametrize(("kind", "forks"), [("ucb", 30), ("thompson", 30), ("arms", 30)])
def test_every_worker_forked_while_threads_decide_decides(tmp_path, kind, forks):
    assert outcome(tmp_path, kind, forks, "warm", {}) == "all decided\n"


def test_a_worker_forked_while_threads_compile_decides(tmp_path):
    assert outcome(tmp_path, "ucb", repetitions(1, 2), "cold", {"NUMBA_CACHE_DIR": str(tmp_path)}) == "all decided\n"


def outcome(tmp_path, kind, forks, warm, variables):
    environment = {**os.environ, "PYTHONPATH": str(Path(op.__file__).parent.parent), **variables}
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "-W", "ignore::DeprecationWarning", str(tmp_path / "script.py"), kind, str(forks), warm]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE
    ).stdout
