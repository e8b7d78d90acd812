"""Experiments that compare ridge regression and Newton steps on the same sketches, for many values of reg.

docs/sketches_measured.md shows the results.

The exploration of every policy is tuned at every reg on the data set optdigits, with separate seeds. Results are
reported for the other data sets:

    onepass tune newton-arms-optdigits --out results/arms; onepass run newton-arms-digits --tuned results/arms
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from onepass import (
    UCB,
    Bandit,
    Disjoint,
    Exact,
    InverseGap,
    OnlineNewton,
    ProjectorSplitting,
    Ridge,
    SingleDrawThompson,
)
from onepass.design.design import Design
from onepass.lab.bandits.environments import Classification, Environment, Labels
from onepass.lab.bandits.figures import REG
from onepass.lab.bandits.heavy import SKETCHES
from onepass.lab.bandits.study import Experiment
from onepass.lab.datasets import load
from onepass.lab.definition import Study
from onepass.lab.policy import Policy, policy_variant

REGS = (0.02, 0.2, 2.0)
EXPLORATIONS = (0.01, 0.03, 0.1, 0.3, 1.0)
PART, MOST = 4, 50  # sketches of a quarter of the dimensions, at most 50 rows
DESIGNS: dict[str, Callable[[int, int, float], Design]] = {
    "Exact": lambda dim, size, reg: Exact(dim=dim, reg=reg),
    "FD": lambda dim, size, reg: SKETCHES["FD"](dim, size, 0.0, reg),
    "RFD": lambda dim, size, reg: SKETCHES["RFD"](dim, size, 0.0, reg),
    "PSI": lambda dim, size, reg: ProjectorSplitting(dim=dim, rank=size, reg=reg),
    "PSI-C": lambda dim, size, reg: SKETCHES["PSI"](dim, size, 0.0, reg),
}
ESTIMATORS: dict[str, Any] = {"ridge": Ridge, "newton": OnlineNewton}
MODELS: dict[str, Any] = {"shared": lambda estimator: estimator, "arms": Disjoint}
RULES: dict[str, Any] = {"UCB": UCB, "Thompson": SingleDrawThompson, "InverseGap": InverseGap}


def Sketched(
    *, dim: int, model: str, design: str, estimator: str, rule: str, reg: float, exploration: float, seed: int = 0
) -> Bandit:
    """Return a bandit with ridge regression or Newton steps on an exact or sketched matrix.

    - model: "shared" for one model, or "arms" for a model per arm.
    - design, estimator, rule: names in `DESIGNS`, `ESTIMATORS` and `RULES`.
    - reg: ridge penalty.
    - exploration: multiplier of the width.
    """
    made = ESTIMATORS[estimator](DESIGNS[design](dim, max(2, min(MOST, dim // PART)), reg))
    return Bandit(MODELS[model](made), RULES[rule](exploration), seed=seed, name="Sketched")


def policies(model: str, rule: str, designs: tuple[str, ...]) -> tuple[Policy, ...]:
    """Return the policies at every ridge penalty: ridge regression on every design, and Newton steps on every sketch.

    `designs` are names in `DESIGNS`. `model` and `rule` are passed to `Sketched`.
    """
    found, start = [], {"model": model, "rule": rule, "reg": 1.0, "exploration": 0.1}
    for design in designs:
        for estimator in ("ridge",) if design == "Exact" else tuple(ESTIMATORS):
            label = design if design == "Exact" else f"{design} {estimator}"
            found.append(Policy(label, Sketched, {"design": design, "estimator": estimator, **start}))
    return tuple(policy_variant(policy, f"reg={reg:g}", reg=reg) for policy in found for reg in REGS)


def problem(seed: int, model: str, name: str) -> Environment:
    """Return a bandit problem made from the data set `name`.

    If `model` is "arms", arms are classes and the context is an example. Else arms are examples, and one class pays.
    """
    return Labels(load(name), seed) if model == "arms" else Classification(load(name), seed)


def _sketch_experiment(
    name: str, data: str, model: str, rule: str, designs: tuple[str, ...], seeds: int = 10
) -> Experiment:
    """Make the experiment `name` that plays ridge regression and Newton steps on the data set `data`.

    `model` and `rule` are arguments of `Sketched`, and `designs` are names in `DESIGNS`.
    """
    return Experiment(
        name,
        f"ridge regression and Newton steps on the same sketches, {rule}, "
        + (f"a model per arm, on {data}" if model == "arms" else f"one shared model, on {data}"),
        partial(problem, model=model, name=data),
        policies(model, rule, designs),
        rounds=2000,
        seeds=seeds,
        figure=REG,
        grid={"exploration": EXPLORATIONS},
    )


SUITES: tuple[Study, ...] = (
    *(
        _sketch_experiment(f"newton-arms-{data}", data, "arms", "UCB", tuple(DESIGNS), seeds)
        for data, seeds in (("optdigits", 10), ("digits", 10), ("mfeat-zernike", 10), ("spambase", 10), ("mnist", 3))
    ),
    *(
        _sketch_experiment(f"newton-{model}-{rule.lower()}-{data}", data, model, rule, ("Exact", "FD", "RFD"))
        for rule in ("Thompson", "InverseGap")
        for model, sets in (("arms", ("optdigits", "spambase")), ("shared", ("optdigits", "digits")))
        for data in sets
    ),
)
