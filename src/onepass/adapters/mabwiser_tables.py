"""What MABWiser's linear policies score by, one matrix product for many contexts and all arms; its draws, to the digit.

    means     x^T theta_a                    = (x) . (theta_a)
    widths    x^T A_a^-1 x                   = phi(x, x) . packed(A_a^-1), entries off the diagonal twice
    draws     x^T L_a z,  A_a^-1 = L_a L_a^T = phi(x, z) . packed(L_a),    phi(u, v) = (u_j v_k for k <= j)

n contexts of width d and K arms cost n K d (d + 1) / 2 multiplications, half of those of X A_a^-1. What an arm's row
of a table is made of is asked for again only when the arm has learned.

MABWiser draws theta for every context and arm by a Cholesky factor, from the generator of the arm's model: a copy of
the policy's own that is made when the arm first learns. So arms that were first learned in one call draw by the same
normals; those that have not learned draw one after the other from the policy's.
"""

from collections.abc import Iterable
from copy import deepcopy
from functools import cache
from typing import Any

import numpy as np

from onepass.bandit.bandit import Bandit

MEANS, WIDTHS, DRAWS = "means", "widths", "draws"  # what a policy scores by
BLOCK = 2_000_000  # numbers that are made at a time: 16 MB
Groups = list[tuple[Any, list[int]]]  # a generator, and the places of the arms that draw from it
FEW = 4  # rows up to which gathering is faster than a loop over their d features


@cache
def triangle(dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the entries below a diagonal and on it."""
    return np.tril_indices(dim)


def products(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """phi(u, v) (n, d (d + 1) / 2) for u of left (n, d), v of right (n, d)."""
    count, dim = left.shape
    if count <= FEW:
        rows, columns = triangle(dim)
        return left[:, rows] * right[:, columns]
    u, v, start = np.ascontiguousarray(left.T), np.ascontiguousarray(right.T), 0
    out = np.empty((dim * (dim + 1) // 2, count))
    for j in range(dim):
        np.multiply(u[j], v[: j + 1], out=out[start : start + j + 1])
        start += j + 1
    return out.T


class Tables:
    """theta (K, d) of all arms and, where widths (squares) or draws (roots) are asked for, one packed matrix an arm.

    cold: {arm: c} of those whose A_a^-1 is c I, as MABWiser has it for an arm without data.
    """

    def __init__(self, bandit: Bandit, arms: Iterable[Any], kind: str, cold: dict[Any, float]) -> None:
        self.bandit, self.names, self._kind, self._cold = bandit, list(arms), kind, cold
        self._places = {name: place for place, name in enumerate(self.names)}
        self._theta = np.zeros((len(self.names), bandit.model.dim))
        size = 0 if kind == MEANS else bandit.model.dim * (bandit.model.dim + 1) // 2
        self._matrix, self._stale = np.zeros((len(self.names), size)), set(self.names)

    def changed(self, names: Iterable[Any]) -> None:
        """These arms have learned."""
        for name in names:
            self._stale.add(name)
            self._cold.pop(name, None)

    def _refresh(self) -> None:
        """Ask for the rows of arms that have changed."""
        if not self._stale:
            return
        names, dim = list(self._stale), self.bandit.model.dim
        if self._kind == MEANS:
            for name in names:
                self._theta[self._places[name]] = self.bandit.model.parameter_of(name)
        else:
            lower, step = np.tri(dim, dtype=bool), max(1, BLOCK // dim**2)
            for some in (names[start : start + step] for start in range(0, len(names), step)):
                places = [self._places[name] for name in some]
                self._theta[places], inverses = self.bandit.model.models_of(some)
                for place, name in enumerate(some):
                    if name in self._cold:
                        inverses[place] = self._cold[name] * np.eye(dim)
                if self._kind == DRAWS:
                    found = np.linalg.cholesky(inverses)
                else:
                    found = inverses * (2.0 - np.eye(dim))
                self._matrix[places] = found[:, lower]
        self._stale.clear()

    def means(self, rows: np.ndarray) -> np.ndarray:
        """x^T theta (n, K)."""
        self._refresh()
        return rows @ self._theta.T

    def products(self, left: np.ndarray, right: np.ndarray, places: Any = slice(None)) -> np.ndarray:
        """phi(left, right) times the packed matrices of the arms at `places`, (n, places)."""
        self._refresh()
        few = isinstance(places, list) and 2 * len(places) < len(self.names)  # else all: copying costs as much
        matrix, columns = (self._matrix[places], slice(None)) if few else (self._matrix, places)
        step = max(1, BLOCK // matrix.shape[1])
        blocks = [slice(start, start + step) for start in range(0, len(left), step)]
        return np.concatenate([(products(left[rows], right[rows]) @ matrix.T)[:, columns] for rows in blocks])

    def each(self, left: np.ndarray, right: np.ndarray, places: list[int]) -> np.ndarray:
        """As `products` for few rows left (n, d), where each of m arms has its own of right (m, n, d): (n, m)."""
        self._refresh()
        rows, columns = triangle(self.bandit.model.dim)
        return np.asarray(np.einsum("np,mnp,mp->nm", left[:, rows], right[:, :, columns], self._matrix[places]))

    def widths(self, rows: np.ndarray) -> np.ndarray:
        """sqrt(x^T A^-1 x) (n, K)."""
        return np.sqrt(np.maximum(self.products(rows, rows), 0.0))


class Draws:
    """The generators that MABWiser's arms draw from."""

    def __init__(self, rng: Any) -> None:
        self._rng = rng  # of the policy, its own
        self._of: dict[Any, Any] = {}  # of arms that have learned
        self._kept: tuple[Any, Groups] | None = None  # and the tables whose places they are

    def learned(self, names: Iterable[Any]) -> None:
        """Arms that learn in one call; those that do so for the first time share a copy."""
        new = [name for name in names if name not in self._of]
        if new:
            self._of.update(dict.fromkeys(new, deepcopy(self._rng)))
            self._kept = None

    def dropped(self, name: Any) -> None:
        """An arm that is gone; under its name another one may come."""
        self._of.pop(name, None)

    def _groups(self, tables: Tables) -> Groups:
        """(generator, places) of arms that share their normals, those without data one by one."""
        if self._kept is None or self._kept[0] is not tables:
            shared: dict[int, tuple[Any, list[int]]] = {}
            for place, name in enumerate(tables.names):
                own = self._of.get(name, self._rng)
                shared.setdefault(-1 - place if own is self._rng else id(own), (own, []))[1].append(place)
            self._kept = tables, list(shared.values())
        return self._kept[1]

    def shifts(self, tables: Tables, rows: np.ndarray) -> np.ndarray:
        """x^T L_a z (n, K), one z for every row and each generator."""
        out, groups, lone = np.empty((len(rows), len(tables.names))), self._groups(tables), []
        for own, places in groups:
            normals = own.standard_normal(rows.shape)
            if len(places) == 1 and len(rows) <= FEW:
                lone.append((places[0], normals))
            else:
                out[:, places] = tables.products(rows, normals, places)
        if lone:
            places = [place for place, _ in lone]
            out[:, places] = tables.each(rows, np.stack([normals for _, normals in lone]), places)
        return out
