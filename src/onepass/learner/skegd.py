"""SkeGD (Zhang and Liao 2019): gradient descent on an incremental sketched Nystrom map.

    1.  f = sum of a_i k(x_i, x); on a loss x joins the buffer with a = -step l'(f)
    2.  f = w^T phi(x); on a loss  w <- w - step l'(f) phi(x)

Where the map is made or changes, w becomes the least-squares fit of f at the landmarks, so that what was learned is
kept; the published program is not at hand, and FORKS' reset would lose what first-order steps take long to learn again.
With s_p below 2 s_m the pseudo-inverse of a nearly square random matrix makes features long (||phi||^2 of 6,000 instead
of 1 at s_p = s_m = k), and first-order steps, unlike FORKS', diverge: keep to s_p >= 2 s_m.
Buffer, sketches and their updates are those of FORKS. A round of stage 2 costs O(s_m (d + k)) and allocates nothing.
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
from onepass.learner.consistency import sketched_stream
from onepass.learner.explaining import Reason, of_sketching
from onepass.learner.learner import Learner, common
from onepass.learner.losses import Loss, loss_named, slope
from onepass.learner.sketching import Sketching, decided_by, kept, regular, sketch_sizes


class SkeGDState(NamedTuple):
    """sketching: buffer and map; w (k,)."""

    sketching: Sketching
    w: np.ndarray
    loss: Loss
    step: float


@compiled
def fit(w, before, after):
    """w, in place: the least-squares fit of the new map to what f was at the landmarks."""
    landmarks, phi = after.sketch.features.points, after.phi
    values, rows = np.empty(landmarks.shape[0]), np.empty((landmarks.shape[0], phi.size))
    for i in range(values.size):
        values[i] = decided_by(after.first, before.sketch.features, phi, before.mapped, w, landmarks[i])
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
def apart_skegd(state):
    return SkeGDState(sketching=copy_scratch(state.sketching), w=state.w, loss=state.loss, step=state.step)


@contract.decision.for_state(SkeGDState)
def decision(state, x):
    found = state.sketching
    return decided_by(found.first, found.sketch.features, found.phi, found.mapped, state.w, x)


@contract.step.for_state(SkeGDState)
def step(state, x, y):
    found, w = state.sketching, state.w
    f = decided_by(found.first, found.sketch.features, found.phi, found.mapped, w, x)
    gradient = slope(state.loss, f, y)
    if gradient != 0.0 and found.mapped:
        for j in range(w.size):
            w[j] -= state.step * gradient * found.phi[j]
    if regular(found.clock, found.mapped, gradient):
        return state, f
    after = kept(found, x, -state.step * gradient)
    if after.mapped:
        fit(w, found, after)
    return SkeGDState(sketching=after, w=w, loss=state.loss, step=state.step), f


@savable
class SkeGD(Learner):
    """Gradient descent on an incremental sketch; see onepass.learner.skegd.

    budget, rank, sketch_size, sample_size, blocks, update_every, seed: of the sketch, as for `FORKS`.
    width, loss, loss_width, step: as for `KOGD`.
    ValueError outside those ranges.

    >>> import numpy as np, onepass as op
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.standard_normal((2000, 2))
    >>> labels = np.sign(rows[:, 0] * rows[:, 1])
    >>> found = op.progressive_validation(op.SkeGD(budget=100, rank=20, sample_size=50), rows, labels)
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
    ):
        self.params: dict[str, Any] = {
            **sketch_sizes(budget, rank, sketch_size, sample_size, blocks, update_every, seed),
            **common(width, loss, loss_width, step),
        }
        self._state = None

    def _terms(self, x: np.ndarray, names: tuple[str, ...], decision: float) -> list[Reason]:
        return of_sketching(self._state.sketching, self._state.w, x)

    def begin(self, dim: int) -> SkeGDState:
        p = self.params
        loss = loss_named(p["loss"], p["loss_width"])
        return SkeGDState(sketching=sketching.begun(p, dim), w=zeros(p["rank"]), loss=loss, step=p["step"])

    def fits(self, state: Any, begun: Any) -> bool:
        return sketched_stream(self, state, begun)
