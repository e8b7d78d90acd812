"""Gymnasium: bandit problems as environments, and bandits as agents.

env = ContextualEnv(lambda seed: Linear(arms=10, dim=20, seed=seed), n_rounds=1_000)   # observation (K, d)
env = FixedArmsEnv(lambda seed: problem, n_rounds=100)                          # observation (A, d), always the same

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

CHUNK_ROUNDS = 50  # rounds of a chunk


class ContextualProblem(Protocol):
    """Interface of a contextual problem with K = `arms` arms and d = `dim` features, as those of `onepass.lab`."""

    arms: int
    dim: int

    def chunk(self, start: int, rounds: int) -> Any:
        """Return B = `rounds` rounds from round `start` on, counted from 0.

        The attributes of the result are `contexts` (B, K, d), and `expected` and `rewards` (B, K), the expected and the
        drawn reward of every arm.
        """
        ...


class FixedArmsProblem(Protocol):
    """Interface of a problem whose A arms never change.

    `arms` (A, d) are the rows of the arms, with d features each, and `expected` (A,) their expected rewards.
    """

    arms: np.ndarray
    expected: np.ndarray

    def reward(self, round: int, arm: int) -> float:
        """Return the reward of the arm with the index `arm` in round `round`, from 0."""
        ...


class ContextualEnv(gymnasium.Env):
    """Environment of a contextual problem, whose observations are the rows (K, d) of the arms of a round.

    Parameters
    ----------
    make_problem : function
        Maps a seed to a problem with `arms`, `dim` and `chunk`, such as those of `onepass.lab`.
    n_rounds : int, default 1000
        Number of rounds of an episode, at least 1.
    seed : int, default 0
        Seed of the problem of the first episode, at least 0.

    Raises
    ------
    ValueError
        If an argument is outside its range.
    """

    n_rounds: int
    problem: ContextualProblem

    def __init__(self, make_problem: Callable[[int], ContextualProblem], n_rounds: int = 1000, seed: int = 0) -> None:
        self.make_problem, self.n_rounds = make_problem, check.integer("n_rounds", n_rounds, 1)
        self.seed = check.integer("seed", seed, 0)
        self._start_episode()
        self.observation_space = Box(-np.inf, np.inf, (self.problem.arms, self.problem.dim), np.float64)
        self.action_space = Discrete(self.problem.arms)

    def _start_episode(self) -> None:
        self.problem, self._round = self.make_problem(self.seed), 0
        self._chunk = self.problem.chunk(0, min(CHUNK_ROUNDS, self.n_rounds))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode.

        Parameters
        ----------
        seed : int, default None
            Seed of another problem, at least 0. None plays the same problem again.
        options : object, default None
            Not used.

        Returns
        -------
        tuple of (array, dict)
            First observation, and an empty dictionary.
        """
        super().reset(seed=seed)
        self.seed = self.seed if seed is None else check.integer("seed", seed, 0)
        self._start_episode()
        return self._chunk.contexts[0].copy(), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Play an arm.

        Parameters
        ----------
        action : int
            Index of the arm.

        Returns
        -------
        tuple of (array, float, bool, bool, dict)
            Next observation, reward of the arm, False, True at the end of the episode, and a dictionary with the
            expected reward of the arm ("expected") and its "regret", the best arm's expected reward minus this one.

        Raises
        ------
        ValueError
            If there is no such arm.
        """
        arm, offset = check.integer("action", action, 0, self.problem.arms - 1), self._round % CHUNK_ROUNDS
        expected = self._chunk.expected[offset]
        info = {"expected": float(expected[arm]), "regret": float(expected.max() - expected[arm])}
        reward, observation = float(self._chunk.rewards[offset, arm]), self._chunk.contexts[offset]
        self._round += 1
        if self._round < self.n_rounds:
            if self._round % CHUNK_ROUNDS == 0:
                self._chunk = self.problem.chunk(self._round, min(CHUNK_ROUNDS, self.n_rounds - self._round))
            observation = self._chunk.contexts[self._round % CHUNK_ROUNDS]
        return observation.copy(), reward, False, self._round >= self.n_rounds, info


class FixedArmsEnv(gymnasium.Env):
    """Environment of a problem with fixed arms, as for kernel bandits; every observation is all arms, (A, d).

    Parameters
    ----------
    make_problem : function
        Maps a seed to a problem with `arms` (A, d), `expected` (A,) and `reward(round, arm)`.
    n_rounds : int, default 1000
        Number of rounds of an episode, at least 1.
    seed : int, default 0
        Seed of the problem of the first episode, at least 0.

    Raises
    ------
    ValueError
        If an argument is outside its range.
    """

    n_rounds: int
    problem: FixedArmsProblem

    def __init__(self, make_problem: Callable[[int], FixedArmsProblem], n_rounds: int = 1000, seed: int = 0) -> None:
        self.make_problem, self.n_rounds = make_problem, check.integer("n_rounds", n_rounds, 1)
        self.seed = check.integer("seed", seed, 0)
        self.problem, self._round = make_problem(self.seed), 0
        self.observation_space = Box(-np.inf, np.inf, self.problem.arms.shape, np.float64)
        self.action_space = Discrete(len(self.problem.arms))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode.

        Parameters
        ----------
        seed : int, default None
            Seed of another problem, at least 0. None plays the same problem again.
        options : object, default None
            Not used.

        Returns
        -------
        tuple of (array, dict)
            First observation, and an empty dictionary.
        """
        super().reset(seed=seed)
        self.seed = self.seed if seed is None else check.integer("seed", seed, 0)
        self.problem, self._round = self.make_problem(self.seed), 0
        return np.array(self.problem.arms, np.float64), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Play an arm.

        Parameters
        ----------
        action : int
            Index of the arm.

        Returns
        -------
        tuple of (array, float, bool, bool, dict)
            Next observation, reward of the arm, False, True at the end of the episode, and a dictionary with the
            expected reward of the arm ("expected") and its "regret", the best arm's expected reward minus this one.

        Raises
        ------
        ValueError
            If there is no such arm.
        """
        arm, expected = check.integer("action", action, 0, len(self.problem.arms) - 1), self.problem.expected
        reward = float(self.problem.reward(self._round, arm))
        self._round += 1
        info = {"expected": float(expected[arm]), "regret": float(expected.max() - expected[arm])}
        return np.array(self.problem.arms, np.float64), reward, False, self._round >= self.n_rounds, info


class Agent:
    """Agent that acts on observations by a bandit.

    Parameters
    ----------
    bandit : Bandit
        Bandit for `ContextualEnv`, whose arms are then named 0, 1, ..., or a kernel bandit for `FixedArmsEnv`.
    """

    def __init__(self, bandit: Any) -> None:
        self.bandit = bandit
        self.decision: Decision | None = None

    def act(self, observation: Any) -> int:
        """Choose an arm for an observation.

        Parameters
        ----------
        observation : array of shape (K, d)
            Rows of the arms.

        Returns
        -------
        int
            Index of the arm.
        """
        rows = np.asarray(observation, np.float64)
        has_fixed_arms = isinstance(self.bandit.model, KernelModel) and self.bandit.model.fixed
        self.decision = self.bandit.decide(None if has_fixed_arms else rows, list(range(len(rows))))
        assert self.decision is not None
        return int(self.decision.arm)

    def learn(self, reward: float) -> None:
        """Learn the reward of the last action.

        Parameters
        ----------
        reward : float
            Reward of the action.

        Raises
        ------
        ValueError
            Before the first action.
        """
        if self.decision is None:
            raise ValueError("reward must follow an action; act first")
        self.bandit.learn(self.decision, float(reward))
        self.decision = None
