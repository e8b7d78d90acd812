"""Who is told changes by number: each is made once, whoever asks again.

What changes a part of a cluster has a number, `seq`: one that was done already is not done again, and its answer is
given once more. So whoever has had no answer asks again, and every row is learned once.
"""

from time import perf_counter, process_time
from typing import Any, NamedTuple


class Spent(NamedTuple):
    """Since a part began: seconds and CPU seconds of changes, CPU seconds of its process."""

    seconds: float
    cpu: float
    process: float


class Told:
    """A part of a cluster, wherever it runs; seq: of its last change."""

    seq: int
    _answer: Any = None
    _busy, _cpu = 0.0, 0.0

    def asked(self, method: str, *given: Any) -> Any:
        """What a method that changes nothing says."""
        return getattr(self, method)(*given)

    def told(self, seq: int, method: str, *given: Any) -> Any:
        """Do what changes the part, once. ValueError where something between is missing."""
        if seq <= self.seq:
            return self._answer if seq == self.seq else None
        if seq != self.seq + 1:
            raise ValueError(f"seq must be {self.seq + 1}, got {seq}: a change is missing")
        begun, worked = perf_counter(), process_time()
        self._answer = getattr(self, method)(*given)
        self.seq, self._busy, self._cpu = seq, self._busy + perf_counter() - begun, self._cpu + process_time() - worked
        return self._answer

    def spent(self) -> Spent:
        """What changes took since it began here: the rest of their time is that of messages and of the front."""
        return Spent(self._busy, self._cpu, process_time())
