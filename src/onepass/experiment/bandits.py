"""Bandit problems: a chunk of rounds is made once and played by every policy; only the play is timed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from onepass.experiment.definition import Policy, Trial, curve_rows, final_rows
from onepass.experiment.environments import BLOCK, Environment

CHECKPOINTS = 40
CHUNK_BYTES = 32 * 2**20


EXPLORATIONS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
REGS = (2e-4, 2e-3, 2e-2, 2e-1, 2.0, 2e1, 2e2, 2e3, 2e4)


@dataclass(frozen=True)
class Experiment:
    """A bandit problem. figure: which picture `report` draws; grid: the parameters that `tune` searches, and where."""

    name: str
    description: str
    environment: Callable[[int], Environment]
    policies: tuple[Policy, ...]
    rounds: int
    seeds: int
    figure: str = "regret"
    grid: Mapping[str, Sequence[float]] = field(default_factory=lambda: {"exploration": EXPLORATIONS, "reg": REGS})

    def trial(self, policies: Sequence[Policy], seed: int) -> Trial:
        return BanditTrial(self.environment(seed), policies, seed)

    def warm_up(self, policy: Policy) -> None:
        environment = self.environment(0)
        contexts, _, rewards = environment.chunk(0, 2)
        policy.build(dim=environment.dim, seed=0).play(contexts, rewards)

    def step_size(self, rounds: int) -> int:
        """Whole blocks, about 40 chunks a run, at most 32 MB of contexts."""
        environment = self.environment(0)
        block_bytes = 8 * BLOCK * environment.arms * environment.dim
        return BLOCK * max(1, min(rounds // (BLOCK * CHECKPOINTS), CHUNK_BYTES // block_bytes))


class BanditTrial:
    """Regret is sum over rounds of (max_a E reward_a - E reward of the chosen arm); rewards are those paid."""

    def __init__(self, environment: Environment, policies: Sequence[Policy], seed: int) -> None:
        self.environment, self.policies, self.seed = environment, policies, seed
        self.bandits = [policy.build(dim=environment.dim, seed=seed) for policy in policies]
        self.points: list[list[dict[str, Any]]] = [[] for _ in policies]

    def step(self, start: int, rounds: int) -> None:
        chunk = self.environment.chunk(start, rounds)
        best, index = chunk.expected.max(axis=1), np.arange(rounds)
        played = []
        for bandit in self.bandits:
            began = perf_counter()
            arms = bandit.play(chunk.contexts, chunk.rewards)
            seconds = perf_counter() - began
            regret = float((best - chunk.expected[index, arms]).sum())
            played.append((regret, float(chunk.rewards[index, arms].sum()), seconds))
        for bandit, points, (regret, reward, seconds) in zip(self.bandits, self.points, played):
            before = points[-1] if points else {"cumulative_regret": 0.0, "cumulative_reward": 0.0, "seconds": 0.0}
            points.append(
                {
                    "round": start + rounds,
                    "cumulative_regret": before["cumulative_regret"] + regret,
                    "cumulative_reward": before["cumulative_reward"] + reward,
                    "seconds": before["seconds"] + seconds,
                    "memory_bytes": bandit.memory_usage(),
                    "error_bound": bandit.error_bound(),
                }
            )

    def rows(self) -> list[dict[str, Any]]:
        return final_rows(
            self.policies, self.seed, self.points, lambda points: {"error_bound": points[-1]["error_bound"]}
        )

    def curves(self) -> list[dict[str, Any]]:
        return curve_rows(self.policies, self.seed, self.points)
