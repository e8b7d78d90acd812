"""Difference of two policies in a finished experiment, evaluated once, after a number of decisions that was planned.

The difference and its limits are

    S(w) - S(u) +- z deviations,    S(w) = sum w r / sum w        u, w: weights of the two policies

If rewards are clicks, half a success and half a failure are added to each policy. Otherwise very few clicks, or very
few rows without one, would give a variance that is too small. For two arms of an experiment this is the textbook
interval of two proportions. With covariates x and a model q of rewards the reward r is replaced by what the model does
not explain (regression adjustment, as in CUPED):

    V(w) + sum w (r - q) / sum w,     V(w) = mean of sum over arms a of policy(a | x) q(x, a)

Each row is predicted by a model of other rows, so the adjustment shifts nothing: with propensities that are right the
difference is unbiased whatever q is, and narrower by sqrt(1 - R^2) if q explains a share R^2 of the variance.

All of this needs one logging policy that did not learn, and enough of both outcomes: it holds asymptotically. A log
whose logger changed is recognized in most cases (`logger_change`). Sources: Agresti and Caffo (2000), Lin (2013),
Robins, Rotnitzky and Zhao (1994).
"""

import hashlib
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import scipy

from onepass.evaluation import intervals
from onepass.evaluation.log import Log
from onepass.evaluation.reward_models import make_reward_model
from onepass.evaluation.reward_range import Interval, Range
from onepass.features.records import Records
from onepass.foundation import check

HALF = 0.5  # of a success and of a failure, that clicks have more
FOLDS = 5  # parts of a log, each predicted by a model of the others
WIDTH = 64  # columns for contexts that are dictionaries
SURE = 4.0  # standard errors of a trend of the logger's probabilities that is no accident
EQUAL = 1e-9  # by which equal probabilities may differ
DIGEST = 16  # bytes of a context: two of 10^9 are alike once in 10^20 times
LOGGER_CHANGED = (
    "no fixed sample: the logging policy may have learned, for equal contexts had different probabilities, or "
    "probabilities have a trend"
)


def gain_interval(w: np.ndarray, u: np.ndarray, r: np.ndarray, alpha: float) -> Interval:
    """Return limits, at level 1 - alpha, of the difference of two self-normalized values for one look at a planned end.

    w and u (n,) are the importance weights of both policies, and r (n,) the rewards in [0, 1].
    """
    more = HALF if bool(((r == 0.0) | (r == 1.0)).all()) else 0.0
    (one, terms, rest), (two, others, left) = _self_normalize(w, r, more), _self_normalize(u, r, more)
    return intervals.normal_interval(
        one - two, float(np.sqrt(((terms - others) ** 2).sum() + rest + left)), Range(-1.0, 1.0), alpha
    )


def _self_normalize(w: np.ndarray, r: np.ndarray, more: float) -> tuple[float, np.ndarray, float]:
    """Return a self-normalized value with `more` successes and failures added, its terms, and a remainder.

    The value is S(w) = sum w r / sum w, for weights w (n,) and rewards r (n,) in [0, 1], and the terms are (n,). Each
    added row has the weight of an effective row. The variance of S(w) is the sum of squares of the terms plus the
    remainder, which belongs to the added rows.
    """
    row = float((w @ w) / w.sum())
    total = float(w.sum()) + 2.0 * more * row
    value = (float(w @ r) + more * row) / total
    return value, w * (r - value) / total, more * ((1.0 - value) ** 2 + value**2) * (row / total) ** 2


