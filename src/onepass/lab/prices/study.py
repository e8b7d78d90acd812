"""Studies of actions in an interval: a seed is a game that all players play."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from time import perf_counter
from typing import Any

import numpy as np

from onepass.lab.definition import Trial, curve_rows, final_rows
from onepass.lab.drawing import canvas
from onepass.lab.figure import Figure, Line, Picture, Row
from onepass.lab.policy import Policy
from onepass.lab.prices.games import SETS, Game, buyers, regression
from onepass.lab.prices.players import ours, vowpal_wabbit
from onepass.lab.tables import group_rows, policy_label

EXTRA = ("of the best", "of the best fixed", "loss")


@dataclass(frozen=True)
class PriceStudy:
    """Study of players that choose numbers from an interval.

    `data` is the name of a regression data set; an empty string means simulated buyers.
    """

    name: str
    description: str
    policies: tuple[Policy, ...]
    figure: Figure
    data: str = ""
    rounds: int = 5_000
    seeds: int = 10
    grid: Mapping[str, Sequence[float]] = field(default_factory=dict)
    timed: bool = False

    def game(self, seed: int, rounds: int) -> Game:
        return regression(self.data, seed, rounds) if self.data else buyers(seed, rounds)

    def trial(self, policies: Sequence[Policy], seed: int) -> Trial:
        return PriceTrial(self, policies, seed)

    def warm_up(self, policy: Policy) -> None:
        policy.build()(buyers(0, 20), 0)

    def step_size(self, rounds: int) -> int:
        return rounds


class PriceTrial:
    """Trial on the game of one seed, which every player plays to its end in the first step."""

    def __init__(self, study: PriceStudy, policies: Sequence[Policy], seed: int) -> None:
        self._study, self._policies, self._seed = study, policies, seed
        self._points: list[list[dict[str, Any]]] = [[] for _ in policies]

    def step(self, start: int, rounds: int) -> None:
        game = self._study.game(self._seed, rounds)
        best = float(game.best.sum())
        for policy, points in zip(self._policies, self._points, strict=True):
            began = perf_counter()
            actions = policy.build()(game, self._seed)
            seconds = perf_counter() - began
            earned = float(np.sum([game.expected(i, a) for i, a in enumerate(actions.tolist())]))
            points.append(
                {
                    "round": len(actions),
                    "cumulative_regret": best - earned,
                    "seconds": seconds,
                    "of the best": earned / best,
                    "of the best fixed": earned / game.fixed,
                    "loss": (best - earned) / len(actions),
                }
            )

    def rows(self) -> list[dict[str, Any]]:
        return final_rows(
            self._policies, self._seed, self._points, lambda points: {name: points[-1][name] for name in EXTRA}
        )

    def curves(self) -> list[dict[str, Any]]:
        return curve_rows(self._policies, self._seed, self._points)


def lines(rows: Sequence[Row]) -> list[Line]:
    """Return the table as one line per player: reward relative to the best and best fixed actions, and loss."""
    out = []
    for label, own in group_rows(rows, policy_label).items():
        shares = [row["of the best"] for row in own]
        out.append(
            {
                "player": label,
                "of the best": f"{fmean(shares):.3f}",
                "least": f"{min(shares):.3f}",
                "of the best fixed": f"{fmean(row['of the best fixed'] for row in own):.3f}",
                "least fixed": f"{min(row['of the best fixed'] for row in own):.3f}",
                "loss a round": f"{fmean(row['loss'] for row in own):.4f}",
                "games": str(len(own)),
            }
        )
    return sorted(out, key=lambda line: line["loss a round"])


def draw(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Draw the mean loss per round of every player, one point per game."""
    figure = canvas(8.5, 4.8)
    axes = figure.subplots()
    groups = sorted(group_rows(rows, policy_label).items(), key=lambda one: fmean(row["loss"] for row in one[1]))
    for place, (label, own) in enumerate(groups):
        axes.plot([row["loss"] for row in own], [place] * len(own), "o", alpha=0.6, label=label)
    axes.set_yticks(range(len(groups)), [label for label, _ in groups])
    axes.set(xlabel="loss a round")
    return figure


GAMES = Figure("prices", lines, draw)
OURS = Policy("ContextualBandit", ours, tuned=False)
CATS = tuple(
    Policy(f"CATS {cells} cells, bandwidth {width:g}", vowpal_wabbit, {"cells": cells, "bandwidth": width}, tuned=False)
    for cells in (4, 8, 16, 32, 64)
    for width in (0.02, 0.05, 0.1, 0.2)
)
SUITES = (
    PriceStudy("prices", "prices for buyers with logistic demand; CATS at one setting", (OURS, CATS[6]), GAMES),
    *(
        PriceStudy(
            f"prices-{name}",
            f"regression set {name} as a game over an interval; CATS at 20 settings",
            (OURS, *CATS),
            GAMES,
            data=name,
            rounds=10_000,
        )
        for name in SETS
    ),
)
