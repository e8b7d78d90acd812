"""BKB (P1, algorithm 1): GP-UCB on a dictionary S of played points, drawn by their own posterior variances.

    z(x) = L^-1 k_S(x), L L^T = K_S        V = reg I + sum of z z^T over all plays = (R R^T)^-1        rows: z
    mean = z^T V^-1 sum of z y             sigma~^2 = (k(x, x) - z^T z) / reg + z^T V^-1 z
    S: every played point with probability 1 - (1 - p)^plays, p = min(1, oversampling sigma~^2)

(k(x, x) - z^T z) / reg, the variance outside the span of S, is what keeps points far from S uncertain (no variance
starvation). P1's eq. 2 has no 1 / reg, its eq. 4 has: with it sigma^2 is the ridge leverage score that the proofs need.

Lazily: S is drawn again only when 1 + the sum of sigma~^2 over the plays since exceeds `staleness`, since by then no
variance has fallen by more than that factor (Calandriello et al. 2020, whose batches we only use for S: means and
variances follow every play). Until then a played point joins S with its probability p, which makes a row of z and a
column of V in O(A m); every other play is a rank-one step in O(A m). staleness = 1 is the paper's algorithm.
"""

from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.linalg.lapack import dtrtri

from onepass import check
from onepass.exploration import Exploration, Theory
from onepass.features.nystrom import IN_SPAN, Nystrom, pivoted
from onepass.generic import compiled
from onepass.kernel.kernel_bandit import KernelBandit
from onepass.kernel.posterior import KernelState, combined, counted, played, with_room
from onepass.linalg import dot, shift_root

EPSILON = 0.5  # of P1's theorems; a = (1 + EPSILON) / (1 - EPSILON) = 3
A = 3.0


@compiled
def rank_one(state, place, reward, reg):
    """A play of a point with the dictionary as it is; returns z^T V^-1 z as it was."""
    used = state.used
    root, z = state.root[:used], np.empty(used)
    for i in range(used):
        z[i] = state.rows[i, place]
    v = dot(z, root)
    q, u = float(dot(v, v)), dot(root, v)
    covariance = combined(u, state.rows)
    for a in range(covariance.size):
        covariance[a] *= reg
    played(state, covariance, reg * q, place, reward, reg)
    if q > 0.0:
        shift_root(root, v, u, q, 1.0)
    return q


@compiled
def outside(state, place):
    """k(x, x) - z^T z of the point at `place`."""
    rest = state.prior[place]
    for i in range(state.used):
        rest -= state.rows[i, place] * state.rows[i, place]
    return rest


@compiled
def grown(state, row, place, rest, reg):
    """The dictionary gains the point at `place`, row: k(x_place, table), rest: `outside`. The gain of log det V / reg.

    z gains the coordinate (k(x, .) - z(x)^T z) / sqrt(rest), V a row and a column. There must be room.
    """
    used, size = state.used, state.size
    z = np.empty(used)
    for i in range(used):
        z[i] = state.rows[i, place]
    new = combined(z, state.rows)
    scale, total, counted_new = 1.0 / np.sqrt(rest), 0.0, np.zeros(new.size)
    for a in range(size):
        new[a] = (row[a] - new[a]) * scale
        counted_new[a] = state.plays[a] * new[a]
        total += counted_new[a] * new[a]
    root = state.root[:used]
    weighted = dot(state.rows[:used], counted_new) if used > 0 else np.empty(0)
    across = dot(root, dot(weighted, root)) if used > 0 else weighted
    s = reg + max(total - (float(dot(weighted, across)) if used > 0 else 0.0), 0.0)
    beside = combined(across, state.rows)
    paid, ones = 0.0, 0.0
    for a in range(size):
        new_part = new[a] - beside[a]
        paid += state.sums[a] * new_part
        ones += state.plays[a] * new_part
    for a in range(size):
        part = new[a] - beside[a]
        state.variances[a] = max(state.variances[a] + part * part / s - new[a] * new[a] / reg, 0.0)
        state.means[a] += part * paid / s
        state.ones[a] += part * ones / s
        state.rows[used, a] = new[a]
    for i in range(used):
        state.root[i, used] = -across[i] / np.sqrt(s)
    state.root[used, used] = 1.0 / np.sqrt(s)
    state.members[used] = place
    return np.log(s / reg)


