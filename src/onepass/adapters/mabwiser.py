"""MABWiser: its linear policies on onepass's bandits; a script changes one import.

    from onepass.adapters.mabwiser import MAB, LearningPolicy, NeighborhoodPolicy   # was: from mabwiser.mab import

LinGreedy, LinUCB and LinTS learn by rank-one updates in the arena of `onepass.ArmBandit` and choose in one compiled
call; everything else, also these policies with scale=True, within a neighbourhood or with l2_lambda=0, stays
MABWiser's own, and so do its checks and its Simulator, which takes these objects. Expectations are those of MABWiser,
but for arms without data where l2_lambda is not 1: there A^-1 is I / l2_lambda, where MABWiser begins with l2_lambda I.
"""

from typing import Any

import numpy as np
from mabwiser.base_mab import BaseMAB
from mabwiser.mab import MAB as Theirs
from mabwiser.mab import LearningPolicy as LearningPolicy
from mabwiser.mab import NeighborhoodPolicy as NeighborhoodPolicy

from onepass.bandit.arms import ArmBandit
from onepass.exploration.greedy import EpsilonGreedy
from onepass.recipes.linear import LinTS, LinUCB

SEEDS = 2**32  # of which a bandit takes one


def bandit_of(policy: Any, dim: int, seed: int) -> ArmBandit | None:
    """The bandit of a policy of MABWiser for contexts (dim,); None of one that stays theirs."""
    linear = (LearningPolicy.LinGreedy, LearningPolicy.LinUCB, LearningPolicy.LinTS)
    if not isinstance(policy, linear) or policy.scale or policy.l2_lambda == 0:
        return None
    reg = float(policy.l2_lambda)
    given: dict[str, Any] = {"dim": dim, "reg": reg, "parameters": "disjoint", "seed": seed}
    if isinstance(policy, LearningPolicy.LinGreedy):
        found = LinUCB(exploration=EpsilonGreedy(float(policy.epsilon)), **given)
    elif isinstance(policy, LearningPolicy.LinUCB):
        found = LinUCB(exploration=float(policy.alpha), **given)
    else:
        found = LinTS(exploration=float(policy.alpha), **given)
    assert isinstance(found, ArmBandit)
    return found


class Linear(BaseMAB):
    """What MABWiser asks of an implementor, done by an `ArmBandit`."""

    policy: Any
    seed: int

    def __init__(self, theirs: Any, policy: Any, seed: int) -> None:
        super().__init__(theirs.rng, theirs.arms, theirs.n_jobs, theirs.backend)
        self.policy, self.seed = policy, seed
        self.bandit: ArmBandit | None = None

    def fit(self, decisions: np.ndarray, rewards: np.ndarray, contexts: Any = None) -> None:
        """Begin anew and learn arms (n,), rewards (n,) and contexts (n, dim)."""
        self.bandit = bandit_of(self.policy, np.shape(contexts)[1], self.seed % SEEDS)
        assert self.bandit is not None
        for arm in self.arms:
            self.bandit.add_arm(arm)
        self._reset_arm_to_status()
        self._learn(decisions, rewards, contexts)
        self._set_arms_as_trained(decisions=decisions, is_partial=False)

    def _learn(self, decisions: np.ndarray, rewards: np.ndarray, contexts: Any) -> None:
        assert self.bandit is not None
        arms = decisions.tolist() if isinstance(decisions, np.ndarray) else list(decisions)
        self.bandit.learn(np.asarray(contexts, np.float64), np.asarray(rewards, np.float64), arms)

    def partial_fit(self, decisions: np.ndarray, rewards: np.ndarray, contexts: Any = None) -> None:
        """Learn more of them."""
        self._learn(decisions, rewards, contexts)
        self._set_arms_as_trained(decisions=decisions, is_partial=True)

    def predict(self, contexts: Any = None) -> Any:
        """The arm for a context, or a list of arms for several."""
        assert self.bandit is not None
        rows = np.asarray(contexts, np.float64)[:, None]  # one context for all arms
        if len(rows) == 1:
            return self.bandit.decide(rows[0, 0], self.arms).arm
        if isinstance(self.policy, LearningPolicy.LinUCB):  # nothing is drawn
            return [self.arms[place] for place in self.bandit.score(rows, self.arms).argmax(axis=1).tolist()]
        return list(self.bandit.decide(rows, self.arms).arm)

    def predict_expectations(self, contexts: Any = None) -> Any:
        """{arm: expectation} for a context, or a list of them; of LinTS those of one draw."""
        assert self.bandit is not None
        rows = np.asarray(contexts, np.float64)[:, None]  # one context for all arms
        if isinstance(self.policy, LearningPolicy.LinTS):
            scores = np.stack([self.bandit.decide(row[0], self.arms).scores for row in rows])
        else:
            scores = self.bandit.score(rows, self.arms)
        found = [dict(zip(self.arms, row, strict=True)) for row in scores.tolist()]
        return found if len(found) > 1 else found[0]

    def warm_start(self, arm_to_features: Any, distance_quantile: float) -> None:
        """ValueError: arms share nothing here."""
        raise ValueError("warm_start must be asked of mabwiser.mab.MAB: models of onepass are not copied between arms")

    def _copy_arms(self, cold_arm_to_warm_arm: Any) -> None:
        self.warm_start(cold_arm_to_warm_arm, 0.0)

    def _fit_arm(self, arm: Any, decisions: np.ndarray, rewards: np.ndarray, contexts: Any = None) -> None:
        chosen = decisions == arm
        if chosen.any():
            self._learn(decisions[chosen], rewards[chosen], contexts[chosen])

    def _predict_contexts(self, contexts: Any, is_predict: bool, seeds: Any = None, start_index: Any = None) -> list:
        found = self.predict(contexts) if is_predict else self.predict_expectations(contexts)
        return found if isinstance(found, list) else [found]

    def _uptake_new_arm(self, arm: Any, binarizer: Any = None) -> None:
        if self.bandit is not None:
            self.bandit.add_arm(arm)

    def _drop_existing_arm(self, arm: Any) -> None:
        if self.bandit is not None:
            self.bandit.remove_arm(arm)


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
