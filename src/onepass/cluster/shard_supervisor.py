"""Shards of a bandit, or workers of a stream: each is told what changes it, in order, and comes back where it is lost.

    lost shard = what was kept of it at the last cut + what it was told since, again

What shards are told is kept until the next cut. A shard that may have done something whose answer was lost is asked
again: it knows by `seq` what it has done. Without a folder there are no cuts, nothing is kept, and a lost shard is
`ShardLost`.
"""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from onepass.cluster.exactly_once import BusyTime, IdempotentWorker
from onepass.cluster.transport import LOST, Transport

TRIES = 5  # of one call: a shard that is lost each time will be lost again


class ShardLost(RuntimeError):
    """A shard is gone, and nothing was kept from which it could come back."""


class ShardHandle:
    """A shard, what it was told since the last cut, and what it comes back from, a file (None: it began then)."""

    def __init__(self, shard: Any, seq: int, file: Any):
        self.shard, self.seq, self.file = shard, seq, file
        self.changes: list[tuple[Any, ...]] = []


class ShardSupervisor:
    """Shards by their numbers.

    part: begins one, from what was kept of it; links: how they are reached; keeps: whether what they are told is kept.
    """

    def __init__(self, part: Callable[[Any], Any], transport: Transport, keep_changes: bool):
        self.part, self.transport, self.keep_changes = partial(IdempotentWorker, part), transport, keep_changes
        self.members: dict[int, ShardHandle] = {}
        self.dropped_versions: list[int] = []  # published versions that nobody reads any more
        self.messages = 0  # sent
        self.recovered = 0  # shards that were lost and came back

    def drop_version(self, version: int) -> None:
        """A published version has no reader any more; shards are told with the next one."""
        self.dropped_versions.append(version)

    @property
    def numbers(self) -> list[int]:
        """Of all shards."""
        return list(self.members)

    def start(self, number: int, seq: int = 0, file: Path | None = None) -> None:
        """Start a shard."""
        self.members[number] = ShardHandle(self.transport.start(self.part, file), seq, file)

    def stop(self, number: int) -> None:
        """Let a shard go."""
        self.transport.stop(self.members.pop(number).shard)

    def apply(self, each: dict[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Let shards do what changes them, (method, arguments) by number, at once; their answers by number."""
        for number, what in each.items():
            member = self.members[number]
            member.seq += 1
            if self.keep_changes:
                member.changes.append((member.seq, *what))
        return self._call({number: ("apply", self.members[number].seq, *what) for number, what in each.items()})

    def ask(self, each: dict[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Ask shards, (method, arguments) by number, at once; their answers by number."""
        return self._call({number: ("ask", *what) for number, what in each.items()})

    def ask_all(self, method: str, *given: Any) -> list[Any]:
        """Ask every shard the same."""
        return list(self.ask({number: (method, *given) for number in self.members}).values())

    def busy_times(self) -> list[BusyTime]:
        """Return the time that changes took, shard by shard."""
        return list(self._call(dict.fromkeys(self.members, ("busy_time",))).values())

    def _call(self, calls: dict[int, tuple[Any, ...]]) -> dict[int, Any]:
        found: dict[int, Any] = {}
        for _ in range(TRIES):
            left = [number for number in calls if number not in found]
            sent = [self.transport.send(self.members[number].shard, *calls[number]) for number in left]
            self.messages += len(sent)
            answers = dict(zip(left, self.transport.gather(sent), strict=True))
            found.update({number: answer for number, answer in answers.items() if answer is not LOST})
            lost = [number for number in left if number not in found]
            if not lost:
                return {number: found[number] for number in calls}
            self._restart(lost)
        raise ShardLost(f"shards {lost} were lost {TRIES} times in a row")

    def _restart(self, lost: Iterable[int]) -> None:
        """Start lost shards again, and tell them what they were told since the last cut."""
        for number in lost:
            member = self.members[number]
            if not self.keep_changes:
                raise ShardLost(
                    f"shard {number} is lost; with a folder, shards come back from cuts and what came after"
                )
            member.shard = self.transport.start(self.part, member.file)
            self.recovered += 1
            for what in member.changes:
                (answer,) = self.transport.gather([self.transport.send(member.shard, "apply", *what)])
                if answer is LOST:
                    break

    def undo(self, numbers: Iterable[int]) -> None:
        """Take the last change back from those who were told it: they begin again, and are told the rest."""
        for number in numbers:
            member = self.members[number]
            member.changes.pop()
            member.seq -= 1
            self.transport.stop(member.shard)
            self._restart([number])

    def save(self, folder: Path) -> dict[int, Path]:
        """Write every shard to the folder, as it is now: the files by number."""
        files = {number: folder / f"shard-{number}" for number in self.members}
        self.ask({number: ("save", str(file)) for number, file in files.items()})
        return files

    def use_checkpoint(self, files: dict[int, Any]) -> None:
        """A cut is complete: shards come back from these, and what they were told before is forgotten."""
        for number, file in files.items():
            member = self.members[number]
            member.file = file
            member.changes.clear()
