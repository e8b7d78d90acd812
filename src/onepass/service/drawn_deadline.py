"""Deadlines of censored rewards: ages drawn from the distribution of the delays of conversions.

    due = time + Z,     P(Z <= e) = F(e)          F: distribution function of delays, from `reward.delays`

A decision without an outcome is joined as the default at its drawn deadline. An outcome that is a conversion joins it
at once, and a conversion that comes afterwards is a correction. So a decision of age e counts as about F(e) rows with
p F(e) conversions among them, where p is the expected number of conversions of a decision. Rates of young arms are too
small by at most the factor 1 + p. Z is a function of the decision's id and of the settings, and the deadline is in the
decision's record.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from onepass.bandit.censored_rewards import PURPOSE
from onepass.exploration.random_split import hash_uniform
from onepass.foundation.check import quote
from onepass.log.records import SECOND


def draw_age(identity: str, reward: Any) -> float:
    """Return the age in seconds at which a decision without an outcome gets the default reward.

    The age is drawn from the distribution of delays in `reward`, a section of the settings, by a hash of the decision's
    id. It is from 0 to `reward.wait`.
    """
    ages, shares = [age for age, _ in reward.delays], [share for _, share in reward.delays]
    if ages[-1] < reward.wait:
        ages, shares = [*ages, reward.wait], [*shares, 1.0]
    number = hash_uniform(identity, PURPOSE)
    if number <= shares[0]:
        return float(ages[0] * number / shares[0])
    return float(np.exp(np.interp(number, shares, np.log(ages))))


def draw_deadline(identity: str, time: int, settings: Any) -> int:
    """Return the time at which a decision without an outcome gets the default reward.

    `identity` is the id of the decision, `time` its own time, and `settings` the settings of the loop. Both times
    are in microseconds of Unix time.
    """
    reward = settings.reward
    age = draw_age(identity, reward) if reward.censored else float(reward.wait)
    return time + round(age * SECOND)


def is_conversion(value: float, settings: Any) -> bool:
    """Return True if the value of an outcome is a conversion: a censored reward that is learned at once.

    `settings` are the settings of the loop. Every value but the default reward is a conversion.
    """
    return bool(settings.reward.censored) and value != settings.default


def censored_errors(settings: Any) -> Iterator[str]:
    """Yield a sentence for every wrong value of the settings of censored rewards."""
    reward = settings.reward
    if reward.censored and isinstance(reward.default, str):
        yield "reward.censored must be false unless reward.default is a number: a missing conversion is learned as it"
    if reward.censored and (settings.outcomes or settings.baseline is not None or settings.ab_test is not None):
        yield (
            "reward.censored must be false in a loop with outcomes, a baseline or an A/B test: they count a decision "
            "once, at its deadline"
        )
    if reward.censored and settings.mode == "canary":
        yield (
            'reward.censored must be false where mode = "canary": a candidate is compared by the rewards that are '
            "learned first"
        )
    if reward.censored != bool(reward.delays):
        yield (
            "reward.delays must be given where reward.censored is true, and nowhere else: the ages in seconds by which "
            "shares of the conversions are known, such as [[3600, 0.1], [86400, 0.6]]"
        )
    points = [(0.0, 0.0), *reward.delays]
    rising = all(one[0] < other[0] and one[1] < other[1] for one, other in pairwise(points))
    last_age, last_share = points[-1]
    whole = last_share == 1.0 and last_age < reward.wait
    if reward.delays and (not rising or last_age > reward.wait or last_share > 1.0 or whole):
        yield (
            "reward.delays must be pairs of seconds and a share, both rising from above 0, to at most reward.wait and "
            f"1, the share of reward.wait, got {quote(reward.delays)}"
        )
