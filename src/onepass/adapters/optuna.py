"""Optuna: a sampler that chooses settings by a kernel bandit.

    study = optuna.create_study(sampler=BanditSampler(seed=0))

Where all trials have the same settings, these are chosen together: the first by a scrambled Sobol sequence, each later
one by the largest expected improvement of a kernel bandit's posterior (`onepass.tuning`). Settings that only some
trials have are drawn one by one by Optuna's TPE, and so is every second trial where values come in steps. Failed and
pruned trials count as the median of the first ones; trials that still run count as if they had paid their mean, so
`n_jobs` may be anything. One objective. Everything is made of the study's trials: one loaded from its storage goes on.
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
from onepass.tuning.acquisition import NEAR, best_candidate

START, EACH = 6, 2  # trials of the start, and as many more for every parameter
APART = 0.5**0.5  # at the coordinate of a choice: two choices are at distance 1
TURN = 2  # every so many trials TPE draws, where values come in steps
OVER = (TrialState.COMPLETE, TrialState.FAIL, TrialState.PRUNED)
Space = dict[str, BaseDistribution]


def ends(one: FloatDistribution | IntDistribution) -> tuple[float, float]:
    """Return the range of a number, half a step beyond its ends, of logarithms where it is log."""
    half = 0.5 * (one.step or 0.0)
    low, high = one.low - half, one.high + half
    return (float(np.log(low)), float(np.log(high))) if one.log else (low, high)


def numbers(one: BaseDistribution, shares: np.ndarray) -> np.ndarray:
    """Return Optuna's internal numbers (n,) at shares (n,) in [0, 1] of a parameter's range."""
    if isinstance(one, CategoricalDistribution):
        return np.minimum((shares * len(one.choices)).astype(np.int64), len(one.choices) - 1)
    if not isinstance(one, FloatDistribution | IntDistribution):
        raise ValueError(f"distribution must be of numbers or choices, got {quote(one)}")
    low, high = ends(one)
    found = low + shares * (high - low)
    found = np.exp(found) if one.log else found
    if one.step is not None:
        found = one.low + one.step * np.round((found - one.low) / one.step)
    return np.clip(found, one.low, one.high)


def shares(one: BaseDistribution, found: np.ndarray) -> np.ndarray:
    """Return the inverse of `numbers`, for a choice the middle of its range."""
    if isinstance(one, CategoricalDistribution):
        return (found + 0.5) / len(one.choices)
    assert isinstance(one, FloatDistribution | IntDistribution)
    low, high = ends(one)
    return ((np.log(found) if one.log else found) - low) / (high - low)


def coordinates(space: Space, points: np.ndarray) -> np.ndarray:
    """Return the rows (n, coordinates) that a kernel sees of shares (n, parameters): a choice has one each."""
    found = []
    for one, column in zip(space.values(), points.T, strict=True):
        at = numbers(one, column)
        if isinstance(one, CategoricalDistribution):
            found.append(APART * np.eye(len(one.choices))[at])
        else:
            found.append(shares(one, at)[:, None])
    return np.concatenate(found, axis=1)


def sign_of(study: Study) -> float:
    """Return 1 where much is good, -1 where little is."""
    return 1.0 if study.direction == StudyDirection.MAXIMIZE else -1.0


class BanditSampler(BaseSampler):
    """An Optuna sampler on a kernel bandit.

    Parameters
    ----------
    start : int, optional
        Trials of a scrambled Sobol sequence, at least 2. Defaults to 6 + 2 per parameter.
    seed : int, default 0
        Seed of all draws, at least 0.

    Raises
    ------
    ValueError
        Outside those ranges, and for a study of several objectives.
    """

    def __init__(self, *, start: int | None = None, seed: int = 0) -> None:
        self.start: int | None = start if start is None else check.integer("start", start, 2)
        self.seed: int = check.integer("seed", seed, 0)
        self._independent = TPESampler(seed=self.seed % 2**32)
        self._rng = np.random.default_rng([self.seed, 1])
        self._shared = IntersectionSearchSpace()
        self._alone = Lock()  # one thread of `n_jobs` at a time
        self._begin({})

    def _begin(self, space: Space) -> None:
        """Forget what was learned in another space."""
        self._space = space
        self._first = START + EACH * len(space) if self.start is None else self.start
        self._surrogate = surrogate.Surrogate(self._first, self.seed)
        self._learned: list[int] = []  # numbers of trials, in the order of the surrogate's values
        self._points: dict[int, np.ndarray] = {}  # shares (parameters,) of trials by number

    def reseed_rng(self) -> None:
        """Draw anew, in a process of its own."""
        self._independent.reseed_rng()
        self._rng = np.random.default_rng()

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> Space:
        """Return the parameters of all trials so far; none where some trials have others beside them."""
        if len(study.directions) > 1:
            raise ValueError("BanditSampler is for one objective")
        shared = self._shared.calculate(study)
        over = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        if not all(one.distributions.keys() <= shared.keys() for one in over):
            return {}
        return {name: one for name, one in shared.items() if not one.single()}

    def sample_relative(self, study: Study, trial: FrozenTrial, search_space: Space) -> dict[str, Any]:
        """Return settings for all parameters of `search_space`, or none where TPE draws them."""
        if not search_space:
            return {}
        with self._alone:
            if search_space != self._space:
                self._begin(dict(search_space))
            others = [one for one in study.get_trials(deepcopy=False) if one.number != trial.number]
            point = self._next(trial.number, others, sign_of(study))
            if point is None:
                return {}
            self._points[trial.number] = point
            pairs = zip(search_space.items(), point, strict=True)
            return {name: one.to_external_repr(numbers(one, np.array([at])).item()) for (name, one), at in pairs}

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Return one parameter by itself, by Optuna's TPE."""
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def best_trial(self, study: Study) -> FrozenTrial:
        """Return the completed trial of the best posterior mean, which noise does not flatter.

        Where trials differ in their parameters, or before there are as many as the start has, it is Optuna's
        `study.best_trial`, the luckiest one. Raises ValueError before any trial has completed.
        """
        space = self.infer_relative_search_space(study, study.best_trial)
        with self._alone:
            if space != self._space:
                self._begin(space)
            trials = self._known(study.get_trials(deepcopy=False))
            if not space or len(trials) < self._first:
                return study.best_trial
            self._learn(trials, sign_of(study))
            place = int(np.argmax(self._surrogate.means(self._surrogate.beside(self._rows([])))))
            return next(one for one in study.get_trials() if one.number == self._learned[place])

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_alone"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _alone=Lock())

    def _known(self, trials: list[FrozenTrial]) -> list[FrozenTrial]:
        """Return the trials that have all parameters of the space, or were given them here; keeps their points."""
        found, held = [], set(self._learned)
        for one in trials:
            if one.number not in held and all(one.distributions.get(name) == own for name, own in self._space.items()):
                at = [(own, own.to_internal_repr(one.params[name])) for name, own in self._space.items()]
                self._points[one.number] = np.array([shares(own, np.array([value])).item() for own, value in at])
                found.append(one)
            elif one.number in held or (one.state == TrialState.RUNNING and one.number in self._points):
                found.append(one)
        return found

    def _learn(self, trials: list[FrozenTrial], sign: float) -> None:
        """Learn those of the trials that are over and were not yet learned."""
        held = set(self._learned)
        new = [one for one in trials if one.state in OVER and one.number not in held]
        if new:
            paid = [one.value if one.state == TrialState.COMPLETE else None for one in new]
            values = np.array([np.nan if value is None else sign * value for value in paid])
            self._surrogate.learn(self._rows([one.number for one in new]), values)
            self._learned += [one.number for one in new]

    def _next(self, number: int, trials: list[FrozenTrial], sign: float) -> np.ndarray | None:
        """Return the shares (parameters,) of a trial of that number; None where TPE draws it."""
        trials = self._known(trials)
        complete = any(one.state == TrialState.COMPLETE for one in trials)
        if len(trials) < self._first or not complete:
            sequence = qmc.Sobol(len(self._space), seed=np.random.default_rng([self.seed, 2]))
            return np.asarray(sequence.fast_forward(number).random()[0])
        self._learn(trials, sign)
        known = self._surrogate.beside(self._rows([one.number for one in trials if one.state not in OVER]))
        posterior = partial(surrogate.moments, known)
        if self._surrogate.is_still():
            if number % TURN == 0:
                return None
            tried = {row.tobytes() for row in self._rows([one.number for one in trials])}
            posterior = partial(surrogate.untried, known, tried)
        means = self._surrogate.means(known)
        order = np.argsort(-means, kind="stable")[:NEAR]
        centres = np.array([self._points[self._learned[place]] for place in order if np.isfinite(means[place])])
        choices = np.array([isinstance(one, CategoricalDistribution) for one in self._space.values()])
        return best_candidate(
            lambda points: posterior(coordinates(self._space, points)), float(means[order[0]]), centres,
            known.dictionary_size, choices, self._rng,
        )  # fmt: skip

    def _rows(self, chosen: list[int]) -> np.ndarray:
        """Return the rows (n, coordinates) of trials of these numbers."""
        points = np.array([self._points[number] for number in chosen]).reshape(len(chosen), len(self._space))
        return coordinates(self._space, points)
