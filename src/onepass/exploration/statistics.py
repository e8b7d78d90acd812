"""Statistics of arms as a rule sees them, where arms share no data."""

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
    """Return means, widths and draws (K,) of arms: draws are means +- beta shifts, in turn, as many as the rule counts.

    beta: the multiplier of every arm, or one of all. shifts (pairs, K): normals times widths, for draws from
    N(mean, (beta width)^2); (0, K) for none. residual, rounds: as in `Seen`.
    """
    count = means.size
    beta, samples = np.broadcast_to(np.asarray(beta, np.float64), (count,)).copy(), empty_normals(count)
    if len(shifts):
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is raised by who asks
            samples = np.concatenate([means + beta * shifts, means - beta * shifts])[: draws(rule.rule)]
    return ArmStatistics(means=means, widths=widths, samples=samples, beta=beta, residual=residual, rounds=rounds)
