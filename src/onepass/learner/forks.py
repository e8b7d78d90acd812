"""FORKS (Wen, Zhang et al., algorithm 1): gradient descent until a buffer is full, then online Newton steps on a
sketched Nystrom map.

    1.  f = sum of a_i k(x_i, x); on a loss x joins the buffer with a = -step l'(f)
    2.  f = w^T phi(x); on a loss, with g = l'(f) phi and u = A^-1 phi:
        w <- w - step A^-1 g,   w <- w - h(w^T phi) / (phi^T u) u,  h(z) = sign(z) max(|z| - bound, 0)
        A <- A + (sigma + eta / sqrt(t)) g g^T,  t: losses since A was alpha I
    at every `update_every`-th loss x joins the sketches and phi changes: A = alpha I and w = 0, the reset; then the
    step, on the new phi

Wen, Zhang et al. update the map, predict and step. A round of an update is known by its loss, and so by its target:
here the decision is made before, on the old map, and only then the map changes; the step for the example is on the new
one, as in Wen, Zhang et al. With the update an example later, all of it before the target is known, mistakes are those
of a step on the old map, which the reset forgets (docs/kernel_learners.md compares the orders).

What Wen, Zhang et al. leave open is done as in its authors' program: the buffer holds 2 budget points while sketches
follow the budget, nothing is learned without a loss, gradient descent does not shrink its weights, updates are counted
in losses, and the Newton step uses A as it was before. A round of stage 2 costs O(s_m (d + k) + k^2) and allocates
nothing.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.features.contract import copy_scratch, transform_row
from onepass.foundation.registry import savable
from onepass.learner import contract, sketching
from onepass.learner import newton as steps
from onepass.learner.consistency import sketched_stream
from onepass.learner.explaining import Reason, of_sketching
from onepass.learner.learner import Learner, common
from onepass.learner.losses import Loss, loss_named, slope
from onepass.learner.newton import Newton, newton, reset
from onepass.learner.sketching import Sketching, decided_by, kept, regular, sketch_sizes


class FORKSState(NamedTuple):
    """sketching: buffer and map; newton: w (k,) and a root of A^-1; decaying: eta."""

    sketching: Sketching
    newton: Newton
    loss: Loss
    decaying: float


@copy_scratch.for_state(FORKSState)
def apart_forks(state):
    return FORKSState(
        sketching=copy_scratch(state.sketching), newton=state.newton, loss=state.loss, decaying=state.decaying
    )


@contract.decision.for_state(FORKSState)
def decision(state, x):
    found = state.sketching
    return decided_by(found.first, found.sketch.features, found.phi, found.mapped, state.newton.w, x)


@contract.step.for_state(FORKSState)
def step(state, x, y):
    found = state.sketching
    f = decided_by(found.first, found.sketch.features, found.phi, found.mapped, state.newton.w, x)
    gradient = slope(state.loss, f, y)
    second, eta = state.newton, state.decaying
    if regular(found.clock, found.mapped, gradient):
        if gradient != 0.0 and found.mapped:  # the loss of the reset was the first
            t = 1.0 + found.clock.tally[1]
            newton(second, found.phi, gradient, second.curvature + eta / np.sqrt(t))
        return state, f
    found = kept(found, x, -second.step * gradient)
    reset(second, found.phi.size)
    if found.mapped:
        transform_row(found.sketch.features, x, found.phi)
        newton(second, found.phi, slope(state.loss, 0.0, y), second.curvature + eta)
    return FORKSState(sketching=found, newton=second, loss=state.loss, decaying=eta), f


@savable
class FORKS(Learner):
    """FORKS: second-order online kernel learning on an incremental sketch; see onepass.learner.forks.

    budget: B, at least 2 (default 50): 2 B examples are buffered, then sketched.
    rank: k, from 1 to the smaller of sketch_size and sample_size; default None: a tenth of B.
    sketch_size: s_p, at least 1; default None: B.
    sample_size: s_m, from 1 to 2 B; default None: a fifth of s_p.
    blocks: D of the sketches, at least 1, a divisor of sketch_size (default 1).
    update_every: losses between updates of the sketches, or, below 1, their share of all examples so far (default 0.3;
        Wen, Zhang et al.: 0.3 of the stream's length). Each update keeps one example more, so that with an integer
        memory and the time of an update grow for ever.
    width, loss, loss_width, step: as for `KOGD`.
    alpha: A before the first loss and after a reset is alpha I, above 0 (default 0.01).
    curvature: sigma, at least 0 (default 0.04).
    decaying_curvature: eta, at least 0 (default 0.0).
    bound: C, above 0 (default 1.0): |f| <= C after a step; targets of regression must lie within it.
    seed: of the sketches, from 0 (default) to 2^32 - 1.

    The t-th loss since a reset adds (sigma + eta / sqrt(t)) g g^T to A. Wen, Zhang et al.'s theorem has two schedules,
    for A / step in place of our A: for losses with a curvature L_Cur along their gradients eta = 0, sigma = step L_Cur,
    and a regret of O(log T) on the sketch; for losses that are only convex (hinge, epsilon_insensitive) sigma = 0, eta
    = step sqrt(k) / L with |l'| ||phi|| <= L, and O(sqrt(T)). Both 0: gradient descent with steps of step / alpha.

    ValueError for a budget below 2, a rank above sketch or sample size, sizes that do not fit, a negative curvature.

    >>> import numpy as np, onepass as op
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.standard_normal((2000, 2))
    >>> labels = np.sign(rows[:, 0] * rows[:, 1])
    >>> found = op.progressive_validation(op.FORKS(budget=100, rank=20, sample_size=50), rows, labels)
    >>> found.mistakes[1000:].mean() < 0.2
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
        alpha: float = 0.01,
        curvature: float = 0.04,
        decaying_curvature: float = 0.0,
        bound: float = 1.0,
        seed: int = 0,
    ):
        self.params: dict[str, Any] = {
            **sketch_sizes(budget, rank, sketch_size, sample_size, blocks, update_every, seed),
            **common(width, loss, loss_width, step),
            **steps.settings(alpha, curvature, bound),
            "decaying_curvature": steps.from_zero("decaying_curvature", decaying_curvature),
        }
        self._state = None

    def _terms(self, x: np.ndarray, names: tuple[str, ...], decision: float) -> list[Reason]:
        return of_sketching(self._state.sketching, self._state.newton.w, x)

    def begin(self, dim: int) -> FORKSState:
        p = self.params
        return FORKSState(
            sketching=sketching.begun(p, dim),
            newton=steps.begun(p["rank"], p),
            loss=loss_named(p["loss"], p["loss_width"]),
            decaying=p["decaying_curvature"],
        )

    def fits(self, state: Any, begun: Any) -> bool:
        return sketched_stream(self, state, begun)
