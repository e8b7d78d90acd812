"""What a ContextualBandit knows: arms by name, their models in slots, and when the views of these are made again."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from onepass.bandit.roster import Roster
from onepass.contextual.mixture import (
    ALARMS,
    CLOCK,
    KNOWN,
    NAMES,
    NEVER,
    asked,
    begin_arm,
    begun_mixture,
    bytes_of,
    consistent,
    erase,
    grown,
    sigma_of,
    survey,
    take,
    weights,
)
from onepass.contextual.remaking import (
    begun_remaking,
    drop,
    drop_all,
    go_on,
    grow,
    is_due,
    remaking_fits,
    spare,
    start,
    widen,
)
from onepass.contextual.rewards import SPREAD, prior
from onepass.contextual.span import LEAST
from onepass.contextual.widening import widened
from onepass.foundation import files
from onepass.foundation import state as states
from onepass.foundation.state import objects

LEAST_SLOTS = 4  # room for arms to begin with
ALWAYS = 2_000  # columns that are taken whatever `megabytes` says


class Held(NamedTuple):
    """What is written: the models, () where no row was seen; new ones that are being made, or (); names of the arms and
    their slots."""

    mixture: Any
    remaking: Any
    names: np.ndarray
    slots: np.ndarray


def widest(given: Mapping[str, Any]) -> int:
    """Return the most columns of rows: the first rows, in double precision, and two spans fit into `megabytes`."""
    return max(ALWAYS, columns_within(given, given["warm_up"]))


def columns_within(given: Mapping[str, Any], rows: int) -> int:
    """Return the width at which so many rows and two spans fit into `megabytes`."""
    return int(1e6 * given["megabytes"] / (8 * rows + 8 * LEAST))


def rows_kept(given: Mapping[str, Any], dim: int) -> int:
    """Return how many of the first rows are kept: with spare ones, for work in slices, where these fit as well."""
    warm_up = given["warm_up"]
    more = warm_up + spare(warm_up)
    return more if dim <= max(ALWAYS, columns_within(given, more)) else warm_up


class Known:
    """models: a `Mixture`, () until the width of contexts is known; remaking: a `Remaking`, () while there is none;
    roster: names and slots; given: the settings."""

    def __init__(self, given: Mapping[str, Any], seed: int) -> None:
        self.given, self.seed = given, seed
        self.models: Any = ()
        self.remaking: Any = ()
        self.roster = Roster()

    def begin(self, dim: int) -> None:
        """Contexts are known to be of that width."""
        self.models = begun_mixture(dim, rows_kept(self.given, dim), self.given["reg"])

    # ---- arms ----

    def remove(self, arm: Any, slot: int) -> None:
        """Forget a known arm and its models in `slot`."""
        if slot != NEVER:
            erase(self.models, slot)
            if self.remaking != ():
                drop(self.remaking, self.models, slot)
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
            room = max(2 * room, LEAST_SLOTS)
            if self.remaking != ():
                self.remaking = grow(self.remaking, self.models, room)
            self.models = grown(self.models, room)
        self.roster.settle(arm, slot)
        return slot

    # ---- learning and asking ----

    def take(self, row: np.ndarray, reward: float, arm: Any) -> None:
        """Learn one row, and do a slice of making views again, where there is some of it to do."""
        given, slot = self.given, self.slot(arm)
        state = self.models
        if state.last[slot] == NEVER:
            begin_arm(state, slot)
        take(state, row, slot, reward, given["patience"] or 0.0)
        seen = int(state.counts[CLOCK])
        if self.remaking != () and state.counts[KNOWN] == 0:  # after an alarm
            drop_all(self.remaking, state)
        if seen <= given["warm_up"] and is_due(seen, given["warm_up"]):
            self.remaking = start(state, given["landmarks"])
        if self.remaking != ():
            known, memory = len(self.roster), 1e6 * given["megabytes"]
            self.models, self.remaking = go_on(state, self.remaking, known, memory, self.seed, given["warm_up"])

    def widen(self, fills: np.ndarray, sizes: np.ndarray) -> None:
        """Let rows have columns more (widening.py)."""
        if self.remaking != ():
            self.remaking = widen(self.remaking, self.models, fills, sizes)
        self.models = widened(self.models, fills, sizes)

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
        twin.models, twin.remaking, twin.roster = self.models, self.remaking, self.roster.copy()
        return twin

    def apart(self) -> None:
        """Have models of its own."""
        self.models, self.remaking = states.copy((self.models, self.remaking))

    def held(self) -> Held:
        """What is written."""
        return Held(
            mixture=self.models,
            remaking=self.remaking,
            names=objects(list(self.roster.names)),
            slots=self.roster.records,
        )

    def restore(self, held: files.Holds) -> None:
        """What was written; ValueError where that does not fit."""
        begun, given = self.models, self.given

        def fits(found: Held) -> bool:
            slots = found.slots[found.slots != NEVER].tolist()
            few = len(found.names) == len(found.slots) and len(set(slots)) == len(slots) and min(slots, default=0) >= 0
            if not few or begun == ():
                return few
            state, more, arms = found.mixture, found.remaking, max(slots, default=NEVER) + 1
            whole = consistent(state, begun, arms)
            return whole and (more == () or remaking_fits(more, state, begun, arms, given["landmarks"]))

        works = begun != () and any(name.startswith("remaking.") for name in held.arrays)
        none = Held(begun, begun_remaking(begun) if works else (), objects([]), np.zeros(0, np.int64))
        found = held.take(none, fits)
        if len(set(found.names.tolist())) != len(found.names):
            raise ValueError("an arm is there twice")
        self.models, self.remaking = found.mixture, found.remaking
        self.roster = Roster(zip(found.names, found.slots.tolist(), strict=True))
