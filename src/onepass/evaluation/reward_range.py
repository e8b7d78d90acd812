"""Limits of a value, and the range of rewards that they cannot leave."""

from typing import Any, NamedTuple

import numpy as np

from onepass.foundation import check
from onepass.foundation.check import shown


class Interval(NamedTuple):
    """lower and upper limit."""

    lower: float
    upper: float

    def contains(self, value: float) -> bool:
        """Whether the value lies in it."""
        return self.lower <= value <= self.upper


class Range(NamedTuple):
    """The least and the largest reward that there can be."""

    least: float
    largest: float

    @property
    def span(self) -> float:
        """largest - least."""
        return self.largest - self.least

    def clip(self, lower: float, upper: float) -> Interval:
        """The interval, within the range."""
        low, high = (min(max(float(end), self.least), self.largest) for end in (lower, upper))
        return Interval(low, high)


def make_range(value: Any) -> Range:
    """A range from (least, largest); ValueError for anything else."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise ValueError(f"reward_range must be (least, largest), got {shown(value)}")
    least, largest = (check.real("reward_range", end) for end in value)
    if not least < largest:
        raise ValueError(f"reward_range must have its least reward first, got {shown(value)}")
    return Range(least, largest)


def check_rewards(rewards: np.ndarray, within: Range, first: int = 0) -> np.ndarray:
    """Rewards (n,) that a range holds; ValueError for others, with the row. first: the number of the first row (default
    0)."""
    out = np.flatnonzero((rewards < within.least) | (rewards > within.largest))
    if out.size:
        raise ValueError(
            f"rewards must be within reward_range {tuple(within)}, got {rewards[out[0]]:g} in row {first + int(out[0])}"
        )
    return rewards
