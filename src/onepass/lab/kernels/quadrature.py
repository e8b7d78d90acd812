"""Quadrature Fourier features of the Gaussian kernel, and Thompson sampling with them (Mutny and Krause 2018).

    exp(-||x - y||^2 / (2 l^2)) = E cos(w^T (x - y)) with w ~ N(0, I / l^2)
                                ~ sum over nodes w_i of weight_i cos(w_i^T (x - y)) = phi(x)^T phi(y)

The nodes are those of Gauss and Hermite in every dimension. With m nodes in each of d dimensions, phi has m^d entries.
So the features are only practical in few dimensions. Calandriello et al. (section 5) cite this method, and do not
measure it.
"""

from itertools import product

import numpy as np

from onepass import GPUCB, RBF, Bandit, Linear, SingleDrawThompson
from onepass.features.kernels import Kernel

ERROR, MOST, SAMPLE = 1e-3, 10_000, 200  # allowed error of a kernel value, entries of phi, arms that are compared


def quadrature_features(rows: np.ndarray, length_scale: float, nodes: int) -> np.ndarray:
    """Return features phi (n, nodes^d) of rows (n, d) for which phi(x)^T phi(y) approximates the Gaussian kernel.

    `length_scale` is the width of the kernel, and `nodes`, an even number, the number of quadrature nodes per
    dimension. Nodes lie in pairs w and -w, which have the same cosine and opposite sines. One of each pair counts
    twice.
    """
    points, weights = np.polynomial.hermite.hermgauss(nodes)
    dim = rows.shape[1]
    first = [range(nodes // 2, nodes), *(range(nodes) for _ in range(dim - 1))]
    chosen = np.array(list(product(*first)))
    scale = np.sqrt(2.0 * np.prod(weights[chosen] / np.sqrt(np.pi), axis=1))
    angles = rows @ (np.sqrt(2.0) / length_scale * points[chosen]).T
    return np.hstack([scale * np.cos(angles), scale * np.sin(angles)])


def fitting_features(rows: np.ndarray, kernel: RBF) -> np.ndarray:
    """Return quadrature features (n, D) of rows (n, d), with the fewest nodes that approximate the kernel well enough.

    No kernel value may have an error above 0.001. `kernel` is a Gaussian kernel with one length scale. Raises
    ValueError if D would be above 10,000.
    """
    some = rows[:: -(-len(rows) // SAMPLE)]
    exact, length = kernel(some, some), float(np.max(kernel.length_scale))
    nodes = 2
    while nodes ** rows.shape[1] <= MOST:
        phi = quadrature_features(some, length, nodes)
        if np.abs(phi @ phi.T - exact).max() <= ERROR:
            return quadrature_features(rows, length, nodes)
        nodes += 2
    raise ValueError(f"quadrature needs more than {MOST} features for rows of {rows.shape[1]} numbers")


def QFFTS(*, arms: np.ndarray, kernel: Kernel, reg: float, exploration: float | None = None, seed: int = 0) -> Bandit:
    """Return a bandit that does Thompson sampling with Bayesian linear regression on quadrature Fourier features.

    `arms` (A, d) are the arms, `kernel` must be `RBF` with one length scale, and `reg` is the noise variance.
    `exploration` is a factor of the posterior standard deviation in draws; None means sqrt(reg), at which draws have
    exactly the posterior distribution.
    """
    if not isinstance(kernel, RBF) or np.ndim(kernel.length_scale):
        raise ValueError(f"kernel must be RBF with one length scale for quadrature features, got {kernel!r}")
    rule = SingleDrawThompson(reg**0.5 if exploration is None else exploration)
    return GPUCB(fitting_features(arms, kernel), Linear(), reg=reg, exploration=rule, seed=seed)
