"""Optuna: a sampler that proposes by a kernel bandit, `onepass.tuning.Tuner`.

    study = optuna.create_study(sampler=BanditSampler(seed=0))

Where all trials have the same settings, these are proposed together. Where some have settings of their own, all are
drawn one by one, where they lie more densely in the best trials than in the others (`onepass.tuning.parzen`; uniformly
before ten are known): what one setting is worth without those that it brings along, a tuner of the common ones would
not see. Failed and pruned trials count as failures, those that this sampler proposed and that still run as pending:
`n_jobs` may be anything. One objective. The tuner is made of the study's trials: one loaded from its storage goes on.
"""

from threading import Lock
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.search_space import IntersectionSearchSpace
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from onepass.foundation import check
from onepass.foundation.check import shown
from onepass.tuning import Category, Dimension, Integer, Real, Tuner, parzen
from onepass.tuning.proposing import Candidates
from onepass.tuning.space import Space

ENOUGH = 10  # trials that have a parameter, from which on they say where to try it next
OVER = (TrialState.COMPLETE, TrialState.FAIL, TrialState.PRUNED)


def dimension_of(distribution: BaseDistribution) -> Dimension | None:
    """The dimension of a distribution; None of one with a single value."""
    if distribution.single():
        return None
    if isinstance(distribution, FloatDistribution) and distribution.step is None:
        return Real(distribution.low, distribution.high, log=distribution.log)
    if isinstance(distribution, IntDistribution) and distribution.step == 1:
        return Integer(distribution.low, distribution.high, log=distribution.log)
    if isinstance(distribution, IntDistribution | FloatDistribution):
        return Integer(0, round((distribution.high - distribution.low) / (distribution.step or 1)))
    if isinstance(distribution, CategoricalDistribution):
        return Category(tuple(range(len(distribution.choices))))
    raise ValueError(f"distribution must be of numbers or choices, got {shown(distribution)}")


def inward(distribution: BaseDistribution, value: Any) -> Any:
    """A parameter of Optuna's as a value of the dimension."""
    if isinstance(distribution, CategoricalDistribution):
        return int(distribution.to_internal_repr(value))
    if isinstance(distribution, FloatDistribution | IntDistribution) and distribution.step not in (None, 1):
        return round((value - distribution.low) / distribution.step)
    return value


def outward(distribution: BaseDistribution, value: Any) -> Any:
    """The inverse of `inward`."""
    if isinstance(distribution, CategoricalDistribution):
        return distribution.to_external_repr(value)
    if isinstance(distribution, FloatDistribution | IntDistribution) and distribution.step not in (None, 1):
        return distribution.low + value * distribution.step
    return value


class BanditSampler(BaseSampler):
    """An Optuna sampler on kernel bandits.

    start: trials of a scrambled Sobol sequence, at least 2; default None: 6 + 2 a parameter.
    seed: of all that is drawn, at least 0 (default 0). ValueError outside those ranges, and for several objectives.
    """

    def __init__(self, *, start: int | None = None, seed: int = 0) -> None:
        self.start: int | None = start if start is None else check.integer("start", start, 2)
        self.seed: int = check.integer("seed", seed, 0)
        self._independent = RandomSampler(seed=self.seed % 2**32)
        self._rng = np.random.default_rng([self.seed, 1])
        self._shared = IntersectionSearchSpace()
        self._tuner: Tuner | None = None
        self._space: dict[str, BaseDistribution] = {}
        self._known: dict[int, int] = {}  # numbers of the study's trials, and of the tuner's
        self._alone = Lock()  # one thread of `n_jobs` at a time
        self._looked = 0  # trials of the study, all before which are known

    def reseed_rng(self) -> None:
        """For a process of its own: independent parameters are drawn anew."""
        self._independent.reseed_rng()
        self._rng = np.random.default_rng()

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The parameters that all trials so far have in common; none, where some have others beside them."""
        if len(study.directions) > 1:
            raise ValueError("BanditSampler is for one objective")
        shared = self._shared.calculate(study)
        over = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        return shared if all(one.distributions.keys() <= shared.keys() for one in over) else {}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Settings for all parameters of `search_space`, {name: value}."""
        if not any(not one.single() for one in search_space.values()):
            return {}
        with self._alone:
            tuner = self._tuner if search_space == self._space else None
            tuner = self._tuner = tuner or self._begun(study, search_space)
            self._hear(tuner, study, trial)
            asked = tuner.ask()
            self._known[trial.number] = asked.number
            return self._outside(asked.settings)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """One parameter by itself."""
        one = dimension_of(param_distribution)
        over = [each for each in study.get_trials(deepcopy=False, states=OVER) if param_name in each.params]
        same = [each for each in over if each.distributions[param_name] == param_distribution]
        if one is None or sum(each.state == TrialState.COMPLETE for each in same) < ENOUGH:
            return self._independent.sample_independent(study, trial, param_name, param_distribution)
        sign = 1.0 if study.direction == StudyDirection.MAXIMIZE else -1.0
        paid = [each.value if each.state == TrialState.COMPLETE else None for each in same]
        values = np.array([np.nan if value is None else sign * value for value in paid])
        shares = np.array([[one.share(inward(param_distribution, each.params[param_name]))] for each in same])
        with self._alone:
            found = parzen.proposed(Candidates(Space({param_name: one}), None, self._rng), shares, values)
        assert found is not None
        return outward(param_distribution, one.value(float(found[0])))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_alone"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _alone=Lock())

    def _begun(self, study: Study, space: dict[str, BaseDistribution]) -> Tuner:
        """A tuner for these parameters."""
        found = {name: dimension_of(one) for name, one in space.items()}
        settings = {name: one for name, one in found.items() if one is not None}
        larger = study.direction == StudyDirection.MAXIMIZE
        self._space, self._known, self._looked = dict(space), {}, 0
        return Tuner(settings, maximize=larger, start=self.start, seed=self.seed)

    def _outside(self, settings: dict[str, Any]) -> dict[str, Any]:
        alone = {name: one for name, one in self._space.items() if name not in settings}
        chosen = {name: outward(self._space[name], value) for name, value in settings.items()}
        return chosen | {name: only(one) for name, one in alone.items()}

    def _hear(self, tuner: Tuner, study: Study, present: FrozenTrial) -> None:
        """Tell the tuner what it has not heard of the study."""
        trials = study.get_trials(deepcopy=False)
        unknown = [one for one in trials[self._looked :] if one.state in OVER and one.number != present.number]
        pending = {trial.number for trial in tuner.pending}
        for one in unknown:
            if self._known.get(one.number) == -1:
                continue
            value = one.value if one.state == TrialState.COMPLETE else None
            settings = self._settings(one)
            place = self._known.get(one.number)
            if place in pending and settings == tuner.trials[place].settings:
                tuner.tell(place, value)
            elif settings is not None:
                tuner.tell(settings, value)
            self._known[one.number] = -1
        while self._looked < len(trials) and self._known.get(trials[self._looked].number) == -1:
            self._looked += 1

    def _settings(self, trial: FrozenTrial) -> dict[str, Any] | None:
        """The settings of a trial; None where it has not all of them, or others than this space."""
        found = {}
        for name, one in self._space.items():
            if trial.distributions.get(name) != one:
                return None
            if not one.single():
                found[name] = inward(one, trial.params[name])
        return found


def only(distribution: BaseDistribution) -> Any:
    """The value of a distribution that has a single one."""
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[0]
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    return distribution.low
