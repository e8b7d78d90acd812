"""What all kernel bandits know: arms, kernel, posterior, files. Members say how a posterior learns and predicts."""

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np

from onepass.bandit.deciding import (
    checked_tally,
    rule_of,
)
from onepass.bandit.ledger import Ledger
from onepass.exploration.exploration import Exploration
from onepass.exploration.residuals import Tally, counted, pooled
from onepass.exploration.theory import Theory
from onepass.exploration.ucb import UCB
from onepass.features.kernels import Kernel, Matern, as_kernel, median_distance, probed, rows_of
from onepass.foundation import check, files
from onepass.foundation import state as states
from onepass.foundation.check import shown
from onepass.foundation.interrupts import deferred
from onepass.foundation.registry import built, plain
from onepass.foundation.sharing import reading, writing
from onepass.kernel.posterior import (
    LOG_DET,
    KernelState,
    Posterior,
    Saved,
    begun,
    centred,
    consistent,
    units,
    with_point,
)
from onepass.kernel.values import gram_of, indices, prior_of, table_of


class KernelModel(files.Owner, ABC):
    """A posterior of a function f of bounded norm in the space of a kernel, learned from f(x) + noise."""

    kernel: Kernel
    reg: float
    _state: KernelState

    fixed: bool

    @abstractmethod
    def __init__(self, arms: Any = None, kernel: Any = None, **options: Any):
        """Members check their own options, then all others by `_set`."""

    def _set(
        self, arms: Any, kernel: Any, reg: Any, exploration: Any, normalize: Any, fit_after: Any, seed: Any
    ) -> None:
        """Check the arguments that all kernel bandits have, and begin."""
        self.reg = check.positive("reg", reg, "it is the variance of the noise where the kernel's is the function's")
        self.fit_after: int = check.integer("fit_after", fit_after, 0)
        if not (normalize is None or isinstance(normalize, bool)):
            raise ValueError(f"normalize must be True, False or None, got {shown(normalize)}")
        self.normalize: bool = self.fit_after > 0 if normalize is None else normalize
        self.seed: int = check.integer("seed", seed, 0, None)
        self.exploration = exploration
        points, self.fixed = table_of(arms), arms is not None
        if kernel is None and not self.fixed:
            raise ValueError("kernel must be given where arms are not, say Matern(2.5, length_scale=0.2)")
        self.kernel = Matern(2.5, median_distance(points)) if kernel is None else as_kernel(kernel)
        if self.fit_after:
            from onepass.kernel.marginal_likelihood import fittable

            fittable(self.kernel)
        self._begun_with = (self.kernel, self.reg)
        self._rng = np.random.default_rng(self.seed)  # of decisions
        self._tally, self._rewarded = Tally(rows=0, squares=0.0), Ledger()
        self._coins = np.random.default_rng([self.seed, 1])  # of dictionaries: equal posteriors decide alike
        self._fits = self.fit_after > 0  # kernel and reg are still to be chosen
        self._first: list[tuple[int, float]] = []  # the plays that they will be chosen from
        self._places: dict[bytes, int] = {}
        if self.fixed and not states.is_abstract():
            probed(self.kernel, points)
        self._state = self._begun(points)

    def _begun(self, points: np.ndarray) -> KernelState:
        """The state before the first play."""
        prior = states.zeros(len(points)) if states.is_abstract() else prior_of(self.kernel, points)
        return begun(points, prior, self.reg)

    @abstractmethod
    def _play(self, place: int, reward: float) -> None:
        """Learn a play of a point of the table: by one compiled call or one assignment, once nothing can fail."""

    @abstractmethod
    def _column(self, gram: np.ndarray) -> np.ndarray:
        """Columns of `rows` for points with kernel values gram (used, n)."""

    @abstractmethod
    def _predicted(self, gram: np.ndarray, prior: np.ndarray) -> Any:
        """Means, ones and variances of points from k_U (used, n) and k(x, x) (n,)."""

    @abstractmethod
    def _rebuilt(self, state: KernelState) -> KernelState:
        """The same plays under the present kernel and reg."""

    @abstractmethod
    def _arm_draws(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Draws of the posterior, less its mean, over the square root of reg, at all arms: (count, arms)."""

    @abstractmethod
    def _row_draws(
        self, rows: np.ndarray, gram: np.ndarray, prior: np.ndarray, rng: np.random.Generator, count: int
    ) -> np.ndarray:
        """The same at the rows, given k_U and k(x, x) there."""

    @abstractmethod
    def _radius(self, theory: Theory) -> float:
        """beta of the confidence intervals that are proved."""

    def _count_in(self, other: "KernelModel") -> None:
        """Count the residuals and decisions of another one."""
        self._tally = pooled(self._tally, other._tally, None)
        self._rewarded.join(other._rewarded)

    @property
    @reading
    def dictionary(self) -> np.ndarray:
        """The points that the posterior rests on, shape (m, dim)."""
        return self._state.points[self._state.members[: self._state.used]]

    @property
    def dictionary_size(self) -> int:
        """How many points the posterior rests on: for `GPUCB` all distinct points played."""
        return self._state.used

    @property
    def rounds(self) -> int:
        """Plays learned so far."""
        return self._state.rounds

    @reading
    def effective_dimension(self) -> float:
        """Sum over all plays of the variance of their point as it is now (Calandriello et al. eq. 5): the degrees of
        freedom in use.
        """
        return float(self._state.plays @ self._state.variances)

    @reading
    def information_gain(self) -> float:
        """log det(I + K / reg) / 2 of the plays: what they tell about f, in nats; BKB's, of its approximation of K."""
        return float(self._state.tally[LOG_DET]) / 2.0

    @property
    def exploration(self) -> Exploration | None:
        """How arms are chosen, None: `UCB` of two standard deviations, 2 sqrt(reg). It may be changed at any time."""
        return self._exploration

    @exploration.setter
    @writing
    def exploration(self, exploration: Any) -> None:
        if not (exploration is None or isinstance(exploration, Exploration)):
            exploration = UCB(exploration)
        self._exploration, self._explores = exploration, None if exploration is None else rule_of(exploration)

    def _checked_rows(self, rows: Any) -> np.ndarray:
        rows = rows_of("rows", rows)
        if rows.size == 0:
            raise ValueError(f"rows must have at least one row and one feature, got shape {rows.shape}")
        width = self._state.points.shape[1]
        if (width or self.fixed) and rows.shape[1] != width:
            raise ValueError(f"rows must have {width} features, as those before, got shape {rows.shape}")
        if not width:
            probed(self.kernel, rows)
        return rows

    @reading
    def posterior(self, rows: Any = None) -> Posterior:
        """Means, variances and deviations of all arms (where arms change: of all points played), or of the rows."""
        s = self._state
        means, ones, variances = s.means[: s.size], s.ones[: s.size], s.variances[: s.size]
        if rows is not None:
            rows = self._checked_rows(rows)
            means, ones, variances = self._predicted(
                gram_of(self.kernel, self.dictionary, rows), prior_of(self.kernel, rows)
            )
        centre, scale = units(self._state, self.normalize)
        means, deviations = centred(means, ones, variances, centre, scale * self.reg**0.5)
        return Posterior(means=means, variances=variances.copy(), deviations=deviations)

    def _arms(self, arm: Any) -> tuple[bool, list[Any]]:
        """Whether several arms were given, and all of them: indices, or rows."""
        if not self.fixed:
            rows = check.array("arm", arm, np.dtype(np.float64), (1, 2))
            many = rows.ndim == 2
            return many, list(self._checked_rows(rows.reshape(-1, rows.shape[-1]))) if len(rows) else []
        return indices(arm, len(self._state.plays))

    def _learn(self, arm: Any, reward: float) -> None:
        held = self._state, self.kernel, self.reg, self._fits
        coins, rounds, first, key = self._coins.bit_generator.state, self.rounds, list(self._first), None
        deviation = 0.0
        fits = self._fits and rounds + 1 >= self.fit_after
        try:
            if fits:
                self._state = states.copy(self._state)
            place = arm
            if not self.fixed:
                key = (arm + 0.0).tobytes()  # -0.0 is 0.0
                place = self._places.get(key, -1)
                if place < 0:
                    place = self._joined(arm)
                    self._places[key] = place
                else:
                    key = None
            if self._explores is not None and self._explores.residual:
                centre, s = units(self._state, self.normalize)[0], self._state
                deviation = reward - float(centre + s.means[place] - centre * s.ones[place])
            self._play(place, reward)
            if self._explores is not None and self._explores.residual:
                self._tally = counted(self._tally, deviation)
            if self._fits:
                self._first = [*first, (place, reward)][-self.fit_after :]
            if fits:
                self._fit()
        except BaseException:
            if fits or self.rounds == rounds:  # else it came after the play, which stays learned
                self._state, self.kernel, self.reg, self._fits = held
                self._first = first
                self._coins.bit_generator.state = coins
                if key is not None:
                    self._places.pop(key, None)
            raise

    def _joined(self, point: np.ndarray) -> int:
        """The place of a point that was not in the table."""
        if not self._state.points.shape[1]:
            self._state = self._begun(np.empty((0, point.size)))
        gram, prior = gram_of(self.kernel, self.dictionary, point[None]), prior_of(self.kernel, point[None])
        (mean,), (one,), (variance,) = self._predicted(gram, prior)
        column = self._column(gram)[:, 0]
        state = with_point(self._state, point, float(prior[0]), self.reg)
        place = state.size - 1
        state.rows[: state.used, place] = column
        state.means[place], state.ones[place], state.variances[place] = mean, one, variance
        self._state = state
        return place

    def _fit(self) -> None:
        """Choose kernel and reg by the first plays, unless these say nothing: then by later ones."""
        from onepass.kernel.marginal_likelihood import fitted

        places, rewards = zip(*self._first, strict=True)
        if max(rewards) == min(rewards):
            return
        rows = self._state.points[list(places)]
        found = fitted(self.kernel, self.reg, rows, np.array(rewards), self.normalize)
        with deferred():  # a handler that saves must not find the new kernel beside the old state
            self.kernel, self.reg = found
            self._state = self._rebuilt(self._state)
            self._fits, self._first = False, []

    @writing
    def refit(self, kernel: Any, reg: float) -> None:
        """All plays so far under another kernel and reg, as if they had been learned so, by one factorization.

        kernel, reg: as the constructor takes them; a fit that `fit_after` still had before it is not made any more.
        ValueError, and nothing has changed, for others and for kernels that are not positive definite.
        """
        found = as_kernel(kernel), check.positive("reg", reg)
        probed(found[0], self._state.points[: self._state.size])
        held = self.kernel, self.reg, self._state
        try:
            with deferred():
                self.kernel, self.reg = found
                self._state = self._rebuilt(held[2]) if self.rounds else self._begun(held[2].points)
                self._fits, self._first = False, []
        except BaseException:
            self.kernel, self.reg, self._state = held
            raise

    @reading
    def memory_usage(self) -> int:
        """Bytes of all arrays held."""
        return states.nbytes(self._state)

    def _options(self) -> dict[str, Any]:
        """What the constructor of a member takes beside what all of them do."""
        return {}

    def _arguments(self) -> dict[str, Any]:
        own = {"reg": self._begun_with[1], "exploration": self.exploration, **self._options()}
        return {**own, "normalize": self.normalize, "fit_after": self.fit_after, "seed": self.seed}

    def params(self) -> dict[str, Any]:
        """What the constructor was given, but for the arms, as plain data; ValueError for kernels with a function."""
        return {name: plain(part) for name, part in ({"kernel": self._begun_with[0]} | self._arguments()).items()}

    def contents(self) -> files.Contents:
        random = {"rng": self._rng.bit_generator.state, "coins": self._coins.bit_generator.state}
        now = {"fixed": self.fixed, "fits": self._fits, "kernel": self.kernel, "reg": self.reg}
        told = {"tally": list(self._tally), "rewarded": self._rewarded.text()}
        params = {"kernel": self._begun_with[0], **self._arguments()}
        return files.Contents(params, {**random, **now, **told}, self._held())

    @classmethod
    def restored(cls, params: dict[str, Any], extra: dict[str, Any], held: files.Holds) -> Self:
        """From what a file, copy or pickle holds, `params`, `extra` and `held`; ValueError where that does not fit."""
        arguments = {name: built(part) for name, part in params.items() if name != "kernel"}
        fixed = check.choice("fixed", extra["fixed"], (False, True))
        bandit = cls(held.arrays["state.points"] if fixed else None, built(params["kernel"]), **arguments)
        found = held.take(bandit._held(), bandit._consistent)
        bandit._restore(found, as_kernel(built(extra["kernel"])), extra["reg"], extra["fits"])
        bandit._rng.bit_generator.state, bandit._coins.bit_generator.state = extra["rng"], extra["coins"]
        bandit._tally, bandit._rewarded = checked_tally(extra["tally"]), Ledger.of(extra["rewarded"])
        return bandit

    def _consistent(self, held: Saved) -> bool:
        """Whether what a file holds fits these arguments."""
        fixed = not self.fixed or held.state.size == len(held.state.plays)
        return consistent(held) and fixed and len(held.places) <= max(self.fit_after, 0)

    def _held(self) -> Saved:
        places, rewards = zip(*self._first, strict=True) if self._first else ((), ())
        return Saved(self._state, np.array(places, np.int64), np.array(rewards, np.float64))

    def _restore(self, held: Saved, kernel: Kernel, reg: float, fits: bool) -> None:
        """Take back what a file held."""
        self.kernel, self.reg, self._state = kernel, check.positive("reg", reg), held.state
        self._fits = check.choice("fits", fits, (False, True))
        self._first = list(zip(held.places.tolist(), held.rewards.tolist(), strict=True))
        if not self.fixed:
            rows = self._state.points[: self._state.size]
            self._places = {(row + 0.0).tobytes(): place for place, row in enumerate(rows)}

    @reading
    def __repr__(self) -> str:
        arms = f"{len(self._state.plays)} arms" if self.fixed else "changing arms"
        parts = [arms, repr(self.kernel), *(f"{k}={v!r}" for k, v in {**self._arguments(), "reg": self.reg}.items())]
        learned = f"{self.rounds} plays, a dictionary of {self.dictionary_size}, {self.memory_usage():,} bytes"
        return f"<{type(self).__name__}({', '.join(parts)}); {learned}>"

    @abstractmethod
    def _weights(self, near: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights (used, 2) of k_U in means and ones, and C k (used,) of k = near (used,): k(x, x) / reg - k^T C k is
        the variance."""
