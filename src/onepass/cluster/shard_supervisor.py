"""Supervisor of a bandit's shards, or of a stream's workers, which sends changes in order and restarts lost shards.

A lost shard is restored from two parts:

    lost shard = its state at the last checkpoint + the changes since, made again

Changes are kept until the next checkpoint. If an answer was lost, the shard is asked again, and its `seq` tells if it
had made the change already. Without a folder there are no checkpoints, no changes are kept, and a lost shard raises
`ShardLost`.
"""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from onepass.cluster.exactly_once import BusyTime, IdempotentWorker
from onepass.cluster.transport import LOST, Transport

TRIES = 5  # attempts of one call: a shard that is lost each time will be lost again


class ShardLost(RuntimeError):
    """Error for a lost shard that has no checkpoint from which to restart."""


class ShardHandle:
    """Handle of a shard, with the shard's changes since the last checkpoint.

    Parameters
    ----------
    shard : the shard, as the transport knows it.
    seq : number of the shard's last change.
    file : state at the last checkpoint, such as a path; None if the shard was new then.
    """

    def __init__(self, shard: Any, seq: int, file: Any) -> None:
        self.shard, self.seq, self.file = shard, seq, file
        self.changes: list[tuple[Any, ...]] = []


class ShardSupervisor:
    """Supervisor that sends changes to numbered shards, and restarts shards that are lost.

    Parameters
    ----------
    part : callable
        Makes a shard from its saved state, or from None.
    transport : Transport
        The way to reach shards.
    keep_changes : bool
        True to keep changes, so that lost shards can be restarted.
    """

    def __init__(self, part: Callable[[Any], Any], transport: Transport, keep_changes: bool) -> None:
        self.part, self.transport, self.keep_changes = partial(IdempotentWorker, part), transport, keep_changes
        self.members: dict[int, ShardHandle] = {}
        self.dropped_versions: list[int] = []  # published versions that nobody reads any more
        self.messages = 0  # number of messages sent
        self.recovered = 0  # number of restarts of lost shards

    def drop_version(self, version: int) -> None:
        """Mark a published version of the models as unused; shards delete it when the next version is published."""
        self.dropped_versions.append(version)

    @property
    def numbers(self) -> list[int]:
        """Numbers of all shards."""
        return list(self.members)

    def start(self, number: int, seq: int = 0, file: Path | None = None) -> None:
        """Start shard `number` from the checkpoint in `file`, which contains all changes up to number `seq`.

        Without a file the shard starts empty.
        """
        self.members[number] = ShardHandle(self.transport.start(self.part, file), seq, file)

    def stop(self, number: int) -> None:
        """Stop the shard with this number."""
        self.transport.stop(self.members.pop(number).shard)

    def apply(self, each: dict[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Change several shards at once, and return their answers by shard number.

        `each` maps the number of a shard to the method to call and its arguments, (method, *arguments).
        """
        for number, what in each.items():
            member = self.members[number]
            member.seq += 1
            if self.keep_changes:
                member.changes.append((member.seq, *what))
        return self._call({number: ("apply", self.members[number].seq, *what) for number, what in each.items()})

    def ask(self, each: dict[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Call methods of several shards at once that change nothing, and return the answers by shard number.

        `each` maps the number of a shard to the method to call and its arguments, (method, *arguments).
        """
        return self._call({number: ("ask", *what) for number, what in each.items()})

    def ask_all(self, method: str, *given: Any) -> list[Any]:
        """Call the method named `method` of every shard with the arguments `given`, and return the list of answers."""
        return list(self.ask({number: (method, *given) for number in self.members}).values())

    def busy_times(self) -> list[BusyTime]:
        """Return the time that every shard has spent on changes, as a list of `BusyTime` in the order of `numbers`."""
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
        """Restart lost shards from the last checkpoint, and make the changes since again."""
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
        """Undo the last change of the shards `numbers`: restart them, and make all their other changes again."""
        for number in numbers:
            member = self.members[number]
            member.changes.pop()
            member.seq -= 1
            self.transport.stop(member.shard)
            self._restart([number])

    def save(self, folder: Path) -> dict[int, Path]:
        """Write every shard to a file in the folder, and return the files by shard number."""
        files = {number: folder / f"shard-{number}" for number in self.members}
        self.ask({number: ("save", str(file)) for number, file in files.items()})
        return files

    def use_checkpoint(self, files: dict[int, Any]) -> None:
        """Restart lost shards from these files from now on, and forget the changes made before the files were written.

        `files` maps the number of a shard to its file.
        """
        for number, file in files.items():
            member = self.members[number]
            member.file = file
            member.changes.clear()
