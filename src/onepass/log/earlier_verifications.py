"""Results of earlier verifications of archived months, stored in a file beside them.

    verified.json {files: name -> SHA-256, pieces: [...]}      valid while every file up to there has these bytes

The file is as trustworthy as everybody who can write the folder. The option `again` verifies all months again.
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
    """Part of a log, between two checkpoints of a model, that was verified.

    - loop, line: name of the loop, and number of the model.
    - seq, digest: position of the first checkpoint, and digest of its model.
    - end_seq, end_digest: position of the second checkpoint, and digest of its model.
    - read: position up to which the log was read.
    - found: result, without an error.
    """

    loop: str
    line: int
    seq: int
    digest: str
    end_seq: int
    end_digest: str
    read: int
    found: Verified


class SavedVerifications(msgspec.Struct, frozen=True, kw_only=True):
    """Content of a file of verification results.

    `files` holds the digests of archive files by name, `pieces` the verified parts, and `form` is the file's version.
    """

    form: int = FORM
    files: dict[str, str] = {}
    pieces: list[VerifiedPiece] = []


class EarlierVerifications:
    """Results of earlier verifications of the archived months of a log.

    `through` is the position up to which the files are unchanged since they were verified. `months` are the last
    positions of the files. The arguments are the folder of the archive, its files `segments` as (first position, last
    position, path), and `again`, True to ignore saved results.
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
        """Read the saved results of a store; None without archived months. With `again`, saved results are ignored."""
        archive = store.archive if isinstance(store, JoinedStore) else store
        segments = getattr(archive, "segments", None)
        folder = getattr(archive, "folder", None)
        return None if not segments or folder is None else cls(folder, segments, again)

    def _last_unchanged(self, files: dict[str, str]) -> int:
        """Return the last position of the files that, from the first one on without a gap, still have these digests."""
        last = self._segments[0][0] - 1
        for first, end, path in self._segments:
            if first != last + 1 or files.get(path.name) != self._files[path.name]:
                break
            last = end
        return last

    def skip_verified(self, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Verified]]:
        """Return the parts of a log that are still to be verified, and the known results of all other parts.

        `pieces` are consecutive parts of the log.
        """
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
        """Write the results `checked` to the file, after all rows of the archive were read without damage.

        Files that have changed meanwhile are left out. Nothing is written if the folder is read-only.
        """
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
    """Return the entry for a piece; None if it has an error or no end."""
    piece = one.piece
    if piece.end_seq is None or piece.end_digest is None or not one.found.ok:
        return None
    return VerifiedPiece(
        loop=piece.loop, line=piece.line, seq=piece.seq, digest=piece.digest, end_seq=piece.end_seq,
        end_digest=piece.end_digest, read=one.read, found=one.found,
    )  # fmt: skip


def _has_same_digests(known: VerifiedPiece, begin: Piece, end: Piece) -> bool:
    """Return True if a verified piece, `known`, begins and ends with the same models as the pieces of a log.

    The digest of its first model is compared with that at the start of `begin`, and the digest of its last model with
    that at the end of `end`.
    """
    return (known.digest, known.end_digest) == (begin.digest, end.end_digest)


def _file_digest(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
