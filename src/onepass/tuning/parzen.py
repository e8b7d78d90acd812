"""Where to try next, setting by setting: where the best trials lie more densely than the others.

    l, g: densities of a setting's shares among the best trials and the rest    chosen: the largest l / g of draws of l

A density is a mixture of normals on [0, 1], one at every share and as wide as the gap to its neighbours, and of the
uniform one; a category's is its counts, and one more over all choices (Bergstra et al. 2011). It knows of no kernel and
no interactions, and is right where values jump or stand still: a tree's, where a posterior expects the slope between
two values, and on a plateau, whose many equal trials are no better than the rest.
"""

from collections.abc import Container
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from onepass.tuning.proposing import TRIES, Candidates
from onepass.tuning.space import Category

STILL = 0.1  # of the values are those of other trials: then settings are drawn so
TURN = 2  # every so many trials
BEST, MANY = 0.1, 25  # the share of the trials that are the best, and how many at most
DRAWS = 24  # of a setting
NARROW = 100  # normals are as wide as one part in so many of the range, at least, or in as many as there are trials


def widths(shares: np.ndarray) -> np.ndarray:
    """Deviations of the normals at shares (n,): the larger gap to a neighbour, or to an edge."""
    order = np.argsort(shares, kind="stable")
    gaps = np.diff(np.concatenate([[0.0], shares[order], [1.0]]))
    found = np.empty(len(shares))
    found[order] = np.maximum(gaps[:-1], gaps[1:])
    return np.clip(found, 1.0 / min(NARROW, 1 + len(shares)), 1.0)


def density(shares: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Of a mixture of normals at shares (n,), at points (m,) of [0, 1]."""
    spread = widths(shares)
    whole = ndtr((1.0 - shares) / spread) - ndtr(-shares / spread)
    z = (at[:, None] - shares) / spread
    each = np.exp(-0.5 * z * z) / ((2.0 * np.pi) ** 0.5 * spread * whole)
    return (1.0 + each.sum(axis=1)) / (1.0 + len(shares))


def drawn(shares: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """`DRAWS` points of the mixture."""
    which, uniform = rng.integers(1 + len(shares), size=DRAWS), rng.random(DRAWS)
    middle, spread = np.append(shares, 0.0)[which], np.append(widths(shares), 1.0)[which]
    low, high = ndtr(-middle / spread), ndtr((1.0 - middle) / spread)
    return np.where(which == len(shares), uniform, np.clip(middle + spread * ndtri(low + uniform * (high - low)), 0, 1))


def chances(shares: np.ndarray, count: int) -> np.ndarray:
    """Of so many choices, (count,), by shares (n,)."""
    places = np.minimum((shares * count).astype(np.int64), count - 1)
    return (np.bincount(places, minlength=count) + 1.0 / count) / (1.0 + len(shares))


def chosen(one: Any, good: np.ndarray, rest: np.ndarray, rng: np.random.Generator) -> float:
    """The share of a dimension with the largest l / g."""
    if isinstance(one, Category):
        count = int(one.count)
        likely = chances(good, count)
        draws = rng.choice(count, size=DRAWS, p=likely)
        return float((draws[np.argmax((likely / chances(rest, count))[draws])] + 0.5) / count)
    draws = drawn(good, rng)
    return float(draws[np.argmax(density(good, draws) / density(rest, draws))])


def still(values: np.ndarray, seats: np.ndarray) -> bool:
    """Whether trials often pay exactly what others did, and none anything else than the same settings before it.

    values: (n,), NaN of trials that failed; seats: (n,), equal where settings are.
    """
    there = np.isfinite(values)
    told = np.stack([seats[there], values[there]], axis=1)
    noise = len(np.unique(told, axis=0)) > len(np.unique(told[:, 0]))
    return not noise and len(np.unique(told[:, 1])) < (1.0 - STILL) * len(told)


def proposed(
    candidates: Candidates, shares: np.ndarray, values: np.ndarray, tried: Container[bytes] = ()
) -> np.ndarray | None:
    """The shares (names,) to try, by those of trials (n, names), NaN where a setting played no part, and their values.

    values: (n,), more is better, NaN of trials that failed: they are among the rest; tried: rows that are not asked for
    again, as bytes (default: none). None where a constraint, or what was tried, left none of `TRIES`.
    """
    order = np.argsort(-values, kind="stable")
    best = min(int(np.ceil(BEST * np.isfinite(values).sum())), MANY)
    good, rest = shares[order[:best]].T, shares[order[best:]].T
    columns = [
        (one, mine[np.isfinite(mine)], others[np.isfinite(others)])
        for one, mine, others in zip(candidates.space.dimensions.values(), good, rest, strict=True)
    ]
    for _ in range(TRIES):
        found = np.array([chosen(*column, candidates.rng) for column in columns])
        if len(candidates.keep(found[None])) and candidates.space.rows(found[None])[0].tobytes() not in tried:
            return found
    return None
