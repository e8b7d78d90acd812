"""FORKS (Wen, Zhang et al., algorithm 1): gradient descent until a buffer is full, then sketched Newton steps.

With decision f, loss l and features phi of the sketched Nystrom map (features/sketched_nystrom.py), the two stages are

    1.  gradient descent:  f = sum of a_i k(x_i, x); on a loss x is stored in the buffer with a = -step l'(f)
    2.  f = w^T phi(x); on a loss, with g = l'(f) phi and u = A^-1 phi:
        w <- w - step A^-1 g,   w <- w - h(w^T phi) / (phi^T u) u,  h(z) = sign(z) max(|z| - bound, 0)
        A <- A + (sigma + eta / sqrt(t)) g g^T,  t: losses since A was alpha I
    at every `update_every`-th loss x is added to the sketches, so phi changes; A = alpha I and w = 0 (the reset),
        and then the step is taken on the new phi

Wen, Zhang et al. update the map, predict and step. But only the loss of a round, and so its target, tells if the map
must be updated. This implementation therefore decides first, on the old map, and then changes the map. The step for the
example is taken on the new map, as in Wen, Zhang et al. docs/forks_adversarial.md compares this with other orders.

Details that Wen, Zhang et al. leave open follow the program of its authors:

- The buffer holds 2 budget points, while sketches follow the budget.
- Nothing is learned without a loss.
- Gradient descent does not shrink its weights.
- Updates are counted in losses.
- The Newton step uses A as it was before.

A round of stage 2 costs O(s_m (d + k) + k^2) and allocates nothing.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.features.contract import copy_scratch, transform_row
from onepass.foundation import check
from onepass.foundation.registry import savable
from onepass.learner import contract, sketching
from onepass.learner import newton as steps
from onepass.learner.consistency import sketching_fits
from onepass.learner.explanation import Reason, sketching_terms
from onepass.learner.learner import Learner, check_common
from onepass.learner.losses import Loss, make_loss, slope
from onepass.learner.newton import Newton, online_newton_step, project_weights, reset_newton, solve_features
from onepass.learner.sketching import (
    Sketching,
    absorb_example,
    check_sketch_sizes,
    count_regular_round,
    two_stage_decision,
)


class FORKSState(NamedTuple):
    """State of `FORKS`.

    - sketching: the first examples, and the feature map made from them.
    - newton: weights and matrix of the Newton step.
    - loss: the loss.
    - decaying: the argument `decaying_curvature` of `FORKS`.
    - cap: bound of predictions. It is the argument `bound` if weights are projected before the next example is
      predicted, else infinity.
    """

    sketching: Sketching
    newton: Newton
    loss: Loss
    decaying: float
    cap: float


@copy_scratch.for_state(FORKSState)
def copy_scratch_forks(state: FORKSState) -> FORKSState:
    return FORKSState(
        sketching=copy_scratch(state.sketching),
        newton=state.newton,
        loss=state.loss,
        decaying=state.decaying,
        cap=state.cap,
    )


@contract.decision.for_state(FORKSState)
def decision(state: FORKSState, x: np.ndarray) -> float:
    found = state.sketching
    f = two_stage_decision(found.buffer, found.sketch.features, found.phi, found.mapped, state.newton.w, x)
    return min(max(f, -state.cap), state.cap) if found.mapped else f


@contract.step.for_state(FORKSState)
def step(state: FORKSState, x: np.ndarray, y: float) -> tuple[FORKSState, float]:
    found = state.sketching
    f = two_stage_decision(found.buffer, found.sketch.features, found.phi, found.mapped, state.newton.w, x)
    second, eta = state.newton, state.decaying
    if found.mapped and abs(f) > state.cap:  # w is projected before it decides
        project_weights(second, found.phi, f, solve_features(second, found.phi), state.cap)
        f = min(max(f, -state.cap), state.cap)
    gradient = slope(state.loss, f, y)
    if count_regular_round(found.schedule, found.mapped, gradient):
        if gradient != 0.0 and found.mapped:  # the reset's own loss counts as the first
            t = 1.0 + found.schedule.counts[1]
            online_newton_step(second, found.phi, gradient, second.curvature + eta / np.sqrt(t))
        return state, f
    found = absorb_example(found, x, -second.step * gradient)
    reset_newton(second, found.phi.size)
    if found.mapped:
        transform_row(found.sketch.features, x, found.phi)
        online_newton_step(second, found.phi, slope(state.loss, 0.0, y), second.curvature + eta)
    return FORKSState(sketching=found, newton=second, loss=state.loss, decaying=eta, cap=state.cap), f


@savable
class FORKS(Learner):
    """FORKS: Newton steps on features of a kernel, from a sketch of the kernel matrix that is updated with the stream.

    The learner keeps the first 2 * budget examples. Then it computes a sketch of their kernel matrix from random
    combinations and from some of them (landmarks), and from it `rank` features. f is a weighted sum of the features of
    a row.

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
    alpha : float, default 0.01
        Penalty, above 0: the matrix of the Newton step is alpha I before the first loss and after a reset.
    curvature : float, default 0.04
        Each loss with gradient g adds curvature * g g^T to the matrix of the Newton step. At least 0.
    decaying_curvature : float, default 0.0
        The t-th loss since a reset also adds decaying_curvature / sqrt(t) * g g^T to this matrix. At least 0.
    count : {"losses", "examples"}, default "losses"
        Unit of `update_every`. "losses" counts only examples with a loss, as the program of Wen, Zhang et al. does.
        "examples" counts all, as their paper says.
    bound : float, default 1.0
        Limit of |f|, above 0, for the example that `project` names. Targets of regression must lie within it.
    project : {"learned", "next"}, default "learned"
        Example whose |f| is limited: the one that was just learned, or the next one, before it is predicted.
    seed : int, default 0
        Seed of the sketches, from 0 to 2^32 - 1.

    Raises
    ------
    ValueError
        If the budget is below 2, the rank exceeds sketch or sample size, sizes are inconsistent, or a curvature is
        negative.

    Notes
    -----
    The t-th loss since a reset adds (curvature + decaying_curvature / sqrt(t)) g g^T to the matrix A of the Newton
    step, where g is its gradient. The theorem of Wen, Zhang et al. sets decaying_curvature = 0 for losses that curve
    along their gradients, with a regret of O(log T) on the sketch. For losses that are only convex, such as the hinge,
    it sets curvature = 0, with a regret of O(sqrt(T)). With both 0 the learner is gradient descent.

    Equation 10 of the paper limits f either for the example just learned or for the next one. The first reading is the
    default: the order of lines in algorithm 1 speaks for it, and it makes fewer mistakes.

    Examples
    --------
    >>> import numpy as np, onepass as op
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.standard_normal((2000, 2))
    >>> labels = np.sign(rows[:, 0] * rows[:, 1])
    >>> found = op.progressive_validation(op.learner.FORKS(budget=100, rank=20, sample_size=50), rows, labels)
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
        count: str = "losses",
        bound: float = 1.0,
        project: str = "learned",
        seed: int = 0,
    ) -> None:
        self.params: dict[str, Any] = {
            **check_sketch_sizes(budget, rank, sketch_size, sample_size, blocks, update_every, seed),
            "count": check.choice("count", count, ("losses", "examples")),
            "project": check.choice("project", project, ("learned", "next")),
            **check_common(width, loss, loss_width, step),
            **steps.check_settings(alpha, curvature, bound),
            "decaying_curvature": steps.check_curvature("decaying_curvature", decaying_curvature),
        }
        self._state = None

    def _terms(self, x: np.ndarray, names: tuple[str, ...], decision: float) -> list[Reason]:
        return sketching_terms(self._state.sketching, self._state.newton.w, x)

    def begin(self, dim: int) -> FORKSState:
        p = self.params
        bound, cap = (p["bound"], np.inf) if p["project"] == "learned" else (np.inf, p["bound"])
        return FORKSState(
            sketching=sketching.init_sketching(p, dim),
            newton=steps.init_newton(p["rank"], {**p, "bound": bound}),
            loss=make_loss(p["loss"], p["loss_width"]),
            decaying=p["decaying_curvature"],
            cap=cap,
        )

    def fits(self, state: Any, begun: Any) -> bool:
        return sketching_fits(self, state, begun)
