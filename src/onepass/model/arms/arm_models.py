"""Models with parameters for each arm: disjoint (one design for each arm) and hybrid (a shared design as well).

Arms are any hashable values. They appear when they are added or learned from, and leave by `remove_arm`. Any arm may be
offered. An arm that has never learned has no model and needs no memory; its prior has mean 0 and width sqrt(||x||^2 /
reg). The mathematics is in per_arm.py.
"""

from collections.abc import Callable, Hashable
from typing import Any, Self, final

import numpy as np

from onepass.arena.arena import NONE
from onepass.arena.list_store import ListStore
from onepass.arena.packed_store import PackedStore
from onepass.design import contract
from onepass.estimator.contract import forget
from onepass.estimator.estimator import check_radius
from onepass.estimator.half_life import decay_factor
from onepass.estimator.ridge import Ridge
from onepass.exploration.contract import ArmStatistics
from onepass.exploration.exploration import Exploration
from onepass.exploration.randomness import noise, noise_once
from onepass.exploration.residual_scale import Tally, check_tally, count_deviation, pool
from onepass.exploration.rule import Rule
from onepass.features.feature_map import FeatureMap
from onepass.foundation import check, files
from onepass.foundation import state as states
from onepass.foundation.check import quote
from onepass.foundation.deferred_signals import defer_signals
from onepass.foundation.generic import is_registered
from onepass.foundation.registry import build, savable
from onepass.foundation.rw_lock import for_owner, reading, writing
from onepass.model.arms.arm_index import ArmIndex
from onepass.model.arms.arm_model import ArmModel, check_arm_model, export_arm, import_arm
from onepass.model.arms.files import SavedArmModels, pack_state, unpack_state
from onepass.model.arms.learn import check_directions, check_pairs, check_rounds, learn
from onepass.model.arms.merge import NamedModels, apply_merge, correct_shared, plan_merge
from onepass.model.arms.per_arm import ArmModelsState, Disjoint, Hybrid
from onepass.model.arms.predict import arm_statistics, evaluate, models_of, parameter_of, reward_residuals
from onepass.model.arms.weights import arm_weights
from onepass.model.contract import (
    AHEAD,
    NO_SCORES,
    REVISED,
    Batch,
    Model,
    Request,
    Sides,
    check_finite_parameter,
    rows_of_slots,
)
from onepass.model.feature_pipeline import FeaturePipeline, split_sides
from onepass.model.half_life import ForgettingClock, check_forgets, make_clock, restore_if_refused, synchronize
from onepass.model.merge import Parts, check_mergeable, design_prior
from onepass.model.names import check_hashable, name_list
from onepass.model.outcome_heads import OutcomeHeads
from onepass.model.shared_loop import DRAWS_AT_ONCE
from onepass.model.weights import request_rows, sides_of


