"""Rows as they come: dense ones as they are, sparse ones in CSR form and made dense by blocks, never all at once."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from onepass.foundation import check

AT_ONCE = 4096  # rows between which Ctrl-C is heard
BLOCK = 1 << 20  # bytes of sparse rows that are dense at the same time


def checked(name: str, X: Any, width: int | None) -> Any:
    """X (n, dim) in float64, dense or as a CSR array; ValueError unless all of it is finite and of this width."""
    rows: Any
    if hasattr(X, "toarray"):
        rows = _compressed(name, X)
        if width is not None and rows.shape[1] != width:
            raise ValueError(f"{name} must have rows of length {width}, got shape {rows.shape}")
    else:
        rows = check.array(name, X, np.dtype(np.float64), (2,), width)
    if rows.shape[1] == 0:
        raise ValueError(f"{name} must have at least one feature, got shape {rows.shape}")
    if isinstance(rows, np.ndarray):
        return check.finite_rows(name, rows)
    with np.errstate(over="ignore", invalid="ignore"):
        at = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        norms = np.sqrt(np.bincount(at, weights=rows.data * rows.data, minlength=rows.shape[0]))
    check.finite_rows(name, norms[:, None])
    return rows


def _compressed(name: str, X: Any) -> Any:
    """Any scipy sparse matrix (n, dim) as a CSR array whose indices fit; it shares what it can with X."""
    from scipy.sparse import csr_array  # whoever gives a sparse matrix has imported it

    if len(X.shape) != 2:
        raise ValueError(f"{name} must have 2 dimension(s), got shape {X.shape}")
    if X.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be an array of real numbers, got dtype {X.dtype}; convert it first")
    rows = csr_array(X)
    try:
        rows.check_format(full_check=True)
    except ValueError as trouble:
        raise ValueError(f"{name} must be a valid CSR array, but {trouble}") from None
    rows = rows.astype(np.float64, copy=False)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def blocks(rows: Any) -> Iterator[tuple[slice, np.ndarray]]:
    """Places and dense rows, in order, of what `checked` returned."""
    count, dim = rows.shape
    step = AT_ONCE if isinstance(rows, np.ndarray) else min(max(BLOCK // (8 * dim), 1), AT_ONCE)
    for start in range(0, count, step):
        place = slice(start, min(start + step, count))
        yield place, rows[place] if isinstance(rows, np.ndarray) else rows[place].toarray()
