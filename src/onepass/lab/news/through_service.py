"""News site in front of a decision service: requests and clicks go through HTTP, in the time of the simulation.

    visitor -> POST decide -> log -> article     click minutes later -> POST outcome     no click in half an hour: 0

    python -m onepass.lab.news.through_service --seeds 3 --days 20

The service is complete: application, log in SQLite, writer, join, learner and serving copies. Only a socket is missing.
Its clock is the site's, so ten days take a minute. Click rates are mean click probabilities of the shown articles. They
stand beside the rates of the best fixed policy (oracle.py), of the best article of each request, and of a random one.
"""

import argparse
import asyncio
import tempfile
import time
from heapq import heappop, heappush
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np

from onepass.lab.news.oracle import best_fixed
from onepass.lab.news.simulator import PATIENCE, PER_DAY, Request, Site
from onepass.log.records import SECOND
from onepass.log.sqlite import SqliteStore
from onepass.service.app import Service
from onepass.service.keys import Keys
from onepass.service.loop import Loop
from onepass.service.settings import LoopSettings, parse_settings

BEGIN = 1_800_000_000 * SECOND  # start of the site, microseconds of Unix time
HOUR = 3600 * SECOND
LOOK = 0.001  # seconds between two looks whether the service has learned
BEHIND = 50  # visitors wait if the deciding model lacks more rewards that are due: simulated time is faster
STUCK = 240.0  # seconds that a visitor waits at most
LAST = 5  # last days, whose click rate is reported
LOOP: dict[str, Any] = {"name": "news", "reward": {"wait": PATIENCE * 3600.0}, "model": {"recipe": "InteractionBandit"}}


class SiteClock:
    """Simulated clock: a call returns microseconds, each time at least one more than before."""

    def __init__(self) -> None:
        self.now = BEGIN

    def set_hour(self, hour: float) -> None:
        """Move the clock to this hour since the start of the simulation; a clock that is later stays as it is."""
        self.now = max(self.now, BEGIN + round(hour * HOUR))

    def __call__(self) -> int:
        self.now += 1
        return self.now


class ServiceRun(NamedTuple):
    """Result of simulated requests to a decision service.

    Parameters
    ----------
    places : indices of the shown articles (n,).
    propensities : their logged probabilities (n,).
    behind : mean number of rewards whose deadline had passed and that the deciding model had not yet learned.
    seconds : seconds from the start to the end.
    """

    places: np.ndarray
    propensities: np.ndarray
    behind: float
    seconds: float


def _make_settings(seed: int) -> LoopSettings:
    """Return the settings of the loop, with this seed of its model."""
    return parse_settings({**LOOP, "model": {**LOOP["model"], "seed": seed}})


def run_service(requests: list[Request], seed: int, folder: Path) -> ServiceRun:
    """Send the requests and their clicks to a decision service in this process, and return the `ServiceRun`.

    `seed` is the seed of the bandit, and `folder` holds the files of the service.
    """
    return asyncio.run(_run_service(requests, seed, folder))


async def _run_service(requests: list[Request], seed: int, folder: Path) -> ServiceRun:
    clock, settings, begun = SiteClock(), _make_settings(seed), time.monotonic()
    with SqliteStore(folder / "news.sqlite", synced=False) as store:
        loop = Loop(settings, store, folder / "news.models", lambda last: clock)
        service = Service({loop.name: loop}, {loop.name: Keys([])})
        transport = httpx.ASGITransport(app=service)
        try:
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1/v1/news/") as client:
                visits = _Visits(client, clock, loop)
                for request in requests:
                    await visits.visit(request)
        finally:
            loop.stop()
    return ServiceRun(
        np.array(visits.places), np.array(visits.propensities), float(np.mean(visits.behind)), time.monotonic() - begun
    )


