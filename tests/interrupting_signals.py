"""Signals that interrupt Python code at any moment."""

import signal
from contextlib import contextmanager

UNHEARD = {"gc_callback", "__del__"}  # what is raised there reaches nobody; the first one is hypothesis's


class Interrupted(Exception):
    """Exception that the handlers of these tests raise."""


def is_heard(frame):
    """Return whether an exception raised here reaches its caller: not while garbage is collected."""
    while frame is not None:
        if frame.f_code.co_name in UNHEARD:
            return False
        frame = frame.f_back
    return True


@contextmanager
def raise_on_signal(number, error=Interrupted):
    """Install a handler that raises once for every `listen[0] = True`."""
    listen = [False]

    def handle(number, frame):
        if listen[0] and is_heard(frame):
            listen[0] = False
            raise error

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
