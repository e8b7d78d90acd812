"""The named experiments, as data. Sources: Wen, Yin et al. (DBSLinUCB), Shustova et al. (PSI-LinUCB).

Those with heavy-tailed rewards are in heavy.py, those of kernel bandits in kernel_suites.py, those of online
kernel learners in learner_suites.py.

>>> find("digits").rounds
2000
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, cast

import numpy as np

from onepass import UCB, Bandit, OnlineNewton
from onepass.experiment import heavy, kernel_suites, learner_suites
from onepass.experiment.bandits import EXPLORATIONS, Experiment
from onepass.experiment.datasets import load
from onepass.experiment.definition import Policy, Study
from onepass.experiment.environments import Classification, Environment, Linear, dataset_rows, gaussian_rows
from onepass.experiment.errors import ExperimentError
from onepass.experiment.matrices import MatrixStudy
from onepass.experiment.recommender import (
    CBRAP,
    Popularity,
    PSILinUCBFull,
    PSILinUCBSplit,
    Random,
    Recommender,
    RecommenderStudy,
    data,
)

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
    """OFUL, the fixed sketches at every size, the dyadic ones at every (first block, error): Wen, Yin et al. figure 3 c
    and d.
    """
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


RULE = {"reg": 1.0, "exploration": -0.1}  # Shustova et al.'s; ALGORITHMS section 7


def disjoint(label: str, recipe: str, **params: object) -> Recommender:
    return Recommender(label, recipe, {"parameters": "disjoint", **RULE, **params})


def full(rank: int) -> Recommender:
    return Recommender(f"PSILinUCB rank={rank}", PSILinUCBFull, {"rank": rank, **RULE}, "PSILinUCB")


def recommenders(ranks: Sequence[int], size: int, **rule: float) -> tuple[Recommender, ...]:
    """Every per-arm policy: LinUCB exact in r' dimensions, PSI-LinUCB in the full r'^2, sketches of `size` rows."""
    found = (
        disjoint("LinUCB", "LinUCB"),
        replace(disjoint("LinUCB row by row", "LinUCB"), batch=1),
        *(full(rank) for rank in ranks),
        disjoint("CBSCFD", "CBSCFD", size=size),
        Recommender("CBRAP", CBRAP, {"size": 2 * size, **RULE}),
        disjoint("DBSLinUCB", "DBSLinUCB", size=size, error=8.0),
    )
    others = (Recommender("Popularity", Popularity), Recommender("Random", Random))
    return (*(replace(policy, params={**policy.params, **rule}) for policy in found), *others)


def sweep(group: Recommender, **values: Sequence[int]) -> tuple[Recommender, ...]:
    """A policy at several sizes, or in several settings of its problem: its label says which."""
    ((name, many),) = values.items()
    where = name in group.own
    return tuple(
        replace(
            group,
            label=f"{group.label} {name}={value}",
            group=group.label,
            params=group.params if where else {**group.params, name: value},
            **cast(dict[str, Any], {name: value} if where else {}),
        )
        for value in many
    )


def over_problems(**values: Sequence[int]) -> tuple[Recommender, ...]:
    group = (
        disjoint("LinUCB", "LinUCB"),
        replace(disjoint("LinUCB row by row", "LinUCB"), batch=1),
        replace(full(16), label="PSILinUCB", group=""),
        disjoint("CBSCFD", "CBSCFD", size=16),
        Recommender("CBRAP", CBRAP, {"size": 32, **RULE}),
    )
    return tuple(policy for own in group for policy in sweep(own, **values))


MAGAZINE, MOVIELENS = data("magazine"), data("movielens-100k")
RANKS = (2, 4, 8, 12, 16, 24, 32, 48)
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


def Newton(*, dim: int, sketch: str, size: int, reg: float, exploration: float, seed: int = 0) -> Bandit:
    """Online Newton steps in place of ridge regression, on a sketch of `heavy.SKETCHES`."""
    design = heavy.SKETCHES[sketch](dim, size, 8.0, reg)
    return Bandit(OnlineNewton(design), UCB(exploration), seed=seed, name="Newton")


REG_STUDY = (
    *policies(size=20, blocks=50),
    *(
        Policy(f"{label} Newton", Newton, {"sketch": sketch, "size": 20, "reg": 1.0, "exploration": 0.1})
        for label, sketch in {"SOFUL": "FD", "CBSCFD": "RFD", "PSILinUCB-C": "PSI"}.items()
    ),
)

SUITES: tuple[Study, ...] = (
    Experiment(
        "digits",
        "classification as a bandit (Wen, Yin et al. F.1) on scikit-learn's digits: 64 features, 10 arms",
        classification("digits"),
        policies(size=16, blocks=16),
        rounds=2000,
        seeds=20,
    ),
    Experiment(
        "mnist",
        "the same on MNIST, every policy tuned: 784 features, 10 arms (Wen, Yin et al. figure 5)",
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
        "the same on cnae-9: 856 word counts, 9 arms (Wen, Yin et al. F.4)",
        classification("cnae-9"),
        WIDE,
        rounds=2000,
        seeds=20,
    ),
    Experiment(
        "mfeat-zernike",
        "the same on mfeat-zernike: 47 features, 10 arms (Wen, Yin et al. F.4)",
        classification("mfeat-zernike"),
        NARROW,
        rounds=2000,
        seeds=20,
    ),
    Experiment(
        "spambase",
        "the same on spambase: 57 features, 2 arms (Wen, Yin et al. F.4)",
        classification("spambase"),
        NARROW,
        rounds=2000,
        seeds=20,
    ),
    Experiment(
        "synthetic",
        "linear rewards, 100 arms of N(0, I) in 500 dimensions (Wen, Yin et al. figure 1)",
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
        "spectral error and its bound along 1,250 unit rows in 500 dimensions (Wen, Yin et al. figure 4)",
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
        "regret against time and memory on MNIST over sizes and errors (Wen, Yin et al. figure 3 c, d)",
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
    RecommenderStudy(
        "magazine",
        "top ten of 2,257 magazines for known users, by month, features of the warm-up (Shustova et al. tables 4, 5)",
        MAGAZINE,
        41,
        recommenders((8, 16, 48), size=16),
        rounds=26,
    ),
    RecommenderStudy(
        "movielens-100k",
        "the same of 1,616 films, week by week (MovieLens 100K)",
        MOVIELENS,
        13,
        recommenders((4, 8, 16), size=4, reg=10.0),
        rounds=7,
        unit="week",
    ),
    RecommenderStudy(
        "magazine-leaking",
        "as magazine, but features, users and arms of all data, the test included: Shustova et al.'s published figures",
        MAGAZINE,
        41,
        recommenders((48,), size=16),
        rounds=26,
        leaking=True,
    ),
    RecommenderStudy(
        "magazine-rank",
        "quality against rank and sketch size on magazine (Shustova et al. figures 6, 7)",
        MAGAZINE,
        41,
        (
            disjoint("LinUCB", "LinUCB"),
            *sweep(replace(full(16), label="PSILinUCB"), rank=RANKS),
            *sweep(disjoint("PSILinUCB compensated", "PSILinUCB", rank=16, compensate=True), rank=RANKS),
            *sweep(Recommender("PSILinUCB by its integrator", PSILinUCBSplit, {"rank": 16, **RULE}), rank=RANKS),
            *sweep(disjoint("CBSCFD", "CBSCFD", size=16), size=RANKS),
        ),
        rounds=26,
        figure="size",
    ),
    RecommenderStudy(
        "magazine-width",
        "time and memory against the dimension of contexts on magazine (Shustova et al. figure 1)",
        MAGAZINE,
        41,
        over_problems(factors=(5, 10, 20, 41, 70)),
        rounds=26,
        figure="width",
    ),
    RecommenderStudy(
        "magazine-arms",
        "time and memory against the number of arms, the most frequent first, on magazine (Shustova et al. figure 2)",
        MAGAZINE,
        41,
        over_problems(arms=(100, 250, 500, 1000, 2257)),
        rounds=26,
        figure="arms",
    ),
    RecommenderStudy(
        "magazine-batch",
        "batch size against rank for PSI-LinUCB on magazine (Shustova et al. figure 17)",
        MAGAZINE,
        41,
        tuple(
            policy for rank in (8, 16, 48) for policy in sweep(replace(full(rank), group=""), batch=(1, 4, 16, 64, 256))
        ),
        rounds=26,
        figure="batch",
    ),
    *heavy.SUITES,
    *kernel_suites.SUITES,
    *learner_suites.SUITES,
)


def find(name: str) -> Study:
    """The experiment of that name."""
    for suite in SUITES:
        if suite.name == name:
            return suite
    raise ExperimentError(f"there is no experiment '{name}': choose among {', '.join(suite.name for suite in SUITES)}")
