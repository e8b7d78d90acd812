"""The base class of feature maps, which checks arguments, makes states and names features."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, NamedTuple, Self

import numpy as np

from onepass.features import attribution, contract
from onepass.features.attribution import Attribution, Linear
from onepass.foundation import check, files
from onepass.foundation import state as states
from onepass.foundation.check import quote
from onepass.foundation.deferred_signals import defer_signals
from onepass.foundation.rw_lock import reading, writing


class FactorWidths(NamedTuple):
    """Widths of the factors of z(u, v) = vec(u v^T), for a row x = (u, v) with u (left,) and v (right,).

    Bandits score such rows without forming z. If `reduce` is True, arms with their own model work on ||v|| u, in `left`
    dimensions, as long as v keeps its direction.
    """

    left: int
    right: int
    reduce: bool


class FeatureMap(files.Owner, ABC):
    """Base class of feature maps, which turn a row x into a row z before a model learns it.

    To write a map of your own, set `params` (the constructor's arguments), `input_dim` and `output_dim`. Implement
    `begin`, which makes a new state, and register the functions of the state (features/contract.py). A subclass must
    not be subclassed itself.

    Attributes
    ----------
    certified : bool
        True if a design's certificate, which is the proven error bound `error_bound()`, also holds with this map. False
        for random maps that replace x or a kernel, because the bound does not cover the error of the draw. False also
        for maps that change as they learn.
    repeatable : bool
        True if a row always gives exactly the same z, at any time and beside any other rows.
    sides : tuple of int or None
        Widths of u and v, if contexts may be given as `Factors(u, v)`; else None.
    factors : FactorWidths or None
        Widths of u and v, if z is their outer product itself; else None.
    """

    params: dict[str, Any]
    input_dim: int
    output_dim: int
    certified: bool = False
    repeatable: bool = False
    sides: tuple[int, int] | None = None
    factors: FactorWidths | None = None
    _own: Any = None  # the state behind `transform` and `learn`, made when it is first asked for
    _held: tuple[Any, ...] | None = None  # arrays learned before, from a file or a copy
    _taught = False  # True once `learn` was called on a map that learns

    # ---- what a member says ----

    @abstractmethod
    def begin(self, dtype: np.dtype) -> Any:
        """Return a state that has learned nothing, for rows of data type `dtype`; random parts come from a seed."""

    def mutable_arrays(self, state: Any) -> tuple[Any, ...]:
        """Return the arrays of a `state` that learning changes; () for a map that never learns.

        The arrays are saved, and learning must not change their shapes.
        """
        return ()

    def consistent(self, learned: tuple[Any, ...]) -> bool:
        """Return True if arrays `learned`, read from a file with the right shapes, have possible values."""
        return True

    def name_features(self, names: tuple[str, ...]) -> Iterable[str]:
        """Return one name for each feature, all different, from the checked `names` of the columns of x."""
        return (f"{type(self).__name__.lower()}{j}" for j in range(self.output_dim))

    def attribute(self, state: Any, x: np.ndarray, features: Linear, names: tuple[str, ...]) -> Attribution:
        """Split linear functions of the features z = map(x) into terms, for explanations.

        By default every z_j is a term with its own name. A linear map splits the functions into its inputs. A map whose
        features have no meaning of their own names other terms.

        Parameters
        ----------
        state : NamedTuple
            State of the map.
        x : array of shape (input_dim,)
            One row.
        features : Linear
            The n functions of z: `slopes` (n, output_dim) are their coefficients, and `parts` (n, output_dim) what each
            number of z adds to each function.
        names : tuple of str
            Names of the numbers of x.

        Returns
        -------
        Attribution
            The parts attributed to the inputs, the constant, and the map's own terms.
        """
        return attribution.name_terms(self.feature_names(names), contract.transform(state, x[None])[0], features)

    # ---- what follows ----

    @reading
    def initial_state(self, dtype: np.dtype) -> Any:
        """Make a bandit's first state: `begin` for rows of `dtype`, then everything this map has learned."""
        state = self.begin(dtype)
        if not (self._own is self._held is None or states.is_abstract()):
            copy_into(self.mutable_arrays(state), self.mutable_arrays(self.state))
        return state

    @property
    def state(self) -> Any:
        """State of the map itself, in float64.

        Bandits start from a copy of it and leave it as it is.
        """
        if self._own is None:
            begun = self.begin(np.dtype(np.float64))
            if states.is_abstract():
                return begun
            if self._held is not None:
                copy_into(self.mutable_arrays(begun), self._held)
            return self.__dict__.setdefault("_own", begun)  # one act: another thread may have begun meanwhile
        return self._own

    @reading
    def transform(self, rows: Any) -> np.ndarray:
        """Map rows to features in float64. Changes nothing.

        Parameters
        ----------
        rows : array of shape (input_dim,) or (n, input_dim)
            One row or many.

        Returns
        -------
        array of shape (output_dim,) or (n, output_dim)
            The features z.

        Raises
        ------
        ValueError
            If a number is NaN or infinite, or the shape is wrong.
        """
        checked = self._rows(rows)
        z = np.array(contract.transform(self.state, checked))
        return z[0] if np.ndim(rows) == 1 else z

    @writing
    def learn(self, rows: Any) -> Self:
        """Let a map that learns see rows before a bandit does.

        Parameters
        ----------
        rows : array of shape (input_dim,) or (n, input_dim)
            One row or many.

        Returns
        -------
        FeatureMap
            The map itself.

        Raises
        ------
        ValueError
            If a number is NaN or infinite, or the shape is wrong.
        """
        checked, state = self._rows(rows), self.state
        with defer_signals():
            contract.update_and_transform(state, checked)
            self._taught = bool(list_arrays(self.mutable_arrays(state)))
        return self

    @property
    def has_learned(self) -> bool:
        """True once the map has learned rows, or was restored from a file or copy of one that had."""
        return self._taught or self._held is not None

    def _rows(self, rows: Any) -> np.ndarray:
        checked = check.array("rows", rows, np.dtype(np.float64), (1, 2), self.input_dim)
        return check.finite_rows("rows", checked.reshape(-1, self.input_dim))

    def feature_names(self, names: Iterable[str] | None = None) -> tuple[str, ...]:
        """Name every feature z_j, all names different.

        Parameters
        ----------
        names : iterable of str, optional
            Names of the `input_dim` numbers of x. Defaults to x0, x1, ...

        Returns
        -------
        tuple of str
            One name per feature, made of the names of x.

        Raises
        ------
        ValueError
            If the number of names is wrong, or if they are not different strings.
        """
        return tuple(self.name_features(self.input_names(names)))

    def input_names(self, names: Iterable[str] | None = None) -> tuple[str, ...]:
        """Return the checked `names` of the inputs, x0, x1, ... for None.

        Raises ValueError unless there are as many different strings as inputs.
        """
        return check_names(names, self.input_dim)

    @reading
    def memory_usage(self) -> int:
        """Return the bytes of all arrays of the map's own state."""
        return states.nbytes((self.state,))

    def contents(self) -> files.Contents:
        """Return the constructor's arguments and everything learned, without numbers that a seed determines."""
        return files.Contents(self.params, {}, self.mutable_arrays(self.state))

    @reading
    def copy(self) -> Self:
        """Return an independent copy, which behaves alike from here on."""
        return files.restore(*self.__reduce__()[1])

    @reading
    def __reduce__(self) -> tuple[Any, ...]:
        learned = states.copy_arrays(self.mutable_arrays(self.state)) if self.has_learned else None
        return files.restore, (type(self), self.params, {}, learned)

    @classmethod
    def from_contents(cls, params: dict[str, Any], extra: dict[str, Any], held: files.StateSource) -> Self:
        """Rebuild a map from its saved arguments `params`, further data `extra` and arrays `held`.

        Raises ValueError if they do not belong together.
        """
        found = cls(**params)
        own = found.mutable_arrays(found.state)
        found._held = held.take(own, lambda learned: has_valid_arrays(found, own, learned))
        return found

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.params.items())})"


