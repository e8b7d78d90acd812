"""The unit of rewards, and what an arm that nobody knows is worth.

    m = median(r),   D = median of the non-zero |r - m|        over the last 1,024 rewards; where all are alike D stays
    mu = min(r, 0) while all rewards are the same r;  the smaller one of two (clicks, right and wrong);
         else 0 if half of the arms' first five rewards are 0;  else the mean over arms of the mean of their first five

Non-zero, so that D is 1 for clicks, however rare: nobody clips them. mu is what an unknown arm is worth. It is a mean
over arms, and not over rounds: the arms that are played are the good ones, and unknown arms would seem as good.
"""

from typing import NamedTuple

import numpy as np

from onepass.foundation.generic import compiled
from onepass.foundation.state import zeros

WINDOW = 1_024  # rewards of which medians are taken
EARLY, EVERY = 64, 16  # medians are taken anew after every reward up to EARLY, then after every so many
FAR = 3.0  # D: residuals are clipped there
RECENT = 50.0  # rewards that the recent mean is made of, by weights (1 - 1 / 50)^age
WORSE = 1.0  # standard errors: with 0, three mistakes in what is nearly always right were an alarm


SEEN, TOTAL, SQUARES, LATELY, MIDDLE, SPREAD, LEVEL, FIRST, SECOND, VALUES = range(10)  # entries of `Rewards.numbers`
MANY_VALUES = 3.0  # different rewards, or more


class Rewards(NamedTuple):
    """window (1,024,): the last rewards; numbers (10,): how many, their sum, that of their squares, their recent mean,
    m, D, the mean of arms, the first two different values, and how many of these there are, 3 for more."""

    window: np.ndarray
    numbers: np.ndarray


def no_rewards() -> Rewards:
    """None so far."""
    return Rewards(window=zeros(WINDOW), numbers=zeros(VALUES + 1))


@compiled
def paid(rewards, reward):
    """One reward more."""
    window, numbers = rewards.window, rewards.numbers
    before = int(numbers[SEEN])
    window[before % WINDOW] = reward
    if before == 0:
        numbers[FIRST], numbers[VALUES] = reward, 1.0
    elif numbers[VALUES] == 1.0 and reward != numbers[FIRST]:
        numbers[SECOND], numbers[VALUES] = reward, 2.0
    elif numbers[VALUES] == 2.0 and reward != numbers[FIRST] and reward != numbers[SECOND]:
        numbers[VALUES] = MANY_VALUES
    numbers[SEEN] += 1.0
    numbers[TOTAL] += reward
    numbers[SQUARES] += reward * reward
    numbers[LATELY] += (reward - numbers[LATELY]) / min(before + 1.0, RECENT)
    if before < EARLY or before % EVERY == 0:
        held = window[: min(before + 1, WINDOW)]
        middle = np.median(held)
        apart = np.abs(held - middle)
        apart = apart[apart > 0.0]
        numbers[MIDDLE] = middle
        if apart.size > 0:  # with D = 0 the prior would leap to their mean, and all models be wrong at once
            numbers[SPREAD] = np.median(apart)


@compiled
def prior(rewards):
    """What an arm is worth of which nothing is known."""
    numbers = rewards.numbers
    if numbers[VALUES] == MANY_VALUES:
        return numbers[LEVEL]
    if numbers[VALUES] == 2.0:
        return min(numbers[FIRST], numbers[SECOND])
    return min(numbers[FIRST], 0.0)


@compiled
def worse(rewards):
    """Whether recent rewards are worse than ever, by WORSE standard errors of their mean."""
    numbers = rewards.numbers
    mean = numbers[TOTAL] / numbers[SEEN]
    variance = max(numbers[SQUARES] / numbers[SEEN] - mean * mean, 0.0) / (2.0 * RECENT - 1.0)
    return numbers[LATELY] < mean - WORSE * np.sqrt(variance)
