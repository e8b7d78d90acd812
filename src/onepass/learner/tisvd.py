"""TISVD (Wen, Zhang et al., algorithm 2): a truncated singular value decomposition that follows low-rank updates.

A matrix M of known decomposition changes by L R^T:

    M' = M + L R^T,  M = U S V^T of rank k;  P, Q: orthonormal bases of (I - U U^T) L and (I - V V^T) R
    H = [S 0; 0 0] + [U P]^T L R^T [V Q],  its leading k singular triplets U~, S', V~:   U' = [U P] U~,  V' = [V Q] V~

The update is exact before the truncation to k, for any M and any update. `onepass.foundation.linalg.tisvd`, which FORKS
uses, is the case of a symmetric positive semi-definite M and L R^T = a b^T + b a^T.
"""

from typing import Any, Self

import numpy as np

from onepass.foundation import check
from onepass.foundation.check import quote

IN_SPAN = 1e-12  # of the length of a column: less outside a span is rounding


class TISVD:
    """Truncated singular value decomposition of a matrix that changes by matrices of low rank.

    Parameters
    ----------
    rank : int
        Number k of singular values and vectors to keep, at least 1.
    matrix : array of shape (n, m), optional
        Matrix at the start, decomposed once. Defaults to zeros; the first update then gives the shape.

    Attributes
    ----------
    rank : int
        Largest number of singular values that are kept.

    Raises
    ------
    ValueError
        If the rank is below 1, or the matrix has the wrong shape or a number that is not finite.

    Notes
    -----
    For a matrix of shape (n, m), an update of rank c costs O((n + m)(k + c)^2 + (k + c)^3). The memory is k (n + m + 1)
    numbers.

    References
    ----------
    Wen, Zhang et al., *Fast Second-Order Online Kernel Learning Through Incremental Matrix Sketching and
    Decomposition*, section 3.3 and algorithm 2.

    Examples
    --------
    >>> import numpy as np, onepass as op
    >>> decomposition = op.learner.TISVD(rank=2, matrix=np.diag([3.0, 2.0, 1.0]))
    >>> decomposition.update([0.0, 0.0, 4.0], [0.0, 0.0, 1.0]).values.round(12).tolist()
    [4.0, 3.0]
    """

    def __init__(self, rank: int, matrix: Any = None) -> None:
        self.rank = check.integer("rank", rank, 1)
        self._left: np.ndarray | None = None
        if matrix is not None:
            checked = check.finite_rows("matrix", check.array("matrix", matrix, np.dtype(np.float64), (2,)))
            left, values, right = np.linalg.svd(checked, full_matrices=False)
            self._left, self._values, self._right = left[:, : self.rank], values[: self.rank], right[: self.rank].T

    @property
    def left(self) -> np.ndarray:
        """Left singular vectors U as columns, shape (n, r), r at most `rank`."""
        return self._start(0, 0)[0]

    @property
    def values(self) -> np.ndarray:
        """Singular values, descending, shape (r,)."""
        return self._values if self._left is not None else np.empty(0)

    @property
    def right(self) -> np.ndarray:
        """Right singular vectors V as columns, shape (m, r)."""
        return self._start(0, 0)[1]

    def approximation(self) -> np.ndarray:
        """Return U S V^T, the present approximation of the matrix, of shape (n, m).

        Returns
        -------
        array of shape (n, m)
            Matrix of rank at most `rank`; of shape (0, 0) before the first update.
        """
        return (self.left * self.values) @ self.right.T

    def update(self, left: Any, right: Any) -> Self:
        """Add left right^T to the matrix, and truncate to `rank`.

        Parameters
        ----------
        left : array of shape (n, c) or (n,)
            Left factor of the change.
        right : array of shape (m, c) or (m,)
            Right factor of the change.

        Returns
        -------
        TISVD
            The decomposition itself.

        Raises
        ------
        ValueError
            If shapes do not fit, or a number is not finite. Nothing changes then.
        """
        a, b = _check_factor("left", left), _check_factor("right", right)
        u, v = self._start(len(a), len(b))
        if len(a) != len(u) or len(b) != len(v) or a.shape[1] != b.shape[1]:
            raise ValueError(
                f"left and right must have {len(u)} and {len(v)} rows and equally many columns, got shapes "
                f"{quote(a.shape)} and {quote(b.shape)}"
            )
        (u, first), (v, second) = _extend(u, a), _extend(v, b)
        core = first @ second.T
        size = self.values.size
        core[:size, :size] += np.diag(self.values)
        inner, values, outer = np.linalg.svd(core, full_matrices=False)
        self._left, self._values, self._right = u @ inner[:, : self.rank], values[: self.rank], v @ outer[: self.rank].T
        return self

    def _start(self, n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the present U and V, or those of a zero matrix with n rows and m columns before the first update."""
        return (np.empty((n, 0)), np.empty((m, 0))) if self._left is None else (self._left, self._right)

    def __repr__(self) -> str:
        return f"TISVD(rank={self.rank})"


def _check_factor(name: str, value: Any) -> np.ndarray:
    found = check.array(name, value, np.dtype(np.float64), (1, 2))
    return check.finite_rows(name, found.reshape(-1, 1) if found.ndim == 1 else found)


def _extend(basis: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return an orthonormal basis (n, r') of `basis` (n, r) and `columns` (n, m), and the columns in it, (r', m).

    The first r columns of the result are `basis`; new directions are added only for columns outside its span.
    """
    inside = basis.T @ columns
    residual = columns - basis @ inside
    again = basis.T @ residual
    residual -= basis @ again
    lengths = np.sqrt((columns**2).sum(axis=0))
    scale = np.where(lengths > 0.0, lengths, 1.0)
    found, singular, _ = np.linalg.svd(residual / scale, full_matrices=False)
    found = found[:, singular > IN_SPAN]
    found -= basis @ (basis.T @ found)
    found, _ = np.linalg.qr(found)
    return np.hstack([basis, found]), np.vstack([inside + again, found.T @ residual])
