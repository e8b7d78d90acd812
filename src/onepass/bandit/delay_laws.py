"""Distributions of the delays of conversions by arm: the common one, until the delays of an arm differ from it.

The distribution of an arm is compared with the common one by the log-rank test in reversed time (Lagakos, Barraj and
De Gruttola 1988). F(e) is the probability of a delay of at most e. n_k and R_k are the counts of delay_law.py, h_k = 1
- F(e_k-1) / F(e_k) the hazards, and a marks the arm:

    z = sum_k (n_k^a - R_k^a n_k / R_k) / sqrt(sum_k v_k)
    v_k = n_k (R_k - n_k) / (R_k - 1)  R_k^a / R_k  (1 - R_k^a / R_k)

z does not depend on the rates of conversions. The test is made whenever the arm's conversions have grown by a half, and
look i has the level .01 / (i (i + 1)). So an arm whose delays do not differ is told apart with a probability of about
.01 at most, however often it is looked at; about, since z is normal for many conversions only.

Once the test has rejected, the arm has its own distribution. It starts from a power of the common one, as hazards of
`IMAGINED` conversions at every age. In this way the ages that the arm's decisions have not reached follow from its
delays so far:

    F_a(e_k-1) = F_a(e_k) (1 - (n_k^a + m g_k) / (R_k^a + m)),    g_k = 1 - (1 - h_k)^theta,    m = IMAGINED
    theta = (sum_k n_k^a + 1) / (sum_k R_k^a log(1 / (1 - h_k)) + 1)

F^theta is the family for which the log-rank test is best (Lehmann 1953).
"""

import math
from collections.abc import Iterable
from statistics import NormalDist
from typing import Any

import numpy as np

from onepass.bandit.decision import name_from_json, plain_name
from onepass.bandit.delay_law import DelayLaw
from onepass.foundation import check

LEVEL = 0.01  # of all tests of an arm together
FIRST_LOOK, GROWTH = 8.0, 1.5  # numbers of conversions of an arm at which it is compared
LEAST_VARIANCE = 2.0  # of the log-rank statistic
IMAGINED = 2.0  # conversions of the common law at every age, in an arm's own law
PER_DOUBLING = 4  # ages of the grid per doubling: a conversion is counted once its decision reaches the next one
MOST_ARMS = 1000  # with counts of their own; the arm whose last conversion is longest ago is left out first


class ArmDelays:
    """Counts of the conversions of one arm.

    `law` is the distribution of the arm's delays, `count` the number of its conversions, and `looks` the number of
    times that its delays were tested against those of all arms. `differs` is True once a test has rejected that they
    are equal. The arm then has the distribution `own` of its own, computed from the values `common` of the distribution
    of all arms.
    `after` is the age in seconds at which all conversions are known.
    """

    def __init__(self, after: float) -> None:
        self.law, self.count = DelayLaw(after, per_doubling=PER_DOUBLING), 0.0
        self.looks, self.differs = 0, False
        self.own: DelayLaw | None = None
        self.common: list[float] = []

    @property
    def next_look(self) -> float:
        """Number of conversions of the arm at which its delays are next tested against those of all arms."""
        return FIRST_LOOK * GROWTH**self.looks

    def power(self, common: DelayLaw) -> float:
        """Estimate the exponent s for which F^s is the distribution function of the arm's delays.

        F(e) is the probability of a delay of at most e seconds under `common`, the distribution of all arms. If s is
        below 1, the arm's delays are shorter. The estimate is (n + 1) / (m + 1), where n is the number of conversions
        that are compared, and m the sum of their cumulative hazards under F.
        """
        (n, total), shares = self.law.counts[:, 1:], np.array(common.shares)
        return float((n.sum() + 1.0) / (total @ np.log(shares[1:] / shares[:-1]) + 1.0))


