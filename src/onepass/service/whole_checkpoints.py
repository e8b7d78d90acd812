"""Whole checkpoints: those whose model the log itself holds, so that long logs can be read and verified in pieces.

    after `joins` joins, and 20 times the model's bytes of other records, whichever comes later

So a piece of the log between two of them is never long, and they cost at most a twentieth of the log. They follow from
what was learned, not from the time.
"""

from collections.abc import Callable, Iterable

from onepass.log.replay import Fold

SPARSE = 20  # bytes of other records for each byte of models in the log
BASE64 = 4 / 3  # bytes of a record for each of its model


class WholeCheckpoints:
    """When the next checkpoint of each of a loop's models is to be whole.

    joins: that are learned between two of them (0: never); written: gives the bytes that were written so far.
    """

    joins: int

    def __init__(self, written: Callable[[], int], joins: int = 0) -> None:
        self.joins, self._written = joins, written
        self._begun: dict[int, int] = {}  # by line, the bytes written at its last whole checkpoint
        self._sizes: dict[int, int] = {}  # by line, bytes of its model when it was last saved

    def resume(self, line: int, written: int) -> None:
        """Go on with a line for which a number of bytes was written before, since its last whole checkpoint."""
        self._begun[line] = -written

    def bytes_since(self, line: int) -> int:
        """Return the bytes written since the last whole checkpoint of a line."""
        now = self._written()
        return now - self._begun.setdefault(line, now)

    def is_due(self, folds: Iterable[Fold]) -> bool:
        """Whether the next checkpoint of one of these models is to be whole, as far as its size is known."""
        return any(self.is_due_for(fold, self._sizes.get(fold.line, 0)) for fold in folds)

    def is_due_for(self, fold: Fold, size: int) -> bool:
        """Whether a checkpoint of a model that has so many bytes is to be whole."""
        self._sizes[fold.line] = size
        enough = SPARSE * BASE64 * size
        return 0 < self.joins <= fold.joins and self.bytes_since(fold.line) >= enough

    def note_stored(self, fold: Fold) -> None:
        """Count anew, for the log holds a whole checkpoint of a model. Its own record is left out."""
        fold.joins = 0
        self._begun[fold.line] = self._written()
