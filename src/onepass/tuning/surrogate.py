"""Surrogate model of noisy values: the posterior of a kernel bandit on transformed values.

A value y is transformed by

    g(y) = (y - c) / s above c, and -log(1 + (c - y) / s) below it

where c and s are median and spread of the first values. The transformation keeps the shape of the good half of the
values and compresses the bad half: it does not matter how bad a bad setting is. A failed trial gets g = 0, the median
of the first values. So settings near a failure are not expected to be among the best, and a failure does not shorten
the kernel's length scale.

Kernel and noise maximize the marginal likelihood (scikit-learn) times weak priors, which are normal in the logarithms.
They are fitted again whenever the number of values has grown by the factor `REFIT_GROWTH`. Between two fits, every
value is one update of an exact `KernelModel`.
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

REFIT_GROWTH = 1.2  # growth of the number of values from fit to fit
MAX_FITTED = 200  # values used in a fit
MAX_ITERATIONS = 40  # of L-BFGS from one start
N_STARTS = 2  # points of a Sobol sequence, a power of 2, in addition to the mode of the priors
LENGTHS, VARIANCES, NOISES = (0.02, 20.0), (0.05, 50.0), (1e-6, 1.0)  # bounds, in units of the cube and of g
PRIOR_LENGTH, PRIOR_VARIANCE, PRIOR_NOISE = 0.35, 1.0, 1e-3  # modes of the priors; lengths grow as sqrt(coordinates)
LOG_SPREAD, LOG_NOISE_SPREAD = 1.0, 2.5  # prior deviations of the logarithms: lengths and variance, and noise
MIN_RELATIVE_SPREAD = 1e-12  # a spread of values below this, relative to their median, counts as none
MIN_DEVIATION = 1e-9  # smallest deviation used for the improvement
REPEATED_SHARE = 0.1  # share of values that equal those of other trials, above which values have plateaus


class ValueScale(NamedTuple):
    """Transformation g of values that limits the effect of very small ones.

    Parameters
    ----------
    centre : float
        Median of the first values.
    spread : float
        Root mean square distance of the values above the median from the median.
    """

    centre: float
    spread: float

    def transform(self, values: np.ndarray) -> np.ndarray:
        """Return the transformed values g(y) (n,) of values y (n,). NaN, the value of a failed trial, becomes 0."""
        z = (np.where(np.isfinite(values), values, self.centre) - self.centre) / self.spread
        return np.where(z < 0.0, -np.log1p(np.maximum(-z, 0.0)), z)


def value_scale(first: np.ndarray) -> ValueScale:
    """Return the transformation for the first values (n,); NaN is the value of a failed trial."""
    first = first[np.isfinite(first)]
    if not first.size:
        return ValueScale(0.0, 1.0)
    centre = float(np.median(first))
    spread = float(np.sqrt(np.mean((first[first >= centre] - centre) ** 2)))
    smallest = MIN_RELATIVE_SPREAD * max(abs(centre), np.finfo(float).tiny)
    return ValueScale(centre, spread if spread > smallest else 1.0)


def _subsample(values: np.ndarray, count: int) -> np.ndarray:
    """Return at most `count` sorted indices of values (n,): half of the best, the others evenly among the rest."""
    if len(values) <= count:
        return np.arange(len(values))
    order = np.argsort(-values, kind="stable")
    rest = np.sort(order[count // 2 :])
    spread = rest[np.linspace(0, len(rest) - 1, count - count // 2).round().astype(np.int64)]
    return np.sort(np.concatenate([order[: count // 2], spread]))


def _maximize_posterior(
    objective: Any, mode: np.ndarray, bounds: np.ndarray, starts: np.ndarray, spreads: np.ndarray
) -> tuple[np.ndarray, float]:
    """Minimize `objective` minus the log priors by L-BFGS, and return the best point (parameters,) and its value.

    `objective`, of scikit-learn, returns minus the log marginal likelihood and its gradient. The searches start at the
    `mode` (parameters,) of the priors and at `starts` (n, parameters), and stay within `bounds` (parameters, 2).
    `spreads` (parameters,) are the standard deviations of the priors.
    """

    def negative_log_posterior(logs: np.ndarray) -> tuple[float, np.ndarray]:
        value, slopes = objective(logs)
        off = (logs - mode) / spreads
        return float(value + 0.5 * off @ off), slopes + off / spreads

    ends: list[Any] = [
        minimize(negative_log_posterior, np.clip(start, *bounds.T), method="L-BFGS-B", jac=True, bounds=bounds,
                 options={"maxiter": MAX_ITERATIONS})
        for start in (mode, *starts)
    ]  # fmt: skip
    best = min(ends, key=lambda end: end.fun)
    return best.x, best.fun


def fit_kernel(rows: np.ndarray, values: np.ndarray, seed: list[int]) -> tuple[Any, float]:
    """Return the kernel and the noise variance that fit transformed values (n,) at rows (n, coordinates) best.

    `seed` seeds the points from which the search starts.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor, kernels

    dim = rows.shape[1]
    lengths = np.full(dim, PRIOR_LENGTH * dim**0.5)
    kernel = kernels.ConstantKernel(PRIOR_VARIANCE, VARIANCES) * kernels.Matern(lengths, LENGTHS, nu=2.5)
    noisy = kernel + kernels.WhiteKernel(PRIOR_NOISE, NOISES)
    ranges = noisy.bounds[:, 1] - noisy.bounds[:, 0]
    sobol = qmc.Sobol(dim + 2, seed=np.random.default_rng(seed)).random(N_STARTS)
    spreads = np.array([LOG_SPREAD] * (dim + 1) + [LOG_NOISE_SPREAD])
    search = partial(_maximize_posterior, starts=noisy.theta + 0.5 * (sobol - 0.5) * ranges, spreads=spreads)
    subset = _subsample(values, MAX_FITTED)
    model = GaussianProcessRegressor(noisy, optimizer=search)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a parameter at its bound is still the best there is
        params = model.fit(rows[subset], values[subset]).kernel_.get_params()
    variance, noise = float(params["k1__k1__constant_value"]), float(params["k2__noise_level"])
    return variance * Matern(2.5, tuple(np.atleast_1d(params["k1__k2__length_scale"]).tolist())), noise


