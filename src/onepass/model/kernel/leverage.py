"""Theorem 3.1 of BKB (Calandriello, Carratino, Lazaric, Valko and Rosasco 2019) in numbers.

    qbar >= 6 a log(4 T / delta) / epsilon^2        a = (1 + epsilon) / (1 - epsilon)
    with probability 1 - delta, at all t <= T:      sigma^2 / a <= sigma~^2 <= a sigma^2 at every point
                                                    |S| <= 3 (1 + kappa^2 / reg) a qbar d_eff

Dictionaries are drawn again after every play, from scratch, and nothing is left out: staleness=1, redundancy=0,
incremental=False. What holds for the dictionary at hand, however it was made, is `BKB.variance_factor`.
"""

from math import log
from typing import Any

from onepass.foundation import check
from onepass.foundation.check import quote


def bkb_oversampling(rounds: int, *, delta: float = 0.1, epsilon: float = 0.5) -> float:
    """The least `oversampling` of `BKB` that theorem 3.1 proves enough: 6 a log(4 T / delta) / epsilon^2.

    rounds: T, at least 1. delta: the probability of failure, above 0 and below 1. epsilon: above 0 and below 1;
    variances are then within a factor a = (1 + epsilon) / (1 - epsilon) of the exact ones. ValueError for others.

    >>> import onepass as op
    >>> round(op.model.bkb_oversampling(1000))  # 72 log(4 T / delta) at epsilon = 1/2, where a = 3
    763
    """
    rounds, delta = check.integer("rounds", rounds, 1), _check_open_interval("delta", delta)
    return 6.0 * _variance_factor(epsilon) * log(4.0 * rounds / delta) / float(epsilon) ** 2


def bkb_size_bound(
    effective_dimension: float, oversampling: float, *, reg: float, variance: float = 1.0, epsilon: float = 0.5
) -> float:
    """What theorem 3.1 bounds the size of BKB's dictionary by: 3 (1 + variance / reg) a qbar d_eff.

    effective_dimension: d_eff of the plays, at least 0, of the exact posterior (`GPUCB.effective_dimension`), or a
    times that of a BKB for which the theorem holds. oversampling: qbar, above 0, at least `bkb_oversampling(...)` for
    the theorem. reg: lambda, above 0. variance: kappa^2, the largest k(x, x), above 0. epsilon: above 0 and below 1,
    as in `bkb_oversampling`. ValueError for others. It says something where very many points are played.

    >>> import onepass as op
    >>> op.model.bkb_size_bound(20.0, 500.0, reg=0.5)
    270000.0
    """
    dimension = check.real("effective_dimension", effective_dimension)
    if dimension < 0.0:
        raise ValueError(f"effective_dimension must be at least 0, got {quote(effective_dimension)}")
    ratio = check.positive("variance", variance) / check.positive("reg", reg)
    return 3.0 * (1.0 + ratio) * _variance_factor(epsilon) * check.positive("oversampling", oversampling) * dimension


def _check_open_interval(name: str, value: Any) -> float:
    number = check.real(name, value)
    if not 0.0 < number < 1.0:
        raise ValueError(f"{name} must be above 0 and below 1, got {quote(value)}")
    return number


def _variance_factor(epsilon: Any) -> float:
    """a = (1 + epsilon) / (1 - epsilon)."""
    epsilon = _check_open_interval("epsilon", epsilon)
    return (1.0 + epsilon) / (1.0 - epsilon)
