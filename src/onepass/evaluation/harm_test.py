"""Sequential test of harm: compares a policy's outcome with a multiple of the baseline's.

For every decision with outcome y of the shown arm a, a paired difference D enters the wealth of the test:

    D = sign ((w - ratio v) (y - c) + (1 - ratio) c),     w = p(a) / m(a),     v = pi(a) / m(a),     0 <= y <= upper
    wealth = mean over bets l of the product of (1 + l D),   l D >= -1/2,   harm is reported once wealth >= 1 / alpha

p, pi and m are the probabilities of the shown arm under the policy, the baseline, and the mixture that decided. `ratio`
is the allowed multiple, and sign is 1 if larger outcomes are harm, else -1. The centre c is a mean of outcomes that was
known before the arm was drawn. w and v have mean 1, so c changes no mean, but it makes the variance of D smaller.

Without harm E[D | past] <= 0. Then the wealth is a supermartingale, so it ever reaches 1 / alpha with probability at
most alpha (Ville 1939). Cost: O(1) a decision.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from onepass.foundation import check

BETS = 2.0 ** -np.arange(1.0, 9.0)  # shares of the bet that could lose all
PRIOR = 10.0  # values of 0 that the centre counts beside those that came


@dataclass(frozen=True)
class AtMost:
    """Guardrail: the mean of an outcome is at most `ratio` times the baseline's.

    Parameters
    ----------
    ratio : float, default 1.0
        Largest ratio to the baseline's mean, above 0. 1.02 allows 2 % more.
    upper : float, default 1.0
        Largest possible value of the outcome, above 0. The smallest one is 0.
    """

    ratio: float = 1.0
    upper: float = 1.0

    sign = 1.0

    def __post_init__(self) -> None:
        _check(self)


@dataclass(frozen=True)
class AtLeast:
    """Guardrail: the mean of an outcome is at least `ratio` times the baseline's.

    Parameters
    ----------
    ratio : float, default 1.0
        Smallest ratio to the baseline's mean, above 0. 0.98 allows 2 % less.
    upper : float, default 1.0
        Largest possible value of the outcome, above 0. The smallest one is 0.
    """

    ratio: float = 1.0
    upper: float = 1.0

    sign = -1.0

    def __post_init__(self) -> None:
        _check(self)


def _check(guardrail: Any) -> None:
    check.positive("ratio", guardrail.ratio)
    check.positive("upper", guardrail.upper)


class HarmTest:
    """Sequential test of a guardrail, a limit of an outcome relative to the baseline's. It may be read at any time.

    Parameters
    ----------
    guardrail : AtMost or AtLeast
        The claim that is tested.
    alpha : float
        Probability of a false stop, above 0 and below 1.
    log_wealth : array of shape (8,), default None
        Logarithm of the wealth of every bet so far. None starts a new test.
    count : int, default 0
        Number of outcomes so far.
    total : float, default 0.0
        Sum of outcomes so far.

    Attributes
    ----------
    is_harmful : bool
        True once the claim has been rejected.
    """

    is_harmful: bool

    def __init__(
        self, guardrail: AtMost | AtLeast, alpha: float, log_wealth: Any = None, count: int = 0, total: float = 0.0
    ) -> None:
        self.guardrail, self.alpha, self.count, self.total = guardrail, alpha, count, total
        self.log_wealth = np.zeros(BETS.size) if log_wealth is None else np.asarray(log_wealth, np.float64)
        self.is_harmful = self.evidence >= 1.0 / alpha

    @property
    def centre(self) -> float:
        """Mean of the outcomes so far and of `PRIOR` imagined zeros; it is subtracted from the next outcome."""
        return self.total / (self.count + PRIOR)

    @property
    def evidence(self) -> float:
        """Evidence so far that the claim is false; the claim is rejected once it reaches 1 / alpha."""
        most = float(self.log_wealth.max())
        return math.exp(min(most, 700.0)) * float(np.exp(self.log_wealth - most).mean())

    def add(
        self, policy_weight: float, baseline_weight: float, share: float, value: float, centre: float = 0.0
    ) -> None:
        """Add the outcome of one decision.

        Parameters
        ----------
        policy_weight, baseline_weight : float
            Probability of the arm shown under the policy, and under the baseline, divided by the probability with which
            it was shown; at least 0.
        share : float
            Probability with which the policy, and not the baseline, decided; above 0 and below 1, fixed before the
            draw.
        value : float
            The outcome, from 0 to `upper`.
        centre : float, default 0.0
            The property `centre` when the arm was drawn, from 0 to `upper`.

        Raises
        ------
        ValueError
            If the value is out of range.
        """
        sign, ratio, upper = self.guardrail.sign, self.guardrail.ratio, self.guardrail.upper
        checked = self.check_value(value)
        level = sign * (1.0 - ratio) * centre
        difference = sign * (policy_weight - ratio * baseline_weight) * (checked - centre) + level
        # the largest loss is that of an arm of the policy alone, w = 1 / share, or of the baseline alone
        one, other = (centre, upper - centre) if sign > 0.0 else (upper - centre, centre)
        most = max(one / share, ratio * other / (1.0 - share)) - level
        self.log_wealth = self.log_wealth + np.log1p(BETS * difference / most)
        self.count, self.total = self.count + 1, self.total + checked
        self.is_harmful = self.is_harmful or self.evidence >= 1.0 / self.alpha

    def check_value(self, value: Any) -> float:
        """Return an outcome as a float after a check of its range.

        Parameters
        ----------
        value : float
            The outcome.

        Returns
        -------
        float
            The outcome.

        Raises
        ------
        ValueError
            If it is not from 0 to `upper`.
        """
        found = check.real("an outcome with a guardrail", value)
        if not 0.0 <= found <= self.guardrail.upper:
            raise ValueError(
                f"an outcome with a guardrail must be from 0 to {self.guardrail.upper:g}, got {check.quote(found)}"
            )
        return found
