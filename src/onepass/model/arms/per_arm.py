"""Disjoint and hybrid models (Li, Chu, Langford and Schapire 2010), which `Bandit` accepts in place of an estimator.

    disjoint   r = x^T theta_a              A_a = reg I + sum of x x^T over the rows of arm a;  theta_a = A_a^-1 b_a
    hybrid     r = x^T (beta + theta_a)     arms as above, and a shared design from which theta_a is eliminated

In a hybrid model, let B_a = sum of x x^T over arm a's rows seen so far. A row x adds sqrt(w) (x - B_a^T A_a^-1 x) with
the target sqrt(w) (r - b_a^T A_a^-1 x), w = 1 / (1 + x^T A_a^-1 x), to the shared design; both priors are reg I. Then
mean = z^T beta + b_a^T A_a^-1 x and width^2 = x^T A_a^-1 x + z^T A_0^-1 z with z = x - B_a^T A_a^-1 x. This is exactly
the joint ridge regression, whatever the shared design, as long as the arms' designs are exact. Shustova et al. and Li
et al. use the same formulas with whole matrices. Row by row, only `append` of a design is needed. If an arm's design is
a sketch, B_a also loses what the sketch truncates.
"""

from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np

from onepass.arena.list_store import ListStore
from onepass.arena.model_store import ModelStore, can_pack
from onepass.arena.packed_store import PackedStore
from onepass.estimator.estimator import Estimator
from onepass.estimator.online_newton import OnlineNewton
from onepass.estimator.ridge import Ridge
from onepass.foundation import check
from onepass.foundation.check import quote
from onepass.foundation.registry import savable


def _check_shared(value: Any) -> Ridge | OnlineNewton:
    if not isinstance(value, Ridge | OnlineNewton):
        raise ValueError(
            f"shared must be Ridge(design) or OnlineNewton(design), which learn what the arms leave, got {quote(value)}"
        )
    return value


def _check_arms(value: Any) -> Ridge:
    if not isinstance(value, Ridge):
        raise ValueError(
            "arms must be Ridge(design): the shared part learns what A^-1 B and A^-1 b of an arm leave of a row, which "
            "no other estimator keeps (Newton steps would have to step for every column of B, and keep what cuts take "
            f"of it); use Disjoint for such arms, or OnlineNewton for the shared part, got {quote(value)}"
        )
    return value


def _check_estimator(value: Any) -> Estimator:
    if not isinstance(value, Estimator):
        raise ValueError(f"estimator must be an estimator such as Ridge(Exact(dim=20)), got {quote(value)}")
    if value.horizon or value.repeats_arms:
        raise ValueError(
            f"estimator must take rows at any time for models per arm, got {quote(value)}; use horizon=None, and "
            "neither CRMM nor MENU"
        )
    return value


class PerArm:
    """Base class of `Disjoint` and `Hybrid`, estimators with parameters for each arm.

    `arms` is the estimator with which every arm begins, and `shared` the estimator of a part that all arms share, if
    there is one.
    """

    arms: Any
    shared: Any = None
    compact: bool
    threads: int | None
    _store: Callable[[], ModelStore] | None = None  # makes stores of another kind

    def store(self) -> ModelStore:
        """Return an empty store for the models of arms."""
        if self._store is not None:
            return self._store()
        extra = 0 if self.shared is None else self.shared.design.dim
        return (PackedStore if self.compact else ListStore)(self.arms, extra, self.threads)

    def separate(self) -> Self:
        """Return a copy whose arms each have a state of their own instead of shared arrays."""
        same = copy(self)
        same.compact = False
        return same

    def with_store(self, store: Callable[[], ModelStore]) -> Self:
        """Return a copy that keeps its arms in stores made by `store`."""
        same = copy(self)
        same._store = store
        return same


