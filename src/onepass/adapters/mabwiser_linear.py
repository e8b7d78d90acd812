"""MABWiser's linear policies on a bandit with a model per arm, which scores by tables (mabwiser_scores.py).

Expectations, choices and draws equal MABWiser's. So an arm begins with A^-1 = l2_lambda I, which is I / l2_lambda
elsewhere in onepass. There is one difference: for several contexts of one feature, LinTS of MABWiser 2.7.4 adds up the
draws of all contexts.
"""

from typing import Any

import numpy as np
from mabwiser.base_mab import IS_TRAINED, BaseMAB
from mabwiser.mab import LearningPolicy

from onepass.adapters.mabwiser_scores import DRAWS, MEANS, WIDTHS, ArmGenerators, ScoreTables
from onepass.bandit.bandit import Bandit
from onepass.exploration.greedy import EpsilonGreedy
from onepass.foundation import check
from onepass.model.contract import non_finite_error
from onepass.recipes.linear import LinTS, LinUCB

SEED_RANGE = 2**32  # seeds of a bandit
KINDS = {LearningPolicy.LinGreedy: MEANS, LearningPolicy.LinUCB: WIDTHS, LearningPolicy.LinTS: DRAWS}


def bandit_from_policy(policy: Any, dim: int, seed: int) -> Bandit | None:
    """Return the bandit for a MABWiser policy and contexts (dim,), or None for a policy left to MABWiser itself.

    `seed` is the seed of all draws.
    """
    linear = (LearningPolicy.LinGreedy, LearningPolicy.LinUCB, LearningPolicy.LinTS)
    if not isinstance(policy, linear) or policy.scale or policy.l2_lambda == 0:
        return None
    reg = float(policy.l2_lambda)
    options: dict[str, Any] = {"dim": dim, "reg": reg, "model": "disjoint", "seed": seed}
    if isinstance(policy, LearningPolicy.LinGreedy):
        bandit = LinUCB(exploration=EpsilonGreedy(float(policy.epsilon)), **options)
    elif isinstance(policy, LearningPolicy.LinUCB):
        bandit = LinUCB(exploration=float(policy.alpha), **options)
    else:
        bandit = LinTS(exploration=float(policy.alpha), **options)
    assert isinstance(bandit, Bandit)
    return bandit


