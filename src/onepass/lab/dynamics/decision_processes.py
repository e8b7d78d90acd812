"""Linear Markov decision processes with noisy rewards: regret of optimistic value iteration on a chain and a grid.

Features are one-hot over states and actions. Regret of an episode is the optimal value of the first state less that of
the policy played, both computed from the true process. The chain is RiverSwim (Strehl and Littman 2008), in episodes.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from onepass.dynamics import OptimisticValueIteration
from onepass.lab.bandits.noise import Noise
from onepass.lab.dynamics.figures import make_figure
from onepass.lab.dynamics.study import DynamicsStudy
from onepass.lab.policy import Policy
from onepass.lab.seeds import stream

PROCESS = 1  # part of a seed


class Process(NamedTuple):
    """Decision process of S states and A actions.

    Parameters
    ----------
    transitions : array of shape (S, A, S)
        Probability of every next state, given state and action.
    rewards : array of shape (S, A)
        Mean rewards.
    n_steps : int
        Number of steps of an episode.
    start : int
        First state of every episode.
    """

    transitions: np.ndarray
    rewards: np.ndarray
    n_steps: int
    start: int


def chain(n_states: int = 4, n_steps: int = 8) -> Process:
    """Return the decision process RiverSwim, a chain of `n_states` states with two actions.

    Action 0 moves one state to the left, and the left end pays little. Action 1 moves to the right with some
    probability, and pays 1 at the right end. An episode has `n_steps` steps.
    """
    transitions, rewards = np.zeros((n_states, 2, n_states)), np.zeros((n_states, 2))
    last = n_states - 1
    for s in range(n_states):
        transitions[s, 0, max(s - 1, 0)] = 1.0
        transitions[s, 1, min(s + 1, last)] += 0.35 if s else 0.6
        transitions[s, 1, s] += 0.6 if s else 0.4
        transitions[s, 1, max(s - 1, 0)] += 0.05 if s else 0.0
    rewards[0, 0], rewards[last, 1] = 0.005, 1.0
    return Process(transitions, rewards, n_steps, 0)


def grid(side: int = 3, n_steps: int = 6, slip: float = 0.1) -> Process:
    """Return a decision process on a square of `side` x `side` states with four moves, and episodes of `n_steps` steps.

    The goal is the corner opposite the start, and pays 1 in every step. A state beside the start pays 0.2. With
    probability `slip` a move goes in a random direction.
    """
    moves = ((0, 1), (1, 0), (0, -1), (-1, 0))
    transitions, rewards = np.zeros((side**2, 4, side**2)), np.zeros((side**2, 4))
    for s in range(side**2):
        for a in range(4):
            for taken, move in enumerate(moves):
                row, column = (min(max(at + by, 0), side - 1) for at, by in zip(divmod(s, side), move))
                transitions[s, a, row * side + column] += slip / 4 + (1.0 - slip) * (taken == a)
    rewards[side**2 - 1], rewards[1] = 1.0, 0.2
    return Process(transitions, rewards, n_steps, 0)


def random_process(seed: int, n_states: int = 5, n_actions: int = 3, n_steps: int = 8) -> Process:
    """Return a random decision process with `n_states` states, `n_actions` actions and episodes of `n_steps` steps.

    Transitions follow a Dirichlet distribution, and mean rewards are cubes of uniform numbers. So an action in a
    state leads to few states, and few pairs of state and action pay much.
    """
    rng = stream(seed, PROCESS)
    transitions = rng.dirichlet(np.full(n_states, 0.3), (n_states, n_actions))
    return Process(transitions, rng.random((n_states, n_actions)) ** 3, n_steps, 0)


def evaluate(process: Process, actions: np.ndarray | None) -> float:
    """Return the expected reward of an episode of `process` with the actions (H, S), one per step and state.

    None as `actions` gives the largest expected reward of any policy. H is the number of steps, S the number of states.
    """
    value = np.zeros(len(process.rewards))
    for h in reversed(range(process.n_steps)):
        q = process.rewards + process.transitions @ value
        value = q.max(axis=1) if actions is None else q[np.arange(len(q)), actions[h]]
    return float(value[process.start])


def value_iteration(*, process: Process, **options: float | str) -> OptimisticValueIteration:
    return OptimisticValueIteration(process.n_steps, process.rewards.size, **options)  # type: ignore[arg-type]


class ProcessRun:
    """Simulation of an agent that learns a decision process; its regret is computed exactly from its plan.

    `policy` makes the agent, and `noise` is the noise of its rewards. `process` is a process, or a function from a seed
    to one.
    """

    def __init__(self, policy: Policy, noise: Noise, seed: int, process: Process | Callable[[int], Process]) -> None:
        process = process(seed) if callable(process) else process
        self.process, self.noise, self.rng = process, noise, stream(seed)
        self.agent, shape = policy.build(process=process), process.rewards.shape
        self.cumulated = np.cumsum(process.transitions, axis=2)
        self.features = np.eye(process.rewards.size).reshape(*shape, -1)
        self.best, self.regret = evaluate(process, None), 0.0
        self.look()

    def look(self) -> None:
        self.actions = np.array(
            [[self.agent.decide(h, phis) for phis in self.features] for h in range(self.process.n_steps)]
        )
        self.gap = self.best - evaluate(self.process, self.actions)

    def advance(self, rounds: int) -> Mapping[str, float]:
        process, last = self.process, self.process.n_steps - 1
        for _ in range(rounds):
            self.regret += self.gap
            state, noise = process.start, self.noise.draw(self.rng, (process.n_steps,))
            for h in range(process.n_steps):
                action = self.actions[h, state]
                reward = float(process.rewards[state, action] + noise[h])
                following = int(np.searchsorted(self.cumulated[state, action, :-1], self.rng.random(), side="right"))
                phis = None if h == last else self.features[following]
                self.agent.learn(h, self.features[state, action], reward, phis)
                state = following
            if self.agent.end_episode():
                self.look()
        return {"cumulative_regret": self.regret}


def _policies(settings: Sequence[tuple[str, float, float]]) -> tuple[Policy, ...]:
    """Return one agent, as a policy, for each of the `settings`: (estimator, exploration, value exploration).

    The estimator is "huber" or "ridge". The explorations are multipliers of bonuses; the first is in units of the noise
    for "huber".
    """
    return tuple(
        Policy(
            f"{name}, exploration {beta:g} and {beta_p:g}",
            value_iteration,
            {"estimator": name, "exploration": beta, "value_exploration": beta_p},
            group=name,
        )
        for name, beta, beta_p in settings
    )


POLICIES = _policies([("huber", 1.0, 0.6), ("huber", 3.0, 0.3), ("ridge", 0.3, 0.6), ("ridge", 1.0, 0.3)])
FIGURE = make_figure("processes", "cumulative_regret", "cumulative regret", "episode", ",.1f")
GRID = {"exploration": (0.1, 0.3, 1.0, 3.0, 10.0), "value_exploration": (0.03, 0.1, 0.3, 0.6, 1.0)}

SUITES = (
    DynamicsStudy(
        "chain",
        "a chain of four states (RiverSwim), episodes of 8 steps: regret of optimistic value iteration",
        partial(ProcessRun, process=chain()),
        POLICIES,
        rounds=2_000,
        seeds=10,
        scale=0.3,
        figure=FIGURE,
        grid=GRID,
    ),
    DynamicsStudy(
        "grid",
        "a square of 9 places, episodes of 6 steps: regret of optimistic value iteration",
        partial(ProcessRun, process=grid()),
        (*POLICIES, *_policies([("huber", 1.0, 0.3), ("ridge", 0.3, 0.3)])),
        rounds=1_500,
        seeds=10,
        scale=0.3,
        figure=FIGURE,
        grid=GRID,
    ),
    DynamicsStudy(
        "random-process",
        "random processes of five states and three actions, episodes of 8 steps: regret of optimistic value iteration",
        partial(ProcessRun, process=random_process),
        POLICIES,
        rounds=1_500,
        seeds=10,
        scale=0.3,
        figure=FIGURE,
        grid=GRID,
    ),
)
