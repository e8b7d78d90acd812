"""Improvement of the weights after one pass by Newton's method on all examples, in `OnlineKernelClassifier.fit`.

For weights w, decisions f_i and features phi_i of the examples, the steps and the choice of the penalty r are

    w <- w - s H^-1 (sum_i c_i l'(f_i) phi_i + r w),   H = sum_i c_i l''(f_i) phi_i phi_i^T + r I
    s: step, 1 or halved until the loss  sum_i c_i l(f_i) + r ||w||^2 / 2  falls
    c_i: weight of example i,   l: logistic loss
    left out:  f_(i) = f_i + q_i c_i l'(f_i) / (1 - q_i c_i l''(f_i)),   q_i = phi_i^T H^-1 phi_i
    r = reg 2^k,  k = 0, 1, ... or 0, -1, ...  while  sum_i c_i l(f_(i))  falls

Of penalties with nearly the same loss, the smallest is chosen. The feature map phi is the one that the pass has made.
f_(i) is, to first order, the decision for example i if it had been left out (Pregibon 1981). It shows which penalty r
is right, and probabilities are calibrated on it, so nothing is held out. If rows drift, the one-pass fit is better and
is kept: both are compared on the last quarter of the examples, with w of the first three quarters. All classes share
one r.

A step costs O(n k^2) for k features, as the pass does, but in matrix products. Memory is O(k^2), and at most HELD
numbers for features. The feature for the label of the previous example (kernel_newton.py) keeps its weight, because it
means nothing for examples without an order.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from onepass.features.contract import copy_scratch
from onepass.foundation.generic import compiled
from onepass.learner.newton_features import KernelNewtonState, fill_features

FACTOR = 2.0  # between penalties
FARTHEST = 12  # powers of it
NEARLY = 1.01  # times the least loss left out: the smallest penalty of no more is taken, for the F1 of rare classes
HALVINGS = 30  # of a step
HELD = 1 << 26  # bytes of features that are kept between steps; more are made again
LATE = 4  # of so many parts of the examples the last one is what the pass is compared on
SURE = 2.5  # standard errors by which more is lost there where the pass stays (drift: 3 to 34, shuffled at most 2.0)

Blocks = Callable[[], Iterator[tuple[slice, np.ndarray]]]


class PenalizedFit(NamedTuple):
    """Logistic regression fitted to all examples with one penalty.

    - w (k,): weights.
    - left_out (n,): prediction for each example by a fit without it. Examples of weight 0 are not left out.
    - loss: total loss of these predictions.
    - reg: penalty.
    """

    w: np.ndarray
    left_out: np.ndarray
    loss: float
    reg: float


@compiled
def transform_rows(state: KernelNewtonState, rows: np.ndarray) -> np.ndarray:
    """Return the kernel features of every row, (n, dim) -> (n, k - 1).

    The last of the k features of `KernelNewton`, which depends on the previous example, is left out.
    """
    own, found = copy_scratch(state), np.empty((rows.shape[0], state.phi.size - 1))
    for i in range(rows.shape[0]):
        fill_features(own, rows[i])
        found[i] = own.phi[: own.phi.size - 1]
    return found


def _cache_blocks(blocks: Blocks, count: int, size: int) -> Blocks:
    """Return `blocks`, or a function with the same results that stores the features (count, size) of all examples.

    `blocks` is a function that yields the slice of a block's examples and their features. They are stored if they take
    at most `HELD` bytes.
    """
    if 8 * count * size > HELD:
        return blocks
    held = list(blocks())
    return lambda: iter(held)


def _logistic_losses(f: np.ndarray, signs: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the logistic losses log(1 + exp(-y f)) of decisions f (n,), each multiplied by its weight.

    `signs` (n,) are the classes y, -1 or 1, and `weights` (n,) the examples' weights.
    """
    found: np.ndarray = weights * np.logaddexp(0.0, -signs * f)
    return found


