"""A ContextualBandit as it is copied and written: what it was given, and the models of its kind.

Records that were learned, or the crossed models, are parts, written with what they know. Files from before there were
kinds hold rows.
"""

from typing import Any, Self

from onepass.bandit.crossed import CrossedBandit
from onepass.bandit.ledger import Ledger
from onepass.contextual.columns import Columns
from onepass.contextual.fronting import Fronting
from onepass.contextual.kinds import CROSSED, RECORDS, ROWS
from onepass.contextual.known import Held, Known
from onepass.features.records import Records
from onepass.foundation import check, files
from onepass.foundation.registry import built


class Filed(Fronting):
    """What it does for copies and files."""

    _kind: str | None
    _crossed: CrossedBandit | None
    _known: Known
    _columns: Columns

    def _begin(self, dim: int) -> None:
        """Rows are known to be of that width."""
        self.dim = dim
        self._known.begin(dim)

    def _twin(self) -> Self:
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._known, twin._rewarded = self._known.twin(), self._rewarded.copy()
        twin._columns = self._columns.copy()
        twin._crossed = self._inner().copy().drawing_from(self._rng) if self._kind == CROSSED else None
        return twin

    def _published(self) -> Self:
        twin = self._twin()
        twin._known.apart()
        return twin

    def _forget(self, ticks: int, copied: bool) -> None:
        """Nothing: there is no half-life."""

    def _settle(self) -> None:
        """Nothing waits."""

    @property
    def learned(self) -> Any:
        return self._known.models

    def _state(self) -> Any:
        return self._known.models, self._known.remaking

    def _saved(self) -> Held:
        return self._known.held()

    def _arguments(self) -> dict[str, Any]:
        exploration = None if self._kind is None and self._free else self.exploration
        return {**self._given, "exploration": exploration, "seed": self.seed, "name": self.name}

    def contents(self) -> files.Contents:
        rng, params = self._rng.bit_generator.state, self._arguments()
        extra = {"width": self.dim, "rng": rng, "rounds": self.rounds, "rewarded": self._rewarded.text()}
        if self._kind == RECORDS:
            params["records"], extra["places"] = self._columns.records, list(self._columns.places)
        elif self._kind == CROSSED:
            params["crossed"] = self._inner()
        return files.Contents(params, extra, self._saved())

    @classmethod
    def restored(cls, params: dict[str, Any], extra: dict[str, Any], held: files.Holds) -> Self:
        """From what a file, copy or pickle holds, `params`, `extra` and `held`; ValueError where that does not fit."""
        parts = {name: built(part) for name, part in params.items()}
        crossed, records = parts.pop("crossed", None), parts.pop("records", None)
        bandit = cls(**parts)
        if records is not None:
            bandit._recall(records, extra["places"], extra["width"])
        elif crossed is not None:
            if not isinstance(crossed, CrossedBandit):
                raise ValueError("the models that are crossed do not fit")
            bandit._crossed, bandit._kind = crossed.copy(), CROSSED
        width = check.integer("width", extra["width"], 0)
        if bandit.dim == 0 and width > 0:
            bandit._begin(width)
        if bandit.dim != width:
            raise ValueError("the width of contexts does not fit")
        bandit._restore(held)
        bandit._go_on(extra)
        if bandit._kind is None and bandit.rounds > 0:
            bandit._kind = ROWS
        return bandit

    def _recall(self, records: Records, places: list[int], width: int) -> None:
        """The columns that a file holds; ValueError where they do not fit."""
        whole = len(set(places)) == len(places) == width > 0 and all(type(one) is int for one in places)
        if not isinstance(records, Records) or not whole or not 0 <= min(places) <= max(places) < records.size:
            raise ValueError("the columns of records do not fit")
        self._columns, self._kind = Columns(records.copy(), places), RECORDS

    def _go_on(self, extra: dict[str, Any]) -> None:
        self.rounds = check.integer("rounds", extra["rounds"], 0)
        self._rng.bit_generator.state = extra["rng"]
        self._rewarded = Ledger.of(extra["rewarded"])
        self._draw_alike()

    def _restore(self, held: files.Holds) -> None:
        self._known.restore(held)
