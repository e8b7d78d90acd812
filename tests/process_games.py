"""Values of OptimisticValueIteration's two multipliers compared: python tests/process_games.py prints two tables.

They are those of docs/processes_defaults.md. The processes and seeds of the second table differ from those of the
first, and both from `onepass run chain`, `grid` and `random-process`.
"""

from functools import partial
from itertools import product

import numpy as np

from onepass.lab.bandits.noise import Gaussian
from onepass.lab.dynamics.decision_processes import ProcessRun, chain, grid, random_process, value_iteration
from onepass.lab.dynamics.study import noises
from onepass.lab.policy import Policy

CHOICE_EPISODES, EPISODES = 300, 600
PAIRS = tuple(product((0.3, 1.0, 2.0, 3.0), (0.3, 0.6, 1.0)))
DEFAULT = (1.0, 0.6)
KINDS = noises(0.3)
CHOICE_SEEDS, OTHER_SEEDS = (100, 101), (200, 201, 202)
TO_CHOOSE = {
    "chain of 3": chain(3, 6),
    "chain of 5": chain(5, 10),
    "chain of 6": chain(6, 12),
    "square of 4": grid(2, 4),
    "square of 9": grid(3, 8, 0.2),
    "square of 16": grid(4, 10),
    "random, 3 x 2": partial(random_process, n_states=3, n_actions=2, n_steps=6),
    "random, 8 x 2": partial(random_process, n_states=8, n_actions=2, n_steps=5),
    "random, 6 x 4": partial(random_process, n_states=6, n_actions=4, n_steps=4),
}
OTHERS = {
    "chain 4 x 2, 8 steps": chain(4, 8),
    "chain 5 x 2, 14 steps": chain(5, 14),
    "square 9 x 4, 6 steps, 10 % astray": grid(3, 6, 0.1),
    "square 16 x 4, 8 steps, 20 % astray": grid(4, 8, 0.2),
    "square 9 x 4, 10 steps, none astray": grid(3, 10, 0.0),
    "random 5 x 3, 8 steps": partial(random_process, n_states=5, n_actions=3, n_steps=8),
    "random 10 x 2, 6 steps": partial(random_process, n_states=10, n_actions=2, n_steps=6),
    "random 4 x 6, 3 steps": partial(random_process, n_states=4, n_actions=6, n_steps=3),
}


def regret(process, pair, noise, seed, episodes):
    policy = Policy("huber", value_iteration, {"exploration": pair[0], "value_exploration": pair[1]})
    return ProcessRun(policy, noise, seed, process).advance(episodes)["cumulative_regret"]


def ratios(processes, pairs, kinds, seeds, episodes):
    """Regret of every pair over the smallest of the same game, (games, pairs)."""
    found = np.array(
        [
            [regret(process, pair, noise, seed, episodes) for pair in pairs]
            for process, noise, seed in product(processes.values(), kinds.values(), seeds)
        ]
    )
    return found / found.min(axis=1, keepdims=True)


if __name__ == "__main__":
    found = ratios(TO_CHOOSE, PAIRS, KINDS, CHOICE_SEEDS, CHOICE_EPISODES)
    for pair, column in sorted(zip(PAIRS, found.T, strict=True), key=lambda one: np.log(one[1]).mean()):
        mean, high = np.exp(np.log(column).mean()), np.quantile(column, 0.9)
        print(f"| {pair[0]:g} | {pair[1]:g} | {mean:.2f} | {high:.1f} |", flush=True)
    kinds, pairs, medians = {**KINDS, "wide": Gaussian(1.0)}, (DEFAULT, (1.0, 0.3), (3.0, 0.3)), []
    for name, process in OTHERS.items():
        games = [
            [regret(process, pair, noise, seed, EPISODES) for noise in kinds.values() for seed in OTHER_SEEDS]
            for pair in pairs
        ]
        medians.append(np.median(games, axis=1))
        print(f"| {name} | " + " | ".join(f"{m:,.0f}" for m in medians[-1]) + " |", flush=True)
    first, _, former = np.log(medians).mean(axis=0)
    print(f"the default over {pairs[-1]}: {np.exp(first - former):.2f}")
