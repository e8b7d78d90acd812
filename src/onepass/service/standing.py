"""What the log says that a loop does: settings in force, and its models, one after the other.

    Settings {from, loop, wanted?, line?}      from: file, api, takeover; wanted: the model of the candidate `line`
    Checkpoint                                 stages, lets serve and retires models (log/lines.py)

Settings are in force but for their model, which comes with its candidate: a record of the takeover says so.
"""

import copy
from typing import Any

import msgspec
from msgspec.structs import replace

from onepass.log.lines import Lines
from onepass.log.records import Checkpoint, Settings
from onepass.service.settings import LoopSettings, Model, checked

FILE, API, TAKEOVER = "file", "api", "takeover"  # where settings come from


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A model as it was staged. model; settings: all in force then; at_once: whether it takes over when it has caught
    up, whatever the mode."""

    model: Model
    settings: LoopSettings
    at_once: bool = False


class Standing(msgspec.Struct, kw_only=True):
    """What is in force. settings; version: how many there were; from_file: those that a file gave last; lines: models;
    wanted: of each, by its number."""

    settings: LoopSettings | None = None
    version: int = 0
    from_file: LoopSettings | None = None
    lines: Lines = msgspec.field(default_factory=Lines)
    wanted: dict[int, Wanted] = {}

    def take(self, record: Any) -> None:
        """The next record of the log."""
        if isinstance(record, Checkpoint):
            self.lines.take(record)
        elif isinstance(record, Settings):
            self._settings(record)

    def _settings(self, record: Settings) -> None:
        said = record.settings
        settings = checked(said["loop"])
        wanted = settings.model
        if "wanted" in said:
            wanted = msgspec.convert(said["wanted"], Model)
            staged = Wanted(model=wanted, settings=settings, at_once=said.get("at_once", False))
            self.wanted = {**self.wanted, said["line"]: staged}
        if self.settings is None:
            self.wanted = {0: Wanted(model=settings.model, settings=settings)}
        if self.from_file is None or said["from"] == FILE:
            self.from_file = replace(settings, model=wanted)
        self.settings, self.version = settings, int(record.version)

    def copy(self) -> "Standing":
        """One that stays as it is."""
        return copy.deepcopy(self)


def said(
    origin: str, settings: LoopSettings, wanted: Model | None = None, line: int = 0, at_once: bool = False
) -> dict[str, Any]:
    """What a record of settings says."""
    found: dict[str, Any] = {"from": origin, "loop": settings.plain()}
    if wanted is not None:
        found |= {"wanted": msgspec.to_builtins(wanted), "line": line, "at_once": at_once}
    return found
