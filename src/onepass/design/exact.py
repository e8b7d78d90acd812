"""The exact design: A^-1 by Sherman-Morrison on its root, one row or one batch at a time.

R is a root of A^-1. A row x changes it by

    R R^T = A^-1:   R <- R - (R v) v^T / (s (s + 1)),   v = R^T x,   s = sqrt(1 + ||v||^2)

The root is updated in place of A^-1 for four reasons. The update cannot lose positive definiteness. It needs no
symmetrization. Thompson sampling needs a root anyway. And it is more precise: for rows of norms 1e-6 to 1e6 its error
was 2e-11 of ||A^-1||, while updates of A^-1 itself erred by 1e-6.

Rounding errors of the root are measured and repaired. Rows are collected in a buffer, and 64 of them are added to A
itself by one matrix product. Then the backward error of A (R R^T x) = x is measured on the last row. If it is above
1e-10 ||A|| ||R|| ||R^T x||, the root is factorized again from A. (The limit is not relative to ||A|| ||R R^T x||,
because after few very long rows the root still represents eigenvalues near reg that A has lost by rounding.)

A row costs O(dim^2), and the state has 2 dim^2 + 64 dim numbers. OFUL (Abbasi-Yadkori et al. 2011) and LinUCB use this
design.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from onepass.design import contract
from onepass.design.design import Design, check_common
from onepass.design.subspace import init_subspace_like
from onepass.design.truncation import Prior, Sums, Truncation, certificate, truncate
from onepass.foundation.cholesky_updates import eigenvalue, spectrum_of_root, update_root, update_root_rows
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import ROUNDINGS, dot, eigh, fill, squared_norms, svd
from onepass.foundation.registry import savable
from onepass.foundation.state import identity, zeros

FEW = 8  # rows of a batch: fewer are cheaper one by one than an SVD
BUFFER = 64  # rows that join A by one product
UNTOUCHED = 8.0  # roundings of 1 / sqrt(reg), squared
DRIFT = 5e5  # roundings of ||A|| ||R|| ||R^T x|| in A (R R^T x) = x from which the root is made anew


class ExactRule(NamedTuple):
    """Truncation rule of the exact design, which never cuts anything; `reg` is the regularization."""

    reg: float


class ExactState(NamedTuple):
    """State of the exact design A = reg I + X^T X.

    - root (dim, dim): R with R R^T = A^-1.
    - gram (dim, dim): A without the rows that are still in the buffer.
    - recent (64, dim), waiting: the buffer, and the number of rows in it.
    - repairs: number of times that the root was computed again from A, because it had drifted.
    - log_det: log det A.
    - factored: 1 once rows were forgotten. Then gram holds F instead, with A = reg I + F^T F (decay.py).
    """

    root: np.ndarray
    gram: np.ndarray
    recent: np.ndarray
    waiting: int
    repairs: int
    log_det: float
    factored: int
    settings: ExactRule


@truncate.for_state(ExactRule)
def truncate_nothing(
    rule: ExactRule, spectrum: np.ndarray, ridge: float, sums: Sums, dim: int, precision: float, eps: float
) -> tuple[np.ndarray, float, Sums]:
    return spectrum.copy(), ridge, sums


@certificate.for_state(ExactRule)
def certificate_exact(rule: ExactRule, sums: Sums, rounded: float) -> float:
    return 0.0


def init_exact(dim: int, reg: float, dtype: np.dtype) -> ExactState:
    """Return the state of an exact design without rows, whose matrix is A = reg I (dim, dim)."""
    return ExactState(
        root=identity(dim, 1.0 / math.sqrt(reg), dtype),
        gram=identity(dim, reg, dtype),
        recent=zeros(BUFFER, dim, dtype=dtype),
        waiting=0,
        repairs=0,
        log_det=dim * math.log(reg),
        factored=0,
        settings=ExactRule(reg=reg),
    )


def is_valid_exact(s: ExactState, dim: int) -> bool:
    """Return True if counters and shapes of an exact design's state agree, for rows of width `dim`."""
    return (
        s.root.shape == s.gram.shape == (dim, dim)
        and s.recent.shape == (BUFFER, dim)
        and 0 <= s.waiting < BUFFER
        and s.repairs >= 0
        and s.factored in (0, 1)
        and s.settings.reg > 0.0
    )


