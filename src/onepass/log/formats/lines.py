"""Reading of files line by line with numbers, and writing of files that appear when they are complete."""

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
    """Lines of the file `path` without their line ends, as (number from 1, bytes).

    With bad="refuse", a line that cannot be used raises ValueError with its number. With "skip" it is left out, and
    `report` is called with its number and the reason.
    """

    path: Path

    def __init__(self, path: str | Path, bad: str = "refuse", report: Report | None = None) -> None:
        self.path, self.bad, self._report = Path(path), check.choice("bad", bad, ("refuse", "skip")), report

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        with open_binary(self.path) as file:
            for number, line in enumerate(file, 1):
                yield number, line.rstrip(b"\r\n")

    def reject(self, number: int, reason: object) -> None:
        """Raise ValueError for a bad line if `bad` is "refuse", else pass its number and the reason to `report`."""
        if self.bad == "refuse":
            raise ValueError(f"{self.path}, line {number}: {reason}") from None
        if self._report is not None:
            self._report(number, str(reason))


def open_binary(path: Path) -> IO[bytes]:
    """Open a file for reading, decompressed if its name ends in `.gz`."""
    return gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb", buffering=BUFFER)  # type: ignore[return-value]


@contextmanager
def open_atomic(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a file for writing under a temporary name until it is complete; a failure leaves nothing."""
    place = Path(path)
    part = place.with_name(f"{place.name}.{os.getpid()}.part")
    try:
        with gzip.open(part, "wb") if place.suffix == ".gz" else open(part, "wb", buffering=BUFFER) as file:
            yield file  # type: ignore[misc]
        os.replace(part, place)
    finally:
        part.unlink(missing_ok=True)
