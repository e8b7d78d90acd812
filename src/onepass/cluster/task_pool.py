"""Parts of a work done beside one another: in threads here, or as tasks of Ray.

A task is a function of a module and what it is given, and changes nothing else: one whose worker is lost is done again
by another, and its answer is counted once.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, Protocol

from onepass.cluster.ray_transport import connect, make_writable

_UNLIMITED = -1  # how often Ray does a task again whose worker is lost


class TaskPool(Protocol):
    """Who does tasks; count: how many can be done at once."""

    count: int

    def start(self, function: Callable[..., Any], *given: Any) -> Any:
        """Begin a task; its handle, which may be what another task is given."""
        ...

    def as_completed(self, tasks: list[Any]) -> Iterator[Any]:
        """The tasks, each when it is done."""
        ...

    def result(self, task: Any) -> Any:
        """What a task gave; what it raised is raised."""
        ...

    def close(self) -> None:
        """No more tasks."""
        ...


class ThreadTaskPool:
    """Workers of this process: compiled code runs at once, Python in turns."""

    def __init__(self, count: int):
        self.count = count
        self._pool = ThreadPoolExecutor(count)

    def start(self, function: Callable[..., Any], *given: Any) -> Future[Any]:
        return self._pool.submit(lambda: function(*(one.result() if isinstance(one, Future) else one for one in given)))

    def as_completed(self, tasks: list[Any]) -> Iterator[Any]:
        left = set(tasks)
        while left:
            done, left = wait(left, return_when=FIRST_COMPLETED)
            yield from done

    def result(self, task: Any) -> Any:
        return task.result()

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


class RayTaskPool:
    """Workers of Ray, one core each."""

    def __init__(self, address: str):
        self.ray = connect(address)
        self.count = max(1, int(self.ray.cluster_resources().get("CPU", 1)))

    def start(self, function: Callable[..., Any], *given: Any) -> Any:
        remote = self.ray.remote(num_cpus=1, max_retries=_UNLIMITED)(_run_task)
        return remote.remote(function, *given)

    def as_completed(self, tasks: list[Any]) -> Iterator[Any]:
        left = list(tasks)
        while left:
            done, left = self.ray.wait(left)
            yield from done

    def result(self, task: Any) -> Any:
        try:
            return make_writable(self.ray.get(task))
        except self.ray.exceptions.RayTaskError as error:
            raise error.cause from None

    def cancel(self, tasks: list[Any]) -> None:
        """End tasks that are not done."""
        for task in tasks:
            self.ray.cancel(task, force=True)

    def close(self) -> None:
        """Ray stays."""


def _run_task(function: Callable[..., Any], *given: Any) -> Any:
    """What a worker of Ray does, on arrays that may be written to."""
    return function(*make_writable(list(given)))


def make_pool(count: int, ray: str | None) -> TaskPool:
    """`count` threads, or (ray: an address) the workers there."""
    return ThreadTaskPool(count) if ray is None else RayTaskPool(ray)


def merge_tree(workers: TaskPool, tasks: list[Any], merge: Callable[[Any, Any], Any]) -> Any:
    """One answer from those of tasks, joined two by two: neighbours, so that what is ordered stays so."""
    while len(tasks) > 1:
        pairs = [workers.start(merge, *tasks[i : i + 2]) for i in range(0, len(tasks) - 1, 2)]
        tasks = pairs + tasks[2 * len(pairs) :]
    return workers.result(tasks[0])
