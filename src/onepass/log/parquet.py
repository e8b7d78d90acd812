"""Store in Parquet files: past months, compressed, for polars and other programs.

A batch is one file, named by its positions: `00000000000000000001-00000000000000012345.parquet`. So append whole
months, not single decisions. A file is written under a temporary name, read back and renamed. If the process is killed,
the old files are unchanged. The columns are those of a `Row`: `body` is the record as JSON.
"""

import io
import threading
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple, final

try:
    import polars as pl
except ModuleNotFoundError:
    raise ModuleNotFoundError("ParquetStore needs polars: pip install onepass[log]", name="polars") from None

from onepass.foundation import atomic_write
from onepass.log.store import Damage, Row, Store, StoreError, assign_places, erase_row

DIGITS = 20  # of a place in a file's name: all of a 64-bit number
PAGE = 10_000  # rows decompressed at a time
LEVEL = 7  # of zstd: a third smaller than 1, and a month is written once
SCHEMA = {
    "seq": pl.Int64, "loop": pl.String, "kind": pl.String, "event": pl.String, "subject": pl.String, "once": pl.String,
    "time": pl.Int64, "body": pl.Binary, "crc": pl.Int64,
}  # fmt: skip


class Segment(NamedTuple):
    """File `path` of a Parquet store with the rows from position `first` to `last`; empty if first = last + 1."""

    first: int
    last: int
    path: Path