class LinearImplementor(BaseMAB):
    """Implementor of a linear policy for `mabwiser.mab.MAB`, on a `Bandit` with a model per arm.

    `implementor` is the object of MABWiser that it replaces, whose generator, arms and number of jobs it takes over.
    `policy` is the MABWiser policy, and `seed` the seed of all draws.
    """

    policy: Any
    seed: int

    def __init__(self, implementor: Any, policy: Any, seed: int) -> None:
        super().__init__(implementor.rng, implementor.arms, implementor.n_jobs, implementor.backend)
        self.policy, self.seed = policy, seed
        self.bandit: Bandit | None = None
        self._tables: ScoreTables | None = None
        self._generators = ArmGenerators(implementor.rng)
        self._cold = set(self.arms)  # arms without data

    @property
    def contexts(self) -> np.ndarray:
        """Empty array (0, d) with the width d of a context, which MABWiser reads to interpret a Series."""
        return np.empty((0, self._require_bandit().model.dim))

    def _require_bandit(self) -> Bandit:
        assert self.bandit is not None
        return self.bandit

    def _current_tables(self) -> ScoreTables:
        """Return the table of scores for the current arms, which is built again after the arms have changed."""
        if self._tables is None:
            prior = float(self.policy.l2_lambda)
            cold = dict.fromkeys(self._cold, prior)
            self._tables = ScoreTables(self._require_bandit(), self.arms, KINDS[type(self.policy)], cold)
        return self._tables

    def fit(self, decisions: np.ndarray, rewards: np.ndarray, contexts: Any = None) -> None:
        """Forget everything and learn the `rewards` (n,) of the arms `decisions` (n,) in `contexts` (n, dim).

        `contexts` is required; None is the default of MABWiser's interface.
        """
        self.bandit, self._tables = bandit_from_policy(self.policy, np.shape(contexts)[1], self.seed % SEED_RANGE), None
        for arm in self.arms:
            self._require_bandit().add_arm(arm)
        self._reset_arm_to_status()
        self._cold = set(self.arms)
        self._learn(decisions, rewards, contexts)

    def _learn(self, decisions: np.ndarray, rewards: np.ndarray, contexts: Any) -> None:
        arms = decisions.tolist() if isinstance(decisions, np.ndarray) else list(decisions)
        self._require_bandit().learn(np.asarray(contexts, np.float64), np.asarray(rewards, np.float64), arms)
        learned = self.arm_to_status.keys() & set(arms)
        self._cold -= learned
        if self._tables is not None:
            self._tables.mark_stale(learned)
        self._generators.add_arms(learned)
        for arm in learned:
            self.arm_to_status[arm][IS_TRAINED] = True

    def partial_fit(self, decisions: np.ndarray, rewards: np.ndarray, contexts: Any = None) -> None:
        """Learn further `rewards` (n,) of the arms `decisions` (n,) in `contexts` (n, dim)."""
        self._learn(decisions, rewards, contexts)

    def _scores(self, contexts: Any) -> np.ndarray:
        """Return expectations (n, K) of n contexts; LinTS draws them once for each context."""
        rows, random = np.asarray(contexts, np.float64), self.rng.rand(len(contexts))
        if isinstance(self.policy, LearningPolicy.LinUCB) and len(rows) == 1:
            out = self._require_bandit().score(rows[0], self.arms)
            cold = [index for index, arm in enumerate(self.arms) if arm in self._cold]
            # An arm without data has alpha ||x|| sqrt(l2_lambda) in MABWiser, and alpha ||x|| / sqrt(l2_lambda) here.
            out[cold] *= self.policy.l2_lambda
            return out[None]
        check.finite_rows("contexts", rows)
        tables = self._current_tables()
        if isinstance(self.policy, LearningPolicy.LinGreedy):
            explores = random < self.policy.epsilon
            out = np.empty((len(rows), len(self.arms)))
            out[explores] = self.rng.rand((int(explores.sum()), len(self.arms)))
            out[~explores] = tables.means(rows[~explores])
        elif isinstance(self.policy, LearningPolicy.LinUCB):
            out = tables.means(rows) + self.policy.alpha * tables.widths(rows)
        else:
            out = tables.means(rows) + self.policy.alpha * self._generators.draw_shifts(tables, rows)
        if not np.isfinite(out).all():
            raise non_finite_error()
        return out

    def predict(self, contexts: Any = None) -> Any:
        """Return the arm for one context, or a list of arms for several."""
        arms = [self.arms[index] for index in self._scores(contexts).argmax(axis=1).tolist()]
        return arms if len(arms) > 1 else arms[0]

    def predict_expectations(self, contexts: Any = None) -> Any:
        """Return the expected reward of every arm as a dictionary for one context, or a list of them for several.

        LinTS draws the expected rewards once for each context.
        """
        expectations = [dict(zip(self.arms, row, strict=True)) for row in self._scores(contexts).tolist()]
        return expectations if len(expectations) > 1 else expectations[0]

    def warm_start(self, arm_to_features: Any, distance_quantile: float) -> None:
        """Raise ValueError, because models are not copied between arms."""
        raise ValueError("warm_start must be asked of mabwiser.mab.MAB: onepass does not copy models between arms")

    def _copy_arms(self, cold_arm_to_warm_arm: Any) -> None:
        self.warm_start(cold_arm_to_warm_arm, 0.0)

    def _fit_arm(self, arm: Any, decisions: np.ndarray, rewards: np.ndarray, contexts: Any = None) -> None:
        is_arm = decisions == arm
        if is_arm.any():
            self._learn(decisions[is_arm], rewards[is_arm], contexts[is_arm])

    def _predict_contexts(self, contexts: Any, is_predict: bool, seeds: Any = None, start_index: Any = None) -> list:
        result = self.predict(contexts) if is_predict else self.predict_expectations(contexts)
        return result if isinstance(result, list) else [result]

    def _uptake_new_arm(self, arm: Any, binarizer: Any = None) -> None:
        self._tables = None
        self._cold.add(arm)
        if self.bandit is not None:
            self.bandit.add_arm(arm)

    def _drop_existing_arm(self, arm: Any) -> None:
        self._tables = None
        self._cold.discard(arm)
        self._generators.remove_arm(arm)
        if self.bandit is not None:
            self.bandit.remove_arm(arm)
