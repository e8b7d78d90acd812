"""Frequent Directions and its robust form (Liberty 2013; Luo et al. 2019; Chen et al. 2020; Wen, Yin et al. algorithms
2 and 3).

    A = (reg + compensation * shed) I + S^T S,      0 <= X^T X - S^T S <= shed I

S is kept as T Q: orthonormal rows Q and a lower triangle T. A row inside the span of Q only turns T; a row outside adds
a direction, and when there are 2 size of them the eigenvalues of T^T T, v_1 >= v_2 >= ..., are cut at place j:

    v_i <- v_i - v_j,  the j - 1 directions above it are kept,  shed <- shed + v_j
    j: the first from size to 2 size with v_j <= 1e-12 v_1 (nothing but rounding), or size if there is none

A cut at j >= size removes at least size v_j of the trace, so the guarantee is the usual one. With k + 1 the least place
that was ever cut at (k = size - 1 unless the data were of low rank), and with every smaller k as well,

    shed <= ||X - X_k||_F^2 / (size - k)  for k < size,      shed <= ||X - X_k||_F^2

so rows of rank k < 2 size, but for a remainder below a millionth of the largest singular value, lose their remainder at
most: rows that were rounded to float32, too, are answered to rounding, for ever. Where such a cut makes little room the
buffer grows, once, by size / 2 directions: cuts stay at least that far apart.

compensation = 0 is FD, 1 is SCFD of Chen et al. (Wen, Yin et al. call it RFD), 0.5 is RFD of Luo et al.
Cost O(dim size) a row, memory (2 size) (dim + 4 size) numbers, a quarter more once the buffer has grown.
"""

from typing import NamedTuple

import numpy as np

from onepass.design import contract
from onepass.design.design import Design, common, like
from onepass.design.subspace import (
    Subspace,
    enlarge,
    extend,
    grow,
    inverse_quadratic_in,
    root_in,
    solve_in,
    spectrum_in,
    subspace,
)
from onepass.foundation import check
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import dot, eigh, fill, rounding, svd, update_triangle
from onepass.foundation.registry import savable

NEGLIGIBLE = 1e-12  # of the largest eigenvalue: rows rounded to float32 leave 1e-14
ROUNDINGS = 10.0  # of the largest eigenvalue that a cut may add to the error: measured 0.2 over 25,000 cuts
IN_SINGLE = 1e3  # roundings of a singular value in single precision that count as nothing (above NEGLIGIBLE's root)


class FrequentDirectionsState(NamedTuple):
    """space: Q and the inverse on its span; triangle (capacity, capacity): T; weighted: sum over cuts of place * cut.

    mass: trace of X^T X; dust: bounds what rounding did to S^T S in the cuts.
    """

    space: Subspace
    triangle: np.ndarray
    size: int
    shed: float
    weighted: float
    mass: float
    dust: float
    reg: float
    compensation: float


@compiled
def new_sketch(like, size, reg, compensation):
    """An empty sketch for rows of the width and dtype of `like`; it never holds more directions than dimensions."""
    capacity, _ = capacities(size, like.shape[1])
    triangle = np.zeros((capacity, capacity), like.dtype)
    return FrequentDirectionsState(subspace(like, capacity, reg), triangle, size, 0.0, 0.0, 0.0, 0.0, reg, compensation)


@compiled
def with_sketch(state, space, shed, weighted, mass, dust):
    """The state with another space (its triangle is written in place) and other sums."""
    return FrequentDirectionsState(
        space, state.triangle, state.size, shed, weighted, mass, dust, state.reg, state.compensation
    )


