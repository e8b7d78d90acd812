"""Check of contexts, and their mapping to the rows z that a bandit's models use.

Deciding maps rows by the feature map as it is; learning updates the map first (features/contract.py). Models only see
rows z, whatever the map.
"""

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from onepass.features import contract
from onepass.features.feature_map import FactorWidths, FeatureMap, check_map, copy_into, has_valid_arrays, list_arrays
from onepass.features.identity import Identity
from onepass.features.outer_product import Factors, check_sides
from onepass.foundation import check
from onepass.foundation import state as states


class FeaturePipeline:
    """Feature map of one bandit, with the map's state.

    - map: the feature map; without one, rows of `width` numbers stay as they are.
    - dtype: dtype of the features.
    - factors: widths of the two factors of contexts, or None if the map takes rows.
    """

    dtype: np.dtype[Any]
    factors: FactorWidths | None
    _state: Any
    _transform: Callable[[Any, np.ndarray], np.ndarray]
    _advance: Callable[[Any, np.ndarray], np.ndarray]
    _held: tuple[Any, ...] | None  # what a file or a copy holds, until the state is drawn

    def __init__(self, features: FeatureMap | None, width: int, dtype: np.dtype) -> None:
        self.map: FeatureMap = Identity(dim=width) if features is None else check_map("features", features)
        self.dtype, self._state, self._held = dtype, None, None
        self.factors, self._plain = self.map.factors, features is None
        self.reduced: bool = self.factors is not None and self.factors.reduce  # whether arms work in d_u dimensions
        with states.abstract():
            self.moves: bool = bool(list_arrays(self.statistics))

    @property
    def state(self) -> Any:
        """State of the feature map, which is made when it is first used."""
        if self._state is None:
            fresh = self.map.initial_state(self.dtype)
            if states.is_abstract():
                return fresh
            if self._held is not None:
                copy_into(self.map.mutable_arrays(fresh), self._held)
            self._transform = contract.transform.dispatch(type(fresh))  # found once: that takes as long as a small map
            self._advance = contract.update_and_transform.dispatch(type(fresh))
            self._state = fresh
        return self._state

    @property
    def statistics(self) -> tuple[Any, ...]:
        """Numbers that the feature map has learned from rows, such as means; () for a map that never changes."""
        return self.map.mutable_arrays(self.state)

    # ---- contexts ----

    def rows(self, contexts: Any, dims: tuple[int, ...], some: bool = True) -> np.ndarray:
        """Return contexts as checked rows x (..., dim); their number of axes must be one of `dims`.

        Raises ValueError for NaN, for a wrong shape, and, if `some` is True, for no rows.
        """
        if isinstance(contexts, Factors):
            check_sides(self.map, contexts, self.dtype, False)
            raise ValueError(f"contexts must be rows (u, v) of length {self.map.input_dim} here, not Factors")
        wanted, sides = self.map.input_dim, self.map.sides
        out = check.array("contexts", contexts, self.dtype, dims, wanted if sides is None else None)
        if out.shape[-1] != wanted:
            raise ValueError(
                "contexts must be onepass.Factors(left, right), or rows (u, v) "
                f"of length {wanted}, got shape {out.shape}"
            )
        if some and out.size == 0:
            raise ValueError(f"contexts must have at least one row, got shape {out.shape}")
        check.finite_rows("contexts", out if out.ndim == 2 else out.reshape(-1, wanted))
        return out

    def sides(self, contexts: Any, pairs: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the checked factors u (n, d_u) and v (m, d_a) of contexts.

        Contexts are `Factors`, or rows (dim,) or (n, dim) that hold u and then v. If `pairs` is True, m must equal n.
        """
        if not isinstance(contexts, Factors):
            contexts = split_sides(self.map, self.rows(contexts, (1, 2), False).reshape(-1, self.map.input_dim))
        return check_sides(self.map, contexts, self.dtype, pairs)

    def pairs(self, contexts: Any, some: bool = True) -> tuple[bool, np.ndarray]:
        """Return True for a single row, and the checked rows x (n, dim) that are to be learned.

        Contexts are rows, or `Factors` whose two sides both have n rows; a row then holds both factors. If `some` is
        True, no rows raise ValueError.
        """
        if isinstance(contexts, Factors):
            return np.ndim(contexts.left) == 1, np.hstack(self.sides(contexts, True))
        rows = self.rows(contexts, (1, 2), some)
        return rows.ndim == 1, rows if rows.ndim == 2 else rows.reshape(1, -1)

    def rows_of_arms(self, contexts: Any, request: int | None, places: np.ndarray, count: int) -> np.ndarray:
        """Return a copy of the rows x of the arms at indices `places`, (dim,) or (k, dim), from checked contexts.

        `count` is the number of arms. `request` is the index of the decision, or None for a single one.
        """
        if isinstance(contexts, Factors):
            left = np.asarray(contexts.left if request is None else contexts.left[request], self.dtype)
            right = np.asarray(contexts.right, self.dtype)[places]
            rows = np.hstack([np.broadcast_to(left, (len(places), left.size)), right])
        else:
            every = check.array("contexts", contexts, self.dtype, (1, 2, 3))
            if request is None and len(places) == 1 and (every.ndim == 1 or (every.ndim == 2 and len(every) == count)):
                return every.copy() if every.ndim == 1 else every[places[0]].copy()
            rows = (every if request is None else every[request]).reshape(-1, self.map.input_dim)
            rows = rows[places] if len(rows) == count else np.repeat(rows, len(places), axis=0)
        return rows[0] if len(rows) == 1 else rows

    def users(self, contexts: Any) -> tuple[int, Callable[[slice], Any]]:
        """Return the number of users in contexts, and a function that returns the contexts of a slice of users.

        Contexts are (n, dim), (n, K, dim) or `Factors`.
        """
        if isinstance(contexts, Factors):
            left = check.array("contexts.left", contexts.left, self.dtype, (2,))
            return len(left), lambda part: Factors(left[part], contexts.right)
        rows = check.array("contexts", contexts, self.dtype, (2, 3), self.map.input_dim)
        rows = rows[:, None, :] if rows.ndim == 2 else rows
        return len(rows), lambda part: rows[part]

    # ---- maps ----

    def transform(self, rows: np.ndarray) -> np.ndarray:
        """Return the features (..., width) of checked rows (..., dim). Nothing changes."""
        if self._plain:
            return rows
        flat = rows if rows.ndim == 2 else rows.reshape(-1, rows.shape[-1])
        state = self.state
        z = self._transform(state, flat)
        return z if rows.ndim == 2 else z.reshape(*rows.shape[:-1], z.shape[1])

    def transform_pairs(self, user: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the features (K, width) of one user u (d_u,) combined with each of K arms v (K, d_a)."""
        return self.transform(np.hstack([np.broadcast_to(user, (len(right), user.size)), right]))

    def advance(self, rows: np.ndarray) -> np.ndarray:
        """Update the map by checked rows (n, dim) if it learns, and return their features.

        Raises ValueError, without changing the map, if a feature is not finite.
        """
        if self._plain:
            return rows
        state = self.state
        if not self.moves:
            return check.finite_rows("features of contexts", self._advance(state, rows))
        before = [array.copy() for array in list_arrays(self.statistics)]
        try:
            return check.finite_rows("features of contexts", self._advance(state, rows))
        except BaseException:
            copy_into(self.statistics, tuple(before))
            raise

    def at_rest(self) -> "FeaturePipeline":
        """Return a copy of the map that never changes; the map itself if it does not learn."""
        if not self.moves:
            return self
        twin = copy(self)
        twin._state, twin._held = None, tuple(array.copy() for array in list_arrays(self.statistics))
        return twin

    # ---- files ----

    def fits(self, learned: tuple[Any, ...]) -> bool:
        """Return True if statistics read from a file are valid for this map."""
        return has_valid_arrays(self.map, self.statistics, learned)

    def restore(self, learned: tuple[Any, ...]) -> None:
        """Replace what the feature map has learned by `learned`, the statistics in a file or a copy."""
        self._state, self._held = None, learned


def split_sides(features: FeatureMap, rows: np.ndarray) -> Factors:
    """Return rows (n, d_u + d_a) as `Factors` of (n, d_u) and (n, d_a); `features` is a map with these widths."""
    assert features.sides is not None
    left, _ = features.sides
    return Factors(np.ascontiguousarray(rows[:, :left]), np.ascontiguousarray(rows[:, left:]))
