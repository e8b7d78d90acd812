"""Warm start: a model that begins with earlier knowledge beside one that begins anew, weighted by their predictions.

    e_m  = reward - mean_m,  of model m (start or fresh), before it learns the reward
    D_a <- D_a + e_start^2 - e_fresh^2 after a reward of arm a, held within +- 2 CAP u
    N_a  = NEIGHBOURS (mean of e_start^2 - e_fresh^2 over the rewards of all other arms), held within +- CAP u
    L_a  = D_a + N_a
    w_a  = 1 / (1 + exp(L_a / u)),   u = 2 s^2 / RATE,   s^2 = (min over m of sum e_m^2 + NOISE r^2) / (n + NOISE)
           0 if below NONE, and 1 if above 1 - NONE: else a model that is not believed breaks ties of the other one
    mean_a = w_a mean_start,a + (1 - w_a) mean_fresh,a,   widths^2, draws and multipliers of widths likewise

Here start and fresh are the two models, w_a is the weight of the start for arm a, and L_a is the loss of the start
minus that of the fresh model. The weights are those of the exponentially weighted average forecaster (Hedge) with two
experts and squared loss, with a cap on losses: after a change of rewards, few errors move a weight that stood at 0 or
1. Each arm has its own weight, shrunk towards the other arms: earlier knowledge may fit one arm and mislead about
another. Models in which all arms share one parameter have one weight, L = D. Both models learn every reward, so a
misleading start is corrected in the start itself, too.

n is the number of all rewards, and r the root mean square residual of the start over the rows that it learned. NOISE
rewards of this size hold s^2 up while the first rewards are all equal, as with rare clicks. If the model keeps no
residual, s^2 is the mean alone.

A start whose weight is below NONE for every arm is dropped, and so is a fresh model after ENOUGH rewards. After AMPLE
times as many rewards as the start had learned, and at least ENOUGH, only the model with the smaller sum of squared
residuals is kept. Until then the cost is that of two models, and a prediction of both for every reward.
"""

import functools
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple, Self, final

import numpy as np

from onepass.exploration.contract import ArmStatistics
from onepass.exploration.exploration import Exploration
from onepass.exploration.greedy import Greedy
from onepass.exploration.rule import Rule, make_rule
from onepass.foundation import check, files
from onepass.foundation.check import quote
from onepass.foundation.registry import build, savable
from onepass.foundation.rw_lock import for_owner, reading
from onepass.foundation.state import object_array
from onepass.model.arms.arm_models import ArmModels
from onepass.model.averaged.averaged_models import AveragedModels
from onepass.model.contract import Batch, Model, Request, Side, Sides
from onepass.model.records import are_records, records_of

RATE = 0.5  # of Hedge, in units of 1 / (2 s^2)
NEIGHBOURS = 5.0  # rewards that the other arms count for
NOISE = 5.0  # rewards that the residual of the start counts for in s^2
CAP = 7.0  # units u that the other arms count at most, half as much as an arm's own rewards: 1 / (1 + e^7) < NONE
NONE = 1e-3  # weight of a model that is not believed
AMPLE, ENOUGH = 10, 1_000  # rewards after which one model stays, as multiples of those of the start, and at least
EVERY = 32  # rewards between two looks at which models stay
TINY = 1e-12  # above 0, where nothing errs
START, FRESH = range(2)


@functools.cache
def _mean_rule() -> Rule:
    """Return a rule that asks for means alone."""
    return make_rule(Greedy())


class Track(NamedTuple):
    """Prediction errors so far of two models: one with earlier knowledge (start), and one without (fresh).

    - arms (A,): names of the arms with rewards.
    - counts (A,): number of rewards of each arm.
    - gaps (A,): sums of the start's squared error minus the fresh model's.
    - losses (A,): the same sums, but clipped after every reward, so that a few errors can turn them after a change.
      They determine the weights.
    - squares (2,): sums of squared errors of the start and of the fresh model.
    - rewards: number of rewards of all arms.
    """

    arms: np.ndarray
    counts: np.ndarray
    gaps: np.ndarray
    losses: np.ndarray
    squares: np.ndarray
    rewards: int


