"""Numbered changes, each of which is applied exactly once.

A change of a part of a cluster has a number, `seq`. If the last change is requested again, the worker repeats its
answer and does not apply the change again. A caller without an answer can therefore ask again, and every row is learned
once.
"""

from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any, NamedTuple, final


class BusyTime(NamedTuple):
    """Time that a worker has spent since it was started.

    Parameters
    ----------
    seconds : seconds spent on changes.
    cpu : CPU seconds spent on changes.
    process : CPU seconds of the whole process.
    """

    seconds: float
    cpu: float
    process: float


@final
class IdempotentWorker:
    """Worker of a cluster that holds one part of a model, and applies numbered changes to it exactly once.

    Parameters
    ----------
    begin : callable
        Makes the part from `saved`. The attribute `seq` of the part is the number of its last change.
    saved : object
        The state that the part is restored from, None for a new part.
    """

    def __init__(self, begin: Callable[[Any], Any], saved: Any) -> None:
        self.part = begin(saved)
        self._answer: Any = None
        self._busy = self._cpu = 0.0

    def ask(self, method: str, *args: Any) -> Any:
        """Call a method of the worker's part that changes nothing, and return its answer.

        `method` is the name of the method, and `args` are its arguments.
        """
        return getattr(self.part, method)(*args)

    def apply(self, seq: int, method: str, *args: Any) -> Any:
        """Change the worker's part by one of its methods, exactly once, and return the answer.

        `seq` is the number of the change, `method` the name of the method, and `args` are its arguments. If it is the
        last change once more, its answer is returned from memory; for an earlier change the answer is None. Raises
        ValueError if a change in between is missing.
        """
        done = self.part.seq
        if seq <= done:
            return self._answer if seq == done else None
        if seq != done + 1:
            raise ValueError(f"seq must be {done + 1}, got {seq}: a change is missing")
        start, worked = perf_counter(), process_time()
        self._answer = self.ask(method, *args)
        self.part.seq = seq
        self._busy, self._cpu = self._busy + perf_counter() - start, self._cpu + process_time() - worked
        return self._answer

    def busy_time(self) -> BusyTime:
        """Return the time that this worker has spent on changes, as `BusyTime`; messages do not count."""
        return BusyTime(self._busy, self._cpu, process_time())
