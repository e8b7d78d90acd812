"""Model with one design for all arms, and one right-hand side b_a for each arm, called its head.

    A = reg I + sum over rows of z z^T,   b_a = sum over the rows of arm a of reward z,   mean_a = z^T A^-1 b_a

Every row counts for all arms: with its reward for the arm that was taken, and with 0 for all others. The mean is
therefore the expected reward from an arm that somebody else chooses, such as the share of visits in which a user takes
an item. It suits logs of what was taken, in which not taking an item is weak evidence against it. If the bandit itself
chooses the arms, an arm that was not chosen is no evidence, and `ArmModels` is the right model. n arms with rows of D
numbers take n D numbers and one design. A row costs one append and O(D), with or without forgetting.
"""

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, Self, final

import numpy as np

from onepass.arena.arena import NONE
from onepass.design import contract
from onepass.design.design import Design
from onepass.estimator.estimator import check_design
from onepass.estimator.half_life import decay_factor
from onepass.estimator.heads import RidgeHeads, forget_heads, learn_taken, solve_rows
from onepass.estimator.ridge import Ridge
from onepass.exploration.contract import ArmStatistics
from onepass.exploration.randomness import noise_once
from onepass.exploration.residual_scale import Tally, check_tally, count_deviation, pool, residual
from onepass.exploration.rule import Rule
from onepass.exploration.statistics import statistics
from onepass.features.feature_map import FeatureMap
from onepass.foundation import check, files
from onepass.foundation import state as states
from onepass.foundation.check import quote
from onepass.foundation.deferred_signals import defer_signals
from onepass.foundation.registry import build, savable
from onepass.foundation.rw_lock import for_owner, reading
from onepass.model.arms.arm_index import ArmIndex
from onepass.model.contract import Batch, Model, Request, Sides, check_finite_parameter, rows_of_slots
from onepass.model.feature_pipeline import FeaturePipeline
from onepass.model.half_life import ForgettingClock, check_forgets, make_clock, restore_if_refused, synchronize
from onepass.model.merge import Parts, check_mergeable
from onepass.model.names import check_hashable, name_list
from onepass.model.weights import SIGNS, Weights, request_rows, sides_of

SPARE = 32  # room for n / SPARE more heads is made when they are full


class SavedHeads(NamedTuple):
    """Contents of a file of `ArmHeads`.

    `names` are the arms, `heads` the index of each arm's sums (NONE for an arm that has not learned), `learned` the
    state, and `features` the state of the feature map.
    """

    names: np.ndarray
    heads: np.ndarray
    learned: RidgeHeads
    features: Any


