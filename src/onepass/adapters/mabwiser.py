"""MABWiser: its linear policies on onepass's bandits; a script changes its imports.

    from onepass.adapters.mabwiser import MAB, LearningPolicy, NeighborhoodPolicy   # was: from mabwiser.mab import

LinGreedy, LinUCB and LinTS learn by rank-one updates in the arena of `onepass.ArmBandit` and score by one matrix
product (mabwiser_linear.py); everything else, also these policies with scale=True, within a neighbourhood or with
l2_lambda=0, stays MABWiser's own, and so do its checks. Expectations, choices and draws are MABWiser's. Its
own `mabwiser.simulator.Simulator` takes these objects.
"""

from typing import Any

from mabwiser.mab import MAB as Theirs
from mabwiser.mab import LearningPolicy as LearningPolicy
from mabwiser.mab import NeighborhoodPolicy as NeighborhoodPolicy

from onepass.adapters.mabwiser_linear import Linear, bandit_of


class MAB(Theirs):
    """`mabwiser.mab.MAB`, its linear policies by onepass.

    arms: a list of names. learning_policy, neighborhood_policy, seed, n_jobs, backend: as MABWiser's; n_jobs and
    backend are of no use to the linear ones. TypeError and ValueError as MABWiser's.
    """

    def __init__(
        self,
        arms: list[Any],
        learning_policy: Any,
        neighborhood_policy: Any = None,
        seed: int = 123456,
        n_jobs: int = 1,
        backend: str | None = None,
    ):
        self._imp: Any = None
        super().__init__(arms, learning_policy, neighborhood_policy, seed, n_jobs, backend)
        self._policy = learning_policy
        if neighborhood_policy is None and bandit_of(learning_policy, 1, 0) is not None:
            self._imp = Linear(self._imp, learning_policy, seed)

    @property
    def learning_policy(self) -> Any:
        """As it was given."""
        return self._policy
