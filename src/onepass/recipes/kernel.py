"""Kernel bandits, for arms that resemble one another: GPUCB and BKB."""

from typing import Any

from onepass.bandit.bandit import Bandit
from onepass.exploration.exploration import Exploration
from onepass.exploration.ucb import UCB
from onepass.model.kernel.budgeted import Budget
from onepass.model.kernel.kernel_model import KernelModel
from onepass.recipes.compose import Explore


def GPUCB(
    arms: Any = None,
    kernel: Any = None,
    *,
    reg: float = 0.01,
    exploration: Explore | None = None,
    normalize: bool | None = None,
    fit_after: int = 0,
    seed: int = 0,
) -> Bandit:
    """Make an exact GP-UCB bandit.

    It plays the arm with the largest upper confidence bound under a Gaussian process. Another `exploration` replaces
    this rule, for example by Thompson sampling.

    Parameters
    ----------
    arms : array of shape (A, d), default None
        A fixed set of A arms with d features. `decide()` then returns the index of an arm. Learn its reward by
        `learn(decision, reward)`, or by `learn(None, reward, index)`. None is for arms that change: a context is then K
        rows of features, one for each arm.
    kernel : Kernel or callable, default None
        A kernel of `onepass`, a scikit-learn kernel, or a function k(X, Y). None means Matern 5/2 whose length scale is
        the median distance of the arms.
    reg : float, default 0.01
        Variance of the noise, above 0, if the kernel is the covariance of the mean reward. If k(x, x) = 1, divide it by
        the prior variance of the mean reward. If rewards are normalized, both variances are of normalized rewards.
        `fit_after` replaces `reg` by a fitted value.
    exploration : float, Theory or Exploration, default None
        A number is beta in score = mean + beta * width, where the width is the posterior standard deviation divided by
        sqrt(reg). None adds two standard deviations: beta = 2 sqrt(reg). If `fit_after` changes reg, beta changes so
        that it adds as many standard deviations as before. `Theory` takes the beta of the regret theorem. Nothing is
        proved if rewards are normalized.
    normalize : bool, default None
        True centers and scales rewards by their running mean and standard deviation. None means True if `fit_after` is
        above 0, else False.
    fit_after : int, default 0
        Number of plays, at least 0, after which reg and the kernel's parameters are chosen by marginal likelihood. If
        all rewards are equal by then, the choice waits until two rewards differ. Before the choice, arms are played
        uniformly at random, unless `decide` is given a `maximizer`. 0 means that nothing is chosen.
    seed : int, default 0
        Seed of draws and of ties, at least 0.

    Returns
    -------
    Bandit
        A bandit with a `KernelModel`.

    Raises
    ------
    ValueError
        If an argument is out of range, or the kernel is not positive definite.

    Notes
    -----
    With u distinct arms played, a round costs O(A u) operations and memory is O(A u) numbers. Thompson sampling draws
    all arms jointly. On fixed arms this costs O(A r^2) operations once and then O(A r) a round, where r is the rank of
    the kernel matrix.

    References
    ----------
    Srinivas, Krause, Kakade and Seeger (2010).

    Examples
    --------
    >>> import numpy as np, onepass as op
    >>> arms = np.linspace(0.0, 1.0, 101)[:, None]
    >>> bandit = op.GPUCB(arms, op.RBF(0.2), reg=1e-4)
    >>> for _ in range(15):
    ...     decision = bandit.decide()
    ...     bandit.learn(decision, float(np.sin(5.0 * arms[decision.arm, 0])))
    >>> bool(abs(5.0 * arms[bandit.decide().arm, 0] - np.pi / 2) < 0.1)
    True
    """
    model = KernelModel(arms, kernel, reg=reg, normalize=normalize, fit_after=fit_after, seed=seed)
    return Bandit(model, _rule(exploration), seed=seed, name="GPUCB")


