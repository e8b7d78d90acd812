"""Decisions that wait for outcomes, of which only a deadline and two sequence numbers are kept in memory.

    block = rows (due, seq, first), sorted by `due`;  a heap of blocks gives the earliest deadline

A row takes 24 bytes. A block never changes, so a checkpoint writes it to a file once, named by the digest of its bytes.
Everything else about a decision is read from the log when its deadline has passed (join.py).
"""

import hashlib
import heapq
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from onepass.foundation import atomic_write

ENDING = ".waiting"  # of a block's file
DIGEST = 32  # characters of a digest in a file's name
COLUMNS = 3  # of a row: due, seq, first


class Block:
    """Array of n decisions that wait for outcomes, sorted by their deadlines.

    - rows: array (3, n) with the deadlines in microseconds, the sequence numbers of the decisions in the log, and the
      sequence numbers of the first records about them.
    - done: number of decisions at the beginning of the array that no longer wait (default 0).
    - name: name of the file of the block, None if it was not written.
    """

    __slots__ = ("done", "name", "oldest", "rows")

    def __init__(self, rows: np.ndarray, done: int = 0, name: str | None = None) -> None:
        self.rows, self.done, self.name = rows, done, name
        self.oldest = np.minimum.accumulate(rows[2, ::-1])[::-1]  # first place of this row and all later ones

    def __len__(self) -> int:
        return self.rows.shape[1] - self.done

    def __lt__(self, other: "Block") -> bool:
        return self.next_due() < other.next_due()

    def next_due(self) -> int:
        """Return the earliest deadline of the block, in microseconds."""
        return int(self.rows[0, self.done])


class Backlog:
    """Priority queue of decisions that wait for outcomes, by their deadlines; it holds blocks of decisions."""

    def __init__(self) -> None:
        self._heap: list[Block] = []
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def blocks(self) -> list[Block]:
        """All blocks with a decision that waits, in arbitrary order."""
        return [*self._heap]

    def add(self, rows: Iterable[tuple[int, int, int]]) -> None:
        """Add decisions to the queue.

        `rows` are triples: deadline in microseconds, sequence number of the decision, and sequence number of the first
        record about it.
        """
        sorted_rows = sorted(rows)
        if sorted_rows:
            self.put(Block(np.array(sorted_rows, np.int64).T.copy()))

    def put(self, block: Block) -> None:
        """Add a block of waiting decisions."""
        if len(block):
            heapq.heappush(self._heap, block)
            self._length += len(block)

    def next_due(self) -> int | None:
        """Return the earliest deadline in microseconds, or None if nothing waits."""
        return self._heap[0].next_due() if self._heap else None

    def pop(self) -> tuple[int, int, int]:
        """Remove the decision with the earliest deadline, and return the numbers of its row.

        They are the deadline in microseconds, and the sequence numbers of the decision and of the first record about
        it.
        """
        block = self._heap[0]
        due, seq, first = map(int, block.rows[:, block.done])
        block.done += 1
        self._length -= 1
        if len(block):
            heapq.heapreplace(self._heap, block)
        else:
            heapq.heappop(self._heap)
        return due, seq, first

    def first(self) -> int | None:
        """Return the smallest sequence number of a record about a waiting decision, or None if nothing waits."""
        return min((int(block.oldest[block.done]) for block in self._heap), default=None)


def save_block(folder: Path, block: Block) -> str:
    """Write a block of waiting decisions into a folder, unless it was written before; return the file's name."""
    if block.name is None or not (folder / block.name).exists():
        data = block.rows.astype("<i8").tobytes()
        name = f"{hashlib.sha256(data).hexdigest()[:DIGEST]}{ENDING}"
        atomic_write.write_atomically(folder / name, data)
        block.name = name
    return block.name


def load_block(folder: Path, name: str, done: int) -> Block:
    """Read a block from its file; raise OSError if it is missing, ValueError if it is damaged.

    `done` is the number of rows that no longer wait.
    """
    data = (folder / name).read_bytes()
    if hashlib.sha256(data).hexdigest()[:DIGEST] != name.removesuffix(ENDING):
        raise ValueError(f"{folder / name} is damaged: its digest is another")
    return Block(np.frombuffer(data, "<i8").reshape(COLUMNS, -1).astype(np.int64, copy=False), done, name)
