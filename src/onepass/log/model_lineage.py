"""Models of a loop, one after the other: each is called a line, and has a number.

A line learns the joins (rewards matched with their decisions) from its own beginning. Its records are checkpoints of
three kinds:

    staged   a candidate: a checkpoint with its data, from which it learns the joins after `through`
    serving  it decides from here on; the model before ends with the joins that this checkpoint has learned
    retired  the candidate was discarded before it served, and its record gives the reason

The first checkpoint of a loop begins line 0, which serves. The record of a decision has the number of its line. So
every model of the loop is a function of the log.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from onepass.log.records import Checkpoint
from onepass.log.store import Store

STAGED, SERVING, RETIRED = "staged", "serving", "retired"


class ModelLine(msgspec.Struct, kw_only=True):
    """One of the models that a loop has had, each with a number.

    - number: number of the model, from 0.
    - place: position in the log of the checkpoint with which the model begins.
    - through: position in the log after which the model learns rewards.
    - state: "staged" (a candidate), "serving", or "retired" (discarded, or another model took over).
    - end, ended: position of the last reward that the model learned, and of the record that ended the model; None while
      it goes on.
    - why: a sentence about the state.
    - served: True if the model ever decided.
    - whole: position of the last reward that the model had learned when it was last saved whole, as bytes, in the log.
    """

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
    """Models of a loop, read from its checkpoints.

    `each` maps numbers to models, and `serving` is the number of the model that decides.
    """

    each: dict[int, ModelLine] = {}
    serving: int = 0

    def add_checkpoint(self, record: Checkpoint) -> None:
        """Update the models of the loop by the next checkpoint record of the log."""
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
        """End the serving model when another model takes over, which has learned the same joins.

        `record` is the checkpoint of the model that takes over, and `why` the reason as a sentence.
        """
        before = self.each.get(self.serving)
        if before is not None and before.number != record.line and before.state == SERVING:
            before.state, before.end, before.why, before.ended = RETIRED, record.through, why, record.seq

    @property
    def candidate(self) -> ModelLine | None:
        """Candidate model of the loop, which may become the serving one; None if there is none."""
        return next((one for one in self.each.values() if one.state == STAGED), None)

    @property
    def next(self) -> int:
        """Number that the next model of the loop will get."""
        return max(self.each, default=-1) + 1


def read_lineage(store: Store, loop: str) -> ModelLineage:
    """Return the models of a loop, as the checkpoints of its log describe them."""
    found = ModelLineage()
    records: Iterable[Any] = store.read(kinds=["checkpoint"], loop=loop)
    for record in records:
        found.add_checkpoint(record)
    return found
