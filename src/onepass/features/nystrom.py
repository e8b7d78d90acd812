"""Nystrom features: z(x) = L^-1 k_S(x) with L L^T = K_S, so that z(x)^T z(y) = k_S(x)^T K_S^+ k_S(y) (Calandriello et
al., section 3).

Any root of K_S gives the same inner products; a Cholesky factor costs least, can grow by a point, and, pivoted, finds
the points that add nothing: a point of which the others leave at most 1e-9 of its own k(x, x) is dropped. Own, not the
largest, so that points of small k(x, x) stay: z^T z = k(x, x) at every point of S, but for 1e-9 of it.
"""

from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.linalg.lapack import dpstrf

from onepass.features.kernels import JITTER, Kernel, as_kernel, indefinite, probed, rows_of
from onepass.foundation.registry import plain, savable

IN_SPAN = 1e-9  # of a point's own variance: with less, roundings of the features would pass for new directions
NONE = 1e-290  # a variance that small is none: its square root could not be divided by


def pivoted(kernel: Kernel, gram: np.ndarray, least: np.ndarray | float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Order of the points kept (r,), and L (r, r), of K_S (m, m). ValueError where K_S is not positive definite.

    A point is dropped when what the others leave of its variance is at most `least`, (m,) or one number, or IN_SPAN of
    its own variance. What counts as indefinite is relative to the largest: functions may round to that.
    """
    prior = np.diagonal(gram)
    largest = float(prior.max())
    if not largest > 0.0:
        raise indefinite(kernel)
    floor = np.maximum(least, IN_SPAN * np.maximum(prior, NONE))
    scale = np.sqrt(floor)
    factor, pivots, rank, _ = dpstrf(gram / np.outer(scale, scale), tol=1.0, lower=1)
    order = pivots - 1
    kept, rest = order[:rank], order[rank:]
    lower = np.tril(factor[:rank, :rank]) * scale[kept, None]
    if rest.size:
        across = solve_triangular(lower, gram[np.ix_(kept, rest)], lower=True, check_finite=False)
        missing = np.abs(gram[np.ix_(rest, rest)] - across.T @ across)
        if missing.max() > floor.max() + JITTER * largest * len(gram):
            raise indefinite(kernel)
    return kept, lower


@savable
class Nystrom:
    """A feature map for bandits with a shared model: z(x) = L^-1 k_S(x), in as many dimensions as S has directions.

    points S (m, dim); kernel: of onepass or scikit-learn, or a function k(X, Y). `size`, the dimension of z and so of
    the design, is the number of points that are not in the span of others; reduced: there are none such, keep them all.
    On a sketched design of l directions an arm costs O(m^2 + m l) a round. ValueError for bad points, or a kernel that
    is not positive definite.

    >>> import numpy as np, onepass as op
    >>> grid = np.linspace(0.0, 1.0, 12)[:, None]
    >>> features = op.Nystrom(grid, op.RBF(0.2))
    >>> bandit = op.Bandit(op.Ridge(op.Exact(dim=features.size)), features=features)
    >>> bandit.learn(grid, np.sin(6.0 * grid[:, 0]))
    >>> float(grid[bandit.decide(grid).arm, 0]) == 3 / 11
    True
    """

    def __init__(self, points: Any, kernel: Any, *, reduced: bool = False):
        points, self.kernel = rows_of("points", points), as_kernel(kernel)
        if len(points) == 0:
            raise ValueError(f"points must have at least one row, got shape {points.shape}")
        probed(self.kernel, points)
        if not reduced:
            kept, _ = pivoted(self.kernel, self.kernel.gram(points, points))
            points = points[np.sort(kept)]
        self.points = points.copy()
        try:
            self.lower = cholesky(self.kernel.gram(self.points, self.points), lower=True)
        except np.linalg.LinAlgError:
            raise indefinite(self.kernel) from None

    @property
    def dim(self) -> int:
        """Width of a row x."""
        return self.points.shape[1]

    @property
    def size(self) -> int:
        """Width of z."""
        return self.points.shape[0]

    def transform(self, rows: Any) -> np.ndarray:
        """z for every row, shape (n, dim) -> (n, size). Cost O(n size (dim + size))."""
        rows = rows_of("rows", rows)
        if rows.shape[1] != self.dim:
            raise ValueError(f"rows must have {self.dim} features, got shape {rows.shape}")
        gram = self.kernel.gram(self.points, rows)
        return solve_triangular(self.lower, gram, lower=True, overwrite_b=True, check_finite=False).T

    def params(self) -> dict[str, Any]:
        """Points and kernel as plain data."""
        return {"points": self.points.tolist(), "kernel": plain(self.kernel), "reduced": True}

    def __repr__(self) -> str:
        return f"Nystrom({self.size} points in {self.dim} dimensions, {self.kernel!r})"