class DelayLaws:
    """Distributions of the delays of conversions: one for all arms, and one for each arm whose delays differ.

    `common` is the distribution for all arms. `after` is the age in seconds at which all conversions are known.
    """

    def __init__(self, after: float) -> None:
        self.common = DelayLaw(after, per_doubling=PER_DOUBLING)
        self._arms: dict[Any, ArmDelays] = {}

    def add(self, arm: Any, k: int, stage: int) -> None:
        """Count a conversion of an arm, and test the arm's delays if they are due for a test.

        `arm` is None for arms without names. `k` is the index, on a grid of ages, of the age that the decision has
        reached, and `stage` the index of the conversion's delay, at most k.
        """
        self.common.add(k, stage)
        if arm is None:
            return
        one = self._arms.pop(arm, None) or ArmDelays(self.common.after)
        self._arms[arm] = one
        if len(self._arms) > MOST_ARMS:
            del self._arms[next(iter(self._arms))]
        one.law.add(k, stage)
        one.own = None
        one.count += k == stage
        if not one.differs and one.count >= one.next_look:
            one.looks += 1
            one.differs = abs(log_rank(one.law, self.common)) > critical_value(one.looks)

    def find_law(self, arm: Any) -> DelayLaw:
        """Return the distribution of an arm's delays: its own if its delays differ, else the one of all arms."""
        one, shares = self._arms.get(arm), self.common.shares
        if one is None or not one.differs:
            return self.common
        if one.own is None or one.common is not shares:
            one.common, one.own = shares, one.law.shrink(self.common, IMAGINED, one.power(self.common))
        return one.own

    def separate_laws(self) -> dict[Any, DelayLaw]:
        """Return the distributions of the arms whose delays differ from those of all arms, by name of the arm."""
        return {arm: self.find_law(arm) for arm, one in self._arms.items() if one.differs}

    def plain(self) -> dict[str, Any]:
        """Return the counts of all distributions as plain data for JSON.

        "common" holds the counts of all arms together. "arms" is a list with the name of each arm, its counts, the
        number of its tests, and True if its delays differ.
        """
        return {
            "common": self.common.counts.tolist(),
            "arms": [
                [plain_name(arm), one.law.counts.tolist(), one.looks, one.differs] for arm, one in self._arms.items()
            ],
        }

    def restore(self, common: Any, arms: Iterable[Any]) -> None:
        """Restore the counts from the entries "common" and "arms" that `plain` returned.

        Raises ValueError if they do not belong to this object.
        """
        self.common.counts = self._counts(common)
        self._arms = {}
        for name, counts, looks, differs in arms:
            one = ArmDelays(self.common.after)
            one.law.counts = self._counts(counts)
            one.count, one.looks = float(one.law.counts[0].sum()), check.integer("looks", looks, 0)
            one.differs = check.choice("differs", differs, (False, True))
            self._arms[name_from_json(name)] = one

    def _counts(self, found: Any) -> np.ndarray:
        counts = np.array(found, np.float64)
        if counts.shape != self.common.counts.shape or not (np.isfinite(counts) & (counts >= 0.0)).all():
            raise ValueError(f"law must be counts of {len(self.common.ages)} ages, got {check.quote(found)}")
        return counts


def log_rank(own: DelayLaw, common: DelayLaw) -> float:
    """Return the log-rank statistic z that compares the delays of one arm with those of all arms.

    `own` is the distribution of the arm, and `common` the one of all arms. The result is 0 if its variance is below 2.
    """
    (n, total), (n_own, total_own) = common.counts, own.counts
    share = total_own / np.maximum(total, 1.0)
    variance = n * (total - n) / np.maximum(total - 1.0, 1.0) * share * (1.0 - share)
    whole = float(variance.sum())
    return 0.0 if whole < LEAST_VARIANCE else float((n_own - share * n).sum()) / math.sqrt(whole)


def critical_value(look: int) -> float:
    """Return the value of |z| above which a test of an arm's delays rejects.

    `look` is the number of the arm's test, from 1. The levels of all tests of an arm add up to `LEVEL`.
    """
    return NormalDist().inv_cdf(1.0 - LEVEL / (2.0 * look * (look + 1.0)))