class _Visits:
    """Visitors of the site, who come one after the other, with their clicks that have not arrived yet.

    `client` sends requests to the service, `clock` is the service's clock, and `loop` its loop. The lists `places` and
    `propensities` get the index and the probability of every shown article.
    """

    def __init__(self, client: httpx.AsyncClient, clock: SiteClock, loop: Loop) -> None:
        self.client, self.clock, self.loop = client, clock, loop
        self.places, self.propensities, self.behind = list[int](), list[float](), list[int]()
        self._clicks: list[tuple[float, str]] = []
        self._due = 0  # number of decisions whose deadline has passed
        self._hours = list[float]()

    async def visit(self, request: Request) -> None:
        """Post the clicks that have arrived by now, then the visitor's request."""
        while self._clicks and self._clicks[0][0] <= request.hour:
            hour, identity = heappop(self._clicks)
            self.clock.set_hour(hour)
            await self.post("outcome", {"id": identity, "value": 1.0, "key": "click"})
        self.clock.set_hour(request.hour)
        await self._wait_until_learned(request.hour)
        arms = [{"id": name, "features": features} for name, features in request.articles.items()]
        found = await self.post("decide", {"context": request.user, "arms": arms})
        place = list(request.articles).index(found["arm"])
        self.places.append(place)
        self.propensities.append(found["propensity"])
        self._hours.append(request.hour)
        if request.lot < request.chances[place]:
            heappush(self._clicks, (request.hour + request.delay, found["id"]))

    async def _wait_until_learned(self, hour: float) -> None:
        """Wait until the deciding model has learned all but `BEHIND` of the rewards that are due at this hour.

        In real time it would have learned them by then. Raises TimeoutError if the service does not learn.
        """
        while self._due < len(self._hours) and self._hours[self._due] + PATIENCE < hour:
            self._due += 1
        end = time.monotonic() + STUCK
        while self._due - self.loop.learner.snapshot.n_learned > BEHIND:
            if time.monotonic() > end:
                raise TimeoutError(f"the service does not learn: {self.loop.problem()}")
            await asyncio.sleep(LOOK)
        self.behind.append(max(self._due - self.loop.learner.snapshot.n_learned, 0))

    async def post(self, what: str, body: Any) -> Any:
        """Post `body` as JSON to the service's path `what`, and return the answer.

        Raises ValueError if the service refuses.
        """
        answer = await self.client.post(what, json=body)
        if answer.status_code != httpx.codes.OK:
            raise ValueError(f"the service refused: {answer.text}")
        return answer.json()


class Rates(NamedTuple):
    """Mean click probabilities on each day of a simulation, as arrays (days,).

    Parameters
    ----------
    served : array
        Mean over the articles that the service showed.
    fixed : array
        Mean over the articles that the best fixed linear policy shows.
    best : array
        Mean over the best articles on offer.
    any : array
        Mean over all articles on offer.
    run : ServiceRun
        Other results of the service.
    """

    served: np.ndarray
    fixed: np.ndarray
    best: np.ndarray
    any: np.ndarray
    run: ServiceRun

    def shares_of_best(self, last: int = LAST) -> tuple[float, float]:
        """Return two ratios of click rates in the last days: service to fixed policy, and service to best articles.

        `last` is the number of days.
        """
        own = self.served[-last:].mean()
        return own / self.fixed[-last:].mean(), own / self.best[-last:].mean()


def rates(seed: int, days: int, folder: Path) -> Rates:
    """Simulate a news site for `days` days in front of a service, and return the click rates."""
    requests = list(islice(Site(seed).requests(), days * PER_DAY))
    run, fixed = run_service(requests, seed, folder), best_fixed(requests)
    by_day = [
        np.array(values).reshape(days, -1).mean(axis=1)
        for values in (
            [one.chances[place] for one, place in zip(requests, run.places, strict=True)],
            [one.chances[place] for one, place in zip(requests, fixed, strict=True)],
            [one.chances.max() for one in requests],
            [one.chances.mean() for one in requests],
        )
    ]
    return Rates(by_day[0], by_day[1], by_day[2], by_day[3], run)


def main() -> None:
    """Simulate the service for every seed, and print a line with the click rates of all policies for each."""
    parser = argparse.ArgumentParser(description="A simulated news site before a decision service.")
    parser.add_argument("--seeds", type=int, default=3, help="how many sites (default 3)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument("--days", type=int, default=20, help="of 2,000 requests each (default 20)")
    given = parser.parse_args()
    print("seed | click rate: served, best fixed, best article, any | last days: of best fixed, of best article | "
          "all days | behind, ms a request")  # fmt: skip
    for seed in range(given.first, given.first + given.seeds):
        with tempfile.TemporaryDirectory() as folder:
            found = rates(seed, given.days, Path(folder))
        each, run = " ".join(f"{one.mean():.4f}" for one in found[:4]), found.run
        whole, last = found.shares_of_best(given.days), found.shares_of_best(min(LAST, given.days))
        cost = f"{run.behind:.1f}, {1e3 * run.seconds / len(run.places):.2f}"
        print(f"{seed} | {each} | {last[0]:.3f} {last[1]:.3f} | {whole[0]:.3f} {whole[1]:.3f} | {cost}", flush=True)


if __name__ == "__main__":
    main()