@final
@savable
class WarmStart(Model):
    """Average of a model with earlier knowledge and a new one, weighted by how good their predictions are.

    `onepass.warm_start` makes it from a log, from labelled examples or from another bandit.

    Parameters
    ----------
    start : Model or None
        Model that has learned already, or None if it was dropped because its predictions were worse.
    fresh : Model or None
        Model of the same kind that has learned nothing, or an `AutoModel`. None if it was dropped.

    Raises
    ------
    ValueError
        If both are None, one is not a model, they are of different kinds, or they have a half-life in time.
    """

    def __init__(self, start: Model | None, fresh: Model | None) -> None:
        self._members: list[Model | None] = [start, fresh]
        for name, one in (("start", start), ("fresh", fresh)):
            if not isinstance(one, Model | None):
                raise ValueError(f"{name} must be a model or None, got {quote(one)}")
            if isinstance(one, WarmStart) or (one is not None and one.needs_time):
                raise ValueError(f"{name} must be a model without a half-life in seconds and without a warm start")
        if not self._alive:
            raise ValueError("start or fresh must be a model, and both are None")
        for one in self._alive:
            one.part_of = ""  # of no bandit any more: this model removes its arms
        first = self._first
        self.family, self.dtype, self.compares = first.family, first.dtype, first.compares
        self._per_arm = isinstance(first, ArmModels | AveragedModels)
        if start is not None and fresh is not None and self._per_arm:
            for one, other in ((start, fresh), (fresh, start)):
                known = set(one.arms)
                for arm in [arm for arm in other.arms if arm not in known]:
                    one.add_arm(arm)
        self._begun = self.n_learned = 0 if start is None else start.n_learned
        self._counts: dict[Any, int] = {}
        self._gaps: dict[Any, float] = {}
        self._losses: dict[Any, float] = {}
        self._squares, self._rewards, self._noise = np.zeros(2), 0, 0.0

    # ---- members ----

    @property
    def _alive(self) -> list[Model]:
        return [one for one in self._members if one is not None]

    @property
    def _first(self) -> Model:
        return self._alive[0]

    @property
    def start(self) -> Model | None:
        """Model that began with earlier knowledge; None once it was dropped, because the fresh one predicts better."""
        return self._members[START]

    @property
    def fresh(self) -> Model | None:
        """Model that began without earlier data; None once it was dropped, because the start predicts better."""
        return self._members[FRESH]

    @property
    def leader(self) -> Model:
        """The one of the two models with the smaller sum of squared prediction errors; or the only one that is left."""
        return self._first if len(self._alive) == 1 else self._alive[int(np.argmin(self._squares))]

    def _weights(self, arms: Sequence[Any]) -> np.ndarray:
        """Return the weight (K,), from 0 to 1, of the start for each of the arms; the fresh model has the rest."""
        if len(self._alive) == 1:
            return np.full(len(arms), float(self.fresh is None))
        keys, unit = arms if self._per_arm else ("all",) * len(arms), self._unit()
        losses = np.array([self._losses.get(key, 0.0) for key in keys])
        if self._per_arm:
            others = sum(self._gaps.values()) - np.array([self._gaps.get(arm, 0.0) for arm in arms])
            counts = np.array([self._counts.get(arm, 0) for arm in arms])
            shared = NEIGHBOURS * others / np.maximum(self._rewards - counts, NEIGHBOURS)
            losses += np.clip(shared, -CAP * unit, CAP * unit)
        w = 1.0 / (1.0 + np.exp(losses / unit))
        return np.where(w < NONE, 0.0, np.where(w > 1.0 - NONE, 1.0, w))

    def _unit(self) -> float:
        """Return the unit in which losses are measured for the weights: a multiple of the mean squared error so far.

        The error is that of the better of the two models.
        """
        known = NOISE if self._noise > 0.0 else 0.0
        square = (self._squares.min() + known * self._noise) / max(self._rewards + known, 1.0)
        return float(2.0 / RATE * (square + TINY))

    @property
    @reading
    def trust(self) -> dict[Any, float]:
        """Weight, from 0 to 1, of the model with earlier knowledge, by arm; key "all" if arms share one parameter."""
        arms = tuple(dict.fromkeys((*self.arms, *self._counts))) if self._per_arm else ("all",)
        return dict(zip(arms, self._weights(arms).tolist(), strict=True))

    def _drop(self) -> None:
        """Drop a model whose weight is negligible for every arm, or, after many rewards, the one with larger errors.

        It is checked only at every `EVERY`-th reward. The start may go at once; the fresh model only after `ENOUGH`
        rewards.
        """
        if len(self._alive) == 1 or self._rewards % EVERY:
            return
        w = self._weights((*self._counts, object()))  # the last is an arm without rewards
        if w.max() < NONE:
            self._members[START] = None
        elif w.min() > 1.0 - NONE and self._rewards >= ENOUGH:
            self._members[FRESH] = None
        elif self._rewards >= max(ENOUGH, AMPLE * self._begun):
            self._members[int(np.argmax(self._squares))] = None

    # ---- arms ----

    @property
    def has_named_arms(self) -> bool:
        return self._first.has_named_arms

    @property
    @reading
    def arms(self) -> tuple[Any, ...]:
        return self._first.arms

    def add_arm(self, arm: Hashable) -> None:
        for one in self._alive:
            one.add_arm(arm)

    @for_owner
    def remove_arm(self, arm: Hashable) -> None:
        for one in [one for one in self._alive if arm in one.arms] or self._alive[:1]:  # the first one refuses it
            one.remove_arm(arm)
        self._counts.pop(arm, None)
        self._gaps.pop(arm, None)
        self._losses.pop(arm, None)

    # ---- decisions ----

    def encode(self, context: Any, arms: Any) -> Request:
        if arms is None and self._per_arm:
            arms = self._first.arms  # in one order for both
        return self._join([one.encode(context, arms) for one in self._alive])

    def encode_decision(self, decision: Any) -> Request:
        return self._join([one.encode_decision(decision) for one in self._alive])

    @staticmethod
    def _join(each: list[Request]) -> Request:
        return each[0]._replace(given=each)

    def evidence(self, request: Request, i: int, places: np.ndarray) -> Any:
        return self._first.evidence(request.given[0], i, places)

    def predict(self, request: Request, i: int, rule: Rule, rng: np.random.Generator, pairs: int) -> ArmStatistics:
        seen = [one.predict(own, i, rule, rng, pairs) for one, own in zip(self._alive, request.given, strict=True)]
        return seen[0] if len(seen) == 1 else _mix(self._weights_of(request), *seen)

    def _weights_of(self, request: Request) -> np.ndarray:
        return self._weights(range(request.size) if request.names is None else request.names)

    def default_exploration(self) -> Exploration | None:
        return self._first.default_exploration()

    # ---- learning ----

    def observe(self, context: Any, arm: Any) -> Batch:
        batches = [one.observe(context, arm) for one in self._alive]
        if len(batches) == 1:
            return batches[0]._replace(rows=(batches, (), (), 0.0))
        contexts, arms = _split(batches[0], context, arm, self.dtype)
        requests = [
            [one.encode(row, offered) for row, (_, offered) in zip(contexts, arms, strict=True)] for one in self._alive
        ]
        means = self._means(requests, [0] * len(contexts))
        return batches[0]._replace(rows=(batches, [name for name, _ in arms], *means))

    def recall(self, slots: list[tuple[Any, int]]) -> Batch:
        batches = [one.recall(slots) for one in self._alive]
        if len(batches) == 1:
            return batches[0]._replace(rows=(batches, (), (), 0.0))
        requests = [[one.encode_decision(decision) for decision, _ in slots] for one in self._alive]
        means = self._means(requests, [slot for _, slot in slots])
        return batches[0]._replace(rows=(batches, [decision.arms[slot] for decision, slot in slots], *means))

    def _means(self, requests: list[list[Request]], places: list[int]) -> tuple[np.ndarray, float]:
        """Return the expected rewards (2, n) of one arm in each of n requests by both models, and a residual.

        `requests` lists the n encoded requests for each model, and `places` the arm's index in each request. The first
        row is of the model with earlier knowledge, the second of the fresh one. The residual is the root mean square of
        the prediction errors of the model with earlier knowledge so far; 0 without this model.
        """
        rng, out = np.random.default_rng(0), np.empty((len(requests), len(places)))  # means ask for no draws
        residual = 0.0
        for row, (one, own) in enumerate(zip(self._alive, requests, strict=True)):
            for column, (request, place) in enumerate(zip(own, places, strict=True)):
                stats = one.predict(request, 0, _mean_rule(), rng, 0)
                out[row, column] = one.mean_rewards(stats.means)[place]
                if one is self.start:
                    residual = float(stats.residual)
        return out, residual

    def update(
        self, batch: Batch, rewards: np.ndarray, *, nu: Any = None, time: Any = None, residuals: bool = False,
        outcomes: Any = None,
    ) -> Self:  # fmt: skip
        self.at(time)
        batches, arms, means, residual = batch.rows
        places = [place for place, one in enumerate(self._members) if one is not None]
        for place, own in zip(places, batches, strict=True):
            member: Any = self._members[place]
            self._members[place] = member.update(own, rewards, nu=nu, residuals=residuals)
        self.n_learned += batch.size
        if len(places) == 2 and batch.size:
            squares = (rewards - means) ** 2
            self._squares += squares.sum(axis=1)
            self._rewards += batch.size
            self._noise = residual**2
            most = 2.0 * CAP * self._unit()
            for arm, gap in zip(arms, (squares[START] - squares[FRESH]).tolist(), strict=True):
                key = arm if self._per_arm else "all"
                self._counts[key] = self._counts.get(key, 0) + 1
                self._gaps[key] = self._gaps.get(key, 0.0) + gap
                self._losses[key] = min(max(self._losses.get(key, 0.0) + gap, -most), most)
            self._drop()
        return self

    def check_rounds(self, contexts: Any, rewards: Any, nu: Any) -> tuple[np.ndarray, np.ndarray, Any]:
        return self._first.check_rounds(contexts, rewards, nu)

    # ---- questions ----

    def users(self, contexts: Any) -> Any:
        return self._first.users(contexts)

    def can_compare(self, request: Request) -> bool:
        return all(one.can_compare(own) for one, own in zip(self._alive, request.given, strict=True))

    def attribute(self, request: Request, places: list[int], names: Any) -> Sides:
        found = [one.attribute(own, places, names) for one, own in zip(self._alive, request.given, strict=True)]
        if len(found) == 1:
            return found[0]
        w = self._weights_of(request)[places]

        def sides(m: int) -> list[list[Side]]:
            start, fresh = (one(m) for one in found)
            return [
                [
                    *(_scale(side, f"start ({trust:.2f}) {side.part}", trust) for side in mine),
                    *(_scale(side, f"fresh ({1.0 - trust:.2f}) {side.part}", 1.0 - trust) for side in own),
                ]
                for mine, own, trust in zip(start, fresh, w.tolist(), strict=False)
            ]

        return sides

    @reading
    def choices(self) -> dict[str, Any]:
        """Return the settings chosen by the model with earlier knowledge, and the weight of this model by arm.

        Returns
        -------
        dict
            Plain data by name. "trust" holds the weight by the text of an arm. If only the new model is left, the
            settings are those of this model.
        """
        return {**self._first.choices(), "trust": {str(arm): round(w, 3) for arm, w in self.trust.items()}}

    def error_bound(self) -> float:
        return max(one.error_bound() for one in self._alive)

    @reading
    def memory_usage(self) -> int:
        return sum(one.memory_usage() for one in self._alive)

    def summary(self) -> str:
        w = list(self.trust.values()) or self._weights(("",)).tolist()
        return f"start of {self._begun} rows trusted {min(w):.2f} to {max(w):.2f}; {self._first.summary()}"

    def __repr__(self) -> str:
        return f"WarmStart(start={self.start!r}, fresh={self.fresh!r})"

    # ---- copies and files ----

    def can_become(self, other: Model) -> bool:
        return isinstance(other, WarmStart) and all(
            one is None or (mine is not None and mine.can_become(one))
            for mine, one in zip(self._members, (other.start, other.fresh), strict=True)
        )

    def freeze(self) -> Self:
        return self.copy()

    def params(self) -> dict[str, Any]:
        """Return the arguments of the constructor.

        Returns
        -------
        dict
            Arguments by name.
        """
        return {"start": self.start, "fresh": self.fresh}

    def contents(self) -> files.Contents:
        track = Track(
            object_array(list(self._counts)),
            np.array(list(self._counts.values()), np.int64),
            np.array(list(self._gaps.values()), np.float64),
            np.array(list(self._losses.values()), np.float64),
            self._squares,
            self._rewards,
        )
        return files.Contents(
            self.params(), {"begun": self._begun, "rows": self.n_learned, "noise": self._noise}, track
        )

    @classmethod
    def from_contents(cls, params: dict[str, Any], extra: dict[str, Any], held: files.StateSource) -> Self:
        members = {name: build(part) for name, part in params.items()}
        if isinstance(held, files.InMemory):  # of the original, which goes on
            members = {name: None if one is None else one.copy() for name, one in members.items()}
        model = cls(**members)
        none = Track(object_array([]), np.zeros(0, np.int64), np.zeros(0), np.zeros(0), np.zeros(2), 0)
        found: Track = held.take(none, _fits)
        model._counts = dict(zip(found.arms.tolist(), found.counts.tolist(), strict=True))
        model._gaps = dict(zip(found.arms.tolist(), found.gaps.tolist(), strict=True))
        model._losses = dict(zip(found.arms.tolist(), found.losses.tolist(), strict=True))
        model._squares, model._rewards = found.squares, found.rewards
        model._begun = check.integer("begun", extra["begun"], 0)
        model.n_learned = check.integer("rows", extra["rows"], 0)
        model._noise = check.real("noise", extra["noise"])
        if model._noise < 0.0:
            raise ValueError(f"noise must be at least 0, got {quote(model._noise)}")
        return model


