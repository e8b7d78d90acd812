"""Diagnosis of a log and a policy: checks if the log can tell the policy's value, before any number is computed.

With w the importance weight of a row, the following is checked:

    mean weight      1, if the propensities are right and the log covers the policy: E[w] = sum over arms of policy(a)
    effective rows   (sum w)^2 / sum w^2: as many rows from the policy itself would tell as much
    largest weight   its share of all: one row that decides is no average
    support          the policy's mass on arms that the logger never chose in such a context
    drift            of the logger: mean weight of the first half against the second

The verdict is "ok", "wide" (a number, but limits too far apart to decide on), or "refused", with the reason why.
"""

from typing import NamedTuple

import numpy as np
import scipy

from onepass.evaluation.moments import Moments, compute_moments

SURE = 4.0  # standard errors that the mean weight may be away from 1: one honest log in 16,000 is
FEW, TINY = 100.0, 20.0  # effective rows below which limits are wide, and below which a mean is an anecdote
SHARE = 0.25  # of the sum of weights: a row that has more decides alone
UNSUPPORTED = 0.05  # of the policy's mass: beyond it the value is a guess by that share of the range
EQUAL = 1e-9  # a standard error of the mean weight below which all weights are the same
ROUNDED = 1e-6  # of the mean weight: logged propensities may be rounded to single precision
FAR = 0.1  # of 1: a mean weight so far away and not explained by noise is wrong, nearer ones a warning


class Diagnosis(NamedTuple):
    """Diagnosis of a policy's weights on a log.

    Parameters
    ----------
    rows : int
        Number of rows.
    mean_weight : float
        Mean weight, which should be 1.
    mean_weight_error : float
        Standard error of the mean weight.
    effective : float
        Effective sample size, (sum w)^2 / sum w^2.
    largest : float
        Largest weight.
    share : float
        Share of the largest weight in the sum of all weights.
    unsupported : float
        Mean probability that the policy gives to arms that the logger never chose. NaN if the log does not tell.
    drift : float
        Mean weight of the second half minus the mean weight of the first half, in standard errors.
    verdict : str
        Verdict: "ok", "wide" or "refused".
    reasons : tuple of str
        Sentences that explain the verdict, worst first.
    """

    rows: int
    mean_weight: float
    mean_weight_error: float
    effective: float
    largest: float
    share: float
    unsupported: float
    drift: float
    verdict: str
    reasons: tuple[str, ...]


def diagnose(weights: np.ndarray, unsupported: float = float("nan")) -> Diagnosis:
    """Check the importance weights of a policy, and say if the log can tell the policy's value.

    Parameters
    ----------
    weights : ndarray of shape (n,)
        Checked weights, at least 0.
    unsupported : float, default float("nan")
        Mean probability that the policy gives to arms that the logger never chose. NaN means that it is not known.

    Returns
    -------
    Diagnosis
        Numbers, verdict and reasons.
    """
    m, n = compute_moments(weights, np.zeros(len(weights))), len(weights)
    return diagnose_moments(m, float(weights.std() / np.sqrt(n)), _half_drift(weights), unsupported)


def diagnose_moments(m: Moments, error: float, drift: float, unsupported: float) -> Diagnosis:
    """Return the diagnosis of importance weights, given their moments `m`.

    `error` is the standard error of the mean weight, and `drift` the difference of the mean weight between the two
    halves of the log, in standard errors. `unsupported` is the mean probability that the policy gives to arms that the
    logger never chose.
    """
    n = m.rows
    share = m.max_weight / m.weights if m.weights > 0.0 else 1.0
    refused, wide = [], []
    away = m.mean_weight - 1.0
    limits = _mean_limits(m.mean_weight, error, n)
    # all rows have one weight above 1: of the rest, whose weights are 0, so many rows can miss every one
    luck = error < EQUAL and away > 0.0 and n * np.log(m.mean_weight) <= -np.log(scipy.stats.norm.sf(SURE))
    if m.weights == 0.0:
        refused.append("the policy chose none of the logged arms")
    elif not (limits[0] - ROUNDED <= 1.0 <= limits[1] + ROUNDED or luck) or (abs(away) > FAR and m.effective < TINY):
        refused.append(
            f"the mean weight is {m.mean_weight:.3f} and must be 1: propensities are wrong, or the log does not cover "
            "the policy"
        )
    elif abs(away) > FAR:
        wide.append(f"the mean weight is {m.mean_weight:.3f} and should be 1: there are too few rows to tell")
    if m.effective < TINY:
        refused.append(
            f"the log is worth {m.effective:.1f} rows of the policy (of {n}); at least {TINY:.0f} are needed"
        )
    elif m.effective < FEW:
        wide.append(f"the log is worth only {m.effective:.0f} rows of the policy (of {n})")
    if share > SHARE and n > 1:
        refused.append(f"one row has {share:.0%} of all weight")
    if unsupported > UNSUPPORTED:
        refused.append(f"{unsupported:.1%} of the policy's choices are arms that the logger never chose there")
    elif unsupported > 0.0:
        wide.append(f"{unsupported:.1%} of the policy's choices are arms that the logger never chose there")
    if abs(drift) > SURE:
        wide.append(f"the logger has changed: the mean weight moved by {drift:+.1f} standard errors between the halves")
    verdict = "refused" if refused else "wide" if wide else "ok"
    return Diagnosis(
        n, m.mean_weight, error, m.effective, m.max_weight, share, unsupported, drift, verdict, (*refused, *wide)
    )


def _mean_limits(mean: float, error: float, n: int) -> tuple[float, float]:
    """Return Student's limits of the mean weight `mean` of n rows, whose standard error is `error`.

    They fail with the probability that a normal variable is more than `SURE` standard deviations from its mean.
    """
    away = float(scipy.stats.t.isf(scipy.stats.norm.sf(SURE), max(n - 1, 1))) * error
    return mean - away, mean + away


def _half_drift(weights: np.ndarray) -> float:
    """Return the mean of the second half less the mean of the first half, in standard errors.

    Returns 0 if a half has fewer than two rows, or if the difference may be rounding.
    """
    first, second = np.array_split(weights, 2)
    if min(len(first), len(second)) < 2:
        return 0.0
    return in_errors(float(second.mean() - first.mean()), float(first.var() / len(first) + second.var() / len(second)))


def in_errors(difference: float, variance: float) -> float:
    """Return a difference of mean weights in units of its standard error, or 0 if it may be rounding.

    `variance` is the variance of the difference.
    """
    return difference / variance**0.5 if abs(difference) > ROUNDED and variance > 0.0 else 0.0
