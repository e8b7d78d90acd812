"""Signals that interrupt Python code at any moment."""

import signal
from contextlib import contextmanager


class Interrupted(Exception):
    """What the handlers of these tests raise."""


@contextmanager
def raising(number):
    """A handler that raises once for every `listen[0] = True`."""
    listen = [False]

    def heard(number, frame):
        if listen[0]:
            listen[0] = False
            raise Interrupted

    usual = signal.signal(number, heard)
    try:
        yield listen
    finally:
        signal.signal(number, usual)


@contextmanager
def alarms():
    """The signals of a timer, as timeouts use them."""
    with raising(signal.SIGALRM) as listen:
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.0013)
        try:
            yield listen
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
