"""Studies of players that choose numbers from an interval, for example prices."""

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np

from onepass.lab.drawing import canvas
from onepass.lab.figure import Figure, Line, Picture, Row
from onepass.lab.policy import Policy
from onepass.lab.prices.games import SETS, buyers, regression
from onepass.lab.prices.players import Player, ours, vowpal_wabbit
from onepass.lab.tables import group_rows, policy_label
from onepass.lab.whole_games import GameStudy


class PriceGame:
    """Rounds of one seed, in which players choose numbers from an interval.

    `data` is the name of a regression data set; an empty string means simulated buyers. `rounds` is the largest number
    of rounds.
    """

    columns: Mapping[str, Any] = {}

    def __init__(self, data: str, seed: int, rounds: int) -> None:
        self._game, self._seed = regression(data, seed, rounds) if data else buyers(seed, rounds), seed

    def play(self, player: Player) -> dict[str, Any]:
        game, actions = self._game, player(self._game, self._seed)
        best = float(game.best.sum())
        earned = float(np.sum([game.expected(i, a) for i, a in enumerate(actions.tolist())]))
        return {
            "round": len(actions),
            "cumulative_regret": best - earned,
            "of the best": earned / best,
            "of the best fixed": earned / game.fixed,
            "loss": (best - earned) / len(actions),
        }


def lines(rows: Sequence[Row]) -> list[Line]:
    """Return the table as one line per player: reward relative to the best and best fixed actions, and loss.

    The last column is the loss divided by that of CATS with the best of its settings that were played. `rows` are the
    results of a run, as dictionaries.
    """
    out = []
    losses = {label: fmean(row["loss"] for row in own) for label, own in group_rows(rows, policy_label).items()}
    peer = min((loss for label, loss in losses.items() if label.startswith("CATS")), default=None)
    for label, own in group_rows(rows, policy_label).items():
        shares = [row["of the best"] for row in own]
        out.append(
            {
                "player": label,
                "of the best": f"{fmean(shares):.3f}",
                "least": f"{min(shares):.3f}",
                "of the best fixed": f"{fmean(row['of the best fixed'] for row in own):.3f}",
                "least fixed": f"{min(row['of the best fixed'] for row in own):.3f}",
                "loss a round": f"{losses[label]:.4f}",
                "of the best CATS": f"{losses[label] / peer:.3f}" if peer else "",
                "games": str(len(own)),
            }
        )
    return sorted(out, key=lambda line: line["loss a round"])


def draw(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Draw the mean loss per round of every player, one point per game.

    `rows` are the results of a run, as dictionaries. `curves`, the results over rounds, are not used.
    """
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
    GameStudy(
        "prices",
        "prices for buyers with logistic demand; CATS at one setting",
        (OURS, CATS[6]),
        GAMES,
        partial(PriceGame, ""),
        rounds=5_000,
        seeds=10,
    ),
    *(
        GameStudy(
            f"prices-{name}",
            f"regression set {name} as a game over an interval; CATS at 20 settings",
            (OURS, *CATS),
            GAMES,
            partial(PriceGame, name),
            rounds=10_000,
            seeds=10,
        )
        for name in SETS
    ),
)
