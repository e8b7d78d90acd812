"""Contract of a kernel model's posterior: it learns plays of points in a table, and predicts at any rows.

Subclasses implement the methods below. A subclass of a subclass is not supported. A posterior only knows points.
`KernelModel` translates arms to points and chooses the kernel.
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
    """Backup of everything that a play or a new kernel changes: state, kernel, reg, and the generator's position."""

    state: KernelState
    kernel: Kernel
    reg: float
    coins: Any


class PointStatistics(NamedTuple):
    """Statistics of n points under the posterior of a kernel model.

    - means (n,): posterior means.
    - ones (n,): posterior means if all rewards were 1.
    - variances (n,): posterior variances divided by reg, the variance of the noise.
    - draws (count, n): posterior draws minus the mean, divided by sqrt(reg).
    """

    means: np.ndarray
    ones: np.ndarray
    variances: np.ndarray
    draws: np.ndarray


class KernelPosterior(ABC):
    """Base class of posteriors of a function f under a kernel and noise variance reg, for a table of points.

    - points (n, dim): the initial table, or (0, 0) if it is not known yet.
    - state: plays, and the arrays computed from them.
    - kernel, reg: kernel and noise variance in use.
    - coins: random generator by which a dictionary is drawn, if any.
    - copies: number of rows of `KernelState.copies`.
    - root (r, n): matrix from which draws at a fixed table are made, cached at its first use.
    """

    coins: np.random.Generator | None = None
    copies: int = 0
    root: np.ndarray | None = None

    def __init__(self, kernel: Kernel, reg: float, points: np.ndarray) -> None:
        self.kernel, self.reg = kernel, reg
        self.state = self.begin(points)

    def begin(self, points: np.ndarray) -> KernelState:
        """Return the state of the posterior before the first play, with the table `points` (n, dim)."""
        prior = states.zeros(len(points)) if states.is_abstract() else prior_variances(self.kernel, points)
        return init_state(points, prior, self.reg, self.copies)

    @abstractmethod
    def play(self, place: int, reward: float) -> None:
        """Learn a reward of the stored point with index `place`.

        The state changes by one compiled call or assignment, after everything that may fail.
        """

    @abstractmethod
    def column(self, gram: np.ndarray) -> np.ndarray:
        """Return the columns of the state's matrix `rows` for n new points, from their kernel values gram (used, n)."""

    @abstractmethod
    def predict(self, gram: np.ndarray, prior: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the means, the means of constant rewards 1, and the variances in units of reg (n,) of n points.

        gram (used, n) is the kernel between the points that the posterior is based on and these points; prior (n,) is
        k(x, x).
        """

    @abstractmethod
    def rebuild(self, state: KernelState) -> KernelState:
        """Return the state for the same plays under the present kernel and noise variance."""

    @abstractmethod
    def draw_table(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Return `count` random functions of the posterior, as values (count, n) at all n points of a fixed table."""

    @abstractmethod
    def draw_rows(
        self, rows: np.ndarray, gram: np.ndarray, prior: np.ndarray, rng: np.random.Generator, count: int
    ) -> np.ndarray:
        """Return posterior draws (count, n) at rows (n, dim).

        `gram` (used, n) is the kernel between the points that the posterior is based on and the rows, and `prior` (n,)
        is k(x, x) of the rows.
        """

    @abstractmethod
    def radius(self, theory: Theory) -> float:
        """Return the multiplier beta for which the confidence intervals of `theory` are proved."""

    @abstractmethod
    def variance_factor(self) -> float:
        """Return a factor f, at least 1, that is proved to bound the error of this posterior's variances.

        At every point the variance is between 1 / f and f times the variance of the exact posterior.
        """

    @abstractmethod
    def redraw(self, budget: Any) -> None:
        """Draw the points on which the posterior is based, the dictionary, again by the rules in `budget`."""

    @abstractmethod
    def weights(self, near: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights of kernel values in predictions at an arm: (used, 2) for means, (used,) for the variance.

        `near` (used,) holds the kernel k between the arm and the points that the posterior is based on. A mean is k^T
        times a column of the first array: column 0 for the rewards, column 1 for rewards that are all 1. The variance
        is k(x, x) / reg minus k^T times the second array.
        """

    @property
    def dictionary(self) -> np.ndarray:
        """Points that the posterior is based on, (used, dim)."""
        return self.state.points[self.state.members[: self.state.n_rows]]

    @property
    def effective_dimension(self) -> float:
        """Effective dimension, the sum over plays of the present variance of the point played, over reg."""
        return float(self.state.plays @ self.state.variances)

    def look(self, rows: np.ndarray | None, count: int = 0, rng: Any = None) -> PointStatistics:
        """Return `PointStatistics` (means, variances and `count` draws) at rows (n, dim).

        If `rows` is None, they are computed at all stored points. `rng` is the source of the draws.
        """
        if rows is None:
            s, size = self.state, self.state.size
            draws = self.draw_table(rng, count) if count else empty_normals(size)
            return PointStatistics(s.means[:size], s.ones[:size], s.variances[:size], draws)
        gram, prior = kernel_matrix(self.kernel, self.dictionary, rows), prior_variances(self.kernel, rows)
        draws = self.draw_rows(rows, gram, prior, rng, count) if count else empty_normals(len(rows))
        return PointStatistics(*self.predict(gram, prior), draws)

    def join(self, point: np.ndarray) -> int:
        """Add a point (dim,) to the stored points, and return its index."""
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
        """Compute the posterior of all plays under another kernel and reg; if that raises, nothing has changed."""
        held = self.hold()
        self.kernel, self.reg, self.root = kernel, reg, None
        try:
            self.state = self.rebuild(self.state) if self.state.n_learned else self.begin(self.state.points)
        except BaseException:
            self.restore(held)
            raise

    def hold(self) -> PosteriorBackup:
        """Return a backup for `restore`.

        The backup shares the arrays of the present state. A play may write into them and so spoil the backup. To undo a
        play, copy the state first.
        """
        coins = None if self.coins is None else self.coins.bit_generator.state
        return PosteriorBackup(self.state, self.kernel, self.reg, coins)

    def restore(self, held: PosteriorBackup) -> None:
        """Restore the posterior from the backup `held`."""
        self.state, self.kernel, self.reg = held[:3]
        if self.coins is not None:
            self.coins.bit_generator.state = held.coins

    def memory_usage(self) -> int:
        """Return the number of bytes of the posterior's arrays."""
        return states.nbytes(self.state) + (0 if self.root is None else self.root.nbytes)
