"""Waiting for other threads and processes, also on a loaded machine."""

import threading
import time

from onepass.log.records import SECOND

PATIENCE = 480.0  # seconds; a test that hangs is named and ended after 900
LOOK = 0.005  # seconds between two looks
BEGIN = 1_700_000_000  # seconds of Unix time: any


def until(holds, pause=LOOK):
    """Wait until `holds()` is true, and return its value."""
    end = time.monotonic() + PATIENCE
    while not (value := holds()):
        assert time.monotonic() < end, "this never came"
        time.sleep(pause)
    return value


class HeldClock:
    """Clock of a loop that stands still until a test lets time pass, so that deadlines do not depend on the machine.

    It returns microseconds of Unix time. Every read takes one microsecond, so that no time is returned twice.
    """

    def __init__(self):
        self._now, self._lock = BEGIN * SECOND, threading.Lock()

    def __call__(self, after=None):
        """Return the time, or with `after`, the last time of a log, go on behind it and return the clock itself."""
        with self._lock:
            if after is not None:
                self._now = max(self._now, after)
                return self
            self._now += 1
            return self._now

    def forward(self, seconds):
        """Let time pass."""
        with self._lock:
            self._now += round(seconds * SECOND)


def wait_until_learned(loop):
    """Wait until all decisions are joined and learned. With a HeldClock, let time pass before."""
    until(lambda: not len(loop.joiner) and not loop.learner.lag and loop.learner.seen >= last_join(loop.store))
    finish_learning(loop)


def finish_learning(loop):
    """Let the learner finish its step, with candidates, counts and evictions; and publish, if `publish` is 0 seconds.

    By itself it publishes so rarely that copying takes a tenth of the time: on a busy machine the next decisions would
    be those of an older model.
    """
    act = loop.learner.publish_copies if loop.learner.publish == 0.0 else bool
    loop.learner.run_after_learning(act).result(PATIENCE)


def let_deadlines_pass(loop):
    """Let deadlines pass on a HeldClock, and wait until all decisions are joined and learned."""
    loop.clock.forward(1.0)
    wait_until_learned(loop)


def last_join(store):
    return max((one.seq for one in store.read(kinds=["join"])), default=0)
