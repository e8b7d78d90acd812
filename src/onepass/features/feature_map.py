"""The public face of a feature map: checks arguments, says how a state begins, names its features."""

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
    """z(u, v) = vec(u v^T) of a row x = (u, v), u (left,), v (right,): bandits score such rows without forming z.

    reduce: arms of their own model work on ||v|| u, in `left` dimensions, as long as v keeps its direction.
    """

    left: int
    right: int
    reduce: bool


class FeatureMap(files.Owner, ABC):
    """x -> z, what stands before a model. Members are final: they set `params` (what the constructor was given),
    `input_dim` and `output_dim`, say how a state begins (`begin`), and register its functions (features/contract.py).

    What holds for a member, said by attributes:
    certified: z is what the model is about, so that certificates of a design of rows z are passed on. False for maps
    drawn at random in place of x or of a kernel (what the draw loses is in no certificate) and for maps that move;
    repeatable: a row gives the same bits of z at any time, whatever rows stand beside it;
    sides: widths (d_u, d_a) of x = (u, v) where contexts may be given as `Factors(u, v)`, or None;
    factors: `Factors` where z is the outer product of the two sides itself, or None.
    """

    params: dict[str, Any]
    input_dim: int
    output_dim: int
    certified: bool = False
    repeatable: bool = False
    sides: tuple[int, int] | None = None
    factors: FactorWidths | None = None
    _own: Any = None  # the state behind `transform` and `learn`, made when it is first asked for
    _held: tuple[Any, ...] | None = None  # what a file or a copy said it had learned
    _taught = False  # whether it has learned rows itself

    # ---- what a member says ----

    @abstractmethod
    def begin(self, dtype: np.dtype) -> Any:
        """A fresh state for rows of `dtype`: what is drawn from a seed, and nothing learned yet."""

    def mutable_arrays(self, state: Any) -> tuple[Any, ...]:
        """Return a state's arrays that learning writes, their shapes fixed: what a file holds. () for a map at rest."""
        return ()

    def consistent(self, learned: tuple[Any, ...]) -> bool:
        """Return whether what a file holds, its shapes right already, can have been learned."""
        return True

    def name_features(self, names: tuple[str, ...]) -> Iterable[str]:
        """Names of the features, all different, from the `names` of x, which are checked already."""
        return (f"{type(self).__name__.lower()}{j}" for j in range(self.output_dim))

    def attribute(self, state: Any, x: np.ndarray, features: Linear, names: tuple[str, ...]) -> Attribution:
        """What linear functions of z = map(x) come from (attribution.py). Here: from every z_j, by its name. A linear
        map hands them on to its inputs; one whose features say little names better terms.

        state: the map's; x (input_dim,): one row, names: of its numbers; features: the functions.
        """
        return attribution.name_terms(self.feature_names(names), contract.transform(state, x[None])[0], features)

    # ---- what follows ----

    @reading
    def initial_state(self, dtype: np.dtype) -> Any:
        """`begin` for rows of `dtype`, and then what this map itself has learned: where a bandit starts from."""
        state = self.begin(dtype)
        if not (self._own is self._held is None or states.is_abstract()):
            copy_into(self.mutable_arrays(state), self.mutable_arrays(self.state))
        return state

    @property
    def state(self) -> Any:
        """The map's own state, in float64. Bandits start from a copy of it and leave it as it is."""
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
        """z in float64 of rows, one (input_dim,) or many (n, input_dim): (output_dim,) or (n, output_dim).

        Changes nothing. ValueError for NaN, infinities or a wrong shape.
        """
        checked = self._rows(rows)
        z = np.array(contract.transform(self.state, checked))
        return z[0] if np.ndim(rows) == 1 else z

    @writing
    def learn(self, rows: Any) -> Self:
        """Let a map that learns see rows, one (input_dim,) or many (n, input_dim), before a bandit does. Errors as
        `transform`."""
        checked, state = self._rows(rows), self.state
        with defer_signals():
            contract.update_and_transform(state, checked)
            self._taught = bool(list_arrays(self.mutable_arrays(state)))
        return self

    @property
    def has_learned(self) -> bool:
        """True once it has learned, itself or as what a file or a copy held."""
        return self._taught or self._held is not None

    def _rows(self, rows: Any) -> np.ndarray:
        checked = check.array("rows", rows, np.dtype(np.float64), (1, 2), self.input_dim)
        return check.finite_rows("rows", checked.reshape(-1, self.input_dim))

    def feature_names(self, names: Iterable[str] | None = None) -> tuple[str, ...]:
        """Of every feature z_j a name, all different, made of those of x (input_dim of them; None: x0, x1, ...).

        ValueError for another number of names, for what is no string, or for the same name twice.
        """
        return tuple(self.name_features(self.input_names(names)))

    def input_names(self, names: Iterable[str] | None = None) -> tuple[str, ...]:
        """`names` of the inputs, checked; None: x0, x1, ... Errors as `feature_names`."""
        return check_names(names, self.input_dim)

    @reading
    def memory_usage(self) -> int:
        """Bytes of all arrays of the map's own state."""
        return states.nbytes((self.state,))

    def contents(self) -> files.Contents:
        """Parameters and what was learned: what is drawn is drawn again from its seed."""
        return files.Contents(self.params, {}, self.mutable_arrays(self.state))

    @reading
    def copy(self) -> Self:
        """An independent copy, which goes on alike."""
        return files.restore(*self.__reduce__()[1])

    @reading
    def __reduce__(self) -> tuple[Any, ...]:
        learned = states.copy_arrays(self.mutable_arrays(self.state)) if self.has_learned else None
        return files.restore, (type(self), self.params, {}, learned)

    @classmethod
    def from_contents(cls, params: dict[str, Any], extra: dict[str, Any], held: files.StateSource) -> Self:
        """Rebuild a map from `params`, `extra` and `held` of a file, copy or pickle; ValueError if they do not fit."""
        found = cls(**params)
        own = found.mutable_arrays(found.state)
        found._held = held.take(own, lambda learned: has_valid_arrays(found, own, learned))
        return found

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.params.items())})"


