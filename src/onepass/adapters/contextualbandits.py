"""contextualbandits: its interface on models per arm of ours; the package itself is not needed.

    model = LinUCB(nchoices=10, alpha=0.1)              # was: from contextualbandits.online import LinUCB
    model.fit(X, a, r);  model.partial_fit(X, a, r);  model.predict(X);  model.topN(X, 3)

Arms are numbered from 0. Scores are those of contextualbandits' LinUCB without a constant; with one they differ a
little, since the ridge here is on the constant, too.
"""

from typing import Any, Self

import numpy as np

from onepass.bandit.bandit import Bandit
from onepass.exploration.exploration import Exploration
from onepass.exploration.ucb import UCB
from onepass.foundation import check
from onepass.recipes.linear import LinUCB as Recipe


class LinUCB:
    """Models per arm behind `fit`, `partial_fit`, `predict`, `decision_function` and `topN`.

    nchoices: how many arms, at least 1. alpha: of the upper confidence bounds, or a rule such as `onepass.InverseGap()`
    (default 1.0). lambda_: of the ridge, above 0 (default 1.0). fit_intercept: whether contexts get a constant
    (default True). random_state: at least 0 (default 1). ValueError outside those ranges.

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
    ):
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

    def _begun(self, dim: int) -> Bandit:
        found = Recipe(dim=dim, reg=self.lambda_, exploration=self.alpha, model="disjoint", seed=self.random_state)
        assert isinstance(found, Bandit)
        for arm in range(self.nchoices):
            found.add_arm(arm)
        return found

    def _known(self) -> Bandit:
        if self._bandit is None:
            raise ValueError("fit must come before predict")
        return self._bandit

    def fit(self, X: Any, a: Any, r: Any) -> Self:
        """Begin anew and learn contexts X (n, dim), arms a (n,) and rewards r (n,); ValueError for others."""
        self._bandit = None
        return self.partial_fit(X, a, r)

    def partial_fit(self, X: Any, a: Any, r: Any) -> Self:
        """Learn more of them."""
        rows = self._rows(X)
        arms = [check.integer("a", arm, 0, self.nchoices - 1) for arm in np.asarray(a).reshape(-1).tolist()]
        rewards = check.array("r", r, np.dtype(np.float64), (1,))
        bandit = self._bandit or self._begun(rows.shape[1])
        bandit.learn(rows, rewards, arms)
        self._bandit = bandit
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """What arms are ranked by, (n, nchoices), for contexts X (n, dim); ValueError before `fit`."""
        return self._known().score(self._rows(X)[:, None], list(range(self.nchoices)))

    def predict(self, X: Any, exploit: bool = False, output_score: bool = False) -> Any:
        """The arms (n,) for contexts X (n, dim). exploit: by means alone (default False); output_score: a dictionary of
        "choice" and "score", (n,) each (default False). ValueError before `fit`.
        """
        rows = self._rows(X)[:, None]
        arms = list(range(self.nchoices))
        if exploit:
            greedy = self._known().copy()
            greedy.exploration = UCB(0.0)
            chosen = greedy.score(rows, arms).argmax(axis=1)
        else:
            chosen = np.array(self._known().decide(rows, arms).index)
        if not output_score:
            return chosen
        scores = self._known().score(rows, arms)
        return {"choice": chosen, "score": scores[np.arange(len(scores)), chosen]}

    def topN(self, X: Any, n: int) -> np.ndarray:
        """The n best arms, (rows, n), best first, for contexts X (rows, dim); ValueError before `fit`."""
        count = check.integer("n", n, 1, self.nchoices)
        return np.argsort(-self.decision_function(X), axis=1, kind="stable")[:, :count]
