"""Contexts given as two factors: z = vec(u v^T) = np.outer(u, v).ravel(), with u of the user (left) and v of the arm.

In a model per arm, v_a is fixed for arm a. So every row of the arm is vec(u v_a^T), in a subspace of d_u dimensions,
where d_u is the width of u. The arm is therefore equivalent to a model on the rows ||v_a|| u, with the same scores of
ridge regression. With 41 features on each side, 41 numbers replace 1,681. `reduce=False` keeps the full width, as
Shustova et al. do. Scoring then multiplies each arm's directions with v_a once for all users. A shared model scores all
arms of one user by a matrix of d_a x d_a numbers, where d_a is the width of v.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple, final

import numpy as np

from onepass.features.contract import output_dim, transform_row
from onepass.features.feature_map import FactorWidths, FeatureMap
from onepass.foundation import check
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import dot
from onepass.foundation.registry import savable

EQUAL, EQUAL_SINGLE = 1e-6, 1e-3  # of a length, by precision: about the root of a rounding


class Factors(NamedTuple):
    """Context given as a row u of the user and a row v of the arm, for feature maps that take rows x = (u, v).

    `decide`, `score` and `recommend` combine every user with every arm. `learn` combines the n-th user with the n-th
    arm.

    Parameters
    ----------
    left : array of shape (d_u,) or (n, d_u)
        Rows u of users.
    right : array of shape (d_a,), (n, d_a) or (K, d_a)
        Rows v of arms.
    """

    left: Any
    right: Any


class OuterProductState(NamedTuple):
    """State of an outer product: the numbers of columns of the left and the right factor."""

    left: int
    right: int


@output_dim.for_state(OuterProductState)
def output_dim_product(state: OuterProductState) -> int:
    return state.left * state.right


@transform_row.for_state(OuterProductState)
def transform_row_product(state: OuterProductState, x: np.ndarray, z: np.ndarray) -> None:
    for j in range(state.left):
        for k in range(state.right):
            z[j * state.right + k] = x[j] * x[state.left + k]


@final
@savable
class OuterProduct(FeatureMap):
    """Outer product of rows x = (u, v): all products of a number of u and a number of v, z = np.outer(u, v).ravel().

    Contexts are usually given as `Factors(u, v)`.

    Parameters
    ----------
    left : int
        Width of u, at least 1.
    right : int
        Width of v, at least 1.
    reduce : bool, default True
        With one model for each arm, the model of an arm learns the row ||v|| u in place of z. For ridge regression this
        gives exactly the same scores with fewer numbers, as long as the direction of the arm's v does not change. A
        changed direction is refused.

    Raises
    ------
    ValueError
        If a width is below 1.

    Notes
    -----
    The map is certified: a design's proven error bound, `error_bound()`, also holds with this map. To compute z costs
    O(left * right). A bandit whose only map is this one does not compute it.

    Examples
    --------
    >>> import onepass as op
    >>> op.features.OuterProduct(left=2, right=3).transform([1.0, 10.0, 1.0, 2.0, 3.0])
    array([ 1.,  2.,  3., 10., 20., 30.])
    """

    certified = True
    repeatable = True
    sides: tuple[int, int]
    factors: FactorWidths

    input_dim: int
    output_dim: int

    def __init__(self, *, left: int, right: int, reduce: bool = True) -> None:
        left, right = check.integer("left", left, 1), check.integer("right", right, 1)
        self.factors = FactorWidths(left, right, bool(check.choice("reduce", reduce, (False, True))))
        self.sides = (left, right)
        self.input_dim, self.output_dim = left + right, left * right
        self.params: dict[str, Any] = {"left": left, "right": right, "reduce": self.factors.reduce}

    def begin(self, dtype: np.dtype) -> OuterProductState:
        return OuterProductState(*self.sides)

    def name_features(self, names: tuple[str, ...]) -> Iterable[str]:
        left, _ = self.sides
        return (f"{u}*{v}" for u in names[:left] for v in names[left:])


def check_sides(features: FeatureMap, contexts: Factors, dtype: np.dtype, pairs: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the checked factors left (n, d_u) and right (m, d_a) of contexts, as arrays of this dtype.

    `features` is the map that takes the factors. If `pairs` is True, m must equal n. Raises ValueError if shapes or
    numbers are wrong.
    """
    if features.sides is None:
        raise ValueError(
            f"contexts must be rows of length {features.input_dim}, not Factors; use features=OuterProduct"
        )
    width, other = features.sides
    left = check.array("contexts.left", contexts.left, dtype, (1, 2), width).reshape(-1, width)
    right = check.array("contexts.right", contexts.right, dtype, (1, 2), other).reshape(-1, other)
    if pairs and len(left) != len(right):
        raise ValueError(f"contexts.left and .right must have one row per reward, got {len(left)} and {len(right)}")
    largest = check.LARGEST[left.dtype.char]
    if not largest_norm(left) * largest_norm(right) <= largest:  # NaN as well
        check.finite_rows("contexts.left", left)
        check.finite_rows("contexts.right", right)
        raise ValueError(f"contexts must have factors whose norms multiply to {largest:.0e} at most; scale them")
    return left, right


