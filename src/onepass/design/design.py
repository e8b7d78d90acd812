"""The base class of designs, which checks arguments, holds the state, and calls the functions of contract.py."""

from abc import abstractmethod
from typing import Any, Self

import numpy as np

from onepass.design import contract
from onepass.design.truncation import Truncation
from onepass.foundation import check, files, state
from onepass.foundation.check import quote
from onepass.foundation.deferred_signals import defer_signals
from onepass.foundation.registry import has_equal_arguments
from onepass.foundation.rw_lock import reading, writing

LEAST_REG = 4.0  # times the least normal number: 1 / reg has room below the largest


class Design(files.Owner):
    """Base class of designs, which keep the matrix A = reg I + sum of x x^T of the rows x learned.

    A design stores A, or an approximation, so that A^-1 b is cheap. A design of your own derives from `Design`; a
    subclass of a subclass is not supported. In its constructor set `params`, a dict of the constructor's arguments.
    Implement `begin`, and decorate the class with `onepass.extend.savable`. If its arrays change shape while it learns,
    also override `consistent`, which checks a loaded state. Set `error_is_certain` to False if `error_bound` holds only
    with some probability.
    """

    params: dict[str, Any]
    error_is_certain: bool = True  # False if `error_bound` holds only with some probability
    _state: Any = None

    @abstractmethod
    def begin(self) -> Any:
        """Return the state of the design before any row is added, with the matrix A = reg I.

        A subclass makes the arrays by `onepass.foundation.state.zeros` in place of `numpy.zeros`, so that a file can be
        compared with a new state before memory is taken.
        """

    @property
    def state(self) -> Any:
        """State of the design, the arrays from which everything about A is computed."""
        return self.begin() if self._state is None else self._state

    @state.setter
    def state(self, value: Any) -> None:
        self._state = value

    @reading
    def initial_state(self) -> Any:
        """Return a copy of the present state.

        Estimators, arms and learners that are built on this design start from it.
        """
        return self.begin() if self._state is None else state.copy(self._state)

    @property
    def has_learned(self) -> bool:
        """True if rows have been added to the design."""
        return self._state is not None

    @property
    def abstract_state(self) -> Any:
        """State without rows that takes no memory, with the settings, and the shapes and dtypes of the arrays."""
        with state.abstract():
            return self.begin()

    @property
    def dim(self) -> int:
        """Number of features d of a row."""
        return self.params["dim"]

    @property
    def dtype(self) -> np.dtype:
        """Data type of all arrays of the design, float64 or float32."""
        return np.dtype(self.params["dtype"])

    @property
    def reg(self) -> float:
        """Ridge penalty reg of A = reg I + sum of x x^T, in the unit of the squared length of a row."""
        return self.params["reg"]

    def refine(self, times: int) -> "Design":
        """Return an empty sketch of this kind that keeps more directions, so that its relative error is smaller.

        Each of the `times` refinements halves the bound `loss_share` of the relative error (`contract.refine`). Raises
        TypeError for a design whose `loss_share` is not known.
        """
        raise TypeError(f"{type(self).__name__} cannot be a block of DyadicSketches: it states no share of lost mass")

    def _rows(self, name: str, rows: Any, dims: tuple[int, ...] = (1, 2)) -> np.ndarray:
        out = check.array(name, rows, self.dtype, dims, self.dim)
        return check.finite_rows(name, out.reshape(-1, self.dim))

    @writing
    def append(self, rows: Any) -> Self:
        """Add rows X, shape (dim,) or (n, dim), so that A grows by X^T X. Returns the design itself.

        Raises ValueError, and changes nothing, for NaN or a wrong shape.
        """
        checked = self._rows("rows", rows)
        with defer_signals():
            if np.ndim(rows) == 1:
                self.state = contract.append(self.state, checked[0])
            elif checked.shape[0]:
                self.state = contract.append_rows(self.state, checked)
        return self

    @writing
    def decay(self, factor: Any) -> Self:
        """Make past rows count less: A becomes reg I + factor (A - reg I).

        The factor is from 0.0 (forget all) to 1.0 (forget nothing). The error bound is multiplied by it too. Raises
        ValueError for other factors. A design of your own needs a function for this, with the decorator
        `@onepass.design.contract.decay.for_state(MyState)`; without it the method raises TypeError.
        """
        factor = check.fraction("factor", factor)
        with defer_signals():
            if self.has_learned:
                self.state = contract.decay(self.state, factor)
        return self

    @reading
    def solve(self, b: Any) -> np.ndarray:
        """Return A^-1 b, shape (dim,), for a vector b of shape (dim,)."""
        return contract.solve(self.state, self._rows("b", b, (1,))[0])

    @reading
    def inverse_quadratic(self, rows: Any) -> np.ndarray:
        """Return x^T A^-1 x for every row x of `rows`: shape (n,) for rows of shape (n, dim)."""
        return contract.inverse_quadratic(self.state, self._rows("rows", rows))

    @reading
    def root(self, z: Any) -> np.ndarray:
        """Return R z, shape (dim,), for a vector z of shape (dim,) and a matrix R with R R^T = A^-1.

        If z is standard normal, the result is a draw from N(0, A^-1).
        """
        return contract.root(self.state, self._rows("z", z, (1,))[0])

    @reading
    def log_det(self) -> float:
        """Return log det A of the design A."""
        return float(contract.log_det(self.state))

    @reading
    def error_bound(self) -> float:
        """Return a proven bound on the error ||A - A_hat||_2, including rounding.

        A_hat is the matrix that the design stands for, and A the exact one. The bound is zero for `Exact`, and infinite
        if none is known.
        """
        return float(contract.error_bound(self.state))

    @reading
    def matrix(self) -> np.ndarray:
        """Return the matrix A as a dense array (dim, dim); for a sketch, the approximation that it keeps."""
        return contract.matrix(self.state)

    def merge(self, other: "Design") -> Self:
        """Return a design with the rows of this one and of `other`; neither of them changes.

        Raises TypeError for designs without a proven bound on the error after merging, and ValueError if their
        parameters differ.
        """
        if not has_equal_arguments(self, other):
            raise ValueError(
                f"other must be a {quote(self)}, got {quote(other)}; only designs of equal parameters merge"
            )
        return self._merge(other.initial_state())

    @writing
    def _merge(self, other: Any) -> Self:
        with defer_signals():
            self.state = contract.merge(self.state, other)
        return self

    def truncation(self) -> Truncation | None:
        """Return the rule by which this sketch drops directions. Default: None.

        With a rule, a bandit with a model for each arm can keep the sketches of all arms in a few shared arrays, and
        cut each by the rule. With None, every arm has a state of its own.
        """
        return None

    def consistent(self, state: Any) -> bool:
        """Return True if counters and shapes of a state read from a file agree with the parameters.

        The default compares all shapes with those of a new state.
        """
        return state.has_same_shapes(state, self.abstract_state)

    @reading
    def memory_usage(self) -> int:
        """Return the number of bytes of the design's arrays."""
        return state.nbytes(self.state)

    def contents(self) -> files.Contents:
        return files.Contents(self.params, {}, self.state)

    @reading
    def copy(self) -> Self:
        """Return an independent copy of the design."""
        return files.restore(type(self), dict(self.params), {}, self._state)

    @reading
    def __reduce__(self) -> tuple[Any, ...]:
        return files.restore, (
            type(self),
            self.params,
            {},
            None if self._state is None else state.copy_arrays(self._state),
        )

    @classmethod
    def from_contents(cls, params: dict[str, Any], extra: dict[str, Any], held: files.StateSource) -> Self:
        """Rebuild a design from its saved arguments `params`, further data `extra` and arrays `held`.

        Raises ValueError if they disagree.
        """
        design = cls(**params)
        design._state = held.take(design.begin(), design.consistent)
        return design

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.params.items())})"


def check_common(dim: Any, reg: Any, dtype: Any) -> dict[str, Any]:
    """Return the parameters `dim`, `reg` and `dtype` of a design as a dictionary; ValueError if one is out of range."""
    dim = check.integer("dim", dim, 1)
    reg, kind = check.positive("reg", reg, "the design matrix is reg I + sum of x x^T"), check.dtype(dtype)
    least = LEAST_REG * float(np.finfo(kind).tiny)
    if not least <= reg <= 1.0 / least:
        raise ValueError(f"reg must be from {least:.1e} to {1.0 / least:.1e} in {kind}, got {quote(reg)}")
    return {"dim": dim, "reg": reg, "dtype": str(kind)}
