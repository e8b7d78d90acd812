"""Model with one parameter and one design for all arms: arms are rows, and names are only labels.

A round maps every arm's row to z = features(x) (feature_pipeline.py). With the estimate theta, the score is z^T theta +
beta sqrt(z^T A^-1 z), or uses a draw, or the mean alone. The largest score is chosen, and (z, reward) is learned.
Statistics, rule and draw are one compiled call, and `play` runs many rounds in one (shared_loop.py). A round costs what
its design costs (see onepass.design); K arms are scored by one matrix product.
"""

from collections.abc import Callable
from typing import Any, Self, final

import numpy as np

from onepass.design import contract
from onepass.estimator.contract import forget, parameter
from onepass.estimator.epochs import check_epoch
from onepass.estimator.estimator import Estimator, check_radius
from onepass.estimator.half_life import decay_factor
from onepass.estimator.noise_scale import LEAST
from onepass.estimator.ridge import Ridge
from onepass.exploration.contract import ArmStatistics
from onepass.exploration.exploration import Exploration
from onepass.exploration.randomness import noise, noise_once
from onepass.exploration.residual_scale import Tally, check_tally, pool
from onepass.exploration.rule import Rule
from onepass.features.feature_map import FeatureMap
from onepass.features.outer_product import Factors
from onepass.foundation import check, files
from onepass.foundation import state as states
from onepass.foundation.check import quote
from onepass.foundation.deferred_signals import defer_signals
from onepass.foundation.generic import call_direct
from onepass.foundation.registry import build, savable
from onepass.foundation.rw_lock import reading
from onepass.model import shared_loop as loop
from onepass.model.contract import (
    AHEAD,
    NO_SCORES,
    REVISED,
    Batch,
    Choice,
    Model,
    Request,
    Sides,
    check_finite_parameter,
    check_rounds,
    rows_of_slots,
)
from onepass.model.feature_pipeline import FeaturePipeline
from onepass.model.half_life import ForgettingClock, check_forgets, make_clock, restore_if_refused, synchronize
from onepass.model.merge import Parts, check_mergeable, design_prior, merge_shared
from onepass.model.names import distinct_names, full_mask
from onepass.model.outcome_heads import OutcomeHeads
from onepass.model.shared_files import pack_state, unpack_state
from onepass.model.sketch_loss import sketch_loss
from onepass.model.weights import request_rows, sides_of, weights_of_shared

NO_SCALES = np.empty(0)  # of rows that are told none


def _code_for(rule: Rule, *rows: np.ndarray) -> dict[Any, Callable] | None:
    """Return the rule's cache of compiled code, which is for arrays that are contiguous and can be written to.

    It is None if one of the arrays `rows` is not, such as a slice of another array.
    """
    return rule.code if all(part.flags.carray for part in rows) else None


