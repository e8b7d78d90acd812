"""The lock of shared objects: nobody starves, whatever handlers raise nothing stays locked, forks find it open."""

import copy
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import onepass as op
from counts import repetitions
from interrupting_signals import Interrupted, alarms
from onepass.foundation.rw_lock import SharedObject, composite, reading, writing
from patience import PATIENCE, until
from thread_games import ASKED, ROWS, SKETCH, run_together, switching

finalizers_may_be_hit = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


class Counter(SharedObject):
    """Two numbers that are equal whenever nobody writes."""

    def __init__(self, pause=0.0):
        self.first = self.second = 0
        self.pause = pause

    @reading
    def read(self, inner=None):
        first = self.first
        time.sleep(self.pause)
        if inner is not None:
            inner()
        assert first == self.second
        return first

    @writing
    def write(self, inner=None, *, step=1):
        self.first += step
        time.sleep(self.pause)
        if inner is not None:
            inner()
        self.second += step
        return self.first

    @composite
    def twice(self, inner=None):
        self.write()
        if inner is not None:
            inner()
        return self.write()


def free(shared):
    """Whether nobody has it."""
    lock = shared.sharing
    others: list[bool] = []
    asked = threading.Thread(target=lambda: others.append(lock.turn.acquire(timeout=PATIENCE)) or lock.turn.release())
    asked.start()
    asked.join()
    return others == [True] and not (lock.readers or lock.writer or lock.waiting or lock.queue or lock.waits)


def test_decorated_methods_are_called_as_before():
    one = Counter()
    assert one.write(None, step=3) == one.first == one.second == 3
    assert one.write(step=2) == 5
    assert Counter.read(one) == 5
    assert Counter.write.__name__ == "write"
    with pytest.raises(TypeError, match="unexpected keyword argument 'steps'"):
        one.write(steps=3)
    assert free(one)


def test_what_a_method_raises_is_raised_and_the_object_is_free():
    one = Counter()

    def fail():
        raise KeyError("of the method")

    for method in (one.read, one.write, one.twice):
        with pytest.raises(KeyError, match="of the method"):
            method(fail)
        assert free(one)


def test_reads_may_be_made_of_reads_and_writes_of_reads_and_composed_writes_of_writes():
    one = Counter()
    assert one.read(one.read) == 0
    one.write(lambda: one.first)
    assert one.twice(one.read) == 3
    assert one.twice(one.write) == 6
    assert one.twice(one.twice) == 10
    assert free(one)


@pytest.mark.parametrize("outer", ["read", "write"])
def test_a_write_within_a_read_or_a_write_of_the_same_thread_is_refused(outer):
    one = Counter()
    with pytest.raises(RuntimeError, match="write cannot change this Counter from within another of its methods"):
        getattr(one, outer)(one.write)
    assert free(one)
    with pytest.raises(RuntimeError, match="write cannot change"):
        one.twice(lambda: one.write(one.write))
    assert free(one)


def test_readers_do_not_keep_a_writer_out_and_a_writer_keeps_no_reader_out():
    """Every write lets in all who wait: no reader has less than half of the reads that writes left room for.

    A write ends when all readers wait, so that the machine may keep a thread from running for as long as it likes.
    """
    one, times, reads, over = Counter(0.0003), repetitions(60, 6000), [0] * 4, threading.Event()

    def write():
        try:
            for _ in range(times):
                one.write(lambda: until(lambda: len(one.sharing.waiting) == 4, pause=0.0003))
        finally:
            over.set()

    def read(i):
        while not over.is_set():
            one.read()
            reads[i] += 1

    assert run_together(write, *[lambda i=i: read(i) for i in range(4)]) == []
    assert min(reads) >= times // 2
    assert one.first == times


def test_writers_take_turns():
    """Who has written goes to the end of the queue: when the first is done, each has written about as often.

    A write ends when all others are in the queue, whenever the machine lets them run.
    """
    one, times, written, over = Counter(0.0003), repetitions(60, 6000), [0] * 4, threading.Event()

    def write(i):
        while not over.is_set():
            one.write(lambda: until(lambda: len(one.sharing.queue) == 3 or over.is_set(), pause=0.0003))
            written[i] += 1
            if written[i] == times:
                over.set()

    assert run_together(*[lambda i=i: write(i) for i in range(4)]) == []
    assert min(written) >= times // 2
    assert one.first == one.second == sum(written)