@final
@savable
class ArmModels(Model):
    """One model per arm.

    A context is a row (dim,) for all arms, or rows (K, dim), one for each arm. n decisions take (n, 1, dim) or
    (n, K, dim). With `features=OuterProduct(...)` a context is `Factors` of left (d_u,) or (n, d_u) and right (K, d_a).

    Parameters
    ----------
    estimator : Disjoint or Hybrid
        Estimator of every arm, and of the shared part of a hybrid model.
    features : FeatureMap, default None
        Map of contexts to the rows of the designs. None takes rows as they are.
    half_life : int or timedelta, default None
        Number of rows, or time, after which a row counts half, above 0. Every arm then has a state of its own, and
        forgets when it is next used. None forgets nothing.

    Raises
    ------
    ValueError
        If the parts do not fit together.
    """

    def __init__(self, estimator: Disjoint | Hybrid, features: FeatureMap | None = None, half_life: Any = None) -> None:
        if not isinstance(estimator, Disjoint | Hybrid):
            raise ValueError(f"estimator must be Disjoint or Hybrid models per arm, got {quote(estimator)}")
        self._age = ForgettingClock(make_clock(half_life))
        if self._age.clock is not None:
            estimator = estimator.separate()
            for each in (estimator.arms, *(() if estimator.shared is None else (estimator.shared,))):
                check_forgets(each)
        design, shared = estimator.arms.design, estimator.shared
        self.estimator: Any = estimator
        self.features: Any = features
        self.dtype: np.dtype[Any] = design.dtype
        self.family: Any = estimator.arms.family
        self._width: int = design.dim
        self._pipeline = FeaturePipeline(features, self._width, self.dtype)
        self.dim: int = self._pipeline.map.input_dim
        full, factors = self._pipeline.map.output_dim, self._pipeline.factors
        wanted, sides = (factors.left, factors.right) if factors is not None and factors.reduce else (full, 0)
        if design.dim != wanted or (shared is not None and shared.design.dim != full):
            sizes = f"{wanted}" if shared is None else f"{wanted} for the arms and {full} for the shared part"
            raise ValueError(f"designs must have dim={sizes} to fit features={quote(features)}, got {quote(estimator)}")
        self.n_learned: int = 0
        self._tally = Tally(rows=0, squares=0.0)
        initial = () if shared is None else shared.begin()
        self._learned = ArmModelsState(estimator.store(), initial, np.zeros((0, sides)))
        self._before = () if shared is None else design_prior(shared)
        self._index = ArmIndex()
        self._later: tuple[int, Self] | None = None  # ticks, and a model for readers that is so much older
        self._heads: OutcomeHeads | None = None

    # ---- arms ----

    @property
    def has_named_arms(self) -> bool:
        return True

    @property
    @reading
    def arms(self) -> tuple[Any, ...]:
        return self._index.names

    @property
    def index(self) -> ArmIndex:
        """Names of arms and the ids of their models; read-only, and no part of a stable interface."""
        return self._index

    def add_arm(self, arm: Hashable) -> None:
        self._index.add(arm)

    @for_owner
    def remove_arm(self, arm: Hashable) -> None:
        arm_id = self._index.lookup(arm)
        if arm_id != NONE:
            self._learned.store.release(arm_id)
        self._index.remove(arm)
        self._later = None
        if self._heads is not None:
            self._heads.remove(arm)

    @reading
    def parameter_of(self, arm: Hashable) -> np.ndarray:
        """Return the parameter of an arm: theta_a, or beta + theta_a of a hybrid model.

        Parameters
        ----------
        arm : hashable
            Name of the arm.

        Returns
        -------
        array of shape (features,)
            The parameter; zeros, the prior mean, if the arm has not learned.

        Raises
        ------
        ValueError
            If the arm is not known, or if contexts of a hybrid model are factors.
        FloatingPointError
            If the parameter is not finite.
        """
        return check_finite_parameter(parameter_of(self._learned, self._pipeline, self._index.lookup(arm), self._width))

    @reading
    def models_of(self, arms: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the parameters and inverse designs of arms, theta_a and A_a^-1.

        A draw of Thompson sampling is from N(theta_a, beta^2 A_a^-1), and a width is sqrt(x^T A_a^-1 x). An arm that
        has not learned has its prior. Cost: O(features^3) an arm.

        Parameters
        ----------
        arms : sequence of hashable, default None
            Names of the arms, each once. None means all known arms.

        Returns
        -------
        thetas : array of shape (K, features)
            Parameters.
        inverses : array of shape (K, features, features)
            Inverse designs.

        Raises
        ------
        ValueError
            If the model is hybrid, a name is not hashable or appears twice, or there is no arm.
        FloatingPointError
            If a parameter is not finite.
        """
        thetas, inverses = models_of(self._learned, self._index.request(arms)[1])
        return check_finite_parameter(thetas), check_finite_parameter(inverses)

    @reading
    def rows_of(self, arm: Hashable) -> int:
        """Return the number of rows learned from an arm.

        Parameters
        ----------
        arm : hashable
            Name of the arm.

        Returns
        -------
        int
            Number of rows.

        Raises
        ------
        ValueError
            If the arm is not known.
        """
        arm_id = self._index.lookup(arm)
        return self._learned.store.export_arm(arm_id).rows

    @reading
    def export_arm(self, arm: Hashable) -> ArmModel:
        """Return a copy of what an arm has learned, for `import_arm` of another model, for files and for `to_bytes`.

        Parameters
        ----------
        arm : hashable
            Name of the arm.

        Returns
        -------
        ArmModel
            The copy.

        Raises
        ------
        ValueError
            If the arm is not known, or the model is hybrid: its shared part has learned from the arm as well.
        """
        arm_id = self._index.lookup(arm)
        return export_arm(self.estimator, self.features, self._learned, arm_id, self._pipeline.statistics)

    @writing
    def import_arm(self, arm: Hashable, model: ArmModel) -> None:
        """Copy what an exported arm has learned to an arm that has not learned yet, bit for bit.

        Parameters
        ----------
        arm : hashable
            Name of the arm; it need not be the name that was exported.
        model : ArmModel
            Result of `export_arm` of a model with equal parts.

        Raises
        ------
        ValueError
            If the parts differ, or if the arm has learned already. Nothing has changed then.
        TypeError
            If `model` is no `ArmModel`.
        """
        self._index.check_untrained(arm)
        held = check_arm_model(self.estimator, self.features, self._learned, self._pipeline.statistics, model)
        with defer_signals():
            self._learned, self._later = import_arm(self._learned, self._index, arm, held), None
            self.n_learned = self.n_learned + model.rows

    # ---- decisions ----

    @property
    def state(self) -> Any:
        return self._learned

    @property
    def half_life(self) -> Any:
        """Number of rows, or time (a timedelta), after which a row counts half; None if nothing is forgotten."""
        return None if self._age.clock is None else self._age.clock.value

    @property
    def needs_time(self) -> bool:
        return self._age.clock is not None and self._age.clock.timed

    def require_fit(self, exploration: Exploration) -> None:
        if self.estimator.shared is not None and exploration.theory is not None:
            raise ValueError("exploration must be a number for hybrid parameters: no radius is known for them")
        check_radius(exploration.theory, self.estimator.arms)
        if (
            self._age.clock is not None
            and exploration.theory is not None
            and not isinstance(self.estimator.arms, Ridge)
        ):
            raise ValueError("exploration must be a number beside half_life: only the radius of Ridge is known then")

    def encode(self, context: Any, arms: Any) -> Request:
        names, arm_ids = self._index.request(arms)
        single, means, squares, adjusted = evaluate(self._learned, self._pipeline, context, arm_ids)
        each: list[Any] = [(means[i], squares[i], adjusted[i] if adjusted else None) for i in range(len(means))]
        return Request(names, len(names), single, each, arm_ids, context)

    def predict(self, request: Request, i: int, rule: Rule, rng: np.random.Generator, pairs: int) -> ArmStatistics:
        shared = self.estimator.shared
        size = request.size if shared is None else request.size + shared.design.dim  # arms share no data
        normals = noise_once(pairs, size, rng, 0)[0]
        rounds = self._age.rounds(self.n_learned)
        means, squares, adjusted = request.each[i]
        return arm_statistics(self._learned, rule, self._tally, rounds, request.arms, means, squares, adjusted, normals)

    def evidence(self, request: Request, i: int, places: np.ndarray) -> Any:
        return self._pipeline.rows_of_arms(request.given, None if request.single else i, places, request.size)

    def at(self, time: Any) -> Self:
        if time is None and self._age.clock is None:
            return self
        ticks = self._age.ticks_to(time)
        if not ticks:
            return self
        known = self._later
        if known is None or known[0] != ticks:
            known = self._later = ticks, self._older(ticks)
        return known[1]

    def _older(self, ticks: int) -> Self:
        """Return a model for readers that is `ticks` half-life ticks older; an arm decays when it is read."""
        twin, (store, shared, _) = self._twin(), self._learned
        assert isinstance(store, ListStore)
        store = store.advance(0, own=shared != ())
        twin._learned = self._learned._replace(store=store, shared=states.copy(shared))
        twin._forget(ticks)
        return twin

    # ---- learning ----

    def observe(self, context: Any, arm: Any) -> Batch:
        single, rows, right = check_pairs(self._pipeline, context)
        if arm is None:
            raise ValueError("arm must name the arm of every row")
        names = [arm] if single else name_list(arm, len(rows), "arm")
        check_hashable(names)
        return Batch(len(rows), single, (rows, right), names)

    def recall(self, slots: list[tuple[Any, int]]) -> Batch:
        _, rows, right = check_pairs(self._pipeline, rows_of_slots(slots))
        return Batch(len(rows), False, (rows, right), [decision.arms[slot] for decision, slot in slots])

    def update(
        self, batch: Batch, rewards: np.ndarray, *, nu: Any = None, time: Any = None, residuals: bool = False,
        outcomes: Any = None,
    ) -> Self:  # fmt: skip
        if nu is not None:
            raise ValueError("nu must be None for models per arm: give it to the estimator, or let it be estimated")
        (rows, right), names = batch.rows, batch.arms
        if time is None and self._age.clock is None:
            z = self._learn_rows(rows, right, rewards, names, residuals)
            if outcomes is not None and self._heads is not None:
                self._heads.update(names, z, outcomes, self._solve)
            return self
        if self._pipeline.reduced:
            check_directions(self._learned, self._index, right, names)
        for span in self._age.spans(len(rows), time, self._forget):
            self._learn_rows(rows[span], right[span], rewards[span], names[span], residuals)
        self._later = None
        return self

    # ---- outcomes ----

    def begin_outcomes(self, count: int) -> None:
        estimator, timed = self.estimator, self._age.clock is not None
        plain = estimator.shared is None and type(estimator.arms) is Ridge and self._pipeline.factors is None
        if not plain or timed:
            super().begin_outcomes(count)
        self._heads = OutcomeHeads(count, self._width)

    def predict_outcomes(self, request: Request, i: int) -> tuple[np.ndarray, np.ndarray]:
        assert self._heads is not None
        assert request.names is not None
        rows = self._pipeline.transform(self._pipeline.rows(request.given, (1, 2, 3)))
        rows = rows if rows.ndim < 3 else rows[i]
        return self._heads.predict(request.names, rows if rows.ndim == 2 else rows[None]), self._heads.deviations()

    def revise_outcomes(self, slot: tuple[Any, int], values: np.ndarray, expected: np.ndarray | None) -> bool:
        assert self._heads is not None
        decision, place = slot
        if self._index.find(decision.arms[place]) == NONE:
            return expected is not None  # removed; or without a reward, and so without a model to learn on
        z = self._pipeline.transform(self._pipeline.pairs(rows_of_slots([slot]))[1])
        mode = AHEAD if expected is None else REVISED
        self._heads.update([decision.arms[place]], z, values[None], self._solve, mode, expected)
        return True

    def _solve(self, arm: Any, row: np.ndarray) -> np.ndarray:
        return self._learned.store.export_arm(self._index.find(arm)).solve(row)

    def outcome_state(self) -> Any:
        return () if self._heads is None else self._heads.state

    def restore_outcomes(self, count: int, held: files.StateSource) -> None:
        self._heads = OutcomeHeads(count, self._width)
        self._heads.restore(held)

    def _learn_rows(
        self, rows: np.ndarray, right: np.ndarray, values: np.ndarray, names: list[Any], residuals: bool
    ) -> np.ndarray:
        """Learn rows (n, dim), or factors `rows` (n, d_u) and `right` (n, d_a), after their checks.

        Returns the rows that the arms' designs have learned.

        `values` (n,) are the rewards and `names` the arms. If `residuals` is True, the squared deviations of the
        rewards from their predictions are added to the running sums.
        """
        if not names:
            return rows
        apart: Any = ()
        if residuals:
            contexts = np.hstack([rows, right]) if right.shape[1] else rows
            apart = reward_residuals(
                self._learned, self._pipeline, contexts, values, names, self._index.find, self.mean_rewards
            )
        self._learned, z = learn(self._learned, self._index, self._pipeline, rows, right, values, names)
        self.n_learned += len(rows)
        for deviation in apart:
            self._tally = count_deviation(self._tally, float(deviation))
        return z

    def _forget(self, ticks: int) -> None:
        self._learned, self._later = decay_models(self._learned, ticks), None
        self._age.add_ticks(ticks)

    def check_rounds(self, contexts: Any, rewards: Any, nu: Any) -> tuple[np.ndarray, np.ndarray, Any]:
        return *check_rounds(self._pipeline, contexts, rewards, nu), None

    @property
    def n_ellipsoids(self) -> int:
        return max(1, len(self.arms))

    def play(
        self,
        contexts: np.ndarray,
        rewards: np.ndarray,
        nu: Any,
        rule: Rule,
        rng: np.random.Generator,
        scored: np.ndarray = NO_SCORES,
    ) -> np.ndarray | None:
        straight = self.family is None or not (rule.rewards or rule.residual)
        store = self._learned.store
        if not (straight and self._learned.shared == () and isinstance(store, PackedStore)) or self._pipeline.moves:
            return None
        rows, count = self._pipeline.transform(contexts), rewards.shape[1]
        step, arms = max(1, DRAWS_AT_ONCE // max(1, rule.pairs * count)), []
        for start in range(0, len(rows), step):
            block = slice(start, start + step)
            normals, uniforms = noise(rule.pairs, count, rng, len(rows[block]))
            before = np.array([self._index.find(name) for name in range(count)], np.int64)
            with defer_signals():
                known = rule.rule, self.n_learned, self._tally, before.copy()
                self._tally, found, arm_ids = store.play(
                    *known, rows[block], rewards[block], normals, uniforms, scored[block]
                )
                for name in dict.fromkeys(found[found >= 0].tolist()):
                    if before[name] == NONE:
                        self._index.assign(name, int(arm_ids[name]))
                self.n_learned += int(np.count_nonzero(found >= 0))
            arms.append(found)
            if found[-1] < 0:
                break
        return np.concatenate(arms) if arms else np.empty(0, np.int64)

    def merge(self, other: Self, since: Self | None) -> Self:
        """Return one model that has learned the rows of two models.

        Arms that only `other` has are copied bit for bit. For an arm of both models, the union is exact for `Ridge` and
        `TruncatedRidge` on `Exact` designs. On sketches that can be merged, the error bound of the result is the sum of
        both error bounds. A hybrid model is exact on `Exact` designs; with sketches no arm may be in both models.

        Parameters
        ----------
        other : ArmModels
            The other model.
        since : ArmModels or None
            The state from which both models began; None if they began with nothing.

        Returns
        -------
        ArmModels
            The union.
        """
        every: list[Self] = [self, other] if since is None else [self, other, since]
        for name, one in zip(("other", "since"), every[1:], strict=False):
            check_mergeable(self._parts(), one._parts(), name)
        with restore_if_refused(self):
            synchronize([one._age for one in every], [one._forget for one in every])
            for one in every:
                if isinstance(one._learned.store, ListStore):
                    one._learned.store.decay_arms()
            mine, its = NamedModels(self._index, self._learned), NamedModels(other._index, other._learned)
            start = None if since is None else NamedModels(since._index, since._learned)
            union = plan_merge(mine, its, start, self.estimator, self._before)
            self._learned, self._later = apply_merge(mine, other._learned, union), None
        self._tally = pool(self._tally, other._tally, None if since is None else since._tally)
        self.n_learned += other.n_learned - (0 if since is None else since.n_learned)
        self._age.weight = max(
            self._age.weight + other._age.weight - (0.0 if since is None else since._age.weight), 0.0
        )
        return self

    def _parts(self) -> Parts:
        store, mine = self._learned.store, self.estimator
        kind = mine.arms, mine.shared, mine.compact
        return Parts(
            kind, self.features, self._pipeline.statistics, (store.export_arm(NONE), self._before), self._age.clock
        )

    # ---- questions ----

    def users(self, contexts: Any) -> tuple[int, Callable[[slice], Any]]:
        return self._pipeline.users(contexts)

    def attribute(self, request: Request, places: list[int], names: Any) -> Sides:
        names, pipeline = self._pipeline.map.input_names(names), self._pipeline
        rows = request_rows(pipeline, request.given)
        rows = np.ascontiguousarray(rows[places if len(rows) > 1 else [0] * len(places)])
        z = np.concatenate([pipeline.transform(row[None]) for row in rows])

        def sides(m: int) -> Any:
            pair = split_sides(pipeline.map, rows[:m]) if pipeline.reduced else None
            weights = arm_weights(self._learned, request.arms[places[:m]], z[:m], pair)
            return sides_of(pipeline, names, rows[:m], z[:m], weights)

        return sides

    @reading
    def error_bound(self) -> float:
        """Return the largest of the proven bounds on the errors of all arms' designs.

        Returns
        -------
        float
            The bound; infinite if none is known.
        """
        if not self._pipeline.map.certified:
            return float("inf")
        shared = 0.0 if self._learned.shared == () else float(contract.error_bound(self._learned.shared.design))
        return max(shared, self._learned.store.error_bound())

    def sketch_loss(self) -> tuple[float, float] | None:
        estimator = self.estimator.arms
        if not isinstance(estimator, Ridge):
            return None
        return self._learned.store.relative_loss(), float(estimator.design.reg)

    @reading
    def memory_usage(self) -> int:
        learned = self._learned
        return states.nbytes((self._pipeline.state, learned.store.state, learned.shared, (learned.direction,)))

    def __repr__(self) -> str:
        parts = [repr(self.estimator)]
        parts += [] if self.features is None else [f"features={self.features!r}"]
        parts += [] if self._age.clock is None else [f"half_life={self.half_life!r}"]
        return f"ArmModels({', '.join(parts)})"

    # ---- copies and files ----

    def freeze(self) -> Self:
        twin, learned = self._twin(), self._learned
        store, shared = learned.store.snapshot(), states.copy(learned.shared)
        twin._learned = learned._replace(store=store, shared=shared, direction=learned.direction.copy())
        twin._index = self._index.copy()
        return twin

    def _twin(self) -> Self:
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._pipeline, twin._age, twin._later = self._pipeline.at_rest(), self._age.copy(), None
        return twin

    def params(self) -> dict[str, Any]:
        """Return the arguments of the constructor.

        Returns
        -------
        dict
            Arguments by name.
        """
        return {"estimator": self.estimator, "features": self.features, "half_life": self._age.clock}

    def contents(self) -> files.Contents:
        extra = {"rounds": self.n_learned, "tally": list(self._tally), **self._age.extra()}
        return files.Contents(
            self.params(), extra, pack_state(self._learned, self._index, self._pipeline, self._before)
        )

    @classmethod
    def from_contents(cls, params: dict[str, Any], extra: dict[str, Any], held: files.StateSource) -> Self:
        model = cls(**{name: build(part) for name, part in params.items()})
        found: SavedArmModels = unpack_state(held, model._learned, model._pipeline, model.estimator)
        model._learned.store.restore(found.store)
        model._pipeline.restore(found.features)
        model._learned = model._learned._replace(shared=found.shared, direction=found.direction)
        model._index = ArmIndex(zip(found.names, found.arm_ids.tolist(), strict=True))
        model._before = found.before
        model.n_learned, model._tally = check.integer("rounds", extra["rounds"], 0), check_tally(extra["tally"])
        model._age.restore(extra)
        return model


def decay_models(learned: ArmModelsState, ticks: int) -> ArmModelsState:
    """Return the models at a later time, when old rows count less.

    `learned` is the state of the models, and `ticks` the number of ticks that have passed; a half-life is divided into
    a fixed number of ticks. The rows of an arm are discounted when the arm is next used. In a hybrid model the arm's
    part of the shared design is corrected for this, at cost O(dim^3) for an arm and tick, if the shared design is
    exact. On sketches the correction is left out, as if arms returned to their earlier state and not to their prior.
    """
    store, shared, factor = learned.store, learned.shared, decay_factor(ticks)
    assert isinstance(store, ListStore)
    later = store.advance(ticks)
    if shared == ():
        return learned._replace(store=later)
    exact = is_registered(contract.add_matrix, shared.design)
    before = [arm.schur_complement() for arm in store.decay_arms()] if exact else []
    shared = forget(shared, factor)
    if before:
        terms = [tuple(factor * term for term in one) for one in before]
        terms += [tuple(-term for term in arm.schur_complement()) for arm in later.decay_arms()]
        shared = correct_shared(shared, terms)
    return learned._replace(store=later, shared=shared)
