"""Threads: throughput of two scoring threads relative to one, and the cost of a shared object's lock."""

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import onepass as op
from onepass.foundation.rw_lock import SharedObject, reading, writing
from onepass.lab.benchmark.shared_model import median_microseconds

Line = tuple[str, float, str, float, str]

AT_ONCE = 20  # calls between two looks at the clock
BAR = 1.6  # least number of calls of two threads, relative to one thread


class EmptyMethods(SharedObject):
    """Object with a reader-writer lock whose methods do nothing, to measure the cost of the lock."""

    def plain(self) -> None:
        """Do nothing, without the lock."""

    @reading
    def read(self) -> None:
        """Do nothing while the lock is held for reading."""

    @writing
    def write(self) -> None:
        """Do nothing while the lock is held for writing."""


def _calls_per_second(call: Callable[[], Any], threads: int, seconds: float) -> float:
    """Return the calls per second that these threads make together, at least 20 each."""
    done, began = [0] * threads, [0.0]

    def note_time() -> None:
        began[0] = time.monotonic()

    begin = threading.Barrier(threads, note_time)

    def run(i: int) -> None:
        begin.wait()
        while done[i] == 0 or time.monotonic() < began[0] + seconds:
            for _ in range(AT_ONCE):
                call()
            done[i] += AT_ONCE

    each = [threading.Thread(target=run, args=(i,)) for i in range(threads)]
    for thread in each:
        thread.start()
    for thread in each:
        thread.join()
    return sum(done) / (time.monotonic() - began[0])


def thread_gain(call: Callable[[], Any], seconds: float = 1.0, repeats: int = 5) -> tuple[float, float]:
    """Return the microseconds per call of one thread, and the throughput of two threads relative to one.

    Both are medians over `repeats` measurements of `seconds` seconds each.
    """
    call()
    both = [(_calls_per_second(call, 1, seconds), _calls_per_second(call, 2, seconds)) for _ in range(repeats)]
    return 1e6 / float(np.median([one for one, _ in both])), float(np.median([two / one for one, two in both]))


def speed_lines() -> list[Line]:
    """Measure two threads that use one bandit, and the lock alone; return lines of the table of `onepass bench`."""
    rng, empty = np.random.default_rng(0), EmptyMethods()
    bandit, contexts = op.SOFUL(dim=784, size=50), rng.standard_normal((10, 784))
    bandit.learn(rng.standard_normal((300, 784)), rng.standard_normal(300))
    lines: list[Line] = []
    acts: dict[str, Callable[[], Any]] = {
        "score": lambda: bandit.score(contexts),
        "decide": lambda: bandit.decide(contexts),
    }
    for name, act in acts.items():
        microseconds, times = thread_gain(act)
        lines.append((f"two threads that {name}, d=784, l=50, K=10", microseconds, "us", times, f"calls (bar {BAR})"))
    plain = median_microseconds(empty.plain, inner=20_000)
    for name, method in {"read": empty.read, "write": empty.write}.items():
        taken = median_microseconds(method, inner=20_000) - plain
        lines.append((f"  the lock of a shared object, to {name}", taken, "us", taken / 0.5, "of 0.5 us"))
    return lines