def _logistic_derivatives(f: np.ndarray, signs: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and second derivatives by f (n,) of the logistic losses, each multiplied by its weight.

    `signs` (n,) are the classes -1 or 1, and `weights` (n,) the examples' weights.
    """
    p = 0.5 - 0.5 * np.tanh(0.5 * signs * f)
    return -weights * signs * p, weights * p * (1.0 - p)


def _objective_and_derivatives(
    blocks: Blocks, w: np.ndarray, signs: np.ndarray, weights: np.ndarray, reg: float
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the penalized loss, its gradient (k,) and its Hessian (k, k) at the weights w (k,).

    `blocks` yields the features, `signs` (n,) are the classes -1 or 1, `weights` (n,) the examples' weights, and `reg`
    the penalty.
    """
    total, gradient, hessian = 0.5 * reg * float(w @ w), reg * w, reg * np.eye(len(w))
    for place, phi in blocks():
        f = phi @ w
        first, second = _logistic_derivatives(f, signs[place], weights[place])
        total += float(_logistic_losses(f, signs[place], weights[place]).sum())
        gradient = gradient + phi.T @ first
        hessian += (phi * second[:, None]).T @ phi
    return total, gradient, hessian


def fit_at_penalty(
    blocks: Blocks, w: np.ndarray, signs: np.ndarray, weights: np.ndarray, reg: float, steps: int
) -> PenalizedFit:
    """Fit a logistic regression with penalty `reg` by at most `steps` Newton steps from the weights w.

    `blocks` yields the features, `signs` (n,) are the classes -1 or 1, and `weights` (n,) the examples' weights. Raises
    LinAlgError if the Hessian is not positive definite.
    """
    total, gradient, hessian = _objective_and_derivatives(blocks, w, signs, weights, reg)
    for _ in range(steps):
        move, length = np.linalg.solve(hessian, gradient), 1.0
        for _ in range(HALVINGS):
            there = _objective_and_derivatives(blocks, w - length * move, signs, weights, reg)
            if there[0] < total:
                w, (total, gradient, hessian) = w - length * move, there
                break
            length *= 0.5
        else:
            break
    half = np.linalg.inv(np.linalg.cholesky(hessian))
    left_out = np.empty(len(signs))
    for place, phi in blocks():
        f, part = phi @ w, phi @ half.T
        first, second = _logistic_derivatives(f, signs[place], weights[place])
        q = np.einsum("ij,ij->i", part, part)
        left_out[place] = f + q * first / np.maximum(1.0 - q * second, np.finfo(np.float64).eps)
    return PenalizedFit(w, left_out, float(_logistic_losses(left_out, signs, weights).sum()), reg)


def search_penalty(
    blocks: Blocks, w: np.ndarray, signs: np.ndarray, weights: np.ndarray, reg: float, chosen: bool, steps: int
) -> list[PenalizedFit] | None:
    """Return the fit of every class at a common penalty, for w (classes, k) and signs (n, classes).

    If `chosen` is True, larger and then smaller penalties than `reg` are tried, each `FACTOR` times or 1 / `FACTOR`
    times the one before, as long as the loss with each example left out falls. Of penalties that are nearly as good as
    the best, the smallest is taken. If `chosen` is False, the penalty is `reg`. A fit takes at most `steps` Newton
    steps. Returns None if a Hessian is not positive definite at `reg`. The other arguments are those of
    `fit_at_penalty`.
    """
    found: dict[int, list[PenalizedFit]] = {}

    def loss(k: int, near: int) -> float:
        if k not in found:
            begun = [one.w for one in found.get(near) or ()] or list(w)
            try:
                found[k] = [
                    fit_at_penalty(blocks, begun[c], signs[:, c], weights, reg * FACTOR**k, steps)
                    for c in range(len(w))
                ]
            except np.linalg.LinAlgError:
                found[k] = []
        return sum(one.loss for one in found[k]) if found[k] else np.inf

    best, least = 0, loss(0, 0)
    for way in (1, -1) if chosen else ():
        while abs(best + way) <= FARTHEST and loss(best + way, best) < least:
            best += way
            least = loss(best, best)
    while chosen and best > -FARTHEST and loss(best - 1, best) <= NEARLY * least:
        best -= 1
    return found[best] or None


def refine_weights(
    state: Any,
    blocks: Blocks,
    signs: np.ndarray,
    weights: np.ndarray,
    before: np.ndarray,
    reg: float,
    chosen: bool,
    steps: int,
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return weights improved by Newton's method on all examples, and the decisions with each example left out.

    The weights have the shape of `state.w`. `before` holds the decisions of the one pass, and the result has its shape.
    Returns None if the one-pass fit is better.

    `signs` and `before` are (n,), or (n, classes) if weights are (classes, k). If `chosen` is True, the penalty is
    searched for, beginning with `reg`; otherwise it is `reg`. `blocks` yields the features, and a fit takes at most
    `steps` Newton steps.
    """
    w, n = np.atleast_2d(state.w).copy(), len(before)
    columns, sides = before.reshape(n, -1), signs.reshape(n, -1)
    features, early, late = _cache_blocks(blocks, n, w.shape[1] - 1), weights.copy(), slice(n - n // LATE, None)
    best = search_penalty(features, w[:, :-1], sides, weights, reg, chosen, steps)
    if best is None:
        return None
    left_out, more = np.empty(columns.shape), np.zeros(n // LATE)
    early[late] = 0.0
    for c, one in enumerate(best):
        w[c, :-1], left_out[:, c] = one.w, one.left_out
        ahead = fit_at_penalty(features, np.zeros_like(one.w), sides[:, c], early, one.reg, 2 * steps).left_out
        ours, passed = (_logistic_losses(f[late], sides[late, c], weights[late]) for f in (ahead, columns[:, c]))
        more += ours - passed
    if not more.sum() <= SURE * np.sqrt(len(more)) * more.std():
        return None
    return w.reshape(state.w.shape), left_out.reshape(before.shape)
