"""Models per arm: disjoint (one design an arm) and hybrid (a shared one as well). The mathematics is in models.py.

Arms are any hashable; they appear when they are added, learned from or asked for, and leave by `remove_arm`. An arm
never learned from has no model and costs no array: it is scored by its prior, mean 0 and width sqrt(||x||^2 / reg).
"""

from collections.abc import Hashable
from typing import Any, NamedTuple, final

import numpy as np

from onepass.arena.arena import NONE
from onepass.bandit.bandit import BaseBandit, Decision, named, ranked, together, trouble
from onepass.bandit.front import Front, split
from onepass.bandit.models import Disjoint, Hybrid, Learned
from onepass.bandit.reduction import directions_for, lengths_along
from onepass.bandit.roster import Roster, hashable
from onepass.design import contract
from onepass.estimator.contract import parameter, update_rows
from onepass.estimator.estimator import known_radius
from onepass.exploration import DRAWS, MEANS, Exploration, Theory, choose, normals, uniforms
from onepass.features.factors import Outer, products
from onepass.features.feature_map import FeatureMap
from onepass.foundation import check, files
from onepass.foundation.interrupts import deferred
from onepass.foundation.registry import savable
from onepass.foundation.state import objects


class Saved(NamedTuple):
    """What is written: names, the record of each (NONE: never learned from), and all states, that of the feature map as
    far as it has learned."""

    names: np.ndarray
    records: np.ndarray
    direction: np.ndarray
    shared: Any
    store: Any
    features: Any


