"""BKB (Calandriello et al., algorithm 1): GP-UCB on a dictionary S of played points.

The points of S are drawn with probabilities that grow with their posterior variances.

    z(x) = L^-1 k_S(x), L L^T = K_S        V = reg I + sum of z z^T over all plays = (R R^T)^-1        rows: z
    mean = z^T V^-1 sum of z y             sigma~^2 = (k(x, x) - z^T z) / reg + z^T V^-1 z
    S: every played point with probability 1 - (1 - p)^plays, p = min(1, oversampling sigma~^2)

The term (k(x, x) - z^T z) / reg is the variance outside the span of S. It keeps points far from S uncertain, and so
avoids variance starvation. Equation 2 of Calandriello et al. lacks the factor 1 / reg, and their equation 4 has it. It
is needed so that sigma^2 is the ridge leverage score of the proofs.

Lazy drawing: S is drawn again only when 1 + the sum of sigma~^2, over the plays since the last drawing whose point did
not join, exceeds `staleness`. Until then these plays have not reduced any variance by more than that factor
(Calandriello et al. 2020, whose batches we only use for S: means and variances follow every play). Meanwhile a played
point joins S with its probability p, which adds a row of z and a column of V in O(A m); any other play is a rank-one
step in O(A m). staleness = 1 is the paper's algorithm. A point whose variance lies in the span of S anyway, up to the
share `redundancy`, is left out. With much noise that halves the dictionary (redundancy = 0 is the paper's).

Incremental drawing (a remark in section 3, and Calandriello, Lazaric and Valko 2017 for streams): a drawing keeps every
copy of a point in S with probability p / p', where p' is its p before, and only the new play may be added. c copies, a
binomial number, stand for the plays of a point. A play is then in S with the running minimum of p since it came, as if
S were drawn from scratch, but it never comes back. No theorem covers plays that depend on S, as they do here.
"""

from dataclasses import asdict, dataclass
from typing import Any, final

import numpy as np
import scipy

from onepass.exploration.confidence_width import Theory
from onepass.exploration.randomness import DRAWING, normals, uniform, uniforms
from onepass.features.kernels import Kernel
from onepass.features.nystrom import IN_SPAN, pivot_cholesky
from onepass.foundation import check
from onepass.foundation.check import quote
from onepass.foundation.registry import savable
from onepass.foundation.triangular import cholesky, solve_lower
from onepass.model.kernel.checks import kernel_matrix, kernel_row, round_variance, table_variances
from onepass.model.kernel.dictionary import play_and_join, play_outside_dictionary
from onepass.model.kernel.leverage import check_open_interval
from onepass.model.kernel.posterior import KernelPosterior
from onepass.model.kernel.state import (
    LOG_DET,
    ROOM,
    STALE,
    USED,
    KernelState,
    count_reward,
    ensure_capacity,
    init_state,
)

STEEP = 1e9
"""Sum of k(x, x) / reg over the plays from which a joining point has V factored anew: `grown` subtracts numbers as
large as that, and beside points of large k(x, x) small ones would lose their digits."""
SPARE = 0.03  # of a drawing's points: so many more stay rather than that all is made anew, which costs O(A m^2)
ROUNDINGS = 16.0  # of a sum of squares that cancels, as `variance_factor` counts them: 3.4 at most in 10,000 draws


