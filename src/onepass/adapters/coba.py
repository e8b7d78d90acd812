"""Coba: a bandit with a model per arm as a learner of its experiments.

    learner = BanditLearner(exploration=onepass.InverseGap())
    coba.Experiment(environments, [learner, coba.VowpalSquarecbLearner()]).run()

Contexts are dictionaries, sequences of numbers, single values or None, as Coba gives them; `onepass.Records` turns
them into columns. The value of an action names its arm: a string, a number, or a tuple in place of a list. A prediction
returns the action, its propensity, and the decision, from which the learner learns.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from coba.primitives import Learner

from onepass.bandit.bandit import Bandit
from onepass.features.records import Records
from onepass.recipes.linear import LinUCB

COLUMNS = 64  # default number of columns; an eighth of them are shared by further feature names


def _arm_name(action: Any) -> Any:
    """Return an action as the name of an arm, which is hashable."""
    if isinstance(action, Mapping):
        return tuple(sorted((str(key), _arm_name(value)) for key, value in action.items()))
    return action if isinstance(action, Hashable) else tuple(map(_arm_name, action))


def _features_from_context(context: Any) -> dict[str, Any]:
    """Return a context of any kind as a dictionary from names to values.

    A sequence gets the names "x0", "x1", ..., a single number or text the name "x0". None has no features.
    """
    if context is None:
        return {}
    if isinstance(context, Mapping):
        return {str(name): value for name, value in context.items()}
    values = context if isinstance(context, Sequence) and not isinstance(context, str) else [context]
    return {f"x{index}": value for index, value in enumerate(values)}


class BanditLearner(Learner):
    """Learner of Coba: LinUCB, or any other exploration rule, with a model per action.

    Parameters
    ----------
    exploration : float or Exploration, default 0.1
        Multiplier of the width in the confidence bounds, or an exploration rule, as for `onepass.LinUCB`.
    reg : float, default 1.0
        Ridge penalty, above 0.
    size : int, default 64
        Number of columns, at least 3. One is constant. The first feature names get a column each; later names share the
        last eighth of the columns.
    seed : int, default 0
        Seed of the draws, and of the hash by which later feature names share columns, at least 0.

    Raises
    ------
    ValueError
        If an argument is outside its range.
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
        """Parameters that Coba shows with its results."""
        return {"family": "onepass", "exploration": str(self.exploration), "reg": self.reg, "seed": self.seed}

    def _row(self, context: Any) -> np.ndarray:
        return np.append(self._records.transform(_features_from_context(context)), 1.0)

    def score(self, context: Any, actions: Any, action: Any) -> float:
        """Return the probability of an action in a context, without a draw.

        Parameters
        ----------
        context : dict, sequence, number, str or None
            Context of the decision.
        actions : sequence
            All actions on offer.
        action : object
            Action to score, one of `actions`.

        Returns
        -------
        float
            Probability with which `predict` would choose the action.
        """
        found = self._bandit.probabilities(self._row(context), [_arm_name(offered) for offered in actions])
        return float(found[list(actions).index(action)])

    def predict(self, context: Any, actions: Any) -> Any:
        """Choose an action for a context.

        Parameters
        ----------
        context : dict, sequence, number, str or None
            Context of the decision.
        actions : sequence
            All actions on offer.

        Returns
        -------
        tuple of (action, float, dict)
            The action, its propensity, and the decision for `learn`.
        """
        decision = self._bandit.decide(self._row(context), [_arm_name(action) for action in actions])
        return actions[decision.index], float(decision.propensity), {"decision": decision}

    def learn(self, context: Any, action: Any, reward: float, probability: float, decision: Any = None) -> None:
        """Learn the reward of an action in a context.

        Parameters
        ----------
        context : dict, sequence, number, str or None
            Context of the decision.
        action : object
            Action that was taken, by this learner or by another one.
        reward : float
            Reward of the action.
        probability : float
            Propensity of the action. A model per action does not use it.
        decision : Decision, default None
            Decision that `predict` returned. It is not used either: the reward counts for `action`.
        """
        self._records.learn([_features_from_context(context)])
        self._bandit.learn(self._row(context), float(reward), _arm_name(action))
