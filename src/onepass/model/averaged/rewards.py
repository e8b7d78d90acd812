"""The unit of rewards, and what an arm that nobody knows is worth.

    m = median(r),   D = median of the non-zero |r - m|        over the last 1,024 rewards; where all are alike D stays
    prior = 0 if |m| <= 3 D, else the mean of all rewards       (0 as well where all rewards were 0)

Non-zero, so that D is 1 for clicks, however rare: nobody clips them. Rewards far from 0 for their spread (prices,
ratings) begin at their mean; others at 0, for "nothing happens" is what most arms do.
"""

from typing import NamedTuple

import numpy as np

from onepass.foundation.generic import compiled
from onepass.foundation.state import zeros

WINDOW = 1_024  # rewards of which medians are taken
EARLY, EVERY = 64, 16  # medians are taken anew after every reward up to EARLY, then after every so many
FAR = 3.0  # D: rewards whose median is so far from 0 begin at their mean; residuals are clipped there
RECENT = 50.0  # rewards that the recent mean is made of, by weights (1 - 1 / 50)^age
WORSE = 1.0  # standard errors: with 0, three mistakes in what is nearly always right were an alarm


SEEN, TOTAL, SQUARES, LATELY, MIDDLE, SPREAD = range(6)  # places in `Rewards.numbers`


class Rewards(NamedTuple):
    """window (1,024,): the last rewards; numbers (6,): how many, their sum, that of their squares, their recent mean,
    m and D."""

    window: np.ndarray
    numbers: np.ndarray


def no_rewards() -> Rewards:
    """None so far."""
    return Rewards(window=zeros(WINDOW), numbers=zeros(SPREAD + 1))


@compiled
def paid(rewards, reward):
    """One reward more."""
    window, numbers = rewards.window, rewards.numbers
    before = int(numbers[SEEN])
    window[before % WINDOW] = reward
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
    if abs(numbers[MIDDLE]) <= FAR * numbers[SPREAD] or numbers[SEEN] == 0.0:
        return 0.0
    return numbers[TOTAL] / numbers[SEEN]


@compiled
def worse(rewards):
    """Whether recent rewards are worse than ever, by WORSE standard errors of their mean."""
    numbers = rewards.numbers
    mean = numbers[TOTAL] / numbers[SEEN]
    variance = max(numbers[SQUARES] / numbers[SEEN] - mean * mean, 0.0) / (2.0 * RECENT - 1.0)
    return numbers[LATELY] < mean - WORSE * np.sqrt(variance)