@final
@savable
class SharedModel(Model):
    """One model for all arms.

    A context is an array of shape (K, dim), a row for each arm. n decisions take (n, K, dim). With `OuterProduct`
    features a context is `Factors`: a left part of shape (d_u,), or (n, d_u) for n decisions, and a right part of shape
    (K, d_a).

    Parameters
    ----------
    estimator : Estimator
        Estimator and its design, such as ``Ridge(FrequentDirections(dim=784, size=32))``.
    features : FeatureMap, default None
        Map of contexts to the rows of the design. None takes rows as they are.
    half_life : int or timedelta, default None
        Number of rows, or time, after which a row counts half, above 0. None forgets nothing.

    Raises
    ------
    ValueError
        If the parts do not fit together.
    """

    common_draw = True

    def __init__(self, estimator: Estimator, features: FeatureMap | None = None, half_life: Any = None) -> None:
        if not isinstance(estimator, Estimator):
            raise ValueError(f"estimator must be an estimator such as Ridge(design), got {quote(estimator)}")
        self.estimator: Any = estimator
        self.features: Any = features
        self._age = ForgettingClock(make_clock(half_life))
        if half_life is not None:
            check_forgets(estimator)
        design = estimator.design
        self.dtype: np.dtype[Any] = design.dtype
        self.family: Any = estimator.family
        self._width: int = design.dim
        self._pipeline = FeaturePipeline(features, self._width, self.dtype)
        if self._pipeline.map.output_dim != self._width:
            raise ValueError(f"features must give {self._width} features, as the design expects, got {quote(features)}")
        if estimator.repeats_arms and not self._pipeline.map.repeatable:
            kind = type(estimator).__name__
            raise ValueError(
                f"features must be repeatable for {kind}, which knows an arm by its row, got {quote(features)}"
            )
        self.dim: int = self._pipeline.map.input_dim
        self.n_learned: int = 0
        self._tally = Tally(rows=0, squares=0.0)
        self._learned = estimator.begin()
        self._before = design_prior(estimator)
        self._code: dict[Any, Callable] = {}  # compiled for the types of this state
        self._later: tuple[int, Self] | None = None  # ticks, and a model for readers that is so much older
        self._heads: OutcomeHeads | None = None

    @property
    @reading
    def parameter(self) -> np.ndarray:
        """The present estimate theta, shape (features,). Raises FloatingPointError if it is not finite."""
        return check_finite_parameter(parameter(self._learned))

    @property
    def half_life(self) -> Any:
        """Number of rows, or time (a timedelta), after which a row counts half; None if nothing is forgotten."""
        return None if self._age.clock is None else self._age.clock.value

    @property
    def state(self) -> Any:
        return self._learned

    @property
    def needs_time(self) -> bool:
        return self._age.clock is not None and self._age.clock.timed

    def require_fit(self, exploration: Exploration) -> None:
        check_radius(exploration.theory, self.estimator)
        if self._age.clock is not None and exploration.theory is not None and not isinstance(self.estimator, Ridge):
            raise ValueError("exploration must be a number beside half_life: only the radius of Ridge is known then")

    # ---- decisions ----

    def encode(self, context: Any, arms: Any) -> Request:
        if isinstance(context, Factors):
            left, right = self._pipeline.sides(context, False)
            if len(left) == 0 or len(right) == 0:
                raise ValueError(f"contexts must have at least one user and one arm, got {len(left)} and {len(right)}")
            single, count = np.ndim(context.left) == 1, len(right)
            each: Any = [(user, right) for user in left]
        else:
            rows = self._pipeline.transform(self._pipeline.rows(context, (2, 3)))
            single, count = rows.ndim == 2, rows.shape[-2]
            each = [rows] if single else rows
        return Request(None if arms is None else distinct_names(arms, count), count, single, each, (), context)

    def evidence(self, request: Request, i: int, places: np.ndarray) -> Any:
        return self._pipeline.rows_of_arms(request.given, None if request.single else i, places, request.size)

    def choose(
        self,
        request: Request,
        i: int,
        rule: Rule,
        rng: np.random.Generator,
        eligible: np.ndarray,
        k: int,
        greedy: bool,
    ) -> Choice:
        if self.estimator.repeats_arms and not request.single:
            raise ValueError("contexts must be those of one decision, for an arm is played several times in a row")
        rows, given = request.each[i], (self._learned, rule.rule, self._age.rounds(self.n_learned), self._tally)
        if isinstance(rows, tuple):
            user, right = rows
            if self._uses_factors(right):
                size, joint = self._size(right.shape[1], rule)
                normals, uniforms = noise_once(rule.pairs, size, rng, k)
                settings = (normals, joint, eligible, uniforms, greedy)
                places, p, scores, means, widths = call_direct(
                    _code_for(rule, user, right), loop.decide_outer, *given, user, right, *settings
                )
                return places, p, self.mean_rewards(scores, rule), self.mean_rewards(means), widths
            rows = self._pipeline.transform_pairs(user, right)
        size, joint = self._size(len(rows), rule)
        normals, uniforms = noise_once(rule.pairs, size, rng, k)
        places, p, scores, means, widths = call_direct(
            _code_for(rule, rows), loop.decide_rows, *given, rows, normals, joint, eligible, uniforms, greedy
        )
        return places, p, self.mean_rewards(scores, rule), self.mean_rewards(means), widths

    def predict(self, request: Request, i: int, rule: Rule, rng: np.random.Generator, pairs: int) -> ArmStatistics:
        rows = request.each[i]
        rows = self._pipeline.transform_pairs(*rows) if isinstance(rows, tuple) else rows
        size, joint = self._size(len(rows), rule)
        normals = noise_once(pairs, size, rng, 0)[0]
        return loop.row_statistics(
            self._learned, rule.rule, self._age.rounds(self.n_learned), self._tally, rows, normals, joint and pairs > 0
        )

    def _uses_factors(self, right: np.ndarray) -> bool:
        """Return True if it is cheaper to score the K rows of a user in the d_a dimensions in which they lie.

        right (K, d_a) holds the arms' factors.
        """
        return bool(self._pipeline.factors) and right.shape[0] > right.shape[1] and not self.estimator.repeats_arms

    def _size(self, count: int, rule: Rule) -> tuple[int, bool]:
        """Return the number of normals in a draw for K rows, and True if rows are drawn jointly (shared_loop.py)."""
        joint = count <= min(rule.pairs, self._width)
        return (count if joint else self._width), joint

    def scores(self, request: Request, rule: Rule, rng: np.random.Generator) -> np.ndarray:
        normals = noise_once(1, self._width, rng, 1)[0] if rule.pairs else np.zeros((0, 0))
        given = self._learned, rule.rule, self._age.rounds(self.n_learned), self._tally
        flat: Any = request.each
        if isinstance(flat, np.ndarray):
            flat = [np.ascontiguousarray(flat.reshape(-1, flat.shape[-1]))]
        found = []
        for rows in flat:
            if isinstance(rows, tuple) and self._uses_factors(rows[1]):
                eligible = full_mask(len(rows[1]))
                settings: Any = (normals, False, eligible, np.zeros(2), False)
                found.append(call_direct(_code_for(rule, *rows), loop.decide_outer, *given, *rows, *settings)[2])
                continue
            rows = self._pipeline.transform_pairs(*rows) if isinstance(rows, tuple) else rows
            eligible = full_mask(len(rows))
            settings = (rows, normals, False, eligible, np.zeros(2), False)
            found.append(call_direct(_code_for(rule, rows), loop.decide_rows, *given, *settings)[2])
        return np.concatenate(found).reshape(len(request.each), request.size)

    def at(self, time: Any) -> Self:
        if time is None and self._age.clock is None:
            return self
        ticks = self._age.ticks_to(time)
        if not ticks:
            return self
        known = self._later
        if known is None or known[0] != ticks:
            twin = self.freeze()
            twin._forget(ticks)
            known = self._later = ticks, twin
        return known[1]

    # ---- learning ----

    def observe(self, context: Any, arm: Any) -> Batch:
        if arm is not None:
            raise ValueError(
                f"arm must be None for a shared model, which knows rows only, got {quote(arm)}; use Disjoint"
            )
        single, rows = self._pipeline.pairs(context)
        return Batch(len(rows), single, rows)

    def recall(self, slots: list[tuple[Any, int]]) -> Batch:
        rows = self._pipeline.pairs(rows_of_slots(slots))[1]
        return Batch(len(rows), False, rows)

    def update(
        self, batch: Batch, rewards: np.ndarray, *, nu: Any = None, time: Any = None, residuals: bool = False,
        outcomes: Any = None,
    ) -> Self:  # fmt: skip
        nus, rows = NO_SCALES, batch.rows
        if nu is not None:
            nus = self._noise_scales(nu, (0,) if batch.single else (1,), () if batch.single else rewards.shape)
            nus = nus.reshape(-1)
        self._permit(len(rows), rows)
        self._age.check_time(time)  # before the feature map has learned
        z = self._pipeline.advance(rows)
        if time is None and self._age.clock is None:
            self._learn_rows(z, rewards, nus, residuals)
            if outcomes is not None and self._heads is not None:
                self._heads.update([None] * len(z), z, outcomes, self._solve)
            return self
        for span in self._age.spans(len(z), time, self._forget):
            self._learn_rows(z[span], rewards[span], nus[span] if nus.size else nus, residuals)
        self._later = None
        return self

    # ---- outcomes ----

    def begin_outcomes(self, count: int) -> None:
        if type(self.estimator) is not Ridge or self._age.clock is not None:
            super().begin_outcomes(count)
        self._heads = OutcomeHeads(count, self._width)

    def predict_outcomes(self, request: Request, i: int) -> tuple[np.ndarray, np.ndarray]:
        assert self._heads is not None
        rows = request.each[i]
        rows = self._pipeline.transform_pairs(*rows) if isinstance(rows, tuple) else rows
        if self._heads.state.keys.size == 0:
            return np.zeros((self._heads.state.theta.shape[1], len(rows))), self._heads.deviations()
        return self._heads.predict([None], rows), self._heads.deviations()

    def revise_outcomes(self, slot: tuple[Any, int], values: np.ndarray, expected: np.ndarray | None) -> bool:
        assert self._heads is not None
        z = self._pipeline.transform(self._pipeline.pairs(rows_of_slots([slot]))[1])
        self._heads.update([None], z, values[None], self._solve, AHEAD if expected is None else REVISED, expected)
        return True

    def _solve(self, key: Any, row: np.ndarray) -> np.ndarray:
        return contract.solve(self._learned.design, row)

    def outcome_state(self) -> Any:
        return () if self._heads is None else self._heads.state

    def restore_outcomes(self, count: int, held: files.StateSource) -> None:
        self._heads = OutcomeHeads(count, self._width)
        self._heads.restore(held)

    def _learn_rows(self, z: np.ndarray, values: np.ndarray, nus: np.ndarray, residuals: bool) -> None:
        """Learn rows z (n, features) with rewards `values` (n,) and noise scales `nus` after their checks.

        If `residuals` is True, the squared deviations of the rewards from their predictions are added to the running
        sums.
        """
        given = self._learned, residuals, self._tally, z, values, nus
        self._learned, self._tally = call_direct(self._code if z.flags.c_contiguous else None, loop.learn_rows, *given)
        self.n_learned += z.shape[0]

    def _forget(self, ticks: int) -> None:
        self._learned, self._later = forget(self._learned, decay_factor(ticks)), None
        self._age.add_ticks(ticks)

    def _permit(self, count: int, rows: np.ndarray | None = None) -> None:
        """Raise ValueError unless the estimator accepts `count` more rows, and these rows as the next ones."""
        horizon = self.estimator.horizon
        if 0 < horizon < self.n_learned + count:
            raise ValueError(
                f"horizon was fixed at {horizon} rows and {self.n_learned} are learned, so {count} more are too many; "
                "use horizon=None for any time"
            )
        if rows is not None and self.estimator.repeats_arms:
            check_epoch(self._learned.epoch, self._pipeline.transform(rows))

    def _noise_scales(self, nu: Any, dims: tuple[int, ...], shape: tuple[int, ...]) -> np.ndarray:
        if not self.estimator.takes_nu:
            raise ValueError(f"nu must be None for {type(self.estimator).__name__}, which uses no noise scale")
        out = check.array("nu", nu, np.dtype(np.float64), (0, *dims))
        if out.shape not in ((), shape, shape[:1]) or not ((out >= LEAST) & (out <= 1.0 / LEAST)).all():
            raise ValueError(
                f"nu must be one number, or of shape {shape}, from {LEAST:.0e} to {1.0 / LEAST:.0e}, got {quote(nu)}"
            )
        return np.broadcast_to(out, shape[:1]).copy() if out.ndim == 0 and shape else out

    def check_rounds(self, contexts: Any, rewards: Any, nu: Any) -> tuple[np.ndarray, np.ndarray, Any]:
        rows, values = check_rounds(self._pipeline.rows(contexts, (3,)), rewards, self.dtype, False)
        nus = np.empty((0, 0))
        if nu is not None:
            nus = self._noise_scales(nu, (1, 2), values.shape)
            nus = np.broadcast_to(nus[:, None] if nus.ndim == 1 else nus, values.shape)
            nus = np.array(nus, order="C")  # writeable, for which the code without `nu` is compiled
        self._permit(len(rows))
        return rows, values, nus

    def play(
        self,
        contexts: np.ndarray,
        rewards: np.ndarray,
        nu: Any,
        rule: Rule,
        rng: np.random.Generator,
        scored: np.ndarray = NO_SCORES,
    ) -> np.ndarray | None:
        if self._pipeline.moves:
            return None
        rows, age = self._pipeline.transform(contexts), self._age
        size, joint = self._size(rows.shape[1], rule)
        step = max(1, loop.DRAWS_AT_ONCE // max(1, rule.pairs * size))
        arms, whole = [], [slice(0, len(rows))]
        for span in whole if age.clock is None else age.spans(len(rows), None, self._forget):
            for i in range(span.start, span.stop, step):
                part = slice(i, min(i + step, span.stop))
                known = age.rounds(self.n_learned) + (0 if age.clock is None else i - span.start)
                normals, uniforms = noise(rule.pairs, size, rng, part.stop - part.start)
                with defer_signals():
                    self._learned, self._tally, found = loop.play_rounds(
                        self._learned, rule.rule, known, self._tally, rows[part], rewards[part], nu[part], normals,
                        joint, uniforms, scored[part],
                    )  # fmt: skip
                    self.n_learned += int(np.count_nonzero(found >= 0))
                arms.append(found)
                if found[-1] < 0:
                    return np.concatenate(arms)
        return np.concatenate(arms)

    def merge(self, other: Self, since: Self | None) -> Self:
        """Return one model that has learned the rows of two models.

        It is exact for `Ridge`, `OnlineNewton` with step 1, `TruncatedRidge` and `MedianOfMeans` on `Exact` designs. On
        sketches that can be merged, the error bound of the result is the sum of both error bounds.

        Parameters
        ----------
        other : SharedModel
            The other model.
        since : SharedModel or None
            The state from which both models began; None if they began with nothing.

        Returns
        -------
        SharedModel
            The union.
        """
        every: list[Self] = [self, other] if since is None else [self, other, since]
        for name, one in zip(("other", "since"), every[1:], strict=False):
            check_mergeable(self._parts(), one._parts(), name)
        with restore_if_refused(self):
            synchronize([one._age for one in every], [one._forget for one in every])
            self._permit(other.n_learned - (0 if since is None else since.n_learned))
            start = () if since is None else since._learned
            self._code, self._later = {}, None
            self._learned = merge_shared(self.estimator, self._before, self._learned, other._learned, start)
        self._tally = pool(self._tally, other._tally, None if since is None else since._tally)
        self.n_learned += other.n_learned - (0 if since is None else since.n_learned)
        self._age.weight = max(
            self._age.weight + other._age.weight - (0.0 if since is None else since._age.weight), 0.0
        )
        return self

    def _parts(self) -> Parts:
        return Parts(self.estimator, self.features, self._pipeline.statistics, self._before, self._age.clock)

    # ---- questions ----

    def users(self, contexts: Any) -> tuple[int, Callable[[slice], Any]]:
        return self._pipeline.users(contexts)

    def attribute(self, request: Request, places: list[int], names: Any) -> Sides:
        names, pipeline = self._pipeline.map.input_names(names), self._pipeline
        rows = request_rows(pipeline, request.given)[places]
        z = np.concatenate([pipeline.transform(np.ascontiguousarray(row[None])) for row in rows])
        return lambda m: sides_of(pipeline, names, rows[:m], z[:m], weights_of_shared(self._learned, z[:m]))

    @reading
    def error_bound(self) -> float:
        if not self._pipeline.map.certified:
            return float("inf")
        return float(contract.error_bound(self._learned.design))

    def sketch_loss(self) -> tuple[float, float] | None:
        return sketch_loss(self.estimator, self._learned.design)

    @reading
    def memory_usage(self) -> int:
        return states.nbytes((self._pipeline.state, self._learned))

    def __repr__(self) -> str:
        parts = [repr(self.estimator)]
        parts += [] if self.features is None else [f"features={self.features!r}"]
        parts += [] if self._age.clock is None else [f"half_life={self.half_life!r}"]
        return f"SharedModel({', '.join(parts)})"

    # ---- copies and files ----

    def freeze(self) -> Self:
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._pipeline, twin._age, twin._later = self._pipeline.at_rest(), self._age.copy(), None
        twin._learned = states.copy(self._learned)
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
        return files.Contents(self.params(), extra, pack_state(self._learned, self._pipeline, self._before))

    @classmethod
    def from_contents(cls, params: dict[str, Any], extra: dict[str, Any], held: files.StateSource) -> Self:
        model = cls(**{name: build(part) for name, part in params.items()})
        found = unpack_state(held, model._learned, model._pipeline, model.estimator)
        model._learned, model._before = found.model, found.before
        model._pipeline.restore(found.features)
        model.n_learned, model._tally = check.integer("rounds", extra["rounds"], 0), check_tally(extra["tally"])
        model._age.restore(extra)
        return model
