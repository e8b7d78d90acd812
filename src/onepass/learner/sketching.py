"""The two stages of FORKS and SkeGD: a buffer learned by gradient descent, then an incremental sketched Nystrom map.

The first 2 B examples with a loss are stored, with f = sum of a_i k(x_i, x) and a_i = -step l'(f). Once there are 2 B,
they are sketched. From then on f = w^T phi(x), and an example with a loss is added to the sketches whenever enough
losses have passed since the last addition: `update_every` losses, or a share of all examples seen so far. FORKS can
count examples in place of losses. Then every `update_every`-th example is added, even without a loss.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.features.contract import copy_scratch, transform_row
from onepass.features.landmarks import Landmarks
from onepass.features.sketched_nystrom import SketchedNystromState, absorb, make_sketched_nystrom
from onepass.foundation import check
from onepass.foundation.check import quote
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import double_capacity
from onepass.foundation.state import is_abstract, zeros
from onepass.learner.budget import Budget, kernel_expansion, make_budget, put_example
from onepass.learner.newton import inner_product


class UpdateSchedule(NamedTuple):
    """Schedule by which a sketched feature map is updated, and its counters.

    - counts (3,): the number of examples seen; since the map was made or updated, the number of examples with a loss;
      and since then, the number of all examples.
    - every: number of counted examples after which an update is due; 0 if `share` is used.
    - share: an update is due once the examples counted since the last one are this fraction of all examples seen.
    - by_example: True if all examples are counted, False if only those with a loss.

    The counters are in an array, because a new state in every round would take a third of a round's time.
    """

    counts: np.ndarray
    every: int
    share: float
    by_example: bool


class Sketching(NamedTuple):
    """State of a learner that first keeps a buffer of examples, and then uses a sketched feature map made from it.

    - buffer: the first examples.
    - landmark_indices (s_m,): indices, in the buffer, of the s_m examples that become landmarks.
    - sketch: the feature map, in use once `mapped` is True.
    - phi (k,): work array for the k features of a row.
    - schedule: when the map is updated.
    """

    buffer: Budget
    landmark_indices: np.ndarray
    sketch: SketchedNystromState
    phi: np.ndarray
    mapped: bool
    schedule: UpdateSchedule


@copy_scratch.for_state(Sketching)
def copy_scratch_sketching(state: Sketching) -> Sketching:
    phi = np.empty(state.phi.size)
    return Sketching(
        buffer=copy_scratch(state.buffer),
        landmark_indices=state.landmark_indices,
        sketch=copy_scratch(state.sketch),
        phi=phi,
        mapped=state.mapped,
        schedule=state.schedule,
    )


@compiled
def two_stage_decision(
    buffer: Budget, features: Landmarks, phi: np.ndarray, mapped: bool, w: np.ndarray, x: np.ndarray
) -> float:
    """Return the prediction f(x), from `buffer` or, if `mapped` is True, from the feature map `features`.

    `buffer` holds the examples, and `w` the weights of the mapped features. The mapped features of x are written to
    `phi`.
    """
    if not mapped:
        return kernel_expansion(buffer, x)
    transform_row(features, x, phi)
    return inner_product(w, phi)


@compiled
def count_regular_round(schedule: UpdateSchedule, mapped: bool, gradient: float) -> bool:
    """Count an example if it changes neither the buffer nor the feature map, and return True; otherwise return False.

    `mapped` is True once there is a map, and `gradient` is the derivative of the loss, 0 without a loss.
    """
    counts, loss = schedule.counts, gradient != 0.0
    if not mapped:
        if loss:
            return False
    elif loss or schedule.by_example:
        after = schedule.every if schedule.every > 0 else schedule.share * (counts[0] + 1)
        if counts[2 if schedule.by_example else 1] + 1 >= after:
            return False
    counts[0] += 1
    counts[1] += loss
    counts[2] += 1
    return True


@compiled
def absorb_example(state: Sketching, x: np.ndarray, weight: float) -> Sketching:
    """Return the state after the row x was added to the buffer with this weight, or to the sketched feature map.

    When the buffer is full, the feature map is made from it.
    """
    buffer, sketch, mapped, counts = state.buffer, state.sketch, state.mapped, state.schedule.counts
    if mapped:
        sketch = absorb(sketch, x)
    else:
        buffer = put_example(buffer, buffer.used, x, weight)
        if buffer.used == buffer.weights.size:
            sketch, mapped = (
                make_sketched_nystrom(
                    double_capacity(buffer.points),
                    buffer.used,
                    state.landmark_indices,
                    sketch.pp.shape[0],
                    state.phi.size,
                    sketch.blocks,
                    sketch.seed,
                    buffer.precision,
                ),
                True,
            )
    counts[0] += 1
    counts[1], counts[2] = 0, 0
    return Sketching(
        buffer=buffer,
        landmark_indices=state.landmark_indices,
        sketch=sketch,
        phi=state.phi,
        mapped=mapped,
        schedule=state.schedule,
    )


def draw_landmarks(params: dict[str, Any]) -> np.ndarray:
    """Return the indices (s_m,) of the buffer's examples that become landmarks, drawn by the seed in `params`."""
    rng = np.random.default_rng(params["seed"])
    return rng.choice(2 * params["budget"], params["sample_size"], replace=False)


