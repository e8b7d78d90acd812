"""Half-lives: a row that is `age` old counts 2^(-age / half_life).

Ages are counted in ticks, TICKS to a half-life, and weights are those of whole ticks: a row learned in tick i counts
2^(-(now - i) / TICKS) in tick now. What is held is multiplied when the tick changes, by one number however long nothing
came, and not in every round.
"""

TICKS = 64  # a half-life: weights differ from the exponential's by a factor of 2^(1/64) at most, 1.1%


def decay_factor(ticks: int) -> float:
    """Return the weight that is left after so many ticks: 2^(-ticks / TICKS)."""
    return 2.0 ** (-ticks / TICKS)
