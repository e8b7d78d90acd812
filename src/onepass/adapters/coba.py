"""Coba: a bandit with models per arm as a learner of its experiments.

    learner = BanditLearner(exploration=onepass.InverseGap())
    coba.Experiment(environments, [learner, coba.VowpalSquarecbLearner()]).run()

Contexts are dictionaries, sequences of numbers, single values or None, as Coba gives them; columns come by
`onepass.Records`. Actions are arms by their values: strings, numbers, or tuples for what is a list. What is returned is
the action and its propensity, and the decision itself, from which is learned.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from coba.primitives import Learner

from onepass.bandit.bandit import Bandit
from onepass.features.records import Records
from onepass.recipes.linear import LinUCB

COLUMNS = 64  # of which an eighth are shared by names beyond


def named(value: Any) -> Any:
    """An action as a name of an arm: hashable."""
    if isinstance(value, Mapping):
        return tuple(sorted((str(key), named(one)) for key, one in value.items()))
    return value if isinstance(value, Hashable) else tuple(map(named, value))


def record(context: Any) -> dict[str, Any]:
    """A context as a dictionary."""
    if context is None:
        return {}
    if isinstance(context, Mapping):
        return {str(name): value for name, value in context.items()}
    values = context if isinstance(context, Sequence) and not isinstance(context, str) else [context]
    return {f"x{place}": value for place, value in enumerate(values)}


class BanditLearner(Learner):
    """A learner of Coba: LinUCB, or any other rule, with a model per action.

    exploration: a number or a rule, as of `onepass.LinUCB` (default 0.1); reg: above 0 (default 1.0).
    size: columns of contexts, from 3 (default 64), one of which is constant. seed: at least 0 (default 0).
    ValueError outside those ranges.
    """

    exploration: Any
    reg: float
    size: int
    seed: int

    def __init__(self, exploration: Any = 0.1, reg: float = 1.0, size: int = COLUMNS, seed: int = 0) -> None:
        self.exploration, self.reg, self.size, self.seed = exploration, reg, size, seed
        self._records = Records(size=size - 1, seed=seed)
        bandit = LinUCB(dim=size, reg=reg, exploration=exploration, model="disjoint", seed=seed)
        assert isinstance(bandit, Bandit)
        self._bandit = bandit

    @property
    def params(self) -> dict[str, Any]:
        """What results are shown with."""
        return {"family": "onepass", "exploration": str(self.exploration), "reg": self.reg, "seed": self.seed}

    def _row(self, context: Any) -> np.ndarray:
        return np.append(self._records.transform(record(context)), 1.0)

    def _decided(self, context: Any, actions: Any) -> Any:
        return self._bandit.decide(self._row(context), [named(action) for action in actions])

    def score(self, context: Any, actions: Any, action: Any) -> float:
        """The chance of an action in a context; nothing is drawn."""
        found = self._bandit.copy().decide(self._row(context), [named(one) for one in actions])
        return float(found.probabilities[0][list(actions).index(action)])

    def predict(self, context: Any, actions: Any) -> Any:
        """The action, its propensity, and the decision, for `learn`."""
        decision = self._decided(context, actions)
        return actions[decision.index], float(decision.propensity), {"decision": decision}

    def learn(self, context: Any, action: Any, reward: float, probability: float, decision: Any = None) -> None:
        """Learn what an action paid in a context; probability is of no use to a model per action.

        decision: what `predict` gave, which counts once; None: the action was chosen by somebody else.
        """
        self._records.learn([record(context)])
        self._bandit.learn(self._row(context), float(reward), named(action))
