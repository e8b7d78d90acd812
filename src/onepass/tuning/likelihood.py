"""Length scales, variance and noise of a Matern 5/2 kernel by maximal marginal likelihood under weak priors.

    K = v (1 + s + s^2 / 3) e^-s + n I,  s^2 = 5 sum over settings g of D_g / l_g^2,   D_g: their squared distances
    log p(y) = -y^T K^-1 y / 2 - log det K / 2 + const
    d log p = (a^T dK a - tr K^-1 dK) / 2, a = K^-1 y,      d / d log l_g: dK = v (5 / 3) (1 + s) e^-s D_g / l_g^2

Logarithms of all have normal priors, wide ones, which decide where few values say nothing. Several starts: where the
last search ended, the priors' mode, and points of a scrambled Sobol sequence between the bounds; L-BFGS from each,
the best end wins. Cost O(n^3) an evaluation, of at most `MOST` values (Rasmussen and Williams 2006, section 5.4).
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize
from scipy.stats import qmc

MOST = 200  # values that are fitted
STEPS = 40  # of L-BFGS from a start
LENGTHS, VARIANCES, NOISES = (0.02, 20.0), (0.05, 50.0), (1e-6, 1.0)  # bounds, in units of the cube and of the values
USUAL_LENGTH, USUAL_VARIANCE, USUAL_NOISE = 0.35, 1.0, 1e-3  # modes of the priors; lengths grow as sqrt(settings)
LENGTH_SPREAD, VARIANCE_SPREAD, NOISE_SPREAD = 1.0, 1.0, 2.5  # deviations of the logarithms
STARTS = 2  # points of a Sobol sequence, a power of 2
REFUSED = 1e10  # in place of what cannot be computed


class Fit(NamedTuple):
    """lengths (settings,), variance and noise, in units of the values that were fitted."""

    lengths: tuple[float, ...]
    variance: float
    noise: float


def usual(settings: int) -> Fit:
    """The mode of the priors."""
    return Fit((USUAL_LENGTH * settings**0.5,) * settings, USUAL_VARIANCE, USUAL_NOISE)


def distances(rows: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """Squared distances by setting, (settings, n, n), of rows (n, coordinates); owners: the setting of each."""
    found = np.zeros((int(owners[-1]) + 1, len(rows), len(rows)))
    for coordinate, owner in enumerate(owners):
        found[owner] += (rows[:, None, coordinate] - rows[None, :, coordinate]) ** 2
    return found


def negative(logs: np.ndarray, apart: np.ndarray, values: np.ndarray, modes: np.ndarray) -> tuple[float, np.ndarray]:
    """Minus the log of likelihood and priors, and its gradient, at the logs of lengths, variance and noise."""
    count = len(apart)
    scales = np.exp(-2.0 * logs[:count])
    variance, noise = np.exp(logs[count:])
    s = np.sqrt(5.0 * np.tensordot(scales, apart, 1))
    decay = np.exp(-s)
    kernel = variance * (1.0 + s + s * s / 3.0) * decay
    noisy = kernel.copy()
    noisy.flat[:: len(values) + 1] += noise
    try:
        factor: np.ndarray = cholesky(noisy, lower=True, check_finite=False)
    except LinAlgError:
        return REFUSED, np.zeros_like(logs)
    inverse: np.ndarray = np.tril(dpotri(factor, lower=1)[0])
    inverse = inverse + np.tril(inverse, -1).T
    weights = inverse @ values
    outer = np.outer(weights, weights) - inverse
    steep = outer * ((5.0 / 3.0) * variance * (1.0 + s) * decay)
    slopes: list[float] = [0.5 * scale * np.vdot(steep, one) for scale, one in zip(scales, apart, strict=True)]
    slopes += [0.5 * np.vdot(outer, kernel), 0.5 * noise * np.trace(outer)]
    spreads = np.array([LENGTH_SPREAD] * count + [VARIANCE_SPREAD, NOISE_SPREAD])
    off = (logs - modes) / spreads
    value = 0.5 * values @ weights + np.log(np.diagonal(factor)).sum() + 0.5 * off @ off
    return float(value), off / spreads - np.array(slopes)


def fitted(rows: np.ndarray, values: np.ndarray, owners: np.ndarray, last: Fit | None, seed: list[int]) -> Fit:
    """The kernel of values (n,) at rows (n, coordinates); last: of the search before, seed: of the Sobol starts."""
    apart, settings = distances(rows, owners), int(owners[-1]) + 1
    bounds = np.log([LENGTHS] * settings + [VARIANCES, NOISES])
    logs = [np.log([*fit.lengths, fit.variance, fit.noise]) for fit in (usual(settings), last) if fit is not None]
    modes = logs[0]
    sobol = qmc.Sobol(settings + 2, seed=np.random.default_rng(seed)).random(STARTS)
    starts = [*logs, *(modes + (sobol - 0.5) * (bounds[:, 1] - bounds[:, 0]) * 0.5)]
    ends: list[Any] = [
        minimize(
            negative, np.clip(start, *bounds.T), (apart, values, modes), "L-BFGS-B", jac=True, bounds=bounds,
            options={"maxiter": STEPS},
        )
        for start in starts
    ]  # fmt: skip
    best = np.exp(min(ends, key=lambda end: end.fun).x)
    return Fit(tuple(best[:settings].tolist()), float(best[-2]), float(best[-1]))
