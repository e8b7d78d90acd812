"""A softmax over items whose features are popularity at several speeds, neighbours, tastes, and what a user has had.

    share_k(i)   share of item i in the rows, times N, where a row counts half after HALF_LIVES[k] others
    near(i)      similarity of item i with the items that the user has taken, divided by its mean over all items
    mix(i)       sum of m_k share_k(i) and m_0 near(i), with weights m learned by expectation maximization
    p(i | u)     softmax of w . (log share_1, ..., log share_6, v_i^T x_u, log(near + .1), log mix, had)

N is the number of items, v_i and x_u are directions of item and user (tastes.py), and had is 1 if the user has taken
the item before. The weights w are learned by online Newton steps on the log likelihood of the items taken. Their prior
is N(w_0, I / 10), where w_0 is 0 except for the weight of log mix. New users have other weights than known users.

If there are many items, a step computes the softmax on a part of them: the item taken, some neighbours of what the user
has taken, and every m-th other item, beginning at a place that changes with the row. Each of the latter counts m times.
So the sums of the softmax are unbiased (Horvitz-Thompson estimator).
"""

from typing import NamedTuple

import numpy as np

from onepass.foundation import state as states
from onepass.recommender.tastes import Tastes, neighbours_of, taste_of

HALF_LIVES = np.array([250.0, 1000.0, 4000.0, 16_000.0, 64_000.0, np.inf])  # rows
SPEEDS = len(HALF_LIVES)
TASTE, NEAR, MIX, HAD = range(SPEEDS, SPEEDS + 4)  # features, after the logs of shares
FEATURES = SPEEDS + 4
NEW, KNOWN = 0, 1  # users without and with a history
SMOOTH = 0.02  # rows that everybody has taken of each item
FLOOR = 0.1  # similarity of items that are no neighbours, in units of the mean
PRECISION = 10.0  # of the weights before any row
CANDIDATES = 128  # at least so many stand for all items where weights are learned
CLOSEST = 32  # neighbours among them
LARGEST = 2.0**400  # weight of a row, before counts are scaled


class Counts(NamedTuple):
    """Counts of the rows of N items, which decay with `SPEEDS` different half-lives.

    A row says that a user took an item. With the k-th half-life, item i has counts[k, i] / gains[k] rows.

    Parameters
    ----------
    counts : ndarray of shape (SPEEDS, N)
        Sums of the weights of each item's rows, float32 or float64.
    gains : ndarray of shape (SPEEDS,)
        Weight with which a new row is added. It grows with every row, so that old rows count less in comparison.
    totals : ndarray of shape (SPEEDS,)
        Sums of the counts over all items.
    """

    counts: np.ndarray
    gains: np.ndarray
    totals: np.ndarray


class Weights(NamedTuple):
    """Weights of the softmax over items, for new users (index 0) and for known users (index 1).

    Parameters
    ----------
    features : ndarray of shape (2, FEATURES)
        Weights of the features of an item.
    precision : ndarray of shape (2, FEATURES, FEATURES)
        Second derivatives of the loss by the weights, with the prior.
    mixture : ndarray of shape (2, SPEEDS + 1)
        Weights m of the SPEEDS shares and of `near` in mix(i), which is divided by their sum. Each row adds to them the
        fractions of mix(i) that came from each part, for the item i that was taken.
    """

    features: np.ndarray
    precision: np.ndarray
    mixture: np.ndarray


def init_counts(items: int = 0) -> Counts:
    """Return the counts of `items` items before any row was learned: all 0."""
    return Counts(states.zeros(SPEEDS, items), np.ones(SPEEDS), np.zeros(SPEEDS))


def init_weights() -> Weights:
    """Return the weights of the softmax before any row: only the logarithm of the mixture of popularities counts."""
    features = np.zeros((2, FEATURES))
    features[:, MIX] = 1.0
    mixture = np.ones((2, SPEEDS + 1))
    mixture[NEW, -1] = 0.0
    return Weights(features, np.tile(PRECISION * np.eye(FEATURES), (2, 1, 1)), mixture)


def shares(counts: Counts, items: slice | np.ndarray, known: int) -> np.ndarray:
    """Return the smoothed shares (SPEEDS, n) that n items have of all rows in `counts`, for every half-life.

    A share is relative to 1 / `known`, the share that each of the `known` items would have if all were equally popular.
    `SMOOTH` rows are added to every item, so that a share is never 0.
    """
    least = SMOOTH * counts.gains[:, None]
    out: np.ndarray = (counts.counts[:, items] + least) / (counts.totals[:, None] / known + least)
    return out


