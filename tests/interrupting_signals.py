"""Signals that interrupt Python code at any moment."""

import signal
from contextlib import contextmanager


class Interrupted(Exception):
    """Exception that the handlers of these tests raise."""


@contextmanager
def raise_on_signal(number):
    """Install a handler that raises once for every `listen[0] = True`."""
    listen = [False]

    def handle(number, frame):
        if listen[0]:
            listen[0] = False
            raise Interrupted

    usual = signal.signal(number, handle)
    try:
        yield listen
    finally:
        signal.signal(number, usual)


@contextmanager
def alarms():
    """Send the signals of a timer, as timeouts do."""
    with raise_on_signal(signal.SIGALRM) as listen:
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.0013)
        try:
            yield listen
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
