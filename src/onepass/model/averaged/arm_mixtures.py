"""Averaged models of named arms. The models of an arm are at an index of the arrays, called its slot."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from onepass.foundation import check, files
from onepass.foundation import state as states
from onepass.foundation.generic import call_direct
from onepass.foundation.state import object_array
from onepass.model.arms.arm_index import ArmIndex
from onepass.model.averaged.forest import (
    MEMORY,
    N_TREES,
    erase_arm,
    fit_forest,
    forest_fits,
    init_forest,
    widen_forest,
)
from onepass.model.averaged.forest_share import share_of, sigma_with_trees, survey_with_trees, teach_trees
from onepass.model.averaged.mixture import (
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
    raw_weights,
    sigma_of,
    survey,
    take,
    weights,
)
from onepass.model.averaged.new_columns import widened
from onepass.model.averaged.outcome_heads import (
    ask_heads,
    erase_heads,
    heads_fit,
    init_heads,
    keep_amounts,
    learn_heads,
    resize_heads,
    widen_heads,
)
from onepass.model.averaged.remake import (
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
from onepass.model.averaged.rewards import SPREAD, prior
from onepass.model.averaged.span import LEAST
from onepass.model.contract import AHEAD, JOINED, REVISED

LEAST_SLOTS = 4  # room for arms to begin with
ALWAYS = 2_000  # columns that are taken whatever `memory_limit` says


class Settings(NamedTuple):
    """Parameters of `AveragedModels` that do not concern contexts; `AveragedModels` documents each."""

    n_landmarks: int
    reg: float
    warm_up: int
    memory_limit: float
    alarm_threshold: float | None
    seed: int
    n_trees: int = N_TREES

    def checked(self) -> "Settings":
        """Return the settings as plain numbers. Raises ValueError for a value out of range."""
        return Settings(
            check.integer("n_landmarks", self.n_landmarks, 0, 2_000),
            check.positive("reg", self.reg),
            check.integer("warm_up", self.warm_up, 1, 1 << 20),
            check.positive("memory_limit", self.memory_limit),
            None if self.alarm_threshold is None else check.positive("alarm_threshold", self.alarm_threshold),
            check.integer("seed", self.seed, 0, None),
            check.integer("n_trees", self.n_trees, 0, 1_000),
        )

    @property
    def bytes(self) -> float:
        """Largest number of bytes of memory that all models together may take."""
        return 1e6 * self.memory_limit

    def columns_within(self, rows: int) -> int:
        """Return the largest number of columns for which the memory limit suffices to store this many rows.

        The memory must hold the rows in float64, and their main directions twice (span.py).
        """
        return max(ALWAYS, int(self.bytes / (8 * rows + 8 * LEAST)))

    def rows_kept(self, width: int) -> int:
        """Return how many of the first rows are stored, for contexts with `width` columns.

        These are the rows of the warm-up, and, if memory allows, some more that come while feature maps are rebuilt in
        small steps.
        """
        more = self.warm_up + spare(self.warm_up)
        return more if width <= self.columns_within(more) else self.warm_up


class Saved(NamedTuple):
    """Content of a file of averaged models.

    - mixture: the models, () before the first row.
    - remaking: models whose feature maps are being rebuilt, or ().
    - forest: the trees beside them, or ().
    - names: the arms' names.
    - slots: index of each arm's models.
    """

    mixture: Any
    remaking: Any
    forest: Any
    names: np.ndarray
    slots: np.ndarray


class ArmMixtures:
    """Averaged models of named arms, and the rebuilding of their feature maps.

    - models: the models' arrays (`Mixture`), () until the width of rows is known.
    - remaking: state of a rebuilding of feature maps (`Remaking`), () if none is in progress.
    - forest: state of the trees beside the models (`Forest`), () before the first row and without trees.
    - index: names of arms, and the index of each arm's models (slot).
    - heads: parameters of outcomes (`OutcomeHeads`), () without outcomes or rows.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.models: Any = ()
        self.remaking: Any = ()
        self.forest: Any = ()
        self.heads: Any = ()
        self.outcomes = 0  # how many
        self.index = ArmIndex()
        self._code: dict[Any, Callable] = {}  # compiled for the types of the models

    def copy(self) -> "ArmMixtures":
        """Return an independent copy without parameters of outcomes; both use the same compiled code."""
        twin = ArmMixtures(self.settings)
        twin.models, twin.remaking, twin.forest = map(states.copy, (self.models, self.remaking, self.forest))
        twin.index, twin._code = self.index.copy(), self._code
        return twin

    def begin(self, width: int) -> None:
        """Create models that have learned nothing, for rows with `width` columns."""
        self.models = begun_mixture(width, self.settings.rows_kept(width), self.settings.reg)
        self.forest = init_forest(width, self.settings.n_trees, self.settings.seed)
        self.begin_outcomes(self.outcomes)

    def begin_outcomes(self, count: int) -> None:
        """Prepare to learn `count` outcomes, from the first row on."""
        self.outcomes = count
        if count and self.models != ():
            self.heads = init_heads(count, *self.models.rows.shape[::-1])

    def remove(self, arm: Any) -> None:
        """Forget an arm and its models. Raises ValueError if the arm is not known."""
        slot = self.index.lookup(arm)
        if slot != NEVER:
            erase(self.models, slot)
            if self.forest != ():
                erase_arm(self.forest, slot)
            if self.heads != ():
                erase_heads(self.heads, slot)
            if self.remaking != ():
                drop(self.remaking, self.models, slot)
        self.index.remove(arm)

    def widen(self, fills: np.ndarray, sizes: np.ndarray) -> None:
        """Append columns to the rows that all models learn.

        `fills` (n,) is the value of each new column in all earlier rows. `sizes` (n,) is the scale of its numbers, 0
        for a 0/1 column.
        """
        if self.remaking != ():
            self.remaking = widen(self.remaking, self.models, fills, sizes)
        if self.heads != ():
            self.heads = widen_heads(self.heads, self.models, fills)
        if self.forest != ():
            self.forest = widen_forest(self.forest, fills)
        self.models = widened(self.models, fills, sizes)

    def take(self, row: np.ndarray, reward: float, arm: Any, outcomes: np.ndarray | None = None) -> None:
        """Learn the reward of an arm for one row (width,), and continue the rebuilding of feature maps, if any.

        outcomes (J,) are values beside the reward, NaN for a missing one.
        """
        settings, slot = self.settings, self._slot(arm)
        state = self.models
        if state.last[slot] == NEVER:
            begin_arm(state, slot)
        call_direct(self._code, take, state, row, slot, reward, settings.alarm_threshold or 0.0)
        if self.forest != ():
            self.forest = fit_forest(self.forest, len(state.last), MEMORY * settings.bytes)
        if self.forest != ():
            call_direct(self._code, teach_trees, state, self.forest, row, slot, reward)
        if outcomes is not None:
            if len(self.heads.theta) < len(state.last):
                self.heads = resize_heads(self.heads, state, False)
            self._add(row, slot, outcomes, outcomes, JOINED)
        seen = int(state.counts[CLOCK])
        if self.remaking != () and state.counts[KNOWN] == 0:  # after an alarm
            drop_all(self.remaking, state)
        if seen <= settings.warm_up and is_due(seen, settings.warm_up):
            self.remaking = start(state, settings.n_landmarks)
        if self.remaking != ():
            known, memory = len(self.index), settings.bytes * (1.0 if self.forest == () else 1.0 - MEMORY)
            self.models, self.remaking = go_on(state, self.remaking, known, memory, settings.seed, settings.warm_up)
            if self.heads != () and self.models.views is not state.views:
                self.heads = resize_heads(self.heads, self.models, True)

    def _add(self, row: np.ndarray, slot: int, values: np.ndarray, expected: np.ndarray, mode: int) -> None:
        """Learn values (J,) of outcomes of a row, NaN for missing ones, and store them while views are being rebuilt.

        `slot` is the index of the arm's models. `mode` is JOINED if the outcomes come with the reward, AHEAD if before
        it, REVISED if they replace earlier ones; only then `expected` (J,) counts, the values learned earlier.
        """
        heads = self.heads
        if len(heads.rows):
            known, means = ~np.isnan(values), self.ask(row.reshape(1, -1), np.array([slot]))[0][:, 0]
            if mode == JOINED:
                amounts = np.where(known, values, means)
            else:
                amounts = np.where(known, values - (expected if mode == REVISED else means), 0.0)
            keep_amounts(heads, row, slot, amounts, mode == REVISED)
        call_direct(self._code, learn_heads, self.models, heads, row, slot, values, expected, mode)

    def revise(self, row: np.ndarray, arm: Any, values: np.ndarray, expected: np.ndarray | None) -> bool:
        """Learn outcomes `values` (J,) of an arm, NaN for a missing one, before or after the reward is learned.

        expected (J,) holds the values that were learned with the reward in place of these outcomes; None before the
        reward. Returns False if they cannot be learned before the reward, since the arm has not learned any.
        """
        slot = self.index.find(arm)
        if slot == NEVER or self.models.last[slot] == NEVER:
            return expected is not None  # removed; or without a reward, and so without a model to learn on
        self.heads = resize_heads(self.heads, self.models, False)
        self._add(row, slot, values, values if expected is None else expected, AHEAD if expected is None else REVISED)
        return True

    def ask(self, rows: np.ndarray, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return predicted outcomes (J, K) of K arms, and the root mean square error (J,) of each outcome so far.

        `rows` is (1 or K, dim), and `slots` (K,) are the indices of the arms' models.
        """
        if self.heads == ():
            return np.zeros((self.outcomes, slots.size)), np.zeros(self.outcomes)
        return call_direct(self._code, ask_heads, self.models, self.heads, rows, slots)

    def restore_heads(self, held: files.StateSource) -> None:
        """Replace the parameters of outcomes by those in `held`, from a file; ValueError if they are inconsistent."""
        if self.models == ():
            held.take((), lambda found: True)
        else:
            begun = init_heads(self.outcomes, self.models.rows.shape[1], 0)
            self.heads = held.take(begun, lambda found: heads_fit(found, self.models, begun))

    def _slot(self, arm: Any) -> int:
        """Return the slot of an arm; a new arm gets the lowest free slot."""
        slot = self.index.find(arm)
        if slot != NEVER:
            return slot
        taken = set(self.index.arm_ids.tolist())
        slot = next(free for free in range(len(taken) + 1) if free not in taken)
        room = len(self.models.last)
        if slot >= room:
            room = max(2 * room, LEAST_SLOTS)
            if self.remaking != ():
                self.remaking = grow(self.remaking, self.models, room)
            self.models = grown(self.models, room)
        self.index.assign(arm, slot)
        return slot

    def survey(self, rows: np.ndarray, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray, float, int]:
        """Return means and widths (K,) of K arms, the factor that turns widths into units of rewards, and a number.

        The number is that of rows learned so far.

        - rows: (K, dim), or (1, dim) if all arms have the same row.
        - slots (K,): indices of the arms' models.
        """
        if self.models == ():
            return np.zeros(slots.size), np.ones(slots.size), 0.0, 0
        if self.forest == ():
            means, widths, unit = call_direct(self._code, survey, self.models, rows, slots)
        else:
            means, widths, unit = call_direct(self._code, survey_with_trees, self.models, self.forest, rows, slots)
        return means, widths, unit, int(self.models.counts[KNOWN])

    def choices(self) -> dict[str, Any]:
        """Return what the models have chosen so far, such as their weights and landmarks; {} before the first row.

        `AveragedModels.choices` describes the entries; "model" is not among them.
        """
        state = self.models
        if state == () or not state.plan.any():
            return {}
        w, width, sketched = weights(state), state.rows.shape[1], state.sketches.root.shape[1]
        believed = {
            name: float(one)
            for m, (name, one) in enumerate(zip(NAMES, w, strict=True))
            if asked(state.plan, sketched > 0, m)
        }
        if self.forest == ():
            residual = float(sigma_of(state, w))
        else:
            share = self.share()
            believed = {name: (1.0 - share) * one for name, one in believed.items()} | {"trees": share}
            residual = float(sigma_with_trees(state, self.forest, w, share))
        return {
            "weights": {name: round(one, 3) for name, one in believed.items()},
            "landmarks": [len(view.landmarks) for view in state.views],
            "directions": state.views[0].span.basis.shape[1] or sketched,
            "residual": residual,
            "prior": float(prior(state.rewards)),
            "unit": float(state.rewards.numbers[SPREAD]),
            "alarms": int(state.counts[ALARMS]),
            "bytes_per_arm": bytes_of(state.plan, width, sketched // 2),
        }

    def share(self) -> float:
        """Return the weight of the forest in means, 0 if there is none."""
        return 0.0 if self.forest == () else float(share_of(self.models, self.forest, raw_weights(self.models)))

    # ---- files ----

    def saved(self) -> Saved:
        """Return everything that a file of the models holds, as `Saved`."""
        return Saved(self.models, self.remaking, self.forest, object_array(list(self.index.names)), self.index.arm_ids)

    def restore(self, held: files.StateSource) -> None:
        """Replace the models by those in `held`, from a file. Raises ValueError if the content is inconsistent."""
        begun, landmarks = self.models, self.settings.n_landmarks
        works = begun != () and any(name.startswith("remaking.") for name in held.arrays)
        grows = begun != () and any(name.startswith("forest.") for name in held.arrays)
        forest = self.forest if grows else ()
        none = Saved(begun, begun_remaking(begun) if works else (), forest, object_array([]), np.zeros(0, np.int64))
        found: Saved = held.take(none, lambda saved: _fits(saved, begun, forest, landmarks))
        if len(set(found.names.tolist())) != len(found.names):
            raise ValueError("an arm is there twice")
        self.models, self.remaking, self.forest = found.mixture, found.remaking, found.forest
        self.index = ArmIndex(zip(found.names, found.slots.tolist(), strict=True))


def _fits(found: Saved, begun: Any, forest: Any, landmarks: int) -> bool:
    """Return True if the content of a file is consistent.

    - begun: models of the right width that have learned nothing.
    - forest: a forest that has learned nothing, () if the file has none.
    - landmarks: the largest number of landmarks allowed.
    """
    slots = found.slots[found.slots != NEVER].tolist()
    few = len(found.names) == len(found.slots) and len(set(slots)) == len(slots) and min(slots, default=0) >= 0
    if not few or begun == ():
        return few
    state, more, arms = found.mixture, found.remaking, max(slots, default=NEVER) + 1
    whole = consistent(state, begun, arms) and (
        found.forest == () == forest or (forest != () and forest_fits(found.forest, forest, len(state.last)))
    )
    return whole and (more == () or remaking_fits(more, state, begun, arms, landmarks))
