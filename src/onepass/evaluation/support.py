"""Support of a log: the arms that its logger may have chosen, and what a policy gives to other arms."""

import numpy as np

from onepass.evaluation.log import Log


class Support:
    """Probability that a policy gives to arms that the logger never chose, summed over the blocks of a log.

    If blocks have no distributions, these are the arms that were chosen in no row of any block.
    """

    def __init__(self) -> None:
        self._known = 0.0  # mass outside of the support that distributions tell
        self._masses, self._counts = np.zeros(0), np.zeros(0)  # by arm, over blocks without distributions; choices

    def add(self, block: Log, p: np.ndarray) -> None:
        """Add a block with the policy's probabilities `p` (n, K)."""
        self._counts = add_padded(self._counts, np.bincount(block.arms, minlength=block.n_arms))
        if block.distributions is None:
            self._masses = add_padded(self._masses, p.sum(axis=0))
        else:
            self._known += float((p * ~block.support).sum())

    @property
    def mass(self) -> float:
        """Sum over rows of the probability of arms that the logger never chose."""
        return self._known + float(self._masses[self._counts[: len(self._masses)] == 0.0].sum())


def add_padded(sums: np.ndarray, more: np.ndarray) -> np.ndarray:
    """Add two vectors; the shorter one is padded with zeros."""
    out = np.zeros(max(len(sums), len(more)))
    out[: len(sums)] += sums
    out[: len(more)] += more
    return out
