"""A child forked while threads work gets their locks as they are, and the threads that would open them are gone.

So whoever forks waits until the locks are open. They are re-entrant, for a signal's handler may fork as well.
"""

import os
from typing import Any


def open_at_fork(lock: Any) -> Any:
    """The lock, which `os.fork` waits for, and which is open in the child."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock
