"""Intervals for a value from a log of fixed length: inverse propensity weights w, rewards r in a known range.

They hold for a fixed number of rows from one unchanged logger; normal and bootstrap intervals hold asymptotically. A
logger that learns, or a look before the end, breaks them. The intervals of betting.py and doubly_robust.py survive
both.

    normal          mean +- z sqrt(variance / n)
    bernstein       mean +- sqrt(2 variance l / n) + 7 M l / (3 (n - 1)), l = log(4 / alpha)    Maurer and Pontil 2009
    clopper-pearson Beta quantiles of sum(w r) / M successes in n / M trials, M the largest w; exact for w = 1 only
    cressie-read    the least and largest sum p w r with sum p = sum p w = 1 and p near 1 / n, in one formula
    bootstrap       quantiles of means of rows drawn again

All lie within the range of rewards. Cost O(n), the bootstrap O(n repeats).
"""

import numpy as np
import scipy

from onepass.evaluation.estimators import Estimator
from onepass.evaluation.moments import Moments
from onepass.evaluation.reward_range import Interval, Range
from onepass.evaluation.sample import Sample


def normal(terms: np.ndarray, rewards: Range, alpha: float) -> Interval:
    """Return the interval mean +- z sqrt(variance / n) of an estimator's terms (n,), clipped to the range of rewards.

    The estimate of a policy's value is the mean of the terms, one for each of the n rows of the log. z is the normal
    quantile for level 1 - alpha, which holds for large n. A single row gives the whole range.
    """
    deviation = float(np.sqrt(terms.var() / terms.size)) if terms.size > 1 else float("nan")
    return normal_interval(float(terms.mean()), deviation, rewards, alpha)


def normal_interval(value: float, deviation: float, rewards: Range, alpha: float) -> Interval:
    """Return value +- z `deviation`, clipped to the range of rewards; the whole range if `deviation` is not finite.

    `value` is an estimate of a policy's value, and `deviation` its standard error. z is the normal quantile for level 1
    - alpha.
    """
    if not np.isfinite(deviation):
        return Interval(*rewards)
    away = float(scipy.stats.norm.isf(alpha / 2)) * deviation
    return rewards.clip(value - away, value + away)


def bernstein(m: Moments, rewards: Range, alpha: float) -> Interval:
    """Return the empirical Bernstein interval of Maurer and Pontil for a policy's value, in units of rewards.

    Each side fails with probability alpha / 2 at most. `m` holds the moments of weights w and rewards r. With l the
    least possible reward, the value is l + the mean of w (r - l). This product is in [0, M span], with M the largest
    weight, and span the width of the rewards' range.
    """
    if m.rows < 2:
        return Interval(*rewards)
    shifted = m.shift_rewards(rewards.least)
    mean, log = shifted.products / m.rows, np.log(4.0 / alpha)
    variance = max(shifted.square_products - m.rows * mean * mean, 0.0) / (m.rows - 1)
    away = np.sqrt(2.0 * variance * log / m.rows) + 7.0 * m.max_weight * rewards.span * log / (3.0 * (m.rows - 1))
    return rewards.clip(rewards.least + mean - away, rewards.least + mean + away)


def clopper_pearson(m: Moments, rewards: Range, alpha: float) -> Interval:
    """Return the Clopper-Pearson interval of a policy's value, the mean of w r over weights w and rewards r.

    `m` holds the moments of n rows, and M is the largest weight, at least 1. With rewards scaled to [0, 1], the
    interval is the one of a probability after n / M trials with sum(w r) / M successes. These need not be whole
    numbers: its limits are quantiles of Beta distributions. The result is in units of rewards, within their range.
    The level 1 - `alpha` is guaranteed if all weights are 1 and rewards are the least or the largest possible one.
    Otherwise it is approximate.
    """
    scale = max(m.max_weight, 1.0)
    trials = m.rows / scale
    successes = min(max(m.shift_rewards(rewards.least).products / rewards.span / scale, 0.0), trials)
    left = trials - successes
    lower = scipy.stats.beta.ppf(alpha / 2, successes, left + 1.0) if successes > 0.0 else 0.0
    upper = scipy.stats.beta.ppf(1.0 - alpha / 2, successes + 1.0, left) if left > 0.0 else 1.0
    return rewards.clip(rewards.least + rewards.span * lower, rewards.least + rewards.span * upper)