def init_sketching(params: dict[str, Any], dim: int) -> Sketching:
    """Return the state of buffer and feature map before the first example, for rows of width `dim`.

    `params` holds `width` and the result of `check_sketch_sizes`, and may hold `count`, an argument of `FORKS`.
    """
    size, sample, rank = params["sketch_size"], params["sample_size"], params["rank"]
    buffer = make_budget(2 * params["budget"], dim, params["width"])
    landmark_indices = zeros(sample, dtype=np.int64) if is_abstract() else draw_landmarks(params)
    features = Landmarks(
        points=zeros(sample, dim), z=zeros(sample, rank), near=zeros(sample), precision=buffer.precision
    )
    sketch = SketchedNystromState(
        features=features,
        points=zeros(1, dim),
        pm=zeros(size, sample),
        pp=zeros(size, size),
        vectors=zeros(0, size),
        values=zeros(0),
        used=0,
        blocks=params["blocks"],
        seed=params["seed"],
    )
    every = params["update_every"]
    whole = isinstance(every, int)
    schedule = UpdateSchedule(
        counts=zeros(3, dtype=np.int64),
        every=every if whole else 0,
        share=0.0 if whole else every,
        by_example=params.get("count") == "examples",
    )
    return Sketching(
        buffer=buffer,
        landmark_indices=landmark_indices,
        sketch=sketch,
        phi=zeros(rank),
        mapped=False,
        schedule=schedule,
    )


def check_sketch_sizes(
    budget: int,
    rank: int | None,
    sketch_size: int | None,
    sample_size: int | None,
    blocks: int,
    update_every: int | float,
    seed: int,
) -> dict[str, Any]:
    """Return the checked arguments of a sketched learner as a dictionary, by their names.

    They are the sizes of the buffer, the random sketch and the feature map, its update schedule, and a seed.
    Defaults follow Wen, Zhang et al.: sketch_size = budget, sample_size = sketch_size / 5, rank = budget / 10.
    """
    budget = check.integer("budget", budget, 2)
    size = check.integer("sketch_size", budget if sketch_size is None else sketch_size, 1)
    sample = check.integer("sample_size", max(size // 5, 1) if sample_size is None else sample_size, 1, 2 * budget)
    top = min(size, sample)
    rank = check.integer("rank", min(max(budget // 10, 1), top) if rank is None else rank, 1, top)
    blocks = check.integer("blocks", blocks, 1, size)
    if size % blocks:
        raise ValueError(f"blocks must divide sketch_size={size}, got {blocks}")
    if isinstance(update_every, float | np.floating):
        update_every = float(update_every)
        if not 0.0 < update_every < 1.0:
            raise ValueError(
                f"update_every must be an integer, or a share above 0 and below 1, got {quote(update_every)}"
            )
    else:
        update_every = check.integer("update_every", update_every, 1)
    return {
        "budget": budget,
        "rank": rank,
        "sketch_size": size,
        "sample_size": sample,
        "blocks": blocks,
        "update_every": update_every,
        "seed": check.integer("seed", seed, 0, check.LARGEST_SEED),
    }
