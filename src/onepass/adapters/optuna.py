"""Optuna: a sampler that chooses settings by a kernel bandit.

    study = optuna.create_study(sampler=BanditSampler(seed=0))

If all trials have the same settings, a trial's settings are chosen together. The first trials follow a scrambled Sobol
sequence, and each later one maximizes the expected improvement under a kernel bandit's posterior (`onepass.tuning`).
Optuna's TPE sampler draws, one by one, the settings that only some trials have. It also draws every second trial if
many values are equal. Failed and pruned trials count as the median of the first trials. Running trials count as if they
had paid their mean, so `n_jobs` may be anything. Studies must have one objective. The sampler computes everything from
the study's trials, so a study that is loaded from its storage continues, and a sampler may serve one study after
another.
"""

from functools import partial
from threading import Lock
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, TPESampler
from optuna.search_space import IntersectionSearchSpace
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState
from scipy.stats import qmc

from onepass.foundation import check
from onepass.foundation.check import quote
from onepass.tuning import surrogate
from onepass.tuning.acquisition import N_CENTRES, best_candidate

STARTUP_TRIALS, STARTUP_TRIALS_PER_PARAMETER = 6, 2
CHOICE_COORDINATE = 0.5**0.5  # coordinate of the chosen value: two choices are at distance 1
TPE_PERIOD = 2  # TPE draws one trial in so many if values have plateaus
FINISHED_STATES = (TrialState.COMPLETE, TrialState.FAIL, TrialState.PRUNED)
Space = dict[str, BaseDistribution]


def _bounds(distribution: FloatDistribution | IntDistribution) -> tuple[float, float]:
    """Return the ends of a parameter's range, widened by half a step; their logarithms if its scale is logarithmic."""
    half = 0.5 * (distribution.step or 0.0)
    low, high = distribution.low - half, distribution.high + half
    return (float(np.log(low)), float(np.log(high))) if distribution.log else (low, high)


def values_from_shares(distribution: BaseDistribution, shares: np.ndarray) -> np.ndarray:
    """Return the parameter values (n,), in Optuna's internal form, at relative positions (n,) in the parameter's range.

    Position 0 is the lower end of the range and 1 the upper end, on a logarithmic scale if the parameter has one.
    """
    if isinstance(distribution, CategoricalDistribution):
        count = len(distribution.choices)
        return np.minimum((shares * count).astype(np.int64), count - 1)
    if not isinstance(distribution, FloatDistribution | IntDistribution):
        raise ValueError(f"distribution must be of numbers or choices, got {quote(distribution)}")
    low, high = _bounds(distribution)
    values = low + shares * (high - low)
    values = np.exp(values) if distribution.log else values
    if distribution.step is not None:
        values = distribution.low + distribution.step * np.round((values - distribution.low) / distribution.step)
    return np.clip(values, distribution.low, distribution.high)


def shares_from_values(distribution: BaseDistribution, values: np.ndarray) -> np.ndarray:
    """Return the relative positions (n,) in [0, 1] of parameter values (n,), the inverse of `values_from_shares`.

    A category is at the middle of its part of [0, 1].
    """
    if isinstance(distribution, CategoricalDistribution):
        return (values + 0.5) / len(distribution.choices)
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    low, high = _bounds(distribution)
    return ((np.log(values) if distribution.log else values) - low) / (high - low)


def kernel_rows(space: Space, points: np.ndarray) -> np.ndarray:
    """Return the rows (n, coordinates) on which the kernel is computed, for points (n, parameters) in the unit cube.

    `space` maps the names of parameters to their distributions. Every category of a categorical parameter has a
    coordinate of its own.
    """
    columns = []
    for distribution, shares in zip(space.values(), points.T, strict=True):
        values = values_from_shares(distribution, shares)
        if isinstance(distribution, CategoricalDistribution):
            columns.append(CHOICE_COORDINATE * np.eye(len(distribution.choices))[values])
        else:
            columns.append(shares_from_values(distribution, values)[:, None])
    return np.concatenate(columns, axis=1)


def _direction_sign(study: Study) -> float:
    """Return 1 for a study that maximizes, -1 for one that minimizes."""
    return 1.0 if study.direction == StudyDirection.MAXIMIZE else -1.0


