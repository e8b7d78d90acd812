"""SkeGD (Zhang and Liao 2019): gradient descent on an incremental sketched Nystrom map.

    1.  f = sum of a_i k(x_i, x); on a loss x is stored in the buffer with a = -step l'(f)
    2.  f = w^T phi(x); on a loss  w <- w - step l'(f) phi(x)

Whenever the map is made or changes, w becomes the least-squares fit of f at the landmarks, which keeps what was
learned. This is our choice: the published program is not available, and first-order steps would take long to
learn again what the reset of FORKS forgets.

Choose a sketch size s_p of at least 2 s_m, for s_m landmarks. With a smaller one, the pseudo-inverse of a nearly square
random matrix makes features long (||phi||^2 of 6,000 instead of 1 for s_p = s_m = k), and first-order steps diverge,
unlike those of FORKS.

Buffer, sketches and their updates are shared with FORKS. A round of stage 2 costs O(s_m (d + k)) and allocates nothing.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.features.contract import copy_scratch, transform_row
from onepass.features.sketched_nystrom import CUT
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import svd
from onepass.foundation.registry import savable
from onepass.foundation.state import zeros
from onepass.learner import contract, sketching
from onepass.learner.consistency import sketching_fits
from onepass.learner.explanation import Reason, sketching_terms
from onepass.learner.learner import Learner, check_common
from onepass.learner.losses import Loss, make_loss, slope
from onepass.learner.sketching import (
    Sketching,
    absorb_example,
    check_sketch_sizes,
    count_regular_round,
    two_stage_decision,
)


class SkeGDState(NamedTuple):
    """State of `SkeGD`: `sketching` holds the first examples and the feature map, and w (k,) the weights.

    The other fields are settings of `SkeGD`.
    """

    sketching: Sketching
    w: np.ndarray
    loss: Loss
    step: float


@compiled
def _fit_at_landmarks(w: np.ndarray, before: Sketching, after: Sketching) -> None:
    """Fit w in place by least squares, so that the map `after` gives the f of the map `before` at the landmarks."""
    landmarks, phi = after.sketch.features.points, after.phi
    values, rows = np.empty(landmarks.shape[0]), np.empty((landmarks.shape[0], phi.size))
    for i in range(values.size):
        values[i] = two_stage_decision(after.buffer, before.sketch.features, phi, before.mapped, w, landmarks[i])
    for i in range(values.size):
        transform_row(after.sketch.features, landmarks[i], phi)
        for j in range(phi.size):
            rows[i, j] = phi[j]
    left, singular, right = svd(rows)
    fitted = np.zeros(w.size)
    for i in range(singular.size):
        if singular[i] > CUT * singular[0]:
            part = 0.0
            for n in range(values.size):
                part += left[n, i] * values[n]
            for j in range(w.size):
                fitted[j] += part / singular[i] * right[i, j]
    for j in range(w.size):
        w[j] = fitted[j]


@copy_scratch.for_state(SkeGDState)
def copy_scratch_skegd(state: SkeGDState) -> SkeGDState:
    return SkeGDState(sketching=copy_scratch(state.sketching), w=state.w, loss=state.loss, step=state.step)


@contract.decision.for_state(SkeGDState)
def decision(state: SkeGDState, x: np.ndarray) -> float:
    found = state.sketching
    return two_stage_decision(found.buffer, found.sketch.features, found.phi, found.mapped, state.w, x)


@contract.step.for_state(SkeGDState)
def step(state: SkeGDState, x: np.ndarray, y: float) -> tuple[SkeGDState, float]:
    found, w = state.sketching, state.w
    f = two_stage_decision(found.buffer, found.sketch.features, found.phi, found.mapped, w, x)
    gradient = slope(state.loss, f, y)
    if gradient != 0.0 and found.mapped:
        for j in range(w.size):
            w[j] -= state.step * gradient * found.phi[j]
    if count_regular_round(found.schedule, found.mapped, gradient):
        return state, f
    after = absorb_example(found, x, -state.step * gradient)
    if after.mapped:
        _fit_at_landmarks(w, found, after)
    return SkeGDState(sketching=after, w=w, loss=state.loss, step=state.step), f


@savable
class SkeGD(Learner):
    """Gradient descent on features of a kernel, from a sketch of the kernel matrix that is updated with the stream.

    Parameters
    ----------
    budget : int, default 50
        The learner keeps the first 2 * budget examples with a loss before it makes the sketch; at least 2.
    rank : int, optional
        Number of features, from 1 to the smaller of sketch_size and sample_size. Defaults to a tenth of the budget.
    sketch_size : int, optional
        Number of rows of the sketch, at least 1. Defaults to the budget.
    sample_size : int, optional
        Number of landmarks, from 1 to 2 * budget. Defaults to a fifth of sketch_size.
    blocks : int, default 1
        Number of blocks of the random sketch, at least 1, a divisor of sketch_size.
    update_every : int or float, default 0.3
        Number of examples with a loss between updates of the sketch. Below 1 it is their share of all examples so far.
        Each update keeps one more example. So with an integer, memory and the time of an update grow for ever.
    width : float, default 1.0
        Width of the kernel exp(-||x - y||^2 / (2 width^2)), in the unit of x, above 0.
    loss : str, default "hinge"
        Loss: "hinge", "squared_hinge" or "logistic" for targets -1 and 1; "squared", "huber" or
        "epsilon_insensitive" for numbers. See onepass.learner.losses.
    loss_width : float, default 1.0
        Width of the huber and epsilon_insensitive losses, in the unit of targets, above 0.
    step : float, default 0.2
        Step size, above 0.
    seed : int, default 0
        Seed of the sketches, from 0 to 2^32 - 1.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Examples
    --------
    >>> import numpy as np, onepass as op
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.standard_normal((2000, 2))
    >>> labels = np.sign(rows[:, 0] * rows[:, 1])
    >>> found = op.progressive_validation(op.learner.SkeGD(budget=100, rank=20, sample_size=50), rows, labels)
    >>> found.mistakes[1000:].mean() < 0.25
    np.True_
    """

    def __init__(
        self,
        *,
        budget: int = 50,
        rank: int | None = None,
        sketch_size: int | None = None,
        sample_size: int | None = None,
        blocks: int = 1,
        update_every: int | float = 0.3,
        width: float = 1.0,
        loss: str = "hinge",
        loss_width: float = 1.0,
        step: float = 0.2,
        seed: int = 0,
    ) -> None:
        self.params: dict[str, Any] = {
            **check_sketch_sizes(budget, rank, sketch_size, sample_size, blocks, update_every, seed),
            **check_common(width, loss, loss_width, step),
        }
        self._state = None

    def _terms(self, x: np.ndarray, names: tuple[str, ...], decision: float) -> list[Reason]:
        return sketching_terms(self._state.sketching, self._state.w, x)

    def begin(self, dim: int) -> SkeGDState:
        p = self.params
        loss = make_loss(p["loss"], p["loss_width"])
        return SkeGDState(sketching=sketching.init_sketching(p, dim), w=zeros(p["rank"]), loss=loss, step=p["step"])

    def fits(self, state: Any, begun: Any) -> bool:
        return sketching_fits(self, state, begun)
