"""Transports to the parts of a cluster, in this process or as actors of Ray, with one interface.

`start` starts a part, new or from its saved state. `send` sends it a call. `gather` waits for the answers of calls; the
answer is `LOST` if the part is gone, with its process or machine.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Protocol


class WorkerLost:
    """Class of `LOST`, the answer of a part that is gone."""


LOST = WorkerLost()


class Transport(Protocol):
    """Connection to the parts of a cluster."""

    def start(self, part: Callable[[Any], Any], saved: Any) -> Any:
        """Start part(saved), where `saved` is its state or None, and return its handle."""
        ...

    def send(self, handle: Any, method: str, *args: Any) -> Any:
        """Call a method of a part, and return the call, whose answer `gather` waits for."""
        ...

    def gather(self, calls: list[Any]) -> list[Any]:
        """Return the answers of calls in order, `LOST` for parts that are gone.

        If a part raised an error, it is raised here.
        """
        ...

    def stop(self, handle: Any) -> None:
        """Stop a part."""
        ...


class InProcessTransport:
    """Transport to parts in this process, called one after the other."""

    def start(self, part: Callable[[Any], Any], saved: Any) -> list[Any]:
        return [part(saved)]

    def send(self, handle: list[Any], method: str, *args: Any) -> Any:
        return getattr(handle[0], method)(*args) if handle else LOST

    def gather(self, calls: list[Any]) -> list[Any]:
        return calls

    def stop(self, handle: list[Any]) -> None:
        handle.clear()


class ThreadTransport:
    """Transport to parts in this process, with each call in a thread."""

    def __init__(self, threads: int):
        self._local, self._pool = InProcessTransport(), ThreadPoolExecutor(threads)

    def start(self, part: Callable[[Any], Any], saved: Any) -> list[Any]:
        return self._local.start(part, saved)

    def send(self, handle: list[Any], method: str, *args: Any) -> Future[Any]:
        return self._pool.submit(self._local.send, handle, method, *args)

    def gather(self, calls: list[Future[Any]]) -> list[Any]:
        wait(calls)
        return [call.result() for call in calls]

    def stop(self, handle: list[Any]) -> None:
        self._local.stop(handle)
