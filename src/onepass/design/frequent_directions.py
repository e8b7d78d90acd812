"""Frequent Directions and its robust form.

Liberty 2013; Luo et al. 2019; Chen et al. 2020; Wen, Yin et al. algorithms 2 and 3.

S has few rows, and X all rows. The matrix A and its error are

    A = (reg + compensation * shed) I + S^T S,      0 <= X^T X - S^T S <= shed I

S is stored as T Q, with orthonormal rows Q and a lower triangle T. A row inside the span of Q changes only T. A row
outside it adds a direction. When there are 2 size directions, the eigenvalues of T^T T, v_1 >= v_2 >= ..., are cut at
an index j:

    v_i <- v_i - v_j,  the first j - 1 directions are kept,  shed <- shed + v_j
    j: the first from size to 2 size with v_j <= 1e-12 v_1 (nothing but rounding), or size if there is none

A cut at j >= size removes at least size v_j of the trace, so the usual guarantee holds. Let k + 1 be the smallest index
at which a cut was ever made. It is size, unless the data were of low rank. For this k, and for every smaller one, with
the best approximation X_k of rank k,

    shed <= ||X - X_k||_F^2 / (size - k)  for k < size,      shed <= ||X - X_k||_F^2

Assume that the rows have rank k < 2 size up to a remainder below a millionth of the largest singular value, such as
rows rounded to float32. Then at most this remainder is lost. If such a cut makes little room, the buffer grows once by
size / 2 directions, so there are always at least size / 2 rows between two cuts.

compensation = 0 is FD, 1 is SCFD of Chen et al. (Wen, Yin et al. call it RFD), 0.5 is RFD of Luo et al. A row costs
O(dim size). The memory is (2 size) (dim + 4 size) numbers, and a quarter more once the buffer has grown.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.design import contract
from onepass.design.design import Design, check_common
from onepass.design.subspace import (
    Subspace,
    enlarge,
    extend,
    grow,
    init_subspace,
    init_subspace_like,
    is_valid_subspace,
    with_spectrum,
)
from onepass.design.subspace_members import register_subspace_members
from onepass.design.truncation import (
    UNKNOWN,
    Sums,
    Truncation,
    add_mass,
    add_sums,
    certificate,
    init_sums,
    is_valid_sums,
    ridge_after,
    saturating_add,
    truncate,
)
from onepass.foundation import check
from onepass.foundation.cholesky_updates import update_triangle
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import dot, eigh, fill, product_rounding, split, svd
from onepass.foundation.registry import savable
from onepass.foundation.state import zeros

NEGLIGIBLE = 1e-12  # of the largest eigenvalue: rows rounded to float32 leave 1e-14
CUT_ROUNDINGS = 10.0  # of the largest eigenvalue that a cut may add to the error: measured 0.2 over 25,000 cuts
IN_SINGLE = 1e3  # roundings of a singular value in single precision that count as nothing (above NEGLIGIBLE's root)


class FrequentDirectionsRule(NamedTuple):
    """Truncation rule of Frequent Directions.

    `size` is the number of directions; `compensation` is the share of the eigenvalues cut off that is added to the
    ridge; `reg` is the regularization.
    """

    size: int
    compensation: float
    reg: float


@register_subspace_members
class FrequentDirectionsState(NamedTuple):
    """State of Frequent Directions, the sketch S = T Q of few rows for which S^T S approximates X^T X of all rows X.

    The rows of Q are orthonormal and T is a lower triangle. `space` holds Q and the inverse A^-1 of the design,
    `triangle` (capacity, capacity) holds T, and `sums` the totals of what was cut off.
    """

    space: Subspace
    triangle: np.ndarray
    sums: Sums
    settings: FrequentDirectionsRule


@truncate.for_state(FrequentDirectionsRule)
def truncate_at_size(
    rule: FrequentDirectionsRule, spectrum: np.ndarray, ridge: float, sums: Sums, dim: int, precision: float, eps: float
) -> tuple[np.ndarray, float, Sums]:
    """Truncate a sketch by Frequent Directions: subtract one eigenvalue from all, and keep those above it.

    The subtracted one is the first negligible eigenvalue from the size-th on, or else the size-th. `spectrum` (n,)
    holds the eigenvalues without the ridge, descending, each known up to `precision`. `sums` are the totals of what was
    cut off before, and `eps` is the machine epsilon; `ridge` and `dim` are not used. Returns the kept eigenvalues (k,),
    the new ridge, and the new totals.
    """
    least = max(negligible_share(eps) * spectrum[0], precision)
    place = first_below(spectrum[: 2 * rule.size], rule.size, least)
    return subtract_eigenvalue(rule, spectrum, sums, place if place > 0 else rule.size, eps)


@compiled
def error_share(rule: FrequentDirectionsRule) -> float:
    """Return the largest error of the sketched design for each unit that is cut off the eigenvalues."""
    return max(rule.compensation, 1.0 - rule.compensation)


@certificate.for_state(FrequentDirectionsRule)
def certificate_by_shed(rule: FrequentDirectionsRule, sums: Sums, rounded: float) -> float:
    if max(sums.shed, sums.dust) >= UNKNOWN:
        return np.inf
    return error_share(rule) * sums.shed + sums.dust + rounded


@ridge_after.for_state(FrequentDirectionsRule)
def ridge_after_cuts(rule: FrequentDirectionsRule, ridge: float, sums: Sums) -> float:
    return ridge_of(rule, sums.shed)


@compiled
def subtract_eigenvalue(
    rule: Any, spectrum: np.ndarray, sums: Sums, place: int, eps: float
) -> tuple[np.ndarray, float, Sums]:
    """Subtract the eigenvalue at `place`, counted from 1, from all, and keep the place - 1 directions above it.

    Returns the kept eigenvalues, the new ridge and the new totals. `rule` is the truncation rule, from which the ridge
    follows. `spectrum` is in decreasing order, `sums` are the totals before, and `eps` is the rounding unit.
    """
    taken = spectrum[place - 1]
    kept = np.empty(place - 1)
    for i in range(kept.size):
        kept[i] = spectrum[i] - taken
    shed, dust = saturating_add(sums.shed, taken), saturating_add(sums.dust, CUT_ROUNDINGS * eps * spectrum[0])
    sums = Sums(mass=sums.mass, shed=shed, weighted=saturating_add(sums.weighted, place * taken), dust=dust)
    return kept, ridge_of(rule, shed), sums


@compiled
def ridge_of(rule: Any, shed: float) -> float:
    """Return the ridge reg + compensation * shed of a sketch whose eigenvalues were cut by `shed` in all.

    The rule holds reg and compensation, the share of the cuts that is added to the ridge.
    """
    return rule.reg + rule.compensation * shed


def init_sketch(dim: int, size: int, reg: float, compensation: float, dtype: np.dtype) -> FrequentDirectionsState:
    """Return an empty Frequent Directions sketch of rows of width `dim`, which keeps `size` directions when cut.

    It never holds more directions than dimensions. `compensation` is the share of the eigenvalues cut off that is added
    to the ridge.
    """
    capacity = min(2 * size, dim)
    return FrequentDirectionsState(
        space=init_subspace(dim, capacity, reg, dtype),
        triangle=zeros(capacity, capacity, dtype=dtype),
        sums=Sums(mass=0.0, shed=0.0, weighted=0.0, dust=0.0),
        settings=FrequentDirectionsRule(size=size, compensation=compensation, reg=reg),
    )


@compiled
def init_sketch_like(like: np.ndarray, size: int, reg: float, compensation: float) -> FrequentDirectionsState:
    """Return an empty Frequent Directions sketch for rows of the width and dtype of `like`.

    It keeps `size` directions when it truncates. `compensation` is the share of the eigenvalues cut off that is added
    to the ridge.
    """
    capacity, _ = capacities(size, like.shape[1])
    return FrequentDirectionsState(
        space=init_subspace_like(like, capacity, reg),
        triangle=np.zeros((capacity, capacity), like.dtype),
        sums=init_sums(),
        settings=FrequentDirectionsRule(size=size, compensation=compensation, reg=reg),
    )


@compiled
def with_sketch(state: FrequentDirectionsState, space: Subspace, sums: Sums) -> FrequentDirectionsState:
    """Return the sketch's state with other fields `space` and `sums`; the caller writes the triangle in place."""
    return FrequentDirectionsState(space=space, triangle=state.triangle, sums=sums, settings=state.settings)


