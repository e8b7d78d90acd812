"""Models per arm: disjoint (one design an arm) and hybrid (a shared one as well). The mathematics is in models.py.

Arms are any hashable; they appear when they are added or learned from, and leave by `remove_arm`. Any arm may be
offered: one never learned from has no model and costs no array, and is scored by its prior, mean 0 and width
sqrt(||x||^2 / reg).
"""

from collections.abc import Hashable
from typing import Any, Self, final

import numpy as np

from onepass.arena.arena import NONE
from onepass.bandit.arm_files import Saved, saved, taken
from onepass.bandit.arm_learning import game, learn, pairs
from onepass.bandit.arm_means import deviations, evaluated, models_of, parameter_of, seen
from onepass.bandit.arm_model import ArmModel, exported, fitting, imported
from onepass.bandit.bandit import BaseBandit
from onepass.bandit.clock import aged, clock_of, forgets
from onepass.bandit.deciding import asked, checked_tail, failed, held, recorded, trouble
from onepass.bandit.decision import DRAWN, Decision, together
from onepass.bandit.front import Front, split
from onepass.bandit.knowing import Knowing
from onepass.bandit.merging import Arms, Side, known_before, settled, united
from onepass.bandit.models import Disjoint, Hybrid, Learned
from onepass.bandit.names import eligible_arms, hashable, named
from onepass.bandit.roster import Roster
from onepass.bandit.rounds import DRAWS_AT_ONCE, fill_slots
from onepass.bandit.uniting import Uniting
from onepass.bandit.weights import Weights, arm_weights
from onepass.design import contract
from onepass.estimator.estimator import Estimator
from onepass.estimator.half_life import remembered
from onepass.estimator.links import on_rewards
from onepass.exploration.contract import Seen, score
from onepass.exploration.exploration import Exploration
from onepass.exploration.randomness import noise, noise_once
from onepass.exploration.residuals import counted
from onepass.features.factors import Outer
from onepass.features.feature_map import FeatureMap
from onepass.foundation import check, files
from onepass.foundation import state as states
from onepass.foundation.check import shown
from onepass.foundation.interrupts import deferred
from onepass.foundation.registry import savable
from onepass.foundation.sharing import composed, reading, writing


