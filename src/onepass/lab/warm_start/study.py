"""Study of bandits that start from earlier data, beside bandits that start with nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np

import onepass
from onepass.lab.drawing import canvas
from onepass.lab.figure import Figure, Line, Picture, Row
from onepass.lab.line_styles import BLUE, GREY
from onepass.lab.policy import Policy
from onepass.lab.tables import group_rows
from onepass.lab.warm_start.worlds import LOGGED, SETS, PromptWorld, SetWorld, SiteWorld, World
from onepass.lab.whole_games import GameStudy

COLD = "cold"


@dataclass(frozen=True)
class Start:
    """Way in which a bandit starts: from a log, or with nothing if `log` is empty.

    `log` and `logger` name a log of a `World`, and `trust` is an argument of `onepass.warm_start`.
    """

    log: str = ""
    logger: str = "uniform"
    trust: str = "earned"

    def bandit(self, world: World) -> Any:
        """Return a bandit for the problem `world` that starts from the chosen log."""
        if not self.log:
            return world.cold()
        return onepass.warm_start(world.cold(), world.source(self.log, self.logger), trust=self.trust)


class WorldGame:
    """Bandit problem `world(seed)` of `rounds` rounds, on which bandits with and without earlier data are compared.

    If `loses` is True, results are mistakes, else rewards.
    """

    def __init__(self, world: Callable[[int], World], seed: int, rounds: int, *, loses: bool = False) -> None:
        self._world, self._rounds, self._loses = world(seed), rounds, loses
        self.columns = {"world": self._world.name}

    def play(self, start: Start) -> dict[str, Any]:
        bandit = start.bandit(self._world)
        earned, trust = self._world.play(bandit, self._rounds), list(bandit.trust.values()) or [0.0]
        return {
            "round": len(earned),
            "cumulative_reward": float(earned.sum()),
            "cumulative_regret": float(len(earned) - earned.sum()) if self._loses else None,
            "least trust": min(trust),
            "most trust": max(trust),
        }


def ratios(rows: Sequence[Row]) -> dict[str, list[float]]:
    """Return, by policy, a list of results divided by the result of the bandit that starts with nothing, one per seed.

    `rows` are the results of a run, as dictionaries. A result is the number of mistakes + 1 in problems that count
    mistakes, else the sum of rewards.
    """
    cold = {row["seed"]: row for row in rows if row["policy"] == COLD}
    found: dict[str, list[float]] = {}
    for row in rows:
        other = cold.get(row["seed"])
        if other is not None:
            losses = row["cumulative_regret"] is not None
            mine, its = (
                (one["cumulative_regret"] + 1.0) if losses else one["cumulative_reward"] for one in (row, other)
            )
            found.setdefault(row["policy"], []).append(mine / its)
    return found


def lines(rows: Sequence[Row]) -> list[Line]:
    """Return the table as one line per start: result, ratio to the cold start, and trust.

    `rows` are the results of a run, as dictionaries.
    """
    out, shares = [], ratios(rows)
    for label, own in group_rows(rows, lambda row: row["policy"]).items():
        each = np.array(shares.get(label, [np.nan]))
        losses = own[0]["cumulative_regret"] is not None
        total = fmean(row["cumulative_regret" if losses else "cumulative_reward"] for row in own)
        out.append(
            {
                "start": label,
                "mistakes" if losses else "reward a round": f"{total:.1f}"
                if losses
                else f"{total / own[0]['rounds']:.4f}",
                "of cold, geometric mean": f"{np.exp(np.log(each).mean()):.3f}",
                "largest": f"{each.max():.2f}",
                "smallest": f"{each.min():.2f}",
                "trust": f"{fmean(row['least trust'] for row in own):.2f} to "
                f"{fmean(row['most trust'] for row in own):.2f}",
                "games": str(len(own)),
            }
        )
    return out


def draw(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Draw, for every start, the ratios of all seeds and their geometric mean.

    `rows` are the results of a run, as dictionaries. `curves`, the results over rounds, are not used.
    """
    found = ratios(rows)
    figure = canvas(7.5, 0.6 + 0.35 * len(found))
    axes = figure.subplots()
    axes.set_label("of cold")
    for place, each in enumerate(found.values()):
        axes.scatter(each, np.full(len(each), place), s=9, color=GREY)
        axes.scatter([np.exp(np.log(each).mean())], [place], s=40, marker="|", color=BLUE)
    axes.set_yticks(range(len(found)), list(found))
    axes.invert_yaxis()
    axes.axvline(1.0, color=GREY, linewidth=0.8)
    axes.set(xlabel="relative to the cold start")
    return figure


FIGURE = Figure("warm-start", lines, draw)
COLD_START = Policy(COLD, Start, tuned=False)


def _policies(logs: Sequence[str], loggers: Sequence[str]) -> tuple[Policy, ...]:
    return (
        COLD_START,
        *(
            Policy(f"{log} log, {logger} logger, {trust} trust", Start, {"log": log, "logger": logger, "trust": trust},
                   tuned=False)
            for log in logs
            for logger in loggers
            for trust in ("earned", "full")
        ),
    )  # fmt: skip


def _neighbour(label: str) -> tuple[Policy, ...]:
    return (
        COLD_START,
        *(Policy(f"{label}, {trust} trust", Start, {"log": "good", "trust": trust}, tuned=False)
          for trust in ("earned", "full")),
    )  # fmt: skip


SUITES = (
    GameStudy(
        "warm-start",
        "mistakes after a log that fits, or does not; a seed is a set, and an order of its rows",
        _policies(("good", "swapped", "other", "columns"), ("uniform", "bad")),
        FIGURE,
        partial(WorldGame, SetWorld, loses=True),
        rounds=1_000,
        seeds=3 * len(SETS),
    ),
    GameStudy(
        "warm-start-prompts",
        "prompts routed to three language models after 600 logged ones; a seed is an order of the prompts",
        _neighbour("logged prompts"),
        FIGURE,
        partial(WorldGame, PromptWorld),
        rounds=1_785 - LOGGED,
        seeds=20,
    ),
    GameStudy(
        "warm-start-sites",
        "first day of a news site with 19 sisters; a seed is a family of sites",
        _neighbour("sisters' model"),
        FIGURE,
        partial(WorldGame, SiteWorld),
        rounds=2_000,
        seeds=5,
    ),
)
