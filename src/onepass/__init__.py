"""onepass: learn to decide online, in one pass, with second-order methods whose inverse is affordable."""

from onepass.bandit import Bandit, Decision, Recommendation
from onepass.design.design import Design
from onepass.design.dyadic import Dyadic
from onepass.design.exact import Exact
from onepass.design.frequent_directions import FrequentDirections, RobustFrequentDirections
from onepass.design.projector_splitting import ProjectorSplitting
from onepass.estimator.ridge import Ridge
from onepass.exploration import UCB, EpsilonGreedy, Greedy, Theory, Thompson
from onepass.features.factors import Outer, OuterProduct
from onepass.features.projection import GaussianProjection
from onepass.loading import load
from onepass.parameters.models import Disjoint, Hybrid
from onepass.recipes import CBRAP, CBSCFD, OFUL, SOFUL, DBSLinUCB, LinTS, LinUCB, PSILinUCB

__version__ = "0.1.0"

__all__ = [
    "CBRAP",
    "CBSCFD",
    "OFUL",
    "SOFUL",
    "UCB",
    "Bandit",
    "DBSLinUCB",
    "Decision",
    "Design",
    "Disjoint",
    "Dyadic",
    "EpsilonGreedy",
    "Exact",
    "FrequentDirections",
    "GaussianProjection",
    "Greedy",
    "Hybrid",
    "LinTS",
    "LinUCB",
    "Outer",
    "OuterProduct",
    "PSILinUCB",
    "ProjectorSplitting",
    "Recommendation",
    "Ridge",
    "RobustFrequentDirections",
    "Theory",
    "Thompson",
    "load",
]