def list_arrays(tree: tuple[Any, ...]) -> list[np.ndarray]:
    """All arrays of what a map has learned."""
    return [array for _, array in states.leaves(tree)]


def copy_into(target: tuple[Any, ...], source: tuple[Any, ...]) -> None:
    """The numbers of `source` in the arrays of `target`."""
    for to, of in zip(list_arrays(target), list_arrays(source), strict=True):
        to[...] = of


def has_valid_arrays(features: FeatureMap, own: tuple[Any, ...], learned: tuple[Any, ...]) -> bool:
    """Return whether what a file holds has the shapes of what a map has learned, and can have been learned."""
    same = all(a.shape == b.shape for a, b in zip(list_arrays(own), list_arrays(learned), strict=True))
    return same and features.consistent(learned)


def check_map(name: str, value: Any) -> Any:
    """`value` if it is a feature map; ValueError if not."""
    if not isinstance(value, FeatureMap):
        raise ValueError(f"{name} must be a feature map such as Standardize(dim=20), got {quote(value)}")
    return value


def check_names(names: Iterable[str] | None, count: int) -> tuple[str, ...]:
    """`names` of so many columns, checked; None: x0, x1, ... ValueError unless they are different strings."""
    if not (names is None or isinstance(names, Iterable)):
        raise ValueError(f"names must be {count} different strings, got {check.quote(names)}")
    given = tuple(f"x{j}" for j in range(count)) if names is None else tuple(names)
    strings = all(type(name) is str for name in given)
    if len(given) != count or not strings or len(set(given)) != len(given):
        raise ValueError(f"names must be {count} different strings, got {quote(given)}")
    return given
