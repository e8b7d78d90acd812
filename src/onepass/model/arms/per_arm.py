"""Disjoint and hybrid models (Li, Chu, Langford and Schapire 2010): what `Bandit` takes in place of one estimator.

    disjoint   r = x^T theta_a              A_a = reg I + sum of x x^T over the rows of arm a;  theta_a = A_a^-1 b_a
    hybrid     r = x^T (beta + theta_a)     arms as above, and a shared design of the rows with the arms eliminated

Hybrid: with B_a = sum of x x^T over arm a's rows seen so far, a row x adds sqrt(w) (x - B_a^T A_a^-1 x) with the target
sqrt(w) (r - b_a^T A_a^-1 x), w = 1 / (1 + x^T A_a^-1 x), to the shared design; both priors are reg I. Then
mean = z^T beta + b_a^T A_a^-1 x and width^2 = x^T A_a^-1 x + z^T A_0^-1 z with z = x - B_a^T A_a^-1 x: the joint ridge
regression exactly, whatever the shared design, as long as the arms' designs are exact (Shustova et al. and Li et al.
keep the same algebra as matrices; row by row it needs nothing of a design but `append`). What a sketched arm cuts is
lost to B_a.
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
    """Parameters per arm: `arms`, the estimator that every arm begins with, and `shared`, that of a shared part."""

    arms: Any
    shared: Any = None
    compact: bool
    threads: int | None
    _store: Callable[[], ModelStore] | None = None  # makes stores of another kind

    def store(self) -> ModelStore:
        """An empty store for the arms."""
        if self._store is not None:
            return self._store()
        extra = 0 if self.shared is None else self.shared.design.dim
        return (PackedStore if self.compact else ListStore)(self.arms, extra, self.threads)

    def separate(self) -> Self:
        """The same with one state per arm."""
        same = copy(self)
        same.compact = False
        return same

    def with_store(self, store: Callable[[], ModelStore]) -> Self:
        """The same with stores that `store` makes."""
        same = copy(self)
        same._store = store
        return same


@savable
class Disjoint(PerArm):
    """One model per arm: r = x^T theta_a.

    estimator: what every arm begins with, e.g. ``Ridge(ProjectorSplitting(dim=169, rank=16))``; rows that its design
        holds already are every arm's prior.
    compact: keep all arms in one arena that grows with what was learned (Ridge, OnlineNewton, OnePassHuber and
        OnePassGLM without a ball, on Exact, FrequentDirections or ProjectorSplitting; designs and estimators of your
        own that declare their rules), or False: one state per arm, as all others do; default None: an arena where it
        can.
    threads: for large batches, at least 1; default None: as many as there are processors. Results do not depend on it.
    ValueError for what is not an estimator.
    """

    compact: bool
    threads: int | None

    def __init__(self, estimator: Estimator, *, compact: bool | None = None, threads: int | None = None) -> None:
        self.arms: Estimator = _check_estimator(estimator)
        self.compact, self.threads = _check_options(self.arms, compact, threads)

    def params(self) -> dict[str, Any]:
        """What the constructor was given."""
        return {"estimator": self.arms, "compact": self.compact, "threads": self.threads}

    def __repr__(self) -> str:
        return f"Disjoint({self.arms!r})"


@savable
class Hybrid(PerArm):
    """A shared and a per-arm part: r = x^T (beta + theta_a).

    shared, arms: `Ridge`, the shared part also `OnlineNewton`, on designs for rows of the same width (for contexts
        given as factors: `arms` of the reduced width) and of one dtype.
    compact, threads: as for `Disjoint`. ValueError for other estimators: the arms are eliminated by the algebra of
        ridge regression, and what they leave to the shared part are rows of a least-squares problem, for either.
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
        """What the constructor was given."""
        return {"shared": self.shared, "arms": self.arms, "compact": self.compact, "threads": self.threads}

    def __repr__(self) -> str:
        return f"Hybrid(shared={self.shared!r}, arms={self.arms!r})"


class ArmModelsState(NamedTuple):
    """store: the arms' models; shared: the state of the shared estimator, () if disjoint; direction: of every record,
    the unit vector v_a / ||v_a|| with which its rows were reduced (records, d_a), d_a = 0 where nothing is reduced.
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
