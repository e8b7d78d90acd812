"""Outliers without regret where there are none: Hvt-UCB told nothing, beside ridge regression on 0/1 rewards, as data.

A data set as a bandit at four values of reg: the target class found by a shared model, and the class named by a model
per arm. LinUCB at its recipe's exploration and at others, of which the best is to be compared with as well.
"""

from functools import partial

from onepass.lab.bandits.environments import Classification, Environment, Labels
from onepass.lab.bandits.study import Experiment
from onepass.lab.datasets import load
from onepass.lab.policy import Policy

REGS = (0.02, 0.2, 1.0, 20.0)
EXPLORATIONS = (0.01, 0.1, 1.0, 3.0)  # LinUCB's own is 0.1


def found(seed: int, name: str) -> Environment:
    """The target class of a data set is to be found: rewards 0 and 1."""
    return Classification(load(name), seed)


def named(seed: int, name: str) -> Environment:
    """The classes of a data set are to be named by models per arm: rewards 0 and 1."""
    return Labels(load(name), seed)


def clean(per_arm: bool) -> tuple[Policy, ...]:
    """Hvt-UCB told nothing, and ridge regression at every exploration, at every reg."""
    ridge, own = "LinUCB" if per_arm else "OFUL", {"model": "disjoint"} if per_arm else {}
    return tuple(
        policy
        for reg in REGS
        for policy in (
            Policy(f"HvtUCB reg={reg:g}", "HvtUCB", {"reg": reg, **own}, "HvtUCB", tuned=False),
            *(
                Policy(f"{ridge} reg={reg:g} exploration={e:g}", ridge, {"reg": reg, "exploration": e, **own}, ridge)
                for e in EXPLORATIONS
            ),
        )
    )


SETS = ("mnist", "optdigits", "mfeat-zernike")
SUITES = (
    *(
        Experiment(
            f"outliers-{name}",
            f"0/1 rewards, no outliers: find the target class of {name}, shared model, over reg",
            partial(found, name=name),
            clean(per_arm=False),
            2_000,
            2 if name == "mnist" else 10,
        )
        for name in SETS
    ),
    *(
        Experiment(
            f"outliers-{name}-arms",
            f"0/1 rewards, no outliers: name the class of {name} by a model per arm, over reg",
            partial(named, name=name),
            clean(per_arm=True),
            2_000,
            1 if name == "mnist" else 5,
        )
        for name in SETS
    ),
)
