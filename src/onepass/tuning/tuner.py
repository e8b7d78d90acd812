"""Ask and tell: settings of anything that pays a noisy number, tried one after the other or many at once.

The first trials are points of a scrambled Sobol sequence; each later one is where the expected improvement of a kernel
bandit's posterior is largest (proposing.py), with kernel and noise refitted on a schedule (surrogate.py). The trials
are the truth, the posterior is made of them when it is needed, and a loaded tuner asks what the saved one would have.
"""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self, final

import numpy as np

from onepass.features.kernels import Kernel
from onepass.foundation import check, files
from onepass.foundation.check import shown
from onepass.foundation.registry import built, plain, savable
from onepass.foundation.sharing import reading, writing
from onepass.kernel.gp_ucb import GPUCB
from onepass.tuning import bounding, parzen, proposing, surrogate
from onepass.tuning.space import MIDDLE, Dimension, Settings, Space
from onepass.tuning.surrogate import Model, Units

PENDING, TOLD, FAILED = "pending", "told", "failed"
EACH = 2  # trials of the start for every setting
START = 6  # and beside them
KNOWN = Units(centre=0.0, scale=1.0, bent=False)


class Trial(NamedTuple):
    """number: its place among all trials; settings: {name: value}; value: what it paid, or None; status: "pending",
    "told" or "failed"."""

    number: int
    settings: Settings
    value: float | None = None
    status: str = PENDING


class Best(NamedTuple):
    """The trial of the best posterior mean: number, settings, value (what it paid), mean and deviation of its posterior
    in units of values (to first order)."""

    number: int
    settings: Settings
    value: float
    mean: float
    deviation: float


class Nothing(NamedTuple):
    """No arrays: trials are plain data."""


