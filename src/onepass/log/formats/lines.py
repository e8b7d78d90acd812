"""Lines of a file: streamed, numbered, and what becomes of a bad one. Files appear when they are whole."""

import gzip
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from onepass.foundation import check

Report = Callable[[int, str], object]  # the number of a bad line, from 1, and what is wrong with it
BUFFER = 1 << 20  # bytes read at once


class Lines:
    """The lines of a file, without their ends, as (number from 1, bytes).

    bad: "refuse": a bad line is a ValueError with its number; "skip": it is left out and told to `report`.
    """

    path: Path

    def __init__(self, path: str | Path, bad: str = "refuse", report: Report | None = None) -> None:
        self.path, self.bad, self._report = Path(path), check.choice("bad", bad, ("refuse", "skip")), report

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        with open_binary(self.path) as file:
            for number, line in enumerate(file, 1):
                yield number, line.rstrip(b"\r\n")

    def reject(self, number: int, reason: object) -> None:
        """What becomes of a bad line."""
        if self.bad == "refuse":
            raise ValueError(f"{self.path}, line {number}: {reason}") from None
        if self._report is not None:
            self._report(number, str(reason))


def open_binary(path: Path) -> IO[bytes]:
    """A file to read, decompressed if its name ends in `.gz`."""
    return gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb", buffering=BUFFER)  # type: ignore[return-value]


@contextmanager
def open_atomic(path: str | Path) -> Iterator[IO[bytes]]:
    """A file to write, under another name until it is whole; nothing is left of one that failed."""
    place = Path(path)
    part = place.with_name(f"{place.name}.{os.getpid()}.part")
    try:
        with gzip.open(part, "wb") if place.suffix == ".gz" else open(part, "wb", buffering=BUFFER) as file:
            yield file  # type: ignore[misc]
        os.replace(part, place)
    finally:
        part.unlink(missing_ok=True)
