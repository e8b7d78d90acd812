"""GLOC with online Newton steps: generalized linear rewards learned online, then regressed on (Jun et al. 2017).

An online learner with parameter theta_on predicts z, and theta is ridge regression on these predictions:

    z = x^T theta_on,   A <- A + x x^T,   theta_on <- theta_on - (mu(z) - r) A^-1 x / kappa,   into the ball ||.|| <= S
    theta = A^-1 sum of z x                        kappa = the least mu' over |z| <= S

These are algorithms 1 and 2 of Jun et al. with epsilon = lambda, so that one matrix A serves both. mu is the mean
function of the reward family (families.py). The widths x^T A^-1 x do not depend on mu'. The regret bound is
proportional to 1 / kappa, which is exponential in S. GLOC is here for comparison with GLB-OMD (glb_omd.py). It has no
confidence radius here, because the radius of its theorem 1 is proportional to 1 / kappa^2.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.design.contract import append, solve
from onepass.design.design import Design
from onepass.estimator.contract import forget, link, parameter, update
from onepass.estimator.estimator import Estimator, check_design, init_design_and_theta
from onepass.estimator.families import family_argument, family_of, mean, slope
from onepass.estimator.newton import forget_rows, project_onto_ball, step_along
from onepass.foundation import check
from onepass.foundation.linalg import dot
from onepass.foundation.registry import savable

BOUND = 3.0  # S where nobody says: odds of 20 to 1, at rows of length 1


class GLOCSettings(NamedTuple):
    """Settings of GLOC: the reward `family`, the radius `bound` of the ball for theta, and `kappa`.

    `kappa` is the smallest derivative of the mean function at scores that the ball allows.
    """

    family: Any
    kappa: float
    bound: float


class GLOCState(NamedTuple):
    """State of GLOC.

    `design` is A = reg I + sum of x x^T over rows x. online (dim,) is the parameter of the online learner, and moment
    (dim,) the sum of z x, where z = x^T online is its prediction for x.
    """

    design: Any
    online: np.ndarray
    moment: np.ndarray
    settings: GLOCSettings


@update.for_state(GLOCState)
def update_gloc(state: GLOCState, row: np.ndarray, reward: float) -> GLOCState:
    online, moment, settings = state.online, state.moment, state.settings
    z = float(dot(row, online))
    design = append(state.design, row)
    for j in range(row.size):
        moment[j] += z * row[j]
    step_along(online, solve(design, row), (reward - mean(settings.family, z)) / settings.kappa)
    project_onto_ball(design, online, settings.bound)
    return GLOCState(design=design, online=online, moment=moment, settings=settings)


@forget.for_state(GLOCState)
def forget_gloc(state: GLOCState, factor: float) -> GLOCState:
    """Return the state in which past rows count `factor` times, with the online parameter projected into its ball."""
    design, moment = forget_rows(state.design, state.online, factor), state.moment
    project_onto_ball(design, state.online, state.settings.bound)
    for j in range(moment.size):
        moment[j] *= factor
    return GLOCState(design=design, online=state.online, moment=moment, settings=state.settings)


@parameter.for_state(GLOCState)
def parameter_of_gloc(state: GLOCState) -> np.ndarray:
    return solve(state.design, state.moment)


@link.for_state(GLOCState)
def link_of_gloc(state: GLOCState) -> Any:
    return state.settings.family


@savable
class RegressedGLM(Estimator):
    """Generalized linear regression by ridge regression on the predictions of an online learner.

    The mean reward of a row x is mu(x^T theta). The online learner predicts x^T theta by Newton steps. The
    estimator is for comparison with `OnePassGLM`.

    Parameters
    ----------
    design : Design
        Any design. It is copied.
    family : {"logistic", "poisson", "identity"} or NamedTuple, default "logistic"
        The family of rewards: "logistic" for clicks (0 to 1), "poisson" for counts (from 0), "identity" for any
        rewards. A family of your own is a NamedTuple as in onepass/estimator/families.py.
    parameter_bound : float, default 3.0
        The online learner keeps its parameter in the ball ||theta|| <= S, with this number S above 0. Its step size is
        1 / kappa, where kappa is the smallest derivative mu' in this ball.

    Raises
    ------
    ValueError
        If an argument is outside its range.
    """

    has_radius = False

    design: Design
    family: Any

    def __init__(self, design: Design, *, family: Any = "logistic", parameter_bound: float = BOUND) -> None:
        self.design, self.family = check_design(design), family_of(family)
        bound = check.positive("parameter_bound", parameter_bound)
        kappa = min(slope(self.family, bound), slope(self.family, -bound))
        self._settings = GLOCSettings(family=self.family, kappa=float(kappa), bound=bound)
        self.options: dict[str, Any] = {"family": family_argument(self.family), "parameter_bound": bound}

    def begin(self) -> GLOCState:
        design, online = init_design_and_theta(self.design)
        return GLOCState(design=design, online=online, moment=np.zeros_like(online), settings=self._settings)

    def consistent(self, state: GLOCState) -> bool:
        return (
            state.online.shape == state.moment.shape == (self.design.dim,)
            and state.settings == self._settings
            and self.design.consistent(state.design)
        )