def adjusted_gain(
    w: np.ndarray, u: np.ndarray, values: np.ndarray, others: np.ndarray, rest: np.ndarray, alpha: float
) -> tuple[float, Interval]:
    """Return a candidate's gain over the present policy, adjusted by a reward model, and its limits.

    The limits are for one look at a planned end.

    Parameters
    ----------
    w : weights (n,) of the candidate.
    u : weights (n,) of the present policy.
    values : predicted values (n,) of the candidate.
    others : predicted values (n,) of the present policy.
    rest : rewards minus their predictions (n,), of rewards in [0, 1].
    alpha : error probability.
    """
    one, two = float(w @ rest / w.sum()), float(u @ rest / u.sum())
    ahead = values - others
    gain = float(ahead.mean()) + one - two
    terms = (ahead - ahead.mean()) / len(w) + w * (rest - one) / w.sum() - u * (rest - two) / u.sum()
    return gain, intervals.normal_interval(gain, float(np.sqrt((terms**2).sum())), Range(-1.0, 1.0), alpha)


def cross_predict(log: Log, model: Any) -> np.ndarray:
    """Return predicted rewards (n, K), each row by a model of the other parts of the log.

    Contexts that are dictionaries become columns. All columns are standardized.
    """
    log = _standardize(log)
    out, parts = np.zeros((len(log), log.n_arms)), np.arange(len(log)) % FOLDS
    for part in range(min(FOLDS, len(log))):
        fitted = make_reward_model(model)
        fitted.fit(log[parts != part])
        out[parts == part] = fitted.predict(log[parts == part])
    return out


def _standardize(log: Log) -> Log:
    """Return a log with standardized columns of numbers as contexts. Raises ValueError if it has no contexts."""
    rows = log.contexts
    if rows is None and log.requests is not None:
        each = [dict(one.context) for one in log.requests]
        rows = Records(size=WIDTH).learn(each).transform(each)
    if rows is None:
        raise ValueError("log must have contexts for an adjustment: pass context= to Log.from_frame, or model=None")
    axes = tuple(range(rows.ndim - 1))
    spread = rows.std(axis=axes)
    scaled = (rows - rows.mean(axis=axes)) / np.where(spread > 0.0, spread, 1.0)
    return Log(
        arms=log.arms, rewards=log.rewards, propensities=log.propensities, n_arms=log.n_arms, contexts=scaled,
        eligible=log.eligible,
    )  # fmt: skip


def logger_change(log: Log) -> bool:
    """Return True if the log shows that its logger changed on the way (`LoggerChange`)."""
    change = LoggerChange()
    change.add(log)
    return change.has_changed


class LoggerChange:
    """Check if a log, given in blocks, shows that its logger changed on the way.

    It changed if equal contexts had different probabilities, or if probabilities have a trend over the rows. A change
    is not found if contexts never repeat and there is no trend. The state has a digest and the first probabilities of
    each context.
    """

    def __init__(self) -> None:
        self._differs, self._rows = False, 0
        self._known: dict[bytes, int] = {}  # the number of each context
        self._first = np.zeros((0, 0))  # probabilities (m, K) of the first row with a context, m at least their number
        self._trends: dict[int, _Trend] = {}  # of each arm's probabilities

    def add(self, block: Log) -> None:
        """Add the next block of the log."""
        order = self._rows + np.arange(len(block), dtype=float)
        self._rows += len(block)
        for arm in range(block.n_arms):
            own = block.arms == arm if block.distributions is None else slice(None)
            p = block.propensities if block.distributions is None else block.distributions[:, arm]
            self._trends.setdefault(arm, _Trend()).add(p[own], order[own])
        if not self._differs:
            self._differs = self._has_other_probabilities(block)

    @property
    def has_changed(self) -> bool:
        """True if the log shows that its logger changed."""
        return self._differs or any(one.is_sure for one in self._trends.values())

    def _has_other_probabilities(self, block: Log) -> bool:
        """Return True if equal contexts had different probabilities, in a block or before it."""
        p = block.propensities[:, None] if block.distributions is None else block.distributions
        count = len(self._known)
        numbers = np.array([self._known.setdefault(key, len(self._known)) for key in _context_keys(block)], int)
        _, rows = np.unique(numbers, return_index=True)
        new = rows[numbers[rows] >= count]
        height, width = count + len(new), max(p.shape[1], self._first.shape[1])
        if height > len(self._first) or width > self._first.shape[1]:
            grown = np.zeros((max(height, 2 * count), width))
            grown[:count, : self._first.shape[1]] = self._first[:count]
            self._first = grown
        self._first[count:height, : p.shape[1]] = p[new]
        found = self._first[numbers]
        found[:, : p.shape[1]] -= p
        return bool((abs(found) > EQUAL).any())


