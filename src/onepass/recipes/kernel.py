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
    """Exact GP-UCB; by `exploration` also Thompson sampling and others.

    Srinivas, Krause, Kakade and Seeger (2010). O(A u) a round and numbers of memory, u distinct arms played.

    arms: (A, d), a fixed set: `decide()` gives an index, and `learn` takes its decision, or `learn(None, reward, arm)`;
        default None: arm sets that change, where contexts are rows (K, d), an arm each.
    kernel: see onepass.features.kernels, a scikit-learn kernel, or a function k(X, Y); default None: Matern 5/2 with
        the median distance of the arms.
    reg: lambda, the noise's variance where the kernel's is that of the function, above 0 (default 0.01).
    exploration: beta in mean + beta sigma, with sigma^2 <= k(x, x) / reg: a number, `Theory` or an `Exploration`;
        default None: 2 sqrt(reg), two standard deviations of the posterior. A number is kept in standard deviations:
        where reg is fitted it is multiplied by the root of the ratio of the regs. `Theory` is in units of rewards;
        nothing is proved where they are normalized.
    normalize: centre and scale rewards by their running mean and deviation; default None: where fit_after is set.
    fit_after: plays, at least 0 (default 0, never): until so many are learned, arms are chosen uniformly at random
        (those of a maximizer are not); then reg and the kernel's parameters are chosen by marginal likelihood, or
        later, while all rewards are equal.
    seed: of draws and of ties, at least 0 (default 0).
    Thompson sampling: joint draws; on fixed arms O(A r) a round after O(A r^2) once, r the rank of the kernel matrix.
    Returns a `Bandit` with a `KernelModel`. ValueError for arguments out of range and kernels that are not positive
    definite.

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
    normalize: bool | None = None,
    fit_after: int = 0,
    seed: int = 0,
) -> Bandit:
    """Budgeted kernel bandit: GP-UCB at O(A m) a round, m of the order of the effective dimension.

    Calandriello, Carratino, Lazaric, Valko and Rosasco (2019).

    arms: (A, d), a fixed set: `decide()` gives an index, and `learn` takes its decision, or `learn(None, reward, arm)`;
        default None: arm sets that change, where contexts are rows (K, d), an arm each.
    kernel: see onepass.features.kernels, a scikit-learn kernel, or a function k(X, Y); default None: Matern 5/2 with
        the median distance of the arms.
    reg: lambda, the noise's variance where the kernel's is that of the function, above 0 (default 0.01).
    exploration: beta in mean + beta sigma, with sigma^2 <= k(x, x) / reg: a number, `Theory` or an `Exploration`;
        default None: 2 sqrt(reg), two standard deviations of the posterior. A number is kept in standard deviations:
        where reg is fitted it is multiplied by the root of the ratio of the regs. `Theory` is in units of rewards;
        nothing is proved where they are normalized.
    oversampling: qbar, above 0 (default 10.0): a point joins the dictionary with probability min(1, qbar sigma^2).
    staleness: at least 1 (default 2.0): how far variances may fall before the dictionary is drawn again; 1: every play.
    redundancy: from 0 to below 1 (default 0.001): the share of its variance that a point must have outside the span of
        the dictionary to join it.
    incremental: drawings only thin the dictionary that is, and add the new play (default False).
    normalize: centre and scale rewards by their running mean and deviation; default None: where fit_after is set.
    fit_after: plays, at least 0 (default 0, never): until so many are learned, arms are chosen uniformly at random
        (those of a maximizer are not); then reg and the kernel's parameters are chosen by marginal likelihood, or
        later, while all rewards are equal.
    seed: of draws and of ties, at least 0 (default 0).
    `Budget` says more of the four of the dictionary, `bkb_oversampling` what the theorems ask of them.
    Thompson sampling: draws have the posterior's covariance in the span of the dictionary, and independent parts with
    the variances outside it.
    Returns a `Bandit` with a `KernelModel`. ValueError for arguments out of range and kernels that are not positive
    definite.

    >>> import numpy as np, onepass as op
    >>> arms = np.linspace(0.0, 1.0, 101)[:, None]
    >>> bandit = op.BKB(arms, op.RBF(0.2), reg=1e-4)
    >>> for _ in range(15):
    ...     decision = bandit.decide()
    ...     bandit.learn(decision, float(np.sin(5.0 * arms[decision.arm, 0])))
    >>> bool(abs(5.0 * arms[bandit.decide().arm, 0] - np.pi / 2) < 0.1)
    True
    """
    budget = Budget(oversampling=oversampling, staleness=staleness, redundancy=redundancy, incremental=incremental)
    model = KernelModel(arms, kernel, reg=reg, budget=budget, normalize=normalize, fit_after=fit_after, seed=seed)
    return Bandit(model, _rule(exploration), seed=seed, name="BKB")


def _rule(exploration: Explore | None) -> Exploration | None:
    return exploration if exploration is None or isinstance(exploration, Exploration) else UCB(exploration)
