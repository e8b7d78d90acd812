"""Contexts given as factors: x = vec(u v^T) = np.outer(u, v).ravel(), u of the user (left), v of the arm (right).

In a disjoint model v is fixed per arm, so every row of arm a is u (x) v_a and lies in a subspace of `left` dimensions:
arm a is exactly a model of dimension `left` on the rows ||v_a|| u, with the same scores (of ridge regression). 41
numbers replace 1,681. `reduce=False` keeps the full width, as Shustova et al. do; scoring then contracts each arm's
directions with v_a once for all users. A shared model scores the K arms of one user by a matrix of right x right
numbers.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.foundation import check
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import dot
from onepass.foundation.registry import savable


class Outer(NamedTuple):
    """A context as its factors: left (d_u,) or (n, d_u) of users, right (d_a,), (n, d_a) or (K, d_a) of arms."""

    left: Any
    right: Any


@savable
class OuterProduct:
    """The feature map of contexts `Outer(left, right)`: x = np.outer(left, right).ravel().

    left, right: widths of the factors; reduce: let arms of a disjoint or hybrid model work in `left` dimensions, on
    ||v_a|| u: exact for ridge regression, as long as every arm keeps its direction v_a (another one is refused).
    ValueError for widths below 1.
    """

    def __init__(self, *, left: int, right: int, reduce: bool = True):
        self.left, self.right = check.integer("left", left, 1), check.integer("right", right, 1)
        self.reduce = bool(check.choice("reduce", reduce, (False, True)))

    @property
    def dim(self) -> int:
        """Width of the product."""
        return self.left * self.right

    def factors(self, contexts: Any, dtype: np.dtype, pairs: bool) -> tuple[np.ndarray, np.ndarray]:
        """Checked left (n, d_u) and right (m, d_a) of an `Outer`; pairs: m must be n. ValueError for anything else."""
        if not isinstance(contexts, Outer):
            raise ValueError(f"contexts must be onepass.Outer(left, right) here, got {type(contexts).__name__}")
        left = check.array("contexts.left", contexts.left, dtype, (1, 2), self.left).reshape(-1, self.left)
        right = check.array("contexts.right", contexts.right, dtype, (1, 2), self.right).reshape(-1, self.right)
        if pairs and len(left) != len(right):
            raise ValueError(f"contexts.left and .right must have one row per reward, got {len(left)} and {len(right)}")
        largest = check.LARGEST[left.dtype.char]
        if not largest_norm(left) * largest_norm(right) <= largest:  # NaN as well
            check.finite_rows("contexts.left", left)
            check.finite_rows("contexts.right", right)
            raise ValueError(f"contexts must have factors whose norms multiply to {largest:.0e} at most; scale them")
        return left, right

    def params(self) -> dict[str, Any]:
        """What the constructor was given, as plain data."""
        return {"left": self.left, "right": self.right, "reduce": self.reduce}

    def __repr__(self) -> str:
        return f"OuterProduct(left={self.left}, right={self.right}, reduce={self.reduce})"


def products(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Rows vec(u v^T) of pairs: (n, d_u), (n, d_a) -> (n, d_u d_a)."""
    return (left[:, :, None] * right[:, None, :]).reshape(len(left), left.shape[1] * right.shape[1])


@compiled
def largest_norm(rows):
    """The largest ||x|| of rows (n, d), NaN if there is one."""
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
def fill_product(out, left, right):
    """out = vec(u v^T) for one pair (d_u,), (d_a,)."""
    for j in range(left.size):
        for k in range(right.size):
            out[j * right.size + k] = left[j] * right[k]


@compiled
def contract(vector, right, out):
    """out = M v, with the vector (d_u d_a,) read as a matrix M (d_u, d_a)."""
    product = dot(vector.reshape(out.size, right.size), right)
    for j in range(out.size):
        out[j] = product[j]


@compiled
def signed_lengths(right, directions, records):
    """v^T direction of every row's arm, so that v = length * direction; ||v|| where there is no direction yet.

    Shapes (K, d_a), (records, d_a), (K,) with -1 for arms without a record. Also the first row that has turned away
    from its direction by more than a rounding, or -1.
    """
    tolerance = 1e-3 if right.itemsize == 4 else 1e-6
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
