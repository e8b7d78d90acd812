"""Ctrl-C and timeouts during compiled calls: nothing crashes, and what is learned is learned as a whole."""

import os
import signal
import subprocess
import sys
import time
from collections import namedtuple
from contextlib import contextmanager

import numba
import numpy as np
import pytest

import onepass as op
from interrupting_signals import Interrupted, alarms, raise_on_signal
from onepass.foundation import deferred_signals
from onepass.foundation.deferred_signals import defer_signals
from onepass.learner.contract import learn_examples
from onepass.model.shared_loop import learn_rows
from patience import PATIENCE

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # as finalizers may be hit

DIM = 6
BANDITS = {
    "exact": lambda: op.OFUL(dim=DIM, reg=0.37),
    "sketch": lambda: op.SOFUL(dim=DIM, size=2, reg=0.37),
    "blocks": lambda: op.DBSLinUCB(dim=DIM, size=2, error=1.0, reg=0.37),
    "huber": lambda: op.HvtUCB(dim=DIM, reg=0.37),
    "arena": lambda: op.Bandit(op.Disjoint(op.Ridge(op.FrequentDirections(dim=DIM, size=2, reg=0.37)))),
    "separate": lambda: op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=DIM, reg=0.37)), compact=False)),
}


def until_done(listen, step, done):
    """Repeat `step` until `done`, through all interruptions; how many there were."""
    came, end = 0, time.monotonic() + PATIENCE
    while True:
        try:
            while not done(came):
                listen[0] = True  # each time: what is raised in a finalizer reaches nobody
                step()
                assert time.monotonic() < end, f"only {came} signals were heard"
            listen[0] = False
            return came
        except Interrupted:
            came += 1


def learn_next(bandit, rows):
    i = bandit.n_learned % len(rows)
    bandit.learn(rows[i], float(i % 3), *([i % 5] if "Disjoint" in repr(bandit) else []))


@contextmanager
def ctrl_c():
    """SIGINT every millisecond or so from another process: at any time, not only where Python looks."""
    code = f"import os, time\nwhile True:\n    os.kill({os.getpid()}, {int(signal.SIGINT)})\n    time.sleep(0.001)"
    with raise_on_signal(signal.SIGINT) as listen, subprocess.Popen([sys.executable, "-c", code]) as sender:
        try:
            yield listen
        finally:
            sender.kill()
            sender.wait()


@pytest.mark.parametrize("sent", [ctrl_c, alarms])
@pytest.mark.parametrize("kind", BANDITS)
def test_what_was_learned_while_signals_came_is_what_is_learned_without(kind, sent):
    rows = np.random.default_rng(1).standard_normal((97, DIM))
    bandit, twin = BANDITS[kind](), BANDITS[kind]()
    learn_next(bandit, rows)
    learn_next(bandit, rows)  # its repr asks an arm for its bound: compiled before signals come
    usual = signal.getsignal(signal.SIGINT)
    with sent() as listen:
        until_done(listen, lambda: learn_next(bandit, rows), lambda came: came >= 60 and bandit.n_learned > 100)
    assert signal.getsignal(signal.SIGINT) is usual
    while twin.n_learned < bandit.n_learned:
        learn_next(twin, rows)
    arms = list(range(5))
    assert np.array_equal(bandit.score(rows[:5], arms), twin.score(rows[:5], arms))


def test_a_handler_that_raises_in_compiled_calls_crashes_nothing():
    """The first one was a segmentation fault: numba boxed what it returned by Python code, in which handlers run."""
    rows = np.random.default_rng(1).standard_normal((97, DIM))
    targets = np.where(rows[:, 0] > 0.0, 1.0, -1.0)
    bandit, learner = BANDITS["exact"](), op.learner.FORKS(budget=10, width=1.0).partial_fit(rows, targets)
    learn_next(bandit, rows)

    def step():
        learn_rows(
            bandit.model.state, False, bandit.model._tally, rows[:1], targets[:1], np.empty(0)
        )  # without `deferred`: states come back
        learn_examples(learner._state, rows, targets)
        bandit.decide(rows[:5])

    step()
    with alarms() as listen:
        assert until_done(listen, step, lambda came: came >= 100) == 100


@contextmanager
def handler_of_ctrl_c(handler):
    """Whatever the tests were started with: a shell may have told them to ignore SIGINT."""
    usual = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)


def test_ctrl_c_waits_for_the_end_of_the_block_and_is_then_handled_as_ever():
    order = []

    def block():
        with defer_signals():
            signal.raise_signal(signal.SIGINT)
            with defer_signals():
                signal.raise_signal(signal.SIGINT)
                order.append("inner")
            order.append("outer")
        order.append("never")

    with handler_of_ctrl_c(signal.default_int_handler):
        with pytest.raises(KeyboardInterrupt):
            block()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert order == ["inner", "outer"]
    with handler_of_ctrl_c(signal.SIG_IGN):
        with defer_signals():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_wherever_a_handler_raises_all_handlers_are_in_their_places_afterwards():
    """While those of the signals are put away and back the first or the last of them may still raise."""

    def blocks():
        for _ in range(100):
            with defer_signals():
                pass

    with handler_of_ctrl_c(signal.default_int_handler), alarms(0.0001) as listen:
        for came in range(1, 5000):
            until_done(listen, blocks, lambda interrupted, came=came: interrupted >= 1)
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, came


def test_deferring_takes_a_fraction_of_what_it_takes_by_way_of_the_signal_module(monkeypatch):
    """About a microsecond; the signal module takes ten times as long. Both in turns, whatever the machine does."""

    def spent():
        begin = time.thread_time()
        for _ in range(1000):
            with defer_signals():
                pass
        return time.thread_time() - begin

    def is_fraction():
        fast.append(spent())
        with monkeypatch.context() as other:
            for name in ("getsignal", "raise_signal", "signal"):
                other.setattr(deferred_signals, name, getattr(signal, name))
            slow.append(spent())
        return len(fast) >= 20 and min(fast) < 0.5 * min(slow)

    fast, slow = [], []
    assert any(is_fraction() for _ in range(200))


Pair = namedtuple("Pair", "left right")  # as users write them


class Ordered(Pair):
    """A NamedTuple with a constructor of its own."""

    __slots__ = ()

    def __new__(cls, left, right):
        return super().__new__(cls, min(left, right), max(left, right))


@pytest.mark.parametrize("kind", [Pair, Ordered])
def test_other_compiled_code_gets_its_named_tuples_and_arrays_as_ever(kind):
    @numba.njit
    def turned(pair, array):
        return pair, Pair(pair.right, array), Pair(1, 2), array[::-1]

    pair, array = kind(2.0, 3.0), np.arange(3.0)
    same, mixed, uniform, backwards = turned(pair, array)
    assert (type(same), same) == (kind, pair)
    assert type(mixed) is Pair
    assert mixed.right is array
    assert (type(uniform), uniform) == (Pair, Pair(1, 2))
    assert np.array_equal(backwards, [2.0, 1.0, 0.0])
    array[0] = 5.0
    assert backwards[2] == 5.0
