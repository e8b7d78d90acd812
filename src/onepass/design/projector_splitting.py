"""Projector splitting (PSI-LinUCB, Shustova et al.): a low-rank root of the inverse.

A dynamical low-rank integrator keeps the root up to date.

    L^-1 = (I - U V^T) / sqrt(ridge),   A^-1 = L^-T L^-1;   one row x, with y = L^-1 x, s = sqrt(1 + ||y||^2):
    U gains the column y / (s (s + 1)),   V gains (I - V U^T) y                               (Shustova et al. eq.
    16-18, 20-21)

Columns are appended until there are more than 2 rank of them (more than rank at the end of a batch). Then U V^T is
compressed to rank columns: by a thin SVD while that loses nothing, afterwards by the splitting step (Shustova et al.
algorithm 3). The design is exact while rank(X) <= rank.

This differs from Shustova et al. in the following:

- Their algorithm 2 throws away the batch on which the first compression happens. Here its increment is added first.
- Their theorems misprint L_0. It is L_0^-1 = I / sqrt(reg).
- Their Cholesky factor of a batch inflates the rank when rows repeat. Here the factor is the symmetric root, without
  null directions of the batch's Gram matrix, unless factor="cholesky".
- Batches of more than rank rows are cut into pieces of rank rows.
- Their algorithm 6 takes a splitting step at every row once there was an SVD. This is schedule="row". With
  schedule="batch" one step is taken for all columns beyond rank.

reg must be of the order of the spectrum. The singular values of U V^T are 1 - sqrt(reg / (reg + s)) for the eigenvalues
s of X^T X. All are near 1 once s >> reg, and the truncation then keeps arbitrary directions. compensate=True orders
directions by s instead. The trace of X^T X is known exactly, so the mass outside the kept directions is put back as a
multiple of I: ridge = reg + (trace - kept) / (dim - rank).

The error bound adds up the truncated singular values of U V^T that are below 5,000 rounding units. Once a larger one
was truncated, the bound is infinite. Models per arm truncate by the spectrum of A, with or without compensation,
because their root is symmetric (arena.py).

A row costs O(dim rank), amortized. The memory is 4 rank dim numbers.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.design import contract
from onepass.design.design import Design, check_common
from onepass.design.truncation import (
    UNKNOWN,
    Sums,
    Truncation,
    add_dust,
    add_mass,
    certificate,
    is_valid_sums,
    saturating_add,
    truncate,
)
from onepass.foundation import check
from onepass.foundation.cholesky_updates import eigenvalue
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import (
    NEGLIGIBLE,
    dot,
    fill,
    inverse_root_error,
    orthonormal,
    semidefinite_root,
    squared_norms,
    svd,
)
from onepass.foundation.registry import savable
from onepass.foundation.state import zeros

COMPRESSED = 10.0  # roundings of U V^T in a compression: measured 1 to 5 per compression at rank 2 to 12
TOLERANCE = 5e3  # roundings below which a direction of U V^T that is cut counts as nothing


class ProjectorSplittingRule(NamedTuple):
    """Truncation rule and settings of projector splitting.

    `rank` is the number of directions kept. `compensate` is True if the eigenvalues cut off are added to the ridge.
    `reg` is the regularization. `cholesky` is True if the factor of a batch is triangular instead of symmetric, and
    `every_row` if a splitting step is taken at every row.
    """

    rank: int
    compensate: bool
    reg: float
    cholesky: bool
    every_row: bool


class ProjectorSplittingState(NamedTuple):
    """State of projector splitting: A^-1 = M^T M with M = (I - U V^T) / sqrt(ridge).

    `left` and `right` (2 * rank, dim) hold the columns of U and V as rows; the first `used` of them count. `ridge` is
    the eigenvalue of A outside their span. In `sums` (`Sums`), `shed` is 0 as long as truncations dropped only rounding
    errors, and above 0 afterwards. `dust` bounds the change of A by the truncations of rounding errors.
    """

    left: np.ndarray
    right: np.ndarray
    used: int
    ridge: float
    sums: Sums
    settings: ProjectorSplittingRule


@truncate.for_state(ProjectorSplittingRule)
def truncate_to_rank(
    rule: ProjectorSplittingRule, spectrum: np.ndarray, ridge: float, sums: Sums, dim: int, precision: float, eps: float
) -> tuple[np.ndarray, float, Sums]:
    """Return the `rank` largest eigenvalues of a sketch (k,), its new ridge, and the new totals of what was cut off.

    `spectrum` (n,) holds the eigenvalues without the ridge, descending, and `dim` is the width of a row. `sums` are the
    totals before, `eps` is the machine epsilon, and `precision` is not used. With compensation, what was cut off is
    spread over all other directions by raising the ridge.
    """
    keep, held, lost = min(rule.rank, spectrum.size), 0.0, 0.0
    for i in range(keep):
        held += spectrum[i] + ridge - rule.reg
    for i in range(keep, spectrum.size):
        lost += spectrum[i]
    shed, dust = sums.shed, sums.dust
    if shed == 0.0 and shrinkage(lost, ridge) <= TOLERANCE * eps:
        dust = saturating_add(dust, lost)
    else:
        shed = saturating_add(shed, lost)
    fresh = rule.reg
    if rule.compensate and shed > 0.0 and dim > keep:
        fresh += max(sums.mass - held, 0.0) / (dim - keep)
    kept = np.empty(keep)
    for i in range(keep):
        kept[i] = max(spectrum[i] + ridge - fresh, 0.0)
    return kept, fresh, Sums(mass=sums.mass, shed=shed, weighted=sums.weighted, dust=dust)


@compiled
def shrinkage(value: float, ridge: float) -> float:
    """Return the singular value 1 - sqrt(ridge / (ridge + value)) of U V^T for an eigenvalue `value` of A - ridge I.

    U and V are the factors of the sketch, A^-1 = M^T M with M = (I - U V^T) / sqrt(ridge).
    """
    return 1.0 - np.sqrt(ridge / (ridge + value))


@compiled
def with_columns(state: ProjectorSplittingState, used: int, ridge: float, sums: Sums) -> ProjectorSplittingState:
    """Return the state, whose columns were written in place, with the fields `used`, `ridge` and `sums` replaced."""
    return ProjectorSplittingState(
        left=state.left, right=state.right, used=used, ridge=ridge, sums=sums, settings=state.settings
    )


@compiled
def whiten(state: ProjectorSplittingState, rows: np.ndarray) -> np.ndarray:
    """Return L^-1 x for every row x, shape (n, dim) -> (n, dim), where L L^T is the design A."""
    out = dot(dot(rows, state.right[: state.used].T), state.left[: state.used])
    scale = 1.0 / np.sqrt(state.ridge)
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            out[i, j] = (rows[i, j] - out[i, j]) * scale
    return out


@compiled
def unwhiten(state: ProjectorSplittingState, z: np.ndarray) -> np.ndarray:
    """Return L^-T z, shape (dim,) -> (dim,), where L L^T is the design A."""
    out = dot(dot(state.left[: state.used], z), state.right[: state.used])
    scale = 1.0 / np.sqrt(state.ridge)
    for j in range(z.size):
        out[j] = (z[j] - out[j]) * scale
    return out


@compiled
def join(state: ProjectorSplittingState, q: np.ndarray, scaled: np.ndarray, mass: float) -> ProjectorSplittingState:
    """Return the sketch with more columns in its factors U and V, which change U V^T by scaled^T q (I - U V^T).

    `q` and `scaled` (m, dim) hold rows, and `mass` is the sum of the squared norms of the batch's rows.
    """
    left, right, used = state.left, state.right, state.used
    seen = dot(dot(q, left[:used].T), right[:used])
    for i in range(q.shape[0]):
        for j in range(q.shape[1]):
            right[used + i, j] = q[i, j] - seen[i, j]
            left[used + i, j] = scaled[i, j]
    return with_columns(state, used + q.shape[0], state.ridge, add_mass(state.sums, mass))


@compiled
def integrate(state: ProjectorSplittingState) -> None:
    """Do one splitting step, which reduces the factors U and V of the sketch to their first `rank` columns, in place.

    The other columns are the increment, which the step adds to the first ones (Shustova et al. algorithm 3).
    """
    rank, used = state.settings.rank, state.used
    left, right = state.left[:rank], state.right[:rank]
    new_left, new_right = state.left[rank:used], state.right[rank:used]
    seen = dot(new_right, right.T)
    step = dot(seen.T, new_left)
    for i in range(rank):
        for j in range(left.shape[1]):
            step[i, j] += left[i, j]
    u, s = orthonormal(step)
    inner = dot(new_left, u.T)
    back = dot(inner.T, seen)
    for i in range(rank):
        for j in range(rank):
            back[i, j] = s[i, j] - back[i, j]
    first, second = dot(back, right), dot(inner.T, new_right)
    for i in range(rank):
        for j in range(left.shape[1]):
            first[i, j] += second[i, j]
    v, t = orthonormal(first)
    fill(left, dot(t, u))
    fill(right, v)


@compiled
def truncate_factors(state: ProjectorSplittingState) -> float:
    """Truncate the product U V^T of the sketch's factors to `rank` by a thin SVD, in place.

    Returns the largest singular value that was cut.
    """
    rank, used = state.settings.rank, state.used
    u, s = orthonormal(state.left[:used])
    v, t = orthonormal(state.right[:used])
    p, singular, q = svd(dot(s, t.T))
    left, right = dot(p.T, u), dot(q, v)
    for i in range(rank):
        for j in range(left.shape[1]):
            state.left[i, j] = left[i, j] * singular[i]
            state.right[i, j] = right[i, j]
    return float(singular[rank]) if rank < singular.size else 0.0


@compiled
def symmetric_factor(whitened: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return Q (k, dim) and C Q (k, dim) of a batch of rows, for a symmetric C (k, k).

    The batch changes the root R of A^-1 to R - R Q^T C Q. `whitened` is Y = B R (n, dim), with the rows of the batch B.
    With the SVD Y = P diag(s) Q, C = diag(1 - 1 / sqrt(1 + s^2)). Directions with s = 0 are left out.
    """
    _, singular, q = svd(whitened)
    kept, scaled = 0, q.copy()
    for i in range(singular.size):
        s = np.sqrt(1.0 + float(singular[i]) ** 2)
        scale = float(singular[i]) ** 2 / (s * (s + 1.0))
        for j in range(q.shape[1]):
            scaled[i, j] *= scale
        if singular[i] > NEGLIGIBLE * np.finfo(whitened.dtype).eps * singular[0]:
            kept += 1
    return q[:kept], scaled[:kept]