@savable
@dataclass(frozen=True, kw_only=True)
class Budget:
    """Rules for drawing the dictionary of a budgeted kernel model.

    Parameters
    ----------
    oversampling : float, default 10.0
        Factor q, above 0. A played point with variance sigma^2, in units of reg, joins with probability min(1, q
        sigma^2). So a new dictionary has about q times `effective_dimension` points, and at least one. Further points
        join until the next drawing. Theorem 3.1 of Calandriello et al. (2019), the paper on BKB, bounds variances and
        sizes. It needs the q of `bkb_oversampling`, ``staleness=1``, ``redundancy=0`` and ``incremental=False``. A far
        smaller q is enough in practice: `KernelModel.variance_factor` returns a proven factor for the present
        dictionary.
    staleness : float, default 2.0
        Factor, at least 1. When variances may have fallen by this factor, a new dictionary is drawn. 1 is the paper's
        algorithm: a round then costs O((A + u) m^2) for A arms, u distinct points played and m points in the
        dictionary. inf never draws again.
    redundancy : float, default 0.001
        From 0 to below 1. A point joins only if more than this share of its variance lies outside the span of the
        points in the dictionary. 0 is the paper's algorithm.
    incremental : bool, default False
        False draws a new dictionary from all points played. True draws it only from the points of the present one and
        the newest play. A point that was dropped then returns only if it is played again. With True no theorem holds,
        and the cost is of the same order.
    epsilon : float, default 0.5
        Accuracy of the theorems, above 0 and below 1. `Theory` assumes that variances are within a factor (1 + epsilon)
        / (1 - epsilon) of the exact ones. This holds with high probability for the oversampling that `bkb_oversampling`
        returns for the same epsilon.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """

    oversampling: float = 10.0
    staleness: float = 2.0
    redundancy: float = 0.001
    incremental: bool = False
    epsilon: float = 0.5

    def __post_init__(self) -> None:
        stale = self.staleness
        object.__setattr__(self, "oversampling", check.positive("oversampling", self.oversampling))
        object.__setattr__(self, "staleness", stale if stale == float("inf") else check.real("staleness", stale))
        if self.staleness < 1.0:
            raise ValueError(f"staleness must be at least 1, where every play draws a dictionary, got {quote(stale)}")
        object.__setattr__(self, "redundancy", check.fraction("redundancy", self.redundancy))
        if self.redundancy == 1.0:
            raise ValueError("redundancy must be below 1, or nothing joins the dictionary, got 1.0")
        if not isinstance(self.incremental, bool):
            raise ValueError(f"incremental must be True or False, got {quote(self.incremental)}")
        object.__setattr__(self, "epsilon", check_open_interval("epsilon", self.epsilon))

    def params(self) -> dict[str, Any]:
        """Return the arguments of the constructor, as plain data.

        Returns
        -------
        dict
            Arguments by name.
        """
        return asdict(self)


