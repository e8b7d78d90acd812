"""Whole checkpoints: records of the log that contain a model, so that long logs can be read and verified in pieces.

A whole checkpoint is written once `joins` joins and other records of 20 times the model's size have come since the last
one, at the end of the batch that a learner reads. So the part of the log between two of them is never long, and they
take at most a twentieth of the log.
"""

from collections.abc import Callable, Iterable

from onepass.log.replay import Fold

SPARSE = 20  # bytes of other records for each byte of models in the log
BASE64 = 4 / 3  # bytes of a record for each of its model


class WholeCheckpoints:
    """Schedule of whole checkpoints: checkpoints whose model is stored in the log itself.

    `joins` is the number of rewarded decisions learned between two whole checkpoints (0: never). `written` is a
    function that returns the bytes of log written so far.
    """

    joins: int

    def __init__(self, written: Callable[[], int], joins: int = 0) -> None:
        self.joins, self._written = joins, written
        self._begun: dict[int, int] = {}  # by line, the bytes written at its last whole checkpoint
        self._sizes: dict[int, int] = {}  # by line, bytes of its model when it was last saved

    def resume(self, line: int, written: int) -> None:
        """Continue with the model of number `line`.

        `written` is the number of bytes of log that were written since its last whole checkpoint.
        """
        self._begun[line] = -written

    def bytes_since(self, line: int) -> int:
        """Return the bytes of log written since the last whole checkpoint of the model with the number `line`."""
        now = self._written()
        return now - self._begun.setdefault(line, now)

    def is_due(self, folds: Iterable[Fold]) -> bool:
        """Return True if one of the models in `folds` should be stored in the log with its next checkpoint.

        The decision uses the last known sizes of the models.
        """
        return any(self.is_due_for(fold, self._sizes.get(fold.line, 0)) for fold in folds)

    def is_due_for(self, fold: Fold, size: int) -> bool:
        """Return True if a checkpoint of a model with `size` bytes should be stored in the log with the model."""
        self._sizes[fold.line] = size
        enough = SPARSE * BASE64 * size
        return 0 < self.joins <= fold.joins and self.bytes_since(fold.line) >= enough

    def note_stored(self, fold: Fold) -> None:
        """Restart a model's counts of learned decisions and of logged bytes, after the model was stored in the log."""
        fold.joins = 0
        self._begun[fold.line] = self._written()
