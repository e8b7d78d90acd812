"""Policies without a model: to compare with, on any log."""

import numpy as np

from onepass.evaluation.log import Log
from onepass.foundation import check
from onepass.foundation.check import shown


def _eligible_mask(block: Log) -> np.ndarray:
    """(n, K) 1.0 for arms that a decision offered, else 0.0."""
    return np.ones((len(block), block.n_arms)) if block.eligible is None else block.eligible * 1.0


class UniformPolicy:
    """All arms that a decision offers alike."""

    def action_probabilities(self, block: Log) -> np.ndarray:
        """Probabilities (n, K) for a block of a log."""
        p = _eligible_mask(block)
        return p / p.sum(axis=1, keepdims=True)


class ConstantPolicy:
    """One arm; all alike where it is not offered.

    arm: its place, at least 0, or its name, in a log whose arms have names.
    """

    def __init__(self, arm: int | str) -> None:
        self.arm: int | str = arm if isinstance(arm, str) else check.integer("arm", arm, 0)

    def action_probabilities(self, block: Log) -> np.ndarray:
        """Probabilities (n, K) for a block of a log; ValueError for a name that none of its arms has."""
        p, place = UniformPolicy().action_probabilities(block), _arm_index(self.arm, block.names)
        if place < block.n_arms:
            p[_eligible_mask(block)[:, place] > 0.0] = np.eye(block.n_arms)[place]
        return p


def _arm_index(arm: int | str, names: tuple[str, ...] | None) -> int:
    """The place of an arm; digits are a place where no arm has that name."""
    if not isinstance(arm, str) or (arm.isdecimal() and arm not in (names or ())):
        return int(arm)
    if names is None or arm not in names:
        those = "and arms of the log have none" if names is None else f"of {', '.join(names[:20])}"
        raise ValueError(f"arm must be a place from 0, or the name of an arm, {those}, got {shown(arm)}")
    return names.index(arm)


class LoggingPolicy:
    """The policy that wrote the log, softened or not. It may have learned on the way, so limits are of its average.

    uniform_share: the share that is spread evenly over the arms offered, 0 to 1 (default 0.0).
    """

    changes = True

    def __init__(self, uniform_share: float = 0.0) -> None:
        self.uniform_share: float = check.fraction("uniform_share", uniform_share)

    def action_probabilities(self, block: Log) -> np.ndarray:
        """Probabilities (n, K) for a block of a log; ValueError where it does not have its distributions."""
        if block.distributions is None:
            raise ValueError("distributions must be in the log for the policy that wrote it")
        p = block.distributions / block.distributions.sum(axis=1, keepdims=True)
        return (1.0 - self.uniform_share) * p + self.uniform_share * UniformPolicy().action_probabilities(block)
