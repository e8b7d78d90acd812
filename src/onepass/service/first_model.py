"""Bandit with which a model of a loop begins: untrained, or started from a log or another bandit.

[model.warm_start]
file = "germany.safetensors"        # a saved bandit, or a log in any format of `onepass log`
trust = "earned"                    # or "full"

The file is read when the model begins: at the first start of a loop, and when another model is staged. The log then
holds the model that has learned the file. A restart and `onepass log verify` read that, and never the file again.
"""

from pathlib import Path

from onepass.bandit.bandit import Bandit
from onepass.evaluation.warm_start import warm_start
from onepass.service.settings import LoopSettings, Model, make_bandit


def begin_bandit(settings: LoopSettings) -> Bandit:
    """Make the bandit with which a loop's model begins: untrained, or started from a log or another bandit.

    Raises ValueError if the log or bandit cannot be used.
    """
    bandit: Bandit = make_bandit(settings)
    source = settings.model.warm_start
    if source is None:
        return bandit
    check_source(settings.model)
    try:
        return warm_start(bandit, source.file, trust=source.trust)
    except (ValueError, TypeError, OSError) as error:
        raise ValueError(f"model.warm_start: {error}") from None


def check_source(model: Model) -> None:
    """Raise ValueError if the file from which the model should start is missing."""
    if model.warm_start is not None and not Path(model.warm_start.file).is_file():
        raise ValueError(f"model.warm_start: there is no file {model.warm_start.file}")


def refuse_new_source(present: Model, new: Model) -> None:
    """Raise ValueError if a request asks for another warm start than the present model's; only a settings file may."""
    if new.warm_start is not None and new.warm_start != present.warm_start:
        raise ValueError("model.warm_start can be changed only in the settings file: a request names no files")
