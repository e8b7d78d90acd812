"""Nystrom features z(x) = L^-1 k_S(x) with L L^T = K_S (Calandriello et al., section 3).

S is the set of landmarks, k_S(x) holds the kernel of x with each of them, and K_S is their kernel matrix. The features
satisfy z(x)^T z(y) = k_S(x)^T K_S^+ k_S(y). Any root of K_S gives the same inner products. A Cholesky factor costs
least, and can grow by one point. With pivoting it also finds points that add nothing: a point is dropped if the part of
k(x, x) that the other points do not explain is at most 1e-9 of k(x, x). This threshold is relative to the point's own
variance, so points of small k(x, x) are not dropped. At every point of S, z^T z = k(x, x) up to 1e-9 of it.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple, final

import numpy as np
import scipy

from onepass.features.attribution import Attribution, Linear, constant_part, name_terms
from onepass.features.contract import output_dim, transform, transform_row, update_and_transform
from onepass.features.feature_map import FeatureMap
from onepass.features.kernels import JITTER, Kernel, as_kernel, check_positive_definite, check_rows, indefinite_error
from onepass.foundation import check
from onepass.foundation.registry import savable
from onepass.foundation.state import is_abstract, zeros
from onepass.foundation.triangular import solve_lower

IN_SPAN = 1e-9  # of a point's own variance: with less, roundings of the features would pass for new directions
NONE = 1e-290  # a variance that small is none: its square root could not be divided by


def pivot_cholesky(kernel: Kernel, gram: np.ndarray, least: np.ndarray | float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Select points by a Cholesky factorization with pivots of their kernel matrix `gram` (m, m).

    Returns the indices (r,) of the selected points in pivot order, and the Cholesky factor (r, r) of their kernel
    matrix. A point is dropped if the variance that the other points do not explain is at most `least`, one number or
    (m,), or at most 1e-9 of its own variance. Raises ValueError if the matrix is not positive definite. The tolerance
    of that check is relative to the largest variance, because kernel functions may round to it.
    """
    prior = np.diagonal(gram)
    largest = float(prior.max())
    if not largest > 0.0:
        raise indefinite_error(kernel)
    floor = np.maximum(least, IN_SPAN * np.maximum(prior, NONE))
    scale = np.sqrt(floor)
    factor, pivots, rank, _ = scipy.linalg.lapack.dpstrf(gram / np.outer(scale, scale), tol=1.0, lower=1)
    order = pivots - 1
    kept, rest = order[:rank], order[rank:]
    lower = np.tril(factor[:rank, :rank]) * scale[kept, None]
    if rest.size:
        across = solve_lower(lower, gram[np.ix_(kept, rest)])
        missing = np.abs(gram[np.ix_(rest, rest)] - across.T @ across)
        if missing.max() > floor.max() + JITTER * largest * len(gram):
            raise indefinite_error(kernel)
    return kept, lower


class NystromState(NamedTuple):
    """State of Nystrom features: the points S (m, dim), the Cholesky factor L (m, m) as `lower`, and the kernel.

    The kernel may be any Python function, so compiled code cannot use this state.
    """

    points: np.ndarray
    lower: np.ndarray
    kernel: Kernel


@output_dim.register(NystromState)
def output_dim_nystrom(state: NystromState) -> int:
    return len(state.points)


@transform.register(NystromState)
@update_and_transform.register(NystromState)
def transform_nystrom(state: NystromState, rows: np.ndarray) -> np.ndarray:
    gram = state.kernel.gram(state.points, rows.astype(np.float64, copy=False))
    z = solve_lower(state.lower, gram, overwrite=True).T
    return np.ascontiguousarray(z, rows.dtype)


@transform_row.register(NystromState)
def transform_row_nystrom(state: NystromState, x: np.ndarray, z: np.ndarray) -> None:
    z[:] = transform_nystrom(state, x[None])[0]


