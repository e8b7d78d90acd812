"""The shared model: one parameter for all arms, one design.

A round: z = features(x) for every arm (front.py), theta = the estimate, score = z^T theta + beta sqrt(z^T A^-1 z) (or
a draw, or nothing), choose the largest, learn (z, reward). `play` runs many rounds in one compiled loop; `decide` and
`learn` are its two halves. Cost of a round: that of its design (see onepass.design); K arms are scored by one matrix
product.

Contexts given as factors x = vec(u v^T): the K rows of a user u lie in d_a dimensions, x = E^T v with E (d_a, dim) made
of u alone, so K > d_a arms are scored by E theta and E A^-1 E^T: d_a solves, then d_a^2 an arm.
"""

from typing import Any, NamedTuple, final

import numpy as np

from onepass.bandit.bandit import BaseBandit, Decision, named, not_offered, ranked, together, trouble
from onepass.bandit.front import Front
from onepass.design import contract
from onepass.estimator.contract import expect, parameter, radius, repeated, update, update_rows
from onepass.estimator.epochs import in_turn
from onepass.estimator.estimator import Estimator, known_radius
from onepass.estimator.heavy_tails import LEAST
from onepass.exploration import DRAWS, MEANS, WIDTHS, Exploration, choose, draw_noise
from onepass.features.factors import Outer
from onepass.features.feature_map import FeatureMap
from onepass.foundation import check, files
from onepass.foundation.generic import compiled
from onepass.foundation.interrupts import deferred
from onepass.foundation.linalg import dot
from onepass.foundation.registry import savable


@compiled
def scored(estimator, rule, rounds, means, spreads):
    """means + beta spreads; beta is the constant, times the theoretical radius where it is asked for."""
    scale = rule.scale
    if rule.theory.size > 0:
        constants = rule.theory
        scale *= radius(estimator, rounds, constants[0], constants[1], constants[2], constants[3])
    scores = np.empty(means.size)
    for a in range(scores.size):
        scores[a] = means[a] + scale * spreads[a]
    return scores


@compiled
def evaluate(estimator, rule, rounds, rows, noise):
    """Scores, means and spreads (widths or draws) of the rows (K, features)."""
    means = dot(rows, parameter(estimator))
    if rule.spread == WIDTHS:
        spreads = contract.inverse_quadratic(estimator.design, rows)
        for a in range(spreads.size):
            spreads[a] = np.sqrt(max(spreads[a], 0.0))
    else:
        spreads = np.zeros(means.size)
        if rule.spread == DRAWS:
            draws = dot(rows, contract.root(estimator.design, noise))
            for a in range(spreads.size):
                spreads[a] = draws[a]
    return scored(estimator, rule, rounds, means, spreads), means, spreads


@compiled
def pick(estimator, rule, rows, scores, noise):
    """`choose`, unless the estimator plays an arm again; -2 where that arm is not among the rows."""
    arm, propensity = choose(rule, scores, noise)
    again = repeated(estimator, rows)
    if again != -1 and arm >= 0:
        return again, 1.0
    return arm, propensity


@compiled
def decide_once(estimator, rule, rounds, rows, noise):
    """Arm index, propensity, scores, means and spreads for one set of arms (K, features)."""
    scores, means, spreads = evaluate(estimator, rule, rounds, rows, noise)
    arm, propensity = pick(estimator, rule, rows, scores, noise)
    return arm, propensity, scores, means, spreads


@compiled
def decide_outer(estimator, rule, rounds, user, right, noise):
    """`decide_once` for the rows vec(user v^T) of every row v of right (K, d_a), without forming them."""
    theta, design, width = parameter(estimator), estimator.design, right.shape[1]
    inner = np.zeros(width, right.dtype)
    if rule.spread == DRAWS:
        drawn, draw = contract.root(design, noise), np.zeros(width, right.dtype)
    for i in range(user.size):
        for j in range(width):
            inner[j] += user[i] * theta[i * width + j]
            if rule.spread == DRAWS:
                draw[j] += user[i] * drawn[i * width + j]
    means, spreads = dot(right, inner), np.zeros(right.shape[0])
    if rule.spread == DRAWS:
        draws = dot(right, draw)
        for a in range(spreads.size):
            spreads[a] = draws[a]
    if rule.spread == WIDTHS:
        core = np.zeros((width, width), right.dtype)
        for j in range(width):
            row = np.zeros(theta.size, right.dtype)
            for i in range(user.size):
                row[i * width + j] = user[i]
            solved = contract.solve(design, row)
            for i in range(user.size):
                for k in range(width):
                    core[j, k] += user[i] * solved[i * width + k]
        half = dot(right, core)
        for a in range(spreads.size):
            spreads[a] = np.sqrt(max(float(dot(half[a], right[a])), 0.0))
    scores = scored(estimator, rule, rounds, means, spreads)
    arm, propensity = choose(rule, scores, noise)
    return arm, propensity, scores, means, spreads


