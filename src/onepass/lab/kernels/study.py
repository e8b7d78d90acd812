"""Studies of kernel bandits: one fixed set of arms, one play a round, all policies side by side.

The policies and the named experiments are in suites.py. Source: Calandriello et al. 2019 (BKB).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from onepass.features.kernels import Kernel
from onepass.lab.definition import CHECKPOINTS, Trial, curve_rows, final_rows
from onepass.lab.figure import Figure
from onepass.lab.kernels.figures import KERNEL
from onepass.lab.kernels.problems import Problem
from onepass.lab.policy import Policy
from onepass.lab.seeds import stream

GRID: Mapping[str, Sequence[float]] = {"exploration": (0.05, 0.1, 0.2, 0.4, 0.8), "reg": (0.001, 0.01, 0.1)}


@dataclass(frozen=True)
class KernelStudy:
    """Study of kernel bandits on a fixed set of arms.

    Parameters
    ----------
    name : str
        Name in rows and on the command line.
    description : str
        One line for `onepass list`.
    problem : callable
        Function from a seed to its problem: an object with `arms` (A, d), `expected` rewards (A,), the `kernel` that
        policies are given, and the method `reward(round, arm)`.
    policies : tuple of Policy
        Policies that play.
    rounds : int
        Number of rounds.
    seeds : int
        Number of seeds.
    figure : Figure
        Table and picture of the results. The default shows regret, dictionaries and costs.
    grid : dict of str -> sequence of float
        Parameters that `tune` searches. The default has axes `exploration` and `reg`.
    timed : bool, default False
        True if seconds are the result.
    """

    name: str
    description: str
    problem: Callable[[int], Problem]
    policies: tuple[Policy, ...]
    rounds: int
    seeds: int
    figure: Figure = KERNEL
    grid: Mapping[str, Sequence[float]] = field(default_factory=lambda: GRID)
    timed: bool = False

    def trial(self, policies: Sequence[Policy], seed: int) -> Trial:
        """Return the trial of one seed, in which all given policies play the same problem.

        Parameters
        ----------
        policies : sequence of Policy
            Policies that play.
        seed : int
            Seed of the problem and of the policies.

        Returns
        -------
        Trial
            The trial, which the runner advances step by step.
        """
        return KernelTrial(self.problem(seed), policies, seed)

    def warm_up(self, policy: Policy) -> None:
        """Let a throw-away copy of the policy play about ten rounds, so that its code is compiled.

        Results do not change, and later timings contain no compilation.

        Parameters
        ----------
        policy : Policy
            Policy whose compiled code is needed.
        """
        problem = self.problem(0)
        some = slice(None, None, max(1, len(problem.arms) // 100))
        arms, pays = np.ascontiguousarray(problem.arms[some]), problem.expected[some]
        bandit = policy.build(arms=arms, kernel=problem.kernel, seed=0)
        for t in range(10 + int(policy.params.get("fit_after", 0))):
            arm = bandit.decide().arm
            for noise in 0.01 * stream(0, t).standard_normal(2):  # twice, because a second play runs other code
                bandit.learn(None, pays[arm] + noise, arm)
        _recommendation_and_state(bandit)

    def step_size(self, rounds: int) -> int:
        """Return the number of rounds in a step of a run of `rounds`: a run has about 40 steps.

        Parameters
        ----------
        rounds : int
            Number of rounds of the run.

        Returns
        -------
        int
            Rounds in one step, at least 1.
        """
        return -(-rounds // CHECKPOINTS)


class KernelTrial:
    """Trial of kernel bandits on one seed.

    Regret is the sum over rounds of the largest expected reward minus the expected reward of the chosen arm. Simple
    regret is this difference for the arm with the largest posterior mean at the end. Seconds measure deciding and
    learning. The effective dimension is the sum, over the plays, of the policy's posterior variance of the played arm
    divided by the penalty (Calandriello et al. equation 5).
    """

    def __init__(self, problem: Problem, policies: Sequence[Policy], seed: int) -> None:
        self.problem, self.policies, self.seed = problem, policies, seed
        self.bandits = [policy.build(arms=problem.arms, kernel=problem.kernel, seed=seed) for policy in policies]
        self.losses = problem.expected.max() - problem.expected
        self.points: list[list[dict[str, Any]]] = [[] for _ in policies]

    def step(self, start: int, rounds: int) -> None:
        passed = [self.point(i, play(bandit, self.problem, start, rounds)) for i, bandit in enumerate(self.bandits)]
        for points, point in zip(self.points, passed):
            points.append({"round": start + rounds, **point})

    def point(self, policy: int, played: "PlayResult") -> dict[str, Any]:
        """Return the measurements of the policy with index `policy` after the rounds `played`, by name.

        They are "cumulative_regret", "cumulative_reward", "simple_regret", "seconds", "memory_bytes", "dictionary_size"
        and "effective_dimension".
        """
        start = {"cumulative_regret": 0.0, "cumulative_reward": 0.0, "seconds": 0.0}
        before = self.points[policy][-1] if self.points[policy] else start
        recommended, state = _recommendation_and_state(self.bandits[policy])
        return {
            "cumulative_regret": before["cumulative_regret"] + float(self.losses[played.arms].sum()),
            "cumulative_reward": before["cumulative_reward"] + sum(played.rewards),
            "simple_regret": float(self.losses[recommended]),
            "seconds": before["seconds"] + played.seconds,
            **state,
        }

    def rows(self) -> list[dict[str, Any]]:
        columns = ("simple_regret", "dictionary_size", "effective_dimension")
        problem = {"kernel": repr(self.problem.kernel), "arms": len(self.problem.arms)}
        return final_rows(
            self.policies,
            self.seed,
            self.points,
            lambda points: {**problem, **{name: points[-1][name] for name in columns}},
        )

    def curves(self) -> list[dict[str, Any]]:
        return curve_rows(self.policies, self.seed, self.points)


class PlayResult(NamedTuple):
    """Chosen arms and rewards of some rounds, and the seconds of deciding and learning."""

    arms: list[int]
    rewards: list[float]
    seconds: float


def play(bandit: Any, problem: Problem, start: int, rounds: int) -> PlayResult:
    """Play the rounds start .. start + rounds - 1 of `problem`, and return arms, rewards and the bandit's seconds.

    The time that the problem takes is not counted.
    """
    arms, rewards, seconds = [], [], 0.0
    for t in range(start, start + rounds):
        began = perf_counter()
        arm = int(bandit.decide().arm)
        seconds += perf_counter() - began
        reward = problem.reward(t, arm)
        began = perf_counter()
        bandit.learn(None, reward, arm)
        seconds += perf_counter() - began
        arms.append(arm)
        rewards.append(reward)
    return PlayResult(arms, rewards, seconds)


def model_of_bandit(bandit: Any) -> Any:
    """Return the attribute `model` of a bandit, or the bandit itself if it has none."""
    return getattr(bandit, "model", bandit)


def _recommendation_and_state(bandit: Any) -> tuple[int, dict[str, Any]]:
    """Return the arm with the largest posterior mean of a bandit, and a dictionary of measurements of its model.

    The names are "memory_bytes", "dictionary_size" and "effective_dimension".
    """
    known = model_of_bandit(bandit)
    dimension = known.effective_dimension()
    return int(np.argmax(known.posterior().means)), {
        "memory_bytes": int(known.memory_usage()),
        "dictionary_size": known.dictionary_size,
        "effective_dimension": None if dimension is None else float(dimension),
    }


class Choice(NamedTuple):
    arm: int


class Averages(NamedTuple):
    means: np.ndarray


class Uniform:
    """Player that chooses arms at random, and recommends the arm with the largest mean of observed rewards.

    `arms` (A, d) are the arms. `kernel` is not used.
    """

    dictionary_size = None

    def __init__(self, *, arms: np.ndarray, kernel: Kernel | None = None, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.plays, self.sums = np.zeros(len(arms)), np.zeros(len(arms))

    def decide(self) -> Choice:
        return Choice(int(self.rng.integers(self.plays.size)))

    def learn(self, context: None, reward: float, arm: int) -> None:
        self.plays[arm] += 1.0
        self.sums[arm] += reward

    def posterior(self) -> Averages:
        return Averages(np.where(self.plays > 0, self.sums / np.maximum(self.plays, 1.0), -np.inf))

    def memory_usage(self) -> int:
        return self.plays.nbytes + self.sums.nbytes

    def effective_dimension(self) -> None:
        return None
