"""Kernels k(X, Y) for rows X (n, d) and Y (m, d), with values (n, m); also sums, products and multiples of them.

For two rows x and y, the kernels are

    RBF          exp(-r^2 / 2)                               r = ||(x - y) / length_scale||
    Matern       (1 + s + s^2 / 3) e^-s  and so on           s = sqrt(2 nu) r, nu = 1/2, 3/2 or 5/2
    Linear       x^T y + bias
    Polynomial   (x^T y + bias)^degree

Scikit-learn's kernels and functions k(X, Y) are accepted as well (`as_kernel`). Distances come from one matrix product.
If two rows are so close that it loses all digits, their distance is computed from their difference. The cost is
O(n m d), and the memory O(n m).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, cast

import numpy as np

from onepass.foundation import check
from onepass.foundation.check import quote
from onepass.foundation.linalg import squared_distances
from onepass.foundation.registry import savable, to_plain

SAMPLE = 1000  # points whose distances have a median near that of all
NUMBER = int | float | np.integer | np.floating
PROBED = 64  # rows on which a kernel is tried before anything relies on it
JITTER = 1e-8  # of the largest variance: what a positive definite kernel may fall short of


class Kernel(ABC):
    """Base class of kernels, positive definite functions of two points.

    Subclasses are frozen dataclasses; `+` and `*` combine them.
    """

    def __call__(self, x: Any, y: Any) -> np.ndarray:
        """Compute k(x_i, y_j), shapes (n, d) and (m, d) -> (n, m)."""
        x, y = check_rows("x", x), check_rows("y", y)
        if x.shape[1] != y.shape[1]:
            raise ValueError(f"x and y must have rows of one length, got shapes {x.shape} and {y.shape}")
        return self.gram(x, y)

    @abstractmethod
    def gram(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the kernel k(x_i, y_j) for arrays x (n, d) and y (m, d) that have been checked, shape (n, m)."""

    @abstractmethod
    def diagonal(self, x: Any) -> np.ndarray:
        """Return k(x_i, x_i) for every row of x, shape (n, d) -> (n,)."""

    def params(self) -> dict[str, Any]:
        """Return the arguments of the constructor as plain data; raise ValueError for kernels that hold a function."""
        return {field.name: to_plain(getattr(self, field.name)) for field in fields(cast(Any, self))}

    def __add__(self, other: Any) -> "Kernel":
        return Sum(self, as_kernel(other))

    def __radd__(self, other: Any) -> "Kernel":
        return Sum(as_kernel(other), self)

    def __mul__(self, other: Any) -> "Kernel":
        return Scaled(self, float(other)) if isinstance(other, NUMBER) else Product(self, as_kernel(other))

    def __rmul__(self, other: Any) -> "Kernel":
        return Scaled(self, float(other)) if isinstance(other, NUMBER) else Product(as_kernel(other), self)


def check_rows(name: str, rows: Any) -> np.ndarray:
    """Return `rows` (n, d), the argument `name`, as float64; raise ValueError unless they are finite."""
    return check.finite_rows(name, check.array(name, rows, np.dtype(np.float64), (2,)))


def _length_scale(value: Any) -> float | tuple[float, ...]:
    """Return a length scale, or raise ValueError unless it is a positive number or one for each feature."""
    if not isinstance(value, int | float) and hasattr(value, "__len__") and not isinstance(value, str):
        several = check.array("length_scale", value, np.dtype(np.float64), (0, 1))
        value = several.item() if several.ndim == 0 else value
        if several.size and several.ndim:
            return tuple(check.positive("length_scale", v) for v in several.tolist())
    return check.positive("length_scale", value, "or give one number per feature")


