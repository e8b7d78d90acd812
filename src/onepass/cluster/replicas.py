"""One model of a stream, learned by several workers, who merge while it runs.

    model = recipe + sum over workers of what each has learned by itself          (docs/merging.md: what can be merged)

Every `merge_every` rows the models of all workers are merged into a new one; they themselves are not touched: a sketch
is cut by its own rows, and its certificate is added once, however often there was a merge. So `model` has learned the
first rows of the stream, and lacks less than `merge_every` of them.
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

MERGE_EVERY = 10_000  # rows between two merges: a second of one worker at d = 256, beside 0.03 s to merge


class _Replica:
    """What one worker has learned; seq: of the last change."""

    def __init__(self, model: Any, seq: int):
        self.model, self.seq = model, seq

    def learn(self, *rows: Any) -> None:
        """Learn rows, or append them to a design."""
        self.model.learn(*rows) if hasattr(self.model, "learn") else self.model.append(*rows)

    def copy_model(self) -> Any:
        """What it has learned until now."""
        return self.model.copy()


def _make_replica(recipe: Any, kept: Any) -> _Replica:
    """A worker that begins as the recipe, or (kept: its model and seq) goes on."""
    model, seq = (recipe, 0) if kept is None else kept
    return _Replica(model.copy(), seq)


def _model_after_one_row(recipe: Any) -> Any:
    """The model of one more row, which must be such that it can be merged."""
    one = _make_replica(recipe, None)
    if isinstance(recipe, Design):
        one.learn(np.eye(1, recipe.dim))
    else:
        one.learn(np.eye(1, recipe.model.dim), np.ones(1), *([["one"]] if recipe.model.has_named_arms else []))
    return one.model


@final
class Replicas(SharedObject):
    """Workers that learn one stream.

    recipe: what learns, a bandit or a design that can be merged; what it has learned already is counted once, where
        rows can be taken away again. It does not change.
    workers: at least 1 (default 2): threads of this process, or actors.
    merge_every: rows between two merges, at least 1 (default 10,000).
    ray: None (default): this process; an address, or "local": actors there.
    TypeError and ValueError for a recipe that cannot be merged; ModuleNotFoundError without Ray.

    A worker that is lost comes back from its model at the last merge and the rows since, which are kept here. After a
    loss of this process go on from a saved `model`: beside the recipe's it has learned the first rows of the stream, no
    others, and its `n_learned` says how many.

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

    def __init__(self, recipe: Any, workers: int = 2, *, merge_every: int = MERGE_EVERY, ray: str | None = None):
        count, self.merge_every = check.integer("workers", workers, 1), check.integer("merge_every", merge_every, 1)
        if not (isinstance(recipe, Design) or isinstance(getattr(recipe, "model", None), SharedModel | ArmModels)):
            raise TypeError(f"recipe must be a bandit or a design that learns rows, got {check.quote(recipe)}")
        self._recipe = recipe.copy()
        self._since = self._recipe if getattr(recipe, "n_learned", 0) else None
        self._merge_models([_model_after_one_row(self._recipe)] * 2)  # raises for what cannot be merged
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
        """The newest merge: to decide by, under ids (draws without them begin anew with every merge), not to be taught.

        It has learned the first rows of the stream, all but `lag` of them.
        """
        return self._model

    @property
    def n_learned(self) -> int:
        """Rows learned here."""
        return self._rows

    @property
    def lag(self) -> int:
        """Rows that `model` lacks: less than `merge_every`, whenever `learn` has returned."""
        return self._lag

    @writing
    def learn(self, contexts: Any, rewards: Any = None, arm: Any = None) -> None:
        """Learn rows, dealt to the workers in equal parts; returns when they have learned them.

        contexts: (dim,) or (n, dim); rewards: a number or (n,), default None (designs); arm: a name or n names, for
        models per arm (default None). ValueError for decisions, NaN, lengths that differ, and nothing has changed; what
        else the recipe refuses: rows of the batch before the last merge within it are learned.
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
        """Rows that are learned before the next merge, each by one worker."""
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
        """Merge now; the model, which lacks nothing."""
        with defer_signals():
            if self._lag:
                self._merge()
        return self._model

    @reading
    def error_bound(self) -> float:
        """That of `model`: the sum of the workers' certificates."""
        return float(self._model.error_bound())

    @writing
    def close(self) -> None:
        """End the workers; `model` stays. Leaving `with Replicas(...) as stream:` does it too."""
        for number in self.supervisor.numbers:
            self.supervisor.stop(number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        count = len(self.supervisor.numbers)
        return f"<Replicas: {count} workers, {self.n_learned} rows, {self.lag} behind: {self.model!r}>"
