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

from onepass.cluster.exactly_once import IdempotentWorker, Spent
from onepass.cluster.links import LOST, Links

TRIES = 5  # of one call: a shard that is lost each time will be lost again


class ShardLost(RuntimeError):
    """A shard is gone, and nothing was kept from which it could come back."""


class Member:
    """A shard, what it was told since the last cut, and what it comes back from, a file (None: it began then)."""

    def __init__(self, shard: Any, seq: int, file: Any):
        self.shard, self.seq, self.file = shard, seq, file
        self.told: list[tuple[Any, ...]] = []


class Crew:
    """Shards by their numbers.

    part: begins one, from what was kept of it; links: how they are reached; keeps: whether what they are told is kept.
    """

    def __init__(self, part: Callable[[Any], Any], links: Links, keeps: bool):
        self.part, self.links, self.keeps = partial(IdempotentWorker, part), links, keeps
        self.members: dict[int, Member] = {}
        self.gone: list[int] = []  # published versions that nobody reads any more
        self.messages = 0  # sent
        self.recovered = 0  # shards that were lost and came back

    def gone_by(self, version: int) -> None:
        """A published version has no reader any more; shards are told with the next one."""
        self.gone.append(version)

    @property
    def numbers(self) -> list[int]:
        """Of all shards."""
        return list(self.members)

    def begin(self, number: int, seq: int = 0, file: Path | None = None) -> None:
        """Start a shard."""
        self.members[number] = Member(self.links.begun(self.part, file), seq, file)

    def end(self, number: int) -> None:
        """Let a shard go."""
        self.links.end(self.members.pop(number).shard)

    def tell(self, each: dict[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Let shards do what changes them, (method, arguments) by number, at once; their answers by number."""
        for number, what in each.items():
            member = self.members[number]
            member.seq += 1
            if self.keeps:
                member.told.append((member.seq, *what))
        return self._done({number: ("apply", self.members[number].seq, *what) for number, what in each.items()})

    def ask(self, each: dict[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Ask shards, (method, arguments) by number, at once; their answers by number."""
        return self._done({number: ("ask", *what) for number, what in each.items()})

    def ask_all(self, method: str, *given: Any) -> list[Any]:
        """Ask every shard the same."""
        return list(self.ask({number: (method, *given) for number in self.members}).values())

    def spent(self) -> list[Spent]:
        """Return the time that changes took, shard by shard."""
        return list(self._done(dict.fromkeys(self.members, ("spent",))).values())

    def _done(self, calls: dict[int, tuple[Any, ...]]) -> dict[int, Any]:
        found: dict[int, Any] = {}
        for _ in range(TRIES):
            left = [number for number in calls if number not in found]
            sent = [self.links.send(self.members[number].shard, *calls[number]) for number in left]
            self.messages += len(sent)
            answers = dict(zip(left, self.links.answers(sent), strict=True))
            found.update({number: answer for number, answer in answers.items() if answer is not LOST})
            lost = [number for number in left if number not in found]
            if not lost:
                return {number: found[number] for number in calls}
            self._bring_back(lost)
        raise ShardLost(f"shards {lost} were lost {TRIES} times in a row")

    def _bring_back(self, lost: Iterable[int]) -> None:
        """Start lost shards again, and tell them what they were told since the last cut."""
        for number in lost:
            member = self.members[number]
            if not self.keeps:
                raise ShardLost(
                    f"shard {number} is lost; with a folder, shards come back from cuts and what came after"
                )
            member.shard = self.links.begun(self.part, member.file)
            self.recovered += 1
            for what in member.told:
                (answer,) = self.links.answers([self.links.send(member.shard, "apply", *what)])
                if answer is LOST:
                    break

    def undo(self, numbers: Iterable[int]) -> None:
        """Take the last change back from those who were told it: they begin again, and are told the rest."""
        for number in numbers:
            member = self.members[number]
            member.told.pop()
            member.seq -= 1
            self.links.end(member.shard)
            self._bring_back([number])

    def save(self, folder: Path) -> dict[int, Path]:
        """Write every shard to the folder, as it is now: the files by number."""
        files = {number: folder / f"shard-{number}" for number in self.members}
        self.ask({number: ("save", str(file)) for number, file in files.items()})
        return files

    def settle(self, files: dict[int, Any]) -> None:
        """A cut is complete: shards come back from these, and what they were told before is forgotten."""
        for number, file in files.items():
            member = self.members[number]
            member.file = file
            member.told.clear()