class Stationary(Kernel):
    """Kernel that is a function of r = ||(x - y) / length_scale|| and is 1 at r = 0."""

    length_scale: float | tuple[float, ...]

    def gram(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        scale = np.asarray(self.length_scale)
        if scale.ndim == 1 and scale.size != x.shape[1]:
            raise ValueError(f"length_scale must be one number or {x.shape[1]}, one per feature, got {scale.size}")
        return self._value_of_squared(squared_distances(x / scale, y / scale))

    @abstractmethod
    def _value_of_squared(self, squared: np.ndarray) -> np.ndarray:
        """Return the kernel's values from squared distances r^2, in place if possible."""

    def diagonal(self, x: Any) -> np.ndarray:
        return np.ones(len(x))


@savable
@dataclass(frozen=True)
class RBF(Stationary):
    """Gaussian kernel exp(-||x - y||^2 / (2 length_scale^2)).

    Parameters
    ----------
    length_scale : float or sequence of float, default 1.0
        Length scale in the unit of x, above 0: one number, or one per feature, (d,).

    Raises
    ------
    ValueError
        If `length_scale` is anything else.

    Examples
    --------
    >>> import onepass as op
    >>> bool(op.RBF(2.0)([[0.0, 0.0]], [[0.0, 2.0]])[0, 0] == 2.718281828459045**-0.5)
    True
    """

    length_scale: Any = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "length_scale", _length_scale(self.length_scale))

    def _value_of_squared(self, squared: np.ndarray) -> np.ndarray:
        squared *= -0.5
        return np.exp(squared, out=squared)


@savable
@dataclass(frozen=True)
class Matern(Stationary):
    """Matern kernel, whose random functions have 0, 1 or 2 derivatives (Rasmussen and Williams, 4.14).

    Let s = sqrt(2 nu) ||(x - y) / length_scale||. The kernel is exp(-s) for nu = 0.5, (1 + s) exp(-s) for nu = 1.5, and
    (1 + s + s^2 / 3) exp(-s) for nu = 2.5.

    Parameters
    ----------
    nu : {0.5, 1.5, 2.5}, default 2.5
        Smoothness: 0.5, 1.5 and 2.5 mean 0, 1 and 2 derivatives.
    length_scale : float or sequence of float, default 1.0
        Length scale in the unit of x, above 0: one number, or one per feature, (d,).

    Raises
    ------
    ValueError
        If an argument is anything else.
    """

    nu: float = 2.5
    length_scale: Any = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "nu", float(check.choice("nu", self.nu, (0.5, 1.5, 2.5))))
        object.__setattr__(self, "length_scale", _length_scale(self.length_scale))

    def _value_of_squared(self, squared: np.ndarray) -> np.ndarray:
        squared *= 2.0 * self.nu
        s = np.sqrt(squared, out=squared)
        decay = np.exp(-s)
        if self.nu == 1.5:
            s += 1.0
            decay *= s
        elif self.nu == 2.5:
            s *= 1.0 + s / 3.0
            s += 1.0
            decay *= s
        return decay


