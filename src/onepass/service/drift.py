"""Drift alarms: rewards that leave what a model expected of them, with a stated distance between false alarms.

    r in [0, 1]: a reward, scaled     m: the model's mean of what was shown, when it was shown     o = m / (1 - m)
    more:  p = o c / (1 + o c),  q = o s / (1 + o s)     fewer: the same with o / c, o / s          c = 1.25, s = 2.5
    e_t = r q / p + (1 - r) (1 - q) / (1 - p),   M_t = e_t (M_{t-1} + 1),   an alarm once one M_t >= 2 every
    more: m counts as at least f_t,   fewer: 1 - m as at least g_t
    f_t = min(1/50, (1 + sum of r) / (50 + 2 n)),   g_t the same of 1 - r,   over the n rewards since the last alarm

Guarantee. While the odds of a reward are at most c times as many, and as few, as the model says, E[e_t | past] <= 1, so
the mean of both M_t less t never grows on average: from one alarm to the next it is at least `every` decisions in the
mean (Shin, Ramdas and Rinaldo 2023), whatever is offered, shown and learned. Nothing is assumed of single rewards: 0
and 1, or anything between. Odds that are s times as many, or as few, are found in hundreds of decisions where rewards
are common; a change takes so many rewards, so the rarer they are the more decisions (docs/page.md).

Means of linear models may be 0 or below where rewards are rare, and no reward has odds of 0. So each bet moves such
means to its own safe side, where its null is larger: the bet on more never claims a rate below f_t, half of what
rewards have been so far, and the bet on fewer claims nothing of a mean of 0. f_t and g_t follow from the past alone,
so the guarantee holds at every rate.

A model that has learned few rows is passed over: it does not claim to know. After an alarm all sums begin anew.
"""

from typing import NamedTuple

import msgspec

EVERY = 100_000  # decisions from one false alarm to the next, on average, at least
OFF = 1.25  # times the odds: what means may be off by; on news sites they are by 1.2 in parts of 2,000 decisions
SHIFT = 2.5  # times the odds: what is looked for
FEWEST = 50  # rewards that a rate of one is known from before any came: f_t and g_t begin at 1 / 50
SETTLED = 500  # rows a model has learned before its means are held against it
KEPT = 12  # alarms whose times are known


class Alarm(msgspec.Struct, frozen=True):
    """time: of the join that raised it, microseconds; more: whether rewards were more than expected, or fewer; after:
    decisions since the alarm before, or the beginning."""

    time: int
    more: bool
    after: int


class Drift(msgspec.Struct):
    """The sums of both bets. more, fewer: both M_t; rows: rewards since the last alarm; earned: their sum, scaled;
    alarms: how many; latest: the last of them."""

    more: float = 0.0
    fewer: float = 0.0
    rows: int = 0
    earned: float = 0.0
    alarms: int = 0
    latest: list[Alarm] = []

    def add(self, mean: float, reward: float, time: int, every: float = EVERY) -> bool:
        """Add a reward, and return whether it raises an alarm. mean, reward: scaled; outside [0, 1] they count as its
        nearer end."""
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
        """Forget all rewards; alarms stay."""
        self.more, self.fewer, self.rows, self.earned = 0.0, 0.0, 0, 0.0


class Expected(NamedTuple):
    """Mean of a model for what was shown, and the number of rows that it had learned."""

    mean: float
    rounds: int


def smallest_rate(earned: float, rows: int) -> float:
    """The rate that the bet on more takes the model to expect at least: half of the average of so many rewards."""
    return min(1.0 / FEWEST, (1.0 + earned) / (FEWEST + 2.0 * rows))


def likelihood_ratio(reward: float, mean: float, null: float, other: float) -> float:
    """The likelihood of `other` times the mean's odds over that of `null` times them, linear in the reward.

    r q / p + (1 - r) (1 - q) / (1 - p), written so that no mean from 0 to 1 divides by 0.
    """
    rest = 1.0 - mean
    return (rest + mean * null) / (rest + mean * other) * (reward * other / null + 1.0 - reward)
