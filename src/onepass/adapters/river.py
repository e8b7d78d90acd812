"""River: online kernel learners as its estimators, bandits with models per arm as its policies; examples are
dictionaries.

    model = KernelClassifier(classes=("ham", "spam"))       learn_one(x, y), predict_one(x), predict_proba_one(x)
    policy = LinearPolicy(seed=0)                           pull(arms, context=x), update(arm, x, reward)

Names of features get columns by `onepass.Records` when they are first learned: strings, numbers and missing ones.
"""

from typing import Any

import numpy as np
from river.bandit.base import ContextualPolicy
from river.base import Classifier, Regressor

from onepass.adapters.scikit_learn import OnlineKernelClassifier, OnlineKernelRegressor
from onepass.bandit.bandit import Bandit
from onepass.features.records import Records
from onepass.recipes.linear import LinUCB

COLUMNS = 64  # of which an eighth are shared by names beyond


class KernelClassifier(Classifier):
    """`onepass.OnlineKernelClassifier` on dictionaries.

    classes: all labels that there may be (default (False, True)).
    size: columns, from 2 (default 64). seed: of shared columns, at least 0 (default 0). ValueError outside those
    ranges.
    """

    classes: Any
    size: int
    seed: int

    def __init__(self, classes: Any = (False, True), size: int = COLUMNS, seed: int = 0) -> None:
        self.classes, self.size, self.seed = classes, size, seed
        self._records, self._model = Records(size=size, seed=seed), OnlineKernelClassifier()
        self._begun = False

    def learn_one(self, x: dict[Any, Any], y: Any) -> None:
        """Learn an example x and its label y; ValueError for a label that is none of `classes`."""
        self._records.learn([x])
        self._model.learn_one(self._records.transform(x), y, None if self._begun else list(self.classes))
        self._begun = True

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """The probability of every label for an example x; equal ones before the first example. kwargs: none."""
        if not self._begun:
            return dict.fromkeys(self.classes, 1.0 / len(self.classes))
        found = self._model.predict_proba_one(self._records.transform(x))
        return dict(zip(self._model.classes_.tolist(), found.tolist(), strict=True))

    @property
    def _multiclass(self) -> bool:
        return True


class KernelRegressor(Regressor):
    """`onepass.OnlineKernelRegressor` on dictionaries.

    size: columns, from 2 (default 64). seed: of shared columns, at least 0 (default 0). ValueError outside those
    ranges.
    """

    size: int
    seed: int

    def __init__(self, size: int = COLUMNS, seed: int = 0) -> None:
        self.size, self.seed = size, seed
        self._records, self._model = Records(size=size, seed=seed), OnlineKernelRegressor()
        self._begun = False

    def learn_one(self, x: dict[Any, Any], y: float) -> None:
        """Learn an example x and its target y."""
        self._records.learn([x])
        self._model.learn_one(self._records.transform(x), y)
        self._begun = True

    def predict_one(self, x: dict[Any, Any]) -> float:
        """The target that is expected of an example x; 0.0 before the first example."""
        return float(self._model.predict_one(self._records.transform(x))) if self._begun else 0.0


class LinearPolicy(ContextualPolicy):
    """LinUCB with a model per arm, as a policy of River.

    exploration: a number or a rule, as of `onepass.LinUCB` (default 0.1); reg: above 0 (default 1.0).
    size: columns of contexts, from 2 (default 64), one of which is constant.
    reward_obj, burn_in: as of River's policies. seed: at least 0 (default 0). ValueError outside those ranges.
    """

    exploration: Any
    reg: float
    size: int
    seed: int

    def __init__(
        self,
        exploration: Any = 0.1,
        reg: float = 1.0,
        size: int = COLUMNS,
        reward_obj: Any = None,
        burn_in: int = 0,
        seed: int = 0,
    ):
        super().__init__(reward_obj, burn_in=burn_in)
        self.exploration, self.reg, self.size, self.seed = exploration, reg, size, seed
        self._records = Records(size=size - 1, seed=seed)
        bandit = LinUCB(dim=size, reg=reg, exploration=exploration, model="disjoint", seed=seed)
        assert isinstance(bandit, Bandit)
        self._bandit = bandit

    def _row(self, context: dict[Any, Any] | None) -> np.ndarray:
        return np.append(self._records.transform(context or {}), 1.0)

    def _pull(self, arm_ids: Any, context: dict[Any, Any] | None = None) -> Any:
        return self._bandit.decide(self._row(context), list(arm_ids)).arm

    def update(self, arm_id: Any, context: dict[Any, Any] | None, *reward_args: Any, **reward_kwargs: Any) -> None:
        """Learn what an arm paid in a context, the first of reward_args; the rest, and reward_kwargs, are River's."""
        super().update(arm_id, context, *reward_args, **reward_kwargs)
        self._records.learn([context or {}])
        self._bandit.learn(self._row(context), float(reward_args[0]), arm_id)
