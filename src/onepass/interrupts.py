"""Ctrl-C waits until what has begun is done.

numba builds the NamedTuples that compiled code returns by running Python code, in which a pending signal raises, and
does not look whether it did: an interrupt during a compiled call ended the whole process. And arrays written in place
would be ahead of the counters beside them.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def deferred() -> Iterator[None]:
    """SIGINT is kept until the end of the block, then handled as it would have been. Elsewhere than in the main thread,
    where Python handles no signals, and where somebody else than Python handles them, nothing is done."""
    usual = signal.getsignal(signal.SIGINT) if threading.current_thread() is threading.main_thread() else None
    if not callable(usual):
        yield
        return
    came: list[tuple[int, Any]] = []
    signal.signal(signal.SIGINT, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
        if came:
            usual(*came[-1])
