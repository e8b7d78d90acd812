"""Model that has learned nothing yet; the first data it learns from decides which model takes its place.

    contexts                    arms                                    model
    rows of numbers             names                                   AveragedModels, on rows
    records                     names, FEW at most                      AveragedModels, on a column for every term
    records                     more names                              InteractionModel
    either                      records or rows of features, by name    InteractionModel
    either, or None             an Interval                             IntervalModel

The record of a decision counts as data as well: it holds a row, or terms of the request and of the chosen arms. Before
that, decisions are made by a new model of the kind that the request asks for. Later the chosen model refuses requests
of another kind.
"""

from collections.abc import Callable, Hashable
from typing import Any, Self, final

import numpy as np

from onepass.exploration.contract import ArmStatistics
from onepass.exploration.exploration import Exploration
from onepass.exploration.rule import Rule, make_rule
from onepass.features.records import Records
from onepass.foundation import check, files
from onepass.foundation.check import quote
from onepass.foundation.registry import build, has_equal_arguments, savable
from onepass.foundation.rw_lock import for_owner, reading
from onepass.foundation.state import object_array
from onepass.model.arms.arm_index import ArmIndex
from onepass.model.averaged.averaged_models import MEGABYTES, PATIENCE, RULE, WARM_UP, AveragedModels
from onepass.model.averaged.columns import WIDTH
from onepass.model.averaged.forest import N_TREES
from onepass.model.averaged.span import WIDE
from onepass.model.contract import Batch, Choice, Model, Request, Sides
from onepass.model.interaction.interaction_model import InteractionModel
from onepass.model.interval.interval import Interval, has_facts, interval_of
from onepass.model.records import are_records, check_evidence, has_names_only, have_features, is_frame

FEW = 20  # arms: of 30 to 300, clicked now and then, one model of all earns as much (docs/features_measured.md)
INTERACTION = {"disjoint": False, "interaction": True}  # whether all arms share one model, where the user says so
Kind = tuple[bool, bool] | Interval  # whether arms share one model, and whether contexts are rows of each; or actions


