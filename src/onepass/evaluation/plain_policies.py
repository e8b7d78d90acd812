"""Policies without a model: to compare with, on any log."""

import numpy as np

from onepass.evaluation.log import Log
from onepass.foundation import check


def offered(block: Log) -> np.ndarray:
    """(n, K) 1.0 for arms that a decision offered, else 0.0."""
    return np.ones((len(block), block.n_arms)) if block.eligible is None else block.eligible * 1.0


class Uniform:
    """All arms that a decision offers alike."""

    def on(self, block: Log) -> np.ndarray:
        """Probabilities (n, K) for a block of a log."""
        p = offered(block)
        return p / p.sum(axis=1, keepdims=True)


class Always:
    """One arm; all alike where it is not offered.

    arm: its place, at least 0.
    """

    def __init__(self, arm: int) -> None:
        self.arm: int = check.integer("arm", arm, 0)

    def on(self, block: Log) -> np.ndarray:
        """Probabilities (n, K) for a block of a log."""
        p = Uniform().on(block)
        if self.arm < block.n_arms:
            p[offered(block)[:, self.arm] > 0.0] = np.eye(block.n_arms)[self.arm]
        return p


class Logged:
    """The policy that wrote the log, softened or not. It may have learned on the way, so limits are of its average.

    floor: the share that is spread evenly over the arms offered, 0 to 1 (default 0.0).
    """

    changes = True

    def __init__(self, floor: float = 0.0) -> None:
        self.floor: float = check.fraction("floor", floor)

    def on(self, block: Log) -> np.ndarray:
        """Probabilities (n, K) for a block of a log; ValueError where it does not have its distributions."""
        if block.distributions is None:
            raise ValueError("distributions must be in the log for the policy that wrote it")
        p = block.distributions / block.distributions.sum(axis=1, keepdims=True)
        return (1.0 - self.floor) * p + self.floor * Uniform().on(block)