@compiled
def triangular_factor(whitened: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return Q (k, dim) and C^T Q (k, dim) of a batch of rows, for a triangular C (k, k).

    This is algorithm 4 of Shustova et al. The batch changes the root R of A^-1 to R - R Q^T C^T Q. `whitened` is Y = B
    R (n, dim), with the rows of the batch B. Y^T = Q^T R, where the rows of Q are orthonormal. M is the lower Cholesky
    factor of I + R R^T = M M^T, and C = (M - I) M^-1 = I - M^-1.
    """
    q, r = orthonormal(whitened)
    size = q.shape[0]
    gram = dot(r, r.T).astype(np.float64)
    for i in range(size):
        gram[i, i] += 1.0
    m, inverse = semidefinite_root(gram), np.zeros((size, size))
    for j in range(size):  # M inverse = I, by forward substitution
        inverse[j, j] = 1.0 / m[j, j]
        for i in range(j + 1, size):
            total = 0.0
            for k in range(j, i):
                total -= m[i, k] * inverse[k, j]
            inverse[i, j] = total / m[i, i]
    core = np.zeros((size, size), whitened.dtype)  # C^T, C = I - M^-1
    for i in range(size):
        for j in range(size):
            core[j, i] = (1.0 if i == j else 0.0) - inverse[i, j]
    return q, dot(core, q)


@compiled
def eps_of(state: ProjectorSplittingState) -> float:
    """Return the machine epsilon of the data type of the state's arrays."""
    return float(np.finfo(state.left.dtype).eps)


@compiled
def movement_bound(state: ProjectorSplittingState, lost: float) -> float:
    """Return a bound on how far the design A moves if the product U V^T loses a small singular value `lost`.

    U and V are the factors of A^-1 = M^T M, M = (I - U V^T) / sqrt(ridge). Let p and q be the singular vectors. A^-1
    changes by lost (p q^T + q p^T) / ridge, where A p and A q have norms of at most sqrt(ridge ||A||), so A changes by
    2 lost ||A||. Rounding of U V^T need not point away from the large eigenvalues v of A, so eps there counts 2 eps
    sqrt(v / ridge) ||A||.
    """
    size = state.ridge + state.sums.mass
    return 2.0 * (lost + COMPRESSED * eps_of(state) * np.sqrt(size / state.settings.reg)) * size


@compiled
def sums_after_truncation(state: ProjectorSplittingState, lost: float) -> Sums:
    """Return the totals of what was cut off, after a singular value `lost` of the product U V^T was truncated.

    It is added to `dust` if it is only a rounding error, and otherwise to `shed` (`Sums` in truncation.py).
    """
    sums = state.sums
    if sums.shed == 0.0 and lost <= TOLERANCE * eps_of(state):
        return add_dust(sums, movement_bound(state, lost))
    shed = saturating_add(sums.shed, eigenvalue(1.0 - lost) * state.ridge - state.ridge)
    return Sums(
        mass=sums.mass, shed=shed, weighted=sums.weighted, dust=saturating_add(sums.dust, movement_bound(state, lost))
    )


@compiled
def compensate_cut(state: ProjectorSplittingState) -> ProjectorSplittingState:
    """Return the sketch with its eigenvalues truncated; the factors U and V are computed from the kept eigenvalues.

    U and V span the same space: they did after the last compression, and a row adds y to U and y - V U^T y to V.
    """
    rule, used, dim = state.settings, state.used, state.left.shape[1]
    q, _ = orthonormal(state.right[:used])
    core = dot(dot(q, state.left[:used].T), dot(state.right[:used], q.T))
    for i in range(core.shape[0]):
        for j in range(core.shape[1]):
            core[i, j] = (1.0 if i == j else 0.0) - core[i, j]
    _, singular, vectors = svd(core)
    last = singular.size - 1  # small singular values of L^-1 are large eigenvalues of A
    spectrum = np.empty(singular.size)
    for i in range(spectrum.size):
        spectrum[i] = min(max(state.ridge * (eigenvalue(singular[last - i]) - 1.0), 0.0), UNKNOWN)
    kept, ridge, sums = truncate(rule, spectrum, state.ridge, state.sums, dim, 0.0, eps_of(state))
    directions = dot(vectors, q)
    for i in range(kept.size):
        shrink = shrinkage(kept[i], ridge)
        for j in range(dim):
            state.right[i, j] = directions[last - i, j]
            state.left[i, j] = directions[last - i, j] * shrink
    rest = spectrum[kept.size] if kept.size < spectrum.size else 0.0
    sums = add_dust(sums, movement_bound(state, shrinkage(rest, state.ridge)))
    return with_columns(state, kept.size, ridge, sums)


@compiled
def compress(state: ProjectorSplittingState) -> ProjectorSplittingState:
    """Return the sketch with the product U V^T of its factors reduced to `rank` columns."""
    rank = state.settings.rank
    if state.used <= rank:
        return state
    if state.settings.compensate:
        return compensate_cut(state)
    sums = state.sums
    if sums.shed > 0.0:
        integrate(state)
    else:
        sums = sums_after_truncation(state, truncate_factors(state))
    return with_columns(state, rank, state.ridge, sums)


@contract.append.for_state(ProjectorSplittingState)
def append(state: ProjectorSplittingState, row: np.ndarray) -> ProjectorSplittingState:
    y, mass = whiten(state, row.reshape(1, row.size)), float(dot(row, row))
    s = np.sqrt(1.0 + squared_norms(y)[0])
    if s == 1.0:  # the row is lost beside A
        return with_columns(state, state.used, state.ridge, add_dust(add_mass(state.sums, mass), mass))
    scaled, scale = y.copy(), 1.0 / (s * (s + 1.0))
    for j in range(row.size):
        scaled[0, j] *= scale
    state = join(state, y, scaled, mass)
    steps = state.settings.every_row and state.sums.shed > 0.0
    return compress(state) if steps or state.used == state.left.shape[0] else state


@contract.append_rows.for_state(ProjectorSplittingState)
def append_rows(state: ProjectorSplittingState, rows: np.ndarray) -> ProjectorSplittingState:
    """Return the sketch after more rows were added, in batches of at most `rank` rows.

    They are added one by one if every row takes a splitting step.
    """
    if state.settings.every_row:
        for i in range(rows.shape[0]):
            state = append(state, rows[i])
        return state
    for start in range(0, rows.shape[0], state.settings.rank):
        batch = rows[start : start + state.settings.rank]
        state = compress(state)
        whitened = whiten(state, batch)
        q, scaled = triangular_factor(whitened) if state.settings.cholesky else symmetric_factor(whitened)
        state = join(state, q, scaled, np.sum(squared_norms(batch)))
        state = compress(state)
    return state


@contract.solve.for_state(ProjectorSplittingState)
def solve(state: ProjectorSplittingState, b: np.ndarray) -> np.ndarray:
    return unwhiten(state, whiten(state, b.reshape(1, b.size))[0])


@contract.inverse_quadratic.for_state(ProjectorSplittingState)
def inverse_quadratic(state: ProjectorSplittingState, rows: np.ndarray) -> np.ndarray:
    return squared_norms(whiten(state, rows))


@contract.inverse_gram.for_state(ProjectorSplittingState)
def inverse_gram(state: ProjectorSplittingState, rows: np.ndarray) -> np.ndarray:
    half = whiten(state, rows)
    return dot(half, half.T)


@contract.root.for_state(ProjectorSplittingState)
def root(state: ProjectorSplittingState, z: np.ndarray) -> np.ndarray:
    return unwhiten(state, z)


@contract.log_det.for_state(ProjectorSplittingState)
def log_det(state: ProjectorSplittingState) -> float:
    """Return log det A of the design A, which is dim log ridge - 2 log |det(I - V^T U)|.

    U and V are the factors of the sketch. The result is at least dim log ridge, and costs O(dim rank^2).
    """
    total = state.left.shape[1] * np.log(state.ridge)
    if state.used == 0:
        return total
    core = np.eye(state.used) - dot(state.right[: state.used], state.left[: state.used].T).astype(np.float64)
    _, singular, _ = svd(core)
    for i in range(singular.size):
        total += np.log(eigenvalue(singular[i]))
    return total


@contract.error_bound.for_state(ProjectorSplittingState)
def error_bound(state: ProjectorSplittingState) -> float:
    """Return a bound on ||A - A_hat||_2, where A_hat is the sketch of the design A.

    It accounts for rounding errors, truncated ones included, and is infinite once more was truncated
    (`movement_bound`).
    """
    mass, reg = state.sums.mass, state.settings.reg
    return certificate(state.settings, state.sums, inverse_root_error(eps_of(state), mass, reg))


@contract.sums.for_state(ProjectorSplittingState)
def sums(state: ProjectorSplittingState) -> Sums:
    return state.sums


@contract.spectrum.for_state(ProjectorSplittingState)
def spectrum(state: ProjectorSplittingState) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the eigenvalues and eigenvectors of the sketched design on the directions held, and the ridge.

    The directions are the span of the factors U and V, where A^-1 = M^T M / ridge with M = I - U V^T. The ridge is the
    eigenvalue elsewhere.
    """
    used, dim = state.used, state.left.shape[1]
    if used == 0:
        return np.empty(0), state.left[:0], state.ridge
    both = np.empty((2 * used, dim), state.left.dtype)
    fill(both[:used], state.left[:used])
    fill(both[used:], state.right[:used])
    q, _ = orthonormal(both)
    middle = -dot(dot(q, both[:used].T), dot(both[used:], q.T))
    for i in range(middle.shape[0]):
        middle[i, i] += 1.0
    _, singular, vectors = svd(middle)
    values = np.empty(singular.size)
    for i in range(values.size):
        values[i] = min(state.ridge * eigenvalue(singular[i]), UNKNOWN)
    return values, dot(vectors, q), state.ridge


@savable
class ProjectorSplitting(Design):
    """Projector splitting: a sketch of the inverse of A, as the identity minus a matrix of low rank.

    A is reg I + sum of x x^T over the rows x. A^-1 = M^T M with M = (I - U V^T) / sqrt(ridge), where ridge is reg plus
    what `compensate` adds. The matrices U and V have at most 2 * rank columns. New rows add columns, and a *splitting
    step* replaces U V^T by a matrix of rank `rank` that is close to it.

    Parameters
    ----------
    dim : int
        Width d of a row, at least 1.
    rank : int
        Number r of columns that U and V keep, from 1 to dim. The design is exact while the rows learned have rank at
        most r. If `compensate` is False and the eigenvalues cut off are far larger than reg, the means of ridge
        regression become far too large (docs/sketches.md).
    reg : float, default 1.0
        Ridge penalty, above 0, in the unit of the squared length ||x||^2 of a row. Choose it about as large as typical
        eigenvalues of the sum of x x^T.
    compensate : bool, default False
        True keeps the directions with the largest eigenvalues of A, and adds the mean of the eigenvalues that were cut
        off to the ridge. False drops what is cut off.
    factor : {"symmetric", "cholesky"}, default "symmetric"
        How the rows of a batch are turned into new columns: by a symmetric root, or by a triangular one (algorithm 4 of
        Shustova et al.). Both are exact until something is cut off. The symmetric root needs no column for repeated
        rows of a batch.
    schedule : {"batch", "row"}, default "batch"
        When splitting steps are taken, from the first row on that does not fit into the rank. "batch" collects up to
        `rank` rows for one step. "row" takes a step at every row (algorithm 6 of Shustova et al.) and ignores `factor`.
    dtype : {"float64", "float32"}, default "float64"
        Dtype of all arrays.

    Raises
    ------
    ValueError
        If an argument is out of its range, or if `compensate` or `factor="cholesky"` is combined with
        `schedule="row"`.

    Notes
    -----
    A row costs O(dim rank) operations on average, or O(dim rank^2) with `schedule="row"`. U and V together have up to
    4 * rank * dim numbers.

    Examples
    --------
    >>> import onepass as op
    >>> design = op.ProjectorSplitting(dim=4, rank=1, reg=2.0).append([[1.0, 1.0, 0, 0]] * 5)
    >>> design.inverse_quadratic([[1.0, 0, 0, 0]]).round(12).tolist(), design.error_bound() < 1e-10
    ([0.291666666667], True)
    """

    def __init__(
        self,
        *,
        dim: int,
        rank: int,
        reg: float = 1.0,
        compensate: bool = False,
        factor: str = "symmetric",
        schedule: str = "batch",
        dtype: str = "float64",
    ) -> None:
        self.params: dict[str, Any] = check_common(dim, reg, dtype)
        hint = "use Exact when the rank is that of the data"
        self.params["rank"] = check.integer("rank", rank, 1, self.dim, hint)
        self.params["compensate"] = bool(check.choice("compensate", compensate, (False, True)))
        self.params["factor"] = check.choice("factor", factor, ("symmetric", "cholesky"))
        self.params["schedule"] = check.choice("schedule", schedule, ("batch", "row"))
        if schedule == "row" and (compensate or factor == "cholesky"):
            raise ValueError(
                "schedule must be 'batch' where compensate is True or factor is 'cholesky': a step at every row has "
                "neither a cut to put back nor a batch to factor"
            )

    def begin(self) -> ProjectorSplittingState:
        p, rank, reg = self.params, self.params["rank"], self.params["reg"]
        return ProjectorSplittingState(
            left=zeros(2 * rank, self.dim, dtype=self.dtype),
            right=zeros(2 * rank, self.dim, dtype=self.dtype),
            used=0,
            ridge=reg,
            sums=Sums(mass=0.0, shed=0.0, weighted=0.0, dust=0.0),
            settings=ProjectorSplittingRule(
                rank=rank,
                compensate=p["compensate"],
                reg=reg,
                cholesky=p["factor"] == "cholesky",
                every_row=p["schedule"] == "row",
            ),
        )

    def truncation(self) -> Truncation:
        """Return the rule by which the model of an arm is truncated, and when it is applied.

        A model is truncated to `rank` directions at the end of every batch, and also within a batch as soon as it holds
        2 * rank directions.

        Returns
        -------
        Truncation
            The rule, and the numbers of directions at which it applies.
        """
        rank = self.params["rank"]
        return Truncation(rule=self.abstract_state.settings, hold=rank, limit=2 * rank)

    def consistent(self, state: ProjectorSplittingState) -> bool:
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
        shape = (2 * self.params["rank"], self.dim)
        return (
            state.settings == self.abstract_state.settings
            and state.left.shape == state.right.shape == shape
            and 0 <= state.used < shape[0]
            and state.ridge > 0.0
            and is_valid_sums(state.sums)
        )