@final
@savable
class ArmBandit(BaseBandit):
    """One model per arm: `Bandit(Disjoint(Ridge(design)))` or `Bandit(Hybrid(shared=..., arms=...))`.

    A context is (dim,), the same for all arms, or (K, dim), a row per arm; n decisions take (n, 1, dim) or (n, K, dim);
    as factors (`features=OuterProduct(...)`): `Outer` of left (d_u,) or (n, d_u) and right (K, d_a).

    estimator: `Disjoint` or `Hybrid`; exploration: `UCB`, `Thompson`, `Greedy` or `EpsilonGreedy` (None: `UCB()`);
    features: a map of contexts to the designs' rows (None: none); seed, at least 0: breaks ties and draws; name: shown
    by repr. ValueError for parts that do not fit.
    """

    def __init__(
        self,
        estimator: Disjoint | Hybrid,
        exploration: Exploration | None = None,
        *,
        features: FeatureMap | None = None,
        seed: int = 0,
        name: str = "Bandit",
    ):
        if not isinstance(estimator, Disjoint | Hybrid):
            raise ValueError(f"estimator must be Disjoint or Hybrid models per arm, got {estimator!r}")
        design, shared = estimator.arms.design, estimator.shared
        self._set(exploration, seed, name, design.dtype)
        if shared is not None and isinstance(getattr(self.exploration, "exploration", None), Theory):
            raise ValueError("exploration must be a number for hybrid parameters: no radius is known for them")
        known_radius(self._rule, estimator.arms)
        self.estimator, self.features = estimator, features
        self._width = design.dim
        self._front = Front(features, self._width, self._dtype)
        self.dim, full, factors = self._front.map.input_dim, self._front.map.output_dim, self._front.factors
        self._reduced = factors is not None and factors.reduce
        wanted, sides = (factors.left, factors.right) if factors is not None and factors.reduce else (full, 0)
        if design.dim != wanted or (shared is not None and shared.design.dim != full):
            sizes = f"{wanted}" if shared is None else f"{wanted} for the arms and {full} for the shared part"
            raise ValueError(f"designs must have dim={sizes} to fit features={features!r}, got {estimator!r}")
        begun = () if shared is None else shared.begin()
        self._learned = Learned(estimator.store(), begun, np.zeros((0, sides)))
        self._roster = Roster()

    # ---- arms ----

    @property
    def arms(self) -> tuple[Any, ...]:
        """All known arms, in the order in which they appeared."""
        return self._roster.names

    def add_arm(self, arm: Hashable) -> None:
        """Make an arm known before it is learned from; ValueError if it is known already or not hashable."""
        self._roster.add(arm)

    def remove_arm(self, arm: Hashable) -> None:
        """Forget an arm and all it has learned (a shared part keeps what it learned). ValueError if it is not known."""
        record = self._roster.known(arm)
        with deferred():
            if record != NONE:
                self._learned.store.close(record)
            self._roster.remove(arm)

    def parameter_of(self, arm: Hashable) -> np.ndarray:
        """theta_a (features,), for hybrid parameters beta + theta_a; the prior's zero for an arm that has not learned.

        ValueError if the arm is not known, or for a hybrid model of contexts given as factors.
        """
        record = np.array([self._roster.known(arm)])
        shared = self._learned.shared
        if shared == ():
            if record[0] == NONE:
                return np.zeros(self._width, self._dtype)
            return self._learned.store.parameter(int(record[0]))
        if self._front.factors:
            raise ValueError("parameter_of is defined for hybrid parameters of rows only, not of factors")
        eye = np.eye(self._width, dtype=self._dtype)
        each = [self._model(record, row[None], None) for row in eye]
        return np.array([mean[0] + rows[0] @ parameter(shared) for mean, _, rows in each], self._dtype)

    def rows_of(self, arm: Hashable) -> int:
        """Rows learned from an arm; ValueError if it is not known."""
        record = self._roster.known(arm)
        return 0 if record == NONE else self._learned.store.rows(record)

    # ---- decisions ----

    def decide(self, contexts: Any, arms: Any = None, k: int = 1) -> Decision:
        """Choose among `arms` (names; default: all known), and rank the k best. Unknown ones become known.

        contexts: shapes as in the class. ValueError for NaN, a wrong shape, duplicate arms, no arm at all or k above
        K; FloatingPointError when a score is not finite; no arm has changed then.
        """
        names, records = self._roster.request(arms)
        if type(k) is not int or k != 1:
            check.integer("k", k, 1, len(names))
        single, scores, means, spreads = self._scores(contexts, records, self._rng)
        each = []
        for i in range(len(scores)):
            chosen, propensity = choose(self._rule, scores[i], uniforms(self._rng, 2))
            if chosen < 0:
                raise trouble()
            best = [names[a] for a in ranked(scores[i], chosen, k)]
            width = None if self._rule.spread == MEANS else spreads[i]
            each.append(Decision(best[0], best, scores[i], means[i], width, propensity))
        if arms is not None and (records == NONE).any():
            self._roster.meet(names)
        return each[0] if single else together(each)

    def score(self, contexts: Any, arms: Any = None) -> np.ndarray:
        """Scores (K,) of `arms` (default: all known), or (n, K) for n contexts, without side effects.

        Under Thompson sampling the same draws in every call: the first that the seed gives. Errors as in `decide`.
        """
        single, scores = self._finite(contexts, arms, np.random.default_rng(self.seed))
        return scores[0] if single else scores

    def _block(self, contexts: Any, arms: Any, rng: np.random.Generator) -> np.ndarray:
        return self._finite(contexts, arms, rng)[1]

    def _finite(self, contexts: Any, arms: Any, rng: np.random.Generator) -> tuple[bool, np.ndarray]:
        single, scores, _, _ = self._scores(contexts, self._roster.request(arms)[1], rng)
        if not np.isfinite(scores).all():
            raise trouble()
        return single, scores

    def _offered(self, contexts: Any, arms: Any) -> list[Any]:
        return self._roster.request(arms)[0]

    def _scores(
        self, contexts: Any, records: np.ndarray, rng: np.random.Generator
    ) -> tuple[bool, np.ndarray, np.ndarray, np.ndarray]:
        """Whether it is a single decision; scores, means and spreads, each (n, K)."""
        rule = self._rule
        single, means, squares, adjusted = self._evaluated(contexts, records)
        shared = self._learned.shared
        scale: Any = rule.scale
        if rule.theory.size > 0:
            scale = scale * self._learned.store.radii(records, rule.theory)
        for i, rows in enumerate(adjusted):
            means[i] += rows @ parameter(shared)
            if rule.spread != MEANS and rule.spread != DRAWS:
                squares[i] += contract.inverse_quadratic(shared.design, rows)
        spreads = np.sqrt(np.maximum(squares, 0.0))
        if rule.spread == MEANS:
            return single, means, means, spreads
        if rule.spread == DRAWS:
            # arms share no data, so their draws from N(theta_a, A_a^-1) are independent: one normal an arm will do
            for i in range(len(spreads)):
                spreads[i] *= normals(rng, spreads.shape[1])
                if adjusted:
                    normal = np.asarray(normals(rng, adjusted[i].shape[1]), self._dtype)
                    spreads[i] += adjusted[i] @ contract.root(shared.design, normal)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is raised by who asks
            return single, means + scale * spreads, means, spreads

    def _evaluated(self, contexts: Any, records: np.ndarray) -> tuple[bool, np.ndarray, np.ndarray, list[np.ndarray]]:
        """Whether it is a single decision; means and x^T A^-1 x of the arms' models (n, K); hybrid: n times (K, k) rows
        of the shared model."""
        store, shared, count = self._learned.store, self._learned.shared, len(records)
        if isinstance(contexts, Outer):
            left, right = self._front.sides(contexts, False)
            single = np.ndim(contexts.left) == 1
            if len(right) != count or len(left) == 0:
                raise ValueError(f"contexts.right must have one row per arm ({count}), got {len(right)}")
            lengths = (
                lengths_along(self._learned.direction, records, right) if self._reduced else np.ones(count, self._dtype)
            )
            if shared == () and self._front.factors:
                if self._reduced:
                    means, squares = self._same(records, left)
                    return single, means * lengths, squares * lengths**2, []
                return single, *store.evaluate_factors(records, left, right), []
            each = []
            for user in left:
                full = self._front.met(user, right)
                each.append(self._model(records, lengths[:, None] * user if self._reduced else full, full))
        else:
            rows = self._front.rows(contexts, (1, 2, 3))
            single = rows.ndim < 3
            rows = rows.reshape(1, -1, self.dim) if single else rows
            if rows.shape[1] != count and (rows.shape[1] != 1 or np.ndim(contexts) == 2):
                raise ValueError(
                    f"contexts must have one row, or one per arm ({count}), got shape {np.shape(contexts)}"
                )
            full = self._front.transform(rows)
            if self._reduced:
                each = [self._reduced_model(records, x, z) for x, z in zip(rows, full, strict=True)]
            elif full.shape[1] == 1 and shared == ():
                means, squares = self._same(records, np.ascontiguousarray(full[:, 0]))
                return single, means, squares, []
            else:
                each = [self._model(records, request, None) for request in full]
        columns = list(zip(*each, strict=True))
        return single, np.stack(columns[0]), np.stack(columns[1]), [] if shared == () else list(columns[2])

    def _same(self, records: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means and squares (n, K) where each of n rows is the context of every arm."""
        if len(rows) == 1:
            means, squares = self._learned.store.evaluate(records, rows, np.empty((len(records), 0), self._dtype))
            return means[None], squares[None]
        return self._learned.store.evaluate_users(records, rows)

    def _model(
        self, records: np.ndarray, rows: np.ndarray, extra: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Means and squares (K,) for rows (K or 1, width), and the rows of the shared model (K, k), which starts from
        extra (default: the rows themselves)."""
        if self._learned.shared == ():
            extra = np.empty((len(records), 0), self._dtype)
        elif extra is None:
            extra = np.array(np.broadcast_to(rows, (len(records), rows.shape[1])))
        return *self._learned.store.evaluate(records, np.ascontiguousarray(rows), extra), extra

    def _reduced_model(
        self, records: np.ndarray, rows: np.ndarray, full: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`_model` of rows (u, v), (K or 1, dim), and their z, where arms know ||v|| u."""
        left, right = split(self._front.map, rows)
        right = np.ascontiguousarray(np.broadcast_to(right, (len(records), right.shape[1])))
        lengths = lengths_along(self._learned.direction, records, right)
        extra = np.array(np.broadcast_to(full, (len(records), full.shape[1])))
        return self._model(records, lengths[:, None] * left, extra)

    # ---- learning ----

    def learn(self, contexts: Any, rewards: Any, arm: Any = None, *, nu: Any = None) -> None:
        """Learn contexts, rewards and arms: one row (dim,), a number and a name, or (n, dim), (n,) and n names.

        Names may be new. Rows of one arm are learned in their order, arms in parallel. `Outer` factors are taken in
        pairs: left (n, d_u), right (n, d_a). ValueError, and nothing has changed, for NaN, shapes that do not match,
        names that are not hashable, an arm whose factor has turned away from the direction it was learned with, or a nu
        per row.
        """
        if nu is not None:
            raise ValueError("nu must be None for models per arm: give it to the estimator, or let it be estimated")
        if self._front.factors:
            single = np.ndim(contexts.left if isinstance(contexts, Outer) else contexts) == 1
            rows, right = self._front.sides(contexts, True)
        else:
            single, rows = self._front.pairs(contexts, False)
            right = np.empty((len(rows), 0), self._dtype)
        if single and isinstance(rewards, float) and -1e12 < rewards < 1e12:  # the common case, checked at once
            values = np.array([rewards], self._dtype)
        else:
            values = check.array("rewards", rewards, self._dtype, (0,) if single else (1,))
            values = check.finite("rewards", values).reshape(-1)
        if len(values) != len(rows):
            raise ValueError(f"rewards must have one entry per row of contexts ({len(rows)}), got {len(values)}")
        if arm is None:
            raise ValueError("arm must name the arm of every row")
        names = [arm] if single else named(arm, len(rows), "arm")
        if not names:
            return
        hashable(names)
        if len(names) == 1 and self._learned.shared == () and not right.shape[1]:
            with deferred():
                rows = self._front.advance(rows)
                self._learned.store.learn_one(self._record(arm if single else names[0]), rows, float(values[0]))
                self.rounds += 1
            return
        codes: dict[Hashable, int] = {}
        group = np.array([codes.setdefault(name, len(codes)) for name in names], np.int64)
        full = products(rows, right) if right.shape[1] and self._learned.shared != () else None
        if self._reduced:
            known = [self._roster.record(name) for name in codes]
            directions = directions_for(self._learned.direction, known, group, right)
            lengths = lengths_along(directions, group, right)
            rows, right = np.ascontiguousarray(rows * lengths[:, None]), right[:, :0].copy()
        starts = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=len(codes)))])
        order = np.argsort(group, kind="stable")
        with deferred():
            if not self._front.factors:
                rows = full = self._front.advance(rows)
            extra = np.empty((len(rows), 0), self._dtype) if self._learned.shared == () else full
            records = np.array([self._record(name) for name in codes], np.int64)
            if self._reduced:
                self._learned.direction[records] = directions
            increments, targets = self._learned.store.learn(records, starts, order, rows, right, values, extra)
            if self._learned.shared != ():
                shared = update_rows(self._learned.shared, increments, targets.astype(self._dtype))
                self._learned = self._learned._replace(shared=shared)
            self.rounds += len(rows)

    def _record(self, name: Hashable) -> int:
        """The record of an arm that is about to learn."""
        record = self._roster.record(name)
        if record == NONE:
            record = self._learned.store.open()
            self._roster.settle(name, record)
            direction = self._learned.direction
            if direction.shape[1] and record >= len(direction):
                grown = np.zeros((record + 16 + record // 8, direction.shape[1]))
                grown[: len(direction)] = direction
                self._learned = self._learned._replace(direction=grown)
        return record

    def play(self, contexts: Any, rewards: Any, nu: Any = None) -> np.ndarray:
        """Play recorded rounds: contexts (T, K, dim) or (T, 1, dim), rewards (T, K); the arms are named 0 .. K - 1.

        Returns the chosen indices (T,): T calls of `decide` and `learn`. Not for contexts given as factors. nu: None.
        """
        if self._front.factors:
            raise ValueError("play takes full contexts, not factors; use decide and learn")
        if nu is not None:
            raise ValueError("nu must be None for models per arm: give it to the estimator, or let it be estimated")
        rows = check.array("contexts", contexts, self._dtype, (3,), self.dim)
        check.finite_rows("contexts", rows.reshape(-1, self.dim))
        values = check.finite("rewards", check.array("rewards", rewards, self._dtype, (2,)))
        if len(values) != len(rows) or rows.shape[1] not in (1, values.shape[1]):
            raise ValueError(f"rewards must have shape (T, K) as contexts (T, K, dim) has, got {values.shape}")
        arms, names = np.empty(len(rows), np.int64), tuple(range(values.shape[1]))
        for t in range(len(rows)):
            request = rows[t, 0] if rows.shape[1] == 1 else rows[t]
            arms[t] = self.decide(request, names).arm
            self.learn(request if request.ndim == 1 else request[arms[t]], float(values[t, arms[t]]), int(arms[t]))
        return arms

    # ---- bookkeeping ----

    def error_bound(self) -> float:
        """The largest certified ||A_a - A_hat_a||_2 of all arms; infinite behind features without certificates."""
        if not self._front.map.certified:
            return float("inf")
        shared = 0.0 if self._learned.shared == () else float(contract.error_bound(self._learned.shared.design))
        return max(shared, self._learned.store.error_bound())

    def _state(self) -> Any:
        return self._front.state, self._learned.store.state, self._learned.shared, (self._learned.direction,)

    def _saved(self) -> Saved:
        learned, roster = self._learned, self._roster
        names, store = objects(list(roster.names)), learned.store.kept()
        return Saved(names, roster.records, learned.direction, learned.shared, store, self._front.learned)

    def _restore(self, held: files.Holds) -> None:
        learned, features = self._learned, self._front.learned
        parts = len({name.split(".")[1] for name in held.arrays if name.startswith("store.")})
        none, nobody = np.zeros(0, np.int64), objects([])
        begun = Saved(nobody, none, learned.direction, learned.shared, learned.store.template(parts), features)
        saved = held.take(begun, self._fits)
        learned.store.restore(saved.store)
        self._front.restore(saved.features)
        self._learned = learned._replace(shared=saved.shared, direction=saved.direction)
        self._roster = Roster(zip(saved.names, saved.records.tolist(), strict=True))

    def _fits(self, saved: Saved) -> bool:
        """Whether the parts of what a file holds do not contradict each other."""
        learned, estimator = self._learned, self.estimator
        places = np.concatenate([saved.records[saved.records != NONE], learned.store.vacant(saved.store)])
        return (
            len(saved.names) == len(set(saved.names)) == len(saved.records)
            and saved.direction.shape[1:] == learned.direction.shape[1:]
            and (saved.direction.shape[1] == 0 or len(saved.direction) >= len(places))
            and np.array_equal(np.sort(places), np.arange(learned.store.records(saved.store)))
            and (learned.shared == () or estimator.shared.consistent(saved.shared))
            and self._front.fits(saved.features)
            and learned.store.fits(saved.store)
        )
