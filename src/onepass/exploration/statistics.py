"""Statistics of arms (means, widths, draws) that an exploration rule needs, for models in which arms share no data."""

import numpy as np

from onepass.exploration.contract import ArmStatistics
from onepass.exploration.randomness import empty_normals
from onepass.exploration.rule import Rule


def statistics(
    rule: Rule,
    means: np.ndarray,
    widths: np.ndarray,
    beta: np.ndarray | float,
    shifts: np.ndarray,
    residual: float = 0.0,
    rounds: int = 0,
) -> ArmStatistics:
    """Return the statistics of K arms for a rule, with independent draws for each arm.

    `beta` is the multiplier of the width of every arm, or one number for all. shifts (pairs, K) holds normals times
    widths, and the draws are mean +- beta shift, in pairs, so each has the distribution N(mean, (beta width)^2). It is
    (0, K) if the rule draws nothing. `residual` is the root mean square of past prediction errors, and `rounds` the
    number of rows learned.
    """
    count = means.size
    every, samples = np.empty(count), empty_normals(count)
    every[:] = beta  # np.broadcast_to takes as long as the rest of this function
    if len(shifts):
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is raised by who asks
            samples = np.concatenate([means + every * shifts, means - every * shifts])[: rule.draws]
    return ArmStatistics(means=means, widths=widths, samples=samples, beta=every, residual=residual, rounds=rounds)
