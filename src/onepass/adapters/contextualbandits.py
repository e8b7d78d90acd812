"""contextualbandits: its interface on a bandit with a model per arm, without the package itself.

    model = LinUCB(nchoices=10, alpha=0.1)              # was: from contextualbandits.online import LinUCB
    model.fit(X, a, r);  model.partial_fit(X, a, r);  model.predict(X);  model.topN(X, 3)

Arms are numbered from 0. Without a constant, scores equal those of contextualbandits' LinUCB. With a constant they
differ a little, because here the ridge penalty is on the constant, too.
"""

from typing import Any, Self

import numpy as np

from onepass.bandit.bandit import Bandit
from onepass.exploration.exploration import Exploration
from onepass.exploration.ucb import UCB
from onepass.foundation import check
from onepass.recipes.linear import LinUCB as Recipe


class LinUCB:
    """LinUCB with a model per arm, behind the methods of contextualbandits.

    Parameters
    ----------
    nchoices : int
        Number of arms, at least 1.
    alpha : float or Exploration, default 1.0
        Multiplier of the width in the upper confidence bounds, at least 0, or a rule such as `onepass.InverseGap()`.
    lambda_ : float, default 1.0
        Ridge penalty, above 0.
    fit_intercept : bool, default True
        True to append a constant to contexts.
    random_state : int, default 1
        Seed of all draws, at least 0.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Examples
    --------
    >>> import numpy as np
    >>> X, a = np.eye(2)[[0, 1, 0, 1]], np.array([0, 1, 1, 0])
    >>> LinUCB(nchoices=2, alpha=0.0).fit(X, a, np.array([1.0, 1.0, 0.0, 0.0])).predict(np.eye(2))
    array([0, 1])
    """

    def __init__(
        self,
        nchoices: int,
        alpha: "float | Exploration" = 1.0,
        lambda_: float = 1.0,
        fit_intercept: bool = True,
        random_state: int = 1,
    ) -> None:
        self.nchoices: int = check.integer("nchoices", nchoices, 1)
        self.alpha: Exploration | float = alpha if isinstance(alpha, Exploration) else check.real("alpha", alpha)
        self.lambda_: float = check.positive("lambda_", lambda_)
        self.fit_intercept: bool = bool(check.choice("fit_intercept", fit_intercept, (False, True)))
        self.random_state: int = check.integer("random_state", random_state, 0)
        self._bandit: Bandit | None = None

    def _rows(self, X: Any) -> np.ndarray:
        rows = check.array("X", X, np.dtype(np.float64), (1, 2))
        rows = rows.reshape(-1, rows.shape[-1])
        return np.hstack([rows, np.ones((len(rows), 1))]) if self.fit_intercept else rows

    def _make_bandit(self, dim: int) -> Bandit:
        """Return a new bandit that knows all arms."""
        bandit = Recipe(dim=dim, reg=self.lambda_, exploration=self.alpha, model="disjoint", seed=self.random_state)
        assert isinstance(bandit, Bandit)
        for arm in range(self.nchoices):
            bandit.add_arm(arm)
        return bandit

    def _require_bandit(self) -> Bandit:
        if self._bandit is None:
            raise ValueError("fit must come before predict")
        return self._bandit

    def fit(self, X: Any, a: Any, r: Any) -> Self:
        """Forget everything and learn rewards.

        Parameters
        ----------
        X : array of shape (n, dim)
            Contexts.
        a : array of shape (n,)
            Arms that were chosen, from 0 to `nchoices` - 1.
        r : array of shape (n,)
            Rewards of these arms.

        Returns
        -------
        LinUCB
            The model itself.

        Raises
        ------
        ValueError
            If an array has another shape, an arm is out of range, or a number is not finite.
        """
        self._bandit = None
        return self.partial_fit(X, a, r)

    def partial_fit(self, X: Any, a: Any, r: Any) -> Self:
        """Learn more rewards.

        Parameters
        ----------
        X : array of shape (n, dim)
            Contexts.
        a : array of shape (n,)
            Arms that were chosen, from 0 to `nchoices` - 1.
        r : array of shape (n,)
            Rewards of these arms.

        Returns
        -------
        LinUCB
            The model itself.
        """
        rows = self._rows(X)
        arms = [check.integer("a", arm, 0, self.nchoices - 1) for arm in np.asarray(a).reshape(-1).tolist()]
        rewards = check.array("r", r, np.dtype(np.float64), (1,))
        bandit = self._bandit or self._make_bandit(rows.shape[1])
        bandit.learn(rows, rewards, arms)
        self._bandit = bandit
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores by which arms are ranked.

        Parameters
        ----------
        X : array of shape (n, dim)
            Contexts.

        Returns
        -------
        array of shape (n, nchoices)
            Scores of the arms.

        Raises
        ------
        ValueError
            Before `fit`.
        """
        return self._require_bandit().score(self._rows(X)[:, None], list(range(self.nchoices)))

    def predict(self, X: Any, exploit: bool = False, output_score: bool = False) -> Any:
        """Choose an arm for every context.

        Parameters
        ----------
        X : array of shape (n, dim)
            Contexts.
        exploit : bool, default False
            True to choose by means alone.
        output_score : bool, default False
            True to return the scores, too.

        Returns
        -------
        array of shape (n,), or dict
            The arms, or with `output_score` a dictionary of "choice" and "score", (n,) each.

        Raises
        ------
        ValueError
            Before `fit`.
        """
        rows = self._rows(X)[:, None]
        arms = list(range(self.nchoices))
        if exploit:
            greedy = self._require_bandit().copy()
            greedy.exploration = UCB(0.0)
            choice = greedy.score(rows, arms).argmax(axis=1)
        else:
            choice = np.array(self._require_bandit().decide(rows, arms).index)
        if not output_score:
            return choice
        scores = self._require_bandit().score(rows, arms)
        return {"choice": choice, "score": scores[np.arange(len(scores)), choice]}

    def topN(self, X: Any, n: int) -> np.ndarray:
        """Return the best arms for every context, best first.

        Parameters
        ----------
        X : array of shape (n_rows, dim)
            Contexts.
        n : int
            Number of arms, from 1 to `nchoices`.

        Returns
        -------
        array of shape (n_rows, n)
            The arms.

        Raises
        ------
        ValueError
            Before `fit`.
        """
        count = check.integer("n", n, 1, self.nchoices)
        return np.argsort(-self.decision_function(X), axis=1, kind="stable")[:, :count]