def row_products(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return vec(u v^T), shape (n, d_u d_a), for pairs of rows u of `left` (n, d_u) and v of `right` (n, d_a).

    vec takes the matrix row by row: entry i d_a + j is u_i v_j.
    """
    return (left[:, :, None] * right[:, None, :]).reshape(len(left), left.shape[1] * right.shape[1])


@compiled
def largest_norm(rows: np.ndarray) -> float:
    """Return the largest norm of rows (n, d); NaN if any row has a NaN."""
    most = 0.0
    for i in range(rows.shape[0]):
        total = 0.0
        for j in range(rows.shape[1]):
            total += rows[i, j] * rows[i, j]
        if not total <= most:
            most = total
            if np.isnan(total):
                break
    return np.sqrt(most)


@compiled
def fill_product(out: np.ndarray, left: np.ndarray, right: np.ndarray) -> None:
    """Write vec(u v^T) of one pair, u (d_u,) and v (d_a,), into `out` (d_u d_a,)."""
    for j in range(left.size):
        for k in range(right.size):
            out[j * right.size + k] = left[j] * right[k]


@compiled
def contract_right(vector: np.ndarray, right: np.ndarray, out: np.ndarray) -> None:
    """Write M v into `out` (d_u,) for v = `right` (d_a,); M (d_u, d_a) is the vector (d_u d_a,) as a matrix."""
    product = dot(vector.reshape(out.size, right.size), right)
    for j in range(out.size):
        out[j] = product[j]


@compiled
def signed_lengths(right: np.ndarray, directions: np.ndarray, records: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the signed length of every arm's factor v along the arm's direction, and the first arm that has turned.

    The direction of an arm is that of its first factor. The length is v^T direction, or ||v|| if the arm has no
    direction yet. `right` (K, d_a) holds the factors, `directions` (n_ids, d_a) the unit directions, and `records` (K,)
    the arms' ids, -1 for an arm without one. The second result is the index of the first arm whose factor has another
    direction, or -1.
    """
    tolerance = EQUAL_SINGLE if right.itemsize == 4 else EQUAL
    lengths, turned = np.empty(right.shape[0], right.dtype), -1
    for a in range(right.shape[0]):
        square, along, size = 0.0, 0.0, 0.0
        if records[a] >= 0:
            direction = directions[records[a]]
            for j in range(right.shape[1]):
                square += right[a, j] * right[a, j]
                along += right[a, j] * direction[j]
                size += direction[j] * direction[j]
        if size > 0.0:
            if square - along * along > tolerance**2 * square and turned < 0:
                turned = a
            lengths[a] = along
        else:
            lengths[a] = np.sqrt(dot(right[a], right[a]))
    return lengths, turned
