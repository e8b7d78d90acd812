"""Verify a log by one process and by two: `python -m onepass.lab.benchmark.verify_log [--decisions N] [--joins N]`.

The log is in SQLite, with a bandit that learns it and a full checkpoint after every `--joins` joins. `wall` is seconds
by the clock, `cpu` the seconds of all processors, `ratio` the clock time of one process over that of several. `by_cpu`
is the same ratio computed from processor times, for machines that also do other things: it assumes one free
processor per process.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from onepass.log.records import Decision, Join
from onepass.log.replay import Fold
from onepass.log.sqlite import SqliteStore
from onepass.service.settings import make_bandit, parse_settings

ARMS, DIM, BATCH = 20, 10, 10  # arms; features, 5 of the context and 5 of an arm; decisions between two updates

NAMES = [f"arm {place}" for place in range(ARMS)]

VERIFY = """
import functools, json, resource, sys
from onepass.log.open_store import open_store
from onepass.log.parallel import verify_all
found = verify_all(functools.partial(open_store, sys.argv[1], readonly=True), workers=int(sys.argv[2]))
spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(json.dumps([found.ok, *(each.ru_utime + each.ru_stime for each in spent)]))
"""


def _generate(path: Path, decisions: int, joins: int) -> int:
    """Write a log of this many decisions to the file `path`, and return its last sequence number.

    The log has a full checkpoint after every `joins` joins of decisions and rewards.
    """
    rng = np.random.default_rng(0)
    theta = rng.standard_normal(DIM) / np.sqrt(DIM)
    with SqliteStore(path, synced=False) as store:
        settings = parse_settings({"name": "bench", "features": {"context": 5, "arms": 5}})
        fold = Fold(store, "bench", make_bandit(settings))
        store.append([fold.checkpoint(0)])
        fold.advance()
        for start in range(0, decisions, BATCH):
            records, learned = list[Any](), list[Any]()
            for number in range(start, start + BATCH):
                rows = rng.standard_normal((ARMS, DIM))
                decision = fold.bandit.decide(rows, NAMES, id=f"{number}")
                fields = {"contexts": rows, "through": fold.through}
                records.append(Decision.from_decision(decision, loop="bench", time=number, **fields))
                chance = 1.0 / (1.0 + np.exp(-rows[decision.index] @ theta))
                reward = float(rng.random() < chance)
                learned.append(Join(loop="bench", time=number, id=f"{number}", rewards=[reward], batch=start))
            store.append([*records, *learned])
            fold.advance()
            if (start + BATCH) % joins == 0:
                store.append([fold.checkpoint(start)])
        return store.last


def measure(path: Path, workers: int) -> dict[str, float]:
    """Verify the log at `path` with `workers` processes, and return the seconds by name.

    "wall" is the elapsed time, "own" and "others" are the processor times of the main process and of the workers.
    Raises ValueError if the log is not valid.
    """
    begun = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", VERIFY, path, f"{workers}"], check=True, stdout=subprocess.PIPE)
    ok, own, others = json.loads(done.stdout)
    if not ok:
        raise ValueError(f"the log {path} does not verify")
    return {"wall": time.perf_counter() - begun, "own": own, "others": others}


def compare(decisions: int, joins: int, workers: int) -> dict[str, Any]:
    """Return the seconds in which one process and `workers` processes verify the same generated log, and their ratios.

    The result has them by name: "one" and "several" with the seconds of `_round_seconds`, "ratio", the quotient
    of their elapsed times, and "by_cpu", the processor time of one process divided by that of several per worker.
    Further entries describe the log. The log has `decisions` decisions, and a
    complete copy of the model after every `joins` of them.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.sqlite"
        last = _generate(path, decisions, joins)
        measure(path, workers)  # compiles the code
        one, several = measure(path, 1), measure(path, workers)
        alone = (several["own"] + several["others"]) / workers
        return {
            "decisions": decisions, "records": last, "bytes": os.path.getsize(path),
            "one": _round_seconds(one), "several": _round_seconds(several), "workers": workers,
            "ratio": round(one["wall"] / several["wall"], 2), "by_cpu": round(one["own"] / alone, 2),
        }  # fmt: skip


def _round_seconds(found: dict[str, float]) -> dict[str, float]:
    """Return the seconds that `measure` found, rounded to hundredths, as a dictionary.

    "wall" is the elapsed time, "own" the processor time of the main process, and "cpu" that of all processes.
    """
    cpu = found["own"] + found["others"]
    return {"wall": round(found["wall"], 2), "cpu": round(cpu, 2), "own": round(found["own"], 2)}


def main() -> None:
    """Compare the verification by one and by several processes, and print the measurements as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decisions", type=int, default=100_000, help="of the log")
    parser.add_argument("--joins", type=int, default=5_000, help="between two whole checkpoints")
    parser.add_argument("--workers", type=int, default=2, help="processes that are compared with one")
    options = parser.parse_args()
    print(json.dumps(compare(options.decisions, options.joins, options.workers), indent=1))


if __name__ == "__main__":
    main()
