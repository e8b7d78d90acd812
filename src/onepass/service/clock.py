"""Clock that never runs backwards: the system's time at the start, plus the monotonic time since.

    now = max(system's clock at the start, last time in the log) + monotonic time since

If the system clock is changed while the service runs, no deadline changes. If it was set back between two runs, time
goes on from the last time in the log.
"""

import threading
import time

from onepass.log.records import SECOND

NANO = 1_000_000_000


class Clock:
    """Clock in microseconds of Unix time that never runs backwards and never returns a value twice.

    `after` is the last time in the log (default 0). `origin` is the attribute `origin` of the clock of another process
    on this machine, so that both clocks show the same time (default None).
    """

    def __init__(self, after: int = 0, origin: tuple[int, int] | None = None) -> None:
        begin = max(time.time_ns() * SECOND // NANO, after + 1)
        self.origin = (begin, time.monotonic_ns()) if origin is None else origin
        self._begin, self._since = self.origin
        self._last = 0
        self._lock = threading.Lock()

    def __call__(self) -> int:
        with self._lock:
            passed = (time.monotonic_ns() - self._since) * SECOND // NANO
            self._last = max(self._begin + passed, self._last + 1)
            return self._last
