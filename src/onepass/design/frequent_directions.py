"""Frequent Directions and its robust form (Liberty 2013; Luo et al. 2019; Chen et al. 2020; P0 algorithms 2 and 3).

    A = (reg + compensation * shed) I + S^T S,      0 <= X^T X - S^T S <= shed I

S is kept as T Q: orthonormal rows Q and a lower triangle T. A row inside the span of Q only turns T; a row outside adds
a direction, and when there are 2 size of them: eigh(T^T T), subtract the size-th eigenvalue from all, keep size - 1.
Counting directions, not rows, leaves the guarantee as it is (each cut removes at least size * cut of the trace) and
makes the sketch exact on data of rank < 2 size, for ever.

compensation = 0 is FD, 1 is SCFD of Chen et al. (P0 calls it RFD), 0.5 is RFD of Luo et al.
Guarantee: shed <= min_k ||X - X_k||_F^2 / (size - k). Cost O(dim size) a row, memory (2 size) (dim + 4 size) numbers.
"""

from typing import NamedTuple

import numpy as np

from onepass import check
from onepass.design import contract
from onepass.design.design import Design, common, like
from onepass.design.subspace import (
    Subspace,
    extend,
    grow,
    inverse_quadratic_in,
    root_in,
    solve_in,
    spectrum_in,
    subspace,
)
from onepass.generic import compiled
from onepass.linalg import dot, eigh, svd, update_triangle


class FrequentDirectionsState(NamedTuple):
    """space: Q and the inverse on its span; triangle (2 size, 2 size): T."""

    space: Subspace
    triangle: np.ndarray
    size: int
    shed: float
    reg: float
    compensation: float


@compiled
def new_sketch(like, size, reg, compensation):
    """An empty sketch for rows of the width and dtype of `like`; it never holds more directions than dimensions."""
    capacity = min(2 * size, like.shape[1])
    triangle = np.zeros((capacity, capacity), like.dtype)
    return FrequentDirectionsState(subspace(like, capacity, reg), triangle, size, 0.0, reg, compensation)


@compiled
def shrink(state):
    """Subtract the size-th eigenvalue of S^T S from all and keep the size - 1 directions above it."""
    space, triangle = state.space, state.triangle
    used, keep = space.used, state.size - 1
    if used <= keep:
        return state
    corner = np.ascontiguousarray(triangle[:used, :used]).astype(np.float64)
    values, vectors = eigh(dot(corner.T, corner))
    cut = max(values[used - state.size], 0.0)
    shed = state.shed + cut
    ridge = state.reg + state.compensation * shed
    rotated = dot(vectors[used - keep :].astype(space.basis.dtype), space.basis[:used])
    space.root.fill(0.0)
    triangle.fill(0.0)
    log_det = (space.basis.shape[1] - keep) * np.log(ridge)
    for i in range(keep):
        for j in range(rotated.shape[1]):
            space.basis[i, j] = rotated[i, j]
        kept = max(values[used - keep + i] - cut, 0.0)
        triangle[i, i] = np.sqrt(kept)
        space.root[i, i] = 1.0 / np.sqrt(kept + ridge)
        log_det += np.log(kept + ridge)
    space = Subspace(space.basis, space.root, keep, ridge, log_det)
    return FrequentDirectionsState(space, triangle, state.size, shed, state.reg, state.compensation)


@compiled
def receive(state, row, answering):
    """S gains a row; the inverse follows only if this sketch is the one that is `answering` (see dyadic.py)."""
    space, coordinates = extend(state.space, row) if answering else grow(state.space, row)
    update_triangle(state.triangle, coordinates, space.used > state.space.used)
    state = FrequentDirectionsState(space, state.triangle, state.size, state.shed, state.reg, state.compensation)
    return shrink(state) if space.used == 2 * state.size else state


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
    return max(state.compensation, 1.0 - state.compensation) * state.shed


