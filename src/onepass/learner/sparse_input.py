"""Input rows: dense rows stay as they are; sparse rows become CSR arrays, and are made dense in blocks."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from onepass.foundation import check

AT_ONCE = 4096  # rows between which Ctrl-C is heard
BLOCK = 1 << 20  # bytes of sparse rows that are dense at the same time
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # SplitMix64: 2^64 over the golden ratio, and its two factors and three shifts
MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
SHIFTS, LAST = (np.uint64(30), np.uint64(27)), np.uint64(31)


def check_rows(name: str, X: Any, width: int | None) -> Any:
    """Return X (n, dim) in float64, dense or as a CSR array.

    Raises ValueError unless all numbers are finite, `dim` is at least 1, and `dim` equals `width`; None allows any
    width. `name` is the name of X in messages.
    """
    rows: Any
    if hasattr(X, "toarray"):
        rows = _to_csr(name, X)
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


def _to_csr(name: str, X: Any) -> Any:
    """Return a scipy sparse matrix (n, dim) as a CSR array with valid indices, which shares memory with X if it can."""
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


def split_rows(rows: Any, columns: int) -> Iterator[tuple[slice, Any]]:
    """Yield consecutive parts of rows, as pairs of their slice and the rows.

    Rows are those that `check_rows` returned. Parts of sparse rows are short enough to fit in memory as dense rows with
    this many columns.
    """
    count = rows.shape[0]
    step = AT_ONCE if isinstance(rows, np.ndarray) else min(max(BLOCK // (8 * columns), 1), AT_ONCE)
    for start in range(0, count, step):
        place = slice(start, min(start + step, count))
        yield place, rows[place]


def to_dense(rows: Any) -> np.ndarray:
    """Return rows, dense or as a CSR array, as a dense array (n, dim)."""
    return rows if isinstance(rows, np.ndarray) else np.asarray(rows.toarray())


def _hash_columns(places: np.ndarray, columns: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns (m,), below `columns`, to which a count sketch adds the columns `places` (m,), and signs (m,).

    A column is added with its sign, -1 or 1.

    Both are hashes with `seed`, by the finalizer of SplitMix64 (Steele, Lea and Flood 2014).
    """
    with np.errstate(over="ignore"):
        z = (places.astype(np.uint64) + np.uint64(1)) * GOLDEN + np.uint64(seed) * MIX[0]
        for shift, factor in zip(SHIFTS, MIX, strict=True):
            z = (z ^ (z >> shift)) * factor
        z ^= z >> LAST
    return (z % np.uint64(columns)).astype(np.int64), np.where(z >> np.uint64(63), -1.0, 1.0)


def count_sketch(rows: Any, columns: int, seed: int) -> np.ndarray:
    """Return the count sketch (n, columns) of rows (n, dim).

    Each column of the rows is added to one column of the result, or subtracted from it. Which one, and the sign, are
    hashes with `seed`. Cost: O(non-zeros) for sparse rows.
    """
    count, dim = rows.shape
    out = np.zeros((count, columns))
    if isinstance(rows, np.ndarray):
        place, sign = _hash_columns(np.arange(dim), columns, seed)
        np.add.at(out.T, place, (rows * sign).T)
    else:
        place, sign = _hash_columns(rows.indices, columns, seed)
        at = np.repeat(np.arange(count), np.diff(rows.indptr))
        np.add.at(out, (at, place), rows.data * sign)
    return out
