"""Pooling of the logs of several policies, with the mixture of all of them in the denominator.

For a row that logger j wrote, the two kinds of weights are

    naive      w = policy(a | x) / p_j(a | x),                         j wrote the row
    balanced   w = policy(a | x) / sum over loggers l of (n_l / n) p_l(a | x)

Both are unbiased. The balanced weights (Veach and Guibas 1995; Agarwal, Basu, Schnabel and Joachims 2017) are at most n
/ n_l times the weights of any logger, so a row that was very unlikely under its own logger gets no large weight. The
advantage grows with the difference between the loggers. Arms that one logger never chose have support if another logger
did.

Limits that hold at any time require E[w | past] = 1. Balanced weights have this property if a random draw with shares
n_l / n decided which logger would write each row, as a canary does. For logs that were written one after the other, use
estimates and limits of a fixed sample, or naive weights.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from onepass.evaluation.log import Log
from onepass.evaluation.policies import make_policy
from onepass.foundation import check


def pool_logs(logs: Sequence[Log], loggers: Sequence[Any], weights: str = "balanced") -> Log:
    """Pool several logs into one, with rows in the order given.

    The cost is O(n K loggers).

    Parameters
    ----------
    logs : sequence of Log
        At least one log, all over the same arms, with contexts and slots in all or in none.
    loggers : sequence of policies
        Policies that wrote the logs, in the same order: probabilities (K,), functions of contexts, or other policies of
        `evaluate` that do not count rows.
    weights : str, default "balanced"
        "balanced" divides by the mean probability of the arm over all loggers, "naive" by its probability under the
        logger of the row. Both are unbiased; "balanced" has the smaller variance.

    Returns
    -------
    Log
        Log with the propensities of the mixture ("balanced") or of its own logger ("naive"). It keeps requests and
        columns that all logs have.

    Raises
    ------
    ValueError
        If the logs disagree, or a logger's probabilities are not the propensities of its own log.
    """
    weights = check.choice("weights", weights, ("balanced", "naive"))
    if not logs or len(logs) != len(loggers):
        raise ValueError(f"loggers must be one per log, got {len(loggers)} for {len(logs)}")
    if len({(log.n_arms, log.names, log.contexts is None, log.slots is None) for log in logs}) > 1:
        raise ValueError("logs must have the same arms, and contexts and slots in all or in none")
    shares = np.array([len(log) for log in logs]) / sum(len(log) for log in logs)
    each = [_logger_probabilities(log, loggers, own) for own, log in enumerate(logs)]
    joint = [np.tensordot(shares, p, axes=1) for p in each]
    own = [p[place] for place, p in enumerate(each)]
    distributions = np.concatenate(joint if weights == "balanced" else own)
    arms = np.concatenate([log.arms for log in logs])
    offers = [np.ones((len(log), log.n_arms), bool) if log.eligible is None else log.eligible for log in logs]
    requests = [log.requests for log in logs if log.requests is not None]
    return Log(
        arms=arms,
        rewards=np.concatenate([log.rewards for log in logs]),
        propensities=distributions[np.arange(len(arms)), arms],
        n_arms=logs[0].n_arms,
        contexts=None if logs[0].contexts is None else np.concatenate([log.contexts for log in logs]),
        slots=None if logs[0].slots is None else np.concatenate([log.slots for log in logs]),
        distributions=distributions,
        eligible=None if all(log.eligible is None for log in logs) else np.concatenate(offers),
        names=logs[0].names,
        requests=None if len(requests) < len(logs) else np.concatenate(requests),
        columns=_join_columns(logs),
    )


def _join_columns(logs: Sequence[Log]) -> dict[str, np.ndarray] | None:
    """Return the columns that all logs have, one log below the other, or None if there are none."""
    each = [{} if log.columns is None else log.columns for log in logs]
    shared = [name for name in each[0] if all(name in columns for columns in each)]
    return {name: np.concatenate([columns[name] for columns in each]) for name in shared} or None


def _logger_probabilities(log: Log, loggers: Sequence[Any], own: int) -> np.ndarray:
    """Return the probabilities (loggers, n, K) of all loggers on one log.

    `own` is the index of the policy that wrote this log. Raises ValueError if it does not give the log's propensities.
    """
    p = np.stack([make_policy(logger, log)(log, 0) for logger in loggers])
    held = p[own, np.arange(len(log)), log.arms]
    away = np.flatnonzero(~np.isclose(held, log.propensities, rtol=1e-6, atol=1e-9))  # JSON keeps 16 digits, others 7
    if away.size:
        raise ValueError(
            f"loggers must give the propensities of their logs: logger {own} gives {held[away[0]]:g} in row {away[0]}, "
            f"where the log has {log.propensities[away[0]]:g}"
        )
    return p
