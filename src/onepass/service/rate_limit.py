"""Rate limit for each client, by the generic cell rate algorithm (GCRA), an equivalent of the token bucket.

    next = max(next, t) + 1 / rate      for a request at time t, which is refused if this exceeds t + 1 s

A client may send the requests of one second at once, and after that `rate` of them a second. A single request always
passes.
"""

import math
import time
from collections.abc import Callable

from onepass.service.messages import ApiError

AHEAD = 1.0  # seconds whose requests may come at once
KNOWN = 10_000  # clients that are remembered; those who have waited longest are forgotten


class RateLimiter:
    """Rate limiter for all clients of a service; `now` returns the time in seconds (default: monotonic time)."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._next: dict[tuple[str, str | None], float] = {}

    def admit(self, loop: str, client: str | None, rate: float) -> None:
        """Count a request of a client; raise ApiError if it exceeds the rate.

        `rate` is in requests a second; 0 means no limit.
        """
        if rate <= 0.0:
            return
        now, who, step = self._now(), (loop, client), 1.0 / rate
        following = max(self._next.pop(who, now), now)
        ahead = following - now
        allowed = ahead == 0.0 or ahead + step <= AHEAD
        self._next[who] = following + step if allowed else following
        if len(self._next) > KNOWN:
            del self._next[next(iter(self._next))]
        if not allowed:
            wait = max(math.ceil(ahead + step - AHEAD), 1)
            raise ApiError(429, "TooManyRequests", f"at most {rate:g} requests a second are taken (limits.rate)", wait)
