"""Parts that all suites share: values of reg, rows, comparisons and the final sentence."""

from collections.abc import Iterator

import numpy as np

REGS = (0.37, 4.0)  # never only 1, where a misplaced reg would not be noticed


def rows_of_all_kinds(dim: int, n_rows: int, seed: int = 0) -> Iterator[tuple[str, np.ndarray]]:
    """Yield kinds of rows that a component must handle.

    The kinds are: random, unit length, low rank, duplicated, with zeros, and badly scaled (norms 1e-6 to 1e6).

    Parameters
    ----------
    dim : int
        Number of columns, at least 1.
    n_rows : int
        Number of rows of each kind, at least 3.
    seed : int, default 0
        Seed of the random generator, at least 0.

    Yields
    ------
    tuple of (str, array of shape (n_rows, dim))
        Name of the kind, and its rows.
    """
    rng = np.random.default_rng(seed)
    random = rng.standard_normal((n_rows, dim))
    yield "random", random
    yield "unit", random / np.linalg.norm(random, axis=1, keepdims=True)
    yield "low rank", rng.standard_normal((n_rows, 2)) @ rng.standard_normal((2, dim))
    yield "duplicated", random[rng.integers(0, 3, n_rows)]
    yield "zeros", random * (rng.random((n_rows, 1)) < 0.3)
    yield "badly scaled", random * 10.0 ** rng.uniform(-6, 6, (n_rows, 1))


def assert_close(
    name: str, actual: np.ndarray, expected: np.ndarray, tolerance: float, scale: float | None = None
) -> None:
    """Assert that `actual` equals `expected` up to `tolerance` times `scale`, by default the largest expected entry.

    `name` names the compared numbers in the message.
    """
    size = np.abs(expected).max(initial=0.0) if scale is None else scale
    gap = np.abs(np.asarray(actual) - expected).max(initial=0.0)
    assert gap <= tolerance * size, f"{name}: off by {gap:.3g}, allowed {tolerance:.0e} of {size:.3g}"


def summary(member: object, *claims: str) -> str:
    """Return the sentence that a conformance suite returns if it has found no violation in `member`.

    `claims` are the clauses that say what was checked.
    """
    return f"{member!r} keeps the contract: {'; '.join(claims)}."
