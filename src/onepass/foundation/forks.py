"""A child forked while threads work gets their locks as they are, and the threads that would open them are gone.

So whoever forks waits until the locks are open: first what threads may hold while they wait for other locks (objects
that learn, rw_lock.py), then the others. They are re-entrant, for a signal's handler may fork as well.
"""

import os
from collections.abc import Callable
from typing import Any, NamedTuple


class ForkHooks(NamedTuple):
    """Functions to call before a fork, and afterwards in the parent and in the child."""

    close: Callable[[], None]
    open: Callable[[], None]
    open_in_child: Callable[[], None]


_outer: list[ForkHooks] = []
_locks: list[Any] = []


def open_at_fork(lock: Any) -> Any:
    """Return the lock: `os.fork` waits for it, and it is open in the child."""
    _locks.append(lock)
    return lock


def register_fork_hooks(outer: ForkHooks) -> None:
    """Close these before all locks, and open them after all."""
    _outer.append(outer)


def _acquire_locks() -> None:
    for outer in _outer:
        outer.close()
    for lock in _locks:
        lock.acquire()


def _in_parent() -> None:
    for lock in reversed(_locks):
        lock.release()
    for outer in reversed(_outer):
        outer.open()


def _in_child() -> None:
    for lock in reversed(_locks):
        lock.release()
    for outer in reversed(_outer):
        outer.open_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_acquire_locks, after_in_parent=_in_parent, after_in_child=_in_child)
