"""Pieces of a loop's log, each verified separately: from one checkpoint with its model to the next.

    whole checkpoint  ->  decide again, and learn  ->  equal to the next whole checkpoint in every bit, or not

If every checkpoint equals the result of the piece before it, the pieces form a chain of trust. They may be verified in
any order and by several processes. The sum over all pieces is the result of one pass over the whole log.

Decisions are made by models that lag behind the log. So a piece reads on beyond its end, until more than 1,000
decisions of later models have come, to find decisions of its own models. The next piece leaves these out
(verification.py).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import msgspec

from onepass.log.model_lineage import ModelLineage
from onepass.log.records import Checkpoint
from onepass.log.replay import Fold, bandit_from_checkpoint
from onepass.log.store import Row, Store, StoreError, record_from_row
from onepass.log.verification import (
    DAMAGED,
    LISTED,
    Boundary,
    LogPart,
    SavedDigest,
    Verified,
    Verifier,
    digest_from_checkpoint,
)

READ = ("decision", "join", "eviction", "forgotten")


class Piece(NamedTuple):
    """Part of the log of one of a loop's models, between two checkpoints that contain the model.

    - loop, line: name of the loop, and number of the model.
    - begin, seq, digest: for the first checkpoint, the position of the last reward that the model had learned, the
      position of the checkpoint in the log, and the digest of the model.
    - end, end_seq, end_digest: the same numbers of the second checkpoint; None if the part goes on to the end of the
      log.
    - first: True if no part comes before.
    - begun: position of the reward after which the model began to learn.
    - stop: position of the last reward that the model learns, None for no end.
    - ended: position of the record that ended the model, or None.
    - saved: checkpoints with which the repeated model is compared.
    """

    loop: str
    line: int
    begin: int
    seq: int
    digest: str
    end: int | None
    end_seq: int | None
    end_digest: str | None
    first: bool
    begun: int
    stop: int | None
    ended: int | None
    saved: tuple[SavedDigest, ...]


class CheckedPiece(NamedTuple):
    """Result of verifying a part of a log.

    `piece` is the part, `found` the result, and `read` the position up to which the log was read.
    """

    piece: Piece
    found: Verified
    read: int


def find_pieces(store: Store, loop: str, line: int | None = None, until: int | None = None) -> list[Piece]:
    """Return the parts of a loop's log to be verified, split at the checkpoints that contain the model.

    A model without such a checkpoint has no parts. `line` is the number of one of the loop's models; None takes all,
    one after the other. `until` is the last position, None for the end of the log.
    """
    lines, saved = ModelLineage(), dict[int, list[SavedDigest]]()
    for record in store.read(0, until, ("checkpoint",), loop):
        lines.add_checkpoint(record)
        if record.digest:
            saved.setdefault(record.line, []).append(digest_from_checkpoint(record))
    found = []
    for number, each in sorted(saved.items()):
        if line in (None, number) and number in lines.each:
            found += _cut(loop, number, each, lines)
    return found


def _cut(loop: str, line: int, saved: list[SavedDigest], lines: ModelLineage) -> list[Piece]:
    """Return the pieces of model `line` of a loop, split at its checkpoints `saved`, which are in the log's order.

    `lines` is the history of the loop's models.
    """
    one = lines.each[line]
    begin = next(each for each in saved if each.whole)
    rest = sorted(each for each in saved if each.through >= begin.through and each.seq > begin.through)
    bounds = [begin]
    for each in rest:
        if each.whole and each.through > bounds[-1].through:
            bounds.append(each)
    pieces = []
    for place, bound in enumerate(bounds):
        end = bounds[place + 1] if place + 1 < len(bounds) else None
        mine = tuple(
            each
            for each in rest
            if (each.through > bound.through or place == 0) and (end is None or each.through <= end.through)
        )
        through, seq, digest = (None, None, None) if end is None else (end.through, end.seq, end.digest)
        start = (loop, line, bound.through, bound.seq, bound.digest)
        pieces.append(Piece(*start, through, seq, digest, place == 0, one.through, one.end, one.ended, mine))
    return pieces


def merge_pieces(pieces: Sequence[Piece]) -> Piece:
    """Return one part of a log that consists of the consecutive parts `pieces`, to be verified at once."""
    last = pieces[-1]
    saved = tuple(one for piece in pieces for one in piece.saved)
    return pieces[0]._replace(end=last.end, end_seq=last.end_seq, end_digest=last.end_digest, saved=saved)


def verify_piece(
    store: Store, piece: Piece, until: int | None = None, progress: Callable[[int], object] | None = None
) -> CheckedPiece:
    """Repeat the decisions in a part of a log, and compare decisions and models with the log.

    Parameters
    ----------
    store : Store
        The log.
    piece : Piece
        The part of the log between two checkpoints.
    until : int, default None
        Last position to read. None reads as far as needed.
    progress : callable, default None
        Is called with every position that was read.

    Returns
    -------
    CheckedPiece
        The result.
    """
    try:
        bandit = bandit_from_checkpoint(read_checkpoint(store, piece.seq))
    except StoreError:
        return CheckedPiece(piece, sum_results([])._replace(left={DAMAGED: 1}, others=(piece.seq,)), piece.seq)
    fold = Fold(store, piece.loop, bandit, piece.begin, line=piece.line, end=piece.stop, begun=piece.begun)
    if not piece.first and not store.is_indexed:
        _add_earlier_decisions(fold, piece.end if until is None or piece.end is None else min(piece.end, until))
    begin = None if piece.first else _make_boundary(store, piece.begin, piece.seq)
    end = None if piece.end is None or piece.end_seq is None else _make_boundary(store, piece.end, piece.end_seq)
    check, read = Verifier(fold, until, LogPart(begin, end, piece.saved)), piece.begin
    for row in _read_rows(store, piece, until):
        read = row.seq
        is_later = read > _last_learned(piece, read)
        if is_later and piece.end is not None:
            check.add_later(_decode_head(row), read, partial(record_from_row, row))
        elif not is_later or _concerns(row, piece.line):
            check.add_record(record_from_row(row))
        if progress is not None:
            progress(read)
        if check.is_over:
            break
    return CheckedPiece(piece, check.finish(), read)


def _last_learned(piece: Piece, last: int) -> int:
    """Return the position up to which a piece needs all records; later ones matter only as decisions of its model.

    If the piece needs all records to the end of the log, the result is `last`.
    """
    if piece.end is not None:
        return piece.end
    return last if piece.ended is None else max(piece.ended, *(one.through for one in piece.saved), 0)


def _read_rows(store: Store, piece: Piece, until: int | None) -> Iterator[Row]:
    """Yield the rows that a piece may need, up to the position `until`, if it is given."""
    last = _last_learned(piece, -1)
    middle = until if last < 0 else last if until is None else min(last, until)
    yield from store.rows(piece.begin, middle, READ, piece.loop)
    if middle is not None and middle != until:
        yield from store.rows(middle, until, ("decision",), piece.loop)


class CanaryHead(msgspec.Struct):
    """Candidate model that took part in a decision: its number `line`, and the position `through` it had learned."""

    line: int = 0
    through: int = 0


class DecisionHead(msgspec.Struct):
    """Models that made a decision.

    `line` is the number of the serving model, `through` the position through which it had learned, and `rounds` its
    number of rows. `canary` is the candidate, if there was one.
    """

    line: int = 0
    through: int | None = None
    rounds: int = 0
    canary: CanaryHead | None = None


_decoder = msgspec.json.Decoder(DecisionHead)


def _decode_head(row: Row) -> Any:
    """Decode only the models that made a decision; raise StoreError if the row is damaged."""
    try:
        return _decoder.decode(row.body)
    except ValueError:
        return record_from_row(row)


def _concerns(row: Row, line: int) -> bool:
    """Return True if the decision in `row` was made by the model with the number `line`, or with it as a candidate."""
    found = _decode_head(row)
    return line in (found.line, None if found.canary is None else found.canary.line)


def _add_earlier_decisions(fold: Fold, end: int | None) -> None:
    """Give `fold` the decisions before its position whose joins come after it, up to the position `end`.

    None means the end of the log, which is read once.
    """
    made, joined = set[str](), dict[str, None]()
    for row in fold.store.rows(fold.through, end, ("decision", "join"), fold.loop):
        if row.event is not None and row.kind == "decision":
            made.add(row.event)
        elif row.event is not None and row.event not in made:
            joined.setdefault(row.event)
    for row in fold.store.rows_about_many(fold.loop, joined.keys()) if joined else ():
        if row.kind == "decision" and row.seq <= fold.through:
            fold.add_decision(record_from_row(row))


def read_checkpoint(store: Store, seq: int) -> Checkpoint:
    """Return the checkpoint at a position; raise StoreError if there is none."""
    record = next(store.read(seq - 1, seq), None)
    if not isinstance(record, Checkpoint):
        raise StoreError(f"record {seq} is no checkpoint any more")
    return record


def _make_boundary(store: Store, through: int, seq: int) -> Boundary:
    """Return the boundary at the checkpoint at position `seq`, whose model has learned up to the position `through`.

    The model is read only when its number of rows is needed.
    """

    @cache
    def rounds() -> int:
        return int(bandit_from_checkpoint(read_checkpoint(store, seq)).n_learned)

    return Boundary(through, rounds)


def sum_results(found: Iterable[Verified]) -> Verified:
    """Return the sum of verification results `found`, one for each of several parts of a log."""
    total = Verified(0, 0, 0, 0, (), {}, 0, 0, (), 0)
    for one in found:
        left = {**total.left}
        for reason, count in one.left.items():
            left[reason] = left.get(reason, 0) + count
        total = Verified(
            decisions=total.decisions + one.decisions,
            equal=total.equal + one.equal,
            undrawn=total.undrawn + one.undrawn,
            wrong=total.wrong + one.wrong,
            mismatches=(*total.mismatches, *one.mismatches)[:LISTED],
            left=left,
            joins=total.joins + one.joins,
            checkpoints=total.checkpoints + one.checkpoints,
            others=tuple(dict.fromkeys((*total.others, *one.others))),
            canaries=total.canaries + one.canaries,
        )
    return total
