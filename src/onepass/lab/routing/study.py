"""Study of prompts routed within a budget: a seed stands for a budget and an order of the prompts.

Seed s plays budget number s mod 5 in order s div 5. A round is a prompt.
"""

from collections.abc import Sequence
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np

from onepass.lab.drawing import canvas, set_log_scale
from onepass.lab.figure import Figure, Line, Picture, Row
from onepass.lab.line_styles import BLUE, GREY, ORANGE, SKY
from onepass.lab.policy import Policy
from onepass.lab.routing.game import (
    BUDGETS,
    Prompts,
    add_shock,
    largest_window,
    order_prompts,
    prompts,
    static_mixture,
)
from onepass.lab.routing.routers import LOGGED, Router, play_budgeted, play_pareto_bandit
from onepass.lab.tables import group_rows
from onepass.lab.whole_games import GameStudy, split_seed

COLOURS = (BLUE, SKY, ORANGE, GREY)
PROMPTS, SEEDS = 1_785, 20 * len(BUDGETS)


class RoutingGame:
    """Prompts of one seed, which stands for a budget and an order of the prompts.

    The first `rounds` prompts of the order are played. If `shock` is True, the most expensive model is cheap in the
    middle third of the prompts.
    """

    def __init__(self, seed: int, rounds: int, *, shock: bool = False) -> None:
        self._order, self._budget = split_seed(seed, BUDGETS)
        data = add_shock(order_prompts(self._order)) if shock else order_prompts(self._order)
        self._data = Prompts(data.rows[:rounds], data.rewards[:rounds], data.dollars[:rounds], data.models)
        self.columns = {"budget": self._budget, "static": static_mixture(prompts(), self._budget)}

    def play(self, router: Router) -> dict[str, Any]:
        played, rewards = router(self._data, self._budget, self._order), self._data.rewards
        n = len(played.arms)
        return {
            "round": n,
            "cumulative_regret": float(rewards[-n:].max(axis=1).sum() - played.rewards.sum()),
            "reward": float(played.rewards.mean()),
            "spending": float(played.dollars.mean()) / self._budget,
            "window": largest_window(played.dollars, self._budget),
            "thirds": [float(one.mean()) / self._budget for one in np.array_split(played.dollars, 3)],
            "rewards of thirds": [float(one.mean()) for one in np.array_split(played.rewards, 3)],
            "shares": (np.bincount(played.arms, minlength=rewards.shape[1]) / n).tolist(),
        }


def lines(rows: Sequence[Row]) -> list[Line]:
    """Return the table as one line per router and budget: reward, spending and shares of the models.

    `rows` are the results of a run, as dictionaries.
    """
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
    """Draw the mean reward against the budget, one curve per router, beside the best fixed mixture of models.

    `rows` are the results of a run, as dictionaries. `curves`, the results over rounds, are not used.
    """
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
    GameStudy(
        "route-budget",
        "prompts routed to three language models within a budget; a seed is a budget, and an order of the prompts",
        (BUDGETED, AFTER_LOG, TWO, PEER),
        ROUTING,
        RoutingGame,
        rounds=PROMPTS,
        seeds=SEEDS,
    ),
    GameStudy(
        "route-shock",
        "the same where the dearest model costs a 150th in the middle third, announced or not",
        (BUDGETED, UNANNOUNCED, PEER),
        ROUTING,
        partial(RoutingGame, shock=True),
        rounds=PROMPTS,
        seeds=SEEDS,
    ),
)