@compiled
def learn_row(estimator, row, reward):
    """The estimator after one row (1, features) and its reward."""
    return update(estimator, row[0], reward)


@compiled
def learn_rows(estimator, rows, rewards, nus):
    """The estimator after a batch of rows (n, features), rewards (n,) and their noise scales, (n,) or none."""
    if nus.size == 0:
        return update_rows(estimator, rows, rewards)
    for i in range(rows.shape[0]):
        estimator = update(expect(estimator, nus[i]), rows[i], float(rewards[i]))
    return estimator


@compiled
def play_rounds(estimator, rule, rounds, contexts, rewards, nus, noise):
    """Score, choose, learn over contexts (T, K, features), rewards (T, K), noise scales (T, K) or (0, 0).

    From where a score was not finite arms are -1, from where an arm to be repeated was not offered, -2.
    """
    arms = np.full(contexts.shape[0], -1)
    for t in range(contexts.shape[0]):
        rows = contexts[t]
        scores, _, _ = evaluate(estimator, rule, rounds + t, rows, noise[t])
        arm, _ = pick(estimator, rule, rows, scores, noise[t])
        if arm < 0:
            arms[t:] = arm
            break
        arms[t] = arm
        if nus.size > 0:
            estimator = expect(estimator, nus[t, arm])
        estimator = update(estimator, rows[arm], rewards[t, arm])
    return estimator, arms


class Moved(NamedTuple):
    """What goes into a file where the feature map learns as well."""

    model: Any
    features: Any


