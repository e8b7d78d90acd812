"""The named experiments, as data. Sources: P0 = Wen et al. (DBSLinUCB), P3 = Shustova et al. (PSI-LinUCB).

>>> find("digits").rounds
2000
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from onepass.experiment.bandits import EXPLORATIONS, Experiment
from onepass.experiment.datasets import load
from onepass.experiment.definition import Policy, Study
from onepass.experiment.environments import Classification, Environment, Linear, dataset_rows, gaussian_rows
from onepass.experiment.errors import ExperimentError
from onepass.experiment.matrices import MatrixStudy

REGS = (0.02, 0.2, 2.0, 20.0, 200.0)


def policies(size: int, blocks: int, error: float = 8.0) -> tuple[Policy, ...]:
    """Every shared-parameter policy: fixed sketches of `size` rows, dyadic ones that begin with `blocks` rows."""
    rule = {"reg": 1.0, "exploration": 0.1}
    sketch, dyadic = {"size": size, **rule}, {"size": blocks, "error": error, **rule}
    return (
        Policy("OFUL", "OFUL", rule),
        Policy("LinTS", "LinTS", rule),
        Policy("SOFUL", "SOFUL", sketch),
        Policy("SOFUL-TS", "SOFUL", {**sketch, "thompson": True}),
        Policy("CBSCFD", "CBSCFD", sketch),
        Policy("CBRAP", "CBRAP", sketch),
        Policy("DBSLinUCB", "DBSLinUCB", {**dyadic, "base": "fd"}),
        Policy("DBSLinUCB-RFD", "DBSLinUCB", {**dyadic, "base": "rfd"}),
        Policy("PSILinUCB", "PSILinUCB", {"rank": size, "compensate": False, **rule}),
        Policy("PSILinUCB-C", "PSILinUCB", {"rank": size, "compensate": True, **rule}),
    )


def at(group: Policy, note: str, **params: object) -> Policy:
    """One of several settings of a policy: its label says which."""
    changed = group.but(**params)
    return Policy(f"{group.label} {note}", changed.recipe, changed.params, group.label)


def over_reg(group: Iterable[Policy]) -> tuple[Policy, ...]:
    return tuple(at(policy, f"reg={reg:g}", reg=reg) for policy in group for reg in REGS)


def over_sizes(sizes: Sequence[int], dyadic: Sequence[tuple[int, float]]) -> tuple[Policy, ...]:
    """OFUL, the fixed sketches at every size, the dyadic ones at every (first block, error): P0 figure 3 c and d."""
    every = {policy.label: policy for policy in policies(size=1, blocks=1)}
    found = [every["OFUL"]]
    for name in ("SOFUL", "CBSCFD", "CBRAP"):
        found += [at(every[name], f"size={size}", size=size) for size in sizes]
    for name in ("DBSLinUCB", "DBSLinUCB-RFD"):
        found += [at(every[name], f"size={size} error={error:g}", size=size, error=error) for size, error in dyadic]
    for name in ("PSILinUCB", "PSILinUCB-C"):
        found += [at(every[name], f"rank={size}", rank=size) for size in sizes]
    return tuple(found)


def classification(name: str) -> Callable[[int], Environment]:
    return lambda seed: Classification(load(name), seed)


def synthetic(normalized: bool) -> Callable[[int], Environment]:
    return lambda seed: Linear(arms=100, dim=500, seed=seed, normalized=normalized)


def synthetic_policies() -> tuple[Policy, ...]:
    every = {policy.label: policy for policy in policies(size=50, blocks=50)}
    fixed = [at(every[name], f"size={size}", size=size) for name in ("SOFUL", "CBSCFD") for size in (50, 450)]
    return (every["OFUL"], *fixed, every["DBSLinUCB"], every["DBSLinUCB-RFD"])


def mnist_rows(seed: int, rounds: int) -> np.ndarray:
    return dataset_rows(load("mnist"), seed, rounds)


def approximation_designs() -> tuple[Policy, ...]:
    dyadic = {"reg": 1.0, "size": 16, "base": "fd"}
    return (
        Policy("FD size=50", "FrequentDirections", {"reg": 1.0, "size": 50}),
        *(Policy(f"DBS error={error:g}", "Dyadic", {**dyadic, "error": error}) for error in (5.0, 10.0, 20.0)),
    )


def inverse_designs(rank: int) -> tuple[Policy, ...]:
    """Sketches of equal nominal rank; FD holds up to twice as many rows between its shrinks, PSI as many columns."""
    designs = (
        Policy("FD", "FrequentDirections", {"size": rank}),
        Policy("RFD", "RobustFrequentDirections", {"size": rank, "compensation": 1.0}),
        Policy("RFD half", "RobustFrequentDirections", {"size": rank, "compensation": 0.5}),
        Policy("PSI", "ProjectorSplitting", {"rank": rank, "compensate": False}),
        Policy("PSI compensated", "ProjectorSplitting", {"rank": rank, "compensate": True}),
    )
    return over_reg(designs)


WIDE, NARROW = policies(size=50, blocks=50), policies(size=10, blocks=10)
# the best points of `onepass tune mnist --seeds 5` (seeds 1000 to 1004, 2,000 rounds, the whole grid for every policy)
MNIST_BEST: dict[str, dict[str, float]] = {
    "OFUL": {"reg": 2.0, "exploration": 1e-4},
    "SOFUL": {"reg": 2.0, "exploration": 1e-3},
    "CBSCFD": {"reg": 0.2, "exploration": 1e-4},
    "CBRAP": {"reg": 0.2, "exploration": 1e-3},
    "DBSLinUCB": {"reg": 2.0, "exploration": 1e-3},
    "DBSLinUCB-RFD": {"reg": 0.2, "exploration": 0.1},
    "PSILinUCB": {"reg": 2.0, "exploration": 1e-4},
    "PSILinUCB-C": {"reg": 2.0, "exploration": 1e-2},
}
MNIST = tuple(replace(policy, params={**policy.params, **MNIST_BEST.get(policy.label, {})}) for policy in WIDE)
REG_STUDY = policies(size=20, blocks=50)

SUITES: tuple[Study, ...] = (
    Experiment(
        "digits",
        "classification as a bandit (P0 F.1) on scikit-learn's digits: 64 features, 10 arms",
        classification("digits"),
        policies(size=16, blocks=16),
        rounds=2000,
        seeds=20,
    ),
    Experiment(
        "mnist",
        "the same on MNIST, every policy tuned: 784 features, 10 arms (P0 figure 5)",
        classification("mnist"),
        MNIST,
        rounds=2000,
        seeds=20,
    ),
    Experiment(
        "optdigits",
        "the same on optdigits: 64 features, 10 arms",
        classification("optdigits"),
        policies(size=16, blocks=16),
        rounds=2000,
        seeds=20,
    ),
    Experiment(
        "cnae-9",
        "the same on cnae-9: 856 word counts, 9 arms (P0 F.4)",
        classification("cnae-9"),
        WIDE,
        rounds=2000,
        seeds=20,
    ),
    Experiment(
        "mfeat-zernike",
        "the same on mfeat-zernike: 47 features, 10 arms (P0 F.4)",
        classification("mfeat-zernike"),
        NARROW,
        rounds=2000,
        seeds=20,
    ),
    Experiment(
        "spambase",
        "the same on spambase: 57 features, 2 arms (P0 F.4)",
        classification("spambase"),
        NARROW,
        rounds=2000,
        seeds=20,
    ),
    Experiment(
        "synthetic",
        "linear rewards, 100 arms of N(0, I) in 500 dimensions (P0 figure 1)",
        synthetic(normalized=False),
        synthetic_policies(),
        rounds=2000,
        seeds=5,
        figure="bound",
    ),
    Experiment(
        "synthetic-unit",
        "the same with contexts of length 1, where an error of 8 lets the dyadic sketch shrink",
        synthetic(normalized=True),
        synthetic_policies(),
        rounds=2000,
        seeds=5,
        figure="bound",
    ),
    MatrixStudy(
        "matrix-approximation",
        "spectral error and its bound along 1,250 unit rows in 500 dimensions (P0 figure 4)",
        gaussian_rows,
        approximation_designs(),
        rounds=1250,
        seeds=5,
    ),
    Experiment(
        "mnist-reg",
        "regret over reg at fixed sizes on MNIST: where fixed sketches fail",
        classification("mnist"),
        over_reg(REG_STUDY),
        rounds=2000,
        seeds=10,
        figure="reg",
        grid={"exploration": EXPLORATIONS},
    ),
    Experiment(
        "mnist-pareto",
        "regret against time and memory on MNIST over sizes and errors (P0 figure 3 c, d)",
        classification("mnist"),
        over_sizes(
            (10, 20, 50, 100, 150, 200, 300, 400, 500, 600),
            [(50, 15.0), *product((50, 100, 200), (2.0, 8.0, 25.0))],
        ),
        rounds=2000,
        seeds=5,
        figure="pareto",
    ),
    Experiment(
        "digits-pareto",
        "the same on digits",
        classification("digits"),
        over_sizes((4, 8, 12, 16, 24, 32, 48), list(product((4, 8, 16), (1.0, 4.0, 16.0)))),
        rounds=2000,
        seeds=5,
        figure="pareto",
    ),
    MatrixStudy(
        "inverse-error",
        "relative error of A^-1 over reg at rank 50, after 1,000 rows of MNIST",
        mnist_rows,
        inverse_designs(50),
        rounds=1000,
        seeds=3,
        figure="inverse",
    ),
    MatrixStudy(
        "inverse-error-flat",
        "the same after 1,000 rows of flat spectrum in 500 dimensions",
        gaussian_rows,
        inverse_designs(50),
        rounds=1000,
        seeds=3,
        figure="inverse",
    ),
)


def find(name: str) -> Study:
    """The experiment of that name."""
    for suite in SUITES:
        if suite.name == name:
            return suite
    raise ExperimentError(f"there is no experiment '{name}': choose among {', '.join(suite.name for suite in SUITES)}")