@compiled
def capacities(size: int, dim: int) -> tuple[int, int]:
    """Return how many directions the buffer holds: at first, and after it has grown.

    `size` is the number of directions that a cut keeps, and `dim` the width of a row.
    """
    return min(2 * size, dim), min(2 * size + max(size // 2, 1), dim)


@compiled
def negligible_share(eps: float) -> float:
    """Return the fraction of the largest eigenvalue below which an eigenvalue is only rounding.

    `eps` is the machine epsilon of the arrays.
    """
    return max(NEGLIGIBLE, (IN_SINGLE * eps) ** 2)


@compiled
def first_below(values: np.ndarray, size: int, least: float) -> int:
    """Return the first j >= size, counted from 1, with values_j <= least, for descending values; 0 if there is none."""
    for j in range(size, values.size + 1):
        if values[j - 1] <= least:
            return j
    return 0


@compiled
def decompose(state: FrequentDirectionsState) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenvalues of S^T S for the sketch S, descending, and its eigenvectors as rows.

    The eigenvectors are in coordinates of the orthonormal basis Q that the state holds.
    """
    used = state.space.used
    corner = np.ascontiguousarray(state.triangle[:used, :used]).astype(np.float64)
    values, vectors = eigh(dot(corner.T, corner))
    return np.maximum(values[::-1], 0.0), vectors[::-1]


@compiled
def eps_of(state: FrequentDirectionsState) -> float:
    """Return the machine epsilon of the data type of the state's arrays."""
    return float(np.finfo(state.triangle.dtype).eps)


@compiled
def replace_spectrum(
    state: FrequentDirectionsState, vectors: np.ndarray, kept: np.ndarray, ridge: float, sums: Sums
) -> FrequentDirectionsState:
    """Return the sketch after a cut that keeps the eigenvalues `kept`, with the new `ridge` and the new totals `sums`.

    `vectors` holds all eigenvectors as rows, in coordinates of the orthonormal basis that the state holds. `kept` (j,)
    belong to the first j of them.
    """
    directions = vectors[: kept.size].astype(state.triangle.dtype)
    space = with_spectrum(state.space, directions, kept, ridge)
    state.triangle.fill(0.0)
    for i in range(kept.size):
        state.triangle[i, i] = np.sqrt(kept[i])
    return with_sketch(state, space, sums)


@compiled
def truncate_at(
    state: FrequentDirectionsState, values: np.ndarray, vectors: np.ndarray, place: int
) -> FrequentDirectionsState:
    """Return the sketch S after subtracting one eigenvalue of S^T S from all larger ones; the others are dropped.

    It is the eigenvalue with number `place`, counted from 1; the place - 1 directions above it are kept. `values` are
    the eigenvalues of S^T S in descending order, and `vectors` its eigenvectors as rows, as `decompose` returns them.
    """
    kept, ridge, sums = subtract_eigenvalue(state.settings, values, state.sums, place, eps_of(state))
    return replace_spectrum(state, vectors, kept, ridge, sums)


@compiled
def shrink(state: FrequentDirectionsState) -> FrequentDirectionsState:
    """Return the sketch S after a truncation, or as it is if it holds fewer than `size` directions.

    At least size - 1 directions are kept. The truncation uses the eigenvalues of S^T S, without the ridge. They are
    computed from the triangle T of S = T Q.
    """
    space, rule = state.space, state.settings
    if space.used < rule.size:
        return state
    values, vectors = decompose(state)
    kept, ridge, sums = truncate(rule, values, space.ridge, state.sums, space.basis.shape[1], 0.0, eps_of(state))
    return replace_spectrum(state, vectors, kept, ridge, sums)


@compiled
def with_room(state: FrequentDirectionsState) -> FrequentDirectionsState:
    """Return the state with a larger buffer, if the last truncation has left little room for new directions."""
    capacity, dim = state.space.basis.shape
    first, grown = capacities(state.settings.size, dim)
    if capacity == grown or capacity - state.space.used > grown - first:
        return state
    triangle = np.zeros((grown, grown), state.triangle.dtype)
    fill(triangle[:capacity, :capacity], state.triangle)
    return FrequentDirectionsState(
        space=enlarge(state.space, grown), triangle=triangle, sums=state.sums, settings=state.settings
    )


@compiled
def receive(state: FrequentDirectionsState, row: np.ndarray, answering: bool) -> FrequentDirectionsState:
    """Return the sketch with one more row; the inverse is updated only if `answering` is True.

    It is False for a block of a dyadic sketch, whose inverse is held elsewhere (dyadic.py).
    """
    space, coordinates = extend(state.space, row) if answering else grow(state.space, row)
    sums = add_mass(state.sums, float(dot(coordinates, coordinates)))
    update_triangle(state.triangle, coordinates, space.used > state.space.used)
    state = with_sketch(state, space, sums)
    if space.used < max(2 * state.settings.size, space.basis.shape[0]):
        return state
    return with_room(shrink(state))


@contract.append.for_state(FrequentDirectionsState)
def append(state: FrequentDirectionsState, row: np.ndarray) -> FrequentDirectionsState:
    return receive(state, row, True)


@contract.loss_share.for_state(FrequentDirectionsState)
def loss_share(state: FrequentDirectionsState) -> float:
    return error_share(state.settings) / state.settings.size


@contract.loss_after.for_state(FrequentDirectionsState)
def loss_after(state: FrequentDirectionsState, row: np.ndarray, mass: float) -> float:
    """Return the bound of the sketch's error after one more row, with the cut that the row would cause.

    `mass`, the sum of the squared norms of all rows, is not needed here.
    """
    space, rule, sums = state.space, state.settings, state.sums
    used, full = space.used, max(2 * rule.size, space.basis.shape[0])
    if used + 1 >= full:
        coordinates, _, length = split(space.basis[:used], row)
        if length > 0.0:
            whole = np.zeros((used + 1, used + 1))
            fill(whole[:used, :used], state.triangle[:used, :used])
            for j in range(used):
                whole[used, j] = coordinates[j]
            whole[used, used] = length
            values = np.maximum(eigh(dot(whole.T, whole))[0][::-1], 0.0)
            _, _, sums = truncate(rule, values, space.ridge, sums, row.size, 0.0, eps_of(state))
    return error_share(rule) * sums.shed


@contract.sketch_size.for_state(FrequentDirectionsState)
def sketch_size(state: FrequentDirectionsState) -> int:
    return state.settings.size


@contract.refine.for_state(FrequentDirectionsState)
def refine(state: FrequentDirectionsState) -> FrequentDirectionsState:
    """Return a sketch without rows that keeps twice as many directions."""
    rule = state.settings
    return init_sketch_like(state.space.basis, 2 * rule.size, rule.reg, rule.compensation)


@contract.close.for_state(FrequentDirectionsState)
def close(state: FrequentDirectionsState) -> FrequentDirectionsState:
    rule = state.settings
    return init_sketch_like(state.space.basis[:, :0], rule.size, rule.reg, rule.compensation)


@contract.error_bound.for_state(FrequentDirectionsState)
def error_bound(state: FrequentDirectionsState) -> float:
    eps, mass = eps_of(state), state.sums.mass
    return certificate(state.settings, state.sums, state.space.left + product_rounding(eps, mass, state.settings.reg))


@compiled
def sketch_rows(state: FrequentDirectionsState) -> np.ndarray:
    """Return the rows S (used, dim) of the sketch, for which S^T S approximates X^T X of all rows X."""
    used = state.space.used
    return dot(np.ascontiguousarray(state.triangle[:used, :used]), state.space.basis[:used])


@contract.matrix.for_state(FrequentDirectionsState)
def matrix(state: FrequentDirectionsState) -> np.ndarray:
    rows = sketch_rows(state).astype(np.float64)
    return state.space.ridge * np.eye(rows.shape[1]) + dot(rows.T, rows)


@compiled
def with_sums(state: FrequentDirectionsState, sums: Sums) -> FrequentDirectionsState:
    """Return the sketch with other totals of what was cut off, and with the ridge and inverse that follow from them."""
    space, used, ridge = state.space, state.space.used, ridge_of(state.settings, sums.shed)
    log_det = (space.basis.shape[1] - used) * np.log(ridge)
    if used > 0:
        _, singular, vectors = svd(state.triangle[:used, :used])
        space.root.fill(0.0)
        for i in range(used):
            value = float(singular[i]) ** 2 + ridge
            log_det += np.log(value)
            for j in range(used):
                space.root[j, i] = vectors[i, j] / np.sqrt(value)
    space = Subspace(basis=space.basis, root=space.root, used=used, ridge=ridge, log_det=log_det, left=space.left)
    return with_sketch(state, space, sums)


@contract.merge.for_state(FrequentDirectionsState)
def merge(state: FrequentDirectionsState, other: FrequentDirectionsState) -> FrequentDirectionsState:
    """Return one sketch for the rows of two sketches, truncated if needed.

    What was cut off and the error bound are sums over both.
    """
    rows, mass = sketch_rows(other), state.sums.mass + other.sums.mass
    for i in range(rows.shape[0]):
        state = contract.append(state, rows[i])
    sums = add_sums(state.sums, other.sums)
    dust = saturating_add(sums.dust, other.space.left)
    return with_sums(state, Sums(mass=mass, shed=sums.shed, weighted=sums.weighted, dust=dust))


def is_valid_sketch(s: FrequentDirectionsState, dim: int) -> bool:
    """Return True if counters and shapes of a sketch agree, for rows of width `dim`."""
    capacity, settings = len(s.space.basis), s.settings
    return (
        is_valid_subspace(s.space, dim)
        and s.triangle.shape == (capacity, capacity)
        and settings.size >= 1
        and capacity in capacities(settings.size, dim)
        and is_valid_sums(s.sums)
        and settings.reg > 0.0
        and 0.0 <= settings.compensation <= 1.0
    )


@savable
class FrequentDirections(Design):
    """Frequent Directions: a sketch that keeps the most important directions of the rows learned.

    A = (reg + compensation * c) I + S^T S. The matrix S has at most 2 size rows. When it is full, it is cut: the
    size-th largest eigenvalue of S^T S is subtracted from all larger ones, and the others become 0. If one of the later
    eigenvalues is 0 up to rounding, the first such one takes its place. c is the sum of the subtracted eigenvalues.

    Parameters
    ----------
    dim : int
        Width d of a row, at least 1.
    size : int
        Half the largest number of directions, from 1 to dim. A cut keeps at least size - 1. The sketch is exact while
        the rank of the rows is below 2 size. If `compensation` is 0 and the eigenvalues cut off are far larger than
        reg, the means of ridge regression become far too large (docs/sketches.md).
    reg : float, default 1.0
        Ridge penalty, above 0, in the unit of the squared length ||x||^2 of a row.
    compensation : float, default 0.0
        Share of the eigenvalues cut off that is added to reg, from 0.0 (Frequent Directions) to 1.0 (the robust form).
    dtype : {"float64", "float32"}, default "float64"
        Dtype of all arrays.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Examples
    --------
    >>> import onepass as op
    >>> design = op.FrequentDirections(dim=3, size=2).append([[3.0, 0, 0], [0, 2.0, 0]])
    >>> design.log_det() == op.Exact(dim=3).append([[3.0, 0, 0], [0, 2.0, 0]]).log_det(), design.error_bound() < 1e-10
    (True, True)
    """

    def __init__(
        self, *, dim: int, size: int, reg: float = 1.0, compensation: float = 0.0, dtype: str = "float64"
    ) -> None:
        self.params: dict[str, Any] = check_common(dim, reg, dtype)
        self.params["size"] = check.integer("size", size, 1, self.dim, "use Exact for a design without a sketch")
        self.params["compensation"] = check.fraction("compensation", compensation)

    def begin(self) -> FrequentDirectionsState:
        p = self.params
        return init_sketch(p["dim"], p["size"], p["reg"], p["compensation"], self.dtype)

    def truncation(self) -> Truncation:
        """Return the rule by which the model of an arm is truncated, once it holds 2 size directions.

        Returns
        -------
        Truncation
            The rule, and the numbers of directions at which it applies.
        """
        size = self.params["size"]
        return Truncation(rule=self.abstract_state.settings, hold=min(2 * size - 1, self.dim), limit=2 * size)

    def refine(self, times: int) -> "FrequentDirections":
        """Return an empty sketch of size * 2^times directions, for a later block of `DyadicSketches`.

        Parameters
        ----------
        times : int
            Number of doublings, at least 0.

        Returns
        -------
        FrequentDirections
            A design to which no rows were added.
        """
        return FrequentDirections(**{**self.params, "size": self.params["size"] << times})

    def consistent(self, state: FrequentDirectionsState) -> bool:
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
        return state.settings == self.abstract_state.settings and is_valid_sketch(state, self.dim)


def RobustFrequentDirections(
    *, dim: int, size: int, reg: float = 1.0, compensation: float = 1.0, dtype: str = "float64"
) -> FrequentDirections:
    """Make Frequent Directions that add the eigenvalues they cut off to reg.

    A small reg does less harm then than with plain `FrequentDirections`.

    Parameters
    ----------
    dim : int
        Width d of a row, at least 1.
    size : int
        Number of directions that a cut keeps, from 1 to dim.
    reg : float, default 1.0
        Ridge penalty, above 0, in the unit of the squared length ||x||^2 of a row.
    compensation : float, default 1.0
        Share of the eigenvalues cut off that is added to reg, from 0 to 1. 0.5 is the sketch of Luo et al.
    dtype : {"float64", "float32"}, default "float64"
        Dtype of all arrays.

    Returns
    -------
    FrequentDirections
        A design without rows.

    Raises
    ------
    ValueError
        If an argument is out of its range.
    """
    return FrequentDirections(dim=dim, size=size, reg=reg, compensation=compensation, dtype=dtype)
