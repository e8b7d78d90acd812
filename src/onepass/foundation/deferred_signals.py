"""Deferral of signals, so that Ctrl-C and timeouts wait until an update of a state is complete.

A state's arrays are written in place, and must not be ahead of the counters beside them. Deferral is needed if compiled
code returns the next state, because a signal before its assignment would leave the arrays ahead of the counters. It is
not needed if the counters are in an array too and one call writes everything, as in model/kernel/state.py.
"""

import signal as signals
import threading

# the `signal` module does the same, makes enums of the results and takes ten times as long
from _signal import getsignal, raise_signal, signal  # type: ignore[import-not-found]
from collections.abc import Callable
from types import FrameType
from typing import Any

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM", "SIGVTALRM", "SIGUSR1", "SIGUSR2")  # some do not exist everywhere
_KEPT = tuple(int(getattr(signals, name)) for name in _NAMES if hasattr(signals, name))


class defer_signals:
    """Defer signals whose handlers may raise to the end of the block.

    These are Ctrl-C, `kill` and timers, if a Python function handles them. Outside the main thread, where Python
    handles no signals, nothing is done. Cost: about 1.5 µs.

    A handler of any other signal should not raise an error: at the wrong moment the deferred signals would be lost.
    """

    __slots__ = ("_came", "_usual")

    def __enter__(self) -> None:
        self._came: set[int] = set()
        self._usual: list[tuple[int, Callable[[int, FrameType | None], Any]]] = []
        if threading.get_ident() != threading.main_thread().ident:  # asked each time: another one after a fork
            return
        try:
            self._keep()
        except BaseException:  # of a handler not yet replaced
            self._release()
            raise

    def __exit__(self, *raised: object) -> None:
        self._release()

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._came.add(number)

    def _keep(self) -> None:
        for number in _KEPT:
            handler: Any = getsignal(number)
            if callable(handler):
                self._usual.append((number, handler))
                signal(number, self._note)

    def _release(self) -> None:
        """Restore every signal handler, and raise again the signals that came meanwhile.

        A handler restored early may raise while later ones are restored; the `finally` then restores the rest. The
        loops are in separate functions, because Python 3.13 does not protect the jump at a loop's end by a `try` around
        it.
        """
        try:
            self._restore()
        finally:
            if self._usual:
                self._release()

    def _restore(self) -> None:
        while self._usual:
            number, handler = self._usual[-1]
            signal(number, handler)
            if number in self._came:
                self._came.remove(number)
                raise_signal(number)
            self._usual.pop()
