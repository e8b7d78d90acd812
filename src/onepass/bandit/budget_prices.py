"""Prices of budgets, which lower the scores of arms by what they are predicted to spend.

    lambda = the least price >= 0 with   mean over recent requests of sum_a p_a(U - lambda c) c_a <= b
    p: probabilities of the exploration rule for the scores U_a - lambda c_a
    c_a: predicted spending of arm a,   b: target of the spending per decision

The mean falls with lambda, so bisection finds lambda. With several budgets, the prices are solved in turn. A smallest
share of an arm is treated as a budget with c_a = -1 for this arm, 0 for the others, and b = -share. Cost of a solve:
some 15 passes over M requests and K arms for each budget.
"""

from typing import Any

import numpy as np

from onepass.exploration.contract import ArmStatistics, action_probabilities
from onepass.foundation.generic import compiled

SWEEPS = 3  # over several budgets
HALVINGS = 8  # of a bracket of factor 2: the price is right to .3 %
STEPS = 60  # of factor 2 at most, towards a bracket
NOTHING = 1e-9  # of the unit: a price of 0
LARGEST = 1e9  # of the unit: no arm fits


@compiled
def mean_spending(
    rule: Any, scores: np.ndarray, costs: np.ndarray, offered: np.ndarray, prices: np.ndarray, which: int,
    residual: float, rounds: int,
) -> float:  # fmt: skip
    """Return the mean amount that M requests spend under budget `which` if arms are chosen at these prices.

    An arm's score is its reward's score minus the price of each budget times the arm's predicted spending. `scores` (M,
    K) are the rewards' scores of the K arms, `costs` (M, J, K) the predicted spending of each arm under the J budgets,
    `offered` (M, K) is True for the arms on offer, and `prices` is (J,). `residual` is the size of the residuals, and
    `rounds` the number of rewards learned, which some exploration rules `rule` use.
    """
    total, count = 0.0, scores.shape[1]
    shifted, p, none = np.empty(count), np.empty(count), np.zeros(count)
    stats = ArmStatistics(
        means=shifted, widths=none, samples=np.empty((0, count)), beta=none, residual=residual, rounds=rounds
    )
    for s in range(scores.shape[0]):
        best = -np.inf
        for a in range(count):
            charge = 0.0
            for j in range(prices.size):
                charge += prices[j] * costs[s, j, a]
            p[a], shifted[a] = 0.0, scores[s, a] - charge
            if offered[s, a]:
                best = max(best, shifted[a])
        for a in range(count):
            if not offered[s, a]:
                shifted[a] = best
        action_probabilities(rule, stats, shifted, offered[s], p)
        for a in range(count):
            total += p[a] * costs[s, which, a]
    return total / scores.shape[0]


@compiled
def keeps_within(
    rule: Any, scores: np.ndarray, costs: np.ndarray, offered: np.ndarray, prices: np.ndarray, which: int,
    price: float, target: float, residual: float, rounds: int,
) -> bool:  # fmt: skip
    """Return True if the mean spending of budget `which` is at most `target` at this price.

    The price is written into `prices` (J,). `scores` (M, K) are the scores of K arms in M requests, `costs` (M, J, K)
    the predicted spending, and `offered` (M, K) marks the arms on offer. `rule` is the exploration rule; some rules use
    `residual`, the size of the residuals, and `rounds`, the number of rewards learned.
    """
    prices[which] = price
    return mean_spending(rule, scores, costs, offered, prices, which, residual, rounds) <= target


@compiled
def solve_one(
    rule: Any, scores: np.ndarray, costs: np.ndarray, offered: np.ndarray, prices: np.ndarray, which: int,
    target: float, unit: float, residual: float, rounds: int,
) -> float:  # fmt: skip
    """Return the least price of budget `which` at which its mean spending is at most `target`.

    The prices of the other budgets stay as they are. The search starts at the previous price, or at `unit` if that
    price is zero. `prices` (J,) are the prices of all budgets. `scores` (M, K) are the scores of K arms in M requests,
    `costs` (M, J, K) the predicted spending, and `offered` (M, K) marks the arms on offer. `rule` is the exploration
    rule; some rules use `residual`, the size of the residuals, and `rounds`, the number of rewards learned.
    """
    before = prices[which]
    if keeps_within(rule, scores, costs, offered, prices, which, 0.0, target, residual, rounds):
        return 0.0
    high = before if before > NOTHING * unit else unit
    fits = keeps_within(rule, scores, costs, offered, prices, which, high, target, residual, rounds)
    low = high
    for _ in range(STEPS):
        if fits:
            low = 0.5 * high
            if low < NOTHING * unit:
                return high
            if not keeps_within(rule, scores, costs, offered, prices, which, low, target, residual, rounds):
                break
            high = low
        else:
            low, high = high, 2.0 * high
            if high > LARGEST * unit:
                return high
            if keeps_within(rule, scores, costs, offered, prices, which, high, target, residual, rounds):
                break
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if keeps_within(rule, scores, costs, offered, prices, which, middle, target, residual, rounds):
            high = middle
        else:
            low = middle
    return high


@compiled
def solve_prices(
    rule: Any, scores: np.ndarray, costs: np.ndarray, offered: np.ndarray, targets: np.ndarray, units: np.ndarray,
    before: np.ndarray, residual: float, rounds: int,
) -> np.ndarray:  # fmt: skip
    """Return the prices (J,) of all budgets; the search starts at the previous prices `before` (J,).

    `targets` (J,) are the largest mean spendings allowed, and `units` (J,) first guesses of prices. `scores` (M, K) are
    the scores of K arms in M requests, `costs` (M, J, K) the predicted spending, and `offered` (M, K) marks the arms on
    offer. `rule` is the exploration rule; some rules use `residual`, the size of the residuals, and `rounds`, the
    number of rewards learned.
    """
    prices = before.copy()
    for _ in range(SWEEPS if prices.size > 1 else 1):
        for j in range(prices.size):
            prices[j] = solve_one(rule, scores, costs, offered, prices, j, targets[j], units[j], residual, rounds)
    return prices
