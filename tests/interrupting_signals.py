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
def raise_on_signal(number, error=Interrupted, before_it_returns=lambda: None):
    """Install a handler that raises once for every `listen[0] = True`."""
    listen = [False]

    def handle(number, frame):
        raises = listen[0] and is_heard(frame)
        if raises:
            listen[0] = False
        before_it_returns()
        if raises:
            raise error

    usual = signal.signal(number, handle)
    try:
        yield listen
    finally:
        signal.signal(number, usual)


@contextmanager
def alarms(after=0.0013):
    """Send the signals of a timer, as timeouts do, each `after` seconds after the handler of the one before.

    With a fixed period, handlers that take longer would interrupt themselves without end.
    """
    wait = [after]

    def start():
        signal.setitimer(signal.ITIMER_REAL, wait[0], 30 * wait[0])  # again, should a signal have been lost

    with raise_on_signal(signal.SIGALRM, before_it_returns=start) as listen:
        start()
        try:
            yield listen
        finally:
            wait[0] = 0.0
            start()
