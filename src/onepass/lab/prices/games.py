"""Bandit problems whose actions are the numbers of an interval: buyers with logistic demand, and regression sets.

buyers        P(a sale) = sigmoid(2.5 + u^T x - b(x) price),  b(x) = .15 exp(v^T x),  x ~ N(0, I_3), |u| = 1, |v| = .25
regression    reward = 1 - |action - y| / range of y, y unknown
"""

import lzma
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from onepass.lab.bakeoff.datasets import read_columns
from onepass.lab.datasets import Form, Source, find_files
from onepass.lab.errors import ExperimentError
from onepass.model.interval.interval import Interval

PRICES = Interval(4.0, 40.0, log=True, demand=True)
COLUMNS, LEVEL, SLOPE, TASTE, HASTE = 3, 2.5, 0.15, 1.0, 0.25
FINE = 361  # prices that the clairvoyant looks at
TABLES = {"abalone": "Class_number_of_rings", "electricity": "nswdemand", "bank-marketing": "V1"}
SETS = ("abalone", "diabetes", "electricity", "bank-marketing")


class Game(NamedTuple):
    """Bandit problem of n rounds in which an action is a number from an interval.

    Parameters
    ----------
    rows : contexts (n, d).
    actions : `Interval` from the smallest to the largest action.
    reward : function of the index of the round and the action that returns the reward.
    expected : function of the index of the round and the action that returns the expected reward.
    best : largest expected reward in every round (n,).
    fixed : largest sum of expected rewards of one action for all rounds.
    """

    rows: np.ndarray
    actions: Interval
    reward: Callable[[int, float], float]
    expected: Callable[[int, float], float]
    best: np.ndarray
    fixed: float


def buyers(seed: int, rounds: int) -> Game:
    """Return a problem of prices: buyers decide with a logistic probability, and the reward is the price or 0.

    There are `rounds` buyers. The seed determines how demand depends on the context.
    """
    rng = np.random.default_rng([seed, 7])
    taste, haste = rng.normal(size=COLUMNS), rng.normal(size=COLUMNS)
    rows = rng.normal(size=(rounds, COLUMNS))
    level = LEVEL + rows @ (TASTE * taste / np.linalg.norm(taste))
    slope = SLOPE * np.exp(rows @ (HASTE * haste / np.linalg.norm(haste)))
    lots = rng.random(rounds)
    prices = np.linspace(PRICES.low, PRICES.high, FINE)
    revenue = prices / (1.0 + np.exp(slope[:, None] * prices - level[:, None]))

    def rate(i: int, price: float) -> float:
        return float(1.0 / (1.0 + np.exp(slope[i] * price - level[i])))

    return Game(
        rows,
        PRICES,
        lambda i, price: price * float(lots[i] < rate(i, price)),
        lambda i, price: price * rate(i, price),
        revenue.max(axis=1),
        float(revenue.sum(axis=0).max()),
    )


@cache
def regression_set(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the features (n, d) and targets (n,) of the regression data set `name`, one of `SETS`."""
    if name == "diabetes":
        from sklearn.datasets import load_diabetes

        return load_diabetes(return_X_y=True)
    if name not in TABLES:
        raise ExperimentError(f"there is no regression set '{name}': choose one of {', '.join(SETS)}")
    _, (path,) = find_files(name, Source(0, (), (Form((f"openml/{name}.csv.xz",), lambda _: None),), ()))  # type: ignore[arg-type,return-value]
    header, *lines = lzma.decompress(path.read_bytes()).decode().splitlines()
    names = header.split(",")
    table = {n: list(c) for n, c in zip(names, zip(*(line.split(",") for line in lines), strict=True), strict=True)}
    target = np.array(table.pop(TABLES[name]), np.float64)
    return read_columns(list(table.values())), target


def regression(name: str, seed: int, rounds: int) -> Game:
    """Return the regression set `name` as a problem: the action predicts the target, and the reward is 1 - |error|.

    Targets are scaled to [0, 1]. `seed` determines the random order, of which the first `rounds` rows are taken.
    """
    rows, targets = regression_set(name)
    order = np.random.default_rng([seed, 5]).permutation(len(rows))[:rounds]
    low, high = float(targets.min()), float(targets.max())
    rows, y = rows[order], (targets[order] - low) / (high - low)

    def reward(i: int, action: float) -> float:
        return float(1.0 - abs(action - y[i]))

    fixed = float((1.0 - np.abs(np.median(y) - y)).sum())
    return Game(rows, Interval(0.0, 1.0), reward, reward, np.ones(len(rows)), fixed)