@savable
class Disjoint(PerArm):
    """One model per arm: the mean reward of an arm a is x^T theta_a.

    Parameters
    ----------
    estimator : Estimator
        Estimator with which every arm begins, such as ``Ridge(ProjectorSplitting(dim=169, rank=16))``. If its
        design has learned rows before, they count for every arm.
    compact : bool, default None
        True keeps all arms in one block of memory that grows with what is learned. `Ridge`, `OnlineNewton`,
        `OnePassHuber` and `OnePassGLM` allow this on `Exact`, `FrequentDirections` and `ProjectorSplitting`, unless
        they restrict theta to a ball. Designs and estimators of your own allow it if they declare their rules. False
        keeps a separate state for each arm. None takes the block if it is allowed.
    threads : int, default None
        Number of threads for large batches, at least 1. None takes one per processor. Results do not depend on it.

    Raises
    ------
    ValueError
        If `estimator` is no estimator, or does not allow one block although `compact` is True.
    """

    compact: bool
    threads: int | None

    def __init__(self, estimator: Estimator, *, compact: bool | None = None, threads: int | None = None) -> None:
        self.arms: Estimator = _check_estimator(estimator)
        self.compact, self.threads = _check_options(self.arms, compact, threads)

    def params(self) -> dict[str, Any]:
        """Return the arguments of the constructor.

        Returns
        -------
        dict
            Arguments by name.
        """
        return {"estimator": self.arms, "compact": self.compact, "threads": self.threads}

    def __repr__(self) -> str:
        return f"Disjoint({self.arms!r})"


@savable
class Hybrid(PerArm):
    """A shared part and a part for each arm: the mean reward of an arm a is x^T (beta + theta_a).

    Parameters
    ----------
    shared : Ridge or OnlineNewton
        Estimator of beta.
    arms : Ridge
        Estimator of every theta_a, on a design for rows of the same width and dtype. If contexts are `Factors`, the
        width is that of the left factor.
    compact : bool, default None
        As for `Disjoint`.
    threads : int, default None
        As for `Disjoint`.

    Raises
    ------
    ValueError
        If an estimator is of another class. The algebra that separates the two parts holds for ridge regression only.
    """

    shared: Any
    arms: Any
    compact: bool
    threads: int | None

    def __init__(
        self, *, shared: Ridge | OnlineNewton, arms: Ridge, compact: bool | None = None, threads: int | None = None
    ) -> None:
        self.shared, self.arms = _check_shared(shared), _check_arms(arms)
        if self.shared.design.dtype != self.arms.design.dtype:
            raise ValueError(f"shared and arms must have one dtype, got {quote(shared)} and {quote(arms)}")
        self.compact, self.threads = _check_options(self.arms, compact, threads)

    def params(self) -> dict[str, Any]:
        """Return the arguments of the constructor.

        Returns
        -------
        dict
            Arguments by name.
        """
        return {"shared": self.shared, "arms": self.arms, "compact": self.compact, "threads": self.threads}

    def __repr__(self) -> str:
        return f"Hybrid(shared={self.shared!r}, arms={self.arms!r})"


class ArmModelsState(NamedTuple):
    """State of models per arm.

    Parameters
    ----------
    store : ModelStore
        The arms' models.
    shared : Any
        State of the shared estimator; () if disjoint.
    direction : array of shape (n, d_a)
        Unit vector of each arm's v, by the arm's id, for contexts vec(u v^T) of which arms learn only u (rank_one.py);
        d_a = 0 otherwise.
    """

    store: ModelStore
    shared: Any
    direction: np.ndarray


def _check_options(arms: Estimator, compact: Any, threads: Any) -> tuple[bool, int | None]:
    able = can_pack(arms)
    if check.choice("compact", compact, (None, False, True)) and not able:
        raise ValueError(f"compact must be None or False for {quote(arms)}, which the arena does not know")
    if threads is not None:
        threads = check.integer("threads", threads, 1)
    return able if compact is None else compact, threads
