"""A policy that learns, on a log: every decision is evaluated before it is learned.

    w_t = p_t(a_t) / propensity_t with p_t from the model of rows before t,      then the model learns (x_t, a_t, r_t)

p_t is made of the past alone, so mean w r estimates the mean value of the policies on the way, without bias. That is
no one value that stays, which sequences of bets (betting.py) have limits of: limits of this mean are those of running
averages (running.py). The policy learns what the logger chose, not what it would have chosen itself.
"""

from typing import Any

import numpy as np

from onepass.evaluation.log import Log
from onepass.evaluation.policies import contexts_of, policy_of
from onepass.evaluation.sample import Sample, sample_of


def progressive(log: Log, bandit: Any, every: int = 1) -> Sample:
    """Weights and rewards of a bandit that learns the log as it goes.

    log: with contexts; bandit: shared for contexts (n, K, d), per arm for contexts (n, d), where arms are named 0 to
    K - 1; it learns every row. every: rows that are learned together, at least 1 (default 1: each before the next).
    Returns a `Sample` without a model. ValueError for a log without contexts.
    """
    contexts, weights = contexts_of(log), np.empty(len(log))
    for place, block in enumerate(log.blocks(every)):
        start = place * every
        p = policy_of(bandit, block)(block, start)
        weights[start : start + len(block)] = p[np.arange(len(block)), block.arms] / block.propensities
        rows = contexts[start : start + len(block)]
        if contexts.ndim == 3:
            bandit.learn(rows[np.arange(len(block)), block.arms], block.rewards)
        else:
            bandit.learn(rows, block.rewards, arm=block.arms.tolist())
    return sample_of(weights, log.rewards)


def learning_curve(sample: Sample, points: int = 50) -> np.ndarray:
    """(points, 2): rows so far, and mean w r of the rows since the point before."""
    ends = np.unique(np.linspace(0, sample.rows, points + 1).astype(int))
    sums = np.concatenate([[0.0], np.cumsum(sample.products)])[ends]
    return np.column_stack([ends[1:], np.diff(sums) / np.diff(ends)])
