"""Half-lives: a row of age `age` counts 2^(-age / half_life).

Ages are counted in ticks, TICKS to a half-life. A row learned in tick i has the weight 2^(-(now - i) / TICKS) in tick
`now`. When the tick changes, a state is multiplied by a single factor, however many ticks have passed, so a round
within a tick costs nothing.
"""

TICKS = 64  # a half-life: weights differ from the exponential's by a factor of 2^(1/64) at most, 1.1%


def decay_factor(ticks: int) -> float:
    """Return 2^(-ticks / 64), the weight left of a row after `ticks` ticks; a half-life has 64 ticks."""
    return 2.0 ** (-ticks / TICKS)
