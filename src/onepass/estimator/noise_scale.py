"""Running estimate of the noise scale that is robust to heavy tails and to bounded, rare or mostly equal rewards.

From the residual e of each row x and its squared width h, four running numbers are computed:

    e = r - x^T theta,  h = x^T A^-1 x,  sigma = 1.4826 max(size, mean / 10)
    size   <- size exp(+-1 / sqrt(n)), the median of |e| over the n unusual rows
    mean   <- the mean of min(|e|, 5 sigma) over the n unusual rows
    square <- the mean of min(e^2 / (1 + h), (5 sigma)^2) over all t rows;   nu = sqrt(square)

sigma says which residuals are outliers. nu says how large the noise is overall, and multiplies widths. The median moves
by a factor, however large the residual. The mean keeps it from falling faster than 1 / n if residuals vanish. The
factor 1 + h takes out of nu what theta does not know yet.

A reward is *usual* if more than a third of all rewards equal it: 0 if few buy, 0 and 1 if half do. Two candidates are
kept (Misra and Gries 1982). Each reward equal to a candidate is a vote for it, any other reward takes a vote from both,
and replaces a candidate without votes. A candidate is trusted while it has more than sqrt(t) votes, as many as chance
gives. A usual reward is never an outlier, and does not count in size and mean. Thus sales are measured by sales and not
by the many visits without one.

The first residual cannot be compared with anything. If it proves to be an outlier, more than 30 times size, what was
learned from it is undone (`first_was_outlier`), and the estimate starts again.

It is a heuristic without a proof. It fails for rare rewards among others that are nearly, but not exactly, equal; and
if outliers are more than half of the unusual rewards.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.foundation import check
from onepass.foundation.check import quote
from onepass.foundation.generic import compiled

LEAST = 1e-100  # noise scale: smaller ones are none
OUTLIER = 5.0  # times sigma: what more an outlier is, does not count
TYPICAL = 1.4826  # standard deviations to a median of |eta|, for Gaussian noise
FIRST = 30.0  # times size: a first residual that is an outlier, 20 standard deviations of Gaussian noise
SHARE = 0.1  # of the mean: far below the median's share of it, 0.8 for Gaussian noise, 0.3 for Student t of 1.2 degrees


class Noise(NamedTuple):
    """Running estimate of the noise scale: sqrt(square), or the constant nu if it is above 0.

    A reward is *usual* if more than a third of all rewards equal it, such as 0 if few buy. Up to two usual rewards
    are found by votes: a reward that equals a candidate adds a vote to it, and any other reward takes a vote from both.
    A candidate counts as usual while it has more than sqrt(t) votes after t rows. Usual rewards are never outliers, and
    are left out of `size` and `mean`, which would be near 0 otherwise.

    - nu: constant noise scale of every row, or 0 if it is estimated.
    - next: noise scale given for the next row alone, 0 if none is given.
    - size: running median of the residuals' absolute values, over rows with unusual rewards.
    - mean: their running mean over the same rows, each clipped to 5 sigma, sigma = 1.4826 max(size, mean / 10).
    - square: running mean of e^2 / (1 + h) over all rows, with the residual e and the squared width h, each clipped to
      (5 sigma)^2 if the reward is unusual.
    - unusual: number of rewards that are not usual.
    - usual, votes: first candidate for a usual reward, and its votes.
    - second, more: second candidate, and its votes.
    - first: the first residual that was not zero.
    """

    nu: float
    next: float
    size: float
    mean: float
    square: float
    unusual: float
    usual: float
    votes: float
    second: float
    more: float
    first: float


MEMORY = 9  # of them run


@compiled
def outlier_scale(noise: Noise) -> float:
    """Return the size of a residual by which outliers are recognized; 0 while nothing is known.

    It is 1.4826 times the larger of two numbers: the running median of absolute residuals, and a tenth of their mean.
    For Gaussian noise this is the standard deviation.
    """
    return TYPICAL * max(noise.size, SHARE * noise.mean)


@compiled
def noise_level(noise: Noise) -> float:
    """Return the noise scale nu: the given constant, else the estimate; 0 while nothing is known."""
    return noise.nu if noise.nu > 0.0 else np.sqrt(noise.square)


@compiled
def first_was_outlier(noise: Noise) -> bool:
    """Return True if the first residual has proved to be an outlier, and frequent rewards are not the majority.

    It is an outlier if its absolute value is more than `FIRST` times the running median of residuals. With a constant
    scale nu the result is False.
    """
    return noise.nu == 0.0 and abs(noise.first) > FIRST * noise.size and noise.unusual > noise.votes + noise.more


@compiled
def reset_noise(noise: Noise) -> Noise:
    """Return a new noise estimate that keeps only the frequent rewards, after the first residual was undone."""
    return Noise(
        nu=noise.nu,
        next=noise.next,
        size=0.0,
        mean=0.0,
        square=0.0,
        unusual=0.0,
        usual=noise.usual,
        votes=noise.votes,
        second=noise.second,
        more=noise.more,
        first=0.0,
    )


@compiled
def median_steps(unusual: float) -> tuple[float, float]:
    """Return the factors by which the running median of residuals rises and falls at the next row.

    `unusual` is the number of rows in the median so far.
    """
    step = 1.0 / np.sqrt(unusual + 2.0)
    return np.exp(step), np.exp(-step)


@compiled
def update_noise(noise: Noise, reward: float, residual: float, leverage: float, t: int) -> tuple[Noise, bool]:
    """Return the noise estimate after the t-th row, and True if its reward is usual.

    A reward is usual if it equals a candidate of `Noise` that has more than sqrt(t) votes. For the row x with the
    reward r, `residual` is r - x^T theta and `leverage` is x^T A^-1 x, both before the row. The size of the first
    residual that is not zero starts `size`, the running median of |residual|. It is left out of `mean`, their running
    mean. A scale that was given for this row alone is deleted: the next row uses the constant `nu` if it is above 0,
    and the estimate otherwise.
    """
    rise, fall = median_steps(noise.unusual)
    return update_noise_by(noise, reward, residual, leverage, t, rise, fall)


@compiled
def update_noise_by(
    noise: Noise, reward: float, residual: float, leverage: float, t: int, rise: float, fall: float
) -> tuple[Noise, bool]:
    """Return the noise estimate after the t-th row, and True if many earlier rewards equal its reward.

    `residual` is the reward minus x^T theta, and `leverage` is x^T A^-1 x, both before the row. `rise` and `fall` are
    the factors by which the running median of residuals rises and falls.
    """
    away, size, mean, square = min(abs(residual), 1.0 / LEAST), noise.size, noise.mean, noise.square
    unusual, usual, votes, first = noise.unusual, noise.usual, noise.votes, noise.first
    second, more, common = noise.second, noise.more, False
    if votes > 0.0 and reward == usual:
        votes += 1.0
        common = votes * votes > t
    elif more > 0.0 and reward == second:
        more += 1.0
        common = more * more > t
    elif votes == 0.0:
        usual, votes = reward, 1.0
    elif more == 0.0:
        second, more = reward, 1.0
    else:
        votes, more = votes - 1.0, more - 1.0
    if size == 0.0:
        size = away if away >= LEAST else 0.0
        first = residual if away >= LEAST else 0.0
        square = away * away / ((1.0 + leverage) * t)
    else:
        most = OUTLIER * TYPICAL * max(size, SHARE * mean)
        if not common:
            unusual += 1.0
            mean += (min(away, most) - mean) / (unusual + 1.0)
            if away > size:
                size *= rise
            elif away < size:
                size = max(size * fall, LEAST)
        part = away * away / (1.0 + leverage)
        square += ((part if common else min(part, most * most)) - square) / t
        most = OUTLIER * TYPICAL * max(size, SHARE * mean)
        square = min(square, most * most)
    after = Noise(
        nu=noise.nu,
        next=0.0,
        size=size,
        mean=mean,
        square=square,
        unusual=unusual,
        usual=usual,
        votes=votes,
        second=second,
        more=more,
        first=first,
    )
    return after, common


@compiled
def with_nu(noise: Noise, nu: float) -> Noise:
    """Return the noise estimate with `nu` as the noise scale of the next row alone."""
    return Noise(
        nu=noise.nu,
        next=nu,
        size=noise.size,
        mean=noise.mean,
        square=noise.square,
        unusual=noise.unusual,
        usual=noise.usual,
        votes=noise.votes,
        second=noise.second,
        more=noise.more,
        first=noise.first,
    )


@compiled
def unpack_noise(nu: float, memory: np.ndarray) -> Noise:
    """Return the noise estimate whose running numbers are the first 9 entries of `memory`.

    `nu` is its constant scale, or 0 if the scale is estimated.
    """
    return Noise(
        nu=nu,
        next=0.0,
        size=memory[0],
        mean=memory[1],
        square=memory[2],
        unusual=memory[3],
        usual=memory[4],
        votes=memory[5],
        second=memory[6],
        more=memory[7],
        first=memory[8],
    )


@compiled
def pack_noise(noise: Noise, memory: np.ndarray) -> None:
    """Write the running numbers of a noise estimate to the first 9 entries of `memory`."""
    memory[0], memory[1], memory[2] = noise.size, noise.mean, noise.square
    memory[3], memory[4], memory[5] = noise.unusual, noise.usual, noise.votes
    memory[6], memory[7], memory[8] = noise.second, noise.more, noise.first


def make_noise(nu: Any) -> Noise:
    """Return a new noise estimate with the constant scale `nu`, or one that is estimated if `nu` is None.

    Raises ValueError if `nu` is not positive.
    """
    hint = "the typical size of the noise, or None to estimate it"
    if nu is None:
        nu = 0.0
    elif not LEAST <= check.positive("nu", nu, hint) <= 1.0 / LEAST:
        raise ValueError(f"nu must be from {LEAST:.0e} to {1.0 / LEAST:.0e}, got {quote(nu)}; scale the rewards")
    return Noise(
        nu=float(nu),
        next=0.0,
        size=0.0,
        mean=0.0,
        square=0.0,
        unusual=0.0,
        usual=0.0,
        votes=0.0,
        second=0.0,
        more=0.0,
        first=0.0,
    )
