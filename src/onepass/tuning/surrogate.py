"""A kernel bandit's posterior of noisy values: units of their own, failures, and kernel and noise refitted.

    g(y) = (y - c) / s above c, and -log(1 + (c - y) / s) below it      c, s: median and spread of the first values

The good half of the values keeps its shape, the bad half is pressed together: of settings that are ten times as bad
nobody needs to know how bad. A failed trial pays 0, the median of the first: no setting near it is thought to be among
the best, and no cliff makes the kernel short. Kernel and noise maximize the marginal likelihood (scikit-learn) times
weak priors, normal ones of the logarithms, again whenever there are `AGAIN` times as many values; between fits a value
is one play of an exact `KernelModel`.
"""

import warnings
from collections.abc import Container
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.stats import qmc

from onepass.bandit.bandit import Bandit
from onepass.features.kernels import Matern
from onepass.model.kernel.kernel_model import KernelModel

AGAIN = 1.2  # growth of values from fit to fit
MOST = 200  # values that are fitted
STEPS = 40  # of L-BFGS from a start
STARTS = 2  # points of a Sobol sequence, a power of 2, beside the priors' mode
LENGTHS, VARIANCES, NOISES = (0.02, 20.0), (0.05, 50.0), (1e-6, 1.0)  # bounds, in units of the cube and of the values
USUAL_LENGTH, USUAL_VARIANCE, USUAL_NOISE = 0.35, 1.0, 1e-3  # modes of the priors; lengths grow as sqrt(coordinates)
SPREAD, NOISE_SPREAD = 1.0, 2.5  # deviations of the logarithms: of lengths and variance, of the noise
LEAST = 1e-12  # a spread of values, relative to them, that is none
DEVIATION = 1e-9  # the least deviation that improvement is measured in
STILL = 0.1  # of the values are those of other trials: then values come in steps


class Units(NamedTuple):
    """centre, scale: c and s."""

    centre: float
    scale: float

    def inside(self, values: np.ndarray) -> np.ndarray:
        """Return g of values (n,), 0 where they are NaN: of trials that failed."""
        found = (np.where(np.isfinite(values), values, self.centre) - self.centre) / self.scale
        return np.where(found < 0.0, -np.log1p(np.maximum(-found, 0.0)), found)


def units_of(first: np.ndarray) -> Units:
    """Return the units of the first values (n,); failures are NaN."""
    first = first[np.isfinite(first)]
    if not first.size:
        return Units(0.0, 1.0)
    centre = float(np.median(first))
    scale = float(np.sqrt(np.mean((first[first >= centre] - centre) ** 2)))
    return Units(centre, scale if scale > LEAST * max(abs(centre), np.finfo(float).tiny) else 1.0)