@final
class BudgetedPosterior(KernelPosterior):
    """Posterior of a kernel model that is based on some of the points played, called the dictionary.

    `budget` holds the rules by which the dictionary is drawn, and `seed` is the seed of the random generator for it,
    the attribute `coins`. The other arguments are those of `KernelPosterior`.
    """

    coins: np.random.Generator

    def __init__(self, budget: Budget, seed: int, kernel: Kernel, reg: float, points: np.ndarray) -> None:
        self._budget, self.copies = budget, 2 * budget.incremental
        self.coins = np.random.default_rng([seed, 1])  # not those of decisions: equal posteriors decide alike
        super().__init__(kernel, reg, points)

    def play(self, place: int, reward: float) -> None:
        state = self.state
        variance = float(state.variances[place])
        chance = min(self._budget.oversampling * variance, 1.0) if state.n_rows else 1.0
        kept = 0.0
        if self._budget.incremental:
            kept, chance = self._thin_copies(state, place, chance)
        joins = uniform(self.coins) < chance
        stale = 0.0 if joins and self._budget.staleness > 1.0 else variance
        if 1.0 + state.tally[STALE] + stale > self._budget.staleness:
            heard, chosen = self._draw_dictionary(place, reward, joins)
            if self._budget.incremental or not self._keeps_dictionary(chosen, place):
                self.state = self._rebuild_on(heard, chosen, self._min_residual(chosen)) if chosen.size else heard
                return
            joins, stale = place in chosen, -float(state.tally[STALE])
        least = max(IN_SPAN * state.prior[place], self._budget.redundancy * self.reg * variance) if joins else np.inf
        counts = stale, place, reward, self.reg, kept + joins, chance
        rest = play_outside_dictionary(state, least, *counts)
        if rest == 0.0:
            return
        rest = rest if rest > 0.0 else round_variance(self.kernel, state, rest)
        row = np.empty(0)
        if rest > 0.0:
            if state.plays @ state.prior > STEEP * self.reg:
                heard = self._with_play(place, reward)
                heard.tally[STALE] += stale
                if self._budget.incremental:
                    heard = heard._replace(copies=heard.copies.copy())
                    heard.copies[:, place] = kept + joins, chance
                self.state = self._rebuild_on(heard, np.append(state.members[: state.n_rows], place), 0.0)
                return
            self.state = state = ensure_capacity(state)
            row = kernel_row(self.kernel, state, place)
        play_and_join(state, row, rest, *counts)

    def _thin_copies(self, state: KernelState, places: Any, chances: Any) -> Any:
        """Return the number of copies that stay for each of the points `places`, and their new sampling probabilities.

        A copy is a play kept in the dictionary; it is kept with the probability in `chances`.
        """
        copies, before = state.copies[:, places]
        before = np.where(copies > 0.0, before, 1.0)
        now = np.minimum(chances, before)
        with DRAWING:
            return 1.0 * self.coins.binomial(copies.astype(np.int64), now / before), now

    def _with_play(self, place: int, reward: float) -> KernelState:
        """Return the state with one more play, of the stored point with index `place`; the posterior stays the same.

        `_rebuild_on` must follow, which computes the posterior.
        """
        old = self.state
        state = old._replace(plays=old.plays.copy(), sums=old.sums.copy(), tally=old.tally.copy())
        state.plays[place] += 1.0
        state.sums[place] += reward
        count_reward(state.tally, reward)
        return state

    def _draw_dictionary(self, place: int, reward: float, joins: bool) -> tuple[KernelState, np.ndarray]:
        """Return the state with one more play, and the table indices of the points in a new dictionary.

        The play is of the stored point with index `place`. The dictionary is drawn with the variances before the play,
        which are stored and not smaller than those after it (Calandriello et al.). `joins` says if the play joins an
        incremental dictionary.
        """
        state = self._with_play(place, reward)
        state.tally[STALE] = 0.0
        seen = np.flatnonzero(state.plays * state.prior)  # a point without variance has no place in a dictionary
        if not seen.size:
            return state, seen
        chance = np.minimum(self._budget.oversampling * state.variances[seen], 1.0)
        if self._budget.incremental:
            there = (state.copies[0, seen] > 0.0) | (seen == place)
            kept, chance = self._thin_copies(state, seen, chance)
            kept += joins * (seen == place)
            state = state._replace(copies=state.copies.copy())
            state.copies[:, seen] = kept, chance
            drawn, chance = kept > 0.0, chance * there
        else:
            drawn = self._draw_coins(state.plays[seen], chance)
        return state, seen[drawn] if drawn.any() else seen[[chance.argmax()]]

    def redraw(self, budget: Budget) -> None:
        """Draw the dictionary again from all plays so far, by their present variances and the rules in `budget`."""
        state = self.state._replace(tally=self.state.tally.copy())
        state.tally[STALE] = 0.0
        seen = np.flatnonzero(state.plays * state.prior)
        chance = np.minimum(budget.oversampling * state.variances[seen], 1.0)
        self._budget = budget
        if not seen.size:
            return
        if budget.incremental:
            with DRAWING:
                copies = 1.0 * self.coins.binomial(state.plays[seen].astype(np.int64), chance)
            state = state._replace(copies=state.copies.copy())
            state.copies[:, seen] = copies, chance
            drawn = copies > 0.0
        else:
            drawn = self._draw_coins(state.plays[seen], chance)
        chosen = seen[drawn] if drawn.any() else seen[[chance.argmax()]]
        self.state = self._rebuild_on(state, chosen, self._min_residual(chosen))

    def _draw_coins(self, plays: np.ndarray, chance: np.ndarray) -> np.ndarray:
        """Return a random mask (n,) of the points that join the dictionary.

        A point joins with probability 1 - (1 - chance)^plays, for its number of plays in `plays` (n,) and the
        probability of each play to join in `chance` (n,).
        """
        with np.errstate(divide="ignore"):
            return uniforms(self.coins, len(plays)) < -np.expm1(plays * np.log1p(-chance))

    def _keeps_dictionary(self, chosen: np.ndarray, place: int) -> bool:
        """Return True if the present dictionary stays in place of a new one, of the points `chosen` just drawn.

        `place` is the index of the point played. It stays if all points drawn are in it, except the played point and
        redundant points. If `staleness` is 1, it must hold no other points. Otherwise a few other points may stay,
        because more points than were drawn are no less accurate.
        """
        s = self.state
        members, drawn, there = s.members[: s.n_rows], *np.zeros((2, s.size), np.bool_)
        drawn[chosen] = there[members] = True
        others = chosen[~there[chosen] & (chosen != place)]
        more = s.n_rows - drawn[members].sum()
        if not s.n_rows or more > (SPARE * len(chosen) if self._budget.staleness > 1.0 else 0):
            return False
        rest = s.prior[others] - (s.rows[: s.n_rows, others] ** 2).sum(axis=0)
        return bool((rest <= np.maximum(IN_SPAN * s.prior[others], self._min_residual(others))).all())

    def _min_residual(self, places: Any) -> Any:
        """Return how much of k(x, x) must lie outside the span of the other points for each of the points to be kept.

        `places` are the indices of the points x in the table.
        """
        return self._budget.redundancy * self.reg * self.state.variances[places]

    def _rebuild_on(self, state: KernelState, places: np.ndarray, least: np.ndarray | float) -> KernelState:
        """Return the state of all plays on a dictionary of the points at `places`.

        A point is dropped if at most `least` of its k(x, x) lies outside the span of the other points.
        """
        points, size = state.points[: state.size], state.size
        kept, lower = pivot_cholesky(self.kernel, kernel_matrix(self.kernel, points[places], points[places]), least)
        used, members, room = len(kept), places[kept], max(len(state.members), len(kept) + ROOM)
        gram = kernel_matrix(self.kernel, points[members], points)
        z = solve_lower(lower, gram, overwrite=True)
        seen = np.flatnonzero(state.plays)
        own, plays = z[:, seen], state.plays[seen]
        design = (own * plays) @ own.T + self.reg * np.eye(used)
        factor = cholesky(design)
        inverse = scipy.linalg.lapack.dtrtri(factor, lower=1)[0]
        answers = inverse.T @ (inverse @ (own @ np.stack([state.sums[seen], plays], axis=1)))
        half = inverse @ z
        rows, root = np.zeros((room, state.rows.shape[1])), np.zeros((room, room))
        rows[:used, :size], root[:used, :used] = z, inverse.T
        means, ones, variances = np.zeros((3, len(state.plays)))
        means[:size], ones[:size] = answers.T @ z
        rest = np.maximum(state.prior[:size] - np.einsum("ij,ij->j", z, z), 0.0)
        variances[:size] = rest / self.reg + np.einsum("ij,ij->j", half, half)
        tally = state.tally.copy()
        tally[USED] = used
        tally[LOG_DET] = 2.0 * float(np.log(np.diagonal(factor)).sum()) - used * float(np.log(self.reg))
        return state._replace(
            means=means, ones=ones, variances=variances, rows=rows, root=root, tally=tally,
            members=np.concatenate([members, np.zeros(room - used, np.int64)]),
        )  # fmt: skip

    def rebuild(self, state: KernelState) -> KernelState:
        tally = state.tally.copy()
        tally[USED] = tally[LOG_DET] = tally[STALE] = 0.0
        copies = np.stack([state.plays, np.ones_like(state.plays)]) if self._budget.incremental else state.copies
        state = init_state(state.points, table_variances(self.kernel, state), self.reg, 0)._replace(
            plays=state.plays, sums=state.sums, size=state.size, tally=tally, copies=copies
        )
        seen = np.flatnonzero(state.plays * state.prior)
        return self._rebuild_on(state, seen, 0.0) if seen.size else state

    def column(self, gram: np.ndarray) -> np.ndarray:
        state = self.state
        if state.n_rows == 0:
            return gram
        lower = state.rows[: state.n_rows, state.members[: state.n_rows]].T  # row i of L is z of point i
        return solve_lower(lower, gram)

    def predict(self, gram: np.ndarray, prior: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        state = self.state
        z, root = self.column(gram), state.root[: state.n_rows, : state.n_rows]
        heard = np.stack([state.sums[: state.size], state.plays[: state.size]], axis=1)
        half = root.T @ z
        means, ones = (root.T @ (state.rows[: state.n_rows, : state.size] @ heard)).T @ half
        rest = np.maximum(prior - np.einsum("ij,ij->j", z, z), 0.0)
        return means, ones, rest / self.reg + np.einsum("ij,ij->j", half, half)

    def _draws(self, z: np.ndarray, prior: np.ndarray, rng: np.random.Generator, count: int) -> np.ndarray:
        root = self.state.root[: len(z), : len(z)]
        rest = np.maximum(prior - np.einsum("ij,ij->j", z, z), 0.0) / self.reg
        return normals(rng, (count, len(z))) @ root.T @ z + np.sqrt(rest) * normals(rng, (count, len(prior)))

    def draw_table(self, rng: np.random.Generator, count: int) -> np.ndarray:
        return self._draws(self.state.rows[: self.state.n_rows], self.state.prior, rng, count)

    def draw_rows(
        self, rows: np.ndarray, gram: np.ndarray, prior: np.ndarray, rng: np.random.Generator, count: int
    ) -> np.ndarray:
        return self._draws(self.column(gram), prior, rng, count)

    def radius(self, theory: Theory) -> float:
        """Return the confidence radius beta of Calandriello et al. theorem 4.1, at the budget's epsilon.

        It is proved for the oversampling that the theorem demands, and a heuristic with less. It follows the proof in
        appendix D.1, with a factor 1 / reg and a square root that are missing there. With the constants R (noise), H
        (parameter bound) and delta of `theory`, t plays and kappa^2 the largest k(x, x), it is

        beta = R sqrt(a (1 + log(1 + kappa^2 t / reg)) sum of sigma~^2 + 2 log(1 / delta))
               + (1 + 1 / sqrt(1 - epsilon)) sqrt(reg) H,   a = (1 + epsilon) / (1 - epsilon)
        """
        kappa = float(self.state.prior[: self.state.size].max(initial=0.0))
        growth = 1.0 + np.log1p(kappa * self.state.n_learned / self.reg)
        epsilon = self._budget.epsilon
        factor = (1.0 + epsilon) / (1.0 - epsilon)
        spread = np.sqrt(growth * factor * self.effective_dimension + 2.0 * np.log(1.0 / theory.delta))
        return float(theory.noise * spread + (1.0 + (1.0 - epsilon) ** -0.5) * self.reg**0.5 * theory.parameter_bound)

    def variance_factor(self) -> float:
        """Return a certified factor f between the dictionary's variances and the exact ones, for any dictionary.

        sigma^2 / f <= sigma~^2 <= f sigma^2 holds at every point, with the exact variance sigma^2 and the dictionary's
        sigma~^2. The factor is f = (1 + sqrt(tau))^2 (1 + rho) / (1 - rho). tau is the sum over plays of (k(x, x) - z^T
        z) / reg, where z are the features of a play; this trace bounds the norm of what the dictionary leaves out of
        the kernel matrix, K - Z Z^T. With E the part that is left out, (Z + E)^T (Z + E) <= (1 + c) Z^T Z + (1 + 1 / c)
        tau reg I for c = sqrt(tau), and the other way round.

        rho bounds rounding errors. z^T z = a^T K_S a with a = L^-T z has an error of w = (sum of |a_i| sqrt(k_ii))^2
        roundings. Relative to sigma^2, rho is at most the sum of w over the plays, divided by reg, plus the trace of
        the inverse of K_S in units of its diagonal, plus one rounding for each play. If all points played are in the
        dictionary, f is (1 + rho) / (1 - rho). If rho >= 1, nothing is certified, and f is infinite; this happens from
        a sum of k(x, x) / reg over the plays of about 1e14. The cost is O(u m^2) for u points played and m points in
        the dictionary.
        """
        s = self.state
        members, seen = s.members[: s.n_rows], np.flatnonzero(s.plays * s.prior)
        if not seen.size:
            return 1.0
        lower, scale, z = s.rows[: s.n_rows, members].T, np.sqrt(s.prior[members]), s.rows[: s.n_rows, seen]
        weights = np.abs(solve_lower(lower, z, transposed=True))
        unit = ROUNDINGS * np.finfo(float).eps
        rounded = unit * np.maximum((scale @ weights) ** 2, s.prior[seen])
        spread = np.sum(solve_lower(lower, np.diag(scale)) ** 2)
        plays = s.plays[seen] / self.reg
        rho = float(plays @ rounded + unit * (spread + s.n_learned))
        if rho >= 1.0:
            return float("inf")
        left = np.maximum(s.prior[seen] - np.einsum("ij,ij->j", z, z), 0.0) + rounded
        tau = plays @ np.where(np.isin(seen, members), 0.0, left)
        return float((1.0 + np.sqrt(tau)) ** 2 * (1.0 + rho) / (1.0 - rho))

    def weights(self, near: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        state, used, size = self.state, self.state.n_rows, self.state.size
        if used == 0:
            return np.zeros((0, 2)), near
        lower, root = state.rows[:used, state.members[:used]].T, state.root[:used, :used]
        z = self.column(near)
        heard = state.rows[:used, :size] @ np.stack([state.sums[:size], state.plays[:size]], axis=1)
        wanted = np.column_stack([root @ (root.T @ heard), z / self.reg - root @ (root.T @ z)])
        found = solve_lower(lower, wanted, transposed=True)
        return found[:, :2], found[:, 2]
