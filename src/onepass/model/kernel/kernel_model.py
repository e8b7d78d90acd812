"""Kernel model: a function f of bounded norm in a kernel's space, learned from f(x) + noise.

The knowledge about f is a posterior, exact or on a dictionary (posterior.py), over a table of points. The table holds
the fixed arms, or all distinct points played. This module handles arms, the choice of the kernel, and files.
"""

from dataclasses import replace
from typing import Any, Self, final

import numpy as np

from onepass.exploration.confidence_width import Theory
from onepass.exploration.contract import ArmStatistics
from onepass.exploration.exploration import Exploration
from onepass.exploration.randomness import empty_normals
from onepass.exploration.residual_scale import Tally, check_tally, count_deviation, pool, residual
from onepass.exploration.rule import Rule
from onepass.features.kernels import Kernel, Matern, as_kernel, check_positive_definite, median_distance
from onepass.features.nystrom import Nystrom
from onepass.foundation import check, files
from onepass.foundation import state as states
from onepass.foundation.check import quote
from onepass.foundation.deferred_signals import defer_signals
from onepass.foundation.registry import build, savable, to_plain
from onepass.foundation.rw_lock import reading, writing
from onepass.model.contract import Batch, Choice, Model, Request, Sides, rows_of_slots
from onepass.model.kernel.attribution import attribute_arms, make_expansion
from onepass.model.kernel.budgeted import Budget, BudgetedPosterior
from onepass.model.kernel.checks import check_arm_indices, check_points, check_table
from onepass.model.kernel.exact import ExactPosterior
from onepass.model.kernel.exploration import PosteriorUCB, default_rule, exploration_multiplier, uniform_rule
from onepass.model.kernel.merge import check_mergeable, merge_plays
from onepass.model.kernel.posterior import KernelPosterior, PosteriorBackup
from onepass.model.kernel.state import (
    LOG_DET,
    NO_PLAYS,
    Plays,
    Posterior,
    SavedKernelModel,
    consistent,
    in_reward_units,
    reward_units,
)
from onepass.model.names import distinct_names


