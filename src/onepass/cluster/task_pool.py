"""Pools of workers for parallel tasks: threads of this process, or tasks of Ray.

A task is a module's function with its arguments, and has no side effects. If its worker is lost, another worker does
it again, and its answer counts once.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, Protocol

from onepass.cluster.ray_transport import connect, make_writable

_UNLIMITED = -1  # max_retries of Ray: a task is done again whenever its worker is lost


class TaskPool(Protocol):
    """Interface of a pool of workers; `count` is the number of tasks that run at once."""

    count: int

    def start(self, function: Callable[..., Any], *given: Any) -> Any:
        """Start a task, the call function(*given), and return its handle, which may be an argument of another task."""
        ...

    def as_completed(self, tasks: list[Any]) -> Iterator[Any]:
        """Yield the tasks, each when it is done."""
        ...

    def result(self, task: Any) -> Any:
        """Return the result of a task that is done, or raise the task's error."""
        ...

    def close(self) -> None:
        """Close the pool, which takes no more tasks."""
        ...


class ThreadTaskPool:
    """Pool of `count` threads that runs tasks.

    Compiled code runs in parallel, Python code only in one thread at a time.
    """

    def __init__(self, count: int) -> None:
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
    """Pool of Ray workers with one core each; `address` is the address of Ray, or "local"."""

    def __init__(self, address: str) -> None:
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
        """Cancel tasks that are not done."""
        for task in tasks:
            self.ray.cancel(task, force=True)

    def close(self) -> None:
        """Do nothing, because Ray continues to run after the tasks."""


def _run_task(function: Callable[..., Any], *given: Any) -> Any:
    """Return function(*given), called on a worker of Ray with writable copies of the arrays in `given`."""
    return function(*make_writable(list(given)))


def make_pool(count: int, ray: str | None) -> TaskPool:
    """Make a pool of `count` threads if `ray` is None, else of the workers of Ray at the address `ray`."""
    return ThreadTaskPool(count) if ray is None else RayTaskPool(ray)


def merge_tree(workers: TaskPool, tasks: list[Any], merge: Callable[[Any, Any], Any]) -> Any:
    """Merge the results of tasks into one with `merge(left, right)`, always two neighbours, so that order is kept.

    `tasks` are handles in the pool `workers`, at least one.
    """
    while len(tasks) > 1:
        pairs = [workers.start(merge, *tasks[i : i + 2]) for i in range(0, len(tasks) - 1, 2)]
        tasks = pairs + tasks[2 * len(pairs) :]
    return workers.result(tasks[0])