@finalizers_may_be_hit
def test_after_handlers_that_raise_at_any_time_nothing_stays_locked():
    """Alone, and beside threads that read and write: then the handlers hit those who wait."""
    one, over = Counter(), threading.Event()

    def others(act):
        while not over.is_set():
            act()

    threads = [threading.Thread(target=others, args=(act,)) for act in (one.read, one.write)]
    with switching(), alarms(0.00013) as listen:
        for wave in range(2):
            came, end = 0, time.monotonic() + PATIENCE / 2
            while came < repetitions(400, 40_000) and time.monotonic() < end:
                try:
                    listen[0] = True
                    for _ in range(20):
                        one.read()
                        one.read(one.read)
                except Interrupted:
                    came += 1
                except AssertionError:  # of a write that a handler has broken off
                    one.first = one.second
            listen[0] = False
            assert came >= 100
            if wave == 0:
                assert free(one)
                for thread in threads:
                    thread.start()
    over.set()
    for thread in threads:
        thread.join()
    assert free(one)


@finalizers_may_be_hit
def test_writes_that_handlers_break_off_leave_nothing_locked():
    one, over = op.OFUL(dim=10), threading.Event()

    def read():
        while not over.is_set():
            one.score(ASKED)

    threads = [threading.Thread(target=read) for _ in range(2)]
    one.learn(ROWS[0], 1.0)
    one.score(ASKED)
    for thread in threads:
        thread.start()
    came, end = 0, time.monotonic() + PATIENCE / 2
    with switching(), alarms() as listen:
        while came < repetitions(200, 20_000) and time.monotonic() < end:
            try:
                listen[0] = True
                one.learn(ROWS[came % 50], 1.0)
                one.decide(ASKED)
                listen[0] = False  # none comes outside of this try
            except Interrupted:
                came += 1
    over.set()
    for thread in threads:
        thread.join()
    assert came >= 50
    assert free(one)


def test_a_handler_decides_and_saves_whatever_the_thread_does_and_learns_between_its_calls(tmp_path):
    """Never a deadlock: beside two readers and a writer the main thread is hit wherever it is, also where it waits."""
    one, over, heard = op.OFUL(dim=10), threading.Event(), {"decided": 0, "learned": 0, "refused": 0}
    one.learn(ROWS[:5], ROWS[:5, 0])
    one.decide(ASKED)
    op.from_bytes(op.to_bytes(one)).score(ASKED)

    def handler(number, frame):
        one.decide(ASKED)
        heard["decided"] += 1
        if heard["decided"] % 10 == 0:
            one.save(tmp_path / "saved")
            op.load(tmp_path / "saved").score(ASKED)
        try:
            one.learn(ROWS[0], 1.0)
            heard["learned"] += 1
        except RuntimeError:
            heard["refused"] += 1
        signal.setitimer(signal.ITIMER_REAL, 0.002)  # the next one when this one is over

    def others(act):
        while not over.is_set():
            act()

    acts = (lambda: one.score(ASKED), lambda: one.score(ASKED), lambda: one.learn(ROWS[1], 0.5))
    threads = [threading.Thread(target=others, args=(act,)) for act in acts]
    usual = signal.signal(signal.SIGALRM, handler)
    end = time.monotonic() + PATIENCE
    try:
        with switching():
            for thread in threads:
                thread.start()
            signal.setitimer(signal.ITIMER_REAL, 0.002)
            while heard["decided"] < repetitions(100, 10_000) and time.monotonic() < end:
                one.learn(ROWS[2], 0.25)
                one.decide(ASKED)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, usual)
        over.set()
        for thread in threads:
            thread.join()
    assert heard["decided"] >= repetitions(100, 10_000)
    assert heard["learned"] + heard["refused"] >= heard["decided"] - 1
    assert free(one)


def test_a_lock_is_no_part_of_what_is_copied_pickled_or_compared():
    one = op.OFUL(dim=10)
    twins = (one.copy(), copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one)))
    assert len({id(twin.sharing) for twin in (one, *twins)}) == 5
    assert all("sharing" not in vars(twin) for twin in (one, *twins))
    assert one.with_exploration(op.Greedy()).sharing is one.sharing  # they share what they learned
    learner = op.learner.FORKS(budget=10, width=1.0)
    held = learner.sharing
    assert learner.set_params(budget=12).sharing is held


