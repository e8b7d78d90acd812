"""Study of prompts routed within a budget: a seed stands for a budget and an order of the prompts.

Seed s plays budget number s mod 5 in order s div 5. A round is a prompt. Routers play their whole game in the first
step.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean
from time import perf_counter
from typing import Any

import numpy as np

from onepass.lab.definition import Trial, curve_rows, final_rows
from onepass.lab.drawing import canvas, set_log_scale
from onepass.lab.figure import Figure, Line, Picture, Row
from onepass.lab.line_styles import BLUE, GREY, ORANGE, SKY
from onepass.lab.policy import Policy
from onepass.lab.routing.game import BUDGETS, add_shock, largest_window, order_prompts, prompts, static_mixture
from onepass.lab.routing.routers import LOGGED, Router, play_budgeted, play_pareto_bandit
from onepass.lab.tables import group_rows

COLOURS = (BLUE, SKY, ORANGE, GREY)


@dataclass(frozen=True)
class RoutingStudy:
    """Study of routers within budgets. If `shock` is True, the most expensive model is cheap in the middle third."""

    name: str
    description: str
    policies: tuple[Policy, ...]
    figure: Figure
    rounds: int = 1_785
    seeds: int = 20 * len(BUDGETS)
    shock: bool = False
    grid: Mapping[str, Sequence[float]] = field(default_factory=dict)
    timed: bool = False

    def trial(self, policies: Sequence[Policy], seed: int) -> Trial:
        return RoutingTrial(self, policies, seed)

    def warm_up(self, policy: Policy) -> None:
        few = order_prompts(0)
        policy.build()(few._replace(rows=few.rows[:50], rewards=few.rewards[:50], dollars=few.dollars[:50]), 1.0, 0)

    def step_size(self, rounds: int) -> int:
        return rounds


class RoutingTrial:
    """Trial of one seed, which stands for an order of the prompts and a budget."""

    def __init__(self, study: RoutingStudy, policies: Sequence[Policy], seed: int) -> None:
        order, place = divmod(seed, len(BUDGETS))
        data = add_shock(order_prompts(order)) if study.shock else order_prompts(order)
        self.policies, self.seed, self.order, self.budget, self.data = policies, seed, order, BUDGETS[place], data
        self.points: list[list[dict[str, Any]]] = [[] for _ in policies]

    def step(self, start: int, rounds: int) -> None:
        data = self.data
        part = data._replace(rows=data.rows[:rounds], rewards=data.rewards[:rounds], dollars=data.dollars[:rounds])
        for policy, points in zip(self.policies, self.points, strict=True):
            router: Router = policy.build()
            began = perf_counter()
            played = router(part, self.budget, self.order)
            n = len(played.arms)
            thirds = [float(one.mean()) / self.budget for one in np.array_split(played.dollars, 3)]
            points.append(
                {
                    "round": n,
                    "cumulative_regret": float(part.rewards[-n:].max(axis=1).sum() - played.rewards.sum()),
                    "seconds": perf_counter() - began,
                    "reward": float(played.rewards.mean()),
                    "spending": float(played.dollars.mean()) / self.budget,
                    "window": largest_window(played.dollars, self.budget),
                    "thirds": thirds,
                    "rewards of thirds": [float(one.mean()) for one in np.array_split(played.rewards, 3)],
                    "shares": (np.bincount(played.arms, minlength=part.rewards.shape[1]) / n).tolist(),
                }
            )

    def rows(self) -> list[dict[str, Any]]:
        found = {"budget": self.budget, "static": static_mixture(prompts(), self.budget)}
        extra = ("reward", "spending", "window", "thirds", "rewards of thirds", "shares")
        rows = final_rows(
            self.policies, self.seed, self.points, lambda points: {name: points[-1][name] for name in extra}
        )
        return [{**row, **found} for row in rows]

    def curves(self) -> list[dict[str, Any]]:
        return curve_rows(self.policies, self.seed, self.points)


def lines(rows: Sequence[Row]) -> list[Line]:
    """Return the table as one line per router and budget."""
    out = []
    for budget, own in sorted(group_rows(rows, lambda row: row["budget"]).items()):
        for label, each in group_rows(own, lambda row: row["policy"]).items():
            spent = sorted(row["spending"] for row in each)
            windows = sorted(row["window"] for row in each)
            second = max(len(each) - 2, 0) if len(each) >= len(BUDGETS) else len(each) - 1
            thirds = [fmean(row["thirds"][i] for row in each) for i in range(3)]
            out.append(
                {
                    "dollars a request": f"{budget:.3g}",
                    "router": label,
                    "orders": str(len(each)),
                    "reward": f"{fmean(row['reward'] for row in each):.4f}",
                    "static": f"{own[0]['static']:.4f}",
                    "spending / budget": f"{fmean(spent):.3f}",
                    "second largest": f"{spent[second]:.3f}",
                    "largest window": f"{windows[-1]:.3f}",
                    "thirds": " ".join(f"{one:.2f}" for one in thirds),
                    "shares": " ".join(f"{fmean(row['shares'][k] for row in each):.3f}" for k in range(3)),
                }
            )
    return out


def draw(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Draw the mean reward against the budget, one curve per router, beside the best fixed mixture of models."""
    figure = canvas(7.0, 4.0)
    axes = figure.subplots()
    axes.set_label("reward")
    labels = group_rows(rows, lambda row: row["policy"])
    for colour, (label, own) in zip(COLOURS, labels.items(), strict=False):
        by = sorted(group_rows(own, lambda row: row["budget"]).items())
        axes.plot([b for b, _ in by], [fmean(r["reward"] for r in each) for _, each in by], color=colour, label=label)
    static = sorted({row["budget"]: row["static"] for row in rows}.items())
    axes.plot(*zip(*static, strict=True), color=GREY, linestyle="--", label="best fixed mixture")
    set_log_scale(axes, "x")
    axes.set(xlabel="dollars a request", ylabel="mean reward")
    axes.legend(frameon=False)
    return figure


ROUTERS = {"Budgeted": play_budgeted, "ParetoBandit": play_pareto_bandit}


def _router(name: str, **options: Any) -> Any:
    return partial(ROUTERS[name], **options)


BUDGETED = Policy("Budgeted", _router, {"name": "Budgeted"}, tuned=False)
AFTER_LOG = Policy("Budgeted after 600 logged", _router, {"name": "Budgeted", "logged": LOGGED}, tuned=False)
TWO = Policy("Budgeted, at most 10 %", _router, {"name": "Budgeted", "most": 0.1}, tuned=False)
UNANNOUNCED = Policy("Budgeted, not told", _router, {"name": "Budgeted", "announced": False}, tuned=False)
PEER = Policy("ParetoBandit", _router, {"name": "ParetoBandit"}, tuned=False)
ROUTING = Figure("routing", lines, draw)
SUITES = (
    RoutingStudy(
        "route-budget",
        "prompts routed to three language models within a budget; a seed is a budget, and an order of the prompts",
        (BUDGETED, AFTER_LOG, TWO, PEER),
        ROUTING,
    ),
    RoutingStudy(
        "route-shock",
        "the same where the dearest model costs a 150th in the middle third, announced or not",
        (BUDGETED, UNANNOUNCED, PEER),
        ROUTING,
        shock=True,
    ),
)
