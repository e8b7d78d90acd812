"""Run the seeds of an experiment in several processes: each takes the next task that waits.

Workers are processes of loky, joblib's process pool. They are started only if the remaining work takes longer than
starting them, so a small run stays in one process. Every process uses one BLAS thread, so rows do not depend on the
number of processes.
"""

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pickle import PicklingError
from time import monotonic, sleep
from typing import Any, NamedTuple

import scipy.linalg  # noqa: F401 - loaded early, because threadpool_limits only limits a BLAS that is loaded
from joblib import cpu_count
from joblib.externals.loky import ProcessPoolExecutor
from joblib.externals.loky.backend import get_context
from threadpoolctl import threadpool_limits

from onepass.lab.definition import Study
from onepass.lab.errors import ExperimentError
from onepass.lab.policy import Policy
from onepass.lab.progress import Meter
from onepass.lab.results import Results
from onepass.lab.task_cache import TaskCache

START_SECONDS = 10.0  # a worker imports, loads compiled code and reads its data in 3 to 10 s
WATCH_SECONDS = 1.0  # seconds between two looks of a worker at its parent process
POLL_SECONDS = 0.1  # seconds between two looks at the workers, when this process has nothing else to do


class Task(NamedTuple):
    """Part of an experiment that one process plays.

    `policies` play the problem of `seed`. `label` is the text beside the progress bar.
    """

    policies: tuple[Policy, ...]
    seed: int
    label: str


def play(study: Study, task: Task, rounds: int, step: int, tick: Callable[[], None]) -> Results:
    """Play `rounds` rounds of one task in steps of `step` rounds, and return the results.

    `tick` is called after every step. On Ctrl-C the results so far are returned, with `interrupted` set.
    """
    results, trial = Results(), None
    try:
        trial = study.trial(task.policies, task.seed)
        for start in range(0, rounds, step):
            trial.step(start, min(step, rounds - start))
            tick()
    except KeyboardInterrupt:
        results.interrupted = True
    if trial is not None:
        label = {"experiment": study.name, "figure": study.figure.name}
        results.rows = [{**label, **row} for row in trial.rows()]
        results.curves = [{**label, **row} for row in trial.curves()]
    return results


def play_all(
    study: Study, tasks: Sequence[Task], rounds: int, step: int, jobs: int | None, meter: Meter, cache: TaskCache
) -> tuple[dict[int, Results], bool]:
    """Play the tasks in `jobs` processes; return the results by the index of the task, and True if Ctrl-C came.

    A task that was in progress at Ctrl-C has `interrupted` set. `rounds` are played in steps of `step` rounds. The
    results of tasks in `cache` are taken from there. `meter` shows the progress.
    """
    if jobs is not None and jobs < 1:
        raise ExperimentError(f"jobs must be at least 1, got {jobs}")
    with threadpool_limits(1), ProcessPool(study, tasks, rounds, step, jobs, meter, cache) as pool:
        return pool.results, pool.play_all()


