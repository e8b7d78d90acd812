"""Data of the routing of prompts: 1,785 prompts, three language models, and budgets in dollars per request.

The prompts are read from `routing/route.npz` in the folder of data sets.
"""

import os
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

from onepass.lab.errors import DataNotFound

BUDGETS = (8.3e-5, 2.34e-4, 6.6e-4, 1.9e-3, 5.2e-3)  # dollars a request
WINDOW, SETTLED = 200, 200  # requests over which spending is looked at, after so many
CHEAP = 0.1 / 15.0  # of the dear model's price in the middle third of the price shock


class Prompts(NamedTuple):
    """Prompts as embeddings `rows` (n, d), with the rewards (n, K) and costs in dollars (n, K) of K language models."""

    rows: np.ndarray
    rewards: np.ndarray
    dollars: np.ndarray
    models: tuple[str, ...]


class Played(NamedTuple):
    """Result of a router: for every prompt the index of the chosen model, its reward and its dollars, each (n,)."""

    arms: np.ndarray
    rewards: np.ndarray
    dollars: np.ndarray


@cache
def prompts() -> Prompts:
    """Return all prompts of the file routing/route.npz, in its order. Raises DataNotFound if it is missing."""
    folder = os.environ.get("ONEPASS_DATA")
    path = Path(folder or ".") / "routing" / "route.npz"
    if folder is None or not path.is_file():
        raise DataNotFound("routing/route.npz must be in the folder that ONEPASS_DATA names")
    with np.load(path, allow_pickle=False) as file:
        rows = file["embeddings"].astype(np.float64)
        return Prompts(rows, file["rewards"], file["dollars"], tuple(file["models"].tolist()))


def order_prompts(order: int) -> Prompts:
    """Return the prompts in a random order, whose seed is `order`."""
    held = prompts()
    places = np.random.default_rng(order).permutation(len(held.rows))
    return Prompts(held.rows[places], held.rewards[places], held.dollars[places], held.models)


def add_shock(data: Prompts) -> Prompts:
    """Return the prompts `data` with other costs: in the middle third, the most expensive model is cheaper.

    Its costs are divided by 150 there.
    """
    dollars, n = data.dollars.copy(), len(data.rows)
    dollars[n // 3 : 2 * n // 3, int(dollars.mean(axis=0).argmax())] *= CHEAP
    return data._replace(dollars=dollars)


def static_mixture(data: Prompts, budget: float) -> float:
    """Return the mean reward of the best fixed probabilities of the models whose mean cost is within the budget.

    `data` are the prompts, and `budget` is the largest mean cost of a request in dollars. The probabilities are
    computed from all rewards and costs, which are known only in hindsight.
    """
    rewards, dollars = data.rewards.mean(axis=0), data.dollars.mean(axis=0)
    count = len(rewards)
    found = linprog(-rewards, A_ub=[dollars], b_ub=[budget], A_eq=[np.ones(count)], b_eq=[1.0])
    return float(-found.fun)


def largest_window(dollars: np.ndarray, budget: float) -> float:
    """Return the largest spending in 200 consecutive requests, divided by the budget for as many requests.

    `dollars` (n,) are the costs of the requests, and `budget` is the budget per request. The first 200 requests do
    not count. If fewer than 200 requests are left, the result is 0.
    """
    late = dollars[SETTLED:]
    if len(late) < WINDOW:
        return 0.0
    sums = np.convolve(late, np.ones(WINDOW), "valid")
    return float(sums.max() / (WINDOW * budget))