def choose_candidates(taken: int, near: np.ndarray, known: int, start: int) -> tuple[np.ndarray, np.ndarray]:
    """Return sorted items that stand for all items in a softmax, and how many items each stands for.

    There are `known` items. The result has the item `taken` and the neighbours `near`, which count once, and items at
    equal steps from `start` on, which count as many times as a step is long. If there are few items, all are there and
    count once.
    """
    step = max(known // CANDIDATES, 1)
    if step == 1:
        return np.arange(known), np.ones(known)
    certain = np.append(near, taken)
    items = np.unique(np.concatenate([np.arange(start % step, known, step), certain]))
    excess = np.full(len(items), float(step))
    excess[np.searchsorted(items, certain)] = 1.0
    return items, excess


def make_features(
    counts: Counts,
    tastes: Tastes,
    mixture: np.ndarray,
    taken: np.ndarray,
    likeness: tuple[np.ndarray, np.ndarray],
    items: np.ndarray,
    known: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return features (FEATURES, n) of n sorted items for a user, and the parts (SPEEDS + 1, n) of their popularity.

    - counts, tastes: counts of all items, and directions of taste.
    - mixture: weights of the parts of popularity.
    - taken: items that the user has taken.
    - likeness: neighbours of these items, and the sums of their similarities.
    - items: the n items.
    - known: number of known items.
    """
    out, parts = np.zeros((FEATURES, len(items))), np.zeros((SPEEDS + 1, len(items)))
    parts[:-1] = shares(counts, items, known)
    np.log(parts[:-1], out=out[:SPEEDS])
    if len(taken):
        near, sums = likeness
        if len(near):
            place, there = _places(items, near)
            parts[-1, place[there]] = sums[there] * (known / sums.sum())
            np.log(parts[-1] + FLOOR, out=out[NEAR])
        fitted = np.searchsorted(items, len(tastes.basis))
        own = items[:fitted]
        out[TASTE, :fitted] = tastes.sizes[own] * (tastes.basis[own] @ taste_of(tastes, taken))
        place, there = _places(items, taken)
        out[HAD, place[there]] = 1.0
    out[MIX] = np.log((mixture / mixture.sum()) @ parts)
    return out, parts


def _places(items: np.ndarray, some: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices (m,) of items `some` (m,) in the sorted `items` (n,), and a mask (m,) of those found there."""
    place = np.minimum(np.searchsorted(items, some), len(items) - 1)
    return place, items[place] == some


def learn_choice(
    weights: Weights, user: int, features: np.ndarray, parts: np.ndarray, place: int, excess: np.ndarray, amount: float
) -> None:
    """Update the weights of the softmax in place, after a user took the item at index `place`.

    `user` is 1 for a user with a history, else 0. `features` and `parts` are the results of `make_features`. Item j
    counts excess[j] times in the softmax, because it stands for items that were left out. The row itself counts
    `amount` times.
    """
    mixture = weights.mixture[user]
    held = mixture * parts[:, place]
    mixture += amount * held / held.sum()
    values = weights.features[user] @ features
    p = excess * np.exp(values - values.max())
    p /= p.sum()
    mean = features @ p
    precision = weights.precision[user]
    precision += amount * ((features * p) @ features.T - np.outer(mean, mean))
    weights.features[user] += amount * np.linalg.solve(precision, features[:, place] - mean)


class Scorer:
    """Scorer of all items for any user, by the counts and weights of one moment."""

    def __init__(self, counts: Counts, tastes: Tastes, weights: Weights, known: int) -> None:
        self.tastes, self.weights, self.known = tastes, weights, known
        parts = shares(counts, slice(0, known), known)
        logs = np.log(parts)
        self.mixture = weights.mixture / weights.mixture.sum(axis=1, keepdims=True)
        self.popular = [mixture[:-1] @ parts for mixture in self.mixture]
        own = [w[:SPEEDS] @ logs for w in weights.features]
        self.base = [each + w[MIX] * np.log(mix) for each, w, mix in zip(own, weights.features, self.popular)]

    def score(self, taken: np.ndarray) -> np.ndarray:
        """Return the scores (N,) of all N items for a user who has taken the items `taken`: logits of a softmax."""
        user = KNOWN if len(taken) else NEW
        out: np.ndarray = self.base[user].copy()
        if user == NEW:
            return out
        w, tastes = self.weights.features[KNOWN], self.tastes
        near, sums = neighbours_of(tastes, taken)
        if len(near):
            values, popular = sums * (self.known / sums.sum()), self.popular[KNOWN][near]
            out[near] += w[MIX] * np.log1p(self.mixture[KNOWN, -1] * values / popular)
            out[near] += w[NEAR] * np.log1p(values / FLOOR)
        fitted = len(tastes.basis)
        out[:fitted] += tastes.sizes * (tastes.basis @ (np.float32(w[TASTE]) * taste_of(tastes, taken)))
        out[taken] += w[HAD]
        return out
