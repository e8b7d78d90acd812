"""The shared model: one parameter for all arms, one design.

A round: z = features(x) for every arm (front.py), theta = the estimate, score = z^T theta + beta sqrt(z^T A^-1 z) (or
a draw, or nothing), choose the largest, learn (z, reward). `play` runs many rounds in one compiled loop; `decide` and
`learn` are its two halves (rounds.py). Cost of a round: that of its design (see onepass.design); K arms are scored by
one matrix product.
"""

from typing import Any, Self, final

import numpy as np

from onepass.bandit import rounds
from onepass.bandit.bandit import BaseBandit
from onepass.bandit.clock import clock_of, forgets
from onepass.bandit.deciding import asked, checked_tail, failed, held, recorded, trouble
from onepass.bandit.decision import DRAWN, Decision, together
from onepass.bandit.front import Front
from onepass.bandit.merging import Side, known_before, shared_together
from onepass.bandit.names import distinct, eligible_arms, everyone
from onepass.bandit.shared_files import saved, taken
from onepass.bandit.uniting import Uniting
from onepass.bandit.weights import Weights, shared_weights
from onepass.design import contract
from onepass.estimator.contract import forget, parameter
from onepass.estimator.epochs import in_turn
from onepass.estimator.estimator import Estimator
from onepass.estimator.half_life import remembered
from onepass.estimator.noise_scale import LEAST
from onepass.exploration.exploration import Exploration
from onepass.exploration.randomness import noise, noise_once
from onepass.features.factors import Outer
from onepass.features.feature_map import FeatureMap
from onepass.foundation import check, files
from onepass.foundation import state as states
from onepass.foundation.check import shown
from onepass.foundation.interrupts import deferred
from onepass.foundation.registry import savable
from onepass.foundation.sharing import composed, reading, writing

NO_SCALES = np.empty(0)  # of rows that are told none


