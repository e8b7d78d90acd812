"""FOGD (Lu, Hoi, Wang, Zhao and Liu 2016): gradient descent on random Fourier features.

With features phi(x) and loss l, an example changes the weights w by

    f = w^T phi(x);   w <- w - step l'(f) phi(x)

phi has unit length here. The authors' features are not normalized: their step of 0.001 with D / 2 = 200 frequencies
corresponds to a step of 0.2 here. An example costs O(D d).
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.features.contract import copy_scratch, transform_row
from onepass.features.fourier import FourierState, make_fourier
from onepass.foundation import check
from onepass.foundation.registry import savable
from onepass.foundation.state import zeros
from onepass.learner import contract
from onepass.learner.budget import check_sizes
from onepass.learner.explanation import Reason, map_terms
from onepass.learner.learner import Learner, check_common
from onepass.learner.losses import Loss, make_loss, slope
from onepass.learner.newton import inner_product


class FOGDState(NamedTuple):
    """State of `FOGD`: the Fourier feature map `map`, and the weights `w` (D,) of its D features.

    `phi` (D,) is a work array. The other fields are arguments of `FOGD`.
    """

    map: FourierState
    w: np.ndarray
    phi: np.ndarray
    loss: Loss
    step: float


@copy_scratch.for_state(FOGDState)
def copy_scratch_fogd(state: FOGDState) -> FOGDState:
    return FOGDState(map=state.map, w=state.w, phi=np.empty(state.phi.size), loss=state.loss, step=state.step)


@contract.decision.for_state(FOGDState)
def decision(state: FOGDState, x: np.ndarray) -> float:
    transform_row(state.map, x, state.phi)
    return inner_product(state.w, state.phi)


@contract.step.for_state(FOGDState)
def step(state: FOGDState, x: np.ndarray, y: float) -> tuple[FOGDState, float]:
    f = contract.decision(state, x)
    gradient = slope(state.loss, f, y)
    if gradient != 0.0:
        for j in range(state.w.size):
            state.w[j] -= state.step * gradient * state.phi[j]
    return state, f


@savable
class FOGD(Learner):
    """Gradient descent on random Fourier features, which approximate the Gaussian kernel.

    Parameters
    ----------
    budget : int, default 100
        Sets the number of features if `features` is None; at least 2.
    features : int, optional
        Number of features, even, at least 2. Defaults to 4 * budget, as in Wen, Zhang et al.
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
        Seed of the random features, from 0 to 2^32 - 1.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Examples
    --------
    >>> import numpy as np, onepass as op
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.standard_normal((4000, 2))
    >>> labels = np.sign(rows[:, 0] * rows[:, 1])
    >>> op.progressive_validation(op.learner.FOGD(), rows, labels).mistakes[2000:].mean() < 0.1
    np.True_
    """

    def __init__(
        self,
        *,
        budget: int = 100,
        features: int | None = None,
        width: float = 1.0,
        loss: str = "hinge",
        loss_width: float = 1.0,
        step: float = 0.2,
        seed: int = 0,
    ) -> None:
        self.params: dict[str, Any] = {
            **check_sizes(budget, width),
            "features": check.integer("features", 4 * int(budget) if features is None else features, 2),
            **check_common(width, loss, loss_width, step),
            "seed": check.integer("seed", seed, 0, check.LARGEST_SEED),
        }
        if self.params["features"] % 2:
            raise ValueError(f"features must be even, cosines and sines, got {features}")
        self._state = None

    def _terms(self, x: np.ndarray, names: tuple[str, ...], decision: float) -> list[Reason]:
        return map_terms(self._state.map, self._state.w, x)

    def begin(self, dim: int) -> FOGDState:
        p = self.params
        size = p["features"]
        loss = make_loss(p["loss"], p["loss_width"])
        return FOGDState(
            map=make_fourier(size, dim, p["width"], p["seed"]),
            w=zeros(size),
            phi=zeros(size),
            loss=loss,
            step=p["step"],
        )
