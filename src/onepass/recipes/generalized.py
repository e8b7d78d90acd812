"""Bandits for clicks and counts: GLB-OMD and its baseline GLOC."""

from typing import Any

from onepass.bandit.bandit import Bandit
from onepass.design.design import Design
from onepass.estimator.estimator import Estimator
from onepass.estimator.families import family_of
from onepass.estimator.glb_omd import OnePassGLM, least_reg
from onepass.estimator.gloc import BOUND, RegressedGLM
from onepass.exploration.confidence_width import Theory
from onepass.recipes.compose import Dim, Explore, compose, design_factory

REG, EXPLORATION = 0.3, 0.4  # of GLB-OMD, chosen on tuning seeds (docs/clicks/compared.md)
ROOM = 2.0  # times the least reg of the theorem: half of its steps' error is then left to its radius


def GLBOMD(
    *,
    dim: Dim,
    family: Any = "logistic",
    design: Design | None = None,
    reg: float | None = None,
    exploration: Explore = EXPLORATION,
    step: float | None = None,
    parameter_bound: float | None = None,
    implicit: bool | None = None,
    clip: float | None = None,
    model: str = "shared",
    seed: int = 0,
    dtype: str | None = None,
    half_life: Any = None,
) -> Bandit:
    """Make a bandit for generalized linear rewards, learned in one pass.

    The mean reward is mu(x^T theta), where mu is the mean function of the family: for clicks mu(z) = 1 / (1 + exp(-z)).
    It learns by online mirror descent, and adds the width to x^T theta. Means and scores of decisions are on the scale
    of rewards. Widths and parameters are on the scale of x^T theta.

    Parameters
    ----------
    dim : int or (int, int)
        Number d of features of a context, at least 1. For contexts given as `Factors`, where a row is x = vec(u v^T),
        it is the pair of the lengths of u and v.
    family : str or family, default "logistic"
        Distribution of the rewards: "logistic" for clicks (rewards from 0 to 1), "poisson" for counts (from 0),
        "identity", or a family of your own (`onepass.estimator.families`).
    design : Design, default None
        Design as wide as the rows that are learned. With a sketch of `size` rows, a round costs O(dim size) operations.
        None means `Exact`.
    reg : float, default None
        Ridge of the exact design, above 0, in units of mu' ||x||^2, where mu' is the derivative of mu. None means 0.3.
        With `Theory` None means at least twice the smallest value that the theorem allows. It must be None if `design`
        is given.
    exploration : float, Theory or Exploration, default 0.4
        A number is beta in score = mu(x^T theta + beta * width). The width is the standard error of x^T theta. For
        "identity" it is the standard error divided by the standard deviation of the noise. Below 0 the bandit avoids
        arms of which it knows little. `Theory` takes the multiplier, the step size and the ball for which the regret is
        proved. Any other rule, such as `InverseGap()`, replaces the recipe's own.
    step : float, default None
        Step size, above 0. None means 1. With `Theory` None means 1 + R L S, where L is the theory's `row_bound` and S
        its `parameter_bound`. R is a constant of the family for which the second derivative of mu is at most R mu': 1
        for clicks and counts, 0 for "identity".
    parameter_bound : float, default None
        The estimate is kept in the ball ||theta|| <= parameter_bound; above 0. None means no ball. It must be None if
        `exploration` is a `Theory`, which has its own bound.
    implicit : bool, default None
        True minimizes the loss itself in a step, so a step cannot overshoot. False minimizes a quadratic approximation
        of the loss, as in the paper. None means True without a ball, and False with one.
    clip : float, default None
        One reward moves x^T theta by at most step * clip * width; above 0. None means no limit.
    model : {"shared", "disjoint"}, default "shared"
        "shared" is one model for all arms. "disjoint" is a model for each arm; with `Factors` it learns from u alone.
    seed : int, default 0
        Seed, at least 0, of the draws that break ties.
    dtype : {"float64", "float32"}, default None
        Precision of the exact design. None means "float64". Must be None if `design` is given.
    half_life : float or timedelta, default None
        Number of rows, or time, after which a row counts half, above 0. With a timedelta, `learn` and `decide` need
        the argument `time`. None forgets nothing.

    Returns
    -------
    Bandit
        The bandit, which has learned nothing yet.

    Raises
    ------
    ValueError
        If an argument is out of range, or a reward is impossible for the family.

    Notes
    -----
    A round takes one solve and appends one row to a design; no history is kept. docs/clicks.md explains the defaults.

    References
    ----------
    Zhang, Xu, Zhao and Sugiyama (2025).
    """
    theory = exploration if isinstance(exploration, Theory) else None
    options: dict[str, Any] = {"step": step, "parameter_bound": parameter_bound, "implicit": implicit, "clip": clip}

    def estimate(design: Design) -> Estimator:
        return OnePassGLM(design, family=family, theory=theory, **options)

    if design is None and reg is None:
        reg = REG if theory is None else max(REG, ROOM * least_reg(family_of(family), theory))
    make = design_factory(design, reg, dtype)
    return compose("GLBOMD", dim, make, exploration, model, seed, estimate=estimate, half_life=half_life)


