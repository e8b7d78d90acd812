"""Drift alarms: they report rewards that differ from a model's means, with a bound on the rate of false alarms.

    r in [0, 1]: a reward, scaled     m: the model's mean of what was shown, when it was shown     o = m / (1 - m)
    bet on more:  p = o c / (1 + o c),  q = o s / (1 + o s)     bet on fewer: with o / c, o / s     c = 1.25, s = 2.5
    e_t = r q / p + (1 - r) (1 - q) / (1 - p),   M_t = e_t (M_{t-1} + 1),   an alarm once one M_t >= 2 every
    more: m counts as at least f_t,   fewer: 1 - m as at least g_t
    f_t = min(1/50, (1 + sum of r) / (50 + 2 n)),   g_t the same of 1 - r,   over the n rewards since the last alarm

Guarantee. While the odds of a reward are within a factor c of the model's odds, E[e_t | past] <= 1. Then the average of
both M_t, minus t, is a supermartingale, and two alarms are on average at least `every` decisions apart (Shin, Ramdas
and Rinaldo 2023). This holds for all arms offered, decisions and updates of the model, and for all rewards in [0, 1].
If rewards are common, a change of the odds by a factor s is detected within hundreds of decisions. Detection takes a
number of rewards, so rarer rewards need more decisions (docs/page_drift.md).

The mean of a linear model may be 0 or below if rewards are rare, and odds of 0 would exclude any reward. So each bet
moves such a mean to its safe side, where its null hypothesis is larger. The bet on more uses at least f_t, about half
of the average reward so far. The bet on fewer uses at most 1 - g_t. f_t and g_t depend only on the past, so the
guarantee holds at every rate.

A model that has learned few rows is not tested, because its means are still uncertain. After an alarm all sums start
from 0.
"""

from typing import NamedTuple

import msgspec

EVERY = 100_000  # decisions from one false alarm to the next, on average, at least
OFF = 1.25  # c, a factor of the odds that is tolerated; on news sites means are off by 1.2 in parts of 2,000 decisions
SHIFT = 2.5  # s, the factor of the odds that the bets look for
FEWEST = 50  # f_t and g_t begin at 1 / 50
SETTLED = 500  # rows that a model has learned before it is tested
KEPT = 12  # alarms that `Drift.latest` keeps


class Alarm(msgspec.Struct, frozen=True):
    """Alarm that rewards differ from a model's predictions.

    `time` is the time of the reward that raised it, in microseconds. `more` is true if rewards were larger than
    expected, false if they were smaller. `after` is the number of decisions since the alarm before, or since the
    beginning.
    """

    time: int
    more: bool
    after: int


class Drift(msgspec.Struct):
    """Detector of rewards that differ from a model's predictions.

    - more: evidence so far that rewards are larger than predicted.
    - fewer: evidence so far that rewards are smaller than predicted.
    - rows: number of rewards since the last alarm.
    - earned: sum of these rewards, scaled to [0, 1].
    - alarms: number of all alarms.
    - latest: the last `KEPT` (12) alarms.
    """

    more: float = 0.0
    fewer: float = 0.0
    rows: int = 0
    earned: float = 0.0
    alarms: int = 0
    latest: list[Alarm] = []

    def add(self, mean: float, reward: float, time: int, every: float = EVERY) -> bool:
        """Add a reward to the evidence, and return True if it raises an alarm.

        `mean` is the predicted and `reward` the observed reward, both scaled to [0, 1] and clipped. `time` is in
        microseconds. False alarms are on average at least `every` rewards apart.
        """
        m, r = min(max(mean, 0.0), 1.0), min(max(reward, 0.0), 1.0)
        low, high = smallest_rate(self.earned, self.rows), 1.0 - smallest_rate(self.rows - self.earned, self.rows)
        self.more = likelihood_ratio(r, max(m, low), OFF, SHIFT) * (self.more + 1.0)
        self.fewer = likelihood_ratio(r, min(m, high), 1.0 / OFF, 1.0 / SHIFT) * (self.fewer + 1.0)
        self.rows, self.earned = self.rows + 1, self.earned + r
        if max(self.more, self.fewer) < 2.0 * every:
            return False
        alarm = Alarm(time, self.more > self.fewer, self.rows)
        self.alarms, self.latest = self.alarms + 1, [*self.latest, alarm][-KEPT:]
        self.reset()
        return True

    def reset(self) -> None:
        """Set the evidence to 0; the alarms are kept."""
        self.more, self.fewer, self.rows, self.earned = 0.0, 0.0, 0, 0.0


class Expected(NamedTuple):
    """Predicted reward of the arm that was shown: its `mean`, and the number of rows learned by the model, `rounds`."""

    mean: float
    rounds: int


def smallest_rate(earned: float, rows: int) -> float:
    """Return the smallest predicted mean that the detector of larger rewards uses: about half of the average reward.

    It is at most 1 / 50. `earned` is the sum of the rewards, scaled to [0, 1], and `rows` their number.
    """
    return min(1.0 / FEWEST, (1.0 + earned) / (FEWEST + 2.0 * rows))


def likelihood_ratio(reward: float, mean: float, null: float, other: float) -> float:
    """Return the likelihood ratio of a reward in [0, 1] between two hypotheses about its mean.

    The means p and q are `mean` with its odds multiplied by `null` and by `other`. The ratio of the reward r is r q / p
    + (1 - r) (1 - q) / (1 - p), written so that no mean from 0 to 1 divides by 0.
    """
    rest = 1.0 - mean
    return (rest + mean * null) / (rest + mean * other) * (reward * other / null + 1.0 - reward)
