"""What the suites have in common: regularizations, rows, and how close is close."""

from collections.abc import Iterator

import numpy as np

REGS = (0.37, 4.0)  # never only 1: a wrong place for reg cannot be seen there


def rows_of_all_kinds(dim: int, count: int, seed: int = 0) -> Iterator[tuple[str, np.ndarray]]:
    """(name, rows (count, dim)): random, unit, low rank, duplicated, with zeros, badly scaled (norms 1e-6 to 1e6)."""
    rng = np.random.default_rng(seed)
    random = rng.standard_normal((count, dim))
    yield "random", random
    yield "unit", random / np.linalg.norm(random, axis=1, keepdims=True)
    yield "low rank", rng.standard_normal((count, 2)) @ rng.standard_normal((2, dim))
    yield "duplicated", random[rng.integers(0, 3, count)]
    yield "zeros", random * (rng.random((count, 1)) < 0.3)
    yield "badly scaled", random * 10.0 ** rng.uniform(-6, 6, (count, 1))


def close(what: str, got: np.ndarray, want: np.ndarray, tolerance: float, scale: float | None = None) -> None:
    """AssertionError unless `got` is `want` to a share of `scale` (default: of the largest entry)."""
    size = np.abs(want).max(initial=0.0) if scale is None else scale
    gap = np.abs(np.asarray(got) - want).max(initial=0.0)
    assert gap <= tolerance * size, f"{what}: off by {gap:.3g}, allowed {tolerance:.0e} of {size:.3g}"


def summary(member: object, *claims: str) -> str:
    """The sentence with which a suite ends that has found nothing wrong."""
    return f"{member!r} keeps the contract: {'; '.join(claims)}."