def test_learners_of_an_estimator_are_read_and_written_with_it():
    labels = np.arange(len(ROWS)) % 3
    one = op.OnlineKernelClassifier(op.learner.RBP(budget=10)).partial_fit(ROWS, labels, classes=[0, 1, 2])
    for twin in (one, one.copy(), pickle.loads(pickle.dumps(one)), copy.deepcopy(one), op.from_bytes(op.to_bytes(one))):
        assert all(learner.sharing is twin.sharing for learner in twin.learners_)
    assert one.copy().sharing is not one.sharing


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # threads and forks
def test_whoever_forks_waits_for_readers_and_others_read_again_afterwards():
    """A reader may be within the BLAS, whose lock of its buffers a child would get as it is."""
    one, inside, left = Counter(), threading.Event(), []

    def linger():
        inside.set()
        time.sleep(0.3)  # longer than whoever forks keeps others out at a time
        left.append("reader")

    reader = threading.Thread(target=one.read, args=(linger,))
    reader.start()
    assert inside.wait(PATIENCE)
    child = os.fork()
    if child == 0:
        os._exit(7 if left == ["reader"] and one.read() == 0 and one.write() == 1 else 3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    reader.join()
    assert free(one)
    assert one.write() == one.read() == 1


FORKS = """
import os, sys, threading, time
sys.path.insert(0, sys.argv[1])
import onepass as op
from thread_games import ALL, CALLS, history

kind = ALL[sys.argv[2]]
known, held = history(kind), [kind.make()]
op.from_bytes(op.to_bytes(held[0]))

def write():
    while True:
        for i in range(CALLS):
            kind.write(held[0], i)
        held[0] = kind.make()

def read():
    while True:
        kind.read(held[0])
        held[0].copy()

for job in (write, read, read):
    threading.Thread(target=job, daemon=True).start()
time.sleep(0.05)
for _ in range(int(sys.argv[3])):
    child = os.fork()
    if child == 0:
        one = held[0]
        there = kind.read(one).tobytes() in known and kind.read(op.from_bytes(op.to_bytes(one))).tobytes() in known
        kind.write(one, 0)
        os._exit(7 if there else 3)
    end = time.monotonic() + 400.0
    while not (found := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > end:
            os.kill(child, 9)
            print("a child hangs", flush=True)
            os._exit(1)
        time.sleep(0.001)
    if (code := os.waitstatus_to_exitcode(found[1])) != 7:
        print("a child has half a state" if code == 3 else f"a child ended with {code}", flush=True)
        os._exit(2)
print("all went on", flush=True)
os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.parametrize("name", ["exact", "arms in an arena", "GPUCB", "FORKS", "Exact"])
def test_a_child_forked_while_threads_learn_and_copy_has_a_whole_state_and_goes_on(name, tmp_path):
    (tmp_path / "forks.py").write_text(FORKS)
    environment = {**os.environ, "PYTHONPATH": str(Path(op.__file__).parent.parent)}
    command = [sys.executable, "-W", "ignore::DeprecationWarning", str(tmp_path / "forks.py")]
    command += [str(Path(__file__).parents[1]), name, str(repetitions(40, 2000))]
    run = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=repetitions(PATIENCE, 3000)
    )
    told = [line for line in run.stderr.splitlines() if not line.startswith("onepass: compiling")]  # on a cold cache
    assert (run.stdout, told) == ("all went on\n", [])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.parametrize("method", ["read", "write"])
def test_who_forks_within_a_method_goes_on_in_it_in_both_processes(method):
    """As a handler of signals may, or a kernel of the user's own."""
    one = Counter()
    found = []

    def fork():
        child = os.fork()
        found.append(child)

    getattr(one, method)(fork)
    if found[0] == 0:
        one.write()
        os._exit(7 if free(one) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(found[0], 0)[1]) == 7
    assert free(one)


def test_an_arena_that_somebody_holds_a_view_of_grows_elsewhere():
    """In place, the view would show memory that is no longer there."""
    bandit = op.Bandit(op.Disjoint(op.Ridge(SKETCH)))
    bandit.learn(ROWS[:20], ROWS[:20, 0], list(range(20)))
    view = bandit.model.state.store.state.basis[:5]
    before, base = view.copy(), view.base
    bandit.learn(ROWS, ROWS[:, 0], [f"new {i}" for i in range(len(ROWS))])
    assert np.array_equal(view, before)
    assert bandit.model.state.store.state.basis is not base
    held = id(bandit.model.state.store.state.basis)
    del view, base
    bandit.learn(ROWS, ROWS[:, 0], [f"newer {i}" for i in range(len(ROWS))])
    assert id(bandit.model.state.store.state.basis) == held
