"""What FORKS and SkeGD share: a buffer learned by gradient descent, then an incremental sketched Nystrom map.

The first 2 B examples with a loss are kept, f = sum of a_i k(x_i, x) with a_i = -step l'(f). Once there are so many,
they are sketched. From then on f = w^T phi(x), and an example with a loss joins the sketches whenever enough losses
have passed since the last one did: `update_every` losses, or a share of all examples seen so far.
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
from onepass.learner.budget import Budget, budgeted, decided, put
from onepass.learner.newton import inner


class Clock(NamedTuple):
    """tally (2,): examples seen, and losses since the map was made or updated; every: losses, or share: of the seen.

    Counters in an array, so that a regular round needs no new state: that took a third of its time.
    """

    tally: np.ndarray
    every: int
    share: float


class Sketching(NamedTuple):
    """first: the buffer; places (s_m,): its landmarks; sketch: the map once `mapped`; phi (k,): scratch."""

    first: Budget
    places: np.ndarray
    sketch: SketchedNystromState
    phi: np.ndarray
    mapped: bool
    clock: Clock


@copy_scratch.for_state(Sketching)
def apart_sketching(state):
    phi = np.empty(state.phi.size)
    return Sketching(
        first=copy_scratch(state.first),
        places=state.places,
        sketch=copy_scratch(state.sketch),
        phi=phi,
        mapped=state.mapped,
        clock=state.clock,
    )


@compiled
def decided_by(first, features, phi, mapped, w, x):
    """f(x); leaves phi(x) in phi once there is a map. A call costs by the arrays that it is given."""
    if not mapped:
        return decided(first, x)
    transform_row(features, x, phi)
    return inner(w, phi)


@compiled
def regular(clock, mapped, gradient):
    """Whether neither the buffer nor the map changes; then the round is counted."""
    tally, loss = clock.tally, gradient != 0.0
    if loss:
        after = clock.every if clock.every > 0 else clock.share * (tally[0] + 1)
        if not mapped or tally[1] + 1 >= after:
            return False
    tally[0] += 1
    tally[1] += loss
    return True


@compiled
def kept(state, x, weight):
    """The state after a round that is not regular: x joins the buffer with this weight, or the sketches."""
    first, sketch, mapped, tally = state.first, state.sketch, state.mapped, state.clock.tally
    if mapped:
        sketch = absorb(sketch, x)
    else:
        first = put(first, first.used, x, weight)
        if first.used == first.weights.size:
            sketch, mapped = (
                make_sketched_nystrom(
                    double_capacity(first.points),
                    first.used,
                    state.places,
                    sketch.pp.shape[0],
                    state.phi.size,
                    sketch.blocks,
                    sketch.seed,
                    first.precision,
                ),
                True,
            )
    tally[0] += 1
    tally[1] = 0
    return Sketching(first=first, places=state.places, sketch=sketch, phi=state.phi, mapped=mapped, clock=state.clock)


def landmark_places(params: dict[str, Any]) -> np.ndarray:
    """Which of the examples in the buffer become landmarks (s_m,)."""
    rng = np.random.default_rng(params["seed"])
    return rng.choice(2 * params["budget"], params["sample_size"], replace=False)


def begun(params: dict[str, Any], dim: int) -> Sketching:
    """Before the first example."""
    size, sample, rank = params["sketch_size"], params["sample_size"], params["rank"]
    first = budgeted(2 * params["budget"], dim, params["width"])
    places = zeros(sample, dtype=np.int64) if is_abstract() else landmark_places(params)
    features = Landmarks(
        points=zeros(sample, dim), z=zeros(sample, rank), near=zeros(sample), precision=first.precision
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
    clock = Clock(tally=zeros(2, dtype=np.int64), every=every if whole else 0, share=0.0 if whole else every)
    return Sketching(first=first, places=places, sketch=sketch, phi=zeros(rank), mapped=False, clock=clock)


def sketch_sizes(
    budget: int,
    rank: int | None,
    sketch_size: int | None,
    sample_size: int | None,
    blocks: int,
    update_every: int | float,
    seed: int,
) -> dict[str, Any]:
    """The checked sizes, by default those of Wen, Zhang et al.: s_p = B, s_m = s_p / 5, k = B / 10."""
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
