"""Interval of actions, such as prices or doses."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from onepass.foundation import check
from onepass.foundation.check import quote
from onepass.foundation.registry import savable

CELLS = 64  # of equal length on the scale
NARROWEST = CELLS / float(np.finfo(float).max)  # length of an interval in units of the action: densities are finite
POSITIONS = (np.arange(CELLS) + 0.5) / CELLS
FACTS = {"action", "density", "half_width", "low", "high", "log", "demand", "cost"}  # features of an arm in a record


@final
@savable
@dataclass(frozen=True)
class Interval:
    """Interval of actions [low, high], such as prices, bids or doses, in place of arms.

    Parameters
    ----------
    low : float
        Smallest action, which is above 0 if `log` is True.
    high : float
        Largest action, above `low`.
    log : bool, default False
        True if the logarithm of the action is the natural scale, as for prices. Actions are then evenly spaced in the
        logarithm.
    demand : bool, default False
        True if the action is a price and the reward is (action - cost) y. Here y is 1 for a sale and 0 for none, or a
        share between them. The model then learns the probability of a sale, which falls as the price rises.
    cost : float, default 0.0
        Cost of one sale, below `low`. It may differ between decisions, and is used only with `demand`.

    Raises
    ------
    ValueError
        If a number is not finite, `low` is not below `high`, `low` is not above 0 on a logarithmic scale, `cost` is not
        below `low`, or the interval is so narrow that densities are not finite numbers.

    Examples
    --------
    >>> import onepass as op
    >>> bandit = op.ContextualBandit(seed=1)
    >>> decision = bandit.decide({"country": "de"}, arms=op.Interval(4.0, 40.0, log=True))
    >>> 4.0 <= decision.arm <= 40.0 and decision.density > 0.0
    True
    >>> bandit.learn(decision, 7.5)
    """

    low: float
    high: float
    log: bool = False
    demand: bool = False
    cost: float = 0.0

    def __post_init__(self) -> None:
        low, high = check.real("low", self.low), check.real("high", self.high)
        check.choice("log", self.log, (False, True))
        check.choice("demand", self.demand, (False, True))
        cost = check.real("cost", self.cost)
        if low >= high:
            raise ValueError(f"low must be below high, got low = {quote(self.low)} and high = {quote(self.high)}")
        if not math.isfinite(high - low):
            raise ValueError(f"high - low must be a finite number, got {quote(high)} - {quote(low)}")
        if self.log and low <= 0.0:
            raise ValueError(f"low must be above 0 on a logarithmic scale, got {quote(self.low)}")
        if self.demand and cost >= low:
            raise ValueError(f"cost must be below low, so that every sale earns, got {quote(self.cost)}")
        if not self.demand and cost != 0.0:
            raise ValueError(f"cost must be 0 without demand=True: rewards are taken as they are, got {quote(cost)}")
        for name, value in (("low", low), ("high", high), ("log", bool(self.log)), ("demand", bool(self.demand))):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "cost", cost)
        first, last = self.scale_range
        if (last - first) * (low if self.log else 1.0) < NARROWEST:
            raise ValueError(
                "low and high must be farther apart, so that densities are finite numbers, got low = "
                f"{quote(self.low)} and high = {quote(self.high)}"
            )

    @cached_property
    def scale_range(self) -> tuple[float, float]:
        """Ends of the interval on the scale, as actions or as their logarithms."""
        return (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)

    def position(self, action: Any) -> float:
        """Return the position of an action on the scale, from 0 at `low` to 1 at `high`.

        Parameters
        ----------
        action : float
            An action in the interval.

        Returns
        -------
        float
            The position.

        Raises
        ------
        ValueError
            If the action is not a finite number in the interval.
        """
        value = check.real("action", action)
        if not self.low <= value <= self.high:
            raise ValueError(f"action must be from {self.low:g} to {self.high:g}, got {quote(action)}")
        first, last = self.scale_range
        return min(max(((math.log(value) if self.log else value) - first) / (last - first), 0.0), 1.0)

    def action(self, position: float) -> float:
        """Return the action at a position on the scale.

        Parameters
        ----------
        position : float
            A number from 0, the position of `low`, to 1, the position of `high`. If `log` is True, equal steps of the
            position multiply the action by equal factors.

        Returns
        -------
        float
            The action.
        """
        first, last = self.scale_range
        value = first + position * (last - first)
        return min(max(math.exp(value) if self.log else value, self.low), self.high)

    def density(self, action: float, probability: float) -> float:
        """Return the probability density at an action, per unit of the action, from the probability of its cell.

        Parameters
        ----------
        action : float
            An action.
        probability : float
            Probability of its cell.

        Returns
        -------
        float
            The density, at least 0.
        """
        first, last = self.scale_range
        return probability * CELLS / ((last - first) * (action if self.log else 1.0))

    @property
    def half_width(self) -> float:
        """Half the length of one of the 64 equal parts (cells) into which the interval's scale is divided.

        The unit is the one of the scale: of the action, or of its logarithm if `log` is True.
        """
        first, last = self.scale_range
        return (last - first) / (2.0 * CELLS)

    def contains(self, other: "Interval") -> bool:
        """Return True if another interval is this one or a part of it, on the same scale; costs may differ.

        Parameters
        ----------
        other : Interval
            The other interval.

        Returns
        -------
        bool
            True if a model of this interval can be used for the other one.
        """
        same = (self.log, self.demand) == (other.log, other.demand)
        return same and self.low <= other.low and other.high <= self.high

    def params(self) -> dict[str, Any]:
        """Return the arguments of the constructor.

        Returns
        -------
        dict
            Plain data by name.
        """
        return asdict(self)


def has_facts(arm: Any) -> bool:
    """Return True if the record of an arm describes an action in an interval."""
    return isinstance(arm, Mapping) and not FACTS.symmetric_difference(arm)


def interval_of(arm: Any, identity: Any) -> tuple[float, Interval]:
    """Return the action of an arm's record, and the interval of actions from which it was chosen.

    Raises ValueError, which names the decision `identity`, if `arm` is not such a record.
    """
    if not has_facts(arm):
        raise ValueError(f"decision {quote(identity)} must be one over an interval of actions")
    interval = Interval(arm["low"], arm["high"], bool(arm["log"]), bool(arm["demand"]), arm["cost"])
    return check.real("action", arm["action"]), interval
