"""The bake-off: every policy plays multi-class data sets as bandits, and its mistakes are counted.

A seed stands for a data set and an order of its rows: seed s plays set number s mod 37 in order number s div 37.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from onepass.lab.bakeoff.datasets import NAMES, first_rounds
from onepass.lab.bakeoff.figures import BAKE_OFF
from onepass.lab.bakeoff.forest import FOREST
from onepass.lab.bakeoff.policies import OURS, linear_policies, peer_policies, scale_columns
from onepass.lab.definition import CHECKPOINTS, Trial, curve_rows, final_rows
from onepass.lab.figure import Figure
from onepass.lab.policy import Policy

WARM_UP_ROUNDS = 300  # more than the rounds after which a ContextualBandit makes its views


@dataclass(frozen=True)
class BakeOff:
    """Study that plays multi-class data sets as bandits: an arm per class, and reward 1 for the right class.

    `sets` are the names of the data sets, and `rounds` is the largest number of rounds on each of them. `Study`
    describes the other fields.
    """

    name: str
    description: str
    policies: tuple[Policy, ...]
    rounds: int
    seeds: int
    sets: tuple[str, ...] = NAMES
    figure: Figure = BAKE_OFF
    grid: Mapping[str, Sequence[float]] = field(default_factory=dict)
    timed: bool = False

    def trial(self, policies: Sequence[Policy], seed: int) -> Trial:
        return BakeOffTrial(self, policies, seed)

    def warm_up(self, policy: Policy) -> None:
        rows = np.random.default_rng(0).standard_normal((WARM_UP_ROUNDS, 3))
        policy.build(dim=3, arms=3, seed=0).play(rows, np.eye(3)[np.arange(WARM_UP_ROUNDS) % 3])

    def step_size(self, rounds: int) -> int:
        return max(1, rounds // CHECKPOINTS)


class BakeOffTrial:
    """Trial of all policies on one data set; the regret is the number of wrong choices."""

    def __init__(self, study: BakeOff, policies: Sequence[Policy], seed: int) -> None:
        order, place = divmod(seed, len(study.sets))
        self.policies, self.seed = policies, seed
        self.data = first_rounds(study.sets[place], order, study.rounds)
        where = {"dim": self.data.rows.shape[1], "arms": max(self.data.classes, 2), "seed": order}
        self.players = [policy.build(**where) for policy in policies]
        self.rewards = (self.data.labels[:, None] == np.arange(where["arms"])).astype(np.float64)
        self.scaled = scale_columns(self.data.rows)
        self.points: list[list[dict[str, Any]]] = [[] for _ in policies]

    def step(self, start: int, rounds: int) -> None:
        labels = self.data.labels[start : start + rounds]
        for player, points in zip(self.players, self.points, strict=True):
            if len(labels) == 0:
                continue
            rows = (self.scaled if player.hindsight else self.data.rows)[start : start + rounds]
            began = perf_counter()
            arms = player.play(rows, self.rewards[start : start + rounds])
            seconds = perf_counter() - began
            before = points[-1] if points else {"cumulative_regret": 0.0, "seconds": 0.0}
            mistakes = before["cumulative_regret"] + float(np.count_nonzero(arms != labels))
            points.append(
                {
                    "round": start + len(labels),
                    "cumulative_regret": mistakes,
                    "mistake_rate": mistakes / (start + len(labels)),
                    "seconds": before["seconds"] + seconds,
                }
            )

    def rows(self) -> list[dict[str, Any]]:
        found = {"set": self.data.name, "arms": max(self.data.classes, 2), "dim": self.data.rows.shape[1]}
        rows = final_rows(self.policies, self.seed, self.points, lambda points: {"rate": points[-1]["mistake_rate"]})
        return [{**row, **found} for row in rows]

    def curves(self) -> list[dict[str, Any]]:
        return [{**row, "set": self.data.name} for row in curve_rows(self.policies, self.seed, self.points)]


SUITES = (
    BakeOff(
        "bake-off",
        "multi-class sets as bandits, ContextualBandit at its defaults; a seed is a set, and an order of its rows",
        (*OURS, *linear_policies(), FOREST, *peer_policies()),
        rounds=10_000,
        seeds=len(NAMES),
    ),
)
