"""One model of a stream, learned by several workers whose models are merged while the stream runs.

The merged model is

    model = recipe + sum over workers of what each has learned by itself          (docs/merging.md: what can be merged)

Every `merge_every` rows the models of all workers are merged into a new model. A merge does not change the workers'
models: a sketch is truncated by its own rows, and its certificate is added once, however many merges there were. So
`model` has learned the first rows of the stream, and lacks fewer than `merge_every` of them.
"""

from functools import partial
from itertools import pairwise
from typing import Any, Self, final

import numpy as np

from onepass.bandit.decide import are_decisions
from onepass.cluster.ray_transport import RayTransport
from onepass.cluster.shard_supervisor import ShardSupervisor
from onepass.cluster.transport import ThreadTransport, Transport
from onepass.design.design import Design
from onepass.foundation import check
from onepass.foundation.deferred_signals import defer_signals
from onepass.foundation.merge import merge_all
from onepass.foundation.rw_lock import SharedObject, reading, writing
from onepass.model.arms.arm_models import ArmModels
from onepass.model.shared import SharedModel

MERGE_EVERY = 10_000  # rows between two merges: one worker learns them in 1 s at d = 256, and a merge takes 0.03 s


class _Replica:
    """Model of one worker, with the number of its last change."""

    def __init__(self, model: Any, seq: int) -> None:
        self.model, self.seq = model, seq

    def learn(self, *rows: Any) -> None:
        """Learn rows with a bandit, given contexts, rewards and arms; a design is given the contexts alone."""
        self.model.learn(*rows) if hasattr(self.model, "learn") else self.model.append(*rows)

    def copy_model(self) -> Any:
        """Return a copy of the model."""
        return self.model.copy()


def _make_replica(recipe: Any, saved: Any) -> _Replica:
    """Make a worker with a copy of the model `recipe`, or of a saved model if `saved` is not None.

    `saved` is the pair of a model and the number of its last change.
    """
    model, seq = (recipe, 0) if saved is None else saved
    return _Replica(model.copy(), seq)


def _model_after_one_row(recipe: Any) -> Any:
    """Return a copy of the model `recipe` that has learned one more row, to test whether it can be merged."""
    one = _make_replica(recipe, None)
    if isinstance(recipe, Design):
        one.learn(np.eye(1, recipe.dim))
    else:
        one.learn(np.eye(1, recipe.model.dim), np.ones(1), *([["one"]] if recipe.model.has_named_arms else []))
    return one.model


