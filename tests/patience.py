"""Waiting for other threads and processes until something holds, on however loaded a machine."""

import threading
import time

from onepass.log.records import SECOND

PATIENCE = 240.0  # seconds; a test that hangs is named and ended after 300
LOOK = 0.005  # seconds between two looks
BEGIN = 1_700_000_000  # seconds of Unix time: any


def until(holds, pause=LOOK):
    """What `holds` gives, as soon as it is true."""
    end = time.monotonic() + PATIENCE
    while not (found := holds()):
        assert time.monotonic() < end, "this never came"
        time.sleep(pause)
    return found


class HeldClock:
    """A clock of a loop that stands until a test lets time pass: what is said to be in time is, however loaded the
    machine. Microseconds, each given once, so a read takes one; what is 10 ms away needs 10,000 reads.
    """

    def __init__(self):
        self._now, self._lock = BEGIN * SECOND, threading.Lock()

    def __call__(self, after=None):
        """The time; told the last time in its log, as a loop begins it: this clock."""
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
    """Wait until all that was decided is joined and learned; with a held clock, let time pass before."""
    until(lambda: not len(loop.joiner) and not loop.learner.lag and loop.learner.seen >= last_join(loop.store))


def let_deadlines_pass(loop):
    """Let deadlines pass on a held clock; all is joined and learned."""
    loop.clock.forward(1.0)
    wait_until_learned(loop)


def last_join(store):
    return max((one.seq for one in store.read(kinds=["join"])), default=0)
