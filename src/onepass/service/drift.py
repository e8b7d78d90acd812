"""Does a model still know what it is talking about: alarms where rewards leave what it expected, with a stated rate.

    r in [0, 1]: a reward, scaled     m: the model's mean of what was shown, when it was shown     o = m / (1 - m)
    more:  p = o c / (1 + o c),  q = o s / (1 + o s)     fewer: the same with o / c, o / s          c = 1.25, s = 2.5
    e_t = r q / p + (1 - r) (1 - q) / (1 - p),   M_t = e_t (M_{t-1} + 1),   an alarm once one M_t >= 2 every

Guarantee. While the odds of a reward are at most c times as many, and as few, as the model says, E[e_t | past] <= 1, so
the mean of both M_t less t never grows on average: from one alarm to the next it is at least `every` decisions in the
mean (Shin, Ramdas and Rinaldo 2023), whatever is offered, shown and learned. Nothing is assumed of single rewards: 0
and 1, or anything between. Odds that are s times as many, or as few, are found in hundreds of decisions (docs/page.md).

A model that has learned few rows is passed over: it does not claim to know. After an alarm both sums begin anew.
"""

from typing import NamedTuple

import msgspec

EVERY = 100_000  # decisions from one false alarm to the next, on average, at least
OFF = 1.25  # times the odds: what means may be off by; on news sites they are by 1.2 in parts of 2,000 decisions
SHIFT = 2.5  # times the odds: what is looked for
LEAST = 0.02  # of a scaled mean, and of one less it: means of linear models may leave the range
SETTLED = 500  # rows a model has learned before its means are held against it
KEPT = 12  # alarms whose times are known


class Alarm(msgspec.Struct, frozen=True):
    """time: of the join that raised it, microseconds; more: whether rewards were more than expected, or fewer; after:
    decisions since the alarm before, or the beginning."""

    time: int
    more: bool
    after: int


class Drift(msgspec.Struct):
    """What is known so far. more, fewer: both M_t; rows: since the last alarm; alarms: how many; latest: the last of
    them."""

    more: float = 0.0
    fewer: float = 0.0
    rows: int = 0
    alarms: int = 0
    latest: list[Alarm] = []

    def add(self, mean: float, reward: float, time: int, every: float = EVERY) -> bool:
        """Whether a reward raises an alarm. mean, reward: scaled; what leaves [0, 1] counts as its end."""
        m, r = min(max(mean, LEAST), 1.0 - LEAST), min(max(reward, 0.0), 1.0)
        odds = m / (1.0 - m)
        self.more = bet(r, odds * OFF, odds * SHIFT) * (self.more + 1.0)
        self.fewer = bet(r, odds / OFF, odds / SHIFT) * (self.fewer + 1.0)
        self.rows += 1
        if max(self.more, self.fewer) < 2.0 * every:
            return False
        alarm = Alarm(time, self.more > self.fewer, self.rows)
        self.alarms, self.latest = self.alarms + 1, [*self.latest, alarm][-KEPT:]
        self.anew()
        return True

    def anew(self) -> None:
        """Know of no rewards."""
        self.more, self.fewer, self.rows = 0.0, 0.0, 0


class Expected(NamedTuple):
    """What a model expected of what was shown. mean; rounds: rows that it had learned."""

    mean: float
    rounds: int


def bet(reward: float, null: float, other: float) -> float:
    """The likelihood ratio of two odds, linear in the reward."""
    p, q = null / (1.0 + null), other / (1.0 + other)
    return reward * q / p + (1.0 - reward) * (1.0 - q) / (1.0 - p)