@final
@savable
class Tuner(files.Owner):
    """Finds settings that pay much, in few trials.

    settings: {name: `Real`, `Integer` or `Category`}, at least one.
    maximize: whether much is good (default True); False: little is.
    allowed: a function of settings (a dictionary) that says whether they may be tried; default None: all may. A file
        does not hold it: set `allowed` again after loading.
    start: trials of a scrambled Sobol sequence before the first proposal, at least 2; default None: 6 + 2 a setting.
    kernel, noise: a kernel on the rows of `Space.rows` and the variance of the noise, kept as they are; default None:
        both are fitted. Given, values are taken as they are, and `left` is a theorem for draws of that kernel.
    seed: of all that is drawn, at least 0 (default 0).
    ValueError outside those ranges.

    >>> from onepass.tuning import Integer, Real, Tuner
    >>> tuner = Tuner({"x": Real(0.0, 4.0), "n": Integer(1, 5)}, maximize=False)
    >>> for _ in range(25):
    ...     trial = tuner.ask()
    ...     tuner.tell(trial, (trial.settings["x"] - 3.0) ** 2 + (trial.settings["n"] - 2) ** 2)
    >>> tuner.best.settings["n"], round(tuner.best.settings["x"], 1)
    (2, 3.0)
    """

    def __init__(
        self,
        settings: dict[str, Dimension],
        *,
        maximize: bool = True,
        allowed: Callable[[Settings], bool] | None = None,
        start: int | None = None,
        kernel: Kernel | None = None,
        noise: float | None = None,
        seed: int = 0,
    ):
        self.space = Space(settings)
        self.maximize = bool(check.choice("maximize", maximize, (False, True)))
        if allowed is not None and not callable(allowed):
            raise ValueError(f"allowed must be a function of settings, got {shown(allowed)}")
        self.allowed, self._limited = allowed, allowed is not None
        self._given_start = start
        usual = START + EACH * len(self.space.names)
        self.start = usual if start is None else check.integer("start", start, 2)
        if (kernel is None) != (noise is None):
            raise ValueError("kernel and noise must be given together, or neither")
        if kernel is not None and not isinstance(kernel, Kernel):
            raise ValueError(f"kernel must be a kernel such as Matern(2.5, 0.3), got {shown(kernel)}")
        self.kernel, self.noise = kernel, None if noise is None else check.positive("noise", noise)
        self.seed = check.integer("seed", seed, 0, None)
        self._trials: list[Trial] = []
        self._points: list[np.ndarray] = []  # of each trial, its row
        self._shares: list[np.ndarray] = []  # of each trial, of its settings, NaN where they play no part
        self._places: dict[bytes, int] = {}  # of distinct rows of told trials, in the order in which they were told
        self._seats: list[int] = []  # those of the trials of `_order`
        self._order: list[int] = []  # numbers of trials that are told or failed, as they came
        self._drawn = 0  # points of the Sobol sequence
        self._rng = np.random.default_rng(self.seed)
        self._model: Model | None = None
        self._bandit: GPUCB | None = None  # what has learned the first of `_order`

    # ---- trials ----

    @property
    @reading
    def trials(self) -> list[Trial]:
        """All trials so far, in the order in which they were asked for or added."""
        return list(self._trials)

    @property
    def pending(self) -> list[Trial]:
        """Trials that were asked for and of which nothing was told yet."""
        return [trial for trial in self.trials if trial.status == PENDING]

    @writing
    def ask(self, count: int | None = None) -> Any:
        """The next `Trial`, or a list of `count` of them to be tried at the same time, at least 1 (default None: one).

        Those that are pending are taken into account: each of many is where it helps most beside the others.
        ValueError, and nothing has changed, where `allowed` allows nothing that was drawn, or is missing after loading.
        """
        if self._limited and self.allowed is None:
            raise ValueError("allowed is a function, which a file does not hold; set it again: tuner.allowed = ...")
        wanted = 1 if count is None else check.integer("count", count, 1)
        before = len(self._trials), self._drawn, self._rng.bit_generator.state
        try:
            for _ in range(wanted):
                self._add(self._next())
        except BaseException:
            del self._trials[before[0] :], self._points[before[0] :], self._shares[before[0] :]
            self._drawn, self._rng.bit_generator.state = before[1:]
            raise
        found = self._trials[-wanted:]
        return found[0] if count is None else found

    @writing
    def tell(self, trial: Any, value: Any) -> None:
        """What a trial paid.

        trial: a `Trial` or its number, of one that is pending; or settings that were tried elsewhere, a dictionary,
        which become a trial of their own.
        value: a finite number; None, NaN or an infinity for a trial that failed: it crashed, or took too long.
        ValueError, and nothing has changed, for anything else, and for a trial of which something was told.
        """
        paid = check.real("value", value) if value is not None and np.isfinite(_number(value)) else None
        if isinstance(trial, dict):
            place = self._add(self.space.checked(trial)).number
        else:
            place = trial.number if isinstance(trial, Trial) else trial
            place = check.integer("trial", place, 0, max(len(self._trials) - 1, 0))
            held = self._trials[place] if self._trials else None
            if held is None or held.status != PENDING:
                raise ValueError(f"trial must be pending, got {shown(trial)}")
            if isinstance(trial, Trial) and trial.settings != held.settings:
                raise ValueError(f"trial must be one of this tuner, got {shown(trial)}")
        self._close(place, paid, FAILED if paid is None else TOLD)

    # ---- what is known ----

    def _rows(self, numbers: Iterable[int]) -> np.ndarray:
        """The points of trials, (n, coordinates)."""
        found = [self._points[number] for number in numbers]
        return np.array(found).reshape(len(found), len(self.space.owners))

    def _add(self, settings: Settings) -> Trial:
        """A trial more."""
        trial = Trial(len(self._trials), settings)
        self._points.append(self.space.rows(self.space.shares(settings)[None])[0])
        self._shares.append(self.space.shares(settings, np.nan))
        self._trials.append(trial)
        return trial

    def _close(self, number: int, value: float | None, status: str) -> None:
        """What came of a trial."""
        self._trials[number] = self._trials[number]._replace(value=value, status=status)
        self._order.append(number)
        self._seats.append(self._places.setdefault(self._points[number].tobytes(), len(self._places)))

    def _means(self, bandit: GPUCB) -> np.ndarray:
        """Posterior means at the trials in the order in which they were told: the bandit's table has them."""
        return bandit.posterior().means[self._seats]

    def _values(self) -> np.ndarray:
        """What trials paid in the order in which it was told, more is better, NaN where they failed."""
        sign = 1.0 if self.maximize else -1.0
        paid = [self._trials[number].value for number in self._order]
        return np.array([np.nan if value is None else sign * value for value in paid])

    @property
    def _units(self) -> Units:
        return KNOWN if self._model is None else self._model.units

    def _learned(self) -> GPUCB:
        """The bandit that has learned all that was told, fitted anew where it is time to."""
        values, last = self._values(), self._model
        if self.kernel is None and (last is None or len(values) >= max(surrogate.AGAIN * last.told, last.told + 1)):
            rows = self._rows(self._order)
            self._model = surrogate.refitted(rows, values, self.start, self.space.owners, last, self.seed)
            if last is None or last.units != self._model.units:
                self._bandit = None
            if self._bandit is not None:
                self._hear(self._bandit, values)
                self._bandit.refit(*self._chosen())
        if self._bandit is None:
            kernel, noise = self._chosen()
            self._bandit = GPUCB(None, kernel, reg=noise)
            if self._model is not None:
                self._hear(self._bandit, values[: self._model.told])
                self._bandit.refit(kernel, noise)
        self._hear(self._bandit, values)
        return self._bandit

    def _chosen(self) -> tuple[Kernel, float]:
        """Kernel and noise, as given or fitted."""
        if self._model is not None:
            return surrogate.kernel_of(self._model.fit, self.space.owners), self._model.fit.noise
        assert self.kernel is not None
        assert self.noise is not None
        return self.kernel, self.noise

    def _hear(self, bandit: GPUCB, values: np.ndarray) -> None:
        """Learn those of the first values (n,) that are new."""
        new = slice(bandit.rounds, len(values))
        learned = surrogate.inside(self._units, values[new]).tolist()
        for row, value in zip(self._rows(self._order[new]), learned, strict=True):
            bandit.learn(row, value)

    def _next(self) -> Settings:
        """The settings of the next trial."""
        candidates = proposing.Candidates(self.space, self.allowed, self._rng)
        if len(self._trials) < self.start or not any(trial.status == TOLD for trial in self._trials):
            settings, self._drawn = proposing.started(candidates, self.seed, self._drawn)
            return settings
        bandit = self._learned()
        waiting = [trial.number for trial in self._trials if trial.status == PENDING]
        if waiting:
            bandit = bandit.copy()
            for row in self._rows(waiting):
                bandit.learn(row, float(bandit.posterior(row[None]).means[0]))
        means, values = self._means(bandit), self._values()
        succeeded = np.flatnonzero(np.isfinite(values))
        order = succeeded[np.argsort(-means[succeeded], kind="stable")[: proposing.NEAR]]
        shares = np.array([self._shares[number] for number in self._order])
        found, posterior = None, partial(surrogate.moments, bandit)
        if self._model is not None and parzen.still(values, np.array(self._seats)):
            tried = {row.tobytes() for row in self._points}
            posterior = partial(surrogate.untried, bandit, tried)
            if len(self._trials) % parzen.TURN == 0:
                found = parzen.proposed(candidates, shares, values, tried)
        if found is None:
            centres, best = np.nan_to_num(shares[order], nan=MIDDLE), float(means[order[0]])
            found = proposing.proposed(candidates, posterior, best, centres, bandit.dictionary_size)
        return self.space.settings(found)

    def _best(self) -> int:
        """The number of the told trial of the largest posterior mean."""
        there = np.flatnonzero(np.isfinite(self._values()))
        if not there.size:
            raise ValueError("best is known after the first value that was told; no trial has one yet")
        return self._order[int(there[np.argmax(self._means(self._learned())[there])])]

    @property
    @writing
    def best(self) -> Best:
        """The told trial of the best posterior mean, which noise does not flatter; ValueError before anything was."""
        trial, sign = self._trials[self._best()], 1.0 if self.maximize else -1.0
        (found,), (spread,) = surrogate.moments(self._learned(), self._rows([trial.number]))
        units = self._units
        mean = float(units.outside(found))
        deviation = float(units.outside(found + spread)) - mean
        return Best(trial.number, trial.settings, float(trial.value or 0.0), sign * mean, deviation)

    @writing
    def expected(self, settings: list[Settings], deviations: float = 2.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What settings are worth by the posterior: means, and where the mean less and plus deviations is, (n,) each.

        settings: a list of dictionaries; deviations: how many, at least 0 (default 2.0), of the posterior of the mean.
        In units of values. ValueError for settings that are none, and before anything was told.
        """
        many = check.real("deviations", deviations)
        if many < 0.0:
            raise ValueError(f"deviations must be at least 0, got {shown(deviations)}")
        if not any(trial.status == TOLD for trial in self._trials):
            raise ValueError("the posterior is known after the first value that was told; no trial has one yet")
        points = [self.space.shares(self.space.checked(one)) for one in settings]
        rows = self.space.rows(np.array(points).reshape(len(points), len(self.space.names)))
        means, spreads = surrogate.moments(self._learned(), rows)
        units, sign = self._units, 1.0 if self.maximize else -1.0
        low, high = sorted(
            (sign * units.outside(means - many * spreads), sign * units.outside(means + many * spreads)),
            key=lambda side: float(np.sum(side)),
        )
        return sign * units.outside(means), low, high

    @writing
    def left(self, delta: float = 0.1) -> float:
        """At most so much better than the settings of `best` may any settings be, in units of values: when to stop.

        delta: in (0, 1), the chance that it is more after any of the trials (default 0.1), for a draw of the kernel
        under normal noise, over all settings where these are at most 10,000, else over 2,048 points of a net and all
        that was tried: what lies between them is looked at no closer. That holds where kernel and noise were given;
        where they are fitted, as far as the fit does. inf while too little was told. ValueError for another delta.
        """
        delta = check.fraction("delta", delta)
        if delta in (0.0, 1.0):
            raise ValueError(f"delta must be between 0 and 1, got {delta}")
        told = sum(trial.status == TOLD for trial in self._trials)
        if not told or (self.kernel is None and told < self.start):
            return np.inf
        bandit, units, best = self._learned(), self._units, self._rows([self._best()])
        points = bounding.net(self.space, self.allowed, self._rows(self._order), self.seed)
        low, high = bounding.gain(bandit, points, best, len(self._order), delta)
        return max(float(units.outside(high) - units.outside(low)), 0.0)

    def picture(self, path: str | Path) -> Path:
        """Draw what trials paid and the best so far, and how each setting matters, to a file; returns where it is.

        path: of the file, whose ending says its kind. ModuleNotFoundError without matplotlib.
        """
        from onepass.tuning.picture import drawn

        return drawn(self, path)

    # ---- files ----

    def contents(self) -> files.Contents:
        params = {
            "settings": [[name, plain(one)] for name, one in self.space.dimensions.items()],
            "maximize": self.maximize,
            "start": self._given_start,
            "kernel": self.kernel,
            "noise": self.noise,
            "seed": self.seed,
        }
        model = self._model and [list(part) for part in (self._model.fit, self._model.units, [self._model.told])]
        extra = {
            "trials": [[list(trial.settings.items()), trial.value, trial.status] for trial in self._trials],
            "order": list(self._order),
            "drawn": self._drawn,
            "limited": self._limited,
            "rng": self._rng.bit_generator.state,
            "model": model,
        }
        return files.Contents(params, extra, Nothing())

    @classmethod
    def restored(cls, params: dict[str, Any], extra: dict[str, Any], held: files.Holds) -> Self:
        """From what a file, copy or pickle holds, `params`, `extra` and `held`; ValueError where that does not fit."""
        given: dict[str, Any] = {**params, "settings": {name: built(one) for name, one in params["settings"]}}
        found = cls(**{**given, "kernel": built(params["kernel"])})
        held.take(Nothing(), lambda state: True)
        for settings, value, status in extra["trials"]:
            check.choice("status", status, (PENDING, TOLD, FAILED))
            trial = found._add(found.space.checked(dict(settings)))
            found._trials[-1] = trial._replace(
                value=None if status != TOLD else check.real("value", value), status=status
            )
        done = [trial.number for trial in found._trials if trial.status != PENDING]
        if sorted(extra["order"]) != done:
            raise ValueError("the order of what was told does not fit the trials")
        for number in extra["order"]:
            found._close(number, *found._trials[check.integer("order", number, 0)][2:])
        most = len(found._trials) * proposing.TRIES * proposing.FEWEST
        found._drawn = check.integer("drawn", extra["drawn"], 0, most)
        found._limited = bool(check.choice("limited", extra["limited"], (False, True)))
        found._rng.bit_generator.state = extra["rng"]
        if extra["model"] is not None:
            found._model = surrogate.model_of(extra["model"], len(found.space.names), len(done))
        return found

    def __repr__(self) -> str:
        told = sum(trial.status == TOLD for trial in self._trials)
        failed = sum(trial.status == FAILED for trial in self._trials)
        waiting = len(self._trials) - told - failed
        return f"<Tuner of {', '.join(self.space.names)}; {told} told, {failed} failed, {waiting} pending>"


def _number(value: Any) -> float:
    """A value as a float; ValueError for what is no number."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"value must be a number, or None for a trial that failed, got {shown(value)}") from None
