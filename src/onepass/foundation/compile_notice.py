"""A message on standard error, once in a process, if compiling takes longer than a few seconds."""

import contextlib
import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator

PATIENT = 2.0  # seconds of compiling before anything is said
RARELY = (100_000, 50, 50)  # the garbage collector's thresholds meanwhile: numba makes millions of objects that stay

_said: set[str] = set()
_quiet = False
_depth, _began, _before = 0, 0.0, 0.0


def set_quiet(chosen: bool) -> None:
    """Switch the notices of compilation off (True), for a program with its own progress bar, or on again (False)."""
    global _quiet
    _quiet = chosen


def print_once(topic: str, sentence: Callable[[], str]) -> None:
    """Print a line on standard error, once in a process for each `topic`; `sentence` is called to make the text."""
    if topic not in _said and not _quiet and sys.stderr is not None:
        _said.add(topic)
        print(f"onepass: {sentence()}", file=sys.stderr, flush=True)


def compile_seconds() -> float:
    """Return the number of seconds this process has spent compiling so far."""
    return _before + (time.monotonic() - _began if _depth else 0.0)


@contextlib.contextmanager
def time_compilation(sentence: Callable[[], str], remember: Callable[[float], None]) -> Iterator[None]:
    """Measure the compilation of one function, as a context manager; nested compilations count as part of it.

    Only one thread at a time may use it. `sentence` makes the message that is printed if compiling takes long, and
    `remember` is called with the seconds it took.
    """
    global _depth, _began, _before
    if _depth > 0:
        yield
        return
    _depth, _began = 1, time.monotonic()
    usual, told = gc.get_threshold(), threading.Timer(max(PATIENT - _before, 0.0), print_once, ("compiling", sentence))
    told.daemon = True
    told.start()
    gc.set_threshold(*RARELY)
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        told.cancel()
        _before, _depth = compile_seconds(), 0
        if "compiling" in _said:
            remember(_before)
