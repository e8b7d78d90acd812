"""Studies of news sites: all policies before the same requests; rewards come when they come."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import islice
from statistics import fmean
from time import thread_time
from typing import Any

from onepass.experiment.definition import CHECKPOINTS, Trial, curve_rows, final_rows
from onepass.experiment.drawing import bars, canvas, plot, tall, title
from onepass.experiment.figure import Figure, Line, Picture, Row
from onepass.experiment.looks import styles
from onepass.experiment.news.site import PATIENCE, Site
from onepass.experiment.policy import Policy
from onepass.experiment.tables import by, extent, policy_of, price, standard_error

TRIED = 40  # requests of a throw-away copy


class Server:
    """A policy, and the decisions that wait for their clicks: half an hour of nothing is a reward of 0. Seconds are
    those of the processor, which is all that a policy takes."""

    def __init__(self, policy: Any) -> None:
        self.policy = policy
        self.waiting: list[tuple[float, int, Any, float]] = []
        self.seconds, self.clicks, self.missed, self.served = 0.0, 0.0, 0.0, 0

    def serve(self, request: Any) -> None:
        """Learn what has arrived, then choose."""
        began = thread_time()
        while self.waiting and self.waiting[0][0] <= request.hour:
            _, _, decision, reward = heappop(self.waiting)
            self.policy.learn(decision, reward)
        decision = self.policy.decide(request.user, request.articles)
        self.seconds += thread_time() - began
        chance = float(request.chances[decision.index])
        self.clicks += chance
        self.missed += float(request.chances.max()) - chance
        clicked = request.lot < chance and request.delay < PATIENCE
        due = request.hour + (request.delay if clicked else PATIENCE)
        heappush(self.waiting, (due, self.served, decision, float(clicked)))
        self.served += 1

    def point(self) -> dict[str, Any]:
        """Where it stands."""
        return {
            "round": self.served,
            "cumulative_reward": self.clicks,
            "cumulative_regret": self.missed,
            "click_rate": self.clicks / self.served,
            "seconds": self.seconds,
            "memory_bytes": self.policy.memory_usage(),
        }


class NewsTrial:
    """One seed. Rewards and regret are sums of probabilities of a click, not of clicks."""

    def __init__(self, site: Site, policies: Sequence[Policy], seed: int) -> None:
        self.requests, self.policies, self.seed = site.requests(), policies, seed
        self.servers = [Server(policy.build(seed=seed)) for policy in policies]
        self.points: list[list[dict[str, Any]]] = [[] for _ in policies]

    def step(self, start: int, rounds: int) -> None:
        for _ in range(rounds):
            request = next(self.requests)
            for server in self.servers:
                server.serve(request)
        for server, points in zip(self.servers, self.points, strict=True):
            points.append(server.point())

    def rows(self) -> list[dict[str, Any]]:
        return final_rows(
            self.policies, self.seed, self.points, lambda points: {"click_rate": points[-1]["click_rate"]}
        )

    def curves(self) -> list[dict[str, Any]]:
        return curve_rows(self.policies, self.seed, self.points)


def lines(rows: Sequence[Row]) -> list[Line]:
    """One line per policy: expected click rate with its standard error, share of what could be had, and costs."""
    found = []
    for label, own in by(rows, policy_of).items():
        rates = [row["click_rate"] for row in own]
        best = [(row["cumulative_reward"] + row["cumulative_regret"]) / row["rounds"] for row in own]
        found.append(
            {
                "policy": label,
                "click rate": f"{fmean(rates):.4f} ± {standard_error(rates):.4f}",
                "of the best": f"{fmean(rates) / fmean(best):.3f}",
                **price(own),
                **extent(own),
            }
        )
    return found


def draw(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Click rate over requests, and time a request."""
    figure = canvas(8.5, 4.8 + tall(rows))
    axes = figure.subplot_mosaic([["clicks"], ["time"]], height_ratios=[4.4, tall(rows)])
    looks = styles(rows, "policy")
    plot(axes["clicks"], curves, "click_rate", looks)
    axes["clicks"].set(title="expected click rate so far, mean and standard error", xlabel="request")
    axes["clicks"].set_xlim(0, max(row["round"] for row in curves))
    bars(axes["time"], rows, "microseconds_per_round", 1.0, "microseconds a request", looks)
    title(figure, rows, f"{rows[0]['rounds']:,} requests")
    return figure


NEWS = Figure("news", lines, draw)


@dataclass(frozen=True)
class NewsStudy:
    """site(seed) is what a seed is about; the others as in every study."""

    name: str
    description: str
    site: Callable[[int], Site]
    policies: tuple[Policy, ...]
    rounds: int = 20_000
    seeds: int = 10
    figure: Figure = NEWS
    grid: Mapping[str, Sequence[float]] = field(default_factory=dict)
    timed: bool = False

    def trial(self, policies: Sequence[Policy], seed: int) -> Trial:
        return NewsTrial(self.site(seed), policies, seed)

    def warm_up(self, policy: Policy) -> None:
        server = Server(policy.build(seed=0))
        for request in islice(self.site(0).requests(), TRIED):
            server.serve(request)
            server.waiting = [(request.hour, *rest) for _, *rest in server.waiting]

    def step_size(self, rounds: int) -> int:
        return max(1, rounds // CHECKPOINTS)
