"""Intervals, and the range of possible rewards, to which limits are clipped."""

import math
from typing import Any, NamedTuple

import numpy as np

from onepass.foundation import check
from onepass.foundation.check import quote


class Interval(NamedTuple):
    """Lower and upper limit.

    Parameters
    ----------
    lower : float
        Lower limit.
    upper : float
        Upper limit.
    """

    lower: float
    upper: float

    def contains(self, value: float) -> bool:
        """Return True if a value lies in the interval.

        Parameters
        ----------
        value : float
            Value to test.

        Returns
        -------
        bool
            True for the limits themselves, too.
        """
        return self.lower <= value <= self.upper


class Range(NamedTuple):
    """Least and largest possible reward.

    Parameters
    ----------
    least : float
        Least reward.
    largest : float
        Largest reward.
    """

    least: float
    largest: float

    @property
    def span(self) -> float:
        """Width of the range, largest - least."""
        return self.largest - self.least

    def clip(self, lower: float, upper: float) -> Interval:
        """Return an interval, clipped to the range.

        Parameters
        ----------
        lower : float
            Lower limit.
        upper : float
            Upper limit.

        Returns
        -------
        Interval
            Limits within the range.
        """
        low, high = (min(max(float(end), self.least), self.largest) for end in (lower, upper))
        return Interval(low, high)


def make_range(value: Any) -> Range:
    """Return a `Range` from (least, largest), or raise ValueError for invalid limits."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise ValueError(f"reward_range must be (least, largest), got {quote(value)}")
    least, largest = (check.real("reward_range", end) for end in value)
    if not least < largest:
        raise ValueError(f"reward_range must have its least reward first, got {quote(value)}")
    if not math.isfinite(largest - least):
        raise ValueError(f"reward_range must have a finite width, got {quote(value)}")
    return Range(least, largest)


def check_rewards(rewards: np.ndarray, within: Range, first: int = 0) -> np.ndarray:
    """Return rewards (n,), or raise ValueError that names the first row outside the range.

    `first` is the number of the first row in the log.
    """
    out = np.flatnonzero((rewards < within.least) | (rewards > within.largest))
    if out.size:
        raise ValueError(
            f"rewards must be within reward_range {tuple(within)}, got {rewards[out[0]]:g} in row {first + int(out[0])}"
        )
    return rewards
