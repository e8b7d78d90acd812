"""Distribution function F of the delays of conversions, estimated while later conversions are still missing.

    F(e) = P(delay <= e | a conversion comes within `after`)
    F(e_K) = 1,     F(e_k-1) = F(e_k) (1 - (n_k + g_k) / (R_k + 1))
    g_k = 1 - G(e_k-1) / G(e_k),     G(e) = 1 - log(after / e) / log(after e_1 / e_0^2)

R_k counts the conversions with a delay of at most e_k whose decisions have reached the age e_k, and n_k those of them
with a delay above e_k-1. So a conversion is compared only with others that could have been seen as well: conversions of
young decisions are all fast, because slow ones are still missing. This is the product-limit estimator (Kaplan and Meier
1958) in reversed time for right-truncated delays (Lagakos, Barraj and De Gruttola 1988). It does not depend on the rate
of conversions, which changes while a bandit learns.

The ages e_0 < ... < e_K = after are a grid. Each age is twice the one before, or 2^(1/m) times, with m ages per
doubling. `DelayLaw.resample` changes to any other grid. One imagined conversion in each interval of ages makes F known
from the start. Until real ones come, log(delay) is uniform.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from copy import copy
from itertools import pairwise

import numpy as np

from onepass.foundation import check

DOUBLINGS = 11  # from the first age to the last: five minutes to seven days


class DelayLaw:
    """Distribution of the delays of conversions, from conversions and the ages that their decisions have reached.

    A conversion is a reward that may come long after its decision, for example a purchase. F(e), the distribution
    function, is the probability of a delay of at most e seconds, given that the conversion comes within `after`
    seconds. F is estimated at a grid of ages. Between two of them it is linear in log(e). Below the first age it is
    linear in e.

    Parameters
    ----------
    after : float
        Age at which all conversions are known, in seconds, above 0.
    per_doubling : int, default 1
        Number of grid ages per doubling of the age, from 1 to 64.

    Attributes
    ----------
    after : float
        Age at which all conversions are known, in seconds.
    ages : list of float
        Ages of the grid, in seconds; the last is `after`.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Lagakos, Barraj and De Gruttola, "Nonparametric analysis of truncated survival data, with application to AIDS",
    Biometrika 1988. Cost of a new estimate: O(number of ages).
    """

    def __init__(self, after: float, *, per_doubling: int = 1) -> None:
        self.after = check.positive("after", after)
        per_doubling = check.integer("per_doubling", per_doubling, 1, 64)
        last = DOUBLINGS * per_doubling
        self._weight = 1.0  # number of imagined conversions at every age
        self._set_ages([self.after * 2.0 ** ((k - last) / per_doubling) for k in range(last + 1)])

    def _set_ages(self, ages: list[float]) -> None:
        """Set the grid of ages, without conversions."""
        left = [math.log(self.after / age) for age in ages]
        start = [1.0 - one / (2.0 * left[0] - left[1]) for one in left]
        self.ages = ages
        self._seen = [0.0] * len(ages)  # n_k
        self._at_risk = [0.0] * len(ages)  # R_k
        self._imagined = [1.0, *(1.0 - one / two for one, two in pairwise(start))]  # hazards of imagined conversions
        self._shares: list[float] | None = None

    def stage(self, delay: float) -> int:
        """Return the index of the smallest age of the grid that is at least a delay.

        Parameters
        ----------
        delay : float
            Delay in seconds, at most `after`.

        Returns
        -------
        int
            The index, from 0.
        """
        return bisect_left(self.ages, delay)

    def add(self, k: int, stage: int) -> None:
        """Count a conversion whose decision has reached an age of the grid.

        Parameters
        ----------
        k : int
            Index of the age that the decision has reached.
        stage : int
            `stage(delay)` of the conversion, at most k.
        """
        self._at_risk[k] += 1.0
        self._seen[k] += stage == k
        self._shares = None

    @property
    def shares(self) -> list[float]:
        """Values of F, the share of conversions with at most this delay, at every age in `ages` (seconds)."""
        if self._shares is None:
            share = 1.0
            found = [share]
            for k in range(len(self.ages) - 1, 0, -1):
                seen = self._seen[k] + self._weight * self._imagined[k]
                share *= 1.0 - seen / (self._at_risk[k] + self._weight)
                found.append(share)
            self._shares = found[::-1]
        return self._shares

    @property
    def counts(self) -> np.ndarray:
        """Counts of conversions for every age of the grid, from which F is computed, of shape (2, number of ages).

        The second row counts the conversions with at most this delay whose decisions have reached the age. The first
        row counts those of them whose delay is above the age before.
        """
        return np.array([self._seen, self._at_risk])

    @counts.setter
    def counts(self, counts: np.ndarray) -> None:
        self._seen, self._at_risk = counts.tolist()
        self._shares = None

    def resample(self, ages: Sequence[float]) -> "DelayLaw":
        """Return the distribution on another grid of ages.

        F is the same at ages that both grids have, and interpolated at others. An age takes its count of conversions
        from the next age of this grid, or a larger one if the new law's imagined conversions would change F. A law
        without conversions becomes the uniform one of the new grid.

        Parameters
        ----------
        ages : sequence of float
            Ages in seconds, above 0 and rising. The last one is `after`.

        Returns
        -------
        DelayLaw
            The law.

        Raises
        ------
        ValueError
            If the ages do not rise from above 0 to `after`.
        """
        law, grid = DelayLaw(self.after), [check.positive("ages", age) for age in ages]
        if len(grid) < 2 or grid[-1] != self.after or any(one >= two for one, two in pairwise(grid)):
            raise ValueError(f"ages must rise from above 0 to after={self.after:g}, got {check.quote(ages)}")
        law._set_ages(grid)
        shares = self.cdf(np.array(grid)).tolist()
        if not any(self._at_risk):
            return law
        hazards = np.array([1.0, *(1.0 - one / two for one, two in pairwise(shares))])
        at_risk, imagined = np.array(self._at_risk)[np.searchsorted(self.ages, grid)], np.array(law._imagined)
        least = np.divide(imagined, hazards, out=np.zeros(len(grid)), where=hazards > 0.0) - 1.0
        at_risk = np.maximum(at_risk, least)
        law.counts = np.array([np.maximum(hazards * (at_risk + 1.0) - imagined, 0.0), at_risk])
        return law

    def shrink(self, other: "DelayLaw", weight: float, power: float = 1.0) -> "DelayLaw":
        """Return a distribution with the counts of this one, which starts from a power of another distribution.

        With F the distribution function of the other one, F^power counts as `weight` imagined conversions at every age.

        Parameters
        ----------
        other : DelayLaw
            Distribution on the same grid.
        weight : float
            Number of imagined conversions at every age, above 0.
        power : float, default 1.0
            Power of F, above 0. Delays are shorter if it is below 1.

        Returns
        -------
        DelayLaw
            The distribution.
        """
        law, shares = copy(self), other.shares
        law._imagined = [1.0, *(1.0 - (one / next_one) ** power for one, next_one in pairwise(shares))]
        law._weight, law._shares = weight, None
        return law

    def cdf(self, ages: np.ndarray) -> np.ndarray:
        """Return the distribution function F at ages in seconds.

        Parameters
        ----------
        ages : array of shape (n,)
            Ages, at least 0.

        Returns
        -------
        ndarray of shape (n,)
            Shares of the conversions with at most these delays, from 0 to 1.
        """
        ages = np.asarray(ages, np.float64)
        first, share = self.ages[0], self.shares[0]
        later = np.interp(np.log(np.maximum(ages, first)), np.log(self.ages), self.shares)
        found: np.ndarray = np.where(ages < first, share * ages / first, later)
        return found


def fit_delay_law(delays: np.ndarray, ages: np.ndarray, after: float, *, per_doubling: int = 8) -> DelayLaw:
    """Estimate the distribution of delays from the conversions of a log.

    Parameters
    ----------
    delays : array of shape (n,)
        Seconds from the decision to the conversion, at least 0. Delays above `after` are left out.
    ages : array of shape (n,)
        Age of these decisions when the log was cut, in seconds, at least their delay.
    after : float
        Age at which conversions stop to count, in seconds, above 0.
    per_doubling : int, default 8
        Number of grid ages per doubling of the age.

    Returns
    -------
    DelayLaw
        The law.

    Raises
    ------
    ValueError
        If a number is not finite, a delay is negative or above its age, or no conversion belongs to a decision that has
        reached the age `after`: the share of later conversions is then unknown.
    """
    law, none = DelayLaw(after, per_doubling=per_doubling), np.dtype(np.float64)
    late = check.finite("delays", check.array("delays", delays, none, (1,)))
    reached = check.finite("ages", check.array("ages", ages, none, (1,)))
    if late.shape != reached.shape or (late < 0.0).any() or (late > reached).any():
        raise ValueError(
            "delays must be at least 0 and at most the ages of their decisions, one age each: no conversion comes "
            "before its decision, or after the cut"
        )
    grid, stages = np.array(law.ages), np.searchsorted(law.ages, late)
    counted = reached[:, None] >= grid
    at_risk = (counted & (stages[:, None] <= np.arange(len(grid)))).sum(axis=0)
    seen = (counted & (stages[:, None] == np.arange(len(grid)))).sum(axis=0)
    if at_risk[-1] == 0:
        raise ValueError(
            f"after must be an age that decisions with a conversion have reached, got {check.quote(after)}: give a log "
            "that begins earlier, or a shorter time"
        )
    law.counts = np.array([seen, at_risk], np.float64)
    return law