def list_arrays(tree: tuple[Any, ...]) -> list[np.ndarray]:
    """Return the list of all arrays in a nested structure of what a map has learned."""
    return [array for _, array in states.leaves(tree)]


def copy_into(target: tuple[Any, ...], source: tuple[Any, ...]) -> None:
    """Copy the numbers of `source` into the arrays of `target`."""
    for to, of in zip(list_arrays(target), list_arrays(source), strict=True):
        to[...] = of


def has_valid_arrays(features: FeatureMap, own: tuple[Any, ...], learned: tuple[Any, ...]) -> bool:
    """Return True if the saved arrays `learned` have the shapes of the map's `own` arrays, and possible values."""
    same = all(a.shape == b.shape for a, b in zip(list_arrays(own), list_arrays(learned), strict=True))
    return same and features.consistent(learned)


def check_map(name: str, value: Any) -> Any:
    """Return `value`, the argument `name`, if it is a feature map, and raise ValueError if not."""
    if not isinstance(value, FeatureMap):
        raise ValueError(f"{name} must be a feature map such as Standardize(dim=20), got {quote(value)}")
    return value


def check_names(names: Iterable[str] | None, count: int) -> tuple[str, ...]:
    """Return the checked `names` of `count` columns, x0, x1, ... for None.

    Raises ValueError unless they are different strings.
    """
    if not (names is None or isinstance(names, Iterable)):
        raise ValueError(f"names must be {count} different strings, got {check.quote(names)}")
    given = tuple(f"x{j}" for j in range(count)) if names is None else tuple(names)
    strings = all(type(name) is str for name in given)
    if len(given) != count or not strings or len(set(given)) != len(given):
        raise ValueError(f"names must be {count} different strings, got {quote(given)}")
    return given
