"""MABWiser: its linear policies on bandits of onepass; a script changes its imports.

    from onepass.adapters.mabwiser import MAB, LearningPolicy, NeighborhoodPolicy   # was: from mabwiser.mab import

LinGreedy, LinUCB and LinTS learn by rank-one updates of a bandit with a model per arm,
`onepass.LinUCB(model="disjoint")`, and score by one matrix product (mabwiser_linear.py). Everything else is
MABWiser's own code, and so are its checks: other policies, and these with scale=True, with l2_lambda=0, or within a
neighbourhood. Expectations, choices and draws equal MABWiser's. Its own `mabwiser.simulator.Simulator` takes these
objects.
"""

from typing import Any

from mabwiser.mab import MAB as MabwiserMAB
from mabwiser.mab import LearningPolicy as LearningPolicy
from mabwiser.mab import NeighborhoodPolicy as NeighborhoodPolicy

from onepass.adapters.mabwiser_linear import LinearImplementor, bandit_from_policy


class MAB(MabwiserMAB):
    """`mabwiser.mab.MAB` whose linear policies are onepass's.

    Parameters
    ----------
    arms : list
        Names of the arms.
    learning_policy : LearningPolicy
        Policy, as for MABWiser.
    neighborhood_policy : NeighborhoodPolicy, default None
        Neighbourhood, as for MABWiser.
    seed : int, default 123456
        Seed of all draws, as for MABWiser.
    n_jobs : int, default 1
        Number of jobs, as for MABWiser. The linear policies do not use it.
    backend : str, default None
        Backend of the jobs, as for MABWiser. The linear policies do not use it.

    Raises
    ------
    TypeError
        As MABWiser does.
    ValueError
        As MABWiser does.
    """

    def __init__(
        self,
        arms: list[Any],
        learning_policy: Any,
        neighborhood_policy: Any = None,
        seed: int = 123456,
        n_jobs: int = 1,
        backend: str | None = None,
    ) -> None:
        self._imp: Any = None
        super().__init__(arms, learning_policy, neighborhood_policy, seed, n_jobs, backend)
        self._policy = learning_policy
        if neighborhood_policy is None and bandit_from_policy(learning_policy, 1, 0) is not None:
            self._imp = LinearImplementor(self._imp, learning_policy, seed)

    @property
    def learning_policy(self) -> Any:
        """Learning policy that the constructor was given."""
        return self._policy