class _Trend:
    """Moments of probabilities and of the numbers of their rows, for the correlation between them."""

    def __init__(self) -> None:
        self._count, self._means, self._products = 0, np.zeros(2), np.zeros((2, 2))
        self._least, self._largest = np.inf, -np.inf

    def add(self, p: np.ndarray, order: np.ndarray) -> None:
        """Add probabilities (n,) and the numbers (n,) of their rows."""
        if not len(p):
            return
        both = np.stack([p, order])
        means, total = both.mean(axis=1), self._count + len(p)
        away, step = both - means[:, None], means - self._means
        self._products += away @ away.T + np.outer(step, step) * (self._count * len(p) / total)
        self._means += step * (len(p) / total)
        self._count = total
        self._least, self._largest = min(self._least, float(p.min())), max(self._largest, float(p.max()))

    @property
    def is_sure(self) -> bool:
        """True if the probabilities differ, and their correlation with row numbers is above `SURE` standard errors."""
        if self._count < 2 or self._largest - self._least <= EQUAL:
            return False
        correlation = self._products[0, 1] / np.sqrt(self._products[0, 0] * self._products[1, 1])
        return bool(abs(correlation) * np.sqrt(self._count) > SURE)


def _context_keys(block: Log) -> Iterator[bytes]:
    """Yield a digest for each row, equal for rows with equal contexts, slots and arms on offer.

    Without distributions, the chosen arms must be equal, too.
    """
    every = np.arange(block.n_arms).tobytes()
    columns: list[Iterable[bytes]] = [
        itertools.repeat(every, len(block))
        if block.eligible is None
        else (np.flatnonzero(row).tobytes() for row in block.eligible)
    ]
    numbers = (block.slots, block.contexts, block.arms if block.distributions is None else None)
    columns += [(cell.tobytes() for cell in one) for one in numbers if one is not None]
    if block.requests is not None:
        columns.append(repr((one.context, one.arms, one.eligible)).encode() for one in block.requests)
    for parts in zip(*columns, strict=True):
        yield hashlib.blake2b(b"".join(parts), digest_size=DIGEST).digest()


def sample_size(
    mean: float,
    gain: float,
    *,
    deviation: float | None = None,
    shares: tuple[float, float] = (0.5, 0.5),
    r_squared: float = 0.0,
    level: float = 0.95,
    power: float = 0.8,
    comparisons: int = 1,
) -> int:
    """Return how many decisions a test with a fixed end needs to find a gain.

    n = (1 - R^2) (var_0 / share_0 + var_1 / share_1) ((z(level) + z(power)) / gain)^2

    R^2 is `r_squared`. Arm 0 is the present arm and arm 1 the other one; var is the variance of an arm's reward, and
    share its probability. z(level) is the quantile 1 - (1 - level) / (2 c) of the standard normal distribution,
    with c = `comparisons`, and z(power) is its quantile `power`.

    Parameters
    ----------
    mean : float
        Mean reward of the present arm.
    gain : float
        Smallest gain of the other arm that is to be found, not 0.
    deviation : float, default None
        Standard deviation of a reward. None means that rewards are clicks, with variance mean (1 - mean) for each arm.
    shares : tuple of float, default (0.5, 0.5)
        Probabilities of the two arms, above 0. They add up to less than 1 if there are more arms.
    r_squared : float, default 0.0
        Share of the variance that covariates explain, below 1 (`compare` with a `model`).
    level : float, default 0.95
        Confidence level of the interval.
    power : float, default 0.8
        Probability that the interval excludes 0 if the gain is as given.
    comparisons : int, default 1
        Number of candidates that share the error probability.

    Returns
    -------
    int
        Number of decisions of the whole test.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> from onepass.evaluation import sample_size
    >>> sample_size(0.04, 0.01)
    13485
    >>> sample_size(0.04, 0.01, r_squared=0.5)
    6743
    """
    one, z = _gain_deviation(mean, gain, deviation, shares, r_squared), _quantile(level, comparisons)
    return int(np.ceil((one * (z + scipy.stats.norm.ppf(_open("power", power))) / gain) ** 2))