@compiled
def init_exact_like(like: np.ndarray, reg: float) -> ExactState:
    """Return the state of an exact design without rows, for rows of the width and dtype of `like` (n, dim)."""
    dim = like.shape[1]
    gram, root = np.zeros((dim, dim), like.dtype), np.zeros((dim, dim), like.dtype)
    for i in range(dim):
        gram[i, i] = reg
        root[i, i] = 1.0 / np.sqrt(reg)
    return ExactState(
        root=root,
        gram=gram,
        recent=np.zeros((BUFFER, dim), like.dtype),
        waiting=0,
        repairs=0,
        log_det=dim * np.log(reg),
        factored=0,
        settings=ExactRule(reg=reg),
    )


@compiled
def replace_counters(state: ExactState, waiting: int, repairs: int, log_det: float) -> ExactState:
    """Return the state of an exact design with other values of `waiting`, `repairs` and `log_det`.

    The caller has changed the arrays in place. `ExactState` explains the fields.
    """
    return ExactState(
        root=state.root,
        gram=state.gram,
        recent=state.recent,
        waiting=waiting,
        repairs=repairs,
        log_det=log_det,
        factored=state.factored,
        settings=state.settings,
    )


@compiled
def refactorize(gram: np.ndarray, reg: float) -> tuple[np.ndarray, float]:
    """Return R with R R^T = A^-1, and log det A, from the design A = `gram` (dim, dim) itself.

    Eigenvalues below reg, which can only be rounding, are raised to reg.
    """
    values, vectors = eigh(gram)
    log_det = 0.0
    root = np.empty_like(gram)
    for i in range(values.size):
        value = max(values[i], reg)
        log_det += np.log(value)
        for j in range(values.size):
            root[j, i] = vectors[i, j] / np.sqrt(value)
    return root, log_det


