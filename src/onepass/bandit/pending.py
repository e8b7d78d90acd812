"""Decisions that wait for their rewards, for those who run no service."""

import json
import time
from typing import Any, NamedTuple, Self, final

import numpy as np

from onepass.bandit.bandit import BaseBandit
from onepass.bandit.crossed import CrossedBandit
from onepass.bandit.decision import Decision
from onepass.foundation import check, files
from onepass.foundation.registry import built, savable
from onepass.foundation.sharing import composed, reading
from onepass.foundation.state import objects


class Waiting(NamedTuple):
    """What is written: when each decision is due, in seconds, and its record as JSON."""

    due: np.ndarray
    records: np.ndarray


@final
@savable
class Pending(files.Owner):
    """A bandit and the decisions that wait for their reward; saved, copied and pickled together.

    A decision whose reward has not come `after` seconds becomes one of the default reward, when anything is next asked
    of this store, in the order in which they were due.

    bandit: a `SharedBandit`, an `ArmBandit` or a `CrossedBandit`, which may be used beside.
    after: seconds, above 0 (default 3600.0). default: the reward of those that are overdue, a finite number (default
    0.0); None: nothing is learned of them. ValueError for values out of range.

    >>> import numpy as np, onepass as op
    >>> pending = op.Pending(op.OFUL(dim=2), after=60.0)
    >>> decision = pending.decide(np.eye(2), id="request 1", now=0.0)
    >>> pending.reward("request 1", 1.0, now=10.0)
    >>> len(pending), pending.bandit.rounds
    (0, 1)
    """

    bandit: BaseBandit | CrossedBandit
    after: float

    def __init__(
        self, bandit: BaseBandit | CrossedBandit, *, after: float = 3600.0, default: float | None = 0.0
    ) -> None:
        if not isinstance(bandit, BaseBandit | CrossedBandit):
            raise ValueError(f"bandit must be a SharedBandit or an ArmBandit, got {check.shown(bandit)}")
        self.bandit, self.after = bandit, check.positive("after", after)
        self.default: float | None = None if default is None else check.real("default", default)
        self._waiting: dict[str, tuple[float, Decision]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    @reading
    def ids(self) -> list[str]:
        """Identities of the decisions that wait, the oldest first."""
        return list(self._waiting)

    @composed
    def decide(self, contexts: Any, arms: Any = None, k: int = 1, *, now: Any = None, **options: Any) -> Decision:
        """`decide` of the bandit; the decision waits from now on, one of the same id as it has waited so far.

        contexts (K, dim) or as else the bandit takes them, arms, k, options (id, eligible, tail): as there, for one
        decision or several at once. now: seconds, as of `time.time`, the default. Errors as there.
        """
        now = self._at(now)
        decision = self.bandit.decide(contexts, arms, k, **self._when(now), **options)
        for one in decision.each():
            self._waiting.setdefault(one.id, (now + self.after, one))
        return decision

    @composed
    def reward(self, identity: str, reward: Any, *, now: Any = None) -> None:
        """Learn the reward of a decision that waits, after those that are overdue.

        identity: its id; reward: a number, for k slots k numbers, None where there was none; now: as in `decide`.
        ValueError, and the decision goes on waiting, for a reward that is not finite or of another number of slots;
        KeyError where no decision waits under that id.
        """
        self.expire(now=now)
        if identity not in self._waiting:
            raise KeyError(f"no decision waits under the id {check.shown(identity)}: it had its reward, or was overdue")
        self.bandit.learn(self._waiting[identity][1], reward, **self._when(self._at(now)))
        del self._waiting[identity]

    @composed
    def expire(self, *, now: Any = None) -> int:
        """Learn the default reward of the decisions that are overdue at `now`, as in `decide`; how many there were."""
        now = self._at(now)
        late = sorted((due, place, one) for place, (due, one) in enumerate(self._waiting.values()) if due <= now)
        if late and self.default is not None:
            decisions = [one for _, _, one in late]
            paid = [self.default if len(one.arms) == 1 else [self.default] * len(one.arms) for one in decisions]
            self.bandit.learn(decisions, paid, **self._when(now))
        for _, _, one in late:
            del self._waiting[one.id]
        return len(late)

    def _when(self, now: float) -> dict[str, Any]:
        """What a bandit with a half-life in seconds is told."""
        return {"time": now} if self.bandit.timed else {}

    @staticmethod
    def _at(now: Any) -> float:
        return time.time() if now is None else check.real("now", now)

    def contents(self) -> files.Contents:
        waiting = list(self._waiting.values())
        due = np.array([due for due, _ in waiting], np.float64)
        records = objects([json.dumps(one.to_dict()) for _, one in waiting])
        params = {"bandit": self.bandit, "after": self.after, "default": self.default}
        return files.Contents(params, {}, Waiting(due=due, records=records))

    @classmethod
    def restored(cls, params: dict[str, Any], extra: dict[str, Any], held: files.Holds) -> Self:
        """From what a file, copy or pickle holds, `params`, `extra` and `held`; ValueError where that does not fit."""
        arguments = {name: built(part) for name, part in params.items()}
        pending = cls(arguments.pop("bandit").copy(), **arguments)
        begun = Waiting(due=np.zeros(0), records=objects([]))
        found = held.take(begun, lambda w: len(w.due) == len(w.records) and bool(np.isfinite(w.due).all()))
        each = [Decision.from_dict(json.loads(record)) for record in found.records]
        pending._waiting = {one.id: (due, one) for due, one in zip(found.due.tolist(), each, strict=True)}
        if len(pending._waiting) != len(each):
            raise ValueError("two decisions wait under one id")
        return pending

    def __repr__(self) -> str:
        return f"<Pending: {len(self)} decisions wait up to {self.after:g} s, then {self.default}; {self.bandit!r}>"
