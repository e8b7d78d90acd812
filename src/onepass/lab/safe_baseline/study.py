"""Study of a bandit beside a baseline: whether it ever fell too far below the baseline, and its rewards at the end.

A seed is a set, and an order of its rows: seed s plays set number s mod 12 in order s div 12.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np

from onepass.lab.drawing import canvas
from onepass.lab.figure import Figure, Line, Picture, Row
from onepass.lab.line_styles import BLUE, GREY, ORANGE, SKY
from onepass.lab.policy import Policy
from onepass.lab.safe_baseline.game import (
    Duel,
    is_broken,
    least_ratio,
    make_duel,
    play_free,
    play_guarded,
    rule_rewards,
)
from onepass.lab.tables import group_rows
from onepass.lab.whole_games import GameStudy, split_seed

RULE, FREE, GUARDED, BY_MODEL = "rule alone", "bandit alone", "guarded", "guarded by the model"
BY = {GUARDED: "evidence", BY_MODEL: "model"}
SETS = (
    "digits", "optdigits", "mfeat-zernike", "spambase", "banknote-authentication", "cardiotocography", "page-blocks",
    "phoneme", "segment", "steel-plates-fault", "vehicle", "waveform-5000",
)  # fmt: skip
SEEDS = 17 * len(SETS)


@dataclass(frozen=True)
class Player:
    """Player of a bandit problem beside a baseline rule.

    `who` is "rule alone", "bandit alone", "guarded" or "guarded by the model". A guarded bandit decides with a
    probability that depends on how its rewards compare with the rule's (`Guarded`).
    """

    who: str

    def play(self, duel: Duel, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Play a duel, and return rewards (n,) and the probabilities (n,) with which the bandit decides."""
        if self.who in BY:
            return play_guarded(duel, seed, BY[self.who])
        if self.who == FREE:
            return play_free(duel, seed), np.ones(len(duel.rows))
        return rule_rewards(duel), np.zeros(len(duel.rows))


class DuelGame:
    """Rows of one data set, which players play beside a baseline rule.

    At most `rounds` rows are played. If `turns` is True, arms are permuted during the game.
    """

    def __init__(self, seed: int, rounds: int, *, turns: bool = False) -> None:
        self._order, name = split_seed(seed, SETS)
        self._duel = make_duel(name, self._order, rounds, turns=turns)
        self.columns = {"set": name}

    def play(self, player: Player) -> dict[str, Any]:
        rewards, shares = player.play(self._duel, self._order)
        rule = rule_rewards(self._duel)
        return {
            "round": len(rewards),
            "cumulative_reward": float(rewards.sum()),
            "reward": float(rewards.mean()),
            "last quarter": float(rewards[-(len(rewards) // 4) :].mean()),
            "least ratio": least_ratio(rewards, rule),
            "broken": is_broken(rewards, rule),
            "share": float(shares.mean()),
        }


def lines(rows: Sequence[Row]) -> list[Line]:
    """Return the table as one line per data set and player, followed by one line per player over all data sets.

    `rows` are the results of a run, as dictionaries.
    """
    out = []
    for (name, who), own in group_rows(rows, lambda row: (row["set"], row["policy"])).items():
        out.append(_line(name, who, own))
    for who, own in group_rows(rows, lambda row: row["policy"]).items():
        out.append(_line("all", who, own))
    return out


def _line(name: str, who: str, own: Sequence[Row]) -> Line:
    return {
        "set": name,
        "player": who,
        "games": str(len(own)),
        "reward": f"{fmean(row['reward'] for row in own):.4f}",
        "last quarter": f"{fmean(row['last quarter'] for row in own):.4f}",
        "least ratio to the rule": f"{min(row['least ratio'] for row in own):.3f}",
        "games below .95 at any time": str(sum(row["broken"] for row in own)),
        "share of the bandit": f"{fmean(row['share'] for row in own):.3f}",
    }


def note(rows: Sequence[Row]) -> str:
    """Return sentences that compare guarded bandits with the bandit alone, where the latter is better than the rule.

    `rows` are the results of a run, as dictionaries.
    """
    means = {
        key: (fmean(row["reward"] for row in own), fmean(row["last quarter"] for row in own))
        for key, own in group_rows(rows, lambda row: (row["set"], row["policy"])).items()
    }
    sets = [name for name, who in means if who == FREE and (name, RULE) in means]
    better = [name for name in sets if means[name, FREE][0] > means[name, RULE][0]]
    out = []
    for who in BY:
        known = [name for name in better if (name, who) in means]
        if known:
            whole, late = ([means[name, who][i] / means[name, FREE][i] for name in known] for i in range(2))
            out.append(
                f"On {len(known)} of {len(sets)} sets the bandit alone earns more than the rule. There the bandit "
                f"{who} earns {fmean(whole):.3f} of it (least {min(whole):.3f}), and {fmean(late):.3f} in the last "
                f"quarter (least {min(late):.3f})."
            )
    return "\n".join(out)


def draw(rows: Sequence[Row], curves: Sequence[Row]) -> Picture:
    """Draw the mean reward on every data set, one point per player.

    `rows` are the results, one for each seed and player. `curves` are not used.
    """
    figure = canvas(7.5, 3.5)
    axes = figure.subplots()
    axes.set_label("reward")
    sets = list(group_rows(rows, lambda row: row["set"]))
    for colour, (who, own) in zip((GREY, BLUE, ORANGE, SKY), group_rows(rows, lambda row: row["policy"]).items()):
        each = group_rows(own, lambda row: row["set"])
        means = [fmean(row["reward"] for row in each[name]) for name in sets if name in each]
        axes.scatter(means, [sets.index(name) for name in each], color=colour, s=14, label=who)
    axes.set_yticks(range(len(sets)), sets)
    axes.set(xlabel="mean reward")
    axes.legend(frameon=False)
    return figure


POLICIES = tuple(Policy(who, Player, {"who": who}, tuned=False) for who in (RULE, FREE, GUARDED, BY_MODEL))
FIGURE = Figure("safe-baseline", lines, draw, note)
SUITES = (
    GameStudy(
        "safe-baseline",
        "data sets as bandits beside a rule fitted to 100 rows; a seed is a set, and an order of its rows",
        POLICIES,
        FIGURE,
        DuelGame,
        rounds=3_000,
        seeds=SEEDS,
    ),
    GameStudy(
        "safe-baseline-turn",
        "the same where every arm earns from round 500 on what another one earned before, and the rule knows",
        POLICIES,
        FIGURE,
        partial(DuelGame, turns=True),
        rounds=2_000,
        seeds=SEEDS,
    ),
)