@compiled
def stack_factor(factor: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return a triangle T with T^T T = F^T F + X^T X, for a factor F (dim, dim) and rows X."""
    dim = factor.shape[0]
    both = np.empty((dim + rows.shape[0], dim), factor.dtype)
    fill(both[:dim], factor)
    fill(both[dim:], rows)
    _, triangle = np.linalg.qr(both)
    return np.ascontiguousarray(triangle)


@compiled
def flush(state: ExactState) -> ExactState:
    """Add the buffered rows to A, and compute the root again from A if it has become inaccurate."""
    root, gram, log_det, repairs = state.root, state.gram, state.log_det, state.repairs
    if state.waiting > 0 and state.factored > 0:
        fill(gram, stack_factor(gram, state.recent[: state.waiting]))
    elif state.waiting > 0:
        rows = state.recent[: state.waiting]
        step = dot(rows.T, rows)
        x, scale = rows[state.waiting - 1].copy(), 0.0
        for j in range(x.size):
            scale = max(scale, abs(float(x[j])))
        for j in range(x.size):
            x[j] = x[j] / scale if scale > 0.0 else 0.0
        half = dot(x, root)
        y = dot(root, half)
        largest, gap, halves, roots = 0.0, 0.0, 0.0, 0.0
        for i in range(gram.shape[0]):
            total = 0.0
            for j in range(gram.shape[1]):
                gram[i, j] += step[i, j]
            for j in range(gram.shape[1]):
                total += gram[i, j] * y[j]
                largest = max(largest, abs(float(gram[i, j])))
                roots += float(root[i, j]) ** 2
            halves += float(half[i]) ** 2
            gap = max(gap, abs(total - x[i]))
        if not gap <= DRIFT * np.finfo(gram.dtype).eps * (largest * math.sqrt(roots * halves) + 1.0):
            fresh, log_det = refactorize(gram, state.settings.reg)
            fill(root, fresh)
            repairs += 1
    return replace_counters(state, 0, repairs, log_det)


@contract.append.for_state(ExactState)
def append(state: ExactState, row: np.ndarray) -> ExactState:
    gain = np.log1p(update_root(state.root, row))
    recent = state.recent[state.waiting]
    for j in range(row.size):
        recent[j] = row[j]
    waiting = state.waiting + 1
    state = replace_counters(state, waiting, state.repairs, state.log_det + gain)
    return flush(state) if waiting == state.recent.shape[0] else state


@contract.append_rows.for_state(ExactState)
def append_rows(state: ExactState, rows: np.ndarray) -> ExactState:
    """Return the state of the design after more rows were added, by Woodbury's formula in batches of at most 64.

    A batch of few rows is added row by row.
    """
    for start in range(0, rows.shape[0], state.recent.shape[0]):
        batch = rows[start : start + state.recent.shape[0]]
        if batch.shape[0] < FEW:
            for i in range(batch.shape[0]):
                state = contract.append(state, batch[i])
        else:
            state = flush(state)
            log_det = state.log_det + update_root_rows(state.root, batch)
            fill(state.recent[: batch.shape[0]], batch)
            state = flush(replace_counters(state, batch.shape[0], state.repairs, log_det))
    return state


@contract.solve.for_state(ExactState)
def solve(state: ExactState, b: np.ndarray) -> np.ndarray:
    return dot(state.root, dot(b, state.root))


@contract.inverse_quadratic.for_state(ExactState)
def inverse_quadratic(state: ExactState, rows: np.ndarray) -> np.ndarray:
    return squared_norms(dot(rows, state.root))


@contract.inverse_gram.for_state(ExactState)
def inverse_gram(state: ExactState, rows: np.ndarray) -> np.ndarray:
    half = dot(rows, state.root)
    return dot(half, half.T)


@contract.roots.for_state(ExactState)
def roots(state: ExactState, z: np.ndarray) -> np.ndarray:
    return dot(z, state.root.T)


@contract.root.for_state(ExactState)
def root(state: ExactState, z: np.ndarray) -> np.ndarray:
    return dot(state.root, z)


@contract.log_det.for_state(ExactState)
def log_det(state: ExactState) -> float:
    return state.log_det


@contract.error_bound.for_state(ExactState)
def error_bound(state: ExactState) -> float:
    return 0.0


@contract.matrix.for_state(ExactState)
def matrix(state: ExactState) -> np.ndarray:
    rows, held = state.recent[: state.waiting].astype(np.float64), state.gram.astype(np.float64)
    if state.factored > 0:
        held = dot(held.T, held)
        for j in range(held.shape[0]):
            held[j, j] += state.settings.reg
    return held + dot(rows.T, rows)


@contract.spectrum.for_state(ExactState)
def spectrum(state: ExactState) -> tuple[np.ndarray, np.ndarray, float]:
    values, vectors = spectrum_of_root(state.root)
    return values, vectors, state.settings.reg


@contract.merge.for_state(ExactState)
def merge(state: ExactState, other: ExactState) -> ExactState:
    """Return the state for the rows of both states: A + A' - reg I, where A' belongs to `other`.

    The eigenvectors of A', scaled by sqrt(eigenvalue - reg), are appended like any other rows.
    """
    vectors, singular, _ = svd(other.root)
    rows = np.zeros_like(other.root)
    for i in range(singular.size):
        scale = np.sqrt(max(eigenvalue(singular[i]) - other.settings.reg, 0.0))
        for j in range(singular.size):
            rows[i, j] = vectors[j, i] * scale
    return contract.append_rows(state, rows)


@compiled
def is_untouched(state: ExactState) -> bool:
    """Return True if no row was added: the root is still that of A = reg I, to the last digit."""
    first = float(state.root[0, 0]) if state.root.size > 0 else 1.0 / np.sqrt(state.settings.reg)
    for i in range(state.root.shape[0]):
        for j in range(state.root.shape[1]):
            if state.root[i, j] != (state.root[0, 0] if i == j else 0.0):
                return False
    return abs(first * first * state.settings.reg - 1.0) <= UNTOUCHED * np.finfo(state.root.dtype).eps


prior_by_spectrum = contract.prior.dispatch(object)  # the default, for a design with rows


@contract.prior.for_state(ExactState)
def prior(state: ExactState) -> Prior:
    """Return the initial model of every arm: without rows there is no direction, and nothing to decompose."""
    if is_untouched(state):
        return Prior(space=init_subspace_like(state.root, 0, state.settings.reg), sums=contract.sums(state))
    return prior_by_spectrum(state)


@compiled
def increments(root: np.ndarray, inverse: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return rows Y with Y^T Y = A - A_start, for two designs A and A_start, and the lengths of the rows.

    `root` is R with R R^T = A^-1, and `inverse` is R_start^-1. With the SVD R_start^-1 R = P diag(s) Q, A = R_start^-T
    P diag(1 / s^2) P^T R_start^-1. Eigenvalues 1 / s^2 that exceed 1 only by rounding give no row.
    """
    vectors, singular, _ = svd(dot(inverse, root))
    rows, sizes, least = dot(vectors.T, inverse), np.zeros(singular.size), ROUNDINGS * float(np.finfo(root.dtype).eps)
    for i in range(singular.size):
        gain = eigenvalue(singular[i]) - 1.0
        if gain > least:
            sizes[i] = np.sqrt(gain)
        for j in range(rows.shape[1]):
            rows[i, j] *= sizes[i]
    return rows, sizes


@compiled
def invert_root(root: np.ndarray) -> np.ndarray:
    """Return the inverse R^-1 (dim, dim) of a root R of an inverse design, where R R^T = A^-1."""
    vectors, singular, turned = svd(root)
    for i in range(singular.size):
        for j in range(turned.shape[1]):
            turned[i, j] /= singular[i]
    return dot(turned.T, vectors.T)


@contract.subtract_start.for_state(ExactState)
def subtract_start(state: ExactState, start: ExactState) -> ExactState:
    if is_untouched(start):
        return state
    rows, _ = increments(state.root, invert_root(start.root))
    return contract.append_rows(init_exact_like(rows, state.settings.reg), rows)


@contract.add_matrix.for_state(ExactState)
def add_matrix(state: ExactState, change: np.ndarray) -> ExactState:
    state = flush(state)
    fill(state.gram, contract.matrix(state) + change)
    root, log_det = refactorize(state.gram, state.settings.reg)
    fill(state.root, root)
    return ExactState(
        root=state.root,
        gram=state.gram,
        recent=state.recent,
        waiting=0,
        repairs=state.repairs,
        log_det=log_det,
        factored=0,
        settings=state.settings,
    )


@savable
class Exact(Design):
    """Exact design A = reg I + X^T X, where X has all rows appended so far.

    Parameters
    ----------
    dim : int
        Width d of a row, at least 1.
    reg : float, default 1.0
        Ridge penalty, above 0, in the unit of the squared length ||x||^2 of a row.
    dtype : {"float64", "float32"}, default "float64"
        Dtype of all arrays.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Notes
    -----
    The design is exact, so its error bound is 0. A row costs O(dim^2).

    Examples
    --------
    >>> import onepass as op
    >>> design = op.Exact(dim=2, reg=0.5).append([[1.0, 0.0], [1.0, 0.0]])
    >>> design.solve([1.0, 1.0]).round(12).tolist()
    [0.4, 2.0]
    """

    def __init__(self, *, dim: int, reg: float = 1.0, dtype: str = "float64") -> None:
        self.params: dict[str, Any] = check_common(dim, reg, dtype)

    def begin(self) -> ExactState:
        return init_exact(self.dim, self.params["reg"], self.dtype)

    def truncation(self) -> Truncation:
        """Return a truncation that never applies, since an exact design drops nothing.

        Returns
        -------
        Truncation
            The rule, and the numbers of directions at which it applies.
        """
        return Truncation(rule=self.abstract_state.settings, hold=self.dim, limit=self.dim + 1)

    def consistent(self, state: ExactState) -> bool:
        """Return True if settings, counters and shapes of a loaded state fit together.

        Parameters
        ----------
        state : NamedTuple
            State that a file holds.

        Returns
        -------
        bool
            False if the file is damaged.
        """
        return state.settings == self.abstract_state.settings and is_valid_exact(state, self.dim)
