"""Cost of durable records on the disk of the temporary folder: with one commit per record, and with one per group."""

import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

from onepass.log.records import Decision
from onepass.log.sqlite import SqliteStore

Line = tuple[str, float, str, float, str]

BAR = 200.0  # microseconds: 5,000 records a second
ARMS = 10
GROUPS = ((1, 300), (10, 2_000), (100, 10_000), (1_000, 20_000))  # records a commit, and in all


def decisions(count: int) -> list[Decision]:
    """Return `count` records of decisions between ten arms, each of about 500 bytes."""
    p = np.random.default_rng(0).dirichlet(np.ones(ARMS)).tolist()
    every = {"loop": "bench", "time": 0, "places": [3], "propensities": [p[3]], "probabilities": p, "scores": p}
    return [Decision(id=f"{number}", **every) for number in range(count)]


def append_microseconds(size: int, count: int) -> float:
    """Write `count` records to a log on disk in batches of `size`, and return the microseconds per record."""
    with tempfile.TemporaryDirectory() as folder, SqliteStore(Path(folder) / "log") as store:
        records = decisions(count)
        begun = perf_counter()
        for start in range(0, count, size):
            store.append(records[start : start + size])
        return 1e6 * (perf_counter() - begun) / count


def speed_lines() -> list[Line]:
    """Measure durable writes to a log, and return lines of the table that `onepass bench` prints."""
    lines: list[Line] = []
    for size, count in GROUPS:
        found = append_microseconds(size, count)
        bar = "of the bar: 5,000 durable records a second" if size >= 100 else "of that bar, which is one for groups"
        lines.append((f"SQLite, a record durable, {size:,} a commit", found, "us", found / BAR, bar))
    return lines
