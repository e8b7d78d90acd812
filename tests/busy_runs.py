"""Runs of tests beside a busy loop and in random order, which can be interrupted and go on later.

    .venv/bin/python tests/busy_runs.py                      # 20 runs of all service, log and thread tests, 3 of all
    .venv/bin/python tests/busy_runs.py --runs 5 tests/log   # 5 of one folder
    .venv/bin/python tests/busy_runs.py --first 4            # the same in other orders, if 4 were made elsewhere

Each run takes the test files in an order of its own, in pieces of a few files, and each piece in another order of its
tests. What has ended stands in a file, a line for every piece: an interrupted call goes on where it was, and the same
call after the last run lists what has failed. The exit status is 1 where anything has.
"""

import argparse
import json
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
STRESSED = (
    "tests/service", "tests/log", "tests/client", "tests/cluster", "tests/bandit/test_threads.py",
    "tests/bandit/test_interrupts.py", "tests/bandit/test_killed_saves.py",
)  # fmt: skip
EVERYTHING = ("tests", "src/onepass", "README.md")
PIECE = 6  # files that run together: so many are done again after an interruption, at most
PATIENCE = ("-o", "faulthandler_timeout=1800", "-o", "faulthandler_exit_on_timeout=true")

# A plugin of pytest: the tests of a piece in the order of a seed, those of a file together as fixtures expect.
SHUFFLE = """
import os, random

def pytest_collection_modifyitems(items):
    files = {}
    for item in items:
        files.setdefault(str(item.path), []).append(item)
    coin = random.Random(os.environ["ONEPASS_ORDER"])
    names = sorted(files)
    coin.shuffle(names)
    for name in names:
        coin.shuffle(files[name])
    items[:] = [item for name in names for item in files[name]]
"""


def spin(chosen: float) -> None:
    """Keep a processor busy until the process that began it has ended."""
    parent = os.getppid()
    while os.getppid() == parent:
        end = time.monotonic() + chosen
        while time.monotonic() < end:
            pass


def files_of(places: tuple[str, ...] | list[str]) -> list[str]:
    """Return the test files in folders, and files as they are, by name."""
    found: set[str] = set()
    for place in places:
        path = ROOT / place
        tests = "test_*.py" if place.startswith("tests") else "*.py"
        each = path.rglob(tests) if path.is_dir() else [path]
        found.update(str(one.relative_to(ROOT)) for one in each if "__pycache__" not in one.parts)
    return sorted(found)


def pieces(name: str, places: tuple[str, ...] | list[str], runs: range) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the files of every piece of every run; the same in every call."""
    for run in runs:
        files, order = files_of(places), f"{name} {run}"
        random.Random(order).shuffle(files)
        for start in range(0, len(files), PIECE):
            yield f"{order} {start}", files[start : start + PIECE]


def run_piece(order: str, files: list[str], workers: int) -> dict[str, Any]:
    """Run a piece, and return its name, exit status, seconds, and the lines of what failed."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "onepass_shuffle.py").write_text(SHUFFLE)
        environment = {**os.environ, "ONEPASS_ORDER": order, "PYTHONPATH": folder, "PYTHONHASHSEED": "0"}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "onepass_shuffle", "-rfE"]
        began = time.monotonic()
        ended = subprocess.run(
            [*command, "-n", str(workers), *PATIENCE, *files], cwd=ROOT, env=environment, capture_output=True, text=True
        )
    failed = [line for line in ended.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    status = 0 if ended.returncode == 5 else ended.returncode  # 5: none of the files has a test
    if status and not failed:
        failed = (ended.stdout + ended.stderr).splitlines()[-20:]
    return {
        "piece": order,
        "files": files,
        "status": status,
        "seconds": round(time.monotonic() - began, 1),
        "failed": failed,
    }


def read_done(path: Path) -> dict[str, dict[str, Any]]:
    """Return what has ended, by the name of its piece; a line that an interruption cut is not there."""
    done = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            ended = json.loads(line)
        except ValueError:
            continue
        done[ended["piece"]] = ended
    return done


def main() -> int:
    parser = argparse.ArgumentParser(description="Run tests beside a busy loop and in random order; resumes.")
    parser.add_argument("places", nargs="*", help="folders and files; default: those that wait, then everything")
    parser.add_argument("--runs", type=int, default=20, help="runs of the places, or of those that wait")
    parser.add_argument("--everything", type=int, default=3, help="runs of everything, where no place is named")
    parser.add_argument(
        "--first", type=int, default=0, help="number of the first run; each number has orders of its own"
    )
    parser.add_argument("--loops", type=int, default=1, help="busy loops beside them")
    parser.add_argument("--workers", type=int, default=2, help="of pytest")
    parser.add_argument("--done", type=Path, default=ROOT / "results" / "busy_runs.jsonl", help="what has ended")
    chosen = parser.parse_args()

    def numbers(runs: int) -> range:
        return range(chosen.first, chosen.first + runs)

    wanted = list(pieces(" ".join(chosen.places) or "stressed", chosen.places or STRESSED, numbers(chosen.runs)))
    if not chosen.places:
        wanted += list(pieces("everything", EVERYTHING, numbers(chosen.everything)))
    done = read_done(chosen.done)
    chosen.done.parent.mkdir(parents=True, exist_ok=True)
    loops = [multiprocessing.Process(target=spin, args=(0.2,), daemon=True) for _ in range(chosen.loops)]
    for loop in loops:
        loop.start()
    try:
        for number, (order, files) in enumerate(wanted, 1):
            if order not in done:
                done[order] = run_piece(order, files, chosen.workers)
                with chosen.done.open("a") as out:
                    out.write(json.dumps(done[order]) + "\n")
            ended = done[order]
            print(
                f"{number}/{len(wanted)} {order}: {'failed' if ended['status'] else 'passed'} in {ended['seconds']} s"
            )
            print(*ended["failed"], sep="\n", end="\n" if ended["failed"] else "", flush=True)
    finally:
        for loop in loops:
            loop.terminate()
    failures = [ended for order, _ in wanted if (ended := done[order])["status"]]
    print(f"{len(wanted) - len(failures)} of {len(wanted)} pieces passed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