@final
@savable
class ArmHeads(Model):
    """One ridge regression per arm, on a design that all arms share.

    theta_a = A^-1 b_a, where A is the shared design of all rows z, and b_a is the sum of the rewards of the arm a times
    their rows.

    Parameters
    ----------
    design : Design
        Design of the rows z, which all arms share, such as ``Exact(dim=20, reg=10.0)`` or a sketch.
    features : FeatureMap, default None
        Map of contexts to the rows of the design. None takes rows as they are.
    half_life : float or timedelta, default None
        Number of rows, or time, after which a row counts half, above 0. None forgets nothing.

    Raises
    ------
    ValueError
        If the parts do not fit together.
    """

    def __init__(self, design: Design, features: FeatureMap | None = None, half_life: Any = None) -> None:
        self.design: Any = check_design(design)
        self.features: Any = features
        self._age = ForgettingClock(make_clock(half_life))
        if self._age.clock is not None:
            check_forgets(Ridge(design))
        self.dtype: np.dtype[Any] = design.dtype
        self._pipeline = FeaturePipeline(features, design.dim, self.dtype)
        if self._pipeline.map.output_dim != design.dim or self._pipeline.factors is not None:
            raise ValueError(
                f"features must give rows of {design.dim} features, as the design expects, got {quote(features)}"
            )
        self.dim: int = self._pipeline.map.input_dim
        self.n_learned: int = 0
        self._tally = Tally(rows=0, squares=0.0)
        self._learned = RidgeHeads(self.design.begin(), states.zeros(0, design.dim, dtype=self.dtype), 1.0)
        self._index, self._free, self._used = ArmIndex(), list[int](), 0
        self._later: tuple[int, Self] | None = None  # ticks, and a model for readers that is so much older

    # ---- arms ----

    @property
    def has_named_arms(self) -> bool:
        return True

    @property
    @reading
    def arms(self) -> tuple[Any, ...]:
        return self._index.names

    def add_arm(self, arm: Hashable) -> None:
        self._index.add(arm)

    @for_owner
    def remove_arm(self, arm: Hashable) -> None:
        """Forget an arm. Its rows stay in the shared design, where they count as rewards of 0 for the other arms.

        Parameters
        ----------
        arm : hashable
            Name of the arm.

        Raises
        ------
        ValueError
            If the arm is not known.
        RuntimeError
            If a bandit owns this model: call `Bandit.remove_arm`.
        """
        head = self._index.lookup(arm)
        if head != NONE:
            self._learned.moment[head] = 0.0
            self._free.append(head)
        self._index.remove(arm)
        self._later = None

    @reading
    def parameter_of(self, arm: Hashable) -> np.ndarray:
        """Return theta_a = A^-1 b_a, shape (features,). It is zero for an arm that has not learned.

        Parameters
        ----------
        arm : hashable
            Name of the arm.

        Returns
        -------
        ndarray
            The estimate.

        Raises
        ------
        ValueError
            If the arm is not known.
        FloatingPointError
            If the estimate is not finite.
        """
        return check_finite_parameter(self._parameter(self._index.lookup(arm)))

    def _parameter(self, head: int) -> np.ndarray:
        if head == NONE:
            return np.zeros(self.design.dim, self.dtype)
        return contract.solve(
            self._learned.design, (self._learned.scale * self._learned.moment[head]).astype(self.dtype)
        )

    def _heads_for(self, names: list[Any]) -> np.ndarray:
        """Return the head of every name, the index (n,) of the arm's sum b_a; a name without a head gets one."""
        found = np.empty(len(names), np.int64)
        for i, name in enumerate(names):
            head = self._index.find(name)
            if head == NONE:
                head = self._free.pop() if self._free else self._used
                self._used = max(self._used, head + 1)
                self._index.assign(name, head)
            found[i] = head
        held = self._learned.moment
        if self._used > len(held):
            room = np.zeros((self._used + self._used // SPARE, held.shape[1]), held.dtype)
            room[: len(held)] = held
            self._learned = self._learned._replace(moment=room)
        return found

    # ---- decisions ----

    @property
    def state(self) -> Any:
        return self._learned

    @property
    def half_life(self) -> Any:
        """Number of rows, or time (a timedelta), after which a row counts half. None forgets nothing."""
        return None if self._age.clock is None else self._age.clock.value

    @property
    def needs_time(self) -> bool:
        return self._age.clock is not None and self._age.clock.timed

    def encode(self, context: Any, arms: Any) -> Request:
        names, heads = self._index.request(arms)
        rows = self._pipeline.rows(context, (1, 2, 3))
        single, listed = rows.ndim < 3, rows.ndim == 2
        rows = rows.reshape(1, -1, self.dim) if single else rows
        if rows.shape[1] != len(names) and (rows.shape[1] != 1 or listed):
            raise ValueError(
                f"contexts must have one row, or one per arm ({len(names)}), got shape {np.shape(context)}"
            )
        each: Any = self._pipeline.transform(rows)
        return Request(names, len(names), single, each, heads, context)

    def predict(self, request: Request, i: int, rule: Rule, rng: np.random.Generator, pairs: int) -> ArmStatistics:
        normals = noise_once(pairs, request.size, rng, 0)[0]  # arms share no rewards, so draws are independent
        means, squares = self._evaluate(request.each[i], request.arms)
        widths = np.sqrt(np.maximum(squares, 0.0))
        rounds, unit = self._age.rounds(self.n_learned), residual(self._tally)
        return statistics(rule, means, widths, rule.strength.scale, normals * widths, unit, rounds)

    def _evaluate(self, rows: np.ndarray, heads: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return predicted rewards (K,) and z^T A^-1 z (K,) of arms, for rows z (1 or K, features).

        `heads` (K,) are the indices of the arms' sums b_a, NONE for an arm that has not learned.
        """
        solved, squares = solve_rows(self._learned.design, np.ascontiguousarray(rows))
        known = heads != NONE
        if known.all() and (len(heads) == 0 or (np.diff(heads) == 1).all()):
            held = self._learned.moment[heads[0] : heads[-1] + 1] if len(heads) else self._learned.moment[:0]
        else:
            held = np.zeros((len(heads), self.design.dim), self.dtype)
            held[known] = self._learned.moment[heads[known]]
        means = held @ solved[0] if len(solved) == 1 else np.einsum("ij,ij->i", held, solved)
        return self._learned.scale * means.astype(np.float64), np.broadcast_to(squares, means.shape).astype(np.float64)

    def evidence(self, request: Request, i: int, places: np.ndarray) -> Any:
        return self._pipeline.rows_of_arms(request.given, None if request.single else i, places, request.size)

    def at(self, time: Any) -> Self:
        if time is None and self._age.clock is None:
            return self
        ticks = self._age.ticks_to(time)
        if not ticks:
            return self
        if self._later is None or self._later[0] != ticks:
            twin = self.freeze()
            twin._forget(ticks)
            self._later = ticks, twin
        return self._later[1]

    # ---- learning ----

    def observe(self, context: Any, arm: Any) -> Batch:
        single, rows = self._pipeline.pairs(context, False)
        if arm is None:
            raise ValueError("arm must name the arm of every row")
        names = [arm] if single else name_list(arm, len(rows), "arm")
        check_hashable(names)
        return Batch(len(rows), single, rows, names)

    def recall(self, slots: list[tuple[Any, int]]) -> Batch:
        rows = self._pipeline.pairs(rows_of_slots(slots), False)[1]
        return Batch(len(rows), False, rows, [decision.arms[slot] for decision, slot in slots])

    def update(
        self,
        batch: Batch,
        rewards: np.ndarray,
        *,
        nu: Any = None,
        time: Any = None,
        residuals: bool = False,
        outcomes: Any = None,
    ) -> Self:
        if nu is not None:
            raise ValueError("nu must be None for arms that share a design: ridge regression uses no noise scale")
        self._age.check_time(time)  # before the feature map has learned
        z = np.ascontiguousarray(self._pipeline.advance(batch.rows))
        every = slice(0, len(z))
        for span in [every] if self._age.clock is None else self._age.spans(len(z), time, self._forget):
            self._learn_rows(z[span], rewards[span], batch.arms[span], residuals)
        self._later = None
        return self

    def _learn_rows(self, z: np.ndarray, rewards: np.ndarray, names: list[Any], residuals: bool) -> None:
        """Learn rows z (n, features) with their rewards (n,) and arms `names` after their checks.

        If `residuals` is True, the squared deviations of the rewards from their predictions are added to the running
        sums.
        """
        if not names:
            return
        if residuals:
            for row, reward, name in zip(z, rewards.tolist(), names, strict=True):
                mean = self._evaluate(row[None], np.array([self._index.find(name)]))[0][0]
                self._tally = count_deviation(self._tally, reward - float(mean))
        heads = self._heads_for(names)
        with defer_signals():
            self._learned = learn_taken(self._learned, z, heads, np.ascontiguousarray(rewards, self.dtype))
            self.n_learned += len(z)

    def _forget(self, ticks: int) -> None:
        with defer_signals():
            self._learned, self._later = forget_heads(self._learned, decay_factor(ticks)), None
            self._age.add_ticks(ticks)

    def merge(self, other: Self, since: Self | None) -> Self:
        """Return the model that has learned the rows of two models. Rows that both began with count once.

        Parameters
        ----------
        other : ArmHeads
            The other model.
        since : ArmHeads or None
            The state from which both models began; None if they began with nothing.

        Returns
        -------
        ArmHeads
            The union.
        """
        every: list[Self] = [self, other] if since is None else [self, other, since]
        for name, one in zip(("other", "since"), every[1:], strict=False):
            check_mergeable(self._parts(), one._parts(), name)
        with restore_if_refused(self):
            synchronize([one._age for one in every], [one._forget for one in every])
            start = self.design.begin() if since is None else since._learned.design
            difference = contract.subtract_start(other._learned.design, start)
            design = contract.merge(states.copy(self._learned.design), difference)
        for sign, one in zip((1.0, -1.0), every[1:], strict=False):
            here = one.arms if sign > 0.0 else [name for name in one.arms if self._index.find(name) != NONE]
            names = [name for name in here if one._index.find(name) != NONE]
            self._index.add_names(here)
            mine, its = self._heads_for(names), np.array([one._index.find(name) for name in names], np.int64)
            self._learned.moment[mine] += sign * one._learned.scale / self._learned.scale * one._learned.moment[its]
            self.n_learned += int(sign) * one.n_learned
            self._age.weight = max(self._age.weight + sign * one._age.weight, 0.0)
        self._learned, self._later = self._learned._replace(design=design), None
        self._tally = pool(self._tally, other._tally, None if since is None else since._tally)
        return self

    def _parts(self) -> Parts:
        return Parts(self.design, self.features, self._pipeline.statistics, (), self._age.clock)

    # ---- questions ----

    def users(self, contexts: Any) -> tuple[int, Callable[[slice], Any]]:
        return self._pipeline.users(contexts)

    def attribute(self, request: Request, places: list[int], names: Any) -> Sides:
        names, pipeline = self._pipeline.map.input_names(names), self._pipeline
        rows = request_rows(pipeline, request.given)
        rows = np.ascontiguousarray(rows[places if len(rows) > 1 else [0] * len(places)])
        z = np.concatenate([pipeline.transform(row[None]) for row in rows])
        heads = request.arms[places].tolist()
        weights = [
            [Weights("arm", self._parameter(head), sign * contract.solve(self._learned.design, row))]
            for sign, head, row in zip(SIGNS, heads, z, strict=False)
        ]
        return lambda m: sides_of(pipeline, names, rows[:m], z[:m], weights[:m])

    @reading
    def error_bound(self) -> float:
        return float(contract.error_bound(self._learned.design)) if self._pipeline.map.certified else float("inf")

    @reading
    def memory_usage(self) -> int:
        return states.nbytes((self._pipeline.state, self._learned))

    def __repr__(self) -> str:
        parts = [repr(self.design)]
        parts += [] if self.features is None else [f"features={self.features!r}"]
        parts += [] if self._age.clock is None else [f"half_life={self.half_life!r}"]
        return f"ArmHeads({', '.join(parts)})"

    # ---- copies and files ----

    def freeze(self) -> Self:
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._pipeline, twin._age, twin._later = self._pipeline.at_rest(), self._age.copy(), None
        twin._learned, twin._index, twin._free = states.copy(self._learned), self._index.copy(), self._free.copy()
        return twin

    def params(self) -> dict[str, Any]:
        """Return the arguments of the constructor.

        Returns
        -------
        dict
            Arguments by name.
        """
        return {"design": self.design, "features": self.features, "half_life": self._age.clock}

    def contents(self) -> files.Contents:
        extra = {"rounds": self.n_learned, "tally": list(self._tally), **self._age.extra()}
        learned = self._learned._replace(moment=np.ascontiguousarray(self._learned.moment[: self._used]))
        saved = SavedHeads(
            states.object_array(list(self._index.names)), self._index.arm_ids, learned, self._pipeline.statistics
        )
        return files.Contents(self.params(), extra, saved)

    @classmethod
    def from_contents(cls, params: dict[str, Any], extra: dict[str, Any], held: files.StateSource) -> Self:
        model = cls(**{name: build(part) for name, part in params.items()})
        initial = SavedHeads(states.object_array([]), np.zeros(0, np.int64), model._learned, model._pipeline.statistics)
        found = held.take(initial, model._fits)
        taken = found.heads[found.heads != NONE]
        model._learned, model._used = found.learned, len(found.learned.moment)
        model._index = ArmIndex(zip(found.names.tolist(), found.heads.tolist(), strict=True))
        model._free = sorted(set(range(model._used)) - set(taken.tolist()), reverse=True)
        model._pipeline.restore(found.features)
        model.n_learned, model._tally = check.integer("rounds", extra["rounds"], 0), check_tally(extra["tally"])
        model._age.restore(extra)
        return model

    def _fits(self, found: SavedHeads) -> bool:
        """Return True if the parts of a file belong together."""
        taken = found.heads[found.heads != NONE]
        return (
            len(found.names) == len(set(found.names)) == len(found.heads)
            and found.learned.moment.shape[1:] == (self.design.dim,)
            and len(set(taken.tolist())) == len(taken)
            and taken.min(initial=0) >= 0
            and taken.max(initial=NONE) < len(found.learned.moment)
            and found.learned.scale > 0.0
            and self.design.consistent(found.learned.design)
            and self._pipeline.fits(found.features)
        )
