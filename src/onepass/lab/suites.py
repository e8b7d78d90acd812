"""The named experiments, in groups.

>>> find("digits").rounds
2000
"""

import difflib
from collections.abc import Mapping, Sequence

from onepass.lab.ab_tests import study as ab_tests
from onepass.lab.bakeoff import study as bakeoff
from onepass.lab.bandits import clicks, drift, frontiers, heavy, outliers, sketches
from onepass.lab.bandits import suites as bandits
from onepass.lab.definition import Study
from onepass.lab.dynamics import suites as dynamics
from onepass.lab.errors import ExperimentError
from onepass.lab.kernels import suites as kernels
from onepass.lab.learners import suites as learners
from onepass.lab.made_costs import study as made_costs
from onepass.lab.matrices import suites as matrices
from onepass.lab.news import suites as news
from onepass.lab.noisy import study as noisy
from onepass.lab.prices import study as prices
from onepass.lab.recommender import suites as recommender
from onepass.lab.routing import study as routing
from onepass.lab.safe_baseline import study as safe_baseline
from onepass.lab.tuners import study as tuners
from onepass.lab.warm_start import study as warm_start

GROUPS: Mapping[str, Sequence[Study]] = {
    "Contextual bandits: regret": bandits.SUITES,
    "Contextual bandits: regret and its price": frontiers.SUITES,
    "Contextual bandits: heavy-tailed rewards": (*heavy.SUITES, *outliers.SUITES),
    "Contextual bandits: sketches under two estimators": sketches.SUITES,
    "Contextual bandits: worlds that change": drift.SUITES,
    "Contextual bandits: clicks and counts": clicks.SUITES,
    "Arms with features: click rates": news.SUITES,
    "Contextual bandits: nothing tuned": (*bakeoff.SUITES, *noisy.SUITES),
    "A/B tests: decisions to the right stop": ab_tests.SUITES,
    "Prices and other actions of an interval": prices.SUITES,
    "Rewards within budgets": (*routing.SUITES, *made_costs.SUITES),
    "Bandits beside a baseline": safe_baseline.SUITES,
    "Bandits that start from a log or a neighbour": warm_start.SUITES,
    "Sketched matrices: errors": matrices.SUITES,
    "Recommenders: hits, month by month": recommender.SUITES,
    "Kernel bandits: regret": kernels.SUITES,
    "Worlds with a state: control and decision processes": dynamics.SUITES,
    "Samplers of Optuna: the best of few trials": tuners.SUITES,
    "Online kernel learners: mistakes": learners.SUITES,
}
SUITES: tuple[Study, ...] = tuple(suite for group in GROUPS.values() for suite in group)


def find(name: str) -> Study:
    """Return the experiment of this name.

    Parameters
    ----------
    name : str
        Name as `onepass list` shows it.

    Returns
    -------
    Study
        The experiment.

    Raises
    ------
    ExperimentError
        If there is none; the message names the closest ones.
    """
    known = {suite.name: suite for suite in SUITES}
    if name not in known:
        near = difflib.get_close_matches(name, known) or ["digits"]
        raise ExperimentError(f"there is no experiment '{name}': {', '.join(near)}? `onepass list` names all")
    return known[name]
