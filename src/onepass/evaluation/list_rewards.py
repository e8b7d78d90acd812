"""Evaluate policies for lists of which only the whole list has a reward: the pseudo-inverse estimator.

    value = mean over lists s of W(s) r(s),   W(s) = q^T G^+ 1_s,   G = E_logged[1_s 1_s^T],   q = E_target[1_s]

The indicator vector 1_s (k K,) marks which of K arms stands at which of the k positions of list s, r(s) is the reward
of the list, and G^+ is the pseudo-inverse. E_logged and E_target are expectations over the lists of the logging policy
and of the evaluated policy. If the expected reward of a list is a sum over its positions, the estimate is unbiased. Its
variance grows with k K, while importance weights of whole lists have a variance that grows with K^k (Swaminathan et
al., *Off-policy evaluation for slate recommendation*, 2017). Lists of the log must have been drawn without replacement:
arm a at a position with probability p_a / (1 - sum of p over the arms above it). `Bandit.decide` draws lists in this
way only with `Softmax(temperature, uniform_share=0)` and with `EpsilonGreedy(1)`: any other rule computes the
probabilities of a position anew from the arms that are left, in other ratios.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from onepass.evaluation.evaluate import open_fraction
from onepass.evaluation.reward_range import Interval
from onepass.foundation import check

LARGEST = 1_000_000  # entries of the table of all lists
REACHED = 1e-6  # how far the target's probabilities may be outside of what the logging policy shows


@dataclass(frozen=True)
class ListEvaluation:
    """Value of a policy for lists, from a log of lists that each have one reward.

    Parameters
    ----------
    lists : int
        Number of lists.
    value : float
        Estimated reward of a list.
    deviation : float
        Standard error of the value; NaN for a single list.
    limits : Interval
        Confidence limits of the value, for a number of lists that was fixed before. They are infinite for a single
        list.
    level : float
        Confidence level.
    """

    lists: int
    value: float
    deviation: float
    limits: Interval
    level: float

    def __str__(self) -> str:
        return (
            f"{self.lists:,} lists: {self.value:.6g} +- {self.deviation:.2g}, "
            f"{self.limits.lower:.6g} to {self.limits.upper:.6g}"
        )


def evaluate_list_rewards(
    places: Any, rewards: Any, logging: Any, target: Any, *, level: float = 0.95
) -> ListEvaluation:
    """Estimate what a policy would have earned per list, from rewards of whole lists.

    This is the pseudo-inverse estimator (Swaminathan et al. 2017). It assumes that the expected reward of a list is a
    sum over its positions of a part that depends on the arm at this position. The estimate is the mean over lists s of
    q^T G^+ 1_s times the reward. 1_s marks which arm stands at which position, q is the mean of 1_s over lists of the
    policy, G^+ is the pseudo-inverse of the mean of 1_s 1_s^T over lists of the logging policy.

    Parameters
    ----------
    places : array of int of shape (n, k)
        Arms of each list by index, in the order of positions, each at most once.
    rewards : array of shape (n,)
        Reward of each list.
    logging : array of shape (K,) or (n, K)
        Probabilities of the first position when the log was written, for all lists or for each. Later positions drew
        from the arms that were left, in the same ratios. Among the exploration rules, only
        ``Softmax(temperature, uniform_share=0)`` and ``EpsilonGreedy(1)`` draw lists in this way.
    target : array of int of shape (k,) or (n, k), or array of shape (K,) or (n, K)
        Lists that the policy shows, as integers, or the probabilities of its first position, as floats. At least k of
        the latter are above 0.
    level : float, default 0.95
        Confidence level, above 0 and below 1.

    Returns
    -------
    ListEvaluation
        Value, standard error and normal limits. A single list has no standard error, and its limits are infinite.

    Raises
    ------
    ValueError
        If shapes do not fit, numbers are not finite, a list repeats an arm or has more positions than there are arms,
        probabilities do not add up to 1, the log shows lists of probability 0, the target shows arms at positions where
        the log never does or its probabilities fill fewer than k positions, or K^k is above a million.

    Notes
    -----
    The cost is O(K^k + (k K)^3) for each different row of `logging`, and O(n k) for the rest. Weights may be negative,
    so the limits are based on the normal distribution, and hold only for a fixed number of lists.

    Examples
    --------
    >>> import numpy as np, onepass.evaluation as ev
    >>> rng = np.random.default_rng(0)
    >>> shown = np.array([rng.permutation(4)[:2] for _ in range(4000)])
    >>> earned = np.array([1.0, 0.5])[None] * (shown == 3)  # arm 3 pays 1 at the top and .5 below
    >>> found = ev.evaluate_list_rewards(shown, earned.sum(axis=1), np.full(4, 0.25), np.array([3, 0]))
    >>> abs(found.value - 1.0) < 4.0 * found.deviation
    True
    """
    shown = _check_places("places", places)
    n, k = shown.shape
    r = check.finite("rewards", check.array("rewards", rewards, np.dtype(np.float64), (1,)))
    if n == 0 or len(r) != n:
        raise ValueError(f"rewards must have one entry per list ({n}), at least one, got {len(r)}")
    first, alpha = _check_probabilities("logging", logging, n), 1.0 - open_fraction("level", level)
    arms = first.shape[1]
    if int(shown.max()) >= arms or k > arms:
        raise ValueError(f"places must be (n, k) indices of {arms} arms with k at most {arms}, got {shown.shape}")
    if arms**k > LARGEST:
        raise ValueError(f"lists of {k} of {arms} arms are more than {LARGEST:,}: use evaluate_slates")
    goal, w = _target(target, n, k, arms), np.empty(n)
    marked = shown + arms * np.arange(k)
    groups, members = np.unique(first, axis=0, return_inverse=True)
    for g, p in enumerate(groups):
        rows = np.flatnonzero(members.reshape(-1) == g)
        table = list_probabilities(p, k)
        if (table[tuple(shown[rows].T)] <= 0.0).any():
            raise ValueError("logging gives a list of the log probability 0")
        moments = list_moments(table)
        inverse = np.linalg.pinv(moments, hermitian=True)
        at = goal if len(goal) == 1 else goal[rows]
        weights = at @ inverse
        missed = np.abs(weights @ moments - at).max()
        if missed > REACHED:
            raise ValueError(f"target shows arms at positions where the log never shows them (by {missed:.2g})")
        w[rows] = np.take_along_axis(np.broadcast_to(weights, (len(rows), k * arms)), marked[rows], 1).sum(axis=1)
    value, deviation = float((w * r).mean()), float((w * r).std() / np.sqrt(n)) if n > 1 else math.nan
    reach = float(scipy.stats.norm.ppf(1.0 - alpha / 2.0)) * deviation if n > 1 else math.inf
    return ListEvaluation(n, value, deviation, Interval(value - reach, value + reach), 1.0 - alpha)


def list_probabilities(first: np.ndarray, k: int) -> np.ndarray:
    """Return the probability of every list, an array with one axis of length K for each of k positions.

    Parameters
    ----------
    first : ndarray of shape (K,)
        Probabilities of the first position. Later positions draw from the arms that are left, in the same ratios.
    k : int
        Number of positions.

    Returns
    -------
    ndarray of shape (K, ..., K)
        Probabilities; 0 for lists that repeat an arm.
    """
    arms = len(first)
    out, taken = np.ones(()), np.zeros(())
    for j in range(k):
        left = 1.0 - taken
        share = np.divide(1.0, left, out=np.zeros_like(left), where=left > 1e-12)
        out = (out * share)[..., None] * first
        for i in range(j):  # an arm that stands above has probability 0
            axes = [1] * (j + 1)
            axes[i] = axes[j] = arms
            out = out * (1.0 - np.eye(arms)).reshape(axes)
        taken = taken[..., None] + first
    return out


def list_moments(probabilities: np.ndarray) -> np.ndarray:
    """Return how often two arms stand at two positions of a list, as a matrix (k K, k K) of probabilities.

    `probabilities` holds the probability of every list of k of K arms. Row and column j K + a stand for arm a at
    position j.
    """
    k, arms = probabilities.ndim, len(probabilities)
    out = np.zeros((k, arms, k, arms))
    for i in range(k):
        out[i, :, i] = np.diag(probabilities.sum(axis=tuple(a for a in range(k) if a != i)))
        for j in range(i + 1, k):
            out[i, :, j] = probabilities.sum(axis=tuple(a for a in range(k) if a not in (i, j)))
            out[j, :, i] = out[i, :, j].T
    return out.reshape(k * arms, k * arms)


def _check_places(name: str, places: Any) -> np.ndarray:
    """Return lists of arms as integers (n, k); one list (k,) becomes (1, k).

    Raises ValueError, which mentions the argument `name`, for anything but indices of arms, each once in a list.
    """
    out = np.asarray(places)
    if out.ndim not in (1, 2) or out.dtype.kind not in "iu" or out.size == 0 or (out < 0).any():
        raise ValueError(f"{name} must be indices of arms of shape (n, k), got {check.quote(places)}")
    out = np.atleast_2d(out).astype(np.int64)
    ordered = np.sort(out, axis=1)
    if (ordered[:, 1:] == ordered[:, :-1]).any():
        raise ValueError(f"{name} must hold every arm of a list once")
    return out


def _check_probabilities(name: str, values: Any, n: int) -> np.ndarray:
    """Return probabilities, given as (K,) for all n rows or as (n, K), as an array (n, K).

    Raises ValueError, which mentions the argument `name`, unless each row adds up to 1.
    """
    out = np.atleast_2d(check.finite(name, check.array(name, values, np.dtype(np.float64), (1, 2))))
    if len(out) not in (1, n) or (out < 0.0).any() or (np.abs(out.sum(axis=1) - 1.0) > 1e-6).any():
        raise ValueError(f"{name} must be probabilities (K,) or ({n}, K) that add up to 1, got {check.quote(values)}")
    return np.broadcast_to(out, (n, out.shape[1]))


def _target(target: Any, n: int, k: int, arms: int) -> np.ndarray:
    """Return the probability of each arm at each position under the policy `target`, (1, k K) or (n, k K).

    Column j K + a is for arm a at position j, and `arms` is K. The policy is given as in `evaluate_list_rewards`, for n
    lists of length k.
    """
    given = np.asarray(target)
    if given.dtype.kind in "iu":
        lists = _check_places("target", target)
        if lists.shape[1] != k or len(lists) not in (1, n) or int(lists.max()) >= arms:
            raise ValueError(f"target must be lists of {k} of {arms} arms, one or {n}, got shape {given.shape}")
        out = np.zeros((len(lists), k * arms))
        np.put_along_axis(out, lists + arms * np.arange(k), 1.0, axis=1)
        return out
    first = _check_probabilities("target", target, n)
    if first.shape[1] != arms:
        raise ValueError(f"target must be probabilities of {arms} arms, got shape {given.shape}")
    fewest = int((first > 0.0).sum(axis=1).min())
    if fewest < k:
        raise ValueError(
            f"target must give at least {k} arms a probability above 0 to fill {k} positions, got {fewest}; pass a "
            "list of integers for a policy that always shows this list"
        )
    each = first[:1] if given.ndim == 1 else first
    out = np.empty((len(each), k * arms))
    for row, p in enumerate(each):
        table = list_probabilities(p, k)
        out[row] = np.concatenate([table.sum(axis=tuple(a for a in range(k) if a != j)) for j in range(k)])
    return out
