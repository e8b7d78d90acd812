"""Scores of MABWiser's linear policies, by one matrix product for many contexts and all arms, and its exact draws.

For a context x, an arm a and normal numbers z, the tables compute

    means     x^T theta_a                    = (x) . (theta_a)
    widths    x^T A_a^-1 x                   = phi(x, x) . packed(A_a^-1), entries off the diagonal twice
    draws     x^T L_a z,  A_a^-1 = L_a L_a^T = phi(x, z) . packed(L_a),    phi(u, v) = (u_j v_k for k <= j)

where packed(M) has the entries of M on and below the diagonal. n contexts of width d and K arms cost n K d (d + 1) / 2
multiplications, half of those of X A_a^-1. The tables read the model of an arm again only after it has learned.

MABWiser draws theta for every context and arm by a Cholesky factor. The normals come from a generator of the arm, which
is a copy of the policy's own generator, made when the arm first learns. So arms that first learn in one call draw with
the same normals. Arms without data draw one after the other from the policy's generator.
"""

from collections.abc import Iterable
from copy import deepcopy
from functools import cache
from typing import Any

import numpy as np

from onepass.bandit.bandit import Bandit

MEANS, WIDTHS, DRAWS = "means", "widths", "draws"  # kinds of tables
BLOCK = 2_000_000  # numbers computed at a time: 16 MB
MAX_GATHERED_ROWS = 4  # number of rows up to which gathering is faster than a loop over their d features
Groups = list[tuple[Any, list[int]]]  # generators, with the indices of the arms that draw from each


