"""Exact GP-UCB (Srinivas et al. 2010; Calandriello et al. eq. 1 to 3).

A play is one pass over u rows, for u distinct points.

    K_U + reg N^-1 = (R R^T)^-1      U: the distinct points played, N: how often; rows: K(U, table)
    new point    w = R R^T k_U(x),                       covariance = k(x, table) - w^T rows,      R grows by a column
    replayed     w = (reg / n) R R^T e_j,                covariance = w^T rows,      R turns: n becomes n + 1

Several plays of one point count as one row with less noise. So a round with A arms costs O(A u + u^2), and not O(A t)
as with one row for each of t plays. The posterior is the same, and memory stops growing when no new points are played.
The root of the inverse keeps a replayed point's small covariance free of cancellation. The posterior is that of
scikit-learn's GaussianProcessRegressor with alpha = reg, whose variance is reg times ours.
"""

from typing import Any, final

import numpy as np
import scipy

from onepass.exploration.confidence_width import Theory
from onepass.exploration.randomness import normals
from onepass.features.kernels import indefinite_error
from onepass.features.nystrom import IN_SPAN, NONE
from onepass.foundation.cholesky_updates import shift_root
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import dot
from onepass.model.kernel.checks import kernel_matrix, kernel_row, round_variance, table_variances
from onepass.model.kernel.posterior import KernelPosterior
from onepass.model.kernel.state import LOG_DET, USED, KernelState, combine_rows, ensure_capacity, record_play

ROUNDING = 1e-13  # of k(x, x): what a posterior variance loses to the subtraction that it comes from


@compiled
def replay(state: KernelState, member: int, reward: float, reg: float) -> None:
    """Update the exact posterior, in place, by a further reward of a point that has been played before.

    `state` is the `KernelState` of the posterior. `member` is the index of the point's row in its
    matrices, and `reg` the variance of the noise.
    """
    used, place = int(state.tally[USED]), state.members[member]
    root, n = state.root[:used], state.plays[place]
    v = root[member].copy()
    q, u = min(float(dot(v, v)), n / reg), dot(root, v)  # never above in exact arithmetic
    weights = np.empty(used)
    for i in range(used):
        weights[i] = u[i] * (reg / n)
    covariance = combine_rows(weights, state.rows)
    own = max(covariance[place], 0.0)
    record_play(state, covariance, own, place, reward, reg)
    state.variances[place] = own / (own + reg)  # as above, without its cancellation
    shift_root(root, v, u, q, -reg / (n * (n + 1.0)))


