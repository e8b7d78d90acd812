"""Study of arms that cost money: a bandit within budgets, beside the same bandit at the best constant price.

A seed is a set, and an order of its rows: seed s plays set number s mod 10 in order s div 10. A budget is a share of
what the same bandit spends without one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Any

from onepass.lab.drawing import canvas
from onepass.lab.figure import Figure, Line, Picture, Row
from onepass.lab.line_styles import BLUE, GREY
from onepass.lab.made_costs.game import WINDOW, Games, make_market
from onepass.lab.policy import Policy
from onepass.lab.tables import group_rows
from onepass.lab.whole_games import GameStudy, split_seed

SHARES = 0.1, 0.3, 0.6  # of the spending without a budget
ROUNDS = 2_000  # at most
LONG_WINDOW = 1_000  # decisions over which spending is limited, in made-costs-long
SETS = (
    "optdigits", "mfeat-zernike", "cardiotocography", "nursery", "page-blocks", "phoneme", "qsar-biodeg", "segment",
    "vehicle", "waveform-5000",
)  # fmt: skip
TRIAL_SETS = (
    "digits", "semeion", "spambase", "german", "abalone", "banknote-authentication", "steel-plates-fault", "kr-vs-kp",
    "generated-crossed", "generated-turning",
)  # fmt: skip  # on which constants of pacing are chosen


@dataclass(frozen=True)
class WithinBudget:
    """Player with a budget that is the fraction `share` of what the bandit spends without a budget.

    `window` is the number of decisions over which spending is limited.
    """

    share: float
    window: int = WINDOW

    def play(self, games: Games) -> dict[str, Any]:
        """Play within the budget and at the best constant price, and return rewards, spending and excess by name.

        Rewards are means per decision. "spending" and "spending at price" are mean costs divided by the budget.
        """
        free = games.at_price(0.0)
        budget = self.share * free.cost
        mine, price = games.within(budget, self.window), games.best_constant_price(budget)
        told = games.at_price(price)
        return {
            "share": self.share,
            "window": self.window,
            "budget": float(budget),
            "reward": float(mine.reward),
            "spending": float(mine.cost / budget),
            "excess": float(mine.excess),
            "reward at price": float(told.reward),
            "spending at price": float(told.cost / budget),
            "price": float(price),
            "reward without budget": float(free.reward),
        }


class SetGame:
    """Games on one data set: all its rows are played within every budget, and at constant prices of the cost.

    A result at a constant price serves all budgets. `seed` stands for one of the names `sets` and an order of its rows,
    of which at most `rounds` are played.
    """

    def __init__(self, sets: Sequence[str], seed: int, rounds: int) -> None:
        order, name = split_seed(seed, sets)
        market = make_market(name, order, rounds)
        self.columns = {"set": name}
        self._games, self._rounds = Games(market, order), len(market.rows)

    def play(self, player: WithinBudget) -> dict[str, Any]:
        found = player.play(self._games)
        return {"round": self._rounds, "cumulative_reward": found["reward"] * self._rounds, **found}


def ratios(rows: Sequence[Row]) -> dict[tuple[str, float], float]:
    """Return the mean reward within a budget divided by the one at the best constant price of a unit of cost.

    The result is a dictionary by (data set, budget). `rows` are the results of a run, as dictionaries.
    """
    groups = group_rows(rows, lambda row: (row["set"], row["share"]))
    return {
        key: fmean(row["reward"] for row in own) / fmean(row["reward at price"] for row in own)
        for key, own in groups.items()
    }


def lines(rows: Sequence[Row]) -> list[Line]:
    """Return the table as one line per data set and budget, followed by one line per budget over all data sets.

    `rows` are the results of a run, as dictionaries.
    """
    out, found = [], ratios(rows)
    for (name, share), own in sorted(group_rows(rows, lambda row: (row["set"], row["share"])).items()):
        out.append(
            {
                "set": name,
                "budget": f"{share:.0%}",
                "orders": str(len(own)),
                "reward": f"{fmean(row['reward'] for row in own):.4f}",
                "at the best constant price": f"{fmean(row['reward at price'] for row in own):.4f}",
                "ratio": f"{found[name, share]:.3f}",
                "spending / budget": f"{fmean(row['spending'] for row in own):.3f}",
                "largest excess, decisions": f"{max(row['excess'] for row in own):.1f}",
            }
        )
    for share, own in sorted(group_rows(rows, lambda row: row["share"]).items()):
        each = [ratio for (_, one), ratio in found.items() if one == share]
        out.append(
            {
                "set": "mean of all",
                "budget": f"{share:.0%}",
                "orders": "",
                "reward": f"{fmean(row['reward'] for row in own):.4f}",
                "at the best constant price": f"{fmean(row['reward at price'] for row in own):.4f}",
                "ratio": f"{fmean(each):.3f}, least {min(each):.3f}",
                "spending / budget": f"{fmean(row['spending'] for row in own):.3f}",
                "largest excess, decisions": f"{max(row['excess'] for row in own):.1f}",
            }
        )
    return out


def draw(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Draw, for every budget and data set, the reward relative to that at the best constant price.

    `rows` are the results of a run, as dictionaries. `curves`, the results over rounds, are not used.
    """
    figure, found = canvas(7.0, 3.0), ratios(rows)
    axes = figure.subplots()
    axes.set_label("ratio")
    for place, share in enumerate(SHARES):
        each = [ratio for (_, one), ratio in found.items() if one == share]
        axes.scatter(each, [place] * len(each), s=12, color=BLUE)
    axes.set_yticks(range(len(SHARES)), [f"{share:.0%}" for share in SHARES])
    axes.axvline(1.0, color=GREY, linewidth=0.8)
    axes.set(xlabel="reward, relative to the best constant price in hindsight", ylabel="budget")
    return figure


def make_policies(**parameters: Any) -> tuple[Policy, ...]:
    """Return the players with each budget; `parameters` are further fields of `WithinBudget`."""
    return tuple(
        Policy(f"budget of {share:.0%}", WithinBudget, {"share": share, **parameters}, tuned=False) for share in SHARES
    )


POLICIES = make_policies()
FIGURE = Figure("made-costs", lines, draw)
SUITES = (
    GameStudy(
        "made-costs",
        "data sets whose arms cost money, within budgets of 10, 30 and 60 %; a seed is a set, and an order of its rows",
        POLICIES,
        FIGURE,
        partial(SetGame, SETS),
        rounds=ROUNDS,
        seeds=len(SETS),
    ),
    GameStudy(
        "made-costs-long",
        "the same, where the budget is kept over any 1,000 decisions in a row, and not over any 200",
        make_policies(window=LONG_WINDOW),
        FIGURE,
        partial(SetGame, SETS),
        rounds=ROUNDS,
        seeds=len(SETS),
    ),
    GameStudy(
        "made-costs-choose",
        "the same on ten other sets, on which constants are chosen",
        POLICIES,
        FIGURE,
        partial(SetGame, TRIAL_SETS),
        rounds=ROUNDS,
        seeds=len(TRIAL_SETS),
    ),
)
