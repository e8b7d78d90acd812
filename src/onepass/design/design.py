"""The public face of a design: checks arguments, holds the state, delegates to the generic functions."""

from abc import abstractmethod
from typing import Any, Self

import numpy as np

from onepass.design import contract
from onepass.design.truncation import Truncation
from onepass.foundation import check, files, state
from onepass.foundation.check import quote
from onepass.foundation.deferred_signals import defer_signals
from onepass.foundation.rw_lock import reading, writing

LEAST_REG = 4.0  # times the least normal number: 1 / reg has room below the largest


class Design(files.Owner):
    """A = reg I + sum of x x^T, held through its inverse. Members are final: they set `params` and say how they begin.

    A design without rows holds no state yet. To be saved, a class is decorated with `onepass.extend.savable`, and says
    in `consistent` which states fit, unless all arrays keep the shapes that they begin with.
    """

    params: dict[str, Any]
    _state: Any = None

    @abstractmethod
    def begin(self) -> Any:
        """Return the state of A = reg I.

        Arrays from `onepass.foundation.state.zeros` take no memory while a file is read.
        """

    @property
    def state(self) -> Any:
        """All that is held of A."""
        return self.begin() if self._state is None else self._state

    @state.setter
    def state(self, value: Any) -> None:
        self._state = value

    @reading
    def initial_state(self) -> Any:
        """Return the present state in arrays of its own, from which an estimator, an arm or a learner starts."""
        return self.begin() if self._state is None else state.copy(self._state)

    @property
    def has_learned(self) -> bool:
        """True once there have been rows."""
        return self._state is not None

    @property
    def abstract_state(self) -> Any:
        """An abstract state of A = reg I: its settings, and the shapes of its arrays."""
        with state.abstract():
            return self.begin()

    @property
    def dim(self) -> int:
        """Width d of a row."""
        return self.params["dim"]

    @property
    def dtype(self) -> np.dtype:
        """The dtype of every array of the state."""
        return np.dtype(self.params["dtype"])

    def _rows(self, name: str, rows: Any, dims: tuple[int, ...] = (1, 2)) -> np.ndarray:
        out = check.array(name, rows, self.dtype, dims, self.dim)
        return check.finite_rows(name, out.reshape(-1, self.dim))

    @writing
    def append(self, rows: Any) -> Self:
        """Add rows X, (dim,) or (n, dim): A += X^T X. ValueError, and no change, for NaN or a wrong shape."""
        checked = self._rows("rows", rows)
        with defer_signals():
            if np.ndim(rows) == 1:
                self.state = contract.append(self.state, checked[0])
            elif checked.shape[0]:
                self.state = contract.append_rows(self.state, checked)
        return self

    @writing
    def decay(self, factor: Any) -> Self:
        """Make past rows count less: A <- reg I + factor (A - reg I).

        The factor is from 0.0 (forget all) to 1.0 (forget nothing). The certificate shrinks alike. ValueError for other
        factors, TypeError for designs of your own without `onepass.design.contract.decay`.
        """
        factor = check.fraction("factor", factor)
        with defer_signals():
            if self.has_learned:
                self.state = contract.decay(self.state, factor)
        return self

    @reading
    def solve(self, b: Any) -> np.ndarray:
        """A^-1 b, shape (dim,) -> (dim,)."""
        return contract.solve(self.state, self._rows("b", b, (1,))[0])

    @reading
    def inverse_quadratic(self, rows: Any) -> np.ndarray:
        """x^T A^-1 x for every row x of rows, shape (n, dim) -> (n,)."""
        return contract.inverse_quadratic(self.state, self._rows("rows", rows))

    @reading
    def root(self, z: Any) -> np.ndarray:
        """R z with R R^T = A^-1, shape (dim,) -> (dim,)."""
        return contract.root(self.state, self._rows("z", z, (1,))[0])

    @reading
    def log_det(self) -> float:
        """Return log det A."""
        return float(contract.log_det(self.state))

    @reading
    def error_bound(self) -> float:
        """Certified bound on ||A - A_hat||_2, its rounding included; zero for `Exact`, infinite where none is known."""
        return float(contract.error_bound(self.state))

    @reading
    def matrix(self) -> np.ndarray:
        """Return the dense (dim, dim) matrix that the state stands for."""
        return contract.matrix(self.state)

    def merge(self, other: "Design") -> Self:
        """Both streams together, this one's and `other`'s.

        TypeError for members without a certificate for it, ValueError if they differ.
        """
        if type(other) is not type(self) or other.params != self.params:
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
        """Return when and by which rule the arms of an arena are truncated, or None if an arm holds a whole state."""
        return None

    def consistent(self, state: Any) -> bool:
        """Return whether counters and shapes of a file's state fit the parameters; here: the shapes as they begin."""
        return state.has_same_shapes(state, self.abstract_state)

    @reading
    def memory_usage(self) -> int:
        """Bytes of all arrays of the state."""
        return state.nbytes(self.state)

    def contents(self) -> files.Contents:
        return files.Contents(self.params, {}, self.state)

    @reading
    def copy(self) -> Self:
        """Return an independent copy."""
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
        """Rebuild a design from `params`, `extra` and `held` of a file or copy; ValueError if they do not fit."""
        design = cls(**params)
        design._state = held.take(design.begin(), design.consistent)
        return design

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.params.items())})"


def check_common(dim: Any, reg: Any, dtype: Any) -> dict[str, Any]:
    """Return the checked parameters that every design has."""
    dim = check.integer("dim", dim, 1)
    reg, kind = check.positive("reg", reg, "the design matrix is reg I + sum of x x^T"), check.dtype(dtype)
    least = LEAST_REG * float(np.finfo(kind).tiny)
    if not least <= reg <= 1.0 / least:
        raise ValueError(f"reg must be from {least:.1e} to {1.0 / least:.1e} in {kind}, got {quote(reg)}")
    return {"dim": dim, "reg": reg, "dtype": str(kind)}
