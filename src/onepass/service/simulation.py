"""Simulated visitors of a news site: they ask a service for an article, and may click on it some seconds later.

    P(click | visitor x, article a) = x^T WORLD[a],     x = (morning, mobile, returning, 1)

The service does not know the table WORLD. With it, the expected clicks of the best policy and of the service are exact.
"""

import heapq
import http.client
import json
import ssl
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import numpy as np

SETTINGS = Path(__file__).parent / "demo.toml"
NAMES = ("morning", "mobile", "returning", "one")
OFTEN = (0.4, 0.6, 0.5, 1.0)  # probability that each feature is 1
WORLD: Mapping[str, tuple[float, ...]] = {
    "local": (0.00, 0.08, 0.00, 0.14),
    "sport": (-0.42, 0.05, 0.00, 0.52),
    "economy": (0.50, -0.04, 0.04, 0.05),
    "culture": (0.00, -0.06, 0.42, 0.12),
    "weather": (0.10, 0.10, 0.00, 0.05),
}
SLOW = 1.2  # seconds to a click, on average
PATIENCE = 30.0  # seconds for an answer
AGAIN = 0.5  # seconds to wait after a request without an answer
LOST = 10  # requests in a row without an answer, after which the simulation ends
BACKLOG = 1.0  # seconds that a slow service may fall behind before visitors are skipped
TELL = 10.0  # seconds between two lines of progress


class PolicyValues(NamedTuple):
    """Expected clicks per visitor of three policies.

    They are the best policy, always the first article, and a random article (`even`).
    """

    best: float
    first: float
    even: float


def policy_values() -> PolicyValues:
    """Return the exact expected clicks per visitor of three policies, averaged over all visitors."""
    table = np.array([*WORLD.values()])
    found = np.zeros(3)
    for which in range(2 ** (len(NAMES) - 1)):
        x = np.array([*(which >> j & 1 for j in range(len(NAMES) - 1)), 1.0])
        rates, chance = table @ x, float(np.prod(np.where(x == 1.0, OFTEN, 1.0 - np.array(OFTEN))))
        found += chance * np.array([rates.max(), rates[0], rates.mean()])
    return PolicyValues(*found.tolist())


class Visitors:
    """Simulated visitors of one loop.

    Parameters
    ----------
    address : str
        Address of the service, such as "http://127.0.0.1:8000".
    loop : str
        Name of the loop.
    seed : int, default 0
        Seed of the visitors' features, clicks and pauses.
    key : str, default None
        Key to send, if the service has keys.
    tls : ssl.SSLContext, default None
        TLS context. None trusts the usual authorities.
    """

    def __init__(
        self, address: str, loop: str, seed: int = 0, key: str | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        parts = urlsplit(address)
        self._connection = http.client.HTTPConnection(parts.netloc, timeout=PATIENCE)
        if parts.scheme == "https":
            self._connection = http.client.HTTPSConnection(parts.netloc, timeout=PATIENCE, context=tls)
        self._path, self._random = f"/v1/{quote(loop)}", np.random.default_rng(seed)
        self._headers = {"content-type": "application/json"}
        if key is not None:
            self._headers["authorization"] = f"Bearer {key}"
        self._clicks: list[tuple[float, str]] = []
        self.shown = 0
        self.clicked = 0
        self.expected = 0.0  # clicks, by the table

    def _post(self, what: str, body: Any) -> Any:
        self._connection.request("POST", f"{self._path}/{what}", json.dumps(body), self._headers)
        answer = self._connection.getresponse()
        said = json.loads(answer.read())
        if answer.status != 200:
            raise ValueError(f"the service refused: {said['error']['message']}")
        return said

    def visit(self, now: float) -> None:
        """Let a visitor come at the time `now`, and show the article that the service decides on.

        The time is in seconds of the monotonic clock.
        """
        x = (self._random.random(len(NAMES)) < OFTEN).astype(float)
        found = self._post("decide", {"context": dict(zip(NAMES, x.tolist(), strict=True)), "arms": [*WORLD]})
        rate = float(x @ WORLD[found["arm"]])
        self.shown += 1
        self.expected += rate
        if self._random.random() < rate:
            heapq.heappush(self._clicks, (now + self._random.exponential(SLOW), found["id"]))

    def click(self, now: float) -> None:
        """Send the clicks of simulated visitors that are due by `now`, in seconds of the monotonic clock."""
        due = []
        while self._clicks and self._clicks[0][0] <= now:
            due.append(heapq.heappop(self._clicks)[1])
        if due:
            self._post("outcome", [{"id": each, "value": 1.0, "key": "click"} for each in due])
            self.clicked += len(due)

    def pause(self, rate: float) -> float:
        """Draw the seconds until the next visitor, for `rate` visitors a second."""
        return float(self._random.exponential(1.0 / rate))

    def close(self) -> None:
        """Close the connection; the next request opens another one."""
        self._connection.close()


def simulate(
    address: str,
    loop: str = "demo",
    *,
    rate: float = 40.0,
    seconds: float | None = None,
    seed: int = 0,
    key: str | None = None,
    tls: ssl.SSLContext | None = None,
    tell: Callable[[str], object] = print,
) -> Visitors:
    """Simulate visitors until the time is over, or the service no longer answers; return the visitors.

    `address`, `loop`, `seed`, `key` and `tls` are the arguments of `Visitors`. `rate` is in visitors a second.
    `seconds` is the duration, or None for no limit. `tell` is called with a line of progress every 10 seconds. Raises
    ValueError if the service refuses a request.
    """
    truth, visitors = policy_values(), Visitors(address, loop, seed, key, tls)
    first = next(iter(WORLD))
    tell(f"clicks a visitor: best policy {truth.best:.3f}, always {first} {truth.first:.3f}, any {truth.even:.3f}")
    begin = time.monotonic()
    due, told, lost = begin, begin, 0
    try:
        while seconds is None or time.monotonic() - begin < seconds:
            time.sleep(max(due - time.monotonic(), 0.0))
            now = time.monotonic()
            due = max(due + visitors.pause(rate), now - BACKLOG)
            try:
                visitors.visit(now)
                visitors.click(now)
                lost = 0
            except (OSError, http.client.HTTPException):
                visitors.close()
                lost += 1
                if lost == LOST:
                    break
                time.sleep(AGAIN)
            if now - told >= TELL:
                told = now
                tell(f"{visitors.shown} visitors, {visitors.expected / visitors.shown:.3f} expected clicks each")
    finally:
        visitors.close()
    return visitors