def _fits(track: Track) -> bool:
    """Return True if the arrays read from a file have shapes and values that fit together."""
    sizes = {len(one) for one in (track.arms, track.counts, track.gaps, track.losses, set(track.arms.tolist()))}
    counts, squares = track.counts, track.squares
    whole = len(sizes) == 1 and squares.shape == (2,) and bool((squares >= 0.0).all())
    return whole and bool((counts >= 1).all()) and int(counts.sum()) <= track.rewards


def _mix(w: np.ndarray, start: ArmStatistics, fresh: ArmStatistics) -> ArmStatistics:
    """Return the statistics of two models, mixed by the weight w (K,) of the start."""
    mean = float(w.mean())
    return ArmStatistics(
        means=w * start.means + (1.0 - w) * fresh.means,
        widths=np.sqrt(w * start.widths**2 + (1.0 - w) * fresh.widths**2),
        samples=w * start.samples + (1.0 - w) * fresh.samples,
        beta=np.sqrt(w * start.beta**2 + (1.0 - w) * fresh.beta**2),
        residual=mean * start.residual + (1.0 - mean) * fresh.residual,
        rounds=int(mean * start.rounds + (1.0 - mean) * fresh.rounds),
    )


def _scale(side: Side, part: str, w: float) -> Side:
    """Return the contributions `side` multiplied by the weight w of their model, under the new name `part`."""
    terms = side.terms._replace(slopes=w * side.terms.slopes, parts=w * side.terms.parts)
    return Side(part, terms, w * side.mean, w * side.square)


def _split(batch: Batch, context: Any, arm: Any, dtype: Any) -> tuple[list[Any], list[tuple[Any, Any]]]:
    """Return the context of every row of a batch, and for its arm a pair: name or None, and the arm offered alone.

    `context` and `arm` are the arguments from which the batch was encoded, as `Bandit.learn` takes them. `dtype` is the
    type of context rows.
    """
    if arm is None:  # rows are arms
        rows = check.array("contexts", context, dtype, (1, 2))
        return [row[None] for row in np.atleast_2d(rows)], [(None, None)] * batch.size
    arms = [arm] if batch.single else list(arm)
    if context is None:
        contexts: list[Any] = [None] * batch.size
    elif are_records(context):
        contexts = list(records_of(context)[1])
    else:
        contexts = list(np.atleast_2d(check.array("contexts", context, dtype, (1, 2))))
    return contexts, [_offer(one) for one in arms]


def _offer(arm: Any) -> tuple[Any, Any]:
    """Return the name of an arm (None if it has none), and the arm as the only one offered to `encode`."""
    if isinstance(arm, dict):
        return next(iter(arm)), arm
    return (None, arm) if isinstance(arm, list) else (arm, [arm])
