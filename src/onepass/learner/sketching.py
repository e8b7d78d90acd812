"""What FORKS and SkeGD share: a buffer learned by gradient descent, then an incremental sketched Nystrom map.

The first 2 B examples with a loss are kept, f = sum of a_i k(x_i, x) with a_i = -step l'(f). Once there are so many,
they are sketched. From then on f = w^T phi(x), and an example with a loss joins the sketches whenever enough losses
have passed since the last one did: `update_every` losses, or a share of all examples seen so far.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass import check
from onepass.features.embedding import embed
from onepass.features.landmarks import Landmarks
from onepass.features.sketched_nystrom import SketchedNystromState, absorb, sketched_nystrom
from onepass.generic import compiled
from onepass.learner.budget import Budget, budgeted, decided, put
from onepass.learner.newton import inner
from onepass.linalg import roomy


class Sketching(NamedTuple):
    """first: the buffer; places (s_m,): its landmarks; sketch: the map once `mapped`; phi (k,): scratch.

    seen: examples; losses: since the map was made or updated; every: losses, or share: of the seen, for an update.
    """

    first: Budget
    places: np.ndarray
    sketch: SketchedNystromState
    phi: np.ndarray
    mapped: bool
    seen: int
    losses: int
    every: int
    share: float


@compiled
def decided_by(state, w, x):
    """f(x); leaves phi(x) in state.phi."""
    if not state.mapped:
        return decided(state.first, x)
    embed(state.sketch, x, state.phi)
    return inner(w, state.phi)


@compiled
def passed(state):
    """The state after an example without a loss."""
    return Sketching(
        state.first, state.places, state.sketch, state.phi, state.mapped, state.seen + 1, state.losses, state.every,
        state.share,
    )  # fmt: skip


@compiled
def due(state):
    """Whether the map is made or changes with the next loss."""
    if not state.mapped:
        return state.first.used + 1 == state.first.weights.size
    if state.every > 0:
        return state.losses + 1 >= state.every
    return state.losses + 1 >= state.share * (state.seen + 1)


@compiled
def kept(state, x, weight):
    """The state after an example with a loss, in the buffer with this weight."""
    first, sketch, mapped, losses = state.first, state.sketch, state.mapped, state.losses + 1
    if not mapped:
        first, losses = put(first, first.used, x, weight), 0
    if due(state):
        losses = 0
        if mapped:
            sketch = absorb(sketch, x)
        else:
            mapped = True
            sketch = sketched_nystrom(
                roomy(first.points), first.used, state.places, sketch.pp.shape[0], state.phi.size, sketch.blocks,
                sketch.seed, first.precision,
            )  # fmt: skip
    return Sketching(
        first, state.places, sketch, state.phi, mapped, state.seen + 1, losses, state.every, state.share
    )  # fmt: skip


def begun(params: dict[str, Any], dim: int) -> Sketching:
    """Before the first example."""
    size, sample, rank = params["sketch_size"], params["sample_size"], params["rank"]
    first = budgeted(2 * params["budget"], dim, params["width"])
    places = np.random.default_rng(params["seed"]).choice(2 * params["budget"], sample, replace=False)
    features = Landmarks(np.zeros((sample, dim)), np.zeros((sample, rank)), np.zeros(sample), first.precision)
    sketch = SketchedNystromState(
        features, np.zeros((1, dim)), np.zeros((size, sample)), np.zeros((size, size)), np.zeros((0, size)),
        np.zeros(0), 0, params["blocks"], params["seed"],
    )  # fmt: skip
    every = params["update_every"]
    whole = isinstance(every, int)
    rates = (every, 0.0) if whole else (0, every)
    return Sketching(first, places, sketch, np.zeros(rank), False, 0, 0, *rates)


def sketch_sizes(
    budget: int, rank: int | None, sketch_size: int | None, sample_size: int | None, blocks: int,
    update_every: int | float, seed: int,
) -> dict[str, Any]:  # fmt: skip
    """The checked sizes, by default those of P4: s_p = B, s_m = s_p / 5, k = B / 10."""
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
            raise ValueError(f"update_every must be an integer, or a share above 0 and below 1, got {update_every!r}")
    else:
        update_every = check.integer("update_every", update_every, 1)
    return {
        "budget": budget,
        "rank": rank,
        "sketch_size": size,
        "sample_size": sample,
        "blocks": blocks,
        "update_every": update_every,
        "seed": check.integer("seed", seed, 0, 2**32 - 1),
    }
