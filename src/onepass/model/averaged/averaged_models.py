"""Several models for every arm, averaged with weights by how well they predict, so that nothing has to be tuned.

Every arm has a few ridge regressions, on the columns (for records see columns.py) and on features of a kernel (view.py,
regression.py). They are weighted by how well they have predicted (mixture.py). Widths are in units of the residuals
(rewards.py). docs/recommended_defaults.md gives reasons for settings. Each model has n = landmarks + dim + 1
features. A decision costs n^2 / 2 for each arm and each model with weight, and a reward costs n^2 for each model. For
more than 300 columns, span.py and sketches.py describe the models and their cost. remake.py describes when the feature
maps of the models ("views") are rebuilt.
"""

import importlib
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import Any, Self, final

import numpy as np

from onepass.exploration.contract import ArmStatistics
from onepass.exploration.exploration import Exploration
from onepass.exploration.optimistic_gap import OptimisticGap
from onepass.exploration.randomness import noise_once
from onepass.exploration.rule import Rule
from onepass.exploration.statistics import statistics
from onepass.features.records import Records
from onepass.foundation import check, files
from onepass.foundation import state as states
from onepass.foundation.check import quote
from onepass.foundation.registry import build, savable
from onepass.foundation.rw_lock import for_owner, reading
from onepass.model.arms.arm_index import ArmIndex
from onepass.model.averaged.arm_mixtures import ArmMixtures, Settings
from onepass.model.averaged.attribution import called, sides_of
from onepass.model.averaged.contexts import Contexts, RecordContexts, RowContexts, check_width
from onepass.model.averaged.forest import N_TREES
from onepass.model.averaged.span import WIDE
from onepass.model.contract import Batch, Model, Request, Sides
from onepass.model.names import PLAIN, check_hashable
from onepass.model.records import have_features

WARM_UP = 256  # rows from which the views are made
MEGABYTES = 64.0  # that models may take when the views are made
PATIENCE = 50.0  # of the alarm, in units of surprise
RULE = OptimisticGap()


