"""The unit of rewards, and the mean assumed for an arm without data.

    m = median(r),   D = median of the non-zero |r - m|        over the last 1,024 rewards;  D stays if all are equal

mu is the first of these that applies:

- min(r, 0), while all rewards are the same r
- the smaller of two values, such as 0 and 1 for clicks, while nearly all rewards are one of the two
- 0, if half of the arms' first five rewards are 0
- the mean over arms of the mean of their first five rewards, clipped to m +- OUTSIDE D

D is the unit of rewards. It leaves out deviations of 0, so that it is 1 for clicks, however rare they are, and clicks
are not clipped. mu is the mean that is assumed for an unknown arm. It is a mean over arms and not over rounds, because
good arms are played more often, and unknown arms need not be as good. The clipping limits the effect of an outlier
among the first rewards. The two values are the commonest of the first three different ones, and at most a share OTHERS
of the rewards may differ from both.
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


OTHERS = 0.05  # share of rewards that are neither of two: a third value now and then changes nothing
OUTSIDE = 10.0  # D, from m: first rewards are held within
FIRST_REWARDS = 5  # of every arm, that say what unknown arms are worth
COUNTED, ALIKE, LATEST, REPEATS = range(FIRST_REWARDS, FIRST_REWARDS + 4)  # columns of `Mixture.early` after these

# entries of `Rewards.numbers`; VALUE and TIMES are the first of three
SEEN, TOTAL, SQUARES, LATELY, MIDDLE, SPREAD, LEVEL, VALUE, TIMES = 0, 1, 2, 3, 4, 5, 6, 7, 10
CANDIDATES = 3  # values among which are the two


class Rewards(NamedTuple):
    """Running statistics of all rewards.

    - window (1,024,): the last rewards.
    - numbers (13,): count, sum, sum of squares, recent mean, median, spread (median absolute deviation without zeros),
      mean over arms, the first three different values, and the count of each of these values.
    """

    window: np.ndarray
    numbers: np.ndarray


def no_rewards() -> Rewards:
    """Return the running statistics of rewards before the first reward."""
    return Rewards(window=zeros(WINDOW), numbers=zeros(TIMES + CANDIDATES))


@compiled
def note_reward(rewards: Rewards, reward: float) -> None:
    """Update the running statistics of all rewards by one more reward, in place."""
    window, numbers = rewards.window, rewards.numbers
    before = int(numbers[SEEN])
    window[before % WINDOW] = reward
    for i in range(CANDIDATES):
        if numbers[TIMES + i] == 0.0 or numbers[VALUE + i] == reward:
            numbers[VALUE + i] = reward
            numbers[TIMES + i] += 1.0
            break
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
def note_early(rewards: Rewards, early: np.ndarray, slot: int, reward: float) -> None:
    """Store a reward if it is among the first five of its arm, and update the predicted reward of an unknown arm.

    - rewards: statistics of all rewards.
    - early (slots, 9): for each arm its first rewards, their count, the number of equal first rewards, the first value
      that came twice in a row (until then the last reward), and how often it came since.
    - slot: index of the arm.
    """
    numbers, own = rewards.numbers, early[slot]
    if own[ALIKE] == own[COUNTED] or own[ALIKE] > FIRST_REWARDS:
        own[ALIKE] = own[ALIKE] + 1.0 if own[ALIKE] == 0.0 or reward == own[0] else -1.0
    count = int(own[COUNTED])
    if own[REPEATS] > 0.0:
        own[REPEATS] += reward == own[LATEST]
    else:
        own[REPEATS] = 2.0 if count > 0 and reward == own[LATEST] else 0.0
        own[LATEST] = reward
    if count == FIRST_REWARDS:
        return
    own[count] = reward
    own[COUNTED] += 1.0
    most = OUTSIDE * numbers[SPREAD] if numbers[SPREAD] > 0.0 else np.inf
    total, arms, known, zero = 0.0, 0.0, 0, 0
    for a in range(early.shape[0]):
        count, mean = int(early[a, COUNTED]), 0.0
        for i in range(count):
            mean += min(max(early[a, i], numbers[MIDDLE] - most), numbers[MIDDLE] + most) / count
            zero += early[a, i] == 0.0
        known += count
        total += mean
        arms += 1.0 if count > 0 else 0.0
    numbers[LEVEL] = 0.0 if 2 * zero >= known else total / arms


@compiled
def rarest(numbers: np.ndarray) -> int:
    """Return the index, from 0 to 2, of the rarest of the first three different rewards.

    `numbers` is the field of `Rewards` that counts them. If several are equally rare, it is the last one.
    """
    least = 0
    for i in range(CANDIDATES):
        if numbers[TIMES + i] <= numbers[TIMES + least]:
            least = i
    return least


@compiled
def has_many_values(rewards: Rewards) -> bool:
    """Return True if more than 5% of all rewards differ from the two most frequent values.

    `rewards` are the statistics of all rewards (`Rewards`).
    """
    numbers, two = rewards.numbers, 0.0
    for i in range(CANDIDATES):
        two += numbers[TIMES + i]
    two -= numbers[TIMES + rarest(numbers)]
    return numbers[SEEN] - two > OTHERS * numbers[SEEN]


@compiled
def prior(rewards: Rewards) -> float:
    """Return the mean reward that is assumed for an arm of which nothing is known.

    It is the mean over arms if rewards have many values. Otherwise it is the smaller of the two most frequent values;
    if all rewards were equal so far, it is their value or 0, whichever is smaller. `rewards` are the statistics of all
    rewards (`Rewards`).
    """
    numbers = rewards.numbers
    if has_many_values(rewards):
        return numbers[LEVEL]
    last, least = rarest(numbers), np.inf
    for i in range(CANDIDATES):
        if i != last and numbers[TIMES + i] > 0.0:
            least = min(least, numbers[VALUE + i])
    return least if numbers[TIMES + 1] > 0.0 else min(least, 0.0)


@compiled
def worse(rewards: Rewards) -> bool:
    """Return True if the recent mean reward is more than one standard error below the mean of all rewards.

    `rewards` are the statistics of all rewards (`Rewards`).
    """
    numbers = rewards.numbers
    mean = numbers[TOTAL] / numbers[SEEN]
    variance = max(numbers[SQUARES] / numbers[SEEN] - mean * mean, 0.0) / (2.0 * RECENT - 1.0)
    return numbers[LATELY] < mean - WORSE * np.sqrt(variance)