@final
@savable
class SharedBandit(Uniting, BaseBandit):
    """One parameter for all arms: `Bandit(Ridge(design))`. Arms are rows, and names at most labels.

    estimator: what is learned, on which design, e.g. ``Ridge(FrequentDirections(dim=784, size=32))``; exploration:
    `UCB`, `Thompson`, `InverseGap`, ... (None: `UCB()`); features: a map of contexts to the design's rows
    (None: none); seed, at least 0: breaks ties and draws; name: shown by repr.
    half_life: after how many rounds (rows that this bandit learns) or after which time (a timedelta; `learn` and what
    reads are then told the `time`) a row counts half, above 0 (default None: nothing is forgotten).
    ValueError for parts that do not fit.
    """

    rounds: int

    def __init__(
        self,
        estimator: Estimator,
        exploration: Exploration | None = None,
        *,
        features: FeatureMap | None = None,
        seed: int = 0,
        name: str = "Bandit",
        half_life: Any = None,
    ):
        if not isinstance(estimator, Estimator):
            raise ValueError(f"estimator must be an estimator such as Ridge(design), got {check.shown(estimator)}")
        self.estimator: Any = estimator
        self.features: Any = features
        clock = clock_of(half_life)
        if clock is not None:
            forgets(estimator)
        self._set(exploration, seed, name, estimator.design.dtype, clock)
        self._width = estimator.design.dim
        self._front = Front(features, self._width, self._dtype)
        if self._front.map.output_dim != self._width:
            raise ValueError(f"features must give {self._width} features, as the design expects, got {shown(features)}")
        if estimator.repeats_arms and not self._front.map.repeatable:
            kind = type(estimator).__name__
            raise ValueError(
                f"features must be repeatable for {kind}, which knows an arm by its row, got {shown(features)}"
            )
        self.dim: int = self._front.map.input_dim
        self._learned = estimator.begin()
        self._before = known_before(estimator)

    @property
    @reading
    def parameter(self) -> np.ndarray:
        """The present estimate theta, shape (features,). FloatingPointError when it is not finite."""
        return held(parameter(self._learned))

    def _model_estimator(self) -> Estimator:
        return self.estimator

    @reading
    def decide(
        self,
        contexts: Any,
        arms: Any = None,
        k: int = 1,
        *,
        id: Any = None,
        eligible: Any = None,
        tail: str = DRAWN,
        time: Any = None,
    ) -> Decision:
        """Choose among K arms, contexts (K, dim); or take n decisions at once, contexts (n, K, dim).

        Contexts as factors: `Outer` of left (d_u,) or (n, d_u) and right (K, d_a).
        arms: names, one per row, each once, the same for all n (default: the row's index).
        k: how many slots to fill, without replacement, from 1 to K (default 1).
        id: a string, or n of them: the draw is then a function of the seed, the id and the model, and the generator
        does not move (default: made, and drawn from the generator).
        eligible: who may be chosen: booleans (K,), or (k, K) for each slot; or names, or k collections of them
        (default: all).
        tail: "drawn": every slot has a distribution over the arms left (the default); "greedy": slots after the first
        take the best of the rest.
        time: for a half-life in seconds alone, when it is: Unix seconds or a datetime with a time zone.
        An earlier time than one at which was learned counts as that one.
        Returns a `Decision`, which `learn` takes with its reward. Nothing but the generator changes.
        ValueError for NaN, a wrong shape or k above K; FloatingPointError when a score is not finite.
        """
        single, requests, count = self._requests(contexts)
        if not single and self.estimator.repeats_arms:
            raise ValueError("contexts must be those of one decision, for an arm is played several times in a row")
        names = None if arms is None else distinct(arms, count)
        if type(k) is not int or k != 1:
            k = check.integer("k", k, 1, count)
        greedy, among = checked_tail(tail), eligible_arms(eligible, names, count, k)
        model, each = self if time is None and self._clock is None else self._at(time), []
        for i, one in enumerate(asked(id, None if single else len(requests), self.seed, self._rng)):
            found = model._found(requests[i], one.rng, among, k, greedy)
            if found[0][0] < 0:
                raise failed(int(found[0][0]))
            context = self._front.chosen(contexts, None if single else i, found[0], count)
            places, p, scores, means, widths = found
            found = places, p, self._expected(scores, True), self._expected(means), widths
            each.append(recorded(one, found, names, context, tail, self._explores, self.rounds))
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

    def _found(self, request: Any, rng: np.random.Generator, among: np.ndarray, k: int, greedy: bool) -> Any:
        """What `rounds.decide_rows` finds for one request."""
        model = (self._learned, self._explores.rule, self._rounds, self._tally)
        if isinstance(request, tuple):
            user, right = request
            if self._factored(right):
                size, joint = self._size(right.shape[1])
                normals, lots = noise_once(self._explores.pairs, size, rng, k)
                return rounds.decide_outer(*model, user, right, normals, joint, among, lots, greedy)
            request = self._front.met(user, right)
        size, joint = self._size(len(request))
        normals, lots = noise_once(self._explores.pairs, size, rng, k)
        return rounds.decide_rows(*model, request, normals, joint, among, lots, greedy)

    def _factored(self, right: np.ndarray) -> bool:
        """Whether K rows of a user are worth scoring in the d_a dimensions that they lie in."""
        return bool(self._front.factors) and right.shape[0] > right.shape[1] and not self.estimator.repeats_arms

    def _size(self, count: int) -> tuple[int, bool]:
        """Normals that a draw takes for K rows, and whether the rows are drawn jointly (see rounds.py)."""
        joint = count <= min(self._explores.pairs, self._width)
        return (count if joint else self._width), joint

    @reading
    def score(self, contexts: Any, arms: Any = None, *, time: Any = None) -> np.ndarray:
        """Scores of contexts (K, dim) or (n, K, dim), or of `Outer` factors, without side effects; arms: their names;
        time: as in `decide`.

        Under Thompson sampling one draw serves all of them, the same in every call: the first that the seed gives.
        FloatingPointError when a score is not finite.
        """
        return (self if time is None and self._clock is None else self._at(time))._score(contexts, arms)

    def _score(self, contexts: Any, arms: Any) -> np.ndarray:
        single, requests, count = self._requests(contexts)
        if arms is not None:
            distinct(arms, count)
        if not isinstance(contexts, Outer):
            every = requests if not single else requests[0]
            flat = np.ascontiguousarray(every.reshape(-1, every.shape[-1]))
            return self._scored(flat).reshape(every.shape[:-1])
        each = [self._scored(request) for request in requests]
        return each[0] if single else np.stack(each)

    def _scored(self, request: Any) -> np.ndarray:
        """Scores (K,) of rows, or of a user and the arms."""
        model = (self._learned, self._explores.rule, self._rounds, self._tally)
        count = len(request[1] if isinstance(request, tuple) else request)
        normals, among, lots = self._first_draw(self._width), everyone(count), np.zeros(2)
        if isinstance(request, tuple) and self._factored(request[1]):
            found = rounds.decide_outer(*model, *request, normals, False, among, lots, False)
        else:
            rows = self._front.met(*request) if isinstance(request, tuple) else request
            found = rounds.decide_rows(*model, rows, normals, False, among, lots, False)
        if not np.isfinite(found[2]).all():
            raise trouble()
        return self._expected(found[2], True)

    def _first_draw(self, size: int) -> np.ndarray:
        """The normals (1, size) of the first draw that the seed gives, for rules that draw."""
        if self._explores.pairs == 0:
            return np.zeros((0, 0))
        return noise_once(1, size, np.random.default_rng(self.seed), 1)[0]

    def _offered(self, contexts: Any, arms: Any) -> Any:
        count = len(contexts.right) if isinstance(contexts, Outer) else contexts.shape[1]
        return range(count) if arms is None else distinct(arms, count)

    @writing
    def learn(
        self, contexts: Any, rewards: Any, arm: Any = None, *, nu: Any = None, again: bool = False, time: Any = None
    ) -> None:
        """Learn contexts and rewards, late ones in any order: a row (dim,) and a number, or a batch (n, dim) and (n,).

        contexts: rows; `Outer` factors, taken in pairs; or a `Decision`, n at once, or a list of them, from whose
        records alone is learned: rewards is then a number per decision, for k slots k numbers, None where there was no
        reward.
        arm: None, for a shared model knows rows only. nu: the noise scale of the row, or of every row (n,), for
        estimators that use one. again: learn a second reward of a decision, too (default False: it is refused, for the
        last 10,000 decisions rewarded). time: as in `decide`: a row counts from when it is learned.
        ValueError, and nothing has changed, for NaN, infinities or shapes that do not match, a nu that is not
        positive, a fixed horizon exceeded, an arm, a decision that has had its reward, or, for estimators that play an
        arm several times in a row, a row out of turn: these need the rewards of one decision before the next.
        """
        self._teach(contexts, rewards, arm, nu, again, time)

    def _known_by(self, arm: Any) -> None:
        return None

    def _learn(self, contexts: Any, rewards: Any, arm: Any, nu: Any, time: Any) -> None:
        if arm is not None:
            raise ValueError(
                f"arm must be None for a shared model, which knows rows only, got {shown(arm)}; use Disjoint"
            )
        single, rows = self._front.pairs(contexts)
        values = self._values(rewards, len(rows), single)
        nus = NO_SCALES
        if nu is not None:
            nus = self._noise_scales(nu, (0,) if single else (1,), () if single else values.shape).reshape(-1)
        self._permit(len(rows), rows)
        z = self._front.advance(rows)
        if time is None and self._clock is None:
            self._take(z, values, nus)
        else:
            for span in self._spans(len(z), time):
                self._take(z[span], values[span], nus[span] if nus.size else nus)

    def _take(self, z: np.ndarray, values: np.ndarray, nus: np.ndarray) -> None:
        """Learn rows z (n, features) that are checked."""
        counts = self._explores.residual
        self._learned, self._tally = rounds.learn_rows(self._learned, counts, self._tally, z, values, nus)
        self.rounds += z.shape[0]

    def _settle(self) -> None:
        """There is one model, which never waits."""

    def _forget(self, ticks: int, copied: bool) -> None:
        learned, factor = states.copy(self._learned) if copied else self._learned, remembered(ticks)
        self._learned, self._recalled = forget(learned, factor), factor * self._recalled

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
                f"nu must be one number, or of shape {shape}, from {LEAST:.0e} to {1.0 / LEAST:.0e}, got {shown(nu)}"
            )
        return np.broadcast_to(out, shape[:1]).copy() if out.ndim == 0 and shape else out

    @composed
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
        self._allows(values)
        nus = np.empty((0, 0))
        if nu is not None:
            nus = self._noise_scales(nu, (1, 2), values.shape)
            nus = np.ascontiguousarray(np.broadcast_to(nus[:, None] if nus.ndim == 1 else nus, values.shape))
        self._permit(len(rows))
        if self._front.moves:
            return self._play_one_by_one(rows, values, nus)
        rows = self._front.transform(rows)
        size, joint = self._size(rows.shape[1])
        step = max(1, rounds.DRAWS_AT_ONCE // max(1, self._explores.pairs * size))
        arms, whole = [], [slice(0, len(rows))]
        for span in whole if self._clock is None else self._spans(len(rows), None):
            for i in range(span.start, span.stop, step):
                part = slice(i, min(i + step, span.stop))
                known = self._rounds + (0 if self._clock is None else i - span.start)
                arms.append(self._played(known, rows[part], values[part], nus[part], size, joint))
        return np.concatenate(arms)

    def _played(
        self, known: int, rows: np.ndarray, rewards: np.ndarray, nus: np.ndarray, size: int, joint: bool
    ) -> np.ndarray:
        """`play` of some rounds; known: rows learned before, as the rule counts them."""
        normals, lots = noise(self._explores.pairs, size, self._rng, len(rows))
        rule = self._explores.rule
        with deferred():
            self._learned, self._tally, arms = rounds.play_rounds(
                self._learned, rule, known, self._tally, rows, rewards, nus, normals, joint, lots
            )
            self.rounds += int(np.count_nonzero(arms >= 0))
        if arms[-1] < 0:
            raise failed(int(arms[-1]))
        if self.rounds >= self._next_look:
            self._look()
        return arms

    def _play_one_by_one(self, rows: np.ndarray, rewards: np.ndarray, nus: np.ndarray) -> np.ndarray:
        """`play` where the feature map moves with every row that is learned."""
        arms = np.empty(len(rows), np.int64)
        for t in range(len(rows)):
            arms[t] = a = self.decide(rows[t]).arm
            self.learn(rows[t, a], float(rewards[t, a]), nu=float(nus[t, a]) if nus.size else None)
        return arms

    @reading
    def error_bound(self) -> float:
        """Certified bound on ||A - A_hat||_2 of the design; infinite behind features without certificates."""
        if not self._front.map.certified:
            return float("inf")
        return float(contract.error_bound(self._learned.design))

    def _published(self) -> Self:
        twin = self._twin()
        twin._learned = states.copy(self._learned)
        return twin

    def _state(self) -> Any:
        return self._front.state, self._learned

    def _saved(self) -> Any:
        return saved(self._learned, self._front, self._before)

    def _restore(self, held: files.Holds) -> None:
        found = taken(held, self._learned, self._front, self.estimator)
        self._learned, self._before = found.model, found.before
        self._front.restore(found.features)

    def merge(self, other: "SharedBandit", *, since: "SharedBandit | None" = None) -> Self:
        """Learn what `other` has learned, which stays as it is: as if its rows had been learned here; returns this one.

        since: a bandit that both began as copies of, whose rows are counted once (None: as they were constructed).
        Exact for `Ridge`, `OnlineNewton` with step 1, on `Exact` designs, `TruncatedRidge` and `MedianOfMeans`; on
        sketches that merge the certificates add. Exploration, seed and generator stay this one's.
        TypeError for estimators and designs that cannot be merged, and for what is no `SharedBandit`; ValueError, and
        nothing has changed, for bandits of other parts, for features that have learned different rows, beyond a fixed
        horizon, in the midst of an epoch, and where a sketch would have to give rows back.
        """
        return self._merged_with(other, since)

    def _union(self, other: Self, since: Self | None) -> Any:
        self._permit(other.rounds - (0 if since is None else since.rounds))
        start = () if since is None else since._learned
        return shared_together(self.estimator, self._before, self._learned, other._learned, start)

    def _united(self, other: Self, union: Any) -> Any:
        return union

    def _side(self) -> Side:
        return Side(self.estimator, self.features, self._front.learned, self._before, self._clock)

    def _weights(self, arms: list[Any], rows: np.ndarray, z: np.ndarray) -> list[list[Weights]]:
        return shared_weights(self._learned, z)