@final
@savable
class AveragedModels(Model):
    """Several models of every arm, averaged with weights by how well they predict.

    A context is a row (dim,) for all arms, or rows (K, dim), one for each arm; n decisions take (n, 1, dim) or (n, K,
    dim). A context may also be a dictionary. n decisions then take a list of dictionaries, or a frame.

    Parameters
    ----------
    dim : int, default None
        Number of columns of row contexts, from 1 to 27,777 at the default `memory_limit`. None takes the width of the
        first row learned.
    n_landmarks : int, default 150
        Number of landmarks, from 0 to 2,000. Landmarks are past rows; how similar a row is to each of them makes
        further features. 0 uses the columns alone. `memory_limit` may reduce the number.
    reg : float, default 0.1
        Penalty on every parameter, above 0.
    warm_up : int, default 256
        Number of first rows, at least 1, from which scales and landmarks are made. Until then they are made anew after
        1, 2, 4, ... rows.
    memory_limit : float, default 64.0
        Megabytes (10^6 bytes), above 0, that the models of all known arms may take when landmarks are chosen. Arms that
        come later, and columns of records, take more.
    alarm_threshold : float, default 50.0
        Threshold, above 0, of the alarm that forgets all models after a change for the worse. It is compared with a
        CUSUM of the squared prediction errors, in units of their mean so far. None means no alarm.
    seed : int, default 0
        Seed of landmarks and trees, at least 0.
    n_trees : int, default 30
        Number of trees, from 0 to 1,000, that are averaged with the models where rows have at most 32 columns.
    context : Records, default None
        Feature map of dictionary contexts, at most 300 columns wide. The model learns with a copy of it. None means
        that contexts are rows.
    ignore_features : bool, default False
        True ignores features of arms; False refuses them.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """

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
        context: Records | None = None,
        ignore_features: bool = False,
    ) -> None:
        importlib.import_module("scipy.linalg")  # so that no later call waits for it
        settings = Settings(n_landmarks, reg, warm_up, memory_limit, alarm_threshold, seed, n_trees).checked()
        most = settings.columns_within(settings.warm_up)
        self._ignores: bool = check.choice("ignore_features", ignore_features, (False, True))
        self.n_learned: int = 0
        self._dim: int | None = None if dim is None else check_width(dim, most)
        self._mixtures = ArmMixtures(settings)
        if context is None:
            self._contexts: Contexts = RowContexts(self._dim or 0, most)
        elif not isinstance(context, Records) or dim is not None:
            raise ValueError(f"context must be Records(size=256), and dim None beside it, got {quote(context)}")
        elif context.size > WIDE:
            raise ValueError(f"context must have at most {WIDE} places where arms have models of their own")
        else:
            self._contexts = RecordContexts(context.copy())
        if self._dim is not None:
            self._mixtures.begin(self._dim)

    def default_exploration(self) -> Exploration:
        return RULE

    @property
    def dim(self) -> int:
        """Number of columns of rows; 0 before the first row."""
        return self._contexts.width

    @property
    def state(self) -> Any:
        return self._mixtures.models

    # ---- arms ----

    @property
    def has_named_arms(self) -> bool:
        return True

    @property
    @reading
    def arms(self) -> tuple[Any, ...]:
        return self._mixtures.index.names

    @property
    def index(self) -> ArmIndex:
        """Names of arms with the indices of their models. Read only; not part of the stable interface."""
        return self._mixtures.index

    def add_arm(self, arm: Hashable) -> None:
        self._mixtures.index.add(arm)

    @for_owner
    def remove_arm(self, arm: Hashable) -> None:
        self._mixtures.remove(arm)

    def _names(self, arms: Any) -> Any:
        """Return the names of the arms on offer.

        Raises ValueError for arms with features, unless the model ignores these.
        """
        if arms is None or (type(arms) in (list, tuple) and len(arms) > 0 and type(arms[0]) in PLAIN):
            return arms
        featured = have_features(arms)
        if featured:
            self._refuse_features()
        if isinstance(arms, Mapping):
            return list(arms)
        if featured:
            raise ValueError(f"arms must have names where each has models of its own, got {quote(arms)}")
        return arms

    def _names_to_learn(self, arms: list[Any]) -> list[Any]:
        """Return the names of arms to learn.

        Raises ValueError for arms with features, unless the model ignores these.
        """
        if PLAIN.issuperset(map(type, arms)):
            return arms
        if any(map(have_features, arms)):
            self._refuse_features()
        names = list(map(_name_to_learn, arms))
        check_hashable(names)
        return names

    def _refuse_features(self) -> None:
        if not self._ignores:
            raise ValueError(
                "arms have features, and this bandit has learned models of every arm: say model='disjoint' to leave "
                "features out, or model='interaction' from the start"
            )

    # ---- decisions ----

    def encode(self, context: Any, arms: Any) -> Request:
        names, slots = self._mixtures.index.request(self._names(arms))
        single, rows, given = self._contexts.requests(context, len(names))
        each: Any = rows
        return Request(names, len(names), single, each, slots, given)

    def evidence(self, request: Request, i: int, places: np.ndarray) -> Any:
        names: Any = request.names
        chosen = [names[place] for place in places.tolist()]
        return self._contexts.evidence(request.given, i, request.each[i], places, chosen)

    def predict(self, request: Request, i: int, rule: Rule, rng: np.random.Generator, pairs: int) -> ArmStatistics:
        normals = noise_once(pairs, request.size, rng, 0)[0]
        means, widths, sigma, known = self._mixtures.survey(request.each[i], request.arms)
        return statistics(rule, means, widths, rule.strength.scale * sigma, normals * widths, sigma, known)

    # ---- learning ----

    def observe(self, context: Any, arm: Any) -> Batch:
        single, examples, arms = self._contexts.examples(context, arm)
        return Batch(len(examples), single, examples, self._names_to_learn(arms))

    def recall(self, slots: list[tuple[Any, int]]) -> Batch:
        names = [decision.arms[slot] for decision, slot in slots]
        check_hashable(names)
        return Batch(len(slots), False, self._contexts.recall(slots), names)

    def update(
        self, batch: Batch, rewards: np.ndarray, *, nu: Any = None, time: Any = None, residuals: bool = False,
        outcomes: Any = None,
    ) -> Self:  # fmt: skip
        self.at(time)
        if nu is not None:
            raise ValueError("nu must be None for this model, which finds the scale of the noise by itself")
        each = [None] * len(rewards) if outcomes is None else outcomes
        for example, reward, arm, values in zip(batch.rows, rewards.tolist(), batch.arms, each, strict=True):
            row, (fills, sizes) = self._contexts.advance(example)
            if self._mixtures.models == ():
                self._mixtures.begin(len(row))
            elif len(fills):
                self._mixtures.widen(fills, sizes)
            self._mixtures.take(row, reward, arm, values)
            self.n_learned += 1
        return self

    # ---- outcomes ----

    def begin_outcomes(self, count: int) -> None:
        self._mixtures.begin_outcomes(count)

    def predict_outcomes(self, request: Request, i: int) -> tuple[np.ndarray, np.ndarray]:
        return self._mixtures.ask(request.each[i], request.arms)

    def revise_outcomes(self, slot: tuple[Any, int], values: np.ndarray, expected: np.ndarray | None) -> bool:
        decision, place = slot
        rows = self._contexts.reread(decision)
        return self._mixtures.revise(rows[place if len(rows) > 1 else 0], decision.arms[place], values, expected)

    def outcome_state(self) -> Any:
        return self._mixtures.heads

    def restore_outcomes(self, count: int, held: files.StateSource) -> None:
        self._mixtures.outcomes = count
        self._mixtures.restore_heads(held)

    def check_rounds(self, contexts: Any, rewards: Any, nu: Any) -> tuple[np.ndarray, np.ndarray, Any]:
        if nu is not None:
            raise ValueError(f"nu must be None for this model, got {quote(nu)}")
        return *self._contexts.game(contexts, rewards), None

    # ---- questions ----

    def users(self, contexts: Any) -> tuple[int, Callable[[slice], Any]]:
        return self._contexts.users(contexts) or super().users(contexts)

    def attribute(self, request: Request, places: list[int], names: Any) -> Sides:
        rows, slots = request.each[0], [int(request.arms[place]) for place in places]
        columns = called(rows.shape[1], self._contexts.names if names is None else names)
        of_arms = [rows[place if len(rows) > 1 else 0] for place in places]
        return partial(sides_of, self._mixtures.models, self._mixtures.forest, of_arms, slots, columns)

    def encode_decision(self, decision: Any) -> Request:
        rows: Any = self._contexts.reread(decision)[None]
        names, slots = self._mixtures.index.request(tuple(decision.arms))
        return Request(names, len(names), True, rows, slots)

    @reading
    def choices(self) -> dict[str, Any]:
        """Return what the model has chosen so far.

        Returns
        -------
        dict
            Empty before the first row.

            - "model": "rows" or "records".
            - "weights": weights of the averaged models, by name.
            - "landmarks": numbers of landmarks of the kernel models.
            - "directions": number of directions that wide rows are projected to, or of rows of an arm's sketch if over
              90% of their entries are zeros; 0 if rows are not wide.
            - "residual": root mean square prediction error, averaged with the weights; it is the unit of exploration.
            - "prior": predicted reward of an unknown arm.
            - "unit": median absolute deviation of rewards, without zeros, by which clipping is scaled.
            - "alarms": how often all models were forgotten.
            - "bytes_per_arm": memory of an arm's models, in bytes.
        """
        found = self._mixtures.choices()
        return {"model": self._contexts.model, **found} if found else {}

    @reading
    def memory_usage(self) -> int:
        records = self._contexts.records
        return states.nbytes((self._mixtures.models, self._mixtures.remaking, self._mixtures.forest)) + (
            0 if records is None else records.memory_usage()
        )

    def summary(self) -> str:
        said, found = (
            f"{self.n_learned} rows learned of {len(self._mixtures.index)} arms, {self.memory_usage():,} bytes",
            self.choices(),
        )
        if not found:
            return said
        believed = ", ".join(f"{name} {w:.2f}" for name, w in found["weights"].items() if w > 0.0)
        directions = f"{found['directions']} directions, " if found["directions"] else ""
        return (
            f"{said}; {found['model']} of {self.dim} columns; {believed}; {directions}{found['landmarks'][0]} "
            f"landmarks, residual {found['residual']:.3g}, {found['alarms']} alarms, {found['bytes_per_arm']:,} bytes "
            "an arm"
        )

    def __repr__(self) -> str:
        return f"AveragedModels({', '.join(f'{name}={value!r}' for name, value in self.params().items())})"

    # ---- copies and files ----

    def freeze(self) -> Self:
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._mixtures, twin._contexts = self._mixtures.copy(), self._contexts.copy()
        return twin

    def params(self) -> dict[str, Any]:
        """Return the arguments of the constructor.

        Returns
        -------
        dict
            Arguments by name.
        """
        settings = self._mixtures.settings._asdict()
        return {"dim": self._dim, **settings, "context": self._contexts.records, "ignore_features": self._ignores}

    def contents(self) -> files.Contents:
        extra = {"rounds": self.n_learned, "width": self.dim, **self._contexts.extra()}
        return files.Contents(self.params(), extra, self._mixtures.saved())

    @classmethod
    def from_contents(cls, params: dict[str, Any], extra: dict[str, Any], held: files.StateSource) -> Self:
        model = cls(**{name: build(part) for name, part in params.items()})
        model._contexts.restore(extra)
        if model._mixtures.models == () and model.dim > 0:
            model._mixtures.begin(model.dim)
        model._mixtures.restore(held)
        model.n_learned = check.integer("rounds", extra["rounds"], 0)
        return model


def _name_to_learn(arm: Any) -> Any:
    """Return the name of an arm, which is a name or {name: features}. Raises ValueError for anything else."""
    if isinstance(arm, Mapping) and len(arm) == 1:
        return next(iter(arm))
    if isinstance(arm, Mapping) or have_features(arm):
        raise ValueError(f"arm must be a name or {{name: features}} where each has models of its own, got {quote(arm)}")
    return arm
