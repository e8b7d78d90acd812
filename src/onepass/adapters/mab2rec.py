"""Mab2Rec: its recommender on onepass's linear bandits; a script changes one import.

    from onepass.adapters.mab2rec import BanditRecommender, LearningPolicy   # was: from mab2rec import ...

What scores the items is `onepass.adapters.mabwiser.MAB`; lists, filters and pipelines are Mab2Rec's own.
"""

from typing import Any

from mab2rec import BanditRecommender as Theirs
from mab2rec import LearningPolicy as LearningPolicy
from mab2rec import NeighborhoodPolicy as NeighborhoodPolicy

from onepass.adapters.mabwiser import MAB


class BanditRecommender(Theirs):
    """`mab2rec.BanditRecommender`, its linear policies by onepass.

    learning_policy, neighborhood_policy, top_k, seed, n_jobs, backend: as Mab2Rec's. TypeError and ValueError as
    Mab2Rec's.
    """

    def _init(self, arms: list[Any]) -> None:
        self.mab: MAB = MAB(arms, self.learning_policy, self.neighborhood_policy, self.seed, self.n_jobs, self.backend)
