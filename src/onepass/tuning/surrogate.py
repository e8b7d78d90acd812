"""What was told, as a kernel bandit sees it: values in units of their own, failures, and kernel and noise refitted.

    g(y) = (y - c) / s above c, and -log(1 + (c - y) / s) below it      c, s: median and spread of the first values

The good half of the values keeps its shape, the bad half is pressed together: of settings that are ten times as bad
nobody needs to know how bad. A failed trial pays 0, the median of the first: no setting near it is thought to be among
the best, and no cliff makes the kernel short. Kernel and noise are fitted again when
there are `AGAIN` times as many values as at the last fit; between fits a trial is one play of `GPUCB`. A new fit is one
factorization, of plays and sums alone: a loaded tuner, whose bandit learns all anew, has the same in every bit.
"""

from collections.abc import Container
from typing import Any, NamedTuple

import numpy as np

from onepass.features.kernels import Kernel, Matern
from onepass.foundation import check
from onepass.kernel.gp_ucb import GPUCB
from onepass.tuning import likelihood
from onepass.tuning.likelihood import Fit

AGAIN = 1.2  # growth of values from fit to fit
LEAST = 1e-12  # a spread of values, relative to them, that is none
DEVIATION = 1e-9  # the least deviation that improvement is measured in


class Units(NamedTuple):
    """centre, scale: c and s; bent: whether values below c are pressed together."""

    centre: float
    scale: float
    bent: bool

    def inside(self, values: Any) -> Any:
        """g(y)."""
        found = (np.asarray(values, np.float64) - self.centre) / self.scale
        return np.where(found < 0.0, -np.log1p(np.maximum(-found, 0.0)), found) if self.bent else found

    def outside(self, values: Any) -> Any:
        """The inverse of g."""
        values = np.asarray(values, np.float64)
        found = np.where(values < 0.0, -np.expm1(np.maximum(-values, 0.0)), values) if self.bent else values
        return self.centre + self.scale * found


def units_of(first: np.ndarray) -> Units:
    """Units of the first values, at least one."""
    centre = float(np.median(first))
    above = first[first >= centre] - centre
    scale = float(np.sqrt(np.mean(above**2)))
    return Units(centre, scale if scale > LEAST * max(abs(centre), np.finfo(float).tiny) else 1.0, True)


def inside(units: Units, values: np.ndarray) -> np.ndarray:
    """g of values (n,), 0 where they are NaN: of trials that failed."""
    there = np.isfinite(values)
    return np.where(there, units.inside(np.where(there, values, 0.0)), 0.0)


def some(values: np.ndarray, most: int) -> np.ndarray:
    """Places of at most `most` values (n,): the best half of them, and others evenly over the rest, in their order."""
    if len(values) <= most:
        return np.arange(len(values))
    order = np.argsort(-values, kind="stable")
    rest = np.sort(order[most // 2 :])
    spread = rest[np.linspace(0, len(rest) - 1, most - most // 2).round().astype(np.int64)]
    return np.sort(np.concatenate([order[: most // 2], spread]))


class Model(NamedTuple):
    """A fit, its units, and how many told trials it was made of."""

    fit: Fit
    units: Units
    told: int


def refitted(
    rows: np.ndarray, values: np.ndarray, first: int, owners: np.ndarray, last: Model | None, seed: int
) -> Model:
    """The model of values (n,), NaN where a trial failed, at rows (n, coordinates).

    first: of the values, those that say the units; last: the model before.
    """
    there = np.isfinite(values)
    if not there.any():
        return Model(likelihood.usual(int(owners[-1]) + 1), Units(0.0, 1.0, True), len(values))
    early = values[:first][there[:first]]
    units = units_of(early if early.size else values[there])
    learned = inside(units, values)
    chosen = some(learned, likelihood.MOST)
    fit = likelihood.fitted(
        rows[chosen], learned[chosen], owners, None if last is None else last.fit, [seed, len(values)]
    )
    return Model(fit, units, len(values))


def kernel_of(fit: Fit, owners: np.ndarray) -> Kernel:
    """The kernel on rows (n, coordinates)."""
    return fit.variance * Matern(2.5, tuple(fit.lengths[owner] for owner in owners))


def moments(bandit: GPUCB, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and deviations at rows (n, coordinates)."""
    found = bandit.posterior(rows)
    return found.means, np.maximum(found.deviations, DEVIATION)


def untried(bandit: GPUCB, tried: Container[bytes], rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and deviations at rows (n, coordinates), where the same settings pay the same again: -inf at what was tried
    (rows as bytes), where nothing is left to gain."""
    means, deviations = moments(bandit, rows)
    size, raw = rows.shape[1] * rows.itemsize, rows.tobytes()
    known = [raw[start : start + size] in tried for start in range(0, len(raw), size)]
    return np.where(known, -np.inf, means), deviations


def model_of(plain: Any, settings: int, most: int) -> Model:
    """The model of its fields as lists, for so many settings, made of `most` trials at most; ValueError for others."""
    (lengths, variance, noise), (centre, scale, bent), (told,) = plain
    if len(lengths) != settings:
        raise ValueError(f"a fit must have {settings} lengths, got {len(lengths)}")
    fit = Fit(
        tuple(check.positive("length", one) for one in lengths),
        check.positive("variance", variance),
        check.positive("noise", noise),
    )
    bent = bool(check.choice("bent", bent, (False, True)))
    units = Units(check.real("centre", centre), check.positive("scale", scale), bent)
    return Model(fit, units, check.integer("told", told, 0, most))
