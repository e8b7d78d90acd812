"""A softmax over items whose features are popularity at several speeds, neighbours, tastes, and what a user has had.

    share_k(i)   share of item i in the rows, times N, where a row counts half after HALF_LIVES[k] others
    near(i)      similarity of item i with the items that the user has taken, divided by its mean over all items
    mix(i)       sum of m_k share_k(i) and m_0 near(i), with weights m learned by expectation maximization
    p(i | u)     softmax of w . (log share_1, ..., log share_6, v_i^T x_u, log(near + .1), log mix, had)

N is the number of items, v_i and x_u are directions of item and user (tastes.py), and had is 1 if the user has taken
the item before. The weights w are learned by online Newton steps on the log likelihood of the items taken. Their prior
is N(w_0, I / 10), where w_0 is 0 except for the weight of log mix. New users have other weights than known users. If
there are more than 2,000 items, the softmax is computed on a random part of them, with correspondingly larger terms.
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
MOST = 2000  # items in a softmax from which weights are learned
LARGEST = 2.0**400  # weight of a row, before counts are scaled


class Counts(NamedTuple):
    """Counts of the rows of N items that decay with a half-life.

    Item i has counts[k, i] / gains[k] rows for half-life k.

    Parameters
    ----------
    counts : ndarray of shape (SPEEDS, N)
        Sums of the weights of each item's rows, float32 or float64.
    gains : ndarray of shape (SPEEDS,)
        Weight that a new row is added with. It grows with the number of rows, so that old counts decay in comparison.
    totals : ndarray of shape (SPEEDS,)
        Sums of the counts.
    """

    counts: np.ndarray
    gains: np.ndarray
    totals: np.ndarray


class Weights(NamedTuple):
    """Weights of the softmax, for new users (index 0) and for known users (index 1).

    Parameters
    ----------
    features : ndarray of shape (2, FEATURES)
        Weights w.
    precision : ndarray of shape (2, FEATURES, FEATURES)
        Second derivatives of the loss, with the prior.
    mixture : ndarray of shape (2, SPEEDS + 1)
        Sums of responsibilities of the parts of the mixture.
    """

    features: np.ndarray
    precision: np.ndarray
    mixture: np.ndarray


def init_counts(items: int = 0) -> Counts:
    """Return counts of 0."""
    return Counts(states.zeros(SPEEDS, items), np.ones(SPEEDS), np.zeros(SPEEDS))


def init_weights() -> Weights:
    """Return the weights before any row, when only log mix counts."""
    features = np.zeros((2, FEATURES))
    features[:, MIX] = 1.0
    mixture = np.ones((2, SPEEDS + 1))
    mixture[NEW, -1] = 0.0
    return Weights(features, np.tile(PRECISION * np.eye(FEATURES), (2, 1, 1)), mixture)


def shares(counts: Counts, items: slice | np.ndarray, known: int) -> np.ndarray:
    """Return the shares (SPEEDS, n) of items in the rows, smoothed, in units of 1 / `known`."""
    least = SMOOTH * counts.gains[:, None]
    out: np.ndarray = (counts.counts[:, items] + least) / (counts.totals[:, None] / known + least)
    return out


def make_features(
    counts: Counts, tastes: Tastes, mixture: np.ndarray, taken: np.ndarray, items: np.ndarray, known: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return features (FEATURES, n) of the given sorted items, and the parts of the mixture (SPEEDS + 1, n).

    `taken` holds the items that the user has taken, and `known` is the number of known items.
    """
    out, parts = np.zeros((FEATURES, len(items))), np.zeros((SPEEDS + 1, len(items)))
    parts[:-1] = shares(counts, items, known)
    np.log(parts[:-1], out=out[:SPEEDS])
    if len(taken):
        near, sums = neighbours_of(tastes, taken)
        if len(near):
            place = np.minimum(np.searchsorted(items, near), len(items) - 1)
            there = items[place] == near
            parts[-1, place[there]] = sums[there] * (known / sums.sum())
            out[NEAR] = np.log(parts[-1] + FLOOR)
        fitted = items < len(tastes.basis)
        own = items[fitted]
        out[TASTE, fitted] = tastes.sizes[own] * (tastes.basis[own] @ taste_of(tastes, taken))
        out[HAD] = np.isin(items, taken)
    out[MIX] = np.log((mixture / mixture.sum()) @ parts)
    return out, parts


def learn_choice(
    weights: Weights, user: int, features: np.ndarray, parts: np.ndarray, place: int, excess: float, amount: float
) -> None:
    """Update the weights in place: a user, NEW or KNOWN, took the item at index `place`.

    Each item other than `place` counts `excess` times in the softmax, because it stands for items that were left out.
    The row itself counts `amount` times.
    """
    mixture = weights.mixture[user]
    held = mixture * parts[:, place]
    mixture += amount * held / held.sum()
    values = weights.features[user] @ features
    p = excess * np.exp(values - values.max())
    p[place] /= excess
    p /= p.sum()
    mean = features @ p
    precision = weights.precision[user]
    precision += amount * ((features * p) @ features.T - np.outer(mean, mean))
    weights.features[user] += amount * np.linalg.solve(precision, features[:, place] - mean)


class Scorer:
    """Scores of all items, for any number of users at one moment."""

    def __init__(self, counts: Counts, tastes: Tastes, weights: Weights, known: int) -> None:
        self.tastes, self.weights, self.known = tastes, weights, known
        parts = shares(counts, slice(0, known), known)
        logs = np.log(parts)
        self.mixture = weights.mixture / weights.mixture.sum(axis=1, keepdims=True)
        self.popular = [mixture[:-1] @ parts for mixture in self.mixture]
        own = [w[:SPEEDS] @ logs for w in weights.features]
        self.base = [each + w[MIX] * np.log(mix) for each, w, mix in zip(own, weights.features, self.popular)]

    def score(self, taken: np.ndarray) -> np.ndarray:
        """Return the logits (N,) of a user who has taken the items `taken`."""
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
