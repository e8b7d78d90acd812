"""Random Fourier features (Rahimi and Recht 2007): phi(x) = sqrt(2 / D) [cos(W x), sin(W x)], W (D / 2, dim).

Rows of W are drawn from N(0, I / width^2), so E phi(x)^T phi(y) = exp(-||x - y||^2 / (2 width^2)), the Gaussian kernel.
The standard deviation of phi(x)^T phi(y) is below sqrt(1 / D), and ||phi(x)|| = 1 for every draw. Other kernels are not
supported. Cost O(D dim) a row.
"""

from collections.abc import Iterable
from math import factorial
from typing import Any, NamedTuple, final

import numpy as np

from onepass.features.attribution import Attribution, Linear, name_terms
from onepass.features.contract import output_dim, transform_row
from onepass.features.feature_map import FeatureMap
from onepass.features.kernels import RBF
from onepass.foundation import check
from onepass.foundation.check import quote
from onepass.foundation.generic import compiled
from onepass.foundation.registry import savable
from onepass.foundation.state import is_abstract, zeros


class FourierState(NamedTuple):
    """State of D random Fourier features: the frequencies W, of shape (D / 2, dim)."""

    frequencies: np.ndarray


SINE = tuple((-1.0) ** n / factorial(2 * n + 1) for n in range(8))
COSINE = tuple((-1.0) ** n / factorial(2 * n) for n in range(9))


@compiled
def horner(z: float, coefficients: tuple[float, ...]) -> float:
    """Evaluate the polynomial in z with these coefficients, the constant one first."""
    total = 0.0
    for i in range(len(coefficients)):
        total = total * z + coefficients[len(coefficients) - 1 - i]
    return total


@compiled
def sine_and_cosine(turns: float) -> tuple[float, float]:
    """Return sine and cosine of the angle 2 pi turns, accurate to 1e-15.

    It uses Taylor's series within an eighth of a turn of a multiple of a quarter. There are no branches, so loops over
    it are vectorized; the C library's functions take ten times as long. NaN stays NaN.
    """
    quarters = np.rint(4.0 * turns)
    a = 2.0 * np.pi * (turns - 0.25 * quarters)
    z = a * a
    s = a * horner(z, SINE)
    c = horner(z, COSINE)
    half = quarters - 2.0 * np.floor(0.5 * quarters)  # 1 after an odd number of quarters
    whole = quarters - 4.0 * np.floor(0.25 * quarters)  # 0 to 3
    sign = 1.0 if whole < 2.0 else -1.0
    return (sign * c, -sign * s) if half == 1.0 else (sign * s, sign * c)


@output_dim.for_state(FourierState)
def output_dim_fourier(state: FourierState) -> int:
    return 2 * state.frequencies.shape[0]


@transform_row.for_state(FourierState)
def transform_row_fourier(state: FourierState, x: np.ndarray, phi: np.ndarray) -> None:
    half = state.frequencies.shape[0]
    size = 1.0 / np.sqrt(half)
    for i in range(half):
        angle = 0.0
        for j in range(x.size):
            angle += state.frequencies[i, j] * x[j]
        turns = angle * (0.5 / np.pi)
        phi[i] = turns - np.rint(turns) if phi.itemsize == 4 else turns  # float32 would lose the digits that count
    for i in range(half):
        sine, cosine = sine_and_cosine(phi[i])
        phi[i] = size * cosine
        phi[half + i] = size * sine


def make_fourier(size: int, dim: int, width: float, seed: int) -> FourierState:
    """Make the state of `size` random Fourier features (even) for rows of `dim` numbers and a kernel of this width."""
    if is_abstract():
        return FourierState(frequencies=zeros(size // 2, dim))
    return FourierState(frequencies=np.random.default_rng(seed).standard_normal((size // 2, dim)) / width)


@final
@savable
class Fourier(FeatureMap):
    """Random Fourier features: cosines and sines of random frequencies, z = sqrt(2 / size) [cos(W x), sin(W x)].

    z(x)^T z(y) approximates the Gaussian kernel `RBF`, exp(-||(x - y) / length_scale||^2 / 2), for all x and y. For
    other kernels use `Nystrom`. The matrix W holds the frequencies.

    Parameters
    ----------
    dim : int
        Width of x, at least 1.
    size : int
        Width of z, even, at least 2. The error of a product is about sqrt(1 / size).
    length_scale : float or array of shape (dim,), default 1.0
        Length scale in the unit of x, above 0: one number, or one per column.
    seed : int, default 0
        Seed from 0 to 2^32 - 1. W is drawn from it alone and is not written to files.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Notes
    -----
    The map is not certified: a design's proven error bound, `error_bound()`, does not cover the error of the random
    draw. A row costs O(size dim), and memory is O(size dim).

    Examples
    --------
    >>> import numpy as np, onepass as op
    >>> rows = np.random.default_rng(0).standard_normal((5, 3))
    >>> z = op.features.Fourier(dim=3, size=4000, length_scale=2.0).transform(rows)
    >>> bool(np.abs(z @ z.T - op.RBF(2.0)(rows, rows)).max() < 0.05)
    True
    """

    repeatable = True

    def __init__(self, *, dim: int, size: int, length_scale: Any = 1.0, seed: int = 0) -> None:
        self.input_dim: int = check.integer("dim", dim, 1)
        self.output_dim: int = check.integer("size", size, 2)
        if self.output_dim % 2:
            raise ValueError(f"size must be even, a cosine and a sine of every frequency, got {quote(size)}")
        self.length_scale: Any = RBF(length_scale).length_scale
        if np.ndim(self.length_scale) and len(self.length_scale) != self.input_dim:
            raise ValueError(f"length_scale must be one number or {dim}, one per column, got {len(self.length_scale)}")
        self.seed: int = check.integer("seed", seed, 0, check.LARGEST_SEED)
        self.params: dict[str, Any] = {
            "dim": self.input_dim, "size": self.output_dim, "length_scale": self.length_scale, "seed": self.seed
        }  # fmt: skip

    def begin(self, dtype: np.dtype) -> FourierState:
        if is_abstract():
            return FourierState(frequencies=zeros(self.output_dim // 2, self.input_dim))
        normal = np.random.RandomState(self.seed).standard_normal((self.output_dim // 2, self.input_dim))
        return FourierState(
            frequencies=normal / np.asarray(self.length_scale)
        )  # in float64: an angle may be many turns

    def name_features(self, names: tuple[str, ...]) -> Iterable[str]:
        return (f"{wave}{j}" for wave in ("cos", "sin") for j in range(self.output_dim // 2))

    def attribute(self, state: Any, x: np.ndarray, features: Linear, names: tuple[str, ...]) -> Attribution:
        half = self.output_dim // 2  # by frequency: cosine and sine are a wave; value: its angle, slope: its amplitude
        waves = Linear(
            np.hypot(features.slopes[:, :half], features.slopes[:, half:]) / np.sqrt(half),
            features.parts[:, :half] + features.parts[:, half:],
        )
        return name_terms((f"frequency{j}" for j in range(half)), state.frequencies @ x, waves)