@final
@savable
class Nystrom(FeatureMap):
    """Nystrom features of a kernel, computed from the similarities of a row to landmarks: z(x)^T z(y) is about k(x, y).

    z(x) = L^-1 k_S(x). k_S(x) has the kernel of x and each landmark, and L is the Cholesky factor of the kernel matrix
    of the landmarks. z(x)^T z(y) = k(x, y) if x or y is a landmark. `size` is the number of landmarks kept, and the
    width of z.

    Parameters
    ----------
    points : array of shape (m, dim)
        Landmarks S: finite rows, at least one.
    kernel : Kernel, scikit-learn kernel or callable
        Kernel, or a function k(X, Y) that maps arrays of shape (n, dim) and (m, dim) to one of shape (n, m). A function
        cannot be saved.
    reduced : bool, default False
        True keeps all points. It is set when a map is loaded, because its points were selected when it was made. By
        default a point is left out if its features are a combination of those of others.

    Raises
    ------
    ValueError
        If points are bad, or the kernel is not positive definite.

    Notes
    -----
    Features are computed in float64. The map is certified: a design's proven error bound, `error_bound()`, also holds
    with this map. A row costs O(size (dim + size)).

    Examples
    --------
    >>> import numpy as np, onepass as op
    >>> grid = np.linspace(0.0, 1.0, 12)[:, None]
    >>> features = op.features.Nystrom(grid, op.RBF(0.2))
    >>> bandit = op.Bandit(op.Ridge(op.Exact(dim=features.size)), features=features)
    >>> bandit.learn(grid, np.sin(6.0 * grid[:, 0]))
    >>> float(grid[bandit.decide(grid).arm, 0]) == 3 / 11
    True
    """

    certified = True

    kernel: Kernel
    output_dim: int
    input_dim: int

    def __init__(self, points: Any, kernel: Any, *, reduced: bool = False) -> None:
        points, self.kernel = check_rows("points", points), as_kernel(kernel)
        if len(points) == 0:
            raise ValueError(f"points must have at least one row, got shape {points.shape}")
        check.choice("reduced", reduced, (False, True))
        self._lower: np.ndarray | None = None
        if not is_abstract():
            check_positive_definite(self.kernel, points)
        if not (reduced or is_abstract()):
            kept, _ = pivot_cholesky(self.kernel, self.kernel.gram(points, points))
            points = points[np.sort(kept)]
        self.points: Any = points.copy()
        if not is_abstract():
            self._lower = self._factor()
        self.output_dim, self.input_dim = self.points.shape
        self.params: dict[str, Any] = {"points": self.points.tolist(), "kernel": self.kernel, "reduced": True}

    @property
    def size(self) -> int:
        """Number of features z of a row."""
        return self.output_dim

    @property
    def lower(self) -> np.ndarray:
        """Cholesky factor L (size, size) of the landmarks' kernel matrix, computed at first use if it is not stored."""
        if self._lower is None:
            self._lower = self._factor()
        return self._lower

    def _factor(self) -> np.ndarray:
        try:
            return scipy.linalg.cholesky(self.kernel.gram(self.points, self.points), lower=True)
        except np.linalg.LinAlgError:
            raise indefinite_error(self.kernel) from None

    def begin(self, dtype: np.dtype) -> NystromState:
        lower = zeros(self.size, self.size) if is_abstract() else self.lower
        return NystromState(points=self.points, lower=lower, kernel=self.kernel)

    def name_features(self, names: tuple[str, ...]) -> Iterable[str]:
        return (f"landmark{j}" for j in range(self.output_dim))

    def attribute(self, state: Any, x: np.ndarray, features: Linear, names: tuple[str, ...]) -> Attribution:
        # by landmark: slopes^T L^-1 k_S(x) = (L^-T slopes)^T k_S(x)
        near = state.kernel.gram(state.points, x[None].astype(np.float64))[:, 0]
        slopes = solve_lower(state.lower, features.slopes.T, transposed=True).T
        rest = constant_part(features, transform_nystrom(state, x[None])[0])
        return name_terms(self.name_features(names), near, Linear(slopes, slopes * near), rest)

    def __repr__(self) -> str:
        return f"Nystrom({self.size} points in {self.input_dim} dimensions, {self.kernel!r})"