@savable
@dataclass(frozen=True)
class Linear(Kernel):
    """Linear kernel x^T y + bias: with it a kernel bandit is a linear one.

    Parameters
    ----------
    bias : float, default 0.0
        Constant that is added to x^T y, in the unit of ||x||^2, at least 0.

    Raises
    ------
    ValueError
        If `bias` is anything else.
    """

    bias: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "bias", _bias(self.bias))

    def gram(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return x @ y.T + self.bias

    def diagonal(self, x: Any) -> np.ndarray:
        return np.einsum("ij,ij->i", x, x) + self.bias


@savable
@dataclass(frozen=True)
class Polynomial(Kernel):
    """Polynomial kernel (x^T y + bias)^degree.

    Parameters
    ----------
    degree : int, default 3
        Degree, at least 1.
    bias : float, default 1.0
        Bias in units of ||x||^2, at least 0.

    Raises
    ------
    ValueError
        If an argument is anything else.
    """

    degree: int = 3
    bias: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", check.integer("degree", self.degree, 1))
        object.__setattr__(self, "bias", _bias(self.bias))

    def gram(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return (x @ y.T + self.bias) ** self.degree

    def diagonal(self, x: Any) -> np.ndarray:
        return (np.einsum("ij,ij->i", x, x) + self.bias) ** self.degree


def _bias(value: Any) -> float:
    number = check.real("bias", value)
    if number < 0.0:
        raise ValueError(f"bias must be at least 0, or the kernel is not positive definite, got {quote(value)}")
    return number


def _check_part(name: str, value: Any) -> None:
    """Raise ValueError if `value`, the argument `name`, is no kernel."""
    if not isinstance(value, Kernel):
        raise ValueError(f"{name} must be a kernel such as RBF(0.2), got {quote(value)}")


def _operand(kernel: Kernel, kinds: Any) -> str:
    """Return the repr of a kernel within a sum or product, in parentheses if it is one of `kinds`."""
    return f"({kernel!r})" if isinstance(kernel, kinds) else repr(kernel)


@savable
@dataclass(frozen=True)
class Scaled(Kernel):
    """Multiple of a kernel, scale k(x, y), written ``scale * kernel``.

    Parameters
    ----------
    kernel : Kernel
        The kernel k, such as `RBF()`.
    scale : float
        Factor above 0: the variance of the function where k(x, x) = 1.

    Raises
    ------
    ValueError
        If an argument is anything else.
    """

    kernel: Kernel
    scale: float

    def __post_init__(self) -> None:
        _check_part("kernel", self.kernel)
        object.__setattr__(self, "scale", check.positive("scale", self.scale))

    def gram(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        out = self.kernel.gram(x, y)
        out *= self.scale
        return out

    def diagonal(self, x: Any) -> np.ndarray:
        return self.scale * self.kernel.diagonal(x)

    def __repr__(self) -> str:
        return f"{self.scale!r} * {_operand(self.kernel, Sum | Product | Scaled)}"


@savable
@dataclass(frozen=True)
class Sum(Kernel):
    """Sum of kernels, left(x, y) + right(x, y), written ``left + right``.

    Parameters
    ----------
    left : Kernel
        First kernel, such as `RBF()`. The operator `+` also takes functions and scikit-learn's kernels.
    right : Kernel
        Second kernel.

    Raises
    ------
    ValueError
        If an argument is no kernel.
    """

    left: Kernel
    right: Kernel

    def __post_init__(self) -> None:
        _check_part("left", self.left)
        _check_part("right", self.right)

    def gram(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        out = self.left.gram(x, y)
        out += self.right.gram(x, y)
        return out

    def diagonal(self, x: Any) -> np.ndarray:
        return self.left.diagonal(x) + self.right.diagonal(x)

    def __repr__(self) -> str:
        return f"{self.left!r} + {_operand(self.right, Sum)}"


@savable
@dataclass(frozen=True)
class Product(Kernel):
    """Product of kernels, left(x, y) right(x, y), written ``left * right``.

    Parameters
    ----------
    left : Kernel
        First kernel, such as `RBF()`. The operator `*` also takes functions and scikit-learn's kernels.
    right : Kernel
        Second kernel.

    Raises
    ------
    ValueError
        If an argument is no kernel.
    """

    left: Kernel
    right: Kernel

    def __post_init__(self) -> None:
        _check_part("left", self.left)
        _check_part("right", self.right)

    def gram(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        out = self.left.gram(x, y)
        out *= self.right.gram(x, y)
        return out

    def diagonal(self, x: Any) -> np.ndarray:
        return self.left.diagonal(x) * self.right.diagonal(x)

    def __repr__(self) -> str:
        return f"{_operand(self.left, Sum)} * {_operand(self.right, Sum | Product | Scaled)}"


@dataclass(frozen=True)
class CallableKernel(Kernel):
    """Wrapper of a scikit-learn kernel or a function k(X, Y) -> (n, m), which is not written to files."""

    function: Callable[[np.ndarray, np.ndarray], Any]

    def gram(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        out = check.array("kernel(x, y)", self.function(x, y), np.dtype(np.float64), (2,))
        if out.shape != (len(x), len(y)):
            raise ValueError(f"kernel must give shape {(len(x), len(y))} for so many rows, got {out.shape}")
        if not np.isfinite(out).all():
            raise ValueError(f"kernel must be finite, got {out[~np.isfinite(out)][0]}; scale or clean the rows")
        return out.copy() if np.may_share_memory(out, x) or np.may_share_memory(out, y) else out

    def diagonal(self, x: Any) -> np.ndarray:
        if hasattr(self.function, "diag"):
            return np.array(self.function.diag(x), np.float64)
        blocks = [x[i : i + PROBED] for i in range(0, len(x), PROBED)]
        return np.concatenate([np.diagonal(self.gram(block, block)) for block in blocks] or [np.empty(0)])

    def params(self) -> dict[str, Any]:
        raise ValueError(
            f"kernel {quote(self)} is a function, which a file cannot hold; use onepass's own kernels to save"
        )

    def __repr__(self) -> str:
        return repr(self.function)


def as_kernel(kernel: Any) -> Kernel:
    """Return a kernel of this package unchanged, or wrap a scikit-learn kernel or a function k(X, Y).

    Raises ValueError for anything else.
    """
    if isinstance(kernel, Kernel):
        return kernel
    if not callable(kernel) or isinstance(kernel, type):
        raise ValueError(
            f"kernel must be a kernel such as RBF(0.2), or a function k(X, Y) -> (n, m), got {quote(kernel)}"
        )
    parts = [kernel, *kernel.get_params().values()] if hasattr(kernel, "get_params") else []
    if any(type(part).__name__ == "WhiteKernel" for part in parts):
        raise ValueError(f"kernel must not contain a WhiteKernel, got {quote(kernel)}; the noise's variance is reg")
    return CallableKernel(kernel)


def check_positive_definite(kernel: Kernel, rows: np.ndarray) -> None:
    """Raise ValueError unless the kernel is finite, symmetric and positive semi-definite, up to rounding.

    It is checked on at most `PROBED` of the rows (n, d), at equal steps.
    """
    few = np.ascontiguousarray(rows[:: max(1, -(-len(rows) // PROBED))])
    gram, diagonal = kernel.gram(few, few.copy()), kernel.diagonal(few)
    if not (np.isfinite(gram).all() and np.isfinite(diagonal).all()):
        raise ValueError(f"kernel must be finite on the arms, got {quote(kernel)}; scale the arms")
    scale = max(float(np.abs(gram).max()), float(np.abs(diagonal).max()))
    if np.abs(gram - gram.T).max() > JITTER * scale or np.abs(np.diagonal(gram) - diagonal).max() > JITTER * scale:
        raise ValueError(
            f"kernel must be symmetric, its diagonal that of k(X, X), got {quote(kernel)}; noise belongs in reg"
        )
    if scale == 0.0 or np.linalg.eigvalsh(gram)[0] < -JITTER * scale * len(few):
        raise indefinite_error(kernel)


def indefinite_error(kernel: Kernel) -> ValueError:
    """Make the error for a kernel that is not positive definite."""
    return ValueError(
        f"kernel must be positive definite on the arms, got {quote(kernel)}, which is not, or only with variances "
        "too large for rounding (more than 1e12 times reg): then scale the arms or raise reg"
    )


def median_distance(points: np.ndarray) -> float:
    """Return the median distance between distinct points, of at most 1,000 of them; 1 if there is none."""
    few = np.ascontiguousarray(points[:: max(1, -(-len(points) // SAMPLE))])
    squares = squared_distances(few, few)
    squares = squares[squares > 0.0]
    return float(np.sqrt(np.median(squares))) if squares.size else 1.0
