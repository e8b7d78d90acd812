"""Functions of settings that tuners minimize; they have no noise, because cross-validation splits are fixed.

The problems are Branin, Hartmann 6, and three models on data sets of scikit-learn. Search spaces are Optuna's, which is
imported when a problem is made.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from onepass.lab.errors import ExperimentError
from onepass.lab.kernels.problems import branin, hartmann6

Settings = dict[str, Any]

BRANIN, HARTMANN = 0.39788736, -3.32236801  # least values of the two functions
DIGITS = 600  # number of rows of digits that a model is scored on
FOLDS = 3


def spaces() -> Any:
    """Return the module `optuna.distributions`. Raises ExperimentError if Optuna is not installed."""
    try:
        from optuna import distributions
    except ModuleNotFoundError:
        raise ExperimentError("studies of tuners need Optuna: pip install 'onepass[optuna]'") from None
    return distributions


def _log_distribution(low: float, high: float) -> Any:
    """Return Optuna's distribution of a number from `low` to `high`, both above 0, on a logarithmic scale."""
    return spaces().FloatDistribution(low, high, log=True)


class Problem(NamedTuple):
    """Function to minimize, and the settings that it takes.

    Parameters
    ----------
    settings : dict
        Optuna's distribution of every setting, by name.
    value : callable
        Function that maps the settings, as a dictionary, to the value to minimize.
    """

    settings: dict[str, Any]
    value: Callable[[Settings], float]


def _excess(settings: Settings, function: Callable[[np.ndarray], np.ndarray], least: float) -> float:
    """Return the value of `function` at settings in the unit cube, minus `least`, its smallest value there.

    `function` maps rows (n, d) to values (n,).
    """
    return float(function(np.array([list(settings.values())]))[0]) - least


def _cube_problem(function: Callable[[np.ndarray], np.ndarray], dim: int, least: float) -> Problem:
    names = {f"x{i}": spaces().FloatDistribution(0.0, 1.0) for i in range(dim)}
    return Problem(names, partial(_excess, function=function, least=least))


@cache
def rows(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return scaled features (n, d) and targets (n,) of scikit-learn's data set `name`."""
    from sklearn import datasets
    from sklearn.preprocessing import StandardScaler

    x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    if name == "digits":
        return x[:DIGITS] / 16.0, y[:DIGITS]
    return StandardScaler().fit_transform(x), (y - y.mean()) / y.std() if name == "diabetes" else y


def loss(model: Any, data: str, scoring: str) -> float:
    """Return the negative mean score of a model in cross-validation with three folds on the data set `data`.

    `scoring` is the name of the score in scikit-learn.
    """
    from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

    x, y = rows(data)
    folds = (KFold if data == "diabetes" else StratifiedKFold)(FOLDS, shuffle=True, random_state=0)
    return -float(cross_val_score(model, x, y, cv=folds, scoring=scoring).mean())


def svc(settings: Settings) -> float:
    from sklearn.svm import SVC

    return 1.0 + loss(SVC(**settings), "digits", "accuracy")


def ridge(settings: Settings) -> float:
    from sklearn.kernel_ridge import KernelRidge

    return loss(KernelRidge(**settings), "diabetes", "neg_mean_squared_error")


def tree(settings: Settings) -> float:
    from sklearn.tree import DecisionTreeClassifier

    return loss(DecisionTreeClassifier(**settings, random_state=0), "breast_cancer", "neg_log_loss")


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "branin": lambda: _cube_problem(branin, 2, BRANIN),
    "hartmann6": lambda: _cube_problem(hartmann6, 6, HARTMANN),
    "svc": lambda: Problem({"C": _log_distribution(1e-3, 1e3), "gamma": _log_distribution(1e-6, 10.0)}, svc),
    "ridge": lambda: Problem(
        {
            "alpha": _log_distribution(1e-4, 1e2),
            "gamma": _log_distribution(1e-4, 10.0),
            "kernel": spaces().CategoricalDistribution(["rbf", "laplacian", "polynomial"]),
            "degree": spaces().IntDistribution(1, 3),
        },
        ridge,
    ),
    "tree": lambda: Problem(
        {
            "max_depth": spaces().IntDistribution(1, 20),
            "min_samples_leaf": spaces().IntDistribution(1, 50, log=True),
            "ccp_alpha": _log_distribution(1e-5, 1e-1),
            "criterion": spaces().CategoricalDistribution(["gini", "entropy", "log_loss"]),
            "max_features": spaces().FloatDistribution(0.1, 1.0),
        },
        tree,
    ),
}
