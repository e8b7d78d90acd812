"""One model for all arms with every feature of a request, every feature of an arm, and all their products.

The products are never formed as a row. Requests are records; arms have their own features and come and go; rewards are
clicks, counts or numbers; nothing has to be tuned. The mathematics is in interactions.py, and features/flatten.py turns
records into terms. A decision's record holds the terms of the request and of the chosen arms, so that its reward can be
learned later, by another process or another model.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Self, final

import numpy as np

from onepass.exploration.contract import ArmStatistics
from onepass.exploration.exploration import Exploration
from onepass.exploration.optimistic_gap import OptimisticGap
from onepass.exploration.randomness import noise_once
from onepass.exploration.rule import Rule
from onepass.features.flatten import check_terms, flatten_record
from onepass.features.records import Records
from onepass.foundation import check, files
from onepass.foundation import state as states
from onepass.foundation.check import quote
from onepass.foundation.generic import call_direct
from onepass.foundation.registry import build, savable
from onepass.foundation.rw_lock import for_owner, reading
from onepass.foundation.state import object_array
from onepass.model.contract import Batch, Choice, Model, Request, Sides, check_rounds
from onepass.model.interaction.attribution import sides_of
from onepass.model.interaction.interactions import (
    PRIORS,
    InteractionRow,
    InteractionState,
    decide_request,
    init_state,
    learn_row,
    look,
    prior_weights,
    rescale,
)
from onepass.model.interaction.outcome_models import OutcomeModels
from onepass.model.interaction.recent_arms import RecentArms, SavedArms
from onepass.model.names import check_hashable, distinct_names, full_mask
from onepass.model.records import are_records, arms_of, check_evidence, evidence_of, examples_of, requests_of

WIDTH = 256  # of users and of items: 5.2 MB of weights and variances
BANDS = 16  # values of an arm's number that have a weight each, beside the number's own: ten prices, say
RECENT = 1000
RULE = OptimisticGap(0.8, scale=30.0, uniform_share=0.001)  # chosen on generated news sites (docs/news/defaults.md)
NO_UNIFORMS = np.zeros(2)  # of who looks at scores alone


@final
@savable
class InteractionModel(Model):
    """One linear model of the features of requests, of arms, and of all pairs of them.

    A context is a dictionary, or a row (dim,), which is read as {"x0": ..., "x1": ..., ...}. n decisions take a list of
    dictionaries, a frame, or rows (n, 1, dim). Arms are names, {name: dictionary or row}, or a list of dictionaries if
    they have no names.

    The model forgets nothing, except how good single arms are beyond their features. With p columns of requests and q
    columns of arms, memory is 80 p q bytes. The operations of a decision are the number of the request's terms times
    the number of all arms' terms. A reward costs the number of the request's terms times the number of one arm's terms.

    Parameters
    ----------
    context : Records, default None
        Feature map of requests. The model learns with a copy of it. The default has 256 columns and standardizes
        numbers.
    item : Records, default None
        Feature map of arms. The model learns with a copy of it. The default has 256 columns with standardized numbers.
        A number that takes 3 to 16 different values then also has a weight for each value (`bands=16`). A number with
        more values has a linear effect only.
    recent : int, default 1000
        Number of arms, at least 1, for which the model also keeps how good the arm is beyond its features. It keeps
        this for the arms learned last.
    dim : int, default None
        Number of columns if requests are rows. By default any number.
    arms : sequence of hashable, default ()
        Names of the arms that are offered if a decision names none. The name is then the arm's only feature.

    Raises
    ------
    ValueError
        If the parts do not fit together.
    """

    compares = False
    common_draw = True

    def __init__(
        self,
        context: Records | None = None,
        item: Records | None = None,
        *,
        recent: int = RECENT,
        dim: int | None = None,
        arms: Sequence[Hashable] = (),
    ) -> None:
        for argument, value in (("context", context), ("item", item)):
            if not isinstance(value, Records | None):
                raise ValueError(f"{argument} must be Records(size=256, standardize=True), got {quote(value)}")
        self.context: Records = Records(size=WIDTH, standardize=True) if context is None else context.copy()
        self.item: Records = Records(size=WIDTH, standardize=True, bands=BANDS) if item is None else item.copy()
        self.recent: int = check.integer("recent", recent, 1)
        self.dim: int | None = None if dim is None else check.integer("dim", dim, 1)
        self.n_learned: int = 0
        self._offered = distinct_names(arms)
        self._learned = init_state(self.context.size, self.item.size, self.recent)
        self._code: dict[Any, Callable] = {}  # compiled for the types of the state
        self._recent = RecentArms(self.recent)
        self._outcomes: OutcomeModels | None = None

    def default_exploration(self) -> Exploration:
        return RULE

    @property
    def state(self) -> Any:
        return self._learned

    # ---- arms ----

    @property
    def has_named_arms(self) -> bool:
        return True

    @property
    @reading
    def arms(self) -> tuple[Any, ...]:
        """Names of the arms whose own effect is stored, the one learned longest ago first."""
        return self._recent.names

    def add_arm(self, arm: Hashable) -> None:
        raise ValueError("arm must be offered with its features: such arms are known once they are learned from")

    @for_owner
    def remove_arm(self, arm: Hashable) -> None:
        """Forget how good an arm is beyond its features.

        Parameters
        ----------
        arm : hashable
            Name of the arm.

        Raises
        ------
        ValueError
            If nothing is kept about the arm.
        RuntimeError
            If a bandit owns this model: call `Bandit.remove_arm`.
        """
        check_hashable([arm])
        if arm not in self._recent.names:
            known = len(self._recent.names)
            raise ValueError(f"arm {quote(arm)} is not known; known are {known} arms, see bandit.arms")
        self._recent.remove(arm, self._learned, *self._outcome_states)

    # ---- decisions ----

    def encode(self, context: Any, arms: Any) -> Request:
        names, items = arms_of(self._offered if arms is None and self._offered else arms)
        single, records = requests_of(context, self.dim)
        each = [(record, self.context.pairs(record)) for record in records]
        own = self._recent.places(names, len(items))
        return Request(names, len(items), single, each, (items, self.item.pairs(items), own))

    def evidence(self, request: Request, i: int, places: np.ndarray) -> Any:
        return evidence_of(request.each[i][0], [request.arms[0][place] for place in places.tolist()])

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
        normals, uniforms = noise_once(rule.pairs, request.size, rng, k)
        return self._choose(request, i, rule, normals, eligible, uniforms, greedy)

    def _choose(
        self, request: Request, i: int, rule: Rule, normals: np.ndarray, eligible: Any, uniforms: Any, greedy: bool
    ) -> Choice:
        (_, user), (_, items, own) = request.each[i], request.arms
        pairs = user.places, user.values, *items
        found: Choice = call_direct(
            rule.code, decide_request, self._learned, rule.rule, *pairs, own, normals, eligible, uniforms, greedy
        )
        return found

    def predict(self, request: Request, i: int, rule: Rule, rng: np.random.Generator, pairs: int) -> ArmStatistics:
        (_, user), (_, items, own) = request.each[i], request.arms
        normals = noise_once(pairs, request.size, rng, 1)[0]
        found: ArmStatistics = look(self._learned, rule.rule, user.places, user.values, *items, own, normals)
        return found

    def scores(self, request: Request, rule: Rule, rng: np.random.Generator) -> np.ndarray:
        normals, eligible = noise_once(min(rule.pairs, 1), request.size, rng, 1)[0], full_mask(request.size)
        each = range(len(request.each))
        return np.stack([self._choose(request, i, rule, normals, eligible, NO_UNIFORMS, False)[2] for i in each])

    # ---- learning ----

    def observe(self, context: Any, arm: Any) -> Batch:
        single, records, arms = examples_of(context, arm, self.dim)
        rows = [(flatten_record(record), *_arm_terms(one)) for record, one in zip(records, arms, strict=True)]
        return Batch(len(rows), single, rows)

    def recall(self, slots: list[tuple[Any, int]]) -> Batch:
        rows = []
        for decision, slot in slots:
            user, items = check_evidence(decision)
            name = None if decision.candidates is None else (decision.arms[slot],)
            rows.append((user, check_terms(items[slot]), name))
        return Batch(len(rows), False, rows)

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
        self.at(time)
        if nu is not None:
            raise ValueError("nu must be None for this model, which finds the scale of the noise by itself")
        for i, ((user, item, name), reward) in enumerate(zip(batch.rows, rewards.tolist(), strict=True)):
            pairs = *self.context.learn_terms(user), *self.item.learn_terms(item)
            users, items = self.context.take_rescaled(), self.item.take_rescaled()
            if users or items:
                rescale(self._learned, users, items)
                if self._outcomes is not None:
                    self._outcomes.rescale(users, items)
            row = InteractionRow(*pairs, self._recent.assign(name, self._learned, *self._outcome_states))
            call_direct(self._code, learn_row, self._learned, row, reward)
            if outcomes is not None and self._outcomes is not None:
                self._outcomes.update(row, outcomes[i])
            self.n_learned += 1
        return self

    # ---- outcomes ----

    @property
    def _outcome_states(self) -> tuple[InteractionState, ...]:
        return () if self._outcomes is None else self._outcomes.states

    def begin_outcomes(self, count: int) -> None:
        self._outcomes = self._new_outcomes(count)

    def _new_outcomes(self, count: int) -> OutcomeModels:
        return OutcomeModels(count, (self.context.size, self.item.size, self.recent))

    def predict_outcomes(self, request: Request, i: int) -> tuple[np.ndarray, np.ndarray]:
        assert self._outcomes is not None
        (_, user), (_, items, own) = request.each[i], request.arms
        return self._outcomes.predict(user, items, own), self._outcomes.deviations()

    def revise_outcomes(self, slot: tuple[Any, int], values: np.ndarray, expected: np.ndarray | None) -> bool:
        assert self._outcomes is not None
        decision, place = slot
        user, arms = check_evidence(decision)
        names = None if decision.candidates is None else [decision.arms[place]]
        (own,) = self._recent.places(names, 1)
        users, items = self.context.pairs_of_terms([user]), self.item.pairs_of_terms([check_terms(arms[place])])
        row = InteractionRow(users.places, users.values, items.places, items.values, int(own))
        if expected is None:
            self._outcomes.update(row, values)
        else:
            self._outcomes.correct(row, values - expected)
        return True

    def outcome_state(self) -> Any:
        return self._outcome_states

    def restore_outcomes(self, count: int, held: files.StateSource) -> None:
        self._outcomes = self._new_outcomes(count)
        self._outcomes.restore(held, _is_state)

    def check_rounds(self, contexts: Any, rewards: Any, nu: Any) -> tuple[np.ndarray, np.ndarray, Any]:
        rows = check.array("contexts", contexts, self.dtype, (3,), self.dim)
        if rows.shape[1] != 1 or nu is not None:
            raise ValueError(f"contexts must be (T, 1, dim) and nu None, got shape {rows.shape} and nu {quote(nu)}")
        return *check_rounds(rows, rewards, self.dtype, True), None

    # ---- questions ----

    def users(self, contexts: Any) -> tuple[int, Callable[[slice], Any]]:
        if not are_records(contexts):
            contexts = super().users(contexts)[1](slice(None))
        records = requests_of(contexts, self.dim)[1]
        return len(records), lambda part: records[part]

    def attribute(self, request: Request, places: list[int], names: Any) -> Sides:
        if names is not None:
            raise ValueError(f"names must be None where terms of records have names, got {quote(names)}")
        (_, user), (_, items, own) = request.each[0], request.arms
        item = slice(*items.starts[places[0] : places[0] + 2])
        row = InteractionRow(user.places, user.values, items.places[item], items.values[item], int(own[places[0]]))
        return lambda m: sides_of(self._learned, row, self.context.feature_names(), self.item.feature_names())

    def encode_decision(self, decision: Any) -> Request:
        user, items = check_evidence(decision)
        names, pairs = list(decision.arms), self.item.pairs_of_terms(items)
        own = self._recent.places(None if decision.candidates is None else names, len(names))
        return Request(names, len(names), True, [(None, self.context.pairs_of_terms([user]))], (None, pairs, own))

    @reading
    def choices(self) -> dict[str, Any]:
        """Return what the model has chosen so far.

        Returns
        -------
        dict
            "model" is "interaction". "weights" holds the weights of the priors that are averaged. "residual" is the
            typical prediction error, the unit of exploration. "terms" holds two numbers: how many names of features of
            requests and of arms have been learned.
        """
        weights, sigma = prior_weights(self._learned)
        by_prior = {f"{prior:g}": round(float(weight), 3) for prior, weight in zip(PRIORS, weights, strict=True)}
        known = self.context.n_names, self.item.n_names
        return {"model": "interaction", "weights": by_prior, "residual": float(sigma), "terms": known}

    @reading
    def memory_usage(self) -> int:
        outcomes = 0 if self._outcomes is None else self._outcomes.memory_usage()
        return states.nbytes(self._learned) + outcomes + self.context.memory_usage() + self.item.memory_usage()

    def summary(self) -> str:
        found = self.choices()
        users, items = found["terms"]
        return (
            f"{self.n_learned} rewards of records crossed with those of arms, {users} and {items} terms, "
            f"{self.memory_usage():,} bytes; residual {found['residual']:.3g}"
        )

    def __repr__(self) -> str:
        return f"InteractionModel({self.context!r}, {self.item!r}, recent={self.recent})"

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
        return {"context": self.context, "item": self.item, "recent": self.recent, "dim": self.dim}

    def contents(self) -> files.Contents:
        return files.Contents(
            self.params(), {}, (self._learned, self._recent.to_arrays(), (object_array(self._offered),))
        )

    @classmethod
    def from_contents(cls, params: dict[str, Any], extra: dict[str, Any], held: files.StateSource) -> Self:
        model = cls(**{name: build(part) for name, part in params.items()})
        initial = model._learned, model._recent.to_arrays(), (object_array([]),)
        learned, recent, (offered,) = held.take(
            initial, lambda found: _fits(initial[0], found[0], found[1], model.recent)
        )
        model._learned, model._recent = learned, RecentArms(model.recent, recent)
        model._offered, model.n_learned = distinct_names(offered), int(learned.totals[0])
        return model


def _arm_terms(arm: Any) -> tuple[Any, Any]:
    """Return the terms of one arm, and its name as (name,), or None without a name.

    `arm` is a name, {name: features} or [features]. Raises ValueError for several arms, or none.
    """
    names, records = arms_of(arm if isinstance(arm, Mapping | list) else [arm])
    if len(records) != 1:
        raise ValueError(f"arm must be one arm: a name, {{name: features}} or [features], got {quote(arm)}")
    return flatten_record(records[0]), None if names is None else (names[0],)


def _fits(initial: InteractionState, learned: InteractionState, recent: SavedArms, most: int) -> bool:
    """Return True if the state `learned`, read from a file, can have been learned by this model.

    `initial` is its state before the first reward, `recent` the saved arms, and `most` their largest number.
    """
    return _is_state(initial, learned) and recent.fits(most)


def _is_state(initial: InteractionState, learned: InteractionState) -> bool:
    """Return True if a model whose state was `initial` can have learned the state `learned`."""
    shapes = [one.shape for one in learned] == [one.shape for one in initial]
    priors = initial.losses.size
    counted = *learned[2:], learned.cells[..., priors:], learned.own[:, priors:]
    return shapes and all(bool((part >= 0.0).all()) for part in counted)
