"""River: online kernel learners as its estimators, and bandits with a model per arm as its policies.

    model = KernelClassifier(classes=("ham", "spam"))       learn_one(x, y), predict_one(x), predict_proba_one(x)
    policy = LinearPolicy(seed=0)                           pull(arms, context=x), update(arm, x, reward)

Examples are dictionaries. `onepass.Records` gives a feature name its columns when it is first learned. Values are
strings, numbers or missing.
"""

from typing import Any

import numpy as np
from river.bandit.base import ContextualPolicy
from river.base import Classifier, Regressor

from onepass.adapters.scikit_learn import OnlineKernelClassifier, OnlineKernelRegressor
from onepass.bandit.bandit import Bandit
from onepass.features.records import Records
from onepass.recipes.linear import LinUCB

COLUMNS = 64  # default number of columns; an eighth of them are shared by further feature names


class KernelClassifier(Classifier):
    """Classifier of River: `onepass.OnlineKernelClassifier` on dictionaries.

    Parameters
    ----------
    classes : sequence, default (False, True)
        All labels that may occur.
    size : int, default 64
        Number of columns, at least 2. The first feature names get a column each; later names share the last eighth of
        the columns.
    seed : int, default 0
        Seed of the hash by which later feature names share columns, at least 0.

    Raises
    ------
    ValueError
        If an argument is outside its range.
    """

    classes: Any
    size: int
    seed: int

    def __init__(self, classes: Any = (False, True), size: int = COLUMNS, seed: int = 0) -> None:
        self.classes, self.size, self.seed = classes, size, seed
        self._records, self._model = Records(size=size, seed=seed), OnlineKernelClassifier()
        self._is_fitted = False

    def learn_one(self, x: dict[Any, Any], y: Any) -> None:
        """Learn an example.

        Parameters
        ----------
        x : dict
            Features by name.
        y : label
            Label of the example.

        Raises
        ------
        ValueError
            If the label is none of `classes`.
        """
        self._records.learn([x])
        self._model.learn_one(self._records.transform(x), y, None if self._is_fitted else list(self.classes))
        self._is_fitted = True

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """Return the probabilities of the labels, equal before the first example.

        Parameters
        ----------
        x : dict
            Features by name.
        **kwargs : dict
            Not used.

        Returns
        -------
        dict
            Probabilities by label.
        """
        if not self._is_fitted:
            return dict.fromkeys(self.classes, 1.0 / len(self.classes))
        probabilities = self._model.predict_proba_one(self._records.transform(x))
        return dict(zip(self._model.classes_.tolist(), probabilities.tolist(), strict=True))

    @property
    def _multiclass(self) -> bool:
        return True


class KernelRegressor(Regressor):
    """Regressor of River: `onepass.OnlineKernelRegressor` on dictionaries.

    Parameters
    ----------
    size : int, default 64
        Number of columns, at least 2. The first feature names get a column each; later names share the last eighth of
        the columns.
    seed : int, default 0
        Seed of the hash by which later feature names share columns, at least 0.

    Raises
    ------
    ValueError
        If an argument is outside its range.
    """

    size: int
    seed: int

    def __init__(self, size: int = COLUMNS, seed: int = 0) -> None:
        self.size, self.seed = size, seed
        self._records, self._model = Records(size=size, seed=seed), OnlineKernelRegressor()
        self._is_fitted = False

    def learn_one(self, x: dict[Any, Any], y: float) -> None:
        """Learn an example.

        Parameters
        ----------
        x : dict
            Features by name.
        y : float
            Target of the example.
        """
        self._records.learn([x])
        self._model.learn_one(self._records.transform(x), y)
        self._is_fitted = True

    def predict_one(self, x: dict[Any, Any]) -> float:
        """Return the predicted target, 0.0 before the first example.

        Parameters
        ----------
        x : dict
            Features by name.

        Returns
        -------
        float
            Predicted target.
        """
        return float(self._model.predict_one(self._records.transform(x))) if self._is_fitted else 0.0


class LinearPolicy(ContextualPolicy):
    """Contextual policy for the library River: LinUCB with a linear model per arm.

    Parameters
    ----------
    exploration : float or Exploration, default 0.1
        Multiplier of the width in the confidence bounds, or an exploration rule, as for `onepass.LinUCB`.
    reg : float, default 1.0
        Ridge penalty, above 0.
    size : int, default 64
        Number of columns, at least 3. One is constant. The first feature names get a column each; later names share the
        last eighth of the columns.
    reward_obj : object, default None
        Object of River that summarizes rewards, as for River's policies.
    burn_in : int, default 0
        Number of first pulls that take the arms in turn, as for River's policies.
    seed : int, default 0
        Seed of all draws, at least 0.

    Raises
    ------
    ValueError
        If an argument is outside its range.
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
    ) -> None:
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
        """Learn the reward of an arm in a context.

        Parameters
        ----------
        arm_id : hashable
            Arm that was pulled.
        context : dict or None
            Features by name.
        *reward_args : float
            The reward, and further arguments of `reward_obj`.
        **reward_kwargs : dict
            Arguments of `reward_obj`.
        """
        super().update(arm_id, context, *reward_args, **reward_kwargs)
        self._records.learn([context or {}])
        self._bandit.learn(self._row(context), float(reward_args[0]), arm_id)