@final
@savable
class ArmBandit(Knowing, Uniting, BaseBandit):
    """One model per arm: `Bandit(Disjoint(Ridge(design)))` or `Bandit(Hybrid(shared=..., arms=...))`.

    A context is (dim,), the same for all arms, or (K, dim), a row per arm; n decisions take (n, 1, dim) or (n, K, dim);
    as factors (`features=OuterProduct(...)`): `Outer` of left (d_u,) or (n, d_u) and right (K, d_a).

    estimator: `Disjoint` or `Hybrid`; exploration: `UCB`, `Thompson`, `InverseGap`, ... (None: `UCB()`);
    features: a map of contexts to the designs' rows (None: none); seed, at least 0: breaks ties and draws; name: shown
    by repr.
    half_life: after how many rounds (rows that this bandit learns) or after which time (a timedelta; `learn` and what
    reads are then told the `time`) a row counts half, above 0 (default None: nothing is forgotten). Models are then
    kept as one state per arm, not in an arena; an arm that nobody asks for forgets when it is next asked for, in one
    step. Hybrid: see clock.py. ValueError for parts that do not fit.
    """

    def __init__(
        self,
        estimator: Disjoint | Hybrid,
        exploration: Exploration | None = None,
        *,
        features: FeatureMap | None = None,
        seed: int = 0,
        name: str = "Bandit",
        half_life: Any = None,
    ):
        if not isinstance(estimator, Disjoint | Hybrid):
            raise ValueError(f"estimator must be Disjoint or Hybrid models per arm, got {shown(estimator)}")
        clock = clock_of(half_life)
        if clock is not None:
            estimator = estimator.separate()
            for each in (estimator.arms, *(() if estimator.shared is None else (estimator.shared,))):
                forgets(each)
        design, shared = estimator.arms.design, estimator.shared
        self.estimator: Any = estimator
        self.features: Any = features
        self._set(exploration, seed, name, design.dtype, clock)
        self._width = design.dim
        self._front = Front(features, self._width, self._dtype)
        self.dim: int = self._front.map.input_dim
        full, factors = self._front.map.output_dim, self._front.factors
        wanted, sides = (factors.left, factors.right) if factors is not None and factors.reduce else (full, 0)
        if design.dim != wanted or (shared is not None and shared.design.dim != full):
            sizes = f"{wanted}" if shared is None else f"{wanted} for the arms and {full} for the shared part"
            raise ValueError(f"designs must have dim={sizes} to fit features={shown(features)}, got {shown(estimator)}")
        begun = () if shared is None else shared.begin()
        self._learned = Learned(estimator.store(), begun, np.zeros((0, sides)))
        self._before = () if shared is None else known_before(shared)
        self._roster = Roster()

    @writing
    def remove_arm(self, arm: Hashable) -> None:
        """Forget an arm and all it has learned (a shared part keeps what it learned). ValueError if it is not known."""
        record = self._roster.known(arm)
        with deferred():
            if record != NONE:
                self._learned.store.close(record)
            self._roster.remove(arm)

    @reading
    def parameter_of(self, arm: Hashable) -> np.ndarray:
        """theta_a (features,), for hybrid parameters beta + theta_a; the prior's zero for an arm that has not learned.

        ValueError if the arm is not known, or for a hybrid model of contexts given as factors; FloatingPointError when
        it is not finite.
        """
        return held(parameter_of(self._learned, self._front, self._roster.known(arm), self._width))

    @reading
    def models_of(self, arms: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """theta_a (K, features) and A_a^-1 (K, features, features) of `arms` (names, each once; default: all known).

        A draw of Thompson sampling is from N(theta_a, beta^2 A_a^-1), a width is sqrt(x^T A_a^-1 x). An arm that has
        not learned is as the prior has it. O(features^3) an arm. ValueError for hybrid models, names that are not
        hashable or there twice, and none; FloatingPointError where one is not finite.
        """
        thetas, inverses = models_of(self._learned, self._roster.request(arms)[1])
        return held(thetas), held(inverses)

    @reading
    def rows_of(self, arm: Hashable) -> int:
        """Rows learned from an arm; ValueError if it is not known."""
        record = self._roster.known(arm)
        return 0 if record == NONE else self._learned.store.rows(record)

    # ---- decisions ----

    def _model_estimator(self) -> Estimator:
        return self.estimator.arms

    def _permits(self, exploration: Exploration) -> None:
        if self.estimator.shared is not None and exploration.theory is not None:
            raise ValueError("exploration must be a number for hybrid parameters: no radius is known for them")
        super()._permits(exploration)

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
        """Choose among `arms` (names, each once; default: all known), and fill k slots. Only the generator changes.

        contexts: shapes as in the class. k, id, eligible, tail, time: as for `SharedBandit.decide`. ValueError for NaN,
        a wrong shape, duplicate arms, no arm at all or k above K; FloatingPointError when a score is not finite.
        """
        names, records = self._roster.request(arms)
        if type(k) is not int or k != 1:
            k = check.integer("k", k, 1, len(names))
        greedy, among = checked_tail(tail), eligible_arms(eligible, names, len(names), k)
        model = self if time is None and self._clock is None else self._at(time)
        single, means, squares, adjusted = evaluated(model._learned, self._front, contexts, records)
        each, rule = [], self._explores.rule
        for i, one in enumerate(asked(id, None if single else len(means), self.seed, self._rng)):
            rows = adjusted[i] if adjusted else None
            normals, lots = noise_once(self._explores.pairs, self._normals(len(names)), one.rng, k)
            seen = model._seen(records, means[i], squares[i], rows, normals)
            view = self._in_view(seen)
            scores = score(rule, view)
            places, p = fill_slots(rule, view, scores, among, lots, greedy)
            if places[0] < 0:
                raise failed(int(places[0]))
            context = self._front.chosen(contexts, None if single else i, places, len(names))
            found = places, p, self._expected(scores, True), self._expected(means[i]), seen.widths
            each.append(recorded(one, found, names, context, tail, self._explores, self.rounds))
        return each[0] if single else together(each)

    def _normals(self, count: int) -> int:
        """Normals behind a draw of `count` arms: one an arm, for arms share no data, and those of a shared model."""
        shared = self.estimator.shared
        return count if shared is None else count + shared.design.dim

    def _in_view(self, seen: Seen) -> Seen:
        """What was seen, on the scale that the rule looks at."""
        return on_rewards(self._family, seen) if self._explores.rewards and self._family is not None else seen

    def _seen(self, *found: Any) -> Seen:
        return seen(self._learned, self._explores, self._tally, self._rounds, *found)

    @reading
    def score(self, contexts: Any, arms: Any = None, *, time: Any = None) -> np.ndarray:
        """Scores (K,) of `arms` (default: all known), or (n, K) for n contexts, without side effects.

        Under Thompson sampling the same draws in every call: the first that the seed gives. time: as in `decide`.
        Errors as there.
        """
        return (self if time is None and self._clock is None else self._at(time))._score(contexts, arms)

    def _score(self, contexts: Any, arms: Any) -> np.ndarray:
        single, scores = self._finite(contexts, arms, np.random.default_rng(self.seed))
        return scores[0] if single else scores

    def _block(self, contexts: Any, arms: Any, rng: np.random.Generator) -> np.ndarray:
        return self._finite(contexts, arms, rng)[1]

    def _finite(self, contexts: Any, arms: Any, rng: np.random.Generator) -> tuple[bool, np.ndarray]:
        records, rule = self._roster.request(arms)[1], self._explores.rule
        single, means, squares, adjusted = evaluated(self._learned, self._front, contexts, records)
        scores = np.empty(means.shape)
        for i in range(len(means)):
            normals, _ = noise_once(min(self._explores.pairs, 1), self._normals(len(records)), rng, 1)
            seen = self._seen(records, means[i], squares[i], adjusted[i] if adjusted else None, normals)
            scores[i] = score(rule, self._in_view(seen))
        if not np.isfinite(scores).all():
            raise trouble()
        return single, self._expected(scores, True)

    # ---- learning ----

    @writing
    def learn(
        self, contexts: Any, rewards: Any, arm: Any = None, *, nu: Any = None, again: bool = False, time: Any = None
    ) -> None:
        """Learn contexts, rewards and arms: one row (dim,), a number and a name, or (n, dim), (n,) and n names.

        contexts: rows; `Outer` factors, taken in pairs: left (n, d_u), right (n, d_a); or decisions, as in
        `SharedBandit.learn`, which know their arms. arm: names, which may be new. Rows of one arm are learned in their
        order, arms in parallel. nu: None. again: learn a second reward of a decision, too (default False). time: as in
        `decide`: a row counts from when it is learned.
        ValueError, and nothing has changed, for NaN, shapes that do not match, names that are not hashable, an arm
        whose factor has turned from the direction it was learned with, a decision that has had its reward, or a nu.
        """
        self._teach(contexts, rewards, arm, nu, again, time)

    def _learn(self, contexts: Any, rewards: Any, arm: Any, nu: Any, time: Any) -> None:
        if nu is not None:
            raise ValueError("nu must be None for models per arm: give it to the estimator, or let it be estimated")
        single, rows, right = pairs(self._front, contexts)
        values = self._values(rewards, len(rows), single)
        if arm is None:
            raise ValueError("arm must name the arm of every row")
        names = [arm] if single else named(arm, len(rows), "arm")
        if not names:
            return
        hashable(names)
        if time is None and self._clock is None:
            self._take(contexts, rows, right, values, names)
            return
        sides = contexts if isinstance(contexts, Outer) else rows
        for span in self._spans(len(rows), time):
            part = Outer(sides.left[span], sides.right[span]) if isinstance(sides, Outer) and not single else sides
            part = part if isinstance(part, Outer) else part[span]
            self._take(part, rows[span], right[span], values[span], names[span])

    def _take(self, contexts: Any, rows: np.ndarray, right: np.ndarray, values: np.ndarray, names: list[Any]) -> None:
        """Learn rows that are checked, contexts as they were given."""
        left: Any = ()
        if self._explores.residual:
            left = deviations(self._learned, self._front, contexts, values, names, self._roster.record, self._expected)
        self._learned = learn(self._learned, self._roster, self._front, rows, right, values, names)
        self.rounds += len(rows)
        for deviation in left:  # of rewards from their means, where the rule looks at them
            self._tally = counted(self._tally, float(deviation))

    @composed
    def play(self, contexts: Any, rewards: Any, nu: Any = None) -> np.ndarray:
        """Play recorded rounds: contexts (T, K, dim) or (T, 1, dim), rewards (T, K); the arms are named 0 .. K - 1.

        nu: None. Returns the chosen indices (T,): those of T calls of `decide` and `learn`. One compiled loop where the
        arms are disjoint in an arena and the feature map is at rest. ValueError for contexts given as factors, and as
        `decide` and `learn`; FloatingPointError when a score is not finite: the rounds before have been learned.
        """
        rows, values = game(self._front, contexts, rewards, nu)
        self._allows(values)
        straight = self._family is None or not (self._explores.rewards or self._explores.residual)
        if straight and self._learned.shared == () and self.estimator.compact and not self._front.moves:
            return self._played(self._front.transform(rows), values)
        arms, names = np.empty(len(rows), np.int64), tuple(range(values.shape[1]))
        for t in range(len(rows)):
            request = rows[t, 0] if rows.shape[1] == 1 else rows[t]
            arms[t] = self.decide(request, names).arm
            self.learn(request if request.ndim == 1 else request[arms[t]], float(values[t, arms[t]]), int(arms[t]))
        return arms

    def _played(self, rows: np.ndarray, rewards: np.ndarray) -> np.ndarray:
        """`play` in the arena, in blocks of rounds."""
        count, explores = rewards.shape[1], self._explores
        step, arms = max(1, DRAWS_AT_ONCE // max(1, explores.pairs * count)), []
        for start in range(0, len(rows), step):
            block = slice(start, start + step)
            normals, lots = noise(explores.pairs, count, self._rng, len(rows[block]))
            before = np.array([self._roster.record(name) for name in range(count)], np.int64)
            with deferred():
                known = explores.rule, self.rounds, self._tally, before.copy()
                self._tally, found, records = self._learned.store.play(
                    *known, rows[block], rewards[block], normals, lots
                )
                for name in dict.fromkeys(found[found >= 0].tolist()):
                    if before[name] == NONE:
                        self._roster.settle(name, int(records[name]))
                self.rounds += int(np.count_nonzero(found >= 0))
            if found[-1] < 0:
                raise trouble()
            if self.rounds >= self._next_look:
                self._look()
            arms.append(found)
        return np.concatenate(arms) if arms else np.empty(0, np.int64)

    @reading
    def error_bound(self) -> float:
        """The largest certified ||A_a - A_hat_a||_2 of all arms; infinite behind features without certificates."""
        if not self._front.map.certified:
            return float("inf")
        shared = 0.0 if self._learned.shared == () else float(contract.error_bound(self._learned.shared.design))
        return max(shared, self._learned.store.error_bound())

    def _published(self) -> Self:
        twin, learned = self._twin(), self._learned
        store, shared = learned.store.published(), states.copy(learned.shared)
        twin._learned = learned._replace(store=store, shared=shared, direction=learned.direction.copy())
        twin._roster = self._roster.copy()
        return twin

    def _state(self) -> Any:
        return self._front.state, self._learned.store.state, self._learned.shared, (self._learned.direction,)

    def _saved(self) -> Saved:
        return saved(self._learned, self._roster, self._front, self._before)

    def _restore(self, held: files.Holds) -> None:
        found = taken(held, self._learned, self._front, self.estimator)
        self._learned.store.restore(found.store)
        self._front.restore(found.features)
        self._learned = self._learned._replace(shared=found.shared, direction=found.direction)
        self._roster = Roster(zip(found.names, found.records.tolist(), strict=True))
        self._before = found.before

    def _forget(self, ticks: int, copied: bool) -> None:
        learned = self._learned
        if copied:  # for readers: arms alone forget as they are asked for
            alone = learned.shared == ()
            store: Any = learned.store
            store = store.later(0) if alone else store.owned()
            learned = learned._replace(store=store, shared=states.copy(learned.shared))
        self._learned, self._recalled = aged(learned, ticks), remembered(ticks) * self._recalled

    def _settle(self) -> None:
        store: Any = self._learned.store
        store.catch_up()

    # ---- merging and moving ----

    def merge(self, other: "ArmBandit", *, since: "ArmBandit | None" = None) -> Self:
        """Learn what `other` has learned, which stays as it is: as if its rows had been learned here; returns this one.

        Arms that only `other` knows are moved as they are, bit for bit. An arm of both is united: exactly for `Ridge`
        and `TruncatedRidge` on `Exact` designs; on sketches that merge the certificates add. Hybrid: exact on `Exact`
        designs; with sketches no arm may be one of both. since: a bandit that both began as copies of, whose rows are
        counted once (None: as they were constructed). Exploration, seed and generator stay this one's.
        TypeError for estimators and designs whose arms cannot be united, and for what is no `ArmBandit`; ValueError,
        and nothing has changed, for bandits of other parts, for features that have learned different rows, for an arm
        whose factor has turned, and where a sketch would have to give rows back.
        """
        return self._merged_with(other, since)

    def _union(self, other: Self, since: Self | None) -> Any:
        begun = None if since is None else since._models()
        return united(self._models(), other._models(), begun, self.estimator.shared, self._before)

    def _united(self, other: Self, union: Any) -> Any:
        return settled(self._models(), other._learned, union)

    def _models(self) -> Arms:
        return Arms(self._roster, self._learned)

    @reading
    def export_arm(self, arm: Hashable) -> ArmModel:
        """A copy of what an arm has learned: for `import_arm` of another bandit, for files and `to_bytes`.

        ValueError if the arm is not known, and for hybrid models, whose shared part knows the arm as well.
        """
        record = self._roster.known(arm)
        learned = self._learned
        return exported(self.estimator, self.features, learned, record, self._front.learned)

    @writing
    def import_arm(self, arm: Hashable, model: ArmModel) -> None:
        """Give an arm that has not learned yet what another one of that or any name has learned elsewhere, bit for bit.

        model: what `export_arm` of a bandit with the same parts gave. ValueError, and nothing has changed, where the
        parts differ, or if the arm has learned already; TypeError for what is no `ArmModel`.
        """
        self._roster.unlearned(arm)
        held = fitting(self.estimator, self.features, self._learned, self._front.learned, model)
        with deferred():
            self._learned = imported(self._learned, self._roster, arm, held)
            self.rounds: int = self.rounds + model.rows

    def _side(self) -> Side:
        store = self._learned.store
        parts = self.estimator.arms, self.estimator.shared, self.estimator.compact
        return Side(parts, self.features, self._front.learned, (store.export(NONE), self._before), self._clock)

    def _weights(self, arms: list[Any], rows: np.ndarray, z: np.ndarray) -> list[list[Weights]]:
        records = np.array([self._roster.record(name) for name in arms])
        return arm_weights(self._learned, records, z, split(self._front.map, rows) if self._front.reduced else None)
