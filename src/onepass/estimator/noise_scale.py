"""The running scale of noise that may have heavy tails; rewards that are bounded, rare or mostly equal are no outliers.

    e = r - x^T theta,  h = x^T A^-1 x,  sigma = 1.4826 max(size, mean / 10)
    size   <- size exp(+-1 / sqrt(n)): the median of |e|;  mean <- that of min(|e|, 5 sigma);  n: rows that are unusual
    square <- that of min(e^2 / (1 + h), (5 sigma)^2), over all t rows;   nu = sqrt(square)

sigma says which residuals are outliers, nu how large noise is in all: what widths are multiplied by. The median is
moved by a factor, however large the residual; the mean keeps it from falling faster than 1 / n where residuals vanish;
1 + h takes out of nu what theta does not know yet.

A reward is *usual* if more than a third of all rewards are that very number: 0 where few buy, 0 and 1 where half do.
Two candidates are kept (Misra and Gries 1982): votes are counted for each, any other reward takes one from both, and
who finds one without votes takes its place. A candidate is trusted while it has more than sqrt(t) votes, as many as
chance gives. A usual reward is never an outlier, and tells nothing of how far the others may lie: they alone make size
and mean, so that sales are measured by sales and not by the many visits without one.

The first residual has nothing to be compared with. Should it prove an outlier, more than 30 times size, what was
learned by it is taken back (`proven`), and the scale begins anew.

A heuristic of which nothing is proved. Its limits: rare rewards among others that are nearly equal, not exactly; and
outliers that are more than half of the unusual rewards.
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
    """Running estimate of the noise scale.

    nu: of every row (0: estimated); next: told for the next row (else 0); what runs: size, mean, square; unusual
    rewards; the candidates usual and second, with votes and more; first: the first e that was not zero.
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
    """sigma, 0 while nothing is known."""
    return TYPICAL * max(noise.size, SHARE * noise.mean)


@compiled
def noise_level(noise: Noise) -> float:
    """Return nu as given, else as estimated; 0 if nothing is known."""
    return noise.nu if noise.nu > 0.0 else np.sqrt(noise.square)


@compiled
def first_was_outlier(noise: Noise) -> bool:
    """Return whether the first residual has proved an outlier, where usual rewards are not the most."""
    return noise.nu == 0.0 and abs(noise.first) > FIRST * noise.size and noise.unusual > noise.votes + noise.more


@compiled
def reset_noise(noise: Noise) -> Noise:
    """Return the noise after the first residual is undone: only the usual rewards are still known."""
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
    """Return the factors by which the running median rises and falls at the next unusual reward."""
    step = 1.0 / np.sqrt(unusual + 2.0)
    return np.exp(step), np.exp(-step)


@compiled
def update_noise(noise: Noise, reward: float, residual: float, leverage: float, t: int) -> tuple[Noise, bool]:
    """Return the noise after the t-th row, with no scale for the next row, and whether its reward is usual.

    The first residual that is not zero begins the median, and is left out of the mean.
    """
    rise, fall = median_steps(noise.unusual)
    return update_noise_by(noise, reward, residual, leverage, t, rise, fall)


@compiled
def update_noise_by(
    noise: Noise, reward: float, residual: float, leverage: float, t: int, rise: float, fall: float
) -> tuple[Noise, bool]:
    """`update_noise` with known `median_steps`, which are equal for many noises of equally many rows."""
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
    """Return the noise with the scale nu for the next row."""
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
    """Return the noise of an arm whose numbers are kept in an array (9 or more,)."""
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
    """Keep what runs in an array (9 or more,), in place."""
    memory[0], memory[1], memory[2] = noise.size, noise.mean, noise.square
    memory[3], memory[4], memory[5] = noise.unusual, noise.usual, noise.votes
    memory[6], memory[7], memory[8] = noise.second, noise.more, noise.first


def make_noise(nu: Any) -> Noise:
    """ValueError for a nu that is not positive; None: estimated."""
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