def power(
    rows: int,
    mean: float,
    gain: float,
    *,
    deviation: float | None = None,
    shares: tuple[float, float] = (0.5, 0.5),
    r_squared: float = 0.0,
    level: float = 0.95,
    comparisons: int = 1,
) -> float:
    """Return the probability that a test of `rows` decisions finds a gain.

    Parameters
    ----------
    rows : int
        Number of decisions of the whole test, at least 1.
    mean : float
        Mean reward of the present arm.
    gain : float
        True gain of the other arm, not 0.
    deviation : float, default None
        Standard deviation of a reward. By default that of clicks with this mean.
    shares : tuple of float, default (0.5, 0.5)
        Probabilities of the two arms, above 0.
    r_squared : float, default 0.0
        Share of the variance that covariates explain, below 1.
    level : float, default 0.95
        Confidence level of the interval.
    comparisons : int, default 1
        Number of candidates that share the error probability.

    Returns
    -------
    float
        Probability that the interval excludes 0, on the side of the gain.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> from onepass.evaluation import power
    >>> round(power(13485, 0.04, 0.01), 3)
    0.8
    """
    one, z = _gain_deviation(mean, gain, deviation, shares, r_squared), _quantile(level, comparisons)
    return float(scipy.stats.norm.cdf(abs(gain) * np.sqrt(check.integer("rows", rows, 1)) / one - z))


def _gain_deviation(
    mean: float, gain: float, deviation: float | None, shares: tuple[float, float], r_squared: float
) -> float:
    """Return the standard error of an estimated gain times the square root of the number of decisions.

    The arguments are those of `sample_size`. Raises ValueError if one is out of range.
    """
    if check.real("gain", gain) == 0.0:
        raise ValueError("gain must not be 0")
    explained = check.fraction("r_squared", r_squared)
    if explained == 1.0:
        raise ValueError("r_squared must be below 1, got 1.0")
    two = [check.positive("shares", share) for share in shares]
    if len(two) != 2 or sum(two) > 1.0 + EQUAL:
        raise ValueError(f"shares must be two probabilities that add up to at most 1, got {check.quote(shares)}")
    if deviation is not None:
        each = [check.positive("deviation", deviation) ** 2] * 2
    else:
        means = [_open("mean", mean), _open("mean + gain", mean + gain)]
        each = [one * (1.0 - one) for one in means]
    return float(np.sqrt((1.0 - explained) * (each[0] / two[0] + each[1] / two[1])))


def _quantile(level: float, comparisons: int) -> float:
    """Return the normal quantile of two-sided limits that hold for all of `comparisons` candidates at once.

    It is the quantile 1 - (1 - `level`) / (2 `comparisons`) (Bonferroni), for a level such as 0.95.
    """
    alpha = (1.0 - _open("level", level)) / check.integer("comparisons", comparisons, 1)
    return float(scipy.stats.norm.isf(alpha / 2.0))


def _open(name: str, value: float) -> float:
    """Return a float above 0 and below 1, or raise ValueError; `name` is the argument that the message names."""
    if not 0.0 < check.real(name, value) < 1.0:
        raise ValueError(f"{name} must be above 0 and below 1, got {check.quote(value)}")
    return float(value)
