"""Rebuilding of the views (view.py) from the first rows, which are then learned again, in small steps.

    scales of n = 1, 2, 4, ..., warm_up rows;  directions, FOLD rows at a time, of wide ones;  landmarks, view by view;
    models, fewer where memory is short;  the rows so far and those that came since, in their order

Every new row does a slice of this work. Until all rows have been learned again, the bandit decides by its present
models. Then the new models replace them at once. A slice ends once its cost exceeds WORK. The cost is computed from
sizes of arrays and not from time, so a replay is exact. With fewer than AT_LEAST rows everything is done at once.
Unfinished work is part of the state (`Remaking`). It is copied and saved, gets new columns, and forgets arms together
with the models. Rows that come after the warm-up are stored meanwhile, up to SPARE of them; if that is not enough, the
rest of the work is done at once.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.foundation.state import zeros
from onepass.model.averaged.mixture import (
    ALARMS,
    CLOCK,
    KNOWN,
    NEVER,
    RANKED,
    RAW,
    SIZE,
    SKETCH_MODEL,
    STANDARD,
    Mixture,
    begin_arm,
    begun_mixture,
    bytes_of,
    choice,
    consistent,
    erase,
    forget,
    grown,
    learn_again,
    make_plan,
    model_of_sketches,
)
from onepass.model.averaged.new_columns import widened, wider
from onepass.model.averaged.regression import length
from onepass.model.averaged.sketches import FEWEST_KEPT, ROWS_KEPT, Sketches, dense_size, no_sketches, sketches_fit
from onepass.model.averaged.span import FOLD, LEAST, directions, folded, span_of
from onepass.model.averaged.view import (
    AT_ONCE,
    SPARSE,
    View,
    rank_columns,
    raw_alone,
    scaled_views,
    standardized,
    view_fits,
    with_landmarks,
)

WORK = 5_000_000  # of a call, in numbers of a model that learning reads: some 1.3 ms
ROW, STEP = 10_000, 600_000  # that a row and a step cost beside their numbers
SCALES, RANKS = 10, 60  # that a number costs of which scales, or ranks, are made
DENSE = 4  # that a number of a sketch of dense rows costs, for it is read several times
AT_LEAST = 8  # rows that a call learns again, whatever they cost
VIEWS_MADE, LEARNING = 3, 4  # stages: before them the number of the view that is made
ROWS, STAGE, DONE, NEXT, LANDMARKS, ACROSS, KEPT = range(7)  # places in `Remaking.progress`
FIELDS = (
    "views",
    "plan",
    "scores",
    "theta",
    "tau",
    "inverse",
    "last",
    "learned",
    "tails",
    "counts",
    "sketches",
)  # as of a `Mixture`


class Remaking(NamedTuple):
    """State of the work of building feature maps (views) and models again from the first rows, in small steps.

    - progress (7,): number of rows used; stage of the work (0 to 2: the map that is built, 3: all maps are built, 4:
      rows are learned again); number of rows or columns processed for the current map; next row to be learned again;
      largest numbers of landmarks, of main directions and of rows of a sketch.
    - fold (k, d): for maps of wide rows, k main directions of the rows processed so far. For the map on ranks, the
      normal scores of the ranks (`rank_columns`) of all k rows, in the columns processed so far.
    - added (2, n): values in earlier rows, and scales, of columns that were created during the work. They are appended
      to the rows and maps when the work ends.

    The other fields are those of `Mixture`. They are used once all maps are built.
    """

    progress: np.ndarray
    fold: np.ndarray
    added: np.ndarray
    views: tuple[View, View, View]
    plan: np.ndarray
    scores: np.ndarray
    theta: np.ndarray
    tau: np.ndarray
    inverse: np.ndarray
    last: np.ndarray
    learned: np.ndarray
    tails: np.ndarray
    counts: np.ndarray
    sketches: Sketches


def spare(warm_up: int) -> int:
    """Return how many rows are stored in addition to the `warm_up` rows of the warm-up."""
    return 16 + warm_up // 4


def is_due(seen: int, warm_up: int) -> bool:
    """Return True if the feature maps are rebuilt after `seen` rows: at powers of 2, and after `warm_up` rows."""
    return seen & (seen - 1) == 0 or seen == warm_up


def begun_remaking(begun: Mixture) -> Remaking:
    """Return the state of a rebuilding of feature maps before the first step.

    `begun` is the state of averaged models of the right width that have learned nothing.
    """
    same = {name: getattr(begun, name) for name in FIELDS}
    return Remaking(
        progress=zeros(KEPT + 1, dtype=np.int64), fold=zeros(0, begun.rows.shape[1]), added=zeros(2, 0), **same
    )


def start(state: Mixture, landmarks: int) -> Remaking:
    """Return the initial state of building the feature maps again from all rows so far.

    `landmarks` is the largest number of landmarks.
    """
    rows = state.rows[: state.counts[CLOCK]]
    across = directions(rows.shape[1])
    kept = ROWS_KEPT if across > 0 and np.mean(rows == 0.0) > SPARSE else 0
    return scaled(rows, landmarks, across, kept, np.zeros((2, 0)))


def scaled(rows: np.ndarray, landmarks: int, across: int, kept: int, added: np.ndarray) -> Remaking:
    """Return the initial state of building feature maps: maps with the scales of rows (n, d), without landmarks.

    - rows (n, d): the n rows learned so far.
    - landmarks, across, kept: largest numbers of landmarks, of main directions and of rows of a sketch.
    - added (2, c): values in earlier rows, and scales, of c columns that were created meanwhile.
    """
    bare = begun_remaking(begun_mixture(rows.shape[1], 0, 1.0))
    bare.progress[:] = len(rows), VIEWS_MADE if kept else STANDARD, 0, 0, landmarks, across, kept
    views = raw_alone(rows) if kept else (*scaled_views(rows), bare.views[RANKED])
    return bare._replace(added=added, views=views)


def joined(state: Mixture, remaking: Remaking) -> Mixture:
    """Return the state `state` of averaged models with the rebuilt feature maps and models in place of its own."""
    remaking.counts[CLOCK], remaking.counts[ALARMS] = state.counts[CLOCK], state.counts[ALARMS]
    return state._replace(**{name: getattr(remaking, name) for name in FIELDS})


def parted(state: Mixture, remaking: Remaking) -> Remaking:
    """Return the state `remaking` of a rebuilding with the feature maps and models of `state` in place of its own."""
    return remaking._replace(**{name: getattr(state, name) for name in FIELDS})


# ---- a slice ----


def go_on(state: Mixture, remaking: Remaking, arms: int, memory: float, seed: int, warm_up: int) -> tuple[Mixture, Any]:
    """Do one step of rebuilding feature maps and models; return the state and the remaining work, () if all is done.

    At the end the state gets the new maps and models. `arms` is the number of known arms, `memory` the largest memory
    of their models in bytes, `seed` the seed of the landmarks, and `warm_up` the number of rows from which the last
    maps are built.
    """
    progress, clock = remaking.progress, state.counts[CLOCK]
    most = np.inf if clock >= len(state.rows) or progress[ROWS] < AT_LEAST else WORK
    spent = SCALES * remaking.fold.shape[1] * clock if clock == progress[ROWS] else 0
    while True:
        cost = step_cost(remaking)
        if spent > 0 and spent + cost > most:
            return state, remaking
        if progress[STAGE] == LEARNING:
            break
        remaking = (
            with_models(state, remaking, arms, memory)
            if progress[STAGE] == VIEWS_MADE
            else seen_further(state, remaking, seed)
        )
        progress, spent = remaking.progress, spent + cost
    made, first = joined(state, remaking), progress[NEXT]
    progress[NEXT] = begun_rows(made, first, most - spent)
    learn_again(made, first, progress[NEXT])
    if progress[NEXT] < clock:
        return state, remaking
    return made._replace(rows=made.rows[:0].copy()) if progress[ROWS] == warm_up else made, ()


def step_cost(remaking: Remaking) -> int:
    """Return the cost of the next step of a rebuilding, in elementary operations.

    For a step that learns rows again, it is the cost of 8 rows.
    """
    count, stage, done, _, landmarks, across, _ = remaking.progress.tolist()
    dim = remaking.fold.shape[1]
    if stage == LEARNING:
        return AT_LEAST * row_cost(remaking)
    if stage == VIEWS_MADE:
        return STEP
    if across > 0 and done < count:
        rows = len(remaking.fold) + min(FOLD, count - done)
        return STEP + rows * rows * (dim // 6 + rows * 5 // 4)
    if stage == RANKED and done < dim:
        return STEP + RANKS * count * min(AT_ONCE, dim - done)
    some, width = min(count, landmarks), across or dim
    return STEP + SCALES * count * dim + some * some * (40 + some // 4 + width // 12)


def row_cost(models: Mixture | Remaking) -> int:
    """Return the cost of learning one row in all models, in elementary operations."""
    near = sum(view.half.size // 2 + view.landmarks.size + view.span.basis.size for view in models.views)
    times = DENSE if model_of_sketches(models.plan) == SKETCH_MODEL else 1
    return ROW + near + models.inverse.shape[1] + times * models.sketches.basis[:1].size


def begun_rows(made: Mixture, first: int, most: float) -> int:
    """Return the index after the last stored row, from `first` on, that can be learned again at the cost `most`.

    The cost is in elementary operations, as in `row_cost`. At least 8 rows are taken, whatever they cost. The models of
    the rows' arms are initialized in `made`, which costs as much as learning a row.
    """
    cost, last, known = row_cost(made), first, made.last.tolist()
    for arm in made.arms[first : made.counts[CLOCK]].tolist():
        begins = arm != NEVER and known[arm] == NEVER
        most -= cost + cost * begins
        if most < 0.0 and last - first >= AT_LEAST:
            break
        if begins:
            begin_arm(made, arm)
            known[arm] = first
        last += 1
    return last


def seen_further(state: Mixture, remaking: Remaking, seed: int) -> Remaking:
    """Return the state of a rebuilding after one more step on the feature map that is being built.

    A step updates the main directions by some rows, ranks some columns, or chooses the landmarks of the map. `state` is
    the state of the averaged models, and `seed` the seed of the landmarks.
    """
    count, stage, done, _, landmarks, across, _ = remaking.progress.tolist()
    view, fold, dim = remaking.views[stage], remaking.fold, remaking.fold.shape[1]
    rows, progress = state.rows[:count, :dim], remaking.progress.copy()
    if across > 0 and done < count:
        progress[DONE] = min(done + FOLD, count)
        fold = folded(fold, standardized(view, rows[done : progress[DONE]]), across)
        if progress[DONE] == count:
            span = span_of(fold, standardized(view, np.zeros((1, dim)))[0])
            view = view._replace(span=span, landmarks=np.zeros((0, span.basis.shape[1] + 2), np.float32))
            fold = fold[:0].copy()
    elif stage == RANKED and done < dim:
        progress[DONE] = min(done + AT_ONCE, dim)
        fold = fold.copy() if done > 0 else np.zeros((count, dim))
        view, fold[:, done : progress[DONE]] = rank_columns(view, rows, remaking.views[STANDARD].unit > 0.0, done)
    else:
        z = fold if stage == RANKED else standardized(view, rows)
        view = with_landmarks(view, z, landmarks, orders(seed, count)[2 * stage : 2 * stage + 2])
        fold, last = fold[:0].copy(), RAW if across > 0 else RANKED
        progress[STAGE], progress[DONE] = VIEWS_MADE if stage == last else stage + 1, 0
    standard, raw, ranked = (view if i == stage else one for i, one in enumerate(remaking.views))
    return remaking._replace(progress=progress, fold=fold, views=(standard, raw, ranked))


def orders(seed: int, count: int) -> list[np.ndarray]:
    """Return six random permutations of `count` rows, two for each of the three feature maps."""
    rng = np.random.default_rng([seed, count])
    return [rng.permutation(count) for _ in range(2 * VIEWS_MADE)]


def with_models(state: Mixture, remaking: Remaking, arms: int, memory: float) -> Remaking:
    """Return the rebuilding with new models that have learned nothing, once all feature maps are built.

    `arms` is the number of known arms, and `memory` the largest memory of their models in bytes. If the models are too
    large, the map on ranks and the sketches of dense rows are left out; if that does not suffice, the rebuilding starts
    again with half the landmarks and main directions.
    """
    count, _, _, _, size, across, kept = remaking.progress.tolist()
    views, rows = remaking.views, state.rows[:count]
    if remaking.added.size > 0:
        fills, sizes = remaking.added
        views = wider(views[0], fills, sizes), wider(views[1], fills, sizes), wider(views[2], fills, sizes)
    dim = rows.shape[1]
    plans = [make_plan(views, choice(rows, size, ranked)) for ranked in (True, False)]
    sketches = (dense_size(dim), 0) if across > 0 and across == directions(dim) and not kept else (kept,)
    least = kept <= FEWEST_KEPT if kept else size == 0 and across <= LEAST
    fitting = [
        (plan, one)
        for one in sketches
        for plan in plans
        if (least and one == sketches[-1]) or arms * bytes_of(plan, dim, one) <= memory
    ]
    if not fitting:
        fewer = max(across // 2, LEAST) if across else 0
        return scaled(rows[:, : remaking.fold.shape[1]], size // 2, fewer, kept // 2, remaking.added)
    plan, sketch = fitting[0]
    bare = state._replace(
        views=views,
        plan=plan,
        scores=np.zeros_like(state.scores),
        counts=np.zeros_like(state.counts),
        last=state.last[:0],
        theta=np.zeros((0, int(plan[:, SIZE].sum())), np.float32),
        tau=np.zeros((0, int(plan[:, SIZE].sum())), np.float32),
        inverse=np.zeros((0, int(length(plan[:, SIZE]).sum())), np.float32),
        learned=state.learned[:0],
        tails=state.tails[:0],
        sketches=no_sketches(0, dim, sketch),
    )
    remaking.progress[STAGE] = LEARNING
    more = remaking._replace(fold=np.zeros((0, dim)), added=np.zeros((2, 0)))
    return parted(grown(bare, len(state.last)), more)


# ---- what comes in between ----


def widen(remaking: Remaking, state: Mixture, fills: np.ndarray, sizes: np.ndarray) -> Remaking:
    """Return the rebuilding of feature maps with n columns appended to the rows.

    `state` is the state of the averaged models without these columns. `fills` (n,) is the value of each new column in
    all earlier rows. `sizes` (n,) is the scale of its numbers, 0 for a 0/1 column.
    """
    if remaking.progress[STAGE] < LEARNING:
        return remaking._replace(added=np.hstack([remaking.added, np.stack([fills, sizes])]))
    wide = parted(widened(joined(state, remaking), fills, sizes), remaking)
    return wide._replace(fold=np.zeros((0, state.rows.shape[1] + len(fills))))


def grow(remaking: Remaking, state: Mixture, slots: int) -> Remaking:
    """Return the rebuilding `remaking` with room for the models of `slots` arms; `state` holds the present models."""
    begun = remaking.progress[STAGE] == LEARNING
    return parted(grown(joined(state, remaking), slots), remaking) if begun else remaking


def drop(remaking: Remaking, state: Mixture, slot: int) -> None:
    """Forget the arm at index `slot` in the models that are being rebuilt; `state` holds the present models."""
    if remaking.progress[STAGE] == LEARNING:
        erase(joined(state, remaking), slot)


def drop_all(remaking: Remaking, state: Mixture) -> None:
    """Forget all arms in the models that are being rebuilt, after an alarm; `state` holds the present models."""
    if remaking.progress[STAGE] == LEARNING:
        forget(joined(state, remaking))


# ---- files ----


def remaking_fits(remaking: Remaking, state: Mixture, begun: Mixture, arms: int, landmarks: int) -> bool:
    """Return True if a rebuilding read from a file is consistent with the averaged models `state`.

    - begun: averaged models of the right width that have learned nothing.
    - arms: number of arms for which there must be room.
    - landmarks: the largest number of landmarks allowed.
    """
    dim, clock, template = begun.rows.shape[1], int(state.counts[CLOCK]), begun_remaking(begun)
    if any(
        getattr(remaking, name).shape != getattr(template, name).shape
        for name in ("progress", "plan", "scores", "counts")
    ):
        return False
    count, stage, done, following, size, across, kept = remaking.progress.tolist()
    width, known = remaking.fold.shape[1], int(remaking.counts[KNOWN])
    if not (
        1 <= count <= clock <= len(state.rows)
        and STANDARD <= stage <= LEARNING
        and 0 <= done <= (0 if stage >= VIEWS_MADE else width if stage == RANKED else count if across else 0)
        and 0 <= following <= clock
        and 0 <= size <= landmarks
        and 0 <= across <= directions(dim)
        and 0 <= kept <= (ROWS_KEPT if across else 0)
        and len(remaking.fold) == (count if done and stage == RANKED else len(remaking.fold) if 0 < done < count else 0)
        and (stage == RANKED or len(remaking.fold) <= across)
        and remaking.added.shape == (2, dim - width)
        and 0 <= known <= following
    ):
        return False
    if stage == LEARNING:
        return width == dim and consistent(joined(state, remaking), begun, arms)
    return (
        following == 0
        and (stage != RANKED or across == 0)
        and (stage == VIEWS_MADE or kept == 0)
        and all(view_fits(view, width) for view in remaking.views)
        and remaking.theta.shape == remaking.tau.shape == remaking.inverse.shape == (0, 0)
        and remaking.last.size == remaking.learned.size == len(remaking.tails) == 0
        and sketches_fit(remaking.sketches, np.zeros(0, np.bool_), width)
    )