@final
@savable
class AutoModel(Model):
    """A model that has learned nothing yet and becomes the model that its first data asks for.

    Contexts and arms are given as to `AveragedModels`, `InteractionModel` or `IntervalModel`.

    Parameters
    ----------
    dim : int, default None
        Number of columns of row contexts, as for `AveragedModels`.
    n_landmarks : int, default 150
        Number of landmarks, as for `AveragedModels`.
    reg : float, default 0.1
        Penalty on every parameter, above 0.
    warm_up : int, default 256
        Number of rows from which scales and landmarks are made, at least 1.
    memory_limit : float, default 64.0
        Megabytes, above 0, as for `AveragedModels`.
    alarm_threshold : float, default 50.0
        Threshold of the alarm, above 0, as for `AveragedModels`. None means no alarm.
    seed : int, default 0
        Seed of landmarks and trees, at least 0.
    n_trees : int, default 30
        Number of trees, from 0 to 1,000, as for `AveragedModels`.
    model : {"disjoint", "interaction"}, default None
        "disjoint" becomes `AveragedModels` and ignores features of arms. "interaction" becomes an `InteractionModel`.
        None lets the first data choose.
    context : Records, default None
        Feature map of requests. The model learns with a copy of it. None means 256 columns. With more than 300 columns
        the model becomes an `InteractionModel`.
    item : Records, default None
        Feature map of arms. The model learns with a copy of it. None means 256 columns.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """

    draws_actions = True

    def __init__(
        self,
        dim: int | None = None,
        *,
        n_landmarks: int = 150,
        reg: float = 0.1,
        warm_up: int = WARM_UP,
        memory_limit: float = MEGABYTES,
        alarm_threshold: float | None = PATIENCE,
        seed: int = 0,
        n_trees: int = N_TREES,
        model: str | None = None,
        context: Records | None = None,
        item: Records | None = None,
    ) -> None:
        for argument, value in (("context", context), ("item", item)):
            if not isinstance(value, Records | None):
                raise ValueError(f"{argument} must be Records(size=256), got {quote(value)}")
        crossed = None if model is None else INTERACTION[check.choice("model", model, tuple(INTERACTION))]
        if context is not None and context.size > WIDE:
            if crossed is False:
                raise ValueError(f"context must have at most {WIDE} places where arms have models of their own")
            crossed = True
        self._options: dict[str, Any] = {
            "n_landmarks": n_landmarks,
            "reg": reg,
            "warm_up": warm_up,
            "memory_limit": memory_limit,
            "alarm_threshold": alarm_threshold,
            "seed": seed,
            "n_trees": n_trees,
        }
        self.dim: int | None = None if dim is None else check.integer("dim", dim, 1)
        self.n_learned = 0
        self._kind_name, self._crossed = model, crossed
        self._context, self._item = (None if one is None else one.copy() for one in (context, item))
        self._index = ArmIndex()
        self._fresh: dict[Kind, Model] = {}
        self._outcomes = 0  # how many
        self._model_of((False, True))  # checks the options

    # ---- kinds ----

    def _new_model(self, kind: Kind) -> Model:
        """Return a model of this kind that has learned nothing, and knows the arms that were added."""
        if isinstance(kind, Interval):
            from onepass.model.interval.interval_model import IntervalModel

            actions = IntervalModel(kind, context=self._context)
            if self._outcomes:
                actions.begin_outcomes(self._outcomes)
            return actions
        crossed, rows = kind
        if crossed:
            shared = InteractionModel(self._context, self._item, dim=self.dim, arms=self._index.names)
            if self._outcomes:
                shared.begin_outcomes(self._outcomes)
            return shared
        context = None if rows else Records(size=WIDTH) if self._context is None else self._context
        made = AveragedModels(self.dim, **self._options, context=context, ignore_features=self._crossed is False)
        for name in self._index.names:
            made.add_arm(name)
        if self._outcomes:
            made.begin_outcomes(self._outcomes)
        return made

    def _model_of(self, kind: Kind) -> Model:
        """Return the model for requests of one kind before anything is learned. It decides and never learns."""
        made = self._fresh.get(kind)
        if made is None:
            if isinstance(kind, Interval):  # of one at a time: intervals may come and go
                self._fresh = {own: model for own, model in self._fresh.items() if not isinstance(own, Interval)}
            made = self._fresh[kind] = self._new_model(kind)
        return made

    def _kind(self, contexts: Any, featured: bool, count: int) -> Kind:
        """Return the kind of model for these contexts and `count` arms; `featured` says if the arms have features."""
        rows = not are_records(contexts)
        if self.dim is not None and not rows:
            if not is_frame(contexts):
                raise ValueError(f"contexts must be rows of dim = {self.dim} numbers, got {quote(contexts)}")
            rows = True
        return self._kind_of(rows, featured, count)

    def _kind_of(self, rows: bool, featured: bool, count: int) -> Kind:
        crossed = self._crossed
        if crossed is None:
            crossed = featured or (count > FEW and not rows)
        return crossed, rows and not crossed

    def _kind_of_decision(self, decision: Any) -> Kind:
        """Return the kind of model that a decision's record asks for; raise ValueError if it holds no context."""
        if isinstance(decision.context, np.ndarray):
            return self._kind_of(True, False, 0)
        arm = check_evidence(decision, actions=True)[1][0]
        if has_facts(arm):
            return interval_of(arm, decision.id)[1]
        return self._kind_of(False, not has_names_only(decision), len(decision.candidates or ()))

    def can_become(self, other: Model) -> bool:
        if type(other) is not AutoModel and other.draws_actions:
            return True
        found = [self, *map(self._model_of, ((False, True), (False, False), (True, False)))]
        return any(has_equal_arguments(one, other) for one in found)

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
        """Names of arms; read-only, and no part of a stable interface."""
        return self._index

    def add_arm(self, arm: Hashable) -> None:
        self._index.add(arm)
        self._fresh = {}

    @for_owner
    def remove_arm(self, arm: Hashable) -> None:
        self._index.lookup(arm)
        self._index.remove(arm)
        self._fresh = {}

    # ---- decisions ----

    def encode(self, context: Any, arms: Any) -> Request:
        count = len(self._index) if arms is None else len(arms) if hasattr(arms, "__len__") else 0
        kind = arms if isinstance(arms, Interval) else self._kind(context, have_features(arms), count)
        model = self._model_of(kind)
        request = model.encode(context, arms)
        return request._replace(given=(model, request))

    def encode_decision(self, decision: Any) -> Request:
        model = self._model_of(self._kind_of_decision(decision))
        request = model.encode_decision(decision)
        return request._replace(given=(model, request))

    def evidence(self, request: Request, i: int, places: np.ndarray) -> Any:
        model, inner = _inner(request)
        return model.evidence(inner, i, places)

    def draw_actions(self, request: Request, i: int, found: Choice, rng: np.random.Generator) -> Request:
        model, inner = _inner(request)
        drawn = model.draw_actions(inner, i, found, rng)
        return request._replace(names=drawn.names, given=(model, drawn))

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
        model, inner = _inner(request)
        return model.choose(inner, i, rule, rng, eligible, k, greedy)

    def predict(self, request: Request, i: int, rule: Rule, rng: np.random.Generator, pairs: int) -> ArmStatistics:
        model, inner = _inner(request)
        return model.predict(inner, i, rule, rng, pairs)

    def scores(self, request: Request, rule: Rule, rng: np.random.Generator) -> np.ndarray:
        model, inner = _inner(request)
        return model.scores(inner, rule, rng)

    def default_exploration(self) -> Exploration:
        return RULE

    def active_rule(self, rule: Rule, request: Request | None = None) -> Rule:
        if request is None or rule.exploration is not RULE:
            return rule
        return make_rule(_inner(request)[0].default_exploration())

    # ---- learning ----

    def observe(self, context: Any, arm: Any) -> Batch:
        several = arm if isinstance(arm, list | tuple) else ()
        kind = self._kind(context, have_features(arm) or any(map(have_features, several)), len(self._index))
        batch = self._model_of(kind).observe(context, arm)
        return batch._replace(rows=(kind, batch))

    def recall(self, slots: list[tuple[Any, int]]) -> Batch:
        kind = self._kind_of_decision(slots[0][0])
        batch = self._model_of(kind).recall(slots)
        return batch._replace(rows=(kind, batch))

    def update(
        self, batch: Batch, rewards: np.ndarray, *, nu: Any = None, time: Any = None, residuals: bool = False,
        outcomes: Any = None,
    ) -> Model:  # fmt: skip
        kind, inner = batch.rows
        beside = {} if outcomes is None else {"outcomes": outcomes}
        return self._new_model(kind).update(inner, rewards, nu=nu, time=time, residuals=residuals, **beside)

    def begin_outcomes(self, count: int) -> None:
        self._outcomes, self._fresh = count, {}

    def predict_outcomes(self, request: Request, i: int) -> tuple[np.ndarray, np.ndarray]:
        model, inner = _inner(request)
        return model.predict_outcomes(inner, i)

    def check_rounds(self, contexts: Any, rewards: Any, nu: Any) -> tuple[np.ndarray, np.ndarray, Any]:
        return self._model_of(self._kind(contexts, False, 0)).check_rounds(contexts, rewards, nu)

    # ---- questions ----

    def users(self, contexts: Any) -> tuple[int, Callable[[slice], Any]]:
        rows = not are_records(contexts) or self.dim is not None
        return self._model_of((False, rows)).users(contexts)

    def attribute(self, request: Request, places: list[int], names: Any) -> Sides:
        model, inner = _inner(request)
        return model.attribute(inner, places, names)

    def can_compare(self, request: Request) -> bool:
        model, inner = _inner(request)
        return model.can_compare(inner)

    def memory_usage(self) -> int:
        return 0

    def summary(self) -> str:
        return "nothing learned yet"

    def __repr__(self) -> str:
        return f"AutoModel({', '.join(f'{name}={value!r}' for name, value in self.params().items())})"

    # ---- copies and files ----

    def freeze(self) -> Self:
        return self.copy()

    def params(self) -> dict[str, Any]:
        """Return the arguments of the constructor.

        Returns
        -------
        dict
            Arguments by name.
        """
        parts = {"model": self._kind_name, "context": self._context, "item": self._item}
        return {"dim": self.dim, **self._options, **parts}

    def contents(self) -> files.Contents:
        return files.Contents(self.params(), {}, (object_array(list(self._index.names)),))

    @classmethod
    def from_contents(cls, params: dict[str, Any], extra: dict[str, Any], held: files.StateSource) -> Self:
        model = cls(**{name: build(part) for name, part in params.items()})
        model._fresh.clear()  # made here their arrays have no memory, and decisions by them would be compiled once more
        for name in held.take((object_array([]),), lambda found: True)[0].tolist():
            model.add_arm(name)
        return model


def _inner(request: Request) -> tuple[Model, Request]:
    """Return the model that decides a request, and the request as encoded for that model."""
    found: tuple[Model, Request] = request.given
    return found
