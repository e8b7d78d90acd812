"""A policy that learns, on a log: every decision is evaluated before it is learned.

    w_t = p_t(a_t) / propensity_t with p_t from the model of rows before t,      then the model learns (x_t, a_t, r_t)

p_t is made of the past alone, so mean w r estimates the mean value of the policies on the way, without bias. That is
no one value that stays, which sequences of bets (betting.py) have limits of: limits of this mean are those of average
values (averages.py). The policy learns what the logger chose, not what it would have chosen itself.
"""

from typing import Any

import numpy as np

from onepass.evaluation.log import Log
from onepass.evaluation.policies import make_policy, policy_input
from onepass.evaluation.sample import Sample, make_sample
from onepass.foundation import check


class LearningPolicy:
    """A policy to evaluate that learns the log as it goes: `evaluate(log, Learning(bandit))`.

    bandit: shared for contexts (n, K, d), per arm for contexts (n, d), where arms are named 0 to K - 1; of records for
    a log with requests. It learns every row, and goes on where it is given to another log. every: rows that are learned
    together, at least 1 (default 1: each before the next); blocks of a log are cut at their ends.
    """

    changes = True

    bandit: Any
    batch_size: int

    def __init__(self, bandit: Any, batch_size: int = 1) -> None:
        self.bandit, self.batch_size = bandit, check.integer("every", batch_size, 1)

    def action_probabilities(self, block: Log) -> np.ndarray:
        """Probabilities (n, K) for a block of a log, each of the bandit that has learned the rows before; it learns the
        block. ValueError for a log without contexts."""
        contexts, p, start = policy_input(block), np.empty((len(block), block.n_arms)), 0
        for part in block.blocks(self.batch_size):
            rows = slice(start, start + len(part))
            p[rows] = make_policy(self.bandit, part)(part, start)
            if block.contexts is None:
                self.bandit.learn(
                    [request.context for request in contexts[rows]], part.rewards, arm=_arms_to_learn(part)
                )
            elif contexts.ndim == 3:
                self.bandit.learn(contexts[rows][np.arange(len(part)), part.arms], part.rewards)
            else:
                self.bandit.learn(contexts[rows], part.rewards, arm=_arms_to_learn(part))
            start += len(part)
        return p


def _arms_to_learn(log: Log) -> list[Any]:
    """The arms that were chosen, as `learn` takes them: by their names or features where a log has these."""
    if log.requests is None:
        places: list[Any] = log.arms.tolist()
        return places
    return [request.arm(place) for request, place in zip(log.requests, log.arms.tolist(), strict=True)]


def progressive(log: Log, bandit: Any, batch_size: int = 1) -> Sample:
    """Weights and rewards of a bandit that learns the log as it goes.

    log: with contexts; bandit, every: as of `Learning`.
    Returns a `Sample` without a model. ValueError for a log without contexts.
    """
    p = LearningPolicy(bandit, batch_size).action_probabilities(log)
    return make_sample(p[np.arange(len(log)), log.arms] / log.propensities, log.rewards)


def learning_curve(sample: Sample, points: int = 50) -> np.ndarray:
    """(points, 2): rows so far, and mean w r of the rows since the point before."""
    ends = np.unique(np.linspace(0, sample.rows, points + 1).astype(int))
    sums = np.concatenate([[0.0], np.cumsum(sample.products)])[ends]
    return np.column_stack([ends[1:], np.diff(sums) / np.diff(ends)])
