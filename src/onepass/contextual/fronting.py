"""Which models a ContextualBandit keeps: what it is given first decides (kinds.py), once something of it is learned.

Before that it has learned nothing, and decides for whatever it is given. Later what asks for other models is refused.
"""

from collections.abc import Collection, Hashable, Sequence
from typing import Any, Self

import numpy as np

from onepass.bandit.bandit import BaseBandit
from onepass.bandit.crossed import CrossedBandit
from onepass.bandit.deciding import paired
from onepass.bandit.decision import Recommendation
from onepass.bandit.names import hashable
from onepass.contextual import crossed_side
from onepass.contextual.columns import Columns
from onepass.contextual.kinds import (
    CROSSED,
    RECORDS,
    ROWS,
    are_records,
    have_features,
    is_frame,
    kind_of,
    kind_of_decision,
    names_alone,
    told_of,
)
from onepass.contextual.known import Known
from onepass.contextual.recorded import take
from onepass.exploration.exploration import Exploration
from onepass.foundation import check
from onepass.foundation.check import shown
from onepass.foundation.interrupts import deferred
from onepass.foundation.sharing import reading, writing


class Fronting(BaseBandit):
    """What a ContextualBandit does about it."""

    _kind: str | None = None  # ROWS, RECORDS or CROSSED, once something is learned
    _crossed: CrossedBandit | None = None
    _free: bool = True  # whether the exploration is the default one of the kind
    _known: Known
    _columns: Columns
    _given: dict[str, Any]

    # ---- which models ----

    @staticmethod
    def _timeless(time: Any) -> None:
        if time is not None:
            raise ValueError(f"time must be None: what changes is forgotten by itself, got {shown(time)}")

    def _kind_for(self, contexts: Any, arms: Any) -> str:
        """The kind of models that a request is for: the one that has learned, or that it asks for. ValueError where
        these are not the same."""
        kind, models = self._kind, self._given["models"]
        numbers = not are_records(contexts)
        if kind is None:
            if self._given["dim"] is not None and not numbers and not is_frame(contexts):
                raise ValueError(f"contexts must be rows of dim = {self._given['dim']} numbers, got {shown(contexts)}")
            numbers = numbers or self._given["dim"] is not None
            count = len(self._known.roster) if arms is None else len(arms) if hasattr(arms, "__len__") else 0
            return kind_of(models, numbers, have_features(arms), count)
        if kind == CROSSED:
            return kind
        if numbers != (kind == ROWS) and not (kind == ROWS and is_frame(contexts)):
            raise ValueError(f"contexts must be {kind}, as those that this bandit has learned, got {shown(contexts)}")
        if models is None and have_features(arms):
            raise ValueError(
                "arms have features, and this bandit has learned models of every arm: say models='own' to leave "
                "features out, or models='crossed' from the start"
            )
        return kind

    def _told(self, contexts: Any) -> bool:
        """Whether contexts are records to be made rows of."""
        return self._kind != ROWS and self._given["dim"] is None and are_records(contexts)

    def _inner(self) -> CrossedBandit:
        """The bandit whose models are crossed; before rewards it is made where it is asked for."""
        if self._crossed is None:
            given, rule = self._given, None if self._free else self.exploration
            made = CrossedBandit(given["context"], given["item"], rule, seed=self.seed, name=self.name)
            self._crossed = made.drawing_from(self._rng)
        return self._crossed

    def _all(self, arms: Any) -> Any:
        """Arms that are offered; None: those that were added, of which names are all that is known."""
        return self._known.roster.names if arms is None and len(self._known.roster) else arms

    def _draw_alike(self) -> None:
        """Let crossed models draw from this bandit's generator."""
        if self._crossed is not None:
            self._crossed.drawing_from(self._rng)

    def _become(self, kind: str) -> None:
        """What is learned is of this kind from now on."""
        if self._kind is None and kind == CROSSED:
            inner = self._inner()
            super()._explore(inner.exploration)
            self._crossed = inner
        self._kind = kind

    def _explore(self, exploration: Exploration | None) -> None:
        super()._explore(exploration)
        self._free = False
        if self._kind == CROSSED:
            self._crossed = self._inner().exploring(self.exploration).drawing_from(self._rng)
        else:
            self._crossed = None

    @reading
    def exploring(self, exploration: Exploration) -> Self:
        """The same model under another exploration, from the seed on. What is learned is shared, not copied: let one of
        the two learn, or take a `copy` first. ValueError for what is no exploration.
        """
        twin = super().exploring(exploration)
        twin._draw_alike()
        return twin

    # ---- arms ----

    @property
    @reading
    def arms(self) -> tuple[Any, ...]:
        """All known arms, in the order in which they appeared; where arms have features, the 1,000 learned last."""
        return self._inner().arms if self._kind == CROSSED else self._known.roster.names

    @writing
    def add_arm(self, arm: Hashable) -> None:
        """Make an arm known before it is learned from; ValueError if it is known already or not hashable, and where
        arms have features: these are known once they are learned from."""
        if self._kind == CROSSED:
            raise ValueError("arm must be offered with its features: such arms are known once they are learned from")
        self._known.roster.add(arm)

    @reading
    def recommend(
        self,
        contexts: Any,
        k: int,
        arms: Any = None,
        exclude: Sequence[Collection[Hashable]] | None = None,
        *,
        time: Any = None,
    ) -> Recommendation:
        """The k best arms of every user, without side effects.

        contexts: (n, dim) or (n, K, dim), n records, or a frame; arms: as in `decide`; k, exclude, ties: as for
        `SharedBandit.recommend`. time: None. Errors as of `score`.
        """
        self._timeless(time)
        if self._kind_for(contexts, arms) == CROSSED:
            return crossed_side.recommend(self._inner(), self.dim, contexts, k, self._all(arms), exclude)
        return super().recommend(contexts, k, names_alone(arms), exclude)

    # ---- rewards ----

    def _reward(self, decisions: Any, rewards: Any, again: bool, time: Any) -> None:
        """Learn the rewards of decisions: from their records, all or none."""
        self._timeless(time)
        first = decisions[0] if isinstance(decisions, list) else decisions
        kind = self._kind or kind_of_decision(self._given["models"], first.each()[0])
        if kind == CROSSED:
            inner = self._inner()
            with deferred():
                inner.learn(decisions, rewards, again=again)
                self._become(CROSSED)
                self.rounds = inner.rounds
        elif kind == RECORDS:
            self._reward_records(decisions, rewards, again)
        else:
            super()._reward(decisions, rewards, again, time)

    def _learn_crossed(self, contexts: Any, rewards: Any, arm: Any) -> None:
        """Learn requests, rewards, and arms with their features."""
        inner = self._inner()
        with deferred():
            crossed_side.learn(inner, self.dim, contexts, rewards, arm)
            self._become(CROSSED)
            self.rounds = inner.rounds

    def _reward_records(self, decisions: Any, rewards: Any, again: bool) -> None:
        given, paid = paired(decisions, rewards)
        identities = [one.id for one in given]
        if not again:
            self._rewarded.refuse(identities)
        each = [(told_of(one), one, own) for one, own in zip(given, paid, strict=True)]
        rows = [
            (told, name, value)
            for told, one, own in each
            for name, value in zip(one.arms, own, strict=True)
            if value is not None
        ]
        with deferred():
            self._learn_records(
                [told for told, _, _ in rows], [value for *_, value in rows], [name for _, name, _ in rows]
            )
            self._rewarded.add(identities)

    def _learn_records(self, found: list[dict[str, float]], rewards: Any, names: list[Any]) -> None:
        """Learn terms, rewards and arms, one after the other."""
        values = self._values(np.array(rewards, self._dtype), len(found), False)
        if len(found) != len(names):
            raise ValueError(f"arm must name the arm of every record ({len(found)}), got {len(names)}")
        hashable(names)
        for told in found:
            check.finite_rows("contexts", np.array([list(told.values())]))
        with deferred():
            for told, value, name in zip(found, values.tolist(), names, strict=True):
                self._become(RECORDS)
                take(self._columns, self._known, told, value, name)
                self.dim = self._columns.width
                self.rounds += 1

    # ---- memory ----

    @reading
    def memory_usage(self) -> int:
        """Bytes of all arrays of the state, and of the names of records."""
        if self._kind == CROSSED:
            return self._inner().memory_usage()
        own = super().memory_usage()
        return own + self._columns.records.memory_usage() if self._kind == RECORDS else own