def GLOC(
    *,
    dim: Dim,
    family: Any = "logistic",
    design: Design | None = None,
    reg: float | None = None,
    exploration: Explore = EXPLORATION,
    parameter_bound: float = BOUND,
    model: str = "shared",
    seed: int = 0,
    dtype: str | None = None,
    half_life: Any = None,
) -> Bandit:
    """Make a bandit for generalized linear rewards, the baseline of `GLBOMD`.

    The mean reward is mu(x^T theta), where mu is the mean function of the family. An online learner with Newton steps
    predicts x^T theta, and ridge regression learns these predictions. The arm with the largest upper confidence bound
    is played.

    Parameters
    ----------
    dim : int or (int, int)
        Number d of features of a context, at least 1. For contexts given as `Factors`, where a row is x = vec(u v^T),
        it is the pair of the lengths of u and v.
    family : str or family, default "logistic"
        Distribution of the rewards: "logistic" for clicks (rewards from 0 to 1), "poisson" for counts (from 0),
        "identity", or a family of your own (`onepass.estimator.families`).
    design : Design, default None
        Design as wide as the rows that are learned. With a sketch of `size` rows, a round costs O(dim size) operations.
        None means `Exact`.
    reg : float, default None
        Ridge of the exact design, above 0. None means 1.0. It must be None if `design` is given.
    exploration : float or Exploration, default 0.4
        A number is beta in score = mu(x^T theta + beta * width), with the width sqrt(x^T A^-1 x) and A = reg I + sum of
        x x^T. Below 0 the bandit avoids arms of which it knows little. Any rule, such as `InverseGap()`, replaces the
        recipe's own. The multiplier of the theorem is not available.
    parameter_bound : float, default 3.0
        The online learner keeps its parameter in the ball ||theta|| <= parameter_bound; above 0. Its step size is 1 /
        kappa, where kappa is the smallest derivative of mu in this ball.
    model : {"shared", "disjoint"}, default "shared"
        "shared" is one model for all arms. "disjoint" is a model for each arm; with `Factors` it learns from u alone.
    seed : int, default 0
        Seed, at least 0, of the draws that break ties.
    dtype : {"float64", "float32"}, default None
        Precision of the exact design. None means "float64". Must be None if `design` is given.
    half_life : float or timedelta, default None
        Number of rows, or time, after which a row counts half, above 0. With a timedelta, `learn` and `decide` need
        the argument `time`. None forgets nothing.

    Returns
    -------
    Bandit
        The bandit, which has learned nothing yet.

    Raises
    ------
    ValueError
        If an argument is out of range, or a reward is impossible for the family.

    References
    ----------
    Jun, Bhargava, Nowak and Willett (2017).
    """

    def estimate(design: Design) -> Estimator:
        return RegressedGLM(design, family=family, parameter_bound=parameter_bound)

    make = design_factory(design, reg, dtype)
    return compose("GLOC", dim, make, exploration, model, seed, estimate=estimate, half_life=half_life)
