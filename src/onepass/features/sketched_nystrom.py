"""Sketched Nystrom map of FORKS (Wen, Zhang et al., sections 2.2 and 3), updated incrementally.

The map turns s_m kernel values into k numbers. Let k_m(x) hold the kernel values of x and the s_m landmarks, k(x) those
of x and all points, and K the kernel matrix of all points. S_m selects the landmarks and S_p is a random sketch. The
map and its updates are

    phi(x) = Z^T k_m(x)       Z = pinv(Phi_pm) V Sigma^(1/2)       phi(x)^T phi(y) approximates k(x, y)
    Phi_pm = S_p^T K S_m      Phi_pp = S_p^T K S_p, whose leading k eigenpairs are V Sigma V^T, by TISVD
    a point x, s its row of S_p:   Phi_pm += s k_m(x)^T     Phi_pp += s psi^T + psi s^T + k(x, x) s s^T
                                   psi = S_p^T k(x)

S_p (n, s_p) is a sparse Johnson-Lindenstrauss transform. In each of D blocks of s_p / D columns, a row has one entry,
+-1 / sqrt(D), in a column hashed from the row's number, so S_p need not be stored. S_m (n, s_m) selects s_m landmarks
among the first points, and they never change. Wen, Zhang et al. leave this open, but their program does so. All
sketched points are stored, because psi needs them. Mapping a point costs O(s_m (dim + k)), and an update costs O(n dim
+ s_p (k^2 + s_m^2)).
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.features.contract import copy_scratch, output_dim, transform_row
from onepass.features.landmarks import Landmarks, fill_gaussian
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import DROPPED, dot, double_capacity, eigh, svd, tisvd

CUT = 1e-8  # of the largest singular value: what the pseudo-inverse takes for zero


class SketchedNystromState(NamedTuple):
    """State of the sketched Nystrom map of a Gaussian kernel, with s_m landmarks and a random sketch of s_p columns.

    - features: landmarks (s_m, dim), and the matrix Z (s_m, rank) that turns their kernel values into features.
    - points (capacity, dim): all sketched points, of which the first `used` count.
    - pm (s_p, s_m), pp (s_p, s_p): S^T K M and S^T K S, for the kernel matrix K of all points, the sketch S, and the
      columns M of the landmarks.
    - vectors (k, s_p), values (k,): eigenvectors as rows and eigenvalues of `pp`.
    - blocks, seed: number of blocks and seed of the sparse Johnson-Lindenstrauss transform.
    """

    features: Landmarks
    points: np.ndarray
    pm: np.ndarray
    pp: np.ndarray
    vectors: np.ndarray
    values: np.ndarray
    used: int
    blocks: int
    seed: int


@compiled
def hash_integer(number: Any) -> np.uint64:
    """Return the hash of a 64-bit integer, by the finalizer of splitmix64."""
    z = np.uint64(number) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled
def sjlt_entry(number: int, block: int, size: int, blocks: int, seed: int) -> tuple[int, float]:
    """Return index and value of the only nonzero entry in a block of row `number` of the sketching matrix.

    The matrix is a sparse Johnson-Lindenstrauss transform with `size` columns in equal blocks: each row has one entry
    +-1 / sqrt(blocks) in each of the `blocks` blocks, at an index that is a hash with `seed`.
    """
    width = size // blocks
    hashed = hash_integer(hash_integer(hash_integer(seed) ^ np.uint64(number)) ^ np.uint64(block))
    place = block * width + int((hashed >> np.uint64(1)) % np.uint64(width))
    return place, (1.0 if hashed & np.uint64(1) else -1.0) / np.sqrt(blocks)


@compiled
def sjlt_row(number: int, size: int, blocks: int, seed: int) -> np.ndarray:
    """Return row `number` of the sparse Johnson-Lindenstrauss transform, (size,).

    It has one nonzero entry in each of `blocks` equal blocks; `blocks` must divide `size`.
    """
    row = np.zeros(size)
    for k in range(blocks):
        place, entry = sjlt_entry(number, k, size, blocks, seed)
        row[place] = entry
    return row


@compiled
def _sketch_point(state: SketchedNystromState, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Add a point x to the matrices `pm` and `pp` of the state, in place.

    Returns vectors a and b (s_p,) for which `pp` changed by a b^T + b a^T.
    """
    s = sjlt_row(state.used, state.pp.shape[0], state.blocks, state.seed)
    features, psi, values = state.features, np.zeros(s.size), np.empty(state.used)
    fill_gaussian(state.points, state.used, x, features.precision, values)
    for i in range(values.size):
        for k in range(state.blocks):
            place, entry = sjlt_entry(i, k, s.size, state.blocks, state.seed)
            psi[place] += entry * values[i]
    fill_gaussian(features.points, features.near.size, x, features.precision, features.near)
    for j in range(s.size):
        psi[j] += 0.5 * s[j]
    for k in range(state.blocks):
        place, entry = sjlt_entry(state.used, k, s.size, state.blocks, state.seed)
        for i in range(features.near.size):
            state.pm[place, i] += entry * features.near[i]
        for i in range(s.size):
            state.pp[place, i] += entry * psi[i]
            state.pp[i, place] += psi[i] * entry
    return s, psi


