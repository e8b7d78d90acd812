"""MABWiser's linear policies on models per arm: updates in their arena, tables for scores (mabwiser_tables.py).

Expectations, choices and draws are those of MABWiser, also where it begins an arm with A^-1 = l2_lambda I, which is
I / l2_lambda elsewhere in onepass. One thing is not: for several contexts of one feature, MABWiser 2.7.4 adds the draws
of LinTS of all of them up.
"""

from typing import Any

import numpy as np
from mabwiser.base_mab import IS_TRAINED, BaseMAB
from mabwiser.mab import LearningPolicy

from onepass.adapters.mabwiser_tables import DRAWS, MEANS, WIDTHS, Draws, Tables
from onepass.bandit.bandit import Bandit
from onepass.exploration.greedy import EpsilonGreedy
from onepass.foundation import check
from onepass.model.contract import non_finite_error
from onepass.recipes.linear import LinTS, LinUCB

SEEDS = 2**32  # of which a bandit takes one
KINDS = {LearningPolicy.LinGreedy: MEANS, LearningPolicy.LinUCB: WIDTHS, LearningPolicy.LinTS: DRAWS}


def bandit_of(policy: Any, dim: int, seed: int) -> Bandit | None:
    """The bandit of a policy of MABWiser for contexts (dim,); None of one that stays theirs."""
    linear = (LearningPolicy.LinGreedy, LearningPolicy.LinUCB, LearningPolicy.LinTS)
    if not isinstance(policy, linear) or policy.scale or policy.l2_lambda == 0:
        return None
    reg = float(policy.l2_lambda)
    given: dict[str, Any] = {"dim": dim, "reg": reg, "model": "disjoint", "seed": seed}
    if isinstance(policy, LearningPolicy.LinGreedy):
        found = LinUCB(exploration=EpsilonGreedy(float(policy.epsilon)), **given)
    elif isinstance(policy, LearningPolicy.LinUCB):
        found = LinUCB(exploration=float(policy.alpha), **given)
    else:
        found = LinTS(exploration=float(policy.alpha), **given)
    assert isinstance(found, Bandit)
    return found


class Linear(BaseMAB):
    """What MABWiser asks of an implementor, done by a `Bandit` with models per arm."""

    policy: Any
    seed: int

    def __init__(self, theirs: Any, policy: Any, seed: int) -> None:
        super().__init__(theirs.rng, theirs.arms, theirs.n_jobs, theirs.backend)
        self.policy, self.seed = policy, seed
        self.bandit: Bandit | None = None
        self._tables: Tables | None = None
        self._draws = Draws(theirs.rng)
        self._cold = set(self.arms)  # of no data

    @property
    def contexts(self) -> np.ndarray:
        """No row of the width of a context: MABWiser asks for it to read a Series."""
        return np.empty((0, self._model().model.dim))

    def _model(self) -> Bandit:
        assert self.bandit is not None
        return self.bandit

    def _known(self) -> Tables:
        """Of the arms as they are now."""
        if self._tables is None:
            prior = float(self.policy.l2_lambda)
            self._tables = Tables(self._model(), self.arms, KINDS[type(self.policy)], dict.fromkeys(self._cold, prior))
        return self._tables

    def fit(self, decisions: np.ndarray, rewards: np.ndarray, contexts: Any = None) -> None:
        """Begin anew and learn arms (n,), rewards (n,) and contexts (n, dim)."""
        self.bandit, self._tables = bandit_of(self.policy, np.shape(contexts)[1], self.seed % SEEDS), None
        for arm in self.arms:
            self._model().add_arm(arm)
        self._reset_arm_to_status()
        self._cold = set(self.arms)
        self._learn(decisions, rewards, contexts)

    def _learn(self, decisions: np.ndarray, rewards: np.ndarray, contexts: Any) -> None:
        arms = decisions.tolist() if isinstance(decisions, np.ndarray) else list(decisions)
        self._model().learn(np.asarray(contexts, np.float64), np.asarray(rewards, np.float64), arms)
        learned = self.arm_to_status.keys() & set(arms)
        self._cold -= learned
        if self._tables is not None:
            self._tables.changed(learned)
        self._draws.learned(learned)
        for arm in learned:
            self.arm_to_status[arm][IS_TRAINED] = True

    def partial_fit(self, decisions: np.ndarray, rewards: np.ndarray, contexts: Any = None) -> None:
        """Learn more of them."""
        self._learn(decisions, rewards, contexts)

    def _scores(self, contexts: Any) -> np.ndarray:
        """Expectations (n, K) of n contexts, LinTS's by one draw each."""
        rows, random = np.asarray(contexts, np.float64), self.rng.rand(len(contexts))
        if isinstance(self.policy, LearningPolicy.LinUCB) and len(rows) == 1:
            out = self._model().score(rows[0], self.arms)
            cold = [place for place, arm in enumerate(self.arms) if arm in self._cold]
            out[cold] *= (
                self.policy.l2_lambda
            )  # alpha ||x|| sqrt(l2_lambda), where ours is alpha ||x|| / sqrt(l2_lambda)
            return out[None]
        check.finite_rows("contexts", rows)
        tables = self._known()
        if isinstance(self.policy, LearningPolicy.LinGreedy):
            chance = random < self.policy.epsilon
            out = np.empty((len(rows), len(self.arms)))
            out[chance] = self.rng.rand((int(chance.sum()), len(self.arms)))
            out[~chance] = tables.means(rows[~chance])
        elif isinstance(self.policy, LearningPolicy.LinUCB):
            out = tables.means(rows) + self.policy.alpha * tables.widths(rows)
        else:
            out = tables.means(rows) + self.policy.alpha * self._draws.shifts(tables, rows)
        if not np.isfinite(out).all():
            raise non_finite_error()
        return out

    def _chosen(self, scores: np.ndarray) -> list[Any]:
        return [self.arms[place] for place in scores.argmax(axis=1).tolist()]

    def _named(self, scores: np.ndarray) -> list[dict[Any, float]]:
        return [dict(zip(self.arms, row, strict=True)) for row in scores.tolist()]

    def predict(self, contexts: Any = None) -> Any:
        """The arm for a context, or a list of arms for several."""
        found = self._chosen(self._scores(contexts))
        return found if len(found) > 1 else found[0]

    def predict_expectations(self, contexts: Any = None) -> Any:
        """{arm: expectation} for a context, or a list of them; of LinTS those of one draw."""
        found = self._named(self._scores(contexts))
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
        self._tables = None
        self._cold.add(arm)
        if self.bandit is not None:
            self.bandit.add_arm(arm)

    def _drop_existing_arm(self, arm: Any) -> None:
        self._tables = None
        self._cold.discard(arm)
        self._draws.dropped(arm)
        if self.bandit is not None:
            self.bandit.remove_arm(arm)
