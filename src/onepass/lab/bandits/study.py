"""Bandit problems: a chunk of rounds is made once and played by every policy; only the play is timed."""

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from onepass.foundation.check import quote
from onepass.lab.bandits.environments import BLOCK, Environment
from onepass.lab.bandits.figures import REGRET
from onepass.lab.definition import CHECKPOINTS, Trial, curve_rows, final_rows
from onepass.lab.errors import ExperimentError
from onepass.lab.figure import Figure
from onepass.lab.policy import Policy

CHUNK_BYTES = 32 * 2**20


EXPLORATIONS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
REGS = (2e-4, 2e-3, 2e-2, 2e-1, 2.0, 2e1, 2e2, 2e3, 2e4)


class Stepwise:
    """Adapter that lets a policy's bandit play recorded rounds (`play`), whichever optional methods it has.

    The bandit's `decide(contexts)`, with contexts (K, d), returns the index of a row, or an object with the attribute
    `arm`. Its `learn(row, reward)` learns the chosen row (d,). Its methods `play(contexts, rewards)`, `memory_usage()`
    and `error_bound()` are used if they exist. Otherwise memory is the size of its pickle, NaN if it has none, and no
    error is certified.
    """

    def __init__(self, bandit: Any) -> None:
        self.bandit = bandit

    def play(self, contexts: np.ndarray, rewards: np.ndarray) -> np.ndarray:
        """Play T recorded rounds, with contexts (T, K, d) and rewards (T, K), and return the chosen arms (T,)."""
        own = getattr(self.bandit, "play", None)
        if own is not None:
            return np.asarray(own(contexts, rewards))
        arms = np.empty(len(contexts), np.int64)
        for t, rows in enumerate(contexts):
            decision = self.bandit.decide(rows)
            arm = getattr(decision, "arm", decision)
            if not (isinstance(arm, int | np.integer) and 0 <= arm < len(rows)):
                raise ExperimentError(
                    f"decide of {type(self.bandit).__name__} must return the index of one of {len(rows)} rows, got "
                    f"{quote(arm)}"
                )
            arms[t] = arm
            self.bandit.learn(rows[arms[t]], float(rewards[t, arms[t]]))
        return arms

    def memory_usage(self) -> float:
        known = getattr(self.bandit, "memory_usage", None)
        if known is not None:
            return int(known())
        try:
            return len(pickle.dumps(self.bandit))
        except (pickle.PicklingError, AttributeError, TypeError):
            return float("nan")

    def error_bound(self) -> float:
        known = getattr(self.bandit, "error_bound", None)
        return float("inf") if known is None else float(known())


def _as_player(bandit: Any) -> Any:
    """Return the bandit if it has all optional methods of a policy, else wrap it."""
    whole = all(hasattr(bandit, name) for name in ("play", "memory_usage", "error_bound"))
    return bandit if whole else Stepwise(bandit)


@dataclass(frozen=True)
class Experiment:
    """Contextual bandit experiment.

    Parameters
    ----------
    name : str
        Name in rows and on the command line.
    description : str
        One line for `onepass list`.
    environment : callable
        Function from a seed to its `Environment`.
    policies : tuple of Policy
        Policies that play.
    rounds : int
        Number of rounds.
    seeds : int
        Number of seeds.
    figure : Figure
        Table and picture of the results. The default is a table of regret and costs.
    grid : dict of str -> sequence of float
        Parameters that `tune` searches, with their values. The default has axes `exploration` and `reg`.
    timed : bool, default False
        True if seconds are the result: seeds then run one after the other by default.
    """

    name: str
    description: str
    environment: Callable[[int], Environment]
    policies: tuple[Policy, ...]
    rounds: int
    seeds: int
    figure: Figure = REGRET
    grid: Mapping[str, Sequence[float]] = field(default_factory=lambda: {"exploration": EXPLORATIONS, "reg": REGS})
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
        return BanditTrial(self.environment(seed), policies, seed)

    def warm_up(self, policy: Policy) -> None:
        """Let a throw-away copy of the policy play two rounds, so that its code is compiled.

        Results do not change, and later timings contain no compilation.

        Parameters
        ----------
        policy : Policy
            Policy whose compiled code is needed.
        """
        environment = self.environment(0)
        contexts, _, rewards = environment.chunk(0, 2)
        _as_player(policy.build(dim=environment.dim, seed=0)).play(contexts, rewards)

    def step_size(self, rounds: int) -> int:
        """Return the number of rounds in one step: a run has about 40 steps, each with at most 32 MB of contexts.

        Parameters
        ----------
        rounds : int
            Number of rounds of the run.

        Returns
        -------
        int
            Rounds in one step.
        """
        environment = self.environment(0)
        block_bytes = 8 * BLOCK * environment.arms * environment.dim
        return BLOCK * max(1, min(rounds // (BLOCK * CHECKPOINTS), CHUNK_BYTES // block_bytes))


class BanditTrial:
    """Trial of contextual bandits on one seed.

    Regret is the sum over rounds of the largest expected reward minus the expected reward of the chosen arm. The
    cumulative reward is the sum of the rewards of the chosen arms.
    """

    def __init__(self, environment: Environment, policies: Sequence[Policy], seed: int) -> None:
        self.environment, self.policies, self.seed = environment, policies, seed
        self.bandits = [_as_player(policy.build(dim=environment.dim, seed=seed)) for policy in policies]
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
