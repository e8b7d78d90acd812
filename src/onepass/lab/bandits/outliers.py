"""Regret on rewards of 0 and 1, which have no outliers: Hvt-UCB without constants beside ridge regression.

Data sets are played as bandits at four values of reg: a shared model finds the target class, or one model per arm names
the class. LinUCB plays at its default exploration and at other values, so that Hvt-UCB can also be compared with the
best of them.
"""

from functools import partial

from onepass.lab.bandits.environments import Classification, Environment, Labels
from onepass.lab.bandits.study import Experiment
from onepass.lab.datasets import load
from onepass.lab.policy import Policy

REGS = (0.02, 0.2, 1.0, 20.0)
EXPLORATIONS = (0.01, 0.1, 1.0, 3.0)  # LinUCB's own is 0.1


def _target_problem(seed: int, name: str) -> Environment:
    """Make the problem of finding examples of one class of the data set `name` (`Classification`): rewards 0 and 1."""
    return Classification(load(name), seed)


def _label_problem(seed: int, name: str) -> Environment:
    """Make the problem of naming the class of each example of the data set `name`: rewards 0 and 1.

    There is one arm for each class (`Labels`).
    """
    return Labels(load(name), seed)


def policies(per_arm: bool) -> tuple[Policy, ...]:
    """Return the policies of the study of outliers, at every ridge penalty.

    They are Hvt-UCB with its other defaults, and UCB with ridge regression at several explorations. `per_arm` is True
    for one model per arm, False for one model that all arms share.
    """
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
            partial(_target_problem, name=name),
            policies(per_arm=False),
            2_000,
            2 if name == "mnist" else 10,
        )
        for name in SETS
    ),
    *(
        Experiment(
            f"outliers-{name}-arms",
            f"0/1 rewards, no outliers: name the class of {name} by a model per arm, over reg",
            partial(_label_problem, name=name),
            policies(per_arm=True),
            2_000,
            1 if name == "mnist" else 5,
        )
        for name in SETS
    ),
)
