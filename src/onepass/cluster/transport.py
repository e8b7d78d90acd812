"""Transports to the parts of a cluster, in this process or as actors of Ray, with one interface.

`start` starts a part, new or from its saved state. `send` sends it a call. `gather` waits for the answers of calls; the
answer is `LOST` if the part is gone, with its process or machine.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Protocol


class WorkerLost:
    """Class of the constant `LOST`, which stands for the answer of a worker that is gone."""


LOST = WorkerLost()


class Transport(Protocol):
    """Interface of a connection to the workers of a cluster, each of which holds one part of a model."""

    def start(self, part: Callable[[Any], Any], saved: Any) -> Any:
        """Start a worker with the part that `part(saved)` makes, and return its handle; `saved` is a state or None."""
        ...

    def send(self, handle: Any, method: str, *args: Any) -> Any:
        """Call the method named `method` of the worker's part, and return the call.

        `handle` is the worker's handle, and `args` are the arguments. `gather` waits for the answer.
        """
        ...

    def gather(self, calls: list[Any]) -> list[Any]:
        """Return the answers of calls in order, `LOST` for workers that are gone.

        If a worker raised an error, it is raised here.
        """
        ...

    def stop(self, handle: Any) -> None:
        """Stop the worker with this handle."""
        ...


class InProcessTransport:
    """Connection to workers in this process, which are called one after the other."""

    def start(self, part: Callable[[Any], Any], saved: Any) -> list[Any]:
        return [part(saved)]

    def send(self, handle: list[Any], method: str, *args: Any) -> Any:
        return getattr(handle[0], method)(*args) if handle else LOST

    def gather(self, calls: list[Any]) -> list[Any]:
        return calls

    def stop(self, handle: list[Any]) -> None:
        handle.clear()


class ThreadTransport:
    """Connection to workers in this process, each call of which runs in a thread."""

    def __init__(self, threads: int) -> None:
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