@compiled
def capacities(size, dim):
    """How many directions the buffer holds, at first and once it has grown."""
    return min(2 * size, dim), min(2 * size + max(size // 2, 1), dim)


@compiled
def nothing(dtype):
    """The share of the largest eigenvalue below which another one is rounding."""
    return max(NEGLIGIBLE, (IN_SINGLE * np.finfo(dtype).eps) ** 2)


@compiled
def first_below(values, size, least):
    """The first place j >= size (from 1) with values_j <= least, for descending values; 0 if there is none."""
    for j in range(size, values.size + 1):
        if values[j - 1] <= least:
            return j
    return 0


@compiled
def decomposed(state):
    """Eigenvalues of S^T S, descending, and eigenvectors as rows in coordinates of Q."""
    used = state.space.used
    corner = np.ascontiguousarray(state.triangle[:used, :used]).astype(np.float64)
    values, vectors = eigh(dot(corner.T, corner))
    return np.maximum(values[::-1], 0.0), vectors[::-1]


@compiled
def cut_at(state, values, vectors, place):
    """Subtract the place-th eigenvalue (from 1) of S^T S from all and keep the place - 1 directions above it."""
    space, triangle = state.space, state.triangle
    keep, cut = place - 1, values[place - 1]
    shed = state.shed + cut
    ridge = state.reg + state.compensation * shed
    rotated = dot(vectors[:keep].astype(space.basis.dtype), space.basis[: space.used])
    fill(space.basis[:keep], rotated)
    space.root.fill(0.0)
    triangle.fill(0.0)
    log_det = (space.basis.shape[1] - keep) * np.log(ridge)
    for i in range(keep):
        kept = values[i] - cut
        triangle[i, i] = np.sqrt(kept)
        space.root[i, i] = 1.0 / np.sqrt(kept + ridge)
        log_det += np.log(kept + ridge)
    space = Subspace(space.basis, space.root, keep, ridge, log_det)
    dust = state.dust + ROUNDINGS * np.finfo(triangle.dtype).eps * values[0]
    return with_sketch(state, space, shed, state.weighted + place * cut, state.mass, dust)


@compiled
def shrink(state):
    """Cut at the first negligible eigenvalue from the size-th on, or at the size-th, unless fewer are held."""
    if state.space.used < state.size:
        return state
    values, vectors = decomposed(state)
    place = first_below(values[: 2 * state.size], state.size, nothing(state.triangle.dtype) * values[0])
    return cut_at(state, values, vectors, place if place > 0 else state.size)


@compiled
def with_room(state):
    """The state, its buffer grown if a cut at a late place has left little room."""
    capacity, dim = state.space.basis.shape
    first, grown = capacities(state.size, dim)
    if capacity == grown or capacity - state.space.used > grown - first:
        return state
    triangle = np.zeros((grown, grown), state.triangle.dtype)
    fill(triangle[:capacity, :capacity], state.triangle)
    return FrequentDirectionsState(
        enlarge(state.space, grown), triangle, state.size, state.shed, state.weighted, state.mass, state.dust,
        state.reg, state.compensation,
    )  # fmt: skip


@compiled
def receive(state, row, answering):
    """S gains a row; the inverse follows only if this sketch is the one that is `answering` (see dyadic.py)."""
    space, coordinates = extend(state.space, row) if answering else grow(state.space, row)
    mass = state.mass + float(dot(coordinates, coordinates))
    update_triangle(state.triangle, coordinates, space.used > state.space.used)
    state = with_sketch(state, space, state.shed, state.weighted, mass, state.dust)
    if space.used < max(2 * state.size, space.basis.shape[0]):
        return state
    return with_room(shrink(state))


@contract.append.for_state(FrequentDirectionsState)
def append(state, row):
    return receive(state, row, True)


@contract.append_rows.for_state(FrequentDirectionsState)
def append_rows(state, rows):
    for i in range(rows.shape[0]):
        state = contract.append(state, rows[i])
    return state


@contract.solve.for_state(FrequentDirectionsState)
def solve(state, b):
    return solve_in(state.space, b)


@contract.inverse_quadratic.for_state(FrequentDirectionsState)
def inverse_quadratic(state, rows):
    return inverse_quadratic_in(state.space, rows)


@contract.root.for_state(FrequentDirectionsState)
def root(state, z):
    return root_in(state.space, z)


@contract.log_det.for_state(FrequentDirectionsState)
def log_det(state):
    return state.space.log_det


@contract.error_bound.for_state(FrequentDirectionsState)
def error_bound(state):
    lost = max(state.compensation, 1.0 - state.compensation) * state.shed
    return lost + state.dust + rounding(np.finfo(state.triangle.dtype).eps, state.mass, state.reg)


@compiled
def sketched_radius(dim, reg, shed, weighted, held, compensation, rounds, noise, parameter_bound, row_bound, delta):
    """Radii of SOFUL and DBSLinUCB-FD (Wen, Yin et al. theorem 2) and, when compensated, of CBSCFD and DBSLinUCB-RFD
    (theorem 6).

    shed = sigma, the sum of all cuts; weighted: sum over cuts of place * cut, at most what they took of the trace;
    held = m: how many directions S may span, of all blocks together. Wen, Yin et al. take 2 l of the active block,
    which its lemma 6 proves for blocks without a buffer: buffered ones hold up to 3 l. Between no and full
    compensation: a heuristic.
    """
    grown = rounds * row_bound**2 / (held * reg)
    if compensation > 0.0:
        grown += (shed - weighted / held) / reg
    inside = 2.0 * np.log(1.0 / delta) + dim * np.log1p(shed / reg) + held * np.log1p(grown)
    if compensation > 0.0:
        return noise * np.sqrt(inside) + parameter_bound * np.sqrt(reg + shed)
    return noise * np.sqrt(inside * (1.0 + shed / reg)) + parameter_bound * (reg + shed) / np.sqrt(reg)


@contract.confidence_radius.for_state(FrequentDirectionsState)
def confidence_radius(state, rounds, noise, parameter_bound, row_bound, delta):
    capacity, dim = state.space.basis.shape
    return sketched_radius(
        dim, state.reg, state.shed, state.weighted, capacity, state.compensation,
        rounds, noise, parameter_bound, row_bound, delta,
    )  # fmt: skip


@compiled
def sketch_rows(state):
    """S = T Q, shape (used, dim)."""
    used = state.space.used
    return dot(np.ascontiguousarray(state.triangle[:used, :used]), state.space.basis[:used])


@contract.matrix.for_state(FrequentDirectionsState)
def matrix(state):
    rows = sketch_rows(state).astype(np.float64)
    return state.space.ridge * np.eye(rows.shape[1]) + dot(rows.T, rows)


@contract.spectrum.for_state(FrequentDirectionsState)
def spectrum(state):
    return spectrum_in(state.space)


@compiled
def with_ridge(state, shed, weighted, mass, dust):
    """The same S with other sums: a new ridge, and the inverse on the span made anew."""
    space, used, ridge = state.space, state.space.used, state.reg + state.compensation * shed
    log_det = (space.basis.shape[1] - used) * np.log(ridge)
    if used > 0:
        _, singular, vectors = svd(state.triangle[:used, :used])
        space.root.fill(0.0)
        for i in range(used):
            value = float(singular[i]) ** 2 + ridge
            log_det += np.log(value)
            for j in range(used):
                space.root[j, i] = vectors[i, j] / np.sqrt(value)
    return with_sketch(state, Subspace(space.basis, space.root, used, ridge, log_det), shed, weighted, mass, dust)


@contract.merge.for_state(FrequentDirectionsState)
def merge(state, other):
    """Stack both sketches' rows and shrink; the shed masses add, and so do the certificates."""
    rows, mass = sketch_rows(other), state.mass + other.mass
    for i in range(rows.shape[0]):
        state = contract.append(state, rows[i])
    shed, weighted, dust = state.shed + other.shed, state.weighted + other.weighted, state.dust + other.dust
    return with_ridge(state, shed, weighted, mass, dust)


def sketch_consistent(s: FrequentDirectionsState, dim: int) -> bool:
    """Whether counters and shapes of a sketch of rows of width `dim` fit together."""
    capacity = s.space.basis.shape[0]
    square = s.space.root.shape == s.triangle.shape == (capacity, capacity)
    return (
        square
        and s.size >= 1
        and s.space.basis.shape[1] == dim
        and capacity in capacities(s.size, dim)
        and 0 <= s.space.used <= min(capacity, dim)
    )


@savable
class FrequentDirections(Design):
    """Frequent Directions: A = (reg + compensation shed) I + S^T S with `size` directions kept at every shrink.

    size l: from 1 to dim (exact while the rank stays below 2 l); compensation: from 0 (FD) to 1 (robust FD).
    ValueError outside those ranges.

    >>> import onepass as op
    >>> design = op.FrequentDirections(dim=3, size=2).append([[3.0, 0, 0], [0, 2.0, 0]])
    >>> design.log_det() == op.Exact(dim=3).append([[3.0, 0, 0], [0, 2.0, 0]]).log_det(), design.error_bound() < 1e-10
    (True, True)
    """

    def __init__(self, *, dim: int, size: int, reg: float = 1.0, compensation: float = 0.0, dtype: str = "float64"):
        self.params = common(dim, reg, dtype)
        self.params["size"] = check.integer("size", size, 1, self.dim, "use Exact for a design without a sketch")
        self.params["compensation"] = check.fraction("compensation", compensation)
        self.state = new_sketch(
            like(self.dim, dtype), self.params["size"], self.params["reg"], self.params["compensation"]
        )

    def consistent(self, s: FrequentDirectionsState) -> bool:
        """Whether counters and shapes of a loaded state fit together."""
        return sketch_consistent(s, self.dim)


def RobustFrequentDirections(
    *, dim: int, size: int, reg: float = 1.0, compensation: float = 1.0, dtype: str = "float64"
) -> FrequentDirections:
    """Frequent Directions with the shed mass put back as a multiple of I: monotone and better conditioned."""
    return FrequentDirections(dim=dim, size=size, reg=reg, compensation=compensation, dtype=dtype)
