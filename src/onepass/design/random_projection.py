"""Random projection of the rows: S = R X / sqrt(size), with independent random signs R (size, n).

Row x_t adds r_t x_t^T / sqrt(size) to S, where r_t is a fresh column of signs:

    A = reg I + S^T S,     E[S^T S] = X^T X

Guarantee, for rows that may depend on all earlier signs. Let M_t = S_t^T S_t - X_t^T X_t, and let m_t be the mass, the
sum of ||x_s||^2. Because ||r_t||^2 = size, with y_t = S_{t-1}^T r_t

    M_t - M_{t-1} = (x_t y_t^T + y_t x_t^T) / sqrt(size)

This has expectation 0 given the past, so M is a martingale. Stop it before m_t exceeds a number B. With V the
expectation of the sum of ||x_t||^2 ||S_{t-1}||_F^2,

    E ||M||_F^2 <= 4 V / size,     V <= B^2 / 2 + B E|tr M|,     E (tr M)^2 <= 4 V / size

where the second inequality sums by parts. So sqrt(V) <= u B with u = 1 / sqrt(size) + sqrt(1 / size + 1 / 2), and by
Doob's inequality, with probability 1 - delta,

    ||M_t||_2 <= xi B  in all rounds with m_t <= B,     xi = 2 u / sqrt(size delta)

Frequent Directions of the same size have xi = 1 / size, with certainty. A row costs O(dim size^2) and memory is
size dim numbers; it is here to compare with, and as a block of dyadic sketches (Wen, Yin et al. theorem 1).
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.design import contract
from onepass.design.design import Design, check_common
from onepass.design.subspace import (
    Subspace,
    init_subspace,
    init_subspace_like,
    is_valid_subspace,
    matrix_in,
    subspace_from_spectrum,
)
from onepass.design.subspace_members import register_subspace_members
from onepass.design.truncation import Sums, init_sums, is_valid_sums, scale_sums
from onepass.foundation import check
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import NEGLIGIBLE, dot, inverse_root_error, svd
from onepass.foundation.registry import savable
from onepass.foundation.state import zeros

WORD = (1 << 32) - 1


class RandomProjectionSettings(NamedTuple):
    """Settings of a random projection.

    `reg` is the regularization, `delta` the probability that the error bound fails, and `seed` the seed of the signs.
    """

    reg: float
    delta: float
    seed: int


@register_subspace_members
class RandomProjectionState(NamedTuple):
    """State of a random projection S, whose rows are sums of all rows with random signs; the design is reg I + S^T S.

    `space` holds the inverse on the span of S, and `rows` (size, dim) is S. `sums` holds the sum of squared row norms
    and the error bound, and `n_rows` is the number of rows.
    """

    space: Subspace
    rows: np.ndarray
    sums: Sums
    n_rows: int
    settings: RandomProjectionSettings


@compiled
def mix(word: int) -> int:
    """Return a hash of a 32-bit integer, by the last step of MurmurHash3."""
    word = ((word ^ (word >> 16)) * 0x85EBCA6B) & WORD
    word = ((word ^ (word >> 13)) * 0xC2B2AE35) & WORD
    return word ^ (word >> 16)


@compiled
def random_sign(seed: int, row: int, place: int) -> float:
    """Return the random sign, 1.0 or -1.0, with which row number `row` is added to row `place` of the projection.

    It is a hash of the seed and both numbers.
    """
    word = mix(mix(mix((seed + 0x9E3779B9) & WORD) ^ (row & WORD)) ^ ((place * 0x9E3779B1) & WORD))
    return 1.0 if word & 1 == 1 else -1.0


@compiled
def projection_share(size: int, delta: float) -> float:
    """Return the number xi with ||S^T S - X^T X||_2 <= xi B, with probability 1 - delta, while ||X||_F^2 <= B.

    S is the random projection of the rows X to `size` rows. B is a number that is fixed before the first row.
    """
    return 2.0 * (1.0 / np.sqrt(size) + np.sqrt(1.0 / size + 0.5)) / np.sqrt(size * delta)


@compiled
def with_rows(state: RandomProjectionState, sums: Sums, n_rows: int) -> RandomProjectionState:
    """Return the state after the rows of the projection were changed in place, with the inverse computed again.

    `sums` are the totals after the change, and `n_rows` is the number of rows learned so far.
    """
    rule, eps = state.settings, float(np.finfo(state.rows.dtype).eps)
    _, singular, vectors = svd(state.rows.astype(np.float64))
    least = (NEGLIGIBLE * eps * singular[0]) ** 2
    values = np.empty(singular.size)
    for i in range(values.size):
        values[i] = rule.reg + singular[i] ** 2
    space = subspace_from_spectrum(vectors.astype(state.rows.dtype), values, rule.reg, least)
    return RandomProjectionState(space=space, rows=state.rows, sums=sums, n_rows=n_rows, settings=rule)


@contract.append.for_state(RandomProjectionState)
def append(state: RandomProjectionState, row: np.ndarray) -> RandomProjectionState:
    rows, rule, size = state.rows, state.settings, state.rows.shape[0]
    for i in range(size):
        sign = random_sign(rule.seed, state.n_rows, i) / np.sqrt(size)
        for j in range(row.size):
            rows[i, j] += sign * row[j]
    mass = state.sums.mass + float(dot(row, row))
    shed = projection_share(size, rule.delta) * mass
    return with_rows(state, Sums(mass=mass, shed=shed, weighted=0.0, dust=0.0), state.n_rows + 1)


@contract.loss_share.for_state(RandomProjectionState)
def loss_share(state: RandomProjectionState) -> float:
    return projection_share(state.rows.shape[0], state.settings.delta)


@contract.sketch_size.for_state(RandomProjectionState)
def sketch_size(state: RandomProjectionState) -> int:
    return state.rows.shape[0]


@contract.refine.for_state(RandomProjectionState)
def refine(state: RandomProjectionState) -> RandomProjectionState:
    """Return a projection without rows, of four times the size and with other signs: the error bound falls to half."""
    rule, (size, dim) = state.settings, state.rows.shape
    fresh = RandomProjectionSettings(reg=rule.reg, delta=rule.delta, seed=mix((rule.seed + 1) & WORD))
    rows = np.zeros((4 * size, dim), state.rows.dtype)
    return RandomProjectionState(
        space=init_subspace_like(rows, 0, rule.reg), rows=rows, sums=init_sums(), n_rows=0, settings=fresh
    )


@contract.close.for_state(RandomProjectionState)
def close(state: RandomProjectionState) -> RandomProjectionState:
    rule, rows = state.settings, np.zeros((state.rows.shape[0], 0), state.rows.dtype)
    return RandomProjectionState(
        space=init_subspace_like(rows, 0, rule.reg), rows=rows, sums=init_sums(), n_rows=0, settings=rule
    )


@contract.error_bound.for_state(RandomProjectionState)
def error_bound(state: RandomProjectionState) -> float:
    eps = float(np.finfo(state.rows.dtype).eps)
    return state.sums.shed + inverse_root_error(eps, state.sums.mass, state.settings.reg)


@contract.matrix.for_state(RandomProjectionState)
def matrix(state: RandomProjectionState) -> np.ndarray:
    return matrix_in(state.space)


@contract.decay.for_state(RandomProjectionState)
def decay(state: RandomProjectionState, factor: float) -> RandomProjectionState:
    """Return the projection in which past rows count `factor` times; the error bound shrinks by the same factor."""
    scale = np.sqrt(factor)
    for i in range(state.rows.shape[0]):
        for j in range(state.rows.shape[1]):
            state.rows[i, j] *= scale
    return with_rows(state, scale_sums(state.sums, factor), state.n_rows)


@savable
class RandomProjection(Design):
    """Random projection of the rows by signs: A = reg I + S^T S, whose expectation is the exact matrix.

    Each row of S is the sum of all rows learned, with random signs, divided by sqrt(size). Use it to compare with other
    sketches; its error is larger.

    Parameters
    ----------
    dim : int
        Width d of a row, at least 1.
    size : int
        Number of rows of S, at least 1.
    reg : float, default 1.0
        Ridge penalty, above 0, in the unit of the squared length ||x||^2 of a row.
    delta : float, default 0.05
        Probability, above 0 and below 1, with which the error bound fails.
    seed : int, default 0
        Seed of the signs, from 0 to 2^32 - 1.
    dtype : {"float64", "float32"}, default "float64"
        Dtype of all arrays.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Notes
    -----
    `error_bound()` is xi times the sum of the squared lengths of the rows. Here xi = 2 u / sqrt(size delta), and u =
    1 / sqrt(size) + sqrt(1 / size + 1 / 2) is near 0.7 if `size` is large. Fix any number B beforehand. With
    probability 1 - delta, the error is at most xi B as long as the sum is at most B. Rows may depend on all earlier
    rows and estimates. A row costs O(dim size^2). There is no radius (`Theory`), because a radius needs an error bound
    for all numbers of rows together.

    Examples
    --------
    >>> from onepass.design import RandomProjection
    >>> design = RandomProjection(dim=3, size=64).append([[3.0, 0, 0]])
    >>> design.matrix().diagonal().round(9).tolist()
    [10.0, 1.0, 1.0]
    """

    error_is_certain = False

    def __init__(
        self, *, dim: int, size: int, reg: float = 1.0, delta: float = 0.05, seed: int = 0, dtype: str = "float64"
    ) -> None:
        self.params: dict[str, Any] = check_common(dim, reg, dtype)
        self.params["size"] = check.integer("size", size, 1)
        self.params["delta"] = check.fraction("delta", delta)
        if not 0.0 < self.params["delta"] < 1.0:
            raise ValueError(f"delta must be above 0 and below 1, got {check.quote(delta)}")
        self.params["seed"] = check.integer("seed", seed, 0, WORD)

    def begin(self) -> RandomProjectionState:
        p = self.params
        return RandomProjectionState(
            space=init_subspace(p["dim"], 0, p["reg"], self.dtype),
            rows=zeros(p["size"], p["dim"], dtype=self.dtype),
            sums=Sums(mass=0.0, shed=0.0, weighted=0.0, dust=0.0),
            n_rows=0,
            settings=RandomProjectionSettings(reg=p["reg"], delta=p["delta"], seed=p["seed"]),
        )

    def refine(self, times: int) -> "RandomProjection":
        """Return an empty projection to 4^times as many rows, for a later block of `DyadicSketches`.

        Each refinement halves the error bound.

        Parameters
        ----------
        times : int
            Number of refinements, at least 0.

        Returns
        -------
        RandomProjection
            A design to which no rows were added.
        """
        seed = self.params["seed"]
        for _ in range(times):
            seed = int(mix((seed + 1) & WORD))
        return RandomProjection(**{**self.params, "size": self.params["size"] * 4**times, "seed": seed})

    def consistent(self, state: RandomProjectionState) -> bool:
        """Return True if counters and shapes of a loaded state fit together.

        Parameters
        ----------
        state : NamedTuple
            State that a file holds.

        Returns
        -------
        bool
            False if the file is damaged.
        """
        begun = self.abstract_state
        return (
            state.settings == begun.settings
            and state.rows.shape == begun.rows.shape
            and state.n_rows >= 0
            and is_valid_sums(state.sums)
            and is_valid_subspace(state.space, self.dim)
        )
