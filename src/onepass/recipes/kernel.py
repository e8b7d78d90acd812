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

    With another `exploration` it is Thompson sampling, and others.

    Parameters
    ----------
    arms : array of shape (A, d), default None
        A fixed set of arms: `decide()` returns an index, and `learn` takes its decision, or `learn(None,
        reward, arm)`. None is for arm sets that change: contexts are then rows (K, d), one for each arm.
    kernel : Kernel or callable, default None
        A kernel of `onepass`, a scikit-learn kernel, or a function k(X, Y). None means Matern 5/2 with the
        median distance of the arms.
    reg : float, default 0.01
        Ridge lambda, above 0: the variance of the noise if the kernel is the covariance of the function.
    exploration : float, Theory or Exploration, default None
        A number is beta in mean + beta sigma, with sigma^2 <= k(x, x) / reg. None means 2 sqrt(reg), two
        standard deviations of the posterior. A number is kept in standard deviations: if reg is fitted, beta is
        multiplied by the root of the ratio of the two regs. `Theory` is in units of rewards; nothing is proved
        for normalized rewards.
    normalize : bool, default None
        Center and scale rewards by their running mean and deviation. None does so if `fit_after` is set.
    fit_after : int, default 0
        Number of plays, at least 0, after which reg and the kernel's parameters are chosen by marginal
        likelihood; later, while all rewards are equal. Until then arms are chosen uniformly at random, except
        those of a maximizer. 0 means never.
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
    O(A u) a round and numbers of memory, u distinct arms played. Thompson sampling makes joint draws; on fixed arms
    they cost O(A r) a round after O(A r^2) once, r the rank of the kernel matrix.

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

    It is GP-UCB on a dictionary of m points, m of the order of the effective dimension.

    Parameters
    ----------
    arms : array of shape (A, d), default None
        A fixed set of arms: `decide()` returns an index, and `learn` takes its decision, or `learn(None,
        reward, arm)`. None is for arm sets that change: contexts are then rows (K, d), one for each arm.
    kernel : Kernel or callable, default None
        A kernel of `onepass`, a scikit-learn kernel, or a function k(X, Y). None means Matern 5/2 with the
        median distance of the arms.
    reg : float, default 0.01
        Ridge lambda, above 0: the variance of the noise if the kernel is the covariance of the function.
    exploration : float, Theory or Exploration, default None
        A number is beta in mean + beta sigma, with sigma^2 <= k(x, x) / reg. None means 2 sqrt(reg), two
        standard deviations of the posterior. A number is kept in standard deviations: if reg is fitted, beta is
        multiplied by the root of the ratio of the two regs. `Theory` is in units of rewards; nothing is proved
        for normalized rewards.
    oversampling : float, default 10.0
        Factor qbar, above 0: a point joins the dictionary with probability min(1, qbar sigma^2).
    staleness : float, default 2.0
        Factor, at least 1, by which variances may fall before the dictionary is drawn again. 1 draws it at
        every play.
    redundancy : float, default 0.001
        Share of its variance, from 0 to below 1, that a point must have outside the span of the dictionary to
        join it.
    incremental : bool, default False
        Let drawings only thin the present dictionary and add the new play.
    epsilon : float, default 0.5
        Accuracy of the theorems, above 0 and below 1, used by `exploration=Theory(...)`: variances are within a
        factor (1 + epsilon) / (1 - epsilon) of the exact ones.
    normalize : bool, default None
        Center and scale rewards by their running mean and deviation. None does so if `fit_after` is set.
    fit_after : int, default 0
        Number of plays, at least 0, after which reg and the kernel's parameters are chosen by marginal
        likelihood; later, while all rewards are equal. Until then arms are chosen uniformly at random, except
        those of a maximizer. 0 means never.
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
    O(A m) a round. `onepass.model.Budget` documents the five parameters of the dictionary,
    `onepass.model.bkb_oversampling` the values of the theorems. In Thompson sampling, draws have the posterior's
    covariance in the span of the dictionary, and independent parts with the variances outside it.

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
