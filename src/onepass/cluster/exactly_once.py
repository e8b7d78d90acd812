"""Changes by number: each is made once, whoever asks again.

A change of a part of a cluster has a number, `seq`. A change that was made already is not made again; its answer is
given once more. So whoever had no answer asks again, and every row is learned once.
"""

from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any, NamedTuple, final


class BusyTime(NamedTuple):
    """Since a part began: seconds and CPU seconds of changes, CPU seconds of its process."""

    seconds: float
    cpu: float
    process: float


@final
class IdempotentWorker:
    """A part of a cluster, wherever it runs, whose changes are numbered.

    Parameters
    ----------
    begin : callable
        Begins the part from `kept`. The part's `seq` is the number of its last change.
    kept : object
        The state that the part comes back from, None for a new part.
    """

    def __init__(self, begin: Callable[[Any], Any], kept: Any) -> None:
        self.part = begin(kept)
        self._answer: Any = None
        self._busy = self._cpu = 0.0

    def ask(self, method: str, *given: Any) -> Any:
        """Call a method of the part that changes nothing."""
        return getattr(self.part, method)(*given)

    def apply(self, seq: int, method: str, *given: Any) -> Any:
        """Change the part by one of its methods, once. Raises ValueError where a change between is missing."""
        done = self.part.seq
        if seq <= done:
            return self._answer if seq == done else None
        if seq != done + 1:
            raise ValueError(f"seq must be {done + 1}, got {seq}: a change is missing")
        start, worked = perf_counter(), process_time()
        self._answer = self.ask(method, *given)
        self.part.seq = seq
        self._busy, self._cpu = self._busy + perf_counter() - start, self._cpu + process_time() - worked
        return self._answer

    def busy_time(self) -> BusyTime:
        """Return the time that changes took here; the rest of their time is that of messages and of the front."""
        return BusyTime(self._busy, self._cpu, process_time())
