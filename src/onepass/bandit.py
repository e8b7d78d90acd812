"""Bandit = features x estimator x exploration: decide, learn, save.

A round: z = features(x) for every arm, theta = the estimate, score = z^T theta + beta sqrt(z^T A^-1 z) (or a draw, or
nothing), choose the largest, learn (z, reward). `play` runs many rounds in one compiled loop; `decide` and `learn` are
its two halves. Cost of a round: that of its design (see onepass.design); K arms are scored by one matrix product.
"""

from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from onepass import check, files, state
from onepass.design import contract
from onepass.estimator.contract import parameter, update, update_rows
from onepass.estimator.ridge import Ridge
from onepass.exploration import DRAWS, MEANS, UCB, WIDTHS, Exploration, choose, draw_noise
from onepass.features.projection import GaussianProjection, IdentityState, transform
from onepass.generic import compiled
from onepass.linalg import dot


class Decision(NamedTuple):
    """arm: the chosen one; arms: the k best, best first; scores, means, widths: one per arm offered.

    widths are sqrt(x^T A^-1 x), for Thompson sampling the draw added to the mean, None for greedy rules;
    propensity: the probability with which `arm` was chosen, NaN for Thompson sampling. For n decisions at once
    every field has a leading axis n.
    """

    arm: Any
    arms: Any
    scores: np.ndarray
    means: np.ndarray
    widths: np.ndarray | None
    propensity: Any


@compiled
def evaluate(estimator, rule, rounds, rows, noise):
    """Scores, means and spreads (widths or draws) of the rows (K, features)."""
    means = dot(rows, parameter(estimator))
    scale = rule.scale
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
    if rule.theory.size > 0:
        constants = rule.theory
        scale *= contract.confidence_radius(
            estimator.design, rounds, constants[0], constants[1], constants[2], constants[3]
        )
    scores = np.empty(means.size)
    for a in range(scores.size):
        scores[a] = means[a] + scale * spreads[a]
    return scores, means, spreads


@compiled
def decide_once(features, estimator, rule, rounds, contexts, noise):
    """Arm index, propensity, scores, means and spreads for one set of arms (K, dim)."""
    rows = transform(features, contexts)
    scores, means, spreads = evaluate(estimator, rule, rounds, rows, noise)
    arm, propensity = choose(rule, scores, noise)
    return arm, propensity, scores, means, spreads


@compiled
def learn_row(features, estimator, row, reward):
    """The estimator after one row (1, dim) and its reward."""
    return update(estimator, transform(features, row)[0], reward)


@compiled
def learn_rows(features, estimator, rows, rewards):
    """The estimator after a batch of rows (n, dim) and rewards (n,)."""
    return update_rows(estimator, transform(features, rows), rewards)


@compiled
def play_rounds(features, estimator, rule, rounds, contexts, rewards, noise):
    """Score, choose, learn over contexts (T, K, dim), rewards (T, K); arms are -1 from where a score was not finite."""
    arms = np.full(contexts.shape[0], -1)
    for t in range(contexts.shape[0]):
        rows = transform(features, contexts[t])
        scores, _, _ = evaluate(estimator, rule, rounds + t, rows, noise[t])
        arm, _ = choose(rule, scores, noise[t])
        if arm < 0:
            break
        arms[t] = arm
        estimator = update(estimator, rows[arm], rewards[t, arm])
    return estimator, arms


def _trouble() -> FloatingPointError:
    return FloatingPointError("a score is not finite: rewards or contexts are too large for this reg; scale them down")