@cache
def _lower_triangle(dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the row and the column indices of the entries on and below the diagonal of a matrix (dim, dim)."""
    return np.tril_indices(dim)


def _pair_products(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the products u_j v_k, k <= j, of each row u of left (n, d) and v of right (n, d): (n, d (d + 1) / 2)."""
    count, dim = left.shape
    if count <= MAX_GATHERED_ROWS:
        rows, columns = _lower_triangle(dim)
        return left[:, rows] * right[:, columns]
    u, v, start = np.ascontiguousarray(left.T), np.ascontiguousarray(right.T), 0
    out = np.empty((dim * (dim + 1) // 2, count))
    for j in range(dim):
        np.multiply(u[j], v[: j + 1], out=out[start : start + j + 1])
        start += j + 1
    return out.T


class ScoreTables:
    """Tables for scoring many contexts at once: the parameters theta (K, d) of all arms, and one matrix for each arm.

    The matrices are the inverses A_a^-1 of the arms' designs if scores need widths, and their Cholesky factors L_a if
    scores are drawn. `kind` is "widths", "draws", or "means" if no matrix is needed. A matrix is stored as the vector
    of its entries on and below the diagonal. `cold` maps an arm without data to c if its A_a^-1 is c I, as in MABWiser.
    `bandit` holds the models of the arms.
    """

    def __init__(self, bandit: Bandit, arms: Iterable[Any], kind: str, cold: dict[Any, float]) -> None:
        self.bandit, self.names, self._kind, self._cold = bandit, list(arms), kind, cold
        self._index = {name: index for index, name in enumerate(self.names)}
        self._theta = np.zeros((len(self.names), bandit.model.dim))
        size = 0 if kind == MEANS else bandit.model.dim * (bandit.model.dim + 1) // 2
        self._matrix, self._stale = np.zeros((len(self.names), size)), set(self.names)

    def mark_stale(self, names: Iterable[Any]) -> None:
        """Mark these arms as changed, so that their models are read again before the next scores."""
        for name in names:
            self._stale.add(name)
            self._cold.pop(name, None)

    def _refresh(self) -> None:
        """Read the models of arms that have learned since they were last read."""
        if not self._stale:
            return
        names, dim = list(self._stale), self.bandit.model.dim
        if self._kind == MEANS:
            for name in names:
                self._theta[self._index[name]] = self.bandit.model.parameter_of(name)
        else:
            lower, step = np.tri(dim, dtype=bool), max(1, BLOCK // dim**2)
            for block in (names[start : start + step] for start in range(0, len(names), step)):
                indices = [self._index[name] for name in block]
                self._theta[indices], inverses = self.bandit.model.models_of(block)
                for i, name in enumerate(block):
                    if name in self._cold:
                        inverses[i] = self._cold[name] * np.eye(dim)
                if self._kind == DRAWS:
                    matrices = np.linalg.cholesky(inverses)
                else:
                    matrices = inverses * (2.0 - np.eye(dim))
                self._matrix[indices] = matrices[:, lower]
        self._stale.clear()

    def means(self, rows: np.ndarray) -> np.ndarray:
        """Return the means x^T theta_a (n, K) of rows x (n, d) and all K arms."""
        self._refresh()
        return rows @ self._theta.T

    def products(self, left: np.ndarray, right: np.ndarray, indices: Any = slice(None)) -> np.ndarray:
        """Return products (n, m) of n pairs of rows u, v with the matrices M of m arms: sum_(k <= j) u_j v_k M_jk.

        `left` (n, d) holds u, `right` (n, d) holds v, and `indices` selects the m arms (default: all). The products
        are squared widths if u and v are both the context, and drawn deviations if v is a normal vector.
        """
        self._refresh()
        is_subset = isinstance(indices, list) and 2 * len(indices) < len(self.names)  # else use all: a copy costs more
        matrix, columns = (self._matrix[indices], slice(None)) if is_subset else (self._matrix, indices)
        step = max(1, BLOCK // matrix.shape[1])
        blocks = [slice(start, start + step) for start in range(0, len(left), step)]
        return np.concatenate([(_pair_products(left[rows], right[rows]) @ matrix.T)[:, columns] for rows in blocks])

    def products_per_arm(self, left: np.ndarray, right: np.ndarray, indices: list[int]) -> np.ndarray:
        """Return the results (n, m) of `products` with other rows `right` (m, n, d) for each of the m arms `indices`.

        `left` (n, d) is the same for all arms. Use it for few rows only, because the work is done for each arm.
        """
        self._refresh()
        rows, columns = _lower_triangle(self.bandit.model.dim)
        return np.asarray(np.einsum("np,mnp,mp->nm", left[:, rows], right[:, :, columns], self._matrix[indices]))

    def widths(self, rows: np.ndarray) -> np.ndarray:
        """Return the widths sqrt(x^T A_a^-1 x) (n, K) of rows x (n, d) for all K arms; A_a is the design of arm a."""
        return np.sqrt(np.maximum(self.products(rows, rows), 0.0))


class ArmGenerators:
    """Random generators of the arms, one each, as in MABWiser; they are copies of the policy's generator `rng`."""

    def __init__(self, rng: Any) -> None:
        self._rng = rng
        self._generators: dict[Any, Any] = {}  # generators of arms that have learned, by name
        self._cached: tuple[Any, Groups] | None = None  # tables, and the groups of their arms

    def add_arms(self, names: Iterable[Any]) -> None:
        """Give a copy of the policy's generator to those arms that learn for the first time; they share the copy."""
        new = [name for name in names if name not in self._generators]
        if new:
            self._generators.update(dict.fromkeys(new, deepcopy(self._rng)))
            self._cached = None

    def remove_arm(self, name: Any) -> None:
        """Forget the generator of an arm, since another arm may get its name."""
        self._generators.pop(name, None)

    def _groups(self, tables: ScoreTables) -> Groups:
        """Return every generator with the indices of the arms that draw from it.

        Every arm without data is a group of its own.
        """
        if self._cached is None or self._cached[0] is not tables:
            groups: dict[int, tuple[Any, list[int]]] = {}
            for index, name in enumerate(tables.names):
                rng = self._generators.get(name, self._rng)
                groups.setdefault(-1 - index if rng is self._rng else id(rng), (rng, []))[1].append(index)
            self._cached = tables, list(groups.values())
        return self._cached[1]

    def draw_shifts(self, tables: ScoreTables, rows: np.ndarray) -> np.ndarray:
        """Draw the deviations x^T L_a z (n, K) of rows x (n, d) from the arms' means.

        z is a standard normal vector, drawn for every row from the arm's generator. L_a is the Cholesky factor of
        A_a^-1, which `tables` holds.
        """
        out, groups, singles = np.empty((len(rows), len(tables.names))), self._groups(tables), []
        for rng, indices in groups:
            normals = rng.standard_normal(rows.shape)
            if len(indices) == 1 and len(rows) <= MAX_GATHERED_ROWS:
                singles.append((indices[0], normals))
            else:
                out[:, indices] = tables.products(rows, normals, indices)
        if singles:
            indices = [index for index, _ in singles]
            normals = np.stack([normals for _, normals in singles])
            out[:, indices] = tables.products_per_arm(rows, normals, indices)
        return out