def cressie_read(m: Moments, rewards: Range, alpha: float, most: float | None = None) -> Interval:
    """Return the empirical likelihood interval of Karampatziakis, Langford and Mineiro (2020) for a policy's value.

    `m` holds the moments of weights w and rewards r over n rows. The level is 1 - alpha for large n. The interval uses
    the Cressie-Read divergence of power -2. One unseen row is added, with the least reward for the lower limit and the
    largest for the upper one. Its weight is 0 or `most` (None: the largest weight seen), whichever gives the wider
    interval. Let the rows have probabilities p with sum p = sum p w = 1. The interval holds the values sum p w r of all
    p whose divergence from 1 / (n + 1) is at most `budget`: the smallest divergence of such p, plus the quantile 1 -
    alpha of the F distribution with 1 and n degrees of freedom. With b = cov(w, wr) / var(w), the limits are mean(wr) +
    b (1 - mean w) - d below and + d above, where d = sqrt(rest (var(wr) - b cov(w, wr)) / (n + 1)), and `rest` is
    `budget` minus the divergence at the p nearest to 1 / (n + 1).
    """
    most = m.max_weight if most is None else max(most, m.max_weight)
    quantile = float(scipy.stats.f.isf(alpha, 1, m.rows))
    budget = quantile + _distance(m.with_row(most if m.weights < m.rows else 0.0, 0.0))
    ends = []
    for worst, sign in ((rewards.least, 1.0), (rewards.largest, -1.0)):
        found = [
            sign * _end(m.with_row(unseen, worst), sign, budget)
            for unseen in (0.0, most)
            if _distance(m.with_row(unseen, worst)) <= budget
        ]
        ends.append(sign * min(found) if found else worst)
    return rewards.clip(min(ends), max(ends))


def _distance(m: Moments) -> float:
    """Return the least divergence from 1 / n of probabilities p of n rows with sum p w = 1.

    It is n (mean w - 1)^2 / var(w) for the weights w of the rows.
    """
    mean = m.weights / m.rows
    variance = m.square_weights / m.rows - mean * mean
    return m.rows * (mean - 1.0) ** 2 / variance if variance > 0.0 else 0.0 if mean == 1.0 else np.inf


def _end(m: Moments, sign: float, budget: float) -> float:
    """Return one end of the Cressie-Read interval: the lower one for sign 1, the upper one for -1.

    `m` holds the moments of the rows, n of them. `budget` is the allowed divergence of their probabilities from 1 / n.
    """
    n, mean, along = m.rows, m.weights / m.rows, m.products / m.rows
    variance, joint = m.square_weights / n - mean * mean, m.weighted_products / n - mean * along
    spread = max(m.square_products / n - along * along, 0.0)
    if variance <= 0.0:
        return along - sign * np.sqrt(max(budget, 0.0) * spread / n)
    rest = max(budget - _distance(m), 0.0)
    away = np.sqrt(rest * max(spread - joint * joint / variance, 0.0) / n)
    return along + joint / variance * (1.0 - mean) - sign * away


def bootstrap(
    estimator: Estimator, sample: Sample, rewards: Range, alpha: float, repeats: int, rng: np.random.Generator
) -> Interval:
    """Return the bootstrap interval of a policy's value, at level 1 - alpha, clipped to the range `rewards`.

    Its limits are quantiles of the estimate over `repeats` resamples of the rows in `sample`, drawn with replacement.
    """
    found = np.empty(repeats)
    for i in range(repeats):
        rows = rng.integers(sample.rows, size=sample.rows)
        found[i] = estimator.value(Sample(*(column[rows] for column in sample)))
    return rewards.clip(*np.quantile(found, [alpha / 2, 1.0 - alpha / 2]))
