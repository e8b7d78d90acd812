"""How a shard is reached: in this process, or as an actor of Ray. One contract for both.

`begun` starts a shard, from its models or from a file; `send` hands it a call; `answers` waits for calls, and gives
`LOST` for one that can have no answer: its shard, process or machine, is gone.
"""

from pathlib import Path
from typing import Any, Protocol

from onepass.bandit.models import Disjoint, Hybrid
from onepass.cluster.shard import Shard
from onepass.foundation.check import quoted
from onepass.foundation.files import load


class Lost:
    """The answer of a shard that is gone."""


LOST = Lost()


class Links(Protocol):
    """A way to reach shards."""

    def begun(self, models: Disjoint | Hybrid, file: Path | None) -> Any:
        """Start a shard of such models, or (file) as it was saved; what it is called from then on."""
        ...

    def send(self, shard: Any, method: str, *given: Any) -> Any:
        """Let it do something; a call whose answer `answers` waits for."""
        ...

    def answers(self, calls: list[Any]) -> list[Any]:
        """The answers of calls, in their order, `LOST` where there is none; what a shard raises is raised."""
        ...

    def end(self, shard: Any) -> None:
        """It is needed no more."""
        ...


def shard_of(models: Disjoint | Hybrid, file: Path | None) -> Shard:
    """A shard that begins, or one from a file. ValueError for a file of something else."""
    if file is None:
        return Shard(models)
    found = load(file)
    if not isinstance(found, Shard):
        raise ValueError(f"{quoted(file)} holds no shard")
    return found


class Local:
    """Shards in this process."""

    def begun(self, models: Disjoint | Hybrid, file: Path | None) -> list[Shard]:
        return [shard_of(models, file)]

    def send(self, shard: list[Shard], method: str, *given: Any) -> Any:
        return getattr(shard[0], method)(*given) if shard else LOST

    def answers(self, calls: list[Any]) -> list[Any]:
        return calls

    def end(self, shard: list[Shard]) -> None:
        shard.clear()
