"""Seeds in several processes: this one and its helpers, which take what nobody has begun.

Helpers are processes of joblib's pool, loky. They are started once what is left takes longer than starting them: a
small run stays in one process. Every process has one thread of the BLAS, however many there are, so that rows are the
same whatever the number of processes.
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

import scipy.linalg  # noqa: F401 - its BLAS is held to one thread, so it is loaded before
from joblib import cpu_count
from joblib.externals.loky import ProcessPoolExecutor
from joblib.externals.loky.backend import get_context
from threadpoolctl import threadpool_limits

from onepass.lab.definition import Study
from onepass.lab.errors import ExperimentError
from onepass.lab.kept import Kept
from onepass.lab.policy import Policy
from onepass.lab.progress import Meter
from onepass.lab.results import Results

START_SECONDS = 10.0  # a helper imports, loads compiled code and reads its data in 3 to 10 s
WATCH_SECONDS = 1.0  # between two looks of a helper at the process that called it
POLL_SECONDS = 0.1  # between two looks at the helpers, with nothing else to do


class Task(NamedTuple):
    """Policies side by side before one seed; label: what a progress bar says."""

    policies: tuple[Policy, ...]
    seed: int
    label: str


def play(study: Study, task: Task, rounds: int, step: int, tick: Callable[[], None]) -> Results:
    """Play one seed to its end, or until Ctrl-C; tick() is called after every step."""
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
    study: Study, tasks: Sequence[Task], rounds: int, step: int, jobs: int | None, meter: Meter, kept: Kept
) -> tuple[dict[int, Results], bool]:
    """What was found, by the task's place, and whether Ctrl-C came: then the task at hand, if any, is `interrupted`.

    What is kept as finished is not played again.
    """
    if jobs is not None and jobs < 1:
        raise ExperimentError(f"jobs must be at least 1, got {jobs}")
    with threadpool_limits(1), Crew(study, tasks, rounds, step, jobs, meter, kept) as crew:
        return crew.found, crew.play_all()


class Crew:
    """Plays tasks here, in their order, and lets helpers take the next ones as they become free."""

    def __init__(
        self, study: Study, tasks: Sequence[Task], rounds: int, step: int, jobs: int | None, meter: Meter, kept: Kept
    ) -> None:
        self.study, self.tasks, self.rounds, self.step = study, tasks, rounds, step
        self.jobs, self.meter, self.kept = jobs, meter, kept
        wanted = jobs or (1 if study.timed else cpu_count())
        self.helpers = min(wanted, len(tasks)) - 1
        self.found = kept.found()
        self.pending = deque(place for place in range(len(tasks)) if place not in self.found)
        self.running = dict[int, Future[Results]]()
        self.before = -(-rounds // step) * len(self.found)  # steps that were played by an earlier run
        meter.advance(self.before)
        self.pool: ProcessPoolExecutor | None = None
        self.steps: Any = None  # released once for every step that a helper has played
        self.began = monotonic()
        self.finished = False

    def __enter__(self) -> "Crew":
        return self

    def __exit__(self, *_: object) -> None:
        """Let the helpers go; those at work are ended."""
        if self.pool is not None:
            self.pool.shutdown(wait=True, kill_workers=not self.finished)

    def play_all(self) -> bool:
        """Play all tasks; True if Ctrl-C came first: then what the helpers have finished is kept too."""
        try:
            while self.pending:
                place = self.pending.popleft()
                self.meter.describe(self.tasks[place].label)
                self.found[place] = play(self.study, self.tasks[place], self.rounds, self.step, self.tick)
                if self.found[place].interrupted:
                    self.collect()
                    return True
                self.kept.keep(place, self.found[place])
            while self.running:
                wait(self.running.values(), timeout=POLL_SECONDS)
                self.look()
        except KeyboardInterrupt:
            self.collect()
            return True
        self.finished = True
        return False

    def tick(self) -> None:
        """After every step here: see what the helpers do, or whether any are needed."""
        self.meter.advance()
        if self.pool is not None:
            self.look()
        elif self.helpers and self.pending:
            spent = monotonic() - self.began
            if spent * (self.meter.total - self.meter.done) > START_SECONDS * (self.meter.done - self.before):
                self.start()

    def start(self) -> None:
        """Call the helpers."""
        context = get_context("loky")
        self.steps = context.Semaphore(0)
        given = (self.study, self.tasks, self.rounds, self.step, self.steps)
        self.pool = ProcessPoolExecutor(self.helpers, context=context, initializer=begin, initargs=given)
        try:
            self.look()
        except (PicklingError, AttributeError, TypeError) as error:
            reason = f"another process cannot be sent it ({error})"
            if self.jobs is not None:
                raise ExperimentError(f"jobs must be 1 for {self.study.name}, got {self.jobs}: {reason}") from error
            self.meter.say(f"onepass: {self.study.name} is played in one process: {reason}")
            self.pool, self.helpers = None, 0
        else:
            self.meter.say(f"{self.helpers + 1} processes play; seconds are longer than with one (--jobs 1)")

    def look(self) -> None:
        """Take what helpers have finished, give them the next tasks, and count their steps."""
        self.collect()
        assert self.pool is not None
        while self.pending and len(self.running) < self.helpers:
            with deaf():
                self.running[self.pending[0]] = self.pool.submit(helped, self.pending[0])
            self.pending.popleft()
        while self.steps.acquire(False):
            self.meter.advance()

    def collect(self) -> None:
        """Take what helpers have finished."""
        for place in [place for place, future in self.running.items() if future.done()]:
            try:
                self.found[place] = self.running.pop(place).result()
            except BrokenProcessPool as error:
                raise ExperimentError(
                    f"a process that played {self.tasks[place].label} ended too early; jobs=1 plays all in one"
                ) from error
            self.kept.keep(place, self.found[place])


@contextmanager
def deaf() -> Iterator[None]:
    """Started meanwhile, a process never hears Ctrl-C, which a terminal sends to all: this one ends it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)


# What a helper was told at its start, and the kinds of policies whose code it has loaded.
HELD: list[Any] = []
WARM: set[Any] = set()


def begin(*given: Any) -> None:
    """A helper's first act."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    HELD[:] = [*given, threadpool_limits(1)]
    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()


def end_with(parent: int) -> None:
    """End this helper when the process that called it was killed."""
    while os.getppid() == parent:
        sleep(WATCH_SECONDS)
    os._exit(1)


def helped(place: int) -> Results:
    """What a helper does: load compiled code, then play."""
    study, tasks, rounds, step, steps, _ = HELD
    for policy in tasks[place].policies:
        if policy.kind not in WARM:
            study.warm_up(policy)
            WARM.add(policy.kind)
    return play(study, tasks[place], rounds, step, steps.release)