@final
@savable
class KernelModel(Model):
    """Posterior of the mean reward f under a Gaussian process, exact or on a dictionary of some points.

    The width of an arm is the posterior standard deviation of f divided by sqrt(reg). The multiplier of an exploration
    is a multiple of this width. If `fit_after` changes reg, the multiplier changes so that it adds as many standard
    deviations as before.

    Parameters
    ----------
    arms : array of shape (A, dim), default None
        A fixed set of arms, known by their indices. The context is then None, and `learn` takes the arm. None means
        that arms change: a context is rows (K, dim), or (n, K, dim) for n decisions.
    kernel : Kernel, scikit-learn kernel or callable k(X, Y), default None
        The kernel, see `onepass.features.kernels`. The default is Matern 5/2 with the median distance of the arms.
    reg : float, default 0.01
        Variance of the noise, above 0, if the kernel is the covariance of f. If k(x, x) = 1, divide it by the prior
        variance of f. If rewards are normalized, both variances are of normalized rewards. `fit_after` replaces `reg`
        by a fitted value.
    budget : Budget, default None
        Rules for a dictionary of some points. By default the posterior is exact, on all points played.
    normalize : bool, default None
        True centres and scales rewards by their running mean and deviation. None means True if `fit_after` is set.
    fit_after : int, default 0
        Number of plays, at least 0, after which reg and the kernel's parameters are chosen by marginal likelihood. If
        all rewards are equal by then, the choice waits until two rewards differ. Before the choice, arms are played
        uniformly at random, unless `decide` is given a `maximizer`. 0 means that nothing is chosen.
    seed : int, default 0
        Seed of dictionaries, at least 0.

    Raises
    ------
    ValueError
        If an argument is out of range, or the kernel is not positive definite.
    """

    def __init__(
        self,
        arms: Any = None,
        kernel: Any = None,
        *,
        reg: float = 0.01,
        budget: Budget | None = None,
        normalize: bool | None = None,
        fit_after: int = 0,
        seed: int = 0,
    ) -> None:
        if not (budget is None or isinstance(budget, Budget)):
            raise ValueError(f"budget must be a Budget or None, got {quote(budget)}")
        reg = check.positive("reg", reg, "it is the variance of the noise where the kernel's is the function's")
        self.fit_after: int = check.integer("fit_after", fit_after, 0)
        if not (normalize is None or isinstance(normalize, bool)):
            raise ValueError(f"normalize must be True, False or None, got {quote(normalize)}")
        self.normalize: bool = self.fit_after > 0 if normalize is None else normalize
        self.seed: int = check.integer("seed", seed, 0, None)
        points = check_table(arms)
        self.fixed: bool = arms is not None
        if kernel is None and not self.fixed:
            raise ValueError("kernel must be given where arms are not, say Matern(2.5, length_scale=0.2)")
        kernel = Matern(2.5, median_distance(points)) if kernel is None else as_kernel(kernel)
        if self.fit_after:
            from onepass.model.kernel.marginal_likelihood import check_fittable

            check_fittable(kernel)
        if self.fixed and not states.is_abstract():
            check_positive_definite(kernel, points)
        self.budget = budget
        own = {"kernel": kernel, "reg": reg, "budget": budget, "normalize": self.normalize}
        self._arguments = {**own, "fit_after": self.fit_after, "seed": self.seed}
        self._tally = Tally(rows=0, squares=0.0)
        self._fits = self.fit_after > 0  # kernel and reg are still to be chosen
        self._first = NO_PLAYS  # that they will be chosen from
        self._places: dict[bytes, int] = {}
        self._posterior: KernelPosterior = (
            ExactPosterior(kernel, reg, points)
            if budget is None
            else BudgetedPosterior(budget, self.seed, kernel, reg, points)
        )

    # ---- what is known ----

    @property
    def kernel(self) -> Kernel:
        """Kernel that the model uses; after a fit, the fitted one."""
        return self._posterior.kernel

    @property
    def reg(self) -> float:
        """Value in use of the argument `reg`; after a fit, the fitted one."""
        return self._posterior.reg

    @property
    def state(self) -> Any:
        return self._posterior.state

    @property
    def n_learned(self) -> int:  # type: ignore[override]
        """Number of plays learned so far."""
        return self._posterior.state.n_learned

    @property
    @reading
    def dictionary(self) -> np.ndarray:
        """Points that the posterior is based on, shape (m, dim)."""
        return self._posterior.dictionary

    @property
    def dictionary_size(self) -> int:
        """Number of points that the posterior is based on; without a budget, all distinct points played."""
        return self._posterior.state.n_rows

    @reading
    def effective_dimension(self) -> float:
        """Return the effective dimension of the plays (Calandriello et al. eq. 5), also called degrees of freedom.

        It is the sum, over all plays, of the present posterior variance of the point played, divided by `reg`.

        Returns
        -------
        float
            The effective dimension, at least 0.
        """
        return self._posterior.effective_dimension

    @reading
    def information_gain(self) -> float:
        """Return log det(I + K / reg) / 2, the information that the plays carry about f.

        K is the kernel matrix of the plays. With a budget it is the approximation by the dictionary.

        Returns
        -------
        float
            The gain in nats, at least 0.
        """
        return float(self._posterior.state.tally[LOG_DET]) / 2.0

    @reading
    def posterior(self, rows: Any = None) -> Posterior:
        """Return means, variances and standard deviations of the mean reward f at some points.

        Parameters
        ----------
        rows : array of shape (n, dim), default None
            The points. None means all arms, or all points played if arms change.

        Returns
        -------
        Posterior
            Arrays of shape (n,).
        """
        found = self._posterior.look(rows if rows is None else self._rows("rows", rows, (2,)))
        centre, scale = reward_units(self._posterior.state, self.normalize)
        means, deviations = in_reward_units(*found[:3], centre, scale * self.reg**0.5)
        return Posterior(means=means, variances=found.variances.copy(), deviations=deviations)

    @reading
    def variance_factor(self) -> float:
        """Return a proven bound on how far variances are from the exact ones.

        With the factor c that it returns, sigma^2 / c <= sigma~^2 <= c sigma^2 at every point. sigma^2 is the exact
        variance of the point, and sigma~^2 the variance that the dictionary gives.

        The proof is in model/kernel/budgeted.py. Cost: O(u m^2) for u points played and a dictionary of m points.

        Returns
        -------
        float
            The factor, at least 1; inf if nothing is proven.

        Raises
        ------
        ValueError
            If the model has no budget.
        """
        return self._posterior.variance_factor()

    @reading
    def nystrom(self) -> Nystrom:
        """Return the feature map of the present dictionary, for linear bandits.

        Returns
        -------
        Nystrom
            The map.

        Raises
        ------
        ValueError
            Before the first play.
        """
        if not self.dictionary_size:
            raise ValueError("nystrom needs a dictionary: learn a play first")
        return Nystrom(self.dictionary, self.kernel, reduced=True)

    @writing
    def refit(self, kernel: Any, reg: float) -> None:
        """Change kernel and reg as if all plays had been learned with them.

        It costs one factorization of the kernel matrix. If the choice of `fit_after` is still to come, it is cancelled.

        Parameters
        ----------
        kernel : Kernel, scikit-learn kernel or callable
            The new kernel.
        reg : float
            The new reg, above 0.

        Raises
        ------
        ValueError
            If an argument is out of range, or the kernel is not positive definite. Nothing has changed then.
        """
        found, reg = as_kernel(kernel), check.positive("reg", reg)
        state = self._posterior.state
        check_positive_definite(found, state.points[: state.size])
        with defer_signals():
            self._posterior.refit(found, reg)
            self._fits, self._first = False, NO_PLAYS

    @writing
    def redraw(self, oversampling: float | None = None) -> None:
        """Draw the dictionary again from all plays so far, by their present variances.

        Use it with a larger `oversampling` if `variance_factor` shows that the dictionary is too small.

        Parameters
        ----------
        oversampling : float, default None
            Factor q, above 0, of this drawing and of later ones, as in `Budget`. None keeps the present one.

        Raises
        ------
        ValueError
            If the model has no budget, or oversampling is not above 0. Nothing changes then.

        Notes
        -----
        Cost O(A m^2 + m^3) for A arms and a dictionary of m, because the predictions of all arms are computed again. If
        arms are not a fixed list, A is the number of different arms played.

        References
        ----------
        Calandriello et al. (2019), section 3.1.
        """
        budget = self.budget or Budget()
        budget = budget if oversampling is None else replace(budget, oversampling=oversampling)
        with defer_signals():
            self._posterior.redraw(budget)
            self.budget, self._arguments = budget, {**self._arguments, "budget": budget}

    @reading
    def double_norm(self, theory: Theory) -> Theory:
        """Double a guess of the norm ||f|| until the plays so far do not contradict it.

        The norm ||f|| is that of the mean reward f in the function space of the kernel (RKHS). The regret theorem needs
        it. A guess F is contradicted at a point x if |mean(x)| > F sqrt(k(x, x)) + beta width(x). Here beta is the
        radius for F, and width(x) the posterior standard deviation divided by sqrt(reg). A guess that is at least ||f||
        is contradicted with probability at most delta.

        Parameters
        ----------
        theory : Theory
            Noise, delta and the guess `parameter_bound`.

        Returns
        -------
        Theory
            The theory with a parameter_bound of 2^j times the guess. j is the smallest integer for which no arm or
            point played contradicts it.

        Raises
        ------
        ValueError
            If rewards are normalized. Nothing is proved about their norm.

        Examples
        --------
        >>> import onepass as op
        >>> bandit = op.BKB([[0.0], [1.0]], op.RBF(1.0), reg=1.0)
        >>> for _ in range(200):
        ...     _ = bandit.learn(None, 10.0, 0)
        >>> bandit.model.double_norm(op.Theory(noise=0.1, parameter_bound=1.0, row_bound=1.0)).parameter_bound
        16.0
        """
        if self.normalize:
            raise ValueError("normalize must be False for a norm: rewards that are scaled have one of their own")
        state = self._posterior.state
        means, prior, variances = (a[: state.size] for a in (state.means, state.prior, state.variances))
        while (
            np.abs(means) > theory.parameter_bound * prior**0.5 + self._posterior.radius(theory) * variances**0.5
        ).any():
            theory = replace(theory, parameter_bound=2.0 * theory.parameter_bound)
        return theory

    # ---- decisions ----

    def _rows(self, name: str, rows: Any, dims: tuple[int, ...]) -> np.ndarray:
        return check_points(name, rows, dims, self._posterior.state.points.shape[1] or None, self.kernel)

    def encode(self, context: Any, arms: Any) -> Request:
        if context is None:
            if not self.fixed:
                raise ValueError("contexts must be given where arms change: the arms of this round, one a row")
            single, count, each = True, self._posterior.state.size, (None,)
        else:
            rows = self._rows("contexts", context, (2, 3))
            single, count, each = rows.ndim == 2, rows.shape[-2], tuple(rows.reshape(-1, *rows.shape[-2:]))
        return Request(None if arms is None else distinct_names(arms, count), count, single, each, (), context)

    def default_exploration(self) -> Exploration:
        return PosteriorUCB()

    def require_fit(self, exploration: Exploration) -> None:
        pass  # any exploration will do; with a `Theory` nothing is proved if rewards are normalized

    def active_rule(self, rule: Rule, request: Request | None = None) -> Rule:
        if request is None and self.fixed:
            raise ValueError("maximizer is for arms that change: this model has fixed ones")
        if not self._fits:
            return rule
        return default_rule() if request is None else uniform_rule()

    def choose(self, request: Request, *how: Any, **named: Any) -> Choice:
        if self.fixed and request.given is not None:
            raise ValueError("contexts must be None where arms are fixed: build the model with arms=None for rows")
        return super().choose(request, *how, **named)

    def predict(self, request: Request, i: int, rule: Rule, rng: np.random.Generator, pairs: int) -> ArmStatistics:
        found, theory = self._posterior.look(request.each[i], pairs, rng), rule.exploration.theory
        centre, scale = reward_units(self._posterior.state, self.normalize)
        means, widths = in_reward_units(*found[:3], centre, scale)
        beta = exploration_multiplier(rule, self.reg, self._arguments["reg"])
        beta *= 1.0 if theory is None else self._posterior.radius(theory) / scale
        samples = empty_normals(means.size)
        if pairs:
            shifts = beta * scale * found.draws
            samples = np.concatenate([means + shifts, means - shifts])[: rule.draws]
        return ArmStatistics(
            means=means,
            widths=widths,
            samples=samples,
            beta=np.full(means.size, beta),
            residual=residual(self._tally),
            rounds=self.n_learned,
        )

    def evidence(self, request: Request, i: int, places: np.ndarray) -> Any:
        rows = request.each[i]
        if rows is None:
            return None
        return rows[places[0]].copy() if len(places) == 1 else rows[places]

    # ---- learning ----

    def observe(self, context: Any, arm: Any) -> Batch:
        if self.fixed:
            if context is not None:
                raise ValueError("contexts must be None where arms are fixed: name the arm")
            several, arms = check_arm_indices(arm, self._posterior.state.size)
            return Batch(len(arms), not several, arms)
        if arm is not None:
            raise ValueError(f"arm must be None where arms change, which are rows, got {quote(arm)}")
        rows = check.array("contexts", context, np.dtype(np.float64), (1, 2))
        rows = self._rows("contexts", rows, (1, 2)) if len(rows) else rows.reshape(0, 0)
        found = list(rows) if rows.ndim == 2 else [rows]
        return Batch(len(found), rows.ndim == 1, found)

    def recall(self, slots: list[tuple[Any, int]]) -> Batch:
        for decision, _ in slots:
            if self.fixed != (decision.context is None):
                raise ValueError(f"decision {quote(decision.id)} must be one of a bandit like this one")
        if self.fixed:
            places = [int(decision.places[slot]) for decision, slot in slots]
            return Batch(len(places), False, check_arm_indices(places, self._posterior.state.size)[1])
        rows = self._rows("contexts", rows_of_slots(slots), (2,))
        return Batch(len(rows), False, list(rows))

    def update(
        self,
        batch: Batch,
        rewards: np.ndarray,
        *,
        nu: Any = None,
        time: Any = None,
        residuals: bool = False,
        outcomes: Any = None,
    ) -> Self:
        if nu is not None:
            raise ValueError("nu must be None for kernel models, whose reg is the variance of the noise")
        self.at(time)
        whole = self.copy() if batch.size > 1 else None
        try:
            for arm, reward in zip(batch.rows, rewards.tolist(), strict=True):
                self._learn(arm, reward, residuals)
        except BaseException:
            if whole is not None:
                self.__dict__.update(whole.__dict__)
            raise
        return self

    def _learn(self, arm: Any, reward: float, residuals: bool) -> None:
        """Learn a play of an arm with its reward; if a step fails, nothing changes.

        All steps that may fail come before arrays are written. If `residuals` is True, the squared deviation of the
        reward from its prediction is added to the running sums.
        """
        posterior, key, deviation = self._posterior, b"", 0.0
        held, first, fits = posterior.hold(), self._first, self._fits and self.n_learned + 1 >= self.fit_after
        try:
            if fits:
                posterior.state = states.copy(posterior.state)
            place = arm
            if not self.fixed:
                key = (arm + 0.0).tobytes()  # -0.0 is 0.0
                place = self._places.get(key, -1)
                place = posterior.join(arm) if place < 0 else place
            if residuals:
                centre, s = reward_units(posterior.state, self.normalize)[0], posterior.state
                deviation = reward - float(centre + s.means[place] - centre * s.ones[place])
            posterior.play(place, reward)
            if self._fits:
                self._first = first.append(place, reward, self.fit_after)
            if fits:
                self._fit()
        except BaseException:
            posterior.restore(held)
            self._first = first
            raise
        if not self.fixed:
            self._places[key] = place
        if residuals:
            self._tally = count_deviation(self._tally, deviation)

    def _fit(self) -> None:
        """Choose kernel and reg from the first plays, or from later ones as long as all rewards are equal."""
        from onepass.model.kernel.marginal_likelihood import fit_kernel

        places, rewards = self._first
        if rewards.max() > rewards.min():
            rows = self._posterior.state.points[places]
            self._posterior.refit(*fit_kernel(self.kernel, self.reg, rows, rewards, self.normalize))
            self._fits, self._first = False, NO_PLAYS

    def continue_randomness(self, earlier: Model) -> None:
        drawn = earlier._posterior.coins if isinstance(earlier, KernelModel) else None
        if drawn is not None and self._posterior.coins is not None:
            self._posterior.coins.bit_generator.state = drawn.bit_generator.state

    def merge(self, other: Self, since: Self | None) -> Self:
        """Learn the plays of another model. The result is the posterior of all plays, in any order.

        Parameters
        ----------
        other : KernelModel
            The other model, without a budget.
        since : None
            No common start is possible.

        Returns
        -------
        KernelModel
            The union.

        Raises
        ------
        TypeError
            If a model has a budget: its dictionary depends on the order.
        ValueError
            If kernel, reg, normalize or the arms differ, or kernel and reg are still to be chosen (`fit_after`).
        """
        if self.budget is not None or other.budget is not None:
            raise TypeError("kernel models with a budget cannot be merged: their dictionaries depend on the order")
        if since is not None:
            raise ValueError("since must be None for kernel models: give what each has learned by itself")
        check_mergeable(self.contents(), other.contents())
        mine, its = self._posterior, other._posterior
        state = merge_plays(mine.state, its.state, self.reg, self.fixed)
        mine.state = mine.rebuild(state) if state.n_rows else state
        self._know_places()
        self._tally = pool(self._tally, other._tally, None)
        return self

    def _know_places(self) -> None:
        rows = self._posterior.state.points[: 0 if self.fixed else self._posterior.state.size]
        self._places = {(row + 0.0).tobytes(): place for place, row in enumerate(rows)}

    # ---- questions ----

    def attribute(self, request: Request, places: list[int], names: Any) -> Sides:
        if names is not None:
            raise ValueError("names must be None for kernel models, whose terms are points of the dictionary")
        known, rows = self._posterior, request.each[0]
        points = (known.state.points if rows is None else rows)[places]
        found = make_expansion(known.state, self.kernel, points, self.reg, self.fixed, self.normalize)
        return lambda m: attribute_arms(found, *known.weights(found.cross_values(m)), m)

    def encode_decision(self, decision: Any) -> Request:
        if self.fixed != (decision.context is None):
            raise ValueError(f"decision {quote(decision.id)} must be one of a bandit like this one")
        if not self.fixed:
            return super().encode_decision(decision)
        places = check_arm_indices(decision.places, self._posterior.state.size)[1]
        rows = self._posterior.state.points[places]
        return Request(list(decision.arms), len(places), True, (rows,), (), rows)

    @reading
    def memory_usage(self) -> int:
        return self._posterior.memory_usage()

    def summary(self) -> str:
        return f"{self.n_learned} plays, a dictionary of {self.dictionary_size}, {self.memory_usage():,} bytes"

    def __repr__(self) -> str:
        arms = f"{self._posterior.state.size} arms" if self.fixed else "changing arms"
        told = {**self._arguments, "kernel": self.kernel, "reg": self.reg}
        return f"KernelModel({', '.join([arms, *(f'{name}={value!r}' for name, value in told.items())])})"

    # ---- copies and files ----

    def freeze(self) -> Self:
        twin = self.copy()
        twin._posterior.root = self._posterior.root
        return twin

    def params(self) -> dict[str, Any]:
        """Return the arguments of the constructor.

        Returns
        -------
        dict
            Arguments by name.
        """
        return {name: to_plain(part) for name, part in self._arguments.items()}

    def contents(self) -> files.Contents:
        held = self._posterior.hold()
        extra = {"kernel": held.kernel, "reg": held.reg, "coins": held.coins, "tally": list(self._tally)}
        extra |= {"fixed": self.fixed, "fits": self._fits}
        return files.Contents(self._arguments, extra, SavedKernelModel(held.state, *self._first))

    @classmethod
    def from_contents(cls, params: dict[str, Any], extra: dict[str, Any], held: files.StateSource) -> Self:
        fixed = check.choice("fixed", extra["fixed"], (False, True))
        arms = held.arrays["state.points"] if fixed else None
        model = cls(arms, **{name: build(part) for name, part in params.items()})
        found = held.take(model.contents().state, lambda saved: consistent(saved, fixed, model.fit_after))
        kernel, reg = as_kernel(build(extra["kernel"])), check.positive("reg", extra["reg"])
        model._posterior.restore(PosteriorBackup(found.state, kernel, reg, extra["coins"]))
        model._fits = check.choice("fits", extra["fits"], (False, True))
        model._first = Plays(found.places, found.rewards)
        model._tally = check_tally(extra["tally"])
        model._know_places()
        return model