@compiled
def covariance_of(state: KernelState, row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the posterior covariance of a new point x with all stored points, and the point's weights w (used,).

    `state` is the state of the posterior. `row` (stored,) holds the kernel between x and all stored points, of which
    some have been played. The covariance is row - w^T K(U, stored), where U are the points played so far, and w is
    (K_U + reg N^-1)^-1 k_U(x) with the numbers N of their plays.
    """
    own = np.empty(int(state.tally[USED]))
    for i in range(own.size):
        own[i] = row[state.members[i]]
    root = state.root[: own.size]
    weights = dot(root, dot(own, root)) if own.size > 0 else own
    covariance = combine_rows(weights, state.rows)
    for a in range(row.size):
        covariance[a] = row[a] - covariance[a]
    return covariance, weights


@compiled
def play_new(
    state: KernelState,
    row: np.ndarray,
    covariance: np.ndarray,
    weights: np.ndarray,
    own: float,
    place: int,
    reward: float,
    reg: float,
) -> None:
    """Learn the first reward of the stored point with index `place`: add its row to the posterior, in place.

    - state: `KernelState` of the posterior, which must have room for a row.
    - row (points,): kernel between the point and all stored points.
    - covariance (points,): posterior covariance of the point with all stored points, by `covariance_of`.
    - weights (used,): (K_U + reg N^-1)^-1 k_U of the point, over the points U played so far, by `covariance_of`.
    - own: posterior variance of the point.
    - place: index of the point among the stored points.
    - reward: the reward.
    - reg: variance of the noise.
    """
    used, s = weights.size, np.sqrt(own + reg)
    for i in range(used):
        state.root[i, used] = -weights[i] / s
    state.root[used, used] = 1.0 / s
    for a in range(row.size):
        state.rows[used, a] = row[a]
    state.members[used] = place
    state.tally[USED] += 1.0
    record_play(state, covariance, own, place, reward, reg)
    state.variances[place] = own / (own + reg)


@final
class ExactPosterior(KernelPosterior):
    """Exact posterior of a kernel model, based on all distinct points played so far."""

    def play(self, place: int, reward: float) -> None:
        state = self.state
        if state.plays[place]:
            replay(state, int((state.members[: state.n_rows] == place).argmax()), reward, self.reg)
            return
        self.state = state = ensure_capacity(state)
        row = kernel_row(self.kernel, state, place)
        covariance, weights = covariance_of(state, row)
        own = float(covariance[place])
        own = own if own >= 0.0 else round_variance(self.kernel, state, own)
        play_new(state, row, covariance, weights, own, place, reward, self.reg)

    def column(self, gram: np.ndarray) -> np.ndarray:
        return gram

    def predict(self, gram: np.ndarray, prior: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self._predict_by(self.state, gram, prior)

    def _predict_by(
        self, state: KernelState, gram: np.ndarray, prior: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        members = state.members[: state.n_rows]
        root = state.root[: state.n_rows, : state.n_rows]
        sums, plays = state.sums[members], state.plays[members]
        found = root.T @ np.column_stack([gram, sums / plays, np.ones(len(plays))])  # one pass over a large root
        half, weights = found[:, :-2], found[:, -2:]
        means, ones = weights.T @ half
        return means, ones, np.maximum(prior - np.einsum("ij,ij->j", half, half), 0.0) / self.reg

    def rebuild(self, state: KernelState) -> KernelState:
        """Return the state computed again from all plays, by one Cholesky factorization of the kernel matrix."""
        used, members = state.n_rows, state.members[: state.n_rows]
        gram, prior = (
            kernel_matrix(self.kernel, state.points[members], state.points[: state.size]),
            table_variances(self.kernel, state),
        )
        noisy = gram[:, members] + np.diag(self.reg / state.plays[members])
        try:
            factor = scipy.linalg.cholesky(noisy, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            raise indefinite_error(self.kernel) from None
        rows, root = np.zeros_like(state.rows), np.zeros_like(state.root)
        rows[:used, : state.size], root[:used, :used] = gram, scipy.linalg.lapack.dtrtri(factor, lower=1)[0].T
        log_det = 2.0 * float(np.log(np.diagonal(factor)).sum()) - float(np.log(self.reg / state.plays[members]).sum())
        tally = state.tally.copy()
        tally[LOG_DET] = log_det
        state = state._replace(rows=rows, root=root, prior=prior, tally=tally)
        means, ones, variances = self._predict_by(state, rows[:used], prior)
        return state._replace(means=means, ones=ones, variances=variances)

    def draw_table(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Return posterior draws (count, n) at all stored points: draws of the prior, corrected by Matheron's rule."""
        s = self.state
        if self.root is None:
            self.root = root_of(kernel_matrix(self.kernel, s.points, s.points))
        draws = normals(rng, (count, len(self.root))) @ self.root
        members = s.members[: s.n_rows]
        heard = draws[:, members] + np.sqrt(self.reg / s.plays[members]) * normals(rng, (count, s.n_rows))
        root = s.root[: s.n_rows, : s.n_rows]
        return (draws - heard @ root @ root.T @ s.rows[: s.n_rows, : s.size]) / self.reg**0.5

    def draw_rows(
        self, rows: np.ndarray, gram: np.ndarray, prior: np.ndarray, rng: np.random.Generator, count: int
    ) -> np.ndarray:
        half = self.state.root[: self.state.n_rows, : self.state.n_rows].T @ gram
        root = root_of(kernel_matrix(self.kernel, rows, rows) - half.T @ half, prior)
        return normals(rng, (count, len(root))) @ root / self.reg**0.5

    def radius(self, theory: Theory) -> float:
        """Return the confidence radius of Durand et al. (2018) for the constants of `theory`.

        It is R sqrt(log det(I + K / reg) + 2 log(1 / delta)) + sqrt(reg) H, where K is the kernel matrix of the plays,
        and R, H and delta are the noise, the parameter bound and the probability of failure.
        """
        spread = np.sqrt(self.state.tally[LOG_DET] + 2.0 * np.log(1.0 / theory.delta))
        return float(theory.noise * spread + self.reg**0.5 * theory.parameter_bound)

    def redraw(self, budget: Any) -> None:
        raise ValueError("redraw is of a model with a budget: an exact posterior leaves no play out")

    def variance_factor(self) -> float:
        raise ValueError("variance_factor is of a model with a budget: an exact posterior leaves no play out")

    def weights(self, near: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        members, root = (
            self.state.members[: self.state.n_rows],
            self.state.root[: self.state.n_rows, : self.state.n_rows],
        )
        heard = np.stack([self.state.sums[members] / self.state.plays[members], np.ones(len(members))], axis=1)
        return root @ (root.T @ heard), root @ (root.T @ near) / self.reg


def root_of(gram: np.ndarray, prior: np.ndarray | None = None) -> np.ndarray:
    """Return a root F (r, n) of a positive semi-definite matrix: F^T F = gram (n, n).

    Diagonal entries are met up to 1e-9 of their size. r is the numerical rank of `gram`, at least 1. `gram` may be a
    difference of two matrices, the first of which has the diagonal `prior` (n,). Then what is below 1e-13 of the prior
    on the diagonal is dropped, because it is rounding.
    """
    own = np.diagonal(gram)
    least = NONE if prior is None else np.maximum(ROUNDING / IN_SPAN * prior, NONE)
    scale = np.sqrt(np.maximum(own, least))
    factor, pivots, rank, _ = scipy.linalg.lapack.dpstrf(gram / np.outer(scale, scale), tol=IN_SPAN, lower=1)
    root = np.zeros((max(rank, 1), len(gram)))
    root[:rank, pivots - 1] = np.tril(factor)[:, :rank].T
    return root * scale
