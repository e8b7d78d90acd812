"""Gymnasium: bandit problems as environments, and bandits as agents.

env = Rounds(lambda seed: Linear(arms=10, dim=20, seed=seed), rounds=1_000)      observation (K, d), action: an arm
env = Points(lambda seed: problem, rounds=100)                                   observation (A, d), always the same

agent = Agent(onepass.OFUL(dim=20))
action = agent.act(observation)
observation, reward, _, truncated, info = env.step(action)
agent.learn(reward)
"""

from collections.abc import Callable
from typing import Any, Protocol

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

from onepass.bandit.decision import Decision
from onepass.foundation import check
from onepass.model.kernel.kernel_model import KernelModel

FEW = 50  # rounds that are asked for at once


class Game(Protocol):
    """What `Rounds` plays: a problem of `onepass.lab`, or one of your own."""

    arms: int
    dim: int

    def chunk(self, start: int, rounds: int) -> Any:
        """Rounds start .. start + rounds - 1: contexts (B, K, d), expected and rewards (B, K)."""
        ...


class Choice(Protocol):
    """What `Points` plays: arms (A, d), their expected rewards (A,), and what one pays."""

    arms: np.ndarray
    expected: np.ndarray

    def reward(self, round: int, arm: int) -> float:
        """What an arm pays in a round."""
        ...


class Rounds(gymnasium.Env):
    """A contextual problem: every observation is the rows (K, d) of this round's arms.

    game: from a seed to a problem that has arms, dim and chunk, such as those of `onepass.lab`.
    rounds: of an episode, at least 1 (default 1000). seed: of the first episode, at least 0 (default 0); `reset(seed=)`
    begins another one. info of a step: "expected" and "regret" of the arm played. ValueError outside those ranges.
    """

    rounds: int
    game: Game

    def __init__(self, game: Callable[[int], Game], rounds: int = 1000, seed: int = 0) -> None:
        self.make, self.rounds = game, check.integer("rounds", rounds, 1)
        self.seed = check.integer("seed", seed, 0)
        self._begin()
        self.observation_space = Box(-np.inf, np.inf, (self.game.arms, self.game.dim), np.float64)
        self.action_space = Discrete(self.game.arms)

    def _begin(self) -> None:
        self.game, self._round = self.make(self.seed), 0
        self._chunk = self.game.chunk(0, min(FEW, self.rounds))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode: of another problem where a seed is given, else of the same one; options: None."""
        super().reset(seed=seed)
        self.seed = self.seed if seed is None else check.integer("seed", seed, 0)
        self._begin()
        return self._chunk.contexts[0].copy(), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Play an arm: the next observation, what the arm paid, False, whether the episode is over, and `info`."""
        arm, place = check.integer("action", action, 0, self.game.arms - 1), self._round % FEW
        expected = self._chunk.expected[place]
        info = {"expected": float(expected[arm]), "regret": float(expected.max() - expected[arm])}
        reward, seen = float(self._chunk.rewards[place, arm]), self._chunk.contexts[place]
        self._round += 1
        if self._round < self.rounds:
            if self._round % FEW == 0:
                self._chunk = self.game.chunk(self._round, min(FEW, self.rounds - self._round))
            seen = self._chunk.contexts[self._round % FEW]
        return seen.copy(), reward, False, self._round >= self.rounds, info


class Points(gymnasium.Env):
    """A problem of fixed arms, such as those for kernel bandits: every observation is all of them, (A, d).

    problem: from a seed to a problem that has arms (A, d), expected (A,) and reward(round, arm).
    rounds, seed, and what a step gives: as of `Rounds`. ValueError outside those ranges.
    """

    rounds: int
    problem: Choice

    def __init__(self, problem: Callable[[int], Choice], rounds: int = 1000, seed: int = 0) -> None:
        self.make, self.rounds = problem, check.integer("rounds", rounds, 1)
        self.seed = check.integer("seed", seed, 0)
        self.problem, self._round = problem(self.seed), 0
        self.observation_space = Box(-np.inf, np.inf, self.problem.arms.shape, np.float64)
        self.action_space = Discrete(len(self.problem.arms))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode: of another problem where a seed is given, else of the same one; options: None."""
        super().reset(seed=seed)
        self.seed = self.seed if seed is None else check.integer("seed", seed, 0)
        self.problem, self._round = self.make(self.seed), 0
        return np.array(self.problem.arms, np.float64), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Play an arm: all arms, what it paid, False, whether the episode is over, and `info`."""
        arm, expected = check.integer("action", action, 0, len(self.problem.arms) - 1), self.problem.expected
        reward = float(self.problem.reward(self._round, arm))
        self._round += 1
        info = {"expected": float(expected[arm]), "regret": float(expected.max() - expected[arm])}
        return np.array(self.problem.arms, np.float64), reward, False, self._round >= self.rounds, info


class Agent:
    """A bandit that acts on observations.

    bandit: a `Bandit` on `Rounds`, whose arms are then 0, 1, ...; a kernel bandit, of fixed arms or not, on `Points`.
    """

    def __init__(self, bandit: Any) -> None:
        self.bandit = bandit
        self.decision: Decision | None = None

    def act(self, observation: Any) -> int:
        """The arm for an observation (K, d)."""
        rows = np.asarray(observation, np.float64)
        fixed = isinstance(self.bandit.model, KernelModel) and self.bandit.model.fixed
        self.decision = self.bandit.decide(None if fixed else rows, list(range(len(rows))))
        assert self.decision is not None
        return int(self.decision.arm)

    def learn(self, reward: float) -> None:
        """What the last action paid; ValueError before the first one."""
        if self.decision is None:
            raise ValueError("reward must follow an action; act first")
        self.bandit.learn(self.decision, float(reward))
        self.decision = None
