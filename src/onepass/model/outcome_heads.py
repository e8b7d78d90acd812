"""Outcomes beside the reward, learned on the design of the reward: for shared models, and for arms on `Ridge`.

    theta_j <- theta_j + A^-1 sum_i x_i (y_ij - x_i^T theta_j)    rows whose rewards have just been learned, A with them
    theta_j <- theta_j + A^-1 x (y_j - expected_j)                an outcome that comes after its reward
    theta_j <- theta_j + A^-1 x (y_j - x^T theta_j) / (1 + h)      an outcome that comes before its reward

On an exact design this is ridge regression, theta_j = A^-1 sum y_j x, whenever the outcome comes, except for outcomes
that come before their reward. A missing value counts as equal to its prediction, so theta_j stays. On a sketch it is a
Newton step with the sketch's inverse. A row costs one solve for all outcomes together. Each outcome takes d numbers to
store, and d steps to predict.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from onepass.foundation import files
from onepass.foundation.state import object_array, zeros
from onepass.model.contract import AHEAD, JOINED

Solve = Callable[[Any, np.ndarray], np.ndarray]
"""A^-1 x of the design that an arm has."""


class SavedHeads(NamedTuple):
    """Parameters of outcomes beside the reward, as arrays for a file.

    - keys: arms that have parameters.
    - theta (n, J, d): parameters of each arm and outcome.
    - number, total (n, J): number of values of each arm and outcome, and their sum.
    - squares, errors (J,): sum of squared prediction errors, and their number.
    """

    keys: np.ndarray
    theta: np.ndarray
    number: np.ndarray
    total: np.ndarray
    squares: np.ndarray
    errors: np.ndarray


class OutcomeHeads:
    """Linear models of `count` outcomes beside the reward, each with `dim` parameters, for every arm.

    The key of an arm is the arm's name, or None if all arms share one model.
    """

    def __init__(self, count: int, dim: int) -> None:
        self._count, self._dim = count, dim
        self._places: dict[Any, int] = {}
        self._saved = SavedHeads(
            keys=object_array([]), theta=zeros(0, count, dim), number=zeros(0, count), total=zeros(0, count),
            squares=zeros(count), errors=zeros(count),
        )  # fmt: skip

    def copy(self) -> "OutcomeHeads":
        twin = OutcomeHeads(self._count, self._dim)
        twin._places = dict(self._places)
        twin._saved = SavedHeads(*(array.copy() for array in self._saved))
        return twin

    def predict(self, keys: Sequence[Any], rows: np.ndarray) -> np.ndarray:
        """Return predicted outcomes (J, K) of the arms `keys` for rows (K or 1, d).

        An arm without values gets the mean over all arms.
        """
        held, places = self._saved, self._places
        if len(places) == 1 and None in places:
            return held.theta[0] @ rows.T.astype(np.float64)
        some = held.number > 0.0
        means = np.divide(held.total, held.number, out=np.zeros_like(held.total), where=some)
        level = means.sum(axis=0) / np.maximum(some.sum(axis=0), 1)
        out = np.empty((self._count, len(keys)))
        for a, key in enumerate(keys):
            place = places.get(key)
            out[:, a] = level
            if place is not None:
                each = held.theta[place] @ rows[a if len(rows) > 1 else 0]
                out[:, a] = np.where(some[place], each, level)
        return out

    def update(
        self,
        keys: Sequence[Any],
        rows: np.ndarray,
        values: np.ndarray,
        solve: Solve,
        mode: int = JOINED,
        expected: np.ndarray | None = None,
    ) -> None:
        """Learn outcomes `values` (n, J) of rows (n, d) of the arms `keys`, NaN for missing ones.

        solve(key, row) returns A^-1 row for an arm's design A. `mode` is JOINED if the outcomes come with the reward,
        AHEAD if before it, and REVISED if after it. `expected` (J,) holds the values that were learned with the reward
        in place of these outcomes, which now correct them. None means that nothing was learned in their place.
        """
        places = [self._place(key) for key in keys]
        held, steps = self._saved, np.zeros_like(self._saved.theta)
        for i, (key, place) in enumerate(zip(keys, places, strict=True)):
            known = ~np.isnan(values[i])
            if not known.any():
                continue
            row = np.ascontiguousarray(rows[i])
            gain = np.asarray(solve(key, row), np.float64)
            means, left = held.theta[place] @ row, 1.0 - min(float(gain @ row), 1.0)
            errors = np.where(known, values[i] - (means if expected is None else expected), 0.0)
            if mode == AHEAD:
                gain = gain / (2.0 - left)
            steps[place] += np.outer(errors, gain)
            if mode == JOINED:
                held.squares[:] += left * errors**2
                held.errors[:] += known
            if expected is None:
                held.number[place] += known
                held.total[place] += np.where(known, values[i], 0.0)
            else:
                held.total[place] += errors
        held.theta[:] += steps

    def _place(self, key: Any) -> int:
        """Return the index of the parameters of the arm `key`; a new arm gets the next index."""
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = len(self._places)
            held = self._saved
            more = {name: np.concatenate([getattr(held, name), np.zeros((1, *getattr(held, name).shape[1:]))])
                    for name in ("theta", "number", "total")}  # fmt: skip
            self._saved = held._replace(**more)
        return place

    def remove(self, key: Any) -> None:
        """Forget the outcomes of the arm with this key."""
        place = self._places.get(key)
        if place is not None:
            del self._places[key]
            self._places = {name: at - (at > place) for name, at in self._places.items()}
            rest = {name: np.delete(getattr(self._saved, name), place, axis=0) for name in ("theta", "number", "total")}
            self._saved = self._saved._replace(**rest)

    def deviations(self) -> np.ndarray:
        """Return the root mean square errors (J,) of the predictions of each outcome so far."""
        return np.sqrt(self._saved.squares / np.maximum(self._saved.errors, 1.0))

    def memory_usage(self) -> int:
        """Return the number of bytes of the parameters' arrays."""
        return sum(array.nbytes for array in self._saved)

    @property
    def state(self) -> SavedHeads:
        return self._saved._replace(keys=object_array(list(self._places)))

    def restore(self, held: files.StateSource) -> None:
        """Replace the parameters by those in `held`, from a file; raise ValueError if they are inconsistent."""
        found = held.take(self.state, self._fits)
        names = found.keys.tolist()
        if len(set(names)) != len(names):
            raise ValueError("an arm is there twice")
        self._places, self._saved = {name: i for i, name in enumerate(names)}, found

    def _fits(self, found: SavedHeads) -> bool:
        n, count = len(found.keys), self._count
        return bool(
            found.theta.shape == (n, count, self._dim)
            and found.number.shape == found.total.shape == (n, count)
            and found.squares.shape == found.errors.shape == (count,)
            and (found.number >= 0.0).all()
            and (found.squares >= 0.0).all()
        )