@final
class ParquetStore(Store):
    """Store that keeps records in a folder of Parquet files, for one writing process at a time.

    Parameters
    ----------
    folder : str or Path
        The folder, made if it does not exist.

    Raises
    ------
    StoreError
        If the folder cannot be read.
    """

    folder: Path

    def __init__(self, folder: str | Path) -> None:
        self.folder, self._closed = Path(folder), False
        self._lock = threading.RLock()
        with self._translate_errors():
            self.folder.mkdir(parents=True, exist_ok=True)

    def put(self, rows: list[Row]) -> list[int]:
        with self._lock:
            seqs, new = assign_places(rows, self._find_stored(rows), self.bounds()[1])
            if new:
                self._write(new[0].seq, new[-1].seq, new)
            return seqs

    def _find_stored(self, rows: list[Row]) -> dict[tuple[str, str], int]:
        """Return the positions of those rows that are stored already, by (loop, `Row.once`)."""
        names = pl.Series("once", [row.once for row in rows if row.once is not None], pl.String)
        found: dict[tuple[str, str], int] = {}
        for segment in self._segments() if len(names) else ():
            with self._translate_errors():
                held = pl.scan_parquet(segment.path).select("loop", "once", "seq").filter(pl.col("once").is_in(names))
                found.update({(loop, once): seq for loop, once, seq in held.collect().iter_rows()})
        return found

    def rows(self, since: int, until: int | None, kinds: Collection[str] | None, loop: str | None) -> Iterator[Row]:
        while True:
            with self._lock:
                segment = next((one for one in self._segments() if one.last > since), None)
            if segment is None or (until is not None and segment.first > until):
                return
            yield from self._segment_rows(segment, since, until, kinds, loop)
            since = segment.last

    def _segment_rows(
        self, segment: Segment, since: int, until: int | None, kinds: Collection[str] | None, loop: str | None
    ) -> Iterator[Row]:
        """Yield the rows of one file whose position is above `since` and at most `until`.

        Only rows of one of the `kinds` and of the loop are yielded; None allows all of them.
        """
        with self._translate_errors():
            frame = pl.scan_parquet(segment.path)
        for start in range(max(since + 1 - segment.first, 0), segment.last + 1 - segment.first, PAGE):
            with self._translate_errors():
                page = frame.slice(start, PAGE).collect().rows()
            for row in map(Row._make, page):
                if until is not None and row.seq > until:
                    return
                if (kinds is None or row.kind in kinds) and loop in (None, row.loop):
                    yield row

    def rows_about(self, loop: str, event: str) -> list[Row]:
        return self._select((pl.col("loop") == loop) & (pl.col("event") == event))

    @property
    def is_indexed(self) -> bool:
        return False

    def rows_about_many(self, loop: str, events: Collection[str]) -> list[Row]:
        wanted = pl.Series("event", [*events], pl.String)
        return self._select((pl.col("loop") == loop) & pl.col("event").is_in(wanted.implode()))

    def _select(self, condition: pl.Expr) -> list[Row]:
        """Return the rows for which a condition holds."""
        found: list[Row] = []
        with self._lock:
            for segment in self._segments():
                with self._translate_errors():
                    part = pl.scan_parquet(segment.path).filter(condition).collect()
                found += map(Row._make, part.rows())
        return found

    def decisions_of(self, subject: str) -> set[tuple[str, str]]:
        named = self._select(pl.col("subject") == subject)
        return {(row.loop, row.event) for row in named if row.event is not None}

    def erase(self, subject: str, events: Collection[tuple[str, str]] = ()) -> int:
        with self._lock:
            every = self.decisions_of(subject).union(events)
            among = pl.col("event").is_in([event for _, event in every])
            gone = {row.seq for row in self._select(pl.col("subject") == subject)}
            gone.update(row.seq for row in self._select(among) if (row.loop, row.event) in every)
            for segment in self._segments():
                if any(segment.first <= seq <= segment.last for seq in gone):
                    rows = self._segment_rows(segment, 0, None, None, None)
                    self._write(
                        segment.first, segment.last, [erase_row(row) if row.seq in gone else row for row in rows]
                    )
            return len(gone)

    def drop(self, seq: int) -> int:
        with self._lock:
            first, last = self.bounds()
            if seq <= first:
                return 0
            for segment in self._segments():
                if segment.last < seq and segment.last != last:
                    segment.path.unlink()
                elif segment.first < seq:
                    self._write(seq, segment.last, list(self._segment_rows(segment, seq - 1, None, None, None)))
                    segment.path.unlink()
            return seq - first

    def bounds(self) -> tuple[int, int]:
        with self._lock:
            segments = self._segments()
        return (segments[0].first, segments[-1].last) if segments else (1, 0)

    def start(self, seq: int) -> None:
        with self._lock:
            before = self._segments()
            self._write(seq, seq - 1, [])
            for segment in before:  # empty ones, that said where the next place was
                segment.path.unlink()

    def inspect(self) -> Iterator[Damage]:
        for segment in self._segments():
            try:
                with self._translate_errors():
                    frame = pl.scan_parquet(segment.path)
                    schema, height = frame.collect_schema(), frame.select(pl.len()).collect().item()
            except StoreError as error:
                yield Damage(segment.first, str(error))
                continue
            if dict(schema) != SCHEMA or height != segment.last - segment.first + 1:
                yield Damage(segment.first, f"{segment.path.name} has other columns or rows than its name says")

    def close(self) -> None:
        self._closed = True

    @property
    def segments(self) -> list[Segment]:
        """Valid files of the store, in the order of the positions of their records."""
        with self._lock:
            return self._segments()

    def _segments(self) -> list[Segment]:
        """Return the valid files in order.

        Of two files with the same end, one replaces the other: the one that begins later, after a drop, is valid.
        """
        if self._closed:
            raise StoreError("the store is closed")
        found: dict[int, Segment] = {}
        with self._translate_errors():
            for path in sorted(self.folder.glob("*-*.parquet")):
                first, _, last = path.stem.partition("-")
                if first.isdecimal() and last.isdecimal():
                    found[int(last)] = Segment(int(first), int(last), path)
        return [found[last] for last in sorted(found)]

    def _write(self, first: int, last: int, rows: list[Row]) -> None:
        """Write a file of rows, completely or not at all; `first` and `last` are their positions, and in its name."""
        columns = pl.DataFrame(rows, schema=SCHEMA, orient="row")
        data = io.BytesIO()
        columns.write_parquet(data, compression="zstd", compression_level=LEVEL, row_group_size=PAGE)
        with self._translate_errors("; nothing of it was stored, all that was is still there"):
            atomic_write.write_atomically(
                self.folder / f"{first:0{DIGITS}d}-{last:0{DIGITS}d}.parquet", data.getvalue()
            )

    def _translate_errors(self, loss: str = "") -> "_ErrorTranslator":
        return _ErrorTranslator(self.folder, loss)

    def __repr__(self) -> str:
        return f"ParquetStore({str(self.folder)!r})"


class _ErrorTranslator:
    """Context manager that turns errors of the disk and of polars into StoreError.

    The message names the store's `folder`, and `loss`, at its end, says what was not stored.
    """

    folder: Path

    def __init__(self, folder: Path, loss: str) -> None:
        self.folder, self._loss = folder, loss

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError | pl.exceptions.PolarsError) and not isinstance(error, StoreError):
            raise StoreError(f"the store {self.folder}: {error}{self._loss}") from error
