"""The contract of a kernel model's posterior: how it learns plays of a table of points, and what it says of any rows.

A member is a final class with the methods below. It does not know what arms are, nor where its kernel comes from: that
is up to `KernelModel`.
"""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from onepass.exploration.confidence_width import Theory
from onepass.exploration.randomness import empty_normals
from onepass.features.kernels import Kernel
from onepass.foundation import state as states
from onepass.model.kernel.checks import kernel_matrix, prior_variances
from onepass.model.kernel.state import KernelState, append_point, init_state


class PosteriorBackup(NamedTuple):
    """All that a play or another kernel changes: the state, kernel and reg, and where the coins of dictionaries are."""

    state: KernelState
    kernel: Kernel
    reg: float
    coins: Any


class PointStatistics(NamedTuple):
    """Means, ones and variances (n,) of points, and draws (count, n) of the posterior less its mean, over sqrt(reg)."""

    means: np.ndarray
    ones: np.ndarray
    variances: np.ndarray
    draws: np.ndarray


class KernelPosterior(ABC):
    """A posterior of f under a kernel and reg.

    points (n, dim): of the table, or (0, 0) where they are not known yet. state, kernel, reg: as they are now. coins:
    what a dictionary is drawn by, if any. copies: rows of `KernelState.copies`. root: (r, n), what draws at the points
    of a table that stays are made of, once there was one.
    """

    coins: np.random.Generator | None = None
    copies: int = 0
    root: np.ndarray | None = None

    def __init__(self, kernel: Kernel, reg: float, points: np.ndarray) -> None:
        self.kernel, self.reg = kernel, reg
        self.state = self.begin(points)

    def begin(self, points: np.ndarray) -> KernelState:
        """Return the state before the first play."""
        prior = states.zeros(len(points)) if states.is_abstract() else prior_variances(self.kernel, points)
        return init_state(points, prior, self.reg, self.copies)

    @abstractmethod
    def play(self, place: int, reward: float) -> None:
        """Learn a play of a point of the table: by one compiled call or one assignment, once nothing can fail."""

    @abstractmethod
    def column(self, gram: np.ndarray) -> np.ndarray:
        """Return columns of `rows` for points with kernel values gram (used, n)."""

    @abstractmethod
    def predict(self, gram: np.ndarray, prior: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return means, ones and variances of points from k_U (used, n) and k(x, x) (n,)."""

    @abstractmethod
    def rebuild(self, state: KernelState) -> KernelState:
        """Return the same plays under the present kernel and reg."""

    @abstractmethod
    def draw_table(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Return draws (count, n) at all points of a table that stays."""

    @abstractmethod
    def draw_rows(
        self, rows: np.ndarray, gram: np.ndarray, prior: np.ndarray, rng: np.random.Generator, count: int
    ) -> np.ndarray:
        """Return draws (count, n) at rows, given k_U and k(x, x) there."""

    @abstractmethod
    def radius(self, theory: Theory) -> float:
        """Return beta of the confidence intervals that are proved."""

    @abstractmethod
    def variance_factor(self) -> float:
        """Return a certified factor between these variances and the exact ones."""

    @abstractmethod
    def redraw(self, budget: Any) -> None:
        """Draw the dictionary again, by another budget."""

    @abstractmethod
    def weights(self, near: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return weights (used, 2) of k_U in means and ones, and C k (used,) of k = near (used,).

        k(x, x) / reg - k^T C k is the variance.
        """

    @property
    def dictionary(self) -> np.ndarray:
        """The points that the posterior rests on, (used, dim)."""
        return self.state.points[self.state.members[: self.state.n_rows]]

    @property
    def effective_dimension(self) -> float:
        """Sum over all plays of the variance of their point as it is now."""
        return float(self.state.plays @ self.state.variances)

    def look(self, rows: np.ndarray | None, count: int = 0, rng: Any = None) -> PointStatistics:
        """Return what is known of rows (n, dim), None: of the table; and `count` draws."""
        if rows is None:
            s, size = self.state, self.state.size
            draws = self.draw_table(rng, count) if count else empty_normals(size)
            return PointStatistics(s.means[:size], s.ones[:size], s.variances[:size], draws)
        gram, prior = kernel_matrix(self.kernel, self.dictionary, rows), prior_variances(self.kernel, rows)
        draws = self.draw_rows(rows, gram, prior, rng, count) if count else empty_normals(len(rows))
        return PointStatistics(*self.predict(gram, prior), draws)

    def join(self, point: np.ndarray) -> int:
        """Put a point (dim,) into the table, and return its place."""
        state = self.state if self.state.points.shape[1] else self.begin(np.empty((0, point.size)))
        gram, prior = (
            kernel_matrix(self.kernel, self.dictionary, point[None]),
            prior_variances(self.kernel, point[None]),
        )
        (mean,), (one,), (variance,) = self.predict(gram, prior)
        column = self.column(gram)[:, 0]
        state = append_point(state, point, float(prior[0]), self.reg)
        place = state.size - 1
        state.rows[: state.n_rows, place] = column
        state.means[place], state.ones[place], state.variances[place] = mean, one, variance
        self.state = state
        return place

    def refit(self, kernel: Kernel, reg: float) -> None:
        """Put all plays so far under another kernel and reg; where that raises, nothing has changed."""
        held = self.hold()
        self.kernel, self.reg, self.root = kernel, reg, None
        try:
            self.state = self.rebuild(self.state) if self.state.n_learned else self.begin(self.state.points)
        except BaseException:
            self.restore(held)
            raise

    def hold(self) -> PosteriorBackup:
        """Return what `restore` takes; a play may write into the arrays of the state."""
        coins = None if self.coins is None else self.coins.bit_generator.state
        return PosteriorBackup(self.state, self.kernel, self.reg, coins)

    def restore(self, held: PosteriorBackup) -> None:
        """Take back what was held."""
        self.state, self.kernel, self.reg = held[:3]
        if self.coins is not None:
            self.coins.bit_generator.state = held.coins

    def memory_usage(self) -> int:
        """Return the bytes of all arrays."""
        return states.nbytes(self.state) + (0 if self.root is None else self.root.nbytes)
