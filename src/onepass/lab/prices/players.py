"""Players of games over an interval: `ContextualBandit`, and CATS of Vowpal Wabbit (Majzoubi et al. 2020)."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from onepass.lab.prices.games import Game

Player = Callable[[Game, int], np.ndarray]
"""Function of a game and a seed that returns the actions (n,)."""


def play_bandit(game: Game, seed: int, **options: Any) -> np.ndarray:
    """Play a game with `ContextualBandit`, and return the actions (n,); `options` are passed to the bandit."""
    from onepass.recipes.records import ContextualBandit

    bandit, actions = ContextualBandit(seed=seed, **options), np.empty(len(game.rows))
    for i, row in enumerate(game.rows):
        decision = bandit.decide(row, game.actions)
        actions[i] = decision.arm
        bandit.learn(decision, game.reward(i, decision.arm))
    return actions


def play_cats(game: Game, seed: int, cells: int, bandwidth: float) -> np.ndarray:
    """Play a game with the algorithm CATS of Vowpal Wabbit, and return the actions (n,).

    `cells` is the number of discrete actions, and `bandwidth` the width of the smoothing as a share of the interval.
    Features are standardized in advance.
    """
    from vowpalwabbit import Workspace

    model = Workspace(
        f"--cats {cells} --bandwidth {bandwidth} --min_value 0 --max_value 1 --random_seed {seed + 1} --quiet"
    )
    scales = np.maximum(game.rows.std(axis=0), 1e-12)
    rows = (game.rows - game.rows.mean(axis=0)) / scales
    top = game.actions.high if game.actions.demand else 1.0  # costs from 0 to 1
    actions = np.empty(len(rows))
    for i, row in enumerate(rows):
        said = "| " + " ".join(f"f{j}:{row[j]:.6g}" for j in np.flatnonzero(row))
        position, density = model.predict(said)
        position = min(max(position, 0.0), 1.0)
        actions[i] = action = game.actions.action(position)
        model.learn(f"ca {position:.8f}:{1.0 - game.reward(i, action) / top:.8f}:{max(density, 1e-6):.8f} {said}")
    model.finish()
    return actions


def ours() -> Player:
    """Return the function `play_bandit`, a player of games."""
    return play_bandit


def vowpal_wabbit(cells: int, bandwidth: float) -> Player:
    """Return the function `play_cats` with these numbers of cells and this bandwidth, a player of games."""
    return partial(play_cats, cells=cells, bandwidth=bandwidth)
