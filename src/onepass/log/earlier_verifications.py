"""Sealed months are verified once: a file beside them says what was found, and of which bytes.

    verified.json {files: name -> SHA-256, pieces: [...]}      trusted while every file up to there has these bytes

The file says what somebody found who could write the folder. Who does not trust them verifies all again.
"""

import contextlib
import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

import msgspec

from onepass.foundation import atomic_write
from onepass.log.archive_view import JoinedStore
from onepass.log.pieces import CheckedPiece, Piece
from onepass.log.store import Store
from onepass.log.verification import Verified

NAME = "verified.json"
FORM = 1


class VerifiedPiece(msgspec.Struct, frozen=True, kw_only=True):
    """A piece that was verified. seq, end_seq, digest, end_digest: as of a `Piece`; read: the place up to which it was
    read; found: nothing wrong."""

    loop: str
    line: int
    seq: int
    digest: str
    end_seq: int
    end_digest: str
    read: int
    found: Verified


class SavedVerifications(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the file. files: by their names, the digests of those that were read whole; form: of this file."""

    form: int = FORM
    files: dict[str, str] = {}
    pieces: list[VerifiedPiece] = []


class EarlierVerifications:
    """What was verified of the sealed months of a log.

    through: the place up to which the sealed files are those that were verified; months: the last places of the files.
    """

    through: int
    months: list[int]

    def __init__(self, folder: Path, segments: Sequence[tuple[int, int, Path]], again: bool = False) -> None:
        self._place, self._segments = folder / NAME, segments
        self._files = {path.name: _file_digest(path) for _, _, path in segments}
        known = SavedVerifications()
        if not again:
            with contextlib.suppress(OSError, ValueError):
                read = msgspec.json.decode(self._place.read_bytes(), type=SavedVerifications)
                known = read if read.form == FORM else known
        self.months = [last for _, last, _ in segments]
        self.through = self._last_unchanged(known.files)
        self._pieces = {
            (one.loop, one.line, one.seq): one
            for one in known.pieces
            if max(one.read, one.end_seq) <= self.through and one.found.ok
        }

    @classmethod
    def from_store(cls, store: Store, again: bool = False) -> Self | None:
        """Read what is known of a store; None where it has no sealed months. again: trust nothing (default False)."""
        archive = store.archive if isinstance(store, JoinedStore) else store
        segments = getattr(archive, "segments", None)
        folder = getattr(archive, "folder", None)
        return None if not segments or folder is None else cls(folder, segments, again)

    def _last_unchanged(self, files: dict[str, str]) -> int:
        """The last place of the files, from the first one on without a gap, whose digests are these."""
        last = self._segments[0][0] - 1
        for first, end, path in self._segments:
            if first != last + 1 or files.get(path.name) != self._files[path.name]:
                break
            last = end
        return last

    def skip_verified(self, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Verified]]:
        """Take those that were verified from the pieces of a model, which follow one another: those that are left, and
        what was found of the others."""
        left, found, skipped = list[Piece](), list[Verified](), -1
        ends = {piece.end_seq: place for place, piece in enumerate(pieces) if piece.end_seq is not None}
        for place, piece in enumerate(pieces):
            if place <= skipped:
                continue
            known = self._pieces.get((piece.loop, piece.line, piece.seq))
            end = None if known is None else ends.get(known.end_seq)
            if known is not None and end is not None and end >= place and _has_same_digests(known, piece, pieces[end]):
                found.append(known.found)
                skipped = end
            else:
                left.append(piece)
        return left, found

    def save(self, checked: Iterable[CheckedPiece]) -> None:
        """Say in the file what was found, after all rows of the sealed files were looked at and no damage was found.
        Files that have changed meanwhile are left out, and so is all where the folder cannot be written."""
        with contextlib.suppress(OSError):
            files = {path.name: _file_digest(path) for _, _, path in self._segments}
            last = self._last_unchanged(files)
            new = [one for one in map(_make_verified_piece, checked) if one is not None and one.read <= last]
            pieces = {**self._pieces, **{(one.loop, one.line, one.seq): one for one in new if one.end_seq <= last}}
            files = {path.name: files[path.name] for _, end, path in self._segments if end <= last}
            atomic_write.write_atomically(
                self._place, msgspec.json.encode(SavedVerifications(files=files, pieces=[*pieces.values()]))
            )


def _make_verified_piece(one: CheckedPiece) -> VerifiedPiece | None:
    """What is kept of a piece; None where something is wrong with it, or it has no end."""
    piece = one.piece
    if piece.end_seq is None or piece.end_digest is None or not one.found.ok:
        return None
    return VerifiedPiece(
        loop=piece.loop, line=piece.line, seq=piece.seq, digest=piece.digest, end_seq=piece.end_seq,
        end_digest=piece.end_digest, read=one.read, found=one.found,
    )  # fmt: skip


def _has_same_digests(known: VerifiedPiece, begin: Piece, end: Piece) -> bool:
    """Whether what was verified begins with the checkpoint of a piece, and ends with that of another."""
    return (known.digest, known.end_digest) == (begin.digest, end.end_digest)


def _file_digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