@final
class Replicas(SharedObject):
    """Several workers that learn one stream, and whose models are merged every `merge_every` rows.

    If a worker is lost, another one starts from its model at the last merge and learns the rows since then, which this
    process keeps. If this process is lost, continue from the last `model` that you saved. That model has learned the
    rows of the recipe, and the first rows of the stream without a gap. Its `n_learned` counts both.

    Parameters
    ----------
    recipe : bandit or Design
        Model from which every worker starts with a copy. It must be of a kind that can be merged, and does not change.
        If it has learned rows already, they count once in the merged model. Such a recipe needs an exact design,
        because rows cannot be subtracted from a sketch.
    workers : int, default 2
        Number of workers, at least 1: threads of this process, or actors of Ray.
    merge_every : int, default 10000
        Number of rows between two merges, at least 1.
    ray : str, default None
        Address of Ray, or "local" for a Ray of this machine. None runs in this process.

    Raises
    ------
    TypeError
        If the recipe is no bandit or design that learns rows, or is of a kind that cannot be merged.
    ValueError
        If the recipe cannot be merged.
    ModuleNotFoundError
        If `ray` is given and Ray is missing.

    Examples
    --------
    >>> import onepass as op
    >>> from onepass.cluster import Replicas
    >>> with Replicas(op.OFUL(dim=2), merge_every=3) as stream:
    ...     stream.learn([[1.0, 0.0], [0.0, 1.0]], [1.0, 0.0])
    ...     stream.n_learned, stream.model.n_learned
    ...     stream.learn([[1.0, 0.0], [0.0, 1.0]], [1.0, 0.0])
    ...     stream.n_learned, stream.model.n_learned
    (2, 0)
    (4, 3)
    """

    def __init__(
        self, recipe: Any, workers: int = 2, *, merge_every: int = MERGE_EVERY, ray: str | None = None
    ) -> None:
        count, self.merge_every = check.integer("workers", workers, 1), check.integer("merge_every", merge_every, 1)
        if not (isinstance(recipe, Design) or isinstance(getattr(recipe, "model", None), SharedModel | ArmModels)):
            raise TypeError(f"recipe must be a bandit or a design that learns rows, got {check.quote(recipe)}")
        self._recipe = recipe.copy()
        self._since = self._recipe if getattr(recipe, "n_learned", 0) else None
        self._merge_models([_model_after_one_row(self._recipe)] * 2)  # raises if models cannot be merged
        self._model = self._recipe
        transport: Transport = ThreadTransport(count) if ray is None else RayTransport(ray)
        self.supervisor = ShardSupervisor(partial(_make_replica, self._recipe), transport, True)
        for number in range(count):
            self.supervisor.start(number)
        self._rows, self._lag, self._turn = 0, 0, 0

    def _merge_models(self, models: list[Any]) -> Any:
        return merge_all(*models) if self._since is None else merge_all(*models, since=self._since)

    @property
    def model(self) -> Any:
        """Model of the last merge, which has learned all rows of the stream but the last `lag`.

        Use it to decide, not to learn. Give an id to each of its decisions. Without ids the same random draws are
        repeated after every merge.
        """
        return self._model

    @property
    def n_learned(self) -> int:
        """Number of rows of the stream that were learned."""
        return self._rows

    @property
    def lag(self) -> int:
        """Number of rows that `model` lacks; fewer than `merge_every` whenever `learn` has returned."""
        return self._lag

    @writing
    def learn(self, contexts: Any, rewards: Any = None, arm: Any = None) -> None:
        """Learn rows, dealt to the workers in equal parts, and return when the workers have learned them.

        Parameters
        ----------
        contexts : array of shape (dim,) or (n, dim)
            One row or n rows, not decisions.
        rewards : float or array of shape (n,), default None
            The reward of each row; None for designs.
        arm : hashable or sequence of n names, default None
            The arm of each row, for models per arm.

        Raises
        ------
        ValueError
            If decisions are given, a number is not finite, or lengths differ. Nothing has changed then. If the
            recipe raises an error, the rows of the call before the last merge within it stay learned.
        """
        if are_decisions(contexts):
            raise ValueError("contexts must be rows, not decisions: learn decision.context, the reward and the arm")
        rows = np.asarray(contexts)
        single = rows.ndim == 1
        rows = np.atleast_2d(rows)
        columns: list[Any] = [rows]
        if rewards is not None:
            columns.append(np.atleast_1d(np.asarray(rewards)))
        if arm is not None:
            columns.append([arm] if single else list(arm))
        if rewards is None and arm is not None:
            raise ValueError("rewards must be given where arm is")
        if any(len(column) != len(rows) for column in columns):
            raise ValueError(f"rewards and arm must be as many as contexts, got {[len(column) for column in columns]}")
        for column in columns[:2]:
            if column.dtype.kind not in "fiub" or not np.isfinite(column).all():
                raise ValueError("contexts and rewards must be finite numbers")
        start = 0
        while start < len(rows):
            stop = min(len(rows), start + self.merge_every - self._lag)
            with defer_signals():
                self._deal([column[start:stop] for column in columns])
            start = stop

    def _deal(self, columns: list[Any]) -> None:
        """Let the workers learn equal parts of n rows, and merge if `merge_every` rows came since the last merge.

        `columns` is a list of contexts, rewards and arms, as far as the model takes them, each of length n.
        """
        count, workers = len(columns[0]), self.supervisor.numbers
        edges = np.linspace(0, count, min(count, len(workers)) + 1).astype(int).tolist()
        each = {}
        for start, stop in pairwise(edges):
            each[workers[self._turn]] = ("learn", *(column[start:stop] for column in columns))
            self._turn = (self._turn + 1) % len(workers)
        try:
            self.supervisor.apply(each)
        except Exception:
            self.supervisor.undo(each)
            raise
        self._rows, self._lag = self._rows + count, self._lag + count
        if self._lag >= self.merge_every:
            self._merge()

    def _merge(self) -> None:
        found = self.supervisor.ask({number: ("copy_model",) for number in self.supervisor.numbers})
        self._model, self._lag = self._merge_models(list(found.values())), 0
        self.supervisor.use_checkpoint(
            {number: (model, self.supervisor.members[number].seq) for number, model in found.items()}
        )

    @writing
    def merge(self) -> Any:
        """Merge now, so that `model` lacks no row.

        Returns
        -------
        bandit or Design
            The new `model`.
        """
        with defer_signals():
            if self._lag:
                self._merge()
        return self._model

    @reading
    def error_bound(self) -> float:
        """Return the certified error bound of `model`, the sum of the workers' certificates.

        Returns
        -------
        float
            The bound; infinite if nothing is certified.
        """
        return float(self._model.error_bound())

    @writing
    def close(self) -> None:
        """Stop the workers; `model` stays. Leaving `with Replicas(...) as stream:` does it too."""
        for number in self.supervisor.numbers:
            self.supervisor.stop(number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        count = len(self.supervisor.numbers)
        return f"<Replicas: {count} workers, {self.n_learned} rows, {self.lag} behind: {self.model!r}>"
