"""Seeds in several processes: this one and its helpers, which take what nobody has begun.

Helpers are started once what is left takes longer than starting them: a small run stays in one process. They are
spawned, not forked, since numba's and the BLAS's threads do not survive a fork. Every process has one thread of the
BLAS, however many there are, so that rows are the same whatever the number of processes.
"""

import os
import pickle
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from time import monotonic
from typing import Any, NamedTuple

from threadpoolctl import threadpool_limits

from onepass.experiment.definition import Study
from onepass.experiment.errors import ExperimentError
from onepass.experiment.kept import Kept
from onepass.experiment.policy import Policy
from onepass.experiment.progress import Meter
from onepass.experiment.results import Results

START_SECONDS = 10.0  # a helper imports, loads compiled code and reads its data in 3 to 10 s
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
    processes = number(study, tasks, jobs, meter.quiet)
    with threadpool_limits(1), Crew(study, tasks, rounds, step, processes, meter, kept) as crew:
        return crew.found, crew.play_all()


def number(study: Study, tasks: Sequence[Task], jobs: int | None, quiet: bool) -> int:
    """How many processes are to play; ExperimentError where that many cannot."""
    if jobs is not None and jobs < 1:
        raise ExperimentError(f"jobs must be at least 1, got {jobs}")
    wanted = min(cores() if jobs is None else jobs, len(tasks))
    if wanted == 1 or (jobs is None and study.timed):
        return 1
    if reason := not_sent(study, tasks):
        if jobs is not None:
            raise ExperimentError(f"jobs must be 1 for {study.name}, got {jobs}: {reason}")
        if not quiet:
            print(f"onepass: {study.name} is played in one process: {reason}", file=sys.stderr)
        return 1
    return wanted


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def not_sent(study: Study, tasks: Sequence[Task]) -> str:
    """Why another process cannot be told what to play, or nothing."""
    try:
        pickle.dumps((study, tasks))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        return f"another process cannot be sent it ({error}); functions and classes of a module can"
    return ""


class Crew:
    """Plays tasks here, in their order, and lets helpers take the next ones as they become free."""

    def __init__(
        self, study: Study, tasks: Sequence[Task], rounds: int, step: int, processes: int, meter: Meter, kept: Kept
    ) -> None:
        self.study, self.tasks, self.rounds, self.step = study, tasks, rounds, step
        self.helpers, self.meter, self.kept = processes - 1, meter, kept
        self.found = kept.found()
        self.pending = deque(place for place in range(len(tasks)) if place not in self.found)
        self.running = dict[int, Future[Results]]()
        self.before = -(-rounds // step) * len(self.found)  # steps that were played by an earlier run
        meter.advance(self.before)
        self.pool: ProcessPoolExecutor | None = None
        self.children: set[Any] = set()  # of others, before ours
        self.steps: Any = None  # that helpers have played
        self.seen = 0
        self.began = monotonic()
        self.finished = False

    def __enter__(self) -> "Crew":
        return self

    def __exit__(self, *_: object) -> None:
        """Let the helpers go; those at work are ended."""
        if self.pool is not None:
            for child in () if self.finished else set(active_children()) - self.children:
                child.terminate()
            # the pool alone waits for its processes: of two that wait for one, the second never learns of its end
            self.pool.shutdown(wait=True, cancel_futures=True)

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
        context = get_context("spawn")
        self.children, self.steps = set(active_children()), context.Value("q", 0)
        self.meter.say(f"{self.helpers + 1} processes play; seconds are longer than with one (--jobs 1)")
        self.pool = ProcessPoolExecutor(self.helpers, context, begin, (self.study, self.steps))
        self.look()

    def look(self) -> None:
        """Take what helpers have finished, give them the next tasks, and count their steps."""
        self.collect()
        assert self.pool is not None
        while self.pending and len(self.running) < self.helpers:
            place = self.pending.popleft()
            with deaf():
                self.running[place] = self.pool.submit(helped, self.tasks[place], self.rounds, self.step)
        played = self.steps.value
        if played > self.seen:
            self.meter.advance(played - self.seen)
            self.seen = played

    def collect(self) -> None:
        """Take what helpers have finished."""
        for place in [place for place, future in self.running.items() if future.done()]:
            try:
                self.found[place] = self.running.pop(place).result()
            except BrokenProcessPool as error:
                raise ExperimentError(
                    f"a process that played {self.tasks[place].label} ended too early (memory, or a script without "
                    'if __name__ == "__main__":); jobs=1 plays all in one'
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


# What a helper keeps between its tasks: the study, the counter of steps, what is compiled already.
HELD: dict[str, Any] = {}


def begin(study: Study, steps: Any) -> None:
    """A helper's first act."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    HELD.update(study=study, steps=steps, warm=set(), threads=threadpool_limits(1))


def helped(task: Task, rounds: int, step: int) -> Results:
    """What a helper does: load compiled code, then play."""
    for policy in task.policies:
        if policy.kind not in HELD["warm"]:
            HELD["study"].warm_up(policy)
            HELD["warm"].add(policy.kind)
    return play(HELD["study"], task, rounds, step, count)


def count() -> None:
    """One more step."""
    with HELD["steps"].get_lock():
        HELD["steps"].value += 1
