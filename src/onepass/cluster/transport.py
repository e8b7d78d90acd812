"""How a part of a cluster is reached: in this process, or as an actor of Ray. One contract for all.

`begun` starts a part, new or from what was kept of it; `send` hands it a call; `answers` waits for calls, and gives
`LOST` for one that can have no answer: its part, process or machine, is gone.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Protocol


class WorkerLost:
    """The answer of a part that is gone."""


LOST = WorkerLost()


class Transport(Protocol):
    """A way to reach parts."""

    def start(self, part: Callable[[Any], Any], kept: Any) -> Any:
        """Start part(kept), kept: what it comes back from, None where it is new; what it is called from then on."""
        ...

    def send(self, one: Any, method: str, *given: Any) -> Any:
        """Let it do something; a call whose answer `answers` waits for."""
        ...

    def gather(self, calls: list[Any]) -> list[Any]:
        """The answers of calls, in their order, `LOST` where there is none; what a part raises is raised."""
        ...

    def stop(self, one: Any) -> None:
        """It is needed no more."""
        ...


class InProcessTransport:
    """Parts in this process, one after the other."""

    def start(self, part: Callable[[Any], Any], kept: Any) -> list[Any]:
        return [part(kept)]

    def send(self, one: list[Any], method: str, *given: Any) -> Any:
        return getattr(one[0], method)(*given) if one else LOST

    def gather(self, calls: list[Any]) -> list[Any]:
        return calls

    def stop(self, one: list[Any]) -> None:
        one.clear()


class ThreadTransport:
    """Parts in this process, each call in a thread."""

    def __init__(self, threads: int):
        self._local, self._pool = InProcessTransport(), ThreadPoolExecutor(threads)

    def start(self, part: Callable[[Any], Any], kept: Any) -> list[Any]:
        return self._local.start(part, kept)

    def send(self, one: list[Any], method: str, *given: Any) -> Future[Any]:
        return self._pool.submit(self._local.send, one, method, *given)

    def gather(self, calls: list[Future[Any]]) -> list[Any]:
        wait(calls)
        return [call.result() for call in calls]

    def stop(self, one: list[Any]) -> None:
        self._local.stop(one)
