"""Bandits for clicks and counts: GLB-OMD and its baseline GLOC."""

from typing import Any

from onepass.bandit.bandit import Bandit
from onepass.design.design import Design
from onepass.estimator.estimator import Estimator
from onepass.estimator.families import family_of
from onepass.estimator.glb_omd import OnePassGLM, least_reg
from onepass.estimator.gloc import BOUND, RegressedGLM
from onepass.exploration.confidence_width import Theory
from onepass.recipes.compose import Dim, Explore, compose, given

REG, EXPLORATION = 0.3, 0.4  # of GLB-OMD, chosen on tuning seeds (docs/clicks.md)
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
    """Generalized linear rewards, E r = mu(x^T theta), in one pass: online mirror descent, UCB on x^T theta.

    Zhang, Xu, Zhao and Sugiyama (2025). One solve and one row of a design a round, no history. Means and scores of
    decisions are on the scale of rewards, widths and parameters on that of x^T theta. Defaults: docs/clicks.md.

    dim: width of a context, at least 1, or (d_u, d_a) for contexts given as `Factors` x = vec(u v^T).
    family: "logistic" (default: clicks, rewards from 0 to 1), "poisson" (counts, from 0), "identity", or one of your
        own (onepass.estimator.families).
    design: any design, as wide as the rows that are learned (a sketch makes a round O(dim size)); None (default):
        `Exact`.
    reg: as for every design, above 0, in units of mu' ||x||^2; only without a design (None: 0.3; under `Theory` twice
        the least that its theorem takes).
    exploration: beta, a number (default 0.4; below 0 is pessimism), or `Theory`: the proved radius, step and ball; or
        a rule, such as `InverseGap()`.
    step: eta, above 0; None (default): 1, under `Theory` 1 + R L S.
    parameter_bound: S, above 0: estimates are kept in the ball ||theta|| <= S; None (default): no ball; None beside
        `Theory`, which has one.
    implicit: whether steps are those of the loss itself, which cannot overshoot; None (default): unless there is a
        ball; False: those of the paper.
    clip: above 0: one reward moves x^T theta by at most step * clip widths; None (default): as far as it says.
    model: "shared" (default): one model for all arms; "disjoint": one per arm (with factors, in d_u dimensions).
    seed: at least 0 (default 0); breaks ties.
    dtype: "float64" or "float32"; only without a design (None: "float64").
    half_life: after how many rounds, or after which time (a timedelta; `learn` and `decide` are then told the `time`)
        a row counts half; None (default): nothing is forgotten.
    Returns a `Bandit`. ValueError for arguments out of range, and for rewards
    that the family does not have.
    """
    theory = exploration if isinstance(exploration, Theory) else None
    options: dict[str, Any] = {"step": step, "parameter_bound": parameter_bound, "implicit": implicit, "clip": clip}

    def estimate(design: Design) -> Estimator:
        return OnePassGLM(design, family=family, theory=theory, **options)

    if design is None and reg is None:
        reg = REG if theory is None else max(REG, ROOM * least_reg(family_of(family), theory))
    make = given(design, reg, dtype)
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
    """Generalized linear rewards, E r = mu(x^T theta): ridge regression on what an online learner predicted, UCB.

    Jun, Bhargava, Nowak and Willett (2017), with online Newton steps: the baseline of `GLBOMD`.

    dim: width of a context, at least 1, or (d_u, d_a) for contexts given as `Factors` x = vec(u v^T).
    family: "logistic" (default: clicks, rewards from 0 to 1), "poisson" (counts, from 0), "identity", or one of your
        own (onepass.estimator.families).
    design: any design, as wide as the rows that are learned; None (default): `Exact`.
    reg: as for every design, above 0; only without a design (None: 1.0).
    exploration: beta, a number (default 0.4; below 0 is pessimism), or a rule, such as `InverseGap()`; its theorem's
        radius is not offered.
    parameter_bound: S, above 0 (default 3.0): the ball of the online learner, whose steps are 1 / (least mu' in it).
    model: "shared" (default): one model for all arms; "disjoint": one per arm (with factors, in d_u dimensions).
    seed: at least 0 (default 0); breaks ties.
    dtype: "float64" or "float32"; only without a design (None: "float64").
    half_life: after how many rounds, or after which time (a timedelta; `learn` and `decide` are then told the `time`)
        a row counts half; None (default): nothing is forgotten.
    Returns a `Bandit`. ValueError for arguments out of range, and for rewards
    that the family does not have.
    """

    def estimate(design: Design) -> Estimator:
        return RegressedGLM(design, family=family, parameter_bound=parameter_bound)

    make = given(design, reg, dtype)
    return compose("GLOC", dim, make, exploration, model, seed, estimate=estimate, half_life=half_life)
