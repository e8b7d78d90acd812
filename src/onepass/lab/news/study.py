"""Studies of news sites: all policies see the same requests, and learn every reward at its deadline."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from statistics import fmean
from time import thread_time
from typing import Any

from onepass.lab.definition import CHECKPOINTS, Trial, curve_rows, final_rows
from onepass.lab.drawing import bar_chart_height, canvas, draw_bars, plot_curves, set_title
from onepass.lab.figure import Figure, Line, Picture, Row
from onepass.lab.line_styles import assign_styles
from onepass.lab.news.simulator import PATIENCE, Site
from onepass.lab.policy import Policy
from onepass.lab.tables import cost_columns, group_rows, policy_label, size_columns, standard_error

TRIED = 40  # number of requests of a throw-away copy
AFTERWARDS = 1000.0  # hour of the site at which all its deadlines have passed


class Server:
    """Simulated service of a news site: a policy chooses articles, and learns each reward at a deadline.

    The deadline is half an hour after the decision. The reward is 1 if a click came before it, else 0. Seconds are
    processor time.
    """

    def __init__(self, policy: Any) -> None:
        self.policy = policy
        self.waiting: deque[tuple[float, Any, float]] = deque()  # hour of the deadline, decision, reward
        self.seconds, self.clicks, self.missed, self.served = 0.0, 0.0, 0.0, 0

    def serve(self, request: Any) -> None:
        """Learn rewards that are due, then choose an article for the request."""
        began = thread_time()
        self.learn_until(request.hour)
        place = self.choose(request)
        self.seconds += thread_time() - began
        chance = float(request.chances[place])
        self.clicks += chance
        self.missed += float(request.chances.max()) - chance
        self.served += 1

    def learn_until(self, hour: float) -> None:
        """Learn the rewards whose deadline has passed by this hour of the simulation."""
        while self.waiting and self.waiting[0][0] <= hour:
            _, decision, reward = self.waiting.popleft()
            self.policy.learn(decision, reward)

    def choose(self, request: Any) -> int:
        """Return the index of the article that is shown, and queue the decision with its reward until the deadline."""
        decision = self.policy.decide(request.user, request.articles)
        clicked = request.lot < request.chances[decision.index] and request.delay < PATIENCE
        self.waiting.append((request.hour + PATIENCE, decision, float(clicked)))
        return int(decision.index)

    def point(self) -> dict[str, Any]:
        """Return the measurements so far by name.

        "round" is the number of requests, "cumulative_reward" the number of expected clicks, and "click_rate" their
        quotient. Further names are "cumulative_regret", "seconds" and "memory_bytes".
        """
        return {
            "round": self.served,
            "cumulative_reward": self.clicks,
            "cumulative_regret": self.missed,
            "click_rate": self.clicks / self.served,
            "seconds": self.seconds,
            "memory_bytes": self.policy.memory_usage(),
        }


class NewsTrial:
    """Trial of one seed: all policies serve the same requests.

    Rewards and regret are sums of click probabilities, not of clicks.
    """

    def __init__(self, site: Site, policies: Sequence[Policy], seed: int, server: Callable[[Any], Server]) -> None:
        self.requests, self.policies, self.seed = site.requests(), policies, seed
        self.servers = [server(policy.build(seed=seed)) for policy in policies]
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
            self.policies,
            self.seed,
            self.points,
            lambda points: {"click_rate": points[-1]["click_rate"], "last_half": last_half(points)},
        )

    def curves(self) -> list[dict[str, Any]]:
        return curve_rows(self.policies, self.seed, self.points)


def last_half(points: Sequence[Mapping[str, Any]]) -> float:
    """Return the click rate in the second half of a run.

    `points` are the checkpoints of the run, dictionaries of what was measured so far.
    """
    middle, end = points[(len(points) - 1) // 2], points[-1]
    if middle is end:
        return float(end["click_rate"])
    return float((end["cumulative_reward"] - middle["cumulative_reward"]) / (end["round"] - middle["round"]))


def lines(rows: Sequence[Row]) -> list[Line]:
    """Return the table as one line per policy: expected click rate, its share of the best possible rate, and costs.

    `rows` are the results of a run, as dictionaries.
    """
    found = []
    for label, own in group_rows(rows, policy_label).items():
        rates = [row["click_rate"] for row in own]
        best = [(row["cumulative_reward"] + row["cumulative_regret"]) / row["rounds"] for row in own]
        found.append(
            {
                "policy": label,
                "click rate": f"{fmean(rates):.4f} ± {standard_error(rates):.4f}",
                "of the best": f"{fmean(rates) / fmean(best):.3f}",
                **cost_columns(own),
                **size_columns(own),
            }
        )
    return found


def draw(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Draw the click rate of every policy over requests, and the time per request.

    `rows` are the results at the end of a run, and `curves` the results over rounds, as dictionaries.
    """
    figure = canvas(8.5, 4.8 + bar_chart_height(rows))
    axes = figure.subplot_mosaic([["clicks"], ["time"]], height_ratios=[4.4, bar_chart_height(rows)])
    styles = assign_styles(rows, "policy")
    plot_curves(axes["clicks"], curves, "click_rate", styles)
    axes["clicks"].set(title="expected click rate so far, mean and standard error", xlabel="request")
    axes["clicks"].set_xlim(0, max(row["round"] for row in curves))
    draw_bars(axes["time"], rows, "microseconds_per_round", 1.0, "microseconds a request", styles)
    set_title(figure, rows, f"{rows[0]['rounds']:,} requests")
    return figure


NEWS = Figure("news", lines, draw)


@dataclass(frozen=True)
class NewsStudy:
    """Study of policies on simulated news sites.

    `site(seed)` makes the `Site` of a seed, and `server(policy)` the `Server` in which a policy decides and learns.
    `Study` describes the other fields.
    """

    name: str
    description: str
    site: Callable[[int], Site]
    policies: tuple[Policy, ...]
    rounds: int = 20_000
    seeds: int = 10
    figure: Figure = NEWS
    server: Callable[[Any], Server] = Server
    grid: Mapping[str, Sequence[float]] = field(default_factory=dict)
    timed: bool = False

    def trial(self, policies: Sequence[Policy], seed: int) -> Trial:
        return NewsTrial(self.site(seed), policies, seed, self.server)

    def warm_up(self, policy: Policy) -> None:
        server = self.server(policy.build(seed=0))
        for request in islice(self.site(0).requests(), TRIED):
            server.serve(request)
        server.learn_until(AFTERWARDS)
        server.serve(request)

    def step_size(self, rounds: int) -> int:
        return max(1, rounds // CHECKPOINTS)