class ProcessPool:
    """Pool of processes: this process plays tasks in order, and worker processes take the next ones.

    A task plays `rounds` rounds in steps of `step` rounds. `jobs` is the number of processes; None means one per core,
    or one in all for a timed study. Results of finished tasks are taken from `cache`. `meter` shows the progress.
    """

    def __init__(
        self,
        study: Study,
        tasks: Sequence[Task],
        rounds: int,
        step: int,
        jobs: int | None,
        meter: Meter,
        cache: TaskCache,
    ) -> None:
        self.study, self.tasks, self.rounds, self.step = study, tasks, rounds, step
        self.jobs, self.meter, self.cache = jobs, meter, cache
        wanted = jobs or (1 if study.timed else cpu_count())
        self.n_workers = min(wanted, len(tasks)) - 1
        self.results = cache.load_results()
        self.pending = deque(place for place in range(len(tasks)) if place not in self.results)
        self.running = dict[int, Future[Results]]()
        self.before = -(-rounds // step) * len(self.results)  # number of steps played by an earlier run
        meter.advance(self.before)
        self.pool: ProcessPoolExecutor | None = None
        self.steps: Any = None  # semaphore, released once for every step that a worker has played
        self.began = monotonic()
        self.finished = False

    def __enter__(self) -> "ProcessPool":
        return self

    def __exit__(self, *_: object) -> None:
        """Shut the workers down, and kill those that are still playing."""
        if self.pool is not None:
            self.pool.shutdown(wait=True, kill_workers=not self.finished)

    def play_all(self) -> bool:
        """Play all tasks, and return True if Ctrl-C came first; then the results of finished workers are stored."""
        try:
            while self.pending:
                place = self.pending.popleft()
                self.meter.describe(self.tasks[place].label)
                self.results[place] = play(self.study, self.tasks[place], self.rounds, self.step, self.on_step)
                if self.results[place].interrupted:
                    self.collect_finished()
                    return True
                self.cache.save(place, self.results[place])
            while self.running:
                wait(self.running.values(), timeout=POLL_SECONDS)
                self.poll()
        except KeyboardInterrupt:
            self.collect_finished()
            return True
        self.finished = True
        return False

    def on_step(self) -> None:
        """Count a step that this process has played.

        Then start worker processes if much work is left, or collect their results.
        """
        self.meter.advance()
        if self.pool is not None:
            self.poll()
        elif self.n_workers and self.pending:
            spent = monotonic() - self.began
            if spent * self.meter.left > START_SECONDS * (self.meter.done - self.before):
                self.start_workers()

    def start_workers(self) -> None:
        """Start the worker processes and send them the first tasks."""
        context = get_context("loky")
        self.steps = context.Semaphore(0)
        given = (self.study, self.tasks, self.rounds, self.step, self.steps)
        self.pool = ProcessPoolExecutor(self.n_workers, context=context, initializer=_init_worker, initargs=given)
        try:
            self.poll()
        except (PicklingError, AttributeError, TypeError) as error:
            reason = f"another process cannot be sent it ({error})"
            if self.jobs is not None:
                raise ExperimentError(f"jobs must be 1 for {self.study.name}, got {self.jobs}: {reason}") from error
            self.meter.say(f"onepass: {self.study.name} is played in one process: {reason}")
            self.pool, self.n_workers = None, 0
        else:
            self.meter.say(f"{self.n_workers + 1} processes play; seconds are longer than with one (--jobs 1)")

    def poll(self) -> None:
        """Collect the results of workers, send them further tasks, and count their steps."""
        self.collect_finished()
        assert self.pool is not None
        while self.pending and len(self.running) < self.n_workers:
            with _ignore_interrupts():
                self.running[self.pending[0]] = self.pool.submit(_play_in_worker, self.pending[0])
            self.pending.popleft()
        while self.steps.acquire(False):
            self.meter.advance()

    def collect_finished(self) -> None:
        """Store the results of finished workers in `results` and in the cache."""
        for place in [place for place, future in self.running.items() if future.done()]:
            try:
                self.results[place] = self.running.pop(place).result()
            except BrokenProcessPool as error:
                raise ExperimentError(
                    f"a process that played {self.tasks[place].label} ended too early; jobs=1 plays all in one"
                ) from error
            self.cache.save(place, self.results[place])


@contextmanager
def _ignore_interrupts() -> Iterator[None]:
    """Let processes that start meanwhile ignore Ctrl-C.

    A terminal sends Ctrl-C to all processes; this process ends the others itself.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)


# In a worker: the arguments of `_init_worker`, and the kinds of policies whose compiled code it has loaded.
WORKER_STATE: list[Any] = []
WARMED_UP_KINDS: set[Any] = set()


def _init_worker(*given: Any) -> None:
    """Set up a worker process: ignore Ctrl-C, use one BLAS thread, and watch the parent process.

    `given` is stored for `_play_in_worker`: study, tasks, numbers of rounds and of rounds per step, and a semaphore
    that is released after every step.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    WORKER_STATE[:] = [*given, threadpool_limits(1)]
    threading.Thread(target=_exit_with_parent, args=(os.getppid(),), daemon=True).start()


def _exit_with_parent(parent: int) -> None:
    """Exit this worker when its parent process, with the number `parent`, is gone."""
    while os.getppid() == parent:
        sleep(WATCH_SECONDS)
    os._exit(1)


def _play_in_worker(place: int) -> Results:
    """Load compiled code, then play the task with the index `place`, and return its results."""
    study, tasks, rounds, step, steps, _ = WORKER_STATE
    for policy in tasks[place].policies:
        if policy.compile_key not in WARMED_UP_KINDS:
            study.warm_up(policy)
            WARMED_UP_KINDS.add(policy.compile_key)
    return play(study, tasks[place], rounds, step, steps.release)
