"""Theorem 3.1 of BKB (Calandriello, Carratino, Lazaric, Valko and Rosasco 2019) in numbers.

    qbar >= 6 a log(4 T / delta) / epsilon^2        a = (1 + epsilon) / (1 - epsilon)
    with probability 1 - delta, at all t <= T:      sigma^2 / a <= sigma~^2 <= a sigma^2 at every point
                                                    |S| <= 3 (1 + kappa^2 / reg) a qbar d_eff

sigma^2 is the exact variance, sigma~^2 that of BKB, S the dictionary, qbar the oversampling, T the number of rounds,
and kappa^2 the largest k(x, x). The theorem holds if dictionaries are drawn again from scratch after every play, and no
point is left out: staleness=1, redundancy=0, incremental=False. For the present dictionary, however it was made,
`BKB.variance_factor` certifies the accuracy.
"""

from math import log
from typing import Any

from onepass.foundation import check
from onepass.foundation.check import quote


def bkb_oversampling(rounds: int, *, delta: float = 0.1, epsilon: float = 0.5) -> float:
    """Return the smallest `oversampling` for which theorem 3.1 of Calandriello et al. (2019) holds for `BKB`.

    It is 6 a log(4 T / delta) / epsilon^2 with a = (1 + epsilon) / (1 - epsilon). Variances are then within a factor a
    of the exact ones in all T rounds, with probability 1 - delta.

    Parameters
    ----------
    rounds : int
        Number of rounds T, at least 1.
    delta : float, default 0.1
        Probability of failure, above 0 and below 1.
    epsilon : float, default 0.5
        Accuracy, above 0 and below 1.

    Returns
    -------
    float
        The oversampling.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> import onepass as op
    >>> round(op.model.bkb_oversampling(1000))  # 72 log(4 T / delta) at epsilon = 1/2, where a = 3
    763
    """
    rounds, delta = check.integer("rounds", rounds, 1), check_open_interval("delta", delta)
    return 6.0 * _variance_factor(epsilon) * log(4.0 * rounds / delta) / float(epsilon) ** 2


def bkb_size_bound(
    effective_dimension: float, oversampling: float, *, reg: float, variance: float = 1.0, epsilon: float = 0.5
) -> float:
    """Return the bound of theorem 3.1 of Calandriello et al. (2019) on the number of points in BKB's dictionary.

    It is 3 (1 + variance / reg) a q d_eff, where a = (1 + epsilon) / (1 - epsilon), q is the oversampling and d_eff the
    effective dimension. The bound is below the number of points played only if very many were played.

    Parameters
    ----------
    effective_dimension : float
        Effective dimension d_eff of the plays under the exact posterior, at least 0. If you only know the effective
        dimension of a BKB for which the theorem holds, pass a times that number.
    oversampling : float
        The oversampling q, above 0. The theorem needs at least `bkb_oversampling`.
    reg : float
        Variance of the noise, above 0.
    variance : float, default 1.0
        The largest k(x, x), above 0.
    epsilon : float, default 0.5
        Accuracy, above 0 and below 1, as in `bkb_oversampling`.

    Returns
    -------
    float
        The bound on the number of points.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> import onepass as op
    >>> op.model.bkb_size_bound(20.0, 500.0, reg=0.5)
    270000.0
    """
    dimension = check.real("effective_dimension", effective_dimension)
    if dimension < 0.0:
        raise ValueError(f"effective_dimension must be at least 0, got {quote(effective_dimension)}")
    ratio = check.positive("variance", variance) / check.positive("reg", reg)
    return 3.0 * (1.0 + ratio) * _variance_factor(epsilon) * check.positive("oversampling", oversampling) * dimension


def check_open_interval(name: str, value: Any) -> float:
    """Return a number, or raise ValueError, which names the argument `name`, unless it is above 0 and below 1."""
    number = check.real(name, value)
    if not 0.0 < number < 1.0:
        raise ValueError(f"{name} must be above 0 and below 1, got {quote(value)}")
    return number


def _variance_factor(epsilon: Any) -> float:
    """Return the factor a = (1 + epsilon) / (1 - epsilon) between approximate and exact variances."""
    epsilon = check_open_interval("epsilon", epsilon)
    return (1.0 + epsilon) / (1.0 - epsilon)
