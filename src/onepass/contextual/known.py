"""What a ContextualBandit knows: arms by name, their models in slots, and when the views of these are made again."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from onepass.bandit.roster import Roster
from onepass.contextual.mixture import (
    ALARMS,
    CLOCK,
    KNOWN,
    MODELS,
    NAMES,
    NEVER,
    SPARSE_MODEL,
    STRETCH,
    asked,
    begun_mixture,
    bytes_of,
    consistent,
    grown,
    remade,
    sigma_of,
    survey,
    take,
    vacate,
    weights,
)
from onepass.contextual.rewards import SPREAD, prior
from onepass.contextual.sketched import no_sketches
from onepass.contextual.span import no_span
from onepass.foundation import files
from onepass.foundation import state as states
from onepass.foundation.state import objects

LEAST_SLOTS = 4  # room for arms to begin with
FORMER = 1.5  # stretch of widths of sparse rows in files of 0.2.0


class Held(NamedTuple):
    """What is written: the models, () where no row was seen; names of the arms and their slots."""

    mixture: Any
    names: np.ndarray
    slots: np.ndarray


def counted(held: files.Holds) -> files.Holds:
    """The same where rows of arms are counted and widths of sparse rows are those of today; in files from before rows
    were counted, all arms have as many."""
    if not isinstance(held, files.Foreign):
        return held
    arrays = dict(held.arrays)
    last, counts, settings = (arrays.get(f"mixture.{name}") for name in ("last", "counts", "settings"))
    fitting = settings is not None and settings.shape == (len(MODELS), STRETCH + 1)
    if settings is not None and fitting and settings[SPARSE_MODEL, STRETCH] == FORMER:
        arrays["mixture.settings"] = settings = settings.copy()
        settings[SPARSE_MODEL, STRETCH] = MODELS[SPARSE_MODEL][-1]
    if "mixture.learned" not in arrays and last is not None and counts is not None and counts.shape == (ALARMS + 1,):
        known = last > NEVER
        each = max(int(counts[KNOWN]) // max(int(known.sum()), 1), 1)
        arrays["mixture.learned"] = np.where(known, each, 0)
    return files.Foreign(arrays)


def widened(held: files.Holds) -> files.Holds:
    """The same with spans and sketches; in files from before there were some, there are none."""
    last, rows = held.arrays.get("mixture.last"), held.arrays.get("mixture.rows")
    old = isinstance(held, files.Foreign) and "mixture.sketches.root" not in held.arrays
    if not old or last is None or rows is None or rows.ndim != 2:
        return held
    none: dict[str, NamedTuple] = {f"mixture.views.{i}.span": no_span(rows.shape[1]) for i in range(3)}
    none["mixture.sketches"] = no_sketches(len(last), rows.shape[1], 0)
    added = {f"{where}.{name}": array for where, one in none.items() for name, array in one._asdict().items()}
    return files.Foreign({**held.arrays, **added})


class Known:
    """models: a `Mixture`, () until the width of contexts is known; roster: names and slots; given: the settings."""

    def __init__(self, given: Mapping[str, Any], seed: int) -> None:
        self.given, self.seed = given, seed
        self.models: Any = ()
        self.roster = Roster()

    def begin(self, dim: int) -> None:
        """Contexts are known to be of that width."""
        self.models = begun_mixture(dim, self.given["warm_up"], self.given["reg"])

    # ---- arms ----

    def remove(self, arm: Any, slot: int) -> None:
        """Forget a known arm and its models in `slot`."""
        if slot != NEVER:
            vacate(self.models, slot)
        self.roster.remove(arm)

    def slot(self, arm: Any) -> int:
        """The slot of an arm that is to learn: the lowest that is free."""
        slot = self.roster.record(arm)
        if slot != NEVER:
            return slot
        taken = set(self.roster.records.tolist())
        slot = next(free for free in range(len(taken) + 1) if free not in taken)
        room = len(self.models.last)
        if slot >= room:
            self.models = grown(self.models, max(2 * room, LEAST_SLOTS))
        self.roster.settle(arm, slot)
        return slot

    # ---- learning and asking ----

    def take(self, row: np.ndarray, reward: float, arm: Any) -> None:
        """One row; the views are made again where it is time."""
        given = self.given
        slot = self.slot(arm)
        take(self.models, row, slot, reward, given["patience"] or 0.0)
        seen = int(self.models.counts[CLOCK])
        if seen <= given["warm_up"] and (seen & (seen - 1) == 0 or seen == given["warm_up"]):
            room, known, memory = len(self.models.last), len(self.roster), 1e6 * given["megabytes"]
            self.models = remade(self.models, room, known, given["landmarks"], memory, self.seed)
            if seen == given["warm_up"]:
                self.models = self.models._replace(rows=np.zeros((0, row.size)))

    def survey(self, rows: np.ndarray, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray, float, int]:
        """Means and widths of arms for rows (1 or K, dim), sigma, and how many rows that is learned from."""
        if self.models == ():
            return np.zeros(slots.size), np.ones(slots.size), 0.0, 0
        means, widths, sigma = survey(self.models, rows, slots)
        return means, widths, sigma, int(self.models.counts[KNOWN])

    def choices(self) -> dict[str, Any]:
        """What was chosen so far, as `ContextualBandit.choices` says; {} before the first row."""
        state = self.models
        if state == () or not state.plan.any():
            return {}
        w, width, sketched = weights(state), state.rows.shape[1], state.sketches.root.shape[1]
        believed = {
            name: round(float(one), 3)
            for m, (name, one) in enumerate(zip(NAMES, w, strict=True))
            if asked(state.plan, sketched > 0, m)
        }
        return {
            "weights": believed,
            "landmarks": [len(view.landmarks) for view in state.views],
            "directions": sketched or state.views[0].span.basis.shape[1],
            "residual": float(sigma_of(state, w)),
            "prior": float(prior(state.rewards)),
            "unit": float(state.rewards.numbers[SPREAD]),
            "alarms": int(state.counts[ALARMS]),
            "bytes_per_arm": bytes_of(state.plan, width, sketched // 2),
        }

    def told(self) -> str:
        """The same in short, "" where nothing was chosen."""
        chosen = self.choices()
        if not chosen:
            return ""
        believed = ", ".join(f"{name} {w:.2f}" for name, w in chosen["weights"].items() if w > 0.0)
        directions = f"{chosen['directions']} directions, " if chosen["directions"] else ""
        return (
            f"; {believed}; {directions}{chosen['landmarks'][0]} landmarks, residual {chosen['residual']:.3g}, "
            f"{chosen['alarms']} alarms, {chosen['bytes_per_arm']:,} bytes an arm"
        )

    # ---- copies and files ----

    def twin(self) -> "Known":
        """The same models, which are shared, and names of its own."""
        twin = Known(self.given, self.seed)
        twin.models, twin.roster = self.models, self.roster.copy()
        return twin

    def apart(self) -> None:
        """Have models of its own."""
        self.models = states.copy(self.models)

    def held(self) -> Held:
        """What is written."""
        return Held(mixture=self.models, names=objects(list(self.roster.names)), slots=self.roster.records)

    def restore(self, held: files.Holds) -> None:
        """What was written; ValueError where that does not fit."""
        begun = self.models

        def fits(found: Held) -> bool:
            slots = found.slots[found.slots != NEVER].tolist()
            few = len(found.names) == len(found.slots) and len(set(slots)) == len(slots) and min(slots, default=0) >= 0
            return few and (begun == () or consistent(found.mixture, begun, max(slots, default=NEVER) + 1))

        found = widened(counted(held)).take(Held(mixture=begun, names=objects([]), slots=np.zeros(0, np.int64)), fits)
        if len(set(found.names.tolist())) != len(found.names):
            raise ValueError("an arm is there twice")
        self.models, self.roster = found.mixture, Roster(zip(found.names, found.slots.tolist(), strict=True))