@final
@savable
class SharedBandit(BaseBandit):
    """One parameter for all arms: `Bandit(Ridge(design))`. Arms are rows, and names at most labels.

    estimator: what is learned, on which design, e.g. ``Ridge(FrequentDirections(dim=784, size=32))``; exploration:
    `UCB`, `Thompson`, `Greedy` or `EpsilonGreedy` (None: `UCB()`); features: a map of contexts to the design's rows
    (None: none); seed, at least 0: breaks ties and draws; name: shown by repr. ValueError for parts that do not fit.
    """

    def __init__(
        self,
        estimator: Estimator,
        exploration: Exploration | None = None,
        *,
        features: FeatureMap | None = None,
        seed: int = 0,
        name: str = "Bandit",
    ):
        if not isinstance(estimator, Estimator):
            raise ValueError(f"estimator must be an estimator such as Ridge(design), got {estimator!r}")
        self._set(exploration, seed, name, estimator.design.dtype)
        known_radius(self._rule, estimator)
        self.estimator, self.features = estimator, features
        self._width = estimator.design.dim
        self._front = Front(features, self._width, self._dtype)
        if self._front.map.output_dim != self._width:
            raise ValueError(f"features must give {self._width} features, as the design expects, got {features!r}")
        if estimator.repeats_arms and not self._front.map.repeatable:
            kind = type(estimator).__name__
            raise ValueError(f"features must be repeatable for {kind}, which knows an arm by its row, got {features!r}")
        self.dim = self._front.map.input_dim
        self._learned = estimator.begin()

    @property
    def parameter(self) -> np.ndarray:
        """The present estimate theta, shape (features,)."""
        return parameter(self._learned)

    def decide(self, contexts: Any, arms: Any = None, k: int = 1) -> Decision:
        """Choose among K arms, contexts (K, dim); or take n decisions at once, contexts (n, K, dim).

        Contexts as factors: `Outer` of left (d_u,) or (n, d_u) and right (K, d_a). arms: names, one per row, the same
        for all n (default: the row's index). k: how many to rank. ValueError for NaN, a wrong shape or k above K;
        FloatingPointError when a score is not finite.
        """
        single, requests, count = self._requests(contexts)
        if not single and self.estimator.repeats_arms:
            raise ValueError("contexts must be those of one decision, for an arm is played several times in a row")
        names = None if arms is None else named(arms, count)
        if type(k) is not int or k != 1:
            check.integer("k", k, 1, count)
        each = [self._decide(request, names, k) for request in requests]
        return each[0] if single else together(each)

    def _requests(self, contexts: Any) -> tuple[bool, Any, int]:
        """Whether it is a single decision, what each one is about (rows z (K, features), or a user and the arms), and
        the number of arms."""
        if isinstance(contexts, Outer):
            left, right = self._front.sides(contexts, False)
            if len(left) == 0 or len(right) == 0:
                raise ValueError(f"contexts must have at least one user and one arm, got {len(left)} and {len(right)}")
            return np.ndim(contexts.left) == 1, [(user, right) for user in left], len(right)
        rows = self._front.transform(self._front.rows(contexts, (2, 3)))
        return rows.ndim == 2, [rows] if rows.ndim == 2 else rows, rows.shape[-2]

    def _evaluate(
        self, request: Any, noise: np.ndarray, choosing: bool = False
    ) -> tuple[int, float, np.ndarray, np.ndarray, np.ndarray]:
        if isinstance(request, tuple):
            user, right = request
            if self._front.factors and right.shape[0] > right.shape[1] and not self.estimator.repeats_arms:
                found = decide_outer(self._learned, self._rule, self.rounds, user, right, noise)
            else:
                request = self._front.met(user, right)
        if not isinstance(request, tuple):
            found = decide_once(self._learned, self._rule, self.rounds, request, noise)
        if found[0] == -1:
            raise trouble()
        if found[0] == -2 and choosing:
            raise not_offered()
        return found

    def _decide(self, request: Any, names: list[Any] | None, k: int) -> Decision:
        noise = draw_noise(self._rule, self._width, 1, self._rng, self._dtype)[0]
        chosen, propensity, scores, means, spreads = self._evaluate(request, noise, choosing=True)
        best = ranked(scores, chosen, k)
        found = best if names is None else [names[a] for a in best]
        return Decision(found[0], found, scores, means, None if self._rule.spread == MEANS else spreads, propensity)

    def score(self, contexts: Any, arms: Any = None) -> np.ndarray:
        """Scores of contexts (K, dim) or (n, K, dim), or of `Outer` factors, without side effects; arms: their names.

        Under Thompson sampling one draw serves all of them, the same in every call: the first that the seed gives.
        FloatingPointError when a score is not finite.
        """
        single, requests, count = self._requests(contexts)
        if arms is not None:
            named(arms, count)
        noise = np.zeros(2, self._dtype)
        if self._rule.spread == DRAWS:
            noise = draw_noise(self._rule, self._width, 1, np.random.default_rng(self.seed), self._dtype)[0]
        if isinstance(contexts, Outer):
            scores = np.stack([self._evaluate(request, noise)[2] for request in requests])
            return scores[0] if single else scores
        every = np.ascontiguousarray(requests[0] if single else requests.reshape(-1, requests.shape[-1]))
        return self._evaluate(every, noise)[2].reshape((count,) if single else requests.shape[:-1])

    def _offered(self, contexts: Any, arms: Any) -> Any:
        count = len(contexts.right) if isinstance(contexts, Outer) else contexts.shape[1]
        return range(count) if arms is None else named(arms, count)

    def learn(self, contexts: Any, rewards: Any, arm: Any = None, *, nu: Any = None) -> None:
        """Learn contexts and rewards, late ones in any order: a row (dim,) and a number, or a batch (n, dim) and (n,).

        `Outer` factors are taken in pairs. nu: the noise scale of the row, or of every row (n,), for estimators that
        use one. ValueError, and nothing has changed, for NaN, infinities or shapes that do not match, a nu that is not
        positive, a fixed horizon exceeded, an arm (a shared model knows none), or, for estimators that play an arm
        several times in a row, a row out of turn: these need the rewards of one decision before the next.
        """
        if arm is not None:
            raise ValueError(f"arm must be None for a shared model, which knows rows only, got {arm!r}; use Disjoint")
        single, rows = self._front.pairs(contexts)
        if single:
            if not (isinstance(rewards, float) and -1e12 < rewards < 1e12):  # the common case, checked at once
                rewards = float(check.finite("rewards", check.array("rewards", rewards, self._dtype, (0,))))
            self._permit(1, rows)
            told = self._learned if nu is None else expect(self._learned, float(self._noise_scales(nu, (0,), ())))
            with deferred():
                self._learned = learn_row(told, self._front.advance(rows), rewards)
                self.rounds += 1
            return
        values = check.finite("rewards", check.array("rewards", rewards, self._dtype, (1,)))
        if values.shape[0] != rows.shape[0]:
            raise ValueError(
                f"rewards must have one entry per row of contexts ({rows.shape[0]}), got {values.shape[0]}"
            )
        nus = np.empty(0) if nu is None else self._noise_scales(nu, (1,), values.shape)
        self._permit(len(rows), rows)
        with deferred():
            self._learned = learn_rows(self._learned, self._front.advance(rows), values, nus)
            self.rounds += rows.shape[0]

    def _permit(self, count: int, rows: np.ndarray | None = None) -> None:
        """ValueError unless the estimator takes `count` more rows, and these rows, next."""
        horizon = self.estimator.horizon
        if 0 < horizon < self.rounds + count:
            raise ValueError(
                f"horizon was fixed at {horizon} rows and {self.rounds} are learned, so {count} more are too many; "
                "use horizon=None for any time"
            )
        if rows is not None and self.estimator.repeats_arms:
            in_turn(self._learned.epoch, self._front.transform(rows))

    def _noise_scales(self, nu: Any, dims: tuple[int, ...], shape: tuple[int, ...]) -> np.ndarray:
        if not self.estimator.takes_nu:
            raise ValueError(f"nu must be None for {type(self.estimator).__name__}, which uses no noise scale")
        out = check.array("nu", nu, np.dtype(np.float64), (0, *dims))
        if out.shape not in ((), shape, shape[:1]) or not ((out >= LEAST) & (out <= 1.0 / LEAST)).all():
            raise ValueError(
                f"nu must be one number, or of shape {shape}, from {LEAST:.0e} to {1.0 / LEAST:.0e}, got {nu!r}"
            )
        return np.broadcast_to(out, shape[:1]).copy() if out.ndim == 0 and shape else out

    def play(self, contexts: Any, rewards: Any, nu: Any = None) -> np.ndarray:
        """Play recorded rounds in one compiled loop: contexts (T, K, dim), rewards (T, K) what each arm would pay.

        nu: noise scales (T,) or (T, K), for estimators that use them. Returns the chosen indices (T,); equal to T
        calls of `decide` and `learn`. Not for contexts given as factors. Errors as there; the rounds before a score
        that is not finite, or before an arm to be repeated is missing, have been learned.
        """
        rows = self._front.rows(contexts, (3,))
        values = check.finite("rewards", check.array("rewards", rewards, self._dtype, (2,)))
        if values.shape != rows.shape[:2]:
            raise ValueError(f"rewards must have shape {rows.shape[:2]} as contexts has, got {values.shape}")
        nus = np.empty((0, 0))
        if nu is not None:
            nus = self._noise_scales(nu, (1, 2), values.shape)
            nus = np.ascontiguousarray(np.broadcast_to(nus[:, None] if nus.ndim == 1 else nus, values.shape))
        self._permit(len(rows))
        if self._front.moves:
            return self._play_one_by_one(rows, values, nus)
        rows = self._front.transform(rows)
        noise = draw_noise(self._rule, self._width, rows.shape[0], self._rng, self._dtype)
        with deferred():
            learned, rule = self._learned, self._rule
            self._learned, arms = play_rounds(learned, rule, self.rounds, rows, values, nus, noise)
            self.rounds += int(np.count_nonzero(arms >= 0))
        if arms[-1] < 0:
            raise not_offered() if arms[-1] == -2 else trouble()
        return arms

    def _play_one_by_one(self, rows: np.ndarray, rewards: np.ndarray, nus: np.ndarray) -> np.ndarray:
        """`play` where the feature map moves with every row that is learned."""
        arms = np.empty(len(rows), np.int64)
        for t in range(len(rows)):
            arms[t] = a = self.decide(rows[t]).arm
            self.learn(rows[t, a], float(rewards[t, a]), nu=float(nus[t, a]) if nus.size else None)
        return arms

    def error_bound(self) -> float:
        """Certified bound on ||A - A_hat||_2 of the design; infinite behind features without certificates."""
        if not self._front.map.certified:
            return float("inf")
        return float(contract.error_bound(self._learned.design))

    def _state(self) -> Any:
        return self._front.state, self._learned

    def _saved(self) -> Any:
        return Moved(self._learned, self._front.learned) if self._front.moves else self._learned

    def _restore(self, held: files.Holds) -> None:
        if not self._front.moves:
            self._learned = held.take(self._learned, self.estimator.consistent)
            return
        fits = lambda s: self.estimator.consistent(s.model) and self._front.fits(s.features)  # noqa: E731
        self._learned, learned = held.take(self._saved(), fits)
        self._front.restore(learned)