@compiled
def _make_map(
    state: Any, points: np.ndarray, used: int, vectors: np.ndarray, values: np.ndarray
) -> SketchedNystromState:
    """Return the state with the first `used` points, and with the map's matrix Z computed again.

    `values` (k,) and `vectors` (k, s_p), as rows, are the eigenpairs of the state's matrix `pp`.
    """
    left, singular, right = svd(state.pm)
    inner = np.zeros((singular.size, values.size))
    for i in range(singular.size):
        if singular[i] > CUT * singular[0]:
            for j in range(values.size):
                total = 0.0
                for p in range(left.shape[0]):
                    total += left[p, i] * vectors[j, p]
                inner[i, j] = total * np.sqrt(values[j]) / singular[i]
    z, product = np.zeros(state.features.z.shape), dot(right.T.copy(), inner)
    for i in range(z.shape[0]):
        for j in range(values.size):
            z[i, j] = product[i, j]
    features = Landmarks(
        points=state.features.points, z=z, near=state.features.near, precision=state.features.precision
    )
    return SketchedNystromState(
        features=features,
        points=points,
        pm=state.pm,
        pp=state.pp,
        vectors=vectors,
        values=values,
        used=used,
        blocks=state.blocks,
        seed=state.seed,
    )


@compiled
def make_sketched_nystrom(
    points: np.ndarray, count: int, places: np.ndarray, size: int, rank: int, blocks: int, seed: int, precision: float
) -> SketchedNystromState:
    """Make a sketched Nystrom map of the first `count` points, with the landmarks points[places].

    `size` is the number of columns of the random sketch, in `blocks` equal blocks and drawn by `seed`, `rank` is the
    largest number of features, and precision is 1 / (2 width^2) for the kernel's width. The eigenvectors are computed
    in full, once. points (capacity, dim) are kept; rows after the first `count` are room for more.
    """
    landmarks = np.empty((places.size, points.shape[1]))
    for i in range(places.size):
        for j in range(points.shape[1]):
            landmarks[i, j] = points[places[i], j]
    features = Landmarks(
        points=landmarks, z=np.zeros((places.size, rank)), near=np.zeros(places.size), precision=precision
    )
    pm, pp, vectors, values = np.zeros((size, places.size)), np.zeros((size, size)), np.zeros((0, size)), np.zeros(0)
    for n in range(count):
        state = SketchedNystromState(
            features=features,
            points=points,
            pm=pm,
            pp=pp,
            vectors=vectors,
            values=values,
            used=n,
            blocks=blocks,
            seed=seed,
        )
        _sketch_point(state, points[n])
    state = SketchedNystromState(
        features=features,
        points=points,
        pm=pm,
        pp=pp,
        vectors=vectors,
        values=values,
        used=count,
        blocks=blocks,
        seed=seed,
    )
    found, rows = eigh(pp)
    kept = 0
    while kept < min(rank, size) and found[size - 1 - kept] > DROPPED * found[size - 1]:
        kept += 1
    top, values = np.empty((kept, size)), np.empty(kept)
    for i in range(kept):
        values[i] = found[size - 1 - i]
        for j in range(size):
            top[i, j] = rows[size - 1 - i, j]
    return _make_map(state, points, count, top, values)


@compiled
def absorb(state: SketchedNystromState, x: np.ndarray) -> SketchedNystromState:
    """Return the sketched Nystrom map after one more point x; its landmarks stay."""
    s, psi = _sketch_point(state, x)
    vectors, values = tisvd(state.vectors, state.values, s, psi, state.features.z.shape[1])
    points = double_capacity(state.points) if state.used == state.points.shape[0] else state.points
    for j in range(points.shape[1]):
        points[state.used, j] = x[j]
    return _make_map(state, points, state.used + 1, vectors, values)


@output_dim.for_state(SketchedNystromState)
def output_dim_sketched(state: SketchedNystromState) -> int:
    return output_dim(state.features)


@transform_row.for_state(SketchedNystromState)
def transform_row_sketched(state: SketchedNystromState, x: np.ndarray, phi: np.ndarray) -> None:
    transform_row(state.features, x, phi)


@copy_scratch.for_state(SketchedNystromState)
def copy_scratch_sketched(state: SketchedNystromState) -> SketchedNystromState:
    return SketchedNystromState(
        features=copy_scratch(state.features),
        points=state.points,
        pm=state.pm,
        pp=state.pp,
        vectors=state.vectors,
        values=state.values,
        used=state.used,
        blocks=state.blocks,
        seed=state.seed,
    )
