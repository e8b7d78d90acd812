"""The named experiments with kernel bandits, and their policies.

A policy adds exploration times sigma to the mean, where sigma is the width of a kernel bandit. The posterior standard
deviation is sqrt(reg) sigma, so an exploration of c sqrt(reg) adds c standard deviations. By default c is 2
for policies with upper bounds, and 1 for Thompson sampling.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from onepass import BKB, GPUCB, RBF, Bandit, Matern, SingleDrawThompson
from onepass.features.kernels import Kernel
from onepass.lab.definition import Study
from onepass.lab.kernels import starvation
from onepass.lab.kernels.problems import (
    DigitsTuning,
    GaussianProcess,
    NegatedFunction,
    branin,
    grid,
    hartmann6,
    sobol,
    square,
    uniform,
)
from onepass.lab.kernels.quadrature import QFFTS
from onepass.lab.kernels.study import KernelStudy, Uniform
from onepass.lab.policy import Policy


def GPTS(*, arms: np.ndarray, kernel: Kernel, reg: float, exploration: float | None = None, seed: int = 0) -> Bandit:
    """Return a bandit that does Thompson sampling with the exact Gaussian process posterior, for arms (A, d).

    `kernel` is the covariance of the process, and `reg` the noise variance. `exploration` is a factor of the posterior
    standard deviation in draws; None means sqrt(reg), at which draws have exactly the posterior distribution.
    """
    return GPUCB(arms, kernel, reg=reg, exploration=thompson(reg, exploration), seed=seed)


def BKBTS(
    *,
    arms: np.ndarray,
    kernel: Kernel,
    reg: float,
    exploration: float | None = None,
    normalize: bool = False,
    fit_after: int = 0,
    seed: int = 0,
) -> Bandit:
    """Return a bandit that does Thompson sampling with BKB's approximate posterior.

    `exploration` is a factor of the posterior standard deviation in draws; None means sqrt(reg), at which draws have
    exactly the posterior distribution. `arms` (A, d), `kernel` and the other arguments are passed to `BKB`.
    """
    rule = thompson(reg, exploration)
    return BKB(arms, kernel, reg=reg, exploration=rule, normalize=normalize, fit_after=fit_after, seed=seed)


def thompson(reg: float, exploration: float | None) -> SingleDrawThompson:
    return SingleDrawThompson(reg**0.5 if exploration is None else exploration)


RULE: Mapping[str, Any] = {"reg": 0.01}
RANDOM = Policy("Random", Uniform, tuned=False)
EXACT, BUDGETED = Policy("GPUCB", "GPUCB", RULE), Policy("BKB", "BKB", RULE)
QUADRATURE = Policy("QFF-TS", QFFTS, RULE)


def policies(many: bool = False, **params: Any) -> tuple[Policy, ...]:
    """Return all policies for kernel bandits, with the parameters `params`.

    If `many` is True, the problem has many arms, and exact Thompson sampling is left out, because it is slow then.
    """
    options = {**RULE, **params}
    found = (
        Policy("GPUCB", "GPUCB", options),
        Policy("GP-TS", GPTS, options),
        Policy("BKB", "BKB", options),
        Policy("BKB every round", "BKB", {**options, "staleness": 1.0}),
        Policy("BKB-TS", BKBTS, options),
    )
    return (*(policy for policy in found if not (many and policy.label == "GP-TS")), RANDOM)


def _policies_with_fit(*known: Policy) -> tuple[Policy, ...]:
    """Return variants of the policies `known` that fit kernel parameters and reg after 50 random plays."""
    return tuple(Policy(f"{p.label} fitted", p.recipe, {**p.params, "fit_after": 50}) for p in known)


def _bkb_policies_over(**values: Sequence[float]) -> tuple[Policy, ...]:
    """Return exact GP-UCB, BKB at several values of one parameter, and random choices.

    `values` has the name of the parameter and its values. Upper bounds are 4 posterior standard deviations wide.
    """
    ((name, many),) = values.items()
    rule = {"reg": 1.0, "exploration": 4.0}
    changed = (Policy(f"BKB {name}={value:g}", "BKB", {**rule, name: value}) for value in many)
    return (Policy("GPUCB", "GPUCB", rule), *changed, RANDOM)


def plane(noise: float) -> GaussianProcess:
    return GaussianProcess(partial(uniform, count=1000, dim=2), RBF(0.2), noise)


SUITES: tuple[Study, ...] = (
    KernelStudy(
        "gp-1d",
        "a function drawn from a GP: RBF of length 0.1, 1,000 arms on a grid of [0, 1], noise 0.1",
        GaussianProcess(partial(grid, count=1000), RBF(0.1)),
        (*policies(), QUADRATURE),
        rounds=1000,
        seeds=20,
    ),
    KernelStudy(
        "gp-2d",
        "the same with RBF of length 0.2, 1,000 arms uniform in [0, 1]^2",
        plane(0.1),
        (*policies(), QUADRATURE),
        rounds=1000,
        seeds=20,
    ),
    KernelStudy(
        "gp-5d",
        "the same with RBF of length 1, 2,000 arms uniform in [0, 1]^5",
        GaussianProcess(partial(uniform, count=2000, dim=5), RBF(1.0)),
        policies(many=True),
        rounds=1000,
        seeds=20,
    ),
    KernelStudy(
        "gp-2d-oversampling",
        "BKB over its oversampling, its authors' qbar: gp-2d with noise 1 and wider bounds, where many arms are played",
        plane(1.0),
        _bkb_policies_over(oversampling=(1.0, 3.0, 10.0, 30.0)),
        rounds=1000,
        seeds=20,
        grid={},
    ),
    KernelStudy(
        "gp-2d-staleness",
        "the same over its staleness: 1 draws the dictionary anew after every play, as Calandriello et al. do",
        plane(1.0),
        _bkb_policies_over(staleness=(1.0, 1.5, 2.0, 4.0, 10.0, 100.0)),
        rounds=1000,
        seeds=20,
        grid={},
    ),
    KernelStudy(
        "branin",
        "Branin's function, standardized: 2,500 arms on a grid, noise 0.1, Matern 5/2 of length 0.2 or fitted",
        NegatedFunction(branin, partial(square, count=50), Matern(2.5, (0.2, 0.2))),
        (*policies(), *_policies_with_fit(EXACT, BUDGETED)),
        rounds=500,
        seeds=20,
    ),
    KernelStudy(  # the best of 2,000 points is 7 standard deviations above their mean, hence a variance of 9
        "hartmann6",
        "the same with Hartmann's function of 6 variables: 2,000 Sobol points, Matern 5/2 of length 0.3 or fitted",
        NegatedFunction(hartmann6, partial(sobol, count=2000, dim=6), 9.0 * Matern(2.5, (0.3,) * 6)),
        (*policies(), *_policies_with_fit(EXACT, BUDGETED)),
        rounds=500,
        seeds=20,
    ),
    KernelStudy(
        "digits-tuning",
        "hyper-parameters of kernel ridge regression on digits: 5,000 settings, one fit on a new split a round",
        DigitsTuning,
        policies(many=True, normalize=True, fit_after=50),
        rounds=300,
        seeds=5,
    ),
    starvation.SUITE,
)  # fmt: skip
