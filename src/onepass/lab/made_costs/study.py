"""Study of made costs: a bandit within budgets, beside the same bandit at the best constant price in hindsight.

A seed is a set, and an order of its rows: seed s plays set number s mod 10 in order s div 10. A budget is a share of
what the same bandit spends without one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from time import perf_counter
from typing import Any

from onepass.lab.bakeoff.datasets import load_set
from onepass.lab.definition import Trial, curve_rows, final_rows
from onepass.lab.drawing import canvas
from onepass.lab.figure import Figure, Line, Picture, Row
from onepass.lab.line_styles import BLUE, GREY
from onepass.lab.made_costs.game import Games, make_market
from onepass.lab.policy import Policy
from onepass.lab.tables import group_rows

SHARES = 0.1, 0.3, 0.6  # of the spending without a budget
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
    """Player with one budget: the fraction `share` of what the bandit spends without a budget."""

    share: float

    def play(self, games: Games) -> dict[str, Any]:
        """Play within the budget and at the best constant price, and return rewards, spending and excess by name."""
        free = games.at_price(0.0)
        budget = self.share * free.cost
        mine, price = games.within(budget), games.best_constant_price(budget)
        told = games.at_price(price)
        return {
            "share": self.share,
            "budget": float(budget),
            "reward": float(mine.reward),
            "spending": float(mine.cost / budget),
            "excess": float(mine.excess),
            "reward at price": float(told.reward),
            "spending at price": float(told.cost / budget),
            "price": float(price),
            "reward without budget": float(free.reward),
        }


@dataclass(frozen=True)
class MadeCosts:
    """Study of data sets as bandits whose arms cost money, within budgets.

    `sets` are the names of the data sets, and `rounds` is the largest number of rounds on each of them.
    """

    name: str
    description: str
    policies: tuple[Policy, ...]
    figure: Figure
    sets: tuple[str, ...] = SETS
    rounds: int = 2_000
    seeds: int = len(SETS)
    grid: Mapping[str, Sequence[float]] = field(default_factory=dict)
    timed: bool = False

    def trial(self, policies: Sequence[Policy], seed: int) -> Trial:
        return MadeCostsTrial(self, policies, seed)

    def warm_up(self, policy: Policy) -> None:
        """Do nothing, because the study does not compare seconds."""

    def step_size(self, rounds: int) -> int:
        return rounds


class MadeCostsTrial:
    """Trial of all budgets on one data set; they share the games at constant prices."""

    def __init__(self, study: MadeCosts, policies: Sequence[Policy], seed: int) -> None:
        self.order, place = divmod(seed, len(study.sets))
        self.policies, self.seed, self.set = policies, seed, study.sets[place]
        self.points: list[list[dict[str, Any]]] = [[] for _ in policies]

    def step(self, start: int, rounds: int) -> None:
        rounds = min(rounds, len(load_set(self.set).rows))
        games = Games(make_market(self.set, self.order, rounds), self.order)
        for policy, points in zip(self.policies, self.points, strict=True):
            began = perf_counter()
            found = policy.build().play(games)
            own = {"round": rounds, "seconds": perf_counter() - began, "cumulative_reward": found["reward"] * rounds}
            points.append({**own, **found})

    def rows(self) -> list[dict[str, Any]]:
        extra = ("share", "budget", "reward", "spending", "excess", "reward at price", "spending at price", "price",
                 "reward without budget")  # fmt: skip
        rows = final_rows(
            self.policies, self.seed, self.points, lambda points: {name: points[-1][name] for name in extra}
        )
        return [{**row, "set": self.set} for row in rows]

    def curves(self) -> list[dict[str, Any]]:
        return curve_rows(self.policies, self.seed, self.points)


def ratios(rows: Sequence[Row]) -> dict[tuple[str, float], float]:
    """Return, by data set and budget, the mean reward within the budget divided by that at the best constant price."""
    groups = group_rows(rows, lambda row: (row["set"], row["share"]))
    return {
        key: fmean(row["reward"] for row in own) / fmean(row["reward at price"] for row in own)
        for key, own in groups.items()
    }


def lines(rows: Sequence[Row]) -> list[Line]:
    """Return the table as one line per data set and budget, followed by one line per budget over all data sets."""
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
    """Draw, for every budget and data set, the reward relative to that at the best constant price."""
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


POLICIES = tuple(Policy(f"budget of {share:.0%}", WithinBudget, {"share": share}, tuned=False) for share in SHARES)
FIGURE = Figure("made-costs", lines, draw)
SUITES = (
    MadeCosts(
        "made-costs",
        "data sets whose arms cost money, within budgets of 10, 30 and 60 %; a seed is a set, and an order of its rows",
        POLICIES,
        FIGURE,
    ),
    MadeCosts(
        "made-costs-choose",
        "the same on ten other sets, on which constants are chosen",
        POLICIES,
        FIGURE,
        sets=TRIAL_SETS,
    ),
)