class BanditSampler(BaseSampler):
    """Optuna sampler on a kernel bandit.

    Parameters
    ----------
    n_startup_trials : int, default None
        Number of first trials that are spread evenly over the space of settings, at least 2. None takes 6, and 2 more
        for each setting.
    seed : int, default 0
        Seed of all draws, at least 0.

    Raises
    ------
    ValueError
        If an argument is outside its range, or the study has several objectives.
    """

    def __init__(self, *, n_startup_trials: int | None = None, seed: int = 0) -> None:
        self.n_startup_trials: int | None = n_startup_trials
        if n_startup_trials is not None:
            self.n_startup_trials = check.integer("n_startup_trials", n_startup_trials, 2)
        self.seed: int = check.integer("seed", seed, 0)
        self._tpe = TPESampler(seed=self.seed % 2**32)
        self._rng = np.random.default_rng([self.seed, 1])
        self._lock = Lock()  # one thread of `n_jobs` at a time
        self._begin_study(None)

    def _begin_study(self, study: Study | None) -> None:
        """Forget everything that was learned in another study."""
        self._study = None if study is None else (study.study_name, id(study._storage))
        self._shared_space = IntersectionSearchSpace()
        self._reset({})

    def _shared_parameters(self, study: Study) -> Space:
        """Return the parameters that all completed trials of a study have; forget what belongs to another study."""
        if self._study != (study.study_name, id(study._storage)):
            self._begin_study(study)
        found: Space = self._shared_space.calculate(study)
        return found

    def _reset(self, space: Space) -> None:
        """Forget everything that was learned in another search space, and start with `space`."""
        self._space = space
        startup = STARTUP_TRIALS + STARTUP_TRIALS_PER_PARAMETER * len(space)
        self._n_startup = startup if self.n_startup_trials is None else self.n_startup_trials
        self._surrogate = surrogate.Surrogate(self._n_startup, self.seed)
        self._learned: list[int] = []  # numbers of trials, in the order of the surrogate's values
        self._points: dict[int, np.ndarray] = {}  # points (parameters,) of trials by number, in the unit cube

    def reseed_rng(self) -> None:
        """Seed the random generators again, for use in another process."""
        self._tpe.reseed_rng()
        self._rng = np.random.default_rng()

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> Space:
        """Return the parameters of all trials so far, or an empty space if some trials have further ones."""
        if len(study.directions) > 1:
            raise ValueError("BanditSampler is for one objective")
        with self._lock:
            shared = self._shared_parameters(study)
        complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        if not all(past.distributions.keys() <= shared.keys() for past in complete):
            return {}
        return {name: distribution for name, distribution in shared.items() if not distribution.single()}

    def sample_relative(self, study: Study, trial: FrozenTrial, search_space: Space) -> dict[str, Any]:
        """Return settings for all parameters of `search_space`, or an empty dict if TPE must choose them."""
        if not search_space:
            return {}
        with self._lock:
            self._shared_parameters(study)
            if search_space != self._space:
                self._reset(dict(search_space))
            others = [other for other in study.get_trials(deepcopy=False) if other.number != trial.number]
            point = self._propose_point(trial.number, others, _direction_sign(study))
            if point is None:
                return {}
            self._points[trial.number] = point
            return {
                name: distribution.to_external_repr(values_from_shares(distribution, np.array([share])).item())
                for (name, distribution), share in zip(search_space.items(), point, strict=True)
            }

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Return a value of the parameter `param_name` for one trial of the study, drawn by Optuna's TPE sampler."""
        return self._tpe.sample_independent(study, trial, param_name, param_distribution)

    def best_trial(self, study: Study) -> FrozenTrial:
        """Return the completed trial with the best estimated mean.

        The trial with the best observed value, `study.best_trial`, may only be the luckiest one. That trial is returned
        if some trials have parameters that others lack, or if there are fewer trials than `n_startup_trials`.

        Parameters
        ----------
        study : optuna.study.Study
            Study with at least one completed trial.

        Returns
        -------
        optuna.trial.FrozenTrial
            The best trial.

        Raises
        ------
        ValueError
            If no trial has completed.
        """
        space = self.infer_relative_search_space(study, study.best_trial)
        with self._lock:
            self._shared_parameters(study)
            if space != self._space:
                self._reset(space)
            trials = self._usable_trials(study.get_trials(deepcopy=False))
            if not space or len(trials) < self._n_startup:
                return study.best_trial
            self._learn_finished(trials, _direction_sign(study))
            best = int(np.argmax(self._surrogate.means(self._surrogate.condition_on_pending(self._rows([])))))
            return next(trial for trial in study.get_trials() if trial.number == self._learned[best])

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=Lock())

    def _usable_trials(self, trials: list[FrozenTrial]) -> list[FrozenTrial]:
        """Return the trials that have all parameters of the space or whose point was chosen by this sampler.

        Their points are stored.
        """
        usable, learned = [], set(self._learned)
        for trial in trials:
            own, is_learned = trial.distributions, trial.number in learned
            if not is_learned and all(own.get(name) == expected for name, expected in self._space.items()):
                shares = [
                    shares_from_values(distribution, np.array([distribution.to_internal_repr(trial.params[name])]))
                    for name, distribution in self._space.items()
                ]
                self._points[trial.number] = np.array([share.item() for share in shares])
                usable.append(trial)
            elif is_learned or (trial.state == TrialState.RUNNING and trial.number in self._points):
                usable.append(trial)
        return usable

    def _learn_finished(self, trials: list[FrozenTrial], sign: float) -> None:
        """Learn the finished trials that were not learned before.

        `sign` is 1 if the study maximizes and -1 if it minimizes; it multiplies the values of trials.
        """
        learned = set(self._learned)
        new = [trial for trial in trials if trial.state in FINISHED_STATES and trial.number not in learned]
        if new:
            observed = [trial.value if trial.state == TrialState.COMPLETE else None for trial in new]
            values = np.array([np.nan if value is None else sign * value for value in observed])
            self._surrogate.learn(self._rows([trial.number for trial in new]), values)
            self._learned += [trial.number for trial in new]

    def _propose_point(self, number: int, trials: list[FrozenTrial], sign: float) -> np.ndarray | None:
        """Return the point (parameters,) of the trial with this number, or None if TPE is to draw its settings.

        The point is in the unit cube. `trials` are the trials so far, and `sign` is 1 if the study maximizes, else -1.
        """
        trials = self._usable_trials(trials)
        has_values = any(
            trial.value is not None and np.isfinite(trial.value)
            for trial in trials
            if trial.state == TrialState.COMPLETE
        )
        if len(trials) < self._n_startup or not has_values:
            sequence = qmc.Sobol(len(self._space), seed=np.random.default_rng([self.seed, 2]))
            return np.asarray(sequence.random()[0] if number == 0 else sequence.fast_forward(number).random()[0])
        self._learn_finished(trials, sign)
        pending = [trial.number for trial in trials if trial.state not in FINISHED_STATES]
        model = self._surrogate.condition_on_pending(self._rows(pending))
        moments = partial(surrogate.moments, model)
        if self._surrogate.has_plateaus():
            if number % TPE_PERIOD == 0:
                return None
            tried = {row.tobytes() for row in self._rows([trial.number for trial in trials])}
            moments = partial(surrogate.moments_without_repeats, model, tried)
        means = self._surrogate.means(model)
        order = np.argsort(-means, kind="stable")[:N_CENTRES]
        centres = np.array([self._points[self._learned[index]] for index in order if np.isfinite(means[index])])
        is_choice = np.array([isinstance(kind, CategoricalDistribution) for kind in self._space.values()])
        return best_candidate(
            lambda points: moments(kernel_rows(self._space, points)), float(means[order[0]]), centres,
            model.dictionary_size, is_choice, self._rng,
        )  # fmt: skip

    def _rows(self, numbers: list[int]) -> np.ndarray:
        """Return the rows (n, coordinates) of the trials with these numbers."""
        points = np.array([self._points[number] for number in numbers]).reshape(len(numbers), len(self._space))
        return kernel_rows(self._space, points)
