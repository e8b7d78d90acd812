"""Mab2Rec: its recommender on the linear bandits of onepass; a script changes one import.

    from onepass.adapters.mab2rec import BanditRecommender, LearningPolicy   # was: from mab2rec import ...

`onepass.adapters.mabwiser.MAB` scores the items. Lists, filters and pipelines are Mab2Rec's own.
"""

from typing import Any

from mab2rec import BanditRecommender as Mab2RecRecommender
from mab2rec import LearningPolicy as LearningPolicy
from mab2rec import NeighborhoodPolicy as NeighborhoodPolicy

from onepass.adapters.mabwiser import MAB


class BanditRecommender(Mab2RecRecommender):
    """Recommender of the package Mab2Rec, with the linear policies of onepass.

    The arguments `learning_policy`, `neighborhood_policy`, `top_k`, `seed`, `n_jobs` and `backend` are Mab2Rec's, and
    so are its TypeErrors and ValueErrors.
    """

    def _init(self, arms: list[Any]) -> None:
        self.mab: MAB = MAB(arms, self.learning_policy, self.neighborhood_policy, self.seed, self.n_jobs, self.backend)