def some(values: np.ndarray, most: int) -> np.ndarray:
    """Return at most `most` indices of values (n,), in order: the best half, and others evenly over the rest."""
    if len(values) <= most:
        return np.arange(len(values))
    order = np.argsort(-values, kind="stable")
    rest = np.sort(order[most // 2 :])
    spread = rest[np.linspace(0, len(rest) - 1, most - most // 2).round().astype(np.int64)]
    return np.sort(np.concatenate([order[: most // 2], spread]))


def maximize_posterior(
    objective: Any, mode: np.ndarray, bounds: np.ndarray, starts: np.ndarray, spreads: np.ndarray
) -> tuple[np.ndarray, float]:
    """Minimize scikit-learn's objective and the priors by L-BFGS from the mode and from starts (n, parameters)."""

    def penalized(logs: np.ndarray) -> tuple[float, np.ndarray]:
        value, slopes = objective(logs)
        off = (logs - mode) / spreads
        return float(value + 0.5 * off @ off), slopes + off / spreads

    ends: list[Any] = [
        minimize(penalized, np.clip(start, *bounds.T), method="L-BFGS-B", jac=True, bounds=bounds,
                 options={"maxiter": STEPS})
        for start in (mode, *starts)
    ]  # fmt: skip
    end = min(ends, key=lambda one: one.fun)
    return end.x, end.fun


def fit(rows: np.ndarray, values: np.ndarray, seed: list[int]) -> tuple[Any, float]:
    """Return the kernel and the noise of values (n,) at rows (n, coordinates)."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process import kernels as theirs

    dim = rows.shape[1]
    lengths = np.full(dim, USUAL_LENGTH * dim**0.5)
    kernel = theirs.ConstantKernel(USUAL_VARIANCE, VARIANCES) * theirs.Matern(lengths, LENGTHS, nu=2.5)
    noisy = kernel + theirs.WhiteKernel(USUAL_NOISE, NOISES)
    across = noisy.bounds[:, 1] - noisy.bounds[:, 0]
    sobol = qmc.Sobol(dim + 2, seed=np.random.default_rng(seed)).random(STARTS)
    spreads = np.array([SPREAD] * (dim + 1) + [NOISE_SPREAD])
    search = partial(maximize_posterior, starts=noisy.theta + 0.5 * (sobol - 0.5) * across, spreads=spreads)
    chosen = some(values, MOST)
    model = GaussianProcessRegressor(noisy, optimizer=search)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a parameter at its bound is still the best there is
        found = model.fit(rows[chosen], values[chosen]).kernel_.get_params()
    variance, noise = float(found["k1__k1__constant_value"]), float(found["k2__noise_level"])
    return variance * Matern(2.5, tuple(np.atleast_1d(found["k1__k2__length_scale"]).tolist())), noise


class Surrogate:
    """An exact `KernelModel` that has learned values at rows, fitted again as they grow in number.

    start: the first so many values say the units; seed: of the starts of a fit.
    """

    def __init__(self, start: int, seed: int) -> None:
        self.start, self.seed = start, seed
        self.rows, self.values = np.empty((0, 0)), np.empty(0)
        self._fitted, self._units = 0, Units(0.0, 1.0)
        self._bandit: Bandit | None = None

    def learn(self, rows: np.ndarray, values: np.ndarray) -> None:
        """Learn values (n,), more is better and NaN is a failure, at rows (n, coordinates)."""
        self.rows = np.concatenate([self.rows.reshape(-1, rows.shape[1]), rows])
        self.values = np.concatenate([self.values, values])
        count = len(self.values)
        if self._bandit is None or count >= AGAIN * self._fitted:
            self._units = units_of(self.values[: self.start])
            kernel, noise = fit(self.rows, self._units.inside(self.values), [self.seed, count])
            self._bandit, self._fitted = Bandit(KernelModel(None, kernel, reg=noise)), count
            rows, values = self.rows, self.values
        for row, value in zip(rows, self._units.inside(values).tolist(), strict=True):
            self._bandit.learn(row, value)

    def beside(self, pending: np.ndarray) -> KernelModel:
        """Return the model after pending rows (n, coordinates) have paid their means.

        Variances do not depend on rewards, so the widths are exactly those after these trials, whatever they pay
        (hallucinated updates: Desautels, Krause and Burdick 2014).
        """
        assert self._bandit is not None
        bandit = self._bandit.copy() if len(pending) else self._bandit
        for row in pending:
            bandit.learn(row, float(bandit.model.posterior(row[None]).means[0]))
        model: KernelModel = bandit.model
        return model

    def means(self, model: KernelModel) -> np.ndarray:
        """Return the means (n,) at what was learned, -inf where a trial failed."""
        return np.where(np.isfinite(self.values), model.posterior(self.rows).means, -np.inf)

    def is_still(self) -> bool:
        """Tell if many values are exactly those of other rows, and the same row never paid two."""
        there = np.isfinite(self.values)
        rows, values = self.rows[there], self.values[there]
        told = np.column_stack([rows, values])
        noise = len(np.unique(told, axis=0)) > len(np.unique(rows, axis=0))
        return not noise and len(np.unique(values)) < (1.0 - STILL) * len(values)


def moments(model: KernelModel, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return means and deviations (n,) at rows (n, coordinates)."""
    found = model.posterior(rows)
    return found.means, np.maximum(found.deviations, DEVIATION)


def untried(model: KernelModel, tried: Container[bytes], rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return `moments`, with a mean of -inf at rows that were tried, as bytes: they pay the same again."""
    means, deviations = moments(model, rows)
    known = [row.tobytes() in tried for row in rows]
    return np.where(known, -np.inf, means), deviations