class Bandit:
    """A contextual bandit with one shared parameter.

    estimator: e.g. ``Ridge(FrequentDirections(dim=784, size=32))``; exploration: `UCB`, `Thompson`, `Greedy` or
    `EpsilonGreedy`; features: a `GaussianProjection` or None; seed: breaks ties and draws; name: shown by repr.
    Thread safety: `decide` and `score` may run in several threads while none learns.

    >>> import numpy as np, onepass as op
    >>> bandit = op.Bandit(op.Ridge(op.Exact(dim=2)), op.UCB(0.5))
    >>> bandit.learn(np.eye(2), [1.0, 0.0])
    >>> bandit.decide(np.eye(2), arms=["left", "right"]).arm
    'left'
    """

    def __init__(
        self,
        estimator: Ridge,
        exploration: Exploration | None = None,
        *,
        features: GaussianProjection | None = None,
        seed: int = 0,
        name: str = "Bandit",
    ):
        self.estimator, self.features, self.name = estimator, features, name
        self.exploration: Exploration = UCB() if exploration is None else exploration
        if not isinstance(estimator, Ridge):
            raise ValueError(f"estimator must be an estimator such as Ridge(design), got {estimator!r}")
        if not isinstance(self.exploration, Exploration):
            raise ValueError(f"exploration must be UCB, Thompson, Greedy or EpsilonGreedy, got {exploration!r}")
        self.seed = check.integer("seed", seed, 0)
        self._rule = self.exploration.rule()
        self._dtype = estimator.design.dtype
        self._width = estimator.design.dim
        if features is not None and features.size != self._width:
            raise ValueError(f"features must give {self._width} features, as the design expects, got {features!r}")
        self.dim = self._width if features is None else features.dim
        self._map = IdentityState(self.dim) if features is None else features.begin(self._dtype)
        self._learned = estimator.begin()
        self.rounds = 0  # rows learned so far
        self._rng = np.random.default_rng(self.seed)

    @property
    def parameter(self) -> np.ndarray:
        """The present estimate theta, shape (features,)."""
        return parameter(self._learned)

    def _contexts(self, contexts: Any, dims: tuple[int, ...]) -> np.ndarray:
        out = check.array("contexts", contexts, self._dtype, dims, self.dim)
        if out.size == 0:
            raise ValueError(f"contexts must have at least one row, got shape {out.shape}")
        check.finite_rows("contexts", out if out.ndim == 2 else out.reshape(-1, self.dim))
        return out

    def decide(self, contexts: Any, arms: Any = None, k: int = 1) -> Decision:
        """Choose among K arms, contexts (K, dim); or take n decisions at once, contexts (n, K, dim).

        arms: names, one per row, the same for all n (default: the row's index). k: how many to rank. ValueError for
        NaN, a wrong shape or k above K; FloatingPointError when a score is not finite.
        """
        rows = self._contexts(contexts, (2, 3))
        count = rows.shape[-2]
        if arms is not None:
            try:
                arms = list(arms)
            except TypeError:
                raise ValueError(f"arms must be a sequence of names, one per row of contexts, got {arms!r}") from None
            if len(arms) != count:
                raise ValueError(f"arms must have one name per row of contexts ({count}), got {len(arms)}")
        if k != 1:
            check.integer("k", k, 1, count)
        if rows.ndim == 3:
            each = [self._decide(r, arms, k) for r in rows]
            columns = list(zip(*each, strict=True))
            widths = None if each[0].widths is None else np.stack(columns[4])
            scores, means = np.stack(columns[2]), np.stack(columns[3])
            return Decision(list(columns[0]), list(columns[1]), scores, means, widths, np.array(columns[5]))
        return self._decide(rows, arms, k)

    def _decide(self, rows: np.ndarray, arms: Any, k: int) -> Decision:
        noise = draw_noise(self._rule, self._width, 1, self._rng, self._dtype)[0]
        chosen, propensity, scores, means, spreads = decide_once(
            self._map, self._learned, self._rule, self.rounds, rows, noise
        )
        if chosen < 0:
            raise _trouble()
        best = [chosen]
        if k > 1:
            order = np.argsort(-scores, kind="stable")
            best += [int(a) for a in order if a != chosen][: k - 1]
        names = best if arms is None else [arms[a] for a in best]
        widths = None if self._rule.spread == MEANS else spreads
        return Decision(names[0], names, scores, means, widths, propensity)

    def score(self, contexts: Any) -> np.ndarray:
        """Scores of contexts (K, dim) or (n, K, dim), without side effects.

        Under Thompson sampling one draw serves all of them, the same in every call: the first that the seed gives.
        FloatingPointError when a score is not finite.
        """
        rows = self._contexts(contexts, (2, 3))
        rng = np.random.default_rng(self.seed) if self._rule.spread == DRAWS else self._rng
        noise = np.zeros(2, self._dtype)
        if self._rule.spread == DRAWS:
            noise = draw_noise(self._rule, self._width, 1, rng, self._dtype)[0]
        every = rows.reshape(-1, self.dim)
        best, _, flat, _, _ = decide_once(self._map, self._learned, self._rule, self.rounds, every, noise)
        if best < 0:
            raise _trouble()
        return flat.reshape(rows.shape[:-1])

    def learn(self, contexts: Any, rewards: Any) -> None:
        """Learn one row (dim,) and its reward, or a batch (n, dim) and (n,); late rewards are welcome in any order.

        ValueError, and nothing has changed, for NaN, infinities or shapes that do not match.
        """
        rows = self._contexts(contexts, (1, 2))
        if rows.ndim == 1:
            if not (isinstance(rewards, float) and -1e12 < rewards < 1e12):  # the common case, checked at once
                rewards = float(check.finite("rewards", check.array("rewards", rewards, self._dtype, (0,))))
            self._learned = learn_row(self._map, self._learned, rows.reshape(1, -1), rewards)
            self.rounds += 1
            return
        values = check.finite("rewards", check.array("rewards", rewards, self._dtype, (1,)))
        if values.shape[0] != rows.shape[0]:
            raise ValueError(
                f"rewards must have one entry per row of contexts ({rows.shape[0]}), got {values.shape[0]}"
            )
        self._learned = learn_rows(self._map, self._learned, rows, values)
        self.rounds += rows.shape[0]

    def play(self, contexts: Any, rewards: Any) -> np.ndarray:
        """Play recorded rounds in one compiled loop: contexts (T, K, dim), rewards (T, K) what each arm would pay.

        Returns the chosen indices (T,); equal to T calls of `decide` and `learn`.
        """
        rows = self._contexts(contexts, (3,))
        values = check.finite("rewards", check.array("rewards", rewards, self._dtype, (2,)))
        if values.shape != rows.shape[:2]:
            raise ValueError(f"rewards must have shape {rows.shape[:2]} as contexts has, got {values.shape}")
        noise = draw_noise(self._rule, self._width, rows.shape[0], self._rng, self._dtype)
        self._learned, arms = play_rounds(self._map, self._learned, self._rule, self.rounds, rows, values, noise)
        self.rounds += int(np.count_nonzero(arms >= 0))
        if arms[-1] < 0:
            raise _trouble()
        return arms

    def error_bound(self) -> float:
        """Certified bound on ||A - A_hat||_2 of the design; infinite behind a random projection."""
        if self.features is not None:
            return float("inf")
        return float(contract.error_bound(self._learned.design))

    def memory_usage(self) -> int:
        """Bytes of all arrays of the state, the feature map's included."""
        return state.nbytes(self._map) + state.nbytes(self._learned)

    def copy(self) -> Self:
        """An independent copy that will decide alike."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._learned = state.copy(self._learned)
        twin._rng = np.random.default_rng()
        twin._rng.bit_generator.state = self._rng.bit_generator.state
        return twin

    def params(self) -> dict[str, Any]:
        """What the constructor was given, as plain data."""
        return {
            "estimator": {"kind": type(self.estimator).__name__, **self.estimator.params()},
            "exploration": {"kind": type(self.exploration).__name__, **self.exploration.params()},
            "features": None if self.features is None else self.features.params(),
            "seed": self.seed,
            "name": self.name,
        }

    def save(self, path: str | Path) -> None:
        """Write everything, the random generator too, to `path`, atomically; read with `onepass.load`."""
        from onepass.loading import loadable

        extra = {"rng": self._rng.bit_generator.state, "rounds": self.rounds}
        loadable(self.estimator.design, self.exploration)
        files.save(path, "Bandit", self.params(), self._learned, extra)  # a projection is drawn again from its seed

    def __repr__(self) -> str:
        parts = [repr(self.estimator), repr(self.exploration)]
        parts += [] if self.features is None else [f"features={self.features!r}"]
        bound = self.error_bound()
        learned = f"{self.rounds} rows learned, {self.memory_usage():,} bytes, error bound {bound:.3g}"
        return f"<{self.name}: {', '.join(parts)}, seed={self.seed}; {learned}>"
