"""Progressive evaluation of a policy that learns: every decision is evaluated before it is learned.

    w_t = p_t(a_t) / propensity_t with p_t from the model of rows before t,      then the model learns (x_t, a_t, r_t)

p_t depends on the past alone, so mean w r estimates the mean value of the policies on the way, without bias. A policy
that learns has no fixed value, so the betting sequence (betting.py) does not apply. The limits are those of average
values (average_sequence.py). The policy learns from the arms that the logger chose, not from those that it would have
chosen itself.
"""

from typing import Any

import numpy as np

from onepass.evaluation.log import Log
from onepass.evaluation.policies import arm_names, make_policy, policy_input
from onepass.evaluation.sample import Sample, make_sample
from onepass.foundation import check


class LearningPolicy:
    """Policy that learns the log while it is evaluated: `evaluate(log, LearningPolicy(bandit))`.

    Parameters
    ----------
    bandit : bandit
        For contexts of shape (n, K, d), a bandit with a shared model. For contexts (n, d), a bandit with a model per
        arm, whose arms are named 0 to K - 1. For a log with requests, a bandit that takes dictionaries. The bandit
        itself, not a copy, learns every row of a log, and keeps what it learned for the next log.
    batch_size : int, default 1
        Rows learned together, at least 1. Blocks of a log end a batch.
    """

    changes = True

    bandit: Any
    batch_size: int

    def __init__(self, bandit: Any, batch_size: int = 1) -> None:
        self.bandit, self.batch_size = bandit, check.integer("every", batch_size, 1)

    def action_probabilities(self, block: Log) -> np.ndarray:
        """Return the probabilities of the arms for each decision of a log, from the rows before it, and learn the log.

        Parameters
        ----------
        block : Log
            Log of n decisions with contexts.

        Returns
        -------
        ndarray of shape (n, K)
            Action probabilities.

        Raises
        ------
        ValueError
            If the log has no contexts.
        """
        contexts, p, start = policy_input(block), np.empty((len(block), block.n_arms)), 0
        for part in block.blocks(self.batch_size):
            rows = slice(start, start + len(part))
            p[rows] = make_policy(self.bandit, part)(part, start)
            if block.contexts is None:
                self.bandit.learn(
                    [request.context for request in contexts[rows]], part.rewards, arm=_arms_to_learn(part, self.bandit)
                )
            elif contexts.ndim == 3:
                self.bandit.learn(contexts[rows][np.arange(len(part)), part.arms], part.rewards)
            else:
                self.bandit.learn(contexts[rows], part.rewards, arm=_arms_to_learn(part, self.bandit))
            start += len(part)
        return p


def _arms_to_learn(log: Log, bandit: Any) -> list[Any]:
    """Return the chosen arms as `learn` takes them: features if the log has requests with them, else names."""
    if log.requests is None:
        names = arm_names(log, bandit)
        return [names[place] for place in log.arms.tolist()]
    return [request.arm(place) for request, place in zip(log.requests, log.arms.tolist(), strict=True)]


def progressive(log: Log, bandit: Any, batch_size: int = 1) -> Sample:
    """Compute weights and rewards of a bandit that learns the log as it goes.

    Parameters
    ----------
    log : Log
        Log with contexts.
    bandit : bandit
        Bandit as for `LearningPolicy`. It learns the log itself, not a copy of it.
    batch_size : int, default 1
        Rows learned together, at least 1.

    Returns
    -------
    Sample
        Sample without a reward model.

    Raises
    ------
    ValueError
        If the log has no contexts.
    """
    p = LearningPolicy(bandit, batch_size).action_probabilities(log)
    return make_sample(p[np.arange(len(log)), log.arms] / log.propensities, log.rewards)


def learning_curve(sample: Sample, points: int = 50) -> np.ndarray:
    """Return the learning curve of a sample.

    Parameters
    ----------
    sample : Sample
        Weights and rewards in the order of the log.
    points : int, default 50
        Number of points.

    Returns
    -------
    ndarray of shape (points, 2)
        Number of rows so far, and the mean of weight times reward since the point before.
    """
    ends = np.unique(np.linspace(0, sample.rows, points + 1).astype(int))
    sums = np.concatenate([[0.0], np.cumsum(sample.products)])[ends]
    return np.column_stack([ends[1:], np.diff(sums) / np.diff(ends)])