class Surrogate:
    """Kernel model of noisy values at rows, such as results of trials; the kernel is fitted again as rows come.

    Parameters
    ----------
    n_startup : int
        Number of first values that determine how values are transformed.
    seed : int
        Seed of the starting points of a fit of the kernel.
    """

    def __init__(self, n_startup: int, seed: int) -> None:
        self.n_startup, self.seed = n_startup, seed
        self.rows, self.values = np.empty((0, 0)), np.empty(0)
        self._n_fitted, self._scale = 0, ValueScale(0.0, 1.0)
        self._bandit: Bandit | None = None

    def learn(self, rows: np.ndarray, values: np.ndarray) -> None:
        """Learn values (n,) at rows (n, coordinates). Larger is better, NaN is a failure."""
        self.rows = np.concatenate([self.rows.reshape(-1, rows.shape[1]), rows])
        self.values = np.concatenate([self.values, values])
        count = len(self.values)
        if self._bandit is None or count >= REFIT_GROWTH * self._n_fitted:
            self._scale = value_scale(self.values[: self.n_startup])
            kernel, noise = fit_kernel(self.rows, self._scale.transform(self.values), [self.seed, count])
            self._bandit, self._n_fitted = Bandit(KernelModel(None, kernel, reg=noise)), count
            rows, values = self.rows, self.values
        for row, value in zip(rows, self._scale.transform(values).tolist(), strict=True):
            self._bandit.learn(row, value)

    def condition_on_pending(self, pending: np.ndarray) -> KernelModel:
        """Return the model as if pending trials, at rows (n, coordinates), had already had the values that it predicts.

        Variances do not depend on values, so the widths are exactly those after these trials, whatever their values
        (Desautels, Krause and Burdick 2014).
        """
        assert self._bandit is not None
        bandit = self._bandit.copy() if len(pending) else self._bandit
        for row in pending:
            bandit.learn(row, float(bandit.model.posterior(row[None]).means[0]))
        model: KernelModel = bandit.model
        return model

    def means(self, model: KernelModel) -> np.ndarray:
        """Return the model's means (n,) at the learned rows, and -inf for failed trials."""
        return np.where(np.isfinite(self.values), model.posterior(self.rows).means, -np.inf)

    def has_plateaus(self) -> bool:
        """Return True if many rows have the value of another row, and equal rows never have different values."""
        finite = np.isfinite(self.values)
        rows, values = self.rows[finite], self.values[finite]
        pairs = np.column_stack([rows, values])
        is_noisy = len(np.unique(pairs, axis=0)) > len(np.unique(rows, axis=0))
        return not is_noisy and len(np.unique(values)) < (1.0 - REPEATED_SHARE) * len(values)


def moments(model: KernelModel, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the model's posterior means (n,) and standard deviations (n,) at rows (n, coordinates)."""
    posterior = model.posterior(rows)
    return posterior.means, np.maximum(posterior.deviations, MIN_DEVIATION)


def moments_without_repeats(
    model: KernelModel, tried: Container[bytes], rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return posterior means and deviations (n,) at rows, with a mean of -inf at rows that were tried before.

    Such rows would have the same value again. `tried` holds the bytes of the rows tried.
    """
    means, deviations = moments(model, rows)
    is_repeat = [row.tobytes() in tried for row in rows]
    return np.where(is_repeat, -np.inf, means), deviations
