"""The models that a loop has had, one after the other: each a line, the fold of joins from its own beginning.

    staged   a candidate: a checkpoint with its data, from which it learns the joins after `through`
    serving  it decides from here on; the one before ends with the joins that this checkpoint has learned
    retired  it ends without having served, and says why

The first checkpoint of a loop begins line 0, which serves. Decisions say of which line they are. So a line is a
function of the log, whatever was served when.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from onepass.log.records import Checkpoint
from onepass.log.store import Store

STAGED, SERVING, RETIRED = "staged", "serving", "retired"


class ModelLine(msgspec.Struct, kw_only=True):
    """One of the models. number: from 0; place: of the checkpoint it begins with; through: the join after which it
    learns; state; end: the last join it learned, None while it goes on; ended: the place of the record that says so;
    why: a sentence about its state; served: whether it ever decided; whole: through which join its last checkpoint has
    learned that the log holds with its model."""

    number: int
    place: int
    through: int
    state: str
    end: int | None = None
    why: str = ""
    served: bool = False
    whole: int = 0
    ended: int | None = None


class ModelLineage(msgspec.Struct, kw_only=True):
    """The models of a loop, as its checkpoints say. each: by their numbers; serving: the number of the one that
    decides."""

    each: dict[int, ModelLine] = {}
    serving: int = 0

    def add_checkpoint(self, record: Checkpoint) -> None:
        """The next checkpoint of the log."""
        found = self.each.get(record.line)
        if found is None:
            if record.data is not None:
                through = record.through if record.begun is None else record.begun
                begun = ModelLine(number=record.line, place=record.seq, through=through, state=record.state)
                begun.why, begun.served, begun.whole = record.why, record.state == SERVING, record.through
                self.each[record.line] = begun
                if begun.served:
                    self._end(record, "another model took over")  # in what was dropped from the log
                    self.serving = record.line
            return
        if record.data is not None:
            found.whole = record.through
        if record.state == RETIRED:
            found.state, found.end, found.why, found.ended = RETIRED, record.through, record.why, record.seq
        elif record.state == SERVING and record.line != self.serving:
            self._end(record, f"model {record.line} took over")
            self.serving, found.state, found.why, found.served = record.line, SERVING, record.why, True

    def _end(self, record: Checkpoint, why: str) -> None:
        """The model that served ends where another one does that has learned what a record says."""
        before = self.each.get(self.serving)
        if before is not None and before.number != record.line and before.state == SERVING:
            before.state, before.end, before.why, before.ended = RETIRED, record.through, why, record.seq

    @property
    def candidate(self) -> ModelLine | None:
        """The model that may take over, None where there is none."""
        return next((one for one in self.each.values() if one.state == STAGED), None)

    @property
    def next(self) -> int:
        """The number of a further line."""
        return max(self.each, default=-1) + 1


def read_lineage(store: Store, loop: str) -> ModelLineage:
    """The models that a log names. store: the log; loop: the name of the loop."""
    found = ModelLineage()
    records: Iterable[Any] = store.read(kinds=["checkpoint"], loop=loop)
    for record in records:
        found.add_checkpoint(record)
    return found
