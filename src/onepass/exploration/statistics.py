"""Statistics of arms as a rule uses them, for models in which arms share no data."""

import numpy as np

from onepass.exploration.contract import ArmStatistics, draws
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

    `beta` is the multiplier of every arm, or one number for all. shifts (pairs, K) holds normals times widths, and the
    draws are mean +- beta shift, in pairs, so each has the distribution N(mean, (beta width)^2). It is (0, K) if the
    rule draws nothing. `residual` and `rounds` are as in `ArmStatistics`.
    """
    count = means.size
    beta, samples = np.broadcast_to(np.asarray(beta, np.float64), (count,)).copy(), empty_normals(count)
    if len(shifts):
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is raised by who asks
            samples = np.concatenate([means + beta * shifts, means - beta * shifts])[: draws(rule.rule)]
    return ArmStatistics(means=means, widths=widths, samples=samples, beta=beta, residual=residual, rounds=rounds)