@compiled
def sketched_radius(dim, reg, shed, weighted, size, compensation, rounds, noise, parameter_bound, row_bound, delta):
    """Radii of SOFUL and DBSLinUCB-FD (P0 theorem 2) and, when compensated, of CBSCFD and DBSLinUCB-RFD (theorem 6).

    shed = sigma, the sum of all cuts; weighted = sum_i l_i sigma_i over blocks; size = that of the last block. A buffer
    of 2 size directions has rank up to 2 size, for SOFUL as well. Between no and full compensation: a heuristic.
    """
    grown = rounds * row_bound**2 / (2.0 * size * reg)
    if compensation > 0.0:
        spread = (shed - weighted / (2.0 * size)) / reg
        inside = 2.0 * np.log(1.0 / delta) + dim * np.log1p(shed / reg) + 2.0 * size * np.log1p(grown + spread)
        return noise * np.sqrt(inside) + parameter_bound * np.sqrt(reg + shed)
    inside = 2.0 * np.log(1.0 / delta) + dim * np.log1p(shed / reg) + 2.0 * size * np.log1p(grown)
    return noise * np.sqrt(inside * (1.0 + shed / reg)) + parameter_bound * (reg + shed) / np.sqrt(reg)


@contract.confidence_radius.for_state(FrequentDirectionsState)
def confidence_radius(state, rounds, noise, parameter_bound, row_bound, delta):
    dim, shed, size = state.space.basis.shape[1], state.shed, state.size
    return sketched_radius(
        dim, state.reg, shed, size * shed, size, state.compensation,
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
def with_ridge(state, shed):
    """The same S with more shed mass: a new ridge, and the inverse on the span made anew."""
    used, ridge = state.space.used, state.reg + state.compensation * shed
    if used == 0:
        space = Subspace(state.space.basis, state.space.root, 0, ridge, state.space.basis.shape[1] * np.log(ridge))
        return FrequentDirectionsState(space, state.triangle, state.size, shed, state.reg, state.compensation)
    _, singular, vectors = svd(state.triangle[:used, :used])
    log_det = (state.space.basis.shape[1] - used) * np.log(ridge)
    state.space.root.fill(0.0)
    for i in range(used):
        value = float(singular[i]) ** 2 + ridge
        log_det += np.log(value)
        for j in range(used):
            state.space.root[j, i] = vectors[i, j] / np.sqrt(value)
    space = Subspace(state.space.basis, state.space.root, used, ridge, log_det)
    return FrequentDirectionsState(space, state.triangle, state.size, shed, state.reg, state.compensation)


@contract.merge.for_state(FrequentDirectionsState)
def merge(state, other):
    """Stack both sketches' rows and shrink; the shed masses add, and so do the certificates."""
    rows = sketch_rows(other)
    for i in range(rows.shape[0]):
        state = contract.append(state, rows[i])
    return with_ridge(state, state.shed + other.shed)


def sketch_consistent(s: FrequentDirectionsState, dim: int) -> bool:
    """Whether counters and shapes of a sketch of rows of width `dim` fit together."""
    capacity = min(2 * s.size, dim)
    square = s.space.root.shape == s.triangle.shape == (capacity, capacity)
    return (
        square
        and s.size >= 1
        and s.space.basis.shape == (capacity, dim)
        and 0 <= s.space.used <= min(2 * s.size - 1, dim)
    )


class FrequentDirections(Design):
    """Frequent Directions: A = (reg + compensation shed) I + S^T S with `size` directions kept at every shrink.

    size l: from 1 to dim (exact while the rank stays below 2 l); compensation: from 0 (FD) to 1 (robust FD).
    ValueError outside those ranges.

    >>> import onepass as op
    >>> design = op.FrequentDirections(dim=3, size=2).append([[3.0, 0, 0], [0, 2.0, 0]])
    >>> design.log_det() == op.Exact(dim=3).append([[3.0, 0, 0], [0, 2.0, 0]]).log_det(), design.error_bound()
    (True, 0.0)
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