class BKB(KernelBandit):
    """Budgeted kernel bandit: GP-UCB at O(A m) a round, m of the order of the effective dimension.

    arms, kernel, reg, exploration, normalize, fit_after, seed: as for `GPUCB`.
    oversampling qbar: the expected dictionary is at most qbar times the effective dimension; P1 proves its bounds, with
    a = 3, for 72 log(4 T / delta), but far less does. staleness from 1: see onepass.kernel.bkb; 1 is the paper's
    algorithm, O((A + u) m^2) a round for u distinct points played. The dictionary needs no size chosen in advance.
    Thompson sampling: draws have the posterior's covariance in the span of the dictionary, and independent parts with
    the variances outside it. ValueError for arguments out of range and kernels that are not positive definite.

    >>> import numpy as np, onepass as op
    >>> arms = np.linspace(0.0, 1.0, 101)[:, None]
    >>> bandit = op.BKB(arms, op.RBF(0.2), reg=1e-4)
    >>> _ = bandit.play(lambda arm: float(np.sin(5.0 * arms[arm, 0])), 15)
    >>> bool(abs(5.0 * arms[bandit.decide().arm, 0] - np.pi / 2) < 0.1)
    True
    """

    def __init__(
        self,
        arms: Any = None,
        kernel: Any = None,
        *,
        reg: float = 0.01,
        exploration: "float | Theory | Exploration | None" = None,
        oversampling: float = 10.0,
        staleness: float = 2.0,
        redundancy: float = 0.001,
        normalize: bool = False,
        fit_after: int = 0,
        seed: int = 0,
    ):
        self.oversampling = check.positive("oversampling", oversampling)
        self.staleness = check.real("staleness", staleness)
        if self.staleness < 1.0:
            raise ValueError(f"staleness must be at least 1, where every play draws a dictionary, got {staleness!r}")
        self.redundancy = check.fraction("redundancy", redundancy)
        self._set(arms, kernel, reg, exploration, normalize, fit_after, seed)

    def _options(self) -> dict[str, Any]:
        return {"oversampling": self.oversampling, "staleness": self.staleness, "redundancy": self.redundancy}

    def _learned(self, state: KernelState, place: int, reward: float) -> KernelState:
        variance = float(state.variances[place])
        drawn = self._coins.random() < self.oversampling * variance or state.used == 0
        stale = state.stale + (0.0 if drawn and self.staleness > 1.0 else variance)
        if 1.0 + stale > self.staleness:
            return self._redrawn(state, place, reward)
        used, log_det, rest = state.used, state.log_det, outside(state, place)
        if rest < 0.0:
            rest = self._rounded(state, rest)
        if drawn and rest > max(IN_SPAN * state.prior[place], self.redundancy * self.reg * variance):
            state = with_room(state)
            log_det += float(grown(state, self._row(state, place), place, rest, self.reg))
            used += 1
            state = state._replace(used=used)
        log_det += float(np.log1p(rank_one(state, place, reward, self.reg)))
        return counted(state, reward, log_det, stale, used)

    def _redrawn(self, state: KernelState, place: int, reward: float) -> KernelState:
        """A play, and a new dictionary drawn with the variances before it (P1: cached, and no less than after it)."""
        plays, sums = state.plays.copy(), state.sums.copy()
        plays[place] += 1.0
        sums[place] += reward
        seen = np.flatnonzero(plays * state.prior)  # a point without variance has no place in a dictionary
        if not seen.size:
            rank_one(state, place, reward, self.reg)
            return counted(state, reward, state.log_det, 0.0, 0)
        chance = np.minimum(self.oversampling * state.variances[seen], 1.0)
        with np.errstate(divide="ignore"):
            joins = self._coins.random(len(seen)) < -np.expm1(plays[seen] * np.log1p(-chance))
        chosen = seen[joins] if joins.any() else seen[[chance.argmax()]]
        state = self._resting_on(state._replace(plays=plays, sums=sums), chosen)
        return counted(state, reward, state.log_det, 0.0, state.used)

    def _resting_on(self, state: KernelState, places: np.ndarray) -> KernelState:
        """The same plays on the dictionary of these places."""
        points, size = state.points[: state.size], state.size
        least = self.redundancy * self.reg * state.variances[places]
        kept, lower = pivoted(self.kernel, self._gram(points[places], points[places]), least)
        used, members, room = len(kept), places[kept], max(len(state.members), len(kept) + 8)
        gram = self._gram(points[members], points)
        z = solve_triangular(lower, gram, lower=True, overwrite_b=True, check_finite=False)
        seen = np.flatnonzero(state.plays)
        own, plays = z[:, seen], state.plays[seen]
        design = (own * plays) @ own.T + self.reg * np.eye(used)
        factor = cholesky(design, lower=True, check_finite=False)
        inverse = dtrtri(factor, lower=1)[0]
        answers = inverse.T @ (inverse @ (own @ np.stack([state.sums[seen], plays], axis=1)))
        half = inverse @ z
        rows, root = np.zeros((room, state.rows.shape[1])), np.zeros((room, room))
        rows[:used, :size], root[:used, :used] = z, inverse.T
        means, ones, variances = np.zeros((3, len(state.plays)))
        means[:size], ones[:size] = answers.T @ z
        outside = state.prior[:size] - np.einsum("ij,ij->j", z, z)
        variances[:size] = np.maximum(outside, 0.0) / self.reg + np.einsum("ij,ij->j", half, half)
        log_det = 2.0 * float(np.log(np.diagonal(factor)).sum()) - used * float(np.log(self.reg))
        return state._replace(
            means=means, ones=ones, variances=variances, rows=rows, root=root, used=used, log_det=log_det,
            members=np.concatenate([members, np.zeros(room - used, np.int64)]),
        )  # fmt: skip

    def _rebuilt(self, state: KernelState) -> KernelState:
        state = state._replace(prior=self._prior(state.points))
        seen = np.flatnonzero(state.plays * state.prior)
        if not seen.size:
            return state._replace(
                used=0, means=0.0 * state.means, ones=0.0 * state.ones, variances=state.prior / self.reg
            )
        return self._resting_on(state, seen)._replace(stale=0.0)

    def _column(self, state: KernelState, gram: np.ndarray) -> np.ndarray:
        if state.used == 0:
            return gram
        lower = state.rows[: state.used, state.members[: state.used]].T  # row i of L is z of point i
        return solve_triangular(lower, gram, lower=True, check_finite=False)

    def _predicted(
        self, state: KernelState, gram: np.ndarray, prior: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        z, root = self._column(state, gram), state.root[: state.used, : state.used]
        heard = np.stack([state.sums[: state.size], state.plays[: state.size]], axis=1)
        half = root.T @ z
        means, ones = (root.T @ (state.rows[: state.used, : state.size] @ heard)).T @ half
        outside = np.maximum(prior - np.einsum("ij,ij->j", z, z), 0.0) / self.reg
        return means, ones, outside + np.einsum("ij,ij->j", half, half)

    def _draws(self, z: np.ndarray, prior: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        root = self._state.root[: len(z), : len(z)]
        outside = np.maximum(prior - np.einsum("ij,ij->j", z, z), 0.0) / self.reg
        return (root @ rng.standard_normal(len(z))) @ z + np.sqrt(outside) * rng.standard_normal(len(prior))

    def _arm_draws(self, rng: np.random.Generator) -> np.ndarray:
        return self._draws(self._state.rows[: self._state.used], self._state.prior, rng)

    def _row_draws(self, rows: np.ndarray, gram: np.ndarray, prior: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return self._draws(self._column(self._state, gram), prior, rng)

    def _radius(self, theory: Theory) -> float:
        """P1 theorem 4.1, at epsilon = 1/2, from its proof (D.1, with the / reg it drops, and Det^1/2 for its Det).

        beta = R sqrt(a (1 + log(1 + kappa^2 t / reg)) sum of sigma~^2 + 2 log(1 / delta))
               + (1 + 1 / sqrt(1 - epsilon)) sqrt(reg) H
        """
        kappa = float(self._state.prior[: self._state.size].max(initial=0.0))
        grown = 1.0 + np.log1p(kappa * self.rounds / self.reg)
        spread = np.sqrt(grown * A * self.effective_dimension() + 2.0 * np.log(1.0 / theory.delta))
        return float(theory.noise * spread + (1.0 + (1.0 - EPSILON) ** -0.5) * self.reg**0.5 * theory.parameter_bound)

    def variance_factor(self) -> float:
        """A certified f with sigma^2 / f <= sigma~^2 <= f sigma^2 at every point, whatever the dictionary; 1 if exact.

        f = (1 + sqrt(tau))^2, tau = sum over plays of (k(x, x) - z^T z) / reg: of the trace of K - Z Z^T, which bounds
        its norm. (With E what is outside, (Z + E)^T (Z + E) <= (1 + c) Z^T Z + (1 + 1 / c) tau reg I, c = sqrt(tau),
        and the other way round.) Cost O(u m).
        """
        s = self._state
        seen = np.flatnonzero(s.plays)
        z = s.rows[: s.used, seen]
        left = np.maximum(s.prior[seen] - np.einsum("ij,ij->j", z, z), 0.0)
        return float((1.0 + np.sqrt(s.plays[seen] @ left / self.reg)) ** 2)

    def nystrom(self) -> Nystrom:
        """The feature map of the dictionary as it is, for linear bandits. ValueError before the first play."""
        return Nystrom(self.dictionary, self.kernel, reduced=self.dictionary_size > 0)
