"""State of a loop, computed from its log: present settings, and its models, one after the other.

    Settings {from, loop, onepass, wanted?, line?}
                                               record of new settings; from: "file", "api" or "takeover"
                                               onepass: version that wrote it
                                               wanted: the model settings of a candidate, whose number is `line`
    Checkpoint                                 stages, promotes and retires models (log/model_lineage.py)

New settings apply at once, except for their model. It applies when its candidate takes over, which is a record of the
log, too.
"""

import copy
from typing import Any

import msgspec
from msgspec.structs import replace

from onepass import __version__
from onepass.log.model_lineage import ModelLineage
from onepass.log.records import Checkpoint, Settings
from onepass.service.settings import WRITER, LoopSettings, Model, parse_logged_settings

FILE, API, TAKEOVER = "file", "api", "takeover"  # where settings come from


class StagedModel(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a model that learns the log in order to take over, with all settings of the loop at that time.

    `at_once` is True if the model takes over when it has learned the log, whatever the mode of the loop.
    """

    model: Model
    settings: LoopSettings
    at_once: bool = False


class LoopState(msgspec.Struct, kw_only=True):
    """State of a loop that follows from its log: settings and models.

    - settings, version: the present settings, and the number of settings so far.
    - from_file: settings that were last read from a file.
    - lines: the models that the loop has had.
    - staged: settings of each model that was to take over, by the model's number.
    """

    settings: LoopSettings | None = None
    version: int = 0
    from_file: LoopSettings | None = None
    lines: ModelLineage = msgspec.field(default_factory=ModelLineage)
    staged: dict[int, StagedModel] = {}

    def apply(self, record: Any) -> None:
        """Update the state by the next record of the log."""
        if isinstance(record, Checkpoint):
            self.lines.add_checkpoint(record)
        elif isinstance(record, Settings):
            self._apply_settings(record)

    def _apply_settings(self, record: Settings) -> None:
        fields = record.settings
        settings = parse_logged_settings(record)
        wanted = settings.model
        if "wanted" in fields:
            wanted = msgspec.convert(fields["wanted"], Model)
            staged_model = StagedModel(model=wanted, settings=settings, at_once=fields.get("at_once", False))
            self.staged = {**self.staged, fields["line"]: staged_model}
        if self.settings is None:
            self.staged = {0: StagedModel(model=settings.model, settings=settings)}
        if self.from_file is None or fields["from"] == FILE:
            self.from_file = replace(settings, model=wanted)
        self.settings, self.version = settings, int(record.version)

    def copy(self) -> "LoopState":
        """Return an independent copy of the state."""
        return copy.deepcopy(self)


def settings_record(
    origin: str, settings: LoopSettings, wanted: Model | None = None, line: int = 0, at_once: bool = False
) -> dict[str, Any]:
    """Return the content of a settings record, as plain data.

    The keys are "from", "loop" (the settings) and the version of onepass; with `wanted` also "wanted", "line" and
    "at_once".

    `origin` says where the settings come from. `wanted` are the settings of a model that is to take over, with the
    number `line`; None without one. `at_once` is True if it takes over as soon as it has learned the log.
    """
    found: dict[str, Any] = {"from": origin, "loop": settings.to_dict(), WRITER: __version__}
    if wanted is not None:
        found |= {"wanted": msgspec.to_builtins(wanted), "line": line, "at_once": at_once}
    return found
