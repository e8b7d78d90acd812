"""Fork hooks, which keep locks usable in a child process that is forked while threads work.

Such a child inherits the locks as they are, but not the threads that would release them. Therefore `os.fork` first
waits until the locks are released: first the locks of objects that learn (rw_lock.py), which threads may hold while
they wait for other locks, then all others. The locks are re-entrant, because a signal handler may fork as well.
"""

import os
from collections.abc import Callable
from typing import Any, NamedTuple


class ForkHooks(NamedTuple):
    """Functions to call at a fork of the process.

    `close` is called before the fork, then `open` in the parent and `open_in_child` in the child.
    """

    close: Callable[[], None]
    open: Callable[[], None]
    open_in_child: Callable[[], None]


_outer: list[ForkHooks] = []
_locks: list[Any] = []


def open_at_fork(lock: Any) -> Any:
    """Register a lock so that `os.fork` waits for it and it is unlocked in the child; return the lock."""
    _locks.append(lock)
    return lock


def register_fork_hooks(outer: ForkHooks) -> None:
    """Register the functions `outer` to call at a fork, before all locks are taken and after they are released."""
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
