"""scikit-learn: a bandit as a classifier, by labelled rows played as a game of which it sees its own answers only.

    for every row x of class y:  a = the class of the largest x^T theta_a + exploration,  r = 1 if a is y else 0,
                                 the model of a learns (x, r)                  in one compiled loop, in the rows' order

So a search over exploration or preprocessing, a pipeline or a learning curve of scikit-learn can be had for a bandit.
`predict` is without exploration. What it earned on its way is in `rewards_`, which is what a bandit is judged by; as a
classifier it knows less than one that is told every label, and no more is claimed. A log of decisions is no such game:
it has no label for what was not chosen; learn it by `onepass.Bandit`, or by `onepass.adapters.contextualbandits`.
"""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from onepass.bandit.bandit import Bandit
from onepass.exploration.exploration import Exploration
from onepass.foundation import check
from onepass.recipes.linear import LinUCB

SEEDS = 2**31 - 1  # of which a bandit takes one


class BanditClassifier(ClassifierMixin, BaseEstimator):
    """One ridge model a class, learned from the rows for which the class was chosen.

    exploration: beta of beta sqrt(x^T A_a^-1 x), at least 0, or a rule such as `onepass.InverseGap()` (default 0.3: of
    0, 0.1, 0.3, 1 and 3, none had a better held-out accuracy on scikit-learn's iris, wine, breast cancer and digits,
    standardized). reg: of the ridge, above 0 (default 1.0).
    fit_intercept: whether rows get a constant (default True). random_state: None, an integer or a generator of NumPy,
    as everywhere in scikit-learn (default 0).
    After `fit` or `partial_fit`: `classes_` (K,), `n_features_in_`, `bandit_`, a `Bandit` of arms 0 .. K - 1, and
    `choices_` (n,) and `rewards_` (n,), 0 or 1, of the rows so far. O(dim (K + dim)) a row while arms are full.
    ValueError for bad input.

    >>> import numpy as np
    >>> rows = np.random.default_rng(0).standard_normal((400, 2))
    >>> model = BanditClassifier().fit(rows, np.where(rows[:, 0] > 0.0, "right", "left"))
    >>> model.predict([[2.0, 0.0], [-2.0, 0.0]])
    array(['right', 'left'], dtype='<U5')
    >>> bool(model.rewards_[200:].mean() > 0.9)
    True
    """

    classes_: np.ndarray
    choices_: np.ndarray
    rewards_: np.ndarray
    bandit_: Bandit

    def __init__(
        self,
        exploration: float | Exploration = 0.3,
        *,
        reg: float = 1.0,
        fit_intercept: bool = True,
        random_state: Any = 0,
    ) -> None:
        self.exploration, self.reg = exploration, reg
        self.fit_intercept, self.random_state = fit_intercept, random_state

    def _rows(self, X: np.ndarray) -> np.ndarray:
        check.finite_rows("X", X)
        return np.hstack([X, np.ones((len(X), 1))]) if self.fit_intercept else X

    def fit(self, X: Any, y: Any) -> Self:
        """Begin anew and play rows X (n, dim) with labels y (n,), in their order."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        return self.partial_fit(X, y)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Play more of them. classes: all labels that will ever occur (default at the first call: those of y)."""
        first = not hasattr(self, "bandit_")
        X, y = validate_data(self, X, y, reset=first, dtype=np.float64)
        check_classification_targets(y)
        known = np.unique(y if classes is None else classes) if first else self.classes_
        codes = np.searchsorted(known, y)
        if (known[np.minimum(codes, len(known) - 1)] != y).any():
            raise ValueError("y must hold labels of classes only, as they were given at the first call")
        rows = self._rows(X)
        if first:
            seed = int(check_random_state(self.random_state).randint(SEEDS))
            given: Any = {"exploration": self.exploration, "model": "disjoint", "seed": seed}
            bandit = LinUCB(dim=rows.shape[1], reg=self.reg, **given)
            assert isinstance(bandit, Bandit)
            self.bandit_, self.classes_ = bandit, known
            self.choices_, self.rewards_ = np.zeros(0, known.dtype), np.zeros(0)
        paid = (np.arange(len(known)) == codes[:, None]).astype(np.float64)
        chosen = self.bandit_.play(rows[:, None], paid)
        self.choices_ = np.concatenate([self.choices_, known[chosen]])
        self.rewards_ = np.concatenate([self.rewards_, paid[np.arange(len(rows)), chosen]])
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """What classes are expected to earn, (n, K), for rows X (n, dim); of two, how much more the second, (n,)."""
        check_is_fitted(self, "bandit_")
        rows = self._rows(validate_data(self, X, reset=False, dtype=np.float64))
        known = set(self.bandit_.arms)
        theta = [self.bandit_.model.parameter_of(arm) if arm in known else None for arm in range(len(self.classes_))]
        means = rows @ np.stack([np.zeros(rows.shape[1]) if one is None else one for one in theta]).T
        return np.asarray(means[:, 1] - means[:, 0] if len(self.classes_) == 2 else means)

    def predict(self, X: Any) -> np.ndarray:
        """The class (n,) that is expected to earn most, for rows X (n, dim)."""
        found = self.decision_function(X)
        return np.asarray(self.classes_[found.argmax(axis=1) if found.ndim == 2 else (found > 0.0).astype(np.int64)])
