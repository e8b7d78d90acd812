"""Limits of a policy's value and of its spending from one log, and trade-offs of reward against spending.

The reward and the J other outcomes have one weight and share the error probability alpha:

    weight_t = policy(arm_t) / propensity_t              one weight serves the reward and all outcomes
    limits of each at level 1 - alpha / (1 + J)          together at level 1 - alpha (Bonferroni), for J outcomes

Outcomes are columns of the log.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from onepass.evaluation.evaluate import Evaluation, evaluate
from onepass.evaluation.log import Log
from onepass.evaluation.policies import arm_names, policy_input
from onepass.foundation import check
from onepass.foundation.check import quote

REWARD = "reward"


class FrontierPoint(NamedTuple):
    """Reward and spending of a bandit under one price of an outcome.

    Parameters
    ----------
    price : float
        Price of one unit of the outcome, in units of reward.
    reward : Evaluation
        Evaluation of the reward per decision.
    spending : Evaluation
        Evaluation of the outcome per decision.
    """

    price: float
    reward: Evaluation
    spending: Evaluation


def outcome_log(log: Log, name: str) -> Log:
    """Return a log whose rewards are an outcome.

    Parameters
    ----------
    log : Log
        A log with the outcome among its `columns`.
    name : str
        Name of the outcome.

    Returns
    -------
    Log
        The log.

    Raises
    ------
    ValueError
        If there is no such column, or a value is not finite.
    """
    if log.columns is None or name not in log.columns:
        raise ValueError(f"log must have a column {quote(name)}: give it as columns={{{quote(name)}: values}}")
    return log.with_rewards(log.columns[name])


def evaluate_outcomes(
    log: Log,
    policy: Any,
    outcomes: Mapping[str, tuple[float, float]],
    *,
    reward_range: tuple[float, float] = (0.0, 1.0),
    level: float = 0.95,
    **options: Any,
) -> dict[str, Evaluation]:
    """Estimate a policy's reward and its outcomes per decision, with limits that hold together.

    Parameters
    ----------
    log : Log
        A log with the outcomes among its `columns`.
    policy : array, callable, bandit or object with `action_probabilities`
        The policy, as in `evaluate`.
    outcomes : dict of str to tuple of float
        Least and largest possible value of every outcome to estimate.
    reward_range : tuple of float, default (0.0, 1.0)
        Least and largest possible reward.
    level : float, default 0.95
        Confidence level of all limits together, above 0 and below 1. The limits of each of the 1 + n evaluations, with
        n the number of outcomes, have the level 1 - (1 - level) / (1 + n).
    **options : Any
        Further arguments of `evaluate`.

    Returns
    -------
    dict of str to Evaluation
        Evaluation of "reward" and of every outcome, as means per decision.

    Raises
    ------
    ValueError
        If an outcome is not in the log, or `evaluate` refuses.
    """
    each = 1.0 - (1.0 - check.fraction("level", level)) / (1 + len(outcomes))
    found = {REWARD: evaluate(log, policy, reward_range=reward_range, level=each, **options)}
    for name, bounds in outcomes.items():
        found[name] = evaluate(outcome_log(log, name), policy, reward_range=bounds, level=each, **options)
    return found


def frontier(
    log: Log,
    bandit: Any,
    outcome: str,
    prices: Iterable[float],
    *,
    spending_range: tuple[float, float],
    costs: Any = None,
    reward_range: tuple[float, float] = (0.0, 1.0),
    level: float = 0.95,
    **options: Any,
) -> list[FrontierPoint]:
    """Estimate reward and spending of a bandit for a grid of prices of an outcome, from one log.

    The bandit is evaluated as it is: it decides on every row of the log, and learns nothing from it. A price reduces
    the score of each arm by the price times the outcome predicted for the arm.

    Parameters
    ----------
    log : Log
        A log with the outcome among its `columns`, and with contexts of numbers.
    bandit : Bandit
        A bandit with `outcomes`. It is not changed.
    outcome : str
        Name of the outcome.
    prices : iterable of float
        Prices of one unit of the outcome, in units of reward, each at least 0. Price 0 ignores the outcome.
    spending_range : tuple of float
        Least and largest possible value of the outcome.
    costs : dict, default None
        Known costs of the arms, {arm: {outcome: cost}}, as in `Bandit.decide`.
    reward_range : tuple of float, default (0.0, 1.0)
        Least and largest possible reward.
    level : float, default 0.95
        Confidence level of the interval of the reward and the interval of the spending together, for each price by
        itself.
    **options : Any
        Further arguments of `evaluate`.

    Returns
    -------
    list of FrontierPoint
        One point for each price, in their order, with reward and outcome as means per decision.

    Raises
    ------
    ValueError
        If the outcome is not in the log, a price is negative, or `evaluate` refuses.
    """
    points = []
    for price in prices:
        if check.real("prices", price) < 0.0:
            raise ValueError(f"prices must be at least 0, got {quote(price)}")
        table = _probabilities(log, bandit, {outcome: -float(price)}, costs)
        found = evaluate_outcomes(
            log, table, {outcome: spending_range}, reward_range=reward_range, level=level, **options
        )
        points.append(FrontierPoint(float(price), found[REWARD], found[outcome]))
    return points


def _probabilities(log: Log, bandit: Any, weights: dict[str, float], costs: Any) -> np.ndarray:
    """Return the bandit's action probabilities (n, K) for every row of a log; nothing changes.

    `weights` maps outcomes to their weights in the score. It and `costs` are arguments of `Bandit.decide`.
    """
    contexts = policy_input(log)
    names = None if contexts.ndim == 3 else arm_names(log, bandit)
    requests = contexts if contexts.ndim == 3 else contexts[:, None]
    ids = [f"row {i}" for i in range(len(log))]
    if log.eligible is not None and not log.eligible.all():
        each = [
            bandit.decide(requests[i : i + 1], names, id=[one], eligible=log.eligible[i], weights=weights, costs=costs)
            for i, one in enumerate(ids)
        ]
        return np.concatenate([one.probabilities for one in each])
    return bandit.decide(requests, names, id=ids, weights=weights, costs=costs).probabilities