def BKB(
    arms: Any = None,
    kernel: Any = None,
    *,
    reg: float = 0.01,
    exploration: Explore | None = None,
    oversampling: float = 10.0,
    staleness: float = 2.0,
    redundancy: float = 0.001,
    incremental: bool = False,
    epsilon: float = 0.5,
    normalize: bool | None = None,
    fit_after: int = 0,
    seed: int = 0,
) -> Bandit:
    """Make a budgeted kernel bandit.

    It approximates GP-UCB by a *dictionary*, a random sample of m of the points played. m grows with the effective
    dimension, which is the sum, over all plays, of the present variance at the point played, divided by reg.

    Parameters
    ----------
    arms : array of shape (A, d), default None
        A fixed set of A arms with d features. `decide()` then returns the index of an arm. Learn its reward by
        `learn(decision, reward)`, or by `learn(None, reward, index)`. None is for arms that change: a context is then K
        rows of features, one for each arm.
    kernel : Kernel or callable, default None
        A kernel of `onepass`, a scikit-learn kernel, or a function k(X, Y). None means Matern 5/2 whose length scale is
        the median distance of the arms.
    reg : float, default 0.01
        Variance of the noise, above 0, if the kernel is the covariance of the mean reward. If k(x, x) = 1, divide it by
        the prior variance of the mean reward. If rewards are normalized, both variances are of normalized rewards.
        `fit_after` replaces `reg` by a fitted value.
    exploration : float, Theory or Exploration, default None
        A number is beta in score = mean + beta * width, where the width is the posterior standard deviation divided by
        sqrt(reg). None adds two standard deviations: beta = 2 sqrt(reg). If `fit_after` changes reg, beta changes so
        that it adds as many standard deviations as before. `Theory` takes the beta of the regret theorem. Nothing is
        proved if rewards are normalized.
    oversampling : float, default 10.0
        Factor q, above 0: a point with variance sigma^2 joins the dictionary with probability min(1, q sigma^2). The
        variance is in units of reg.
    staleness : float, default 2.0
        Factor, at least 1. When variances may have fallen by this factor, the dictionary is drawn again. With 1 it is
        drawn again at every play.
    redundancy : float, default 0.001
        From 0 to below 1. A point joins the dictionary only if more than this share of its variance lies outside the
        span of the points that are in it.
    incremental : bool, default False
        True draws a new dictionary only from the points of the present one and the newest play. False draws it from all
        points played.
    epsilon : float, default 0.5
        Accuracy, above 0 and below 1, that only `exploration=Theory(...)` uses. It assumes that variances are within a
        factor (1 + epsilon) / (1 - epsilon) of the exact ones.
    normalize : bool, default None
        True centers and scales rewards by their running mean and standard deviation. None means True if `fit_after` is
        above 0, else False.
    fit_after : int, default 0
        Number of plays, at least 0, after which reg and the kernel's parameters are chosen by marginal likelihood. If
        all rewards are equal by then, the choice waits until two rewards differ. Before the choice, arms are played
        uniformly at random, unless `decide` is given a `maximizer`. 0 means that nothing is chosen.
    seed : int, default 0
        Seed of draws and of ties, at least 0.

    Returns
    -------
    Bandit
        A bandit with a `KernelModel`.

    Raises
    ------
    ValueError
        If an argument is out of range, or the kernel is not positive definite.

    Notes
    -----
    A round costs O(A m) operations. `onepass.model.Budget` says more about `oversampling`, `staleness`, `redundancy`,
    `incremental` and `epsilon`. `onepass.model.bkb_oversampling` computes the oversampling for which the theorems hold.
    For Thompson sampling, the part of the variance outside the span of the dictionary is drawn independently for each
    arm.

    References
    ----------
    Calandriello, Carratino, Lazaric, Valko and Rosasco (2019).

    Examples
    --------
    >>> import numpy as np, onepass as op
    >>> arms = np.linspace(0.0, 1.0, 101)[:, None]
    >>> bandit = op.BKB(arms, op.RBF(0.2), reg=1e-4)
    >>> for _ in range(15):
    ...     decision = bandit.decide()
    ...     bandit.learn(decision, float(np.sin(5.0 * arms[decision.arm, 0])))
    >>> bool(abs(5.0 * arms[bandit.decide().arm, 0] - np.pi / 2) < 0.1)
    True
    """
    budget = Budget(
        oversampling=oversampling,
        staleness=staleness,
        redundancy=redundancy,
        incremental=incremental,
        epsilon=epsilon,
    )
    model = KernelModel(arms, kernel, reg=reg, budget=budget, normalize=normalize, fit_after=fit_after, seed=seed)
    return Bandit(model, _rule(exploration), seed=seed, name="BKB")


def _rule(exploration: Explore | None) -> Exploration | None:
    return exploration if exploration is None or isinstance(exploration, Exploration) else UCB(exploration)
