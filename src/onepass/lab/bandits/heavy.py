"""Experiments with heavy-tailed rewards. Source: Wang et al. 2025 (Hvt-UCB), section 6.

epsilon is chosen so that the noise has a finite moment of order 1 + epsilon. nu is the noise's `size` (noise.py). Wang
et al. use nu = 1.31 for Student t noise with 2.1 degrees of freedom. Truncating policies get `Noise.reward_moment(1 +
epsilon)`, a bound of E|r|^(1 + epsilon) for the rewards r. MENU gets the moment of the noise. Policies that need no
horizon get none. The labels of policies that are not tuned contain their settings.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from onepass import (
    Dyadic,
    FrequentDirections,
    HvtUCB,
    ProjectorSplitting,
    RobustFrequentDirections,
    Theory,
)
from onepass.bandit.bandit import Bandit
from onepass.design.design import Design
from onepass.estimator.heavy_tails import EXPLORATION
from onepass.lab.bandits.environments import Classification, Decaying, Environment, FixedArms, Labels, Noisy
from onepass.lab.bandits.heavy_figure import HEAVY
from onepass.lab.bandits.noise import Contaminated, Gaussian, Noise, Pareto, StudentT
from onepass.lab.bandits.study import Experiment
from onepass.lab.datasets import load
from onepass.lab.policy import Policy

GRID: Mapping[str, Sequence[float]] = {
    "exploration": (0.1, 0.3, 1.0, 3.0, 10.0, 30.0),
    "reg": (1.0, 10.0),
    "clip": (0.01, 0.03, 0.1, 0.3, 1.0),
    "repeats": (3, 9, 27, 81),
}
RULE = {"reg": 1.0, "exploration": 1.0}


def HvtUCBPaper(*, dim: int, epsilon: float, nu: float, horizon: int, seed: int = 0) -> Bandit:
    """Return Hvt-UCB with the constants of Wang et al.'s theorem, for rows and parameters of length at most 1.

    `epsilon`, `nu` and `horizon` are arguments of `HvtUCB`. The theorem is used with delta = 1 / (8 horizon). One of
    its lemmas needs four times this delta, so the confidence ellipsoids hold with probability 1 - 1 / (2 horizon).
    """
    rule = Theory(parameter_bound=1.0, row_bound=1.0, delta=1.0 / (2.0 * horizon))
    return HvtUCB(dim=dim, epsilon=epsilon, nu=nu, horizon=horizon, reg=float(dim), exploration=rule, seed=seed)


def HvtUCBSketched(
    *,
    dim: int,
    sketch: str,
    size: int,
    epsilon: float = 1.0,
    nu: float | None = None,
    error: float = 8.0,
    reg: float = 1.0,
    exploration: float = EXPLORATION,
    clip: float | None = None,
    seed: int = 0,
) -> Bandit:
    """Return Hvt-UCB on a sketch of `size` rows.

    `sketch` is a name in `SKETCHES`, and `error` is the error bound of dyadic sketches; other sketches ignore it. The
    other arguments are passed to `HvtUCB`.
    """
    return HvtUCB(
        dim=dim, design=SKETCHES[sketch](dim, size, error, reg), epsilon=epsilon, nu=nu, exploration=exploration,
        clip=clip, seed=seed,
    )  # fmt: skip


SKETCHES: dict[str, Callable[[int, int, float, float], Design]] = {
    "FD": lambda dim, size, error, reg: FrequentDirections(dim=dim, size=size, reg=reg),
    "RFD": lambda dim, size, error, reg: RobustFrequentDirections(dim=dim, size=size, reg=reg),
    "dyadic FD": lambda dim, size, error, reg: Dyadic(dim=dim, size=size, error=error, reg=reg),
    "dyadic RFD": lambda dim, size, error, reg: Dyadic(dim=dim, size=size, error=error, reg=reg, base="rfd"),
    "PSI": lambda dim, size, error, reg: ProjectorSplitting(dim=dim, rank=size, reg=reg, compensate=True),
}


def _hvt_policies(tail: Mapping[str, Any]) -> tuple[Policy, ...]:
    """Return three policies of Hvt-UCB: tuned with a given epsilon, at defaults with a given nu, and at defaults.

    `tail` has the arguments `epsilon` and `nu` of `HvtUCB` by name.
    """
    defaults = {name: value for name, value in tail.items() if name != "epsilon"}
    unknown = {name: value for name, value in defaults.items() if name != "nu"}
    return (
        Policy("HvtUCB", "HvtUCB", tail),
        Policy("HvtUCB defaults", "HvtUCB", defaults, "HvtUCB", tuned=False),
        Policy("HvtUCB nu unknown", "HvtUCB", unknown, "HvtUCB", tuned=False),
    )


def policies(noise: Noise, epsilon: float, rounds: int, nu: float | None = None) -> tuple[Policy, ...]:
    """Return all policies for a problem with fixed arms, each with the constants that its paper needs.

    `noise` is the noise of the rewards, whose moment of order 1 + `epsilon` is finite. `rounds` is the number of
    rounds. `nu` is the scale of the noise; None takes the noise's `size`.
    """
    tail = {"epsilon": epsilon, "nu": typical_size(noise) if nu is None else nu}
    rewards = {"epsilon": epsilon, "moment": round(noise.reward_moment(1.0 + epsilon), 3), **RULE}
    paper = Policy("HvtUCB Wang et al.'s constants", HvtUCBPaper, {**tail, "horizon": rounds}, "HvtUCB", tuned=False)
    menu = {"epsilon": epsilon, "moment": round(noise.moment(1.0 + epsilon), 3), "horizon": rounds, **RULE}
    return (
        Policy("OFUL", "OFUL", RULE),
        *_hvt_policies(tail),
        paper,
        Policy("HeavyOFUL", "HeavyOFUL", tail),
        Policy("CRTM", "CRTM", {**rewards, "clip": 1.0}),
        Policy("CRMM", "CRMM", {"horizon": rounds, **RULE}),
        Policy("MENU", "MENU", menu),
        Policy("TOFU", "TOFU", {**rewards, "clip": 1.0}),
    )


def typical_size(noise: Noise) -> float:
    return round(noise.size, 4)


def _sketch_policies(tail: Mapping[str, float], size: int, blocks: int, error: float) -> tuple[Policy, ...]:
    """Return OFUL and Hvt-UCB on the exact design, on sketches of `size` rows and on dyadic ones.

    `tail` has the arguments `epsilon` and `nu` of `HvtUCB` by name. The first block of the dyadic sketches has `blocks`
    rows, and `error` is their error bound. The estimator rescales rows, so `error` must be compared with the number of
    rounds, as for OFUL.
    """
    fixed, growing = {"size": size}, {"size": blocks, "error": error}
    return (
        Policy("OFUL", "OFUL", RULE),
        *_hvt_policies(tail),
        *(
            Policy(
                f"HvtUCB {name}",
                HvtUCBSketched,
                {"nu": tail["nu"], "sketch": name, **(growing if name.startswith("dyadic") else fixed)},
            )
            for name in SKETCHES
        ),
    )


def _fixed_arms_experiment(
    name: str, description: str, noise: Noise, epsilon: float, *, dim: int = 2, rounds: int = 18_000,
    nu: float | None = None, constant: bool = False, seeds: int = 50,
) -> Experiment:  # fmt: skip
    """Make an experiment on Wang et al.'s problem: 50 fixed arms of `dim` features, with rewards that have `noise`.

    `epsilon` and `nu` are passed to `policies`, and `constant` is an argument of `FixedArms`.
    """
    return _heavy_experiment(
        name,
        description,
        partial(FixedArms, 50, dim, noise=noise, constant=constant),
        policies(noise, epsilon, rounds, nu),
        rounds,
        seeds,
    )


def _heavy_experiment(
    name: str, description: str, environment: Callable[[int], Environment], found: tuple[Policy, ...], rounds: int,
    seeds: int = 50,
) -> Experiment:  # fmt: skip
    return Experiment(name, description, environment, found, rounds, seeds, figure=HEAVY, grid=GRID)


def _noisy_classification_factory(name: str, noise: Noise) -> Callable[[int], Environment]:
    return partial(_noisy_classification, name=name, noise=noise)


def _noisy_classification(seed: int, name: str, noise: Noise) -> Environment:
    """Make the problem of finding the target class of the data set `name`, with `noise` added to the rewards."""
    return Noisy(Classification(load(name), seed), noise, seed)


def _noisy_labels(seed: int, name: str, noise: Noise) -> Environment:
    """Make the problem of naming the class of each example of the data set `name`, with `noise` added to the rewards.

    There is one arm for each class (`Labels`).
    """
    return Noisy(Labels(load(name), seed), noise, seed)


WIDE, PAID, REVENUE = StudentT(1.5, scale=0.3), StudentT(1.5, scale=0.3), Pareto(1.5, scale=0.2)
WIDE_TAIL, PAID_TAIL, REVENUE_TAIL = ({"epsilon": 0.4, "nu": typical_size(noise)} for noise in (WIDE, PAID, REVENUE))
PER_ARM = {"model": "disjoint"}

SUITES = (
    _fixed_arms_experiment(
        "student",
        "Student t, 2.1 degrees of freedom: 2 features, 50 fixed arms (Wang et al. figure 1)",
        StudentT(2.1),
        0.99,
        nu=1.31,
    ),
    _fixed_arms_experiment("gaussian", "the same with Gaussian noise (Wang et al. figure 2)", Gaussian(), 1.0),
    _fixed_arms_experiment(
        "student-1.5", "the same with Student t, 1.5 degrees of freedom: no variance", StudentT(1.5), 0.4
    ),
    _fixed_arms_experiment(
        "student-1.2", "the same with Student t, 1.2 degrees of freedom: hardly a mean", StudentT(1.2), 0.15
    ),
    _fixed_arms_experiment(
        "pareto", "the same with centred Pareto noise of index 1.5: no variance, skewed", Pareto(1.5), 0.4
    ),
    _fixed_arms_experiment("pareto-constant", "pareto, and a constant feature", Pareto(1.5), 0.4, constant=True),
    _fixed_arms_experiment(
        "contaminated", "the same with Gaussian noise, one reward in 100 times 100", Contaminated(), 1.0
    ),
    _fixed_arms_experiment(
        "student-100",
        "Student t, 2.1 degrees of freedom: 100 features, 50 fixed arms",
        StudentT(2.1),
        0.99,
        dim=100,
        rounds=5_000,
        nu=1.31,
        seeds=10,
    ),
    _heavy_experiment(
        "epsilon",
        "Hvt-UCB told another epsilon, on student-1.2",
        partial(FixedArms, 50, 2, noise=StudentT(1.2)),
        tuple(
            Policy(f"HvtUCB epsilon={epsilon:g}", "HvtUCB", {"epsilon": epsilon, "nu": typical_size(StudentT(1.2))})
            for epsilon in (0.2, 0.4, 0.6, 0.8, 1.0)
        ),
        18_000,
    ),
    _heavy_experiment(
        "heavy-500",
        "wide contexts of decaying spectrum, Student t, 1.5 degrees of freedom: 500 features, 20 new arms a round",
        partial(Decaying, 20, 500, noise=WIDE),
        _sketch_policies(WIDE_TAIL, size=50, blocks=25, error=40.0),
        2_000,
        seeds=10,
    ),
    _heavy_experiment(
        "digits-heavy",
        "digits as a bandit, Student t of 1.5 degrees of freedom (scale 0.3) added to the rewards",
        _noisy_classification_factory("digits", PAID),
        _sketch_policies(PAID_TAIL, size=16, blocks=8, error=75.0),
        2_000,
        seeds=20,
    ),
    _heavy_experiment(
        "mnist-heavy",
        "the same on MNIST",
        _noisy_classification_factory("mnist", PAID),
        _sketch_policies(PAID_TAIL, size=50, blocks=25, error=40.0),
        2_000,
        seeds=5,
    ),
    _heavy_experiment(
        "digits-revenue",
        "name the digit with one model per arm, centred Pareto noise of index 1.5 (scale 0.2) added to the rewards",
        partial(_noisy_labels, name="digits", noise=REVENUE),
        (Policy("LinUCB", "LinUCB", {**RULE, **PER_ARM}), *_hvt_policies({**REVENUE_TAIL, **PER_ARM})),
        2_000,
        seeds=10,
    ),
)
