"""Thread that maintains a loop's overview, fed by the writer, and by the log at the start and when it falls behind.

    after a start:   the file of sums, if it is of this log  ->  the log from there on  ->  records from the writer

A start reads only what was written since the last file, whatever the length of the log. The thread wakes a few times a
second, so that no decision waits for it.
"""

import contextlib
import math
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

import msgspec

from onepass.foundation import atomic_write
from onepass.log.store import Store, StoreError
from onepass.service.checkpoints import row_crc
from onepass.service.overview import Overview, Sums
from onepass.service.settings import LoopSettings
from onepass.service.writer import Writer

LOOK = 0.25  # seconds between two looks at what the writer told
HELD = 4_000  # records that wait to be looked at; beyond, the log is read
FEW = 50  # records that are taken at a time, half a millisecond of work: who decides waits no longer
BREATH = 0.002  # seconds until the next few are
KEEP = 10.0  # seconds between two files of sums
AGAIN = 1.0  # seconds before a log that could not be read is asked again
RECENT = 200  # records before the sums that are read again, to know the latest decisions
PAUSE = 500  # records read from the log before others may run


class OverviewFile(msgspec.Struct, frozen=True, kw_only=True):
    """File that caches the sums of an overview.

    `loop` and `crc`, the checksum of the record at position `sums.through`, identify the log.
    """

    loop: str
    crc: int | None
    sums: Sums


class OverviewThread(threading.Thread):
    """Thread that adds every record of a loop's log to the overview of the loop, until it is stopped.

    `settings` are the present settings of the loop, `store` its log, `loop` its name, and `place` the path of a file in
    which the sums are cached.
    """

    def __init__(self, settings: LoopSettings, store: Store, loop: str, place: Path) -> None:
        super().__init__(name=f"watcher of {loop}", daemon=True)
        self.store, self.loop, self.place = store, loop, place
        self._queue: deque[Any] = deque()
        self._behind, self._reading = True, False
        self._ending = threading.Event()
        self._lock = threading.Lock()  # of the overview
        sums = self._load()
        self._overview = Overview(settings, sums, lambda identity: store.find(loop, identity))
        self._saved_at, self._saved = time.monotonic(), self._overview.sums.through
        self._cached, self._asked = dict[str, Any](), -math.inf

    def _load(self) -> Sums | None:
        """Return the sums in the file, or None if they do not belong to this log."""
        try:
            kept = msgspec.json.decode(self.place.read_bytes(), type=OverviewFile)
            if kept.loop == self.loop and kept.crc is not None and kept.crc == row_crc(self.store, kept.sums.through):
                return kept.sums
        except (OSError, ValueError):
            pass
        return None

    def watch(self, writer: Writer) -> None:
        """Start the thread, and let the loop's writer report new records to it."""
        writer.watchers.append(self.add_records)
        self.start()

    def add_records(self, records: list[Any]) -> None:
        """Queue records of the log, in its order; called by the writer's thread."""
        if len(self._queue) < HELD and not self._behind:
            self._queue.extend(records)
        else:
            self._behind = True

    def to_dict(self) -> dict[str, Any]:
        """Return what the monitoring page shows, as a dict for JSON; `read` is the fraction of the log read so far."""
        self._look()
        with self._lock:
            through = self._overview.sums.through
            if time.monotonic() - self._asked >= LOOK:
                self._cached, self._asked = self._overview.to_dict(), time.monotonic()
            found = self._cached
        return {**found, "read": 1.0 if self.is_current else min(through / max(self.store.last, 1), 1.0)}

    @property
    def is_current(self) -> bool:
        """True if the thread has read the log, and waits for new records."""
        return not (self._behind or self._reading)

    @property
    def last_seq(self) -> int:
        """Sequence number of the last record in the overview."""
        return self._overview.sums.through

    @property
    def alarms(self) -> int:
        """Number of alarms that rewards differ from the model's predictions (drift.py)."""
        return self._overview.sums.drift.alarms

    def look(self) -> None:
        """Add the queued records to the overview, or read the log if there were too many.

        Raises StoreError if the log cannot be read.
        """
        self._look(BREATH)
        if self._behind:
            self._read()

    def stop(self) -> None:
        """Add the queued records, save the sums, and end."""
        self._ending.set()
        self.join()

    def run(self) -> None:
        while not self._ending.wait(LOOK):
            try:
                self.look()
                if time.monotonic() - self._saved_at >= KEEP:
                    self._save()
            except StoreError:
                self._ending.wait(AGAIN)
        with contextlib.suppress(StoreError):
            self._look()
            self._save()

    def _look(self, pause: float = 0.0) -> None:
        """Add the queued records, a few at a time, with a pause of `pause` seconds so that other threads run."""
        while True:
            with self._lock:
                if self._behind or self._reading:
                    return  # the log comes first
                for _ in range(min(FEW, len(self._queue))):
                    record = self._queue.popleft()
                    if record.seq > self._overview.sums.through:
                        self._overview.add_record(record)
            if not self._queue:
                return
            time.sleep(pause)

    def _read(self) -> None:
        """Add the records of the log that are missing in the overview; the queue waits meanwhile."""
        self._reading, self._behind, whole = True, False, False
        sums = self._overview.sums
        since = sums.through if self._overview.latest else max(sums.through - RECENT, 0)
        try:
            for count, record in enumerate(self.store.read(since, None, None, self.loop), 1):
                with self._lock:
                    self._overview.add_record(record)
                if count % PAUSE == 0:
                    time.sleep(0.0)
                    if self._ending.is_set():
                        return
            whole = True
        finally:
            self._behind, self._reading = self._behind or not whole, False

    def _save(self) -> None:
        """Write the sums to their file."""
        self._saved_at = time.monotonic()
        with self._lock:
            data, through = self._overview.to_bytes(), self._overview.sums.through
        if through == self._saved:
            return
        kept = OverviewFile(loop=self.loop, crc=row_crc(self.store, through), sums=msgspec.json.decode(data, type=Sums))
        with contextlib.suppress(OSError):
            atomic_write.write_atomically(self.place, msgspec.json.encode(kept))
            self._saved = through
